#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "fusefs/buffers.hpp"
#include "fusefs/front.hpp"
#include "fusefs/ops.hpp"

namespace latchfs::fusefs::ops {
namespace {

using engine::Fence;

/// Copies out what may still lie in a pipe. Negative: an errno.
ssize_t gather(fuse_bufvec& in, std::vector<char>& into) {
  into.resize(::fuse_buf_size(&in));
  fuse_bufvec out = memory_buffer(into.data(), into.size());
  const ssize_t size = ::fuse_buf_copy(&out, &in, static_cast<fuse_buf_copy_flags>(0));
  if (size >= 0) into.resize(static_cast<size_t>(size));
  return size;
}

ssize_t append(int fd, const void* data, size_t size) {
  const iovec part{const_cast<void*>(data), size};
  // The share's client knows the end of the file better than the kernel's cached size, from which the offset of the
  // request came.
  const ssize_t count = ::pwritev2(fd, &part, 1, -1, RWF_APPEND);
  return count < 0 ? -errno : count;
}

ssize_t append_from(int fd, fuse_bufvec& in) {
  if (in.count == 1 && (in.buf[0].flags & FUSE_BUF_IS_FD) == 0) return append(fd, in.buf[0].mem, in.buf[0].size);
  std::vector<char> data;
  const ssize_t size = gather(in, data);
  return size < 0 ? size : append(fd, data.data(), data.size());
}

/// Bytes written, or a negative errno.
ssize_t store(int fd, fuse_bufvec& in, off_t offset, bool at_end) {
  if (at_end) return append_from(fd, in);
  fuse_bufvec out = file_buffer(fd, offset, ::fuse_buf_size(&in));
  return ::fuse_buf_copy(&out, &in, static_cast<fuse_buf_copy_flags>(0));
}

/// Answers a write. Its lease may have run out while it was under way, and then nobody knows who else has the lock: the
/// program must not believe that its data is safe.
void finish(const Front& front, Request req, const Handle& file, ssize_t count) {
  if (count > 0) file.inode->mark_dirty();
  if (front.verdict(file) != Fence::Verdict::pass) return req.fail_with(EIO);
  if (count < 0) return req.fail_with(static_cast<int>(-count));
  req.written(static_cast<size_t>(count));
}

/// A write that waits for the lease keeps a copy of its data: libfuse takes the buffer back when the callback returns.
void hold_write(Front& front, Request req, const HandlePtr& handle, fuse_bufvec& in, off_t offset, bool at_end) {
  std::vector<char> data;
  if (const ssize_t size = gather(in, data); size < 0) return req.fail_with(static_cast<int>(-size));
  front.hold(std::move(req), handle, [&front, data = std::move(data), offset, at_end](Request request, Handle& file) {
    fuse_bufvec copy = memory_buffer(const_cast<char*>(data.data()), data.size());
    finish(front, std::move(request), file, store(file.fd.get(), copy, offset, at_end));
  });
}

/// Both ends of a copy must pass; one that has to wait is looked at again afterwards.
void copy_between(Front& front, Request req, const HandlePtr& from, off_t offset_in, const HandlePtr& to,
                  off_t offset_out, size_t length, unsigned int flags) {
  for (const HandlePtr& handle : {from, to}) {
    const auto verdict = front.verdict(*handle);
    if (verdict == Fence::Verdict::fail) return req.fail_with(EIO);
    if (verdict == Fence::Verdict::pass) continue;
    return front.hold(std::move(req), handle,
                      [&front, from, offset_in, to, offset_out, length, flags](Request request, Handle&) {
                        copy_between(front, std::move(request), from, offset_in, to, offset_out, length, flags);
                      });
  }
  const ssize_t count = ::copy_file_range(from->fd.get(), &offset_in, to->fd.get(), &offset_out, length, flags);
  finish(front, std::move(req), *to, count < 0 ? -errno : count);
}

}  // namespace

void write_buf(fuse_req_t raw, fuse_ino_t /*node*/, fuse_bufvec* in, off_t offset, fuse_file_info* fi) {
  Request req(raw);
  Front& front = Front::of(raw);
  const auto handle = front.handles.find(fi->fh);
  if (!handle) return req.fail_with(EBADF);
  // The flag as it is now: F_SETFL may have changed it since open(). Pages of the cache have a place of their own in
  // any case.
  const bool at_end = (fi->flags & O_APPEND) != 0 && fi->writepage == 0;
  switch (front.verdict(*handle)) {
    case Fence::Verdict::fail: return req.fail_with(EIO);
    case Fence::Verdict::hold: return hold_write(front, std::move(req), handle, *in, offset, at_end);
    case Fence::Verdict::pass: break;
  }
  const ssize_t count = store(handle->fd.get(), *in, offset, at_end);
  finish(front, std::move(req), *handle, count);
}

void fallocate(fuse_req_t raw, fuse_ino_t /*node*/, int mode, off_t offset, off_t length, fuse_file_info* fi) {
  Request req(raw);
  Front& front = Front::of(raw);
  const auto handle = front.handles.find(fi->fh);
  if (!handle) return req.fail_with(EBADF);
  front.fenced(std::move(req), handle, [=](Request request, Handle& file) {
    if (::fallocate(file.fd.get(), mode, offset, length) != 0) return request.fail_with(errno);
    file.inode->mark_dirty();
    request.ok();
  });
}

void copy_file_range(fuse_req_t raw, fuse_ino_t /*node_in*/, off_t offset_in, fuse_file_info* fi_in,
                     fuse_ino_t /*node_out*/, off_t offset_out, fuse_file_info* fi_out, size_t length, int flags) {
  Request req(raw);
  Front& front = Front::of(raw);
  const auto from = front.handles.find(fi_in->fh);
  const auto to = front.handles.find(fi_out->fh);
  if (!from || !to) return req.fail_with(EBADF);
  copy_between(front, std::move(req), from, offset_in, to, offset_out, length, static_cast<unsigned int>(flags));
}

}  // namespace latchfs::fusefs::ops
