#include "latchfs/control/logging.hpp"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/sinks/syslog_sink.h>
#include <spdlog/sinks/systemd_sink.h>
#include <unistd.h>

#include "latchfs/base/printable.hpp"

namespace latchfs::control {
namespace {

constexpr const char* kIdentifier = "latchfs";
constexpr const char* kJournalSocket = "/run/systemd/journal/socket";
constexpr const char* kPattern = "%Y-%m-%dT%H:%M:%S.%e%z %l: %v";

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::debug: return spdlog::level::debug;
    case Level::info: return spdlog::level::info;
    case Level::warning: return spdlog::level::warn;
    case Level::error: return spdlog::level::err;
  }
  return spdlog::level::err;
}

spdlog::sink_ptr make_sink(LogTarget target) {
  if (target == LogTarget::standard_error) return std::make_shared<spdlog::sinks::stderr_sink_mt>();
  // sd_journal_send() says nothing when nobody listens, so this has to be asked first.
  if (access(kJournalSocket, W_OK) == 0) return std::make_shared<spdlog::sinks::systemd_sink_mt>(kIdentifier);
  return std::make_shared<spdlog::sinks::syslog_sink_mt>(kIdentifier, LOG_PID, LOG_DAEMON, false);
}

class SpdlogSink final : public EventSink {
 public:
  SpdlogSink(LogTarget target, Level lowest) : lowest_(lowest), logger_(kIdentifier, make_sink(target)) {
    logger_.set_level(to_spdlog(lowest));
    logger_.set_pattern(kPattern);
    logger_.set_error_handler([](const std::string&) {});  // a log that cannot be written has nowhere to be reported
  }

  bool wants(Level level) const override { return level >= lowest_; }

  void write(Level level, std::string_view line) override {
    if (wants(level)) logger_.log(to_spdlog(level), printable(line));
  }

 private:
  const Level lowest_;
  spdlog::logger logger_;
};

}  // namespace

std::unique_ptr<EventSink> make_event_sink(LogTarget target, Level lowest) {
  return std::make_unique<SpdlogSink>(target, lowest);
}

}  // namespace latchfs::control
