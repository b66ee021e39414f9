#include "latchfs/locktable/lock_table.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

/// The lock table against a table that keeps one cell a byte and owner. A small universe of bytes is laid on the number
/// line in two halves, one from 0 and one that ends at the last byte a lock can name, so that ranges reach both ends.
namespace latchfs::locktable {
namespace {

constexpr std::uint64_t kHalf = 12;
constexpr std::uint64_t kBytes = 2 * kHalf;
constexpr std::uint64_t kOwners = 4;
constexpr std::uint64_t kHandles = 5;

/// Cell kHalf-1 stands for all the bytes in the middle too.
std::uint64_t first_byte(std::uint64_t cell) { return cell < kHalf ? cell : ByteRange::kMax - (kBytes - 1 - cell); }
std::uint64_t last_byte(std::uint64_t cell) { return cell + 1 < kHalf ? cell : first_byte(cell + 1) - 1; }

struct Cells {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  ByteRange range() const { return {first_byte(first), last == kBytes - 1 ? ByteRange::kMax : last_byte(last)}; }
};

struct Cell {
  Mode mode = Mode::read;
  HandleId handle;
  friend bool operator==(const Cell&, const Cell&) = default;
};
using Row = std::array<std::optional<Cell>, kBytes>;

/// What a table says about one stretch, without what a byte map cannot know (pid, age).
struct Piece {
  ByteRange range;
  LockOwner owner;
  Cell cell;
  friend bool operator==(const Piece&, const Piece&) = default;
};

std::ostream& operator<<(std::ostream& out, const Piece& p) {
  return out << p.range.first << '-' << p.range.last << " owner " << p.owner.value << " handle " << p.cell.handle.value
             << (p.cell.mode == Mode::write ? " w" : " r");
}

std::vector<Piece> pieces_of(const std::vector<Hold>& holds) {
  std::vector<Piece> pieces;
  for (const Hold& h : holds) pieces.push_back({h.range, h.owner, {h.mode, h.handle}});
  return pieces;
}

bool earlier(const Piece& a, const Piece& b) {
  return std::pair(a.range.first, a.owner) < std::pair(b.range.first, b.owner);
}

class NaiveTable {
 public:
  std::map<LockOwner, Row> rows;

  /// Stretches of alike cells of one owner for which `wanted` is true; they end where it is false.
  template <class Wanted>
  std::vector<Piece> stretches(Wanted wanted) const {
    std::vector<Piece> found;
    for (const auto& [owner, row] : rows) {
      bool open = false;
      for (std::uint64_t i = 0; i < kBytes; ++i) {
        if (!row[i] || !wanted(owner, i, *row[i])) {
          open = false;
        } else if (open && found.back().cell == *row[i]) {
          found.back().range.last = Cells{i, i}.range().last;
        } else {
          found.push_back({Cells{i, i}.range(), owner, *row[i]});
          open = true;
        }
      }
    }
    std::sort(found.begin(), found.end(), earlier);
    return found;
  }

  template <class Wanted>
  std::vector<Piece> take(Wanted wanted) {
    std::vector<Piece> taken = stretches(wanted);
    for (auto& [owner, row] : rows) {
      for (std::uint64_t i = 0; i < kBytes; ++i) {
        if (row[i] && wanted(owner, i, *row[i])) row[i].reset();
      }
    }
    return taken;
  }

  std::vector<Piece> all() const {
    return stretches([](LockOwner, std::uint64_t, const Cell&) { return true; });
  }

  std::optional<Piece> conflict(LockOwner me, Mode mode, ByteRange range) const {
    for (const Piece& p : all()) {
      const bool writes = mode == Mode::write || p.cell.mode == Mode::write;
      if (p.owner != me && writes && p.range.overlaps(range)) return p;
    }
    return std::nullopt;
  }

  bool opposes(LockOwner owner, Mode mode, ByteRange range) const {
    const std::vector<Piece> pieces = all();
    return std::any_of(pieces.begin(), pieces.end(), [&](const Piece& p) {
      const bool writes = mode == Mode::write || p.cell.mode == Mode::write;
      return p.owner == owner && writes && p.range.overlaps(range);
    });
  }

  bool holds(LockOwner owner, Mode mode, Cells cells) const {
    const auto row = rows.find(owner);
    if (row == rows.end()) return false;
    for (std::uint64_t i = cells.first; i <= cells.last; ++i) {
      const std::optional<Cell>& cell = row->second[i];
      if (!cell || (mode == Mode::write && cell->mode == Mode::read)) return false;
    }
    return true;
  }

  std::vector<Demand> demand(Cells within) const {
    std::vector<Demand> found;
    for (std::uint64_t i = within.first; i <= within.last; ++i) {
      std::optional<Mode> mode;
      for (const auto& [owner, row] : rows) {
        if (row[i] && (!mode || row[i]->mode == Mode::write)) mode = row[i]->mode;
      }
      const ByteRange byte = Cells{i, i}.range();
      if (!mode) continue;
      if (!found.empty() && found.back().mode == *mode && found.back().range.last + 1 == byte.first) {
        found.back().range.last = byte.last;
      } else {
        found.push_back({byte, *mode});
      }
    }
    return found;
  }
};

Cells any_cells() {
  const std::uint64_t a = *rc::gen::inRange<std::uint64_t>(0, kBytes);
  const std::uint64_t b = *rc::gen::inRange<std::uint64_t>(0, kBytes);
  return {std::min(a, b), std::max(a, b)};
}
LockOwner any_owner() { return LockOwner{*rc::gen::inRange<std::uint64_t>(0, kOwners)}; }
HandleId any_handle() { return HandleId{*rc::gen::inRange<std::uint64_t>(1, kHandles + 1)}; }
Mode any_mode() { return *rc::gen::element(Mode::read, Mode::write); }

void compare(const LockTable& table, const NaiveTable& naive) {
  RC_ASSERT(pieces_of(table.holds()) == naive.all());
  RC_ASSERT(table.size() == naive.all().size());
  RC_ASSERT(table.empty() == naive.all().empty());
  for (std::uint64_t h = 1; h <= kHandles; ++h) {
    const auto through = naive.stretches([&](LockOwner, std::uint64_t, const Cell& c) { return c.handle.value == h; });
    RC_ASSERT(table.count(HandleId{h}) == through.size());
  }
}

void ask(const LockTable& table, const NaiveTable& naive) {
  const Cells cells = any_cells();
  const LockOwner owner = any_owner();
  const Mode mode = any_mode();
  RC_ASSERT(table.demand(cells.range()) == naive.demand(cells));
  RC_ASSERT(table.holds(owner, mode, cells.range()) == naive.holds(owner, mode, cells));
  RC_ASSERT(table.opposes(owner, mode, cells.range()) == naive.opposes(owner, mode, cells.range()));
  const std::optional<Hold> found = table.conflict(owner, mode, cells.range());
  const std::optional<Piece> expected = naive.conflict(owner, mode, cells.range());
  RC_ASSERT(found.has_value() == expected.has_value());
  if (found) RC_ASSERT(pieces_of({*found}).front() == *expected);
}

enum class Step { acquire, release, release_owner, release_handle, release_all };

void acquire(LockTable& table, NaiveTable& naive, bool polite) {
  const Cells cells = any_cells();
  const LockOwner owner = any_owner();
  const Cell cell{any_mode(), any_handle()};
  if (polite && table.conflict(owner, cell.mode, cells.range())) return;
  const std::vector<Hold> replaced = table.acquire({cells.range(), cell.mode, owner, cell.handle, 1, 1});
  RC_ASSERT(pieces_of(replaced) == naive.take([&](LockOwner o, std::uint64_t i, const Cell&) {
    return o == owner && i >= cells.first && i <= cells.last;
  }));
  Row& row = naive.rows[owner];
  for (std::uint64_t i = cells.first; i <= cells.last; ++i) row[i] = cell;
}

void step(LockTable& table, NaiveTable& naive, bool polite) {
  const Step which = *rc::gen::weightedElement<Step>({{12, Step::acquire},
                                                      {6, Step::release},
                                                      {2, Step::release_owner},
                                                      {2, Step::release_handle},
                                                      {1, Step::release_all}});
  std::vector<Hold> removed;
  std::vector<Piece> expected;
  switch (which) {
    case Step::acquire: acquire(table, naive, polite); break;
    case Step::release: {
      const LockOwner owner = any_owner();
      const Cells cells = any_cells();
      removed = table.release(owner, cells.range());
      expected = naive.take(
          [&](LockOwner o, std::uint64_t i, const Cell&) { return o == owner && i >= cells.first && i <= cells.last; });
      break;
    }
    case Step::release_owner: {
      const LockOwner owner = any_owner();
      removed = table.release_owner(owner);
      expected = naive.take([&](LockOwner o, std::uint64_t, const Cell&) { return o == owner; });
      break;
    }
    case Step::release_handle: {
      const HandleId handle = any_handle();
      removed = table.release_handle(handle);
      expected = naive.take([&](LockOwner, std::uint64_t, const Cell& c) { return c.handle == handle; });
      break;
    }
    case Step::release_all:
      removed = table.release_all();
      expected = naive.take([](LockOwner, std::uint64_t, const Cell&) { return true; });
      break;
  }
  RC_ASSERT(pieces_of(removed) == expected);
}

/// `polite`: nothing is acquired that conflicts, as the contract says; else anything, since the answers are defined
/// there as well.
bool agrees(bool polite) {
  return rc::check(polite ? "holds that never conflict" : "holds of any kind", [=] {
    LockTable table;
    NaiveTable naive;
    const int steps = *rc::gen::inRange(1, 80);
    for (int i = 0; i < steps; ++i) {
      step(table, naive, polite);
      compare(table, naive);
      ask(table, naive);
    }
  });
}

}  // namespace

TEST_CASE("the lock table answers as a byte map does, with the callers' rule kept") { CHECK(agrees(true)); }
TEST_CASE("the lock table answers as a byte map does, with overlaps of any kind") { CHECK(agrees(false)); }

TEST_CASE("what is acquired is held, and what is released is not, over the whole number line") {
  CHECK(rc::check([](std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d) {
    const auto range_of = [](std::uint64_t x, std::uint64_t y) {
      const std::uint64_t low = std::min(x, y) & ByteRange::kMax;
      const std::uint64_t high = std::max(x, y) & ByteRange::kMax;
      return ByteRange{std::min(low, high), std::max(low, high)};
    };
    const ByteRange taken = range_of(a, b);
    const ByteRange given = range_of(c, d);
    LockTable table;
    table.acquire({taken, Mode::write, LockOwner{1}, HandleId{1}, 1, 1});
    const std::vector<Hold> removed = table.release(LockOwner{1}, given);
    RC_ASSERT(removed.empty() != taken.overlaps(given));
    if (!removed.empty()) RC_ASSERT(removed.front().range == taken.intersect(given));
    RC_ASSERT(!table.conflict(LockOwner{2}, Mode::read, given));
    for (const Demand& left : table.demand(ByteRange::whole())) {
      RC_ASSERT(taken.contains(left.range));
      RC_ASSERT(!left.range.overlaps(given));
    }
  }));
}

}  // namespace latchfs::locktable
