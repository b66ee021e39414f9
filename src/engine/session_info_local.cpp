#include "engine/session_info_local.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <systemd/sd-id128.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <fstream>
#include <sstream>

namespace latchfs::engine {
namespace {

// Names this program where a machine identity is made from the machine's own secret one.
constexpr sd_id128_t kApplication = SD_ID128_ARRAY(5e, 2d, 0b, 97, 6c, 11, 4f, 0e, 9a, 83, 1f, d4, 70, c5, 26, 8b);

std::string to_text(sd_id128_t id) {
  std::array<char, SD_ID128_STRING_MAX> text{};
  return sd_id128_to_string(id, text.data());
}

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

/// Field 22 of /proc/PID/stat; 0 where it cannot be read. The command in field 2 may hold blanks and brackets, so the
/// fields are counted from its last bracket.
std::uint64_t start_time(std::uint64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  if (!std::getline(file, line)) return 0;
  const std::size_t bracket = line.rfind(')');
  if (bracket == std::string::npos) return 0;
  std::istringstream rest(line.substr(bracket + 1));
  std::string skipped;
  constexpr int kFieldsBetween = 19;
  for (int i = 0; i < kFieldsBetween; ++i) rest >> skipped;
  std::uint64_t ticks = 0;
  return rest >> ticks ? ticks : 0;
}

/// The pid namespace of this process, as a number that is never two namespaces at once; 0 where it is not known.
std::uint64_t pid_namespace() {
  // A /proc of another namespace (a container that was given the host's) would show other processes under our pids.
  std::array<char, 32> self{};
  if (::readlink("/proc/self", self.data(), self.size() - 1) < 0) return 0;
  if (fmt::format("{}", ::getpid()) != self.data()) return 0;
  struct stat st {};
  return ::stat("/proc/self/ns/pid", &st) == 0 ? st.st_ino : 0;
}

}  // namespace

protocol::SessionInfo local_session_info(const Clock& clock, const std::string& host_id,
                                         const std::string& mountpoint) {
  protocol::SessionInfo info;
  info.host = host_name();
  info.host_id = host_id;
  sd_id128_t id{};
  if (sd_id128_get_boot(&id) >= 0) info.boot_id = to_text(id);
  if (sd_id128_get_machine_app_specific(kApplication, &id) >= 0) info.machine_hash = to_text(id);
  info.pid = static_cast<std::uint64_t>(::getpid());
  info.pid_start = start_time(info.pid);
  info.pid_namespace = pid_namespace();
  info.uid = ::geteuid();
  info.version = LATCHFS_VERSION;
  info.mountpoint = mountpoint;
  const auto since_epoch = clock.wall().time_since_epoch();
  info.started_us = std::chrono::duration_cast<std::chrono::microseconds>(since_epoch).count();
  return info;
}

bool process_is_gone(const protocol::SessionInfo& own, const protocol::SessionInfo& peer) {
  if (!protocol::same_boot(own, peer) || peer.pid == 0 || peer.pid > INT_MAX) return false;
  if (::kill(static_cast<pid_t>(peer.pid), 0) != 0 && errno == ESRCH) return true;
  const std::uint64_t now = start_time(peer.pid);
  return now != 0 && peer.pid_start != 0 && now != peer.pid_start;
}

}  // namespace latchfs::engine
