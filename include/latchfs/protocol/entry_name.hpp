#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "latchfs/base/byte_range.hpp"
#include "latchfs/base/ids.hpp"

/// The grammar of every name in the control directory; nothing else knows it.
/// All functions here are pure: any thread, no error but the empty answer.
namespace latchfs::protocol {

enum class Space : char { posix = 'p', flock = 'f' };  ///< fcntl and OFD share one space; flock has its own
enum class Mode : char { read = 'r', write = 'w' };
enum class EntryKind : char { held = 'h', cached = 'c', queued = 'q' };

/// "This session has (or wants) this range in this mode."
struct Claim {
  FileId file;
  Space space = Space::posix;
  Mode mode = Mode::read;
  ByteRange range;
  Ticket ticket;
  SessionId sid;
  Seq seq;
  friend bool operator==(const Claim&, const Claim&) = default;
};

struct LockEntry {
  EntryKind kind = EntryKind::held;
  Claim claim;
  friend bool operator==(const LockEntry&, const LockEntry&) = default;
};

/// A name in locks/ that begins as a claim (h. or c.) and does not parse: a claim of somebody unknown, in the way of
/// all.
struct UnknownClaim {};
/// Not ours (.nfs..., .DS_Store): to be ignored.
struct ForeignName {};
using LockName = std::variant<LockEntry, UnknownClaim, ForeignName>;

/// `h.<fileid>.<space><mode>.<start>-<end>.<ticket>.<sid>.<seq>`, at most 255 bytes.
std::string format(const LockEntry& entry);
/// Total and strict: parse(format(e)) == e, and format(parse(n)) == n for every name that parses.
LockName parse_lock_name(std::string_view name);

/// `<sid>.<n>` or `<sid>.dead` in beats/. `beat` is empty for a dead session.
struct BeatEntry {
  SessionId sid;
  std::optional<BeatNumber> beat;
  friend bool operator==(const BeatEntry&, const BeatEntry&) = default;
};
std::string format(const BeatEntry& entry);
/// The number after `beat`: one more, but never 0xdead, whose name would read as that of a dead session.
BeatNumber next_beat(BeatNumber beat);
std::optional<BeatEntry> parse_beat_name(std::string_view name);

/// A session id stands alone as a name in sessions/ and inbox/: exactly 20 lower-case hex digits.
std::optional<SessionId> parse_session_name(std::string_view name);

/// The folder below locks/ of a file: the first three of the 16 hex digits of XXH64 (seed 0) of the fileid's text.
std::string lock_folder(FileId file);

/// True where two claims on one file cannot both be granted: other sessions, same space, common bytes, one of them
/// writes.
bool conflicts(const Claim& a, const Claim& b);

}  // namespace latchfs::protocol
