#pragma once
#include <memory>
#include <string>

#include "latchfs/base/events.hpp"

namespace latchfs::control {

enum class LogTarget { standard_error, journal };

/// A sink that writes through spdlog: to stderr with time and level, or to the journal with SYSLOG_IDENTIFIER=latchfs (syslog where there is
/// no journal). Control characters in a line are escaped. Call it after the fork. The sink takes calls from any thread.
std::unique_ptr<EventSink> make_event_sink(LogTarget target, Level lowest);

}  // namespace latchfs::control
