#pragma once
#include <dirent.h>

#include <memory>
#include <mutex>

#include "latchfs/base/error.hpp"
#include "latchfs/files/inode.hpp"

namespace latchfs::files {

/// A directory that a program has open. Hidden names are left out. Lock it, then use it: one thread at a time.
class OpenDir {
 public:
  static Result<std::shared_ptr<OpenDir>> open(std::shared_ptr<Inode> inode);

  /// The kernel lets one reader at a time into an open directory, so nobody waits here for the share behind someone
  /// else.
  std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }

  /// Makes peek() show the entry behind the one whose d_off was `offset`; 0 is the start. A second start opens the
  /// directory anew, because a handle that is only rewound shows old entries on NFS and SMB.
  Result<void> go_to(off_t offset);
  /// The entry at hand, null at the end. Valid until advance(); asking again gives the same one.
  Result<const dirent*> peek();
  void advance();

  int fd() const { return ::dirfd(dir_.get()); }
  const std::shared_ptr<Inode>& inode() const { return inode_; }

 private:
  struct Closer {
    void operator()(DIR* dir) const { ::closedir(dir); }
  };
  using DirPtr = std::unique_ptr<DIR, Closer>;
  static Result<DirPtr> open_stream(const Inode& inode);
  OpenDir(std::shared_ptr<Inode> inode, DirPtr dir) : inode_(std::move(inode)), dir_(std::move(dir)) {}

  const std::shared_ptr<Inode> inode_;
  std::mutex mutex_;
  DirPtr dir_;
  const dirent* at_hand_ = nullptr;  // read from the stream, not yet passed
  off_t position_ = 0;               // d_off of the last entry that was passed
  bool fresh_ = true;                // nothing was read since the directory was opened
};

}  // namespace latchfs::files
