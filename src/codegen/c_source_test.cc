// Tests kernels as C: a golden text; numbers where C has traps; tir that C cannot express.
#include "codegen/c_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <headrace/kernel_abi.h>

#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>

#include "base/temporary_name.h"
#include "interp/tir_interp.h"
#include "kit/errors.h"
#include "kit/files.h"
#include "kit/golden.h"
#include "kit/native_kernels.h"
#include "tir/parse.h"
#include "tir/print.h"
#include "tir/workspace.h"

namespace headrace::codegen {
namespace {

using ::testing::HasSubstr;

// Undefined behaviour ends the process. Without optimisation: that was most of the time.
constexpr const char* kStrict =
    "-std=c11 -O0 -Wall -Werror -fsanitize=undefined,float-cast-overflow -fsanitize-undefined-trap-on-error";

constexpr const char* kKernels = HEADRACE_SOURCE_DIR "/src/codegen/tests/c_kernels.tir";

std::vector<tir::PrimFunc> kernels_of(const std::string& text) {
  std::vector<tir::PrimFunc> kernels;
  const IRModule module = tir::parse_module(text);
  for (const auto& [name, function] : module->functions())
    kernels.push_back(tir::with_workspace(function.cast<tir::PrimFuncNode>()));
  return kernels;
}

// The exit status of the C compiler with these options on that text.
int compile_c(const std::string& options, const std::string& text) {
  std::string file = temporary_name(::testing::TempDir() + "headrace_c_");
  HEADRACE_CHECK(mkdtemp(file.data()) != nullptr, "cannot make {}", file);
  std::ofstream(file + "/text.c") << text;
  const int status = std::system(fmt::format("cc {} -c {}/text.c -o {}/text.o", options, file, file).c_str());
  std::filesystem::remove_all(file);
  return status;
}

// Elements as bits; all NaN are one.
std::vector<uint64_t> bits_of(const NDArray& array) {
  std::vector<uint64_t> bits;
  const size_t size = array.dtype().bytes();
  for (int64_t i = 0; i < array.num_elements(); ++i) {
    uint64_t element = 0;
    std::memcpy(&element, array.data<char>() + static_cast<size_t>(i) * size, size);
    const bool is_nan = array.dtype().is_float() && std::isnan(element_as_double(array.tensor(), i));
    bits.push_back(is_nan ? ~uint64_t{0} : element);
  }
  return bits;
}

TEST(CSource, Golden) {
  const std::vector<tir::PrimFunc> kernels = kernels_of(kit::read_file(kKernels));
  ASSERT_EQ(kernels.size(), 4u);
  const std::string text = c_source(kernels);
  EXPECT_TRUE(kit::matches_golden(HEADRACE_SOURCE_DIR "/src/codegen/tests/c_kernels.txt", text));
  EXPECT_EQ(c_source(kernels), text);
  for (const char* options : {"-std=c99 -O2 -Wall -Wextra -Werror -pedantic", "-std=gnu17 -O3 -Wall -Werror"})
    EXPECT_EQ(compile_c(options, text), 0) << options;
}

TEST(CSource, StatementsOfEveryKind) {
  const std::vector<tir::PrimFunc> all = kernels_of(kit::read_file(kKernels));
  const std::vector<tir::PrimFunc> kernels(all.begin() + 2, all.end());
  const kit::NativeKernels compiled(kernels, kStrict);
  const NDArray bytes = NDArray::empty({16}, DataType::int_(8));
  for (int i = 0; i < 16; ++i) bytes.data<int8_t>()[i] = static_cast<int8_t>(i * 37 - 128);
  const NDArray numbers = NDArray::from_vector({8}, kIndexType, std::vector<int64_t>{5, -3, 7, 2, 9, 1, 4, 2});
  const std::vector<NDArray> inputs = {bytes, numbers};
  for (size_t i = 0; i < kernels.size(); ++i)
    EXPECT_EQ(bits_of(compiled.run(i, {inputs[i]})[0]), bits_of(interp::run_prim_func(kernels[i], {inputs[i]})[0]))
        << tir::print_function(kernels[i]);
}

// The text's own declarations are those of the installed headers; which may stand before it, too.
TEST(CSource, DeclaresWhatKernelsAreCalledWith) {
  const std::string text = c_source(kernels_of(kit::read_file(kKernels)));
  std::string checks;
  const auto check = [&](const char* field, size_t offset) {
    checks += fmt::format("_Static_assert(offsetof({}) == {}, \"\");\n", field, offset);
  };
#define HEADRACE_TEST_FIELD(type, field) check(#type ", " #field, offsetof(type, field))
  HEADRACE_TEST_FIELD(DLTensor, data);
  HEADRACE_TEST_FIELD(DLTensor, shape);
  HEADRACE_TEST_FIELD(DLTensor, strides);
  HEADRACE_TEST_FIELD(DLTensor, byte_offset);
  HEADRACE_TEST_FIELD(hr_kernel_env, version);
  HEADRACE_TEST_FIELD(hr_kernel_env, workspace);
  HEADRACE_TEST_FIELD(hr_kernel_env, workspace_size);
  HEADRACE_TEST_FIELD(hr_kernel_env, parallel_for);
  HEADRACE_TEST_FIELD(hr_kernel_env, launch);
  HEADRACE_TEST_FIELD(hr_kernel_env, stream);
  HEADRACE_TEST_FIELD(hr_kernel_env, worker_index);
  HEADRACE_TEST_FIELD(hr_kernel_env, num_workers);
  HEADRACE_TEST_FIELD(hr_kernel_env, message);
  HEADRACE_TEST_FIELD(hr_kernel_env, message_size);
  HEADRACE_TEST_FIELD(hr_kernel_env, host);
#undef HEADRACE_TEST_FIELD
  checks += fmt::format("_Static_assert(sizeof(hr_kernel_env) == {}, \"\");\n", sizeof(hr_kernel_env));
  EXPECT_EQ(compile_c("-std=c11", text + checks), 0);
  EXPECT_NE(compile_c("-std=c11 2>/dev/null", text + checks + "_Static_assert(sizeof(hr_kernel_env) == 1, \"\");\n"),
            0);
  EXPECT_EQ(compile_c("-std=c11 -I " HEADRACE_SOURCE_DIR "/include -I " HEADRACE_SOURCE_DIR "/third_party",
                      "#include <headrace/kernel_abi.h>\n" + text),
            0);
}

// Every operator of every pair of numbers that lie at the ends of a type, in C and by the interpreter.
template <typename T>
void add_ends(std::vector<NDArray>& arrays, DataType dtype) {
  std::vector<T> ends;
  if constexpr (std::is_floating_point_v<T>) {
    using L = std::numeric_limits<T>;
    ends = {0,
            -T{0},
            1,
            -1,
            T(0.5),
            T(-2.5),
            T(127.5),
            T(-128.9),
            255,
            256,
            T(3e9),
            T(-3e9),
            T(1e19),
            T(-1e19),
            L::infinity(),
            -L::infinity(),
            L::quiet_NaN(),
            L::max(),
            L::lowest(),
            L::denorm_min(),
            T(65519.99),
            T(65520),
            T(1) / 3,
            T(6e-8)};
  } else {
    using L = std::numeric_limits<T>;
    ends = {0, 1, 2, 3, 5, 7, 8, 31, 63, 100, L::max(), L::max() - 1, L::min(), L::min() + 1};
    if constexpr (std::is_signed_v<T>) ends.insert(ends.end(), {-1, -2, -3, -7, -100});
  }
  const auto n = static_cast<int64_t>(ends.size());
  NDArray a = NDArray::empty({n * n}, dtype), b = NDArray::empty({n * n}, dtype);
  for (size_t i = 0; i < ends.size() * ends.size(); ++i) {
    a.data<T>()[i] = ends[i / ends.size()];
    b.data<T>()[i] = ends[i % ends.size()];
  }
  arrays = {a, b};
}

std::vector<NDArray> ends_of(DataType dtype) {
  std::vector<NDArray> arrays;
  if (dtype.is_float() && dtype.bits() == 64) add_ends<double>(arrays, dtype);
  if (dtype.is_float() && dtype.bits() == 32) add_ends<float>(arrays, dtype);
  if (dtype.is_narrow()) {
    // All bytes, also those of which only the low bits count.
    NDArray a = NDArray::empty({256}, dtype);
    for (int i = 0; i < 256; ++i) a.data<uint8_t>()[i] = static_cast<uint8_t>(i);
    return {a, a};
  }
  if (dtype.is_bool() || dtype.bits() == 16) {
    // All of them against a few.
    const int64_t n = dtype.is_bool() ? 2 : 61;
    NDArray a = NDArray::empty({n * n}, dtype), b = NDArray::empty({n * n}, dtype);
    for (int64_t i = 0; i < n * n; ++i) {
      const auto x = static_cast<uint16_t>(i / n * 1093), y = static_cast<uint16_t>(i % n * 1109);
      if (dtype.is_bool()) {
        a.data<uint8_t>()[i] = static_cast<uint8_t>(i / n);
        b.data<uint8_t>()[i] = static_cast<uint8_t>(i % n);
      } else {
        a.data<uint16_t>()[i] = x;
        b.data<uint16_t>()[i] = y;
      }
    }
    return {a, b};
  }
  if (dtype.is_int() && dtype.bits() == 8) add_ends<int8_t>(arrays, dtype);
  if (dtype.is_int() && dtype.bits() == 32) add_ends<int32_t>(arrays, dtype);
  if (dtype.is_int() && dtype.bits() == 64) add_ends<int64_t>(arrays, dtype);
  if (dtype.is_uint() && dtype.bits() == 8) add_ends<uint8_t>(arrays, dtype);
  if (dtype.is_uint() && dtype.bits() == 32) add_ends<uint32_t>(arrays, dtype);
  if (dtype.is_uint() && dtype.bits() == 64) add_ends<uint64_t>(arrays, dtype);
  return arrays;
}

const std::vector<DataType>& dtypes_of_c() {
  static const std::vector<DataType> all = {
      DataType::bool_(),    DataType::int_(8),    DataType::int_(16),  DataType::int_(32), DataType::int_(64),
      DataType::uint(8),    DataType::uint(16),   DataType::uint(32),  DataType::uint(64), DataType::float_(16),
      DataType::bfloat16(), DataType::float_(32), DataType::float_(64)};
  return all;
}

// y[i] = value(a[i], b[i]), with operands that the text knows nothing of.
struct NumberKernels {
  void add(DataType dtype, const std::function<PrimExpr(const PrimExpr& a, const PrimExpr& b)>& value) {
    const std::vector<NDArray> operands = ends_of(dtype);
    const PrimExpr count = make_int(operands[0].num_elements());
    const Buffer a = make_buffer("a", dtype, {count}), b = make_buffer("b", dtype, {count});
    const PrimVar i = make_prim_var("i");
    const PrimExpr result = value(make_load(a, {i}), make_load(b, {i}));
    const Buffer y = make_buffer("y", result->dtype, {count});
    functions.push_back(tir::make_prim_func(
        fmt::format("number{}", functions.size()), {a, b, y}, 1,
        tir::make_for(i, make_int(0), count, tir::ForKind::serial, tir::make_store(y, result, {i}))));
    inputs.push_back(operands);
  }
  void check() const {
    const kit::NativeKernels kernels(functions, kStrict);
    for (size_t i = 0; i < functions.size(); ++i) {
      const NDArray want = interp::run_prim_func(functions[i], inputs[i])[0];
      const std::vector<uint64_t> got_bits = bits_of(kernels.run(i, inputs[i])[0]), want_bits = bits_of(want);
      const auto differs = std::mismatch(got_bits.begin(), got_bits.end(), want_bits.begin());
      const auto at = differs.first - got_bits.begin();
      EXPECT_EQ(differs.first, got_bits.end())
          << tir::print_function(functions[i]) << "element " << at << ": a "
          << bits_of(inputs[i][0])[static_cast<size_t>(at)] << ", b " << bits_of(inputs[i][1])[static_cast<size_t>(at)];
    }
  }
  std::vector<tir::PrimFunc> functions;
  std::vector<std::vector<NDArray>> inputs;
};

TEST(CSource, OperatorsOfEveryType) {
  NumberKernels kernels;
  for (const DataType dtype : dtypes_of_c()) {
    for (int op = 0; op <= static_cast<int>(greatest(BinaryOp{})); ++op) {
      const auto which = static_cast<BinaryOp>(op);
      if (is_logical(which) && !dtype.is_bool()) continue;
      kernels.add(dtype, [&](const PrimExpr& a, const PrimExpr& b) { return make_binary(which, a, b); });
    }
    // A constant divisor gives other text than one known at run time.
    for (const double known : {3.0, -1.0, 0.0}) {
      if (dtype.is_bool() || (known < 0 && dtype.is_uint())) continue;
      for (const BinaryOp op : {BinaryOp::div, BinaryOp::mod, BinaryOp::floor_div, BinaryOp::floor_mod})
        kernels.add(dtype,
                    [&](const PrimExpr& a, const PrimExpr&) { return make_binary(op, a, make_const(known, dtype)); });
    }
  }
  kernels.check();
}

TEST(CSource, CastsBetweenAllTypes) {
  NumberKernels kernels;
  std::vector<DataType> dtypes = dtypes_of_c();
  for (const char* narrow : {"int4", "uint4", "int2", "uint2", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
                             "float8_e5m2fnuz", "float4_e2m1fn"})
    dtypes.push_back(DataType::parse(narrow));
  for (const DataType from : dtypes) {
    for (const DataType to : dtypes) {
      kernels.add(from, [&](const PrimExpr& a, const PrimExpr&) { return make_cast(to, a); });
      if (from.bits() == to.bits() && !from.is_bool() && !to.is_bool())
        kernels.add(
            from, [&](const PrimExpr& a, const PrimExpr&) { return make_intrinsic(Intrinsic::reinterpret, to, {a}); });
    }
  }
  kernels.check();
}

TEST(CSource, IntrinsicsOfEveryType) {
  NumberKernels kernels;
  for (const DataType dtype : dtypes_of_c()) {
    const auto add = [&](Intrinsic intrinsic, size_t count, DataType result) {
      kernels.add(dtype, [&](const PrimExpr& a, const PrimExpr& b) {
        const Array<PrimExpr> args = count == 1   ? Array<PrimExpr>{a}
                                     : count == 2 ? Array<PrimExpr>{a, b}
                                                  : Array<PrimExpr>{a, b, a};
        return make_intrinsic(intrinsic, result, args);
      });
    };
    add(Intrinsic::abs, 1, dtype);
    if (!dtype.is_float()) {
      add(Intrinsic::pow, 2, dtype);
      for (const Intrinsic it : {Intrinsic::bitwise_and, Intrinsic::bitwise_or, Intrinsic::bitwise_xor,
                                 Intrinsic::shift_left, Intrinsic::shift_right})
        add(it, 2, dtype);
      add(Intrinsic::bitwise_not, 1, dtype);
      if (dtype.is_bool()) continue;
      for (const Intrinsic it : {Intrinsic::shift_left, Intrinsic::shift_right})
        kernels.add(dtype, [&](const PrimExpr& a, const PrimExpr&) {
          return make_intrinsic(it, dtype, {a, make_const(dtype.bits() - 1, dtype)});
        });
      continue;
    }
    for (const Intrinsic it : {Intrinsic::isnan, Intrinsic::isinf}) add(it, 1, DataType::bool_());
    // Tests those of the library's functions that are exact on every machine.
    for (const Intrinsic it : {Intrinsic::sqrt, Intrinsic::rsqrt, Intrinsic::floor, Intrinsic::ceil, Intrinsic::round,
                               Intrinsic::nearbyint, Intrinsic::trunc})
      add(it, 1, dtype);
    add(Intrinsic::fma, 3, dtype);
  }
  kernels.check();
}

// Constants come through the text to the bit.
TEST(CSource, Literals) {
  NumberKernels kernels;
  for (const double value : {0.1, -0.0, 1.0 / 3, 1e300, 1e-310, 6.1e-5, 65504.0, 1e30, 123456.015625, -2.5,
                             std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()}) {
    for (const DataType dtype :
         {DataType::float_(16), DataType::bfloat16(), DataType::float_(32), DataType::float_(64)})
      kernels.add(dtype, [&](const PrimExpr&, const PrimExpr&) { return make_float(value, dtype); });
  }
  for (const int64_t value : {INT64_MIN, INT64_MAX, int64_t{INT32_MIN}, int64_t{-5}, int64_t{1} << 40}) {
    for (const DataType dtype : {DataType::int_(64), DataType::uint(64)})
      kernels.add(dtype, [&](const PrimExpr& a, const PrimExpr&) { return a + make_int(value, dtype); });
  }
  // Products of literals that int has no room for.
  const PrimExpr large = make_int(100'000);
  kernels.add(kIndexType, [&](const PrimExpr& a, const PrimExpr& b) {
    const PrimExpr less = make_binary(BinaryOp::lt, a, b);
    return make_select(less, large, make_int(3)) * make_select(less, large, make_int(5));
  });
  kernels.check();
}

TEST(CSource, UnsupportedPrograms) {
  const auto error = [](const std::string& name, const std::string& dtype) {
    return kit::user_error_of([&] {
      c_source(
          kernels_of(fmt::format("#[tir_version = \"1\"]\nprim_func @{}(x: Buffer[(4), {}]) -> (y: Buffer[(4), {}]) "
                                 "{{ y[0] = x[0] + x[1]; }}\n",
                                 name, dtype, dtype)));
    });
  };
  EXPECT_EQ(error("fine", "int8"), "");
  EXPECT_THAT(error("f", "int4"),
              HasSubstr("C does not compute with int4; cast to a number of 8, 16, 32 or 64 bits first"));
  for (const char* name : {"\"a.b\"", "while", "expf", "hr_min_i32", "_x", "main"})
    EXPECT_THAT(error(name, "int8"), HasSubstr("cannot be written as C, since that is not a name for a function there"))
        << name;
}

}  // namespace
}  // namespace headrace::codegen
