// Types of op calls: known, symbolic and unknown dimensions, values that decide shapes, and what an op refuses.
#include "relay/infer/tests/cases.h"

namespace headrace::relay {
namespace {

constexpr InferCase kTypedOp[] = {
    // broadcasting
    {"def @main(%x: Tensor[(2, 1, 4), float32], %y: Tensor[(3, 1), float32]) { add(%x, %y) }",
     "fn (Tensor[(2, 1, 4), float32], Tensor[(3, 1), float32]) -> Tensor[(2, 3, 4), float32]"},
    {"def @main(%x: Tensor[(n, 4), float32], %y: Tensor[(4), float32]) { multiply(%x, %y) }",
     "fn (Tensor[(n, 4), float32], Tensor[(4), float32]) -> Tensor[(n, 4), float32]"},
    {"def @main(%x: Tensor[(n), float32], %y: Tensor[(1), float32]) { subtract(%x, %y) }",
     "fn (Tensor[(n), float32], Tensor[(1), float32]) -> Tensor[(n), float32]"},
    {"def @main(%x: Tensor[(n, m), float32], %y: Tensor[(n, m), float32]) { divide(%x, %y) }",
     "fn (Tensor[(n, m), float32], Tensor[(n, m), float32]) -> Tensor[(n, m), float32]"},
    {"def @main(%x: Tensor[(?), float32], %y: Tensor[(4), float32]) { maximum(%x, %y) }",
     "fn (Tensor[(?), float32], Tensor[(4), float32]) -> Tensor[(4), float32]"},
    {"def @main(%x: Tensor[(3), int64], %y: Tensor[(3), int64]) { less(%x, %y) }",
     "fn (Tensor[(3), int64], Tensor[(3), int64]) -> Tensor[(3), bool]"},
    {"def @main(%x: Tensor[(0, 3), float32], %y: Tensor[(1, 3), float32]) { add(%x, %y) }",
     "fn (Tensor[(0, 3), float32], Tensor[(1, 3), float32]) -> Tensor[(0, 3), float32]"},
    {"def @main(%c: Tensor[(2, 1), bool], %x: Tensor[(3), float32], %y: float32) { where(%c, %x, %y) }",
     "fn (Tensor[(2, 1), bool], Tensor[(3), float32], float32) -> Tensor[(2, 3), float32]"},
    // elementwise
    {"def @main(%x: Tensor[(n, 3), float16]) { exp(%x) }", "fn (Tensor[(n, 3), float16]) -> Tensor[(n, 3), float16]"},
    {"def @main(%x: Tensor[(2), int8]) { cast(%x, dtype=\"float32\") }",
     "fn (Tensor[(2), int8]) -> Tensor[(2), float32]"},
    {"def @main(%x: Tensor[(2), float32]) { clip(%x, a_min=0f, a_max=6f) }",
     "fn (Tensor[(2), float32]) -> Tensor[(2), float32]"},
    {"def @main(%x: Tensor[(n), bool]) { logical_not(%x) }", "fn (Tensor[(n), bool]) -> Tensor[(n), bool]"},
    {"def @main(%x: Tensor[(5, ?), float32]) { shape_of(%x) }", "fn (Tensor[(5, ?), float32]) -> Tensor[(2), int64]"},
    // shapes
    {"def @main(%x: Tensor[(2, 3, 4), float32]) { reshape(%x, newshape=[-1, 4]) }",
     "fn (Tensor[(2, 3, 4), float32]) -> Tensor[(6, 4), float32]"},
    {"def @main(%x: Tensor[(n, 6), float32]) { reshape(%x, newshape=[0, 2, 3]) }",
     "fn (Tensor[(n, 6), float32]) -> Tensor[(n, 2, 3), float32]"},
    {"def @main(%x: Tensor[(n, 6), float32]) { reshape(%x, newshape=[-1, 3]) }",
     "fn (Tensor[(n, 6), float32]) -> Tensor[(n * 2, 3), float32]"},
    {"def @main(%x: Tensor[(2, n, 4), float32]) { reshape(%x, newshape=[-3, 0]) }",
     "fn (Tensor[(2, n, 4), float32]) -> Tensor[(n * 2, 4), float32]"},
    {"def @main(%x: Tensor[(2, 3, 4), float32]) { reshape(%x, newshape=[-2]) }",
     "fn (Tensor[(2, 3, 4), float32]) -> Tensor[(2, 3, 4), float32]"},
    {"def @main(%x: Tensor[(6, 4), float32]) { reshape(%x, newshape=[-4, 2, -1, -2]) }",
     "fn (Tensor[(6, 4), float32]) -> Tensor[(2, 3, 4), float32]"},
    {"def @main(%x: Tensor[(n, m), float32]) { nn.batch_flatten(%x) }",
     "fn (Tensor[(n, m), float32]) -> Tensor[(n, m), float32]"},
    {"def @main(%x: Tensor[(n, 2, m), float32]) { nn.batch_flatten(%x) }",
     "fn (Tensor[(n, 2, m), float32]) -> Tensor[(n, m * 2), float32]"},
    {"def @main(%x: Tensor[(2, n, 4), float32]) { transpose(%x) }",
     "fn (Tensor[(2, n, 4), float32]) -> Tensor[(4, n, 2), float32]"},
    {"def @main(%x: Tensor[(2, n, 4), float32]) { transpose(%x, axes=[1, -1, 0]) }",
     "fn (Tensor[(2, n, 4), float32]) -> Tensor[(n, 4, 2), float32]"},
    {"def @main(%x: Tensor[(1, n, 1), float32]) { squeeze(%x, axis=[0, -1]) }",
     "fn (Tensor[(1, n, 1), float32]) -> Tensor[(n), float32]"},
    {"def @main(%x: Tensor[(n), float32]) { expand_dims(%x, axis=-1, num_newaxis=2) }",
     "fn (Tensor[(n), float32]) -> Tensor[(n, 1, 1), float32]"},
    {"def @main(%x: Tensor[(n, 2), float32], %y: Tensor[(3, 2), float32]) { concatenate((%x, %y)) }",
     "fn (Tensor[(n, 2), float32], Tensor[(3, 2), float32]) -> Tensor[(n + 3, 2), float32]"},
    {"def @main(%x: Tensor[(2, n), float32], %y: Tensor[(2, n), float32]) { concatenate((%x, %y), axis=-1) }",
     "fn (Tensor[(2, n), float32], Tensor[(2, n), float32]) -> Tensor[(2, n * 2), float32]"},
    {"def @main(%x: Tensor[(2, 6), float32]) { split(%x, indices_or_sections=3, axis=1) }",
     "fn (Tensor[(2, 6), float32]) -> (Tensor[(2, 2), float32], Tensor[(2, 2), float32], Tensor[(2, 2), float32])"},
    {"def @main(%x: Tensor[(7), float32]) { split(%x, indices_or_sections=[2, 3]) }",
     "fn (Tensor[(7), float32]) -> (Tensor[(2), float32], Tensor[(1), float32], Tensor[(4), float32])"},
    {"def @main(%x: Tensor[(10, 4), float32]) { strided_slice(%x, begin=[1], end=[8], strides=[3]) }",
     "fn (Tensor[(10, 4), float32]) -> Tensor[(3, 4), float32]"},
    {"def @main(%x: Tensor[(10), float32]) { strided_slice(%x, begin=[-1], end=[-11], strides=[-1]) }",
     "fn (Tensor[(10), float32]) -> Tensor[(10), float32]"},
    {"def @main(%x: Tensor[(2, n), float32]) { tile(%x, reps=[3, 2]) }",
     "fn (Tensor[(2, n), float32]) -> Tensor[(6, n * 2), float32]"},
    {"def @main(%x: Tensor[(1, 3), float32]) { broadcast_to(%x, shape=[5, 2, 3]) }",
     "fn (Tensor[(1, 3), float32]) -> Tensor[(5, 2, 3), float32]"},
    {"def @main(%x: Tensor[(4, 5), float32], %i: Tensor[(2, 3), int64]) { take(%x, %i, axis=1) }",
     "fn (Tensor[(4, 5), float32], Tensor[(2, 3), int64]) -> Tensor[(4, 2, 3), float32]"},
    {"def @main(%x: Tensor[(n, 5), float32]) { nn.pad(%x, 0f, pad_width=[[1, 2], [0, 0]]) }",
     "fn (Tensor[(n, 5), float32]) -> Tensor[(n + 3, 5), float32]"},
    // reductions
    {"def @main(%x: Tensor[(2, n, 4), float32]) { sum(%x) }", "fn (Tensor[(2, n, 4), float32]) -> float32"},
    {"def @main(%x: Tensor[(2, n, 4), float32]) { mean(%x, axis=[-1, 0], keepdims=True) }",
     "fn (Tensor[(2, n, 4), float32]) -> Tensor[(1, n, 1), float32]"},
    {"def @main(%x: Tensor[(2, n, 4), float32]) { max(%x, axis=[1], exclude=True) }",
     "fn (Tensor[(2, n, 4), float32]) -> Tensor[(n), float32]"},
    {"def @main(%x: Tensor[(2, 3), float32]) { argmax(%x, axis=[1]) }",
     "fn (Tensor[(2, 3), float32]) -> Tensor[(2), int64]"},
    {"def @main(%x: Tensor[(n, 10), float32]) { nn.softmax(%x) }",
     "fn (Tensor[(n, 10), float32]) -> Tensor[(n, 10), float32]"},
    // layers
    {"def @main(%x: Tensor[(n, 3, 32, 32), float32], %w: Tensor[(8, 3, 3, 3), float32]) { nn.conv2d(%x, %w, "
     "strides=[2, 2], "
     "padding=[1, 1]) }",
     "fn (Tensor[(n, 3, 32, 32), float32], Tensor[(8, 3, 3, 3), float32]) -> Tensor[(n, 8, 16, 16), float32]"},
    {"def @main(%x: Tensor[(1, 4, 9, 9), float32], %w: Tensor[(4, 1, 3, 3), float32]) { nn.conv2d(%x, %w, groups=4, "
     "dilation=[2, 2]) }",
     "fn (Tensor[(1, 4, 9, 9), float32], Tensor[(4, 1, 3, 3), float32]) -> Tensor[(1, 4, 5, 5), float32]"},
    {"def @main(%x: Tensor[(n, 3, 8, 8), float32]) { nn.max_pool2d(%x, pool_size=[3, 3], strides=[2, 2], "
     "ceil_mode=True) }",
     "fn (Tensor[(n, 3, 8, 8), float32]) -> Tensor[(n, 3, 4, 4), float32]"},
    {"def @main(%x: Tensor[(n, 3, 8, 6), float32]) { nn.global_avg_pool2d(%x) }",
     "fn (Tensor[(n, 3, 8, 6), float32]) -> Tensor[(n, 3, 1, 1), float32]"},
    {"def @main(%x: Tensor[(n, 7), float32], %w: Tensor[(5, 7), float32]) { nn.dense(%x, %w) }",
     "fn (Tensor[(n, 7), float32], Tensor[(5, 7), float32]) -> Tensor[(n, 5), float32]"},
    {"def @main(%x: Tensor[(2, n), float32], %w: Tensor[(5, m), float32]) { nn.dense(%x, %w) }",
     "fn (Tensor[(2, n), float32], Tensor[(5, m), float32]) -> Tensor[(2, 5), float32]"},
    {"def @main(%x: Tensor[(b, n, k), float32], %y: Tensor[(b, m, k), float32]) { nn.batch_matmul(%x, %y) }",
     "fn (Tensor[(b, n, k), float32], Tensor[(b, m, k), float32]) -> Tensor[(b, n, m), float32]"},
    {"def @main(%x: Tensor[(1, 3, 4, 4), float32]) { image.resize2d(%x, size=[9, 7]) }",
     "fn (Tensor[(1, 3, 4, 4), float32]) -> Tensor[(1, 3, 9, 7), float32]"},
    // values that decide shapes
    {"def @main(%x: Tensor[(n, 4), float32]) { reshape(%x, shape_of(%x)) }",
     "fn (Tensor[(n, 4), float32]) -> Tensor[(n, 4), float32]"},
    {"def @main(%x: Tensor[(n, 4), float32], %y: Tensor[(m), float32]) { let %s = shape_of(%x, dtype=\"int64\"); "
     "broadcast_to(%y, concatenate((take(%s, const(Tensor[(1), int64], [0]), axis=0), shape_of(%y, dtype=\"int64\")))) "
     "}",
     "fn (Tensor[(n, 4), float32], Tensor[(m), float32]) -> Tensor[(n, m), float32]"},
    {"def @main() { arange(0, 10, 3, dtype=\"int32\") }", "fn () -> Tensor[(4), int32]"},
    {"def @main(%s: Tensor[(3), int64]) { zeros(%s, dtype=\"float32\") }",
     "fn (Tensor[(3), int64]) -> Tensor[(?, ?, ?), float32]"},
};

constexpr InferCase kRefusedOp[] = {
    {"def @main(%x: Tensor[(2), float32], %y: Tensor[(3), float32]) { add(%x, %y) }", "cannot be broadcast"},
    {"def @main(%x: Tensor[(2), float32], %y: Tensor[(2), int32]) { add(%x, %y) }", "cast one of them"},
    {"def @main(%x: Tensor[(2), float32]) { add(%x) }", "it takes 2 arguments (lhs, rhs), got 1"},
    {"def @main(%x: (float32, float32)) { exp(%x) }", "must be a tensor"},
    {"def @main(%x: Tensor[(2), int32]) { exp(%x) }", "data must be floating point, got Tensor[(2), int32]"},
    {"def @main(%x: Tensor[(2), float32]) { logical_not(%x) }", "data must be bool"},
    {"def @main(%c: float32, %x: float32) { where(%c, %x, %x) }", "condition must be bool"},
    {"def @main(%x: Tensor[(2, 3), float32]) { reshape(%x, newshape=[4, 2]) }", "cannot be reshaped to"},
    {"def @main(%x: Tensor[(2, 3), float32]) { reshape(%x, newshape=[-1, -1]) }", "only one size may be -1"},
    {"def @main(%x: Tensor[(2, 3), float32]) { transpose(%x, axes=[0, 0]) }", "names axis 0 twice"},
    {"def @main(%x: Tensor[(2, 3), float32]) { transpose(%x, axes=[0, 1, 2]) }", "3 entries for a tensor of 2"},
    {"def @main(%x: Tensor[(2, 3), float32]) { squeeze(%x, axis=[0]) }", "has size 2, expected 1"},
    {"def @main(%x: Tensor[(2, 3), float32]) { expand_dims(%x, axis=4) }", "axis 4 is out of range"},
    {"def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(2, 4), float32]) { concatenate((%x, %y)) }",
     "axis 1 of item 1 is 4 and of item 0 is 3"},
    {"def @main(%x: float32) { concatenate((%x, %x)) }", "use stack"},
    {"def @main(%x: Tensor[(7), float32]) { split(%x, indices_or_sections=2) }", "cannot be split into 2 equal parts"},
    {"def @main(%x: Tensor[(2, 3), float32]) { sum(%x, axis=[2]) }", "axis 2 is out of range"},
    {"def @main(%x: Tensor[(2, 3), float32]) { sum(%x, axis=[0, -2]) }", "axis -2 is named twice"},
    {"def @main(%x: Tensor[(0), float32]) { argmax(%x) }", "nothing to choose from"},
    {"def @main(%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(8, 4, 3, 3), float32]) { nn.conv2d(%x, %w) }",
     "weight must have 3 input channels, got 4"},
    {"def @main(%x: Tensor[(3, 8, 8), float32], %w: Tensor[(8, 3, 3, 3), float32]) { nn.conv2d(%x, %w) }",
     "data must have 4 dimensions (NCHW)"},
    {"def @main(%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(8, 3, 3, 3), float32]) { nn.conv2d(%x, %w, channels=9) "
     "}",
     "channels is 9, but the weight gives 8"},
    {"def @main(%x: Tensor[(2, 7), float32], %w: Tensor[(5, 6), float32]) { nn.dense(%x, %w) }",
     "the summed dimensions 7 and 6 differ"},
    {"def @main(%x: Tensor[(2, 3, 4), float32], %y: Tensor[(3, 5, 4), float32]) { nn.batch_matmul(%x, %y) }",
     "batch sizes must agree or be 1"},
    {"def @main(%x: Tensor[(2, 3), float32]) { nn.bias_add(%x, full(0f, shape=[2]), axis=5) }",
     "axis 5 is out of range for a tensor of 2 dimensions"},
    {"def @main(%x: Tensor[(2, 3), float32]) { broadcast_to(%x, shape=[2, 4]) }", "axis 1 is 3"},
    {"def @main() { arange(0, 10, 0, dtype=\"int32\") }", "step is 0"},
};

TEST(OpCases, Typed) {
  for (const InferCase& c : kTypedOp) expect_typed(c);
}

TEST(OpCases, Refused) {
  for (const InferCase& c : kRefusedOp) expect_refused(c);
}

}  // namespace
}  // namespace headrace::relay
