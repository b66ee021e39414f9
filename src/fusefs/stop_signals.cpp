#include "fusefs/stop_signals.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mount.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <memory>
#include <utility>

namespace latchfs::fusefs {
namespace {

// A signal handler reaches nothing but globals: the write end of the pipe that wakes the thread, -1 when there is none.
std::atomic<int> wake_descriptor{-1};

void wake(char why) {
  const int saved = errno;
  const int fd = wake_descriptor.load();
  // A full pipe is as good a wake-up as one byte more.
  if (fd >= 0) [[maybe_unused]]
    const ssize_t ignored = ::write(fd, &why, 1);
  errno = saved;
}

constexpr char kSignal = 's';
constexpr char kRequest = 'r';
constexpr char kEnd = 'e';

void on_signal(int /*number*/) { wake(kSignal); }

}  // namespace

Result<std::unique_ptr<StopSignals>> StopSignals::install(Plan plan) {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return fail_errno(errno, "pipe");
  return std::unique_ptr<StopSignals>(new StopSignals(std::move(plan), UniqueFd(ends[0]), UniqueFd(ends[1])));
}

StopSignals::StopSignals(Plan plan, UniqueFd wake_read, UniqueFd wake_write)
    : plan_(std::move(plan)),
      server_(::pthread_self()),
      wake_read_(std::move(wake_read)),
      wake_write_(std::move(wake_write)) {
  take_signals();
  thread_ = std::thread([this] { run(); });
  ::pthread_setname_np(thread_.native_handle(), "lfs-signal");
}

void StopSignals::take_signals() {
  wake_descriptor = wake_write_.get();
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  // Without SA_RESTART: the loop's thread sleeps in a call that must come back.
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    Old old{number, {}};
    ::sigaction(number, nullptr, &old.action);
    // nohup wants the program to live on.
    if (number == SIGHUP && old.action.sa_handler == SIG_IGN) continue;
    ::sigaction(number, &action, nullptr);
    old_.push_back(old);
  }
}

StopSignals::~StopSignals() {
  loop_ended_ = true;
  done_ = true;
  wake(kEnd);
  thread_.join();
  for (const Old& old : old_) ::sigaction(old.number, &old.action, nullptr);
  wake_descriptor = -1;
}

void StopSignals::request() { wake(kRequest); }

void StopSignals::loop_ended() {
  loop_ended_ = true;
  wake(kEnd);
}

char StopSignals::wait_for_byte() const {
  char why = 0;
  do {
    pollfd ready{wake_read_.get(), POLLIN, 0};
    ::poll(&ready, 1, -1);
  } while (::read(wake_read_.get(), &why, 1) != 1);
  return why;
}

void StopSignals::run() {
  const char why = wait_for_byte();
  if (!loop_ended_) {
    came_ = why == kSignal;
    if (came_ && plan_.events != nullptr) plan_.events->log(Level::info, "unmounting {} on a signal", plan_.mountpoint);
    plan_.stop();
  }
  see_it_end();
}

void StopSignals::see_it_end() {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(kLimitSeconds);
  while (!done_) {
    if (std::chrono::steady_clock::now() > limit) give_up();
    // The loop looks at its end flag only when its sleep is interrupted, and may be just about to fall asleep: so again
    // and again.
    if (!loop_ended_) ::pthread_kill(server_, SIGTERM);
    ::poll(nullptr, 0, 20);
  }
}

void StopSignals::give_up() const {
  if (plan_.events != nullptr) {
    plan_.events->log(Level::error,
                      "the share does not answer: {} is detached and the process ends without waiting for it",
                      plan_.mountpoint);
  }
  ::umount2(plan_.mountpoint.c_str(), MNT_DETACH);
  ::_exit(1);
}

}  // namespace latchfs::fusefs
