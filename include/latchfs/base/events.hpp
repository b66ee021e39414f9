#pragma once
#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace latchfs {

/// error: an administrator must act. warning: lease trouble, foreign names. info: life events. debug: each request.
enum class Level { debug, info, warning, error };

/// Where the layers report to. Implementations must take calls from any thread.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual bool wants(Level level) const = 0;
  virtual void write(Level level, std::string_view line) = 0;

  template <class... Args>
  void log(Level level, fmt::format_string<Args...> format, Args&&... args) {
    if (wants(level)) write(level, fmt::format(format, std::forward<Args>(args)...));
  }
};

}  // namespace latchfs
