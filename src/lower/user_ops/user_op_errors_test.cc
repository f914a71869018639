// Tests refusals: names that cannot be used, indices out of bounds, tensors of another call.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driver/compile.h"
#include "interp/interp.h"
#include "kit/errors.h"
#include "lower/user_ops/check_indices.h"
#include "lower/user_ops/tests/unary_op.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"
#include "relay/text/print.h"
#include "object/structural_equal.h"
#include "tir/parse.h"

namespace headrace::lower {
namespace {

using relay::AttrKind;
using ::testing::AllOf;
using ::testing::HasSubstr;

const DataType kFloat = DataType::float_(32);

// ---- names

TEST(UserOpNames, WordsOfTheTextFormNameNoOp) {
  for (const char* word :
       {"if",     "else",  "let",      "fn",        "match", "def",   "type", "import",     "free_var", "meta",
        "const",  "ref",   "ref_read", "ref_write", "True",  "False", "None", "nan",        "inf",      "nanf",
        "inff16", "nan.x", "_",        "Tensor",    "dtype", "int8",  "min",  "dyn.reshape"}) {
    EXPECT_THAT(kit::user_error_of([&] { register_user_op(unary(word)); }),
                AllOf(HasSubstr(fmt::format("'{}' cannot name an op: it means something else in text", word)),
                      HasSubstr("choose such as \"my.")));
    EXPECT_THAT(kit::user_error_of([&] { declare_user_op(word, ""); }), HasSubstr("cannot name an op")) << word;
  }
}

// A name that is not refused reads back as it prints.
TEST(UserOpNames, OtherNamesReadBack) {
  for (const char* name : {"if.x", "let_", "fn2", "nano", "inform", "nanf1", "my.if", "my.nan", "true", "dyn.mine",
                           "_x", "names.Ab_1", "infer.x"}) {
    UserOp op = unary(name);
    op.attrs = {{"factor", AttrKind::real, Value(2.0)},
                {"nanf", AttrKind::integer, Value(0)},
                {"inf", AttrKind::integer, Value(0)},
                {"match", AttrKind::integer, Value(0)}};
    register_user_op(op);
    const relay::Var x = relay::make_var("x", make_tensor_type(Shape{2}, kFloat));
    const auto call = make_user_call(name, {x}, {{"factor", 0.5}, {"nanf", 1}, {"inf", 2}, {"match", 3}});
    const IRModule module = make_module(relay::make_function({x}, call));
    assert_structural_equal(Value(relay::parse_module(relay::print_module(module))), Value(module));
  }
}

TEST(UserOpNames, ParametersHaveNamesThatCallsCanGive) {
  const auto attr = [](const std::string& name) {
    return kit::user_error_of([&] {
      UserOp op = unary("errors.attr");
      op.attrs = {{name, AttrKind::integer, Value(1)}};
      register_user_op(op);
    });
  };
  const auto argument = [](const std::string& name) {
    return kit::user_error_of([&] {
      UserOp op = unary("errors.argument");
      op.arguments.push_back({name, "Tensor", ""});
      register_user_op(op);
    });
  };
  for (const char* name : {"attrs", "attrs_type_key", "values", "keys", "items", "get", "copy_with", "type_key"})
    EXPECT_THAT(attr(name),
                HasSubstr(fmt::format("errors.attr: '{}' cannot name an attribute: attributes have something "
                                      "else of that name",
                                      name)));
  EXPECT_THAT(attr("__class__"), HasSubstr("names that begin with _ are Python's own"));
  for (const char* name : {"if", "lambda", "None", "def", "in", "class", "yield"}) {
    EXPECT_THAT(attr(name), HasSubstr("cannot name an attribute: it is a word of Python"));
    EXPECT_THAT(argument(name), HasSubstr("cannot name an argument: it is a word of Python"));
  }
  for (const char* name : {"self", "span", "args"}) {
    EXPECT_THAT(attr(name), HasSubstr("cannot name an attribute: calls take a parameter of that name themselves"));
    EXPECT_THAT(argument(name), HasSubstr("cannot name an argument: calls take a parameter of that name themselves"));
  }
  EXPECT_THAT(argument("left hand"), HasSubstr("errors.argument: 'left hand' cannot name an argument: choose letters"));
  EXPECT_THAT(argument(""), HasSubstr("'' cannot name an argument"));
  EXPECT_FALSE(find_op("errors.attr"));
  EXPECT_FALSE(find_op("errors.argument"));
}

// Empty functions are refused at once; the first call would throw std::bad_function_call. The old computation stays.
TEST(UserOpErrors, EmptyFunctionsAreRefusedAtOnce) {
  UserOp given = unary("errors.empty");
  given.compute = ComputeRuleFn(copy_form);
  const Op op = register_user_op(given);
  EXPECT_EQ(kit::user_error_of([&] { set_user_relation(op, {}); }),
            "errors.empty: the function that is its type relation is empty; give one that can be called");
  EXPECT_EQ(kit::user_error_of([&] { set_user_compute(op, ComputeRuleFn()); }),
            "errors.empty: the function that makes its compute form is empty; give one that can be called");
  EXPECT_EQ(kit::user_error_of([&] { set_user_compute(op, PrimFuncFn()); }),
            "errors.empty: the function that makes its loops is empty; give one that can be called");
  EXPECT_EQ(kit::user_error_of([&] { set_user_eval(op, {}); }),
            "errors.empty: the function that evaluates it is empty; give one that can be called");
  given.name = "errors.of_nothing";
  given.compute = PrimFuncFn();
  EXPECT_THAT(kit::user_error_of([&] { register_user_op(given); }), HasSubstr("errors.of_nothing: the function that"));
  EXPECT_NE(op->find(ops::kCallFusion), nullptr);
}

TEST(UserOpNames, AParameterIsNamedOnce) {
  const Op op = declare_user_op("errors.once", "");
  add_user_argument(op, {"data", "Tensor", ""});
  add_user_attr(op, {"axis", AttrKind::integer, Value(1)});
  const auto argument = [&](const char* name) {
    return kit::user_error_of([&] { add_user_argument(op, {name, "Tensor", ""}); });
  };
  EXPECT_EQ(argument("data"), "errors.once: there is an argument 'data' already");
  EXPECT_EQ(argument("axis"), "errors.once: there is an attribute 'axis' already");
  EXPECT_EQ(kit::user_error_of([&] { add_user_attr(op, {"data", AttrKind::integer}); }),
            "errors.once: there is an argument 'data' already");
  EXPECT_EQ(op->num_inputs, 1) << "an argument that was refused is counted";
}

// ---- indices

// Makes an op from the value at index i of the data x, and returns the errors of interpreting and of compiling a call.
using Element = std::function<PrimExpr(const Buffer&, const Index&)>;

std::pair<std::string, std::string> errors_of(const UserCompute& compute,
                                              const std::string& type = "Tensor[(4), float32]") {
  UserOp op = unary("errors.indexed");
  op.override = true;
  op.compute = compute;
  register_user_op(op);
  const IRModule module =
      relay::parse_module(fmt::format("#[version = \"0.0.5\"]\ndef @main(%x: {}) {{ errors.indexed(%x) }}\n", type));
  const auto main = module->lookup("main").cast<relay::FunctionNode>();
  const auto* tensor = main->params[0]->type_annotation.as<TensorTypeNode>();
  const NDArray x = NDArray::zeros(*as_shape(tensor->shape), tensor->dtype);
  return {kit::user_error_of([&] { interp::run_main(module, {x}); }),
          kit::user_error_of([&] { driver::compile_to_memory(driver::make_model(module)); })};
}

UserCompute form_of(const Element& element) {
  return ComputeRuleFn([element](const RuleInput& input) {
    const Buffer x = input.inputs[0];
    return single_stage(input, map_stage(input.make_output(), [&](const Index& i) { return element(x, i); }));
  });
}

// Both say so.
void expect_outside(const UserCompute& compute, const std::string& what) {
  const auto [interpreted, compiled] = errors_of(compute);
  EXPECT_THAT(interpreted, AllOf(HasSubstr("errors.indexed: its compute form "), HasSubstr(what)));
  EXPECT_THAT(compiled, AllOf(HasSubstr("errors.indexed: its compute form "), HasSubstr(what)));
}

PrimExpr less(const PrimExpr& a, const PrimExpr& b) { return make_binary(BinaryOp::lt, a, b); }
PrimExpr zero() { return make_float(0, kFloat); }

TEST(UserOpIndices, OutsideIsAnErrorWithTheIndexAndTheSize) {
  expect_outside(
      form_of([](const Buffer& x, const Index& i) { return load(x, {i[0] + 1}); }),
      "reads 'data' outside: index 0 is `i0 + 1`, which goes from 1 to 4, and the dimension has 4 elements; an "
      "element that may not be there is read in a branch of if_then_else");
  expect_outside(form_of([](const Buffer& x, const Index& i) { return load(x, {make_int(1) - i[0]}); }),
                 "which goes from -2 to 1, and the dimension has 4 elements");
  expect_outside(form_of([](const Buffer& x, const Index&) { return load(x, {make_int(4)}); }),
                 "index 0 is `4`, which is 4, and the dimension has 4 elements");
  expect_outside(form_of([](const Buffer& x, const Index& i) { return load(x, {i[0] * 2 - i[0] + i[0]}); }),
                 "which goes from 0 to 6");
  // select evaluates both sides; the condition of a choice is always read.
  expect_outside(form_of([](const Buffer& x, const Index& i) {
                   return make_select(less(i[0], make_int(3)), load(x, {i[0] + 1}), zero());
                 }),
                 "goes from 1 to 4");
  expect_outside(form_of([](const Buffer& x, const Index& i) {
                   return guarded(less(load(x, {i[0] - 1}), zero()), zero(), zero());
                 }),
                 "goes from -1 to 2");
}

TEST(UserOpIndices, ReductionsAndPartsAreChecked) {
  const auto window = [](int64_t size) {
    return ComputeRuleFn([size](const RuleInput& input) {
      const auto value = [&](const Index& i, const Index& r) { return load(input.inputs[0], {i[0] + r[0]}); };
      return single_stage(input, reduce_stage(input.make_output(), tir::Combiner::sum, {make_int(size)}, value));
    });
  };
  expect_outside(window(3), "index 0 is `i0 + r0`, which goes from 0 to 5");
  EXPECT_EQ(errors_of(window(1)), std::pair(std::string(), std::string()));
  EXPECT_EQ(errors_of(window(0)), std::pair(std::string(), std::string())) << "nothing is read";
  const auto parts = [](int64_t second) {
    return ComputeRuleFn([second](const RuleInput& input) {
      const Buffer y = input.make_output();
      const auto element = [&](const Index& i) { return load(input.inputs[0], i); };
      const Array<PrimExpr> half = to_dims({2});
      return tir::Compute{
          input.inputs,
          {part_stage(y, {make_int(0)}, half, element), part_stage(y, {make_int(second)}, half, element)},
          {y}};
    });
  };
  expect_outside(
      parts(3),
      "writes 'errors.indexed' outside: index 0 is `i0 + 3`, which goes from 3 to 4, and the dimension has 4 "
      "elements; give the part fewer elements, or another place");
  EXPECT_EQ(errors_of(parts(2)).second, "");
}

TEST(UserOpIndices, LoopsThatAreAFormAreChecked) {
  const auto loops = [](const char* index) {
    return tir::parse_function(
        fmt::format("#[tir_version = \"1\"]\nprim_func @f(x: Buffer[(n), float32]) -> (y: Buffer[(n), float32]) {{\n"
                    "  for i in serial(n) {{ y[i] = x[{}]; }}\n}}\n",
                    index));
  };
  EXPECT_THAT(errors_of(loops("i + 1")).second, HasSubstr("reads 'data' outside: index 0 is `i + 1`"));
  EXPECT_EQ(errors_of(loops("n - 1 - i")), std::pair(std::string(), std::string()));
}

// An index that cannot be proved to be out of bounds is accepted and runs.
TEST(UserOpIndices, IndicesThatMayBeInsideAreTaken) {
  const auto fine = [](const Element& element) {
    EXPECT_EQ(errors_of(form_of(element)), std::pair(std::string(), std::string()));
  };
  fine([](const Buffer& x, const Index& i) { return load(x, {make_int(3) - i[0]}); });
  fine([](const Buffer& x, const Index& i) { return load(x, {i[0] * 3 - i[0] * 2}); });
  fine([](const Buffer& x, const Index& i) { return load(x, {floor_mod(i[0] + 2, make_int(4))}); });
  fine([](const Buffer& x, const Index& i) { return guarded(less(i[0], make_int(3)), load(x, {i[0] + 1}), zero()); });
  fine([](const Buffer& x, const Index& i) { return load(x, {make_cast(DataType::int_(64), load(x, i))}); });
  const auto past_64_bits = form_of([](const Buffer& x, const Index& i) {
    const PrimExpr huge = i[0] * INT64_MAX;
    return guarded(less(i[0], make_int(0)), load(x, {huge + huge}), load(x, i));
  });
  EXPECT_EQ(errors_of(past_64_bits), std::pair(std::string(), std::string()));
  EXPECT_EQ(
      errors_of(form_of([](const Buffer& x, const Index& i) { return load(x, {i[0] + 1}); }), "Tensor[(0), float32]"),
      std::pair(std::string(), std::string()))
      << "nothing is read";
}

// ---- tensors of another call

TEST(UserOpErrors, AFormThatKeepsTensorsOfAnEarlierCallIsRefusedAtOnce) {
  auto kept = std::make_shared<std::optional<tir::Compute>>();
  const ComputeRuleFn keeps = [kept](const RuleInput& input) {
    if (!*kept) {
      *kept =
          single_stage(input, map_stage(input.make_output(), [&](const Index& i) { return load(input.inputs[0], i); }));
    }
    return **kept;
  };
  const auto [interpreted, compiled] = errors_of(keeps);
  EXPECT_THAT(interpreted, HasSubstr("errors.indexed: its compute form reads 'data', which is not an input of the op"));
  EXPECT_EQ(interpreted, compiled);
}

}  // namespace
}  // namespace headrace::lower
