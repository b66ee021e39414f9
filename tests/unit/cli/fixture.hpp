#pragma once
#include <doctest/doctest.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "latchfs/protocol/documents.hpp"
#include "latchfs/protocol/entry_name.hpp"

namespace latchfs::cli {

/// A directory of a share with a control directory whose names a test writes by hand; removed at the end.
class ControlDirectory {
 public:
  ControlDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "latchfs-cli-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    source_ = pattern;
    for (const char* folder : {"sessions", "beats", "inbox", "locks"})
      std::filesystem::create_directories(control() / folder);
    write("format", protocol::to_text(protocol::FormatDocument{1, std::string(32, 'a'), {}, 1}));
  }
  ~ControlDirectory() { std::filesystem::remove_all(source_); }
  ControlDirectory(const ControlDirectory&) = delete;
  ControlDirectory& operator=(const ControlDirectory&) = delete;

  std::string source() const { return source_.string(); }
  std::filesystem::path control() const { return source_ / ".latchfs"; }
  void write(const std::string& name, const std::string& content) const { std::ofstream(control() / name) << content; }

  /// A session that is listed, with a beat made just now.
  SessionId add_session(char letter, const protocol::SessionInfo& info) const {
    const SessionId sid{std::string(20, letter)};
    write("sessions/" + sid.text, protocol::to_text(info));
    write("beats/" + protocol::format(protocol::BeatEntry{sid, BeatNumber{7}}), "");
    return sid;
  }
  void kill(const SessionId& sid) const {
    std::filesystem::rename(control() / "beats" / protocol::format(protocol::BeatEntry{sid, BeatNumber{7}}),
                            control() / "beats" / protocol::format(protocol::BeatEntry{sid, {}}));
  }
  /// Makes the name of a lock; answers the path below the control directory.
  std::string add_lock(protocol::EntryKind kind, const protocol::Claim& claim) const {
    const std::string folder = "locks/" + protocol::lock_folder(claim.file);
    const std::string name = folder + "/" + protocol::format(protocol::LockEntry{kind, claim});
    std::filesystem::create_directories(control() / name);
    return name;
  }

 private:
  std::filesystem::path source_;
};

inline protocol::Claim claim(std::uint64_t file, protocol::Mode mode, ByteRange range, std::uint64_t ticket,
                             const SessionId& sid, std::uint64_t seq = 1) {
  return {FileId{file}, protocol::Space::posix, mode, range, Ticket{ticket}, sid, Seq{seq}};
}

}  // namespace latchfs::cli
