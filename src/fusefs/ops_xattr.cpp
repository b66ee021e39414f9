#include <sys/xattr.h>

#include <array>
#include <memory>

#include "fusefs/front.hpp"
#include "fusefs/ops.hpp"
#include "latchfs/files/fd_path.hpp"

namespace latchfs::fusefs::ops {
namespace {

/// Answers a question for a value: `get(buffer, size)` gives its length or -1. A size of 0 asks for the length alone.
template <class Get>
void answer_value(Request req, size_t size, Get get) {
  std::array<char, 1024> small;
  std::unique_ptr<char[]> large;
  if (size > small.size()) large = std::make_unique_for_overwrite<char[]>(size);
  char* const buffer = large ? large.get() : small.data();
  const ssize_t length = get(size == 0 ? nullptr : buffer, size);
  if (length < 0) return req.fail_with(errno);
  if (size == 0) return req.xattr_size(static_cast<size_t>(length));
  req.buffer(buffer, static_cast<size_t>(length));
}

}  // namespace

void setxattr(fuse_req_t raw, fuse_ino_t node, const char* name, const char* value, size_t size, int flags) {
  Request req(raw);
  const auto inode = Front::of(raw).inode(node);
  if (!inode) return req.fail_with(ESTALE);
  req.result(::setxattr(files::FdPath(inode->fd()).c_str(), name, value, size, flags));
}

void getxattr(fuse_req_t raw, fuse_ino_t node, const char* name, size_t size) {
  Request req(raw);
  const auto inode = Front::of(raw).inode(node);
  if (!inode) return req.fail_with(ESTALE);
  const files::FdPath path(inode->fd());
  answer_value(std::move(req), size, [&](char* to, size_t room) { return ::getxattr(path.c_str(), name, to, room); });
}

void listxattr(fuse_req_t raw, fuse_ino_t node, size_t size) {
  Request req(raw);
  const auto inode = Front::of(raw).inode(node);
  if (!inode) return req.fail_with(ESTALE);
  const files::FdPath path(inode->fd());
  answer_value(std::move(req), size, [&](char* to, size_t room) { return ::listxattr(path.c_str(), to, room); });
}

void removexattr(fuse_req_t raw, fuse_ino_t node, const char* name) {
  Request req(raw);
  const auto inode = Front::of(raw).inode(node);
  if (!inode) return req.fail_with(ESTALE);
  req.result(::removexattr(files::FdPath(inode->fd()).c_str(), name));
}

}  // namespace latchfs::fusefs::ops
