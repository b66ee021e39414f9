#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace latchfs::engine {

/// A few threads that may block on the share, and a timer for them.
class Executor {
 public:
  using Job = std::function<void()>;
  using Time = std::chrono::steady_clock::time_point;

  Executor(unsigned threads, const std::string& name);
  /// stop(), then waits for the running jobs.
  ~Executor();

  /// Runs `job` soon, or at `when`, on one of the threads. After stop() it is dropped. Any thread, never blocks.
  void post(Job job);
  void post_at(Time when, Job job);
  /// Nothing new is started; jobs that run go on. Any thread.
  void stop();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> ready_;
  std::multimap<Time, Job> later_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace latchfs::engine
