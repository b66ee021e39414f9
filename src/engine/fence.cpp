#include "latchfs/engine/fence.hpp"

#include <pthread.h>

#include <utility>
#include <vector>

namespace latchfs::engine {
namespace {

using namespace std::chrono_literals;

// The lease can be renewed without a wake() reaching us in time, and deadlines have to be kept: look this often while something is held.
constexpr Nanos kRecheck = 200ms;

Result<void> lost() { return fail(Errc::lease_lost, "the lease ran out"); }

}  // namespace

Fence::Fence(const Lease& lease, OnExpiry on_expiry, Nanos hold_limit)
    : lease_(lease), on_expiry_(on_expiry), hold_limit_(hold_limit), thread_([this] { run(); }) {
  pthread_setname_np(thread_.native_handle(), "lfs-held");
}

Fence::~Fence() { stop(); }

WaiterId Fence::hold(std::shared_ptr<const HandleFence> handle, Then then) {
  std::unique_lock lock(mutex_);
  const WaiterId id{next_id_++};
  if (stopping_) {
    lock.unlock();
    then(lost());
    return id;
  }
  held_.emplace(id, Held{std::move(handle), std::move(then), lease_.now() + hold_limit_});
  poked_ = true;
  changed_.notify_one();
  return id;
}

void Fence::cancel(WaiterId id) {
  const std::lock_guard lock(mutex_);
  if (const auto it = held_.find(id); it != held_.end()) it->second.cancelled = true;
  poked_ = true;
  changed_.notify_one();
}

void Fence::wake() {
  const std::lock_guard lock(mutex_);
  poked_ = true;
  changed_.notify_one();
}

void Fence::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

void Fence::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    std::vector<std::pair<Then, bool>> ready;
    const LeaseTime now = lease_.now();
    for (auto it = held_.begin(); it != held_.end();) {
      const Verdict verdict = check(*it->second.handle);
      const bool over = stopping_ || it->second.cancelled || now >= it->second.deadline || verdict == Verdict::fail;
      if (!over && verdict == Verdict::hold) {
        ++it;
        continue;
      }
      ready.emplace_back(std::move(it->second.then), !over);
      it = held_.erase(it);
    }
    poked_ = false;
    lock.unlock();
    for (auto& [then, pass] : ready) then(pass ? Result<void>() : lost());
    lock.lock();
    if (stopping_ && held_.empty()) return;
    const auto poked = [this] { return poked_ || stopping_; };
    if (held_.empty()) {
      changed_.wait(lock, poked);
    } else {
      changed_.wait_for(lock, kRecheck, poked);
    }
  }
}

}  // namespace latchfs::engine
