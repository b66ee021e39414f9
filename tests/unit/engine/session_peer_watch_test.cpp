#include <doctest/doctest.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "engine/guarded_share.hpp"
#include "engine/peer_watch.hpp"
#include "support/session_host.hpp"

// Listings that overlap: what an old one lacks must not make a session look gone.
using namespace latchfs;
using namespace latchfs::testing;
using share::Freshness;

namespace {

const SessionId kA{std::string(20, 'a')};

/// A share whose listings can be held back after they were made.
class SlowShare final : public share::Share {
 public:
  explicit SlowShare(FakeDisk& disk) : inner_(disk) {}
  std::function<void(const std::string& dir)> after_list;

  Result<void> make_entry(const std::string& d, const std::string& n) override { return inner_.make_entry(d, n); }
  Result<void> remove_entry(const std::string& d, const std::string& n) override { return inner_.remove_entry(d, n); }
  Result<void> make_folder(const std::string& d) override { return inner_.make_folder(d); }
  Result<void> publish_file(const std::string& d, const std::string& n, const std::string& c) override {
    return inner_.publish_file(d, n, c);
  }
  Result<void> make_file(const std::string& d, const std::string& n) override { return inner_.make_file(d, n); }
  Result<std::string> read_file(const std::string& d, const std::string& n, std::size_t l) override {
    return inner_.read_file(d, n, l);
  }
  Result<void> rename(const std::string& d, const std::string& f, const std::string& t) override {
    return inner_.rename(d, f, t);
  }
  Result<std::vector<std::string>> list(const std::string& d, Freshness f) override {
    auto names = inner_.list(d, f);
    if (after_list) after_list(d);
    return names;
  }
  Result<share::FileFacts> facts(const std::string& d, const std::string& n) override { return inner_.facts(d, n); }
  Result<void> sync_all() override { return inner_.sync_all(); }

 private:
  FakeShare inner_;
};

void open_session(FakeDisk& disk, const SessionId& sid) {
  REQUIRE(disk.make("beats/" + sid.text + ".0", false, "") == 0);
  REQUIRE(disk.make("sessions/" + sid.text, false, "{}") == 0);
}

}  // namespace

TEST_CASE("a listing of sessions/ that is older than what is known is not taken") {
  FakeDisk disk;
  lay_out(disk);
  HandClock clock;
  engine::PeerWatch watch(clock, hand_times());
  SlowShare slow(disk);
  FakeShare quick(disk);
  slow.after_list = [&](const std::string& dir) {
    if (dir != "sessions" || disk.exists("sessions/" + kA.text)) return;
    // Between this listing and its arrival a session opens, and another thread gets to know it.
    open_session(disk, kA);
    REQUIRE(watch.look_at_beats(quick, Freshness::forced).has_value());
    REQUIRE(watch.look_at_sessions(quick, Freshness::forced).has_value());
  };
  REQUIRE(watch.look_at_sessions(slow, Freshness::forced).has_value());
  CHECK(watch.is_known(kA));
  CHECK_FALSE(watch.is_void(kA));
}

TEST_CASE("learn() lists again when its listing came too late") {
  FakeDisk disk;
  lay_out(disk);
  HandClock clock;
  engine::PeerWatch watch(clock, hand_times());
  SlowShare slow(disk);
  FakeShare quick(disk);
  int disturbed = 0;
  slow.after_list = [&](const std::string&) {
    if (disturbed++ < 3) REQUIRE(watch.look_at_beats(quick, Freshness::forced).has_value());
    if (disturbed == 3) open_session(disk, kA);
  };
  REQUIRE(watch.learn(slow).has_value());
  CHECK(disturbed >= 5);
  CHECK(watch.is_known(kA));
}

TEST_CASE("a session is never void while it opens and lives, whoever lists how often") {
  FakeDisk disk;
  lay_out(disk);
  const HandClock clock;
  engine::PeerWatch watch(clock, hand_times());
  std::atomic<bool> stop{false};
  std::vector<std::thread> listers;
  for (int i = 0; i < 3; ++i) {
    listers.emplace_back([&, i] {
      FakeShare share(disk);
      while (!stop) {
        if (i == 0) {
          (void)watch.look_at_beats(share, Freshness::forced);
          (void)watch.look_at_sessions(share, Freshness::forced);
        } else {
          (void)watch.learn(share);
        }
      }
    });
  }
  FakeShare own(disk);
  int wrong = 0;
  for (int i = 0; i < 300; ++i) {
    const SessionId sid = random_session_id();
    open_session(disk, sid);
    (void)watch.learn(own);
    wrong += watch.is_known(sid) && !watch.is_void(sid) ? 0 : 1;
    const std::string first = "beats/" + sid.text + ".0";
    const std::string dead = "beats/" + sid.text + ".dead";
    wrong += watch.is_void(sid) ? 1 : 0;
    REQUIRE(disk.rename(first, dead) == 0);
    REQUIRE(disk.remove("sessions/" + sid.text) == 0);
    REQUIRE(disk.remove(dead) == 0);
    (void)watch.learn(own);
    wrong += watch.is_void(sid) ? 0 : 1;
  }
  stop = true;
  for (std::thread& lister : listers) lister.join();
  CHECK(wrong == 0);
  CHECK(watch.live().empty());
  CHECK(watch.dead().empty());
}

TEST_CASE("callers at one time share the listings") {
  FakeDisk disk;
  lay_out(disk);
  const HandClock clock;
  engine::PeerWatch watch(clock, hand_times());
  FakeShare share(disk);
  share.freeze();
  std::atomic<int> begun{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 8; ++i) {
    callers.emplace_back([&] {
      ++begun;
      CHECK(watch.learn(share).has_value());
    });
  }
  REQUIRE(eventually([&] { return begun == 8 && share.hanging() == 1; }));
  share.thaw();
  for (std::thread& caller : callers) caller.join();
  // The first one lists for itself; those that came while it did share the next listings, two folders each.
  CHECK(share.count("list") <= 2 * 8);
  CHECK(share.count("list") >= 2);
}

TEST_CASE("deaths are told once") {
  FakeDisk disk;
  lay_out(disk);
  const HandClock clock;
  engine::PeerWatch watch(clock, hand_times());
  FakeShare share(disk);
  open_session(disk, kA);
  REQUIRE(watch.learn(share).has_value());
  CHECK_FALSE(watch.has_deaths());
  watch.mark_dead(kA);
  CHECK(watch.has_deaths());
  CHECK(watch.take_deaths() == std::vector<SessionId>{kA});
  REQUIRE(watch.learn(share).has_value());
  CHECK_FALSE(watch.has_deaths());
}

TEST_CASE("a closed gate lets nobody in, and nobody on who was inside") {
  FakeDisk disk;
  lay_out(disk);
  FakeShare share(disk);
  engine::Gate gate;
  engine::GuardedShare guarded(share, gate);
  CHECK(guarded.list("beats", Freshness::forced).has_value());
  share.freeze();
  std::atomic<bool> abandoned{false};
  std::thread caller([&] {
    try {
      (void)guarded.list("beats", Freshness::forced);
    } catch (const engine::Abandoned&) {
      abandoned = true;
    }
  });
  gate.close();  // returns once the caller is inside
  CHECK(share.hanging() <= 1);
  CHECK_FALSE(abandoned);
  share.thaw();
  caller.join();
  CHECK(abandoned);
  CHECK_THROWS_AS((void)guarded.sync_all(), engine::Abandoned);
  CHECK(share.count("sync_all") == 0);
}
