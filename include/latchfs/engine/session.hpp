#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "latchfs/base/ids.hpp"
#include "latchfs/base/error.hpp"

namespace latchfs::engine {

/// What the lock service asks of the session. Implemented by SessionKeeper; tests give their own. Any thread.
class Session {
 public:
  virtual ~Session() = default;
  /// The session whose names may be published now; empty between a loss and the next session, and after the end.
  virtual std::optional<SessionId> current() const = 0;
  /// The lease is valid and the session not known to be lost. Never blocks.
  virtual bool lease_valid() const = 0;
  /// Share time now in microseconds, strictly growing within this mount. Never blocks.
  virtual Ticket next_ticket() = 0;
  /// From what is known already; never blocks.
  virtual bool is_void(const SessionId& sid) const = 0;
  virtual bool is_known(const SessionId& sid) const = 0;
  virtual bool is_late(const SessionId& sid) const = 0;
  /// Lists sessions/ and beats/ afresh, so that is_void() and is_known() speak of a moment after the call began. Blocks on the share.
  virtual Result<void> learn() = 0;
  /// A granted claim vanished from the share: the server forgot acknowledged operations, so the session counts as lost. The keeper ends it and
  /// opens a new one. Never blocks.
  virtual void disown() = 0;
};

/// Told what happens to the session, from the keeper's thread, with no lock held. Must not block on the share.
class SessionListener {
 public:
  virtual ~SessionListener() = default;
  /// The session was broken, or the share forgot it: every lock of it is gone. Comes before the next on_joined().
  virtual void on_lost(const SessionId& sid, const std::string& reason) = 0;
  /// A session is open and its first beat confirmed (also the first one, at start).
  virtual void on_joined(const SessionId& sid) = 0;
  /// A beat was confirmed; `after_gap`: the lease had run out before it.
  virtual void on_beat(bool after_gap) = 0;
  /// A peer is now known to be dead: its claims are void.
  virtual void on_peer_dead(const SessionId& sid) = 0;
};

}  // namespace latchfs::engine
