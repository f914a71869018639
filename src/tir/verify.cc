#include "tir/verify.h"

#include <unordered_set>

#include "base/stack.h"
#include "object/string.h"
#include "tir/post_order.h"
#include "tir/print.h"
#include "tir/verify_expr.h"
#include "tir/workspace.h"

namespace headrace::tir {

namespace {

constexpr size_t kMostShown = 30;

bool is_number(DataType dtype) { return !dtype.is_handle() && !dtype.is_void() && dtype.is_scalar(); }

class Verifier {
 public:
  std::vector<std::string> run(const PrimFunc& function) {
    place_ = "the function";
    const auto symbol = function->attrs.get("global_symbol");
    if (!symbol || !is_string(symbol->raw())) breach("it has no global_symbol");
    const auto count = static_cast<int64_t>(function->params.size());
    if (function->num_outputs < 0 || function->num_outputs > count)
      breach(fmt::format("it has {} outputs among {} parameters", function->num_outputs, count));
    bind_symbols(*function);
    for (const Buffer& param : function->params) verify_param(param);
    visit(function->body);
    place_ = "the function";
    if (breaches_.empty()) {
      for (const std::string& rule : breaches_of_workspace(*function)) breach(rule);
    }
    return std::move(breaches_);
  }

 private:
  void breach(const std::string& rule) {
    std::string text = fmt::format("{}: {}", place_, rule);
    if (breaches_.empty() || breaches_.back() != text) breaches_.push_back(std::move(text));
  }

  static std::vector<PrimExpr> dims_of(const Buffer& buffer) {
    std::vector<PrimExpr> dims(buffer->shape.begin(), buffer->shape.end());
    dims.insert(dims.end(), buffer->strides.begin(), buffer->strides.end());
    return dims;
  }

  void bind_symbols(const PrimFuncNode& function) {
    for (const Buffer& param : function.params) {
      if (!param) continue;
      for (const PrimExpr& dim : dims_of(param)) {
        if (const auto* symbol = dim.as<PrimVarNode>()) vars_.insert(symbol);
      }
    }
  }

  void verify_param(const Buffer& param) {
    if (!param) return breach("a parameter is null");
    if (!buffers_.insert(param.get()).second) breach(fmt::format("the buffer '{}' is two parameters", param->name));
    verify_buffer(param);
  }

  void verify_buffer(const Buffer& buffer) {
    if (!is_number(buffer->dtype)) breach(fmt::format("the buffer '{}' holds {}", buffer->name, buffer->dtype));
    if (!buffer->strides.empty() && buffer->strides.size() != buffer->shape.size())
      breach(fmt::format("the buffer '{}' has {} strides for {} dimensions", buffer->name, buffer->strides.size(),
                         buffer->shape.size()));
    for (const PrimExpr& dim : dims_of(buffer)) {
      if (!dim || is_any(dim)) {
        breach(fmt::format("a dimension of the buffer '{}' is not known", buffer->name));
      } else if (!dim->dtype.is_int() || !dim->dtype.is_scalar()) {
        breach(fmt::format("the dimension {} of the buffer '{}' is {}", summary(dim), buffer->name, dim->dtype));
      } else if (as_int(dim).value_or(0) < 0) {
        breach(fmt::format("the dimension {} of the buffer '{}' is negative", summary(dim), buffer->name));
      }
    }
    verify_expressions(dims_of(buffer));
  }

  void verify_expressions(const std::vector<PrimExpr>& roots) {
    for (const PrimExpr& root : roots) {
      if (!root) breach("an expression is null");
    }
    const std::vector<PrimExpr> order = post_order(roots);
    // A variable that a let of the expression binds may stand in its body alone: seen in that scope or not at all.
    std::unordered_set<const PrimExprNode*> let_vars;
    for (const PrimExpr& e : order) {
      if (const auto* let = e.as<PrimLetNode>(); let != nullptr && let->var) let_vars.insert(let->var.get());
    }
    for (const PrimExpr& e : order) {
      if (const auto* var = e.as<PrimVarNode>(); var != nullptr && !vars_.contains(var) && !let_vars.contains(var))
        breach(fmt::format("the variable '{}' is not in scope", var->name_hint));
      if (const auto* load = e.as<BufferLoadNode>()) verify_in_scope(load->buffer);
      for (const std::string& rule : breaches_of(e)) breach(rule);
    }
    if (!let_vars.empty()) verify_lets(roots, let_vars);
  }

  // Checks that variables of lets inside expressions are used in their bodies only, and bound once there.
  void verify_lets(const std::vector<PrimExpr>& roots, const std::unordered_set<const PrimExprNode*>& let_vars) {
    struct Visit {
      PrimExpr e;
      const PrimExprNode* leaves = nullptr;  // the variable whose scope ends here
      const PrimExprNode* enters = nullptr;
    };
    std::unordered_set<const PrimExprNode*> open, seen;
    std::vector<Visit> stack;
    for (const PrimExpr& root : roots) stack.push_back({root});
    while (!stack.empty()) {
      const Visit at = std::move(stack.back());
      stack.pop_back();
      if (at.leaves != nullptr) open.erase(at.leaves);
      if (at.enters != nullptr) open.insert(at.enters);
      if (!at.e) continue;
      if (at.e.is<PrimVarNode>() && let_vars.contains(at.e.get()) && !open.contains(at.e.get()))
        breach(fmt::format("the variable '{}' is not in scope", summary(at.e)));
      if (at.e.is<PrimVarNode>() || !seen.insert(at.e.get()).second) continue;
      const auto* let = at.e.as<PrimLetNode>();
      if (let == nullptr) {
        for (const PrimExpr& operand : operands_of(at.e)) stack.push_back({operand});
        continue;
      }
      if (vars_.contains(let->var.get()) || open.contains(let->var.get()))
        breach(fmt::format("the variable '{}' is bound within its own scope", let->var->name_hint));
      // Last in, first out: the value, then the body within the variable's scope.
      stack.push_back({{}, let->var.get(), nullptr});
      stack.push_back({let->body});
      stack.push_back({{}, nullptr, let->var.get()});
      stack.push_back({let->value});
    }
  }

  void verify_in_scope(const Buffer& buffer) {
    if (buffer && !buffers_.contains(buffer.get()))
      breach(fmt::format("the buffer '{}' is neither a parameter nor allocated around", buffer->name));
  }

  void bind(const PrimVar& var) {
    if (var && !vars_.insert(var.get()).second)
      breach(fmt::format("the variable '{}' is bound within its own scope", var->name_hint));
  }

  // Checks statements recursively, as deep as one kernel's nest.
  void visit(const Stmt& s) {
    if (!s) return breach("a statement is null");
    if (is_stack_low()) throw_user_error("the statements of a loop program nest too deeply for the stack");
    if (!s.is<SeqNode>()) {
      place_ = summary(s);
      if (s->span) place_ = fmt::format("{}: {}", to_string(s->span), place_);
    }
    verify_expressions(expressions_of(s));
    if (const auto* store = s.as<BufferStoreNode>()) {
      verify_store(*store);
    } else if (const auto* loop = s.as<ForNode>()) {
      visit_for(*loop);
    } else if (const auto* let = s.as<LetStmtNode>()) {
      visit_let(*let);
    } else if (const auto* allocation = s.as<AllocateNode>()) {
      visit_allocate(*allocation);
    } else {
      const auto* branch = s.as<IfThenElseNode>();
      const auto* check = s.as<AssertNode>();
      const PrimExpr condition = branch != nullptr  ? branch->condition
                                 : check != nullptr ? check->condition
                                                    : PrimExpr();
      if (condition && condition->dtype != DataType::bool_())
        breach(fmt::format("its condition is {}", condition->dtype));
      for (const Stmt& inner : statements_of(s)) visit(inner);
    }
  }

  void verify_store(const BufferStoreNode& store) {
    verify_in_scope(store.buffer);
    for (const std::string& rule : breaches_of_access(store.buffer, store.indices, store.value)) breach(rule);
  }

  void visit_for(const ForNode& loop) {
    if (!loop.var || !loop.begin || !loop.extent) return breach("it has no variable, begin or extent");
    const DataType dtype = loop.var->dtype;
    if (!(dtype.is_int() || dtype.is_uint()) || !dtype.is_scalar()) breach(fmt::format("its variable is {}", dtype));
    if (loop.begin->dtype != dtype || loop.extent->dtype != dtype)
      breach(
          fmt::format("its variable is {}, its begin {}, its extent {}", dtype, loop.begin->dtype, loop.extent->dtype));
    const bool is_vectorized = loop.kind == ForKind::vectorized, is_parallel = loop.kind == ForKind::parallel;
    if ((is_vectorized || loop.kind == ForKind::unrolled) && !as_int(loop.extent))
      breach(fmt::format("a loop that is {} has a constant extent", name_of(loop.kind)));
    if (is_parallel && in_parallel_ > 0) breach("a parallel loop stands inside another");
    if (is_parallel && in_vectorized_ > 0) breach("a parallel loop stands inside a vectorized one");
    bind(loop.var);
    in_parallel_ += is_parallel ? 1 : 0;
    in_vectorized_ += is_vectorized ? 1 : 0;
    visit(loop.body);
    in_parallel_ -= is_parallel ? 1 : 0;
    in_vectorized_ -= is_vectorized ? 1 : 0;
    vars_.erase(loop.var.get());
  }

  void visit_let(const LetStmtNode& let) {
    if (!let.var || !let.value) return breach("it has no variable or value");
    if (let.var->dtype != let.value->dtype)
      breach(fmt::format("its variable is {}, its value {}", let.var->dtype, let.value->dtype));
    bind(let.var);
    visit(let.body);
    vars_.erase(let.var.get());
  }

  void visit_allocate(const AllocateNode& allocation) {
    const Buffer& buffer = allocation.buffer;
    if (!buffer) return breach("it has no buffer");
    verify_buffer(buffer);
    if (!as_shape(buffer->shape)) breach("an allocation has a constant shape");
    if (!buffer->strides.empty()) breach("an allocation is dense");
    const bool is_new = buffers_.insert(buffer.get()).second;
    if (!is_new) breach(fmt::format("the buffer '{}' is there already", buffer->name));
    visit(allocation.body);
    if (is_new) buffers_.erase(buffer.get());
  }

  std::string place_;
  std::vector<std::string> breaches_;
  std::unordered_set<const Object*> vars_, buffers_;  // in scope
  int in_parallel_ = 0, in_vectorized_ = 0;
};

}  // namespace

std::vector<std::string> find_breaches(const PrimFunc& function) { return Verifier().run(function); }

static void throw_if_any(const std::vector<std::string>& breaches) {
  if (breaches.empty()) return;
  const size_t shown = std::min(breaches.size(), kMostShown);
  std::string text =
      fmt::format("{}", fmt::join(breaches.begin(), breaches.begin() + static_cast<std::ptrdiff_t>(shown), "\n  "));
  if (shown < breaches.size()) text += fmt::format("\n  ... and {} more", breaches.size() - shown);
  throw_user_error("the loop program is not well-formed:\n  {}", text);
}

void verify(const PrimFunc& function) { throw_if_any(find_breaches(function)); }

void verify(const IRModule& module) {
  std::vector<std::string> breaches;
  for (const auto& [var, function] : module->functions()) {
    if (!function.is<PrimFuncNode>()) continue;
    for (const std::string& breach : find_breaches(function.cast<PrimFuncNode>()))
      breaches.push_back(fmt::format("@{}: {}", var->name_hint, breach));
  }
  throw_if_any(breaches);
}

}  // namespace headrace::tir
