#include "engine/format_file.hpp"

#include <fmt/format.h>
#include <systemd/sd-id128.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <thread>

#include "engine/session_info_local.hpp"
#include "engine/session_names.hpp"
#include "latchfs/base/duration.hpp"
#include "latchfs/protocol/layout.hpp"

// The times of a share may change only while nobody is a member. Taking the old format away comes first, then the look
// for sessions; a session that opens makes its names first and then looks at the format. So one of the two sees the
// other.
namespace latchfs::engine {
namespace {

using protocol::FormatDocument;
using share::Freshness;

constexpr std::size_t kMaxFormat = 4096;
constexpr auto kPatience = std::chrono::seconds(2);
constexpr auto kPause = std::chrono::milliseconds(50);

std::string random_uuid() {
  sd_id128_t id{};
  std::array<char, SD_ID128_STRING_MAX> text{};
  if (sd_id128_randomize(&id) < 0) return random_session_id().text + "000000000000";
  return sd_id128_to_string(id, text.data());
}

std::string to_text(const protocol::LeaseTimes& times) {
  return fmt::format("beat={}, fence_after={}, break_after={}", format_duration(times.beat),
                     format_duration(times.fence_after), format_duration(times.break_after));
}

/// Sessions that are not proved dead. A name in either folder is enough: a session that opens has its beat first.
Result<std::vector<SessionId>> possibly_live(share::Share& share, const protocol::SessionInfo& own) {
  const auto sessions = list_sessions(share, Freshness::forced);
  if (!sessions) return tl::unexpected(sessions.error());
  const auto beats = list_beats(share, Freshness::forced);
  if (!beats) return tl::unexpected(beats.error());
  std::vector<SessionId> all = *sessions;
  for (const auto& entry : *beats) all.push_back(entry.sid);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());

  std::vector<SessionId> live;
  for (const SessionId& sid : all) {
    if (find_session(*beats, sid).dead) continue;
    const auto info = read_session_info(share, sid);
    if (info && process_is_gone(own, *info)) continue;
    live.push_back(sid);
  }
  return live;
}

Result<void> publish(share::PosixShare& share, FormatDocument doc) {
  return share.publish_numbered("", protocol::kFormatFile, [&doc](std::uint64_t inode) {
    doc.own_inode = inode;
    return protocol::to_text(doc);
  });
}

Error format_missing(const std::string& path, const std::vector<SessionId>& live) {
  return Error{
      Errc::refused, 0,
      fmt::format("{0}/{1}/{2} is missing though sessions are open (one is {3}): end them first",
                  path, protocol::kControlDir, protocol::kFormatFile, live.front().text)};
}

/// The very first format. Another daemon that is quicker is no error.
Result<void> publish_first(share::PosixShare& share, const std::string& path,
                           const std::optional<protocol::LeaseTimes>& wanted, const protocol::SessionInfo& own) {
  const auto live = possibly_live(share, own);
  if (!live) return tl::unexpected(live.error());
  if (!live->empty()) return tl::unexpected(format_missing(path, *live));
  FormatDocument doc;
  doc.share_uuid = random_uuid();
  doc.times = wanted.value_or(protocol::LeaseTimes{});
  auto published = publish(share, doc);
  if (!published && is_errno(published.error(), EEXIST)) return {};
  return published;
}

/// Puts a format with the times `wanted` in the place of `old`. Success says only that it is worth looking again.
Result<void> replace(share::PosixShare& share, const FormatDocument& old, const protocol::LeaseTimes& wanted,
                     const protocol::SessionInfo& own) {
  const auto refuse = [&](const std::vector<SessionId>& live) {
    return fail(Errc::refused,
                fmt::format("the share has {}; other times can be given only while no session is open (one is {})",
                            to_text(old.times), live.front().text));
  };
  auto live = possibly_live(share, own);
  if (!live) return tl::unexpected(live.error());
  if (!live->empty()) return refuse(*live);

  const std::string aside = fmt::format("t.{}.{}", protocol::kFormatFile, random_session_id().text);
  if (auto moved = share.rename("", protocol::kFormatFile, aside); !moved) {
    if (is_errno(moved.error(), ENOENT)) return {};
    return moved;
  }
  live = possibly_live(share, own);
  if (!live || !live->empty()) {
    auto back = share.rename("", aside, protocol::kFormatFile);
    if (!back) return back;
    if (!live) return tl::unexpected(live.error());
    return refuse(*live);
  }
  FormatDocument doc = old;
  doc.times = wanted;
  auto published = publish(share, doc);
  (void)remove_if_there(share, "", aside);
  if (!published && is_errno(published.error(), EEXIST)) return {};
  return published;
}

Result<void> check_number(share::Share& share, const std::string& path, const FormatDocument& doc) {
  const auto facts = share.facts("", protocol::kFormatFile);
  if (!facts) return tl::unexpected(facts.error());
  if (facts->inode == doc.own_inode) return {};
  return fail(
      Errc::refused,
      fmt::format(
          "{0}/{1}/{2} has number {3} here, but {4} where it was written: the directory was copied, or this host "
          "numbers files otherwise than the server (if it was copied: remove {0}/{1} while no daemon runs on the share)",
          path, protocol::kControlDir, protocol::kFormatFile, facts->inode, doc.own_inode));
}

}  // namespace

Result<FormatDocument> agree_on_format(share::PosixShare& share, const std::string& path,
                                       const std::optional<protocol::LeaseTimes>& wanted,
                                       const protocol::SessionInfo& own) {
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  std::string trouble;
  for (bool first = true; first || std::chrono::steady_clock::now() < give_up; first = false) {
    // What is torn may be in the making on another host; what was taken away is about to be put there anew.
    if (!first) std::this_thread::sleep_for(kPause);
    const auto text = share.read_file("", protocol::kFormatFile, kMaxFormat);
    if (!text && is_errno(text.error(), ENOENT)) {
      if (auto done = publish_first(share, path, wanted, own); !done) return tl::unexpected(done.error());
      trouble = "it does not stay";
      continue;
    }
    if (!text) return tl::unexpected(text.error());
    const auto doc = protocol::parse_format(*text);
    if (!doc && doc.error().code == Errc::refused) return doc;
    if (!doc) {
      trouble = doc.error().what;
      continue;
    }
    if (auto fine = check_number(share, path, *doc); !fine) {
      if (is_errno(fine.error(), ENOENT)) continue;
      return tl::unexpected(fine.error());
    }
    if (!wanted || doc->times == *wanted) return doc;
    if (auto done = replace(share, *doc, *wanted, own); !done) return tl::unexpected(done.error());
    trouble = "another daemon replaces it too";
  }
  return fail(
      Errc::refused,
      fmt::format("{0}/{1}/{2} cannot be used ({3}): when no daemon runs on the share, remove {0}/{1}",
                  path, protocol::kControlDir, protocol::kFormatFile, trouble));
}

}  // namespace latchfs::engine
