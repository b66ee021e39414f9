#pragma once
#include "fusefs/fuse_api.hpp"

// libfuse's own initialiser is a C99 literal, which clang does not take in C++.
namespace latchfs::fusefs {

/// `size` bytes of memory.
inline fuse_bufvec memory_buffer(void* data, size_t size) {
  fuse_bufvec buffer{};
  buffer.count = 1;
  buffer.buf[0].size = size;
  buffer.buf[0].mem = data;
  buffer.buf[0].fd = -1;
  return buffer;
}

/// `size` bytes of a file from `offset` on; copied through a pipe where that is cheaper.
inline fuse_bufvec file_buffer(int fd, off_t offset, size_t size) {
  fuse_bufvec buffer = memory_buffer(nullptr, size);
  buffer.buf[0].flags = static_cast<fuse_buf_flags>(FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK);
  buffer.buf[0].fd = fd;
  buffer.buf[0].pos = offset;
  return buffer;
}

}  // namespace latchfs::fusefs
