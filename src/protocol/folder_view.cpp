#include "latchfs/protocol/folder_view.hpp"

#include <algorithm>

namespace latchfs::protocol {

FolderView judge(const std::vector<std::string>& names, FileId file, const SessionId& self, const Peers& peers) {
  FolderView view;
  for (const std::string& name : names) {
    const LockName parsed = parse_lock_name(name);
    if (std::holds_alternative<UnknownClaim>(parsed)) view.unknown_claim = true;
    const auto* entry = std::get_if<LockEntry>(&parsed);
    if (entry == nullptr || entry->claim.file != file) continue;
    if (entry->claim.sid == self) {
      view.mine.push_back(*entry);
    } else if (peers.is_void(entry->claim.sid)) {
      view.litter.push_back(*entry);
    } else {
      view.others.push_back(*entry);
    }
  }
  return view;
}

bool has_strangers(const std::vector<std::string>& names, FileId file, const SessionId& self, const Peers& peers) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    const LockName parsed = parse_lock_name(name);
    const auto* entry = std::get_if<LockEntry>(&parsed);
    return entry != nullptr && entry->claim.file == file && entry->claim.sid != self &&
           !peers.is_void(entry->claim.sid) && !peers.is_known(entry->claim.sid);
  });
}

}  // namespace latchfs::protocol
