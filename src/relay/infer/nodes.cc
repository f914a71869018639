// Type inference of the expressions that are neither functions, calls nor matches.
#include "relay/infer/inferencer.h"

namespace headrace::relay {

// Handles a free variable; bound variables are known before they are visited.
void Inferencer::visit_var(const Var& node) {
  if (!node->type_annotation) return finish(node, make_incomplete_type());
  const bool is_type = check_annotation(node->type_annotation, node->span);
  // Its symbols stand for themselves everywhere.
  if (is_type) visit_symbols(node->type_annotation, [&](const PrimVarNode* symbol) { ++symbols_[symbol]; });
  finish(node, is_type ? node->type_annotation : Type());
}

void Inferencer::visit_tuple(const Tuple& node, int stage) {
  if (stage == 0) {
    later(node, 1);
    return need_all(node->items);
  }
  if (!all_typed(node->items)) return finish(node, {});
  Array<Type> types;
  std::vector<PrimExpr> values;
  bool known = true;
  for (const Expr& item : node->items) {
    types.push_back(type_of(item));
    if (!types.back()) return finish(node, {});
    const auto value = known && value_elements(types.back()) ? value_of(item) : std::nullopt;
    known = known && value.has_value();
    if (known) values.insert(values.end(), value->begin(), value->end());
  }
  finish(node, make_tuple_type(types));
  if (known && !values.empty()) values_[node.get()] = std::move(values);
}

void Inferencer::visit_get_item(const TupleGetItem& node, int stage) {
  if (stage == 0) {
    later(node, 1);
    return need(node->tuple);
  }
  if (!memo_.at(node->tuple.get()).type) return finish(node, {});
  const Type type = solver_.root_of(memo_.at(node->tuple.get()).type);  // resolving all items for each would be slow
  if (type.is<IncompleteTypeNode>()) return wait(node, {type});
  const auto* tuple_type = type.as<TupleTypeNode>();
  if (tuple_type == nullptr)
    return fail(node, node->span, "",
                fmt::format("item {} is taken of a value that is not a tuple: {}", node->index, to_string(type)));
  const size_t size = tuple_type->items.size();
  if (node->index < 0 || static_cast<size_t>(node->index) >= size)
    return fail(
        node, node->span, "",
        fmt::format("item {} is taken of a tuple of {}: {}", node->index, size, to_string(resolved(node, type))));
  finish(node, resolved(node, tuple_type->items[static_cast<size_t>(node->index)]));
  set_item_value(node, *tuple_type);
}

void Inferencer::set_item_value(const TupleGetItem& node, const TupleTypeNode& type) {
  const auto it = values_.find(node->tuple.get());
  if (it == values_.end()) return;
  const auto index = static_cast<size_t>(node->index);
  size_t begin = 0;
  for (size_t i = 0; i < index; ++i) begin += value_elements(type.items[i]).value_or(0);
  const size_t end = begin + value_elements(type.items[index]).value_or(0);
  values_[node.get()] = std::vector<PrimExpr>(it->second.begin() + static_cast<std::ptrdiff_t>(begin),
                                              it->second.begin() + static_cast<std::ptrdiff_t>(end));
}

void Inferencer::visit_let(const Let& node, int stage) {
  if (stage == 0) {
    has_value_.insert(node->var.get());
    const Type& annotation = node->var->type_annotation;
    if (annotation) {
      bind_var(node->var, check_annotation(annotation, node->var->span) ? annotation : Type());
    } else if (const auto* function = node->value.as<FunctionNode>(); function != nullptr && !is_known(node->value)) {
      bind_var(node->var, open_function(ref(function)));  // which may call itself through the variable
    }
    later(node, 1);
    return need(node->value);
  }
  if (stage == 1) {
    bind_let(node);
    later(node, 2);
    return need(node->body);
  }
  if (const auto known = value_of(node->body)) values_[node.get()] = *known;
  finish(node, memo_.at(node->value.get()).type ? type_of(node->body) : Type());
}

void Inferencer::bind_let(const Let& node) {
  const Type type = type_of(node->value);
  if (!is_known(node->var)) {
    bind_var(node->var, type);
  } else {
    const Type declared = type_of(node->var);
    agree(node->span ? Expr(node) : node->value, declared, type, [&] {
      return fmt::format("variable '%{}' is annotated as {} and bound to {}", node->var->name_hint, to_string(declared),
                         to_string(type));
    });
  }
  if (const auto value = value_of(node->value)) {
    values_[node->var.get()] = *value;
  } else if (type && solver_.is_open(type)) {
    // The value may be known once its type is. An alias of a variable refers to that variable's value directly, so that
    // chains of aliases are not followed from each of them.
    const auto same = bound_value_.find(node->value.get());
    const Expr value = same == bound_value_.end() ? node->value : same->second;
    bound_value_[node->var.get()] = value;
  }
}

void Inferencer::visit_if(const If& node, int stage) {
  if (stage == 0) {
    later(node, 1);
    return need_all({node->cond, node->true_branch, node->false_branch});
  }
  if (!all_typed({node->cond, node->true_branch, node->false_branch})) return finish(node, {});
  const Type condition = type_of(node->cond), a = type_of(node->true_branch), b = type_of(node->false_branch);
  if (!condition || !a || !b) return finish(node, {});
  if (!solver_.unify(condition, make_scalar_type(DataType::bool_())))
    return fail(node, node->span, "if",
                fmt::format("the condition is {}, expected a bool scalar", to_string(condition)));
  const Type type = solver_.join(a, b);
  if (!type)
    return fail(
        node, node->span, "if",
        fmt::format("the branches have different types: {} and {}{}", to_string(a), to_string(b), solver_.why()));
  finish(node, type);
}

void Inferencer::visit_constructor(const Constructor& node) {
  const TypeData data = find_type_data(module_, node->belong_to);
  if (!data)
    return fail(
        node, node->span, node->name_hint,
        fmt::format("its type '{}' is not defined in the module", node->belong_to ? node->belong_to->name_hint : ""));
  finish(node, constructor_type(node, data));
}

void Inferencer::visit_ref(const Expr& node, int stage) {
  const auto* create = node.as<RefCreateNode>();
  const auto* read = node.as<RefReadNode>();
  const auto* write = node.as<RefWriteNode>();
  const Expr& first = create != nullptr ? create->value : read != nullptr ? read->ref : write->ref;
  if (stage == 0) {
    later(node, 1);
    return write != nullptr ? need_all({write->ref, write->value}) : need(first);
  }
  const Type type = type_of(first);
  if (create != nullptr || !type) return finish(node, type && create != nullptr ? make_ref_type(type) : Type());
  const Type content = make_incomplete_type();
  if (!solver_.unify(type, make_ref_type(content)))
    return fail(node, node->span, "", fmt::format("a reference is expected, got {}", to_string(type)));
  if (read != nullptr) return finish(node, resolved(node, content));
  const Type value = type_of(write->value);
  if (value && !solver_.unify(content, value))
    return fail(node, node->span, "",
                fmt::format("{} is written to a reference of {}{}", to_string(value),
                            to_string(resolved(node, content)), solver_.why()));
  finish(node, value ? make_tuple_type({}) : Type());
}

}  // namespace headrace::relay
