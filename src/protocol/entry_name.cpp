#include "latchfs/protocol/entry_name.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <charconv>

namespace latchfs::protocol {
namespace {

constexpr std::size_t kMaxName = 255;
constexpr std::size_t kSidLength = 20;
constexpr std::string_view kDead = "dead";
constexpr std::uint64_t kReadsAsDead = 0xdead;

bool is_hex_digit(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

/// One spelling a number: no leading zero, no capital, nothing behind it. from_chars alone would take more.
std::optional<std::uint64_t> parse_hex(std::string_view text) {
  if (text.empty() || (text.size() > 1 && text.front() == '0')) return std::nullopt;
  if (!std::all_of(text.begin(), text.end(), is_hex_digit)) return std::nullopt;
  std::uint64_t value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (ec != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Takes the text before the next `separator` off the front of a name, and the separator with it.
std::optional<std::string_view> take_until(std::string_view& rest, char separator) {
  const std::size_t at = rest.find(separator);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view field = rest.substr(0, at);
  rest.remove_prefix(at + 1);
  return field;
}

std::optional<EntryKind> parse_kind(std::string_view text) {
  if (text == "h") return EntryKind::held;
  if (text == "c") return EntryKind::cached;
  if (text == "q") return EntryKind::queued;
  return std::nullopt;
}

bool parse_space_and_mode(std::string_view text, Claim& claim) {
  if (text.size() != 2) return false;
  if (text[0] != 'p' && text[0] != 'f') return false;
  if (text[1] != 'r' && text[1] != 'w') return false;
  claim.space = static_cast<Space>(text[0]);
  claim.mode = static_cast<Mode>(text[1]);
  return true;
}

bool parse_range(std::string_view text, Claim& claim) {
  const auto first_text = take_until(text, '-');
  if (!first_text) return false;
  const auto first = parse_hex(*first_text);
  const auto last = parse_hex(text);
  if (!first || !last) return false;
  claim.range = ByteRange{*first, *last};
  if (claim.space == Space::flock && claim.range != ByteRange::whole()) return false;
  return claim.range.valid();
}

/// What follows the kind: `<fileid>.<space><mode>.<start>-<end>.<ticket>.<sid>.<seq>`.
std::optional<Claim> parse_claim(std::string_view rest) {
  Claim claim;
  const auto file_text = take_until(rest, '.');
  const auto kind_text = take_until(rest, '.');
  const auto range_text = take_until(rest, '.');
  const auto ticket_text = take_until(rest, '.');
  const auto sid_text = take_until(rest, '.');
  // A missing separator leaves the later fields empty too, so the last one tells for all.
  if (!sid_text || !parse_space_and_mode(*kind_text, claim) || !parse_range(*range_text, claim)) return std::nullopt;
  const auto file = parse_hex(*file_text);
  const auto ticket = parse_hex(*ticket_text);
  auto sid = parse_session_name(*sid_text);
  const auto seq = parse_hex(rest);
  if (!file || !ticket || !sid || !seq) return std::nullopt;
  claim.file = FileId{*file};
  claim.ticket = Ticket{*ticket};
  claim.sid = std::move(*sid);
  claim.seq = Seq{*seq};
  return claim;
}

}  // namespace

std::string format(const LockEntry& entry) {
  const Claim& c = entry.claim;
  return fmt::format("{}.{:x}.{}{}.{:x}-{:x}.{:x}.{}.{:x}", static_cast<char>(entry.kind), c.file.value,
                     static_cast<char>(c.space), static_cast<char>(c.mode), c.range.first, c.range.last, c.ticket.value,
                     c.sid.text, c.seq.value);
}

LockName parse_lock_name(std::string_view name) {
  const bool blocks = name.substr(0, 2) == "h." || name.substr(0, 2) == "c.";
  std::string_view rest = name.substr(0, kMaxName + 1);
  const auto kind = parse_kind(take_until(rest, '.').value_or(""));
  std::optional<Claim> claim = kind && name.size() <= kMaxName ? parse_claim(rest) : std::nullopt;
  if (claim) return LockEntry{*kind, std::move(*claim)};
  if (blocks) return UnknownClaim{};
  return ForeignName{};
}

std::string format(const BeatEntry& entry) {
  if (!entry.beat) return fmt::format("{}.{}", entry.sid.text, kDead);
  return fmt::format("{}.{:x}", entry.sid.text, entry.beat->value);
}

BeatNumber next_beat(BeatNumber beat) {
  const std::uint64_t next = beat.value + 1;
  return BeatNumber{next == kReadsAsDead ? next + 1 : next};
}

std::optional<BeatEntry> parse_beat_name(std::string_view name) {
  std::string_view rest = name;
  const auto sid_text = take_until(rest, '.');
  if (!sid_text) return std::nullopt;
  auto sid = parse_session_name(*sid_text);
  if (!sid) return std::nullopt;
  // The word is made of hex digits, so it must be looked for before the numbers; next_beat() never makes that number.
  if (rest == kDead) return BeatEntry{std::move(*sid), std::nullopt};
  const auto beat = parse_hex(rest);
  if (!beat) return std::nullopt;
  return BeatEntry{std::move(*sid), BeatNumber{*beat}};
}

std::optional<SessionId> parse_session_name(std::string_view name) {
  if (name.size() != kSidLength || !std::all_of(name.begin(), name.end(), is_hex_digit)) return std::nullopt;
  return SessionId{std::string(name)};
}

std::string lock_folder(FileId file) {
  const std::string text = fmt::format("{:x}", file.value);
  return fmt::format("{:016x}", XXH64(text.data(), text.size(), 0)).substr(0, 3);
}

bool conflicts(const Claim& a, const Claim& b) {
  if (a.sid == b.sid || a.file != b.file || a.space != b.space) return false;
  return a.range.overlaps(b.range) && (a.mode == Mode::write || b.mode == Mode::write);
}

}  // namespace latchfs::protocol
