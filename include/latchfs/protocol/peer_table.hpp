#pragma once
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "latchfs/base/clock.hpp"
#include "latchfs/protocol/entry_name.hpp"
#include "latchfs/protocol/lease_times.hpp"

namespace latchfs::protocol {

/// What one observer knows of the other sessions of its share. Pure: time comes with each listing. One thread at a
/// time.
class PeerTable {
 public:
  PeerTable(SessionId self, LeaseTimes times) : self_(std::move(self)), times_(times) {}

  /// Takes a fresh listing of beats/ that was complete at `ended` (the begin would be too early: a beat can be made
  /// while a slow listing runs). A session missing from it is not dead; of two beats of one session the higher counts;
  /// `.dead` is death. A gap of more than longest_counted_gap() since the listing before counts as that much only.
  void feed_beats(const std::vector<BeatEntry>& beats, ObserveTime ended);
  /// Takes a fresh listing of sessions/ whose opendir began after the last feed_beats() and feed_sessions() had
  /// returned. A session that was in sessions/ before and is not in it now is gone (those names are never renamed), and
  /// that is remembered for good. One whose beat stands in beats/ but which was never seen in sessions/ is only just
  /// opening: not gone.
  void feed_sessions(const std::vector<SessionId>& present);
  /// sessions/ should be listed: a session is new, dead, or not in the last listing of beats/.
  bool wants_sessions() const;
  /// This mount's session is another one now; what is known of the others stays.
  void set_self(SessionId self);
  /// A break succeeded here or a death was proved.
  void mark_dead(const SessionId& sid);

  struct Stale {
    SessionId sid;
    BeatNumber beat;
  };
  /// Peers seen at the same beat for break_after of counted time: may be broken, each by renaming exactly this beat.
  std::vector<Stale> breakable() const;
  /// Dead sessions whose names may still be on the share: to be swept.
  std::vector<SessionId> dead() const;
  /// Positive knowledge that the session is dead or gone: its claims are void.
  bool is_void(const SessionId& sid) const;
  /// Known from a listing of sessions/ or beats/ and not dead.
  bool is_known(const SessionId& sid) const;
  /// The beat has not moved for late_after() of counted time: its waiters hold nobody up (fairness, not safety).
  bool is_late(const SessionId& sid) const;
  /// The last beat seen of a session that is not dead.
  std::optional<BeatNumber> last_beat(const SessionId& sid) const;
  std::vector<SessionId> live() const;

 private:
  struct Peer {
    std::optional<BeatNumber> beat{};
    Nanos unchanged{0};       ///< counted time since the beat was first seen
    bool shown = false;       ///< in the last listing of beats/, in whatever state
    bool registered = false;  ///< seen in sessions/
    bool dead = false;
  };
  SessionId self_;
  LeaseTimes times_;
  std::optional<ObserveTime> last_listing_{};
  std::unordered_map<SessionId, Peer> peers_{};
  std::unordered_set<SessionId> gone_{};
};

}  // namespace latchfs::protocol
