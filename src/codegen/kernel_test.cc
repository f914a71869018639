// Kernels made of tir, compiled, linked, loaded and called.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <headrace/kernel_abi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "codegen/native.h"
#include "kit/errors.h"
#include "tensor/narrow_float.h"
#include "tir/workspace.h"

namespace headrace::codegen {
namespace {

using tir::ForKind;
using tir::Stmt;

// Splits every loop in three uneven parts, and gives worker 1 the middle one.
int32_t split_in_three(const hr_kernel_env* env, hr_parallel_body body, void* closure, int64_t count) {
  const int64_t cuts[] = {0, count / 4, count - count / 4, count};
  for (int i = 0; i < 3; ++i) {
    const hr_kernel_env worker = hr_worker_env(env, i % env->num_workers);
    if (const int32_t status = body(&worker, closure, cuts[i], cuts[i + 1]); status != 0) return status;
  }
  return 0;
}

// A tensor over borrowed memory.
struct Tensor {
  Tensor(void* data, DataType dtype, std::vector<int64_t> dims) : shape(std::move(dims)), strides(shape.size(), 1) {
    for (size_t i = shape.size(); i > 1; --i) strides[i - 2] = strides[i - 1] * shape[i - 1];
    view = {data, {kDLCPU, 0}, static_cast<int32_t>(shape.size()), dtype.raw(), shape.data(), strides.data(), 0};
  }
  Tensor(const Tensor&) = delete;
  std::vector<int64_t> shape, strides;
  DLTensor view{};
};

class Kernel {
 public:
  explicit Kernel(const tir::PrimFunc& given, const NativeTarget& target = NativeCompiler::load().host_target())
      : fd_(memfd_create("kernel", MFD_CLOEXEC)) {
    const tir::PrimFunc function = tir::with_workspace(given);
    workspace_bytes_ = tir::workspace_of(*function).size_bytes;
    const auto objects = NativeCompiler::load().compile({&function, 1}, target, {});
    const std::vector<std::string> exports = {tir::symbol_of(*function)};
    NativeCompiler::load().link({.target = target, .objects = objects, .sections = {}, .exports = exports}, fd_);
    handle_ = dlopen(fmt::format("/proc/self/fd/{}", fd_).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) throw std::runtime_error(dlerror());
    entry_ = reinterpret_cast<hr_kernel>(dlsym(handle_, exports[0].c_str()));
  }
  ~Kernel() {
    dlclose(handle_);
    close(fd_);
  }
  Kernel(const Kernel&) = delete;

  int32_t operator()(const std::vector<Tensor*>& tensors) {
    std::vector<DLTensor*> args;
    for (Tensor* it : tensors) args.push_back(&it->view);
    constexpr int32_t kWorkers = 2;
    std::vector<char> memory(workspace_bytes_ * kWorkers + HR_ALIGNMENT, 'w');
    char* start = memory.data() + (HR_ALIGNMENT - reinterpret_cast<uintptr_t>(memory.data()) % HR_ALIGNMENT);
    message.assign(message_size, '?');
    hr_kernel_env env{};
    env.size = sizeof(env);
    env.version = HR_KERNEL_ABI_VERSION;
    env.workspace = start;
    env.workspace_size = workspace_bytes_;
    env.parallel_for = split_in_three;
    env.num_workers = kWorkers;
    env.message = message.data();
    env.message_size = message.size();
    const int32_t status = entry_(&env, args.data());
    message.resize(std::min(message.size(), std::strlen(message.c_str())));
    return status;
  }
  size_t message_size = 100;
  std::string message;

 private:
  int fd_;
  uint64_t workspace_bytes_;
  void* handle_ = nullptr;
  hr_kernel entry_ = nullptr;
};

Array<PrimExpr> dims(std::initializer_list<int64_t> extents) {
  Array<PrimExpr> result;
  for (int64_t it : extents) result.push_back(make_int(it));
  return result;
}

// y[i] = value(x[i]) over n elements.
template <typename In, typename Out, typename F>
std::vector<Out> map_elements(const std::vector<In>& x, DataType in, DataType out, F value, int lanes = 1,
                              const NativeTarget& target = NativeCompiler::load().host_target()) {
  const auto n = static_cast<int64_t>(x.size());
  const Buffer source = make_buffer("x", in, dims({n}));
  const Buffer result = make_buffer("y", out, dims({n}));
  const PrimVar i = make_prim_var("i");
  PrimExpr at = i;
  if (lanes > 1) at = make_ramp(i * lanes, make_int(1), lanes);
  const Stmt body = tir::make_for(i, make_int(0), make_int(n / lanes), ForKind::serial,
                                  tir::make_store(result, value(make_load(source, {at})), {at}));
  Kernel kernel(tir::make_prim_func("map_elements", {source, result}, 1, body), target);
  std::vector<In> copy = x;
  std::vector<Out> y(x.size());
  Tensor a(copy.data(), in, {n}), b(y.data(), out, {n});
  EXPECT_EQ(kernel({&a, &b}), 0);
  return y;
}

NativeTarget plain_x86() {
  return NativeCompiler::load().resolve_target({.cpu = "x86-64", .features = "", .triple = "x86_64-unknown-linux-gnu"});
}

TEST(Kernel, MatrixProductInParallelWithSymbolsAndWorkspace) {
  const PrimVar m = make_prim_var("m"), n = make_prim_var("n"), k = make_prim_var("k");
  const DataType f32 = DataType::float_(32);
  const Buffer a = make_buffer("a", f32, {m, k}), b = make_buffer("b", f32, {k, n}), c = make_buffer("c", f32, {m, n});
  const Buffer sum = make_buffer("sum", f32, dims({1}));
  const PrimVar i = make_prim_var("i"), j = make_prim_var("j"), l = make_prim_var("l");
  for (tir::Scope scope : {tir::Scope::registers, tir::Scope::workspace}) {
    const PrimExpr product = make_load(a, {i, l}) * make_load(b, {l, j});
    const Stmt inner = tir::make_for(l, make_int(0), k, ForKind::serial,
                                     tir::make_store(sum, make_load(sum, {make_int(0)}) + product, {make_int(0)}));
    const Stmt cell = tir::make_allocate(sum, scope,
                                         tir::make_seq({tir::make_store(sum, make_float(0), {make_int(0)}), inner,
                                                        tir::make_store(c, make_load(sum, {make_int(0)}), {i, j})}));
    const Stmt row = tir::make_for(j, make_int(0), n, ForKind::serial, cell);
    const auto function =
        tir::make_prim_func("matmul", {a, b, c}, 1, tir::make_for(i, make_int(0), m, ForKind::parallel, row));
    EXPECT_EQ(tir::workspace_of(*tir::with_workspace(function)).size_bytes, scope == tir::Scope::workspace ? 64U : 0U);
    Kernel kernel(function);
    std::vector<float> x(9 * 5), y(5 * 4), z(9 * 4, -1), expected(9 * 4, 0);
    for (size_t t = 0; t < x.size(); ++t) x[t] = static_cast<float>(t) - 20;
    for (size_t t = 0; t < y.size(); ++t) y[t] = static_cast<float>(t * t % 17);
    for (size_t r = 0; r < 9; ++r)
      for (size_t s = 0; s < 4; ++s)
        for (size_t t = 0; t < 5; ++t) expected[r * 4 + s] += x[r * 5 + t] * y[t * 4 + s];
    Tensor tx(x.data(), f32, {9, 5}), ty(y.data(), f32, {5, 4}), tz(z.data(), f32, {9, 4});
    EXPECT_EQ(kernel({&tx, &ty, &tz}), 0);
    EXPECT_EQ(z, expected);
  }
}

TEST(Kernel, VectorsGathersAndGuardedLoads) {
  const DataType f32 = DataType::float_(32);
  const Buffer x = make_buffer("x", f32, dims({10})), y = make_buffer("y", f32, dims({3, 8}));
  const PrimExpr lanes = make_ramp(make_int(0), make_int(1), 8);
  const PrimExpr inside =
      make_binary(BinaryOp::lt, make_ramp(make_int(6), make_int(1), 8), make_broadcast(make_int(10), 8));
  // Past the tenth element lies nothing that may be read.
  const PrimExpr guarded = make_intrinsic(
      Intrinsic::if_then_else, DataType::float_(32, 8),
      {inside, make_load(x, {make_ramp(make_int(6), make_int(1), 8)}), make_const(-1, DataType::float_(32, 8))});
  const PrimExpr reversed = make_load(x, {make_ramp(make_int(9), make_int(-1), 8)});
  const PrimExpr doubled = make_load(x, {lanes}) * make_broadcast(make_load(x, {make_int(2)}), 8);
  const Stmt body = tir::make_seq({tir::make_store(y, doubled, {make_int(0), lanes}),
                                   tir::make_store(y, reversed, {make_int(1), lanes}),
                                   tir::make_store(y, guarded, {make_int(2), lanes})});
  Kernel kernel(tir::make_prim_func("vectors", {x, y}, 1, body));
  const long page = sysconf(_SC_PAGESIZE);
  auto* pages = static_cast<char*>(
      mmap(nullptr, static_cast<size_t>(2 * page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  mprotect(pages + page, static_cast<size_t>(page), PROT_NONE);
  auto* values = reinterpret_cast<float*>(pages + page) - 10;
  for (int i = 0; i < 10; ++i) values[i] = static_cast<float>(i);
  std::vector<float> result(24);
  Tensor tx(values, f32, {10}), ty(result.data(), f32, {3, 8});
  EXPECT_EQ(kernel({&tx, &ty}), 0);
  EXPECT_THAT(result,
              testing::ElementsAre(0, 2, 4, 6, 8, 10, 12, 14, 9, 8, 7, 6, 5, 4, 3, 2, 6, 7, 8, 9, -1, -1, -1, -1));
  munmap(pages, static_cast<size_t>(2 * page));
}

TEST(Kernel, IntegerDivisionNeverTraps) {
  const std::vector<int32_t> x = {7, -7, 0, INT32_MIN, INT32_MAX, 5};
  for (int32_t d : {2, -2, 0, -1, 3}) {
    auto run = [&](BinaryOp op, bool known) {
      return map_elements<int32_t, int32_t>(x, DataType::int_(32), DataType::int_(32), [&](const PrimExpr& v) {
        // `v * 0 + d` is a number the compiler of tir does not know.
        const PrimExpr divisor = make_int(d, DataType::int_(32));
        const PrimExpr hidden =
            make_intrinsic(Intrinsic::bitwise_or, DataType::int_(32),
                           {make_intrinsic(Intrinsic::bitwise_xor, DataType::int_(32), {v, v}), divisor});
        return make_binary(op, v, known ? divisor : hidden);
      });
    };
    for (bool known : {true, false}) {
      const auto quotient = run(BinaryOp::div, known), remainder = run(BinaryOp::mod, known);
      const auto floor_quotient = run(BinaryOp::floor_div, known), floor_remainder = run(BinaryOp::floor_mod, known);
      for (size_t i = 0; i < x.size(); ++i) {
        const int64_t a = x[i];
        const int64_t q = d == 0 ? 0 : a / d, r = d == 0 ? 0 : a % d;
        const bool down = r != 0 && (r < 0) != (d < 0);
        EXPECT_EQ(quotient[i], static_cast<int32_t>(q)) << a << " / " << d;
        EXPECT_EQ(remainder[i], static_cast<int32_t>(r)) << a << " % " << d;
        EXPECT_EQ(floor_quotient[i], static_cast<int32_t>(down ? q - 1 : q)) << a << " // " << d;
        EXPECT_EQ(floor_remainder[i], static_cast<int32_t>(down ? r + d : r)) << a << " %% " << d;
      }
    }
  }
}

TEST(Kernel, MinAndMaxKeepNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x = {1, -1, nan, 3};
  auto relu = map_elements<float, float>(x, DataType::float_(32), DataType::float_(32), [](const PrimExpr& v) {
    return make_binary(BinaryOp::max, v, make_float(0));
  });
  EXPECT_EQ(relu[0], 1);
  EXPECT_EQ(relu[1], 0);
  EXPECT_TRUE(std::isnan(relu[2]));
  auto other = map_elements<float, float>(x, DataType::float_(32), DataType::float_(32), [](const PrimExpr& v) {
    return make_binary(BinaryOp::min, make_float(2), v);
  });
  EXPECT_EQ(other[3], 2);
  EXPECT_TRUE(std::isnan(other[2]));
}

// Every float16 there is, against the tensor room's conversion, with and without instructions for it, as vectors too.
TEST(Kernel, AnExpressionTooDeepForTheStackIsRefused) {
  const Buffer x = make_buffer("x", DataType::float_(32), to_dims({1})), y = make_buffer("y", x->dtype, x->shape);
  PrimExpr e = make_load(x, {make_int(0)});
  const PrimExpr first = e;
  for (int i = 0; i < 300'000; ++i) e = e + first;
  const tir::PrimFunc function = tir::make_prim_func("deep", {x, y}, 1, tir::make_store(y, e, {make_int(0)}));
  EXPECT_THAT(kit::user_error_of(
                  [&] { NativeCompiler::load().compile({&function, 1}, NativeCompiler::load().host_target(), {}); }),
              testing::HasSubstr("the kernel 'deep' has an expression of too many operations within each other"));
}

TEST(Kernel, HalfAndBfloatConvert) {
  std::vector<uint16_t> bits(65536);
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint16_t>(i);
  const DataType f32 = DataType::float_(32);
  for (const NativeTarget& target : {NativeCompiler::load().host_target(), plain_x86()}) {
    for (int lanes : {1, 8}) {
      auto widen = [&](const PrimExpr& v) { return make_cast(f32.with_lanes(lanes), v); };
      const auto halves = map_elements<uint16_t, float>(bits, DataType::float_(16), f32, widen, lanes, target);
      const auto bfloats = map_elements<uint16_t, float>(bits, DataType::bfloat16(), f32, widen, lanes, target);
      std::vector<float> between;
      int wrong = 0;
      for (size_t i = 0; i < bits.size(); ++i) {
        const float half = half_to_float(bits[i]);
        wrong += std::isnan(half) ? !std::isnan(halves[i])
                                  : half != halves[i] || std::signbit(half) != std::signbit(halves[i]);
        const float bfloat = bfloat16_to_float(bits[i]);
        wrong += std::isnan(bfloat) ? !std::isnan(bfloats[i]) : bfloat != bfloats[i];
        between.push_back(half + half_to_float(static_cast<uint16_t>(i * 7)) * 0x1p-12F);
      }
      EXPECT_EQ(wrong, 0);
      between[0] = 65519;
      between[1] = 65520;
      between[2] = 0x1p-25F;
      between[3] = 0x1.8p-25F;
      auto narrow_half = [&](const PrimExpr& v) { return make_cast(DataType::float_(16, lanes), v); };
      auto narrow_bfloat = [&](const PrimExpr& v) { return make_cast(DataType::bfloat16(lanes), v); };
      const auto to_half =
          map_elements<float, uint16_t>(between, f32, DataType::float_(16), narrow_half, lanes, target);
      const auto to_bfloat =
          map_elements<float, uint16_t>(between, f32, DataType::bfloat16(), narrow_bfloat, lanes, target);
      for (size_t i = 0; i < between.size(); ++i) {
        if (std::isnan(between[i])) continue;
        wrong += to_half[i] != float_to_half(between[i]);
        wrong += to_bfloat[i] != float_to_bfloat16(between[i]);
      }
      EXPECT_EQ(wrong, 0);
    }
  }
}

TEST(Kernel, DoubleToHalfRoundsOnce) {
  // Just above the middle of two float16: rounding to float first would hit the middle and then go to even.
  const std::vector<double> x = {1.0 + 0x1p-11 + 0x1p-40, 1.0 + 0x1p-11, -1.0 - 0x1p-11 - 0x1p-40, 1e10};
  const auto y = map_elements<double, uint16_t>(x, DataType::float_(64), DataType::float_(16),
                                                [](const PrimExpr& v) { return make_cast(DataType::float_(16), v); });
  EXPECT_THAT(y, testing::ElementsAre(0x3c01, 0x3c00, 0xbc01, 0x7c00));
}

// Numbers around those of a narrow float: each, halfway to the next, and beside both; specials.
std::vector<float> numbers_around(DataType dtype) {
  using L = std::numeric_limits<float>;
  std::vector<float> numbers = {0,   L::infinity(), L::quiet_NaN(), L::denorm_min(), L::min(), L::max(), 65520, 61440,
                                464, 248,           1e-8F,          0x1p-20F};
  for (int code = 0; code < 1 << (dtype.bits() - 1); ++code) {
    const float number = narrow_to_float(static_cast<uint8_t>(code), dtype);
    const float next = narrow_to_float(static_cast<uint8_t>(code + 1), dtype);
    for (const float x : {number, (number + next) / 2}) {
      for (const float y : {x, std::nextafter(x, 0.0F), std::nextafter(x, L::infinity())}) numbers.push_back(y);
    }
  }
  const size_t count = numbers.size();
  for (size_t i = 0; i < count; ++i) numbers.push_back(-numbers[i]);
  while (numbers.size() % 8 != 0) numbers.push_back(1);
  return numbers;
}

TEST(Kernel, NarrowFloatsConvert) {
  const DataType f32 = DataType::float_(32);
  std::vector<uint8_t> codes(256);
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(i);
  for (const char* name : {"float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float4_e2m1fn"}) {
    const DataType dtype = DataType::parse(name);
    const std::vector<float> numbers = numbers_around(dtype);
    for (const NativeTarget& target : {NativeCompiler::load().host_target(), plain_x86()}) {
      for (int lanes : {1, 8}) {
        const auto to = [&](DataType result) {
          return [=](const PrimExpr& v) { return make_cast(result.with_lanes(lanes), v); };
        };
        const auto widened = map_elements<uint8_t, float>(codes, dtype, f32, to(f32), lanes, target);
        for (size_t i = 0; i < codes.size(); ++i)
          EXPECT_EQ(std::bit_cast<uint32_t>(widened[i]), std::bit_cast<uint32_t>(narrow_to_float(codes[i], dtype)))
              << name << " " << i;
        const auto narrowed = map_elements<float, uint8_t>(numbers, f32, dtype, to(dtype), lanes, target);
        for (size_t i = 0; i < numbers.size(); ++i)
          EXPECT_EQ(narrowed[i], float_to_narrow(numbers[i], dtype)) << name << " " << numbers[i];
      }
    }
  }
}

TEST(Kernel, IntegersBelowAByteAreCutAndExtended) {
  const auto to = [&](DataType dtype) { return [dtype](const PrimExpr& v) { return make_cast(dtype, v); }; };
  const DataType i32 = DataType::int_(32), f32 = DataType::float_(32);
  const std::vector<int32_t> numbers = {7, 8, -1, -9, 300};
  EXPECT_THAT((map_elements<int32_t, int8_t>(numbers, i32, DataType::int_(4), to(DataType::int_(4)))),
              testing::ElementsAre(7, -8, -1, 7, -4));
  EXPECT_THAT((map_elements<int32_t, uint8_t>(numbers, i32, DataType::uint(2), to(DataType::uint(2)))),
              testing::ElementsAre(3, 0, 3, 3, 0));
  EXPECT_THAT((map_elements<float, int8_t>({7.9F, 8, -9, NAN}, f32, DataType::int_(4), to(DataType::int_(4)))),
              testing::ElementsAre(7, 7, -8, 0));
  EXPECT_THAT((map_elements<float, int8_t>({1.5F, 9, -9}, f32, DataType::int_(2), to(DataType::int_(2)))),
              testing::ElementsAre(1, 1, -2));
  // The low bits count of bytes that others wrote.
  EXPECT_THAT((map_elements<uint8_t, int32_t>({0xff, 0x0f, 0x3c, 7}, DataType::int_(4), i32, to(i32))),
              testing::ElementsAre(-1, -1, -4, 7));
}

TEST(Kernel, CastsSaturate) {
  const std::vector<float> x = {1e20F, -1e20F, std::numeric_limits<float>::quiet_NaN(), -1.9F, 300};
  auto to = [&](DataType dtype) { return [dtype](const PrimExpr& v) { return make_cast(dtype, v); }; };
  const DataType f32 = DataType::float_(32);
  EXPECT_THAT((map_elements<float, int32_t>(x, f32, DataType::int_(32), to(DataType::int_(32)))),
              testing::ElementsAre(INT32_MAX, INT32_MIN, 0, -1, 300));
  EXPECT_THAT((map_elements<float, uint8_t>(x, f32, DataType::uint(8), to(DataType::uint(8)))),
              testing::ElementsAre(255, 0, 0, 0, 255));
  EXPECT_THAT((map_elements<float, uint8_t>({0, -0.0F, 2, x[2]}, f32, DataType::bool_(), to(DataType::bool_()))),
              testing::ElementsAre(0, 0, 1, 1));
  EXPECT_THAT((map_elements<uint8_t, float>({0, 1, 7}, DataType::bool_(), f32, to(f32))),
              testing::ElementsAre(0, 1, 1));
}

TEST(Kernel, MathMatchesTheLibrary) {
  const std::vector<float> x = {0.1F, 0.5F, 0.9F, 0.25F, 0.7F, 0.3F, 0.99F, 0.01F};
  struct Row {
    Intrinsic intrinsic;
    float (*reference)(float);
  };
  const Row rows[] = {{Intrinsic::exp, std::exp},     {Intrinsic::log, std::log},     {Intrinsic::log2, std::log2},
                      {Intrinsic::log10, std::log10}, {Intrinsic::log1p, std::log1p}, {Intrinsic::sqrt, std::sqrt},
                      {Intrinsic::sin, std::sin},     {Intrinsic::cos, std::cos},     {Intrinsic::tan, std::tan},
                      {Intrinsic::asin, std::asin},   {Intrinsic::acos, std::acos},   {Intrinsic::atan, std::atan},
                      {Intrinsic::sinh, std::sinh},   {Intrinsic::cosh, std::cosh},   {Intrinsic::tanh, std::tanh},
                      {Intrinsic::asinh, std::asinh}, {Intrinsic::acosh, std::acosh}, {Intrinsic::atanh, std::atanh},
                      {Intrinsic::erf, std::erf},     {Intrinsic::floor, std::floor}, {Intrinsic::ceil, std::ceil},
                      {Intrinsic::round, std::round}, {Intrinsic::trunc, std::trunc}, {Intrinsic::abs, std::fabs}};
  for (const Row& row : rows) {
    for (int lanes : {1, 8}) {
      std::vector<float> input = x;
      if (row.intrinsic == Intrinsic::acosh) std::for_each(input.begin(), input.end(), [](float& v) { v += 1; });
      const DataType dtype = DataType::float_(32);
      const auto y = map_elements<float, float>(
          input, dtype, dtype,
          [&](const PrimExpr& v) { return make_intrinsic(row.intrinsic, dtype.with_lanes(lanes), {v}); }, lanes);
      for (size_t i = 0; i < x.size(); ++i) {
        EXPECT_NEAR(y[i], row.reference(input[i]), 3e-6F * std::max(1.0F, std::fabs(y[i]))) << name_of(row.intrinsic);
      }
    }
  }
}

TEST(Kernel, FailedAssertionReturnsItsMessage) {
  const PrimVar n = make_prim_var("n");
  const Buffer x = make_buffer("x", DataType::float_(32), {n});
  const PrimVar i = make_prim_var("i");
  const Stmt check = tir::make_assert(make_binary(BinaryOp::lt, i, make_int(5)), "x is too long");
  const auto function =
      tir::make_prim_func("checked", {x}, 1, tir::make_for(i, make_int(0), n, ForKind::parallel, check));
  Kernel kernel(function);
  std::vector<float> data(10);
  Tensor shorter(data.data(), DataType::float_(32), {5}), longer(data.data(), DataType::float_(32), {6});
  EXPECT_EQ(kernel({&shorter}), 0);
  EXPECT_NE(kernel({&longer}), 0);
  EXPECT_EQ(kernel.message, "x is too long");
  kernel.message_size = 5;
  EXPECT_NE(kernel({&longer}), 0);
  EXPECT_EQ(kernel.message, "x is") << "cut to the host's buffer";
}

TEST(Kernel, SharedExpressionsAreComputedOnce) {
  // Each level uses the one below twice: without sharing this is 2^60 additions.
  const auto y = map_elements<int32_t, int32_t>({1}, DataType::int_(32), DataType::int_(32), [](const PrimExpr& v) {
    PrimExpr e = v;
    for (int i = 0; i < 60; ++i) e = make_binary(BinaryOp::add, e, e);
    return e;
  });
  EXPECT_EQ(y[0], 0) << "1 << 60 wraps";
}

size_t count(const std::string& text, std::string_view word) {
  size_t found = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

// 300 buffers, each written in a statement of its own: cut into functions of some statements.
TEST(Kernel, ManyArgumentsAndStatements) {
  constexpr size_t kCount = 300;
  const Buffer x = make_buffer("x", DataType::float_(32), dims({kCount}));
  std::vector<Buffer> params{x};
  std::vector<Stmt> stores;
  for (size_t i = 0; i < kCount; ++i) {
    params.push_back(make_buffer(fmt::format("y{}", i), DataType::float_(32), dims({1})));
    const PrimExpr value = make_load(x, {make_int(static_cast<int64_t>(i))}) + make_float(1);
    stores.push_back(tir::make_store(params.back(), value, {make_int(0)}));
  }
  const auto function = tir::make_prim_func("cuts", Array<Buffer>(params), kCount, tir::make_seq(stores));
  const std::string text =
      NativeCompiler::load().emit_text({&function, 1}, NativeCompiler::load().host_target(), CodeForm::kInputLlvm, 0);
  EXPECT_EQ(count(text, "define internal i32 @cuts.part"), (kCount + 63) / 64);
  Kernel kernel(function);
  std::vector<float> in(kCount), out(kCount);
  for (size_t i = 0; i < kCount; ++i) in[i] = static_cast<float>(i);
  std::vector<std::unique_ptr<Tensor>> tensors;
  tensors.push_back(std::make_unique<Tensor>(in.data(), DataType::float_(32), std::vector<int64_t>{kCount}));
  for (float& y : out) {
    tensors.push_back(std::make_unique<Tensor>(&y, DataType::float_(32), std::vector<int64_t>{1}));
  }
  std::vector<Tensor*> arguments;
  for (const auto& tensor : tensors) arguments.push_back(tensor.get());
  EXPECT_EQ(kernel(arguments), 0);
  for (size_t i = 0; i < kCount; ++i) EXPECT_EQ(out[i], in[i] + 1);
}

// A parallel loop gets the values that it uses, and not all arguments.
TEST(Kernel, ParallelLoopsCaptureWhatTheyUse) {
  std::vector<Buffer> params;
  for (int i = 0; i < 10; ++i) params.push_back(make_buffer("x", DataType::float_(32), dims({8})));
  const PrimVar i = make_prim_var("i");
  const Stmt loop = tir::make_for(i, make_int(0), make_int(8), ForKind::parallel,
                                  tir::make_store(params[3], make_load(params[7], {i}), {i}));
  const auto function = tir::make_prim_func("copies", Array<Buffer>(params), 1, loop);
  const std::string text =
      NativeCompiler::load().emit_text({&function, 1}, NativeCompiler::load().host_target(), CodeForm::kInputLlvm, 0);
  EXPECT_EQ(count(text, "alloca { i64, ptr, ptr }"), 1u) << "the loop's begin, two buffers";
}

// Without instructions for halves a comparison of them goes lane by lane.
TEST(Kernel, HalvesAreComparedAsFloats) {
  const DataType half = DataType::float_(16), real = DataType::float_(32);
  const Buffer x = make_buffer("x", half, dims({32})), y = make_buffer("y", half, dims({16}));
  const auto at = [](int64_t begin) -> Array<PrimExpr> { return {make_ramp(make_int(begin), make_int(1), 16)}; };
  const auto wide = [&](int64_t begin) { return make_cast(real.with_lanes(16), make_load(x, at(begin))); };
  const PrimExpr greater = make_cast(half.with_lanes(16), make_binary(BinaryOp::max, wide(0), wide(16)));
  const auto function = tir::make_prim_func("greater", {x, y}, 1, tir::make_store(y, greater, at(0)));
  const NativeTarget target = NativeCompiler::load().resolve_target({.cpu = "x86-64-v3", .features = "", .triple = ""});
  const std::string text = NativeCompiler::load().emit_text({&function, 1}, target, CodeForm::kLlvm, 3);
  EXPECT_EQ(count(text, "fcmp ogt <16 x half>"), 0u) << text;
  EXPECT_EQ(count(text, "fcmp ogt <16 x float>"), 1u) << text;
}

TEST(Kernel, UnsupportedTypeIsAnError) {
  const Buffer x = make_buffer("x", DataType::int_(4), dims({2}));
  const PrimExpr element = make_load(x, {make_int(0)});
  const auto function = tir::make_prim_func("narrow", {x}, 1, tir::make_store(x, element + element, {make_int(0)}));
  EXPECT_THAT(kit::user_error_of(
                  [&] { NativeCompiler::load().compile({&function, 1}, NativeCompiler::load().host_target(), {}); }),
              testing::HasSubstr("native code does not compute with int4"));
}

}  // namespace
}  // namespace headrace::codegen
