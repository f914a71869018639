#include "plan/plan_memory.h"

#include "ops/op_handles.h"
#include "ops/tensor/memory.h"
#include "plan/arena.h"
#include "relay/infer/infer_type.h"
#include "relay/match.h"

namespace headrace::plan {

using relay::FunctionNode;
using relay::LetNode;
using relay::Var;
using relay::VarNode;

namespace {

class Planner {
 public:
  IRModule plan(const IRModule& module) {
    const auto main = module->lookup("main").cast<FunctionNode>();
    arena_var_ = relay::make_var("arena");
    Expr at = main->body;
    for (; at.is<LetNode>(); at = at.as<LetNode>()->body) plan_binding(*at.as<LetNode>());
    if (offsets_.empty()) return module;
    Expr body = at;
    for (size_t i = bindings_.size(); i-- > 0;) body = relay::make_let(bindings_[i].first, bindings_[i].second, body);
    body = relay::make_let(arena_var_, ops::alloc_storage(arena_.nbytes()), body);
    IRModule result = snapshot(module);
    result->add_function(module->get_global_var("main"),
                         copy_with(*main.get(), [&](FunctionNode& copy) { copy.body = body; }), true);
    return relay::infer_type(result);
  }

 private:
  void plan_binding(const LetNode& let) {
    if (const auto* alloc = relay::call_of(let.value, op::kMemoryAllocStorage)) {
      offsets_[let.var.get()] = arena_.take(alloc->attrs_as<ops::AllocStorageAttrs>().size);
    } else if (const auto* kill = relay::call_of(let.value, op::kMemoryKill)) {
      const int64_t* offset = offset_of(kill->args[0]);
      HEADRACE_CHECK(offset != nullptr, "memory.kill of something that is no storage");
      arena_.give_back(*offset);
    } else if (const auto* view = relay::call_of(let.value, op::kMemoryView); view && offset_of(view->args[0])) {
      const auto& attrs = view->attrs_as<ops::MemoryViewAttrs>();
      bindings_.emplace_back(let.var, ops::memory_view(arena_var_, *offset_of(view->args[0]) + attrs.byte_offset,
                                                       attrs.shape, attrs.dtype, view->span));
    } else {
      bindings_.emplace_back(let.var, let.value);
    }
  }

  // Returns the offset of the storage that `expr` names; null when it is not a storage.
  const int64_t* offset_of(const Expr& expr) const {
    const auto it = offsets_.find(expr.as<VarNode>());
    return it == offsets_.end() ? nullptr : &it->second;
  }

  Arena arena_;
  Var arena_var_;
  std::unordered_map<const VarNode*, int64_t> offsets_;
  std::vector<std::pair<Var, Expr>> bindings_;
};

}  // namespace

IRModule plan_memory(const IRModule& module) { return Planner().plan(module); }

}  // namespace headrace::plan
