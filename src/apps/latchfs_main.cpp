// latchfs: puts the parts together. Exit codes as mount(8): 0 fine, 1 usage, 2 system or refused, 32 mount failed.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "latchfs/base/clock.hpp"
#include "latchfs/base/duration.hpp"
#include "latchfs/config/options.hpp"
#include "latchfs/control/logging.hpp"
#include "latchfs/engine/control_dir.hpp"
#include "latchfs/engine/fence.hpp"
#include "latchfs/engine/lock_engine.hpp"
#include "latchfs/engine/session_keeper.hpp"
#include "latchfs/fusefs/background.hpp"
#include "latchfs/fusefs/mount.hpp"

namespace {

using namespace latchfs;
using namespace std::chrono_literals;

constexpr int kUsage = 1;
constexpr int kSystem = 2;
constexpr int kMountFailed = 32;
// A daemon asked to end is gone within 10 s, whatever the share does: this much for the locks and this much for the session.
constexpr Nanos kStopLimit = 4s;

std::string complaint(const Error& error) { return "latchfs: " + describe(error); }

Level level_of(const std::string& word) {
  if (word == "debug") return Level::debug;
  if (word == "warning") return Level::warning;
  return word == "error" ? Level::error : Level::info;
}

std::optional<protocol::LeaseTimes> wanted_times(const config::Options& options) {
  if (!options.beat && !options.fence_after && !options.break_after) return std::nullopt;
  protocol::LeaseTimes times;
  times.beat = options.beat.value_or(times.beat);
  times.fence_after = options.fence_after.value_or(times.fence_after);
  times.break_after = options.break_after.value_or(times.break_after);
  return times;
}

/// Everything between the share and the FUSE front.
struct Engine {
  Engine(engine::ControlDir dir, const config::Options& options, EventSink& events)
      : control(std::move(dir)),
        lease(system_clock()),
        fence(lease, options.fail_on_expiry ? engine::OnExpiry::fail : engine::OnExpiry::wait, options.hold_limit),
        keeper(*control.share, system_clock(), events, lease, control.format.times, {options.host_id, options.mountpoint}),
        locks({*control.share, system_clock(), events, keeper, fence}, control.format.times, protocol::QueuePolicy::writer_first) {}

  engine::ControlDir control;
  engine::Lease lease;
  engine::Fence fence;
  engine::SessionKeeper keeper;
  engine::LockEngine locks;
};

fusefs::MountSpec mount_spec(const config::Options& options) {
  fusefs::MountSpec spec;
  spec.source = options.source;
  spec.mountpoint = options.mountpoint;
  spec.read_only = options.read_only;
  spec.debug = options.debug;
  spec.fuse_options = options.fuse_options;
  return spec;
}

int serve_read_only(const config::Options& options, EventSink& events, fusefs::Background& background) {
  const auto served = fusefs::serve(mount_spec(options), {nullptr, nullptr, &events}, [&] { background.report(0, ""); });
  if (served) return 0;
  background.report(kMountFailed, describe(served.error()));
  return kMountFailed;
}

int serve_with_locks(const config::Options& options, EventSink& events, fusefs::Background& background) {
  auto control = engine::open_control_dir(options.source, wanted_times(options));
  if (!control) {
    background.report(kSystem, describe(control.error()));
    return kSystem;
  }
  auto engine = std::make_unique<Engine>(std::move(*control), options, events);
  if (const auto started = engine->keeper.start(engine->locks); !started) {
    background.report(kSystem, describe(started.error()));
    return kSystem;
  }
  const protocol::LeaseTimes& times = engine->control.format.times;
  events.log(Level::info, "latchfs {} on {} over {}: session {}, beat {}, fence_after {}, break_after {}", LATCHFS_VERSION,
             options.mountpoint, options.source, engine->keeper.current().value_or(SessionId{}).text, format_duration(times.beat),
             format_duration(times.fence_after), format_duration(times.break_after));
  const auto served = fusefs::serve(mount_spec(options), {&engine->locks, &engine->fence, &events}, [&] { background.report(0, ""); });
  if (!served) background.report(kMountFailed, describe(served.error()));

  engine->fence.stop();
  const bool withdrawn = engine->locks.stop(kStopLimit);
  const bool left = engine->keeper.stop(kStopLimit);
  const int code = served ? 0 : kMountFailed;
  if (withdrawn && left) return code;
  events.log(Level::warning, "the share does not answer: names of this session are left for the other hosts to sweep");
  std::_Exit(code);  // threads hang in calls to the share and cannot be joined
}

/// Both paths absolute and without symbolic links, before anything changes the working directory.
Result<void> resolve(config::Options& options) {
  for (std::string* path : {&options.source, &options.mountpoint}) {
    std::error_code error;
    const std::filesystem::path resolved = std::filesystem::canonical(*path, error);
    if (error.value() == ENOTCONN) {
      return fail(Errc::refused, fmt::format("{} is the mount point of a daemon that is gone: unmount it first (umount -l {})", *path, *path));
    }
    if (error) return fail_errno(error.value(), *path);
    *path = resolved.string();
  }
  return {};
}

int run(config::Options options) {
  if (const auto resolved = resolve(options); !resolved) {
    fmt::print(stderr, "{}\n", complaint(resolved.error()));
    return kSystem;
  }
  if (const auto checked = engine::check_source(options.source, options.mountpoint, options.read_only); !checked) {
    fmt::print(stderr, "{}\n", complaint(checked.error()));
    return kSystem;
  }
  auto background = fusefs::Background::foreground();
  if (!options.foreground) {
    auto detached = fusefs::Background::detach();
    if (!detached) {
      fmt::print(stderr, "{}\n", complaint(detached.error()));
      return kSystem;
    }
    background = std::move(*detached);
  }
  const auto target = options.foreground ? control::LogTarget::standard_error : control::LogTarget::journal;
  const auto events = control::make_event_sink(target, options.debug ? Level::debug : level_of(options.log_level));
  return options.read_only ? serve_read_only(options, *events, background) : serve_with_locks(options, *events, background);
}

}  // namespace

int main(int argc, char** argv) {
  const auto line = config::parse_command_line(std::vector<std::string>(argv + 1, argv + argc));
  if (!line) {
    fmt::print(stderr, "{}\n", complaint(line.error()));
    return kUsage;
  }
  switch (line->action) {
    case config::Action::help: fmt::print("{}", config::help_text()); return 0;
    case config::Action::version: fmt::print("latchfs {}\n", LATCHFS_VERSION); return 0;
    case config::Action::mount: break;
  }
  return run(line->options);
}
