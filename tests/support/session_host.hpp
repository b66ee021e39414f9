#pragma once
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "latchfs/engine/session_keeper.hpp"
#include "latchfs/protocol/documents.hpp"
#include "support/fake_share.hpp"
#include "support/poll.hpp"

/// A host with a session keeper over a share in memory, its clocks moved by hand.
namespace latchfs::testing {

/// Stands still unless moved. The wall clock is the machine's.
class HandClock final : public Clock {
 public:
  LeaseTime lease_now() const override { return LeaseTime(Nanos(lease_.load())); }
  ObserveTime observe_now() const override { return ObserveTime(Nanos(observe_.load())); }
  WallTime wall() const override { return std::chrono::system_clock::now(); }
  void advance(Nanos by) {
    advance_lease(by);
    observe_ += by.count();
  }
  void advance_lease(Nanos by) { lease_ += by.count(); }

 private:
  std::atomic<Nanos::rep> lease_{1'000'000'000'000};
  std::atomic<Nanos::rep> observe_{2'000'000'000'000};
};

class LogLines final : public EventSink {
 public:
  bool wants(Level) const override { return true; }
  void write(Level level, std::string_view line) override {
    const std::lock_guard lock(mutex_);
    lines_.emplace_back(level, std::string(line));
  }
  int count(Level level, const std::string& part) const {
    const std::lock_guard lock(mutex_);
    int n = 0;
    for (const auto& [l, line] : lines_) n += l == level && line.find(part) != std::string::npos ? 1 : 0;
    return n;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::pair<Level, std::string>> lines_;
};

/// Keeps what it was told, in order: "joined", "lost", "beat", "gap", "dead".
class Told final : public engine::SessionListener {
 public:
  struct Event {
    std::string what;
    SessionId sid;
    std::string reason;
    bool lease_valid = false;  ///< at that moment
    std::optional<SessionId> current{};
  };
  std::function<void(Event&)> look;  ///< fills in what else is to be noted; set before start()

  void on_lost(const SessionId& sid, const std::string& reason) override { add({"lost", sid, reason}); }
  void on_joined(const SessionId& sid) override { add({"joined", sid, ""}); }
  void on_beat(bool after_gap) override { add({after_gap ? "gap" : "beat", {}, ""}); }
  void on_peer_dead(const SessionId& sid) override { add({"dead", sid, ""}); }

  std::vector<Event> all(const std::string& what) const {
    const std::lock_guard lock(mutex_);
    std::vector<Event> out;
    for (const Event& e : events_) {
      if (e.what == what) out.push_back(e);
    }
    return out;
  }
  int count(const std::string& what) const { return static_cast<int>(all(what).size()); }
  bool dead(const SessionId& sid) const {
    for (const Event& e : all("dead")) {
      if (e.sid == sid) return true;
    }
    return false;
  }

 private:
  void add(Event event) {
    if (look) look(event);
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
  }
  mutable std::mutex mutex_;
  std::vector<Event> events_;
};

/// Beats come every 100 ms of real time, the shortest that is allowed; leases and silence are counted by the clock that
/// is moved by hand.
inline protocol::LeaseTimes hand_times() {
  using ms = std::chrono::milliseconds;
  return {ms(100), ms(500), ms(700)};
}

inline void lay_out(FakeDisk& disk, const protocol::LeaseTimes& times = hand_times()) {
  protocol::FormatDocument doc;
  doc.share_uuid = std::string(32, '0');
  doc.times = times;
  disk.lay_out(protocol::to_text(doc));
}

/// How many threads of keepers there are in this process.
inline int keeper_threads() {
  int count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(task.path() / "comm");
    std::string name;
    std::getline(file, name);
    count += name == "lfs-beat" || name == "lfs-sweep" ? 1 : 0;
  }
  return count;
}

struct SessionHost {
  explicit SessionHost(FakeDisk& disk, std::string host_id = "", share::EntryForm form = share::EntryForm::directory,
                       protocol::LeaseTimes times = hand_times())
      : share(disk, form), keeper(share, clock, events, lease, times, {std::move(host_id), "/mnt/x"}) {
    told.look = [this](Told::Event& event) {
      event.lease_valid = keeper.lease_valid();
      event.current = keeper.current();
    };
  }

  SessionHost(const SessionHost&) = delete;
  SessionHost& operator=(const SessionHost&) = delete;
  ~SessionHost() {
    // No thread may be left behind in a share that is about to go.
    share.set_hook({});
    share.thaw();
  }

  Result<void> start() { return keeper.start(told); }
  SessionId sid() const { return keeper.current().value_or(SessionId{"none"}); }
  /// Waits until so many further beats were confirmed, and the listings after all but the last of them made.
  bool beats(int more) {
    const int target = total_beats() + more;
    return eventually([&] { return total_beats() >= target; });
  }
  int total_beats() const { return told.count("beat") + told.count("gap"); }

  FakeShare share;
  HandClock clock;
  LogLines events;
  Told told;
  engine::Lease lease{clock};
  engine::SessionKeeper keeper;
};

}  // namespace latchfs::testing
