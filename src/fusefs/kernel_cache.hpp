#pragma once
#include <chrono>

#include "fusefs/fuse_api.hpp"
#include "fusefs/gate.hpp"
#include "latchfs/files/inode.hpp"

namespace latchfs::fusefs {

/// The kernel's own pages and attributes of the mount's files. May be held by threads that outlive the mount.
class KernelCache {
 public:
  explicit KernelCache(fuse_session* session) : session_(session) {}

  /// Writes out what programs changed through shared mappings, then drops the file's pages and attributes. Waits for
  /// reads and writes of the file that are under way, so never from a thread that serves them, and never with a mutex
  /// held. Does nothing once the mount has ended.
  void drop(files::NodeId node) {
    const auto pass = gate_.enter();
    // A file that the kernel has forgotten meanwhile (ENOENT) has nothing to drop.
    if (pass) ::fuse_lowlevel_notify_inval_inode(session_, node.value, 0, 0);
  }

  /// No further drop() begins. False: one that began before is still waiting after `limit`.
  bool close_for(std::chrono::milliseconds limit) {
    gate_.close();
    return gate_.drain_for(limit);
  }
  void close() {
    gate_.close();
    gate_.drain();
  }

 private:
  fuse_session* const session_;
  Gate gate_;
};

}  // namespace latchfs::fusefs
