#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "latchfs/base/error.hpp"
#include "latchfs/protocol/lease_times.hpp"

/// The two kinds of file with content. Parsers are total: any bytes give a value or Errc::corrupt, never an exception.
namespace latchfs::protocol {

/// `.latchfs/format`, YAML.
struct FormatDocument {
  int format = 1;
  std::string share_uuid{};      ///< 32 hex digits
  LeaseTimes times{};
  std::uint64_t own_inode = 0;   ///< the number of this very file, so that a mount notices when numbers differ
  friend bool operator==(const FormatDocument&, const FormatDocument&) = default;
};
std::string to_text(const FormatDocument& doc);
/// A higher `format` than kFormatVersion is Errc::refused with both versions named.
Result<FormatDocument> parse_format(std::string_view text);

/// `.latchfs/sessions/<sid>`, JSON. Empty or zero fields mean "unknown" and prove nothing.
struct SessionInfo {
  std::string host{};            ///< for humans
  std::string host_id{};         ///< set by the administrator, or empty
  std::string boot_id{};
  std::string machine_hash{};    ///< app-specific hash of the machine id, never the id itself
  std::uint64_t pid = 0;
  std::uint64_t pid_start = 0;   ///< field 22 of /proc/PID/stat
  std::uint64_t pid_namespace = 0;
  std::uint64_t uid = 0;
  std::string version{};
  std::string mountpoint{};
  std::int64_t started_us = 0;   ///< wall clock of the host, for display
  friend bool operator==(const SessionInfo&, const SessionInfo&) = default;
};
std::string to_text(const SessionInfo& info);
Result<SessionInfo> parse_session_info(std::string_view text);

/// True where both were written in one boot of one host and pids mean the same: equal host_id (also both empty), equal
/// known boot id, equal known pid namespace. Only then is "the pid is gone" a proof of death. Pure.
bool same_boot(const SessionInfo& a, const SessionInfo& b);

}  // namespace latchfs::protocol
