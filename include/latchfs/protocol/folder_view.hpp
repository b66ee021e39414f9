#pragma once
#include <functional>
#include <string>
#include <vector>

#include "latchfs/protocol/entry_name.hpp"

namespace latchfs::protocol {

/// What is known of other sessions when a listing is judged. Each answer may be given from memory.
class Peers {
 public:
  virtual ~Peers() = default;
  virtual bool is_void(const SessionId& sid) const = 0;   ///< positively dead or gone
  virtual bool is_known(const SessionId& sid) const = 0;  ///< seen alive
  virtual bool is_late(const SessionId& sid) const = 0;   ///< its beat is two beats late
};

/// One complete listing of a lock folder as one file's session sees it. Pure.
struct FolderView {
  std::vector<LockEntry> others{};    ///< names of other sessions on this file, those of dead sessions left out
  std::vector<LockEntry> mine{};      ///< names of the own session on this file
  std::vector<LockEntry> litter{};    ///< names of dead sessions on this file: void, anyone may remove them
  bool unknown_claim = false;         ///< a name that begins as a claim and does not parse: nothing may be granted in this folder
};
FolderView judge(const std::vector<std::string>& names, FileId file, const SessionId& self, const Peers& peers);

/// True where the listing has names on this file of sessions that are neither known alive nor known dead: find out before judging.
bool has_strangers(const std::vector<std::string>& names, FileId file, const SessionId& self, const Peers& peers);

}  // namespace latchfs::protocol
