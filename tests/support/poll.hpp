#pragma once
#include <chrono>
#include <thread>

namespace latchfs::testing {

/// True as soon as `condition` holds; false after a bound that only a hang reaches.
template <class Condition>
bool eventually(const Condition& condition, std::chrono::seconds bound = std::chrono::seconds(30)) {
  const auto end = std::chrono::steady_clock::now() + bound;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace latchfs::testing
