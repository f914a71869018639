// Statements of tir in C.
#include <algorithm>

#include "base/stack.h"
#include "codegen/c_kernel.h"
#include "tir/post_order.h"

namespace headrace::codegen {

namespace {

// A shared part of more nodes than this is computed once; a part of this height has a variable of its own.
constexpr int64_t kMostRepeated = 8;
constexpr int kMostHeight = 40;

bool is_leaf_of_c(const PrimExpr& e) { return e.is<IntImmNode>() || e.is<FloatImmNode>() || e.is<PrimVarNode>(); }

struct PartOfC {
  int64_t uses = 0;
  int64_t size = 1;  // nodes; a part with a variable of its own counts as one
  int height = 0;
};

bool opens_scope(const tir::Stmt& s) { return s.is<tir::LetStmtNode>() || s.is<tir::AllocateNode>(); }

// Returns the comment of a loop that is not serial.
std::string_view remark_of(tir::ForKind kind) {
  if (kind == tir::ForKind::vectorized) return "  /* vectorized */";
  return kind == tir::ForKind::unrolled ? "  /* unrolled */" : "";
}

}  // namespace

void CKernel::line(std::string_view text) {
  out_.append(indent_, ' ');
  out_ += text;
  out_ += '\n';
}

void CKernel::block(std::string_view head, const std::function<void()>& body) {
  line(head.empty() ? "{" : head);
  const auto memo = memo_;
  const size_t names = frame_->names.count();
  indent_ += 2;
  body();
  indent_ -= 2;
  frame_->names.release_to(names);
  memo_ = memo;
  line("}");
}

std::string CKernel::captured(const std::function<void()>& body) {
  std::string outer = std::move(out_);
  out_.clear();
  body();
  std::swap(outer, out_);
  return outer;
}

void CKernel::each_lane(int lanes, const std::function<void(const PrimExpr& lane)>& body) {
  const PrimVar lane = make_prim_var("lane");
  kept_.push_back(lane);
  known_[lane.get()] = {0, lanes - 1};
  const size_t names = frame_->names.count();
  bind(lane.get(), "lane", "int64_t");
  const std::string name = use(lane.get(), "lane");
  block(fmt::format("for (int64_t {} = 0; {} < {}; ++{}) {{", name, name, lanes, name), [&] { body(lane); });
  frame_->names.release_to(names);
}

void CKernel::declared(const Object* key, const std::function<void()>& rest) {
  const size_t here = out_.size();
  rest();
  const auto variable = frame_->variables.find(key);
  if (variable == frame_->variables.end() || variable->second.is_used) return;
  out_.insert(here, fmt::format("{}(void){};\n", std::string(indent_, ' '), variable->second.name));
}

void CKernel::name_parts(const std::vector<PrimExpr>& roots) {
  std::unordered_map<const PrimExprNode*, PartOfC> parts;
  for (const PrimExpr& root : roots) ++parts[root.get()].uses;
  const std::vector<PrimExpr> order = tir::post_order(roots);
  for (const PrimExpr& e : order) {
    for (const PrimExpr& operand : tir::operands_of(e)) ++parts[operand.get()].uses;
  }
  for (const PrimExpr& e : order) {
    PartOfC& part = parts[e.get()];
    for (const PrimExpr& operand : tir::operands_of(e)) {
      const PartOfC& inner = parts[operand.get()];
      const bool is_named = named_.contains(operand.get());
      part.size = std::min(part.size + (is_named ? 1 : inner.size), int64_t{1} << 40);
      part.height = std::max(part.height, is_named ? 1 : inner.height + 1);
    }
    const bool is_worth = (part.uses > 1 && part.size > kMostRepeated) || part.height >= kMostHeight;
    if (is_worth && !is_leaf_of_c(e) && e->dtype.lanes() == 1 && !e->dtype.is_void()) named_.insert(e.get());
  }
}

void CKernel::open_statement(const std::vector<PrimExpr>& roots) {
  memo_.clear();
  named_.clear();
  name_parts(roots);
}

void CKernel::write_block(const tir::Stmt& stmt) {
  if (is_stack_low()) throw_user_error("the statements of the kernel '{}' nest too deeply to be written as C", symbol_);
  if (const auto* let = stmt.as<tir::LetStmtNode>()) {
    open_statement({let->value});
    write_let(let->var, let->value);
    return declared(let->var.get(), [&] { write_block(let->body); });
  }
  if (const auto* allocation = stmt.as<tir::AllocateNode>()) {
    write_allocate(*allocation);
    return declared(allocation->buffer.get(), [&] { write_block(allocation->body); });
  }
  const auto* seq = stmt.as<tir::SeqNode>();
  if (seq == nullptr) return write_statement(stmt);
  for (size_t i = 0; i < seq->items.size(); ++i) {
    const tir::Stmt item = seq->items[i];
    if (!opens_scope(item)) {
      write_statement(item);
    } else if (i + 1 == seq->items.size()) {
      write_block(item);
    } else {
      block("", [&] { write_block(item); });
    }
  }
}

void CKernel::write_statement(const tir::Stmt& stmt) {
  if (const auto* store = stmt.as<tir::BufferStoreNode>()) {
    write_store(*store);
  } else if (const auto* loop = stmt.as<tir::ForNode>()) {
    write_for(*loop);
  } else if (const auto* branch = stmt.as<tir::IfThenElseNode>()) {
    write_if(*branch);
  } else if (stmt.is<tir::SeqNode>() || opens_scope(stmt)) {
    block("", [&] { write_block(stmt); });
  } else {
    write_simple(stmt);
  }
}

void CKernel::write_simple(const tir::Stmt& stmt) {
  open_statement(tir::expressions_of(stmt));
  if (const auto* evaluate = stmt.as<tir::EvaluateNode>()) {
    // Writes intrinsics with effects only; no other evaluated expression has an effect.
    const auto* call = evaluate->value.as<IntrinsicCallNode>();
    if (call != nullptr && call->intrinsic == Intrinsic::prefetch) line(emit(evaluate->value).text + ";");
  } else if (const auto* check = stmt.as<tir::AssertNode>()) {
    const std::string condition = at_least(emit(check->condition), CLevel::primary);
    frame_->uses_env = true;
    line(fmt::format("if (!{}) return {}(env, {});", condition, helpers_.use_fail(), c_string(check->message)));
  } else {
    throw InternalError(fmt::format("C cannot be made of a statement {}", stmt->key()));
  }
}

void CKernel::bind_loop(const tir::ForNode& loop) {
  const arith::Bounds begin = arith::bounds_of(loop.begin, known_), extent = arith::bounds_of(loop.extent, known_);
  int64_t last = 0;
  const bool is_known = begin.greatest != INT64_MAX && extent.greatest != INT64_MAX &&
                        !__builtin_add_overflow(begin.greatest, extent.greatest - 1, &last);
  known_[loop.var.get()] = {begin.least, is_known ? last : INT64_MAX};
  bind(loop.var.get(), loop.var->name_hint, c_type(loop.var->dtype));
}

void CKernel::write_for(const tir::ForNode& loop) {
  const auto begin = as_int(loop.begin), extent = as_int(loop.extent);
  if (extent && *extent <= 0) return;
  open_statement({loop.begin, loop.extent});
  if (loop.kind == tir::ForKind::parallel) return write_parallel(loop);
  const DataType dtype = loop.var->dtype;
  const bool is_usual = dtype == kIndexType || dtype == DataType::int_(32);
  const int64_t most = dtype == kIndexType ? INT64_MAX : INT32_MAX;
  int64_t end = 0;
  if (is_usual && begin && extent && !__builtin_add_overflow(*begin, *extent, &end) && end <= most)
    return write_range(loop, c_integer(*begin, dtype), c_integer(end, dtype));
  if (is_usual && begin == 0) {
    const CCode count = emit(loop.extent);
    return write_range(loop, "0", loop.extent.is<PrimVarNode>() ? count.text : named(count, dtype, "count").text);
  }
  write_steps(loop);
}

void CKernel::write_range(const tir::ForNode& loop, std::string_view begin, std::string_view end) {
  const size_t names = frame_->names.count();
  bind_loop(loop);
  const std::string name = use(loop.var.get(), loop.var->name_hint);
  block(fmt::format("for ({} {} = {}; {} < {}; ++{}) {{{}", c_type(loop.var->dtype), name, begin, name, end, name,
                    remark_of(loop.kind)),
        [&] { write_block(loop.body); });
  frame_->names.release_to(names);
}

// Writes a loop for a variable of any type, even when the loop's end does not fit that type.
void CKernel::write_steps(const tir::ForNode& loop) {
  const std::string begin = named(emit(loop.begin), loop.begin->dtype, "first").text;
  const std::string count = named(cast(emit(loop.extent), loop.extent->dtype, kIndexType), kIndexType, "count").text;
  const size_t names = frame_->names.count();
  const std::string step = frame_->names.add("step"), type = c_type(loop.var->dtype);
  block(fmt::format("for (int64_t {} = 0; {} < {}; ++{}) {{{}", step, step, count, step, remark_of(loop.kind)), [&] {
    bind_loop(loop);
    const std::string& name = frame_->variables.at(loop.var.get()).name;
    line(fmt::format("const {} {} = ({})((uint64_t){} + (uint64_t){});", type, name, type, begin, step));
    declared(loop.var.get(), [&] { write_block(loop.body); });
  });
  frame_->names.release_to(names);
}

void CKernel::write_if(const tir::IfThenElseNode& branch) {
  open_statement({branch.condition});
  block(fmt::format("if ({}) {{", emit(branch.condition).text), [&] { write_block(branch.then_case); });
  if (!branch.else_case) return;
  out_.resize(out_.size() - indent_ - 2);  // the brace that ends the branch
  block("} else {", [&] { write_block(branch.else_case); });
}

void CKernel::write_let(const PrimVar& var, const PrimExpr& value) {
  if (var->dtype.lanes() > 1) return write_vector_let(var, value);
  const CCode code = emit(value);
  known_[var.get()] = arith::bounds_of(value, known_);
  bind(var.get(), var->name_hint, c_type(var->dtype));
  line(fmt::format("const {} {} = {};", c_type(var->dtype), frame_->variables.at(var.get()).name, code.text));
}

void CKernel::write_vector_let(const PrimVar& var, const PrimExpr& value) {
  const int lanes = var->dtype.lanes();
  const DataType dtype = var->dtype.element();
  const Buffer memory = make_buffer(var->name_hint, dtype, {make_int(lanes)});
  bind(memory.get(), var->name_hint, c_memory_type(dtype) + "*");
  line(fmt::format("{} {}[{}];", c_memory_type(dtype), use(memory.get(), var->name_hint), lanes));
  each_lane(lanes, [&](const PrimExpr& lane) {
    const PrimExpr number = in_lane(value, lane);
    kept_.push_back(number);
    name_parts({number});
    const std::string text = to_memory(emit(number), dtype);
    line(fmt::format("{} = {};", element_of(memory, {lane}), text));
  });
  vectors_[var.get()] = memory;
}

// Registers become an array; the workspace is the calling worker's.
void CKernel::write_allocate(const tir::AllocateNode& allocation) {
  const BufferNode& buffer = *allocation.buffer;
  const std::string type = c_memory_type(buffer.dtype);
  bind(&buffer, buffer.name, type + "*");
  const std::string& name = frame_->variables.at(&buffer).name;
  if (allocation.scope == tir::Scope::registers) {
    const uint64_t count = tir::size_bytes_of(buffer) / buffer.dtype.bytes();
    line(fmt::format("{} {}[{}];", type, name, std::max<uint64_t>(count, 1)));
  } else {
    frame_->uses_env = true;
    line(fmt::format("{} = ({}*)((char*)env->workspace + {});", declaration(frame_->variables.at(&buffer)), type,
                     workspace_.offset_bytes.at(&buffer)));
  }
}

}  // namespace headrace::codegen
