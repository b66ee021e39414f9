#include "fusefs/mounted_file.hpp"

#include <utility>

#include "latchfs/files/fd_path.hpp"
#include "latchfs/files/sync.hpp"

namespace latchfs::fusefs {

std::shared_ptr<MountedFile> MountedFile::of(const std::shared_ptr<files::Inode>& inode,
                                             const std::shared_ptr<KernelCache>& kernel, EventSink* events) {
  return inode->companion<MountedFile>([&] { return std::make_shared<MountedFile>(inode, kernel, events); });
}

MountedFile::MountedFile(std::shared_ptr<files::Inode> inode, std::shared_ptr<KernelCache> kernel, EventSink* events)
    : inode_(std::move(inode)), kernel_(std::move(kernel)), events_(events) {}

Result<void> MountedFile::flush() {
  // Stores to a shared mapping reach this process only when the kernel writes its pages out, and an unlock does not
  // make it do so.
  if (inode_->may_be_mapped_for_write()) kernel_->drop(inode_->node);
  const auto done = files::flush(*inode_);
  if (!done) return tl::unexpected(done.error());
  if (*done == files::Synced::gone) note_gone();
  return {};
}

Result<void> MountedFile::refresh() {
  const auto done = files::refresh(*inode_);
  if (!done) return tl::unexpected(done.error());
  if (*done == files::Synced::gone) note_gone();
  // After the share's client has forgotten: a read in between may have filled the kernel's cache with old pages once
  // more.
  kernel_->drop(inode_->node);
  return {};
}

std::string MountedFile::path() const { return files::path_of(inode_->fd()); }

void MountedFile::note_gone() const {
  if (events_ != nullptr) events_->log(Level::info, "{} was removed by another host while it was locked here", path());
}

}  // namespace latchfs::fusefs
