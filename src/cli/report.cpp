#include "cli/report.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <libsmartcols/libsmartcols.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <memory>

namespace latchfs::cli {
namespace {

constexpr int kSchema = 1;
constexpr std::uint64_t kMicros = 1000000;
constexpr std::uint64_t kYear10000 = 253402300800;  // in seconds; later times are no times

struct FreeTable {
  void operator()(libscols_table* table) const { scols_unref_table(table); }
};
struct FreeText {
  void operator()(char* text) const { std::free(text); }
};

std::string changed_case(std::string text, int (*change)(int)) {
  std::transform(text.begin(), text.end(), text.begin(), [&](unsigned char c) { return static_cast<char>(change(c)); });
  return text;
}

std::string render_json(const Report& report) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const std::vector<Cell>& row : report.rows) {
    nlohmann::ordered_json object = nlohmann::ordered_json::object();
    for (std::size_t i = 0; i < row.size(); ++i)
      object[changed_case(report.columns[i].title, std::tolower)] = row[i].json;
    rows.push_back(std::move(object));
  }
  const nlohmann::ordered_json whole{{"schema", kSchema}, {report.name, std::move(rows)}};
  // Plain ASCII, so that nothing in a name can steer the terminal it is shown on.
  return whole.dump(2, ' ', true, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

bool fill_table(libscols_table* table, const Report& report) {
  for (const Column& column : report.columns) {
    if (scols_table_new_column(table, column.title.c_str(), 0, column.right ? SCOLS_FL_RIGHT : 0) == nullptr)
      return false;
  }
  for (const std::vector<Cell>& row : report.rows) {
    libscols_line* line = scols_table_new_line(table, nullptr);
    if (line == nullptr) return false;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (scols_line_set_data(line, i, row[i].text.c_str()) != 0) return false;
    }
  }
  return true;
}

Result<std::string> render_table(const Report& report, const Style& style) {
  if (report.rows.empty()) return std::string();
  const std::unique_ptr<libscols_table, FreeTable> table(scols_new_table());
  if (!table || !fill_table(table.get(), report)) return fail_errno(ENOMEM, "table");
  scols_table_enable_noheadings(table.get(), style.headings ? 0 : 1);
  scols_table_enable_raw(table.get(), style.raw ? 1 : 0);
  char* text = nullptr;
  if (const int error = scols_print_table_to_string(table.get(), &text); error != 0) return fail_errno(-error, "table");
  const std::unique_ptr<char, FreeText> owned(text);
  std::string out(text != nullptr ? text : "");
  if (!out.empty() && out.back() != '\n') out += '\n';
  return out;
}

}  // namespace

Result<Report> select_columns(const Report& report, const Style& style) {
  if (style.columns.empty()) return report;
  Report selected{report.name, {}, std::vector<std::vector<Cell>>(report.rows.size())};
  std::string_view rest = style.columns;
  while (true) {
    const std::string wanted = changed_case(std::string(rest.substr(0, rest.find(','))), std::toupper);
    const auto column =
        std::find_if(report.columns.begin(), report.columns.end(), [&](const Column& c) { return c.title == wanted; });
    if (column == report.columns.end()) return fail(Errc::refused, fmt::format("there is no column '{}'", wanted));
    const auto index = static_cast<std::size_t>(column - report.columns.begin());
    selected.columns.push_back(*column);
    for (std::size_t i = 0; i < report.rows.size(); ++i) selected.rows[i].push_back(report.rows[i][index]);
    if (rest.find(',') == std::string_view::npos) return selected;
    rest.remove_prefix(rest.find(',') + 1);
  }
}

Result<std::string> render(const Report& report, const Style& style) {
  if (style.json) return render_json(report);
  return render_table(report, style);
}

Cell text_cell(const std::string& text) {
  if (text.empty()) return {"-"};
  return {text, text};
}

Cell number_cell(std::uint64_t number) { return {fmt::format("{}", number), number}; }

Cell time_cell(std::uint64_t microseconds) {
  const std::uint64_t seconds = microseconds / kMicros;
  if (microseconds == 0 || seconds >= kYear10000) return {"-"};
  const std::string text = fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z", fmt::gmtime(static_cast<std::time_t>(seconds)),
                                       microseconds % kMicros);
  return {text, text};
}

}  // namespace latchfs::cli
