#pragma once
#include <atomic>

#include "latchfs/base/clock.hpp"

namespace latchfs::engine {

/// How long this mount's session may grant and write: one number, written by the session keeper, read by everyone. Any thread.
class Lease {
 public:
  explicit Lease(const Clock& clock) : clock_(clock) {}
  bool valid() const { return clock_.lease_now().time_since_epoch().count() < until_.load(std::memory_order_acquire); }
  /// A beat that began at `began` was confirmed.
  void confirm(LeaseTime began, Nanos length) {
    until_.store((began + length).time_since_epoch().count(), std::memory_order_release);
  }
  /// The session is lost or ended; not valid until the next confirm().
  void end() { until_.store(0, std::memory_order_release); }
  LeaseTime now() const { return clock_.lease_now(); }
  LeaseTime until() const { return LeaseTime(Nanos(until_.load(std::memory_order_acquire))); }

 private:
  const Clock& clock_;
  std::atomic<Nanos::rep> until_{0};
};

}  // namespace latchfs::engine
