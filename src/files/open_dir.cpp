#include "latchfs/files/open_dir.hpp"

#include <fcntl.h>

#include <cerrno>
#include <utility>

#include "latchfs/files/names.hpp"

namespace latchfs::files {

Result<OpenDir::DirPtr> OpenDir::open_stream(const Inode& inode) {
  auto fd = inode.reopen(O_RDONLY | O_DIRECTORY);
  if (!fd) return tl::unexpected(fd.error());
  DIR* const dir = ::fdopendir(fd->get());
  if (dir == nullptr) return fail_errno(errno);
  fd->release();  // the stream closes it from now on
  return DirPtr(dir);
}

Result<std::shared_ptr<OpenDir>> OpenDir::open(std::shared_ptr<Inode> inode) {
  auto dir = open_stream(*inode);
  if (!dir) return tl::unexpected(dir.error());
  return std::shared_ptr<OpenDir>(new OpenDir(std::move(inode), std::move(*dir)));
}

Result<void> OpenDir::go_to(off_t offset) {
  if (offset == 0 && !fresh_) {
    auto dir = open_stream(*inode_);
    if (!dir) return tl::unexpected(dir.error());
    dir_ = std::move(*dir);
    at_hand_ = nullptr;
    fresh_ = true;
  } else if (offset != position_) {
    ::seekdir(dir_.get(), offset);
    at_hand_ = nullptr;
  }
  position_ = offset;
  return {};
}

Result<const dirent*> OpenDir::peek() {
  fresh_ = false;
  while (at_hand_ == nullptr) {
    errno = 0;
    const dirent* const entry = ::readdir(dir_.get());
    if (entry == nullptr && errno != 0) return fail_errno(errno);
    if (entry == nullptr) return nullptr;
    if (!is_hidden(entry->d_name)) at_hand_ = entry;
  }
  return at_hand_;
}

void OpenDir::advance() {
  position_ = at_hand_->d_off;
  at_hand_ = nullptr;
}

}  // namespace latchfs::files
