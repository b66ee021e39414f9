#include "latchfs/protocol/peer_table.hpp"

#include <doctest/doctest.h>

using namespace latchfs;
using namespace latchfs::protocol;
using namespace std::chrono_literals;

namespace {

const SessionId kSelf{"00000000000000000000"};
const SessionId kA{"aaaaaaaaaaaaaaaaaaaa"};
const SessionId kB{"bbbbbbbbbbbbbbbbbbbb"};
const LeaseTimes kTimes{1s, 8s, 10s};

BeatEntry beat(const SessionId& sid, std::uint64_t n) { return {sid, BeatNumber{n}}; }
BeatEntry dead(const SessionId& sid) { return {sid, std::nullopt}; }
ObserveTime at(Nanos t) { return ObserveTime(100s + t); }

/// Feeds the same listing once a second.
void feed_until(PeerTable& table, const std::vector<BeatEntry>& beats, int from, int to) {
  for (int t = from; t <= to; ++t) table.feed_beats(beats, at(std::chrono::seconds(t)));
}

}  // namespace

TEST_CASE("a peer may be broken after break_after of silence, and not before") {
  PeerTable table(kSelf, kTimes);
  feed_until(table, {beat(kA, 3)}, 0, 9);
  CHECK(table.breakable().empty());
  table.feed_beats({beat(kA, 3)}, at(10s));
  REQUIRE(table.breakable().size() == 1);
  CHECK(table.breakable()[0].sid == kA);
  CHECK(table.breakable()[0].beat == BeatNumber{3});
  CHECK_FALSE(table.is_void(kA));
}

TEST_CASE("a beat starts the count anew, also one that goes back") {
  PeerTable table(kSelf, kTimes);
  feed_until(table, {beat(kA, 3)}, 0, 9);
  table.feed_beats({beat(kA, 4)}, at(10s));
  CHECK(table.breakable().empty());
  feed_until(table, {beat(kA, 4)}, 11, 19);
  CHECK(table.breakable().empty());
  table.feed_beats({beat(kA, 2)}, at(20s));
  CHECK(table.breakable().empty());
  CHECK(table.last_beat(kA) == BeatNumber{2});
  feed_until(table, {beat(kA, 2)}, 21, 30);
  REQUIRE(table.breakable().size() == 1);
  CHECK(table.breakable()[0].beat == BeatNumber{2});
}

TEST_CASE("a long gap counts as two beats: nobody is broken because the server was away") {
  PeerTable table(kSelf, kTimes);
  table.feed_beats({beat(kA, 3)}, at(0s));
  table.feed_beats({beat(kA, 3)}, at(1h));
  CHECK(table.breakable().empty());
  CHECK(table.is_late(kA));
  // Four more gaps of two beats make ten seconds.
  for (int i = 2; i <= 4; ++i) table.feed_beats({beat(kA, 3)}, at(i * 1h));
  CHECK(table.breakable().empty());
  table.feed_beats({beat(kA, 3)}, at(5h));
  CHECK(table.breakable().size() == 1);
}

TEST_CASE("time never counts backwards") {
  PeerTable table(kSelf, kTimes);
  table.feed_beats({beat(kA, 3)}, at(10s));
  for (int i = 0; i < 30; ++i) table.feed_beats({beat(kA, 3)}, at(i % 2 == 0 ? 5s : 10s));
  CHECK(table.breakable().empty());
}

TEST_CASE("not in one listing: not dead, not breakable until it shows again, and the silence goes on") {
  PeerTable table(kSelf, kTimes);
  feed_until(table, {beat(kA, 3)}, 0, 9);
  table.feed_beats({}, at(10s));
  CHECK(table.breakable().empty());
  CHECK(table.is_known(kA));
  table.feed_beats({beat(kA, 3)}, at(11s));
  CHECK(table.breakable().size() == 1);
}

TEST_CASE("of two beats the higher counts, in any order") {
  PeerTable table(kSelf, kTimes);
  table.feed_beats({beat(kA, 0x10), beat(kA, 9)}, at(0s));
  CHECK(table.last_beat(kA) == BeatNumber{0x10});
  table.feed_beats({beat(kA, 9), beat(kA, 0x10)}, at(1s));
  CHECK(table.last_beat(kA) == BeatNumber{0x10});
}

TEST_CASE("dead is dead") {
  PeerTable table(kSelf, kTimes);
  table.feed_beats({beat(kA, 3), dead(kA), beat(kB, 1)}, at(0s));
  CHECK(table.is_void(kA));
  CHECK_FALSE(table.is_known(kA));
  CHECK_FALSE(table.last_beat(kA).has_value());
  CHECK(table.dead() == std::vector<SessionId>{kA});
  CHECK(table.live() == std::vector<SessionId>{kB});
  table.feed_beats({beat(kA, 4), beat(kB, 1)}, at(1s));
  CHECK(table.is_void(kA));
  feed_until(table, {beat(kA, 4), beat(kB, 2)}, 2, 12);
  CHECK(table.breakable().size() == 1);
  CHECK(table.breakable()[0].sid == kB);
}

TEST_CASE("gone from sessions/ is gone for good, and what is left in beats/ is still broken") {
  PeerTable table(kSelf, kTimes);
  table.feed_beats({beat(kA, 3), beat(kB, 1)}, at(0s));
  table.feed_sessions({kSelf, kA, kB});
  CHECK_FALSE(table.wants_sessions());
  table.feed_beats({beat(kB, 2)}, at(1s));
  CHECK(table.wants_sessions());
  table.feed_sessions({kSelf, kB});
  CHECK(table.is_void(kA));
  CHECK(table.live() == std::vector<SessionId>{kB});
  CHECK(table.dead().empty());

  table.feed_sessions({kSelf});  // kB has a beat and no session any more
  CHECK(table.is_void(kB));
  feed_until(table, {beat(kB, 2)}, 2, 11);
  REQUIRE(table.breakable().size() == 1);
  CHECK(table.breakable()[0].sid == kB);
  table.mark_dead(kB);
  CHECK(table.dead() == std::vector<SessionId>{kB});
  table.feed_beats({}, at(12s));
  table.feed_sessions({kSelf});
  CHECK(table.dead().empty());
  CHECK(table.is_void(kB));
}

TEST_CASE("a session that is only just opening is not gone") {
  PeerTable table(kSelf, kTimes);
  table.feed_beats({beat(kA, 0)}, at(0s));
  table.feed_sessions({kSelf});  // beats/ comes before sessions/
  CHECK_FALSE(table.is_void(kA));
  CHECK(table.is_known(kA));
  CHECK(table.wants_sessions());
  table.feed_beats({beat(kA, 1)}, at(1s));
  table.feed_sessions({kSelf, kA});
  CHECK(table.is_known(kA));
  CHECK_FALSE(table.wants_sessions());
}

TEST_CASE("one that never opened whole and went away again is gone") {
  PeerTable table(kSelf, kTimes);
  table.feed_beats({beat(kA, 0)}, at(0s));
  table.feed_sessions({kSelf});
  table.feed_beats({}, at(1s));
  table.feed_sessions({kSelf});
  CHECK(table.is_void(kA));
  CHECK_FALSE(table.wants_sessions());
}

TEST_CASE("a sweep that stopped half way is taken up: `.dead` stands, the session name is gone") {
  PeerTable table(kSelf, kTimes);
  table.feed_beats({beat(kA, 0)}, at(0s));
  table.feed_sessions({kSelf, kA});
  table.feed_beats({dead(kA)}, at(1s));
  table.feed_sessions({kSelf});
  CHECK(table.dead() == std::vector<SessionId>{kA});
}

TEST_CASE("the own session is nobody's peer, and may become another one") {
  PeerTable table(kSelf, kTimes);
  feed_until(table, {beat(kSelf, 3), dead(kSelf)}, 0, 20);
  table.feed_sessions({});
  CHECK_FALSE(table.is_void(kSelf));
  CHECK_FALSE(table.is_known(kSelf));
  CHECK(table.breakable().empty());
  CHECK(table.dead().empty());
  CHECK_FALSE(table.wants_sessions());
  table.mark_dead(kSelf);
  CHECK_FALSE(table.is_void(kSelf));

  table.set_self(kB);
  table.mark_dead(kSelf);
  CHECK(table.is_void(kSelf));
  table.feed_beats({beat(kB, 1)}, at(21s));
  CHECK_FALSE(table.is_known(kB));
}

TEST_CASE("late after two beats without one") {
  PeerTable table(kSelf, kTimes);
  feed_until(table, {beat(kA, 3)}, 0, 1);
  CHECK_FALSE(table.is_late(kA));
  table.feed_beats({beat(kA, 3)}, at(2s));
  CHECK(table.is_late(kA));
  table.feed_beats({beat(kA, 4)}, at(3s));
  CHECK_FALSE(table.is_late(kA));
  CHECK_FALSE(table.is_late(kB));
}
