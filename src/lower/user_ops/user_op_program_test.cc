// Ops of users in programs: attributes, types, text, JSON, passes, and every refusal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <thread>

#include "driver/compile.h"
#include "driver/register_all.h"
#include "interp/interp.h"
#include "kit/errors.h"
#include "lower/user_ops/open_attrs.h"
#include "lower/user_ops/tests/unary_op.h"
#include "object/json.h"
#include "object/structural_equal.h"
#include "object/structural_hash.h"
#include "passes/fold/dead_code_elimination.h"
#include "passes/fold/eliminate_common_subexpr.h"
#include "passes/fold/fold_constant.h"
#include "passes/fold/partial_evaluate.h"
#include "passes/fuse/fuse_ops.h"
#include "passes/gradient/first_order_gradient.h"
#include "passes/simplify/legalize.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"
#include "relay/text/print.h"
#include "tir/parse.h"

namespace headrace::lower {
namespace {

using driver::compile_to_memory;
using driver::make_model;
using ops::FusionKind;
using relay::AttrKind;
using relay::RelationInput;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kHeader = "#[version = \"0.0.5\"]\n";

void register_prog_ops() {
  static std::once_flag once;
  std::call_once(once, [] {
    UserOp all = unary("prog.all");
    all.attrs = {{"required", AttrKind::integer},
                 {"number", AttrKind::integer, Value(3)},
                 {"factor", AttrKind::real, Value(1)},
                 {"flag", AttrKind::boolean, Value(false)},
                 {"mode", AttrKind::text, Value("near\"est")},
                 {"out", AttrKind::dtype, Value("float16")},
                 {"size", AttrKind::shape, Value(Shape{1, 2})},
                 {"axes", AttrKind::integers, Value(Array<int64_t>{-1})},
                 {"scales", AttrKind::reals, Value(Array<double>{0.5, 2})}};
    all.compute = ComputeRuleFn(copy_form);
    register_user_op(all);
    UserOp plain = unary("prog.plain");
    plain.compute = ComputeRuleFn(copy_form);
    register_user_op(plain);
    UserOp effect = unary("prog.effect");
    effect.compute = ComputeRuleFn(copy_form);
    effect.is_stateful = true;
    register_user_op(effect);
  });
}

IRModule read_prog(const std::string& function) {
  register_prog_ops();
  return relay::parse_module(kHeader + function);
}

std::string error_of(const std::string& function) {
  return kit::user_error_of([&] { relay::infer_type(read_prog(function)); });
}

relay::Var var_x(const Shape& shape = {2}) { return relay::make_var("x", make_tensor_type(shape)); }

// ---- attributes

TEST(UserAttrs, TextRoundTripLeavesDefaultsOut) {
  register_prog_ops();
  const relay::Var x = var_x();
  const auto text_of = [&](const std::vector<std::pair<std::string, Value>>& attrs) {
    const IRModule module = make_module(relay::make_function({x}, make_user_call("prog.all", {x}, attrs)));
    const std::string text = relay::print_module(module);
    assert_structural_equal(Value(relay::parse_module(text)), Value(module));
    return text;
  };
  EXPECT_THAT(text_of({{"required", 4}}), HasSubstr("prog.all(%x, required=4)"));
  EXPECT_THAT(text_of({{"required", -1}, {"number", 3}, {"factor", 1.0}}), HasSubstr("prog.all(%x, required=-1)"));
  EXPECT_THAT(text_of({{"scales", Array<double>{1, 2}},
                       {"axes", Array<int64_t>{}},
                       {"size", Shape{4}},
                       {"out", "int8"},
                       {"mode", "x"},
                       {"flag", true},
                       {"factor", 0.25},
                       {"number", 5},
                       {"required", 0}}),
              HasSubstr("required=0, number=5, factor=0.25f, flag=True, mode=\"x\", out=\"int8\", size=[4], axes=[], "
                        "scales=[1f, 2f])"));
}

TEST(UserAttrs, JsonEqualityAndHash) {
  register_prog_ops();
  const relay::Var x = var_x();
  const auto call = [&](const std::vector<std::pair<std::string, Value>>& attrs) {
    return Value(make_user_call("prog.all", {x}, attrs));
  };
  const Value a = call({{"required", 1}, {"size", Shape{3, 4}}}),
              b = call({{"size", Array<int64_t>{3, 4}}, {"required", 1}}),
              c = call({{"required", 2}, {"size", Shape{3, 4}}});
  EXPECT_TRUE(structural_equal(a, b));
  EXPECT_EQ(structural_hash(a), structural_hash(b));
  EXPECT_FALSE(structural_equal(a, c));
  EXPECT_NE(structural_hash(a), structural_hash(c));
  const Value loaded = load_json(save_json(a));
  EXPECT_TRUE(structural_equal(loaded, a, {.map_free_vars = true}));
  EXPECT_EQ(loaded.as_node<relay::CallNode>()->as_op(), get_op("prog.all").get());
}

TEST(UserAttrs, ErrorsOfCalls) {
  EXPECT_THAT(error_of("def @main(%x: Tensor[(2), float32]) { prog.all(%x) }"),
              HasSubstr("prog.all needs its attribute 'required': int"));
  EXPECT_THAT(error_of("def @main(%x: Tensor[(2), float32]) { prog.all(%x, required=1, speed=2) }"),
              HasSubstr("prog.all has no attribute 'speed'; its attributes: required, number, factor"));
  EXPECT_THAT(error_of("def @main(%x: Tensor[(2), float32]) { prog.all(%x, required=1, required=2) }"),
              HasSubstr("the attribute 'required' is given twice"));
  EXPECT_THAT(error_of("def @main(%x: Tensor[(2), float32]) { prog.plain(%x, axis=1) }"),
              HasSubstr("takes no attributes, but 'axis' is given"));
  EXPECT_THAT(error_of("def @main(%x: Tensor[(2), float32]) { prog.all(%x, attrs=None) }"), HasSubstr("got none"));
  const auto wrong = [](const char* name, const Value& value) {
    return kit::user_error_of([&] { make_user_call("prog.all", {}, {{"required", 1}, {name, value}}); });
  };
  EXPECT_THAT(wrong("number", Value("3")), HasSubstr("prog.all: attribute 'number': expected int, got \"3\""));
  EXPECT_THAT(wrong("number", Value(true)), HasSubstr("expected int"));
  EXPECT_THAT(wrong("factor", Value("3")), HasSubstr("expected float"));
  EXPECT_THAT(wrong("flag", Value(1)), HasSubstr("expected bool"));
  EXPECT_THAT(wrong("mode", Value(1)), HasSubstr("expected str"));
  EXPECT_THAT(wrong("out", Value("floaty")), HasSubstr("expected dtype"));
  EXPECT_THAT(wrong("size", Value(Array<double>{1.5})), HasSubstr("expected shape"));
  EXPECT_THAT(wrong("axes", Value(1)), HasSubstr("expected Array[int]"));
  EXPECT_THAT(wrong("scales", Value(Array<std::string>{"a"})), HasSubstr("expected Array[float]"));
}

// As calls are that were saved before the op got its other attributes.
TEST(UserAttrs, DefaultsMayBeLeftOutOfANode) {
  register_prog_ops();
  const relay::Var x = var_x();
  auto attrs = make_object<relay::UserAttrsNode>();
  attrs->values.set("required", Value(1));
  const relay::Call call = relay::make_call(Expr(get_op("prog.all")), {x}, Attrs(attrs));
  relay::infer_type(make_module(relay::make_function({x}, call)));
  EXPECT_EQ(relay::user_attr(*call.get(), "number").as<int64_t>(), 3);
  attrs->values.set("factor", Value(1));
  const relay::Call other = relay::make_call(Expr(get_op("prog.all")), {x}, Attrs(attrs));
  EXPECT_THAT(kit::user_error_of([&] { relay::infer_type(make_module(relay::make_function({x}, other))); }),
              HasSubstr("its attribute 'factor' is 1 (int) and must be 1 (float)"));
}

// Nodes that were put together by hand, or saved when the op had other attributes.
TEST(UserAttrs, UnknownAttributesAreRefusedAndPrinted) {
  register_prog_ops();
  const relay::Var x = var_x();
  auto attrs = make_object<relay::UserAttrsNode>();
  attrs->values.set("required", Value("one"));
  const IRModule module =
      make_module(relay::make_function({x}, relay::make_call(Expr(get_op("prog.all")), {x}, Attrs(attrs))));
  EXPECT_THAT(kit::user_error_of([&] { relay::infer_type(module); }), HasSubstr("attribute 'required': expected int"));
  const std::string text = relay::print_module(module);
  EXPECT_THAT(text, HasSubstr("attrs_type_key=\"relay.attrs.UserAttrs\""));
  assert_structural_equal(Value(relay::parse_module(text)), Value(module));
  EXPECT_THAT(kit::user_error_of([&] { relay::user_attr(*make_user_call("prog.plain", {x}).get(), "axis"); }),
              HasSubstr("the call has no attribute 'axis'"));
}

TEST(UserAttrs, ErrorsOfSchemas) {
  register_prog_ops();
  const auto with = [](const relay::AttrSpec& spec) {
    return kit::user_error_of([&] {
      UserOp op = unary("prog.bad_attr");
      op.attrs = {{"axis", AttrKind::integer}, spec};
      register_user_op(op);
    });
  };
  EXPECT_THAT(with({"axis", AttrKind::real}), HasSubstr("there is an attribute 'axis' already"));
  EXPECT_THAT(with({"", AttrKind::real}), HasSubstr("'' cannot name an attribute"));
  EXPECT_THAT(with({"a b", AttrKind::real}), HasSubstr("'a b' cannot name an attribute"));
  EXPECT_THAT(with({"on", AttrKind::boolean, Value("yes")}), HasSubstr("attribute 'on': expected bool, got \"yes\""));
  EXPECT_FALSE(find_op("prog.bad_attr")) << "a failed registration leaves an op behind";
  EXPECT_THAT(kit::user_error_of([] { relay::parse_attr_kind("double"); }),
              HasSubstr("'double' is not a kind of attribute; the kinds: int, float, bool"));
}

// ---- registration

TEST(UserOps, NamesAreTakenOnce) {
  register_prog_ops();
  EXPECT_THAT(kit::user_error_of([] { register_user_op(unary("prog.plain")); }),
              HasSubstr("op 'prog.plain' is registered already; ask for override"));
  UserOp builtin = unary("nn.relu");
  builtin.override = true;
  EXPECT_THAT(kit::user_error_of([&] { register_user_op(builtin); }), HasSubstr("'nn.relu' is an op of Headrace"));
  EXPECT_THAT(kit::user_error_of([] { register_user_op(unary("")); }), HasSubstr("'' cannot name an op"));
  EXPECT_THAT(kit::user_error_of([] { register_user_op(unary("my scale")); }), HasSubstr("cannot name an op"));
  EXPECT_THAT(kit::user_error_of([] { set_user_stateful(get_op("nn.relu"), true); }),
              HasSubstr("'nn.relu' is an op of Headrace, which is not changed"));
}

TEST(UserOps, AnOverrideLeavesOldProgramsAlone) {
  register_prog_ops();
  const auto constant = [](float value) {
    UserOp op = unary("prog.constant");
    op.override = true;
    op.eval = [value](const ops::EvalInput& input) {
      const NDArray y = input.make_output();
      for (int64_t i = 0; i < y.num_elements(); ++i) set_element(y.tensor(), i, value);
      return std::vector<NDArray>{y};
    };
    register_user_op(op);
    return read_prog("def @main(%x: Tensor[(1), float32]) { prog.constant(%x) }");
  };
  const IRModule before = constant(1), after = constant(2);
  const std::vector<NDArray> inputs = {NDArray::zeros({1}, DataType::float_(32))};
  EXPECT_EQ(interp::run_main(before, inputs).at(0).data<const float>()[0], 1);
  EXPECT_EQ(interp::run_main(after, inputs).at(0).data<const float>()[0], 2);
}

TEST(UserOps, RegisteringWhileOthersReadTheTable) {
  register_prog_ops();
  std::thread reader([] {
    for (int i = 0; i < 20; ++i) read_prog("def @main(%x: Tensor[(2), float32]) { prog.plain(nn.relu(%x)) }");
  });
  for (int i = 0; i < 50; ++i) register_user_op(unary(fmt::format("prog.many{}", i)));
  reader.join();
  EXPECT_EQ(get_op("prog.many49")->arguments.size(), 1u);
}

// An attribute set in C++ can be read from other languages, and the other way round.
TEST(UserOps, OpenAttributes) {
  register_prog_ops();
  const Op op = get_op("prog.plain");
  const OpKey<Value> key{"target.mychip"};
  op->set(key, Value(3));
  EXPECT_EQ(get_open_attr(op, "target.mychip").as<int64_t>(), 3);
  set_open_attr(op, "target.mychip", Value("four"));
  EXPECT_EQ(op->find(key)->as<std::string>(), "four");
  reset_open_attr(op, "target.mychip");
  EXPECT_EQ(op->find(key), nullptr);
  EXPECT_THAT(kit::user_error_of([&] { set_open_attr(op, "Eval", Value(1)); }),
              HasSubstr("the attribute 'Eval' of op 'prog.plain' is set in C++ and of another kind"));
}

TEST(UserOps, AttributesThatAreReadAreCheckedWhenTheyAreSet) {
  register_prog_ops();
  driver::register_all();
  const Op op = get_op("prog.plain");
  constexpr const char* kLegalize =
      "the attribute 'FTVMLegalize' of op 'prog.plain' must be a function of (attributes, arguments, types), got 5";
  EXPECT_EQ(kit::user_error_of([&] { set_open_attr(op, "FTVMLegalize", Value(5)); }), kLegalize);
  EXPECT_EQ(kit::user_error_of([&] { op->set(OpKey<Value>{"FTVMLegalize"}, Value(5)); }), kLegalize);
  EXPECT_EQ(op->find(OpKey<Value>{"FTVMLegalize"}), nullptr);
  EXPECT_EQ(
      kit::user_error_of([&] { set_open_attr(op, "TOpPattern", Value("OPAQUE")); }),
      "the attribute 'TOpPattern' of op 'prog.plain' must be an op pattern: 0 to 4, 7 or 8 (relay.op.OpPattern), got "
      "\"OPAQUE\"");
  EXPECT_EQ(kit::user_error_of([&] { set_open_attr(op, "TOpIsStateful", Value("no")); }),
            "the attribute 'TOpIsStateful' of op 'prog.plain' must be a bool, got \"no\"");
  set_open_attr(op, "FTVMLegalize", Value());
  reset_open_attr(op, "FTVMLegalize");
}

TEST(UserOps, AttributesOfRelayAreSetAndReset) {
  UserOp given = unary("prog.relay_attrs");
  given.compute = ComputeRuleFn(copy_form);
  const Op op = register_user_op(given);
  set_open_attr(op, "TOpPattern", Value(8));
  EXPECT_EQ(get_open_attr(op, "TOpPattern").as<int64_t>(), 8);
  EXPECT_EQ(ops::why_opaque(*op), "it is registered as opaque");
  reset_open_attr(op, "TOpPattern");
  EXPECT_TRUE(get_open_attr(op, "TOpPattern").is_none());
  EXPECT_EQ(ops::why_opaque(*op), "");
  for (const bool is_reset : {false, true}) {
    set_open_attr(op, "TOpIsStateful", Value(true));
    EXPECT_TRUE(get_open_attr(op, "TOpIsStateful").as<bool>());
    EXPECT_TRUE(*op->find(ops::kStateful));
    is_reset ? reset_open_attr(op, "TOpIsStateful") : set_open_attr(op, "TOpIsStateful", Value(false));
    EXPECT_FALSE(get_open_attr(op, "TOpIsStateful").as<bool>());
    EXPECT_EQ(op->find(ops::kStateful), nullptr);
  }
  EXPECT_THAT(kit::user_error_of([&] { reset_open_attr(get_op("nn.relu"), "TOpPattern"); }),
              HasSubstr("'nn.relu' is an op of Headrace, which is not changed"));
}

// ---- types

TEST(UserOps, RelationsSeeSymbols) {
  const auto main =
      relay::infer_type(read_prog("def @main(%x: Tensor[(n, 4), float32]) { prog.plain(%x) }"))->lookup("main");
  EXPECT_EQ(to_string(main.cast<relay::FunctionNode>()->body->checked_type()), "Tensor[(n, 4), float32]");
}

TEST(UserOps, ErrorsOfTypes) {
  register_prog_ops();
  EXPECT_THAT(error_of("def @main(%x: Tensor[(2), float32]) { prog.plain(%x, %x) }"), HasSubstr("takes 1 argument"));
  UserOp none{.name = "prog.no_relation", .arguments = {{"data", "Tensor", ""}}};
  register_user_op(none);
  EXPECT_THAT(error_of("def @main(%x: Tensor[(2), float32]) { prog.no_relation(%x) }"),
              HasSubstr("the op has no type relation"));
  UserOp odd = unary("prog.odd_relation");
  odd.relation = [](const RelationInput&) -> Type { return make_func_type({}, make_tuple_type({})); };
  register_user_op(odd);
  EXPECT_THAT(error_of("def @main(%x: Tensor[(2), float32]) { prog.odd_relation(%x) }"),
              HasSubstr("an op gives a tensor or a tuple of one tensor or more"));
  UserOp empty = unary("prog.empty_result");
  empty.relation = [](const RelationInput&) -> Type { return make_tuple_type({}); };
  register_user_op(empty);
  EXPECT_THAT(error_of("def @main(%x: Tensor[(2), float32]) { prog.empty_result(%x) }"),
              HasSubstr("prog.empty_result: its type relation gave (); an op gives a tensor or a tuple of one"));
}

// ---- what computes it

// The error of fusing and compiling a call of an op that is computed so.
std::string compute_error(const std::string& name, UserCompute compute, std::optional<FusionKind> fusion = {}) {
  return kit::user_error_of([&] {
    UserOp op = unary(name);
    op.compute = std::move(compute);
    op.fusion = fusion;
    register_user_op(op);
    compile_to_memory(make_model(read_prog(fmt::format("def @main(%x: Tensor[(2, 3), float32]) {{ {}(%x) }}", name))));
  });
}

// Loops that write zeros.
tir::PrimFunc zero_loops(const std::string& inputs, const std::string& shape) {
  return tir::parse_function(
      fmt::format("#[tir_version = \"1\"]\nprim_func @f({}) -> (y: Buffer[({}), float32]) {{\n"
                  "  for i in serial(2) {{ for j in serial(2) {{ y[i, j] = 0f; }} }}\n}}\n",
                  inputs, shape));
}

TEST(UserOps, ErrorsOfForms) {
  const auto other_shape = [](const RuleInput& input) {
    const Buffer y = make_buffer("y", DataType::float_(32), to_dims({3, 2}));
    const auto element = [&](const Index& i) { return load(input.inputs[0], {i[1], i[0]}); };
    return single_stage(input, map_stage(y, element));
  };
  EXPECT_THAT(
      compute_error("prog.form_shape", ComputeRuleFn(other_shape)),
      HasSubstr("its compute form gives Tensor[(3, 2), float32] as result 0, and its type says Tensor[(2, 3), "));
  const auto no_result = [](const RuleInput& input) { return tir::Compute{input.inputs, {}, {}}; };
  EXPECT_THAT(compute_error("prog.form_none", ComputeRuleFn(no_result)),
              HasSubstr("its compute form gives 0 results, and its type says 1"));
  const auto stranger = [](const RuleInput& input) {
    const Buffer z = make_buffer("z", DataType::float_(32), to_dims({2, 3}));
    const auto element = [&](const Index& i) { return load(z, i); };
    tir::Compute form = single_stage(input, map_stage(input.make_output(), element));
    form.inputs = {z};
    return form;
  };
  EXPECT_THAT(compute_error("prog.form_stranger", ComputeRuleFn(stranger)),
              HasSubstr("reads 'z', which is not an input of the op"));
  const auto unbound = [](const RuleInput& input) {
    const auto element = [&](const Index&) { return load(input.inputs[0], {make_prim_var("k"), make_int(0)}); };
    return single_stage(input, map_stage(input.make_output(), element));
  };
  EXPECT_THAT(compute_error("prog.form_unbound", ComputeRuleFn(unbound)),
              HasSubstr("prog.form_unbound: the compute form is not well-formed"));
}

TEST(UserOps, PatternsThatTheFormBreaks) {
  const auto transposed = [](const RuleInput& input) {
    const auto element = [&](const Index& i) { return load(input.inputs[0], {i[0], make_int(2) - i[1]}); };
    return single_stage(input, map_stage(input.make_output(), element));
  };
  EXPECT_THAT(compute_error("prog.lies", ComputeRuleFn(transposed), FusionKind::elementwise),
              HasSubstr("it is registered as elementwise, and its compute form does not read its inputs so"));
  // The interpreter says the same.
  const IRModule lies = read_prog("def @main(%x: Tensor[(2, 3), float32]) { prog.lies(%x) }");
  EXPECT_THAT(kit::user_error_of([&] { interp::run_main(lies, {NDArray::zeros({2, 3}, DataType::float_(32))}); }),
              AllOf(HasSubstr("it is registered as elementwise, and its compute form does not read its inputs so"),
                    HasSubstr("at: prog.lies")));
  EXPECT_EQ(compute_error("prog.honest", ComputeRuleFn(transposed), FusionKind::injective), "");
  EXPECT_EQ(compute_error("prog.shy", ComputeRuleFn(transposed), FusionKind::opaque), "");
  EXPECT_EQ(ops::why_opaque(*get_op("prog.shy")), "it is registered as opaque");
}

// x / sum(x) is not elementwise, whatever it is registered as: behind argwhere it would read the whole buffer.
tir::Compute norm_form(const RuleInput& input) {
  const Buffer& x = input.inputs[0];
  const Buffer sum = make_buffer("sum", x->dtype, Array<PrimExpr>{});
  const std::vector<PrimExpr> sizes(x->shape.begin(), x->shape.end());
  const auto total =
      reduce_stage(sum, tir::Combiner::sum, sizes, [&](const Index&, const Index& r) { return load(x, r); });
  const auto part = map_stage(input.make_output(),
                              [&](const Index& i) { return make_binary(BinaryOp::div, load(x, i), load(sum, {})); });
  return {input.inputs, {total, part}, {part.output}};
}

TEST(UserOps, PatternsThatSeveralStagesBreak) {
  UserOp op = unary("prog.norm");
  op.compute = ComputeRuleFn(norm_form);
  op.fusion = FusionKind::elementwise;
  register_user_op(op);
  const IRModule module =
      read_prog("def @main(%x: Tensor[(4), float32]) { prog.norm(cast(argwhere(%x), dtype=\"float32\")) }");
  EXPECT_THAT(
      kit::user_error_of([&] { compile_to_memory(make_model(module)); }),
      AllOf(HasSubstr("has a data-dependent size"), HasSubstr("; they are read by prog.norm, cast\n  at: argwhere")));
  EXPECT_THAT(compute_error("prog.norm_of_known", ComputeRuleFn(norm_form), FusionKind::elementwise),
              HasSubstr("it is registered as elementwise, and its compute form does not read its inputs so"));
}

TEST(UserOps, StagesThatKeepToThePatternStayAlone) {
  const auto twice = [](const RuleInput& input) {
    const Buffer half = make_buffer("half", input.in_types[0]->dtype, input.in_types[0]->shape);
    const auto first = map_stage(half, [&](const Index& i) { return load(input.inputs[0], i); });
    const auto second = map_stage(input.make_output(), [&](const Index& i) { return load(half, i); });
    return tir::Compute{input.inputs, {first, second}, {second.output}};
  };
  EXPECT_EQ(compute_error("prog.twice", ComputeRuleFn(twice), FusionKind::elementwise), "");
}

TEST(UserOps, OpaqueLoopsShowNoPattern) {
  const std::string running =
      "#[tir_version = \"1\"]\nprim_func @f(x: Buffer[(2, 3), float32]) -> (y: Buffer[(2, 3), float32]) {\n"
      "  for i in serial(2) { y[i, 0] = x[i, 0]; for j in serial(2) { y[i, j + 1] = y[i, j] + x[i, j + 1]; } }\n}\n";
  EXPECT_THAT(compute_error("prog.scan_lies", tir::parse_function(running), FusionKind::broadcast),
              HasSubstr("it is registered as broadcast, and its loops do not show it: "));
  const IRModule lies = read_prog("def @main(%x: Tensor[(2, 3), float32]) { prog.scan_lies(%x) }");
  EXPECT_THAT(kit::user_error_of([&] { interp::run_main(lies, {NDArray::zeros({2, 3}, DataType::float_(32))}); }),
              HasSubstr("it is registered as broadcast, and its loops do not show it: "));
  EXPECT_EQ(compute_error("prog.scan_opaque", tir::parse_function(running), FusionKind::opaque), "");
}

// A value of where it is, and of how large the data is, is not moved to other shapes.
TEST(UserOps, ValuesOfAxesAreNotElementwise) {
  const auto numbered = [](const RuleInput& input) {
    const auto element = [&](const Index& i) {
      return load(input.inputs[0], i) * make_cast(DataType::float_(32), i[1]);
    };
    return single_stage(input, map_stage(input.make_output(), element));
  };
  EXPECT_THAT(compute_error("prog.numbered", ComputeRuleFn(numbered), FusionKind::elementwise),
              HasSubstr("its compute form does not read its inputs so"));
  EXPECT_EQ(compute_error("prog.numbered_free", ComputeRuleFn(numbered)), "");
}

TEST(UserOps, ErrorsOfLoops) {
  EXPECT_THAT(compute_error("prog.loops_null", tir::PrimFunc()), HasSubstr("the PrimFunc that computes it is null"));
  EXPECT_THAT(
      compute_error("prog.loops_dtype", zero_loops("x: Buffer[(2, 3), float64]", "2, 3")),
      HasSubstr("parameter 'x' of its loops is Tensor[(2, 3), float64], and the call has Tensor[(2, 3), float32]"));
  EXPECT_THAT(compute_error("prog.loops_shape", zero_loops("x: Buffer[(n, n), float32]", "n, n")),
              HasSubstr("parameter 'x' of its loops is"));
  EXPECT_THAT(compute_error("prog.loops_count", zero_loops("", "2, 3")),
              HasSubstr("its loops have 0 inputs and 1 outputs, and the call has 1 and 1"));
  auto stray = make_object<tir::PrimFuncNode>();
  EXPECT_THAT(compute_error("prog.loops_empty", tir::PrimFunc(stray)), HasSubstr("its loops are not well-formed"));
  EXPECT_THAT(compute_error("prog.external_name", ExternalFunction{""}),
              HasSubstr("the function that computes it needs a name"));
}

TEST(UserOps, OnlyTensorsAreComputedWith) {
  register_prog_ops();
  UserOp op = unary("prog.apply");
  op.relation = [](const RelationInput&) -> Type { return make_tensor_type(Shape{2}); };
  op.compute = ComputeRuleFn(copy_form);
  register_user_op(op);
  const IRModule module =
      read_prog("def @main() { prog.apply(fn (%y: Tensor[(2), float32]) -> Tensor[(2), float32] { %y }) }");
  EXPECT_THAT(kit::user_error_of([&] { passes::fuse_ops(relay::infer_type(module)); }),
              HasSubstr("prog.apply: argument 0 is fn"));
}

// Loops that are not compute form, in a group that was written by hand.
TEST(UserOps, OpaqueLoopsInAGroupAreRefused) {
  const std::string running =
      "#[tir_version = \"1\"]\nprim_func @f(x: Buffer[(4), float32]) -> (y: Buffer[(4), float32]) {\n"
      "  y[0] = x[0];\n  for i in serial(3) { y[i + 1] = y[i] + x[i + 1]; }\n}\n";
  UserOp op = unary("prog.running");
  op.compute = tir::parse_function(running);
  register_user_op(op);
  const IRModule module = read_prog(
      "def @main(%x: Tensor[(4), float32]) {\n"
      "  %0 = fn (%p: Tensor[(4), float32], Primitive=1) { nn.relu(prog.running(%p)) };\n"
      "  %0(%x)\n"
      "}\n");
  EXPECT_THAT(kit::user_error_of([&] { compile_to_memory(make_model(module)); }),
              HasSubstr("prog.running: it cannot be fused with other ops: "));
}

// ---- passes

TEST(UserOps, EffectsAreKept) {
  const IRModule module = relay::infer_type(
      read_prog("def @main(%x: Tensor[(2), float32]) {\n"
                "  let %a = prog.effect(%x); let %b = prog.plain(%x); let %c = prog.effect(%x); (%x,)\n"
                "}\n"));
  const std::string text = relay::print_module(passes::dead_code_elimination(module));
  EXPECT_THAT(text, HasSubstr("prog.effect"));
  EXPECT_THAT(text, Not(HasSubstr("prog.plain")));
  const IRModule twice = relay::infer_type(read_prog(
      "def @main(%x: Tensor[(2), float32]) { (prog.effect(%x), prog.effect(%x), prog.plain(%x), prog.plain(%x)) }"));
  const std::string shared = relay::print_module(passes::eliminate_common_subexpr(twice));
  const auto count = [&](const std::string& word) {
    int found = 0;
    for (size_t at = shared.find(word); at != std::string::npos; at = shared.find(word, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("prog.effect("), 2);
  EXPECT_EQ(count("prog.plain("), 1);
}

TEST(UserOps, ConstantsAreFolded) {
  const IRModule module =
      relay::infer_type(read_prog("def @main(%x: Tensor[(), float32]) { (prog.plain(2f), prog.effect(3f), %x) }"));
  for (const IRModule& after : {passes::fold_constant(module, {}), passes::partial_evaluate(module, {})}) {
    const std::string text = relay::print_module(after);
    EXPECT_THAT(text, Not(HasSubstr("prog.plain")));
    EXPECT_THAT(text, HasSubstr("prog.effect"));
  }
}

TEST(UserOps, GradientsAreRefusedByName) {
  const IRModule module = relay::infer_type(read_prog("def @main(%x: Tensor[(2), float32]) { prog.plain(%x) }"));
  EXPECT_THAT(kit::user_error_of([&] { passes::first_order_gradient(module); }),
              HasSubstr("prog.plain: the op has no gradient"));
}

TEST(UserOps, LegalizeReplacesThem) {
  const IRModule module = relay::infer_type(read_prog("def @main(%x: Tensor[(2), float32]) { prog.plain(%x) }"));
  const auto to_relu = [](const relay::CallNode& call, const Array<Type>&) {
    return Expr(relay::make_call("nn.relu", {call.args[0]}));
  };
  passes::set_legalize(get_op("prog.plain"), passes::LegalizeFn(to_relu), "prog.legalize");
  EXPECT_THAT(relay::print_module(passes::legalize(module, "prog.legalize")), HasSubstr("nn.relu(%x)"));
}

TEST(UserOps, SameProgramSameBytes) {
  const auto kernels = [] {
    const driver::CompiledModel model = compile_to_memory(
        make_model(read_prog("def @main(%x: Tensor[(2), float32]) { prog.all(%x, required=1, mode=\"z\") }")));
    return artifact::callee_of(model.report.manifest.programs[0].graph.steps.at(0).action);
  };
  EXPECT_EQ(kernels(), kernels());
  EXPECT_THAT(kernels(), HasSubstr("prog_all"));
}

}  // namespace
}  // namespace headrace::lower
