// The ops that move elements: types (static, symbolic, refused) and values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "object/structural_equal.h"
#include "ops/all_ops.h"
#include "ops/image/image.h"
#include "ops/loops/move.h"
#include "ops/nn/pad.h"
#include "ops/tensor/creation.h"
#include "ops/tensor/join.h"
#include "ops/tensor/repeat.h"
#include "ops/tensor/shape.h"
#include "ops/tensor/slice.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"
#include "relay/text/print.h"

namespace headrace::ops {
namespace {

using namespace relay;

class MoveOps : public ::testing::Test {
 protected:
  MoveOps() { register_all_ops(); }
  const PrimVar n = make_prim_var("n"), m = make_prim_var("m");

  Var var(Array<PrimExpr> dims, DataType dtype = DataType::float_(32)) {
    return make_var("x", make_tensor_type(dims, dtype));
  }
  Var var(const Shape& shape, DataType dtype = DataType::float_(32)) { return var(to_dims(shape), dtype); }
  static std::string type_of_expr(const Expr& e) { return to_string(infer_type(e)->checked_type()); }
  static std::string error_of(const Expr& e) {
    try {
      return "typed as " + type_of_expr(e);
    } catch (const UserError& error) {
      return error.what();
    }
  }
  static Constant ints(const std::vector<int64_t>& values) {
    return make_constant(NDArray::from_vector({static_cast<int64_t>(values.size())}, DataType::int_(64), values));
  }
  static Constant iota(const Shape& shape) {
    NDArray data = NDArray::empty(shape, DataType::int_(32));
    for (int64_t i = 0; i < data.num_elements(); ++i) set_element_int(data.tensor(), i, i);
    return make_constant(data);
  }
  // Runs one call of constants by its own `eval`.
  static std::vector<NDArray> run(const Expr& e) {
    const Expr typed = infer_type(e);
    const auto* call = typed.as<CallNode>();
    EvalInput input{*call, {}, {}, {}};
    for (const Expr& arg : call->args) {
      const auto add = [&](const Expr& item) {
        input.args.push_back(item.as<ConstantNode>()->data);
        input.arg_types.push_back(item.as<ConstantNode>()->tensor_type());
      };
      const auto* tuple = arg.as<TupleNode>();
      if (tuple == nullptr) add(arg);
      if (tuple != nullptr) std::for_each(tuple->items.begin(), tuple->items.end(), add);
    }
    const Type type = typed->checked_type();
    if (const auto* tuple = type.as<TupleTypeNode>()) {
      for (const Type& item : tuple->items) input.out_types.push_back(item.cast<TensorTypeNode>());
    } else {
      input.out_types.push_back(type.cast<TensorTypeNode>());
    }
    return (*call->as_op()->find(kEval))(input);
  }
  static std::vector<int64_t> values(const Expr& e) { return to_ints(run(e)[0]); }
};

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using V = std::vector<int64_t>;

TEST_F(MoveOps, ReshapeStatic) {
  const Var x = var(Shape{2, 3, 4});
  EXPECT_EQ(type_of_expr(reshape(x, {4, 6})), "Tensor[(4, 6), float32]");
  EXPECT_EQ(type_of_expr(reshape(x, {-1})), "Tensor[(24), float32]");
  EXPECT_EQ(type_of_expr(reshape(x, {0, -1})), "Tensor[(2, 12), float32]");
  EXPECT_EQ(type_of_expr(reshape(x, {6, 1, -2})), "Tensor[(6, 1, 4), float32]");
  EXPECT_EQ(type_of_expr(reshape(x, {-3, 4})), "Tensor[(6, 4), float32]");
  EXPECT_EQ(type_of_expr(reshape(x, {-4, 1, 2, -2})), "Tensor[(1, 2, 3, 4), float32]");
  EXPECT_EQ(type_of_expr(reshape(x, {2, -4, -1, 3, 4})), "Tensor[(2, 1, 3, 4), float32]");
  EXPECT_EQ(type_of_expr(reshape(var(Shape{0, 3}), Shape{3, 0}, true)), "Tensor[(3, 0), float32]");
  EXPECT_EQ(type_of_expr(reshape(make_scalar(1), {1, 1})), "Tensor[(1, 1), float32]");
}

TEST_F(MoveOps, ReshapeSymbolic) {
  EXPECT_EQ(type_of_expr(reshape(var({n, make_int(4), make_int(6)}), {-1, 24})), "Tensor[(n, 24), float32]");
  EXPECT_EQ(type_of_expr(reshape(var({n, make_int(4)}), {0, 2, -1})), "Tensor[(n, 2, 2), float32]");
  EXPECT_EQ(type_of_expr(reshape(var({n, m}), {-1})), "Tensor[(m * n), float32]");
  EXPECT_EQ(type_of_expr(reshape(var({n, make_int(3)}), {2, -1})), "Tensor[(2, floordiv(n, 2) + n), float32]");
  EXPECT_EQ(type_of_expr(reshape(var({make_any(), make_int(3)}), {-1, 3})), "Tensor[(?, 3), float32]");
}

TEST_F(MoveOps, ReshapeRefuses) {
  const Var x = var(Shape{2, 3, 4});
  EXPECT_THAT(error_of(reshape(x, {5, -1})), HasSubstr("24 elements and cannot be reshaped to (5, -1)"));
  EXPECT_THAT(error_of(reshape(x, {25})), HasSubstr("cannot be reshaped to (25)"));
  EXPECT_THAT(error_of(reshape(x, {-1, -1})), HasSubstr("only one size may be -1"));
  EXPECT_THAT(error_of(reshape(x, {24, 1, 1, 0})), HasSubstr("no input dimension left"));
  EXPECT_THAT(error_of(reshape(x, {-4, 5, -1, -2})), HasSubstr("2 cannot be split by 5"));
  EXPECT_THAT(error_of(reshape(x, {-4, 2})), HasSubstr("-4 needs two sizes"));
  EXPECT_THAT(error_of(reshape(x, {-5})), HasSubstr("-5 is not a size"));
  EXPECT_THAT(error_of(reshape(x, Shape{0, -1}, true)), HasSubstr("cannot be reshaped"));
  EXPECT_THAT(error_of(reshape(x, Expr(var(Shape{2})))), HasSubstr("newshape must be an integer tensor"));
  EXPECT_THAT(error_of(make_call("reshape", {x})), HasSubstr("the op needs relay.attrs.ReshapeAttrs"));
}

TEST_F(MoveOps, PositionsOfASplitReadBackAsTheyAre) {
  for (const Shape& positions : {Shape{2}, Shape{1, 2}, Shape{}}) {
    const Expr split_at = split(relay::make_scalar(1), positions);
    EXPECT_TRUE(structural_equal(split_at, relay::parse_expr(relay::print_expr(split_at))));
  }
}

TEST_F(MoveOps, ShapeArithmeticBecomesShapes) {
  const Var x = var({n, make_int(3), make_int(8), make_int(8)});
  const Expr sizes = shape_of(x, DataType::int_(64));
  const Expr batch = take(sizes, ints({0}), 0);
  const Expr target = concatenate({batch, ints({-1})});
  EXPECT_EQ(type_of_expr(reshape(x, target)), "Tensor[(n, 192), float32]");
  EXPECT_EQ(type_of_expr(reshape(x, concatenate({strided_slice(sizes, {0}, {2}), ints({64})}))),
            "Tensor[(n, 3, 64), float32]");
  const Expr parts = split(sizes, 2);
  EXPECT_EQ(type_of_expr(reshape(x, concatenate({make_tuple_get_item(parts, 0), ints({-1})}))),
            "Tensor[(n, 3, 64), float32]");
  EXPECT_EQ(type_of_expr(zeros({2}, DataType::int_(64))), "Tensor[(2), int64]");
  EXPECT_EQ(type_of_expr(full(make_scalar(1), shape_of(x), DataType::float_(32))), "Tensor[(n, 3, 8, 8), float32]");
  EXPECT_EQ(type_of_expr(reshape(x, Expr(var(Shape{2}, DataType::int_(64))))), "Tensor[(?, ?), float32]");
}

TEST_F(MoveOps, Layouts) {
  EXPECT_EQ(type_of_expr(transpose(var({n, make_int(3), m}), {0, -1, 1})), "Tensor[(n, m, 3), float32]");
  EXPECT_EQ(values(transpose(iota({2, 3}))), (V{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(values(transpose(iota({2, 1, 3}), {1, 2, 0})), (V{0, 3, 1, 4, 2, 5}));
  EXPECT_THAT(error_of(transpose(var(Shape{2, 3}), {0, 0})), HasSubstr("names axis 0 twice"));
  EXPECT_THAT(error_of(transpose(var(Shape{2, 3}), {0})), HasSubstr("1 entries for a tensor of 2"));
  EXPECT_THAT(error_of(transpose(var(Shape{2, 3}), {0, 2})), HasSubstr("out of range"));
  EXPECT_EQ(type_of_expr(squeeze(var({make_int(1), n, make_int(1)}), Shape{0, 2})), "Tensor[(n), float32]");
  EXPECT_THAT(error_of(squeeze(var({make_int(1), n, make_int(1)}))), HasSubstr("name the axes: whether axis 1"));
  EXPECT_EQ(type_of_expr(squeeze(var(Shape{1, 2, 1}), Shape{-1})), "Tensor[(1, 2), float32]");
  EXPECT_THAT(error_of(squeeze(var(Shape{1, 2}), Shape{1})), HasSubstr("has size 2, expected 1"));
  EXPECT_THAT(error_of(squeeze(var({make_any()}))), HasSubstr("name the axes"));
  EXPECT_EQ(type_of_expr(expand_dims(var({n}), -1, 2)), "Tensor[(n, 1, 1), float32]");
  EXPECT_THAT(error_of(expand_dims(var({n}), 3)), HasSubstr("out of range"));
  EXPECT_EQ(type_of_expr(batch_flatten(var({n, make_int(3), make_int(4)}))), "Tensor[(n, 12), float32]");
  EXPECT_THAT(error_of(batch_flatten(make_scalar(1))), HasSubstr("no batch axis"));
  EXPECT_EQ(values(reverse(iota({2, 3}), 1)), (V{2, 1, 0, 5, 4, 3}));
  EXPECT_EQ(type_of_expr(reshape_like(var(Shape{6}), var(Shape{2, 3}))), "Tensor[(2, 3), float32]");
  EXPECT_THAT(error_of(reshape_like(var(Shape{6}), var(Shape{2, 2}))), HasSubstr("numbers of elements differ"));
}

TEST_F(MoveOps, JoinsAndCuts) {
  EXPECT_EQ(type_of_expr(concatenate({var({n, make_int(2)}), var({m, make_int(2)})})), "Tensor[(m + n, 2), float32]");
  EXPECT_EQ(values(concatenate({iota({2, 1}), iota({2, 2})}, -1)), (V{0, 0, 1, 1, 2, 3}));
  EXPECT_THAT(error_of(concatenate({var(Shape{2, 3}), var(Shape{2, 4})})),
              HasSubstr("axis 1 of item 1 is 4 and of item 0 is 3"));
  EXPECT_THAT(error_of(concatenate({var(Shape{2}), var(Shape{2}, DataType::int_(8))})), HasSubstr("item 1"));
  EXPECT_THAT(error_of(concatenate({var(Shape{2}), var(Shape{2, 2})})), HasSubstr("has 2 dimensions"));
  EXPECT_THAT(error_of(concatenate({})), HasSubstr("at least one tensor"));
  EXPECT_THAT(error_of(make_call("concatenate", {var(Shape{2})}, make_object<ConcatenateAttrs>())),
              HasSubstr("must be a tuple"));
  EXPECT_EQ(type_of_expr(stack({var({n}), var({n})}, -1)), "Tensor[(n, 2), float32]");
  EXPECT_EQ(values(stack({iota({2}), iota({2})}, 1)), (V{0, 0, 1, 1}));
  EXPECT_THAT(error_of(stack({var(Shape{2}), var(Shape{3})})), HasSubstr("axis 0 of item 1 is 3"));
  EXPECT_EQ(type_of_expr(split(var(Shape{2, 6}), 3, 1)),
            "(Tensor[(2, 2), float32], Tensor[(2, 2), float32], Tensor[(2, 2), float32])");
  EXPECT_EQ(type_of_expr(split(var({n}), Shape{2})), "(Tensor[(2), float32], Tensor[(n - 2), float32])");
  EXPECT_THAT(error_of(split(var(Shape{7}), 2)), HasSubstr("cannot be split into 2 equal parts"));
  EXPECT_THAT(error_of(split(var(Shape{7}), Shape{5, 3})), HasSubstr("must not decrease"));
  const auto parts = run(split(iota({2, 3}), Shape{1}, 1));
  EXPECT_EQ(to_ints(parts[0]), (V{0, 3}));
  EXPECT_EQ(to_ints(parts[1]), (V{1, 2, 4, 5}));
}

TEST_F(MoveOps, Copies) {
  EXPECT_EQ(values(broadcast_to(iota({2, 1}), Shape{2, 2, 2})), (V{0, 0, 1, 1, 0, 0, 1, 1}));
  EXPECT_EQ(type_of_expr(broadcast_to_like(make_scalar(1), var({n, m}))), "Tensor[(n, m), float32]");
  EXPECT_THAT(error_of(broadcast_to(var(Shape{3}), Shape{2})), HasSubstr("cannot be broadcast"));
  EXPECT_THAT(error_of(broadcast_to(var(Shape{3, 3}), Shape{3})), HasSubstr("more dimensions"));
  EXPECT_EQ(values(tile(iota({3}), Shape{2, 2})), (V{0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(type_of_expr(tile(var({n}), Shape{2, 3})), "Tensor[(2, n * 3), float32]");
  EXPECT_THAT(error_of(tile(var({n}), Shape{-1})), HasSubstr("negative count"));
  EXPECT_EQ(values(repeat(iota({2, 2}), 2, 1)), (V{0, 0, 1, 1, 2, 2, 3, 3}));
  EXPECT_THAT(error_of(repeat(var({n}), -2)), HasSubstr("at least 0"));
}

TEST_F(MoveOps, DimensionsPastAnySizeAreRefused) {
  const auto past = HasSubstr("the result would have a dimension past any size: 5 * 9223372036854775807");
  EXPECT_THAT(error_of(tile(var(Shape{5}), Shape{INT64_MAX})), past);
  EXPECT_THAT(error_of(repeat(var(Shape{5}), INT64_MAX, 0)), past);
  // A symbol may have any value, so nothing is refused.
  EXPECT_EQ(type_of_expr(tile(var({make_prim_var("n")}), Shape{INT64_MAX})),
            "Tensor[(n * 9223372036854775807), float32]");
}

// Expected values: Python's own slices of range().
TEST_F(MoveOps, StridedSliceFollowsPython) {
  EXPECT_EQ(values(strided_slice(iota({10}), {2}, {8}, {3})), (V{2, 5}));
  EXPECT_EQ(values(strided_slice(iota({10}), {-3}, {INT64_MAX})), (V{7, 8, 9}));
  EXPECT_EQ(values(strided_slice(iota({5}), {100}, {INT64_MIN}, {-2})), (V{4, 2, 0}));
  EXPECT_EQ(values(strided_slice(iota({5}), {3}, {0}, {-1})), (V{3, 2, 1}));
  EXPECT_EQ(values(strided_slice(iota({5}), {0}, {5}, {INT64_MAX})), (V{0}));
  EXPECT_EQ(values(strided_slice(iota({5}), {4}, {INT64_MIN}, {INT64_MIN})), (V{4}));
  EXPECT_EQ(values(strided_slice(iota({5}), {4}, {2})), (V{}));
  EXPECT_EQ(values(strided_slice(iota({2, 3}), {1}, {3}, {}, {-1})), (V{1, 2, 4, 5}));
  EXPECT_EQ(values(strided_slice(iota({2, 3}), {0, 1}, {-1, 1}, {}, {}, "size")), (V{1, 4}));
  EXPECT_EQ(values(strided_slice(iota({10}), ints({1}), ints({7}), ints({2}))), (V{1, 3, 5}));
}

TEST_F(MoveOps, StridedSliceTypes) {
  EXPECT_EQ(type_of_expr(strided_slice(var({n, make_int(4)}), {0, 1}, {INT64_MAX, 3})), "Tensor[(n, 2), float32]");
  EXPECT_EQ(type_of_expr(strided_slice(var({n}), {0}, {INT64_MAX}, {2})), "Tensor[(floordiv(n + 1, 2)), float32]");
  EXPECT_EQ(type_of_expr(strided_slice(var({n}), {0}, {4})), "Tensor[(min(4, n)), float32]");
  EXPECT_EQ(type_of_expr(strided_slice(var(Shape{4, 4}), var(Shape{1}, DataType::int_(64)),
                                       var(Shape{1}, DataType::int_(64)), ints({1}))),
            "Tensor[(?, 4), float32]");
  EXPECT_THAT(error_of(strided_slice(var(Shape{4}), {0}, {4}, {0})), HasSubstr("stride of axis 0 is 0"));
  EXPECT_THAT(error_of(strided_slice(var(Shape{4}), {0, 0}, {4, 4})), HasSubstr("2 axes are sliced"));
  EXPECT_THAT(error_of(strided_slice(var(Shape{4}), {0}, {4, 4})), HasSubstr("1, 2 and 1 entries"));
  EXPECT_THAT(error_of(strided_slice(var(Shape{4}), {0}, {4}, {}, {0}, "stop")), HasSubstr("expected end or size"));
}

// 2^63 and more, which only uint64 holds, are not negative numbers to shape arithmetic, which has no number for them.
TEST_F(MoveOps, NumbersPastInt64) {
  const Expr last = make_constant(NDArray::from_vector({1}, DataType::uint(64), std::vector<uint64_t>{~uint64_t{0}}));
  EXPECT_EQ(type_of_expr(reshape(var(Shape{6}), take(ints({1, 6}), last, 0))), "Tensor[(?), float32]");
  EXPECT_EQ(type_of_expr(strided_slice(iota({4}), ints({0}), last, ints({1}), {0})), "Tensor[(?), int32]");
}

TEST_F(MoveOps, TakeAndGather) {
  EXPECT_EQ(values(take(iota({3, 2}), ints({2, 0}), 0)), (V{4, 5, 0, 1}));
  EXPECT_EQ(values(take(iota({3}), ints({-5, 7}), 0)), (V{0, 2}));
  EXPECT_EQ(values(take(iota({3}), ints({-1, 4}), 0, "wrap")), (V{2, 1}));
  EXPECT_EQ(values(take(iota({2, 2}), ints({3}), std::nullopt)), (V{3}));
  EXPECT_EQ(type_of_expr(take(var({n, make_int(4)}), var({m}, DataType::int_(32)), 1)), "Tensor[(n, m), float32]");
  EXPECT_THROW(values(take(iota({3}), ints({3}), 0, "fast")), UserError);
  EXPECT_THAT(error_of(take(var(Shape{3}), var(Shape{1}), 0)), HasSubstr("indices must be integers"));
  EXPECT_THAT(error_of(take(var(Shape{3}), ints({0}), 1)), HasSubstr("out of range"));
  EXPECT_THAT(error_of(take(var(Shape{3}), ints({0}), 0, "trim")), HasSubstr("expected clip, wrap or fast"));
  const Constant pick = make_constant(NDArray::from_vector<int64_t>({2, 1}, DataType::int_(64), {1, -1}));
  EXPECT_EQ(values(gather(iota({2, 3}), 1, pick)), (V{1, 5}));
  EXPECT_THAT(error_of(gather(var(Shape{3}), 0, pick)), HasSubstr("same number of dimensions"));
  const Constant pairs = make_constant(NDArray::from_vector<int64_t>({2, 2}, DataType::int_(64), {0, 1, 1, 2}));
  EXPECT_EQ(values(gather_nd(iota({2, 3}), pairs)), (V{1, 5}));
  // Indices are checked where nothing is picked, too.
  const auto one_index = [](int64_t i) {
    return make_constant(NDArray::from_vector<int64_t>({1, 1}, DataType::int_(64), {i}));
  };
  EXPECT_EQ(values(gather_nd(iota({2, 0}), one_index(-2))), V());
  EXPECT_THROW(values(gather_nd(iota({2, 0}), one_index(2))), UserError);
  EXPECT_THROW(values(gather_nd(iota({2, 0}), one_index(-3))), UserError);
  const Expr four = relay::make_constant(NDArray::from_vector<int64_t>({1, 4}, DataType::int_(64), {0, 0, 0, 0}));
  EXPECT_THAT(error_of(gather_nd(iota({1, 3}), four, 1)),
              HasSubstr("batch axis 0 differs: 1 of data and 4 of indices"));
  EXPECT_EQ(values(take(iota({2, 0}), ints({1}), 0, "fast")), V());
  EXPECT_THROW(values(take(iota({2, 0}), ints({2}), 0, "fast")), UserError);
  // take with batch_dims: row i of indices picks in row i of data.
  EXPECT_EQ(values(take(iota({2, 3}), pick, 1, "wrap", 1)), (V{1, 5}));
}

TEST_F(MoveOps, Creation) {
  EXPECT_EQ(values(full(make_scalar(7, DataType::int_(32)), Shape{2}, DataType::int_(32))), (V{7, 7}));
  EXPECT_EQ(values(ones({2}, DataType::int_(8))), (V{1, 1}));
  EXPECT_EQ(values(full_like(iota({2}), make_scalar(3, DataType::int_(32)))), (V{3, 3}));
  const auto i64 = [](int64_t v) { return make_scalar(static_cast<double>(v), DataType::int_(64)); };
  EXPECT_EQ(values(arange(i64(1), i64(8), i64(3), DataType::int_(64))), (V{1, 4, 7}));
  EXPECT_EQ(values(arange(i64(5), i64(0), i64(-2), DataType::int_(64))), (V{5, 3, 1}));
  EXPECT_EQ(type_of_expr(arange(make_scalar(0), make_scalar(1), make_scalar(0.3), DataType::float_(32))),
            "Tensor[(4), float32]");
  EXPECT_EQ(type_of_expr(arange(i64(0), ndarray_size(var({n}), DataType::int_(64)), i64(1), DataType::int_(64))),
            "Tensor[(n), int64]");
  EXPECT_THAT(error_of(arange(i64(0), i64(3), i64(0), DataType::int_(64))), HasSubstr("step is 0"));
  EXPECT_THAT(error_of(arange(i64(0), i64(3), i64(1), DataType::int_(32))), HasSubstr("expected int32"));
  EXPECT_THAT(error_of(zeros({-1}, DataType::float_(32))), HasSubstr("negative size"));
  EXPECT_THAT(error_of(full(make_scalar(1), Shape{2}, DataType::int_(32))), HasSubstr("fill_value"));
  EXPECT_THAT(error_of(full(var(Shape{2}), Shape{2}, DataType::float_(32))), HasSubstr("must be a scalar"));
  EXPECT_EQ(values(shape_of(iota({2, 5}))), (V{2, 5}));
  EXPECT_EQ(values(ndarray_size(iota({2, 5}))), (V{10}));
  EXPECT_THAT(error_of(shape_of(var(Shape{2}), DataType::bool_())), HasSubstr("dtype must be of numbers"));
}

// Expected values: numpy.pad([0, 1, 2], (2, 1), mode=...).
TEST_F(MoveOps, Pad) {
  const Constant nine = make_scalar(9, DataType::int_(32));
  EXPECT_EQ(values(pad(iota({3}), {Shape{2, 1}}, nine)), (V{9, 9, 0, 1, 2, 9}));
  EXPECT_EQ(values(pad(iota({3}), {Shape{-1, 1}}, nine)), (V{1, 2, 9}));
  EXPECT_EQ(values(pad(iota({3}), {Shape{2, 1}}, nine, "edge")), (V{0, 0, 0, 1, 2, 2}));
  EXPECT_EQ(values(pad(iota({3}), {Shape{2, 1}}, nine, "reflect")), (V{2, 1, 0, 1, 2, 1}));
  EXPECT_EQ(values(mirror_pad(iota({3}), {Shape{2, 1}})), (V{1, 0, 0, 1, 2, 2}));
  EXPECT_EQ(values(mirror_pad(iota({3}), {Shape{2, 1}}, "REFLECT")), (V{2, 1, 0, 1, 2, 1}));
  const Constant widths = make_constant(NDArray::from_vector<int64_t>({1, 2}, DataType::int_(64), {1, 0}));
  EXPECT_EQ(values(pad(iota({2}), Expr(widths), nine)), (V{9, 0, 1}));
  EXPECT_EQ(type_of_expr(pad(var({n}), {Shape{1, 2}}, make_scalar(0))), "Tensor[(n + 3), float32]");
  EXPECT_THAT(error_of(pad(var(Shape{3}), {Shape{3, 0}}, make_scalar(0), "reflect")),
              HasSubstr("cannot be padded by 3"));
  EXPECT_THAT(error_of(pad(var(Shape{3}), {Shape{1}}, make_scalar(0))), HasSubstr("(before, after)"));
  EXPECT_THAT(error_of(pad(var(Shape{3}), Array<Shape>(), make_scalar(0))), HasSubstr("0 pairs"));
  EXPECT_THAT(error_of(pad(var(Shape{3}), {Shape{-4, 0}}, make_scalar(0))), HasSubstr("crops more than"));
  EXPECT_THAT(error_of(pad(var(Shape{3}), {Shape{1, 1}}, make_scalar(0), "wrap")), HasSubstr("pad_mode is 'wrap'"));
  // A value of another dtype, as in Relay: numpy.pad(..., constant_values=numpy.array(value).astype(data's dtype)).
  EXPECT_EQ(type_of_expr(pad(var(Shape{3}), {Shape{1, 1}}, nine)), "Tensor[(5), float32]");
  const Constant reals = make_constant(NDArray::from_vector<float>({2}, DataType::float_(32), {4, 5}));
  EXPECT_EQ(values(pad(reals, {Shape{1, 0}}, nine)), (V{9, 4, 5}));
  EXPECT_EQ(values(pad(iota({2}), {Shape{1, 1}}, make_scalar(-2.75))), (V{-2, 0, 1, -2}));
  const Constant bits = make_constant(NDArray::from_vector<uint8_t>({1}, DataType::bool_(), {0}));
  EXPECT_EQ(values(pad(bits, {Shape{0, 1}}, make_scalar(0.25))), (V{0, 1}));
  EXPECT_THAT(error_of(pad(var(Shape{3}), {Shape{1, 1}}, make_var("h", make_scalar_type(DataType::handle())))),
              HasSubstr("pad_value must be a number, got handle"));
}

// Expected values: onnx.reference, Resize-13 of [[1, 2], [3, 4]] with `sizes` and the same mode, transformation and
// (for the asymmetric case) nearest_mode=floor.
TEST_F(MoveOps, Resize) {
  const Constant image = make_constant(NDArray::from_vector<float>({1, 1, 2, 2}, DataType::float_(32), {1, 2, 3, 4}));
  const auto resized = [&](Shape size, Resize2DOptions options) {
    const NDArray result = run(resize2d(image, size, options))[0];
    std::vector<double> numbers;
    for (int64_t i = 0; i < result.num_elements(); ++i) numbers.push_back(element_as_double(result.tensor(), i));
    return numbers;
  };
  EXPECT_THAT(resized({4, 4}, {}),
              ElementsAre(1, 1.25, 1.75, 2, 1.5, 1.75, 2.25, 2.5, 2.5, 2.75, 3.25, 3.5, 3, 3.25, 3.75, 4));
  EXPECT_THAT(resized({1, 4}, {.coordinate_transformation_mode = "align_corners"}),
              ElementsAre(1, ::testing::DoubleNear(4 / 3.0, 1e-6), ::testing::DoubleNear(5 / 3.0, 1e-6), 2));
  EXPECT_THAT(resized({2, 4}, {.method = "nearest_neighbor", .coordinate_transformation_mode = "asymmetric"}),
              ElementsAre(1, 1, 2, 2, 3, 3, 4, 4));
  EXPECT_THAT(resized({1, 2}, {.method = "nearest_neighbor"}), ElementsAre(1, 2));
  EXPECT_THAT(resized({2, 2}, {.method = "cubic"}), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(type_of_expr(resize2d(var({n, make_int(3), m, m}), Shape{8, 8})), "Tensor[(n, 3, 8, 8), float32]");
  EXPECT_THAT(error_of(resize2d(var(Shape{1, 1, 2, 2}), Shape{8})), HasSubstr("size needs 2 numbers"));
  EXPECT_THAT(error_of(resize2d(var(Shape{1, 2, 2}), Shape{8, 8})), HasSubstr("4 dimensions of NCHW"));
  EXPECT_THAT(error_of(resize2d(var(Shape{1, 1, 2, 2}), Shape{8, 8}, {.method = "area"})),
              HasSubstr("method is 'area'"));
  EXPECT_THAT(error_of(resize2d(var(Shape{1, 1, 0, 2}), Shape{8, 8})), HasSubstr("cannot be resized"));
}

}  // namespace
}  // namespace headrace::ops
