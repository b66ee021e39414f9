#pragma once

/// Paths in the control directory, relative to SOURCE/.latchfs, and the format's version.
namespace latchfs::protocol {

inline constexpr const char* kControlDir = ".latchfs";
inline constexpr const char* kFormatFile = "format";
inline constexpr const char* kReadmeFile = "README";
inline constexpr const char* kSessions = "sessions";
inline constexpr const char* kBeats = "beats";
inline constexpr const char* kInbox = "inbox";
inline constexpr const char* kLocks = "locks";
inline constexpr int kFormatVersion = 1;

}  // namespace latchfs::protocol
