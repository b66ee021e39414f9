#pragma once
#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <string>

namespace latchfs {

/// A number with a meaning of its own, so that two kinds cannot be mixed up in a call.
template <class Tag>
struct StrongId {
  std::uint64_t value = 0;
  friend constexpr auto operator<=>(const StrongId&, const StrongId&) = default;
};

using FileId = StrongId<struct FileIdTag>;        ///< the server's number of a file
using LockOwner = StrongId<struct LockOwnerTag>;  ///< FUSE's lock_owner
using HandleId = StrongId<struct HandleIdTag>;    ///< one open file of this mount (FUSE fh), never reused
using WaiterId = StrongId<struct WaiterIdTag>;    ///< one lock request of this mount, never reused
using Ticket = StrongId<struct TicketTag>;        ///< share time of a request, microseconds; smaller is earlier
using Seq = StrongId<struct SeqTag>;              ///< counts the names of one session
using BeatNumber = StrongId<struct BeatTag>;      ///< counts the beats of one session

/// One membership of a mount: 20 lower-case hex digits (80 random bits), never reused. Compares as text.
struct SessionId {
  std::string text{};
  friend auto operator<=>(const SessionId&, const SessionId&) = default;
};

/// A new random session id, from the kernel's random source. Any thread.
SessionId random_session_id();

}  // namespace latchfs

template <class Tag>
struct std::hash<latchfs::StrongId<Tag>> {
  std::size_t operator()(const latchfs::StrongId<Tag>& id) const noexcept {
    return std::hash<std::uint64_t>{}(id.value);
  }
};
template <>
struct std::hash<latchfs::SessionId> {
  std::size_t operator()(const latchfs::SessionId& id) const noexcept { return std::hash<std::string>{}(id.text); }
};
