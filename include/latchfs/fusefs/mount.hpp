#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "latchfs/base/error.hpp"
#include "latchfs/base/events.hpp"
#include "latchfs/engine/fence.hpp"
#include "latchfs/engine/lock_service.hpp"

namespace latchfs::fusefs {

struct MountSpec {
  std::string source;                     ///< absolute, resolved
  std::string mountpoint;                 ///< absolute, resolved
  bool read_only = false;                 ///< lock calls get ENOLCK
  bool debug = false;                     ///< libfuse's own trace
  std::vector<std::string> fuse_options;  ///< words for libfuse's mount, such as "default_permissions"
  /// Seconds for which the kernel may trust names and attributes without asking. 0: whoever takes a lock sees the files
  /// that others made, removed and changed before they let go of it (SQLite's journal beside its locked database), not
  /// only the locked file itself.
  double attr_timeout = 0;
  double entry_timeout = 0;
};

/// What the mount needs from the layers below; both null for a read-only mount without locks.
struct Services {
  engine::LockService* locks = nullptr;
  engine::Fence* fence = nullptr;
  EventSink* events = nullptr;
};

/// Opens SOURCE, mounts, serves until unmounted or SIGTERM/SIGINT/SIGHUP, and unmounts. `ready` is called once, from a
/// thread of its own that ends before serve() returns, when the mount answers (a statfs through it succeeded). Returns
/// an error where mounting failed; the caller maps that to exit code 32. One mount a process.
Result<void> serve(const MountSpec& spec, const Services& services, const std::function<void()>& ready);

}  // namespace latchfs::fusefs
