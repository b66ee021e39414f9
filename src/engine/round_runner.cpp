#include "engine/round_runner.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <variant>

#include "latchfs/protocol/layout.hpp"

namespace latchfs::engine {
namespace {

std::string folder_of(FileId file) { return fmt::format("{}/{}", protocol::kLocks, protocol::lock_folder(file)); }

}  // namespace

protocol::RoundResult RoundRunner::run(const protocol::Round& round, FileId file, const SessionId& self, FileData& data,
                                       JudgedPeers& peers) {
  const std::string folder = folder_of(file);
  protocol::RoundResult result;
  if (round.flush_first) {
    if (const Result<void> flushed = data.flush(); !flushed) {
      events_.log(Level::error, "{}: data could not be written out before a lock was let go: {}", data.path(), describe(flushed.error()));
    }
  }
  for (const protocol::LockEntry& entry : round.publish) result.published.push_back(make(folder, protocol::format(entry)));
  for (const protocol::LockEntry& entry : round.remove) {
    result.removed.push_back(share_.remove_entry(folder, protocol::format(entry)));
  }
  if (!round.list) return result;
  // Only a change that is known to be done makes the next listing fresh by itself.
  bool changed = false;
  for (const auto* done : {&result.published, &result.removed}) {
    for (const Result<void>& step : *done) changed = changed || step.has_value();
  }
  result.listing = look(file, self, changed ? share::Freshness::own_change : share::Freshness::forced, peers);
  return result;
}

Result<protocol::FolderView> RoundRunner::look(FileId file, const SessionId& self, share::Freshness freshness, JudgedPeers& peers) {
  const std::string folder = folder_of(file);
  const Result<std::vector<std::string>> names = share_.list(folder, freshness);
  if (!names) {
    if (is_errno(names.error(), ENOENT)) return protocol::FolderView{};
    return tl::unexpected(names.error());
  }
  if (protocol::has_strangers(*names, file, self, peers)) {
    if (const Result<void> learnt = session_.learn(); !learnt) return tl::unexpected(learnt.error());
    for (const std::string& name : *names) {
      const protocol::LockName parsed = protocol::parse_lock_name(name);
      const auto* entry = std::get_if<protocol::LockEntry>(&parsed);
      if (entry != nullptr && entry->claim.sid != self && !peers.is_known(entry->claim.sid)) peers.add_gone(entry->claim.sid);
    }
  }
  protocol::FolderView view = protocol::judge(*names, file, self, peers);
  if (view.unknown_claim) report_unknown(folder);
  return view;
}

Result<void> RoundRunner::make(const std::string& folder, const std::string& name) {
  Result<void> made = share_.make_entry(folder, name);
  if (made || !is_errno(made.error(), ENOENT)) return made;
  if (Result<void> folder_made = share_.make_folder(folder); !folder_made) return folder_made;
  return share_.make_entry(folder, name);
}

void RoundRunner::report_unknown(const std::string& folder) {
  {
    const std::lock_guard lock(mutex_);
    if (!reported_.insert(folder).second) return;
  }
  events_.log(Level::error,
              "{} has a name that begins like a claim and is none: no lock is given on files whose claims belong there until it is removed",
              folder);
}

}  // namespace latchfs::engine
