#include "tools/headrace/usage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>

#include "ir/near_names.h"

namespace headrace::tools {

namespace {

// "": the text is fine.
using Check = std::function<std::string(const std::string& text)>;

template <typename T>
bool parses(const std::string& text, T& value) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end;
}

std::string show(Numbers numbers) {
  return numbers.most == INT64_MAX ? fmt::format("of {} or more", numbers.least)
                                   : fmt::format("from {} to {}", numbers.least, numbers.most);
}

std::string type_name_of(Numbers numbers) {
  return numbers.most == INT64_MAX ? "N" : fmt::format("{}-{}", numbers.least, numbers.most);
}

// The option in question: CLI11's messages begin with its name.
std::string option_of(const CLI::ParseError& error) {
  const std::string text = error.what();
  return text.substr(0, text.find_first_of(": "));
}

// "bash, zsh or fish"
std::string one_of(std::vector<std::string> words) {
  if (words.size() < 2) return words.empty() ? "" : words.front();
  const std::string last = std::move(words.back());
  words.pop_back();
  return fmt::format("{} or {}", fmt::join(words, ", "), last);
}

std::string missing_message(const CLI::App& app, const std::string& name) {
  const CLI::Option* option = app.get_option_no_throw(name);
  if (option != nullptr && option->get_positional() && !words_of(*option).empty()) {
    const bool has_vowel = std::string_view("aeio").find(name.front()) != std::string_view::npos;
    return fmt::format("name {} {}: {}", has_vowel ? "an" : "a", name, one_of(words_of(*option)));
  }
  return option == nullptr ? fmt::format("{} is required", name)
                           : fmt::format("{} is required: {}", name, option->get_description());
}

}  // namespace

CLI::Option* takes(CLI::Option* option, Numbers numbers) {
  const std::string name = option->get_name();
  const auto check = [numbers, name](const std::string& text) -> std::string {
    int64_t value = 0;
    if (parses(text, value) && value >= numbers.least && value <= numbers.most) return "";
    return fmt::format("'{}' is not a whole number {}; an example: {} {}", text, show(numbers), name, numbers.example);
  };
  return option->check(Check(check))->type_name(type_name_of(numbers));
}

CLI::Option* takes_size(CLI::Option* option, const char* example, Sizes sizes) {
  const std::string name = option->get_name();
  const auto check = [name, example, sizes](const std::string& text) -> std::string {
    double value = 0;
    if (parses(text, value) && std::isfinite(value) && value >= sizes.least && value <= sizes.most) return "";
    const std::string range = std::isinf(sizes.most) ? fmt::format("of {} or more", sizes.least)
                                                     : fmt::format("from {} to {}", sizes.least, sizes.most);
    return fmt::format("'{}' is not a number {}; an example: {} {}", text, range, name, example);
  };
  return option->check(Check(check))->type_name("NUMBER");
}

CLI::Option* takes_word(CLI::Option* option, const std::string& what, const std::vector<std::string>& words) {
  const auto check = [what, words](const std::string& text) -> std::string {
    if (std::find(words.begin(), words.end(), text) != words.end()) return "";
    return fmt::format("there is no {} '{}'; there is {}", what, text, fmt::join(words, ", "));
  };
  return option->check(Check(check))->type_name(fmt::format("{}", fmt::join(words, "|")));
}

std::vector<std::string> words_of(const CLI::Option& option) {
  const std::string names = option.get_type_name();  // other types are numbers or in capitals
  const bool has_words = names.find_first_not_of("abcdefghijklmnopqrstuvwxyz-|") == std::string::npos;
  if (names.empty() || !has_words) return {};
  std::vector<std::string> words;
  for (size_t begin = 0; begin <= names.size();) {
    const size_t end = std::min(names.find('|', begin), names.size());
    words.push_back(names.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

CLI::Option* takes_path(CLI::Option* option, const char* type) {
  const std::string name = option->get_name();
  const auto check = [name, type](const std::string& text) -> std::string {
    if (!text.starts_with("-") || text == "-") return "";
    return fmt::format("needs a value ({0}), and '{1}' is an option; a file of that name is ./{1}", type, text);
  };
  return option->check(Check(check))->type_name(type);
}

CLI::Option* takes_opt_level(CLI::Option* option) { return takes(option, {0, 4, 3}); }

CLI::Option* takes_passes(CLI::Option* option) {
  return option->delimiter(',')->allow_extra_args(false)->type_name("PASSES");
}

namespace {

// The verb, or the action of a verb, that the command line names.
const CLI::App& innermost(const CLI::App& program) {
  const CLI::App* app = &program;
  while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
  return *app;
}

std::string actions_of(const CLI::App& verb) {
  std::vector<std::string> names;
  for (const CLI::App* action : verb.get_subcommands({})) names.push_back(action->get_name());
  return fmt::format("{}", fmt::join(names, ", "));
}

// The long options that the command line may have, of the program and of its verb.
std::vector<std::string> options_of(const CLI::App& program, const CLI::App& verb) {
  std::vector<std::string> names;
  for (const CLI::App* app : {&verb, &program}) {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
    if (app == &program) break;
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

// Returns the verb of the command line that has the option, which stands before the verb; empty if there is none.
std::string verb_with(const CLI::App& program, const std::string& name) {
  for (const CLI::App* verb : program.get_subcommands()) {
    if (verb->get_option_no_throw(name) != nullptr) return verb->get_name();
  }
  return "";
}

// Returns the verbs, and actions of verbs as "pipeline split", that have the option.
std::vector<std::string> all_with(const CLI::App& app, const std::string& name, const std::string& before = "") {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands({})) {
    const std::string words = before + verb->get_name();
    if (verb->get_option_no_throw(name) != nullptr) names.push_back(words);
    for (std::string& one : all_with(*verb, name, words + " ")) names.push_back(std::move(one));
  }
  return names;
}

// Returns a sentence about an option that the verb of the command line does not have.
std::string unknown_option_message(const CLI::App& program, const CLI::App& app, const std::string& option) {
  const std::string name = option.substr(0, option.find('='));
  const std::string text = fmt::format("there is no option '{}' here", option);
  if (const std::string verb = verb_with(program, name); !verb.empty())
    return fmt::format("{}; write it after the verb: headrace {} {}", text, verb, option);
  if (const std::vector<std::string> verbs = all_with(program, name); !verbs.empty())
    return fmt::format("{}; it is an option of headrace {}", text, fmt::join(verbs, ", "));
  return text + suggest(name, options_of(program, app));
}

}  // namespace

std::string suggest(const std::string& name, const std::vector<std::string>& known) {
  std::vector<std::string> near = near_names(name, known, '-');
  // Names of different lengths are near if one begins with the other: --thread, --shapes, --out.
  for (const std::string& one : known) {
    const bool begins = name.size() > 4 && (one.starts_with(name) || name.starts_with(one));
    if (begins && std::find(near.begin(), near.end(), one) == near.end()) near.push_back(one);
  }
  constexpr size_t kMost = 3;
  if (near.empty() || near.size() > kMost) return "";
  return fmt::format("; did you mean {}?", fmt::join(near, " or "));
}

std::string suggest_or_list(const std::string& name, const std::vector<std::string>& known, const char* what) {
  const std::string near = suggest(name, known);
  return near.empty() ? fmt::format("; {} {}", what, fmt::join(known, ", ")) : near;
}

std::string usage_message(const CLI::App& program, const CLI::ParseError& error) {
  const CLI::App& app = innermost(program);
  const bool lacks_action = &app != &program && !app.get_subcommands({}).empty();
  // CLI11 complains first of what is missing, which hides what is mistyped.
  if (const std::vector<std::string> unexpected = program.remaining(true); !unexpected.empty()) {
    if (unexpected[0].starts_with("-")) return unknown_option_message(program, app, unexpected[0]);
    if (lacks_action) return fmt::format("there is no action '{}'; there is {}", unexpected[0], actions_of(app));
    const bool writes = app.get_option_no_throw("--output") != nullptr;
    return fmt::format("'{}' is one argument too many{}", unexpected[0], writes ? "; the output is named by -o" : "");
  }
  if (lacks_action) return fmt::format("name an action: {}", actions_of(app));
  const std::string name = option_of(error);
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) return missing_message(app, name);
  if (dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr) {
    const std::string text = error.what();
    return fmt::format("give {} or {}, not both", name, text.substr(text.rfind(' ') + 1));
  }
  if (const CLI::Option* option = app.get_option_no_throw(name);
      option != nullptr && dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    if (option->count() > 1) return fmt::format("{} is given {} times; give it once", name, option->count());
    if (option->get_items_expected() > 0) return fmt::format("{} needs a value ({})", name, option->get_type_name());
  }
  return error.what();
}

}  // namespace headrace::tools
