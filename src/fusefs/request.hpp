#pragma once
#include <cerrno>
#include <string_view>
#include <utility>

#include "fusefs/fuse_api.hpp"
#include "latchfs/base/error.hpp"

namespace latchfs::fusefs {

/// Sole owner of a request of the kernel: answers it exactly once, with EIO if nobody else did. Never answer with a
/// mutex held: the answer can bring the next request for the same file at once. Move-only.
class Request {
 public:
  explicit Request(fuse_req_t raw) noexcept : raw_(raw) {}
  Request(Request&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  Request& operator=(Request&&) = delete;
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  ~Request() {
    if (raw_ != nullptr) ::fuse_reply_err(raw_, EIO);
  }

  fuse_req_t raw() const { return raw_; }

  void ok() { ::fuse_reply_err(give(), 0); }
  void fail(const Error& error) { ::fuse_reply_err(give(), to_errno(error)); }
  void fail_with(int err) { ::fuse_reply_err(give(), to_errno(Error{Errc::system, err})); }
  /// Of a system call that just returned `rc`, with its errno still there.
  void result(int rc) { rc == 0 ? ok() : fail_with(errno); }
  void result(const Result<void>& done) { done ? ok() : fail(done.error()); }

  void attr(const struct stat& st, double timeout) { ::fuse_reply_attr(give(), &st, timeout); }
  void readlink(const char* target) { ::fuse_reply_readlink(give(), target); }
  void written(std::size_t count) { ::fuse_reply_write(give(), count); }
  void buffer(const char* data, std::size_t size) { ::fuse_reply_buf(give(), data, size); }
  /// Spliced where that is worth it; pages are not moved out of the share's cache, which others read too.
  void data(fuse_bufvec& from) { ::fuse_reply_data(give(), &from, static_cast<fuse_buf_copy_flags>(0)); }
  void statfs(const struct statvfs& st) { ::fuse_reply_statfs(give(), &st); }
  void xattr_size(std::size_t size) { ::fuse_reply_xattr(give(), size); }
  void lock(const struct flock& lock) { ::fuse_reply_lock(give(), &lock); }
  void offset(off_t at) { ::fuse_reply_lseek(give(), at); }

  // False: the caller was interrupted and the kernel did not take the answer, so what was made for it must be undone.
  [[nodiscard]] bool entry(const fuse_entry_param& e) { return ::fuse_reply_entry(give(), &e) == 0; }
  [[nodiscard]] bool opened(const fuse_file_info& fi) { return ::fuse_reply_open(give(), &fi) == 0; }
  [[nodiscard]] bool created(const fuse_entry_param& e, const fuse_file_info& fi) {
    return ::fuse_reply_create(give(), &e, &fi) == 0;
  }
  /// FORGET is the one kind of request that gets no answer.
  void none() { ::fuse_reply_none(give()); }

 private:
  fuse_req_t give() { return std::exchange(raw_, nullptr); }

  fuse_req_t raw_;
};

}  // namespace latchfs::fusefs
