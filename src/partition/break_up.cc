#include "partition/break_up.h"

#include "partition/regions.h"
#include "relay/composites.h"
#include "relay/function_attrs.h"
#include "relay/visit.h"

namespace headrace::partition {

using relay::CallNode;
using relay::FunctionNode;

namespace {

class Breaker {
 public:
  explicit Breaker(const std::set<const Object*>& pieces) : pieces_(pieces) {}

  Expr broken(const Expr& body) {
    return relay::rewrite_post_order(body, &relay::is_entered, [&](const Expr& before, const Expr& after) -> Expr {
      const auto* call = before.as<CallNode>();
      if (call != nullptr && pieces_.contains(call)) return body_of(*call, *after.as<CallNode>());
      Expr typed = retyped(before, after);
      if (call != nullptr) made_.now.emplace(call, typed.as<CallNode>());
      return typed;
    });
  }

  BrokenUp take() { return std::move(made_); }

 private:
  Expr body_of(const CallNode& piece, const CallNode& after) {
    std::vector<const CallNode*>& parts = made_.parts[&piece];
    return body_with(*piece.op.as<FunctionNode>(), after.args, [&](const CallNode& call) {
      if (call.as_op() != nullptr) parts.push_back(&call);
    });
  }

  const std::set<const Object*>& pieces_;
  BrokenUp made_;
};

}  // namespace

Expr body_with(const FunctionNode& function, const Array<Expr>& args,
               const std::function<void(const CallNode&)>& on_call) {
  std::unordered_map<const Object*, Expr> values;
  for (size_t i = 0; i < args.size(); ++i) values.emplace(function.params[i].object(), args[i]);
  return relay::rewrite_post_order(function.body, [&](const Expr& before, const Expr& after) -> Expr {
    if (const auto value = values.find(before.object()); value != values.end()) return value->second;
    Expr typed = retyped(before, after);
    if (const auto* call = typed.as<CallNode>(); call != nullptr && on_call) on_call(*call);
    return typed;
  });
}

BrokenUp break_up(const IRModule& module, const std::set<const Object*>& pieces) {
  const auto main = module->lookup("main").cast<FunctionNode>();
  Breaker breaker(pieces);
  const Expr body = breaker.broken(main->body);
  BrokenUp made = breaker.take();
  made.module = module;
  if (body == main->body) return made;
  made.module = snapshot(module);
  const Expr function = retyped(main, copy_with(*main, [&](FunctionNode& copy) { copy.body = body; }));
  made.module->add_function(made.module->get_global_var("main"), function.cast<relay::FunctionNode>(), true);
  return made;
}

std::vector<const CallNode*> parts_of(const CallNode& call) {
  std::vector<const CallNode*> parts;
  const FunctionNode* function = relay::called_composite(call);
  if (function == nullptr) return parts;
  relay::post_order(function->body, [&](const Expr& expr) {
    const auto* part = expr.as<CallNode>();
    if (part != nullptr && part->as_op() != nullptr) parts.push_back(part);
  });
  return parts;
}

}  // namespace headrace::partition
