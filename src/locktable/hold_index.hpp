#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "latchfs/locktable/lock_table.hpp"

namespace latchfs::locktable {

/// All holds of a table in order of their first byte, as a treap in which each subtree knows how far its holds reach.
/// So the lowest hold that overlaps a range, of a given mode and not of a given owner, is found on one way down:
/// readers that do not matter are never looked at. insert, erase and lowest: O(log n) expected. The holds belong to the
/// caller, must outlive their entry and keep range, mode and owner meanwhile; no two may have the same first byte and
/// owner.
class HoldIndex {
 public:
  struct Query {
    ByteRange range;
    std::optional<Mode> mode{};         ///< only holds of this mode
    std::optional<LockOwner> except{};  ///< no hold of this owner
  };

  HoldIndex();
  ~HoldIndex();
  HoldIndex(const HoldIndex&) = delete;
  HoldIndex& operator=(const HoldIndex&) = delete;

  void insert(const Hold* hold);
  void erase(const Hold* hold);
  /// The matching hold with the lowest first byte (then the lowest owner), or null.
  const Hold* lowest(const Query& query) const;
  /// Every hold, in order.
  std::vector<const Hold*> all() const;
  std::size_t size() const { return size_; }

 private:
  struct Node;
  using Tree = std::unique_ptr<Node>;

  static Tree join(Tree low, Tree high);
  static std::pair<Tree, Tree> split(Tree tree, const Hold& before);
  static Tree without(Tree tree, const Hold& hold);

  Tree root_;
  std::size_t size_ = 0;
  std::uint64_t random_state_ = 0;
};

}  // namespace latchfs::locktable
