// headrace help: the help of a verb, as `headrace VERB --help` prints it, and man pages with the same texts.
#include "tools/headrace/manual.h"
#include "tools/headrace/output.h"
#include "tools/headrace/usage.h"

namespace headrace::tools {

namespace {

// Prints the help of the verb, or of the action of a verb, that the words name; without words the program's.
int help(const CLI::App& program, const std::vector<std::string>& words) {
  const CLI::App* named = &program;
  std::string before;
  for (const std::string& word : words) {
    std::vector<std::string> known;
    const CLI::App* next = nullptr;
    for (const CLI::App* one : named->get_subcommands({})) {
      known.push_back(one->get_name());
      if (one->check_name(word)) next = one;
    }
    if (next == nullptr) {
      throw UsageError(known.empty() ? fmt::format("'{}' has no actions, so '{}' has no help", named->get_name(), word)
                                     : fmt::format("there is no help for '{}'{}", word,
                                                   suggest_or_list(word, known, "there is for")));
    }
    before += (before.empty() ? "" : " ") + named->get_name();
    named = next;
  }
  // App::help() would choose this verb, because the command line names it.
  const std::string name = (before.empty() ? "" : before + " ") + named->get_name();
  print_out("{}", program.get_formatter()->make_help(named, name, CLI::AppFormatMode::Normal));
  return HR_OK;
}

}  // namespace

Verb add_help(CLI::App& app, const Common&) {
  auto words = std::make_shared<std::vector<std::string>>();
  auto folder = std::make_shared<std::string>();
  CLI::App* verb = app.add_subcommand("help", "Show the help of a verb");
  CLI::Option* named =
      verb->add_option("verb", *words, "The verb, and its action if it has several, as pipeline split");
  takes_path(verb->add_option("--man", *folder,
                              "A folder for man pages of the program and of all verbs, in place of the help"),
             "FOLDER")
      ->excludes(named);
  verb->footer("Example: headrace help compile");
  return [words, folder, &app] {
    if (folder->empty()) return help(app, *words);
    write_manual(app, *folder);
    return static_cast<int>(HR_OK);
  };
}

}  // namespace headrace::tools
