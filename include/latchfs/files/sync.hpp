#pragma once
#include "latchfs/base/error.hpp"
#include "latchfs/files/inode.hpp"

namespace latchfs::files {

enum class Synced {
  clean,  ///< there was nothing to do
  done,
  gone,  ///< the file was removed elsewhere: nothing to keep, nobody to show it to
};

/// What this mount wrote to the file is on the server afterwards. Any thread; blocks on the share. After a failure the
/// file stays dirty.
Result<Synced> flush(Inode& inode);

/// Drops what the share's client keeps of the file, so that reads see what is on the server. Flushes first: dirty pages
/// cannot be dropped. Any thread; blocks on the share.
Result<Synced> refresh(Inode& inode);

/// Lifts the soft limit of open descriptors to the hard one: every file the kernel knows costs one. Any thread.
Result<void> raise_descriptor_limit();

}  // namespace latchfs::files
