#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <memory>

#include "fusefs/front.hpp"
#include "fusefs/ops.hpp"

namespace latchfs::fusefs::ops {
namespace {

/// The answer to one READDIR. The usual size lies on the stack.
class Listing {
 public:
  Listing(fuse_req_t raw, size_t size) : raw_(raw), size_(size) {
    if (size > small_.size()) large_ = std::make_unique_for_overwrite<char[]>(size);
  }
  bool empty() const { return used_ == 0; }
  const char* data() const { return large_ ? large_.get() : small_.data(); }
  size_t used() const { return used_; }

  // False: the entry does not fit any more.
  bool add(const char* name, const struct stat& st, off_t next) {
    return took(::fuse_add_direntry(raw_, room(), left(), name, &st, next));
  }
  bool add_plus(const char* name, const fuse_entry_param& e, off_t next) {
    return took(::fuse_add_direntry_plus(raw_, room(), left(), name, &e, next));
  }

 private:
  char* room() { return (large_ ? large_.get() : small_.data()) + used_; }
  size_t left() const { return size_ - used_; }
  bool took(size_t need) {
    if (need > left()) return false;
    used_ += need;
    return true;
  }

  fuse_req_t raw_;
  size_t size_;
  size_t used_ = 0;
  std::array<char, 4096> small_;
  std::unique_ptr<char[]> large_;
};

struct stat stat_of(const dirent& entry) {
  struct stat st {};
  st.st_ino = entry.d_ino;
  st.st_mode = DTTOIF(entry.d_type);
  return st;
}

bool is_dots(const char* name) { return std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0; }

/// One entry with its attributes. Where they cannot be had, the name alone: its node id 0 makes the kernel look it up
/// when somebody wants it.
bool add_with_attributes(Front& front, Listing& out, const files::OpenDir& dir, const dirent& entry) {
  if (!is_dots(entry.d_name)) {
    if (const auto found = front.inodes->lookup(*dir.inode(), entry.d_name)) {
      if (out.add_plus(entry.d_name, front.entry_of(*found), entry.d_off)) return true;
      front.inodes->forget(found->inode->node, 1);
      return false;
    } else if (!found.error().what.empty() && front.services.events != nullptr) {
      front.services.events->write(Level::error, found.error().what);
    }
  }
  fuse_entry_param bare{};
  bare.attr = stat_of(entry);
  return out.add_plus(entry.d_name, bare, entry.d_off);
}

/// Fills `out` from the directory by add(entry), which says whether there was room.
template <class Add>
Result<void> list(files::OpenDir& dir, off_t offset, Add add) {
  const auto lock = dir.lock();
  if (auto moved = dir.go_to(offset); !moved) return moved;
  for (;;) {
    const auto entry = dir.peek();
    if (!entry) return tl::unexpected(entry.error());
    if (*entry == nullptr || !add(**entry)) return {};
    dir.advance();
  }
}

void answer(Request req, const Listing& out, const Result<void>& listed) {
  // An error in the middle comes again with the next call, which starts where this answer ends.
  if (!listed && out.empty()) return req.fail(listed.error());
  req.buffer(out.data(), out.used());
}

}  // namespace

void opendir(fuse_req_t raw, fuse_ino_t node, fuse_file_info* fi) {
  Request req(raw);
  Front& front = Front::of(raw);
  const auto inode = front.inode(node);
  if (!inode) return req.fail_with(ESTALE);
  auto dir = files::OpenDir::open(inode);
  if (!dir) return req.fail(dir.error());
  fi->fh = front.dirs.next_id();
  front.dirs.insert(fi->fh, std::move(*dir));
  if (!req.opened(*fi)) front.dirs.take(fi->fh);
}

void readdir(fuse_req_t raw, fuse_ino_t /*node*/, size_t size, off_t offset, fuse_file_info* fi) {
  Request req(raw);
  const auto dir = Front::of(raw).dirs.find(fi->fh);
  if (!dir) return req.fail_with(EBADF);
  Listing out(raw, size);
  const auto listed =
      list(*dir, offset, [&](const dirent& entry) { return out.add(entry.d_name, stat_of(entry), entry.d_off); });
  answer(std::move(req), out, listed);
}

void readdirplus(fuse_req_t raw, fuse_ino_t /*node*/, size_t size, off_t offset, fuse_file_info* fi) {
  Request req(raw);
  Front& front = Front::of(raw);
  const auto dir = front.dirs.find(fi->fh);
  if (!dir) return req.fail_with(EBADF);
  Listing out(raw, size);
  const auto listed =
      list(*dir, offset, [&](const dirent& entry) { return add_with_attributes(front, out, *dir, entry); });
  answer(std::move(req), out, listed);
}

void releasedir(fuse_req_t raw, fuse_ino_t /*node*/, fuse_file_info* fi) {
  Request req(raw);
  Front::of(raw).dirs.take(fi->fh);
  req.ok();
}

void fsyncdir(fuse_req_t raw, fuse_ino_t /*node*/, int datasync, fuse_file_info* fi) {
  Request req(raw);
  const auto dir = Front::of(raw).dirs.find(fi->fh);
  if (!dir) return req.fail_with(EBADF);
  req.result(datasync != 0 ? ::fdatasync(dir->fd()) : ::fsync(dir->fd()));
}

}  // namespace latchfs::fusefs::ops
