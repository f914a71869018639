#include "partition/annotate.h"

#include <deque>

#include "partition/annotations.h"
#include "partition/regions.h"
#include "partition/rewrite_functions.h"
#include "partition/support.h"

namespace headrace::partition {

using relay::CallNode;
using relay::FunctionNode;

namespace {

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
      if (target.verdict_of(*call).ok()) return target.name();
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

IRModule annotate_target(const IRModule& module, const AnnotateOptions& options) {
  if (options.targets.empty()) return module;
  for (const std::string& target : options.targets) target_attr(target);
  return rewrite_entered_functions(module, [&](const std::string&, const FunctionNode& function) {
    return Annotator(read_annotations(function.body), options).annotated();
  });
}

}  // namespace headrace::partition
