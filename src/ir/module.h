// IRModule: functions (of relay and tir) and type definitions by name. Immutable to passes: they make a new one.
#pragma once

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

struct IRModuleNode : Object {
  using Parent = Object;
  static constexpr std::string_view type_key = "ir.IRModule";
  static constexpr bool is_final = true;
  static constexpr StructuralKind structural_kind = StructuralKind::tree;
  static void fields(FieldList<IRModuleNode>& f);
  Map<GlobalVar, BaseFunc> functions;  // in order of definition
  Map<GlobalTypeVar, TypeData> type_definitions;
  DictAttrs attrs;
  std::unordered_map<std::string, GlobalVar> globals_by_name;  // kept by add_function

  // Null when there is none.
  GlobalVar find_global_var(std::string_view name) const;
  // UserError that lists the functions when there is none.
  GlobalVar get_global_var(std::string_view name) const;
  BaseFunc lookup(std::string_view name) const;
  GlobalTypeVar find_global_type_var(std::string_view name) const;
  // UserError when the name is taken, unless `update`. Gives the GlobalVar the module uses for it.
  GlobalVar add_function(GlobalVar var, BaseFunc function, bool update = false);
  void add_type_def(TypeData data, bool update = false);
};
using IRModule = Ref<IRModuleNode>;

IRModule make_module();
// A module whose only function, `main`, is `function`.
IRModule make_module(BaseFunc main);

}  // namespace headrace
