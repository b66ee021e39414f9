#pragma once
#include <functional>
#include <string>

#include "latchfs/base/error.hpp"
#include "latchfs/base/unique_fd.hpp"

/// New files that appear whole, and the small calls they are made of. Private to the share layer.
namespace latchfs::share {

/// Calls again as long as a signal got in the way. errno is that of the last call.
template <class Call>
auto retry_eintr(Call call) {
  for (;;) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

using NumberedContent = std::function<std::string(std::uint64_t inode)>;

/// Creates `name` exclusively, 0600 whatever the umask says.
Result<UniqueFd> create_exclusive(int folder, const std::string& name);

/// Writes a temporary file and links it to `name`. The temporary name ("t.<name>.<random>") is none that any reader
/// takes. Fails with EOPNOTSUPP where the share has no hard links.
Result<void> publish_by_link(int folder, const std::string& name, const NumberedContent& content);

/// Creates `name` itself and fills it: for shares without hard links. A reader can meet it half written.
Result<void> publish_in_place(int folder, const std::string& name, const NumberedContent& content);

}  // namespace latchfs::share
