#include "ir/module.h"

namespace headrace {

void ConstructorNode::fields(FieldList<ConstructorNode>& f) {
  f.field<&ConstructorNode::name_hint>("name_hint")
      .field<&ConstructorNode::inputs>("inputs")
      .field<&ConstructorNode::belong_to>("belong_to")
      .field<&ConstructorNode::tag>("tag", {.ignore = true});
}

void TypeDataNode::fields(FieldList<TypeDataNode>& f) {
  f.field<&TypeDataNode::header>("header")
      .field<&TypeDataNode::type_vars>("type_vars", {.def_once = true})
      .field<&TypeDataNode::constructors>("constructors");
}

void IRModuleNode::fields(FieldList<IRModuleNode>& f) {
  // Types bind the type variables that the functions' patterns mention.
  f.field<&IRModuleNode::type_definitions>("type_definitions")
      .field<&IRModuleNode::functions>("functions")
      .field<&IRModuleNode::attrs>("attrs");
}

namespace {

// The key of that name. An index of as many names as the map has keys knows them all.
template <typename Key, typename Item>
Key find_key(const Map<Key, Item>& map, const std::unordered_map<std::string, Key>& index, std::string_view name) {
  if (const auto it = index.find(std::string(name)); it != index.end()) return it->second;
  if (index.size() == map.size()) return {};
  for (const auto& [key, item] : map) {
    if (key->name_hint == name) return key;
  }
  return {};
}

// What is added to `map` is looked up first: many additions to a map without an index would take quadratic time.
template <typename Key, typename Item>
void complete_index(const Map<Key, Item>& map, std::unordered_map<std::string, Key>& index) {
  if (index.size() == map.size()) return;
  for (const auto& [key, item] : map) index.emplace(key->name_hint, key);
}

}  // namespace

GlobalVar IRModuleNode::find_global_var(std::string_view name) const {
  return find_key(functions, globals_by_name, name);
}

GlobalVar IRModuleNode::get_global_var(std::string_view name) const {
  if (GlobalVar var = find_global_var(name)) return var;
  std::vector<std::string> names;
  for (const auto& [var, function] : functions) names.push_back("@" + var->name_hint);
  throw_user_error("the module has no function '@{}'; it has: {}", name,
                   names.empty() ? std::string("none") : fmt::format("{}", fmt::join(names, ", ")));
}

BaseFunc IRModuleNode::lookup(std::string_view name) const { return functions.at(get_global_var(name)); }

GlobalTypeVar IRModuleNode::find_global_type_var(std::string_view name) const {
  for (const auto& [var, data] : type_definitions) {
    if (var->name_hint == name) return var;
  }
  return {};
}

GlobalVar IRModuleNode::add_function(GlobalVar var, BaseFunc function, bool update) {
  complete_index(functions, globals_by_name);
  if (GlobalVar present = find_global_var(var->name_hint)) {
    if (!update) throw_user_error("the module has a function '@{}' already; pass update to replace it", var->name_hint);
    functions.set(present, std::move(function));
    return present;
  }
  functions.set(var, std::move(function));
  globals_by_name[var->name_hint] = var;
  return var;
}

void IRModuleNode::add_type_def(TypeData data, bool update) {
  const GlobalTypeVar present = find_global_type_var(data->header->name_hint);
  if (present && !update)
    throw_user_error("the module has a type '{}' already; pass update to replace it", present->name_hint);
  for (size_t i = 0; i < data->constructors.size(); ++i) data->constructors[i]->tag = static_cast<int32_t>(i);
  const GlobalTypeVar key = present ? present : data->header;
  type_definitions.set(key, std::move(data));
}

IRModule make_module() { return make_object<IRModuleNode>(); }

IRModule make_module(BaseFunc main) {
  IRModule module = make_module();
  module->add_function(make_global_var("main"), std::move(main));
  return module;
}

}  // namespace headrace
