// Tests ops of users, interpreted and compiled, against numbers worked out by hand.
#include "lower/user_ops/user_op.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <headrace/c_api.h>

#include <algorithm>
#include <mutex>

#include "driver/compile.h"
#include "interp/interp.h"
#include "kit/errors.h"
#include "load/run.h"
#include "lower/user_ops/tests/unary_op.h"
#include "object/function.h"
#include "passes/fuse/fuse_ops.h"
#include "relay/function_attrs.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"
#include "relay/visit.h"
#include "tir/parse.h"

namespace headrace::lower {
namespace {

using driver::compile_to_memory;
using driver::make_model;
using ops::FusionKind;
using relay::RelationInput;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Floats = std::vector<float>;

tir::PrimFunc loops(const std::string& body) { return tir::parse_function("#[tir_version = \"1\"]\n" + body); }

// data * factor
tir::Compute scale_form(const RuleInput& input) {
  const DataType dtype = input.in_types[0]->dtype;
  const PrimExpr factor = make_float(relay::user_attr(input.call, "factor").as<double>(), dtype);
  return single_stage(
      input, map_stage(input.make_output(), [&](const Index& i) { return load(input.inputs[0], i) * factor; }));
}

// The sum of each row.
tir::Compute row_sum_form(const RuleInput& input) {
  const Buffer& data = input.inputs[0];
  const auto value = [&](const Index& i, const Index& r) { return load(data, {i[0], r[0]}); };
  return single_stage(input, reduce_stage(input.make_output(), tir::Combiner::sum, {data->shape[1]}, value));
}

Type row_type(const RelationInput& input) {
  const TensorType data = input.tensor(0);
  if (!data) return {};
  if (data->shape.size() != 2) input.fail("data must have 2 dimensions");
  return make_tensor_type(Array<PrimExpr>{data->shape[0]}, data->dtype);
}

// y[0] = x[0], y[i] = y[i - 1] + x[i]
constexpr const char* kRunningSum =
    "prim_func @running_sum(x: Buffer[(5), float32]) -> (y: Buffer[(5), float32]) {\n"
    "  y[0] = x[0];\n"
    "  for i in serial(4) { y[i + 1] = y[i] + x[i + 1]; }\n"
    "}\n";

void halve(Args args) {
  const auto* x = static_cast<const DLTensor*>(args[0].v.v_ptr);
  const auto* y = static_cast<const DLTensor*>(args[1].v.v_ptr);
  if (static_cast<const float*>(x->data)[0] < 0) throw_user_error("x[0] is negative");
  for (int64_t i = 0; i < x->shape[0]; ++i) static_cast<float*>(y->data)[i] = static_cast<const float*>(x->data)[i] / 2;
}

// a - b * c, where two operands may be one and another a constant
void combine(Args args) {
  const auto at = [&](int i, int64_t k) {
    const auto* tensor = static_cast<const DLTensor*>(args[i].v.v_ptr);
    return static_cast<float*>(tensor->data) + (tensor->ndim == 0 ? 0 : k);
  };
  for (int64_t k = 0; k < 3; ++k) *at(3, k) = *at(0, k) - *at(1, k) * *at(2, k);
}

PackedFunc packed(void (*body)(Args)) {
  return PackedFunc([body](Args args) {
    body(args);
    return Value();
  });
}

void register_test_ops() {
  static std::once_flag once;
  std::call_once(once, [] {
    const relay::AttrSpec factor{"factor", relay::AttrKind::real, Value(2.0), "what it is multiplied by"};
    register_user_op({.name = "test.scale",
                      .doc = "data * factor",
                      .arguments = {{"data", "Tensor", ""}},
                      .attrs = {factor},
                      .relation = same_type,
                      .compute = ComputeRuleFn(scale_form)});
    register_user_op({.name = "test.row_sum",
                      .arguments = {{"data", "Tensor", ""}},
                      .relation = row_type,
                      .compute = ComputeRuleFn(row_sum_form)});
    register_user_op({.name = "test.running_sum",
                      .arguments = {{"data", "Tensor", ""}},
                      .relation = same_type,
                      .compute = loops(kRunningSum)});
    register_user_op(
        {.name = "test.square",
         .arguments = {{"data", "Tensor", ""}},
         .relation = same_type,
         .compute = loops("prim_func @square(x: Buffer[(n, 3), float32]) -> (y: Buffer[(n, 3), float32]) {\n"
                          "  for i in serial(n) { for j in serial(3) { y[i, j] = x[i, j] * x[i, j]; } }\n"
                          "}\n")});
    register_global("test.halve.impl", packed(&halve));
    register_user_op({.name = "test.halve",
                      .arguments = {{"data", "Tensor", ""}},
                      .relation = same_type,
                      .compute = ExternalFunction{"test.halve.impl"}});
    register_global("test.combine.impl", packed(&combine));
    register_user_op({.name = "test.combine",
                      .arguments = {{"a", "Tensor", ""}, {"b", "Tensor", ""}, {"c", "Tensor", ""}},
                      .relation = same_type,
                      .compute = ExternalFunction{"test.combine.impl"}});
  });
}

IRModule read(const std::string& function) {
  register_test_ops();
  return relay::parse_module("#[version = \"0.0.5\"]\n" + function);
}

NDArray tensor(const Shape& shape, const Floats& data) {
  return NDArray::from_vector(shape, DataType::float_(32), data);
}

Floats floats(const NDArray& tensor) {
  return {tensor.data<const float>(), tensor.data<const float>() + tensor.num_elements()};
}

Floats interpreted(const IRModule& module, const std::vector<NDArray>& inputs) {
  return floats(interp::run_main(module, inputs).at(0));
}

std::shared_ptr<const load::Artifact> compiled(const IRModule& module) {
  return load::open_artifact(compile_to_memory(make_model(module)).descriptor, "net.so").value_or_throw();
}

Floats run(const std::shared_ptr<const load::Artifact>& artifact, const std::vector<NDArray>& inputs) {
  return floats(load::run(*load::make_executor(artifact, "default", {.threads = 1}), inputs).at(0));
}

// Both, which must give the same.
Floats result(const IRModule& module, const std::vector<NDArray>& inputs) {
  const Floats plain = interpreted(module, inputs);
  EXPECT_EQ(run(compiled(module), inputs), plain);
  return plain;
}

// The names of each fused group's ops; the groups sorted.
std::vector<std::vector<std::string>> groups_of(const IRModule& module) {
  const IRModule fused = passes::fuse_ops(relay::infer_type(module));
  std::vector<std::vector<std::string>> groups;
  relay::post_order(fused->lookup("main"), [&](const Expr& expr) {
    const auto* function = expr.as<relay::FunctionNode>();
    if (function == nullptr || !relay::is_primitive(*function)) return;
    groups.emplace_back();
    relay::post_order(function->body, [&](const Expr& inner) {
      const auto* call = inner.as<relay::CallNode>();
      if (call != nullptr) groups.back().push_back(call->as_op()->name);
    });
  });
  std::sort(groups.begin(), groups.end());
  return groups;
}

TEST(UserOp, AComputeFormIsInterpretedAndCompiled) {
  const IRModule module = read("def @main(%x: Tensor[(2, 2), float32]) { test.scale(%x, factor=2.5f) }");
  EXPECT_THAT(result(module, {tensor({2, 2}, {1, 2, -3, 0.5})}), ElementsAre(2.5, 5, -7.5, 1.25));
  const IRModule usual = read("def @main(%x: Tensor[(2), float32]) { test.scale(%x) }");
  EXPECT_THAT(result(usual, {tensor({2}, {1, 2})}), ElementsAre(2, 4));
}

TEST(UserOp, AReductionIsInterpretedAndCompiled) {
  const IRModule module = read("def @main(%x: Tensor[(2, 3), float32]) { test.row_sum(%x) }");
  EXPECT_THAT(result(module, {tensor({2, 3}, {1, 2, 3, 4, 5, 6})}), ElementsAre(6, 15));
}

TEST(UserOp, LoopsWithSymbolsTakeTheSizesOfTheCall) {
  const IRModule module = read("def @main(%x: Tensor[(2, 3), float32]) { test.square(%x) }");
  EXPECT_THAT(result(module, {tensor({2, 3}, {1, 2, 3, 4, 5, 6})}), ElementsAre(1, 4, 9, 16, 25, 36));
  EXPECT_EQ(ops::why_opaque(*get_op("test.square")), "");
}

TEST(UserOp, OpaqueLoopsAreAKernelOfTheirOwn) {
  const IRModule module = read("def @main(%x: Tensor[(5), float32]) { nn.relu(test.running_sum(multiply(%x, 2f))) }");
  EXPECT_THAT(result(module, {tensor({5}, {1, -3, 1, 2, 4})}), ElementsAre(2, 0, 0, 2, 10));
  EXPECT_THAT(groups_of(module),
              ElementsAre(ElementsAre("multiply"), ElementsAre("nn.relu"), ElementsAre("test.running_sum")));
  EXPECT_THAT(ops::why_opaque(*get_op("test.running_sum")), HasSubstr("y"));
  // The manifest has the reason, too.
  bool is_told = false;
  const auto artifact = compiled(module);
  for (const artifact::CompileNote& note : artifact->manifest().programs[0].notes)
    is_told |= note.reason == HR_REASON_FUSE_PATTERN && !note.message.empty();
  EXPECT_TRUE(is_told);
}

TEST(UserOp, FormsFuseWithWhatIsAround) {
  const IRModule module = read(
      "def @main(%x: Tensor[(2, 4), float32], %w: Tensor[(3, 4), float32], %b: Tensor[(3), float32]) {\n"
      "  nn.relu(test.scale(nn.bias_add(nn.dense(%x, %w, units=3), %b), factor=0.5f))\n"
      "}\n");
  EXPECT_THAT(groups_of(module), ElementsAre(ElementsAre("nn.dense", "nn.bias_add", "test.scale", "nn.relu")));
  const std::vector<NDArray> inputs = {tensor({2, 4}, {1, 2, 3, 4, 0, 1, 0, -1}),
                                       tensor({3, 4}, {1, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, -1}), tensor({3}, {1, 0, 6})};
  EXPECT_THAT(result(module, inputs), ElementsAre(1, 5, 1, 0.5, 0, 3.5));
  // A reduction fuses with ops in front of it, and not with ops behind it.
  EXPECT_THAT(groups_of(read("def @main(%x: Tensor[(2, 3), float32]) { nn.relu(test.row_sum(test.scale(%x))) }")),
              ElementsAre(ElementsAre("nn.relu"), ElementsAre("test.scale", "test.row_sum")));
}

TEST(UserOp, TwoCallsInOneGroupDoNotShareAxes) {
  const IRModule module = read(
      "def @main(%x: Tensor[(2, 3), float32]) {\n"
      "  add(test.square(test.scale(%x, factor=3f)), test.square(test.scale(%x, factor=0.5f)))\n"
      "}\n");
  EXPECT_EQ(groups_of(module).size(), 1u);
  EXPECT_THAT(result(module, {tensor({2, 3}, {2, 4, 0, -2, 6, 1})}), ElementsAre(37, 148, 0, 37, 333, 9.25));
}

TEST(UserOp, StagesAndSeveralResults) {
  register_test_ops();
  // (data - mean of its row, mean of its row)
  const auto form = [](const RuleInput& input) {
    const Buffer& data = input.inputs[0];
    const PrimExpr count = make_const(static_cast<double>(*as_int(data->shape[1])), data->dtype);
    tir::ComputeStage mean = reduce_stage(
        input.make_output(1), tir::Combiner::sum, {data->shape[1]},
        [&](const Index& i, const Index& r) { return make_binary(BinaryOp::div, load(data, {i[0], r[0]}), count); });
    tir::ComputeStage centred =
        map_stage(input.make_output(0), [&](const Index& i) { return load(data, i) - load(mean.output, {i[0]}); });
    return tir::Compute{input.inputs, {mean, centred}, {centred.output, mean.output}};
  };
  const auto relation = [](const RelationInput& input) -> Type {
    return make_tuple_type({input.tensor(0), row_type(input)});
  };
  register_user_op({.name = "test.centre",
                    .arguments = {{"data", "Tensor", ""}},
                    .relation = relation,
                    .compute = ComputeRuleFn(form)});
  const IRModule module =
      read("def @main(%x: Tensor[(2, 2), float32]) { %0 = test.centre(%x); add(%0.0, expand_dims(%0.1, axis=1)) }");
  EXPECT_THAT(result(module, {tensor({2, 2}, {1, 3, -8, 4})}), ElementsAre(1, 3, -8, 4));
  const IRModule means = read("def @main(%x: Tensor[(2, 2), float32]) { %0 = test.centre(%x); %0.1 }");
  EXPECT_THAT(result(means, {tensor({2, 2}, {1, 3, -8, 4})}), ElementsAre(2, -2));
  const auto main = relay::infer_type(means)->lookup("main").cast<relay::FunctionNode>();
  const auto* call = main->body.as<relay::TupleGetItemNode>()->tuple.as<relay::CallNode>();
  EXPECT_EQ(ops::why_opaque(*call), "it has 2 results");
}

TEST(UserOp, AFormNeedNotReadAllInputs) {
  register_test_ops();
  const auto second = [](const RuleInput& input) {
    const auto element = [&](const Index& i) { return load(input.inputs[1], i); };
    tir::Compute form = single_stage(input, map_stage(input.make_output(), element));
    form.inputs = {input.inputs[1]};
    return form;
  };
  register_user_op({.name = "test.second",
                    .arguments = {{"a", "Tensor", ""}, {"b", "Tensor", ""}},
                    .relation = same_type,
                    .compute = ComputeRuleFn(second)});
  const IRModule module =
      read("def @main(%x: Tensor[(2), float32], %y: Tensor[(2), float32]) { test.second(%x, negative(%y)) }");
  EXPECT_THAT(result(module, {tensor({2}, {1, 2}), tensor({2}, {3, 4})}), ElementsAre(-3, -4));
}

TEST(UserOp, LoopsThatAreMadeForEachCall) {
  register_test_ops();
  const auto make = [](const RuleInput& input) {
    const int64_t n = *as_int(input.in_types[0]->shape[0]);
    return loops(
        fmt::format("prim_func @reversed(x: Buffer[({0}), float32]) -> (y: Buffer[({0}), float32]) {{\n"
                    "  for i in serial({0}) {{ y[i] = x[{1} - i]; }}\n"
                    "}}\n",
                    n, n - 1));
  };
  register_user_op({.name = "test.reversed",
                    .arguments = {{"data", "Tensor", ""}},
                    .relation = same_type,
                    .compute = PrimFuncFn(make)});
  const IRModule module = read("def @main(%x: Tensor[(3), float32]) { test.reversed(nn.relu(%x)) }");
  EXPECT_THAT(result(module, {tensor({3}, {1, -2, 3})}), ElementsAre(3, 0, 1));
  EXPECT_THAT(groups_of(module), ElementsAre(ElementsAre("nn.relu", "test.reversed")));
}

// ---- functions of the process

TEST(UserOp, AFunctionIsAnExternalStep) {
  const IRModule module = read("def @main(%x: Tensor[(3), float32]) { nn.relu(test.halve(negative(%x))) }");
  EXPECT_THAT(result(module, {tensor({3}, {-2, 4, -1})}), ElementsAre(1, 0, 0.5));
  EXPECT_THAT(ops::why_opaque(*get_op("test.halve")), HasSubstr("the function 'test.halve.impl' computes it"));
  const auto artifact = compiled(module);
  const artifact::Program& program = artifact->manifest().programs[0];
  std::vector<std::string> externals;
  for (const artifact::Step& step : program.graph.steps) {
    if (const auto* call = std::get_if<artifact::ExternalCall>(&step.action)) externals.push_back(call->function);
  }
  EXPECT_THAT(externals, ElementsAre("test.halve.impl"));
  for (const artifact::Placement& placement : program.placement) {
    if (placement.backend != "external") continue;
    EXPECT_EQ(placement.reason, HR_REASON_NONE);
    EXPECT_EQ(placement.message, "calls the function 'test.halve.impl'");
  }
}

TEST(UserOp, AFunctionsErrorReachesTheCaller) {
  const auto artifact = compiled(read("def @main(%x: Tensor[(3), float32]) { test.halve(%x) }"));
  EXPECT_THAT(kit::user_error_of([&] { run(artifact, {tensor({3}, {-1, 0, 0})}); }), HasSubstr("x[0] is negative"));
  EXPECT_THAT(run(artifact, {tensor({3}, {1, 0, 4})}), ElementsAre(0.5, 0, 2));
}

TEST(UserOp, AFunctionsErrorSaysItsKindWhereItIsNotOurs) {
  register_test_ops();
  auto fails = make_object<FunctionObj>();
  fails->safe_call = [](void*, const RawValue*, int32_t, RawValue*) {
    auto error = make_object<ErrorObj>();
    error->kind = "KeyError";
    error->message = "no 'x' " + std::string(600, '.');
    store_error(std::move(error));
    return -1;
  };
  register_global("test.fails.impl", PackedFunc(fails));
  register_user_op({.name = "test.fails",
                    .arguments = {{"data", "Tensor", ""}},
                    .relation = same_type,
                    .compute = ExternalFunction{"test.fails.impl"}});
  const auto artifact = compiled(read("def @main(%x: Tensor[(3), float32]) { test.fails(%x) }"));
  const std::string message = kit::user_error_of([&] { run(artifact, {tensor({3}, {1, 2, 3})}); });
  EXPECT_THAT(message, ::testing::StartsWith("KeyError: no 'x' ..."));
  EXPECT_THAT(message, HasSubstr("at: <text>:2:39"));
  EXPECT_FALSE(take_stored_error()) << "the error is left with the thread";
}

TEST(UserOp, AFunctionGetsItsOperandsAsTheCallSays) {
  const IRModule same = read("def @main(%x: Tensor[(3), float32]) { test.combine(%x, %x, %x) }");
  EXPECT_THAT(result(same, {tensor({3}, {1, 2, 3})}), ElementsAre(0, -2, -6));
  const IRModule constant =
      read("def @main(%x: Tensor[(3), float32], %y: Tensor[(3), float32]) { test.combine(%y, 10f, %x) }");
  EXPECT_THAT(result(constant, {tensor({3}, {1, 2, 3}), tensor({3}, {5, 5, 5})}), ElementsAre(-5, -15, -25));
}

TEST(UserOp, AMissingFunctionIsNamed) {
  register_test_ops();
  register_user_op({.name = "test.nowhere",
                    .arguments = {{"data", "Tensor", ""}},
                    .relation = same_type,
                    .compute = ExternalFunction{"test.nowhere.impl"}});
  const IRModule module = read("def @main(%x: Tensor[(3), float32]) { test.nowhere(%x) }");
  EXPECT_THAT(kit::user_error_of([&] { interpreted(module, {tensor({3}, {1, 2, 3})}); }),
              HasSubstr("there is no global function 'test.nowhere.impl'"));
  const auto artifact = compiled(module);
  const auto executor = load::try_make_executor(artifact, "default", {.threads = 1});
  ASSERT_FALSE(executor);
  EXPECT_EQ(executor.refusal().code, HR_REASON_SYMBOL_MISSING);
  EXPECT_THAT(executor.refusal().message, HasSubstr("'net.so' needs the function 'test.nowhere.impl'"));
  register_global("test.nowhere.impl", packed(&halve));
  EXPECT_THAT(run(artifact, {tensor({3}, {1, 2, 3})}), ElementsAre(0.5, 1, 1.5));
  // A call of constants waits for the function.
  const IRModule constant = read("def @main() { test.nowhere(const(Tensor[(3), float32], [1, 2, 3])) }");
  EXPECT_EQ(kit::user_error_of([&] { compiled(constant); }), "");
}

TEST(UserOp, BareClientsNeedTheRuntimeForFunctions) {
  const auto code = [](const IRModule& module) {
    const driver::CompiledModel model = compile_to_memory(make_model(module));
    void* library = dlopen(fmt::format("/proc/self/fd/{}", model.descriptor.number()).c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library, nullptr) << dlerror();
    if (library == nullptr) return -1;
    const int result =
        reinterpret_cast<headrace_run_function>(dlsym(library, HR_RUN_SYMBOL))(nullptr, 0, nullptr, 0, nullptr);
    dlclose(library);
    return result;
  };
  EXPECT_EQ(code(read("def @main(%x: Tensor[(3), float32]) { test.halve(%x) }")), HR_REASON_NEEDS_RUNTIME);
  EXPECT_EQ(code(read("def @main(%x: Tensor[(3), float32]) { test.scale(%x) }")), HR_REASON_BAD_TENSOR);
}

// ---- evaluation

TEST(UserOp, AFloat64RunComputesItInItsOwnDtype) {
  const IRModule module = relay::infer_type(read("def @main(%x: Tensor[(2), float32]) { test.halve(test.scale(%x)) }"));
  const NDArray y = interp::run_main(module, {tensor({2}, {3, 5})}, {.precision = interp::Precision::float64}).at(0);
  EXPECT_EQ(y.dtype(), DataType::float_(64));
  EXPECT_EQ(y.data<const double>()[0], 3);
  EXPECT_EQ(y.data<const double>()[1], 5);
}

// ---- sizes that only the data determines

// data[i, j] + bias[j]
tir::Compute bias_form(const RuleInput& input) {
  return single_stage(input, map_stage(input.make_output(), [&](const Index& i) {
                        return load(input.inputs[0], i) + load(input.inputs[1], {i[1]});
                      }));
}

TEST(UserOp, AnElementwiseFormFollowsAnUnknownSize) {
  register_test_ops();
  register_user_op({.name = "test.bias",
                    .arguments = {{"data", "Tensor", ""}, {"bias", "Tensor", ""}},
                    .relation = same_type,
                    .compute = ComputeRuleFn(bias_form)});
  const std::vector<NDArray> inputs = {tensor({4}, {0, 5, 0, 7})};
  const IRModule scaled =
      read("def @main(%x: Tensor[(4), float32]) { test.scale(cast(argwhere(%x), dtype=\"float32\"), factor=3f) }");
  EXPECT_THAT(result(scaled, inputs), ElementsAre(3, 9));
  const IRModule biased = read(
      "def @main(%x: Tensor[(2, 2), float32]) {\n"
      "  test.scale(test.bias(cast(argwhere(%x), dtype=\"float32\"), const(Tensor[(2), float32], [10, 20])))\n"
      "}\n");
  EXPECT_THAT(result(biased, {tensor({2, 2}, {0, 5, 6, 0})}), ElementsAre(20, 42, 22, 40));
}

// The buffer is longer than the valid data: nothing may depend on its size, or on elements past the data.
TEST(UserOp, OtherFormsDoNotFollowAnUnknownSize) {
  register_test_ops();
  const auto refused = [](const std::string& name, UserCompute compute, bool is_stateful = false) {
    register_user_op({.name = name,
                      .arguments = {{"data", "Tensor", ""}},
                      .relation = same_type,
                      .compute = std::move(compute),
                      .is_stateful = is_stateful});
    const IRModule module =
        read(fmt::format("def @main(%x: Tensor[(4), float32]) {{ {}(cast(argwhere(%x), dtype=\"float32\")) }}", name));
    EXPECT_THAT(kit::user_error_of([&] { compiled(module); }), HasSubstr("has a data-dependent size"));
  };
  const auto element = [](const std::function<PrimExpr(const Buffer&, const Index&)>& value) {
    return ComputeRuleFn([value](const RuleInput& input) {
      return single_stage(input,
                          map_stage(input.make_output(), [&](const Index& i) { return value(input.inputs[0], i); }));
    });
  };
  const DataType f32 = DataType::float_(32);
  refused("test.open_mean", element([&](const Buffer& x, const Index& i) {
            return make_binary(BinaryOp::div, load(x, i), make_cast(f32, x->shape[0]));
          }));
  refused("test.open_place",
          element([&](const Buffer& x, const Index& i) { return load(x, i) + make_cast(f32, i[0]); }));
  refused("test.open_back",
          element([](const Buffer& x, const Index& i) { return load(x, {x->shape[0] - 1 - i[0], i[1]}); }));
  refused("test.open_number", element([](const Buffer& x, const Index& i) {
            if (!as_int(x->shape[0])) throw_user_error("a number is needed");
            return load(x, i);
          }));
  refused("test.open_effect", element([](const Buffer& x, const Index& i) { return load(x, i); }), true);
  refused("test.open_function", ExternalFunction{"test.halve.impl"});
}

TEST(UserOp, AnEvaluationCountsWhateverIsSetAfterIt) {
  register_test_ops();
  const auto seven = [](const ops::EvalInput& input) {
    const NDArray y = input.make_output();
    for (int64_t i = 0; i < y.num_elements(); ++i) set_element(y.tensor(), i, 7);
    return std::vector<NDArray>{y};
  };
  for (const bool eval_first : {false, true}) {
    const Op op = declare_user_op("test.eval_order", "", true);
    add_user_argument(op, {"data", "Tensor", ""});
    add_user_attr(op, {"factor", relay::AttrKind::real, Value(2.0), ""});
    set_user_relation(op, same_type);
    if (eval_first) set_user_eval(op, seven);
    set_user_compute(op, ComputeRuleFn(scale_form));
    if (!eval_first) set_user_eval(op, seven);
    const IRModule module = read("def @main(%x: Tensor[(2), float32]) { test.eval_order(%x) }");
    EXPECT_THAT(interpreted(module, {tensor({2}, {1, 2})}), ElementsAre(7, 7)) << eval_first;
  }
}

TEST(UserOp, AnEvaluationOfTheUsersOwnIsTheOneThatCounts) {
  register_test_ops();
  const auto eval = [](const ops::EvalInput& input) {
    const NDArray y = input.make_output();
    for (int64_t i = 0; i < y.num_elements(); ++i) set_element(y.tensor(), i, 7);
    return std::vector<NDArray>{y};
  };
  register_user_op({.name = "test.seven", .arguments = {{"data", "Tensor", ""}}, .relation = same_type, .eval = eval});
  const IRModule module = read("def @main(%x: Tensor[(2), float32]) { test.seven(%x) }");
  EXPECT_THAT(interpreted(module, {tensor({2}, {1, 2})}), ElementsAre(7, 7));
  EXPECT_EQ(ops::why_opaque(*get_op("test.seven")), "nothing says how it is computed");
  const std::string told = kit::user_error_of([&] { compiled(module); });
  EXPECT_THAT(told, HasSubstr("no compute rule for 'test.seven', so it cannot be compiled"));
  EXPECT_THAT(told, HasSubstr("relay.op.register_compute gives an op one"));
}

}  // namespace
}  // namespace headrace::lower
