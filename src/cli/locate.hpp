#pragma once
#include <memory>
#include <string>

#include "latchfs/base/error.hpp"
#include "latchfs/share/share.hpp"

namespace latchfs::cli {

/// The directory of the share that `path` means: the source of the latchfs mount it lies in, or else itself. Asks a
/// mounted file system nothing before the table of mounts was looked at, so that a daemon that is dead or hangs is no
/// obstacle.
Result<std::string> find_source(const std::string& path);

/// Opens the control directory of a share directory, for reading only.
Result<std::unique_ptr<share::Share>> open_control(const std::string& source);

}  // namespace latchfs::cli
