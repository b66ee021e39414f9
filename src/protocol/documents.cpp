#include "latchfs/protocol/documents.hpp"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "latchfs/base/duration.hpp"
#include "latchfs/protocol/layout.hpp"

namespace latchfs::protocol {
namespace {

// Both documents are a few hundred bytes; a bound keeps what a hostile share can cost small.
constexpr std::size_t kMaxFormat = 4096;
constexpr std::size_t kMaxSessionInfo = 16384;
constexpr std::size_t kUuidLength = 32;

Error corrupt_format(std::string why) { return Error{Errc::corrupt, 0, "format: " + std::move(why)}; }

template <class Number>
std::optional<Number> parse_decimal(std::string_view text) {
  Number value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value, 10);
  if (ec != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool is_uuid(std::string_view text) {
  return text.size() == kUuidLength &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

/// The text of a scalar under `key`; empty where there is none. Throws what yaml-cpp throws.
std::string scalar(const YAML::Node& map, const char* key) {
  const YAML::Node node = map[key];
  return node.IsDefined() && node.IsScalar() ? node.Scalar() : std::string();
}

Result<LeaseTimes> times_of(const YAML::Node& map) {
  const auto beat = parse_duration(scalar(map, "beat"));
  const auto fence = parse_duration(scalar(map, "fence_after"));
  const auto brk = parse_duration(scalar(map, "break_after"));
  if (!beat || !fence || !brk) return tl::unexpected(corrupt_format("the lease times cannot be read"));
  const LeaseTimes times{*beat, *fence, *brk};
  if (const auto fine = check(times); !fine) return tl::unexpected(corrupt_format(fine.error().what));
  return times;
}

Result<FormatDocument> format_of(const YAML::Node& map) {
  if (!map.IsMap()) return tl::unexpected(corrupt_format("no YAML map"));
  const auto version = parse_decimal<int>(scalar(map, "format"));
  if (!version || *version < 1) return tl::unexpected(corrupt_format("no format number"));
  if (*version > kFormatVersion) {
    return fail(Errc::refused, fmt::format("the share has format {}, but this latchfs knows only format {}", *version,
                                           kFormatVersion));
  }
  FormatDocument doc;
  doc.format = *version;
  doc.share_uuid = scalar(map, "share_uuid");
  if (!is_uuid(doc.share_uuid)) return tl::unexpected(corrupt_format("no share_uuid of 32 hex digits"));
  const auto times = times_of(map);
  if (!times) return tl::unexpected(times.error());
  doc.times = *times;
  const auto inode = parse_decimal<std::uint64_t>(scalar(map, "own_inode"));
  if (!inode) return tl::unexpected(corrupt_format("no own_inode"));
  doc.own_inode = *inode;
  return doc;
}

using Json = nlohmann::json;

// A missing field means unknown; one of another type means that this is not our document.
bool take(const Json& object, const char* key, std::string& out) {
  const auto it = object.find(key);
  if (it == object.end()) return true;
  if (!it->is_string()) return false;
  out = it->get<std::string>();
  return true;
}

bool take(const Json& object, const char* key, std::uint64_t& out) {
  const auto it = object.find(key);
  if (it == object.end()) return true;
  if (!it->is_number_unsigned()) return false;
  out = it->get<std::uint64_t>();
  return true;
}

bool take(const Json& object, const char* key, std::int64_t& out) {
  const auto it = object.find(key);
  if (it == object.end()) return true;
  if (!it->is_number_integer()) return false;
  if (it->is_number_unsigned() && it->get<std::uint64_t>() > INT64_MAX) return false;
  out = it->get<std::int64_t>();
  return true;
}

}  // namespace

std::string to_text(const FormatDocument& doc) {
  return fmt::format(
      "# latchfs: written by the first mount, never edited.\n"
      "format: {}\n"
      "share_uuid: {}\n"
      "beat: {}\n"
      "fence_after: {}\n"
      "break_after: {}\n"
      "own_inode: {}\n",
      doc.format, doc.share_uuid, format_duration(doc.times.beat), format_duration(doc.times.fence_after),
      format_duration(doc.times.break_after), doc.own_inode);
}

Result<FormatDocument> parse_format(std::string_view text) {
  if (text.size() > kMaxFormat) return tl::unexpected(corrupt_format("too long"));
  // A file torn inside its last number would read as another number.
  if (text.empty() || text.back() != '\n') return tl::unexpected(corrupt_format("cut short"));
  try {
    return format_of(YAML::Load(std::string(text)));
  } catch (const std::exception& e) {
    return tl::unexpected(corrupt_format(e.what()));
  }
}

std::string to_text(const SessionInfo& info) {
  const Json object = {
      {"host", info.host},
      {"host_id", info.host_id},
      {"boot_id", info.boot_id},
      {"machine_hash", info.machine_hash},
      {"pid", info.pid},
      {"pid_start", info.pid_start},
      {"pid_namespace", info.pid_namespace},
      {"uid", info.uid},
      {"version", info.version},
      {"mountpoint", info.mountpoint},
      {"started_us", info.started_us},
  };
  // A host name or path need not be UTF-8, and then the writer would throw.
  return object.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<SessionInfo> parse_session_info(std::string_view text) {
  if (text.size() > kMaxSessionInfo) return fail(Errc::corrupt, "session: too long");
  const Json object = Json::parse(text, nullptr, false);
  if (!object.is_object()) return fail(Errc::corrupt, "session: no JSON object");
  SessionInfo info;
  const bool fine = take(object, "host", info.host) && take(object, "host_id", info.host_id) &&
                    take(object, "boot_id", info.boot_id) && take(object, "machine_hash", info.machine_hash) &&
                    take(object, "pid", info.pid) && take(object, "pid_start", info.pid_start) &&
                    take(object, "pid_namespace", info.pid_namespace) && take(object, "uid", info.uid) &&
                    take(object, "version", info.version) && take(object, "mountpoint", info.mountpoint) &&
                    take(object, "started_us", info.started_us);
  if (!fine) return fail(Errc::corrupt, "session: a field has the wrong type");
  return info;
}

bool same_boot(const SessionInfo& a, const SessionInfo& b) {
  if (a.host_id != b.host_id) return false;
  if (a.boot_id.empty() || a.boot_id != b.boot_id) return false;
  return a.pid_namespace != 0 && a.pid_namespace == b.pid_namespace;
}

}  // namespace latchfs::protocol
