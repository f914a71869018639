#include "partition/support.h"

#include "object/repr.h"
#include "partition/annotations.h"
#include "partition/backend.h"
#include "partition/regions.h"
#include "relay/composites.h"
#include "relay/op_keys.h"

namespace headrace::partition {

using relay::CallNode;
using relay::FunctionNode;

namespace {

Verdict no(std::string message) { return {.reason = HR_REASON_OP_UNSUPPORTED, .message = std::move(message)}; }

std::string composite_prefix(const Expr& callee) {
  const auto* function = callee.as<FunctionNode>();
  const std::string text = function == nullptr ? "" : relay::composite_name(*function);
  const size_t dot = text.find('.');
  return dot == std::string::npos ? "" : text.substr(0, dot);
}

}  // namespace

std::string target_attr(const std::string& compiler) {
  if (compiler.empty() || compiler == kDefaultCompiler)
    throw_user_error("'{}' names no compiler; AnnotateTarget takes names such as \"dnnl\"", compiler);
  return "target." + compiler;
}

void set_target_check(const Op& op, const std::string& compiler, const TargetCheckFn& check) {
  op->set(OpKey<Value>{target_attr(compiler)},
          Value(make_packed([check](const Expr& call) { return answer_of(check(*call.as<CallNode>())); })));
}

CheckedCompiler::CheckedCompiler(const std::string& name)
    : name_(name), attr_(target_attr(name)), found_(find_backend(name)), backend_(found_.get()) {}

CheckedCompiler::CheckedCompiler(const Backend& backend)
    : name_(backend.name()), attr_(target_attr(name_)), backend_(&backend) {}

Verdict CheckedCompiler::verdict_of_op(const OpNode& op, const CallNode& call) const {
  if (relay::is_stateful(op)) return no("an op with effects is never given to a backend");
  const Value* value = op.find(key_);
  if (value == nullptr)
    return backend_ != nullptr ? backend_->supports(call) : no(fmt::format("has no attribute {} that says so", attr_));
  Verdict verdict = CheckAnswer(false);
  if (!value->is_none()) {
    if (!value->is<PackedFunc>())
      throw_user_error("the attribute '{}' of op '{}' is {}; it is a function that says whether a call is supported",
                       attr_, op.name, repr(*value));
    verdict =
        read_answer(value->as<PackedFunc>()(ref(&call)), fmt::format("the attribute '{}' of op '{}'", attr_, op.name));
  }
  if (!verdict.ok() && verdict.message.empty())
    verdict.message = fmt::format("the op's attribute {} says no to this call", attr_);
  return verdict;
}

Verdict CheckedCompiler::verdict_of(const CallNode& call) const {
  if (const OpNode* op = call.as_op()) return verdict_of_op(*op, call);
  if (own_name(composite_prefix(call.op)) != own_name(name_)) return no("it is a composite of another backend");
  const std::string fault = region_fault(ref(&call));
  return fault.empty() ? Verdict() : no(fault);
}

Verdict verdict_of(const Backend& backend, const CallNode& call) { return CheckedCompiler(backend).verdict_of(call); }

}  // namespace headrace::partition
