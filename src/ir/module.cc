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

GlobalVar IRModuleNode::find_global_var(std::string_view name) const {
  auto it = globals_by_name.find(std::string(name));
  if (it != globals_by_name.end()) return it->second;
  // A module that came from JSON has no index yet.
  for (const auto& [var, function] : functions) {
    if (var->name_hint == name) return var;
  }
  return {};
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
  GlobalTypeVar present = find_global_type_var(data->header->name_hint);
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
