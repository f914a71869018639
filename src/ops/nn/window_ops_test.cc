// Convolutions, pools and matrix products.
#include "kit/errors.h"
#include "ops/nn/conv.h"
#include "ops/nn/matmul.h"
#include "ops/nn/pool.h"
#include "ops/tests/expected.h"
#include "ops/tests/op_testing.h"
#include "relay/infer/infer_type.h"

namespace headrace::ops::testing {
namespace {

using WindowOpsTest = OpTest;

Expr x() { return any_arg(); }

std::vector<NDArray> window_inputs(const Case& expected, DataType dtype) {
  std::vector<NDArray> args;
  for (const Tensor& input : expected.inputs) args.push_back(make_array(input.shape, input.data, dtype));
  return args;
}

// Attributes that `change` has edited.
template <typename A, typename F>
A with(F change) {
  A attrs;
  change(attrs);
  return attrs;
}

// The inputs are multiples of 1/8, so sums of products are exact in float32; quotients of means are rounded.
void expect_window(const Expr& call, const Case& expected, double tolerance = 0) {
  SCOPED_TRACE(call.as<relay::CallNode>()->as_op()->name);
  for (DataType dtype : {DataType::float_(64), DataType::float_(32)}) {
    expect_near(evaluate(call, window_inputs(expected, dtype))[0], expected.output.shape, expected.output.data,
                tolerance);
  }
}

TEST_F(WindowOpsTest, ConvolutionsAgreeWithOnnxruntime) {
  expect_window(conv2d(x(), x(), {}), kConv);
  Conv2DAttrs asymmetric;
  asymmetric.padding = {1, 0, 2, 1};
  asymmetric.strides = {2, 1};
  asymmetric.dilation = {1, 2};
  expect_window(conv2d(x(), x(), asymmetric), kConvAsymmetric);
  Conv2DAttrs groups;
  groups.groups = 2;
  groups.padding = {1};
  groups.strides = {2, 2};
  expect_window(conv2d(x(), x(), groups), kConvGroups);
  Conv2DAttrs depthwise;
  depthwise.groups = 4;
  depthwise.padding = {1, 1};
  expect_window(conv2d(x(), x(), depthwise), kConvDepthwise);
}

TEST_F(WindowOpsTest, TransposedConvolutionsAgreeWithOnnxruntime) {
  Conv2DTransposeAttrs attrs;
  attrs.strides = {2, 2};
  attrs.padding = {1, 1};
  attrs.output_padding = {1, 1};
  expect_window(conv2d_transpose(x(), x(), attrs), kConvTranspose);
  Conv2DTransposeAttrs groups;
  groups.groups = 2;
  groups.strides = {2, 1};
  groups.padding = {1, 0, 0, 1};
  groups.dilation = {1, 2};
  expect_window(conv2d_transpose(x(), x(), groups), kConvTransposeGroups);
}

// Its work is what lies in the data, not the taps: a window of 2^31 - 1 by as many ends, too.
TEST_F(WindowOpsTest, PoolsFarWiderThanTheData) {
  const NDArray data = make_array({1, 1, 2, 2}, {1, 2, 4, 8});
  const auto wide = [](auto& a) {
    a.pool_size = {INT32_MAX, INT32_MAX};
    a.padding = {INT32_MAX - 2};
    a.strides = {INT32_MAX - 2};
  };
  expect_near(evaluate(max_pool(x(), with<MaxPool2DAttrs>(wide)), {data})[0], {1, 1, 2, 2}, {8, 8, 8, 8}, 0);
  expect_near(evaluate(avg_pool(x(), with<AvgPool2DAttrs>(wide)), {data})[0], {1, 1, 2, 2}, {3.75, 3.75, 3.75, 3.75},
              0);
}

// Padding is zeros, and an infinite weight times zero is NaN: IEEE 754, and what native code computes.
TEST_F(WindowOpsTest, ConvolutionWithAnInfiniteWeight) {
  Conv2DAttrs attrs;
  attrs.padding = {0, 1};
  const NDArray data = make_array({1, 1, 1, 3}, {1, 2, 3}), weight = make_array({1, 1, 1, 3}, {INFINITY, 1, 1});
  expect_near(evaluate(conv2d(x(), x(), attrs), {data, weight})[0], {1, 1, 1, 3}, {NAN, INFINITY, INFINITY}, 0);
}

TEST_F(WindowOpsTest, ConvolutionsWithoutChannels) {
  const NDArray data = make_array({1, 1, 1, 3}, {1, 2, 3}), no_filters = make_array({0, 1, 1, 1}, {});
  EXPECT_EQ(evaluate(conv2d(x(), x(), Conv2DAttrs()), {data, no_filters})[0].shape(), (Shape{1, 0, 1, 3}));
  const NDArray no_data = make_array({1, 0, 1, 3}, {}), no_inputs = make_array({0, 2, 1, 1}, {});
  expect_near(evaluate(conv2d_transpose(x(), x(), Conv2DTransposeAttrs()), {no_data, no_inputs})[0], {1, 2, 1, 3},
              {0, 0, 0, 0, 0, 0}, 0);
}

// Results between the places that an infinite element is put at stay finite.
TEST_F(WindowOpsTest, TransposedConvolutionOfInfinity) {
  Conv2DTransposeAttrs attrs;
  attrs.strides = {1, 2};
  const NDArray data = make_array({1, 1, 1, 3}, {INFINITY, 1, 1}), weight = make_array({1, 1, 1, 1}, {1});
  expect_near(evaluate(conv2d_transpose(x(), x(), attrs), {data, weight})[0], {1, 1, 1, 5}, {INFINITY, 0, 1, 0, 1}, 0);
}

// dst[perm-th axes] of a 4-d array, by definition of a transpose.
NDArray transposed(const NDArray& src, const std::array<size_t, 4>& perm) {
  Shape shape(4);
  for (size_t i = 0; i < 4; ++i) shape[i] = src.shape()[perm[i]];
  const NDArray dst = NDArray::empty(shape, src.dtype());
  int64_t at = 0;
  Shape d(4);
  for (d[0] = 0; d[0] < shape[0]; ++d[0])
    for (d[1] = 0; d[1] < shape[1]; ++d[1])
      for (d[2] = 0; d[2] < shape[2]; ++d[2])
        for (d[3] = 0; d[3] < shape[3]; ++d[3]) {
          Shape s(4);
          for (size_t i = 0; i < 4; ++i) s[perm[i]] = d[i];
          const Shape& n = src.shape();
          const int64_t from = ((s[0] * n[1] + s[1]) * n[2] + s[2]) * n[3] + s[3];
          set_element(dst.tensor(), at++, element_as_double(src.tensor(), from));
        }
  return dst;
}

TEST_F(WindowOpsTest, LayoutsReorderOnly) {
  Conv2DAttrs attrs;
  attrs.data_layout = "NHWC";
  attrs.kernel_layout = "HWIO";
  const auto args = window_inputs(kConv, DataType::float_(32));
  const NDArray out =
      evaluate(conv2d(x(), x(), attrs), {transposed(args[0], {0, 2, 3, 1}), transposed(args[1], {2, 3, 1, 0})})[0];
  expect_near(transposed(out, {0, 3, 1, 2}), kConv.output.shape, kConv.output.data, 0);
  MaxPool2DAttrs pool;
  pool.pool_size = {2, 2};
  pool.dilation = {2, 3};
  pool.layout = "NHWC";
  pool.out_layout = "NCHW";
  const NDArray data = window_inputs(kMaxPoolDilated, DataType::float_(32))[0];
  expect_near(evaluate(max_pool(x(), pool), {transposed(data, {0, 2, 3, 1})})[0], kMaxPoolDilated.output.shape,
              kMaxPoolDilated.output.data, 0);
}

TEST_F(WindowOpsTest, IntegersAccumulateInTheOutputsDtype) {
  Conv2DAttrs attrs;
  attrs.out_dtype = DataType::int_(32);
  const NDArray data = make_array({1, 2, 1, 1}, {100, 120}, DataType::int_(8));
  const NDArray weight = make_array({1, 2, 1, 1}, {100, -120}, DataType::int_(8));
  const NDArray out = evaluate(conv2d(x(), x(), attrs), {data, weight})[0];
  EXPECT_EQ(out.dtype(), DataType::int_(32));
  EXPECT_EQ(to_doubles(out), (std::vector<double>{10000 - 14400}));
}

TEST_F(WindowOpsTest, ConvolutionTypes) {
  const PrimExpr n = make_prim_var("n"), h = make_prim_var("h");
  const Type data = tensor({n, make_int(4), h, make_int(9)}), weight = tensor(Shape{8, 4, 3, 3});
  Conv2DAttrs same;
  same.padding = {1, 1};
  EXPECT_EQ(relate_text(conv2d(x(), x(), same), {data, weight}), "Tensor[(n, 8, h, 9), float32]");
  Conv2DAttrs half = same;
  half.strides = {2, 2};
  const Type halved = relate(conv2d(x(), x(), half), {data, weight});
  ASSERT_TRUE(halved.is<TensorTypeNode>());
  const PrimExpr rows = halved.as<TensorTypeNode>()->shape[2];
  const auto* symbol = h.as<PrimVarNode>();
  EXPECT_EQ(as_int(substitute(rows, {{symbol, make_int(9)}})), 5);
  EXPECT_EQ(as_int(substitute(rows, {{symbol, make_int(10)}})), 5);
  EXPECT_EQ(relate_text(conv2d(x(), x(), same), {data, make_incomplete_type()}), "unknown");
  Conv2DTransposeAttrs twice;
  twice.strides = {2, 2};
  EXPECT_EQ(relate_text(conv2d_transpose(x(), x(), twice),
                        {tensor({n, make_int(4), h, make_int(3)}), tensor(Shape{4, 6, 2, 2})}),
            "Tensor[(n, 6, h * 2, 6), float32]");
}

// Symbols stay: axes that the op joins are split again.
TEST_F(WindowOpsTest, PackedTypes) {
  const PrimExpr n = make_prim_var("n"), c = make_prim_var("c"), h = make_prim_var("h"), block = make_int(16);
  Conv2DAttrs conv;
  conv.padding = {1, 1};
  conv.data_layout = "NCHW16c";
  conv.kernel_layout = "OIHW16i16o";
  const Type data = tensor({n, make_int(2), h, make_int(9), block}), weight = tensor(Shape{3, 2, 3, 3, 16, 16});
  EXPECT_EQ(relate_text(conv2d(x(), x(), conv), {data, weight}), "Tensor[(n, 3, h, 9, 16), float32]");
  conv.out_layout = "NCHW";
  EXPECT_EQ(relate_text(conv2d(x(), x(), conv), {data, weight}), "Tensor[(n, 48, h, 9), float32]");
  const Type open = tensor({n, c, make_int(8), make_int(8), block});
  const MaxPool2DAttrs pool = with<MaxPool2DAttrs>([](auto& a) {
    a.pool_size = Shape{2};
    a.strides = Shape{2};
    a.layout = "NCHW16c";
  });
  EXPECT_EQ(relate_text(max_pool(x(), pool), {open}), "Tensor[(n, c, 4, 4, 16), float32]");
  EXPECT_EQ(relate_text(global_avg_pool2d(x(), "NCHW16c"), {open}), "Tensor[(n, c, 1, 1, 16), float32]");
  conv.out_layout = "";
  conv.channels = 48;
  conv.kernel_size = Shape{3, 3};
  const auto assumed = [&](const std::string& layout) {
    conv.kernel_layout = layout;
    const relay::Var p = relay::make_var("p", data), w = relay::make_var("w");
    const Expr f = relay::infer_type(relay::make_function({p, w}, conv2d(p, w, conv)));
    return to_string(f.as<relay::FunctionNode>()->params[1]->checked_type());
  };
  EXPECT_EQ(assumed("OIHW16i16o"), "Tensor[(3, 2, 3, 3, 16, 16), float32]");
  EXPECT_THAT(kit::user_error_of([&] { assumed("OIHW16i9o"); }),
              ::testing::HasSubstr("the axis O of 48 elements does not split into parts of 9"));
  MaxPool2DAttrs wide = pool;
  wide.layout = "NCHW2147483647c";
  const Type huge = tensor({n, make_int(int64_t{1} << 40), make_int(8), make_int(8), make_int(2147483647)});
  EXPECT_THAT(relate_error(max_pool(x(), wide), {huge}), ::testing::HasSubstr("past any size"));
}

TEST_F(WindowOpsTest, WrongConvolutionsAreNamed) {
  const Type data = tensor(Shape{1, 4, 5, 5}), weight = tensor(Shape{8, 4, 3, 3});
  auto error = [&](auto change, Type d, Type w) {
    Conv2DAttrs attrs;
    change(attrs);
    return relate_error(conv2d(x(), x(), attrs), {d, w});
  };
  auto none = [](Conv2DAttrs&) {};
  using ::testing::HasSubstr;
  EXPECT_THAT(error(none, tensor(Shape{4, 5, 5}), weight), HasSubstr("nn.conv2d: data must have 4 dimensions (NCHW)"));
  EXPECT_THAT(error(none, data, tensor(Shape{8, 3, 3, 3})), HasSubstr("weight must have 4 input channels, got 3"));
  EXPECT_THAT(error(none, data, tensor(Shape{8, 4, 7, 3})), HasSubstr("spatial axis 0 has 5 with 0 of padding"));
  EXPECT_THAT(error(none, data, tensor(Shape{8, 4, 0, 3})), HasSubstr("the kernel's size must be at least 1"));
  EXPECT_THAT(error(none, data, tensor(Shape{8, 4, 3, 3}, DataType::float_(16))),
              HasSubstr("weight must have dtype float32"));
  EXPECT_THAT(error([](auto& a) { a.strides = {0, 1}; }, data, weight), HasSubstr("strides must be at least 1"));
  EXPECT_THAT(error([](auto& a) { a.strides = {1, 1, 1}; }, data, weight), HasSubstr("strides must have 2 values"));
  EXPECT_THAT(error([](auto& a) { a.padding = {1, 1, 1}; }, data, weight),
              HasSubstr("padding must have 1, 2 or 4 values"));
  EXPECT_THAT(error([](auto& a) { a.padding = {}; }, data, weight), HasSubstr("padding must have 1, 2 or 4 values"));
  EXPECT_THAT(error([](auto& a) { a.padding = {-1, 0}; }, data, weight), HasSubstr("padding must be at least 0"));
  EXPECT_THAT(error([](auto& a) { a.dilation = {1, int64_t{1} << 40}; }, data, weight), HasSubstr("below 2^31"));
  EXPECT_THAT(error([](auto& a) { a.groups = 0; }, data, weight), HasSubstr("groups must be at least 1"));
  EXPECT_THAT(error([](auto& a) { a.groups = 3; }, data, weight),
              HasSubstr("input channels (4) must be a multiple of groups (3)"));
  EXPECT_THAT(error([](auto& a) { a.channels = 9; }, data, weight), HasSubstr("channels is 9, but the weight gives 8"));
  EXPECT_THAT(error([](auto& a) { a.kernel_size = Shape{5, 5}; }, data, weight),
              HasSubstr("kernel_size (5, 5) does not agree"));
  EXPECT_THAT(error([](auto& a) { a.data_layout = "NCWX"; }, data, weight),
              HasSubstr("data_layout must be an order of the letters NCHW"));
  EXPECT_THAT(error([](auto& a) { a.out_dtype = DataType::int_(32); }, data, weight), HasSubstr("must both be floats"));
  const auto int8 = [](const Shape& shape) { return Type(make_tensor_type(shape, DataType::int_(8))); };
  for (const DataType dtype : {DataType::bool_(), DataType::float_(32)}) {
    EXPECT_THAT(error([&](auto& a) { a.out_dtype = dtype; }, int8({1, 4, 9, 9}), int8({8, 4, 3, 3})),
                HasSubstr("must both be floats or both integers"));
    DenseAttrs dense_attrs;
    dense_attrs.out_dtype = dtype;
    EXPECT_THAT(relate_error(dense(x(), x(), dense_attrs), {int8({2, 3}), int8({5, 3})}),
                HasSubstr("must both be floats or both integers"));
  }
  Conv2DTransposeAttrs transpose;
  transpose.out_dtype = DataType::bool_();
  EXPECT_THAT(relate_error(conv2d_transpose(x(), x(), transpose), {int8({1, 4, 9, 9}), int8({4, 8, 3, 3})}),
              HasSubstr("must both be floats or both integers"));
  transpose.out_dtype = {};
  transpose.output_padding = {-1, 0};
  EXPECT_THAT(relate_error(conv2d_transpose(x(), x(), transpose), {data, tensor(Shape{4, 8, 3, 3})}),
              HasSubstr("output_padding"));
}

// Batches and channels may be symbols; the kernel size follows from the other sizes where only one fits.
TEST_F(WindowOpsTest, TheWeightsGradientFindsTheKernelsSize) {
  using ::testing::HasSubstr;
  const PrimExpr n = make_prim_var("n"), h = make_prim_var("h");
  const auto of = [](const PrimExpr& batch, int64_t channels, const PrimExpr& height, int64_t width) {
    return tensor({batch, make_int(channels), height, make_int(width)});
  };
  Conv2DBackwardWeightAttrs attrs;
  attrs.padding = {1, 0};
  attrs.dilation = {2, 3};
  attrs.strides = {1, 2};
  const Expr call = conv2d_backward_weight(x(), x(), attrs);
  // Along H (4 + 2 - 3) / 2 + 1 taps, along W those whose reach is 6 or 7.
  EXPECT_EQ(relate_text(call, {of(n, 8, make_int(2), 3), of(n, 4, make_int(4), 11)}), "Tensor[(8, 4, 3, 3), float32]");
  EXPECT_EQ(relate_error(call, {of(n, 8, h, 3), of(n, 4, h, 11)}),
            "nn.conv2d_backward_weight: kernel_size must be given: the sizes of grad and data along H do not tell it");
  EXPECT_THAT(relate_error(call, {of(n, 8, make_int(7), 3), of(n, 4, make_int(4), 11)}),
              HasSubstr("no kernel_size gives grad's 7 elements along H, where data has 4"));
  EXPECT_THAT(relate_error(call, {of(n, 8, make_int(0), 3), of(n, 4, make_int(4), 11)}),
              HasSubstr("no kernel_size gives grad's 0 elements along H"));
  const int64_t most = int64_t{1} << 47;
  EXPECT_THAT(relate_error(call, {of(n, 8, make_int(2), most), of(n, 4, make_int(4), most)}),
              HasSubstr("no kernel_size gives grad's 140737488355328 elements along W"));
}

TEST_F(WindowOpsTest, ProductsAgreeWithNumpy) {
  expect_window(dense(x(), x()), kDense);
  MatmulAttrs attrs;
  attrs.transpose_a = true;
  expect_window(matmul(x(), x(), attrs), kMatmulTransposeA);
  expect_window(batch_matmul(x(), x()), kBatchMatmul);
  const NDArray vector = make_array({2}, {1, 2}), matrix = make_array({3, 2}, {1, 0, 0, 1, 1, 1});
  expect_near(evaluate(dense(x(), x()), {vector, matrix})[0], {3}, {1, 2, 3}, 0);
}

TEST_F(WindowOpsTest, ProductTypes) {
  const PrimExpr n = make_prim_var("n"), k = make_prim_var("k");
  EXPECT_EQ(relate_text(dense(x(), x()), {tensor({n, k}), tensor({make_int(10), k})}), "Tensor[(n, 10), float32]");
  EXPECT_EQ(relate_text(batch_matmul(x(), x()), {tensor({n, make_int(2), k}), tensor({make_int(1), make_int(5), k})}),
            "Tensor[(n, 2, 5), float32]");
  using ::testing::HasSubstr;
  EXPECT_THAT(relate_error(dense(x(), x()), {tensor(Shape{2, 3}), tensor(Shape{5, 4})}),
              HasSubstr("nn.dense: the summed dimensions 3 and 4 differ"));
  DenseAttrs units;
  units.units = 6;
  EXPECT_THAT(relate_error(dense(x(), x(), units), {tensor(Shape{2, 3}), tensor(Shape{5, 3})}),
              HasSubstr("units is 6"));
  EXPECT_THAT(relate_error(dense(x(), x()), {tensor(Shape{}), tensor(Shape{5, 3})}), HasSubstr("1 or more dimensions"));
  EXPECT_THAT(relate_error(matmul(x(), x()), {tensor(Shape{2, 3}), tensor(Shape{3})}), HasSubstr("must be a matrix"));
  EXPECT_THAT(relate_error(batch_matmul(x(), x()), {tensor(Shape{2, 3, 4}), tensor(Shape{3, 5, 4})}),
              HasSubstr("batch sizes must agree or be 1: axis 0 is 2 and 3"));
}

TEST_F(WindowOpsTest, PoolsAgreeWithOnnxruntime) {
  MaxPool2DAttrs max = with<MaxPool2DAttrs>([](auto& a) {
    a.pool_size = Shape{3, 2};
    a.strides = Shape{2, 1};
    a.padding = Shape{1, 0, 0, 1};
  });
  expect_window(max_pool(x(), max), kMaxPool);
  expect_window(max_pool(x(), with<MaxPool2DAttrs>([](auto& a) {
                           a.pool_size = Shape{2, 2};
                           a.dilation = Shape{2, 3};
                         })),
                kMaxPoolDilated);
  expect_window(max_pool(x(), with<MaxPool2DAttrs>([](auto& a) {
                           a.pool_size = Shape{3, 3};
                           a.strides = Shape{2, 2};
                           a.ceil_mode = true;
                         })),
                kMaxPoolCeil);
  expect_window(max_pool(x(), with<MaxPool1DAttrs>([](auto& a) {
                           a.pool_size = Shape{3};
                           a.strides = Shape{2};
                         })),
                kMaxPool1D);
  AvgPool2DAttrs avg = with<AvgPool2DAttrs>([](auto& a) {
    a.pool_size = Shape{3, 3};
    a.strides = Shape{2, 2};
    a.padding = Shape{1, 1};
  });
  expect_window(avg_pool(x(), avg), kAvgPool, 1e-6);
  avg.count_include_pad = true;
  expect_window(avg_pool(x(), avg), kAvgPoolCountPad, 1e-6);
  expect_window(avg_pool(x(), with<AvgPool2DAttrs>([](auto& a) {
                           a.pool_size = Shape{2, 2};
                           a.strides = Shape{2, 2};
                           a.ceil_mode = true;
                         })),
                kAvgPoolCeil, 1e-6);
  expect_window(avg_pool(x(), with<AvgPool3DAttrs>([](auto& a) {
                           a.pool_size = Shape{2, 2, 2};
                           a.strides = Shape{2, 1, 2};
                         })),
                kAvgPool3D, 1e-6);
  expect_window(global_avg_pool2d(x()), kGlobalAvg, 1e-6);
  expect_window(global_max_pool2d(x()), kGlobalMax);
}

// As torch.nn.MaxPool2d(3, 2, ceil_mode=True) on 2 elements: one window, which reaches past the end.
TEST_F(WindowOpsTest, ACeilWindowMayBeLargerThanTheData) {
  const auto pool = [](bool ceil_mode) {
    return max_pool(x(), with<MaxPool1DAttrs>([&](auto& a) {
                      a.pool_size = Shape{3};
                      a.strides = Shape{2};
                      a.ceil_mode = ceil_mode;
                    }));
  };
  expect_near(evaluate(pool(true), {make_array({1, 1, 2}, {4, 5})}).at(0), {1, 1, 1}, {5}, 0);
  EXPECT_THAT(relate_error(pool(false), {tensor(Shape{1, 1, 2})}), ::testing::HasSubstr("reaches over 3"));
  EXPECT_THAT(relate_error(pool(true), {tensor(Shape{1, 1, 1})}), ::testing::HasSubstr("reaches over 3"));
}

TEST_F(WindowOpsTest, PoolTypes) {
  using ::testing::HasSubstr;
  const PrimExpr n = make_prim_var("n");
  const Type data = tensor({n, make_int(3), make_int(8), make_int(8)});
  EXPECT_EQ(relate_text(max_pool(x(), with<MaxPool2DAttrs>([](auto& a) {
                                   a.pool_size = Shape{2};
                                   a.strides = Shape{2};
                                 })),
                        {data}),
            "Tensor[(n, 3, 4, 4), float32]");
  // In ceil mode the window that would start in the trailing padding is not there: 3 + 1 elements, stride 3.
  EXPECT_EQ(relate_text(max_pool(x(), with<MaxPool1DAttrs>([](auto& a) {
                                   a.pool_size = Shape{1};
                                   a.strides = Shape{3};
                                   a.padding = Shape{0, 1};
                                   a.ceil_mode = true;
                                 })),
                        {tensor(Shape{1, 1, 3})}),
            "Tensor[(1, 1, 1), float32]");
  EXPECT_EQ(relate_text(global_avg_pool2d(x(), "NHWC"), {data}), "Tensor[(n, 1, 1, 8), float32]");
  EXPECT_THAT(relate_error(max_pool(x(), with<MaxPool2DAttrs>([](auto& a) { a.pool_size = Shape{9, 9}; })), {data}),
              HasSubstr("spatial axis 0 has 8"));
  EXPECT_THAT(relate_error(max_pool(x(), with<MaxPool2DAttrs>([](auto& a) { a.pool_size = Shape{0, 1}; })), {data}),
              HasSubstr("pool_size must be at least 1"));
  EXPECT_THAT(relate_error(max_pool(x(), with<MaxPool2DAttrs>([](auto& a) { a.pool_size = Shape{}; })), {data}),
              HasSubstr("pool_size must have 2 values"));
  EXPECT_THAT(relate_error(max_pool(x(), with<MaxPool3DAttrs>([](auto& a) { a.pool_size = Shape{1}; })), {data}),
              HasSubstr("data must have 5 dimensions (NCDHW)"));
  EXPECT_THAT(relate_error(avg_pool(x(), with<AvgPool2DAttrs>([](auto& a) {
                                      a.pool_size = Shape{1, 1};
                                      a.layout = "NCH";
                                    })),
                           {data}),
              HasSubstr("layout must be an order"));
  EXPECT_THAT(relate_error(global_max_pool2d(x()), {tensor(Shape{1, 2, 0, 3})}), HasSubstr("is empty"));
}

}  // namespace
}  // namespace headrace::ops::testing
