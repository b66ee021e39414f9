#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "fusefs/errand_thread.hpp"
#include "fusefs/gate.hpp"
#include "fusefs/mount_args.hpp"

using namespace latchfs::fusefs;
using namespace std::chrono_literals;

TEST_CASE("an errand thread runs its jobs in order and all of them before it ends") {
  std::vector<int> ran;
  {
    ErrandThread thread("test");
    for (int i = 0; i < 100; ++i) thread.post([&ran, i] { ran.push_back(i); });
  }
  REQUIRE(ran.size() == 100);
  for (int i = 0; i < 100; ++i) CHECK(ran[static_cast<std::size_t>(i)] == i);
}

TEST_CASE("a job may post another one; after the stop nothing runs any more") {
  std::atomic<int> ran{0};
  ErrandThread thread("test");
  thread.post([&] { thread.post([&] { ++ran; }); });
  while (ran == 0) std::this_thread::yield();
  thread.stop();
  thread.post([&] { ++ran; });
  thread.stop();
  CHECK(ran == 1);
}

TEST_CASE("a closed gate lets nobody in and waits for those inside") {
  Gate gate;
  auto pass = gate.enter();
  REQUIRE(pass.has_value());
  auto moved = std::make_optional(std::move(*pass));
  pass.reset();
  gate.close();
  CHECK_FALSE(gate.enter().has_value());
  CHECK_FALSE(gate.drain_for(1ms));
  std::atomic<bool> out{false};
  std::thread inside([&] {
    out = true;
    moved.reset();
  });
  gate.drain();
  CHECK(out);
  inside.join();
  CHECK(gate.drain_for(1ms));
}

TEST_CASE("the words for libfuse: a comma in the source does not end it") {
  MountSpec spec;
  spec.source = "/srv/a,b\\c";
  spec.read_only = true;
  spec.fuse_options = {"default_permissions"};
  const MountArgs args(spec);
  CHECK(args.words() == std::vector<std::string>{"latchfs", "-o", "fsname=/srv/a\\,b\\\\c", "-o", "subtype=latchfs",
                                                 "-o", "ro", "-o", "default_permissions"});
}
