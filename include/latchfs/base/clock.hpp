#pragma once
#include <chrono>

namespace latchfs {

using Nanos = std::chrono::nanoseconds;

/// CLOCK_BOOTTIME: goes on in suspend. For the own lease only.
struct LeaseClock {
  using duration = Nanos;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<LeaseClock>;
  static constexpr bool is_steady = true;
};
/// CLOCK_MONOTONIC: stands still in suspend, so an observer that slept blames nobody for it. For peers.
struct ObserveClock {
  using duration = Nanos;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<ObserveClock>;
  static constexpr bool is_steady = true;
};
using LeaseTime = LeaseClock::time_point;
using ObserveTime = ObserveClock::time_point;
using WallTime = std::chrono::system_clock::time_point;

/// The time sources of a daemon; tests give a fake one. All functions: any thread, never fail.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual LeaseTime lease_now() const = 0;
  virtual ObserveTime observe_now() const = 0;
  virtual WallTime wall() const = 0;  ///< for display and ticket order, never for safety
};

/// The clocks of this machine.
const Clock& system_clock();

}  // namespace latchfs
