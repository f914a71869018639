#include "ir/op_attrs.h"

#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "object/repr.h"

namespace headrace {

namespace {

struct OpAttrKind {
  std::string wanted;
  bool (*accepts)(const RawValue&);
};

struct OpAttrTable {
  std::mutex mutex;
  std::map<std::string, OpAttrKind, std::less<>> kinds;
};

OpAttrTable& op_attr_table() {
  static OpAttrTable& table = *new OpAttrTable;
  return table;
}

std::optional<OpAttrKind> find_op_attr_kind(std::string_view key) {
  const std::lock_guard lock(op_attr_table().mutex);
  const auto it = op_attr_table().kinds.find(key);
  return it == op_attr_table().kinds.end() ? std::nullopt : std::optional(it->second);
}

}  // namespace

void declare_op_attr(std::string key, std::string wanted, bool (*accepts)(const RawValue&)) {
  const std::lock_guard lock(op_attr_table().mutex);
  op_attr_table().kinds.insert_or_assign(std::move(key), OpAttrKind{std::move(wanted), accepts});
}

void check_op_attr(const OpNode& op, std::string_view key, const Value& value) {
  if (value.is_none()) return;
  const auto kind = find_op_attr_kind(key);
  if (kind && !kind->accepts(value.raw())) throw_wrong_op_attr(op, key, kind->wanted, value);
}

void throw_wrong_op_attr(const OpNode& op, std::string_view key, std::string_view wanted, const Value& value) {
  throw_user_error("the attribute '{}' of op '{}' must be {}, got {}", key, op.name, wanted, repr(value));
}

}  // namespace headrace
