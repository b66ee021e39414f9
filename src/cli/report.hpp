#pragma once
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "latchfs/base/error.hpp"

/// A table for people (by libsmartcols) or for programs (JSON).
namespace latchfs::cli {

struct Column {
  std::string title;   ///< "HOST"; the JSON key is the same in lower case
  bool right = false;  ///< numbers stand at the right
};

struct Cell {
  std::string text;                       ///< for people; "-" where there is nothing to tell
  nlohmann::ordered_json json = nullptr;  ///< for programs; null where there is nothing to tell
};

struct Report {
  std::string name;  ///< of the array in the JSON object
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
};

struct Style {
  bool json = false;
  bool headings = true;
  bool raw = false;
  std::string columns{};  ///< "HOST,STATE"; empty: all
};

/// Keeps the columns that `style` names, in its order. Errc::refused for one that is not there.
Result<Report> select_columns(const Report& report, const Style& style);

/// The report as text that ends with a line feed (or is empty). Errc::system when memory is short.
Result<std::string> render(const Report& report, const Style& style);

/// A text from the share as a cell; empty is "nothing to tell". It stays as it is: both libsmartcols and the JSON
/// escape what could steer a terminal.
Cell text_cell(const std::string& text);
Cell number_cell(std::uint64_t number);
/// Microseconds since 1970 as UTC, "2026-01-31T12:00:00.000000Z"; 0 is "nothing to tell".
Cell time_cell(std::uint64_t microseconds);

}  // namespace latchfs::cli
