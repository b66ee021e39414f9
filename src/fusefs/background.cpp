#include "latchfs/fusefs/background.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace latchfs::fusefs {
namespace {

constexpr int kNoWord = 2;

void print(const std::string& message) {
  if (!message.empty()) std::fprintf(stderr, "latchfs: %s\n", message.c_str());
}

std::string read_all(int fd) {
  std::string all;
  std::array<char, 1024> part{};
  for (;;) {
    const ssize_t size = ::read(fd, part.data(), part.size());
    if (size > 0) all.append(part.data(), static_cast<std::size_t>(size));
    if (size == 0 || (size < 0 && errno != EINTR)) return all;
  }
}

void write_all(int fd, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t size = ::write(fd, text.data() + done, text.size() - done);
    if (size < 0 && errno != EINTR) return;
    if (size > 0) done += static_cast<std::size_t>(size);
  }
}

std::string how_it_died(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) return "killed by signal " + std::to_string(WTERMSIG(status));
  return "exit code " + std::to_string(WEXITSTATUS(status));
}

/// The first byte is the exit code, the rest the message; nothing at all when the child died first.
[[noreturn]] void wait_for_child(UniqueFd status, pid_t child) {
  const std::string word = read_all(status.get());
  if (word.empty()) {
    print("the background process ended before the mount was ready (" + how_it_died(child) + ")");
    ::_exit(kNoWord);
  }
  print(word.substr(1));
  ::_exit(static_cast<unsigned char>(word[0]));
}

/// The terminal and the directory where the program was started must not be held for as long as the mount lives.
void let_go_of_surroundings() {
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (null) {
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null.get(), fd);
  }
  [[maybe_unused]] const int ignored = ::chdir("/");
}

}  // namespace

Result<Background> Background::detach() {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail_errno(errno, "pipe");
  UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return fail_errno(errno, "fork");
  if (child > 0) {
    write_end.reset();
    wait_for_child(std::move(read_end), child);
  }
  ::setsid();
  Background self;
  self.status_ = std::move(write_end);
  self.detached_ = true;
  return self;
}

Background Background::foreground() { return Background(); }

void Background::report(int code, const std::string& message) {
  if (reported_) return;
  reported_ = true;
  if (!detached_) {
    if (code != 0) print(message);
    return;
  }
  if (code == 0) let_go_of_surroundings();
  write_all(status_.get(), std::string(1, static_cast<char>(code)) + message);
  status_.reset();
}

}  // namespace latchfs::fusefs
