#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "latchfs/base/byte_range.hpp"
#include "latchfs/base/ids.hpp"

/// One host's lock table. Pure: no time, no thread, no system call; the caller keeps it to one thread at a time.
namespace latchfs::locktable {

enum class Mode : std::uint8_t { read, write };

/// One stretch of bytes held by one owner in one mode.
struct Hold {
  ByteRange range;
  Mode mode = Mode::read;
  LockOwner owner;
  HandleId handle;            ///< the open file through which it was last acquired
  std::int64_t pid = 0;       ///< of the process that acquired it, for F_GETLK and listings
  std::int64_t since_us = 0;  ///< wall clock when it was acquired, for listings and the log
  friend bool operator==(const Hold&, const Hold&) = default;
};

/// The strongest mode that any owner holds on a stretch of bytes.
struct Demand {
  ByteRange range;
  Mode mode = Mode::read;
  friend bool operator==(const Demand&, const Demand&) = default;
};

/// All holds of one file in one space, by the rules of POSIX record locks: an owner's new hold replaces its own older
/// holds where they overlap (splitting and merging them), never another owner's. flock is the same with whole-file
/// ranges.
/// With n holds in the table and k of them changed, given back or named in the answer: O((k + 1) log n) a call
/// (expected: a treap). conflict() is one way down a tree, however many readers share the bytes; demand() looks at no
/// hold outside `within`, and at none that lies inside another one of its mode.
class LockTable {
 public:
  LockTable();
  ~LockTable();
  LockTable(LockTable&&) noexcept;
  LockTable& operator=(LockTable&&) noexcept;

  /// The first (lowest) hold of another owner that overlaps `range` and of which one writes; empty if there is none.
  std::optional<Hold> conflict(LockOwner owner, Mode mode, ByteRange range) const;
  /// True where `owner` holds every byte of `range` in a mode at least as strong.
  bool holds(LockOwner owner, Mode mode, ByteRange range) const;
  /// True where `owner` holds a byte of `range` for which a request of somebody else in `mode` has to wait.
  bool opposes(LockOwner owner, Mode mode, ByteRange range) const;
  /// Sets the owner's mode on hold.range. The caller has made sure that conflict() is empty.
  /// Neighbouring stretches merge where owner, mode and handle are the same; the merged one has the oldest since_us and
  /// the newest pid. Gives back what the owner held on those bytes before, as the release functions do.
  std::vector<Hold> acquire(const Hold& hold);
  /// The three ways to let go; each gives back what was removed, in order of bytes (empty: nothing was held).
  std::vector<Hold> release(LockOwner owner, ByteRange range);
  std::vector<Hold> release_owner(LockOwner owner);
  std::vector<Hold> release_handle(HandleId handle);
  std::vector<Hold> release_all();

  /// What all owners together hold inside `within`, clipped to it: disjoint, ascending, neighbours of one mode merged;
  /// a byte held for reading by some and writing by one counts as write.
  std::vector<Demand> demand(ByteRange within) const;
  /// All holds, ascending by first byte.
  std::vector<Hold> holds() const;
  std::size_t count(HandleId handle) const;  ///< stretches last acquired through this handle
  bool empty() const;
  std::size_t size() const;

 private:
  struct Impl;  // the representation: see lock_table.cpp
  std::unique_ptr<Impl> impl_;
};

}  // namespace latchfs::locktable
