// IRModule: functions (of relay and tir) and type definitions by name. Immutable to passes: they make a new one. Its
// users may add to it while other threads read it.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "ir/expr.h"

namespace headrace {

// One alternative of an algebraic data type.
struct ConstructorNode : ExprNode {
  using Parent = ExprNode;
  static constexpr std::string_view type_key = "relay.Constructor";
  static constexpr bool is_final = true;
  static void fields(FieldList<ConstructorNode>& f);
  std::string name_hint;
  Array<Type> inputs;
  GlobalTypeVar belong_to;
  int32_t tag = -1;  // its position in the definition, set when the module takes it
};
using Constructor = Ref<ConstructorNode>;

struct TypeDataNode : TypeNode {
  using Parent = TypeNode;
  static constexpr std::string_view type_key = "relay.TypeData";
  static constexpr bool is_final = true;
  static void fields(FieldList<TypeDataNode>& f);
  GlobalTypeVar header;
  Array<TypeVar> type_vars;
  Array<Constructor> constructors;
};
using TypeData = Ref<TypeDataNode>;

// A text that spans of nodes point into.
struct SourceNode : Object {
  using Parent = Object;
  static constexpr std::string_view type_key = "ir.Source";
  static constexpr bool is_final = true;
  static constexpr StructuralKind structural_kind = StructuralKind::tree;
  static void fields(FieldList<SourceNode>& f);
  std::string source_name;  // as spans have it
  std::string source;       // the text, up to its metadata block: data of constants is not a line that errors show
};
using Source = Ref<SourceNode>;
Source make_source(std::string source_name, std::string source);

// The functions or types of a module by name, in order of definition; safe for threads. A reader gets a snapshot of the
// items: a thread that adds while a reader holds it changes a copy. Items that no reader holds are changed in place, so
// that n additions take linear time.
template <typename Key, typename Item>
class ModuleTable {
 public:
  using Items = Map<Key, Item>;
  ModuleTable() = default;
  explicit ModuleTable(Items items) : items_(std::move(items)) {}
  ModuleTable(const ModuleTable& other) : items_(other.items()) {}
  ModuleTable& operator=(const ModuleTable& other);

  Items items() const;
  // Returns the entry; nothing when the name has none.
  std::optional<std::pair<Key, Item>> find(std::string_view name) const;
  // Adds an item and returns its key: the existing key of that name, or `key`. Returns null and adds nothing when the
  // name exists and `update` is not set.
  Key add(Key key, Item item, bool update);

 private:
  // Returns the position of the item of that name. The caller holds the lock.
  std::optional<size_t> position(const std::string& name) const;

  mutable std::mutex mutex_;
  Items items_;
  // Positions by name, of the first `num_indexed_` items: made when a name is asked for.
  mutable std::unordered_map<std::string, size_t> index_;
  mutable size_t num_indexed_ = 0;
};

// Lets reflection see a ModuleTable field as a Map.
template <typename Key, typename Item>
struct ValueTraits<ModuleTable<Key, Item>> {
  using Items = ValueTraits<Map<Key, Item>>;
  static Value to(const ModuleTable<Key, Item>& table) { return Items::to(table.items()); }
  static bool matches(const RawValue& raw) { return Items::matches(raw); }
  static ModuleTable<Key, Item> from(const RawValue& raw) { return ModuleTable<Key, Item>(Items::from(raw)); }
  static std::string name() { return Items::name(); }
};

// A program: functions, data types and the texts they come from. A reader of several parts of a module that other
// threads may extend reads a snapshot (below).
struct IRModuleNode : Object {
  using Parent = Object;
  static constexpr std::string_view type_key = "ir.IRModule";
  static constexpr bool is_final = true;
  static constexpr StructuralKind structural_kind = StructuralKind::tree;
  static void fields(FieldList<IRModuleNode>& f);

  Map<GlobalVar, BaseFunc> functions() const { return functions_.items(); }
  Map<GlobalTypeVar, TypeData> type_definitions() const { return type_definitions_.items(); }
  // Returns the variable of a function; null when there is none.
  GlobalVar find_global_var(std::string_view name) const;
  // Return a function's variable and the function. UserError that lists the functions when there is none of that name.
  GlobalVar get_global_var(std::string_view name) const;
  BaseFunc lookup(std::string_view name) const;
  GlobalTypeVar find_global_type_var(std::string_view name) const;
  // Returns the texts that the module was read from, by the names that spans use. Not part of equality and hash.
  Map<std::string, Source> source_map() const { return sources_.items(); }
  // UserError when the name is taken, unless `update`. Gives the GlobalVar the module uses for it.
  GlobalVar add_function(GlobalVar var, BaseFunc function, bool update = false);
  void add_type_def(TypeData data, bool update = false);
  void set_functions(Map<GlobalVar, BaseFunc> functions);
  // Adds a source, replacing one of the same name, because the newest nodes point into the new text.
  void add_source(Source source);
  // Takes the types, functions and sources of another module. Definitions that this module has already stay if they are
  // equal, or if they were read from the same place of the same text and a pass may have changed them since. UserError
  // that lists the names with conflicting definitions, before anything is taken.
  void import_from(const IRModuleNode& other);

  DictAttrs attrs;

 private:
  ModuleTable<GlobalVar, BaseFunc> functions_;
  ModuleTable<GlobalTypeVar, TypeData> type_definitions_;
  ModuleTable<std::string, Source> sources_;
};
using IRModule = Ref<IRModuleNode>;

IRModule make_module();
// Makes a module whose only function, `main`, is `function`.
IRModule make_module(BaseFunc main);
// Returns a module of the same functions and types that no other thread extends.
IRModule snapshot(const IRModule& module);

}  // namespace headrace
