// Every row of the table of intrinsics, in native code and in C, against the interpreter: none may be missing.
#include "ir/intrinsics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <regex>

#include "codegen/c_library.h"
#include "codegen/c_syntax.h"
#include "interp/tir_interp.h"
#include "kit/files.h"
#include "kit/native_kernels.h"
#include "tir/stmt.h"

namespace headrace::codegen {
namespace {

constexpr int64_t kCount = 8;

// y[i] = the intrinsic of x[i] and, for its further operands, of y's neighbours in x; `dtype` is that of x.
class OneCall {
 public:
  OneCall(Intrinsic intrinsic, DataType dtype)
      : row_(row_of(intrinsic)), x_(make_buffer("x", dtype, {make_int(kCount + 2)})) {}

  tir::PrimFunc function(const std::string& symbol) const {
    const PrimExpr value = call();
    const DataType result = value->dtype.is_bool() ? DataType::int_(8) : value->dtype;
    const Buffer y = make_buffer("y", result, {make_int(kCount)});
    const tir::Stmt store = tir::make_store(y, make_cast(result, value), {i_});
    return tir::make_prim_func(symbol, {x_, y}, 1,
                               tir::make_for(i_, make_int(0), make_int(kCount), tir::ForKind::serial, store));
  }

 private:
  PrimExpr operand(int64_t k) const { return make_load(x_, {i_ + k}); }

  PrimExpr call() const {
    const DataType dtype = x_->dtype;
    Array<PrimExpr> args;
    switch (row_.operands) {
      case OperandRule::choice:
        args = {make_binary(BinaryOp::lt, operand(0), operand(1)), operand(0), operand(1)};
        return make_intrinsic(row_.intrinsic, dtype, args);
      case OperandRule::bits:
        return make_intrinsic(row_.intrinsic, DataType::uint(dtype.bits()), {operand(0)});
      case OperandRule::place:
        args = {operand(0), make_int(1)};
        if (row_.effect == IntrinsicEffect::reads_memory) return make_intrinsic(row_.intrinsic, dtype, args);
        return operand(0);  // a hint has no value: see the test of its own
      default:
        for (size_t k = 0; k < row_.arity; ++k) args.push_back(operand(static_cast<int64_t>(k)));
        return make_intrinsic(row_.intrinsic, row_.result == ResultRule::truth ? DataType::bool_() : dtype, args);
    }
  }

  const IntrinsicRow& row_;
  Buffer x_;
  PrimVar i_ = make_prim_var("i");
};

bool takes(const IntrinsicRow& row, DataType dtype) {
  if (row.operands == OperandRule::real) return dtype.is_float();
  return row.operands != OperandRule::integer || !dtype.is_float();
}

NDArray numbers(DataType dtype) {
  NDArray array = NDArray::empty({kCount + 2}, dtype);
  const double values[] = {0.25, 3, -1.5, 0.5, 2.5, 0, 7, 1, -0.75, 4};
  for (int64_t i = 0; i < array.num_elements(); ++i) {
    if (dtype.is_float()) {
      set_element(array.tensor(), i, values[i]);
    } else {
      set_element_int(array.tensor(), i, static_cast<int64_t>(values[i]));
    }
  }
  return array;
}

// Native code may call another version of a function of C's library than the interpreter: a few units in the last
// place.
void expect_same(const NDArray& got, const NDArray& want, const std::string& what) {
  ASSERT_EQ(got.dtype(), want.dtype()) << what;
  for (int64_t i = 0; i < want.num_elements(); ++i) {
    if (!want.dtype().is_float()) {
      EXPECT_EQ(element_as_int(got.tensor(), i), element_as_int(want.tensor(), i)) << what << " of element " << i;
      continue;
    }
    const double a = element_as_double(got.tensor(), i), b = element_as_double(want.tensor(), i);
    const double relative = want.dtype().bits() == 16 ? 2e-2 : 1e-6;
    EXPECT_TRUE((std::isnan(a) && std::isnan(b)) || a == b || std::abs(a - b) <= relative * std::abs(b))
        << what << " of element " << i << ": " << a << " and " << b;
  }
}

TEST(Intrinsics, EachIsKnownToEveryCodeGenerator) {
  std::vector<tir::PrimFunc> functions;
  std::vector<std::string> names;
  std::vector<NDArray> inputs;
  for (const DataType dtype :
       {DataType::float_(32), DataType::float_(64), DataType::float_(16), DataType::int_(32), DataType::uint(8)}) {
    for (size_t i = 0; i < kIntrinsicCount; ++i) {
      const IntrinsicRow& row = row_of(static_cast<Intrinsic>(i));
      if (!takes(row, dtype)) continue;
      functions.push_back(OneCall(row.intrinsic, dtype).function(fmt::format("call{}", functions.size())));
      names.push_back(fmt::format("{} of {}", row.name, dtype));
      inputs.push_back(numbers(dtype));
    }
  }
  EXPECT_GT(functions.size(), 100u);
  const kit::NativeKernels native(functions), as_c(functions, "-std=c11 -O1 -Wall -Werror");
  for (size_t k = 0; k < functions.size(); ++k) {
    const NDArray want = interp::run_prim_func(functions[k], {inputs[k]})[0];
    expect_same(native.run(k, {inputs[k]})[0], want, names[k] + " in native code");
    expect_same(as_c.run(k, {inputs[k]})[0], want, names[k] + " in C");
  }
}

// Numbers of a dtype whose significands have `bits` bits, and what they are rounded to.
struct Halves {
  std::vector<double> x, away, even;

  explicit Halves(int bits) {
    const double top = std::ldexp(1, bits - 1);  // the least number from which on all are whole
    const double below = 0.5 - std::ldexp(1, -bits - 1);
    x = {0.5, 1.5, 2.5, 3.25, below, top - 1.5, top - 0.5, top + 1};
    away = {1, 2, 3, 3, 0, top - 1, top, top + 1};
    even = {0, 2, 2, 3, 0, top - 2, top, top + 1};
    for (std::vector<double>* list : {&x, &away, &even}) {
      for (size_t i = 0; i < 8; ++i) list->push_back(-(*list)[i]);
    }
  }
};

// y[i] = the intrinsic of x[i], in vectors of some lanes.
tir::PrimFunc map_lanes(Intrinsic intrinsic, DataType dtype, int64_t count, int lanes, const std::string& symbol) {
  const Buffer x = make_buffer("x", dtype, {make_int(count)}), y = make_buffer("y", dtype, {make_int(count)});
  const PrimVar i = make_prim_var("i");
  const PrimExpr at = lanes == 1 ? PrimExpr(i) : make_ramp(i * lanes, make_int(1), lanes);
  const PrimExpr value = make_intrinsic(intrinsic, dtype.with_lanes(lanes), {make_load(x, {at})});
  return tir::make_prim_func(
      symbol, {x, y}, 1,
      tir::make_for(i, make_int(0), make_int(count / lanes), tir::ForKind::serial, tir::make_store(y, value, {at})));
}

void expect_numbers(const NDArray& got, const std::vector<double>& want, const std::string& what) {
  for (size_t i = 0; i < want.size(); ++i) {
    const double a = element_as_double(got.tensor(), static_cast<int64_t>(i));
    EXPECT_EQ(a, want[i]) << what << " of element " << i;
    EXPECT_EQ(std::signbit(a), std::signbit(want[i])) << what << " of element " << i;
  }
}

TEST(Intrinsics, HalvesAreRoundedAwayFromZeroOrToEven) {
  struct Run {
    NDArray input;
    std::vector<double> want;
    std::string what;
  };
  std::vector<tir::PrimFunc> functions;
  std::vector<Run> runs;
  const std::pair<DataType, int> dtypes[] = {
      {DataType::float_(16), 11}, {DataType::bfloat16(), 8}, {DataType::float_(32), 24}, {DataType::float_(64), 53}};
  for (const auto& [dtype, bits] : dtypes) {
    const Halves halves(bits);
    const auto count = static_cast<int64_t>(halves.x.size());
    const NDArray input = NDArray::empty({count}, dtype);
    for (int64_t i = 0; i < count; ++i) set_element(input.tensor(), i, halves.x[static_cast<size_t>(i)]);
    for (const Intrinsic intrinsic : {Intrinsic::round, Intrinsic::nearbyint}) {
      for (const int lanes : {1, 8}) {
        functions.push_back(map_lanes(intrinsic, dtype, count, lanes, fmt::format("halves{}", functions.size())));
        runs.push_back({input, intrinsic == Intrinsic::round ? halves.away : halves.even,
                        fmt::format("{} of {}x{}", name_of(intrinsic), dtype, lanes)});
      }
    }
  }
  const kit::NativeKernels native(functions), as_c(functions, "-std=c11 -O1 -Wall -Werror");
  for (size_t k = 0; k < functions.size(); ++k) {
    const Run& run = runs[k];
    expect_numbers(interp::run_prim_func(functions[k], {run.input})[0], run.want, run.what + " interpreted");
    expect_numbers(native.run(k, {run.input})[0], run.want, run.what + " in native code");
    expect_numbers(as_c.run(k, {run.input})[0], run.want, run.what + " in C");
  }
}

// Linking and the names of variables in C follow from the table: a row's function needs no list of its own.
TEST(Intrinsics, FunctionsOfTheLibraryFollowFromTheRows) {
  const std::vector<std::string_view>& functions = functions_of_intrinsics();
  for (const std::string_view name : {"hypot", "erf", "fabs", "rint", "round"}) {
    EXPECT_NE(std::find(functions.begin(), functions.end(), name), functions.end()) << name;
    EXPECT_TRUE(is_c_reserved(name)) << name;
    EXPECT_TRUE(is_c_reserved(std::string(name) + "f")) << name;
  }
  EXPECT_TRUE(is_c_reserved("fmodf"));
  EXPECT_FALSE(is_c_reserved("bessel"));
  EXPECT_FALSE(is_c_reserved("rsqrt")) << "no function of C's library";
}

// hypot has a function of C's library that nothing else calls, so its name is in every file that an intrinsic needs.
TEST(Intrinsics, OneIsWrittenInFourFiles) {
  const std::filesystem::path source = HEADRACE_SOURCE_DIR "/src";
  const std::regex word("\\bhypotf?\\b");
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source)) {
    const std::filesystem::path& path = entry.path();
    if ((path.extension() != ".cc" && path.extension() != ".h") || path.stem().string().ends_with("_test")) continue;
    const std::string text = kit::read_file(path);
    if (text.find("hypot") != std::string::npos && std::regex_search(text, word))
      files.push_back(path.lexically_relative(source).string());
  }
  std::sort(files.begin(), files.end());
  EXPECT_EQ(files, (std::vector<std::string>{"codegen/c_intrinsic.cc", "codegen/llvm/intrinsic.cc", "ir/intrinsics.cc",
                                             "ir/prim_expr.h"}));
}

// A prefetch has no value: the statement behind it runs.
TEST(Intrinsics, HintsChangeNothing) {
  const Buffer x = make_buffer("x", DataType::float_(32), to_dims({4})), y = make_buffer("y", x->dtype, x->shape);
  const PrimVar i = make_prim_var("i");
  const PrimExpr at = make_load(x, {i});
  const tir::Stmt hint = tir::make_evaluate(make_intrinsic(Intrinsic::prefetch, DataType::void_(), {at, make_int(2)}));
  const tir::PrimFunc function = tir::make_prim_func("hint", {x, y}, 1,
                                                     tir::make_for(i, make_int(0), make_int(4), tir::ForKind::serial,
                                                                   tir::make_seq({hint, tir::make_store(y, at, {i})})));
  const NDArray input = NDArray::from_vector({4}, DataType::float_(32), std::vector<float>{1, 2, 3, 4});
  expect_same(kit::NativeKernels({function}).run(0, {input})[0], input, "native code");
  expect_same(kit::NativeKernels({function}, "-std=c11 -O1 -Wall -Werror").run(0, {input})[0], input, "C");
  expect_same(interp::run_prim_func(function, {input})[0], input, "the interpreter");
}

}  // namespace
}  // namespace headrace::codegen
