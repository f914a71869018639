// headrace completion: scripts by which a shell completes verbs and options. They are made from the program's own
// tables, so they name all that it takes.
#include <algorithm>
#include <map>
#include <set>

#include "driver/register_all.h"
#include "partition/backend.h"
#include "tools/headrace/output.h"
#include "tools/headrace/usage.h"

namespace headrace::tools {

namespace {

// A word that the command line may have at some place, and what it means.
struct Word {
  std::string text, meaning;
};

std::vector<Word> options_of(const CLI::App& app) {
  std::vector<Word> words;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    for (const std::string& name : option->get_lnames()) words.push_back({"--" + name, option->get_description()});
  }
  return words;
}

std::vector<Word> commands_of(const CLI::App& app) {
  std::vector<Word> words;
  for (const CLI::App* one : app.get_subcommands({})) words.push_back({one->get_name(), one->get_description()});
  return words;
}

std::string texts_of(const std::vector<Word>& words) {
  std::vector<std::string> texts;
  for (const Word& word : words) texts.push_back(word.text);
  return fmt::format("{}", fmt::join(texts, " "));
}

// Calls `visit` for each verb and each action of a verb, with the words that name it.
template <typename Visit>
void for_each_command(const CLI::App& program, Visit visit) {
  for (const CLI::App* verb : program.get_subcommands({})) {
    visit(verb->get_name(), *verb);
    for (const CLI::App* action : verb->get_subcommands({}))
      visit(fmt::format("{} {}", verb->get_name(), action->get_name()), *action);
  }
}

// Returns the words that the arguments of a command may be: its actions, and values of arguments without a name. Those
// of `help` are the verbs.
std::vector<Word> arguments_of(const CLI::App& program, const CLI::App& command) {
  std::vector<Word> words = commands_of(command.get_name() == "help" ? program : command);
  for (const CLI::Option* option :
       command.get_options([](const CLI::Option* option) { return option->get_positional(); })) {
    for (const std::string& word : words_of(*option)) words.push_back({word, option->get_description()});
  }
  return words;
}

// The kind of value that an option takes.
enum class ValueKind { word, list, file, folder, other };  // list: words with commas between
struct Values {
  ValueKind kind = ValueKind::other;
  std::set<std::string> words = {};
};

Values values_of(const CLI::Option& option) {
  if (option.get_lnames()[0] == "backends") {
    driver::register_all();
    const std::vector<std::string> names = partition::backend_names();
    return {ValueKind::list, {names.begin(), names.end()}};
  }
  const std::vector<std::string> words = words_of(option);
  if (!words.empty()) return {ValueKind::word, {words.begin(), words.end()}};
  const std::string type = option.get_type_name();
  return {type == "FILE" ? ValueKind::file : type == "FOLDER" ? ValueKind::folder : ValueKind::other};
}

// Returns the values of all options that have known ones, by "--option". Those of an option whose values differ in kind
// between verbs are not known.
std::map<std::string, Values> values_of_options(const CLI::App& program) {
  std::map<std::string, Values> all;
  for_each_command(program, [&](const std::string&, const CLI::App& command) {
    for (const CLI::Option* option : command.get_options()) {
      if (option->get_lnames().empty()) continue;
      Values values = values_of(*option);
      const auto [known, is_new] = all.emplace("--" + option->get_lnames()[0], values);
      if (known->second.kind != values.kind) known->second.kind = ValueKind::other;
      known->second.words.merge(values.words);
    }
  });
  std::erase_if(all, [](const auto& one) { return one.second.kind == ValueKind::other; });
  return all;
}

// Returns the text in the quotes of bash, zsh and fish.
std::string quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// Returns the command that completes the value of an option. In a list it completes what follows the last comma.
std::string bash_values(const Values& values) {
  const std::string words = quoted(fmt::format("{}", fmt::join(values.words, " ")));
  if (values.kind == ValueKind::file) return "COMPREPLY=($(compgen -f -- \"$current\"))";
  if (values.kind == ValueKind::folder) return "COMPREPLY=($(compgen -d -- \"$current\"))";
  if (values.kind == ValueKind::word) return fmt::format("COMPREPLY=($(compgen -W {} -- \"$current\"))", words);
  return fmt::format(
      "case \"$current\" in *,*) head=\"${{current%,*}},\" ;; esac\n"
      "      COMPREPLY=($(compgen -P \"$head\" -W {} -- \"${{current##*,}}\"))",
      words);
}

// One function serves bash and zsh: after a verb (and action) its options, files for all else.
std::string bash_script(const CLI::App& program) {
  std::string cases, choices;
  for (const auto& [option, values] : values_of_options(program))
    choices += fmt::format("    {}) {}; return ;;\n", option, bash_values(values));
  for_each_command(program, [&](const std::string& name, const CLI::App& command) {
    std::vector<Word> words = arguments_of(program, command);
    for (const auto* app : {&command, &program}) {
      for (Word& word : options_of(*app)) words.push_back(std::move(word));
    }
    cases += fmt::format("    {}) words={} ;;\n", quoted(name), quoted(texts_of(words)));
  });
  return fmt::format(R"sh(_headrace() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" command="" words="" head="" word i
  case "${{COMP_WORDS[COMP_CWORD-1]}}" in
{}  esac
  for ((i = 1; i < COMP_CWORD; ++i)); do
    word="${{COMP_WORDS[i]}}"
    case "$word" in
      -*) ;;
      *) command="${{command:+$command }}$word" ;;
    esac
  done
  local first="${{command%% *}}" two
  two="$(printf '%s' "$command" | cut -d' ' -f1-2)"
  for command in "$two" "$first"; do
    case "$command" in
    '') words={} ;;
{}    esac
    [ -z "$words" ] || break
  done
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  case "$current" in
    -*) ;;
    *) [ -z "$command" ] || COMPREPLY+=($(compgen -f -- "$current")) ;;
  esac
}}
complete -o filenames -F _headrace headrace
)sh",
                     choices, quoted(texts_of(commands_of(program))), cases);
}

std::string zsh_script(const CLI::App& program) {
  return "autoload -Uz bashcompinit && bashcompinit\n" + bash_script(program);
}

std::string fish_values(const Values& values) {
  if (values.kind == ValueKind::file) return "-r -F";
  if (values.kind == ValueKind::folder) return "-x -a '(__fish_complete_directories)'";
  if (values.kind == ValueKind::word) return "-x -a " + quoted(fmt::format("{}", fmt::join(values.words, " ")));
  return fmt::format("-x -a '(__fish_complete_list , \"string split , {}\")'", fmt::join(values.words, ","));
}

std::string fish_script(const CLI::App& program) {
  std::string script;
  const std::map<std::string, Values> all_values = values_of_options(program);
  const auto add = [&](const std::string& condition, const Word& word) {
    const bool is_option = word.text.starts_with("--");
    const auto values = all_values.find(word.text);
    script += fmt::format("complete -c headrace -n {} {} {}{} -d {}\n", quoted(condition), is_option ? "-l" : "-f -a",
                          quoted(is_option ? word.text.substr(2) : word.text),
                          values == all_values.end() ? "" : " " + fish_values(values->second), quoted(word.meaning));
  };
  for (const Word& word : commands_of(program)) add("__fish_use_subcommand", word);
  for (const Word& word : options_of(program)) add("true", word);
  for (const CLI::App* verb : program.get_subcommands({})) {
    const std::string seen = "__fish_seen_subcommand_from " + verb->get_name();
    for (const Word& word : arguments_of(program, *verb)) add(seen, word);
    for (const Word& word : options_of(*verb)) add(seen, word);
    for (const CLI::App* action : verb->get_subcommands({})) {
      for (const Word& word : options_of(*action))
        add(fmt::format("{}; and __fish_seen_subcommand_from {}", seen, action->get_name()), word);
    }
  }
  return script;
}

}  // namespace

Verb add_completion(CLI::App& app, const Common&) {
  auto shell = std::make_shared<std::string>();
  CLI::App* verb = app.add_subcommand("completion", "Print a script by which a shell completes verbs and options");
  takes_word(verb->add_option("shell", *shell, "The shell")->required(), "shell", {"bash", "zsh", "fish"});
  verb->footer(
      "For bash: headrace completion bash > ~/.local/share/bash-completion/completions/headrace\n"
      "For zsh, a line of ~/.zshrc after compinit: source <(headrace completion zsh)\n"
      "For fish: headrace completion fish > ~/.config/fish/completions/headrace.fish");
  return [shell, &app] {
    const std::string script = *shell == "bash"  ? bash_script(app)
                               : *shell == "zsh" ? zsh_script(app)
                                                 : fish_script(app);
    print_out("{}", script);
    return HR_OK;
  };
}

}  // namespace headrace::tools
