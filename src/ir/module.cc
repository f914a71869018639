#include "ir/module.h"

#include "object/structural_equal.h"

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
  f.field<&IRModuleNode::type_definitions_>("type_definitions")
      .field<&IRModuleNode::functions_>("functions")
      .field<&IRModuleNode::attrs>("attrs")
      .field<&IRModuleNode::sources_>("sources", {.ignore = true, .optional = true});
}

void SourceNode::fields(FieldList<SourceNode>& f) {
  f.field<&SourceNode::source_name>("source_name").field<&SourceNode::source>("source");
}

static const std::string& name_of(const GlobalVar& var) { return var->name_hint; }
static const std::string& name_of(const GlobalTypeVar& var) { return var->name_hint; }
static const std::string& name_of(const std::string& name) { return name; }

template <typename Key, typename Item>
ModuleTable<Key, Item>& ModuleTable<Key, Item>::operator=(const ModuleTable& other) {
  Items items = other.items();
  const std::lock_guard lock(mutex_);
  // the old items are destroyed after the lock: nodes that hold Python objects may run finalizers
  std::swap(items_, items);
  index_.clear();
  num_indexed_ = 0;
  return *this;
}

template <typename Key, typename Item>
Map<Key, Item> ModuleTable<Key, Item>::items() const {
  const std::lock_guard lock(mutex_);
  return items_;
}

template <typename Key, typename Item>
std::optional<size_t> ModuleTable<Key, Item>::position(const std::string& name) const {
  for (; num_indexed_ < items_.size(); ++num_indexed_) {
    const auto key = items_.object()->items[num_indexed_].first.template as<Key>();
    index_.emplace(name_of(key), num_indexed_);
  }
  const auto it = index_.find(name);
  return it == index_.end() ? std::nullopt : std::optional(it->second);
}

template <typename Key, typename Item>
std::optional<std::pair<Key, Item>> ModuleTable<Key, Item>::find(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto at = position(std::string(name));
  if (!at) return std::nullopt;
  const auto& [key, item] = items_.object()->items[*at];
  return std::pair(key.template as<Key>(), item.template as<Item>());
}

template <typename Key, typename Item>
Key ModuleTable<Key, Item>::add(Key key, Item item, bool update) {
  std::optional<Item> replaced;  // destroyed after the lock, for the same reason
  const std::lock_guard lock(mutex_);
  if (const auto at = position(name_of(key))) {
    if (!update) return {};
    key = items_.object()->items[*at].first.template as<Key>();
    replaced = items_.get(key);
  }
  items_.set(key, std::move(item));
  return key;
}

template class ModuleTable<GlobalVar, BaseFunc>;
template class ModuleTable<GlobalTypeVar, TypeData>;
template class ModuleTable<std::string, Source>;

GlobalVar IRModuleNode::find_global_var(std::string_view name) const {
  const auto found = functions_.find(name);
  return found ? found->first : GlobalVar();
}

// The error of a name that is not there.
[[noreturn]] static void throw_no_function(const IRModuleNode& module, std::string_view name) {
  std::vector<std::string> names;
  for (const auto& [var, function] : module.functions()) names.push_back("@" + var->name_hint);
  throw_user_error("the module has no function '@{}'; it has: {}", name,
                   names.empty() ? std::string("none") : fmt::format("{}", fmt::join(names, ", ")));
}

GlobalVar IRModuleNode::get_global_var(std::string_view name) const {
  const auto found = functions_.find(name);
  if (!found) throw_no_function(*this, name);
  return found->first;
}

BaseFunc IRModuleNode::lookup(std::string_view name) const {
  const auto found = functions_.find(name);
  if (!found) throw_no_function(*this, name);
  return found->second;
}

GlobalTypeVar IRModuleNode::find_global_type_var(std::string_view name) const {
  const auto found = type_definitions_.find(name);
  return found ? found->first : GlobalTypeVar();
}

GlobalVar IRModuleNode::add_function(GlobalVar var, BaseFunc function, bool update) {
  GlobalVar key = functions_.add(var, std::move(function), update);
  if (!key) throw_user_error("the module has a function '@{}' already; pass update to replace it", var->name_hint);
  return key;
}

void IRModuleNode::add_type_def(TypeData data, bool update) {
  for (size_t i = 0; i < data->constructors.size(); ++i) {
    const auto tag = static_cast<int32_t>(i);
    // A type that another module has is not written: other threads may read it.
    if (data->constructors[i]->tag != tag) data->constructors[i]->tag = tag;
  }
  if (!type_definitions_.add(data->header, data, update))
    throw_user_error("the module has a type '{}' already; pass update to replace it", data->header->name_hint);
}

void IRModuleNode::set_functions(Map<GlobalVar, BaseFunc> functions) {
  functions_ = ModuleTable<GlobalVar, BaseFunc>(std::move(functions));
}

void IRModuleNode::add_source(Source source) {
  std::string name = source->source_name;
  sources_.add(std::move(name), std::move(source), true);
}

namespace {

// Returns whether both were read from one place of one text.
bool is_same_place(const IRModuleNode& a, const Span& span, const IRModuleNode& b, const Span& other) {
  if (!span || !other || to_string(span) != to_string(other)) return false;
  const auto source = a.source_map().get(span->source), other_source = b.source_map().get(other->source);
  return source && other_source && (*source)->source == (*other_source)->source;
}

template <typename Item>
bool is_same(const IRModuleNode& a, const Item& item, const IRModuleNode& b, const Item& other) {
  return item.same_as(other) || is_same_place(a, item->span, b, other->span) ||
         structural_equal(Value(item), Value(other));
}

// Describes a conflict: "the function '@sum' (text.relay:2:1; the import's is at prelude.rly:98:1)".
std::string clash(std::string name, const Span& span, const Span& other) {
  const std::string here = span ? to_string(span) : "which has no place in a text";
  return fmt::format("{} ({}{})", name, here, other ? "; the import's is at " + to_string(other) : "");
}

// Returns the names that both modules have with different definitions.
std::vector<std::string> clashes(const IRModuleNode& module, const IRModuleNode& other) {
  std::vector<std::string> names;
  for (const auto& [var, data] : other.type_definitions()) {
    const GlobalTypeVar known = module.find_global_type_var(var->name_hint);
    if (!known) continue;
    const TypeData present = module.type_definitions().at(known);
    if (!is_same(module, present, other, data))
      names.push_back(clash(fmt::format("the type '{}'", var->name_hint), present->span, data->span));
  }
  for (const auto& [var, function] : other.functions()) {
    if (!module.find_global_var(var->name_hint)) continue;
    const BaseFunc present = module.lookup(var->name_hint);
    if (!is_same(module, present, other, function))
      names.push_back(clash(fmt::format("the function '@{}'", var->name_hint), present->span, function->span));
  }
  return names;
}

}  // namespace

void IRModuleNode::import_from(const IRModuleNode& other) {
  const std::vector<std::string> names = clashes(*this, other);
  if (!names.empty())
    throw_user_error("the module has already, with another definition than what is imported: {}; rename one of them",
                     fmt::join(names, ", "));
  for (const auto& [var, data] : other.type_definitions()) {
    if (!find_global_type_var(var->name_hint)) add_type_def(data);
  }
  for (const auto& [var, function] : other.functions()) {
    if (!find_global_var(var->name_hint)) add_function(var, function);
  }
  for (const auto& [name, source] : other.source_map()) {
    if (!source_map().contains(name)) add_source(source);
  }
}

Source make_source(std::string source_name, std::string source) {
  const Source made = make_object<SourceNode>();
  made->source_name = std::move(source_name);
  made->source = std::move(source);
  return made;
}

IRModule make_module() { return make_object<IRModuleNode>(); }

IRModule make_module(BaseFunc main) {
  IRModule module = make_module();
  module->add_function(make_global_var("main"), std::move(main));
  return module;
}

IRModule snapshot(const IRModule& module) { return make_object<IRModuleNode>(*module); }

}  // namespace headrace
