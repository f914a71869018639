#include "tir/stmt.h"

#include "object/string.h"
#include "tir/compute_form.h"

namespace headrace::tir {

void StmtNode::fields(FieldList<StmtNode>& f) { f.field<&StmtNode::span>("span", {.ignore = true, .optional = true}); }

void BufferStoreNode::fields(FieldList<BufferStoreNode>& f) {
  f.field<&BufferStoreNode::buffer>("buffer").field<&BufferStoreNode::value>("value").field<&BufferStoreNode::indices>(
      "indices");
}

void ForNode::fields(FieldList<ForNode>& f) {
  f.field<&ForNode::begin>("begin")
      .field<&ForNode::extent>("extent")
      .field<&ForNode::var>("var", {.def_once = true})
      .field<&ForNode::kind>("kind")
      .field<&ForNode::body>("body");
}

void IfThenElseNode::fields(FieldList<IfThenElseNode>& f) {
  f.field<&IfThenElseNode::condition>("condition")
      .field<&IfThenElseNode::then_case>("then_case")
      .field<&IfThenElseNode::else_case>("else_case", {.optional = true});
}

void LetStmtNode::fields(FieldList<LetStmtNode>& f) {
  f.field<&LetStmtNode::value>("value")
      .field<&LetStmtNode::var>("var", {.def_once = true})
      .field<&LetStmtNode::body>("body");
}

void SeqNode::fields(FieldList<SeqNode>& f) { f.field<&SeqNode::items>("seq"); }

void AllocateNode::fields(FieldList<AllocateNode>& f) {
  f.field<&AllocateNode::buffer>("buffer", {.def_once = true})
      .field<&AllocateNode::scope>("scope")
      .field<&AllocateNode::body>("body");
}

void EvaluateNode::fields(FieldList<EvaluateNode>& f) { f.field<&EvaluateNode::value>("value"); }

void AssertNode::fields(FieldList<AssertNode>& f) {
  f.field<&AssertNode::condition>("condition").field<&AssertNode::message>("message");
}

void PrimFuncNode::fields(FieldList<PrimFuncNode>& f) {
  f.field<&PrimFuncNode::params>("params", {.def_recursive = true})
      .field<&PrimFuncNode::num_outputs>("num_outputs")
      .field<&PrimFuncNode::body>("body");
}

std::string_view name_of(ForKind kind) {
  static constexpr std::string_view kNames[] = {"serial", "parallel", "vectorized", "unrolled"};
  return kNames[static_cast<size_t>(kind)];
}

Stmt make_store(Buffer buffer, PrimExpr value, Array<PrimExpr> indices) {
  HEADRACE_CHECK(buffer->shape.size() == indices.size(), "a store to '{}' has {} indices for {} dimensions",
                 buffer->name, indices.size(), buffer->shape.size());
  const int lanes = indices.empty() ? 1 : indices.back()->dtype.lanes();
  HEADRACE_CHECK(value->dtype == buffer->dtype.with_lanes(lanes), "a store of {} to '{}' of {}", value->dtype,
                 buffer->name, buffer->dtype);
  auto node = make_object<BufferStoreNode>();
  node->buffer = std::move(buffer);
  node->value = std::move(value);
  node->indices = std::move(indices);
  return node;
}

Stmt make_for(PrimVar var, PrimExpr begin, PrimExpr extent, ForKind kind, Stmt body) {
  HEADRACE_CHECK(var->dtype == extent->dtype && var->dtype == begin->dtype, "loop variable '{}' is {}, its extent {}",
                 var->name_hint, var->dtype, extent->dtype);
  auto node = make_object<ForNode>();
  node->var = std::move(var);
  node->begin = std::move(begin);
  node->extent = std::move(extent);
  node->kind = kind;
  node->body = std::move(body);
  return node;
}

Stmt make_if(PrimExpr condition, Stmt then_case, Stmt else_case) {
  HEADRACE_CHECK(condition->dtype == DataType::bool_(), "the condition of if is {}", condition->dtype);
  auto node = make_object<IfThenElseNode>();
  node->condition = std::move(condition);
  node->then_case = std::move(then_case);
  node->else_case = std::move(else_case);
  return node;
}

Stmt make_let(PrimVar var, PrimExpr value, Stmt body) {
  HEADRACE_CHECK(var->dtype == value->dtype, "let binds {} to a variable of {}", value->dtype, var->dtype);
  auto node = make_object<LetStmtNode>();
  node->var = std::move(var);
  node->value = std::move(value);
  node->body = std::move(body);
  return node;
}

Stmt make_seq(const std::vector<Stmt>& items) {
  auto node = make_object<SeqNode>();
  for (const Stmt& item : items) {
    if (const auto* inner = item.as<SeqNode>()) {
      for (const Stmt& s : inner->items) node->items.push_back(s);
    } else if (item) {
      node->items.push_back(item);
    }
  }
  return node->items.size() == 1 ? node->items[0] : Stmt(node);
}

Stmt make_allocate(Buffer buffer, Scope scope, Stmt body) {
  HEADRACE_CHECK(as_shape(buffer->shape).has_value(), "allocation '{}' has a symbolic shape", buffer->name);
  auto node = make_object<AllocateNode>();
  node->buffer = std::move(buffer);
  node->scope = scope;
  node->body = std::move(body);
  return node;
}

Stmt make_evaluate(PrimExpr value) {
  auto node = make_object<EvaluateNode>();
  node->value = std::move(value);
  return node;
}

Stmt make_assert(PrimExpr condition, std::string message) {
  auto node = make_object<AssertNode>();
  node->condition = std::move(condition);
  node->message = std::move(message);
  return node;
}

PrimFunc make_prim_func(std::string symbol, Array<Buffer> params, int64_t num_outputs, Stmt body) {
  auto node = make_object<PrimFuncNode>();
  node->params = std::move(params);
  node->num_outputs = num_outputs;
  node->body = std::move(body);
  node->attrs.set("global_symbol", Value(std::move(symbol)));
  return node;
}

std::string symbol_of(const PrimFuncNode& function) {
  const auto symbol = function.attrs.get("global_symbol");
  HEADRACE_CHECK(symbol.has_value() && is_string(symbol->raw()), "a PrimFunc has no global_symbol");
  return symbol->as<std::string>();
}

void register_types() {
  type_of<BufferStoreNode>();
  type_of<ForNode>();
  type_of<IfThenElseNode>();
  type_of<LetStmtNode>();
  type_of<SeqNode>();
  type_of<AllocateNode>();
  type_of<EvaluateNode>();
  type_of<AssertNode>();
  type_of<PrimFuncNode>();
  type_of<ComputeStageNode>();
  type_of<ComputeNode>();
}

}  // namespace headrace::tir
