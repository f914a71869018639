#include "tools/headrace/manual.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "driver/output_file.h"

namespace headrace::tools {

namespace {

// Returns text that roff shows as it is: no character of it is a command, and its hyphens can be copied.
std::string as_roff(const std::string& text) {
  std::string made;
  bool is_line_start = true;
  for (const char c : text) {
    if (is_line_start && (c == '.' || c == '\'')) made += "\\&";
    if (c == '\\')
      made += "\\e";
    else if (c == '-')
      made += "\\-";
    else
      made += c;
    is_line_start = c == '\n';
  }
  return made;
}

// "headrace pipeline split" as the name of a page: headrace-pipeline-split.
std::string page_name(std::string name) {
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

std::string section(const char* title, const std::string& text) {
  return text.empty() ? "" : fmt::format(".SH {}\n{}", title, text);
}

// Returns an entry of a list: the bold name, what it takes in italics, and a text.
std::string entry(const std::string& name, const std::string& takes, const std::string& text) {
  return fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", as_roff(name), takes.empty() ? "" : " \\fI" + as_roff(takes) + "\\fR",
                     as_roff(text));
}

std::string names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names.empty() ? option.get_name() : fmt::format("{}", fmt::join(names, ", "));
}

// Returns the entries of the arguments without a name, or of the options.
std::string options_of_page(const CLI::App& app, bool are_positional) {
  std::string text;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty() || option->get_positional() != are_positional) continue;
    const std::string& standard = option->get_default_str();
    text += entry(names_of(*option), option->get_items_expected_max() > 0 ? option->get_type_name() : "",
                  option->get_description() + (standard.empty() ? "" : fmt::format(" (default: {})", standard)));
  }
  return text;
}

std::string synopsis_of(const CLI::App& app, const std::string& name) {
  std::string text = fmt::format("\\fB{}\\fR", as_roff(name));
  if (!options_of_page(app, false).empty()) text += " [\\fIOPTIONS\\fR]";
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) continue;
    const std::string argument = fmt::format("\\fI{}\\fR", as_roff(option->get_name()));
    text += option->get_required() ? " " + argument : " [" + argument + "]";
  }
  return text + (app.get_subcommands({}).empty() ? "\n" : " \\fICOMMAND\\fR ...\n");
}

std::string commands_of_page(const CLI::App& app) {
  std::string text;
  for (const CLI::App* one : app.get_subcommands({})) text += entry(one->get_name(), "", one->get_description());
  return text;
}

std::string related_pages(const CLI::App& app, const std::string& name) {
  std::vector<std::string> pages;
  if (const size_t last = name.rfind(' '); last != std::string::npos) pages.push_back(name.substr(0, last));
  for (const CLI::App* one : app.get_subcommands({})) pages.push_back(name + " " + one->get_name());
  std::string text;
  for (const std::string& page : pages)
    text += fmt::format(".BR {} (1){}\n", as_roff(page_name(page)), &page == &pages.back() ? "" : ",");
  return text;
}

void write_manual_of(const CLI::App& app, const std::string& name, const std::string& folder) {
  driver::write_text(fmt::format("{}/{}.1", folder, page_name(name)), manual_page(app, name));
  for (const CLI::App* one : app.get_subcommands({})) write_manual_of(*one, name + " " + one->get_name(), folder);
}

}  // namespace

std::string manual_page(const CLI::App& app, const std::string& name) {
  const std::string page = as_roff(page_name(name)), footer = app.get_footer();
  return fmt::format(".TH {} 1 \"\" \"Headrace {}\" \"Headrace\"\n", page, HEADRACE_VERSION) +
         section("NAME", fmt::format("{} \\- {}\n", page, as_roff(app.get_description()))) +
         section("SYNOPSIS", synopsis_of(app, name)) + section("ARGUMENTS", options_of_page(app, true)) +
         section("OPTIONS", options_of_page(app, false)) + section("COMMANDS", commands_of_page(app)) +
         section("NOTES", footer.empty() ? "" : fmt::format(".nf\n{}\n.fi\n", as_roff(footer))) +
         section("SEE ALSO", related_pages(app, name));
}

void write_manual(const CLI::App& program, const std::string& folder) {
  write_manual_of(program, program.get_name(), folder);
}

}  // namespace headrace::tools
