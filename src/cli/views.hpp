#pragma once
#include "cli/report.hpp"
#include "cli/snapshot.hpp"

namespace latchfs::cli {

/// HOST SESSION STATE SPACE MODE START END FILEID REQUESTED, sorted by file, range and time.
Report locks_report(const Snapshot& snapshot);
/// HOST SESSION STATE BEAT AGE PID VERSION MOUNTPOINT STARTED, sorted by host.
Report sessions_report(const Snapshot& snapshot, WallTime now);

}  // namespace latchfs::cli
