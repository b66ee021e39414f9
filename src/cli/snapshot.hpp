#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "latchfs/base/clock.hpp"
#include "latchfs/base/error.hpp"
#include "latchfs/protocol/documents.hpp"
#include "latchfs/protocol/entry_name.hpp"
#include "latchfs/share/share.hpp"

/// What the names of a control directory say at this moment. For people: nothing here decides about a lock.
namespace latchfs::cli {

struct SessionView {
  bool listed = false;  ///< sessions/ has it
  bool dead = false;    ///< beats/ has its .dead
  std::optional<BeatNumber> beat{};
  std::optional<WallTime> beaten{};  ///< when the beat was made, by the server's clock
  protocol::SessionInfo info{};
};
using Sessions = std::map<SessionId, SessionView>;

struct LockView {
  std::string folder;  ///< "locks/0a3"
  protocol::LockEntry entry;
  bool in_line = false;  ///< a claim that stands behind another one which was made before it
};

struct Snapshot {
  protocol::LeaseTimes times{};
  Sessions sessions{};
  std::vector<LockView> locks{};
  std::vector<std::string> problems{};  ///< each one sentence, fit to be printed
};

/// Reads format, sessions/ and beats/; locks/ too where `with_locks`. Errc::system when the share cannot be read,
/// Errc::corrupt or Errc::refused when its format is not to be understood. Blocks on the share.
Result<Snapshot> read_snapshot(share::Share& share, bool with_locks);

/// "live", "late" (its beat is older than it should be, by this host's clock) or "dead".
const char* session_state(const SessionView& session, const protocol::LeaseTimes& times, WallTime now);
/// "held", "waiting", "cached" or "void" (its session is dead or gone).
const char* lock_state(const LockView& lock, const Sessions& sessions);
/// The name the administrator gave to the session's host, or the one it has; empty when not known.
std::string host_of(const SessionView& session);

}  // namespace latchfs::cli
