#include "latchfs/files/inode_table.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "latchfs/files/fd_path.hpp"
#include "latchfs/files/names.hpp"

namespace latchfs::files {
namespace {

/// The directory is the root of a latchfs share of its own: two sets of lock names for the same files would not see
/// each other.
bool is_share_root(int fd) {
  const UniqueFd control(::openat(fd, kHiddenName, O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC));
  struct stat st {};
  return control && ::fstatat(control.get(), "format", &st, AT_SYMLINK_NOFOLLOW) == 0;
}

}  // namespace

Result<std::unique_ptr<InodeTable>> InodeTable::over(UniqueFd root) {
  const auto looked = look_at(root.get());
  if (!looked) return tl::unexpected(looked.error());
  auto inode = std::make_shared<Inode>(kRootNode, std::move(root), *looked);
  return std::unique_ptr<InodeTable>(new InodeTable(std::move(inode)));
}

InodeTable::InodeTable(std::shared_ptr<Inode> root) : root_(std::move(root)) {
  by_node_.emplace(kRootNode, root_);
  by_key_.emplace(Key{root_->dev, root_->ino}, root_);
  struct stat st {};
  if (::fstatat(root_->fd(), kHiddenName, &st, AT_SYMLINK_NOFOLLOW) == 0) control_ = Key{st.st_dev, st.st_ino};
}

std::shared_ptr<Inode> InodeTable::find(NodeId node) const {
  if (node == kRootNode) return root_;
  const std::shared_lock lock(mutex_);
  const auto it = by_node_.find(node);
  return it == by_node_.end() ? nullptr : it->second;
}

Result<Found> InodeTable::lookup(const Inode& parent, const char* name) {
  if (is_hidden(name)) return fail_errno(ENOENT);
  UniqueFd fd(::openat(parent.fd(), name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return fail_errno(errno);
  return enter(std::move(fd));
}

Result<Found> InodeTable::adopt(int fd) {
  // By the descriptor and not by the name: another host may have put something else there meanwhile.
  UniqueFd path(::open(FdPath(fd).c_str(), O_PATH | O_CLOEXEC));
  if (!path) return fail_errno(errno);
  return enter(std::move(path));
}

Result<Found> InodeTable::enter(UniqueFd fd) {
  const auto looked = look_at(fd.get());
  if (!looked) return tl::unexpected(looked.error());
  const Key key{looked->attr.st_dev, looked->attr.st_ino};
  // The control directory under another spelling, as the short names of SMB.
  if (key == control_) return fail_errno(ENOENT);
  for (;;) {
    const auto known = count_known(key);
    if (known && known->is_same(fd.get(), *looked)) return Found{known, looked->attr};
    // Looked for at the first sight only: a mount that is started later on that directory refuses because of the share
    // above it.
    if (!known && S_ISDIR(looked->attr.st_mode) && is_share_root(fd.get())) return refuse_nested(fd.get(), key);
    auto made = insert(fd, *looked, known);
    if (known) forget(known->node, 1);
    if (made) return Found{std::move(made), looked->attr};
  }
}

std::shared_ptr<Inode> InodeTable::count_known(const Key& key) {
  // Shared is enough: forgetting, which must not come between finding and counting, locks alone.
  const std::shared_lock lock(mutex_);
  const auto it = by_key_.find(key);
  if (it == by_key_.end()) return nullptr;
  it->second->lookups_.fetch_add(1, std::memory_order_relaxed);
  return it->second;
}

std::shared_ptr<Inode> InodeTable::insert(UniqueFd& fd, const Looked& looked, const std::shared_ptr<Inode>& stale) {
  const Key key{looked.attr.st_dev, looked.attr.st_ino};
  const std::unique_lock lock(mutex_);
  const auto it = by_key_.find(key);
  if ((it == by_key_.end() ? nullptr : it->second) != stale) return nullptr;
  auto made = std::make_shared<Inode>(NodeId{next_node_++}, std::move(fd), looked);
  made->lookups_ = 1;
  by_key_.insert_or_assign(key, made);
  by_node_.emplace(made->node, made);
  return made;
}

void InodeTable::forget(NodeId node, std::uint64_t count) {
  if (node == kRootNode) return;
  std::shared_ptr<Inode> gone;  // closes the descriptor after the lock is let go
  const std::unique_lock lock(mutex_);
  const auto it = by_node_.find(node);
  if (it == by_node_.end()) return;
  std::atomic<std::uint64_t>& lookups = it->second->lookups_;
  lookups -= std::min(count, lookups.load());
  if (lookups != 0) return;
  gone = std::move(it->second);
  by_node_.erase(it);
  const auto key = by_key_.find(Key{gone->dev, gone->ino});
  if (key != by_key_.end() && key->second == gone) by_key_.erase(key);
}

tl::unexpected<Error> InodeTable::refuse_nested(int fd, const Key& key) {
  bool first = false;
  {
    const std::unique_lock lock(mutex_);
    first = told_.insert(key).second;
  }
  if (!first) return fail_errno(EBUSY);
  return fail_errno(EBUSY,
                    fmt::format("{} is the root of a latchfs share of its own and cannot be used through this mount: "
                                "all hosts must mount the same directory",
                                path_of(fd)));
}

std::size_t InodeTable::size() const {
  const std::shared_lock lock(mutex_);
  return by_node_.size();
}

}  // namespace latchfs::files
