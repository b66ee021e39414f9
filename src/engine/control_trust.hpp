#pragma once
#include <string>

#include "latchfs/base/error.hpp"
#include "latchfs/base/unique_fd.hpp"

namespace latchfs::engine {

/// Opens `.latchfs` in the directory `source` (called `path` in messages), making it where it is missing. Refuses a
/// symbolic link, one that belongs to somebody else, and one that everybody may write to. Any thread; blocks on the
/// share.
Result<UniqueFd> open_trusted_control(int source, const std::string& path);

}  // namespace latchfs::engine
