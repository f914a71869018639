#include "tir/raise.h"

#include <unordered_set>

#include "arith/canonical.h"
#include "object/structural_equal.h"
#include "tir/own_variables.h"
#include "tir/post_order.h"
#include "tir/print.h"
#include "tir/rewrite.h"
#include "tir/verify.h"
#include "tir/verify_compute.h"

namespace headrace::tir {

namespace {

struct Opaque {
  std::string reason;
};

template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) {
  throw Opaque{fmt::format(text, std::forward<Args>(args)...)};
}

struct Loop {
  PrimVar var;
  PrimExpr extent;
};
using Loops = std::vector<Loop>;
using Index = Array<PrimExpr>;

struct Store {
  Buffer buffer;
  Index index;
  PrimExpr value;
};

bool is_same(const Index& a, const Index& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!structural_equal(Value(a[i]), Value(b[i]))) return false;
  }
  return true;
}

bool is_load_of(const PrimExpr& e, const Buffer& buffer, const Index& index) {
  const auto* load = e.as<BufferLoadNode>();
  return load != nullptr && load->buffer == buffer && is_same(load->indices, index);
}

bool reads(const PrimExpr& value, const Buffer& buffer) {
  for (const PrimExpr& e : post_order({value})) {
    const auto* load = e.as<BufferLoadNode>();
    if (load != nullptr && load->buffer == buffer) return true;
  }
  return false;
}

// Returns the loops around a statement that is not a loop.
Stmt strip_loops(Stmt stmt, Loops& loops) {
  while (const auto* loop = stmt.as<ForNode>()) {
    if (loop->kind != ForKind::serial)
      refuse("the loop over '{}' is {}: the order of its iterations is the function's own", loop->var->name_hint,
             name_of(loop->kind));
    if (!is_int(loop->begin, 0))
      refuse("the loop over '{}' begins at {}, not at 0", loop->var->name_hint, summary(loop->begin));
    if (loop->var->dtype != kIndexType)
      refuse("the loop variable '{}' is {}, not int64", loop->var->name_hint, loop->var->dtype);
    loops.push_back({loop->var, loop->extent});
    stmt = loop->body;
  }
  return stmt;
}

using Values = std::unordered_map<const PrimVarNode*, PrimExpr>;

// Returns a store, with the lets around it substituted into its value.
std::optional<Store> as_store(Stmt stmt) {
  Values values;
  while (const auto* let = stmt.as<LetStmtNode>()) {
    values[let->var.get()] = substitute(let->value, values);
    stmt = let->body;
  }
  const auto* store = stmt.as<BufferStoreNode>();
  if (store == nullptr) return std::nullopt;
  Index index;
  for (const PrimExpr& e : store->indices) index.push_back(substitute(e, values));
  return Store{store->buffer, index, substitute(store->value, values)};
}

Store expect_store(const Stmt& stmt) {
  if (auto store = as_store(stmt)) return *store;
  refuse("`{}` is not a store", summary(stmt));
}

std::vector<Stmt> items_of(const Stmt& stmt) {
  const auto* seq = stmt.as<SeqNode>();
  return seq == nullptr ? std::vector<Stmt>{stmt} : seq->items.to_vector();
}

// element = element + value: the combiner and the value.
struct Accumulation {
  Combiner combiner = Combiner::none;
  PrimExpr value;
};

std::optional<Accumulation> as_accumulation(const Store& store) {
  const auto* binary = store.value.as<BinaryNode>();
  if (binary == nullptr) return std::nullopt;
  Accumulation found;
  if (binary->op == BinaryOp::add) found.combiner = Combiner::sum;
  if (binary->op == BinaryOp::mul) found.combiner = Combiner::prod;
  if (binary->op == BinaryOp::max) found.combiner = Combiner::max;
  if (binary->op == BinaryOp::min) found.combiner = Combiner::min;
  const bool is_left = is_load_of(binary->a, store.buffer, store.index);
  if (found.combiner == Combiner::none || (!is_left && !is_load_of(binary->b, store.buffer, store.index)))
    return std::nullopt;
  found.value = is_left ? binary->b : binary->a;
  return reads(found.value, store.buffer) ? std::nullopt : std::optional(found);
}

// Returns whether a reduction may start there: see verify_compute.h.
bool is_start(Combiner combiner, const PrimExpr& e) {
  if (combiner == Combiner::max || combiner == Combiner::min) return e.is<IntImmNode>() || e.is<FloatImmNode>();
  const PrimExpr identity = identity_of(combiner, e->dtype);
  if (const auto value = as_int(e)) return value == as_int(identity);
  const auto *a = e.as<FloatImmNode>(), *b = identity.as<FloatImmNode>();
  return a != nullptr && b != nullptr && a->value == b->value;
}

class Raiser {
 public:
  Compute run(const PrimFunc& function) {
    const size_t inputs = function->params.size() - static_cast<size_t>(function->num_outputs);
    for (size_t i = 0; i < function->params.size(); ++i) {
      const Buffer& param = function->params[i];
      if (!param->strides.empty()) refuse("the parameter '{}' has strides", param->name);
      (i < inputs ? made_.inputs : made_.outputs).push_back(param);
    }
    raise_body(function->body);
    for (const Buffer& output : made_.outputs) {
      if (stage_of(output) == made_.stages.size()) refuse("nothing is stored to '{}'", output->name);
    }
    if (const auto breach = find_breach(made_)) refuse("{}", *breach);
    return with_own_variables(std::move(made_));
  }

 private:
  void raise_body(const Stmt& body) {
    std::vector<Stmt> rest{body};
    while (!rest.empty()) {
      const Stmt stmt = rest.back();
      rest.pop_back();
      if (const auto* seq = stmt.as<SeqNode>()) {
        const std::vector<Stmt> items = seq->items.to_vector();
        rest.insert(rest.end(), items.rbegin(), items.rend());
      } else if (const auto* allocation = stmt.as<AllocateNode>()) {
        rest.push_back(allocation->body);
      } else {
        raise_nest(stmt);
      }
    }
  }

  void raise_nest(const Stmt& nest) {
    Loops loops;
    const Stmt inside = strip_loops(nest, loops);
    if (const auto* allocation = inside.as<AllocateNode>())
      return raise_reduction(loops, items_of(allocation->body), allocation->buffer);
    const std::vector<Stmt> items = items_of(inside);
    const bool has_loop = std::any_of(items.begin(), items.end(), [](const Stmt& item) { return item.is<ForNode>(); });
    if (has_loop) return raise_reduction(loops, items, {});
    std::vector<Store> stores;
    for (const Stmt& item : items) stores.push_back(expect_store(item));
    if (const auto accumulation = stores.size() == 1 ? as_accumulation(stores[0]) : std::nullopt)
      return raise_accumulation(loops, stores[0], *accumulation);
    for (const Store& store : stores) {
      for (const Store& other : stores) {
        if (reads(store.value, other.buffer)) refuse("'{}' is read within the loops that store it", other.buffer->name);
      }
    }
    for (const Store& store : stores) add(map_stage(loops, store));
  }

  // --- stages

  // Returns the position of the stage that computes `buffer`; past the last one when there is none.
  size_t stage_of(const Buffer& buffer) const {
    size_t at = 0;
    while (at < made_.stages.size() && made_.stages[at].output != buffer) ++at;
    return at;
  }

  void add(ComputeStage stage) {
    if (stage_of(stage.output) != made_.stages.size()) refuse("there are two stores of '{}'", stage.output->name);
    made_.stages.push_back(std::move(stage));
  }

  // Makes a stage that writes `index` of `buffer`, and moves its axes out of `loops`.
  static ComputeStage stage_at(Loops& loops, const Buffer& buffer, const Index& index) {
    ComputeStage stage;
    stage.output = buffer;
    for (size_t d = 0; d < index.size(); ++d) {
      const PrimExpr dim = buffer->shape[d];
      if (is_int(index[d], 0) && is_int(dim, 1)) {
        stage.axes.push_back(make_prim_var(fmt::format("i{}", d)));
        continue;
      }
      const auto loop =
          std::find_if(loops.begin(), loops.end(), [&](const Loop& l) { return PrimExpr(l.var) == index[d]; });
      if (loop == loops.end())
        refuse("the index {} of '{}' is not a loop variable, each in one place", summary(index[d]), buffer->name);
      if (dim->dtype != kIndexType || !arith::is_equal(loop->extent, dim))
        refuse("the loop over '{}' ends at {}, dimension {} of '{}' at {}", loop->var->name_hint, summary(loop->extent),
               d, buffer->name, summary(dim));
      stage.axes.push_back(loop->var);
      loops.erase(loop);
    }
    return stage;
  }

  static void check_none_left(const Loops& loops, const Buffer& buffer) {
    if (!loops.empty())
      refuse("'{}' is stored again in every iteration over '{}'", buffer->name, loops[0].var->name_hint);
  }

  static ComputeStage map_stage(Loops loops, const Store& store) {
    ComputeStage stage = stage_at(loops, store.buffer, store.index);
    check_none_left(loops, store.buffer);
    stage.value = store.value;
    return stage;
  }

  static void set_reduction(ComputeStage& stage, const Loops& loops, const Accumulation& accumulation) {
    for (const Loop& loop : loops) {
      stage.reduce_axes.push_back(loop.var);
      stage.reduce_extents.push_back(loop.extent);
    }
    stage.combiner = accumulation.combiner;
    stage.value = accumulation.value;
  }

  // Sets a start value; a start other than the neutral element is combined afterwards.
  static void set_start(ComputeStage& stage, const PrimExpr& start) {
    if (is_start(stage.combiner, start)) {
      stage.init = start;
      return;
    }
    stage.init = identity_of(stage.combiner, stage.value->dtype);
    const bool is_new = !stage.reduced;
    if (is_new) stage.reduced = make_prim_var("reduced", stage.value->dtype);
    const PrimExpr total = combine(stage.combiner, start, stage.reduced);
    stage.epilogue = is_new ? total : substitute(stage.epilogue, {{stage.reduced.get(), total}});
  }

  // Reads a nest of its own, after one that stores the first values.
  void raise_accumulation(Loops loops, const Store& store, const Accumulation& accumulation) {
    ComputeStage stage = stage_at(loops, store.buffer, store.index);
    const size_t first = stage_of(store.buffer);
    if (first == made_.stages.size()) refuse("'{}' is combined with before it is stored to", store.buffer->name);
    const ComputeStage start = made_.stages[first];
    if (loops.empty() || start.combiner != Combiner::none) refuse("there are two stores of '{}'", store.buffer->name);
    for (size_t i = first + 1; i < made_.stages.size(); ++i) {
      if (reads(made_.stages[i].value, store.buffer) ||
          (made_.stages[i].epilogue && reads(made_.stages[i].epilogue, store.buffer)))
        refuse("'{}' is read before its reduction ends", store.buffer->name);
    }
    set_reduction(stage, loops, accumulation);
    Values axes;
    for (size_t d = 0; d < start.axes.size(); ++d) axes[start.axes[d].get()] = stage.axes[d];
    set_start(stage, substitute(start.value, axes));
    made_.stages.erase(made_.stages.begin() + static_cast<std::ptrdiff_t>(first));
    made_.stages.push_back(std::move(stage));
  }

  // Reads a first store, a nest that combines, and a last store, which is required where `kept` holds the result.
  void raise_reduction(Loops loops, const std::vector<Stmt>& items, const Buffer& kept) {
    const bool has_last = items.size() == 3;
    if ((items.size() != 2 && !has_last) || !items[1].is<ForNode>())
      refuse("loops that hold others are raised with a first store, a reduction and at most a last store in them");
    const Store first = expect_store(items[0]);
    const Buffer& total = first.buffer;
    Loops reduced;
    const Store step = expect_store(strip_loops(items[1], reduced));
    const auto accumulation = as_accumulation(step);
    if (step.buffer != total || !is_same(step.index, first.index) || !accumulation)
      refuse("the inner loops do not combine '{}' with a value by +, *, max or min", total->name);
    if (reads(first.value, total)) refuse("the first store of '{}' reads it", total->name);
    if (kept) check_kept(kept, total, has_last);
    const Store last = has_last ? expect_store(items[2]) : first;
    if (!kept && (last.buffer != total || !is_same(last.index, first.index)))
      refuse("the store after the reduction of '{}' is to another place", total->name);
    ComputeStage stage = stage_at(loops, last.buffer, last.index);
    check_none_left(loops, last.buffer);
    set_reduction(stage, reduced, *accumulation);
    if (has_last) set_epilogue(stage, last.value, total, first.index);
    set_start(stage, first.value);
    add(std::move(stage));
  }

  static void check_kept(const Buffer& kept, const Buffer& total, bool has_last) {
    if (kept != total || !has_last)
      refuse("'{}' is allocated inside loops for more than one result of a reduction", kept->name);
    for (const PrimExpr& dim : kept->shape) {
      if (!is_int(dim, 1)) refuse("'{}' is allocated inside loops and has more than one element", kept->name);
    }
  }

  static void set_epilogue(ComputeStage& stage, const PrimExpr& value, const Buffer& total, const Index& index) {
    if (is_load_of(value, total, index)) return;
    stage.reduced = make_prim_var("reduced", total->dtype);
    stage.epilogue =
        rewrite(value, [&](const PrimExpr& e) { return is_load_of(e, total, index) ? PrimExpr(stage.reduced) : e; });
    if (reads(stage.epilogue, total)) refuse("the store after the reduction reads other places of '{}'", total->name);
  }

  Compute made_;
};

}  // namespace

Expected<Compute> raise(const PrimFunc& function) {
  verify(function);
  try {
    return Raiser().run(function);
  } catch (const Opaque& opaque) {
    return Refusal{HR_REASON_FUSE_PATTERN, opaque.reason};
  }
}

}  // namespace headrace::tir
