#include "latchfs/engine/session_keeper.hpp"

#include <pthread.h>

#include <thread>

#include "engine/keeper_core.hpp"

namespace latchfs::engine {

struct SessionKeeper::Impl {
  Impl(share::Share& share, const Clock& clock, EventSink& events, Lease& lease, protocol::LeaseTimes times,
       const Identity& identity)
      : core(std::make_shared<KeeperCore>(share, clock, events, lease, times, identity)) {}

  /// Ends or leaves behind one thread. False: it was left behind.
  static bool end(std::thread& thread, Gate& gate, KeeperCore::Steady::time_point deadline);

  const std::shared_ptr<KeeperCore> core;
  std::mutex stop_mutex;
  std::thread beat, sweep;
  bool stopped = false;
  bool clean = true;
};

bool SessionKeeper::Impl::end(std::thread& thread, Gate& gate, KeeperCore::Steady::time_point deadline) {
  if (gate.wait_finished(deadline)) {
    thread.join();
    return true;
  }
  gate.close();
  thread.detach();
  return false;
}

SessionKeeper::SessionKeeper(share::Share& share, const Clock& clock, EventSink& events, Lease& lease,
                             protocol::LeaseTimes times, Identity identity)
    : impl_(std::make_shared<Impl>(share, clock, events, lease, times, identity)) {}

SessionKeeper::~SessionKeeper() {
  constexpr Nanos kLimit = std::chrono::seconds(5);
  stop(kLimit);
}

Result<void> SessionKeeper::start(SessionListener& listener) {
  if (auto begun = impl_->core->begin(listener); !begun) return begun;
  const std::shared_ptr<KeeperCore> core = impl_->core;
  impl_->beat = std::thread([core] {
    ::pthread_setname_np(::pthread_self(), "lfs-beat");
    core->run_beat();
  });
  impl_->sweep = std::thread([core] {
    ::pthread_setname_np(::pthread_self(), "lfs-sweep");
    core->run_sweep();
  });
  return {};
}

bool SessionKeeper::stop(Nanos limit) {
  const std::lock_guard lock(impl_->stop_mutex);
  if (impl_->stopped) return impl_->clean;
  impl_->stopped = true;
  const auto deadline = KeeperCore::Steady::now() + limit;
  KeeperCore& core = *impl_->core;
  core.ask_to_stop(deadline);
  core.peers().close();
  if (impl_->beat.joinable()) {
    const bool beat_ended = Impl::end(impl_->beat, core.beat_gate(), deadline);
    const bool sweep_ended = Impl::end(impl_->sweep, core.sweep_gate(), deadline);
    impl_->clean = beat_ended && sweep_ended && core.ended_cleanly();
  }
  core.call_gate().close_now();
  return impl_->clean;
}

std::optional<SessionId> SessionKeeper::current() const { return impl_->core->current(); }
bool SessionKeeper::lease_valid() const { return impl_->core->lease().valid(); }
Ticket SessionKeeper::next_ticket() { return impl_->core->share_time().next(); }
bool SessionKeeper::is_void(const SessionId& sid) const { return impl_->core->peers().is_void(sid); }
bool SessionKeeper::is_known(const SessionId& sid) const { return impl_->core->peers().is_known(sid); }
bool SessionKeeper::is_late(const SessionId& sid) const { return impl_->core->peers().is_late(sid); }

Result<void> SessionKeeper::learn() {
  const std::shared_ptr<KeeperCore> core = impl_->core;
  return core->learn();
}

void SessionKeeper::disown() { impl_->core->disown(); }

}  // namespace latchfs::engine
