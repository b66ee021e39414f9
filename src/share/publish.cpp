#include "share/publish.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "latchfs/base/ids.hpp"

namespace latchfs::share {
namespace {

constexpr mode_t kFileMode = 0600;

Result<void> write_all(int fd, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = retry_eintr([&] { return ::write(fd, text.data() + done, text.size() - done); });
    if (n < 0) return fail_errno(errno, "write");
    done += static_cast<std::size_t>(n);
  }
  // Without this the name could be on the server before the content is.
  if (retry_eintr([&] { return ::fsync(fd); }) != 0) return fail_errno(errno, "fsync");
  return {};
}

Result<void> fill(int fd, const NumberedContent& content) {
  struct stat st {};
  if (::fstat(fd, &st) != 0) return fail_errno(errno, "fstat");
  return write_all(fd, content(st.st_ino));
}

bool means_no_links(int err) {
  constexpr std::array<int, 6> kCodes{EPERM, EOPNOTSUPP, ENOSYS, EMLINK, EINVAL, EXDEV};
  return std::find(kCodes.begin(), kCodes.end(), err) != kCodes.end();
}

/// A link() that failed may have been done with its reply lost; then the temporary file has two names.
bool has_second_name(int folder, const std::string& temporary) {
  struct statx st {};
  const int flags = AT_SYMLINK_NOFOLLOW | AT_STATX_FORCE_SYNC;
  const int got = retry_eintr([&] { return ::statx(folder, temporary.c_str(), flags, STATX_NLINK, &st); });
  return got == 0 && st.stx_nlink > 1;
}

}  // namespace

Result<UniqueFd> create_exclusive(int folder, const std::string& name) {
  const int flags = O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC;
  UniqueFd fd(retry_eintr([&] { return ::openat(folder, name.c_str(), flags, kFileMode); }));
  if (!fd) return fail_errno(errno, "create " + name);
  // Only a umask that takes the owner's own bits leaves something to mend. A share that ignores chmod shows other bits
  // and is left alone.
  struct stat st {};
  if (::fstat(fd.get(), &st) == 0 && (st.st_mode & kFileMode) != kFileMode) ::fchmod(fd.get(), kFileMode);
  return fd;
}

Result<void> publish_by_link(int folder, const std::string& name, const NumberedContent& content) {
  const std::string temporary = "t." + name + "." + random_session_id().text;
  auto fd = create_exclusive(folder, temporary);
  if (!fd) return tl::unexpected(fd.error());
  Result<void> result = fill(fd->get(), content);
  fd->reset();
  if (result && retry_eintr([&] { return ::linkat(folder, temporary.c_str(), folder, name.c_str(), 0); }) != 0) {
    const int err = errno;
    if (!has_second_name(folder, temporary))
      result = fail_errno(means_no_links(err) ? EOPNOTSUPP : err, "link " + name);
  }
  // What stays behind is a name that nobody reads.
  (void)retry_eintr([&] { return ::unlinkat(folder, temporary.c_str(), 0); });
  return result;
}

Result<void> publish_in_place(int folder, const std::string& name, const NumberedContent& content) {
  auto fd = create_exclusive(folder, name);
  if (!fd) return tl::unexpected(fd.error());
  Result<void> result = fill(fd->get(), content);
  if (!result) (void)retry_eintr([&] { return ::unlinkat(folder, name.c_str(), 0); });
  return result;
}

}  // namespace latchfs::share
