// The backends of this project.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "partition/backend.h"

namespace headrace::driver {

// Registers each backend that this build has. Called once.
void register_all_backends();

// Returns the backend of that name, as partition::find_backend, or as the source registers it; null for none.
std::shared_ptr<const partition::Backend> find_backend(const std::string& name);

// Returns why this program lacks a backend that comes with Headrace; empty for other names.
std::string why_missing(const std::string& name);

// Returns the backend of that name, as find_backend. UserError for one that there is not: it lists those that there
// are, names the build option of one that was left out, and says how a program finds the backends that only Python has.
std::shared_ptr<const partition::Backend> require_backend(const std::string& name);

// Backends that the process can make known, such as those of Python's packages. They are registered when they are
// named.
struct BackendSource {
  std::vector<std::string> (*names)();
  // Registers the backend of that name, or does nothing for a name that it does not know. Throws UserError for one that
  // it knows and cannot make.
  void (*offer)(const std::string& name);
  // Makes known what the process has for that name beside a backend, such as checks of ops in a module that is found by
  // the name. Called before the backend is looked for, each time that one is required. Null: nothing.
  void (*find_checks)(const std::string& name) = nullptr;
};

// Sets the source that find_backend asks about a name that nobody has registered, or removes it. A process has at
// most one. Call before other threads compile.
void set_backend_source(std::optional<BackendSource> source);

// Returns the names of the backends that are registered and of those that the source has, sorted.
std::vector<std::string> known_backends();

// Returns the names of the backends that the source has: those of Python.
std::vector<std::string> source_backends();

// Returns the backends that were left out of this build, with the build option of each.
std::vector<std::pair<std::string, std::string>> left_out_backends();

}  // namespace headrace::driver
