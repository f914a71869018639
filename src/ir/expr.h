// Expr: the expressions of relay functions. Op, GlobalVar and functions are shared with tir and modules.
#pragma once

#include <any>
#include <concepts>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/op_key.h"
#include "ir/op_values.h"
#include "ir/type.h"
#include "ir/type_slot.h"

namespace headrace {

struct ExprNode : BaseExprNode {
  using Parent = BaseExprNode;
  static constexpr std::string_view type_key = "relay.Expr";
  static constexpr int32_t child_slots = 40;
  static constexpr StructuralKind structural_kind = StructuralKind::dag;
  static void fields(FieldList<ExprNode>& f);
  ExprNode() = default;
  // A copy starts without a type, because its fields are about to change.
  ExprNode(const ExprNode& other) : BaseExprNode(other) {}
  ExprNode& operator=(const ExprNode&) = delete;

  bool has_checked_type() const { return checked_type_field.is_set(); }
  // Returns the type; InternalError when InferType has not run.
  const Type& checked_type() const;
  // Write-once: InternalError when another object is there already.
  void set_checked_type(const Type& type) const;
  // Sets `type` unless the node has one, and returns the type that it then has. For nodes that other threads may type.
  const Type& offer_checked_type(Type type) const { return checked_type_field.offer(std::move(type)); }

  mutable TypeSlot checked_type_field;
};
using Expr = Ref<ExprNode>;

struct GlobalVarNode : ExprNode {
  using Parent = ExprNode;
  static constexpr std::string_view type_key = "relay.GlobalVar";
  static constexpr bool is_final = true;
  static constexpr StructuralKind structural_kind = StructuralKind::tree;
  static void fields(FieldList<GlobalVarNode>& f);
  std::string name_hint;
};
using GlobalVar = Ref<GlobalVarNode>;
GlobalVar make_global_var(std::string name);

// Attributes of a call: one struct of named fields an op family.
struct AttrsNode : Object {
  using Parent = Object;
  static constexpr std::string_view type_key = "ir.Attrs";
  static constexpr int32_t child_slots = 160;
  static constexpr StructuralKind structural_kind = StructuralKind::tree;
};
using Attrs = Ref<AttrsNode>;

using DictAttrs = Map<std::string, Value>;
// Returns a function's attributes with plain numbers and texts for constants that are scalar expressions, also within
// lists and maps: IntImm(1) is 1, as both say the same in Relay. Returns the same map where it has none.
DictAttrs plain_attrs(const DictAttrs& attrs);

// Base of relay::FunctionNode and tir::PrimFuncNode.
struct BaseFuncNode : ExprNode {
  using Parent = ExprNode;
  static constexpr std::string_view type_key = "ir.BaseFunc";
  static constexpr int32_t child_slots = 4;
  static void fields(FieldList<BaseFuncNode>& f);
  DictAttrs attrs;
};
using BaseFunc = Ref<BaseFuncNode>;

struct OpNode;
// Checks a value that a user sets under `key` (OpKey<Value>) against the declaration of that key (ir/op_attrs.h).
// UserError.
void check_op_attr(const OpNode& op, std::string_view key, const Value& value);

struct OpArgument {
  std::string name;
  std::string kind;  // "Tensor", "Tuple of tensors", ...
  std::string doc;
};

// An operator. There is one object per name in a process.
struct OpNode : ExprNode {
  using Parent = ExprNode;
  static constexpr std::string_view type_key = "ir.Op";
  static constexpr bool is_final = true;
  static constexpr StructuralKind structural_kind = StructuralKind::unique;
  static void fields(FieldList<OpNode>& f);
  // Ops are saved by name; loading gives the registered op.
  static NamedValues save_content(const OpNode& op);
  static Ref<OpNode> load_content(const NamedValues& saved);
  std::string name;
  std::string doc;
  std::vector<OpArgument> arguments;
  int32_t num_inputs = -1;  // -1: any number
  int32_t support_level = 10;
  int32_t version = 1;
  std::string attrs_type_key;  // key of the attributes' struct; empty when the op has none
  OpValues values;

  template <typename T>
  const T* find(const OpKey<T>& key) const {
    return std::any_cast<T>(values.find(key.slot()));
  }
  template <typename T>
  void set(const OpKey<T>& key, T value) {
    if constexpr (std::same_as<T, Value>) check_op_attr(*this, key.name, value);
    values.set(key.slot(), std::any(std::move(value)));
  }
  // Returns the value under the key's name, of whatever type it is; null where there is none.
  const std::any* find_any(std::string_view key) const;
  // Removes the value under the key's name, if there is one.
  void erase(std::string_view key);
};
using Op = Ref<OpNode>;

// get_op returns the registered op; UserError that suggests similar names when there is none. find_op returns null
// then.
Op get_op(std::string_view name);
Op find_op(std::string_view name);
std::vector<std::string> op_names();
// Makes a new op known and gives it to be filled in; UserError when the name is taken.
Op register_op(std::string name);

// Throws a UserError with the place of a node, for calls that only a user's mistake makes wrong.
[[noreturn]] void throw_at(const Span& span, std::string op, std::string message);

}  // namespace headrace
