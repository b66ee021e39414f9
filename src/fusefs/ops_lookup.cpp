#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdio>

#include "fusefs/front.hpp"
#include "fusefs/ops.hpp"
#include "latchfs/files/fd_path.hpp"
#include "latchfs/files/names.hpp"

namespace latchfs::fusefs::ops {
namespace {

using files::is_hidden;

/// Runs `make(directory descriptor)`, which makes `name`, and answers with what is there then.
template <class Make>
void make_entry(fuse_req_t raw, fuse_ino_t parent, const char* name, Make make) {
  Request req(raw);
  Front& front = Front::of(raw);
  const auto dir = front.inode(parent);
  if (!dir) return req.fail_with(ESTALE);
  if (is_hidden(name)) return req.fail_with(EPERM);
  if (make(dir->fd()) != 0) return req.fail_with(errno);
  front.reply_entry(std::move(req), front.inodes->lookup(*dir, name));
}

void remove_entry(fuse_req_t raw, fuse_ino_t parent, const char* name, int flags) {
  Request req(raw);
  const auto dir = Front::of(raw).inode(parent);
  if (!dir) return req.fail_with(ESTALE);
  if (is_hidden(name)) return req.fail_with(ENOENT);
  req.result(::unlinkat(dir->fd(), name, flags));
}

}  // namespace

void lookup(fuse_req_t raw, fuse_ino_t parent, const char* name) {
  Request req(raw);
  Front& front = Front::of(raw);
  const auto dir = front.inode(parent);
  if (!dir) return req.fail_with(ESTALE);
  front.reply_entry(std::move(req), front.inodes->lookup(*dir, name));
}

void forget(fuse_req_t raw, fuse_ino_t node, uint64_t count) {
  Request req(raw);
  Front::of(raw).inodes->forget(files::NodeId{node}, count);
  req.none();
}

void forget_multi(fuse_req_t raw, size_t count, fuse_forget_data* forgets) {
  Request req(raw);
  Front& front = Front::of(raw);
  for (size_t i = 0; i < count; ++i) front.inodes->forget(files::NodeId{forgets[i].ino}, forgets[i].nlookup);
  req.none();
}

void readlink(fuse_req_t raw, fuse_ino_t node) {
  Request req(raw);
  const auto inode = Front::of(raw).inode(node);
  if (!inode) return req.fail_with(ESTALE);
  std::array<char, PATH_MAX + 1> target;
  const ssize_t size = ::readlinkat(inode->fd(), "", target.data(), target.size());
  if (size < 0) return req.fail_with(errno);
  if (static_cast<size_t>(size) == target.size()) return req.fail_with(ENAMETOOLONG);
  target[static_cast<size_t>(size)] = '\0';
  req.readlink(target.data());
}

void mknod(fuse_req_t raw, fuse_ino_t parent, const char* name, mode_t mode, dev_t rdev) {
  make_entry(raw, parent, name, [=](int dir) { return ::mknodat(dir, name, mode, rdev); });
}

void mkdir(fuse_req_t raw, fuse_ino_t parent, const char* name, mode_t mode) {
  make_entry(raw, parent, name, [=](int dir) { return ::mkdirat(dir, name, mode); });
}

void symlink(fuse_req_t raw, const char* target, fuse_ino_t parent, const char* name) {
  make_entry(raw, parent, name, [=](int dir) { return ::symlinkat(target, dir, name); });
}

void link(fuse_req_t raw, fuse_ino_t node, fuse_ino_t new_parent, const char* new_name) {
  const auto inode = Front::of(raw).inode(node);
  if (!inode) return Request(raw).fail_with(ESTALE);
  // By /proc, because AT_EMPTY_PATH needs a capability here. The flag follows the /proc link only, not one that the
  // file itself may be.
  const files::FdPath path(inode->fd());
  make_entry(raw, new_parent, new_name,
             [&](int dir) { return ::linkat(AT_FDCWD, path.c_str(), dir, new_name, AT_SYMLINK_FOLLOW); });
}

void unlink(fuse_req_t raw, fuse_ino_t parent, const char* name) { remove_entry(raw, parent, name, 0); }

void rmdir(fuse_req_t raw, fuse_ino_t parent, const char* name) { remove_entry(raw, parent, name, AT_REMOVEDIR); }

void rename(fuse_req_t raw, fuse_ino_t parent, const char* name, fuse_ino_t new_parent, const char* new_name,
            unsigned int flags) {
  Request req(raw);
  const auto from = Front::of(raw).inode(parent);
  const auto to = Front::of(raw).inode(new_parent);
  if (!from || !to) return req.fail_with(ESTALE);
  if (is_hidden(name) || is_hidden(new_name)) return req.fail_with(EPERM);
  if (flags == 0) return req.result(::renameat(from->fd(), name, to->fd(), new_name));
  req.result(::renameat2(from->fd(), name, to->fd(), new_name, flags));
}

}  // namespace latchfs::fusefs::ops
