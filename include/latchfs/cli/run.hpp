#pragma once
#include <ostream>
#include <string>
#include <vector>

namespace latchfs::cli {

/// The whole of latchctl: `args` without the program's name. Returns the exit code: 0 fine, 1 something on the share is
/// wrong, 2 wrong usage, 3 the share cannot be reached. Only reads. One thread.
int run(const std::vector<std::string>& args, std::ostream& out, std::ostream& err);

}  // namespace latchfs::cli
