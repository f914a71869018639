// Tests BoundOutputs with a golden text, and that the extents cut the old results out of the new buffers.
#include "passes/forms/bound_outputs.h"

#include "ops/call_fusion.h"
#include "ops/register.h"
#include "passes/tests/bounds_testing.h"
#include "passes/tests/golden_pass.h"

namespace headrace::passes {
namespace {

constexpr const char* kZero = "const(Tensor[(1), int64], [0])";
constexpr const char* kOne = "const(Tensor[(1), int64], [1])";

std::vector<TensorType> result_types(const relay::FunctionNode& main) {
  std::vector<TensorType> results;
  for (const Type& leaf : leaves_of(main.body->checked_type())) results.push_back(leaf.cast<TensorTypeNode>());
  return results;
}

void expect_bounds(const std::string& text, const std::vector<NDArray>& args) {
  SCOPED_TRACE(text);
  const IRModule before = read(text);
  const IRModule after = run_pass("BoundOutputs", before);
  const std::vector<NDArray> want = interp::run_main(before, args), all = interp::run_main(after, args);
  ASSERT_FALSE(bounded_outputs_of(main_of(after)).empty());
  for (const TensorType& type : result_types(main_of(after)))
    EXPECT_TRUE(as_shape(type->shape)) << to_string(Type(type));
  ASSERT_GT(all.size(), want.size());
  const std::vector<NDArray> got = cut_outputs(main_of(after), all, want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(want[i].content_equal(got[i])) << "output " << i;
}

NDArray floats(const Shape& shape, const std::vector<float>& values) {
  return NDArray::from_vector(shape, DataType::float_(32), values);
}

std::string main_with(const std::string& params, const std::string& body) {
  return fmt::format("def @main({}) {{ {} }}", params, body);
}

std::string slice_to(const std::string& data, const std::string& end) {
  return fmt::format("strided_slice({}, {}, {}, {})", data, kZero, end, kOne);
}

TEST(BoundOutputs, GoldenText) {
  const GoldenPass golden = read_golden("bound_outputs");
  expect_becomes(golden, run_pass(golden.pass, relay::infer_type(program_before(golden))));
}

TEST(BoundOutputs, TheExtentsCutWhatMainGave) {
  const std::vector<NDArray> masks{floats({2, 3}, {0, 2, -1, 0, 0, 5}), floats({2, 3}, {0, 0, 0, 0, 0, 0}),
                                   floats({2, 3}, {1, 2, 3, 4, 5, 6})};
  const std::vector<std::string> bodies{
      "argwhere(%x)",
      "transpose(argwhere(%x))",
      "transpose(expand_dims(argwhere(%x), axis=1), axes=[1, 2, 0])",
      "(argwhere(%x), add(%x, 1f), argwhere(%x))",
      "let %places = argwhere(%x); let %twice = multiply(%places, 2); (%twice, negative(%places))",
      "divide(const(Tensor[(2), float32], [12, 9]), cast(argwhere(%x), dtype=\"float32\"))",
      "reshape(expand_dims(argwhere(%x), axis=1), newshape=[-1, 2])",
      "((argwhere(%x), %x), split(%x, indices_or_sections=3, axis=1))",
      "take(%x, strided_slice(argwhere(%x), begin=[1], end=[2], axes=[1]), axis=1)",
      slice_to("unique(reshape(%x, newshape=[6])).0", "unique(reshape(%x, newshape=[6])).3"),
  };
  for (const std::string& body : bodies) {
    for (const NDArray& mask : masks) expect_bounds(main_with("%x: Tensor[(2, 3), float32]", body), {mask});
  }
}

// As Python's slices: a negative end counts from the back, one outside is the axis's own.
TEST(BoundOutputs, EndsOfSlicesAreClipped) {
  const NDArray data = ramp({2, 4}, 1);
  for (const int64_t end : {-9, -4, -1, 0, 3, 4, 100}) {
    NDArray number = NDArray::empty({1}, DataType::int_(32));
    set_element_int(number.tensor(), 0, end);
    const std::string params = "%x: Tensor[(2, 4), float32], %end: Tensor[(1), int32]";
    expect_bounds(main_with(params, slice_to("%x", "%end")), {data, number});
    expect_bounds(main_with(params, fmt::format("strided_slice(%x, {}, %end, axes=[-1])", kZero)), {data, number});
  }
}

// An op that says of each call how it fuses, as those of users do: x f32[...] -> f32[...], the same elements.
void register_same(const std::string& name, ops::FusionKind kind, bool is_stateful) {
  const auto same = [](const ops::EvalInput& in) {
    NDArray result = in.make_output();
    for (int64_t i = 0; i < result.num_elements(); ++i) result.data<float>()[i] = in.args[0].data<float>()[i];
    return std::vector<NDArray>{result};
  };
  ops::OpBuilder(name, "The same elements.")
      .arg("x")
      .relation([](const relay::RelationInput& in) -> Type { return in.tensor(0); })
      .eval(same);
  const Op op = get_op(name);
  op->set(ops::kCallFusion, ops::CallFusionFn([kind](const relay::CallNode&) { return ops::CallFusion{kind}; }));
  op->set(relay::kStateful, is_stateful);
}

TEST(BoundOutputs, FollowsCallsOfUsersOpsThatHaveNoEffects) {
  for (const ops::FusionKind kind : {ops::FusionKind::elementwise, ops::FusionKind::broadcast}) {
    const std::string pure = fmt::format("test.same_{}", ops::name_of(kind)), stateful = pure + "_with_effects";
    register_same(pure, kind, false);
    register_same(stateful, kind, true);
    const std::string x = "%x: Tensor[(2, 3), float32]", rows = "(cast(argwhere(%x), dtype=\"float32\"))";
    expect_bounds(main_with(x, pure + rows), {floats({2, 3}, {0, 2, -1, 0, 0, 5})});
    const IRModule module = read(main_with(x, stateful + rows));
    EXPECT_EQ(run_pass("BoundOutputs", module), module) << stateful;
  }
}

TEST(BoundOutputs, UnboundedOutputsStay) {
  const std::string x = "%x: Tensor[(6), float32], %n: Tensor[(1), int64]";
  for (const std::string& text : {
           main_with(x, "exp(%x)"),
           main_with("%x: Tensor[(?), float32]", "exp(%x)"),
           main_with("%x: Tensor[(?), float32]", "argwhere(%x)"),
           main_with(x, "sum(argwhere(%x), axis=[0])"),
           main_with(x, "(argwhere(%x), concatenate((argwhere(%x), argwhere(%x)), axis=0))"),
           main_with(x, "reshape(argwhere(%x), newshape=[1, -1])"),
           main_with(x, "floor_divide(const(Tensor[(1, 1), int32], [3]), argwhere(%x))"),
           main_with(x, "divide(1, argwhere(%x))"),
           main_with(x, "take(%x, argwhere(%x), mode=\"fast\")"),
           main_with(x, "strided_slice(argwhere(%x), begin=[1], end=[2147483647])"),
           main_with(x, fmt::format("strided_slice(%x, {}, %n, {})", kOne, kOne)),
           main_with(x, fmt::format("strided_slice(%x, {}, %n, const(Tensor[(1), int64], [2]))", kZero)),
           main_with(x, fmt::format("strided_slice(%x, {}, %n, {}, slice_mode=\"size\")", kZero, kOne)),
           main_with(x, "strided_slice(%x, %n, const(Tensor[(1), int64], [4]))"),
           std::string("def @main(%x: Tensor[(3), float32]) -> Tensor[(?, 1), int32] {\n"
                       "  if (less(sum(%x), 0f)) { @main(abs(%x)) } else { argwhere(%x) }\n}"),
       }) {
    SCOPED_TRACE(text);
    const IRModule module = read(text);
    EXPECT_EQ(run_pass("BoundOutputs", module), module);
  }
}

}  // namespace
}  // namespace headrace::passes
