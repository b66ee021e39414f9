#pragma once
#include <mutex>
#include <string>
#include <unordered_set>

#include "latchfs/base/events.hpp"
#include "latchfs/engine/lock_service.hpp"
#include "latchfs/engine/session.hpp"
#include "latchfs/protocol/file_claims.hpp"
#include "latchfs/share/share.hpp"

namespace latchfs::engine {

/// What a session knows of its peers, and what one look at sessions/ found out about strangers.
class JudgedPeers final : public protocol::Peers {
 public:
  explicit JudgedPeers(const Session& session) : session_(session) {}
  bool is_void(const SessionId& sid) const override { return session_.is_void(sid) || gone_.contains(sid); }
  bool is_known(const SessionId& sid) const override { return session_.is_known(sid); }
  bool is_late(const SessionId& sid) const override { return session_.is_late(sid); }
  /// A claim is made after its session's name and that name is never renamed: a session that a listing begun after the claim was seen does not
  /// show is gone, with all its claims.
  void add_gone(const SessionId& sid) { gone_.insert(sid); }

 private:
  const Session& session_;
  std::unordered_set<SessionId> gone_{};
};

/// Carries out the steps of a round on the share. Blocks. Any thread.
class RoundRunner {
 public:
  RoundRunner(share::Share& share, Session& session, EventSink& events) : share_(share), session_(session), events_(events) {}

  protocol::RoundResult run(const protocol::Round& round, FileId file, const SessionId& self, FileData& data, JudgedPeers& peers);
  /// One fresh listing of the file's folder, judged. No folder: nobody has a name there.
  Result<protocol::FolderView> look(FileId file, const SessionId& self, share::Freshness freshness, JudgedPeers& peers);

 private:
  Result<void> make(const std::string& folder, const std::string& name);
  void report_unknown(const std::string& folder);

  share::Share& share_;
  Session& session_;
  EventSink& events_;
  std::mutex mutex_;
  std::unordered_set<std::string> reported_;  ///< folders with an unknown claim: one error each
};

}  // namespace latchfs::engine
