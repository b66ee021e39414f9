#include "table.hpp"

#include <algorithm>
#include <array>

namespace latchfs::config {
namespace {

void set_read_only(Options& o, const Value& v) {
  o.read_only = v.flag;
  o.fuse_options.emplace_back(v.flag ? "ro" : "rw");  // of several, the last one counts for libfuse too
}

void set_default_permissions(Options& o, const Value& v) {
  auto& list = o.fuse_options;
  list.erase(std::remove(list.begin(), list.end(), "default_permissions"), list.end());
  if (v.flag) list.emplace_back("default_permissions");
}

// What libfuse 3.14 takes in its -o list was tried word by word; `relatime` and friends it refuses.
constexpr std::array kMountWords{
    MountWord{"rw", Fate::pass, ""},
    MountWord{"dev", Fate::pass, ""},
    MountWord{"nodev", Fate::pass, ""},
    MountWord{"suid", Fate::pass, ""},
    MountWord{"nosuid", Fate::pass, ""},
    MountWord{"exec", Fate::pass, ""},
    MountWord{"noexec", Fate::pass, ""},
    MountWord{"atime", Fate::pass, ""},
    MountWord{"noatime", Fate::pass, ""},
    MountWord{"async", Fate::pass, ""},
    MountWord{"sync", Fate::pass, ""},
    MountWord{"dirsync", Fate::pass, ""},
    MountWord{"relatime", Fate::drop, ""},
    MountWord{"_netdev", Fate::drop, ""},
    MountWord{"nofail", Fate::drop, ""},
    MountWord{"auto", Fate::drop, ""},
    MountWord{"noauto", Fate::drop, ""},
    MountWord{"user", Fate::drop, ""},
    MountWord{"users", Fate::drop, ""},
    MountWord{"nouser", Fate::drop, ""},
    MountWord{"defaults", Fate::drop, ""},
    MountWord{"comment", Fate::drop, ""},
    MountWord{"x-*", Fate::drop, ""},
    MountWord{"X-*", Fate::drop, ""},
    MountWord{"allow_other", Fate::refuse,
              "operations do not carry the caller's rights yet, so other users would act with those of the daemon"},
    MountWord{"allow_root", Fate::refuse,
              "operations do not carry the caller's rights yet, so root would act with those of the daemon"},
    MountWord{"auto_unmount", Fate::refuse,
              "after a crash the mount must answer ENOTCONN and not vanish to show an unlocked directory"},
    MountWord{"no_remote_lock*", Fate::refuse, "the kernel would keep all locks to this host"},
    MountWord{"no_remote_posix_lock", Fate::refuse, "the kernel would keep fcntl locks to this host"},
    MountWord{"no_remote_flock", Fate::refuse, "the kernel would keep flock locks to this host"},
    MountWord{"writeback_cache", Fate::refuse, "the kernel would keep written data back when a lock is released"},
    MountWord{"direct_io", Fate::refuse, "shared mappings, which SQLite and others need, would fail"},
    MountWord{"remount", Fate::refuse, "a mounted latchfs cannot be changed: unmount it and mount it again"},
};

}  // namespace

const std::vector<Row>& rows() {
  static const std::vector<Row> table{
      {"foreground", 'f', Kind::flag, "", "", "stay in the foreground",
       [](Options& o, const Value& v) { o.foreground = v.flag; }},
      {"debug", 'd', Kind::flag, "", "",
       "trace every request on standard error; implies foreground and log_level=debug",
       [](Options& o, const Value& v) { o.debug = v.flag; }},
      {"ro", 0, Kind::flag, "", "", "mount read-only: nothing is written to the share, and lock calls get ENOLCK",
       set_read_only},
      {"default_permissions", 0, Kind::flag, "", "", "let the kernel check permissions by owner and mode",
       set_default_permissions},
      {"config", 0, Kind::text, "FILE", "", "read options from a YAML file; the command line goes before it",
       [](Options& o, const Value& v) { o.config_file = v.text; }},
      {"beat", 0, Kind::duration, "TIME", "the share's, or 5s on a new share", "time between two renewals of the lease",
       [](Options& o, const Value& v) { o.beat = v.duration; }},
      {"fence_after", 0, Kind::duration, "TIME", "the share's, or 45s on a new share",
       "length of the lease: after so long without a renewal no lock is granted here; at least 3 x beat",
       [](Options& o, const Value& v) { o.fence_after = v.duration; }},
      {"break_after", 0, Kind::duration, "TIME", "the share's, or 60s on a new share",
       "silence after which another mount ends a session and frees its locks; at least 1.25 x fence_after",
       [](Options& o, const Value& v) { o.break_after = v.duration; }},
      {"host_id", 0, Kind::name, "NAME", "the machine's own identity",
       "name of this host among those of the share; mounts with different names never count as one host",
       [](Options& o, const Value& v) { o.host_id = v.text; }},
      {"on_expiry", 0, Kind::choice, "wait|fail", "wait",
       "what reads and writes under a lock do while the lease has run out: wait for the next renewal, or fail with EIO",
       [](Options& o, const Value& v) { o.fail_on_expiry = v.text == "fail"; }},
      {"hold_limit", 0, Kind::duration, "TIME", "10m", "with on_expiry=wait, fail with EIO after so long",
       [](Options& o, const Value& v) { o.hold_limit = v.duration; }},
      {"log_level", 0, Kind::choice, "debug|info|warning|error", "info", "the least important messages that are logged",
       [](Options& o, const Value& v) { o.log_level = v.text; }},
  };
  return table;
}

const Row* find_row(std::string_view word) {
  for (const Row& row : rows()) {
    if (row.word == word) return &row;
  }
  return nullptr;
}

const MountWord* find_mount_word(std::string_view word) {
  for (const MountWord& entry : kMountWords) {
    const bool prefix = entry.word.back() == '*';
    const std::string_view stem = entry.word.substr(0, entry.word.size() - (prefix ? 1 : 0));
    if (prefix ? word.substr(0, stem.size()) == stem : word == stem) return &entry;
  }
  return nullptr;
}

}  // namespace latchfs::config
