#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace latchfs::fusefs {

/// A thread that runs small jobs in order, for callers that must not run them where they are. post(): any thread, never
/// blocks.
class ErrandThread {
 public:
  explicit ErrandThread(const char* name);
  /// Runs what is still queued, then ends the thread.
  ~ErrandThread();
  ErrandThread(const ErrandThread&) = delete;
  ErrandThread& operator=(const ErrandThread&) = delete;

  void post(std::function<void()> job);
  /// As the destructor; later jobs are dropped. One thread.
  void stop();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace latchfs::fusefs
