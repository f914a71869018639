// Loaders that are registered when the first module of their kind is met, such as those of packages that are imported
// late.
#pragma once

#include <string>
#include <string_view>

namespace headrace::runtime {

// The kinds of modules of backends in Python begin with this; the name of the backend follows.
inline constexpr std::string_view kPythonKindPrefix = "python.";

// Registers the loader of a kind of modules, or does nothing for a kind that it does not know. Called by any thread.
// Throws UserError where the loader is known and cannot be had.
using LoaderFinder = void (*)(const std::string& key);

// Sets the finder that load_from_binary asks about a kind without a loader, before it gives the kind up. One process
// has one; null: none.
void set_loader_finder(LoaderFinder finder);

// Asks the finder, if there is one.
void find_loader(const std::string& key);

}  // namespace headrace::runtime
