#include "latchfs/fusefs/background.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <functional>
#include <iostream>
#include <string>

using namespace latchfs::fusefs;

namespace {

struct Outcome {
  int code = -1;
  std::string stderr_text{};
};

/// What a shell sees of a program that goes to the background and then runs `child`.
Outcome run(const std::function<void(Background&)>& child) {
  std::array<int, 2> ends{};
  REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
  std::cout.flush();  // or the child prints it once more
  const pid_t program = ::fork();
  REQUIRE(program >= 0);
  if (program == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[0]);
    ::close(ends[1]);
    auto background = Background::detach();
    if (!background) ::_exit(99);
    child(*background);
    ::_exit(0);
  }
  ::close(ends[1]);
  Outcome outcome;
  int status = 0;
  ::waitpid(program, &status, 0);
  if (WIFEXITED(status)) outcome.code = WEXITSTATUS(status);
  std::array<char, 4096> text{};
  ssize_t size = 0;
  while ((size = ::read(ends[0], text.data(), text.size())) > 0)
    outcome.stderr_text.append(text.data(), static_cast<std::size_t>(size));
  ::close(ends[0]);
  return outcome;
}

}  // namespace

TEST_CASE("success is told without a word") {
  const auto outcome = run([](Background& background) { background.report(0, ""); });
  CHECK(outcome.code == 0);
  CHECK(outcome.stderr_text.empty());
}

TEST_CASE("a failure is told with its code and message, once") {
  const auto outcome = run([](Background& background) {
    background.report(32, "cannot be mounted");
    background.report(1, "too late");
  });
  CHECK(outcome.code == 32);
  CHECK(outcome.stderr_text == "latchfs: cannot be mounted\n");
}

TEST_CASE("the caller waits for the report and not for the end of the process") {
  std::array<int, 2> hold{};
  REQUIRE(::pipe2(hold.data(), O_CLOEXEC) == 0);
  const auto outcome = run([&hold](Background& background) {
    ::close(hold[1]);
    background.report(0, "");
    char byte = 0;
    [[maybe_unused]] const ssize_t end = ::read(hold[0], &byte, 1);  // until the test lets go
  });
  CHECK(outcome.code == 0);
  ::close(hold[1]);
  ::close(hold[0]);
}

TEST_CASE("a process that dies without a word is reported") {
  const auto killed = run([](Background&) { ::raise(SIGKILL); });
  CHECK(killed.code == 2);
  CHECK(killed.stderr_text.find("signal 9") != std::string::npos);
  const auto left = run([](Background&) { ::_exit(7); });
  CHECK(left.code == 2);
  CHECK(left.stderr_text.find("exit code 7") != std::string::npos);
}

TEST_CASE("after success nothing of the surroundings is held") {
  std::array<int, 2> answer{};
  REQUIRE(::pipe2(answer.data(), O_CLOEXEC) == 0);
  run([&answer](Background& background) {
    background.report(0, "");
    std::array<char, 4096> path{};
    const ssize_t size = ::readlink("/proc/self/fd/2", path.data(), path.size());
    std::string text(path.data(), static_cast<std::size_t>(size));
    if (::getcwd(path.data(), path.size()) != nullptr) text += std::string(" ") + path.data();
    if (::getsid(0) == ::getpid()) text += " leader";
    [[maybe_unused]] const ssize_t sent = ::write(answer[1], text.data(), text.size());
  });
  ::close(answer[1]);
  std::array<char, 4096> text{};
  std::string all;
  ssize_t size = 0;
  while ((size = ::read(answer[0], text.data(), text.size())) > 0)
    all.append(text.data(), static_cast<std::size_t>(size));
  ::close(answer[0]);
  CHECK(all == "/dev/null / leader");
}
