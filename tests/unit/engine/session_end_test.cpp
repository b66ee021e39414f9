#include <doctest/doctest.h>

#include <thread>

#include "support/session_host.hpp"

// The end of a keeper over a share that does not answer.
using namespace latchfs;
using namespace latchfs::testing;
using namespace std::chrono_literals;

TEST_CASE("a share that hangs does not hold up the end, and is not touched again when it answers") {
  FakeDisk disk;
  lay_out(disk);
  SessionHost host(disk);
  REQUIRE(host.start().has_value());
  const SessionId sid = host.sid();
  host.share.freeze();
  REQUIRE(eventually([&] { return host.share.hanging() >= 1; }));
  CHECK_FALSE(host.keeper.stop(50ms));
  CHECK_FALSE(host.keeper.stop(50ms));
  CHECK_FALSE(host.keeper.lease_valid());
  CHECK_FALSE(host.keeper.current().has_value());
  CHECK_FALSE(host.keeper.learn().has_value());

  const int renames = host.share.count("rename");
  const int lists = host.share.count("list");  // a call is counted when it begins
  const int told = host.total_beats();
  host.share.thaw();
  // The threads that were left behind have nothing to say and nothing to do, whatever their calls gave.
  REQUIRE(eventually([] { return keeper_threads() == 0; }));
  CHECK(host.share.count("rename") == renames);
  CHECK(host.share.count("list") == lists);
  CHECK(host.total_beats() == told);
  CHECK(host.told.count("lost") == 0);
  CHECK_FALSE(host.keeper.lease_valid());
  CHECK(disk.exists("sessions/" + sid.text));
}

TEST_CASE("a hanging learn() does not hold up the end; who waits behind it is let go") {
  FakeDisk disk;
  lay_out(disk);
  SessionHost host(disk);
  REQUIRE(host.start().has_value());
  host.share.freeze();
  std::atomic<int> failed{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 3; ++i) {
    callers.emplace_back([&] { failed += host.keeper.learn().has_value() ? 0 : 1; });
  }
  // One of them is in a call, the others wait for it; the beat hangs too.
  REQUIRE(eventually([&] { return host.share.hanging() >= 2; }));
  CHECK_FALSE(host.keeper.stop(50ms));
  REQUIRE(eventually([&] { return failed >= 2; }));
  host.share.thaw();
  REQUIRE(eventually([] { return keeper_threads() == 0; }));
  for (std::thread& caller : callers) caller.join();
  CHECK(failed == 3);
}

TEST_CASE("a share that only fails is tried until the limit, then left to the peers") {
  FakeDisk disk;
  lay_out(disk);
  SessionHost host(disk);
  REQUIRE(host.start().has_value());
  const SessionId sid = host.sid();
  host.share.set_hook([](const FakeShare::Call&) { return FakeShare::Fault{EIO, 0}; });
  const int renames = host.share.count("rename");
  CHECK_FALSE(host.keeper.stop(300ms));
  CHECK(host.share.count("rename") > renames);
  CHECK(disk.exists("sessions/" + sid.text));
  REQUIRE(eventually([] { return keeper_threads() == 0; }));
}

TEST_CASE("a share that fails for a moment at the end is left clean") {
  FakeDisk disk;
  lay_out(disk);
  SessionHost host(disk);
  REQUIRE(host.start().has_value());
  std::atomic<int> calls{0};
  host.share.set_hook([&](const FakeShare::Call& call) {
    const bool fails = (call.op == "rename" || call.op == "remove_entry") && calls < 12 && calls++ % 3 != 2;
    return fails ? FakeShare::Fault{EIO, 0} : FakeShare::Fault{};
  });
  CHECK(host.keeper.stop(30s));
  CHECK(disk.paths() == std::vector<std::string>{"beats", "format", "inbox", "locks", "sessions"});
}

TEST_CASE("an end right after a loss leaves nothing of either session") {
  FakeDisk disk;
  lay_out(disk);
  SessionHost host(disk);
  REQUIRE(host.start().has_value());
  host.keeper.disown();
  REQUIRE(eventually([&] { return host.told.count("lost") == 1; }));
  CHECK(host.keeper.stop(30s));
  CHECK(disk.paths() == std::vector<std::string>{"beats", "format", "inbox", "locks", "sessions"});
}
