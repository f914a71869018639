// Finds the texts that `import "lib.rly"` names, and records what one reading has read. Inner header of relay.
#pragma once

#include <map>

#include "ir/module.h"

namespace headrace::relay {

// The texts that one reading takes in, each once.
struct Imports {
  IRModule into;  // imported texts use its types and names where they define the same; or null
  std::map<std::string, IRModule> modules;  // by ImportedText::id; null: being read
  std::vector<std::string> open;            // the sources being read: each imports the next
};

// Texts that import one another in a chain nest at most so deep.
constexpr size_t kMaxOpenImports = 64;

struct ImportedText {
  std::string id;           // one for a file, however it is named
  std::string source_name;  // source name in its spans
  std::string folder;       // where its own imports are looked for first; empty for a text that comes with Headrace
  std::string text;
};

// Returns the text that comes with Headrace under that name; else the file, looked for in `importer_folder` and then in
// `import_paths`. The file must lie in or below one of `import_paths` after links are followed, so that an untrusted
// text cannot read other files. UserError that lists the folders searched. The text is not read when `modules` has it.
ImportedText find_import(const std::string& name, const std::string& importer_folder,
                         const std::vector<std::string>& import_paths, const Imports& imports);

}  // namespace headrace::relay
