#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "latchfs/protocol/documents.hpp"
#include "latchfs/protocol/entry_name.hpp"

using namespace latchfs;
using namespace latchfs::protocol;

namespace {

/// Numbers of all lengths, not only big ones.
rc::Gen<std::uint64_t> any_number() {
  return rc::gen::map(rc::gen::pair(rc::gen::arbitrary<std::uint64_t>(), rc::gen::inRange(0, 64)),
                      [](const std::pair<std::uint64_t, int>& p) { return p.first >> p.second; });
}

rc::Gen<SessionId> any_sid() {
  return rc::gen::map(rc::gen::container<std::string>(20, rc::gen::elementOf(std::string("0123456789abcdef"))),
                      [](std::string text) { return SessionId{std::move(text)}; });
}

Claim any_claim() {
  Claim c;
  c.file = FileId{*any_number()};
  c.space = *rc::gen::element(Space::posix, Space::flock);
  c.mode = *rc::gen::element(Mode::read, Mode::write);
  const std::uint64_t a = *any_number() & ByteRange::kMax;
  const std::uint64_t b = *any_number() & ByteRange::kMax;
  c.range = c.space == Space::flock ? ByteRange::whole() : ByteRange{std::min(a, b), std::max(a, b)};
  c.ticket = Ticket{*any_number()};
  c.sid = *any_sid();
  c.seq = Seq{*any_number()};
  return c;
}

LockEntry any_entry() {
  return {*rc::gen::element(EntryKind::held, EntryKind::cached, EntryKind::queued), any_claim()};
}

/// One small change to a good name, so that the strict spots are hit often.
std::string mutated(std::string name) {
  static const std::string kAlphabet = "0123456789abcdefpfrwhcqABFGxz.-+ /\n";
  const auto at = *rc::gen::inRange<std::size_t>(0, name.size());
  const char c = *rc::gen::elementOf(kAlphabet);
  switch (*rc::gen::inRange(0, 4)) {
    case 0: name[at] = c; break;
    case 1: name.insert(at, 1, c); break;
    case 2: name.erase(at, 1); break;
    default: name.resize(at); break;
  }
  return name;
}

void check_strict(const std::string& name) {
  const LockName parsed = parse_lock_name(name);
  if (const auto* entry = std::get_if<LockEntry>(&parsed)) RC_ASSERT(format(*entry) == name);
  const bool looks_like_claim = name.rfind("h.", 0) == 0 || name.rfind("c.", 0) == 0;
  if (looks_like_claim) RC_ASSERT_FALSE(std::holds_alternative<ForeignName>(parsed));
}

}  // namespace

TEST_CASE("every claim is read back as it was written") {
  CHECK(rc::check([] {
    const LockEntry entry = any_entry();
    const std::string name = format(entry);
    RC_ASSERT(name.size() <= 255U);
    RC_ASSERT(name.back() != '.');
    RC_ASSERT(name.find_first_not_of("0123456789abcdefhpqrw.-") == std::string::npos);
    const LockName parsed = parse_lock_name(name);
    RC_ASSERT(std::holds_alternative<LockEntry>(parsed));
    RC_ASSERT(std::get<LockEntry>(parsed) == entry);
  }));
}

TEST_CASE("a name that is read has one spelling only") {
  CHECK(rc::check([] {
    std::string name = format(any_entry());
    const int changes = *rc::gen::inRange(1, 4);
    for (int i = 0; i < changes && !name.empty(); ++i) name = mutated(name);
    check_strict(name);
  }));
  CHECK(rc::check([](const std::string& any) { check_strict(any); }));
}

TEST_CASE("beat and session names have one spelling only") {
  CHECK(rc::check([] {
    const BeatEntry entry{*any_sid(), next_beat(BeatNumber{*any_number() >> 1})};
    RC_ASSERT(parse_beat_name(format(entry)) == entry);
    const std::string name = mutated(format(entry));
    if (const auto parsed = parse_beat_name(name)) RC_ASSERT(format(*parsed) == name);
    if (const auto sid = parse_session_name(name)) RC_ASSERT(sid->text == name);
  }));
}

TEST_CASE("conflicts are mutual, and never within a session") {
  CHECK(rc::check([] {
    Claim a = any_claim();
    Claim b = any_claim();
    b.file = a.file;
    RC_ASSERT(conflicts(a, b) == conflicts(b, a));
    b.sid = a.sid;
    RC_ASSERT_FALSE(conflicts(a, b));
  }));
}

TEST_CASE("documents are read back as they were written, and any bytes give an answer") {
  CHECK(rc::check([] {
    FormatDocument doc;
    doc.share_uuid = *rc::gen::container<std::string>(32, rc::gen::elementOf(std::string("0123456789abcdef")));
    const int beat = *rc::gen::inRange(100, 100'000);
    const int fence = 3 * beat + *rc::gen::inRange(0, 100'000);
    const int brk = fence + fence / 4 + 1 + *rc::gen::inRange(0, 100'000);
    using ms = std::chrono::milliseconds;
    doc.times = {ms(beat), ms(fence), ms(brk)};
    doc.own_inode = *any_number();
    RC_ASSERT(parse_format(to_text(doc)) == doc);
    (void)parse_format(mutated(to_text(doc)) + "\n");
  }));
  CHECK(rc::check([](const std::string& any) {
    (void)parse_format(any + "\n");
    (void)parse_session_info(any);
  }));
  CHECK(rc::check([] {
    SessionInfo info;
    info.host = *rc::gen::container<std::string>(rc::gen::inRange<char>(0, 127));
    info.mountpoint = *rc::gen::container<std::string>(rc::gen::inRange<char>(0, 127));
    info.pid = *any_number();
    info.pid_start = *any_number();
    info.started_us = *rc::gen::arbitrary<std::int64_t>();
    RC_ASSERT(parse_session_info(to_text(info)) == info);
  }));
}
