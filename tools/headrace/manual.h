// Man pages, made from the help of the program and of its verbs.
#pragma once

#include <CLI/App.hpp>

#include <string>

namespace headrace::tools {

// Returns the page of a program, verb or action as text in the macros of man. `name` is all that is typed for it, such
// as "headrace pipeline split".
std::string manual_page(const CLI::App& app, const std::string& name);

// Writes headrace.1, headrace-VERB.1 and headrace-VERB-ACTION.1 to a folder. UserError if one cannot be written.
void write_manual(const CLI::App& program, const std::string& folder);

}  // namespace headrace::tools
