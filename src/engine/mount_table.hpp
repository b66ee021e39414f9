#pragma once
#include <istream>
#include <string>

namespace latchfs::engine {

/// The type ("nfs4", "fuse.latchfs") of the mounted file system with this device number, from text as in
/// /proc/self/mountinfo; empty where it is not in there.
std::string mounted_type(std::istream& mountinfo, unsigned major, unsigned minor);

}  // namespace latchfs::engine
