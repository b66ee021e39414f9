#include "cli/snapshot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "latchfs/base/printable.hpp"
#include "latchfs/protocol/layout.hpp"

namespace latchfs::cli {
namespace {

constexpr std::size_t kLongestDocument = 64 * 1024;
// A beat that is renamed while its folder is listed can show under neither name, or be gone when it is looked at.
constexpr int kBeatTries = 5;

// A folder that is not there has no names: the first lock of a share makes it.
Result<std::vector<std::string>> list(share::Share& share, const std::string& dir) {
  auto names = share.list(dir, share::Freshness::forced);
  if (!names && is_errno(names.error(), ENOENT)) return std::vector<std::string>{};
  return names;
}

void note_beat(SessionView& session, const protocol::BeatEntry& entry) {
  if (!entry.beat) {
    session.dead = true;
  } else if (!session.beat || *session.beat < *entry.beat) {
    session.beat = entry.beat;
    session.beaten.reset();
  }
}

Result<void> read_beats_once(share::Share& share, Sessions& sessions) {
  const auto names = list(share, protocol::kBeats);
  if (!names) return tl::unexpected(names.error());
  for (const std::string& name : *names) {
    if (const auto entry = protocol::parse_beat_name(name)) note_beat(sessions[entry->sid], *entry);
  }
  for (auto& [sid, session] : sessions) {
    if (session.dead || !session.beat || session.beaten) continue;
    const auto facts = share.facts(protocol::kBeats, protocol::format(protocol::BeatEntry{sid, session.beat}));
    if (facts) session.beaten = facts->changed;
  }
  return {};
}

bool beats_complete(const Sessions& sessions) {
  return std::all_of(sessions.begin(), sessions.end(), [](const auto& entry) {
    const SessionView& session = entry.second;
    return session.dead || session.beaten || (!session.listed && !session.beat);
  });
}

void read_session_info(share::Share& share, Snapshot& snapshot, const SessionId& sid, SessionView& session) {
  const auto text = share.read_file(protocol::kSessions, sid.text, kLongestDocument);
  if (!text && is_errno(text.error(), ENOENT)) {
    session.listed = false;  // it went since the listing
    return;
  }
  const auto info = text ? protocol::parse_session_info(*text) : tl::unexpected(text.error());
  if (info) {
    session.info = *info;
  } else {
    snapshot.problems.push_back(
        printable(fmt::format("{}/{}: {}", protocol::kSessions, sid.text, describe(info.error()))));
  }
}

Result<void> read_sessions(share::Share& share, Snapshot& snapshot) {
  const auto names = list(share, protocol::kSessions);
  if (!names) return tl::unexpected(names.error());
  for (const std::string& name : *names) {
    if (const auto sid = protocol::parse_session_name(name)) snapshot.sessions[*sid].listed = true;
  }
  for (int i = 0; i < kBeatTries; ++i) {
    if (auto read = read_beats_once(share, snapshot.sessions); !read) return read;
    if (beats_complete(snapshot.sessions)) break;
  }
  for (auto& [sid, session] : snapshot.sessions) {
    if (session.listed) read_session_info(share, snapshot, sid, session);
  }
  return {};
}

void note_lock(Snapshot& snapshot, const std::string& folder, const std::string& name) {
  const protocol::LockName parsed = protocol::parse_lock_name(name);
  if (const auto* entry = std::get_if<protocol::LockEntry>(&parsed)) {
    snapshot.locks.push_back(LockView{folder, *entry});
  } else if (std::holds_alternative<protocol::UnknownClaim>(parsed)) {
    snapshot.problems.push_back(printable(fmt::format(
        "{}/{}: a claim that cannot be read; no lock is given on the files of this folder while it is there", folder,
        name)));
  }
}

Result<void> read_locks(share::Share& share, Snapshot& snapshot) {
  const auto folders = list(share, protocol::kLocks);
  if (!folders) return tl::unexpected(folders.error());
  for (const std::string& folder : *folders) {
    const bool is_ours = folder.size() == 3 && folder.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (!is_ours) continue;
    const std::string dir = fmt::format("{}/{}", protocol::kLocks, folder);
    const auto names = list(share, dir);
    if (!names) return tl::unexpected(names.error());
    for (const std::string& name : *names) note_lock(snapshot, dir, name);
  }
  return {};
}

bool is_void(const LockView& lock, const Sessions& sessions) {
  const auto session = sessions.find(lock.entry.claim.sid);
  return session == sessions.end() || session->second.dead || !session->second.listed;
}

bool claims(const LockView& lock, const Sessions& sessions) {
  return lock.entry.kind != protocol::EntryKind::queued && !is_void(lock, sessions);
}

// A claim is published before its session knows whether it may have it. Whoever has it published first: a listing after
// that showed nothing in the way. So of two claims in conflict the later one, by the server's clock, still waits.
void mark_claims_in_line(share::Share& share, Snapshot& snapshot) {
  std::vector<std::optional<WallTime>> made(snapshot.locks.size());
  const auto made_at = [&](std::size_t i) {
    const LockView& lock = snapshot.locks[i];
    if (!made[i]) {
      if (const auto facts = share.facts(lock.folder, protocol::format(lock.entry))) made[i] = facts->changed;
    }
    return made[i];
  };
  for (std::size_t i = 0; i < snapshot.locks.size(); ++i) {
    for (std::size_t j = 0; j < snapshot.locks.size(); ++j) {
      LockView& later = snapshot.locks[i];
      const LockView& earlier = snapshot.locks[j];
      if (later.in_line || later.entry.claim.file != earlier.entry.claim.file ||
          !protocol::conflicts(later.entry.claim, earlier.entry.claim))
        continue;
      if (!claims(later, snapshot.sessions) || !claims(earlier, snapshot.sessions)) continue;
      const auto own = made_at(i);
      const auto other = made_at(j);
      later.in_line = own && other && *other < *own;
    }
  }
}

}  // namespace

Result<Snapshot> read_snapshot(share::Share& share, bool with_locks) {
  const auto text = share.read_file("", protocol::kFormatFile, kLongestDocument);
  if (!text) return tl::unexpected(text.error());
  const auto format = protocol::parse_format(*text);
  if (!format) return tl::unexpected(format.error());
  Snapshot snapshot;
  snapshot.times = format->times;
  // Locks first: the session of a claim that is seen was there before it, so one that is not found afterwards is gone.
  if (with_locks) {
    if (const auto read = read_locks(share, snapshot); !read) return tl::unexpected(read.error());
  }
  if (const auto read = read_sessions(share, snapshot); !read) return tl::unexpected(read.error());
  mark_claims_in_line(share, snapshot);
  return snapshot;
}

const char* session_state(const SessionView& session, const protocol::LeaseTimes& times, WallTime now) {
  if (session.dead || !session.listed) return "dead";
  return session.beaten && now - *session.beaten <= protocol::late_after(times) ? "live" : "late";
}

const char* lock_state(const LockView& lock, const Sessions& sessions) {
  if (is_void(lock, sessions)) return "void";
  if (lock.entry.kind == protocol::EntryKind::cached) return "cached";
  return lock.entry.kind == protocol::EntryKind::queued || lock.in_line ? "waiting" : "held";
}

std::string host_of(const SessionView& session) {
  return session.info.host_id.empty() ? session.info.host : session.info.host_id;
}

}  // namespace latchfs::cli
