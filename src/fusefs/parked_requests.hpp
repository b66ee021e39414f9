#pragma once
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "fusefs/errand_thread.hpp"
#include "fusefs/gate.hpp"
#include "fusefs/request.hpp"

namespace latchfs::fusefs {

/// Requests whose answer comes later, from another thread. Such a thread knows a key and not the request, so it does no
/// harm when it comes after the mount has ended. Any thread.
///
/// An interrupt may come at any time, even inside park(), and libfuse then holds the request's own lock: it is only
/// noted here, and the job given to aim() is run by the canceller thread. Order of use: park, hand the work over, aim.
class ParkedRequests {
 public:
  using Key = std::uint64_t;
  /// A request that was taken out, to be answered. The mount cannot end before this is gone.
  struct Taken {
    Gate::Pass pass;
    Request request;
  };

  /// `canceller` must live until close() has returned.
  explicit ParkedRequests(ErrandThread& canceller) : canceller_(canceller) {}

  Key park(Request request);
  /// The same for a request that nothing can interrupt.
  Key park_uninterruptible(Request request);
  /// What to do on an interrupt; at once, where one was noted already. Does nothing for a request that is answered.
  void aim(Key key, std::function<void()> cancel);
  /// Empty for one that was taken before, and after close().
  std::optional<Taken> take(Key key);
  /// libfuse says that the request was interrupted.
  void interrupted(Key key);
  /// Answers all with EIO and waits for those that are being answered.
  void close();

 private:
  struct Entry {
    Request request;
    std::function<void()> cancel{};
    bool interrupted = false;
  };

  ErrandThread& canceller_;
  Gate gate_;
  std::mutex mutex_;
  std::unordered_map<Key, Entry> entries_;
  Key next_ = 1;
};

}  // namespace latchfs::fusefs
