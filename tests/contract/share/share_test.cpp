#include "latchfs/share/share.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "latchfs/share/posix_share.hpp"
#include "support/fake_share.hpp"
#include "support/temp_dir.hpp"

// What every Share promises, run on each of them: the engine's tests on the share in memory are worth what this says.
using namespace latchfs;
using namespace latchfs::share;
using namespace latchfs::testing;

namespace {

/// Two hosts' doors to one share, the first with the entry form `kForm`, the second with the other one.
template <EntryForm kForm>
struct OnFake {
  FakeDisk disk;
  FakeShare a{disk, kForm};
  FakeShare b{disk, kForm == EntryForm::directory ? EntryForm::file : EntryForm::directory};
};

template <EntryForm kForm>
struct OnPosix {
  TempDir dir;
  PosixShare a{open_it(), kForm};
  PosixShare b{open_it(), kForm == EntryForm::directory ? EntryForm::file : EntryForm::directory};

 private:
  UniqueFd open_it() const { return UniqueFd(::open(dir.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)); }
};

using FakeDirs = OnFake<EntryForm::directory>;
using FakeFiles = OnFake<EntryForm::file>;
using PosixDirs = OnPosix<EntryForm::directory>;
using PosixFiles = OnPosix<EntryForm::file>;

std::set<std::string> names(Share& share, const std::string& dir) {
  const auto listed = share.list(dir, Freshness::forced);
  REQUIRE(listed.has_value());
  std::set<std::string> out(listed->begin(), listed->end());
  CHECK(out.size() == listed->size());
  return out;
}

template <class R>
int errno_of(const R& result) {
  if (result.has_value()) return 0;
  CHECK(result.error().code == Errc::system);
  return result.error().sys;
}

}  // namespace

TEST_CASE_TEMPLATE("folders are made once and found by everyone", Host, FakeDirs, FakeFiles, PosixDirs, PosixFiles) {
  Host host;
  CHECK(errno_of(host.a.list("beats", Freshness::forced)) == ENOENT);
  CHECK(host.a.make_folder("beats").has_value());
  CHECK(host.b.make_folder("beats").has_value());
  CHECK(names(host.b, "beats").empty());
  CHECK(errno_of(host.a.make_folder("locks/0a3")) == ENOENT);
  CHECK(host.a.make_folder("locks").has_value());
  CHECK(host.a.make_folder("locks/0a3").has_value());
  CHECK(names(host.b, "locks") == std::set<std::string>{"0a3"});
  CHECK(names(host.b, "locks/0a3").empty());
}

TEST_CASE_TEMPLATE("an entry is there once, for all, whatever it is made of", Host, FakeDirs, FakeFiles, PosixDirs,
                   PosixFiles) {
  Host host;
  REQUIRE(host.a.make_folder("locks").has_value());
  CHECK(host.a.make_entry("locks", "h.1").has_value());
  CHECK(errno_of(host.a.make_entry("locks", "h.1")) == EEXIST);
  CHECK(errno_of(host.b.make_entry("locks", "h.1")) == EEXIST);
  CHECK(host.b.make_entry("locks", "h.2").has_value());
  CHECK(names(host.a, "locks") == std::set<std::string>{"h.1", "h.2"});
  // Each removes what the other made.
  CHECK(host.b.remove_entry("locks", "h.1").has_value());
  CHECK(host.a.remove_entry("locks", "h.2").has_value());
  CHECK(errno_of(host.a.remove_entry("locks", "h.1")) == ENOENT);
  CHECK(errno_of(host.b.remove_entry("locks", "h.1")) == ENOENT);
  CHECK(names(host.a, "locks").empty());
  CHECK(errno_of(host.a.make_entry("none", "h.1")) == ENOENT);
  CHECK(errno_of(host.a.remove_entry("none", "h.1")) == ENOENT);
}

TEST_CASE_TEMPLATE("a folder that is not empty stays", Host, FakeDirs, FakeFiles, PosixDirs, PosixFiles) {
  Host host;
  REQUIRE(host.a.make_folder("inbox").has_value());
  REQUIRE(host.a.make_folder("inbox/s").has_value());
  REQUIRE(host.b.make_entry("inbox/s", "note").has_value());
  CHECK(errno_of(host.a.remove_entry("inbox", "s")) == ENOTEMPTY);
  CHECK(host.a.remove_entry("inbox/s", "note").has_value());
  CHECK(host.a.remove_entry("inbox", "s").has_value());
  CHECK(errno_of(host.a.list("inbox/s", Freshness::forced)) == ENOENT);
}

TEST_CASE_TEMPLATE("a published file is whole, and published once", Host, FakeDirs, PosixDirs) {
  Host host;
  REQUIRE(host.a.make_folder("sessions").has_value());
  const std::string content(10'000, 'x');
  CHECK(host.a.publish_file("sessions", "s", content).has_value());
  CHECK(errno_of(host.b.publish_file("sessions", "s", "other")) == EEXIST);
  CHECK(host.b.read_file("sessions", "s", 100'000).value() == content);
  CHECK(host.b.read_file("sessions", "s", 7).value() == "xxxxxxx");
  CHECK(names(host.a, "sessions") == std::set<std::string>{"s"});
  CHECK(host.a.publish_file("", "format", "f").has_value());
  CHECK(host.b.read_file("", "format", 10).value() == "f");
  CHECK(host.b.remove_entry("sessions", "s").has_value());
  CHECK(errno_of(host.b.read_file("sessions", "s", 10)) == ENOENT);
  CHECK(errno_of(host.b.read_file("", "sessions", 10)) == EINVAL);
}

TEST_CASE_TEMPLATE("a rename has one winner", Host, FakeDirs, PosixDirs) {
  Host host;
  REQUIRE(host.a.make_folder("beats").has_value());
  REQUIRE(host.a.make_file("beats", "s.0").has_value());
  CHECK(errno_of(host.b.make_file("beats", "s.0")) == EEXIST);
  CHECK(host.a.rename("beats", "s.0", "s.1").has_value());
  CHECK(errno_of(host.b.rename("beats", "s.0", "s.dead")) == ENOENT);
  CHECK(names(host.b, "beats") == std::set<std::string>{"s.1"});

  constexpr int kRounds = 200;
  for (int round = 1; round <= kRounds; ++round) {
    const std::string from = "s." + std::to_string(round);
    const std::string next = "s." + std::to_string(round + 1);
    std::atomic<int> ready{0};
    std::atomic<int> winners{0};
    const auto run = [&](Share& share, const std::string& to) {
      ++ready;
      while (ready < 2) std::this_thread::yield();
      const auto renamed = share.rename("beats", from, to);
      if (renamed) ++winners;
      if (!renamed) CHECK(is_errno(renamed.error(), ENOENT));
    };
    std::thread other([&] { run(host.b, "t." + std::to_string(round)); });
    run(host.a, next);
    other.join();
    REQUIRE(winners == 1);
    const auto now = names(host.a, "beats");
    REQUIRE(now.size() == 1);
    if (now.count(next) == 0) REQUIRE(host.a.rename("beats", *now.begin(), next).has_value());
  }
}

TEST_CASE_TEMPLATE("an exclusive creation has one winner", Host, FakeDirs, FakeFiles, PosixDirs, PosixFiles) {
  Host host;
  REQUIRE(host.a.make_folder("locks").has_value());
  for (int round = 0; round < 200; ++round) {
    const std::string name = "n" + std::to_string(round);
    std::atomic<int> winners{0};
    std::thread other([&] { winners += host.b.make_entry("locks", name).has_value() ? 1 : 0; });
    winners += host.a.make_entry("locks", name).has_value() ? 1 : 0;
    other.join();
    REQUIRE(winners == 1);
  }
}

TEST_CASE_TEMPLATE("publish, then list: two that publish at once never both miss the other", Host, FakeDirs, FakeFiles,
                   PosixDirs, PosixFiles) {
  Host host;
  REQUIRE(host.a.make_folder("locks").has_value());
  for (int round = 0; round < 300; ++round) {
    const std::string mine = "a" + std::to_string(round);
    const std::string theirs = "b" + std::to_string(round);
    std::atomic<int> ready{0};
    const auto run = [&](Share& share, const std::string& own, const std::string& other) {
      ++ready;
      while (ready < 2) std::this_thread::yield();
      if (!share.make_entry("locks", own)) return false;
      const auto listed = share.list("locks", Freshness::own_change);
      return listed && std::find(listed->begin(), listed->end(), other) != listed->end();
    };
    bool they_saw = false;
    std::thread other([&] { they_saw = run(host.b, theirs, mine); });
    const bool i_saw = run(host.a, mine, theirs);
    other.join();
    REQUIRE((i_saw || they_saw));
    REQUIRE(host.a.remove_entry("locks", mine).has_value());
    REQUIRE(host.a.remove_entry("locks", theirs).has_value());
  }
}

TEST_CASE_TEMPLATE("facts tell numbers, kinds and the server's time", Host, FakeDirs, PosixDirs) {
  Host host;
  REQUIRE(host.a.make_folder("beats").has_value());
  REQUIRE(host.a.make_file("beats", "s.0").has_value());
  const auto file = host.b.facts("beats", "s.0");
  const auto folder = host.b.facts("beats", "");
  REQUIRE(file.has_value());
  REQUIRE(folder.has_value());
  CHECK(file->inode != folder->inode);
  CHECK((file->mode & 0777) == 0600);
  CHECK((folder->mode & 0777) == 0700);
  CHECK(file->owner == host.a.facts("beats", "s.0")->owner);
  const auto age = std::chrono::system_clock::now() - file->changed;
  CHECK(age > std::chrono::minutes(-1));
  CHECK(age < std::chrono::minutes(1));
  REQUIRE(host.a.rename("beats", "s.0", "s.1").has_value());
  CHECK(host.b.facts("beats", "s.1")->inode == file->inode);
  CHECK(errno_of(host.b.facts("beats", "s.0")) == ENOENT);
  CHECK(host.a.sync_all().has_value());
}
