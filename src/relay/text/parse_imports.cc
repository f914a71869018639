// Imports of other texts.
#include <algorithm>
#include <filesystem>

#include "base/read_text.h"
#include "object/structural_equal.h"
#include "relay/text/imports.h"
#include "relay/text/parser.h"
#include "relay/text/std_texts.h"

namespace headrace::relay {

namespace fs = std::filesystem;

namespace {

std::string known_texts() {
  std::vector<std::string> names;
  for (const auto& [name, text] : std_texts()) names.push_back(name);
  return fmt::format("{}", fmt::join(names, ", "));
}

// Returns the canonical path of a file; empty when it does not exist.
fs::path real_path(const fs::path& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  return error ? fs::path() : real;
}

bool is_below(const fs::path& file, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), file.begin(), file.end()).first == folder.end();
}

bool may_read(const fs::path& file, const std::vector<std::string>& import_paths) {
  return std::any_of(import_paths.begin(), import_paths.end(), [&](const std::string& path) {
    const fs::path folder = real_path(path.empty() ? "." : path);
    return !folder.empty() && is_below(file, folder);
  });
}

// Returns the paths at which a file of that name may be.
std::vector<fs::path> places_of(const std::string& name, const std::string& importer_folder,
                                const std::vector<std::string>& import_paths) {
  if (fs::path(name).is_absolute()) return {name};
  std::vector<fs::path> places;
  if (!importer_folder.empty()) places.push_back(fs::path(importer_folder) / name);
  for (const std::string& path : import_paths) places.push_back(fs::path(path) / name);
  return places;
}

}  // namespace

ImportedText find_import(const std::string& name, const std::string& importer_folder,
                         const std::vector<std::string>& import_paths, const Imports& imports) {
  if (const auto known = std_texts().find(name); known != std_texts().end())
    return {name, name, {}, std::string(known->second)};
  if (import_paths.empty())
    throw_user_error(
        "there is no text '{}' to import; there are {}; a file is imported only from a folder that the reader is given "
        "(import_paths)",
        name, known_texts());
  for (const fs::path& place : places_of(name, importer_folder, import_paths)) {
    const fs::path real = name.find('\0') == std::string::npos ? real_path(place) : fs::path();
    if (real.empty()) continue;
    if (!may_read(real, import_paths))
      throw_user_error("'{}' lies outside the folders that files are imported from: {}", name,
                       fmt::join(import_paths, ", "));
    const std::string source_name = place.lexically_normal().string();
    return {real.string(), source_name, place.parent_path().string(),
            imports.modules.contains(real.string()) ? "" : read_text(real.string(), "text to import")};
  }
  throw_user_error("there is no file '{}' to import in {}, and no such text comes with Headrace (there are {})", name,
                   fmt::join(import_paths, ", "), known_texts());
}

// Finds the text; reports an error and returns nothing when it cannot be read or is being read already.
std::optional<ImportedText> Parser::find_import_of(const Token& name) {
  try {
    ImportedText found = find_import(unquote(name.text), folder_, options_.import_paths, *imports_);
    const auto known = imports_->modules.find(found.id);
    if (known != imports_->modules.end() && !known->second)
      throw_user_error("texts import one another in a circle: {} -> {}", fmt::join(imports_->open, " -> "),
                       found.source_name);
    if (imports_->open.size() == kMaxOpenImports)
      throw_user_error("texts import one another more than {} deep", kMaxOpenImports);
    return found;
  } catch (const UserError& error) {
    report(name, error.message());
    return std::nullopt;
  }
}

// Returns the module of a text, which may have been read before; errors have their places in that text.
IRModule Parser::read_import(const ImportedText& found, const Token& name) {
  if (const auto known = imports_->modules.find(found.id); known != imports_->modules.end()) return known->second;
  imports_->modules[found.id] = {};
  imports_->open.push_back(found.source_name);
  const ParseOptions options{.weights = nullptr, .import_paths = options_.import_paths};
  IRModule module;
  try {
    module = Parser(found, options, *imports_).module();
  } catch (const UserError& error) {
    const Span at = errors_.span(name.offset, name.end);
    throw UserError(fmt::format("{}\nimported at {}", error.message(), to_string(at)));
  }
  imports_->open.pop_back();
  return imports_->modules[found.id] = module;
}

// Starts from the initial module, whose types and names imported texts use where they define the same.
void Parser::take_init_module() {
  if (!options_.init_module) return;
  module_ = snapshot(options_.init_module);
  own_imports_.into = snapshot(options_.init_module);
  take_names_of(*module_);
}

// Its types, constructors and functions are known, as those that module_ has by these names.
void Parser::take_names_of(const IRModuleNode& module) {
  for (const auto& [var, ignored] : module.type_definitions()) {
    const GlobalTypeVar known = module_->find_global_type_var(var->name_hint);
    if (!global_types_.emplace(var->name_hint, known).second) continue;  // another import brought it
    for (const Constructor& constructor : module_->type_definitions().at(known)->constructors)
      constructors_[constructor->name_hint].push_back(constructor);
  }
  for (const auto& [var, function] : module.functions())
    globals_[var->name_hint] = module_->get_global_var(var->name_hint);
}

// Parses import "prelude.rly"
void Parser::import_text(const Token& name) {
  const std::optional<ImportedText> found = find_import_of(name);
  if (!found) return;
  const IRModule module = read_import(*found, name);
  try {
    module_->import_from(*module);
  } catch (const UserError& error) {
    return report(name, error.message());
  }
  take_names_of(*module);
}

void Parser::import_texts() {
  for (size_t i = 0; i + 1 < tokens_.size(); ++i) {
    if (tokens_[i].is("import") && tokens_[i + 1].kind == TokenKind::string) import_text(tokens_[i + 1]);
  }
}

// Returns the type's definition in the importing module, where it is the same.
TypeData Parser::present_type(const TypeData& data) const {
  const IRModule& into = imports_->into;
  if (!into || !into->find_global_type_var(data->header->name_hint)) return {};
  const TypeData present = into->type_definitions().at(data->header);
  return structural_equal(Value(present), Value(data)) ? present : TypeData();
}

void import_text(const IRModule& module, const std::string& name, const ParseOptions& options) {
  Imports imports{.into = snapshot(module), .modules = {}, .open = {}};
  const ImportedText found = find_import(name, "", options.import_paths, imports);
  imports.modules[found.id] = {};
  imports.open.push_back(found.source_name);
  module->import_from(*Parser(found, options, imports).module());
}

}  // namespace headrace::relay
