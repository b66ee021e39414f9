#pragma once
#include <pthread.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "latchfs/base/error.hpp"
#include "latchfs/base/events.hpp"
#include "latchfs/base/unique_fd.hpp"

namespace latchfs::fusefs {

/// Makes SIGTERM, SIGINT and SIGHUP end the mount while this lives. One at a time in a process, made by the thread that
/// serves.
///
/// Signals are taken by handlers and not by a mask, because the layers below have threads already. A share that hangs
/// cannot keep the process: when the end takes longer than kLimit, the mount is detached and the process exits.
class StopSignals {
 public:
  struct Plan {
    std::function<void()> stop;  ///< runs once, on a thread of this class, when a signal came
    std::string mountpoint;
    EventSink* events = nullptr;
  };
  static constexpr int kLimitSeconds = 8;

  static Result<std::unique_ptr<StopSignals>> install(Plan plan);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// The same as a signal. Any thread.
  void request();
  /// A signal came.
  bool came() const { return came_; }
  /// The loop has returned, for whatever reason: from now on nothing interrupts the thread that served, but the limit
  /// runs.
  void loop_ended();

 private:
  StopSignals(Plan plan, UniqueFd wake_read, UniqueFd wake_write);
  void take_signals();
  void run();
  void see_it_end();
  char wait_for_byte() const;
  [[noreturn]] void give_up() const;

  const Plan plan_;
  const pthread_t server_;
  const UniqueFd wake_read_;
  const UniqueFd wake_write_;
  struct Old {
    int number;
    struct sigaction action;
  };
  std::vector<Old> old_;
  std::atomic<bool> came_{false};
  std::atomic<bool> loop_ended_{false};
  std::atomic<bool> done_{false};
  std::thread thread_;
};

}  // namespace latchfs::fusefs
