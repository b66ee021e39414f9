#pragma once
#include "latchfs/base/clock.hpp"
#include "latchfs/base/error.hpp"

namespace latchfs::protocol {

/// The three times of a share, the same for every mount of it. The one file where they are defined and related:
///
///   holder   |beat n confirmed          |fence_after: stops granting and writing
///            +---beat---beat---beat-----+--------------------------------------> own CLOCK_BOOTTIME
///   observer   |first sees n                          |break_after: may break n
///              +---------------- counted time --------+----------------------> own CLOCK_MONOTONIC
///
/// The observer starts to count after the beat was made and counts no faster than time passes, so a session is broken
/// no earlier than break_after after the start of its last confirmed beat; by then its holder has been fenced for
/// (break_after - fence_after).
struct LeaseTimes {
  Nanos beat = std::chrono::seconds(5);          ///< between two renewals
  Nanos fence_after = std::chrono::seconds(45);  ///< lease length, from the start of the last confirmed beat
  Nanos break_after = std::chrono::seconds(60);  ///< counted silence after which a peer may break
  friend bool operator==(const LeaseTimes&, const LeaseTimes&) = default;
};

/// Checks beat >= 100 ms, fence_after >= 3 x beat, break_after >= 1.25 x fence_after; else Errc::refused with the rule. Pure.
Result<void> check(const LeaseTimes& times);

/// A gap of more than this between two listings counts as this much only: 2 beats. Pure.
Nanos longest_counted_gap(const LeaseTimes& times);
/// A session whose beat was not seen to move for this long (2 beats) is late: its waiters hold nobody up. Pure.
Nanos late_after(const LeaseTimes& times);

}  // namespace latchfs::protocol
