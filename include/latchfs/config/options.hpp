#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "latchfs/base/clock.hpp"
#include "latchfs/base/error.hpp"

namespace latchfs::config {

/// Everything that can be set, with its default. Each is a row of the table in options.cpp, which drives -o words, flags and YAML keys.
struct Options {
  bool foreground = false;                  ///< -f
  bool debug = false;                       ///< -d, implies foreground
  bool read_only = false;                   ///< ro
  std::string config_file{};                ///< config=FILE
  std::optional<Nanos> beat{};              ///< beat=; unset: what the share's format says, or 5 s for a new share
  std::optional<Nanos> fence_after{};       ///< fence_after=; 45 s
  std::optional<Nanos> break_after{};       ///< break_after=; 60 s
  std::string host_id{};                    ///< host_id=; empty: the machine's identity
  bool fail_on_expiry = false;              ///< on_expiry=wait|fail
  Nanos hold_limit = std::chrono::minutes(10);  ///< hold_limit=
  std::string log_level = "info";           ///< log_level=debug|info|warning|error
  std::vector<std::string> fuse_options{};  ///< default_permissions and the generic mount words, handed to libfuse
  std::string source{};
  std::string mountpoint{};
};

/// What the command line asked for besides a mount.
enum class Action { mount, help, version };

struct CommandLine {
  Action action = Action::mount;
  Options options{};
};

/// Reads the command line of latchfs and the YAML file it names; precedence: built-in < YAML < command line. Errc::refused with one sentence
/// (file and line for YAML; the nearest known word for an unknown one). `allow_other` is refused with its reason. One thread.
Result<CommandLine> parse_command_line(const std::vector<std::string>& args);

/// The text of -h, made from the table.
std::string help_text();

}  // namespace latchfs::config
