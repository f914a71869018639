#include "ir/expr.h"

#include <map>
#include <mutex>
#include <shared_mutex>

#include "ir/op_table.h"

namespace headrace {

void ExprNode::fields(FieldList<ExprNode>& f) {
  f.field<&ExprNode::checked_type_field>("checked_type_", {.ignore = true, .optional = true, .transient = true});
}

void GlobalVarNode::fields(FieldList<GlobalVarNode>& f) { f.field<&GlobalVarNode::name_hint>("name_hint"); }

void BaseFuncNode::fields(FieldList<BaseFuncNode>& f) { f.field<&BaseFuncNode::attrs>("attrs"); }

void OpNode::fields(FieldList<OpNode>& f) { f.field<&OpNode::name>("name"); }

const Type& ExprNode::checked_type() const {
  HEADRACE_CHECK(has_checked_type(), "a {} has no type: InferType has not run on it", key());
  return checked_type_field;
}

void ExprNode::set_checked_type(Type type) const {
  HEADRACE_CHECK(!checked_type_field || checked_type_field == type, "a {} has a type already", key());
  checked_type_field = std::move(type);
}

GlobalVar make_global_var(std::string name) {
  auto node = make_object<GlobalVarNode>();
  node->name_hint = std::move(name);
  return node;
}

namespace {
struct OpTable {
  std::shared_mutex mutex;
  std::map<std::string, Op, std::less<>> ops;
};
OpTable& op_table() {
  static OpTable& table = *new OpTable;
  return table;
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
    }
  }
  return row[b.size()];
}
}  // namespace

Op find_op(std::string_view name) {
  std::shared_lock lock(op_table().mutex);
  auto it = op_table().ops.find(name);
  return it == op_table().ops.end() ? Op() : it->second;
}

Op get_op(std::string_view name) {
  if (Op op = find_op(name)) return op;
  std::vector<std::string> near;
  // A name of hostile length has no near ones.
  if (name.size() < 100) {
    for (const std::string& known : op_names()) {
      const bool same_tail = known.ends_with(fmt::format(".{}", name));
      if (same_tail || edit_distance(known, name) <= 2) near.push_back(known);
    }
  }
  if (near.empty()) throw_user_error("there is no op '{}'", name);
  throw_user_error("there is no op '{}'; did you mean {}?", name, fmt::join(near, " or "));
}

NamedValues OpNode::save_content(const OpNode& op) { return {{"name", Value(op.name)}}; }

Ref<OpNode> OpNode::load_content(const NamedValues& saved) {
  if (saved.size() != 1 || saved[0].first != "name") throw_user_error("an op is saved as its name");
  return get_op(saved[0].second.as<std::string>());
}

std::vector<std::string> op_names() {
  std::shared_lock lock(op_table().mutex);
  std::vector<std::string> names;
  for (const auto& [name, op] : op_table().ops) names.push_back(name);
  return names;
}

Op make_op(std::string name) {
  Op op = make_object<OpNode>();
  op->name = std::move(name);
  return op;
}

void publish_op(const Op& op, bool replace) {
  std::unique_lock lock(op_table().mutex);
  const auto [at, is_new] = op_table().ops.emplace(op->name, op);
  if (is_new) return;
  if (!replace) throw_user_error("op '{}' is registered already", op->name);
  at->second = op;
}

Op register_op(std::string name) {
  const Op op = make_op(std::move(name));
  publish_op(op, false);
  return op;
}

void throw_at(const Span& span, std::string op, std::string message) {
  throw UserError(std::move(message), ErrorPlace{std::move(op), to_string(span)});
}

}  // namespace headrace
