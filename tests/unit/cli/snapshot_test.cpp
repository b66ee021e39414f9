#include "cli/snapshot.hpp"

#include "cli/locate.hpp"
#include "unit/cli/fixture.hpp"

using namespace latchfs;
using namespace latchfs::cli;
using protocol::EntryKind;
using protocol::Mode;

namespace {

Snapshot snapshot_of(const ControlDirectory& dir) {
  auto share = open_control(dir.source());
  REQUIRE(share.has_value());
  auto snapshot = read_snapshot(**share, true);
  REQUIRE_MESSAGE(snapshot.has_value(), describe(snapshot.error()));
  return std::move(*snapshot);
}

std::string state_of(const Snapshot& snapshot, const protocol::Claim& claim) {
  for (const LockView& lock : snapshot.locks) {
    if (lock.entry.claim == claim) return lock_state(lock, snapshot.sessions);
  }
  return "not there";
}

// Waits until the file system's clock gives a new name a later time than `name` has.
void let_time_pass_after(const ControlDirectory& dir, const std::string& name) {
  const auto share = open_control(dir.source());
  const std::size_t slash = name.rfind('/');
  const WallTime before = (*share)->facts(name.substr(0, slash), name.substr(slash + 1))->changed;
  for (int i = 0; i < 1000000; ++i) {
    dir.write("tick", "");
    const WallTime now = (*share)->facts("", "tick")->changed;
    std::filesystem::remove(dir.control() / "tick");
    if (now > before) return;
  }
  FAIL("the clock of the file system stands still");
}

}  // namespace

TEST_CASE("an empty share has no sessions and no locks") {
  const ControlDirectory dir;
  CHECK(snapshot_of(dir).sessions.empty());
  std::filesystem::remove(dir.control() / "locks");
  std::filesystem::remove(dir.control() / "beats");
  const Snapshot snapshot = snapshot_of(dir);
  CHECK(snapshot.locks.empty());
  CHECK(snapshot.problems.empty());
  CHECK(snapshot.times == protocol::LeaseTimes{});
}

TEST_CASE("a session is live, late by the age of its beat, or dead") {
  const ControlDirectory dir;
  const SessionId a = dir.add_session('a', {});
  const SessionId b = dir.add_session('b', {});
  const SessionId c = dir.add_session('c', {});
  dir.kill(b);
  std::filesystem::remove(dir.control() / "sessions" / c.text);
  const Snapshot snapshot = snapshot_of(dir);
  REQUIRE(snapshot.sessions.size() == 3);
  const SessionView& live = snapshot.sessions.at(a);
  REQUIRE(live.beaten.has_value());
  const WallTime beaten = *live.beaten;
  CHECK(live.beat == BeatNumber{7});
  CHECK(std::string(session_state(live, snapshot.times, beaten)) == "live");
  CHECK(std::string(session_state(live, snapshot.times, beaten + protocol::late_after(snapshot.times))) == "live");
  CHECK(std::string(session_state(live, snapshot.times, beaten + protocol::late_after(snapshot.times) + Nanos(1))) ==
        "late");
  CHECK(std::string(session_state(live, snapshot.times, beaten - std::chrono::hours(1))) == "live");
  CHECK(std::string(session_state(snapshot.sessions.at(b), snapshot.times, beaten)) == "dead");
  CHECK(std::string(session_state(snapshot.sessions.at(c), snapshot.times, beaten)) == "dead");
}

TEST_CASE("of two beats of one session the higher counts, and a session without one is late") {
  const ControlDirectory dir;
  const SessionId a = dir.add_session('a', {});
  dir.write("beats/" + a.text + ".6", "");
  const SessionId b = dir.add_session('b', {});
  std::filesystem::remove(dir.control() / "beats" / (b.text + ".7"));
  const Snapshot snapshot = snapshot_of(dir);
  CHECK(snapshot.sessions.at(a).beat == BeatNumber{7});
  CHECK(std::string(session_state(snapshot.sessions.at(b), snapshot.times, {})) == "late");
}

TEST_CASE("locks are held, waiting, cached, or void when their session is dead or gone") {
  const ControlDirectory dir;
  const SessionId a = dir.add_session('a', {});
  const SessionId b = dir.add_session('b', {});
  const SessionId dead = dir.add_session('d', {});
  dir.kill(dead);
  const protocol::Claim held = claim(1, Mode::write, {0, 9}, 100, a);
  const protocol::Claim waiting = claim(1, Mode::write, {5, 6}, 101, b);
  const protocol::Claim cached = claim(2, Mode::write, ByteRange::whole(), 102, a);
  const protocol::Claim of_dead = claim(1, Mode::write, {0, 9}, 99, dead);
  const protocol::Claim of_nobody = claim(3, Mode::read, {0, 9}, 99, SessionId{std::string(20, 'e')});
  dir.add_lock(EntryKind::held, held);
  dir.add_lock(EntryKind::queued, waiting);
  dir.add_lock(EntryKind::cached, cached);
  dir.add_lock(EntryKind::held, of_dead);
  dir.add_lock(EntryKind::held, of_nobody);
  const Snapshot snapshot = snapshot_of(dir);
  CHECK(snapshot.locks.size() == 5);
  CHECK(state_of(snapshot, held) == "held");
  CHECK(state_of(snapshot, waiting) == "waiting");
  CHECK(state_of(snapshot, cached) == "cached");
  CHECK(state_of(snapshot, of_dead) == "void");
  CHECK(state_of(snapshot, of_nobody) == "void");
  CHECK(snapshot.problems.empty());
}

TEST_CASE("of two claims in conflict the one that was made later waits, whatever the tickets say") {
  const ControlDirectory dir;
  const SessionId a = dir.add_session('a', {});
  const SessionId b = dir.add_session('b', {});
  const protocol::Claim first = claim(1, Mode::read, {0, 9}, 200, a);
  const protocol::Claim second = claim(1, Mode::write, {5, 20}, 100, b);
  const protocol::Claim apart = claim(1, Mode::write, {30, 40}, 300, b, 2);
  const protocol::Claim other_file = claim(2, Mode::write, {0, 9}, 300, b, 3);
  let_time_pass_after(dir, dir.add_lock(EntryKind::held, first));
  dir.add_lock(EntryKind::held, second);
  dir.add_lock(EntryKind::held, apart);
  dir.add_lock(EntryKind::held, other_file);
  const Snapshot snapshot = snapshot_of(dir);
  CHECK(state_of(snapshot, first) == "held");
  CHECK(state_of(snapshot, second) == "waiting");
  CHECK(state_of(snapshot, apart) == "held");
  CHECK(state_of(snapshot, other_file) == "held");
}

TEST_CASE("what cannot be read is a problem, what is not ours is none") {
  const ControlDirectory dir;
  const SessionId a = dir.add_session('a', {});
  std::filesystem::create_directories(dir.control() / "locks/0a3/h.nonsense\x1b[2J");
  std::filesystem::create_directories(dir.control() / "locks/0a3/q.nonsense");
  std::filesystem::create_directories(dir.control() / "locks/0a3/.nfs0001");
  std::filesystem::create_directories(dir.control() / "locks/.DS_Store");
  dir.write("sessions/.nfs0002", "");
  dir.write("beats/.nfs0003", "");
  dir.write("sessions/" + a.text, "{ half");
  const Snapshot snapshot = snapshot_of(dir);
  CHECK(snapshot.sessions.size() == 1);
  CHECK(snapshot.locks.empty());
  REQUIRE(snapshot.problems.size() == 2);
  CHECK(snapshot.problems[0].find("locks/0a3/h.nonsense\\x1b[2J: a claim that cannot be read") == 0);
  CHECK(snapshot.problems[1].find("sessions/" + a.text + ": ") == 0);
}
