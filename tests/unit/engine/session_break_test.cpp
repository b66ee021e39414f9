#include <doctest/doctest.h>

#include <algorithm>

#include "latchfs/protocol/entry_name.hpp"
#include "support/session_host.hpp"

// How one daemon breaks another: after silence, not before, and only that one.
using namespace latchfs;
using namespace latchfs::testing;
using namespace std::chrono_literals;

namespace {

bool has(const FakeDisk& disk, const std::string& part) {
  const auto paths = disk.paths();
  return std::any_of(paths.begin(), paths.end(),
                     [&](const std::string& p) { return p.find(part) != std::string::npos; });
}

std::string claim_of(const SessionId& sid, char kind = 'h') {
  return "locks/0a3/" + std::string(1, kind) + ".2a.pw.0-7fffffffffffffff.5." + sid.text + ".1";
}

/// Moves the observer's clock on in steps that all count, each seen by a listing of its own.
bool let_pass(SessionHost& observer, Nanos time) {
  constexpr Nanos kStep = 100ms;
  for (Nanos gone{0}; gone < time; gone += kStep) {
    observer.clock.advance(std::min(kStep, time - gone));
    if (!observer.beats(2)) return false;
  }
  return true;
}

struct Pair {
  FakeDisk disk;
  std::unique_ptr<SessionHost> a, b;
  SessionId a_sid, b_sid;

  Pair() {
    lay_out(disk);
    REQUIRE(disk.make("locks/0a3", true, "") == 0);
    a = std::make_unique<SessionHost>(disk, "host-a");
    b = std::make_unique<SessionHost>(disk, "host-b");
    REQUIRE(a->start().has_value());
    REQUIRE(b->start().has_value());
    a_sid = a->sid();
    b_sid = b->sid();
    REQUIRE(eventually([&] { return a->keeper.is_known(b_sid) && b->keeper.is_known(a_sid); }));
  }
  /// A's calls hang from now on, and B has listed what A left.
  void hang_a() {
    a->share.freeze();
    REQUIRE(eventually([&] { return a->share.hanging() >= 1; }));
    REQUIRE(b->beats(2));
  }
};

}  // namespace

TEST_CASE("a silent peer is broken after break_after, not before; it finds out and comes back as another") {
  Pair p;
  REQUIRE(p.disk.make(claim_of(p.a_sid), true, "") == 0);
  REQUIRE(p.disk.make(claim_of(p.a_sid, 'q'), false, "") == 0);
  REQUIRE(p.disk.make(claim_of(p.b_sid), true, "") == 0);
  REQUIRE(p.disk.make("locks/0a3/h.unreadable", true, "") == 0);
  REQUIRE(p.disk.make("inbox/" + p.a_sid.text + "/r.2a." + p.b_sid.text, true, "") == 0);
  p.hang_a();

  REQUIRE(let_pass(*p.b, 600ms));
  CHECK_FALSE(has(p.disk, p.a_sid.text + ".dead"));
  CHECK_FALSE(p.b->keeper.is_void(p.a_sid));
  CHECK(p.b->keeper.is_late(p.a_sid));
  CHECK(p.b->told.count("dead") == 0);

  REQUIRE(let_pass(*p.b, 100ms));
  REQUIRE(eventually([&] { return p.b->told.dead(p.a_sid); }));
  CHECK(p.b->keeper.is_void(p.a_sid));
  CHECK(p.b->events.count(Level::warning, "was broken: no beat for") == 1);
  REQUIRE(eventually([&] { return !has(p.disk, p.a_sid.text); }));
  CHECK(p.disk.exists(claim_of(p.b_sid)));
  CHECK(p.disk.exists("locks/0a3/h.unreadable"));
  CHECK(p.b->told.count("dead") == 1);

  // A publishes a claim as it wakes up, before it knows: void for B, and taken away by A itself.
  REQUIRE(p.disk.make(claim_of(p.a_sid), true, "") == 0);
  CHECK(p.a->told.count("lost") == 0);
  p.a->share.thaw();
  REQUIRE(eventually([&] { return p.a->told.count("joined") == 2; }));
  CHECK(p.a->told.count("lost") == 1);
  CHECK(p.a->sid() != p.a_sid);
  REQUIRE(eventually([&] { return !has(p.disk, p.a_sid.text); }));
  CHECK(p.b->sid() == p.b_sid);
  CHECK(p.b->told.count("lost") == 0);
  REQUIRE(eventually([&] { return p.b->keeper.is_known(p.a->sid()); }));
}

TEST_CASE("one beat in between starts the count anew") {
  Pair p;
  p.hang_a();
  REQUIRE(let_pass(*p.b, 600ms));
  p.a->share.thaw();
  REQUIRE(p.a->beats(2));
  p.hang_a();
  REQUIRE(let_pass(*p.b, 600ms));
  CHECK_FALSE(p.b->keeper.is_void(p.a_sid));
  CHECK(p.a->told.count("lost") == 0);
}

TEST_CASE("a long gap between two listings breaks nobody") {
  Pair p;
  p.hang_a();
  for (int i = 0; i < 3; ++i) {
    p.b->clock.advance(1h);
    REQUIRE(p.b->beats(3));
  }
  CHECK_FALSE(p.b->keeper.is_void(p.a_sid));
  p.b->clock.advance(1h);
  REQUIRE(eventually([&] { return p.b->told.dead(p.a_sid); }));
}

TEST_CASE("who has no valid lease breaks nobody") {
  Pair p;
  p.hang_a();
  // B's own lease runs out during each of its listings.
  p.b->share.set_hook([&](const FakeShare::Call& call) {
    if (call.op == "list" && call.dir == "beats") p.b->clock.advance_lease(1s);
    return FakeShare::Fault{};
  });
  REQUIRE(let_pass(*p.b, 1500ms));
  CHECK_FALSE(has(p.disk, p.a_sid.text + ".dead"));
  p.b->share.set_hook({});
  REQUIRE(eventually([&] { return p.b->told.dead(p.a_sid); }));
}

TEST_CASE("a break that comes too late for the beat changes nothing") {
  Pair p;
  p.hang_a();
  // A's beat moves on between B's listing and B's rename.
  std::atomic<bool> moved{false};
  std::string from, to;
  p.b->share.set_hook([&](const FakeShare::Call& call) {
    const auto entry = protocol::parse_beat_name(call.name);
    if (call.op != "rename" || !entry || entry->sid != p.a_sid || moved) return FakeShare::Fault{};
    from = "beats/" + std::string(call.name);
    to = "beats/" + protocol::format(protocol::BeatEntry{p.a_sid, protocol::next_beat(*entry->beat)});
    CHECK(p.disk.rename(from, to) == 0);
    moved = true;
    return FakeShare::Fault{};
  });
  REQUIRE(let_pass(*p.b, 700ms));
  REQUIRE(eventually([&] { return moved.load(); }));
  REQUIRE(p.b->beats(3));
  CHECK_FALSE(p.b->keeper.is_void(p.a_sid));
  CHECK_FALSE(has(p.disk, p.a_sid.text + ".dead"));
}

TEST_CASE("a break whose reply was lost is known from the next listing") {
  Pair p;
  p.hang_a();
  p.b->share.set_hook([&](const FakeShare::Call& call) {
    const bool breaks = call.op == "rename" && call.name.substr(0, 20) == p.a_sid.text;
    return breaks ? FakeShare::Fault{0, EIO} : FakeShare::Fault{};
  });
  REQUIRE(let_pass(*p.b, 700ms));
  REQUIRE(eventually([&] { return p.b->told.dead(p.a_sid); }));
  REQUIRE(eventually([&] { return !has(p.disk, p.a_sid.text); }));
}

TEST_CASE("a session that stopped half open is broken and swept") {
  FakeDisk disk;
  lay_out(disk);
  const std::string sid(20, 'a');
  REQUIRE(disk.make("inbox/" + sid, true, "") == 0);
  REQUIRE(disk.make("beats/" + sid + ".0", false, "") == 0);
  REQUIRE(disk.make("sessions/t." + sid + ".0123", false, "{") == 0);
  SessionHost host(disk);
  REQUIRE(host.start().has_value());
  REQUIRE(host.beats(2));
  CHECK_FALSE(host.keeper.is_void(SessionId{sid}));
  REQUIRE(let_pass(host, 700ms));
  REQUIRE(eventually([&] { return !has(disk, sid); }));
  CHECK(host.keeper.is_void(SessionId{sid}));
}

TEST_CASE("what dead sessions left is swept at start, also where another stopped half way") {
  FakeDisk disk;
  lay_out(disk);
  REQUIRE(disk.make("locks/0a3", true, "") == 0);
  const SessionId whole{std::string(20, 'a')};
  const SessionId half{std::string(20, 'b')};
  REQUIRE(disk.make("inbox/" + whole.text, true, "") == 0);
  REQUIRE(disk.make("beats/" + whole.text + ".dead", false, "") == 0);
  REQUIRE(disk.make("sessions/" + whole.text, false, "{}") == 0);
  REQUIRE(disk.make(claim_of(whole), true, "") == 0);
  REQUIRE(disk.make("beats/" + half.text + ".dead", false, "") == 0);
  REQUIRE(disk.make(claim_of(half), true, "") == 0);
  SessionHost host(disk);
  REQUIRE(host.start().has_value());
  CHECK(host.keeper.is_void(whole));
  CHECK(host.keeper.is_void(half));
  REQUIRE(eventually([&] { return !has(disk, whole.text) && !has(disk, half.text); }));
  CHECK(disk.exists("locks/0a3"));
  CHECK(host.told.count("lost") == 0);
}

TEST_CASE("two peers break and sweep the same session without harm") {
  Pair p;
  SessionHost c(p.disk, "host-c");
  REQUIRE(c.start().has_value());
  REQUIRE(p.disk.make(claim_of(p.a_sid), true, "") == 0);
  p.hang_a();
  REQUIRE(c.beats(2));
  for (int i = 0; i < 7; ++i) {
    p.b->clock.advance(100ms);
    c.clock.advance(100ms);
    REQUIRE(p.b->beats(2));
    REQUIRE(c.beats(2));
  }
  REQUIRE(eventually([&] { return p.b->told.dead(p.a_sid) && c.told.dead(p.a_sid); }));
  REQUIRE(eventually([&] { return !has(p.disk, p.a_sid.text); }));
  CHECK(p.b->events.count(Level::warning, "was broken") + c.events.count(Level::warning, "was broken") == 1);
  CHECK(p.b->told.count("lost") + c.told.count("lost") == 0);
}

TEST_CASE("a sweep that meets errors is taken up again") {
  Pair p;
  REQUIRE(p.disk.make(claim_of(p.a_sid), true, "") == 0);
  p.hang_a();
  std::atomic<int> failed{0};
  p.b->share.set_hook([&](const FakeShare::Call& call) {
    const bool fails = call.op == "remove_entry" && failed++ < 5;
    return fails ? FakeShare::Fault{EIO, 0} : FakeShare::Fault{};
  });
  REQUIRE(let_pass(*p.b, 700ms));
  REQUIRE(eventually([&] { return !has(p.disk, p.a_sid.text); }));
  CHECK(failed >= 6);
}

TEST_CASE("a peer that ends cleanly is known to be gone") {
  Pair p;
  CHECK(p.a->keeper.stop(30s));
  REQUIRE(eventually([&] { return p.b->told.dead(p.a_sid); }));
  CHECK(p.b->keeper.is_void(p.a_sid));
  CHECK_FALSE(p.b->keeper.is_known(p.a_sid));
  CHECK(p.b->events.count(Level::warning, "was broken") == 0);
}

TEST_CASE("learn() knows of a session from the moment it is asked") {
  Pair p;
  SessionHost c(p.disk, "host-c");
  REQUIRE(c.start().has_value());
  CHECK(p.b->keeper.learn().has_value());
  CHECK(p.b->keeper.is_known(c.sid()));
  const SessionId c_sid = c.sid();
  CHECK(c.keeper.stop(30s));
  CHECK(p.b->keeper.learn().has_value());
  CHECK(p.b->keeper.is_void(c_sid));
  p.b->share.set_hook([](const FakeShare::Call&) { return FakeShare::Fault{EIO, 0}; });
  CHECK_FALSE(p.b->keeper.learn().has_value());
}
