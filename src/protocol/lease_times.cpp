#include "latchfs/protocol/lease_times.hpp"

#include <fmt/format.h>

#include "latchfs/base/duration.hpp"

namespace latchfs::protocol {
namespace {

constexpr Nanos kShortestBeat = std::chrono::milliseconds(100);

}  // namespace

Result<void> check(const LeaseTimes& times) {
  if (times.beat < kShortestBeat) {
    return fail(Errc::refused, fmt::format("beat is {}, but must be at least {}", format_duration(times.beat),
                                           format_duration(kShortestBeat)));
  }
  // Divisions, so that no value can overflow.
  if (times.fence_after / 3 < times.beat) {
    return fail(Errc::refused, fmt::format("fence_after is {}, but must be at least three times beat ({})",
                                           format_duration(times.fence_after), format_duration(times.beat)));
  }
  if (times.break_after < times.fence_after || times.break_after - times.fence_after < times.fence_after / 4) {
    return fail(Errc::refused, fmt::format("break_after is {}, but must be at least 1.25 times fence_after ({})",
                                           format_duration(times.break_after), format_duration(times.fence_after)));
  }
  return {};
}

Nanos longest_counted_gap(const LeaseTimes& times) { return 2 * times.beat; }

Nanos late_after(const LeaseTimes& times) { return 2 * times.beat; }

}  // namespace latchfs::protocol
