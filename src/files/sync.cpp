#include "latchfs/files/sync.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

namespace latchfs::files {
namespace {

bool is_gone(int err) { return err == ESTALE || err == ENOENT; }

/// A descriptor for fsync and fadvise: one that a program has open, else one opened for the moment. Any access mode
/// will do.
class Borrowed {
 public:
  explicit Borrowed(const Inode& inode) : open_(inode.any_open()) {
    if (open_) return;
    for (const int flags : {O_RDONLY, O_WRONLY}) {
      auto fd = inode.reopen(flags | O_NONBLOCK);
      if (fd) {
        own_ = std::move(*fd);
        return;
      }
      error_ = fd.error().sys;
      if (error_ != EACCES) return;
    }
  }
  int fd() const { return open_ ? open_->fd.get() : own_.get(); }
  int error() const { return error_; }

 private:
  std::shared_ptr<OpenFile> open_;
  UniqueFd own_;
  int error_ = 0;
};

Result<Synced> write_out(Inode& inode, int fd) {
  if (!inode.take_dirty()) return Synced::clean;
  if (::fsync(fd) == 0) return Synced::done;
  const int err = errno;
  if (is_gone(err)) return Synced::gone;
  inode.mark_dirty();
  return fail_errno(err, "fsync");
}

}  // namespace

Result<Synced> flush(Inode& inode) {
  if (!inode.is_dirty()) return Synced::clean;
  const Borrowed file(inode);
  if (file.fd() >= 0) return write_out(inode, file.fd());
  if (is_gone(file.error())) return Synced::gone;
  return fail_errno(file.error(), "open for fsync");
}

Result<Synced> refresh(Inode& inode) {
  const Borrowed file(inode);
  if (file.fd() < 0)
    return is_gone(file.error()) ? Result<Synced>(Synced::gone) : fail_errno(file.error(), "open to refresh");
  const auto written = write_out(inode, file.fd());
  if (!written || *written == Synced::gone) return written;
  // In this order: the attributes tell the client that its pages are old, the advice drops those it would keep all the
  // same because the file is open for write here.
  struct statx fresh {};
  if (::statx(file.fd(), "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &fresh) != 0) {
    return is_gone(errno) ? Result<Synced>(Synced::gone) : fail_errno(errno, "statx");
  }
  if (const int err = ::posix_fadvise(file.fd(), 0, 0, POSIX_FADV_DONTNEED); err != 0)
    return fail_errno(err, "posix_fadvise");
  return Synced::done;
}

Result<void> raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return fail_errno(errno, "getrlimit");
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return fail_errno(errno, "setrlimit");
  return {};
}

}  // namespace latchfs::files
