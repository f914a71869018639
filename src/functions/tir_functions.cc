#include "functions/register_functions.h"

#include <unordered_set>

#include "interp/tir_interp.h"
#include "object/function.h"
#include "tir/compute_form.h"
#include "tir/parse.h"
#include "tir/plain_loops.h"
#include "tir/post_order.h"
#include "tir/print.h"
#include "tir/raise.h"
#include "tir/text_words.h"
#include "tir/unfolded.h"
#include "tir/verify.h"
#include "tir/verify_expr.h"

namespace headrace::functions {

namespace {

template <typename Enum>
Enum named(const std::string& name, Enum last, std::string_view what) {
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    if (name_of(static_cast<Enum>(i)) == name) return static_cast<Enum>(i);
  }
  throw_user_error("there is no {} '{}'", what, name);
}

void check(const PrimExpr& unfolded) {
  const std::vector<std::string> breaches = tir::breaches_of(unfolded);
  if (!breaches.empty()) throw_user_error("{}", breaches.front());
}

PrimExpr make_checked_binary(const std::string& name, const PrimExpr& a, const PrimExpr& b) {
  const auto op = named(name, BinaryOp::logical_or, "operator");
  if (a->dtype != b->dtype) {
    throw_user_error("{} of {} and {}: the dtypes {} and {} differ; cast one, as in x.astype(dtype)", name,
                     tir::summary(a), tir::summary(b), a->dtype, b->dtype);
  }
  check(tir::unfolded_binary(op, a, b));
  return make_binary(op, a, b);
}

PrimExpr make_checked_not(const PrimExpr& a) {
  check(tir::unfolded_not(a));
  return make_not(a);
}

PrimExpr make_checked_cast(DataType dtype, const PrimExpr& value) {
  check(tir::unfolded_cast(dtype, value));
  return make_cast(dtype, value);
}

PrimExpr make_checked_select(const PrimExpr& condition, const PrimExpr& a, const PrimExpr& b) {
  const PrimExpr made = tir::unfolded_select(condition, a, b);
  check(made);
  return made;
}

PrimExpr make_checked_call(const std::string& name, const Array<PrimExpr>& args, const std::optional<DataType>& given) {
  const auto intrinsic = named(name, greatest(Intrinsic{}), "function");
  const auto dtype = given ? given : tir::usual_dtype(intrinsic, args);
  if (!dtype) throw_user_error("the arguments of {} do not determine the dtype of its result; give the dtype", name);
  const PrimExpr call = make_intrinsic(intrinsic, *dtype, args);
  check(call);
  return call;
}

PrimExpr make_checked_load(const Buffer& buffer, const Array<PrimExpr>& indices) {
  const std::vector<std::string> breaches = tir::breaches_of_access(buffer, indices, {});
  if (!breaches.empty()) throw_user_error("{}", breaches.front());
  return make_load(buffer, indices);
}

// Returns the buffers in the order in which they are first read.
Array<Buffer> buffers_read_by(const PrimExpr& e) {
  Array<Buffer> buffers;
  std::unordered_set<const BufferNode*> seen;
  for (const PrimExpr& part : tir::post_order({e})) {
    const auto* load = part.as<BufferLoadNode>();
    if (load != nullptr && load->buffer && seen.insert(load->buffer.get()).second) buffers.push_back(load->buffer);
  }
  return buffers;
}

tir::Combiner combiner_of(int64_t number) {
  if (number < 1 || number > static_cast<int64_t>(tir::Combiner::min))
    throw_user_error("there is no combiner {}", number);
  return static_cast<tir::Combiner>(number);
}

void register_expressions() {
  register_global("tir.MakeBinary", make_packed(&make_checked_binary));
  register_global("tir.MakeNot", make_packed(&make_checked_not));
  register_global("tir.MakeCast", make_packed(&make_checked_cast));
  register_global("tir.MakeSelect", make_packed(&make_checked_select));
  register_global("tir.MakeCall", make_packed(&make_checked_call));
  register_global("tir.MakeLoad", make_packed(&make_checked_load));
  register_global("tir.BuffersReadBy", make_packed(&buffers_read_by));
}

void register_compute_forms() {
  register_global("tir.IdentityOf", make_packed([](int64_t combiner, DataType dtype) {
                    return tir::identity_of(combiner_of(combiner), dtype);
                  }));
  register_global("tir.VerifyCompute", make_packed([](const tir::ComputeForm& form) { tir::to_compute(form); }));
  register_global("tir.PlainLoops", make_packed([](const tir::ComputeForm& form, const std::string& symbol) {
                    return tir::plain_loops(tir::to_compute(form), symbol);
                  }));
  register_global("tir.Raise", make_packed([](const tir::PrimFunc& function) {
                    return tir::from_compute(tir::raise(function).value_or_throw());
                  }));
}

void register_programs() {
  register_global("tir.ParseFunction", make_packed([](const std::string& source, const std::string& text) {
                    const tir::PrimFunc function = tir::parse_function(text, source);
                    tir::verify(function);
                    return function;
                  }));
  register_global("tir.ParseModule", make_packed([](const std::string& source, const std::string& text) {
                    const IRModule module = tir::parse_module(text, source);
                    tir::verify(module);
                    return module;
                  }));
  register_global("tir.Interpret", make_packed([](const tir::PrimFunc& function, const Array<NDArray>& inputs) {
                    return Array<NDArray>(interp::run_prim_func(function, inputs.to_vector()));
                  }));
}

}  // namespace

void register_tir_functions() {
  register_expressions();
  register_compute_forms();
  register_programs();
}

}  // namespace headrace::functions
