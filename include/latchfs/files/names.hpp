#pragma once
#include <strings.h>

namespace latchfs::files {

/// The control directory's name: no program may see or touch it through the mount, at any level.
inline constexpr const char* kHiddenName = ".latchfs";

/// True for a name that the mount must not know. Case is folded because a share may fold it too, and then `.LATCHFS` is
/// the same directory. Any thread.
inline bool is_hidden(const char* name) { return name[0] == '.' && ::strcasecmp(name, kHiddenName) == 0; }

}  // namespace latchfs::files
