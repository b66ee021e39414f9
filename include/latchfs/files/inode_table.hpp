#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <string>
#include <unordered_map>

#include "latchfs/files/inode.hpp"

namespace latchfs::files {

/// A file together with what one look at it showed.
struct Found {
  std::shared_ptr<Inode> inode;
  struct stat attr {};
};

/// The files that the kernel knows, by node id and by the share's number. Any thread; no lock is held during a call to
/// the share.
class InodeTable {
 public:
  /// `root` is a descriptor of SOURCE (O_PATH is enough).
  static Result<std::unique_ptr<InodeTable>> over(UniqueFd root);

  std::shared_ptr<Inode> root() const { return root_; }
  /// Null for an id that was never given out or is forgotten.
  std::shared_ptr<Inode> find(NodeId node) const;

  /// Finds `name` in a directory and counts one lookup. ENOENT for a hidden name. EBUSY for a directory that is the
  /// root of another latchfs share; Error::what then has a sentence for the log, the first time only.
  Result<Found> lookup(const Inode& parent, const char* name);
  /// The same for a file that is open already: one just created.
  Result<Found> adopt(int fd);
  /// Takes back `count` lookups; with the last one the file is forgotten and its descriptor closed (when nobody else
  /// holds the inode).
  void forget(NodeId node, std::uint64_t count);

  std::size_t size() const;

 private:
  struct Key {
    dev_t dev;
    ino_t ino;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept { return std::hash<std::uint64_t>{}(key.ino * 31 + key.dev); }
  };

  explicit InodeTable(std::shared_ptr<Inode> root);
  Result<Found> enter(UniqueFd fd);
  std::shared_ptr<Inode> count_known(const Key& key);
  /// Makes the file known in place of `stale`. Null, with `fd` untouched, where another call was faster.
  std::shared_ptr<Inode> insert(UniqueFd& fd, const Looked& looked, const std::shared_ptr<Inode>& stale);
  tl::unexpected<Error> refuse_nested(int fd, const Key& key);

  const std::shared_ptr<Inode> root_;
  std::optional<Key> control_;  // the root's own control directory
  mutable std::shared_mutex mutex_;
  std::unordered_map<NodeId, std::shared_ptr<Inode>> by_node_;
  std::unordered_map<Key, std::shared_ptr<Inode>, KeyHash> by_key_;
  std::uint64_t next_node_ = kRootNode.value + 1;
  std::set<Key> told_;  // nested shares that were logged
};

}  // namespace latchfs::files
