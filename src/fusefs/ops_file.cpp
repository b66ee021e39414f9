#include <fcntl.h>
#include <unistd.h>

#include <utility>

#include "fusefs/buffers.hpp"
#include "fusefs/front.hpp"
#include "fusefs/ops.hpp"
#include "latchfs/files/names.hpp"

namespace latchfs::fusefs::ops {
namespace {

/// What of the program's flags the share's descriptor is opened with.
/// - O_APPEND stays with the kernel, which says it with each write: the page cache writes through any open file, and a
/// page written through an appending
///   descriptor would land at the end.
/// - O_DIRECT asks for aligned memory, which a request does not have; the kernel itself honours it for its own cache.
/// - O_CREAT, O_EXCL and O_NOFOLLOW have done their work when a known file is opened.
int share_flags(int flags) { return flags & ~(O_APPEND | O_DIRECT | O_CREAT | O_EXCL | O_NOFOLLOW | O_NOCTTY); }

/// Answers RELEASE when the locks are gone. The file must stay open until then, because what was written under them
/// goes out first.
void release_with_locks(Front& front, Request req, HandlePtr handle) {
  const FileId file{handle->inode->ino};
  const auto fence = handle->fence;
  const auto key = front.parked->park_uninterruptible(std::move(req));
  front.services.locks->drop_handle(
      file, fence,
      [parked = front.parked, key, closer = &front.closer, handle = std::move(handle)](const auto&) mutable {
        auto taken = parked->take(key);
        if (!taken) return;
        // close() may wait for the share, and this thread is the lock service's.
        closer->post([request = std::make_shared<ParkedRequests::Taken>(std::move(*taken)),
                      open_file = std::move(handle)]() mutable {
          open_file.reset();
          request->request.ok();
        });
      });
}

}  // namespace

void create(fuse_req_t raw, fuse_ino_t parent, const char* name, mode_t mode, fuse_file_info* fi) {
  Request req(raw);
  Front& front = Front::of(raw);
  const auto dir = front.inode(parent);
  if (!dir) return req.fail_with(ESTALE);
  if (files::is_hidden(name)) return req.fail_with(EPERM);
  const int flags = share_flags(fi->flags) | (fi->flags & O_EXCL) | O_CREAT | O_NOFOLLOW | O_CLOEXEC;
  UniqueFd fd(::openat(dir->fd(), name, flags, mode));
  // A symbolic link that another host made meanwhile: the kernel looks the name up again and follows the link itself.
  if (!fd) return req.fail_with(errno == ELOOP && (fi->flags & O_NOFOLLOW) == 0 ? ESTALE : errno);
  const auto found = front.inodes->adopt(fd.get());
  if (!found) return front.fail_lookup(std::move(req), found.error());
  if ((fi->flags & O_TRUNC) != 0) found->inode->mark_dirty();
  front.add_handle(std::move(fd), found->inode, *fi);
  if (req.created(front.entry_of(*found), *fi)) return;
  front.handles.take(fi->fh);
  front.inodes->forget(found->inode->node, 1);
}

void open(fuse_req_t raw, fuse_ino_t node, fuse_file_info* fi) {
  Request req(raw);
  Front& front = Front::of(raw);
  const auto inode = front.inode(node);
  if (!inode) return req.fail_with(ESTALE);
  auto fd = inode->reopen(share_flags(fi->flags));
  if (!fd) return req.fail(fd.error());
  if ((fi->flags & O_TRUNC) != 0) inode->mark_dirty();
  // keep_cache stays off: opening shows what the last closer on any host left, as on NFS.
  front.add_handle(std::move(*fd), inode, *fi);
  if (!req.opened(*fi)) front.handles.take(fi->fh);
}

void read(fuse_req_t raw, fuse_ino_t /*node*/, size_t size, off_t offset, fuse_file_info* fi) {
  Request req(raw);
  Front& front = Front::of(raw);
  const auto handle = front.handles.find(fi->fh);
  if (!handle) return req.fail_with(EBADF);
  front.fenced(std::move(req), handle, [size, offset](Request request, Handle& file) {
    fuse_bufvec from = file_buffer(file.fd.get(), offset, size);
    request.data(from);
  });
}

void flush(fuse_req_t raw, fuse_ino_t /*node*/, fuse_file_info* fi) {
  Request req(raw);
  Front& front = Front::of(raw);
  const auto handle = front.handles.find(fi->fh);
  if (!handle) return req.fail_with(EBADF);
  int err = 0;
  // Closing a duplicate is what makes a share's client write out and tell what went wrong. A file open for reading has
  // nothing to tell.
  if ((handle->flags & O_ACCMODE) != O_RDONLY) {
    UniqueFd duplicate(::fcntl(handle->fd.get(), F_DUPFD_CLOEXEC, 0));
    if (!duplicate || ::close(duplicate.release()) != 0) err = errno;
  }
  if (front.services.locks == nullptr || !handle->inode->had_fcntl_lock()) {
    return err == 0 ? req.ok() : req.fail_with(err);
  }
  // POSIX: closing any descriptor of a file drops all the process's locks on it, also when close() fails.
  const auto key = front.parked->park_uninterruptible(std::move(req));
  const auto done = [parked = front.parked, key, err](const Result<void>& dropped) {
    auto taken = parked->take(key);
    if (!taken) return;
    if (err != 0) return taken->request.fail_with(err);
    taken->request.result(dropped);
  };
  front.services.locks->drop_owner(FileId{handle->inode->ino}, LockOwner{fi->lock_owner}, done);
}

void release(fuse_req_t raw, fuse_ino_t /*node*/, fuse_file_info* fi) {
  Request req(raw);
  Front& front = Front::of(raw);
  auto handle = front.handles.take(fi->fh);
  if (!handle) return req.fail_with(EBADF);
  if (front.services.locks != nullptr && handle->asked_for_lock) {
    return release_with_locks(front, std::move(req), std::move(handle));
  }
  handle.reset();
  req.ok();
}

void fsync(fuse_req_t raw, fuse_ino_t /*node*/, int datasync, fuse_file_info* fi) {
  Request req(raw);
  Front& front = Front::of(raw);
  const auto handle = front.handles.find(fi->fh);
  if (!handle) return req.fail_with(EBADF);
  front.fenced(std::move(req), handle, [datasync](Request request, Handle& file) {
    const bool was_dirty = file.inode->take_dirty();
    if ((datasync != 0 ? ::fdatasync(file.fd.get()) : ::fsync(file.fd.get())) == 0) return request.ok();
    const int err = errno;
    if (was_dirty) file.inode->mark_dirty();
    request.fail_with(err);
  });
}

void lseek(fuse_req_t raw, fuse_ino_t /*node*/, off_t offset, int whence, fuse_file_info* fi) {
  Request req(raw);
  const auto handle = Front::of(raw).handles.find(fi->fh);
  if (!handle) return req.fail_with(EBADF);
  const off_t at = ::lseek(handle->fd.get(), offset, whence);
  if (at < 0) return req.fail_with(errno);
  req.offset(at);
}

}  // namespace latchfs::fusefs::ops
