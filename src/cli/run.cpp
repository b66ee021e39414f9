#include "latchfs/cli/run.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/locate.hpp"
#include "cli/views.hpp"
#include "latchfs/base/clock.hpp"
#include "latchfs/base/printable.hpp"

namespace latchfs::cli {
namespace {

constexpr int kFine = 0;
constexpr int kProblem = 1;
constexpr int kUsage = 2;
constexpr int kUnreachable = 3;

struct Request {
  std::string path{};
  Style style{};
  bool no_headings = false;
};

void add_arguments(CLI::App& command, Request& request) {
  command.add_option("PATH", request.path, "a latchfs mount, or the directory on the share below it")->required();
  command.add_flag("-J,--json", request.style.json, "print one JSON object");
  command.add_flag("-n,--noheadings", request.no_headings, "print no line of headings");
  command.add_flag("-r,--raw", request.style.raw, "print columns with one blank between them");
  command.add_option("-o,--output", request.style.columns, "print only these columns, in this order")
      ->type_name("LIST");
}

int complain(std::ostream& err, const std::string& what, int code) {
  fmt::print(err, "latchctl: {}\n", printable(what));
  return code;
}

Result<Snapshot> snapshot_of(const std::string& path, bool with_locks) {
  const auto source = find_source(path);
  if (!source) return tl::unexpected(source.error());
  const auto share = open_control(*source);
  if (!share) return tl::unexpected(share.error());
  return read_snapshot(**share, with_locks);
}

int show(const Request& request, bool with_locks, std::ostream& out, std::ostream& err) {
  Style style = request.style;
  style.headings = !request.no_headings;
  const auto snapshot = snapshot_of(request.path, with_locks);
  if (!snapshot)
    return complain(err, describe(snapshot.error()), snapshot.error().code == Errc::system ? kUnreachable : kProblem);
  const Report whole = with_locks ? locks_report(*snapshot) : sessions_report(*snapshot, system_clock().wall());
  const auto report = select_columns(whole, style);
  if (!report) return complain(err, report.error().what, kUsage);
  const auto text = render(*report, style);
  if (!text) return complain(err, describe(text.error()), kUnreachable);
  out << *text << std::flush;
  for (const std::string& problem : snapshot->problems) complain(err, problem, kProblem);
  return snapshot->problems.empty() ? kFine : kProblem;
}

}  // namespace

int run(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  CLI::App app{"Shows what the latchfs daemons of a share hold, from the names on the share. Changes nothing.",
               "latchctl"};
  app.set_version_flag("-V,--version", fmt::format("latchctl {}", LATCHFS_VERSION));
  app.require_subcommand(1);
  app.footer("Exit status: 0 fine, 1 something on the share is wrong, 2 wrong usage, 3 the share cannot be reached.");
  Request request;
  CLI::App* locks = app.add_subcommand("locks", "who holds and who waits for which lock");
  CLI::App* sessions = app.add_subcommand("sessions", "which daemons take part, and whether they are alive");
  add_arguments(*locks, request);
  add_arguments(*sessions, request);
  try {
    app.parse(std::vector<std::string>(args.rbegin(), args.rend()));  // CLI11 takes a vector from its end
  } catch (const CLI::ParseError& e) {
    return app.exit(e, out, err) == 0 ? kFine : kUsage;
  }
  return show(request, locks->parsed(), out, err);
}

}  // namespace latchfs::cli
