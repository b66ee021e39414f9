#pragma once
#include <doctest/doctest.h>

#include <cerrno>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "engine/file_locks.hpp"

/// Several hosts with the shipped FileLocks over one lock folder, driven step by step by a seeded scheduler. The folder is what a network share is at its
/// worst: each change is atomic, a listing is not (a name made or removed while it runs may show or not), calls can fail with or without having been done.
namespace latchfs::sim {

constexpr std::uint64_t kBytes = 12;  // a small file, so that ranges meet

class Folder {
 public:
  bool add(const std::string& name) {
    for (auto& [id, seen] : listings_) seen.moving.insert(name);
    return names_.insert(name).second;
  }
  bool remove(const std::string& name) {
    for (auto& [id, seen] : listings_) seen.moving.insert(name);
    return names_.erase(name) > 0;
  }
  void begin_listing(int id) { listings_[id] = {names_, {}}; }
  std::vector<std::string> end_listing(int id, std::mt19937_64& random) {
    const Listing seen = listings_.at(id);
    listings_.erase(id);
    std::set<std::string> all = seen.at_start;
    all.insert(seen.moving.begin(), seen.moving.end());
    std::vector<std::string> shown;
    for (const std::string& name : all) {
      const bool steady = !seen.moving.contains(name);
      if (steady || random() % 2 == 0) shown.push_back(name);
    }
    return shown;
  }
  const std::set<std::string>& names() const { return names_; }

 private:
  struct Listing {
    std::set<std::string> at_start;
    std::set<std::string> moving;  ///< made or removed meanwhile
  };
  std::set<std::string> names_;
  std::map<int, Listing> listings_;
};

/// Nobody dies here; the simulator of sessions does that.
class AllAlive final : public protocol::Peers {
 public:
  bool is_void(const SessionId&) const override { return false; }
  bool is_known(const SessionId&) const override { return true; }
  bool is_late(const SessionId&) const override { return false; }
};

struct Options {
  int hosts = 3;
  int owners = 3;          ///< on each host
  int faults = 0;          ///< of 100 calls
  bool waiting_upgrades = false;  ///< owners that hold something may wait: true deadlocks are possible
};

class World {
 public:
  World(std::uint64_t seed, Options options);
  /// Random programs for `steps`, then everything is let go and must end: throws std::runtime_error with the story where an invariant breaks.
  void run(int steps);

 private:
  using HandleFence = engine::HandleFence;
  using LockCall = engine::LockCall;
  struct Program {
    LockOwner owner;
    std::shared_ptr<HandleFence> handle;
    std::optional<WaiterId> waiting;
    LockCall call;                    ///< the one that waits
    bool releasing = false;
    std::map<std::uint64_t, protocol::Mode> held[2];  ///< what it may rely on, byte by byte
  };
  struct Host {
    int id = 0;
    SessionId sid;
    std::unique_ptr<engine::FileLocks> locks;
    std::vector<Program> programs;
    std::uint64_t next_seq = 1;
    protocol::Round round;
    protocol::RoundResult result;
    bool in_round = false;
    bool listing = false;
  };

  void act(Host& host, Program& program, bool only_release);
  void request(Host& host, Program& program);
  void weaken(Program& program, const LockCall& call) const;
  void release(Host& host, Program& program, ByteRange range, protocol::Space space);
  void granted(Host& host, Program& program, const LockCall& call);
  void check_conflicts(const Host& host, const Program& program, const LockCall& call) const;
  bool step(Host& host);
  void finish_round(Host& host);
  void deliver(engine::FileLocks::Answers& answers);
  void settle();
  void drain();
  Result<void> outcome(bool done, int already);
  engine::FileLocks::Now now();
  std::uint64_t pick(std::uint64_t below) { return random_() % below; }
  [[noreturn]] void broken(const std::string& what) const;

  std::mt19937_64 random_;
  Options options_;
  Folder folder_;
  AllAlive peers_;
  std::vector<Host> hosts_;
  Nanos time_{0};
  std::uint64_t next_waiter_ = 1;
  std::uint64_t next_ticket_ = 1;
  std::vector<std::string> story_;
};

}  // namespace latchfs::sim
