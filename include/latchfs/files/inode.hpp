#pragma once
#include <sys/stat.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "latchfs/base/error.hpp"
#include "latchfs/base/ids.hpp"
#include "latchfs/base/unique_fd.hpp"

namespace latchfs::files {

using NodeId = StrongId<struct NodeIdTag>;  ///< a file as the kernel knows it; a counter, never reused
inline constexpr NodeId kRootNode{1};

/// When a file was made, where the share says so: tells a file from a later one that got its number.
struct Birth {
  std::int64_t sec = 0;
  std::uint32_t nsec = 0;
  friend bool operator==(const Birth&, const Birth&) = default;
};

/// What one look at a file shows.
struct Looked {
  struct stat attr {};
  std::optional<Birth> birth{};
};
Result<Looked> look_at(int fd);

class Inode;

/// A file that a program has open. Closing the descriptor is the destructor's work.
struct OpenFile {
  OpenFile(UniqueFd descriptor, int open_flags, std::shared_ptr<Inode> file);
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  const UniqueFd fd;
  const int flags;
  const std::shared_ptr<Inode> inode;
};

/// One file or directory of the share that the kernel knows, held by an O_PATH descriptor. Any thread.
class Inode {
 public:
  Inode(NodeId node, UniqueFd fd, const Looked& looked);

  const NodeId node;
  const dev_t dev;
  const ino_t ino;
  int fd() const { return fd_.get(); }

  /// True where `looked`, which has the same number and was taken from `fd`, is this very file and not a later one with
  /// its number.
  bool is_same(int fd, const Looked& looked) const;

  /// A new descriptor of the file. O_CREAT and O_NOFOLLOW must not be among the flags.
  Result<UniqueFd> reopen(int flags) const;

  /// Something was written through this mount. Called after the write and before its answer, so that whoever waited for
  /// the answer finds it set.
  void mark_dirty() { dirty_.store(true, std::memory_order_release); }
  bool is_dirty() const { return dirty_.load(std::memory_order_acquire); }
  /// Takes the mark; the caller now owes a flush.
  bool take_dirty() {
    return dirty_.load(std::memory_order_relaxed) && dirty_.exchange(false, std::memory_order_acq_rel);
  }

  /// An fcntl lock was asked for some time: close() has something to drop. Never goes back.
  void note_fcntl_lock() { fcntl_locked_.store(true, std::memory_order_release); }
  bool had_fcntl_lock() const { return fcntl_locked_.load(std::memory_order_acquire); }

  void add_open(const std::shared_ptr<OpenFile>& file);
  /// One of the open files, null if there is none.
  std::shared_ptr<OpenFile> any_open() const;
  /// A program may have the file mapped shared and writable, which needs O_RDWR.
  bool may_be_mapped_for_write() const { return read_write_open_.load(std::memory_order_acquire) != 0; }

  /// The one object of type T that the layer above keeps for this file while anyone uses it; made by `make` when there
  /// is none.
  template <class T, class Make>
  std::shared_ptr<T> companion(Make make) {
    const std::lock_guard lock(mutex_);
    if (auto old = companion_.lock()) return std::static_pointer_cast<T>(std::move(old));
    std::shared_ptr<T> made = make();
    companion_ = made;
    return made;
  }

 private:
  friend class InodeTable;
  friend struct OpenFile;
  void drop_closed();

  const UniqueFd fd_;
  const std::optional<Birth> birth_;
  std::atomic<std::uint64_t> lookups_{0};  // the table's
  std::atomic<bool> dirty_{false};
  std::atomic<bool> fcntl_locked_{false};
  std::atomic<std::uint32_t> read_write_open_{0};
  mutable std::mutex mutex_;
  std::vector<std::weak_ptr<OpenFile>> open_;
  std::weak_ptr<void> companion_;
};

}  // namespace latchfs::files
