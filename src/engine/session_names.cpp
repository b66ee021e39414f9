#include "engine/session_names.hpp"

#include <cerrno>

#include "latchfs/protocol/layout.hpp"

namespace latchfs::engine {
namespace {

constexpr std::size_t kMaxInfo = 16384;

/// Removes every name in `dir` that begins with `prefix`.
Result<void> remove_all(share::Share& share, const std::string& dir, const std::string& prefix) {
  const auto names = share.list(dir, share::Freshness::forced);
  if (!names && is_errno(names.error(), ENOENT)) return {};
  if (!names) return tl::unexpected(names.error());
  for (const std::string& name : *names) {
    if (name.compare(0, prefix.size(), prefix) != 0) continue;
    if (auto gone = remove_if_there(share, dir, name); !gone) return gone;
  }
  return {};
}

}  // namespace

Result<std::vector<protocol::BeatEntry>> list_beats(share::Share& share, share::Freshness freshness) {
  const auto names = share.list(protocol::kBeats, freshness);
  if (!names) return tl::unexpected(names.error());
  std::vector<protocol::BeatEntry> beats;
  for (const std::string& name : *names) {
    if (auto entry = protocol::parse_beat_name(name)) beats.push_back(std::move(*entry));
  }
  return beats;
}

Result<std::vector<SessionId>> list_sessions(share::Share& share, share::Freshness freshness) {
  const auto names = share.list(protocol::kSessions, freshness);
  if (!names) return tl::unexpected(names.error());
  std::vector<SessionId> sessions;
  for (const std::string& name : *names) {
    if (auto sid = protocol::parse_session_name(name)) sessions.push_back(std::move(*sid));
  }
  return sessions;
}

Sighting find_session(const std::vector<protocol::BeatEntry>& beats, const SessionId& sid) {
  Sighting seen;
  for (const protocol::BeatEntry& entry : beats) {
    if (entry.sid != sid) continue;
    if (!entry.beat) seen.dead = true;
    if (entry.beat && (!seen.beat || *seen.beat < *entry.beat)) seen.beat = entry.beat;
  }
  return seen;
}

Result<protocol::SessionInfo> read_session_info(share::Share& share, const SessionId& sid) {
  const auto text = share.read_file(protocol::kSessions, sid.text, kMaxInfo);
  if (!text) return tl::unexpected(text.error());
  return protocol::parse_session_info(*text);
}

Result<void> rename_to_dead(share::Share& share, const SessionId& sid, BeatNumber beat) {
  return share.rename(protocol::kBeats, protocol::format(protocol::BeatEntry{sid, beat}),
                      protocol::format(protocol::BeatEntry{sid, std::nullopt}));
}

Result<void> remove_if_there(share::Share& share, const std::string& dir, const std::string& name) {
  auto gone = share.remove_entry(dir, name);
  if (!gone && is_errno(gone.error(), ENOENT)) return {};
  return gone;
}

Result<void> remove_session_names(share::Share& share, const SessionId& sid) {
  const std::string inbox = std::string(protocol::kInbox) + "/" + sid.text;
  if (auto gone = remove_all(share, inbox, ""); !gone) return gone;
  if (auto gone = remove_if_there(share, protocol::kInbox, sid.text); !gone) return gone;
  // A daemon that died while it published its session file left that under a temporary name.
  if (auto gone = remove_all(share, protocol::kSessions, "t." + sid.text + "."); !gone) return gone;
  if (auto gone = remove_if_there(share, protocol::kSessions, sid.text); !gone) return gone;
  return remove_all(share, protocol::kBeats, sid.text + ".");
}

}  // namespace latchfs::engine
