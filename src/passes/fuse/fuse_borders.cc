#include "passes/fuse/fuse_borders.h"

#include "ops/call_fusion.h"
#include "passes/fuse/fuse_groups.h"
#include "passes/rewrite/for_each_function.h"
#include "relay/match.h"

namespace headrace::passes {

using ops::FusionKind;
using relay::CallNode;

namespace {

const std::string& op_of(const Expr& call) { return relay::op_call(call)->as_op()->name; }

// Describes how an expression that is not an op call uses the value, for messages.
std::string_view use_by(const Expr& user) {
  if (!user) return "the result";
  if (user.is<relay::LetNode>()) return "bound by a let";
  if (user.is<relay::IfNode>()) return "a condition or a branch's value";
  if (user.is<relay::MatchNode>()) return "matched or a clause's value";
  if (user.is<relay::FunctionNode>()) return "a function's result";
  if (user.is<CallNode>()) return "an argument of a call that is not an op's";
  if (user.is<relay::TupleGetItemNode>()) return "an item of a tuple that is taken apart again";
  return "kept by a reference";
}

std::string why_kinds(const FuseStop& stop) {
  if (stop.kind == FusionKind::reduction)
    return fmt::format("'{}' is a reduction, which ends its group", op_of(stop.producer));
  return fmt::format("the group of '{}', whose kind is {}, does not go in front of {}'{}', whose kind is {}",
                     op_of(stop.producer), ops::name_of(stop.kind), stop.is_other_group ? "that of " : "",
                     op_of(stop.other), ops::name_of(stop.other_kind));
}

std::string why_multiple_users(const FuseStop& stop) {
  if (stop.is_exit) return fmt::format("the value of '{}' is also {}", op_of(stop.producer), use_by(stop.other));
  return fmt::format("the {} calls that read '{}' do not meet in one again", stop.users.size(), op_of(stop.producer));
}

std::string message_of(const FuseStop& stop, const FuseOptions& options) {
  switch (stop.code) {
    case HR_REASON_FUSE_PATTERN:
      return fmt::format("'{}' shares no kernel: {}", op_of(stop.other), ops::why_opaque(*relay::op_call(stop.other)));
    case HR_REASON_FUSE_DEPTH:
      return fmt::format("with '{}' the group would have more than max_depth = {} op calls", op_of(stop.other),
                         options.max_depth);
    case HR_REASON_FUSE_MULTIPLE_USERS:
      return why_multiple_users(stop);
    case HR_REASON_FUSE_KINDS:
      return why_kinds(stop);
    case HR_REASON_FUSE_ANCHORS:
      return fmt::format("the groups of '{}' and '{}' have an anchor each, and a kernel has one", op_of(stop.producer),
                         op_of(stop.other));
    case HR_REASON_FUSE_VIEW:
      return fmt::format("'{}' is a view, which alone costs nothing", op_of(stop.other));
    case HR_REASON_FUSE_DATA_SIZED:
      return fmt::format("the size of the result of '{}' comes from data", op_of(stop.other));
    case HR_REASON_FUSE_TENSORS:
      return fmt::format("with '{}' the kernel would have more than {} tensors around it", op_of(stop.other),
                         options.max_args);
    case HR_REASON_FUSE_TUPLE:
    case HR_REASON_FUSE_SCOPE:
      return fmt::format("the value of '{}' is {}", op_of(stop.producer), use_by(stop.other));
    default:
      throw InternalError(fmt::format("{} is not a reason of fusion", static_cast<int>(stop.code)));
  }
}

}  // namespace

std::string_view name_of_fuse_reason(hr_reason code) {
  static constexpr std::pair<hr_reason, std::string_view> kNames[] = {
      {HR_REASON_FUSE_PATTERN, "FUSE_PATTERN"},
      {HR_REASON_FUSE_DEPTH, "FUSE_DEPTH"},
      {HR_REASON_FUSE_MULTIPLE_USERS, "FUSE_MULTIPLE_USERS"},
      {HR_REASON_FUSE_KINDS, "FUSE_KINDS"},
      {HR_REASON_FUSE_ANCHORS, "FUSE_ANCHORS"},
      {HR_REASON_FUSE_VIEW, "FUSE_VIEW"},
      {HR_REASON_FUSE_DATA_SIZED, "FUSE_DATA_SIZED"},
      {HR_REASON_FUSE_TENSORS, "FUSE_TENSORS"},
      {HR_REASON_FUSE_TUPLE, "FUSE_TUPLE"},
      {HR_REASON_FUSE_SCOPE, "FUSE_SCOPE"},
  };
  for (const auto& [known, name] : kNames) {
    if (known == code) return name;
  }
  throw InternalError(fmt::format("{} is not a reason of fusion", static_cast<int>(code)));
}

std::vector<FuseBorder> find_fuse_borders(const IRModule& module, const FuseOptions& options) {
  std::vector<FuseBorder> borders;
  rewrite_bodies(module, [&](const Expr& body) {
    for (FuseStop& stop : find_fuse_stops(body, options)) {
      std::string message = message_of(stop, options);
      borders.push_back({stop.code, std::move(stop.producer), std::move(stop.users), std::move(message)});
    }
    return body;
  });
  return borders;
}

}  // namespace headrace::passes
