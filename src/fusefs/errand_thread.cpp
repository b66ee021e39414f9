#include "fusefs/errand_thread.hpp"

#include <pthread.h>

#include <utility>

namespace latchfs::fusefs {

ErrandThread::ErrandThread(const char* name) : thread_([this] { run(); }) {
  ::pthread_setname_np(thread_.native_handle(), name);
}

ErrandThread::~ErrandThread() { stop(); }

void ErrandThread::post(std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    jobs_.push_back(std::move(job));
  }
  changed_.notify_one();
}

void ErrandThread::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void ErrandThread::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    {
      const std::function<void()> job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      job();
    }
    lock.lock();
  }
}

}  // namespace latchfs::fusefs
