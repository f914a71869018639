#include "relay/infer/check_kind.h"

#include "base/count_of.h"
#include "base/stack.h"
#include "relay/infer/inferencer.h"

namespace headrace::relay {

namespace {

class Kinds {
 public:
  explicit Kinds(const IRModule& module) : module_(module) {}

  TypeKind kind_of(const Type& type) const {
    if (!type) throw UserError("a part of a type is missing");
    if (is_stack_low()) throw UserError("the type nests too deeply for the stack");
    if (const auto* var = type.as<TypeVarNode>()) return var->kind;
    if (const auto* unknown = type.as<IncompleteTypeNode>()) return unknown->kind;
    if (const auto* relation = type.as<TypeRelationNode>()) {
      need_types(relation->args, "what a constraint relates");
      if (const std::string fault = relation_fault(*relation); !fault.empty()) throw UserError(fault);
      return TypeKind::constraint;
    }
    if (type.is<TypeDataNode>()) return TypeKind::type_data;
    if (const auto* name = type.as<GlobalTypeVarNode>())
      return definition_of(*name)->type_vars.empty() ? TypeKind::type : TypeKind::adt_handle;
    if (const auto* tuple = type.as<TupleTypeNode>()) need_types(tuple->items, "an item of a tuple");
    if (const auto* cell = type.as<RefTypeNode>()) need(cell->value, TypeKind::type, "the content of a reference");
    if (const auto* function = type.as<FuncTypeNode>()) {
      need_types(function->arg_types, "a parameter of a function");
      need(function->ret_type, TypeKind::type, "the result of a function");
      for (const Type& constraint : function->type_constraints) {
        need(constraint, TypeKind::constraint, "a constraint of a function");
        if (!constraint.is<TypeRelationNode>())
          throw_user_error("a constraint of a function must be the relation of an op; {} is none",
                           to_string(constraint));
      }
    }
    if (const auto* call = type.as<TypeCallNode>()) check_call(*call);
    return TypeKind::type;
  }

  void need(const Type& type, TypeKind kind, std::string_view what) const {
    const TypeKind found = kind_of(type);
    if (found != kind)
      throw_user_error("{} must be a {}, and {} is a {}", what, name_of(kind), to_string(type), name_of(found));
  }

 private:
  void need_types(const Array<Type>& types, std::string_view what) const {
    for (const Type& type : types) need(type, TypeKind::type, what);
  }

  TypeData definition_of(const GlobalTypeVarNode& name) const {
    const TypeData data = find_type_data(module_, ref(&name));
    if (!data) throw_user_error("the type '{}' is not defined in the module", name.name_hint);
    return data;
  }

  void check_call(const TypeCallNode& call) const {
    const auto* name = call.func.as<GlobalTypeVarNode>();
    if (name == nullptr) throw_user_error("{} takes no type arguments", to_string(call.func));
    const TypeData data = definition_of(*name);
    if (call.args.size() != data->type_vars.size())
      throw_user_error("the type '{}' takes {}, got {}", name->name_hint, count_of(data->type_vars.size(), "argument"),
                       call.args.size());
    for (size_t i = 0; i < call.args.size(); ++i)
      need(call.args[i], data->type_vars[i]->kind, fmt::format("argument {} of '{}'", i, name->name_hint));
  }

  const IRModule& module_;
};

}  // namespace

static void check_size(const Type& type) {
  if (type && type_size(type, kMaxTypeSize) == kMaxTypeSize)
    throw_user_error("the type nests deeper than {} or has more than {} parts", kMaxTypeDepth, kMaxTypeSize);
}

TypeKind declared_kind(const Type& type, const IRModule& module) {
  const auto* name = type.as<GlobalTypeVarNode>();
  return name != nullptr && !find_type_data(module, ref(name)) ? name->kind : check_kind(type, module);
}

TypeKind check_kind(const Type& type, const IRModule& module) {
  check_size(type);
  return Kinds(module).kind_of(type);
}

void check_kinds(const IRModule& module) {
  const Kinds kinds(module);
  for (const auto& [name, data] : module->type_definitions()) {
    for (const Constructor& constructor : data->constructors) {
      for (size_t i = 0; i < constructor->inputs.size(); ++i) {
        try {
          check_size(constructor->inputs[i]);
          kinds.need(constructor->inputs[i], TypeKind::type, fmt::format("field {}", i));
        } catch (const UserError& error) {
          throw_at(constructor->span, constructor->name_hint, error.message());
        }
      }
    }
  }
}

}  // namespace headrace::relay
