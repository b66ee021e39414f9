#pragma once
#include <atomic>
#include <cstdint>

#include "latchfs/base/clock.hpp"
#include "latchfs/base/ids.hpp"

namespace latchfs::engine {

/// The clock that tickets are taken from: this host's, shifted to the server's. It decides order, never safety. Any
/// thread.
class ShareTime {
 public:
  explicit ShareTime(const Clock& clock) : clock_(clock) {}

  /// The server stamped a change with `server` that was made between `before` and `after` by this host's clock. Some
  /// servers do not stamp a rename: a stamp that did not move says nothing.
  void measured(WallTime before, WallTime after, WallTime server) {
    const std::int64_t stamp = micros(server);
    if (last_stamp_.exchange(stamp) == stamp) return;
    offset_.store(stamp - (micros(before) + (micros(after) - micros(before)) / 2));
  }

  /// Microseconds of share time, later than every ticket before.
  Ticket next() {
    const std::int64_t time = micros(clock_.wall()) + offset_.load();
    const std::uint64_t now = time > 0 ? static_cast<std::uint64_t>(time) : 0;
    std::uint64_t last = last_ticket_.load();
    std::uint64_t mine = 0;
    do {
      mine = now > last ? now : last + 1;
    } while (!last_ticket_.compare_exchange_weak(last, mine));
    return Ticket{mine};
  }

 private:
  static std::int64_t micros(WallTime t) {
    return std::chrono::duration_cast<std::chrono::microseconds>(t.time_since_epoch()).count();
  }

  const Clock& clock_;
  std::atomic<std::int64_t> offset_{0};
  std::atomic<std::int64_t> last_stamp_{0};
  std::atomic<std::uint64_t> last_ticket_{0};
};

}  // namespace latchfs::engine
