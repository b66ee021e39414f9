#pragma once
#include "fusefs/fuse_api.hpp"

namespace latchfs::fusefs {

/// The callbacks as libfuse wants them.
const fuse_lowlevel_ops& ops_table();

}  // namespace latchfs::fusefs
