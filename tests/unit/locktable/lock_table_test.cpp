#include "latchfs/locktable/lock_table.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace latchfs;
using namespace latchfs::locktable;

namespace {

constexpr LockOwner kAnn{1};
constexpr LockOwner kBob{2};
constexpr LockOwner kCid{3};
constexpr HandleId kOne{11};
constexpr HandleId kTwo{12};
constexpr auto kRead = Mode::read;
constexpr auto kWrite = Mode::write;

Hold hold(LockOwner owner, Mode mode, std::uint64_t first, std::uint64_t last, HandleId handle = kOne) {
  return {{first, last}, mode, owner, handle, static_cast<std::int64_t>(owner.value), 5};
}

/// A table that is filled the way a caller must: no hold that conflicts.
LockTable table_of(const std::vector<Hold>& holds) {
  LockTable table;
  for (const Hold& h : holds) {
    REQUIRE_FALSE(table.conflict(h.owner, h.mode, h.range));
    table.acquire(h);
  }
  return table;
}

}  // namespace

TEST_CASE("an empty table holds, hinders and gives back nothing") {
  LockTable table;
  CHECK(table.empty());
  CHECK(table.size() == 0);
  CHECK_FALSE(table.conflict(kAnn, kWrite, ByteRange::whole()));
  CHECK_FALSE(table.holds(kAnn, kRead, {0, 0}));
  CHECK(table.release(kAnn, ByteRange::whole()).empty());
  CHECK(table.release_owner(kAnn).empty());
  CHECK(table.release_handle(kOne).empty());
  CHECK(table.release_all().empty());
  CHECK(table.demand(ByteRange::whole()).empty());
  CHECK(table.holds().empty());
  CHECK(table.count(kOne) == 0);
}

TEST_CASE("readers share bytes and a writer does not") {
  const LockTable table = table_of({hold(kAnn, kRead, 10, 19), hold(kBob, kRead, 15, 30)});
  CHECK_FALSE(table.conflict(kCid, kRead, ByteRange::whole()));
  CHECK(table.conflict(kCid, kWrite, {18, 40}) == hold(kAnn, kRead, 10, 19));
  CHECK(table.conflict(kAnn, kWrite, {0, 40}) == hold(kBob, kRead, 15, 30));
  CHECK_FALSE(table.conflict(kAnn, kWrite, {10, 14}));
  CHECK_FALSE(table.conflict(kCid, kWrite, {0, 9}));
  CHECK_FALSE(table.conflict(kCid, kWrite, {31, ByteRange::kMax}));
}

TEST_CASE("the conflict told is the lowest one, and a reader looks past readers") {
  const LockTable table = table_of({hold(kAnn, kRead, 0, ByteRange::kMax - 100), hold(kBob, kRead, 5, 9),
                                    hold(kBob, kWrite, ByteRange::kMax - 9, ByteRange::kMax)});
  CHECK(table.conflict(kCid, kWrite, {7, ByteRange::kMax}) == hold(kAnn, kRead, 0, ByteRange::kMax - 100));
  CHECK(table.conflict(kAnn, kWrite, {7, ByteRange::kMax}) == hold(kBob, kRead, 5, 9));
  CHECK(table.conflict(kCid, kRead, {7, ByteRange::kMax}) == hold(kBob, kWrite, ByteRange::kMax - 9, ByteRange::kMax));
  CHECK_FALSE(table.conflict(kBob, kRead, ByteRange::whole()));
}

TEST_CASE("a hold in the middle splits an owner's older one and a matching one mends it") {
  LockTable table = table_of({hold(kAnn, kRead, 0, 99)});
  table.acquire(hold(kAnn, kWrite, 40, 59));
  CHECK(table.holds() == std::vector{hold(kAnn, kRead, 0, 39), hold(kAnn, kWrite, 40, 59), hold(kAnn, kRead, 60, 99)});
  CHECK(table.holds(kAnn, kRead, {0, 99}));
  CHECK(table.holds(kAnn, kWrite, {45, 59}));
  CHECK_FALSE(table.holds(kAnn, kWrite, {45, 60}));
  CHECK_FALSE(table.holds(kAnn, kRead, {0, 100}));
  CHECK_FALSE(table.holds(kBob, kRead, {0, 0}));
  table.acquire(hold(kAnn, kRead, 40, 59));
  CHECK(table.holds() == std::vector{hold(kAnn, kRead, 0, 99)});
}

TEST_CASE("neighbours that touch merge, those with a gap, another mode or another handle do not") {
  LockTable table = table_of({hold(kAnn, kRead, 0, 9), hold(kAnn, kRead, 20, 29)});
  CHECK(table.size() == 2);
  table.acquire(hold(kAnn, kRead, 10, 19));
  CHECK(table.holds() == std::vector{hold(kAnn, kRead, 0, 29)});
  table.acquire(hold(kAnn, kRead, 31, 40));
  table.acquire(hold(kAnn, kWrite, 41, 50));
  table.acquire(hold(kAnn, kWrite, 51, 60, kTwo));
  table.acquire(hold(kBob, kRead, 30, 30));
  CHECK(table.size() == 5);
}

TEST_CASE("a merged stretch is as old as its oldest part and belongs to the newest pid") {
  LockTable table;
  table.acquire({{0, 9}, kRead, kAnn, kOne, 100, 7});
  table.acquire({{20, 29}, kRead, kAnn, kOne, 101, 3});
  table.acquire({{5, 19}, kRead, kAnn, kOne, 102, 9});
  CHECK(table.holds() == std::vector{Hold{{0, 29}, kRead, kAnn, kOne, 102, 3}});
  table.acquire({{0, 29}, kWrite, kAnn, kOne, 103, 11});  // another mode begins anew
  CHECK(table.holds() == std::vector{Hold{{0, 29}, kWrite, kAnn, kOne, 103, 11}});
}

TEST_CASE("an unlock in the middle gives back that piece and leaves both ends") {
  LockTable table = table_of({hold(kAnn, kWrite, 0, ByteRange::kMax)});
  CHECK(table.release(kAnn, {100, 199}) == std::vector{hold(kAnn, kWrite, 100, 199)});
  CHECK(table.holds() == std::vector{hold(kAnn, kWrite, 0, 99), hold(kAnn, kWrite, 200, ByteRange::kMax)});
  CHECK(table.release(kAnn, {100, 199}).empty());
  CHECK(table.release(kAnn, {50, 250}) == std::vector{hold(kAnn, kWrite, 50, 99), hold(kAnn, kWrite, 200, 250)});
  CHECK(table.release(kBob, ByteRange::whole()).empty());
  CHECK(table.release(kAnn, {ByteRange::kMax, ByteRange::kMax}).size() == 1);
  CHECK(table.holds().back().range.last == ByteRange::kMax - 1);
}

TEST_CASE("an upgrade and a downgrade replace the mode of the same bytes") {
  LockTable table = table_of({hold(kAnn, kRead, 0, 9), hold(kBob, kRead, 0, 9)});
  CHECK(table.conflict(kAnn, kWrite, {0, 9}) == hold(kBob, kRead, 0, 9));
  table.release_owner(kBob);
  CHECK_FALSE(table.conflict(kAnn, kWrite, {0, 9}));
  table.acquire(hold(kAnn, kWrite, 0, 9));
  CHECK(table.conflict(kBob, kRead, {9, 9}) == hold(kAnn, kWrite, 0, 9));
  table.acquire(hold(kAnn, kRead, 0, 9));
  CHECK_FALSE(table.conflict(kBob, kRead, {9, 9}));
  CHECK(table.size() == 1);
}

TEST_CASE("flock conversions are whole-file replacements") {
  LockTable table = table_of({hold(kAnn, kRead, 0, ByteRange::kMax), hold(kBob, kRead, 0, ByteRange::kMax)});
  CHECK(table.conflict(kAnn, kWrite, ByteRange::whole()));
  CHECK(table.release(kBob, ByteRange::whole()).size() == 1);
  table.acquire(hold(kAnn, kWrite, 0, ByteRange::kMax));
  CHECK(table.holds() == std::vector{hold(kAnn, kWrite, 0, ByteRange::kMax)});
  table.acquire(hold(kAnn, kRead, 0, ByteRange::kMax));
  CHECK(table.holds() == std::vector{hold(kAnn, kRead, 0, ByteRange::kMax)});
}

TEST_CASE("bytes belong to the handle through which they were last acquired") {
  LockTable table = table_of({hold(kAnn, kWrite, 0, 99, kOne)});
  table.acquire(hold(kAnn, kWrite, 40, 59, kTwo));
  CHECK(table.count(kOne) == 2);
  CHECK(table.count(kTwo) == 1);
  CHECK(table.release_handle(kOne) == std::vector{hold(kAnn, kWrite, 0, 39, kOne), hold(kAnn, kWrite, 60, 99, kOne)});
  CHECK(table.holds() == std::vector{hold(kAnn, kWrite, 40, 59, kTwo)});
  CHECK(table.count(kOne) == 0);
  table.acquire(hold(kAnn, kWrite, 0, 99, kOne));
  CHECK(table.count(kTwo) == 0);
  CHECK(table.release_handle(kTwo).empty());
  CHECK(table.size() == 1);
}

TEST_CASE("a handle can carry holds of several owners, given back in order of bytes") {
  LockTable table = table_of({hold(kBob, kRead, 0, 9), hold(kAnn, kRead, 5, 20), hold(kBob, kRead, 30, 40)});
  table.acquire(hold(kCid, kRead, 7, 8, kTwo));
  CHECK(table.release_handle(kOne) ==
        std::vector{hold(kBob, kRead, 0, 9), hold(kAnn, kRead, 5, 20), hold(kBob, kRead, 30, 40)});
  CHECK(table.release_all() == std::vector{hold(kCid, kRead, 7, 8, kTwo)});
  CHECK(table.empty());
  table.acquire(hold(kAnn, kWrite, 0, 0));
  CHECK(table.size() == 1);
}

TEST_CASE("demand is the strongest mode of all owners, clipped to the window") {
  const LockTable table = table_of({hold(kAnn, kRead, 0, 49), hold(kBob, kRead, 10, 99), hold(kAnn, kWrite, 100, 119),
                                    hold(kCid, kWrite, 120, 129), hold(kCid, kRead, 200, ByteRange::kMax)});
  CHECK(table.demand(ByteRange::whole()) ==
        std::vector{Demand{{0, 99}, kRead}, Demand{{100, 129}, kWrite}, Demand{{200, ByteRange::kMax}, kRead}});
  CHECK(table.demand({20, 105}) == std::vector{Demand{{20, 99}, kRead}, Demand{{100, 105}, kWrite}});
  CHECK(table.demand({130, 199}).empty());
  CHECK(table.demand({ByteRange::kMax, ByteRange::kMax}) ==
        std::vector{Demand{{ByteRange::kMax, ByteRange::kMax}, kRead}});
}

TEST_CASE("bytes under a reader and a writer count as write") {
  LockTable table;  // a caller that converts may pass through this state
  table.acquire(hold(kAnn, kRead, 0, 99));
  table.acquire(hold(kBob, kWrite, 20, 29));
  table.acquire(hold(kBob, kWrite, 90, 110));
  CHECK(table.demand(ByteRange::whole()) == std::vector{Demand{{0, 19}, kRead}, Demand{{20, 29}, kWrite},
                                                        Demand{{30, 89}, kRead}, Demand{{90, 110}, kWrite}});
}

TEST_CASE("a crowd of readers of one range is one stretch of demand and one conflict") {
  LockTable table;
  for (std::uint64_t i = 1; i <= 20000; ++i) table.acquire(hold(LockOwner{i}, kRead, 0, ByteRange::kMax));
  for (int i = 0; i < 20000; ++i) {  // ends in time only where the readers are not walked
    REQUIRE(table.demand(ByteRange::whole()).size() == 1);
    REQUIRE_FALSE(table.conflict(LockOwner{0}, kRead, ByteRange::whole()));
  }
  CHECK(table.conflict(LockOwner{1}, kWrite, {7, 7})->owner == LockOwner{2});
  for (std::uint64_t i = 2; i <= 20000; ++i) REQUIRE(table.release_owner(LockOwner{i}).size() == 1);
  CHECK_FALSE(table.conflict(LockOwner{1}, kWrite, ByteRange::whole()));
}

TEST_CASE("an owner opposes a claim where it holds a common byte and one of the two writes") {
  const LockTable table = table_of({hold(kAnn, kRead, 0, 9), hold(kAnn, kWrite, 20, 29), hold(kBob, kRead, 0, 19)});
  CHECK(table.opposes(kAnn, kWrite, {9, 15}));
  CHECK(table.opposes(kAnn, kRead, {10, 20}));
  CHECK(table.opposes(kAnn, kRead, ByteRange::whole()));
  CHECK_FALSE(table.opposes(kAnn, kRead, {0, 19}));
  CHECK_FALSE(table.opposes(kAnn, kWrite, {10, 19}));
  CHECK_FALSE(table.opposes(kBob, kRead, ByteRange::whole()));
  CHECK_FALSE(table.opposes(kCid, kWrite, ByteRange::whole()));
}

TEST_CASE("acquire tells which older pieces of the owner it replaced") {
  LockTable table =
      table_of({hold(kAnn, kRead, 0, 9, kOne), hold(kAnn, kWrite, 20, 29, kTwo), hold(kBob, kRead, 0, 5)});
  CHECK(table.acquire(hold(kAnn, kRead, 10, 19)).empty());
  CHECK(table.acquire(hold(kAnn, kRead, 5, 24, kTwo)) ==
        std::vector{hold(kAnn, kRead, 5, 19, kOne), hold(kAnn, kWrite, 20, 24, kTwo)});
  CHECK(table.count(kOne) == 2);
}

TEST_CASE("a table can be moved") {
  LockTable table = table_of({hold(kAnn, kWrite, 1, 2)});
  LockTable other = std::move(table);
  CHECK(other.holds() == std::vector{hold(kAnn, kWrite, 1, 2)});
  table = LockTable();
  CHECK(table.empty());
}
