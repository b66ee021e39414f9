#pragma once
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "latchfs/share/share.hpp"

namespace latchfs::engine {

/// Thrown out of a share call that returned after its gate was closed. It unwinds the thread of a keeper that was given
/// up while the share hung: nothing outside the keeper may be touched any more, not even to report an error.
struct Abandoned {};

/// Says of one thread whether it is in a share call now, so that its owner can leave it there for good. Any thread.
class Gate {
 public:
  /// Both throw Abandoned when the gate is closed.
  void enter();
  void leave();
  /// The thread has nothing more to do.
  void finish();
  /// False: not finished by then.
  bool wait_finished(std::chrono::steady_clock::time_point deadline);
  /// Waits until the thread is in a share call or finished (it must be on its way there), then shuts it out of all
  /// others.
  void close();
  /// Shuts out all further calls at once; for a gate that several threads use.
  void close_now();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int inside_ = 0;
  bool finished_ = false;
  bool closed_ = false;
};

/// A share whose calls go through a gate.
class GuardedShare final : public share::Share {
 private:
  template <class Call>
  auto pass(Call call) {
    gate_.enter();
    auto result = call();
    gate_.leave();
    return result;
  }

 public:
  GuardedShare(share::Share& share, Gate& gate) : share_(share), gate_(gate) {}

  Result<void> make_entry(const std::string& dir, const std::string& name) override {
    return pass([&] { return share_.make_entry(dir, name); });
  }
  Result<void> remove_entry(const std::string& dir, const std::string& name) override {
    return pass([&] { return share_.remove_entry(dir, name); });
  }
  Result<void> make_folder(const std::string& dir) override {
    return pass([&] { return share_.make_folder(dir); });
  }
  Result<void> publish_file(const std::string& dir, const std::string& name, const std::string& content) override {
    return pass([&] { return share_.publish_file(dir, name, content); });
  }
  Result<void> make_file(const std::string& dir, const std::string& name) override {
    return pass([&] { return share_.make_file(dir, name); });
  }
  Result<std::string> read_file(const std::string& dir, const std::string& name, std::size_t limit) override {
    return pass([&] { return share_.read_file(dir, name, limit); });
  }
  Result<void> rename(const std::string& dir, const std::string& from, const std::string& to) override {
    return pass([&] { return share_.rename(dir, from, to); });
  }
  Result<std::vector<std::string>> list(const std::string& dir, share::Freshness freshness) override {
    return pass([&] { return share_.list(dir, freshness); });
  }
  Result<share::FileFacts> facts(const std::string& dir, const std::string& name) override {
    return pass([&] { return share_.facts(dir, name); });
  }
  Result<void> sync_all() override {
    return pass([&] { return share_.sync_all(); });
  }

 private:
  share::Share& share_;
  Gate& gate_;
};

}  // namespace latchfs::engine
