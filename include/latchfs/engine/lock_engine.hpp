#pragma once
#include <memory>

#include "latchfs/base/clock.hpp"
#include "latchfs/base/events.hpp"
#include "latchfs/engine/fence.hpp"
#include "latchfs/engine/lock_service.hpp"
#include "latchfs/engine/session.hpp"
#include "latchfs/protocol/lease_times.hpp"
#include "latchfs/protocol/priority.hpp"
#include "latchfs/share/share.hpp"

namespace latchfs::engine {

/// The lock service of a mount: a FileLocks for each file that has locks, and threads (lfs-lock) that carry its rounds to the share.
class LockEngine final : public LockService, public SessionListener {
 public:
  struct Parts {
    share::Share& share;
    const Clock& clock;
    EventSink& events;
    Session& session;
    Fence& fence;
  };

  /// All parts must outlive the engine.
  LockEngine(const Parts& parts, const protocol::LeaseTimes& times, protocol::QueuePolicy policy);
  ~LockEngine() override;

  /// Cancels all requests, lets go of all locks and withdraws their names, for at most `limit`; false when names may be left. Later
  /// requests fail with no_locks. Called once, before the session ends.
  bool stop(Nanos limit);

  WaiterId next_id() override;
  void lock(WaiterId id, LockCall call, Done done) override;
  void unlock(WaiterId id, LockCall call, Done done) override;
  void test(LockCall call, Tested done) override;
  void drop_owner(FileId file, LockOwner owner, Done done) override;
  void drop_handle(FileId file, const std::shared_ptr<HandleFence>& handle, Done done) override;
  bool cancel(WaiterId id) override;

  void on_lost(const SessionId& sid, const std::string& reason) override;
  void on_joined(const SessionId& sid) override;
  void on_beat(bool after_gap) override;
  void on_peer_dead(const SessionId& sid) override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace latchfs::engine
