#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "engine/session_info_local.hpp"
#include "support/session_host.hpp"

// Proof of death on one host: no waiting for silence.
using namespace latchfs;
using namespace latchfs::testing;

namespace {

/// A process that does nothing until it is ended.
class Child {
 public:
  Child() : pid_(::fork()) {
    if (pid_ == 0) {
      for (;;) ::pause();
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { end(); }
  pid_t pid() const { return pid_; }
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_;
};

protocol::SessionInfo own_info(const std::string& host_id = "") {
  return engine::local_session_info(system_clock(), host_id, "");
}

/// The information of a daemon that runs in a child process.
protocol::SessionInfo info_of(const Child& child) {
  protocol::SessionInfo info = own_info();
  info.pid = static_cast<std::uint64_t>(child.pid());
  info.pid_start = 0;
  return info;
}

void plant(FakeDisk& disk, const SessionId& sid, const std::string& info) {
  REQUIRE(disk.make("inbox/" + sid.text, true, "") == 0);
  REQUIRE(disk.make("beats/" + sid.text + ".7", false, "") == 0);
  REQUIRE(disk.make("sessions/" + sid.text, false, info) == 0);
}

bool has(const FakeDisk& disk, const SessionId& sid) {
  const auto paths = disk.paths();
  return std::any_of(paths.begin(), paths.end(),
                     [&](const std::string& p) { return p.find(sid.text) != std::string::npos; });
}

const SessionId kFormer{std::string(20, 'a')};

}  // namespace

TEST_CASE("what proves that a process is gone, and what does not") {
  const protocol::SessionInfo own = own_info();
  CHECK_FALSE(engine::process_is_gone(own, own));

  Child child;
  protocol::SessionInfo peer = info_of(child);
  CHECK_FALSE(engine::process_is_gone(own, peer));
  peer.pid_start = own.pid_start + 1'000'000;  // the pid is there, but was given to somebody else
  CHECK(engine::process_is_gone(own, peer));
  peer.pid_start = 0;
  child.end();
  CHECK(engine::process_is_gone(own, peer));

  protocol::SessionInfo elsewhere = peer;
  elsewhere.boot_id = "another";
  CHECK_FALSE(engine::process_is_gone(own, elsewhere));
  elsewhere = peer;
  elsewhere.pid_namespace = 1;
  CHECK_FALSE(engine::process_is_gone(own, elsewhere));
  elsewhere = peer;
  elsewhere.host_id = "vm-2";
  CHECK_FALSE(engine::process_is_gone(own, elsewhere));
  elsewhere = peer;
  elsewhere.pid = 0;
  CHECK_FALSE(engine::process_is_gone(own, elsewhere));
  elsewhere.pid = ~0ULL;
  CHECK_FALSE(engine::process_is_gone(own, elsewhere));
  CHECK_FALSE(engine::process_is_gone(own, protocol::SessionInfo{}));
}

TEST_CASE("a former session of this host is broken before the new one opens, after a sync") {
  FakeDisk disk;
  lay_out(disk);
  Child child;
  plant(disk, kFormer, protocol::to_text(info_of(child)));
  child.end();
  SessionHost host(disk);
  bool synced_first = false;
  bool dead_before_open = false;
  host.share.set_hook([&](const FakeShare::Call& call) {
    if (call.op == "rename" && call.name == kFormer.text + ".7") synced_first = host.share.count("sync_all") == 1;
    if (call.op == "make_file") dead_before_open = disk.exists("beats/" + kFormer.text + ".dead");
    return FakeShare::Fault{};
  });
  REQUIRE(host.start().has_value());
  host.share.set_hook({});
  CHECK(synced_first);
  CHECK(dead_before_open);
  CHECK(host.keeper.is_void(kFormer));
  REQUIRE(eventually([&] { return host.told.dead(kFormer); }));
  REQUIRE(eventually([&] { return !has(disk, kFormer); }));
}

TEST_CASE("a daemon of this host that dies meanwhile is broken at once") {
  FakeDisk disk;
  lay_out(disk);
  Child child;
  plant(disk, kFormer, protocol::to_text(info_of(child)));
  SessionHost host(disk);
  REQUIRE(host.start().has_value());
  REQUIRE(host.beats(3));
  CHECK(host.keeper.is_known(kFormer));
  CHECK(host.share.count("sync_all") == 0);
  child.end();
  REQUIRE(eventually([&] { return host.told.dead(kFormer); }));
  CHECK(host.share.count("sync_all") >= 1);
  REQUIRE(eventually([&] { return !has(disk, kFormer); }));
}

TEST_CASE("what cannot be proved is left alone") {
  FakeDisk disk;
  lay_out(disk);
  Child child;
  protocol::SessionInfo other_host = info_of(child);
  other_host.host_id = "vm-2";
  protocol::SessionInfo other_boot = info_of(child);
  other_boot.boot_id = "another";
  const std::string torn = protocol::to_text(info_of(child)).substr(0, 60);
  const SessionId b{std::string(20, 'b')}, c{std::string(20, 'c')};
  child.end();
  plant(disk, kFormer, protocol::to_text(other_host));
  plant(disk, b, protocol::to_text(other_boot));
  plant(disk, c, torn);
  SessionHost host(disk);
  REQUIRE(host.start().has_value());
  REQUIRE(host.beats(3));
  for (const SessionId& sid : {kFormer, b, c}) {
    CHECK(disk.exists("beats/" + sid.text + ".7"));
    CHECK(host.keeper.is_known(sid));
  }
  CHECK(host.share.count("sync_all") == 0);
}

TEST_CASE("without a sync there is no break") {
  FakeDisk disk;
  lay_out(disk);
  Child child;
  plant(disk, kFormer, protocol::to_text(info_of(child)));
  child.end();
  SessionHost host(disk);
  host.share.set_hook([](const FakeShare::Call& call) {
    return call.op == "sync_all" ? FakeShare::Fault{EIO, 0} : FakeShare::Fault{};
  });
  REQUIRE(host.start().has_value());
  REQUIRE(host.beats(3));
  CHECK(disk.exists("beats/" + kFormer.text + ".7"));
  host.share.set_hook({});
  REQUIRE(eventually([&] { return host.told.dead(kFormer); }));
}
