#include <utility>

#include "fusefs/front.hpp"
#include "fusefs/lock_convert.hpp"
#include "fusefs/mounted_file.hpp"
#include "fusefs/ops.hpp"

namespace latchfs::fusefs::ops {
namespace {

using engine::LockCall;

/// The handle of a lock request, or nothing where the request was answered already.
HandlePtr lockable(Front& front, Request& req, const fuse_file_info& fi) {
  auto handle = front.handles.find(fi.fh);
  if (!handle) {
    req.fail_with(EBADF);
    return nullptr;
  }
  // Another file system mounted below SOURCE has file numbers of its own, which the locks would take for files of the
  // share.
  if (front.services.locks == nullptr || handle->inode->dev != front.inodes->root()->dev) {
    req.fail_with(ENOLCK);
    return nullptr;
  }
  if (handle->fence->lost()) {
    req.fail_with(EIO);
    return nullptr;
  }
  return handle;
}

LockCall call_of(Front& front, const Handle& handle, protocol::Space space, LockOwner owner, std::int64_t pid) {
  LockCall call;
  call.file = FileId{handle.inode->ino};
  call.data = MountedFile::of(handle.inode, front.kernel, front.services.events);
  call.handle = handle.fence;
  call.space = space;
  call.owner = owner;
  call.pid = pid;
  return call;
}

/// Parks the request and gives the call to the lock service.
void submit(Front& front, Request req, Handle& handle, LockCall call, bool unlock) {
  // Before the call: a close on another thread must find that there may be something to drop.
  handle.asked_for_lock = true;
  if (call.space == protocol::Space::posix) handle.inode->note_fcntl_lock();
  engine::LockService* const locks = front.services.locks;
  const WaiterId id = locks->next_id();
  const auto key = front.parked->park(std::move(req));
  auto done = [parked = front.parked, key](const Result<void>& result) {
    if (auto taken = parked->take(key)) taken->request.result(result);
  };
  if (unlock) {
    locks->unlock(id, std::move(call), std::move(done));
  } else {
    locks->lock(id, std::move(call), std::move(done));
  }
  // Only now, because the service knows the id from here on; an interrupt that came before was noted.
  front.parked->aim(key, [locks, id] { locks->cancel(id); });
}

/// Letting go never waits for the lease: nothing is touched under a lock that may be lost.
void change(Front& front, Request req, const HandlePtr& handle, LockCall call, bool unlock) {
  if (unlock) return submit(front, std::move(req), *handle, std::move(call), unlock);
  front.fenced(std::move(req), handle, [&front, call = std::move(call)](Request request, Handle& file) {
    submit(front, std::move(request), file, call, false);
  });
}

}  // namespace

void getlk(fuse_req_t raw, fuse_ino_t /*node*/, fuse_file_info* fi, struct flock* lock) {
  Request req(raw);
  Front& front = Front::of(raw);
  const auto handle = lockable(front, req, *fi);
  if (!handle) return;
  const auto range = range_of(*lock);
  const auto mode = mode_of(*lock);
  if (!range || !mode) return req.fail_with(EINVAL);
  LockCall call = call_of(front, *handle, protocol::Space::posix, LockOwner{fi->lock_owner}, lock->l_pid);
  call.range = *range;
  call.mode = *mode;
  front.fenced(std::move(req), handle, [&front, call = std::move(call)](Request request, Handle&) {
    const auto key = front.parked->park_uninterruptible(std::move(request));
    front.services.locks->test(call, [parked = front.parked, key](const auto& tested) {
      auto taken = parked->take(key);
      if (!taken) return;
      if (!tested) return taken->request.fail(tested.error());
      taken->request.lock(to_flock(*tested));
    });
  });
}

void setlk(fuse_req_t raw, fuse_ino_t /*node*/, fuse_file_info* fi, struct flock* lock, int sleep) {
  Request req(raw);
  Front& front = Front::of(raw);
  const auto handle = lockable(front, req, *fi);
  if (!handle) return;
  const auto range = range_of(*lock);
  if (!range) return req.fail_with(EINVAL);
  const auto mode = mode_of(*lock);
  LockCall call = call_of(front, *handle, protocol::Space::posix, LockOwner{fi->lock_owner}, lock->l_pid);
  call.range = *range;
  call.mode = mode.value_or(protocol::Mode::read);
  call.wait = sleep != 0;
  change(front, std::move(req), handle, std::move(call), !mode);
}

void flock(fuse_req_t raw, fuse_ino_t /*node*/, fuse_file_info* fi, int op) {
  Request req(raw);
  Front& front = Front::of(raw);
  const auto handle = lockable(front, req, *fi);
  if (!handle) return;
  const auto mode = mode_of_flock(op);
  LockCall call = call_of(front, *handle, protocol::Space::flock, LockOwner{fi->lock_owner}, ::fuse_req_ctx(raw)->pid);
  call.mode = mode.value_or(protocol::Mode::read);
  call.wait = flock_waits(op);
  change(front, std::move(req), handle, std::move(call), !mode);
}

}  // namespace latchfs::fusefs::ops
