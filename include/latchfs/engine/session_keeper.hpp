#pragma once
#include <memory>
#include <string>

#include "latchfs/base/clock.hpp"
#include "latchfs/base/events.hpp"
#include "latchfs/engine/lease.hpp"
#include "latchfs/engine/session.hpp"
#include "latchfs/protocol/documents.hpp"
#include "latchfs/protocol/lease_times.hpp"
#include "latchfs/share/share.hpp"

namespace latchfs::engine {

/// Keeps this mount a member of the share: opens a session, beats (thread lfs-beat), watches and breaks stale peers, sweeps dead ones
/// (thread lfs-sweep), opens a new session after a loss, and ends cleanly.
class SessionKeeper final : public Session {
 public:
  struct Identity {
    std::string host_id{};     ///< empty: the machine's own identity (boot id, pid namespace)
    std::string mountpoint{};  ///< for humans
  };

  /// All references must outlive the keeper. `times` are the share's (from its format). Starts nothing.
  SessionKeeper(share::Share& share, const Clock& clock, EventSink& events, Lease& lease, protocol::LeaseTimes times,
                Identity identity);
  ~SessionKeeper() override;

  /// Opens the first session and confirms its first beat, then starts the threads; `listener` must outlive stop(). Blocks on the share.
  /// Called once. Before anything else it breaks former sessions of this host that are proved dead.
  Result<void> start(SessionListener& listener);
  /// Ends the session cleanly (the lock service has withdrawn its claims) and joins the threads. Waits at most `limit` for a share that hangs,
  /// then leaves the rest to the peers (false). Idempotent.
  bool stop(Nanos limit);

  std::optional<SessionId> current() const override;
  bool lease_valid() const override;
  Ticket next_ticket() override;
  bool is_void(const SessionId& sid) const override;
  bool is_known(const SessionId& sid) const override;
  bool is_late(const SessionId& sid) const override;
  Result<void> learn() override;
  void disown() override;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace latchfs::engine
