#include "passes/rewrite/taken_constants.h"

#include <sys/mman.h>

#include <unordered_set>

#include "passes/rewrite/for_each_function.h"
#include "relay/function_attrs.h"
#include "relay/visit.h"

namespace headrace::passes {

using relay::CallNode;
using relay::ConstantNode;

namespace {

// Smaller constants are no matter for the memory of a compile.
constexpr size_t kLeastTakenBytes = size_t{256} << 10;

bool is_large(const Expr& expr) {
  const auto* constant = expr.as<ConstantNode>();
  return constant != nullptr && constant->data.size_bytes() >= kLeastTakenBytes;
}

// Returns the large constants that have one reader in the module, a call in which they may be replaced.
std::unordered_set<const Object*> find_replaced(const IRModule& module, const TakenConstants::MayReplace& may_replace) {
  std::unordered_map<const Object*, int> num_readers;
  std::unordered_set<const Object*> operands;
  for (const auto& [name, function] : module->functions()) {
    const auto* relay_function = function.as<relay::FunctionNode>();
    if (relay_function == nullptr) continue;
    relay::post_order(relay_function->body, [&](const Expr& expr) {
      for (const Expr& child : relay::children_of(expr)) {
        if (is_large(child)) ++num_readers[child.object()];
      }
    });
    if (relay::is_left_alone(*relay_function)) continue;
    relay::post_order(relay_function->body, relay::is_entered, [&](const Expr& expr) {
      const auto* call = expr.as<CallNode>();
      for (size_t i = 0; call != nullptr && i < call->args.size(); ++i) {
        if (is_large(call->args[i]) && may_replace(*call, i)) operands.insert(call->args[i].object());
      }
    });
  }
  std::erase_if(operands, [&](const Object* operand) { return num_readers.at(operand) != 1; });
  return operands;
}

// Returns a constant of the same type, whose zeros take addresses and no memory; null where the system has no
// addresses.
Expr make_stand_in(const ConstantNode& constant) {
  const size_t size = constant.data.size_bytes();
  void* zeros = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (zeros == MAP_FAILED) return {};
  const NDArray data = NDArray::view(zeros, constant.data.shape(), constant.data.dtype(),
                                     [zeros, size] { static_cast<void>(::munmap(zeros, size)); });
  data.object()->read_only = true;
  return relay::make_constant(data, constant.span);
}

}  // namespace

IRModule TakenConstants::take_from(IRModule module, const MayReplace& may_replace, const pass::PassContext& context) {
  if (!context.infer_type || !module->is_unique()) return module;
  const std::unordered_set<const Object*> operands = find_replaced(module, may_replace);
  if (operands.empty()) return module;
  IRModule result = rewrite_bodies(module, [&](const Expr& body) {
    return relay::rewrite_post_order(body, relay::is_entered, [&](const Expr& before, const Expr& after) {
      if (!operands.contains(before.object())) return after;
      const Expr stand_in = make_stand_in(*before.as<ConstantNode>());
      if (!stand_in) return after;
      constants_.emplace(stand_in.object(), before);
      return stand_in;
    });
  });
  module = {};
  return context.infer_type(result);
}

Expr TakenConstants::filled(const Expr& expr) const {
  if (constants_.empty()) return expr;
  return relay::rewrite_post_order(expr, [&](const Expr& before, const Expr& after) {
    const auto constant = constants_.find(before.object());
    return constant == constants_.end() ? after : constant->second;
  });
}

void TakenConstants::free_operands(const CallNode& call) {
  for (const Expr& arg : call.args) constants_.erase(arg.object());
}

IRModule TakenConstants::put_back(const IRModule& module) const {
  if (constants_.empty()) return module;
  return rewrite_bodies(module, [&](const Expr& body) { return filled(body); });
}

}  // namespace headrace::passes
