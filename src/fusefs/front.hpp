#pragma once
#include <atomic>
#include <functional>
#include <memory>

#include "fusefs/errand_thread.hpp"
#include "fusefs/kernel_cache.hpp"
#include "fusefs/parked_requests.hpp"
#include "fusefs/request.hpp"
#include "latchfs/files/id_table.hpp"
#include "latchfs/files/inode_table.hpp"
#include "latchfs/files/open_dir.hpp"
#include "latchfs/fusefs/mount.hpp"

namespace latchfs::fusefs {

/// An open file with its lock state.
struct Handle : files::OpenFile {
  Handle(HandleId handle_id, UniqueFd descriptor, int open_flags, std::shared_ptr<files::Inode> file)
      : OpenFile(std::move(descriptor), open_flags, std::move(file)),
        id(handle_id),
        fence(std::make_shared<engine::HandleFence>(handle_id)) {}

  const HandleId id;
  const std::shared_ptr<engine::HandleFence> fence;
  /// A lock was asked for through this handle some time: closing it has something to drop.
  std::atomic<bool> asked_for_lock{false};
};
using HandlePtr = std::shared_ptr<Handle>;

/// All that the callbacks work on; libfuse carries it as user data.
class Front {
 public:
  Front(const MountSpec& mount_spec, const Services& mount_services, std::unique_ptr<files::InodeTable> table);
  static Front& of(fuse_req_t raw) { return *static_cast<Front*>(::fuse_req_userdata(raw)); }

  std::shared_ptr<files::Inode> inode(fuse_ino_t node) const { return inodes->find(files::NodeId{node}); }

  /// Opens a file of the kernel's choice under a new handle id, which goes into `fi`.
  HandlePtr add_handle(UniqueFd fd, std::shared_ptr<files::Inode> file, fuse_file_info& fi);

  fuse_entry_param entry_of(const files::Found& found) const;
  /// Answers with a file that was just looked up or made.
  void reply_entry(Request req, const Result<files::Found>& found);
  void fail_lookup(Request req, const Error& error) const;

  engine::Fence::Verdict verdict(const Handle& handle) const {
    return services.fence == nullptr ? engine::Fence::Verdict::pass : services.fence->check(*handle.fence);
  }
  /// Runs work(Request, Handle&) if the fence lets the handle pass, else later or never. The common case costs no
  /// allocation.
  template <class Work>
  void fenced(Request req, const HandlePtr& handle, Work work) {
    switch (verdict(*handle)) {
      case engine::Fence::Verdict::pass: return work(std::move(req), *handle);
      case engine::Fence::Verdict::fail: return req.fail_with(EIO);
      case engine::Fence::Verdict::hold: return hold(std::move(req), handle, std::move(work));
    }
  }
  using Work = std::function<void(Request, Handle&)>;
  /// Parks the request at the fence; `work` runs on the fence's thread when the lease is back.
  void hold(Request req, const HandlePtr& handle, Work work);

  const MountSpec& spec;
  const Services services;
  const std::unique_ptr<files::InodeTable> inodes;
  files::IdTable<Handle> handles;
  files::IdTable<files::OpenDir> dirs;
  ErrandThread canceller{"lfs-cancel"};  ///< runs what an interrupt asks for
  ErrandThread closer{"lfs-close"};      ///< closes files whose locks were dropped: close() may wait for the share
  const std::shared_ptr<ParkedRequests> parked;
  std::shared_ptr<KernelCache> kernel;  ///< set once, before the first request
};

}  // namespace latchfs::fusefs
