#include "plan/group_names.h"

#include <xxhash.h>

#include "object/structural_equal.h"
#include "object/structural_hash.h"
#include "relay/text/print.h"
#include "relay/visit.h"

namespace headrace::plan {

namespace {

constexpr size_t kMaxWords = 72;

// Returns a name such as "nn_conv2d_add_nn_relu_0123456789abcdef".
std::string name_of(const relay::Function& group) {
  std::string words;
  relay::post_order(group, [&](const Expr& expr) {
    const auto* call = expr.as<relay::CallNode>();
    const OpNode* op = call != nullptr ? call->as_op() : nullptr;
    if (op != nullptr && words.size() < kMaxWords) words += op->name + "_";
  });
  for (char& c : words) {
    if (c == '.') c = '_';
  }
  const std::string text = relay::print_expr(group);
  return fmt::format("{}{:016x}", words, XXH3_64bits(text.data(), text.size()));
}

}  // namespace

GlobalVar GroupTable::add(const relay::Function& group) {
  std::vector<size_t>& same_hash = by_hash_[structural_hash(group)];
  for (const size_t i : same_hash) {
    if (structural_equal(functions_[i].second, group)) return functions_[i].first;
  }
  std::string name = name_of(group);
  if (const size_t times = times_used_[name]++; times > 0) name += fmt::format("_{}", times);
  same_hash.push_back(functions_.size());
  functions_.emplace_back(make_global_var(name), group);
  return functions_.back().first;
}

}  // namespace headrace::plan
