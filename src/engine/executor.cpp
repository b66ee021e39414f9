#include "engine/executor.hpp"

#include <pthread.h>

#include <utility>

namespace latchfs::engine {

Executor::Executor(unsigned threads, const std::string& name) {
  for (unsigned i = 0; i < threads; ++i) {
    threads_.emplace_back([this] { run(); });
    pthread_setname_np(threads_.back().native_handle(), name.c_str());
  }
}

Executor::~Executor() {
  stop();
  for (std::thread& thread : threads_) thread.join();
}

void Executor::post(Job job) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return;
  ready_.push_back(std::move(job));
  changed_.notify_one();
}

void Executor::post_at(Time when, Job job) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return;
  later_.emplace(when, std::move(job));
  changed_.notify_one();
}

void Executor::stop() {
  std::deque<Job> ready;
  std::multimap<Time, Job> later;
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  ready.swap(ready_);
  later.swap(later_);
  changed_.notify_all();
}

void Executor::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const Time now = std::chrono::steady_clock::now();
    for (auto it = later_.begin(); it != later_.end() && it->first <= now; it = later_.erase(it)) {
      ready_.push_back(std::move(it->second));
    }
    if (ready_.empty()) {
      if (later_.empty()) {
        changed_.wait(lock);
      } else {
        changed_.wait_until(lock, Time(later_.begin()->first));
      }
      continue;
    }
    Job job = std::move(ready_.front());
    ready_.pop_front();
    if (!ready_.empty()) changed_.notify_one();  // one wake-up may stand for several due timers
    lock.unlock();
    job();
    job = nullptr;  // what it holds may end here, not under the mutex
    lock.lock();
  }
}

}  // namespace latchfs::engine
