#include "latchfs/protocol/entry_name.hpp"

#include <doctest/doctest.h>

using namespace latchfs;
using namespace latchfs::protocol;

namespace {

const SessionId kSid{"0123456789abcdef0123"};
const SessionId kOther{"ffffffffffffffffffff"};

Claim claim(SessionId sid, Mode mode, ByteRange range, Space space = Space::posix) {
  return Claim{FileId{0x2a}, space, mode, range, Ticket{0x5f}, std::move(sid), Seq{7}};
}

}  // namespace

TEST_CASE("a claim is written in the one way the share knows") {
  CHECK(format(LockEntry{EntryKind::held, claim(kSid, Mode::write, {0x10, 0x1f})}) ==
        "h.2a.pw.10-1f.5f.0123456789abcdef0123.7");
  CHECK(format(LockEntry{EntryKind::queued, claim(kSid, Mode::read, ByteRange::whole(), Space::flock)}) ==
        "q.2a.fr.0-7fffffffffffffff.5f.0123456789abcdef0123.7");
}

TEST_CASE("what is written is read back") {
  const LockEntry entry{EntryKind::cached, claim(kSid, Mode::read, {0, 0})};
  const LockName parsed = parse_lock_name(format(entry));
  REQUIRE(std::holds_alternative<LockEntry>(parsed));
  CHECK(std::get<LockEntry>(parsed) == entry);
}

TEST_CASE("a name that begins as a claim and is none is in everybody's way") {
  const std::string good = "h.2a.pw.10-1f.5f.0123456789abcdef0123.7";
  REQUIRE(std::holds_alternative<LockEntry>(parse_lock_name(good)));
  for (const std::string& bad : {
           std::string("h."),
           std::string("c."),
           good + "0000000000000000",  // seq too big for 64 bits
           good + ".",                 // trailing dot
           good + " ",
           good + std::string(300, '0'),
           std::string("h.02a.pw.10-1f.5f.0123456789abcdef0123.7"),  // leading zero
           std::string("h.2A.pw.10-1f.5f.0123456789abcdef0123.7"),   // capital
           std::string("h.2a.px.10-1f.5f.0123456789abcdef0123.7"),   // unknown mode
           std::string("h.2a.xw.10-1f.5f.0123456789abcdef0123.7"),   // unknown space
           std::string("h.2a.p.10-1f.5f.0123456789abcdef0123.7"),
           std::string("h.2a.pw.1f-10.5f.0123456789abcdef0123.7"),  // backwards
           std::string("h.2a.pw.10-8000000000000000.5f.0123456789abcdef0123.7"),
           std::string("h.2a.fw.10-1f.5f.0123456789abcdef0123.7"),  // flock has no ranges
           std::string("h.2a.pw.101f.5f.0123456789abcdef0123.7"),
           std::string("h.2a.pw.10-1f.5f.0123456789abcdef012.7"),  // short session id
           std::string("h.2a.pw.10-1f.5f.0123456789abcdef0123"),   // no seq
           std::string("h.2a.pw.10-1f.-5f.0123456789abcdef0123.7"),
           std::string("h.2a.pw.10-1f.+5f.0123456789abcdef0123.7"),
           std::string("h.2a.pw.10-1f.0x5f.0123456789abcdef0123.7"),
           std::string("h.2a.pw.10-1f..0123456789abcdef0123.7"),
           std::string("c.2a.pw.10-1f.5f.0123456789abcdef0123.7.8"),
       }) {
    CAPTURE(bad);
    CHECK(std::holds_alternative<UnknownClaim>(parse_lock_name(bad)));
  }
}

TEST_CASE("names of others are ignored, and so is a waiter that cannot be read") {
  for (const char* name : {"", ".", "h", "c", ".nfs0000000001", "@eaDir", ".DS_Store", "H.2a", "hh.2a", "t.format.1",
                           "q.", "q.2a.px.0-0.1.0123456789abcdef0123.7", "x.2a.pw.10-1f.5f.0123456789abcdef0123.7"}) {
    CAPTURE(name);
    CHECK(std::holds_alternative<ForeignName>(parse_lock_name(name)));
  }
}

TEST_CASE("beat names") {
  CHECK(format(BeatEntry{kSid, BeatNumber{0}}) == "0123456789abcdef0123.0");
  CHECK(format(BeatEntry{kSid, BeatNumber{255}}) == "0123456789abcdef0123.ff");
  CHECK(format(BeatEntry{kSid, std::nullopt}) == "0123456789abcdef0123.dead");
  CHECK(parse_beat_name("0123456789abcdef0123.ff") == BeatEntry{kSid, BeatNumber{255}});
  CHECK(parse_beat_name("0123456789abcdef0123.dead") == BeatEntry{kSid, std::nullopt});
  for (const char* bad :
       {"", "0123456789abcdef0123", "0123456789abcdef0123.", "0123456789abcdef0123.00", "0123456789abcdef0123.DEAD",
        "0123456789abcdef0123.dead.", "0123456789abcdef012.1", "0123456789abcdef01234.1", "0123456789ABCDEF0123.1",
        "0123456789abcdef0123.1.2", "0123456789abcdef0123.10000000000000000", ".nfs123.4"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_beat_name(bad).has_value());
  }
}

TEST_CASE("no beat is ever numbered so that it reads as death") {
  CHECK(next_beat(BeatNumber{0}) == BeatNumber{1});
  CHECK(next_beat(BeatNumber{0xdeac}) == BeatNumber{0xdeae});
  CHECK(next_beat(BeatNumber{0xdeae}) == BeatNumber{0xdeaf});
  // Three days of beats, as they come.
  BeatNumber beat{0};
  for (int i = 0; i < 60'000; ++i) {
    beat = next_beat(beat);
    const auto parsed = parse_beat_name(format(BeatEntry{kSid, beat}));
    REQUIRE(parsed.has_value());
    REQUIRE(parsed->beat == beat);
  }
}

TEST_CASE("session names are exactly 20 lower-case hex digits") {
  CHECK(parse_session_name("0123456789abcdef0123") == kSid);
  for (const char* bad : {"", "0123456789abcdef012", "0123456789abcdef01234", "0123456789abcdef012G",
                          "0123456789ABCDEF0123", "0123456789abcdef012.", "t.0123456789abcdef01"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_session_name(bad).has_value());
  }
}

TEST_CASE("the folder of a file is fixed for all hosts and all time") {
  // XXH64 of "0", "1", "2a", "deadbeef", "ffffffffffffffff", from an implementation of its own.
  CHECK(lock_folder(FileId{0}) == "633");
  CHECK(lock_folder(FileId{1}) == "b7b");
  CHECK(lock_folder(FileId{0x2a}) == "fbe");
  CHECK(lock_folder(FileId{0xdeadbeef}) == "674");
  CHECK(lock_folder(FileId{~0ULL}) == "e9f");
}

TEST_CASE("what conflicts") {
  const Claim mine = claim(kSid, Mode::write, {10, 20});
  CHECK(conflicts(mine, claim(kOther, Mode::write, {20, 30})));
  CHECK(conflicts(mine, claim(kOther, Mode::read, {0, 10})));
  CHECK_FALSE(conflicts(mine, claim(kOther, Mode::write, {21, 30})));
  CHECK_FALSE(conflicts(mine, claim(kSid, Mode::write, {10, 20})));
  CHECK_FALSE(conflicts(mine, claim(kOther, Mode::write, ByteRange::whole(), Space::flock)));
  CHECK_FALSE(conflicts(claim(kSid, Mode::read, {10, 20}), claim(kOther, Mode::read, {10, 20})));
  Claim elsewhere = claim(kOther, Mode::write, {10, 20});
  elsewhere.file = FileId{0x2b};
  CHECK_FALSE(conflicts(mine, elsewhere));
}
