#include "relay/patterns/matcher.h"

#include "ir/op_handle.h"
#include "object/structural_equal.h"
#include "relay/infer/infer_type.h"
#include "relay/match.h"
#include "relay/patterns/attr_match.h"
#include "relay/unique_binders.h"
#include "relay/visit.h"

namespace headrace::relay {

namespace {

constexpr OpHandle kSum{"add"}, kProduct{"multiply"}, kQuotient{"divide"};

// Steps of one match, for each node of the graph and beyond that: a repetition may take a step for each node.
constexpr size_t kStepsForNode = 16, kMoreSteps = 1'000'000;
// Parts of a pattern that are looked at to find that an expression cannot match.
constexpr int kMostLooks = 64;
// Further ways to match one expression that are tried.
constexpr int kMostTries = 32;
// A repetition takes about six frames for each node of a chain.
constexpr size_t kMaxMatchNesting = 800'000;

// Returns the op that a pattern is; null for any other pattern.
const OpNode* op_in(const DFPattern& pattern) {
  const auto* expr = pattern.as<ExprPatternNode>();
  return expr == nullptr ? nullptr : expr->expr.as<OpNode>();
}

// Returns `pattern` as a call of `op` with two arguments; null for any other pattern.
const CallPatternNode* pair_call(const DFPattern& pattern, const OpHandle& op) {
  const auto* call = pattern.as<CallPatternNode>();
  const bool is_pair = call != nullptr && call->args && call->args->size() == 2;
  return is_pair && op.is(op_in(call->op)) ? call : nullptr;
}

const CallNode* pair_call(const Expr& expr, const OpHandle& op) {
  const CallNode* call = call_of(expr, op);
  return call != nullptr && call->args.size() == 2 ? call : nullptr;
}

Type type_known_of(const Expr& expr) {
  if (expr->has_checked_type()) return expr->checked_type();
  if (const auto* var = expr.as<VarNode>()) return var->type_annotation;
  if (const auto* constant = expr.as<ConstantNode>()) return constant->tensor_type();
  return {};
}

const TensorTypeNode* tensor_known_of(const Expr& expr) { return type_known_of(expr).as<TensorTypeNode>(); }

// Returns whether the type is the one that the pattern asks for; true for patterns that ask for none.
bool has_type_of(const DFPattern& pattern, const Expr& expr) {
  if (const auto* typed = pattern.as<TypePatternNode>()) {
    const Type type = type_known_of(expr);
    return type && structural_equal(Value(typed->type), Value(type));
  }
  if (const auto* shaped = pattern.as<ShapePatternNode>()) {
    const TensorType type(const_cast<TensorTypeNode*>(tensor_known_of(expr)));
    return type && structural_equal(Value(shaped->shape), Value(type->shape));
  }
  if (const auto* typed = pattern.as<DataTypePatternNode>()) {
    const Type type = type_known_of(expr);
    return type.is<TensorTypeNode>() && type.as<TensorTypeNode>()->dtype == typed->dtype;
  }
  return true;
}

bool equals(const Expr& wanted, const Expr& expr) {
  if (wanted == expr) return true;
  return wanted->type_index() == expr->type_index() && !wanted.is<OpNode>() &&
         structural_equal(Value(wanted), Value(expr));
}

// Returns whether a pattern without parts matches; nothing for one with parts.
std::optional<bool> leaf_matches(const PatternIndex::Node& node, const Expr& expr) {
  const DFPattern& pattern = node.pattern;
  if (pattern.is<WildcardPatternNode>() && node.children.empty()) return true;
  if (pattern.is<ConstantPatternNode>()) return expr.is<ConstantNode>();
  if (const auto* wanted = pattern.as<ExprPatternNode>()) return equals(wanted->expr, expr);
  if (const auto* named = pattern.as<VarPatternNode>()) {
    const auto* var = expr.as<VarNode>();
    return var != nullptr && (named->name.empty() || named->name == var->name_hint);
  }
  return std::nullopt;
}

// Returns the expressions that the parts of a pattern stand for, in their order; nothing where the expression is of
// another kind, or has another number of parts.
std::optional<std::vector<Expr>> parts_for(const DFPattern& pattern, const Expr& expr) {
  if (const auto* tuple = pattern.as<TuplePatternNode>()) {
    const auto* node = expr.as<TupleNode>();
    if (node == nullptr || (tuple->items && tuple->items->size() != node->items.size())) return std::nullopt;
    return tuple->items ? node->items.to_vector() : std::vector<Expr>();
  }
  if (const auto* item = pattern.as<TupleGetItemPatternNode>()) {
    const auto* node = expr.as<TupleGetItemNode>();
    if (node == nullptr || (item->index != -1 && item->index != node->index)) return std::nullopt;
    return std::vector<Expr>{node->tuple};
  }
  if (pattern.is<IfPatternNode>()) {
    const auto* node = expr.as<IfNode>();
    if (node == nullptr) return std::nullopt;
    return std::vector<Expr>{node->cond, node->true_branch, node->false_branch};
  }
  if (pattern.is<LetPatternNode>()) {
    const auto* node = expr.as<LetNode>();
    if (node == nullptr) return std::nullopt;
    return std::vector<Expr>{node->var, node->value, node->body};
  }
  const auto* function = pattern.as<FunctionPatternNode>();
  const auto* node = expr.as<FunctionNode>();
  if (function == nullptr || node == nullptr) return std::nullopt;
  if (!function->params) return std::vector<Expr>{node->body};
  if (function->params->size() != node->params.size()) return std::nullopt;
  return children_of(expr);
}

}  // namespace

Matcher::Matcher(const PatternIndex& pattern, const ExprIndex& graph)
    : pattern_(pattern), graph_(graph), bound_(pattern.nodes.size()), failed_(pattern.nodes.size()) {}

bool Matcher::match(const Expr& expr) {
  fixed_.clear();
  tries_left_ = kMostTries;
  again_ = expr;
  return run(expr);
}

// The ways to match are in the order of a search that goes back to its latest choice. `fixed_` has the choices of the
// last match up to the one that is turned around; those after it are free.
bool Matcher::match_again() {
  std::vector<Choice> made = choices_;
  while (tries_left_ > 0) {
    while (!made.empty() && !made.back().is_left) made.pop_back();
    if (made.empty()) return false;
    made.back().is_left = false;
    fixed_.clear();
    for (const Choice& choice : made) fixed_.emplace(std::pair(choice.node, choice.expr), choice.is_left);
    --tries_left_;
    if (run(again_)) return true;
  }
  return false;
}

bool Matcher::run(const Expr& expr) {
  undo({0, 0, 0});
  if (plainly_differs(pattern_.root, expr)) return false;
  steps_left_ = graph_.nodes().size() * kStepsForNode + kMoreSteps;
  return visit(pattern_.root, expr).run({kMaxMatchNesting, "the pattern repeats too often in a row"});
}

void Matcher::undo(const Mark& mark) {
  for (; trail_.size() > mark.trail; trail_.pop_back()) bound(trail_.back().node) = trail_.back().before;
  log_.resize(mark.log, Pair{0, {}});
  choices_.resize(mark.choices, Choice{});
}

void Matcher::bind(int id, const Object* object) {
  trail_.push_back({id, bound(id)});
  bound(id) = object;
}

void Matcher::spend() {
  if (steps_left_-- == 0)
    throw_user_error(
        "matching the pattern takes more than {} steps; write it with fewer nested alternatives and exchangeable "
        "arguments",
        graph_.nodes().size() * kStepsForNode + kMoreSteps);
}

bool Matcher::plainly_differs(int id, const Expr& expr) const {
  int looks = kMostLooks;
  return plainly_differs(id, expr, looks);
}

// Tells most nodes of a program from what a pattern asks for, by the kind of node and the op that it calls. Gives up
// after a number of looks.
bool Matcher::plainly_differs(int id, const Expr& expr, int& looks) const {
  while (looks-- > 0) {
    const Node& node = node_at(id);
    if (const auto* call = node.pattern.as<CallPatternNode>()) {
      const auto* found = expr.as<CallNode>();
      if (found == nullptr) return true;
      const OpNode* op = op_in(call->op);
      // Products and quotients may match in each other's place.
      return op != nullptr && found->as_op() != op && !kProduct.is(op) && !kQuotient.is(op);
    }
    if (node.pattern.is<AltPatternNode>())
      return plainly_differs(node.children[0], expr, looks) && plainly_differs(node.children[1], expr, looks);
    if (node.pattern.is<DominatorPatternNode>()) {
      id = node.children[2];
    } else if (node.children.size() == 1 && !node.pattern.is<TupleGetItemPatternNode>() &&
               !node.pattern.is<TuplePatternNode>() && !node.pattern.is<FunctionPatternNode>()) {
      id = node.children[0];
    } else {
      return false;
    }
  }
  return false;
}

Nested<bool> Matcher::visit(int id, Expr expr) {
  spend();
  if (bound(id) != nullptr) co_return bound(id) == expr.object();
  const Node& node = node_at(id);
  const Mark before = mark();
  std::optional<bool> matches = leaf_matches(node, expr);
  if (!matches) {
    auto& failed = failed_[static_cast<size_t>(id)];
    if (node.is_closed && failed.contains(expr.object())) co_return false;
    matches = co_await visit_parts(id, expr);
    // With choices that are fixed, a part may fail that matches otherwise.
    if (!*matches && node.is_closed && fixed_.empty()) failed.insert(expr.object());
  }
  if (!*matches) {
    undo(before);
    co_return false;
  }
  bind(id, expr.object());
  log_.push_back({id, expr});
  co_return true;
}

Nested<bool> Matcher::visit_all(std::vector<int> ids, std::vector<Expr> exprs) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (!co_await visit(ids[i], exprs[i])) co_return false;
  }
  co_return true;
}

// Starts matching a pattern with parts. Makes no frame of its own: repetitions nest as deep as the program.
Nested<bool> Matcher::visit_parts(int id, Expr expr) {
  const DFPattern& pattern = node_at(id).pattern;
  if (pattern.is<CallPatternNode>()) return visit_call(id, std::move(expr));
  if (pattern.is<AltPatternNode>()) return visit_either(id, std::move(expr));
  if (pattern.is<DominatorPatternNode>()) return visit_dominator(id, std::move(expr));
  if (pattern.is<WildcardPatternNode>()) return visit_repetition(id, std::move(expr));
  const auto* marked = pattern.as<AttrPatternNode>();
  const bool is_constraint = marked != nullptr || pattern.is<TypePatternNode>() || pattern.is<ShapePatternNode>() ||
                             pattern.is<DataTypePatternNode>();
  if (!is_constraint) {
    std::optional<std::vector<Expr>> parts = parts_for(pattern, expr);
    if (!parts) return differs();
    std::vector<int> ids = parts_of(id, *parts);
    return visit_all(std::move(ids), std::move(*parts));
  }
  if (!has_type_of(pattern, expr) || (marked != nullptr && !has_attrs(expr, marked->attrs))) return differs();
  return visit(node_at(id).children[0], std::move(expr));
}

Nested<bool> Matcher::differs() { co_return false; }

// Returns the nodes for the parts of an expression: none for a tuple of any number of fields.
std::vector<int> Matcher::parts_of(int id, const std::vector<Expr>& parts) const {
  const std::vector<int>& children = node_at(id).children;
  return {children.begin(), children.begin() + static_cast<std::ptrdiff_t>(std::min(children.size(), parts.size()))};
}

Nested<bool> Matcher::visit_call(int id, Expr expr) {
  const auto* call = expr.as<CallNode>();
  if (call == nullptr) co_return false;
  const auto& pattern = *node_at(id).pattern.as<CallPatternNode>();
  const std::vector<int>& children = node_at(id).children;
  const Mark before = mark();
  if (!co_await visit(children[0], call->op)) {
    undo(before);
    if (co_await divided_product(id, expr)) co_return true;
    undo(before);
    co_return co_await multiplied_quotient(id, expr);
  }
  if (!pattern.args) co_return true;
  const size_t count = call->args.size();
  if (children.size() != count + 1) co_return false;
  const OpNode* op = op_in(pattern.op);
  const size_t orders = count == 2 && (kSum.is(op) || kProduct.is(op)) ? 2 : 1;
  const Mark after_op = mark();
  for (size_t order = 0; order < orders; ++order) {
    undo(after_op);
    size_t matched = 0;
    while (matched < count) {
      const size_t arg = order == 0 ? matched : count - 1 - matched;
      if (!co_await visit(children[1 + matched], call->args[arg])) break;
      ++matched;
    }
    if (matched == count) co_return true;
  }
  co_return false;
}

// Matches a pattern (a * b) / c with a * (b / c) or b * (a / c), factors in any order.
Nested<bool> Matcher::divided_product(int id, Expr expr) {
  const CallPatternNode* divide = pair_call(node_at(id).pattern, kQuotient);
  const CallPatternNode* multiply = divide == nullptr ? nullptr : pair_call((*divide->args)[0], kProduct);
  const CallNode* product = pair_call(expr, kProduct);
  if (multiply == nullptr || product == nullptr) co_return false;
  const std::vector<int>&outer = node_at(id).children, &inner = node_at(outer[1]).children;
  const Mark before = mark();
  for (size_t taken = 0; taken < 2; ++taken) {
    for (size_t other = 0; other < 2; ++other) {
      const size_t side = 1 - other;
      const CallNode* quotient = pair_call(product->args[side], kQuotient);
      if (quotient == nullptr || bound(outer[1]) != nullptr) continue;
      std::vector<int> ids{outer[0], inner[0], inner[2 - taken], inner[1 + taken], outer[2]};
      std::vector<Expr> exprs{quotient->op, product->op, product->args[other], quotient->args[0], quotient->args[1]};
      if (co_await visit_all(std::move(ids), std::move(exprs))) {
        bind(outer[1], quotient);
        log_.push_back({outer[1], product->args[side]});
        co_return true;
      }
      undo(before);
    }
  }
  co_return false;
}

// Matches a pattern (a / b) * c, factors in any order, with (a * c) / b.
Nested<bool> Matcher::multiplied_quotient(int id, Expr expr) {
  const CallPatternNode* multiply = pair_call(node_at(id).pattern, kProduct);
  const CallNode* quotient = pair_call(expr, kQuotient);
  const CallNode* product = quotient == nullptr ? nullptr : pair_call(quotient->args[0], kProduct);
  if (multiply == nullptr || product == nullptr) co_return false;
  const std::vector<int>& outer = node_at(id).children;
  const Mark before = mark();
  for (size_t side = 1; side <= 2; ++side) {
    if (pair_call(node_at(outer[side]).pattern, kQuotient) == nullptr || bound(outer[side]) != nullptr) continue;
    const std::vector<int>& inner = node_at(outer[side]).children;
    for (size_t first = 0; first < 2; ++first) {
      std::vector<int> ids{outer[0], inner[0], inner[1], outer[3 - side], inner[2]};
      std::vector<Expr> exprs{product->op, quotient->op, product->args[first], product->args[1 - first],
                              quotient->args[1]};
      if (co_await visit_all(std::move(ids), std::move(exprs))) {
        bind(outer[side], product);
        log_.push_back({outer[side], quotient->args[0]});
        co_return true;
      }
      undo(before);
    }
  }
  co_return false;
}

Nested<bool> Matcher::visit_either(int id, Expr expr) {
  const size_t place = choices_.size();
  const auto fixed = fixed_.find({id, expr.object()});
  for (const int choice : node_at(id).children) {
    const Choice made{id, expr.object(), choice == node_at(id).children[0]};
    if (fixed != fixed_.end() && fixed->second != made.is_left) continue;
    if (bound(choice) == nullptr && plainly_differs(choice, expr)) continue;
    choices_.resize(place, made);
    choices_.push_back(made);
    if (co_await visit(choice, expr)) co_return true;
  }
  choices_.resize(place, Choice{});
  co_return false;
}

// Matches the target of a redirected wildcard. Parts that repeat are free inside and get back what they stood for.
Nested<bool> Matcher::visit_repetition(int id, Expr expr) {
  const int target = node_at(id).children[0];
  const auto repeated = pattern_.repeated.find(id);
  if (repeated == pattern_.repeated.end()) co_return co_await visit(target, expr);
  std::vector<const Object*> outside;
  for (const int node : repeated->second) {
    outside.push_back(bound(node));
    bind(node, nullptr);
  }
  if (!co_await visit(target, expr)) co_return false;
  for (size_t i = 0; i < outside.size(); ++i) bind(repeated->second[i], outside[i]);
  co_return true;
}

Nested<bool> Matcher::visit_dominator(int id, Expr expr) {
  const int parent = node_at(id).children[0], child = node_at(id).children[2];
  if (!co_await visit(child, expr)) co_return false;
  if (!co_await visit_paths(id, expr)) co_return false;
  for (size_t i = log_.size(); i > 0; --i) {
    if (log_[i - 1].node == parent) co_return graph_.dominates(expr, log_[i - 1].expr);
  }
  co_return false;
}

// Walks up from the child: each input matches the parent, where the walk ends, or the path, where it goes on. Variables
// and constants beside such inputs are free, as the bias of an addition on the way.
Nested<bool> Matcher::visit_paths(int id, Expr expr) {
  const int parent = node_at(id).children[0], path = node_at(id).children[1];
  std::unordered_set<const Object*> seen;
  std::vector<Expr> stack{std::move(expr)};
  while (!stack.empty()) {
    const Expr at = stack.back();
    stack.pop_back();
    const std::vector<Expr> inputs = relay::children_of(at);
    bool goes_on = false;
    for (size_t i = at.is<CallNode>() ? 1 : 0; i < inputs.size(); ++i) {  // past the callee
      const Expr& input = inputs[i];
      const bool is_leaf = input.is<VarNode>() || input.is<ConstantNode>();
      if (seen.contains(input.object())) {
        goes_on |= !is_leaf;
        continue;
      }
      if (co_await visit(parent, input)) {
        goes_on = true;
        continue;
      }
      if (is_leaf) continue;
      if (!co_await visit_path(path, input)) co_return false;
      seen.insert(input.object());
      stack.push_back(input);
      goes_on = true;
    }
    if (!goes_on) co_return false;
  }
  co_return true;
}

// Matches one expression on the way; the next one may stand for the same part of the pattern.
Nested<bool> Matcher::visit_path(int path, Expr expr) {
  const std::vector<int>& repeated = pattern_.repeated.at(path);
  for (const int node : repeated) bind(node, nullptr);
  if (!co_await visit(path, expr)) co_return false;
  for (const int node : repeated) bind(node, nullptr);
  co_return true;
}

Expr typed_for(const PatternIndex& pattern, const Expr& expr, const IRModule& module) {
  const bool is_typed = expr->has_checked_type() || expr.is<VarNode>() || expr.is<ConstantNode>() || expr.is<OpNode>();
  return !pattern.needs_types || is_typed ? expr : infer_type(unique_binders(expr), module);
}

bool match_pattern(const DFPattern& pattern, const Expr& expr) {
  const PatternIndex index(pattern);
  const Expr typed = typed_for(index, expr);
  const ExprIndex graph(typed);
  return Matcher(index, graph).match(typed);
}

}  // namespace headrace::relay
