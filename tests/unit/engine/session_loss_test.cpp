#include <doctest/doctest.h>

#include <algorithm>

#include "engine/session_names.hpp"
#include "support/session_host.hpp"

// What a session makes of errors, and how it learns that it is lost.
using namespace latchfs;
using namespace latchfs::testing;
using namespace std::chrono_literals;

namespace {

/// Renames the present beat of a session behind its back; tries until it meets one.
bool steal_beat(FakeDisk& disk, const SessionId& sid, const std::function<std::string(std::uint64_t)>& to) {
  return eventually([&] {
    std::vector<std::string> names;
    disk.list("beats", names);
    for (const std::string& name : names) {
      const auto entry = protocol::parse_beat_name(name);
      if (!entry || entry->sid != sid || !entry->beat) continue;
      return disk.rename("beats/" + name, "beats/" + to(entry->beat->value)) == 0;
    }
    return false;
  });
}

bool names_left(const FakeDisk& disk, const SessionId& sid) {
  const auto paths = disk.paths();
  return std::any_of(paths.begin(), paths.end(),
                     [&](const std::string& p) { return p.find(sid.text) != std::string::npos; });
}

/// Lost once, told in the right order, and on in a new session.
void check_lost_and_back(SessionHost& host, FakeDisk& disk, const SessionId& old) {
  REQUIRE(eventually([&] { return host.told.count("joined") == 2; }));
  REQUIRE(host.told.count("lost") == 1);
  const auto lost = host.told.all("lost")[0];
  CHECK(lost.sid == old);
  CHECK_FALSE(lost.lease_valid);
  CHECK_FALSE(lost.current.has_value());
  const auto joined = host.told.all("joined")[1];
  CHECK(joined.sid != old);
  CHECK(joined.lease_valid);
  CHECK(host.keeper.is_void(old));
  CHECK(eventually([&] { return !names_left(disk, old); }));
  CHECK(host.events.count(Level::error, "session " + old.text + " is lost") == 1);
  REQUIRE(host.beats(2));
  CHECK(host.told.count("lost") == 1);
}

}  // namespace

TEST_CASE("a beat whose reply was lost is a beat, and nothing is lost") {
  FakeDisk disk;
  lay_out(disk);
  SessionHost host(disk);
  REQUIRE(host.start().has_value());
  const SessionId sid = host.sid();
  std::atomic<int> renames{0};
  host.share.set_hook([&](const FakeShare::Call& call) {
    if (call.op == "rename") {
      ++renames;
      host.clock.advance(30ms);
      return FakeShare::Fault{0, ECONNABORTED};
    }
    return FakeShare::Fault{};
  });
  const int before = host.total_beats();
  REQUIRE(eventually([&] { return renames >= 5; }));
  REQUIRE(host.beats(2));
  CHECK(host.total_beats() > before);
  CHECK(host.lease.until() <= host.clock.lease_now() - 30ms + 500ms);
  host.share.set_hook({});
  REQUIRE(host.beats(2));
  CHECK(host.sid() == sid);
  CHECK(host.told.count("lost") == 0);
}

TEST_CASE("a late reply does not make the lease longer: it counts from the first try that may have done it") {
  FakeDisk disk;
  lay_out(disk);
  SessionHost host(disk);
  REQUIRE(host.start().has_value());
  // The rename is done and its reply lost; then the listings fail for a while too, and tries go on meanwhile.
  std::atomic<bool> cut{false};
  std::atomic<bool> done{false};
  std::atomic<Nanos::rep> began{0};
  std::atomic<int> tries{0};
  host.share.set_hook([&](const FakeShare::Call& call) {
    if (!cut) return FakeShare::Fault{};
    if (call.op != "rename") return FakeShare::Fault{EIO, 0};
    ++tries;
    if (done.exchange(true)) {
      host.clock.advance(20ms);
      return FakeShare::Fault{EIO, 0};
    }
    began = host.clock.lease_now().time_since_epoch().count();
    return FakeShare::Fault{0, EIO};
  });
  cut = true;
  REQUIRE(eventually([&] { return tries >= 5; }));
  const int before = host.total_beats();
  // The next rename finds nothing to rename, the listing shows what the first one did.
  std::atomic<Nanos::rep> until{0};
  const auto limit = [&] { return began + Nanos(500ms).count(); };
  host.share.set_hook([&](const FakeShare::Call& call) {
    if (call.op == "rename" && host.total_beats() > before && until == 0) {
      until = host.lease.until().time_since_epoch().count();
    }
    return FakeShare::Fault{};
  });
  REQUIRE(eventually([&] { return until != 0; }));
  CHECK(until == limit());
  CHECK(host.told.count("lost") == 0);
}

TEST_CASE("a false ENOENT is no loss") {
  FakeDisk disk;
  lay_out(disk);
  SessionHost host(disk);
  REQUIRE(host.start().has_value());
  const SessionId sid = host.sid();
  std::atomic<int> failed{0};
  host.share.set_hook([&](const FakeShare::Call& call) {
    return call.op == "rename" && failed++ < 4 ? FakeShare::Fault{ENOENT, 0} : FakeShare::Fault{};
  });
  REQUIRE(eventually([&] { return failed > 5; }));
  REQUIRE(host.beats(1));
  CHECK(host.sid() == sid);
  CHECK(host.told.count("lost") == 0);
  CHECK(host.told.count("gap") == 0);
}

TEST_CASE("a share that is away: the lease ends in time, and all goes on when it is back") {
  FakeDisk disk;
  lay_out(disk);
  SessionHost host(disk);
  REQUIRE(host.start().has_value());
  const SessionId sid = host.sid();
  host.share.set_hook([](const FakeShare::Call&) { return FakeShare::Fault{EIO, 0}; });
  REQUIRE(eventually([&] { return host.events.count(Level::warning, "a beat failed") == 1; }));
  host.clock.advance(499ms);
  CHECK(host.keeper.lease_valid());
  host.clock.advance(1ms);
  CHECK_FALSE(host.keeper.lease_valid());
  REQUIRE(eventually([&] { return host.events.count(Level::error, "the lease ran out") == 1; }));
  CHECK(host.told.count("lost") == 0);
  CHECK(host.sid() == sid);
  host.share.set_hook({});
  REQUIRE(eventually([&] { return host.told.count("gap") == 1; }));
  REQUIRE(host.beats(2));
  CHECK(host.keeper.lease_valid());
  CHECK(host.sid() == sid);
  CHECK(host.told.count("gap") == 1);
  CHECK(host.told.count("lost") == 0);
  CHECK(host.events.count(Level::warning, "a beat failed") == 1);
}

TEST_CASE("a call that hangs past the lease confirms nothing by itself; the next beat does") {
  FakeDisk disk;
  lay_out(disk);
  SessionHost host(disk);
  REQUIRE(host.start().has_value());
  host.share.freeze();
  REQUIRE(eventually([&] { return host.share.hanging() >= 1; }));
  host.clock.advance(10s);
  CHECK_FALSE(host.keeper.lease_valid());
  host.share.thaw();
  REQUIRE(eventually([&] { return host.keeper.lease_valid(); }));
  CHECK(host.told.count("lost") == 0);
  CHECK(host.told.count("gap") >= 1);
}

TEST_CASE("broken by a peer: lost, swept, and back as another session") {
  FakeDisk disk;
  lay_out(disk);
  REQUIRE(disk.make("locks/0a3", true, "") == 0);
  SessionHost host(disk);
  REQUIRE(host.start().has_value());
  const SessionId old = host.sid();
  REQUIRE(disk.make("locks/0a3/h.2a.pw.0-1.5." + old.text + ".1", true, "") == 0);
  REQUIRE(steal_beat(disk, old, [&](std::uint64_t) { return old.text + ".dead"; }));
  check_lost_and_back(host, disk, old);
  CHECK(host.told.all("lost")[0].reason.find("another daemon broke it") != std::string::npos);
}

TEST_CASE("broken and swept while it slept: nothing of it is left, so it is lost") {
  FakeDisk disk;
  lay_out(disk);
  SessionHost host(disk);
  REQUIRE(host.start().has_value());
  const SessionId old = host.sid();
  host.share.freeze();
  REQUIRE(eventually([&] { return host.share.hanging() >= 1; }));
  REQUIRE(steal_beat(disk, old, [&](std::uint64_t) { return old.text + ".dead"; }));
  for (const std::string& path : {"inbox/" + old.text, "sessions/" + old.text, "beats/" + old.text + ".dead"}) {
    REQUIRE(disk.remove(path) == 0);
  }
  host.share.thaw();
  check_lost_and_back(host, disk, old);
}

TEST_CASE("a share that shows an older beat forgot what it had confirmed: lost, loudly") {
  FakeDisk disk;
  lay_out(disk);
  SessionHost host(disk);
  REQUIRE(host.start().has_value());
  REQUIRE(host.beats(3));
  const SessionId old = host.sid();
  REQUIRE(steal_beat(disk, old, [&](std::uint64_t) { return old.text + ".1"; }));
  check_lost_and_back(host, disk, old);
  CHECK(host.events.count(Level::error, "forgot") == 1);
}

TEST_CASE("a beat that does not show is no death while the lease lasts, and not at once after it") {
  FakeDisk disk;
  lay_out(disk);
  SessionHost host(disk);
  REQUIRE(host.start().has_value());
  const SessionId sid = host.sid();
  std::string from;
  REQUIRE(steal_beat(disk, sid, [&](std::uint64_t n) {
    from = "beats/" + protocol::format(protocol::BeatEntry{sid, BeatNumber{n}});
    return std::string("hidden");
  }));
  const int lists = host.share.count("list");
  REQUIRE(eventually([&] { return host.share.count("list") >= lists + 12; }));
  CHECK(host.told.count("lost") == 0);
  REQUIRE(disk.rename("beats/hidden", from) == 0);
  REQUIRE(host.beats(2));
  CHECK(host.sid() == sid);
  CHECK(host.told.count("lost") == 0);

  REQUIRE(steal_beat(disk, sid, [](std::uint64_t) { return std::string("hidden"); }));
  host.clock.advance(10s);
  check_lost_and_back(host, disk, sid);
}

TEST_CASE("a session whose name in sessions/ was removed is lost") {
  FakeDisk disk;
  lay_out(disk);
  SessionHost host(disk);
  REQUIRE(host.start().has_value());
  const SessionId old = host.sid();
  REQUIRE(disk.remove("sessions/" + old.text) == 0);
  // Another session that just opens makes it look into sessions/.
  REQUIRE(disk.make("beats/aaaaaaaaaaaaaaaaaaaa.0", false, "") == 0);
  check_lost_and_back(host, disk, old);
}

TEST_CASE("a claim that the share forgot ends the session at once") {
  FakeDisk disk;
  lay_out(disk);
  SessionHost host(disk);
  REQUIRE(host.start().has_value());
  const SessionId old = host.sid();
  host.keeper.disown();
  CHECK_FALSE(host.keeper.lease_valid());
  CHECK(host.keeper.current() != old);
  check_lost_and_back(host, disk, old);
}

TEST_CASE("no new session while the share refuses names; then one, and nothing of the tries is left") {
  FakeDisk disk;
  lay_out(disk);
  SessionHost host(disk);
  REQUIRE(host.start().has_value());
  const SessionId old = host.sid();
  host.share.set_hook([](const FakeShare::Call& call) {
    return call.op == "publish_file" ? FakeShare::Fault{ENOSPC, 0} : FakeShare::Fault{};
  });
  REQUIRE(steal_beat(disk, old, [&](std::uint64_t) { return old.text + ".dead"; }));
  REQUIRE(eventually([&] { return host.share.count("publish_file") >= 4; }));
  CHECK(host.told.count("joined") == 1);
  CHECK_FALSE(host.keeper.lease_valid());
  CHECK_FALSE(host.keeper.current().has_value());
  CHECK(host.events.count(Level::error, "no new session can be opened") == 1);
  host.share.set_hook({});
  REQUIRE(eventually([&] { return host.told.count("joined") == 2; }));
  CHECK(host.keeper.stop(30s));
  CHECK(disk.paths() == std::vector<std::string>{"beats", "format", "inbox", "locks", "sessions"});
}
