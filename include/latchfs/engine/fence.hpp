#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "latchfs/base/error.hpp"
#include "latchfs/base/ids.hpp"
#include "latchfs/engine/lease.hpp"

namespace latchfs::engine {

/// The fence's view of one open file: how many locks were last acquired through it, and whether one of them was lost. Any thread.
class HandleFence {
 public:
  explicit HandleFence(HandleId id) : id_(id) {}
  HandleId id() const { return id_; }
  bool has_locks() const { return locks_.load(std::memory_order_acquire) != 0; }
  bool lost() const { return lost_.load(std::memory_order_acquire); }
  /// For the lock service only.
  void set_locks(std::uint32_t count) { locks_.store(count, std::memory_order_release); }
  void set_lost() { lost_.store(true, std::memory_order_release); }

 private:
  const HandleId id_;
  std::atomic<std::uint32_t> locks_{0};
  std::atomic<bool> lost_{false};
};

enum class OnExpiry { wait, fail };

/// Decides what I/O of a handle may pass, and keeps I/O that must wait for the lease. A file without locks pays two loads.
class Fence {
 public:
  enum class Verdict {
    pass,  ///< go on
    hold,  ///< the lease is over and the fate unknown: give the work to hold()
    fail,  ///< a lock of this handle was lost, or on_expiry is `fail`: EIO
  };
  using Then = std::function<void(Result<void>)>;

  Fence(const Lease& lease, OnExpiry on_expiry, Nanos hold_limit);
  ~Fence();

  /// Before the I/O, and for writes once more after it (there anything but `pass` is EIO). Any thread, never blocks.
  Verdict check(const HandleFence& handle) const {
    const bool locked = handle.has_locks();  // first: a loss is marked before the count goes to 0
    if (handle.lost()) return Verdict::fail;
    if (!locked || lease_.valid()) return Verdict::pass;
    return on_expiry_ == OnExpiry::wait ? Verdict::hold : Verdict::fail;
  }
  /// Keeps `then` until check() no longer says `hold` (called with success, or lease_lost), hold_limit has passed, cancel() or stop()
  /// (lease_lost). `then` runs on the fence's own thread, exactly once, and may do I/O. Any thread.
  WaiterId hold(std::shared_ptr<const HandleFence> handle, Then then);
  /// The request was interrupted. Unknown ids are ignored. Any thread, never blocks.
  void cancel(WaiterId id);
  /// Lease or handles changed: look at what is held. Any thread, never blocks.
  void wake();
  /// Answers all that is held and ends the thread. Later hold() calls are answered at once.
  void stop();

 private:
  struct Held {
    std::shared_ptr<const HandleFence> handle;
    Then then;
    LeaseTime deadline;
    bool cancelled = false;
  };
  void run();

  const Lease& lease_;
  const OnExpiry on_expiry_;
  const Nanos hold_limit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<WaiterId, Held> held_;
  std::uint64_t next_id_ = 1;
  bool poked_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace latchfs::engine
