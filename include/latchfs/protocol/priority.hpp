#pragma once
#include "latchfs/protocol/entry_name.hpp"

namespace latchfs::protocol {

enum class QueuePolicy { writer_first, fifo };

/// True where `a` goes before `b`: with writer_first a write goes before a read; then the earlier ticket, then the session id as text, then
/// the number of the name. A strict total order over the names of one file, the same on every host. Pure.
bool better(const Claim& a, const Claim& b, QueuePolicy policy);

}  // namespace latchfs::protocol
