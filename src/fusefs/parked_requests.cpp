#include "fusefs/parked_requests.hpp"

#include <utility>

#include "fusefs/front.hpp"

namespace latchfs::fusefs {
namespace {

// Called with the request's lock held: it may not answer, and the key travels in place of a pointer because the entry
// may be gone.
void on_interrupt(fuse_req_t raw, void* data) {
  Front::of(raw).parked->interrupted(reinterpret_cast<std::uintptr_t>(data));
}

}  // namespace

ParkedRequests::Key ParkedRequests::park_uninterruptible(Request request) {
  const std::lock_guard lock(mutex_);
  const Key key = next_++;
  entries_.emplace(key, Entry{std::move(request)});
  return key;
}

ParkedRequests::Key ParkedRequests::park(Request request) {
  const fuse_req_t raw = request.raw();
  const Key key = park_uninterruptible(std::move(request));
  // Without the mutex, which the callback takes. Nobody knows the key yet, so the request is still there.
  ::fuse_req_interrupt_func(raw, on_interrupt, reinterpret_cast<void*>(static_cast<std::uintptr_t>(key)));
  return key;
}

void ParkedRequests::aim(Key key, std::function<void()> cancel) {
  {
    const std::lock_guard lock(mutex_);
    const auto it = entries_.find(key);
    if (it == entries_.end()) return;
    if (!it->second.interrupted) {
      it->second.cancel = std::move(cancel);
      return;
    }
  }
  canceller_.post(std::move(cancel));
}

void ParkedRequests::interrupted(Key key) {
  std::function<void()> cancel;
  {
    const std::lock_guard lock(mutex_);
    const auto it = entries_.find(key);
    if (it == entries_.end()) return;
    it->second.interrupted = true;
    cancel = std::exchange(it->second.cancel, nullptr);
  }
  if (cancel) canceller_.post(std::move(cancel));
}

std::optional<ParkedRequests::Taken> ParkedRequests::take(Key key) {
  auto pass = gate_.enter();
  if (!pass) return std::nullopt;
  const std::lock_guard lock(mutex_);
  const auto node = entries_.extract(key);
  if (node.empty()) return std::nullopt;
  return Taken{std::move(*pass), std::move(node.mapped().request)};
}

void ParkedRequests::close() {
  gate_.close();
  gate_.drain();  // first: what is being answered may park once more
  std::unordered_map<Key, Entry> rest;
  {
    const std::lock_guard lock(mutex_);
    rest.swap(entries_);
  }
  rest.clear();  // each request answers EIO as it goes
}

}  // namespace latchfs::fusefs
