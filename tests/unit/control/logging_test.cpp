#include "latchfs/control/logging.hpp"

#include <doctest/doctest.h>
#include <fnmatch.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

using namespace latchfs;
using namespace latchfs::control;

namespace {

// What `work` writes to standard error.
std::string standard_error_of(const std::function<void()>& work) {
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  const int kept = dup(STDERR_FILENO);
  dup2(fileno(file), STDERR_FILENO);
  work();
  dup2(kept, STDERR_FILENO);
  close(kept);
  std::rewind(file);
  std::string text(1 << 20, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

// True where the text looks like the shell pattern. (std::regex does not compile without warnings under the sanitizers
// of g++ 12.)
bool looks_like(const std::string& text, const std::string& pattern) {
  return fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

// The pattern of a line: time with milliseconds and zone, then the rest.
std::string stamped(const std::string& rest) {
  std::string pattern;
  for (const char c : std::string("dddd-dd-ddTdd:dd:dd.dddzdd:dd ")) {
    pattern += c == 'd' ? "[0-9]" : c == 'z' ? "[+-]" : std::string(1, c);
  }
  return pattern + rest;
}

}  // namespace

TEST_CASE("a line to standard error has time, level and text") {
  const std::string text = standard_error_of([] {
    auto sink = make_event_sink(LogTarget::standard_error, Level::info);
    sink->log(Level::warning, "session {} is late", 7);
  });
  CHECK(looks_like(text, stamped("warning: session 7 is late\n")));
}

TEST_CASE("what is less important than the lowest level is not written") {
  const std::string text = standard_error_of([] {
    auto sink = make_event_sink(LogTarget::standard_error, Level::warning);
    CHECK_FALSE(sink->wants(Level::info));
    CHECK(sink->wants(Level::error));
    sink->log(Level::info, "quiet");
    sink->write(Level::debug, "quiet too");
    sink->log(Level::error, "loud");
  });
  CHECK(text.find("quiet") == std::string::npos);
  CHECK(text.find("error: loud\n") != std::string::npos);
}

TEST_CASE("a hostile name cannot forge a line, and braces and percent signs are plain text") {
  const std::string text = standard_error_of([] {
    auto sink = make_event_sink(LogTarget::standard_error, Level::debug);
    sink->write(Level::info, "name 'a\n2000-01-01 error: forged\x1b[2J' {} {0} %v %s");
  });
  CHECK(text.find("info: name 'a\\x0a2000-01-01 error: forged\\x1b[2J' {} {0} %v %s\n") != std::string::npos);
}

TEST_CASE("lines from many threads stay whole") {
  const std::string text = standard_error_of([] {
    auto sink = make_event_sink(LogTarget::standard_error, Level::info);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&sink, t] {
        for (int i = 0; i < 50; ++i) sink->log(Level::info, "thread {} line {} end", t, i);
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  std::istringstream lines(text);
  int whole = 0;
  for (std::string line; std::getline(lines, line); ++whole) {
    CHECK(looks_like(line, stamped("info: thread [0-3] line *[0-9] end")));
  }
  CHECK(whole == 200);
}

TEST_CASE("the journal target takes lines also where nothing listens") {
  const std::string text = standard_error_of([] {
    auto sink = make_event_sink(LogTarget::journal, Level::info);
    sink->log(Level::info, "a line of the unit tests");
  });
  CHECK(text.empty());
}
