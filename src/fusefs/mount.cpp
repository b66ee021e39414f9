#include "latchfs/fusefs/mount.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include "fusefs/front.hpp"
#include "fusefs/mount_args.hpp"
#include "fusefs/ops_table.hpp"
#include "fusefs/stop_signals.hpp"
#include "latchfs/files/sync.hpp"

namespace latchfs::fusefs {
namespace {

constexpr unsigned kWorkers = 16;
constexpr std::chrono::seconds kCacheLimit{2};
constexpr long kFuseMagic = 0x65735546;  // f_type of every FUSE mount, statfs(2)

struct SessionDeleter {
  void operator()(fuse_session* session) const { ::fuse_session_destroy(session); }
};
using SessionPtr = std::unique_ptr<fuse_session, SessionDeleter>;

Result<void> check_mountpoint(const std::string& path) {
  struct stat st {};
  if (::stat(path.c_str(), &st) == 0) {
    return S_ISDIR(st.st_mode) ? Result<void>() : fail(Errc::refused, fmt::format("{} is no directory", path));
  }
  if (errno != ENOTCONN && errno != ECONNABORTED) return fail_errno(errno, path);
  return fail(Errc::refused,
              fmt::format("{0} is still the mount of a daemon that is gone; unmount it first: umount -l {0}", path));
}

Result<std::unique_ptr<files::InodeTable>> open_source(const std::string& source) {
  UniqueFd root(::open(source.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root) return fail_errno(errno, source);
  if (::access("/proc/self/fd", X_OK) != 0) return fail_errno(errno, "/proc must be mounted: /proc/self/fd");
  return files::InodeTable::over(std::move(root));
}

/// Asks the new mount for its statistics, which the loop must answer, and tells the caller. A mount that does not
/// answer is ended.
class ReadyThread {
 public:
  ReadyThread(const std::string& mountpoint, StopSignals& stop, const std::function<void()>& ready)
      : thread_([this, &mountpoint, &stop, &ready] {
          struct statfs st {};
          if (::statfs(mountpoint.c_str(), &st) != 0)
            error_ = errno;
          else if (st.f_type != kFuseMagic)
            error_ = ENOTCONN;
          error_ == 0 ? ready() : stop.request();
        }) {
    ::pthread_setname_np(thread_.native_handle(), "lfs-ready");
  }
  ~ReadyThread() { join(); }
  ReadyThread(const ReadyThread&) = delete;
  ReadyThread& operator=(const ReadyThread&) = delete;

  /// What the mount answered: 0 or an errno. Only when the mount is answered or ended.
  int join() {
    if (thread_.joinable()) thread_.join();
    return error_;
  }

 private:
  int error_ = 0;
  std::thread thread_;
};

int run_loop(fuse_session* session) {
  const std::unique_ptr<fuse_loop_config, decltype(&::fuse_loop_cfg_destroy)> config(::fuse_loop_cfg_create(),
                                                                                     ::fuse_loop_cfg_destroy);
  ::fuse_loop_cfg_set_clone_fd(config.get(), 1);
  ::fuse_loop_cfg_set_max_threads(config.get(), kWorkers);
  ::fuse_loop_cfg_set_idle_threads(config.get(), kWorkers);
  return ::fuse_session_loop_mt(session, config.get());
}

/// The workers have ended. Whoever is still inside from other threads must be out before the kernel's descriptor is
/// closed and may get another meaning.
void end_mount(Front& front, fuse_session* session) {
  front.kernel->close();
  front.parked->close();
  front.canceller.stop();
  front.closer.stop();
  ::fuse_session_unmount(session);
}

Result<void> serve_mounted(const MountSpec& spec, Front& front, fuse_session* session, StopSignals& signals,
                           const std::function<void()>& ready) {
  ReadyThread ready_thread(spec.mountpoint, signals, ready);
  const int ended = run_loop(session);
  signals.loop_ended();
  end_mount(front, session);
  if (ended < 0) return fail_errno(-ended, fmt::format("serving {} ended", spec.mountpoint));
  const int answer = ready_thread.join();
  return answer == 0 || signals.came() ? Result<void>()
                                       : fail_errno(answer, fmt::format("{} does not answer", spec.mountpoint));
}

}  // namespace

Result<void> serve(const MountSpec& spec, const Services& services, const std::function<void()>& ready) {
  if (auto usable = check_mountpoint(spec.mountpoint); !usable) return usable;
  if (auto raised = files::raise_descriptor_limit(); !raised && services.events != nullptr) {
    services.events->write(Level::warning, describe(raised.error()));
  }
  // The kernel has applied the program's umask already.
  ::umask(0);
  ::signal(SIGPIPE, SIG_IGN);
  auto inodes = open_source(spec.source);
  if (!inodes) return tl::unexpected(inodes.error());
  Front front(spec, services, std::move(*inodes));

  MountArgs args(spec);
  const SessionPtr session(::fuse_session_new(args.get(), &ops_table(), sizeof(fuse_lowlevel_ops), &front));
  if (!session) return fail(Errc::refused, "libfuse does not take the mount options");
  front.kernel = std::make_shared<KernelCache>(session.get());
  // Page drops must be over while reads are still served: one that waits for a page would wait for ever.
  const auto stop = [&front, &session] {
    front.kernel->close_for(kCacheLimit);
    ::fuse_session_exit(session.get());
  };
  // Before mounting: a signal that killed the process right after it would leave a dead mount.
  const auto signals = StopSignals::install({stop, spec.mountpoint, services.events});
  if (!signals) return tl::unexpected(signals.error());
  if (::fuse_session_mount(session.get(), spec.mountpoint.c_str()) != 0) {
    return fail(Errc::refused, fmt::format("{} cannot be mounted at {}", spec.source, spec.mountpoint));
  }
  return serve_mounted(spec, front, session.get(), **signals, ready);
}

}  // namespace latchfs::fusefs
