// NDArray over DLPack, element access, dtypes.
#include "tensor/ndarray.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "object/structural_equal.h"
#include "tensor/kept_memory.h"

namespace headrace {
namespace {

static_assert(sizeof(Object) == 24);

TEST(NDArrayLayout, TheTensorFollowsTheHeader) {
  const NDArray a = NDArray::zeros({2}, DataType::float_(32));
  EXPECT_EQ(reinterpret_cast<const char*>(&a.tensor()) - reinterpret_cast<const char*>(a.object().object()), 24);
}

struct Managed {
  DLManagedTensorVersioned versioned{};
  std::vector<float> data = std::vector<float>(12);
  std::vector<int64_t> shape{3, 4}, strides{4, 1};
  int deleted = 0;
  Managed() {
    versioned.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
    versioned.manager_ctx = this;
    versioned.deleter = [](DLManagedTensorVersioned* self) { ++static_cast<Managed*>(self->manager_ctx)->deleted; };
    versioned.dl_tensor = {data.data(), {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape.data(), strides.data(), 0};
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i);
  }
};

TEST(NDArrayDLPack, BorrowsAndGivesBack) {
  Managed managed;
  {
    const NDArray array = NDArray::from_dlpack(&managed.versioned);
    EXPECT_EQ(array.data<float>(), managed.data.data());
    EXPECT_TRUE(array.is_dense());
    DLManagedTensor* out = array.to_dlpack();
    EXPECT_EQ(out->dl_tensor.data, managed.data.data());
    EXPECT_EQ(out->dl_tensor.strides[0], 4);
    out->deleter(out);
    EXPECT_EQ(managed.deleted, 0);
  }
  EXPECT_EQ(managed.deleted, 1);
}

TEST(KeptMemory, IsNotGivenBackByAForeignTensor) {
  Managed kept, beside;
  DLTensor column = kept.versioned.dl_tensor;
  column.byte_offset = 4;
  {
    const NDArray array = NDArray::from_dlpack(&kept.versioned), other = NDArray::from_dlpack(&beside.versioned);
    keep_memory_of(column);
  }
  EXPECT_EQ(kept.deleted, 0);
  EXPECT_EQ(beside.deleted, 1);
}

TEST(KeptMemory, OfACpuTensorIsNotUsedAgain) {
  const Shape shape{1000};
  const float* kept = nullptr;
  {
    NDArray array = NDArray::zeros(shape, DataType::float_(32));
    kept = array.data<float>();
    array.data<float>()[7] = 7;
    keep_memory_of(array.tensor());
  }
  for (int i = 0; i < 100; ++i) EXPECT_NE(NDArray::zeros(shape, DataType::float_(32)).data<float>(), kept);
  EXPECT_EQ(kept[7], 7);
}

TEST(KeptMemory, ATensorWithoutElementsKeepsNothing) {
  const NDArray array = NDArray::zeros({0, 3}, DataType::float_(32));
  keep_memory_of(array.tensor());
  EXPECT_FALSE(holds_kept_memory(array.tensor()));
  EXPECT_FALSE(holds_kept_memory(array.data<void>(), 64));
}

TEST(NDArrayDLPack, StridesAreReadInPlace) {
  Managed managed;
  managed.shape = {4, 3};
  managed.strides = {1, 4};
  const NDArray turned = NDArray::from_dlpack(&managed.versioned);
  EXPECT_FALSE(turned.is_dense());
  const NDArray dense = turned.to_dense();
  EXPECT_EQ(dense.data<float>()[1], 4.0f);
  EXPECT_EQ(dense.data<float>()[3], 1.0f);
  EXPECT_TRUE(structural_equal(turned, dense));
  EXPECT_EQ(structural_hash(turned), structural_hash(dense));
}

TEST(NDArrayDLPack, ReadOnlyStaysReadOnly) {
  Managed managed;
  managed.versioned.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  const NDArray array = NDArray::from_dlpack(&managed.versioned);
  EXPECT_THROW(array.copy_from(array.copy()), UserError);
  EXPECT_THROW(array.to_dlpack(), UserError);
  DLManagedTensorVersioned* out = array.to_dlpack_versioned();
  EXPECT_NE(out->flags & DLPACK_FLAG_BITMASK_READ_ONLY, 0u);
  out->deleter(out);
}

TEST(NDArrayDLPack, MalformedTensorsAreErrorsAndStayWithTheCaller) {
  const auto refused = [](auto&& spoil) {
    Managed managed;
    spoil(managed);
    EXPECT_THROW(NDArray::from_dlpack(&managed.versioned), UserError);
    EXPECT_EQ(managed.deleted, 0);
  };
  refused([](Managed& m) { m.versioned.dl_tensor.ndim = -1; });
  refused([](Managed& m) { m.versioned.dl_tensor.ndim = std::numeric_limits<int32_t>::max(); });
  refused([](Managed& m) { m.versioned.dl_tensor.shape = nullptr; });
  refused([](Managed& m) { m.versioned.dl_tensor.data = nullptr; });
  refused([](Managed& m) { m.shape[0] = -3; });
  refused([](Managed& m) { m.shape = {int64_t{1} << 40, int64_t{1} << 40}; });
  refused([](Managed& m) { m.strides[0] = std::numeric_limits<int64_t>::min(); });
  refused([](Managed& m) { m.versioned.dl_tensor.dtype.lanes = 0; });
  refused([](Managed& m) { m.versioned.dl_tensor.dtype.bits = 0; });
  refused([](Managed& m) { m.versioned.dl_tensor.dtype = {kDLInt, 4, 1}; });
  refused([](Managed& m) { m.versioned.dl_tensor.device = {kDLCUDA, 0}; });
  refused([](Managed& m) { m.versioned.dl_tensor.byte_offset = ~uint64_t{0}; });
  refused([](Managed& m) { m.versioned.version.major = DLPACK_MAJOR_VERSION + 1; });
  EXPECT_THROW(NDArray::from_dlpack(static_cast<DLManagedTensor*>(nullptr)), UserError);
}

// Other owners of the memory may write to it: numpy, a consumer of DLPack, a kernel.
TEST(NDArray, TheHashFollowsTheElements) {
  Managed managed;
  const NDArray lent = NDArray::from_dlpack(&managed.versioned);
  const uint64_t before = structural_hash(lent);
  managed.data[5] = 7;
  EXPECT_NE(structural_hash(lent), before);
  EXPECT_EQ(structural_hash(lent), structural_hash(lent.copy()));
  const NDArray own = lent.copy();
  EXPECT_EQ(structural_hash(own), structural_hash(lent));
  own.data<float>()[0] = 1;
  EXPECT_EQ(structural_hash(own), structural_hash(own.copy()));
  EXPECT_FALSE(structural_equal(own, lent));
}

TEST(NDArray, AReadOnlyViewSharesTheMemory) {
  Managed managed;
  managed.shape = {4, 3};
  managed.strides = {1, 4};
  const NDArray turned = NDArray::from_dlpack(&managed.versioned);
  const NDArray view = turned.as_read_only();
  EXPECT_EQ(view.tensor().data, turned.tensor().data);
  EXPECT_TRUE(structural_equal(view, turned));
  EXPECT_EQ(view.object()->strides, turned.object()->strides);
  EXPECT_FALSE(turned.object()->read_only);
  EXPECT_TRUE(view.object()->read_only);
  EXPECT_EQ(view.as_read_only().object(), view.object());
  const NDArray dense = NDArray::zeros({2}, DataType::float_(32));
  EXPECT_THROW(dense.as_read_only().copy_from(dense.copy()), UserError);
}

TEST(NDArray, HowTwoDiffer) {
  const auto f32 = DataType::float_(32);
  const auto of = [](DataType dtype, const std::vector<double>& values) {
    const NDArray a = NDArray::empty({2, static_cast<int64_t>(values.size()) / 2}, dtype);
    for (size_t i = 0; i < values.size(); ++i) set_element(a.tensor(), static_cast<int64_t>(i), values[i]);
    return a;
  };
  EXPECT_EQ(of(f32, {1, 2, 3, 4}).difference(of(f32, {1, 2, 0.5, 5})), "element [1, 0] is 3 against 0.5");
  EXPECT_EQ(of(f32, {1, 0}).difference(of(f32, {1, -0.0})), "element [1, 0] is 0 against -0");
  EXPECT_EQ(of(DataType::bool_(), {1, 0}).difference(of(DataType::bool_(), {1, 1})), "element [1, 0] is 0 against 1");
  EXPECT_EQ(of(DataType::int_(8), {-1, 0}).difference(of(DataType::int_(8), {-2, 0})),
            "element [0, 0] is -1 against -2");
  EXPECT_EQ(of(f32, {1, 2}).difference(of(f32, {1, 2, 3, 4})), "shape (2, 1) against (2, 2)");
  EXPECT_EQ(of(f32, {1, 2}).difference(of(DataType::int_(32), {1, 2})), "dtype float32 against int32");
  const NDArray big = NDArray::from_vector<uint64_t>({}, DataType::uint(64), {~uint64_t{0}});
  EXPECT_EQ(big.difference(NDArray::zeros({}, DataType::uint(64))), "element [] is 18446744073709551615 against 0");
  const NDArray nan = NDArray::from_vector<uint32_t>({1}, f32, {0x7fc00000}),
                other = NDArray::from_vector<uint32_t>({1}, f32, {0x7fc00001});
  EXPECT_EQ(nan.difference(other), "element [0] is 0x7fc00000 against 0x7fc00001");
  const NDArray lanes = NDArray::zeros({2}, DataType::int_(8, 2)),
                changed = NDArray::from_vector<uint8_t>({2}, DataType::int_(8, 2), {0, 0, 1, 2});
  EXPECT_EQ(lanes.difference(changed), "element [1] is 0x0000 against 0x0201");
  const auto mismatch = first_mismatch(of(f32, {1, 2}), of(f32, {1, 3}));
  ASSERT_TRUE(mismatch.has_value());
  EXPECT_EQ(mismatch->reason, "values differ: element [1, 0] is 2 against 3");
}

TEST(NDArray, SizesThatDoNotFitAreErrors) {
  EXPECT_THROW(NDArray::empty({-1}, DataType::float_(32)), UserError);
  EXPECT_THROW(NDArray::empty({int64_t{1} << 50}, DataType::float_(32)), UserError);
  EXPECT_THROW(NDArray::empty({1}, DataType::float_(32), {kDLCUDA, 0}), UserError);
  EXPECT_EQ(NDArray::empty({int64_t{1} << 40, 0, int64_t{1} << 40}, DataType::float_(32)).size_bytes(), 0u);
  EXPECT_THROW(NDArray::from_bytes({2}, DataType::float_(32), {}), UserError);
  EXPECT_THROW(NDArray::zeros({2, 3}, DataType::float_(32)).reshaped({5}), UserError);
}

TEST(Element, RoundedOnceAndSaturated) {
  const auto through = [](DataType dtype, double value) {
    const NDArray a = NDArray::zeros({1}, dtype);
    set_element(a.tensor(), 0, value);
    return element_as_double(a.tensor(), 0);
  };
  // Just above the middle of 1 and the next half: rounding by way of a float would give 1.
  EXPECT_EQ(through(DataType::float_(16), 1.0 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40)),
            1.0 + std::ldexp(1.0, -10));
  EXPECT_EQ(through(DataType::bfloat16(), 1.0 + std::ldexp(1.0, -8) + std::ldexp(1.0, -40)), 1.0 + std::ldexp(1.0, -7));
  EXPECT_EQ(through(DataType::int_(8), 300.0), 127.0);
  EXPECT_EQ(through(DataType::int_(64), 1e30), std::ldexp(1.0, 63));
  EXPECT_EQ(through(DataType::int_(32), std::nan("")), 0.0);
  EXPECT_EQ(through(DataType::int_(32), -2.9), -2.0);
  EXPECT_EQ(through(DataType::int_(4), -100.0), -8.0);
  EXPECT_EQ(through(DataType::uint(4), 15.0), 15.0);
  EXPECT_EQ(through(DataType::int_(2), 1.9), 1.0);
  EXPECT_EQ(through(DataType::int_(2), -9.0), -2.0);
  EXPECT_EQ(through(DataType::uint(2), 9.0), 3.0);
  EXPECT_EQ(through(DataType::int_(4), std::nan("")), 0.0);
  EXPECT_EQ(through(DataType(DataType::kFloat8E4M3Fn, 8), 1e300), 448.0);
  EXPECT_EQ(through(DataType::bool_(), 0.5), 1.0);
  EXPECT_THROW(through(DataType::float_(32, 4), 1.0), UserError);
  EXPECT_THROW(through(DataType::handle(), 1.0), UserError);
}

TEST(Element, IntegersBelowAByteWrapAndAreExtended) {
  const NDArray a = NDArray::zeros({3}, DataType::int_(4));
  set_element_int(a.tensor(), 0, -1);
  set_element_int(a.tensor(), 1, 9);  // 1001 in bits
  a.data<uint8_t>()[2] = 0x3c;        // the low bits count of what others wrote
  EXPECT_EQ(a.data<uint8_t>()[0], 0xff);
  EXPECT_EQ(element_as_int(a.tensor(), 1), -7);
  EXPECT_EQ(element_as_int(a.tensor(), 2), -4);
  const NDArray b = NDArray::zeros({1}, DataType::uint(2));
  set_element_int(b.tensor(), 0, -1);
  EXPECT_EQ(b.data<uint8_t>()[0], 3);
}

TEST(Half, EveryBitPatternComesBack) {
  for (uint32_t i = 0; i <= 0xffff; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    const bool is_nan = (bits & 0x7c00) == 0x7c00 && (bits & 0x3ff) != 0;
    ASSERT_EQ(float_to_half(half_to_float(bits)), is_nan ? bits | 0x200 : bits) << bits;
    const bool is_bf_nan = (bits & 0x7f80) == 0x7f80 && (bits & 0x7f) != 0;
    ASSERT_EQ(float_to_bfloat16(bfloat16_to_float(bits)), is_bf_nan ? bits | 0x40 : bits) << bits;
  }
  EXPECT_EQ(half_to_float(0x3c00), 1.0f);
  EXPECT_EQ(half_to_float(0x0001), std::ldexp(1.0f, -24));
  EXPECT_EQ(float_to_half(65519.0f), 0x7bff);
  EXPECT_EQ(float_to_half(65520.0f), 0x7c00);
  EXPECT_EQ(float_to_half(std::ldexp(1.0f, -25)), 0);
  EXPECT_EQ(float_to_bfloat16(3.4028235e38f), 0x7f80);
}

TEST(DataTypeText, PrintsWhatItParses) {
  for (const char* name : {"float32",       "float64",
                           "float16",       "bfloat16",
                           "int64",         "int4",
                           "uint8",         "bool",
                           "handle",        "void",
                           "float32x8",     "int8x65535",
                           "int2",          "uint2",
                           "float8_e4m3fn", "float8_e4m3fnuz",
                           "float8_e5m2",   "float8_e5m2fnuz",
                           "float4_e2m1fn", "float8_e5m2fnuzx4"})
    EXPECT_EQ(DataType::parse(name).to_string(), name);
  EXPECT_EQ(DataType::parse("uint1"), DataType::bool_());
  EXPECT_EQ(DataType::parse("uint1x4"), DataType::bool_(4));
  EXPECT_EQ(DataType(DLDataType{kDLUInt, 1, 1}).to_string(), "bool");
  for (const char* bad :
       {"", "floats", "float32x", "float32x0", "float32x-1", "float32x70000", "x8", "voidx4", "int8x4x4"})
    EXPECT_THROW(DataType::parse(bad), UserError) << bad;
}

}  // namespace
}  // namespace headrace
