#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "latchfs/base/byte_range.hpp"
#include "latchfs/base/events.hpp"
#include "latchfs/base/ids.hpp"
#include "latchfs/engine/fence.hpp"
#include "latchfs/engine/session.hpp"
#include "latchfs/protocol/entry_name.hpp"
#include "latchfs/share/share.hpp"

namespace latchfs::engine {

/// What the lock service asks of the file behind a lock. One object a file (inode) of the mount. Any thread of the service; both may block.
class FileData {
 public:
  virtual ~FileData() = default;
  /// Everything this mount wrote to the file since the last flush is on the server afterwards.
  virtual Result<void> flush() = 0;
  /// Reads after this see what is on the server now: the share's cached pages and attributes and the kernel's page and attribute cache of
  /// the mount are dropped.
  virtual Result<void> refresh() = 0;
  /// A path for the log; may be out of date after a rename.
  virtual std::string path() const = 0;
};

/// One request by a program.
struct LockCall {
  FileId file;
  std::shared_ptr<FileData> data;
  std::shared_ptr<HandleFence> handle;
  protocol::Space space = protocol::Space::posix;
  protocol::Mode mode = protocol::Mode::read;
  ByteRange range;
  LockOwner owner;
  std::int64_t pid = 0;
  bool wait = false;
};

/// A lock that is in the way; pid 0 for one on another host.
struct Blocker {
  protocol::Mode mode = protocol::Mode::read;
  ByteRange range;
  std::int64_t pid = 0;
};

/// The lock table of this mount joined to the share. All calls: any thread; none blocks on the share. Each `done` is called exactly once,
/// from any thread (also from inside the call), with no mutex of the service held; it must not block.
class LockService {
 public:
  using Done = std::function<void(Result<void>)>;
  using Tested = std::function<void(Result<std::optional<Blocker>>)>;

  virtual ~LockService() = default;

  /// An id for cancel(), never reused.
  virtual WaiterId next_id() = 0;
  /// Takes (or converts) a lock. conflict: cannot be had now (try only). cancelled: after cancel(). no_locks: the share refuses
  /// names. lease_lost: the handle lost a lock before. A refused try or wait leaves what the owner held (flock conversions: nothing).
  virtual void lock(WaiterId id, LockCall call, Done done) = 0;
  /// Lets go of call.range (mode and wait are not looked at). Done when other hosts can have it; cancel() answers it early with success.
  virtual void unlock(WaiterId id, LockCall call, Done done) = 0;
  /// F_GETLK: the first lock that would be in the way of `call`, empty if none.
  virtual void test(LockCall call, Tested done) = 0;
  /// FLUSH: drops all fcntl locks of the owner on the file. Done (inside the call) at once when there are none.
  virtual void drop_owner(FileId file, LockOwner owner, Done done) = 0;
  /// RELEASE: drops every lock last acquired through the handle, and cancels what still waits through it.
  virtual void drop_handle(FileId file, const std::shared_ptr<HandleFence>& handle, Done done) = 0;
  /// The request was interrupted. False: not known (never submitted, or answered already).
  virtual bool cancel(WaiterId id) = 0;
};

}  // namespace latchfs::engine
