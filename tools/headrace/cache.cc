// headrace cache: the models that hr.compile(cache=True) keeps. The Python package computes what is kept and where, so
// this verb runs `python -m headrace.cache`.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/descriptor.h"
#include "base/error.h"
#include "tools/headrace/interruption.h"
#include "tools/headrace/output.h"
#include "tools/headrace/python_program.h"
#include "tools/headrace/usage.h"

namespace headrace::tools {

namespace {

std::string read_all(int file) {
  std::string text;
  char bytes[4096];
  for (ssize_t count = 0; (count = read(file, bytes, sizeof bytes)) > 0 || (count < 0 && errno == EINTR);)
    if (count > 0) text.append(bytes, static_cast<size_t>(count));
  return text;
}

// Runs the module, which writes its errors itself. Throws MissingError if it is not installed.
int run_module(const std::vector<std::string>& arguments) {
  watch_for_interruptions();
  std::vector<std::string> command{python_program(), "-m", "headrace.cache"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw_user_error("cannot make a pipe to '{}': {}", command[0], std::strerror(errno));
  const Descriptor from(ends[0]), nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  Descriptor to(ends[1]);
  const TemporaryFolder folder("headrace-cache-");
  ChildProcess process;
  const bool has_started = process.start(command, nothing.number(), to.number(), folder);
  to.close();
  const std::string text = has_started ? read_all(from.number()) : "";
  const int code = has_started ? process.wait() : -1;
  if (code != HR_OK && code != HR_USER)
    throw MissingError(
        fmt::format("the cache is kept by '{} -m headrace.cache', which did not run: install the Python package "
                    "headrace, or name its Python in HEADRACE_PYTHON",
                    command[0]));
  print_out("{}", text);
  return code;
}

}  // namespace

Verb add_cache(CLI::App& app, const Common& common) {
  CLI::App* verb = app.add_subcommand(
      "cache", "List or remove the models that compiles in Python keep, and the costs that profile keeps");
  verb->require_subcommand(1);
  verb->footer(
      "Example: headrace cache list\n"
      "         headrace cache clear --folder build/cache");
  auto folder = std::make_shared<std::string>();
  const auto add = [&](const char* action, const char* what) {
    CLI::App* added = verb->add_subcommand(action, what);
    takes_path(added->add_option("--folder", *folder, "The folder (default: that of HEADRACE_CACHE, or the user's)"),
               "FOLDER");
    added->footer(fmt::format("Example: headrace cache {}", action));
  };
  add("list", "List the entries: size, last use and file, the least recently used first");
  add("clear", "Remove all entries");
  add("path", "Print the folder");
  return [verb, folder, &common] {
    std::vector<std::string> arguments{verb->get_subcommands().front()->get_name()};
    if (!folder->empty()) arguments.insert(arguments.end(), {"--folder", *folder});
    if (common.json) arguments.emplace_back("--json");
    return run_module(arguments);
  };
}

}  // namespace headrace::tools
