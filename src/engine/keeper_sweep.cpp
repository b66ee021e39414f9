#include "engine/keeper_core.hpp"
#include "engine/sweeper.hpp"

// The sweep thread, and the calls that come from outside.
namespace latchfs::engine {

void KeeperCore::leave_to_sweep(const SessionId& sid) {
  peers_.mark_dead(sid);
  const std::lock_guard lock(mutex_);
  own_dead_.insert(sid);
  sweep_wanted_ = true;
  wake_.notify_all();
}

void KeeperCore::poke_sweep() {
  const std::lock_guard lock(mutex_);
  sweep_wanted_ = true;
  wake_.notify_all();
}

void KeeperCore::run_sweep() {
  try {
    sweep_loop();
  } catch (const Abandoned&) {
    // Nobody waits for this thread any more.
  }
  sweep_gate_.finish();
}

void KeeperCore::sweep_loop() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stopping_ || sweep_wanted_; });
      if (stopping_) return;
      sweep_wanted_ = false;
    }
    sweep_round();
  }
}

void KeeperCore::sweep_round() {
  local_.read_infos(sweep_share_, peers_.live());
  local_.break_gone(sweep_share_, peers_, events_);
  std::set<SessionId> dead;
  {
    const std::lock_guard lock(mutex_);
    dead = own_dead_;
  }
  const std::set<SessionId> own = dead;
  for (SessionId& sid : peers_.dead()) dead.insert(std::move(sid));
  if (!dead.empty()) {
    if (const auto swept = sweep(sweep_share_, dead); !swept) {
      events_.log(Level::debug, "the names of ended sessions could not be removed yet: {}", describe(swept.error()));
    } else {
      const std::lock_guard lock(mutex_);
      for (const SessionId& sid : own) own_dead_.erase(sid);
    }
    // What was swept is known to be gone after this.
    if (const auto learnt = peers_.learn(sweep_share_); !learnt) return;
  }
  if (!peers_.has_deaths()) return;
  const std::lock_guard lock(mutex_);
  news_ = true;
  wake_.notify_all();
}

void KeeperCore::ask_to_stop(Steady::time_point deadline) {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  stop_deadline_ = deadline;
  current_.reset();
  lease_.end();
  wake_.notify_all();
}

Result<void> KeeperCore::learn() {
  try {
    auto learnt = peers_.learn(call_share_);
    if (peers_.has_deaths()) {
      const std::lock_guard lock(mutex_);
      news_ = true;
      wake_.notify_all();
    }
    return learnt;
  } catch (const Abandoned&) {
    return fail(Errc::cancelled, "the session has ended");
  }
}

void KeeperCore::disown() {
  const std::lock_guard lock(mutex_);
  if (!current_) return;
  disowned_ = current_;
  current_.reset();
  lease_.end();
  wake_.notify_all();
}

std::optional<SessionId> KeeperCore::current() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

bool KeeperCore::ended_cleanly() const {
  const std::lock_guard lock(mutex_);
  return clean_;
}

}  // namespace latchfs::engine
