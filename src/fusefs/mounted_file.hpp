#pragma once
#include <memory>
#include <string>

#include "fusefs/kernel_cache.hpp"
#include "latchfs/base/events.hpp"
#include "latchfs/engine/lock_service.hpp"
#include "latchfs/files/inode.hpp"

namespace latchfs::fusefs {

/// The data of a file of the mount, for the lock service. One a file. May outlive the mount.
class MountedFile final : public engine::FileData {
 public:
  static std::shared_ptr<MountedFile> of(const std::shared_ptr<files::Inode>& inode,
                                         const std::shared_ptr<KernelCache>& kernel, EventSink* events);
  MountedFile(std::shared_ptr<files::Inode> inode, std::shared_ptr<KernelCache> kernel, EventSink* events);

  Result<void> flush() override;
  Result<void> refresh() override;
  std::string path() const override;

 private:
  void note_gone() const;

  const std::shared_ptr<files::Inode> inode_;
  const std::shared_ptr<KernelCache> kernel_;
  EventSink* const events_;
};

}  // namespace latchfs::fusefs
