#pragma once
#include <algorithm>
#include <compare>
#include <cstdint>

namespace latchfs {

/// Bytes `first`..`last`, both included, as FUSE and the names on the share have them. Never empty.
struct ByteRange {
  /// The last byte a lock can name: OFFSET_MAX of the kernel, "to the end of the file".
  static constexpr std::uint64_t kMax = 0x7fffffffffffffffU;

  std::uint64_t first = 0;
  std::uint64_t last = kMax;

  static constexpr ByteRange whole() { return {0, kMax}; }
  constexpr bool valid() const { return first <= last && last <= kMax; }
  constexpr bool overlaps(const ByteRange& o) const { return first <= o.last && o.first <= last; }
  constexpr bool contains(const ByteRange& o) const { return first <= o.first && o.last <= last; }
  /// True where the two together are one range (they overlap or touch). last is at most 2^63-1, so +1 cannot wrap.
  constexpr bool joins(const ByteRange& o) const { return first <= o.last + 1 && o.first <= last + 1; }
  /// The common bytes; only for ranges that overlap.
  constexpr ByteRange intersect(const ByteRange& o) const {
    return {std::max(first, o.first), std::min(last, o.last)};
  }
  friend constexpr auto operator<=>(const ByteRange&, const ByteRange&) = default;
};

}  // namespace latchfs
