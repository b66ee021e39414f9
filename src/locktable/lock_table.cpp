#include "latchfs/locktable/lock_table.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "locktable/hold_index.hpp"

/// Three views of the same holds, changed only together by add() and remove(): each owner's stretches in order of bytes
/// (they are disjoint, so an ordinary map does), each handle's stretches, and an index over all for the questions that
/// concern other owners.
namespace latchfs::locktable {
namespace {

using Stretches = std::map<std::uint64_t, Hold>;  // by first byte

Stretches::const_iterator first_that_ends_at_or_after(const Stretches& stretches, std::uint64_t byte) {
  auto it = stretches.upper_bound(byte);
  if (it != stretches.begin() && std::prev(it)->second.range.last >= byte) --it;
  return it;
}

bool alike(const Hold& a, const Hold& b) { return a.owner == b.owner && a.mode == b.mode && a.handle == b.handle; }

/// Both lists ascending and disjoint.
std::vector<ByteRange> subtract(const std::vector<ByteRange>& from, const std::vector<ByteRange>& taken) {
  std::vector<ByteRange> left;
  auto first_cut = taken.begin();
  for (ByteRange rest : from) {
    while (first_cut != taken.end() && first_cut->last < rest.first) ++first_cut;
    for (auto cut = first_cut; cut != taken.end() && cut->first <= rest.last; ++cut) {
      if (cut->first > rest.first) left.push_back({rest.first, cut->first - 1});
      rest.first = cut->last + 1;
    }
    if (rest.valid()) left.push_back(rest);
  }
  return left;
}

std::vector<Demand> as_demand(const std::vector<ByteRange>& ranges, Mode mode) {
  std::vector<Demand> demands;
  demands.reserve(ranges.size());
  for (const ByteRange& range : ranges) demands.push_back({range, mode});
  return demands;
}

}  // namespace

struct LockTable::Impl {
  std::map<LockOwner, Stretches> owners;
  std::map<HandleId, std::set<std::pair<std::uint64_t, LockOwner>>> handles;  // first bytes and owners
  HoldIndex index;

  const Stretches* of(LockOwner owner) const {
    const auto found = owners.find(owner);
    return found == owners.end() ? nullptr : &found->second;
  }

  void add(const Hold& hold) {
    const auto [it, fresh] = owners[hold.owner].emplace(hold.range.first, hold);
    index.insert(&it->second);
    handles[hold.handle].emplace(hold.range.first, hold.owner);
  }

  /// Takes out the stretch of `owner` that begins at `first`.
  Hold remove(LockOwner owner, std::uint64_t first) {
    const auto own = owners.find(owner);
    const auto it = own->second.find(first);
    const Hold hold = it->second;
    index.erase(&it->second);
    own->second.erase(it);
    if (own->second.empty()) owners.erase(own);
    const auto through = handles.find(hold.handle);
    through->second.erase({first, owner});
    if (through->second.empty()) handles.erase(through);
    return hold;
  }

  std::vector<Hold> overlapping(LockOwner owner, ByteRange range) const {
    std::vector<Hold> found;
    const Stretches* own = of(owner);
    if (own == nullptr) return found;
    for (auto it = first_that_ends_at_or_after(*own, range.first); it != own->end(); ++it) {
      if (it->first > range.last) break;
      found.push_back(it->second);
    }
    return found;
  }

  /// Takes `range` away from `owner`; what lies outside stays. Gives back the pieces taken.
  std::vector<Hold> carve(LockOwner owner, ByteRange range) {
    std::vector<Hold> pieces = overlapping(owner, range);
    for (Hold& piece : pieces) {
      const Hold old = remove(owner, piece.range.first);
      Hold rest = old;
      if (old.range.first < range.first) {
        rest.range = {old.range.first, range.first - 1};
        add(rest);
      }
      if (old.range.last > range.last) {
        rest.range = {range.last + 1, old.range.last};
        add(rest);
      }
      piece.range = old.range.intersect(range);
    }
    return pieces;
  }

  std::optional<Hold> at(LockOwner owner, std::uint64_t byte) const {
    const std::vector<Hold> found = overlapping(owner, {byte, byte});
    return found.empty() ? std::nullopt : std::optional(found.front());
  }

  /// The bytes of `within` that are held in `mode` by anyone. Holds that lie inside one already seen are skipped over.
  std::vector<ByteRange> covered(Mode mode, ByteRange within) const {
    std::vector<ByteRange> found;
    for (ByteRange rest = within; rest.valid();) {
      const Hold* hold = index.lowest({rest, mode, std::nullopt});
      if (hold == nullptr) break;
      const ByteRange part = hold->range.intersect(rest);
      if (!found.empty() && found.back().joins(part)) {
        found.back().last = part.last;
      } else {
        found.push_back(part);
      }
      rest.first = part.last + 1;  // beyond `last` at the end: no longer valid
    }
    return found;
  }
};

LockTable::LockTable() : impl_(std::make_unique<Impl>()) {}
LockTable::~LockTable() = default;
LockTable::LockTable(LockTable&&) noexcept = default;
LockTable& LockTable::operator=(LockTable&&) noexcept = default;

std::optional<Hold> LockTable::conflict(LockOwner owner, Mode mode, ByteRange range) const {
  const auto which = mode == Mode::write ? std::nullopt : std::optional(Mode::write);
  const Hold* hold = impl_->index.lowest({range, which, owner});
  return hold == nullptr ? std::nullopt : std::optional(*hold);
}

bool LockTable::holds(LockOwner owner, Mode mode, ByteRange range) const {
  const Stretches* own = impl_->of(owner);
  if (own == nullptr) return false;
  std::uint64_t next = range.first;
  for (auto it = first_that_ends_at_or_after(*own, next); it != own->end() && it->first <= next; ++it) {
    if (mode == Mode::write && it->second.mode != Mode::write) return false;
    if (it->second.range.last >= range.last) return true;
    next = it->second.range.last + 1;
  }
  return false;
}

bool LockTable::opposes(LockOwner owner, Mode mode, ByteRange range) const {
  const Stretches* own = impl_->of(owner);
  if (own == nullptr) return false;
  for (auto it = first_that_ends_at_or_after(*own, range.first); it != own->end() && it->first <= range.last; ++it) {
    if (mode == Mode::write || it->second.mode == Mode::write) return true;
  }
  return false;
}

std::vector<Hold> LockTable::acquire(const Hold& hold) {
  Hold merged = hold;
  const auto keep_age = [&](const Hold& older) { merged.since_us = std::min(merged.since_us, older.since_us); };
  std::vector<Hold> replaced = impl_->carve(hold.owner, hold.range);
  for (const Hold& piece : replaced) {
    if (alike(piece, hold)) keep_age(piece);
  }
  const auto absorb = [&](std::uint64_t byte) {
    const std::optional<Hold> neighbour = impl_->at(hold.owner, byte);
    if (!neighbour || !alike(*neighbour, hold)) return;
    keep_age(impl_->remove(hold.owner, neighbour->range.first));
    merged.range = {std::min(merged.range.first, neighbour->range.first),
                    std::max(merged.range.last, neighbour->range.last)};
  };
  if (hold.range.first > 0) absorb(hold.range.first - 1);
  if (hold.range.last < ByteRange::kMax) absorb(hold.range.last + 1);
  impl_->add(merged);
  return replaced;
}

std::vector<Hold> LockTable::release(LockOwner owner, ByteRange range) { return impl_->carve(owner, range); }

std::vector<Hold> LockTable::release_owner(LockOwner owner) { return impl_->carve(owner, ByteRange::whole()); }

std::vector<Hold> LockTable::release_handle(HandleId handle) {
  const auto found = impl_->handles.find(handle);
  if (found == impl_->handles.end()) return {};
  const auto keys = found->second;  // a copy: remove() changes the original
  std::vector<Hold> removed;
  removed.reserve(keys.size());
  for (const auto& [first, owner] : keys) removed.push_back(impl_->remove(owner, first));
  return removed;
}

std::vector<Hold> LockTable::release_all() {
  std::vector<Hold> removed = holds();
  impl_ = std::make_unique<Impl>();
  return removed;
}

std::vector<Demand> LockTable::demand(ByteRange within) const {
  const std::vector<ByteRange> written = impl_->covered(Mode::write, within);
  const std::vector<ByteRange> only_read = subtract(impl_->covered(Mode::read, within), written);
  const std::vector<Demand> writes = as_demand(written, Mode::write);
  const std::vector<Demand> reads = as_demand(only_read, Mode::read);
  std::vector<Demand> both;
  both.reserve(writes.size() + reads.size());
  std::merge(writes.begin(), writes.end(), reads.begin(), reads.end(), std::back_inserter(both),
             [](const Demand& a, const Demand& b) { return a.range.first < b.range.first; });
  return both;
}

std::vector<Hold> LockTable::holds() const {
  std::vector<Hold> all;
  all.reserve(size());
  for (const Hold* hold : impl_->index.all()) all.push_back(*hold);
  return all;
}

std::size_t LockTable::count(HandleId handle) const {
  const auto found = impl_->handles.find(handle);
  return found == impl_->handles.end() ? 0 : found->second.size();
}

bool LockTable::empty() const { return impl_->owners.empty(); }
std::size_t LockTable::size() const { return impl_->index.size(); }

}  // namespace latchfs::locktable
