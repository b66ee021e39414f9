#pragma once
#include <string>

#include "latchfs/config/options.hpp"

namespace latchfs::config {

/// Puts the options of a YAML text into `options`. The text is a map of option words; only rows of the table may stand
/// in it, each once. Errc::refused with "NAME:LINE: what is wrong".
Result<void> apply_yaml(const std::string& text, const std::string& name, Options& options);

/// The same for a file of at most 64 KiB.
Result<void> apply_yaml_file(const std::string& path, Options& options);

}  // namespace latchfs::config
