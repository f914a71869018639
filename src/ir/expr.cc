#include "ir/expr.h"

#include <map>
#include <mutex>
#include <shared_mutex>

#include "ir/near_names.h"
#include "ir/op_handle.h"
#include "ir/op_table.h"

namespace headrace {

void ExprNode::fields(FieldList<ExprNode>& f) {
  f.field<&ExprNode::checked_type_field>("checked_type_", {.ignore = true, .optional = true, .transient = true});
}

void GlobalVarNode::fields(FieldList<GlobalVarNode>& f) { f.field<&GlobalVarNode::name_hint>("name_hint"); }

static Value as_plain_attrs(const Value& given) {
  return given.is<DictAttrs>() ? Value(plain_attrs(given.as<DictAttrs>())) : given;
}

void BaseFuncNode::fields(FieldList<BaseFuncNode>& f) {
  f.field<&BaseFuncNode::attrs>("attrs", {.convert = as_plain_attrs});
}

void OpNode::fields(FieldList<OpNode>& f) { f.field<&OpNode::name>("name"); }

const Type& ExprNode::checked_type() const {
  HEADRACE_CHECK(has_checked_type(), "a {} has no type: InferType has not run on it", key());
  return checked_type_field.get();
}

void ExprNode::set_checked_type(const Type& type) const {
  HEADRACE_CHECK(offer_checked_type(type) == type, "a {} has a type already", key());
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

struct OpKeyTable {
  std::shared_mutex mutex;
  std::map<std::string, size_t, std::less<>> slots;
};
OpKeyTable& op_key_table() {
  static OpKeyTable& table = *new OpKeyTable;
  return table;
}
}  // namespace

size_t op_key_slot(std::string_view name) {
  if (const auto known = find_op_key_slot(name)) return *known;
  std::unique_lock lock(op_key_table().mutex);
  auto& slots = op_key_table().slots;
  return slots.emplace(name, slots.size()).first->second;
}

std::optional<size_t> find_op_key_slot(std::string_view name) {
  std::shared_lock lock(op_key_table().mutex);
  const auto it = op_key_table().slots.find(name);
  return it == op_key_table().slots.end() ? std::nullopt : std::optional(it->second);
}

const std::any* OpNode::find_any(std::string_view key) const {
  const auto slot = find_op_key_slot(key);
  return slot ? values.find(*slot) : nullptr;
}

void OpNode::erase(std::string_view key) {
  const auto slot = find_op_key_slot(key);
  if (slot) values.set(*slot, {});
}

const OpNode& OpHandle::resolve() const {
  const Op found = find_op(name_);
  HEADRACE_CHECK(found, "no op is registered as '{}'", name_);
  op_.store(found.get(), std::memory_order_release);
  return *found;
}

Op find_op(std::string_view name) {
  std::shared_lock lock(op_table().mutex);
  auto it = op_table().ops.find(name);
  return it == op_table().ops.end() ? Op() : it->second;
}

Op get_op(std::string_view name) {
  if (Op op = find_op(name)) return op;
  const std::vector<std::string> near = near_names(name, op_names(), '.');
  if (near.empty()) throw_user_error("there is no op '{}'", name);
  throw_user_error("there is no op '{}'; did you mean {}?", name, fmt::join(near, " or "));
}

NamedValues OpNode::save_content(const OpNode& op) { return {{"name", Value(op.name)}}; }

Ref<OpNode> OpNode::load_content(const NamedValues& saved) {
  if (saved.size() != 1 || saved[0].first != "name") throw_user_error("an op must be saved as its name alone");
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
  Op replaced;  // destroyed after the lock: Python objects in it may run finalizers
  std::unique_lock lock(op_table().mutex);
  const auto [at, is_new] = op_table().ops.emplace(op->name, op);
  if (is_new) return;
  if (!replace) throw_user_error("op '{}' is registered already", op->name);
  replaced = std::exchange(at->second, op);
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
