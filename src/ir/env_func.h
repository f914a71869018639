// EnvFunc: a global function by its name, as a node that programs and attributes may hold and JSON keeps.
#pragma once

#include "object/array.h"

namespace headrace {

struct EnvFuncNode : Object {
  using Parent = Object;
  static constexpr std::string_view type_key = "ir.EnvFunc";
  static constexpr bool is_final = true;
  static constexpr StructuralKind structural_kind = StructuralKind::tree;
  static void fields(FieldList<EnvFuncNode>& f);
  std::string name;  // a function that is looked up when it is called
};
using EnvFunc = Ref<EnvFuncNode>;

}  // namespace headrace
