// Type inference of matches and their patterns.
#include "relay/infer/inferencer.h"

namespace headrace::relay {

void Inferencer::visit_match(const Ref<MatchNode>& node, int stage) {
  if (stage == 0) {
    later(node, 1);
    return need(node->data);
  }
  if (stage == 2) return finish_match(node);
  const Type type = type_of(node->data);
  for (const Clause& clause : node->clauses) bind_pattern(clause->lhs, type, node);
  later(node, 2);
  for (size_t i = node->clauses.size(); i-- > 0;) need(node->clauses[i]->rhs);
}

void Inferencer::bind_pattern(const Pattern& root, const Type& root_type, const Expr& match) {
  PatternTypes pending{{root, root_type}};
  while (!pending.empty()) {
    const auto [pattern, type] = pending.back();
    pending.pop_back();
    if (const auto* var = pattern.as<PatternVarNode>()) {
      has_value_.insert(var->var.get());
      // A variable's annotation says what the scrutinee's type leaves open.
      const Type& annotation = var->var->type_annotation;
      if (type && annotation && solver_.is_open(type) && !solver_.is_open(annotation)) solver_.unify(type, annotation);
      bind_var(var->var, type);
    } else if (const auto* tuple = pattern.as<PatternTupleNode>()) {
      bind_tuple_pattern(*tuple, resolved(match, type), match, pending);
    } else if (const auto* constructor = pattern.as<PatternConstructorNode>()) {
      bind_constructor_pattern(*constructor, resolved(match, type), match, pending);
    }
  }
}

void Inferencer::bind_tuple_pattern(const PatternTupleNode& pattern, const Type& type, const Expr& match,
                                    PatternTypes& pending) {
  Array<Type> items;
  for (size_t i = 0; i < pattern.patterns.size(); ++i) items.push_back(make_incomplete_type());
  const bool fits = type && solver_.unify(type, make_tuple_type(items));
  if (type && !fits)
    errors_.add(pattern.span ? pattern.span : match->span, "match",
                fmt::format("a pattern of {} items does not fit {}", pattern.patterns.size(), to_string(type)));
  for (size_t i = 0; i < pattern.patterns.size(); ++i)
    pending.emplace_back(pattern.patterns[i], fits ? items[i] : Type());
}

void Inferencer::bind_constructor_pattern(const PatternConstructorNode& pattern, const Type& type, const Expr& match,
                                          PatternTypes& pending) {
  const Constructor& constructor = pattern.constructor;
  const Span& span = pattern.span ? pattern.span : match->span;
  const TypeData data = find_type_data(module_, constructor->belong_to);
  FuncType signature;
  if (!data) {
    errors_.add(span, constructor->name_hint, "the constructor's type is not defined in the module");
  } else if (type) {
    const Type general = constructor_type(constructor, data);
    signature = solver_.instantiate(*general.as<FuncTypeNode>(), {}, true);
    if (!solver_.unify(type, signature->ret_type)) {
      signature = {};
      errors_.add(span, "match",
                  fmt::format("a value of {} is matched against {} of {}", to_string(type), constructor->name_hint,
                              to_string(Type(constructor->belong_to))));
    }
  }
  if (pattern.patterns.size() != constructor->inputs.size()) {
    signature = {};
    errors_.add(span, "match",
                fmt::format("{} has {} fields; the pattern names {}", constructor->name_hint,
                            constructor->inputs.size(), pattern.patterns.size()));
  }
  for (size_t i = 0; i < pattern.patterns.size(); ++i)
    pending.emplace_back(pattern.patterns[i], signature ? signature->arg_types[i] : Type());
}

void Inferencer::finish_match(const Ref<MatchNode>& node) {
  if (node->clauses.empty()) errors_.add(node->span, "match", "a match needs a clause");
  bool failed = !memo_.at(node->data.get()).type || node->clauses.empty();
  Type type;
  for (const Clause& clause : node->clauses) {
    const Type rhs = type_of(clause->rhs);
    failed = failed || !rhs;
    if (failed) continue;
    const Type joined = type ? solver_.join(type, rhs) : rhs;
    if (!joined)
      return fail(
          node, node->span, "match",
          fmt::format("the clauses have different types: {} and {}", to_string(resolved(node, type)), to_string(rhs)));
    type = joined;
  }
  if (!failed) matches_.push_back(node);
  finish(node, failed ? Type() : type);
}

}  // namespace headrace::relay
