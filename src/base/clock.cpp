#include "latchfs/base/clock.hpp"

#include <ctime>

namespace latchfs {
namespace {

Nanos read_clock(clockid_t id) {
  timespec ts{};
  ::clock_gettime(id, &ts);
  return std::chrono::seconds(ts.tv_sec) + Nanos(ts.tv_nsec);
}

class SystemClock final : public Clock {
 public:
  LeaseTime lease_now() const override { return LeaseTime(read_clock(CLOCK_BOOTTIME)); }
  ObserveTime observe_now() const override { return ObserveTime(read_clock(CLOCK_MONOTONIC)); }
  WallTime wall() const override { return std::chrono::system_clock::now(); }
};

}  // namespace

const Clock& system_clock() {
  static const SystemClock clock;
  return clock;
}

}  // namespace latchfs
