#include "partition/annotate.h"

#include <deque>

#include "object/repr.h"
#include "partition/annotations.h"
#include "partition/backend.h"
#include "partition/rewrite_functions.h"
#include "relay/function_attrs.h"
#include "relay/op_keys.h"

namespace headrace::partition {

using relay::CallNode;
using relay::FunctionNode;

namespace {

// A compiler of the list, with the attribute that says which calls it supports, and the backend of that name, which
// says so for ops without the attribute.
struct CheckedCompiler {
  explicit CheckedCompiler(const std::string& name)
      : compiler(name), attr(target_attr(name)), backend(find_backend(name)) {}
  const std::string compiler, attr;
  const OpKey<Value> key{attr};
  const std::shared_ptr<const Backend> backend;
};

Verdict op_support(const OpNode& op, const CallNode& call, const CheckedCompiler& target) {
  const Verdict no{.reason = HR_REASON_OP_UNSUPPORTED};
  const std::string& attr = target.attr;
  const Value* value = op.find(target.key);
  if (relay::is_stateful(op)) return no;
  if (value == nullptr) return target.backend != nullptr ? target.backend->supports(call) : no;
  if (value->is_none()) return no;
  if (!value->is<PackedFunc>())
    throw_user_error("the attribute '{}' of op '{}' is {}; it is a function that says whether a call is supported",
                     attr, op.name, repr(*value));
  const Value answer = value->as<PackedFunc>()(ref(&call));
  if (answer.is_none()) return no;
  if (answer.is<bool>()) return CheckAnswer(answer.as<bool>());
  if (answer.is<int64_t>()) return CheckAnswer(answer.as<int64_t>() != 0);
  if (answer.is<std::string>()) return {.reason = HR_REASON_OP_UNSUPPORTED, .message = answer.as<std::string>()};
  throw_user_error(
      "the attribute '{}' of op '{}' gave {} for a call; it gives True or False, or a string that says "
      "why not",
      attr, op.name, repr(answer));
}

std::string composite_prefix(const Expr& callee) {
  const auto* function = callee.as<FunctionNode>();
  const auto name = function == nullptr ? std::nullopt : function->attrs.get(relay::kComposite);
  if (!name || !name->is<std::string>()) return "";
  const auto text = name->as<std::string>();
  const size_t dot = text.find('.');
  return dot == std::string::npos ? "" : text.substr(0, dot);
}

Verdict support_by(const CheckedCompiler& target, const CallNode& call) {
  if (const OpNode* op = call.as_op()) return op_support(*op, call, target);
  return CheckAnswer(own_name(composite_prefix(call.op)) == own_name(target.compiler) &&
                     region_fault(ref(&call)).empty());
}

// Decides for each node of one body.
class Annotator {
 public:
  Annotator(Annotated annotated, const AnnotateOptions& options) : given_(std::move(annotated)), options_(options) {
    for (const std::string& target : options.targets) targets_.emplace_back(target);
    part_.reserve(given_.flow.nodes.size());
  }

  Expr annotated() {
    for (int32_t i = 0; i < given_.flow.num_nodes(); ++i) decide(i);
    return write_annotations(given_.flow, part_, compiler_);
  }

 private:
  void decide(int32_t node) {
    const int32_t given = given_.part[static_cast<size_t>(node)];
    if (given != kNone && given_.compiler[static_cast<size_t>(given)] != kDefaultCompiler) return keep(given);
    std::string compiler = compiler_for(node);
    part_.push_back(compiler.empty() ? kNone : static_cast<int32_t>(compiler_.size()));
    if (!compiler.empty()) compiler_.push_back(std::move(compiler));
  }

  void keep(int32_t given) {
    const auto [it, is_new] = kept_.try_emplace(given, static_cast<int32_t>(compiler_.size()));
    if (is_new) compiler_.push_back(given_.compiler[static_cast<size_t>(given)]);
    part_.push_back(it->second);
  }

  // The compiler of a node; empty where it has no annotation.
  std::string compiler_for(int32_t node) const {
    const Expr& expr = given_.flow.node(node);
    if (!is_computation(expr)) return "";
    const auto* call = expr.as<CallNode>();
    if (call == nullptr) return options_.include_non_call_ops ? common_compiler(node) : "";
    if (call->op.is<relay::VarNode>() && !options_.include_non_call_ops) return "";
    for (const CheckedCompiler& target : targets_) {
      if (support_by(target, *call).ok()) return target.compiler;
    }
    return kDefaultCompiler;
  }

  // The compiler that all inputs come from. A variable or a constant comes from none.
  std::string common_compiler(int32_t node) const {
    std::string common;
    for (const int32_t item : given_.flow.children_of(node)) {
      const int32_t part = item == kNone ? kNone : part_[static_cast<size_t>(item)];
      const std::string compiler = part == kNone ? kDefaultCompiler : compiler_[static_cast<size_t>(part)];
      if (!common.empty() && compiler != common) return kDefaultCompiler;
      common = compiler;
    }
    return common.empty() || !region_fault(given_.flow.node(node)).empty() ? kDefaultCompiler : common;
  }

  Annotated given_;
  const AnnotateOptions& options_;
  std::deque<CheckedCompiler> targets_;
  std::vector<int32_t> part_;
  std::vector<std::string> compiler_;
  std::unordered_map<int32_t, int32_t> kept_;  // parts that were annotated before
};

}  // namespace

std::string target_attr(const std::string& compiler) {
  if (compiler.empty() || compiler == kDefaultCompiler)
    throw_user_error("'{}' names no compiler; AnnotateTarget takes names such as \"dnnl\"", compiler);
  return "target." + compiler;
}

void set_target_check(const Op& op, const std::string& compiler, const TargetCheckFn& check) {
  op->set(OpKey<Value>{target_attr(compiler)}, Value(make_packed([check](const Expr& call) {
            const Verdict verdict = check(*call.as<CallNode>());
            return verdict.ok() || verdict.message.empty() ? Value(verdict.ok()) : Value(verdict.message);
          })));
}

Verdict support_of(const CallNode& call, const std::string& compiler) {
  return support_by(CheckedCompiler(compiler), call);
}

IRModule annotate_target(const IRModule& module, const AnnotateOptions& options) {
  if (options.targets.empty()) return module;
  for (const std::string& target : options.targets) target_attr(target);
  return rewrite_entered_functions(module, [&](const std::string&, const FunctionNode& function) {
    return Annotator(read_annotations(function.body), options).annotated();
  });
}

}  // namespace headrace::partition
