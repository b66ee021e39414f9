#include "engine/guarded_share.hpp"

namespace latchfs::engine {

void Gate::enter() {
  const std::lock_guard lock(mutex_);
  if (closed_) throw Abandoned{};
  ++inside_;
  changed_.notify_all();
}

void Gate::leave() {
  const std::lock_guard lock(mutex_);
  --inside_;
  changed_.notify_all();
  if (closed_) throw Abandoned{};
}

void Gate::finish() {
  const std::lock_guard lock(mutex_);
  finished_ = true;
  changed_.notify_all();
}

bool Gate::wait_finished(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, deadline, [&] { return finished_; });
}

void Gate::close() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return inside_ > 0 || finished_; });
  closed_ = true;
}

void Gate::close_now() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
}

}  // namespace latchfs::engine
