// Intrinsics of tir in C.
#include "codegen/c_kernel.h"
#include "codegen/c_library.h"
#include "ir/intrinsics.h"
#include "tir_passes/lower_math.h"

namespace headrace::codegen {

namespace {

CCode parts_of_call(const std::string& name, const std::vector<CCode>& args) {
  std::vector<std::string_view> texts;
  for (const CCode& arg : args) texts.push_back(arg.text);
  return {fmt::format("{}({})", name, fmt::join(texts, ", "))};
}

// The integer type without a sign in which a number is shifted and inverted: nothing is promoted to int there.
std::string wide_of(DataType dtype) { return dtype.bits() == 64 ? "uint64_t" : "uint32_t"; }

}  // namespace

// One row for each intrinsic: a function of C's library (with an f behind it for float), or a method of its own, or a
// method that calls the function for floats. Results of functions are rounded to the dtype of the call.
struct CKernel::IntrinsicTable {
  struct Row {
    Intrinsic intrinsic;
    const char* function = nullptr;  // a function of C's library
    CCode (CKernel::*own)(const IntrinsicCallNode&, const Args&) = nullptr;
    bool takes_values = true;  // false: the method emits the operands itself
  };
  static const Row kRows[kIntrinsicCount];
  static const Row& row_of(Intrinsic intrinsic) { return kRows[static_cast<size_t>(intrinsic)]; }
  static std::vector<std::string_view> functions();
};

constexpr CKernel::IntrinsicTable::Row CKernel::IntrinsicTable::kRows[] = {
    {Intrinsic::exp, "exp"},
    {Intrinsic::log, "log"},
    {Intrinsic::log2, "log2"},
    {Intrinsic::log10, "log10"},
    {Intrinsic::log1p, "log1p"},
    {Intrinsic::sqrt, "sqrt"},
    {Intrinsic::rsqrt, nullptr, &CKernel::emit_rsqrt},
    {Intrinsic::sin, "sin"},
    {Intrinsic::cos, "cos"},
    {Intrinsic::tan, "tan"},
    {Intrinsic::asin, "asin"},
    {Intrinsic::acos, "acos"},
    {Intrinsic::atan, "atan"},
    {Intrinsic::sinh, "sinh"},
    {Intrinsic::cosh, "cosh"},
    {Intrinsic::tanh, "tanh"},
    {Intrinsic::asinh, "asinh"},
    {Intrinsic::acosh, "acosh"},
    {Intrinsic::atanh, "atanh"},
    {Intrinsic::erf, "erf"},
    {Intrinsic::floor, "floor"},
    {Intrinsic::ceil, "ceil"},
    {Intrinsic::round, "round"},
    {Intrinsic::trunc, "trunc"},
    {Intrinsic::abs, "fabs", &CKernel::emit_abs},
    {Intrinsic::pow, "pow", &CKernel::emit_power},
    {Intrinsic::fma, "fma"},
    {Intrinsic::isnan, nullptr, &CKernel::emit_test},
    {Intrinsic::isinf, nullptr, &CKernel::emit_test},
    {Intrinsic::if_then_else, nullptr, &CKernel::emit_if_then_else, false},
    {Intrinsic::bitwise_and, nullptr, &CKernel::emit_bitwise},
    {Intrinsic::bitwise_or, nullptr, &CKernel::emit_bitwise},
    {Intrinsic::bitwise_xor, nullptr, &CKernel::emit_bitwise},
    {Intrinsic::bitwise_not, nullptr, &CKernel::emit_bitwise},
    {Intrinsic::shift_left, nullptr, &CKernel::emit_shift},
    {Intrinsic::shift_right, nullptr, &CKernel::emit_shift},
    {Intrinsic::reinterpret, nullptr, &CKernel::emit_reinterpret},
    {Intrinsic::vector_load, nullptr, &CKernel::emit_vector_load, false},
    {Intrinsic::reduce_add, nullptr, &CKernel::emit_reduce_add, false},
    {Intrinsic::prefetch, nullptr, &CKernel::emit_prefetch, false},
    {Intrinsic::hypot, "hypot"},
    {Intrinsic::nearbyint, "rint"},
};

std::vector<std::string_view> CKernel::IntrinsicTable::functions() {
  std::vector<std::string_view> functions;
  for (const Row& row : kRows) {
    if (row.function != nullptr) functions.emplace_back(row.function);
  }
  return functions;
}

const std::vector<std::string_view>& functions_of_intrinsics() {
  static const std::vector<std::string_view> functions = CKernel::IntrinsicTable::functions();
  return functions;
}

CCode CKernel::emit_intrinsic(const IntrinsicCallNode& e) {
  static_assert(lists_every_intrinsic(IntrinsicTable::kRows));
  const IntrinsicTable::Row& row = IntrinsicTable::row_of(e.intrinsic);
  if (row.own != nullptr && !row.takes_values) return (this->*row.own)(e, {});
  Args args;
  for (const PrimExpr& arg : e.args) args.push_back(emit(arg));
  return row.own != nullptr ? (this->*row.own)(e, args) : emit_function(e, args);
}

// Calls the row's function of C's library.
CCode CKernel::emit_function(const IntrinsicCallNode& e, const Args& args) {
  const DataType dtype = e.args[0]->dtype;
  HEADRACE_CHECK(dtype.is_float(), "{} of {}", name_of(e.intrinsic), dtype);
  return rounded(parts_of_call(function_of(e.intrinsic, dtype), args), e.dtype);
}

CCode CKernel::emit_vector_load(const IntrinsicCallNode& e, const Args&) {
  return from_memory(element_of(e.args[0], e.args[1]), e.dtype);
}

CCode CKernel::emit_prefetch(const IntrinsicCallNode& e, const Args&) {
  return {fmt::format("{}(&{})", helpers_.use_prefetch(), element_of(e.args[0], e.args[1]))};
}

CCode CKernel::emit_reinterpret(const IntrinsicCallNode& e, const Args& args) {
  return reinterpreted(args[0], e.args[0]->dtype, e.dtype);
}

CCode CKernel::emit_bitwise(const IntrinsicCallNode& e, const Args& args) {
  const DataType dtype = e.args[0]->dtype;
  if (e.intrinsic == Intrinsic::bitwise_not) {
    if (dtype.is_bool()) return {"!" + at_least(args[0], CLevel::primary), CLevel::unary};
    return {fmt::format("({})~({}){}", c_type(dtype), wide_of(dtype), at_least(args[0], CLevel::unary)), CLevel::unary};
  }
  const char sign = e.intrinsic == Intrinsic::bitwise_and ? '&' : e.intrinsic == Intrinsic::bitwise_or ? '|' : '^';
  const CCode result{fmt::format("{} {} {}", at_least(args[0], CLevel::unary), sign, at_least(args[1], CLevel::unary)),
                     CLevel::bitwise, args[0].has_width || args[1].has_width};
  // An operation of two bools is an int in C.
  return dtype.is_bool() ? CCode{fmt::format("({}) != 0", result.text), CLevel::equality} : result;
}

// Handles a shift by the width or more: the result is that of shifting step by step.
CCode CKernel::emit_shift(const IntrinsicCallNode& e, const Args& args) {
  const DataType dtype = e.args[0]->dtype;
  const bool is_left = e.intrinsic == Intrinsic::shift_left;
  if (dtype.is_bool())
    return {fmt::format("{} && !{}", at_least(args[0], CLevel::bitwise), at_least(args[1], CLevel::primary)),
            CLevel::logical_and};
  const auto by = as_int(e.args[1]);
  if (!by || *by < 0 || *by >= dtype.bits()) return parts_of_call(helpers_.use(name_of(e.intrinsic), dtype), args);
  if (!is_left) {
    return {fmt::format("{} >> {}", at_least(args[0], CLevel::unary), *by), CLevel::shift, args[0].has_width};
  }
  if (dtype.bits() < 32)
    return {fmt::format("({})((uint32_t){} << {})", c_type(dtype), at_least(args[0], CLevel::unary), *by),
            CLevel::unary};
  const CCode bits = as_unsigned(args[0], dtype);
  return from_unsigned({fmt::format("{} << {}", at_least(bits, CLevel::unary), *by), CLevel::shift}, dtype);
}

// Evaluates one side only: as `c ? a : b` where both are C expressions, else as an if.
CCode CKernel::emit_if_then_else(const IntrinsicCallNode& e, const Args&) {
  const CCode condition = emit(e.args[0]);
  const size_t before = frame_->names.count();
  const std::string name = frame_->names.add("t");
  CCode values[2];
  std::string texts[2];
  const auto memo = memo_;
  for (size_t side = 0; side < 2; ++side) {
    const size_t names = frame_->names.count();
    indent_ += 2;
    texts[side] = captured([&] {
      values[side] = emit(e.args[side + 1]);
      if (!out_.empty()) line(fmt::format("{} = {};", name, values[side].text));
    });
    indent_ -= 2;
    // Values computed under a condition are not available outside of it.
    memo_ = memo;
    frame_->names.release_to(names);
  }
  if (texts[0].empty() && texts[1].empty()) {
    frame_->names.release_to(before);
    return {fmt::format("{} ? {} : {}", at_least(condition, CLevel::logical_or),
                        at_least(values[0], CLevel::logical_or), at_least(values[1], CLevel::logical_or)),
            CLevel::ternary, values[0].has_width || values[1].has_width};
  }
  line(fmt::format("{} {};", c_type(e.dtype), name));
  line(fmt::format("if ({}) {{", condition.text));
  for (size_t side = 0; side < 2; ++side) {
    indent_ += 2;
    if (texts[side].empty()) texts[side] = captured([&] { line(fmt::format("{} = {};", name, values[side].text)); });
    indent_ -= 2;
    out_ += texts[side];
    line(side == 0 ? "} else {" : "}");
  }
  return {name};
}

// Sums the lanes, the lowest first.
CCode CKernel::emit_reduce_add(const IntrinsicCallNode& e, const Args&) {
  const int lanes = e.args[0]->dtype.lanes();
  if (lanes == 1) return emit(e.args[0]);
  const PrimVar sum = make_prim_var("sum", e.dtype);
  kept_.push_back(sum);
  const PrimExpr first = in_lane(e.args[0], make_int(0));
  kept_.push_back(first);
  name_parts({first});
  const std::string start = emit(first).text;
  bind(sum.get(), "sum", c_type(e.dtype));
  known_[sum.get()] = {};
  const std::string name = use(sum.get(), "sum");
  line(fmt::format("{} {} = {};", c_type(e.dtype), name, start));
  each_lane(lanes - 1, [&](const PrimExpr& lane) {
    const PrimExpr next = sum + in_lane(e.args[0], make_binary(BinaryOp::add, lane, make_int(1)));
    kept_.push_back(next);
    name_parts({next});
    line(fmt::format("{} = {};", name, emit(next).text));
  });
  return {name};
}

CCode CKernel::emit_abs(const IntrinsicCallNode& e, const Args& args) {
  const DataType dtype = e.args[0]->dtype;
  if (dtype.is_uint() || dtype.is_bool()) return args[0];
  return dtype.is_int() ? parts_of_call(helpers_.use("abs", dtype), args) : emit_function(e, args);
}

CCode CKernel::emit_rsqrt(const IntrinsicCallNode& e, const Args& args) {
  const DataType dtype = e.args[0]->dtype;
  const std::string text =
      fmt::format("{} / sqrt{}({})", dtype.bits() == 64 ? "1.0" : "1.0f", c_suffix(dtype), args[0].text);
  return rounded({text, CLevel::product}, e.dtype);
}

CCode CKernel::emit_test(const IntrinsicCallNode& e, const Args& args) {
  return {fmt::format("{}({}) != 0", name_of(e.intrinsic), args[0].text), CLevel::equality};
}

CCode CKernel::emit_power(const IntrinsicCallNode& e, const Args& args) {
  const DataType dtype = e.args[0]->dtype;
  if (dtype.is_bool())
    return {fmt::format("{} || !{}", at_least(args[0], CLevel::bitwise), at_least(args[1], CLevel::primary)),
            CLevel::logical_or};
  return dtype.is_float() ? emit_function(e, args) : parts_of_call(helpers_.use("power", dtype), args);
}

// Functions that LowerMath computes without a library become functions of the text, with the arithmetic that native
// code has inline.
std::string CKernel::function_of(Intrinsic intrinsic, DataType dtype) {
  const std::string library = IntrinsicTable::row_of(intrinsic).function + c_suffix(dtype);
  if (dtype != DataType::float_(32) || row_of(intrinsic).arity != 1) return library;
  const PrimVar x = make_prim_var("x", dtype);
  const Buffer y = make_buffer("y", dtype, {});
  const PrimExpr whole = make_intrinsic(intrinsic, dtype, {x});
  const tir::PrimFunc lowered =
      tir_passes::lower_math(tir::make_prim_func("function", {y}, 1, tir::make_store(y, whole, {})));
  const PrimExpr value = lowered->body.as<tir::BufferStoreNode>()->value;
  if (value == whole) return library;
  const std::string name = fmt::format("hr_{}_f32", name_of(intrinsic));
  if (!helpers_.has(name)) helpers_.add(name, CKernel(helpers_).write_function(name, x, value));
  return name;
}

}  // namespace headrace::codegen
