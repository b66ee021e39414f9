#pragma once
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <utility>

namespace latchfs::fusefs {

/// Counts threads of others inside something that is going to end, keeps new ones out and waits for the rest. Any
/// thread.
class Gate {
 public:
  /// The right to be inside. Move-only.
  class Pass {
   public:
    explicit Pass(Gate& gate) : gate_(&gate) {}
    Pass(Pass&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
    Pass& operator=(Pass&&) = delete;
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    ~Pass() {
      if (gate_ != nullptr) gate_->leave();
    }

   private:
    Gate* gate_;
  };

  /// Empty when the gate is closed.
  std::optional<Pass> enter() {
    const std::lock_guard lock(mutex_);
    if (closed_) return std::nullopt;
    ++inside_;
    return std::optional<Pass>(std::in_place, *this);
  }
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  /// After close(): waits until nobody is inside.
  void drain() {
    std::unique_lock lock(mutex_);
    empty_.wait(lock, [this] { return inside_ == 0; });
  }
  /// The same for a limited time. False: somebody is still inside.
  template <class Duration>
  bool drain_for(Duration limit) {
    std::unique_lock lock(mutex_);
    return empty_.wait_for(lock, limit, [this] { return inside_ == 0; });
  }

 private:
  void leave() {
    // Under the mutex to the end: whoever drains may destroy the gate right after.
    const std::lock_guard lock(mutex_);
    if (--inside_ == 0) empty_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable empty_;
  std::size_t inside_ = 0;
  bool closed_ = false;
};

}  // namespace latchfs::fusefs
