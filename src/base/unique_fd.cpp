#include "latchfs/base/unique_fd.hpp"

#include <unistd.h>

#include <cerrno>

namespace latchfs {

void UniqueFd::reset(int fd) {
  if (fd_ >= 0) {
    const int saved = errno;
    ::close(fd_);
    errno = saved;
  }
  fd_ = fd;
}

}  // namespace latchfs
