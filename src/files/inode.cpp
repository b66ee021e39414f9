#include "latchfs/files/inode.hpp"

#include <fcntl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "latchfs/files/fd_path.hpp"

namespace latchfs::files {
namespace {

timespec to_timespec(const statx_timestamp& t) { return {t.tv_sec, static_cast<long>(t.tv_nsec)}; }

struct stat to_stat(const struct statx& x) {
  struct stat st {};
  st.st_dev = makedev(x.stx_dev_major, x.stx_dev_minor);
  st.st_ino = x.stx_ino;
  st.st_mode = x.stx_mode;
  st.st_nlink = x.stx_nlink;
  st.st_uid = x.stx_uid;
  st.st_gid = x.stx_gid;
  st.st_rdev = makedev(x.stx_rdev_major, x.stx_rdev_minor);
  st.st_size = static_cast<off_t>(x.stx_size);
  st.st_blksize = x.stx_blksize;
  st.st_blocks = static_cast<blkcnt_t>(x.stx_blocks);
  st.st_atim = to_timespec(x.stx_atime);
  st.st_mtim = to_timespec(x.stx_mtime);
  st.st_ctim = to_timespec(x.stx_ctime);
  return st;
}

/// The server's name for a file, which it never gives to another one; false where the share has none.
struct FileHandle {
  alignas(file_handle) std::array<unsigned char, sizeof(file_handle) + MAX_HANDLE_SZ> space{};
  bool read(int fd) {
    auto* const handle = head();
    handle->handle_bytes = MAX_HANDLE_SZ;
    int mount_id = 0;
    return ::name_to_handle_at(fd, "", handle, &mount_id, AT_EMPTY_PATH) == 0;
  }
  file_handle* head() { return reinterpret_cast<file_handle*>(space.data()); }
  bool equals(FileHandle& other) {
    return head()->handle_bytes == other.head()->handle_bytes && head()->handle_type == other.head()->handle_type &&
           std::memcmp(head()->f_handle, other.head()->f_handle, head()->handle_bytes) == 0;
  }
};

}  // namespace

Result<Looked> look_at(int fd) {
  struct statx x {};
  constexpr int kFlags = AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT;
  if (::statx(fd, "", kFlags, STATX_BASIC_STATS | STATX_BTIME, &x) != 0) return fail_errno(errno);
  Looked looked;
  looked.attr = to_stat(x);
  if ((x.stx_mask & STATX_BTIME) != 0) looked.birth = Birth{x.stx_btime.tv_sec, x.stx_btime.tv_nsec};
  return looked;
}

std::string path_of(int fd) {
  std::array<char, 4096> text{};
  const ssize_t size = ::readlink(FdPath(fd).c_str(), text.data(), text.size());
  return size > 0 ? std::string(text.data(), static_cast<std::size_t>(size)) : std::string("?");
}

OpenFile::OpenFile(UniqueFd descriptor, int open_flags, std::shared_ptr<Inode> file)
    : fd(std::move(descriptor)), flags(open_flags), inode(std::move(file)) {
  if ((flags & O_ACCMODE) == O_RDWR) ++inode->read_write_open_;
}

OpenFile::~OpenFile() {
  if ((flags & O_ACCMODE) == O_RDWR) --inode->read_write_open_;
  inode->drop_closed();
}

Inode::Inode(NodeId node_id, UniqueFd fd, const Looked& looked)
    : node(node_id), dev(looked.attr.st_dev), ino(looked.attr.st_ino), fd_(std::move(fd)), birth_(looked.birth) {}

bool Inode::is_same(int fd, const Looked& looked) const {
  if (birth_ && looked.birth) return *birth_ == *looked.birth;
  // An NFS client may keep old attributes of a removed file for a while, but never mixes up file handles.
  FileHandle kept;
  FileHandle other;
  if (kept.read(fd_.get()) && other.read(fd)) return kept.equals(other);
  struct stat st {};
  return ::fstatat(fd_.get(), "", &st, AT_EMPTY_PATH) == 0 && st.st_nlink != 0;
}

Result<UniqueFd> Inode::reopen(int flags) const {
  UniqueFd fd(::open(FdPath(fd_.get()).c_str(), flags | O_CLOEXEC));
  if (!fd) return fail_errno(errno);
  return fd;
}

void Inode::add_open(const std::shared_ptr<OpenFile>& file) {
  const std::lock_guard lock(mutex_);
  open_.push_back(file);
}

void Inode::drop_closed() {
  const std::lock_guard lock(mutex_);
  std::erase_if(open_, [](const std::weak_ptr<OpenFile>& file) { return file.expired(); });
}

std::shared_ptr<OpenFile> Inode::any_open() const {
  const std::lock_guard lock(mutex_);
  for (const auto& weak : open_) {
    if (auto file = weak.lock()) return file;
  }
  return nullptr;
}

}  // namespace latchfs::files
