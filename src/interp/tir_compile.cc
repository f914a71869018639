// Loop IR to steps.
#include "interp/tir_program.h"
#include "ir/intrinsics.h"
#include "tir/post_order.h"

namespace headrace::interp {

using namespace tir;  // this file reads loop IR and nothing else

namespace {

class Compiler {
 public:
  Program run(const PrimFunc& function) {
    const size_t inputs = function->params.size() - static_cast<size_t>(function->num_outputs);
    for (const Buffer& param : function->params) bind_symbols(*param);
    for (size_t i = 0; i < function->params.size(); ++i)
      add_buffer(function->params[i], i < inputs ? ProgramBuffer::Role::input : ProgramBuffer::Role::output);
    program_.begin = program_.steps.size();
    statement(function->body);
    return std::move(program_);
  }

 private:
  struct Slot {
    int at = -1;
    int lanes = 1;
  };

  // --- slots

  Slot new_slot(int lanes) {
    const Slot slot{static_cast<int>(program_.cells.size()), lanes};
    program_.cells.resize(program_.cells.size() + static_cast<size_t>(lanes));
    return slot;
  }
  Slot constant(Cell value) {
    const Slot slot = new_slot(1);
    program_.cells[static_cast<size_t>(slot.at)] = value;
    return slot;
  }
  Step& add(StepKind kind) {
    program_.steps.push_back({.kind = kind});
    program_.steps.back().statement = static_cast<int>(program_.statements.size()) - 1;
    return program_.steps.back();
  }
  size_t here() const { return program_.steps.size(); }

  void bind_symbols(const BufferNode& param) {
    for (const Array<PrimExpr>* list : {&param.shape, &param.strides}) {
      for (const PrimExpr& dim : *list) {
        const auto* symbol = dim.as<PrimVarNode>();
        if (symbol == nullptr || vars_.contains(symbol)) continue;
        vars_[symbol] = new_slot(1);
        program_.symbols[symbol] = vars_[symbol].at;
      }
    }
  }

  void add_buffer(const Buffer& buffer, ProgramBuffer::Role role) {
    check_cell_dtype(buffer->dtype);
    ProgramBuffer made{.buffer = buffer, .dims = {}, .strides = {}, .role = role};
    for (const PrimExpr& dim : buffer->shape) made.dims.push_back(value(dim).at);
    for (const PrimExpr& stride : buffer->strides) made.strides.push_back(value(stride).at);
    buffers_[buffer.get()] = static_cast<int>(program_.buffers.size());
    program_.buffers.push_back(std::move(made));
  }

  // --- expressions: each part of a statement's expressions is computed once

  // A step of visiting an expression. The stack of tasks holds the next one last.
  using Task = std::function<void()>;

  Slot value(const PrimExpr& e) {
    visit(e);
    while (!tasks_.empty()) {
      const Task task = std::move(tasks_.back());
      tasks_.pop_back();
      task();
    }
    return slot_of(e);
  }

  Slot slot_of(const PrimExpr& e) const {
    const auto* var = e.as<PrimVarNode>();
    return var != nullptr ? vars_.at(var) : done_.at(e.get());
  }

  void finish(const PrimExpr& e, Slot slot) {
    done_[e.get()] = slot;
    done_order_.push_back(e.get());
  }
  // Forgets the slots of expressions visited since the mark, because values computed under a condition are not
  // available outside of it.
  void forget(size_t mark) {
    for (; done_order_.size() > mark; done_order_.pop_back()) done_.erase(done_order_.back());
  }

  void later(Task task) { tasks_.push_back(std::move(task)); }
  void visit_later(const PrimExpr& e) {
    later([this, e] { visit(e); });
  }

  void visit(const PrimExpr& e) {
    if (e.is<PrimVarNode>() || done_.contains(e.get())) return;
    if (!e->dtype.is_void()) check_cell_dtype(e->dtype);
    if (const auto* imm = e.as<IntImmNode>()) return finish(e, constant(cell_of_int(imm->value, e->dtype)));
    if (const auto* real = e.as<FloatImmNode>()) return finish(e, constant(cell_of_float(real->value, e->dtype)));
    if (const auto* let = e.as<PrimLetNode>()) return visit_let(e, *let);
    const auto* call = e.as<IntrinsicCallNode>();
    if (call != nullptr && call->intrinsic == Intrinsic::if_then_else) return visit_branch(e, *call);
    // A prefetch has no effect here.
    if (call != nullptr && call->intrinsic == Intrinsic::prefetch) return finish(e, constant(0));
    if (const auto narrow = computed_narrow_dtype(e)) fail_to_compute(*narrow);
    later([this, e] { emit(e); });
    if (call != nullptr && call->intrinsic == Intrinsic::vector_load) {
      const auto* place = call->args[0].as<BufferLoadNode>();
      if (place == nullptr) throw_user_error("the interpreter supports pointers to elements of buffers only");
      visit_later(call->args[1]);
      for (const PrimExpr& index : place->indices) visit_later(index);
      return;
    }
    for (const PrimExpr& operand : operands_of(e)) visit_later(operand);
  }

  // Forgets the slots of the body afterwards, because they depend on the variable, which another let may bind again.
  void visit_let(const PrimExpr& e, const PrimLetNode& let) {
    const auto mark = std::make_shared<size_t>(0);
    later([this, e, &let, mark] {
      const Slot result = slot_of(let.body);
      forget(*mark);
      finish(e, result);
      vars_.erase(let.var.get());
    });
    visit_later(let.body);
    later([this, &let, mark] {
      vars_[let.var.get()] = slot_of(let.value);
      *mark = done_order_.size();
    });
    visit_later(let.value);
  }

  void visit_branch(const PrimExpr& e, const IntrinsicCallNode& call) {
    later([this, e, &call] {
      if (call.args[0]->dtype.is_scalar()) {
        branch(e, call);
      } else {
        masked_branch(e, call);
      }
    });
    visit_later(call.args[0]);
  }

  // One side only.
  void branch(const PrimExpr& e, const IntrinsicCallNode& call) {
    const Slot result = new_slot(e->dtype.lanes());
    const size_t mark = done_order_.size();
    const auto to_else = std::make_shared<size_t>(here()), to_end = std::make_shared<size_t>(0);
    add(StepKind::jump_unless).a = slot_of(call.args[0]).at;
    later([=, this, &call] {
      copy(result, slot_of(call.args[2]));
      program_.steps[*to_end].target = here();
      forget(mark);
      finish(e, result);
    });
    visit_later(call.args[2]);
    later([=, this, &call] {
      copy(result, slot_of(call.args[1]));
      *to_end = here();
      add(StepKind::jump);
      program_.steps[*to_else].target = here();
      forget(mark);
    });
    visit_later(call.args[1]);
  }

  // Each lane takes its side; loads of the others touch no memory.
  void masked_branch(const PrimExpr& e, const IntrinsicCallNode& call) {
    const size_t mark = done_order_.size();
    const Slot outer = mask_, condition = slot_of(call.args[0]);
    const auto if_true = std::make_shared<Slot>();
    mask_ = narrowed(outer, condition, false);
    later([=, this, &call] {
      mask_ = outer;
      const Slot if_false = slot_of(call.args[2]), result = new_slot(e->dtype.lanes());
      choose(result, condition, *if_true, if_false);
      forget(mark);
      finish(e, result);
    });
    visit_later(call.args[2]);
    later([=, this, &call] {
      *if_true = slot_of(call.args[1]);
      forget(mark);
      mask_ = narrowed(outer, condition, true);
    });
    visit_later(call.args[1]);
  }

  Slot narrowed(Slot outer, Slot condition, bool negated) {
    HEADRACE_CHECK(outer.at < 0 || outer.lanes == condition.lanes, "conditions of {} and {} lanes", outer.lanes,
                   condition.lanes);
    const Slot result = new_slot(condition.lanes);
    Step& step = add(StepKind::mask_and);
    step.dst = result.at;
    step.lanes = result.lanes;
    step.a = outer.at;
    step.b = condition.at;
    step.flag = negated;
    return result;
  }

  void copy(Slot dst, Slot src) {
    Step& step = add(StepKind::copy);
    step.dst = dst.at;
    step.a = src.at;
    step.lanes = dst.lanes;
  }

  void choose(Slot dst, Slot condition, Slot a, Slot b) {
    Step& step = add(StepKind::select);
    step.dst = dst.at;
    step.lanes = dst.lanes;
    step.c = condition.at;
    step.a_lanes = condition.lanes;
    step.a = a.at;
    step.b = b.at;
  }

  // The operands are done.
  void emit(const PrimExpr& e) {
    if (done_.contains(e.get())) return;
    const Slot dst = new_slot(e->dtype.lanes());
    finish(e, dst);
    if (const auto* node = e.as<SelectNode>())
      return choose(dst, slot_of(node->condition), slot_of(node->true_value), slot_of(node->false_value));
    Step step{.kind = StepKind::copy};
    step.dst = dst.at;
    step.lanes = dst.lanes;
    step.to = e->dtype;
    step.statement = static_cast<int>(program_.statements.size()) - 1;
    const std::vector<PrimExpr> operands = operands_of(e);
    const auto slot = [&](size_t i) {
      return i < operands.size() && done_or_var(operands[i]) ? slot_of(operands[i]).at : -1;
    };
    step.a = slot(0);
    step.b = slot(1);
    step.c = slot(2);
    if (!operands.empty()) {
      step.dtype = operands[0]->dtype;
      step.a_lanes = operands[0]->dtype.lanes();
    }
    fill(step, e);
    program_.steps.push_back(std::move(step));
  }

  bool done_or_var(const PrimExpr& e) const { return e.is<PrimVarNode>() || done_.contains(e.get()); }

  void fill(Step& step, const PrimExpr& e) {
    if (const auto* node = e.as<BinaryNode>()) {
      step.kind = StepKind::binary;
      step.op = node->op;
    } else if (e.is<NotNode>()) {
      step.kind = StepKind::negation;
    } else if (e.is<CastNode>()) {
      step.kind = StepKind::cast;
    } else if (e.is<RampNode>()) {
      step.kind = StepKind::ramp;
    } else if (e.is<BroadcastNode>()) {
      step.kind = StepKind::broadcast;
    } else if (const auto* load = e.as<BufferLoadNode>()) {
      step.kind = StepKind::load;
      access(step, load->buffer, load->indices);
    } else if (const auto* call = e.as<IntrinsicCallNode>()) {
      fill_call(step, *call);
    } else {
      throw InternalError(fmt::format("the interpreter does not know the expression {}", e->key()));
    }
  }

  void fill_call(Step& step, const IntrinsicCallNode& call) {
    step.which = call.intrinsic;
    switch (call.intrinsic) {
      case Intrinsic::reinterpret:
        step.kind = StepKind::reinterpret;
        return;
      case Intrinsic::reduce_add:
        step.kind = StepKind::reduce_add;
        return;
      case Intrinsic::vector_load: {
        const auto* place = call.args[0].as<BufferLoadNode>();
        step.kind = StepKind::vector_load;
        access(step, place->buffer, place->indices);
        return;
      }
      default:
        step.kind = StepKind::intrinsic;
    }
  }

  void access(Step& step, const Buffer& buffer, const Array<PrimExpr>& indices) {
    step.buffer = buffers_.at(buffer.get());
    step.dtype = buffer->dtype;
    for (const PrimExpr& index : indices) step.indices.emplace_back(slot_of(index).at, index->dtype.lanes());
    step.mask = mask_.at;
    step.mask_lanes = mask_.lanes;
  }

  // --- statements; depth is that of one kernel's nest

  void statement(const Stmt& s) {
    if (const auto* seq = s.as<SeqNode>()) {
      for (const Stmt& item : seq->items) statement(item);
      return;
    }
    program_.statements.push_back(s);
    forget(0);
    if (const auto* store = s.as<BufferStoreNode>()) {
      store_statement(*store);
    } else if (const auto* loop = s.as<ForNode>()) {
      for_statement(*loop);
    } else if (const auto* branch = s.as<IfThenElseNode>()) {
      if_statement(*branch);
    } else if (const auto* let = s.as<LetStmtNode>()) {
      vars_[let->var.get()] = kept(value(let->value));
      statement(let->body);
      vars_.erase(let->var.get());
    } else if (const auto* allocation = s.as<AllocateNode>()) {
      add_buffer(allocation->buffer, ProgramBuffer::Role::local);
      add(StepKind::allocate).buffer = buffers_.at(allocation->buffer.get());
      statement(allocation->body);
    } else if (const auto* evaluate = s.as<EvaluateNode>()) {
      value(evaluate->value);
    } else if (const auto* check = s.as<AssertNode>()) {
      const Slot condition = value(check->condition);
      Step& step = add(StepKind::check);
      step.a = condition.at;
      step.message = check->message;
    }
    forget(0);
  }

  // A variable keeps its value when the slot's expression is computed anew.
  Slot kept(Slot slot) {
    const Slot result = new_slot(slot.lanes);
    copy(result, slot);
    return result;
  }

  void store_statement(const BufferStoreNode& store) {
    const Slot stored = value(store.value);
    for (const PrimExpr& index : store.indices) value(index);
    Step step{.kind = StepKind::store};
    step.statement = static_cast<int>(program_.statements.size()) - 1;
    step.a = stored.at;
    step.lanes = stored.lanes;
    access(step, store.buffer, store.indices);
    if (program_.buffers[static_cast<size_t>(step.buffer)].role == ProgramBuffer::Role::input)
      throw_user_error("the function stores to its input '{}'; store to a result or to a buffer of its own instead",
                       store.buffer->name);
    program_.steps.push_back(std::move(step));
  }

  void for_statement(const ForNode& loop) {
    const Slot begin = kept(value(loop.begin)), extent = kept(value(loop.extent));
    const Slot count = new_slot(1), zero = constant(0), one = constant(1), is_less = new_slot(1), var = new_slot(1);
    copy(count, zero);
    const size_t top = here();
    arithmetic(BinaryOp::lt, is_less, count, extent, kIndexType);
    const size_t exit = here();
    add(StepKind::jump_unless).a = is_less.at;
    Step& step = add(StepKind::loop_value);
    step.dst = var.at;
    step.a = begin.at;
    step.b = count.at;
    step.c = extent.at;
    step.dtype = loop.var->dtype;
    step.flag = loop.kind == ForKind::parallel;
    vars_[loop.var.get()] = var;
    statement(loop.body);
    vars_.erase(loop.var.get());
    arithmetic(BinaryOp::add, count, count, one, kIndexType);
    add(StepKind::jump).target = top;
    program_.steps[exit].target = here();
  }

  void arithmetic(BinaryOp op, Slot dst, Slot a, Slot b, DataType dtype) {
    Step& step = add(StepKind::binary);
    step.op = op;
    step.dst = dst.at;
    step.a = a.at;
    step.b = b.at;
    step.dtype = dtype;
  }

  void if_statement(const IfThenElseNode& branch) {
    const Slot condition = value(branch.condition);
    const size_t to_else = here();
    add(StepKind::jump_unless).a = condition.at;
    statement(branch.then_case);
    const size_t to_end = here();
    if (branch.else_case) add(StepKind::jump);
    program_.steps[to_else].target = here();
    if (!branch.else_case) return;
    statement(branch.else_case);
    program_.steps[to_end].target = here();
  }

  Program program_;
  std::unordered_map<const PrimVarNode*, Slot> vars_;
  std::unordered_map<const BufferNode*, int> buffers_;
  std::unordered_map<const PrimExprNode*, Slot> done_;
  std::vector<const PrimExprNode*> done_order_;
  std::vector<Task> tasks_;
  Slot mask_;  // at -1: all lanes
};

}  // namespace

Program compile_program(const PrimFunc& function) { return Compiler().run(function); }

}  // namespace headrace::interp
