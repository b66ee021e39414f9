#pragma once
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "latchfs/base/events.hpp"
#include "latchfs/base/ids.hpp"
#include "latchfs/protocol/documents.hpp"
#include "latchfs/share/share.hpp"

namespace latchfs::engine {

class PeerWatch;

/// What the peers say of themselves, and the proof of death that this gives for those on this very host. Any thread.
class LocalPeers {
 public:
  explicit LocalPeers(protocol::SessionInfo own) : own_(std::move(own)) {}

  /// Reads the session files of live peers that were not read yet, and forgets the others. Blocks on the share.
  void read_infos(share::Share& share, const std::vector<SessionId>& live);
  /// Breaks the peers whose process is proved gone. Waits for no silence: nothing of them can write any more once this
  /// host's dirty pages are out. Blocks on the share.
  void break_gone(share::Share& share, PeerWatch& peers, EventSink& events);

  /// "host" of a session, or its id where that is not known.
  std::string name_of(const SessionId& sid) const;

 private:
  struct Known {
    protocol::SessionInfo info{};
    int failures = 0;
    bool read = false;
  };
  std::vector<SessionId> gone() const;

  const protocol::SessionInfo own_;
  mutable std::mutex mutex_;
  std::map<SessionId, Known> known_{};
};

}  // namespace latchfs::engine
