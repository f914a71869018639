#include "passes/fold/residual.h"

#include "passes/fold/evaluate.h"
#include "relay/infer/infer_type.h"

namespace headrace::passes {

int Residual::open() {
  blocks_.push_back({next_++, {}});
  open_.insert(blocks_.back().id);
  return blocks_.back().id;
}

Expr Residual::close(const Expr& result) {
  const Block block = std::move(blocks_.back());
  blocks_.pop_back();
  open_.erase(block.id);
  Expr body = result;
  for (size_t i = block.lets.size(); i-- > 0;)
    body = relay::make_let(block.lets[i].first, block.lets[i].second, body, block.lets[i].second->span);
  return body;
}

Expr Residual::bind(const Expr& value, const std::string& name, const Type& annotation) {
  const relay::Var var = relay::make_var(name, annotation, value->span);
  bind(var, value);
  return var;
}

Known* Store::find(int cell_id) const {
  if (cell_id < 0 || static_cast<size_t>(cell_id) >= cells_.size()) return nullptr;
  const Cell& cell = cells_[static_cast<size_t>(cell_id)];
  return cell.time > forgotten_ ? cell.value : nullptr;
}

void Store::set(int cell_id, Known* value) {
  const auto index = static_cast<size_t>(cell_id);
  if (index >= cells_.size()) cells_.resize(index + 1);
  changes_.push_back({cell_id, cells_[index], forgotten_});
  cells_[index] = {value, ++now_};
}

void Store::forget() {
  changes_.push_back({-1, {}, forgotten_});
  forgotten_ = now_;
}

void Store::go_back(size_t mark) {
  for (; changes_.size() > mark; changes_.pop_back()) {
    const Change& change = changes_.back();
    if (change.cell_id >= 0) cells_[static_cast<size_t>(change.cell_id)] = change.cell;
    forgotten_ = change.forgotten;
  }
}

// Recurses as deep as the pattern is nested, however deep the value is.
Match match_known(const relay::Pattern& pattern, Known* value, Known::Vars& vars) {
  if (const auto* var = pattern.as<relay::PatternVarNode>()) {
    vars[var->var.object()] = value;
    return Match::yes;
  }
  const auto* constructor = pattern.as<relay::PatternConstructorNode>();
  const auto* tuple = pattern.as<relay::PatternTupleNode>();
  if (constructor == nullptr && tuple == nullptr) return Match::yes;
  const bool is_known = value->kind == (constructor != nullptr ? Known::data : Known::tuple);
  if (!is_known) return Match::unknown;
  if (constructor != nullptr && value->node.as<ConstructorNode>()->tag != constructor->constructor->tag)
    return Match::no;
  const auto& parts = constructor != nullptr ? constructor->patterns : tuple->patterns;
  if (parts.size() != value->items.size()) return Match::unknown;
  Match result = Match::yes;
  for (size_t i = 0; i < parts.size() && result != Match::no; ++i) {
    const Match part = match_known(parts[i], value->items[i], vars);
    if (part != Match::yes) result = part;
  }
  return result;
}

namespace {

bool fits(const Type& type, size_t most_bytes) {
  size_t bytes = 0;
  for (const Type& leaf : leaves_of(type)) {
    const auto* tensor = leaf.as<TensorTypeNode>();
    const auto shape = tensor == nullptr ? std::nullopt : as_shape(tensor->shape);
    if (!shape) return false;
    for (const int64_t dim : *shape) {
      if (static_cast<size_t>(dim) > most_bytes) return false;
    }
    bytes += static_cast<size_t>(num_elements(*shape)) * tensor->dtype.bytes();
  }
  return bytes <= most_bytes;
}

}  // namespace

Expr evaluate_call(const relay::CallNode& call, size_t most_bytes, interp::ConstantBudget& budget,
                   const pass::PassContext& context) {
  if (!may_evaluate(*call.as_op())) return {};
  Expr typed;
  try {
    typed = relay::infer_type(ref(&call));
  } catch (const UserError& error) {
    if (!is_plain(error)) throw;
    return {};
  }
  return fits(typed->checked_type(), most_bytes) ? evaluate_closed(typed, budget, context, "PartialEvaluate") : Expr();
}

}  // namespace headrace::passes
