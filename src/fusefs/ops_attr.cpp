#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <utility>

#include "fusefs/front.hpp"
#include "fusefs/ops.hpp"
#include "latchfs/files/fd_path.hpp"

namespace latchfs::fusefs::ops {
namespace {

using InodePtr = std::shared_ptr<files::Inode>;

void reply_attr(const Front& front, Request req, int fd) {
  struct stat st {};
  if (::fstatat(fd, "", &st, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) != 0) return req.fail_with(errno);
  req.attr(st, front.spec.attr_timeout);
}

int set_owner(int fd, const struct stat& want, int to_set) {
  const uid_t uid = (to_set & FUSE_SET_ATTR_UID) != 0 ? want.st_uid : static_cast<uid_t>(-1);
  const gid_t gid = (to_set & FUSE_SET_ATTR_GID) != 0 ? want.st_gid : static_cast<gid_t>(-1);
  return ::fchownat(fd, "", uid, gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW);
}

timespec time_to_set(int to_set, int exact, int now, const timespec& value) {
  if ((to_set & now) != 0) return {0, UTIME_NOW};
  if ((to_set & exact) != 0) return value;
  return {0, UTIME_OMIT};
}

int set_times(int fd, const struct stat& want, int to_set) {
  const timespec times[2] = {
      time_to_set(to_set, FUSE_SET_ATTR_ATIME, FUSE_SET_ATTR_ATIME_NOW, want.st_atim),
      time_to_set(to_set, FUSE_SET_ATTR_MTIME, FUSE_SET_ATTR_MTIME_NOW, want.st_mtim),
  };
  return ::utimensat(fd, "", times, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW);
}

int set_size(const files::Inode& inode, const Handle* handle, off_t size) {
  if (handle != nullptr) return ::ftruncate(handle->fd.get(), size);
  return ::truncate(files::FdPath(inode.fd()).c_str(), size);
}

/// One call of the kernel can carry several changes, as a chown with the mode that it leaves: the owner comes first,
/// because changing it takes bits of the mode away, and the times last, because a new size changes them.
void apply(const Front& front, Request req, files::Inode& inode, const Handle* handle, const struct stat& want,
           int to_set) {
  constexpr int kTimes = FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_ATIME_NOW | FUSE_SET_ATTR_MTIME_NOW;
  const int fd = inode.fd();
  if ((to_set & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) != 0 && set_owner(fd, want, to_set) != 0) {
    return req.fail_with(errno);
  }
  if ((to_set & FUSE_SET_ATTR_MODE) != 0 && ::chmod(files::FdPath(fd).c_str(), want.st_mode) != 0) {
    return req.fail_with(errno);
  }
  if ((to_set & FUSE_SET_ATTR_SIZE) != 0) {
    if (set_size(inode, handle, want.st_size) != 0) return req.fail_with(errno);
    inode.mark_dirty();
  }
  if ((to_set & kTimes) != 0 && set_times(fd, want, to_set) != 0) return req.fail_with(errno);
  reply_attr(front, std::move(req), fd);
}

}  // namespace

void getattr(fuse_req_t raw, fuse_ino_t node, fuse_file_info* fi) {
  Request req(raw);
  Front& front = Front::of(raw);
  if (fi != nullptr) {
    if (const auto handle = front.handles.find(fi->fh)) return reply_attr(front, std::move(req), handle->fd.get());
  }
  const auto inode = front.inode(node);
  if (!inode) return req.fail_with(ESTALE);
  reply_attr(front, std::move(req), inode->fd());
}

void setattr(fuse_req_t raw, fuse_ino_t node, struct stat* attr, int to_set, fuse_file_info* fi) {
  Request req(raw);
  Front& front = Front::of(raw);
  const auto inode = front.inode(node);
  if (!inode) return req.fail_with(ESTALE);
  const auto handle = fi == nullptr ? nullptr : front.handles.find(fi->fh);
  if (!handle || (to_set & FUSE_SET_ATTR_SIZE) == 0) {
    return apply(front, std::move(req), *inode, handle.get(), *attr, to_set);
  }
  front.fenced(std::move(req), handle, [&front, want = *attr, to_set](Request request, Handle& file) {
    apply(front, std::move(request), *file.inode, &file, want, to_set);
  });
}

void statfs(fuse_req_t raw, fuse_ino_t node) {
  Request req(raw);
  const auto inode = Front::of(raw).inode(node);
  if (!inode) return req.fail_with(ESTALE);
  struct statvfs st {};
  if (::fstatvfs(inode->fd(), &st) != 0) return req.fail_with(errno);
  req.statfs(st);
}

void access(fuse_req_t raw, fuse_ino_t node, int mask) {
  Request req(raw);
  const auto inode = Front::of(raw).inode(node);
  if (!inode) return req.fail_with(ESTALE);
  req.result(::faccessat(inode->fd(), "", mask, AT_EMPTY_PATH));
}

}  // namespace latchfs::fusefs::ops
