// Tests Legalize, and the lists of passes in which it and FastMath stand.
#include "passes/simplify/legalize.h"

#include <gmock/gmock.h>

#include "kit/errors.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/join.h"
#include "passes/tests/golden_pass.h"
#include "relay/verify.h"
#include "relay/visit.h"

namespace headrace::passes {
namespace {

// A legalisation for as long as a test runs.
class Legalisation {
 public:
  Legalisation(const char* op, LegalizeFn legalize, std::string attr = kLegalizeAttr) : op_(find(op)), attr_(attr) {
    set_legalize(op_, std::move(legalize), attr);
  }
  Legalisation(const char* op, const PackedFunc& legalize) : op_(find(op)), attr_(kLegalizeAttr) {
    set_legalize(op_, legalize);
  }
  ~Legalisation() { clear_legalize(op_, attr_); }
  Legalisation(const Legalisation&) = delete;

 private:
  static Op find(const char* op) {
    ops::register_all_ops();
    return get_op(op);
  }
  Op op_;
  std::string attr_;
};

Expr relu_by_maximum(const relay::CallNode& call, const Array<Type>&) {
  return ops::binary("maximum", call.args[0], relay::make_scalar(0));
}

// Uses its argument twice, and holds a call of its own op.
Expr tanh_halved(const relay::CallNode& call, const Array<Type>& types) {
  if (types[0].as<TensorTypeNode>()->shape.empty()) return {};  // scalars stay
  const Expr half = ops::multiply(call.args[0], relay::make_scalar(0.5));
  const Expr again = ops::unary("tanh", half);
  return ops::add(again, ops::multiply(relay::make_scalar(0), call.args[0]));
}

TEST(Legalize, TextAndResults) {
  const Legalisation relu("nn.relu", relu_by_maximum);
  check_golden(read_golden("legalize"));
}

// Tests the passes that every build runs first.
TEST(Canonical, HoldsWhatUsersAskOf) {
  const auto names_at = [](int32_t level) {
    std::vector<std::string> names;
    for (const auto& list : {canonical(), native({})}) {
      for (const pass::Pass& pass : list) {
        if (pass.info.opt_level <= level) names.push_back(pass.info.name);
      }
    }
    return names;
  };
  const auto has = [](const std::vector<std::string>& names, const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  EXPECT_TRUE(has(names_at(1), "Legalize"));
  EXPECT_FALSE(has(names_at(0), "Legalize"));
  for (const char* of_level_4 : {"CombineParallelConv2D", "CombineParallelDense", "FastMath"}) {
    EXPECT_FALSE(has(names_at(3), of_level_4)) << of_level_4;
    EXPECT_TRUE(has(names_at(4), of_level_4)) << of_level_4;
  }
  const Legalisation relu(
      "nn.relu", [](const relay::CallNode& call, const Array<Type>&) { return ops::unary("abs", call.args[0]); });
  const IRModule before = read("def @main(%x: Tensor[(2), float32]) { tanh(nn.relu(%x)) }");
  const std::string text = relay::print_module(pass::run_passes(canonical(), before, typed_context()));
  EXPECT_NE(text.find("abs"), std::string::npos) << text;
  EXPECT_EQ(text.find("fast_tanh"), std::string::npos) << text;
  const std::string native_text = relay::print_module(
      pass::run_passes(native({}), pass::run_passes(canonical(), before, typed_context()), typed_context()));
  EXPECT_NE(native_text.find("fast_tanh"), std::string::npos) << native_text;
}

TEST(Legalize, WithoutALegalisationNothingChanges) {
  const IRModule before = relay::infer_type(program_before(read_golden("legalize")));
  EXPECT_EQ(run_pass("Legalize", before), before);
}

TEST(Legalize, OneMayLeaveACallAloneAndHoldItsOwnOp) {
  const Legalisation tanh("tanh", tanh_halved);
  const IRModule before =
      read("def @main(%x: Tensor[(2), float32], %y: float32) { (tanh(multiply(2f, %x)), tanh(%y)) }");
  const IRModule after = run_pass("Legalize", before);
  EXPECT_EQ(relay::print_module(after),
            "#[version = \"0.0.5\"]\n"
            "def @main(%x: Tensor[(2), float32], %y: float32) {\n"
            "  %0 = multiply(2f, %x);\n"
            "  %1 = multiply(%0, 0.5f);\n"
            "  %2 = tanh(%1);\n"
            "  %3 = multiply(0f, %0);\n"
            "  %4 = add(%2, %3);\n"
            "  %5 = tanh(%y);\n"
            "  (%4, %5)\n"
            "}\n");
  for (const Expr& item : after->lookup("main").as<relay::FunctionNode>()->body.as<relay::TupleNode>()->items)
    EXPECT_TRUE(item->span.defined());
}

// %1 would be written before %0 if the replacement of the sum were in braces of its own.
TEST(Legalize, SharedEffectsKeepTheirOrder) {
  const Legalisation sum("add", [](const relay::CallNode& call, const Array<Type>&) -> Expr {
    return ops::subtract(call.args[0], ops::unary("negative", call.args[1]));
  });
  const IRModule after =
      run_pass("Legalize", read("def @main() { let %r = ref(1f); %0 = { let %u = ref_write(%r, 2f); 10f }; "
                                "%1 = { let %w = ref_write(%r, 3f); 20f }; (add(%0, %1), %1, ref_read(%r)) }"));
  std::vector<double> results;
  for (const NDArray& result : interp::run_main(after, {})) results.push_back(element_as_double(result.tensor(), 0));
  EXPECT_THAT(results, testing::ElementsAre(30, 20, 3));
}

// A function may keep its result, as a cache does: its nodes are not written to, and their sharing stays.
TEST(Legalize, ResultsOfTheFunctionAreNotWrittenTo) {
  const Expr two = relay::make_scalar(2);
  const relay::Var v = relay::make_var("v");
  const Expr sum = ops::add(v, two);
  const relay::Let kept = relay::make_let(v, ops::unary("exp", two), sum);
  const Legalisation relu("nn.relu", [&](const relay::CallNode&, const Array<Type>&) -> Expr { return kept; });
  const IRModule after = run_pass("Legalize", read("def @main(%x: float32) { (nn.relu(%x), nn.relu(negative(%x))) }"));
  EXPECT_FALSE(kept->span.defined());
  EXPECT_FALSE(kept->value->span.defined());
  EXPECT_FALSE(sum->span.defined());
  const auto* tuple = after->lookup("main").as<relay::FunctionNode>()->body.as<relay::TupleNode>();
  EXPECT_EQ(tuple->items[0], tuple->items[1]) << "else %v would be bound twice";
  EXPECT_TRUE(tuple->items[0]->span.defined());
  EXPECT_TRUE(tuple->items[0].as<relay::LetNode>()->value->span.defined());
  relay::verify(after);
}

TEST(Legalize, AFunctionOfTheRegistryGetsAttributesArgumentsAndTypes) {
  Array<Type> seen;
  std::string attrs_key;
  const PackedFunc packed = make_packed([&](const Attrs& attrs, const Array<Expr>& args, const Array<Type>& types) {
    seen = types;
    attrs_key = std::string(attrs->key());
    return args[0];
  });
  const Legalisation clip("clip", packed);
  const IRModule after = run_pass("Legalize", read("def @main(%x: Tensor[(2), float32]) {"
                                                   " clip(exp(%x), a_min=0f, a_max=9f) }"));
  EXPECT_EQ(after->lookup("main").as<relay::FunctionNode>()->body.as<relay::CallNode>()->as_op()->name, "exp");
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(to_string(seen[0]), "Tensor[(2), float32]");
  EXPECT_EQ(attrs_key, get_op("clip")->attrs_type_key);
}

TEST(Legalize, TheAttributeIsAnOption) {
  const Legalisation relu("nn.relu", relu_by_maximum, "FMyLegalize");
  const IRModule before = relay::infer_type(program_before(read_golden("legalize")));
  EXPECT_EQ(run_pass("Legalize", before), before);
  pass::PassContext context = typed_context();
  context.config.set("relay.Legalize.legalize_map_attr_name", Value("FMyLegalize"));
  EXPECT_NE(run_pass("Legalize", before, context), before);
  context.config.set("relay.Legalize.legalize_map_attr_name", Value("FOther"));
  EXPECT_EQ(kit::user_error_of([&] { run_pass("Legalize", before, context); }),
            "relay.Legalize.legalize_map_attr_name: no op has an attribute 'FOther'; the usual one is FTVMLegalize");
}

std::string legalize_error(const std::function<void()>& run) {
  try {
    run();
  } catch (const UserError& e) {
    return e.message();
  }
  return "no error";
}

TEST(Legalize, ResultsOfOtherTypesAreReported) {
  const IRModule before = read("def @main(%x: Tensor[(2), float32]) { nn.relu(%x) }");
  {
    const Legalisation relu("nn.relu", [](const relay::CallNode& call, const Array<Type>&) {
      return ops::unary("sum_of_nothing_known", call.args[0]);
    });
    EXPECT_NE(legalize_error([&] { run_pass("Legalize", before); }).find("sum_of_nothing_known"), std::string::npos);
  }
  {
    const Legalisation relu("nn.relu", [](const relay::CallNode& call, const Array<Type>&) {
      return Expr(relay::make_tuple({call.args[0]}));
    });
    EXPECT_EQ(legalize_error([&] { run_pass("Legalize", before); }),
              "its legalisation (FTVMLegalize) gives (Tensor[(2), float32],) for a call that gives "
              "Tensor[(2), float32]");
  }
  {
    const Legalisation relu(
        "nn.relu", [](const relay::CallNode&, const Array<Type>&) { return Expr(relay::make_constant(ramp({3}, 0))); });
    EXPECT_EQ(
        legalize_error([&] { run_pass("Legalize", read("def @main(%x: Tensor[(?), float32]) { nn.relu(%x) }")); }),
        "the legalisation of nn.relu changes the type of @main from fn (Tensor[(?), float32]) -> "
        "Tensor[(?), float32] to fn (Tensor[(?), float32]) -> Tensor[(3), float32]");
  }
  {
    const Legalisation relu("nn.relu", [](const relay::CallNode& call, const Array<Type>&) {
      return ops::add(call.args[0], relay::make_constant(ramp({3}, 0)));
    });
    EXPECT_TRUE(legalize_error([&] {
                  run_pass("Legalize", before);
                }).starts_with("what the legalisation of nn.relu gives does not fit the program: "));
  }
  {
    const Legalisation relu("nn.relu", make_packed([](const Value&, const Value&, const Value&) { return 3; }));
    EXPECT_NE(legalize_error([&] { run_pass("Legalize", before); }).find("its legalisation gave no expression but 3"),
              std::string::npos);
  }
  pass::PassContext context;
  context.config.set("relay.Legalize.legalize_map_attr_name", Value(3));
  EXPECT_EQ(legalize_error([&] { legalize_attr(context); }),
            "relay.Legalize.legalize_map_attr_name must be a text, got 3");
}

// The error is at the legalised call, not where the program uses the result.
TEST(Legalize, AReplacementOfAnotherTypeIsToldAtItsCall) {
  const auto error_of = [](const std::string& program, const LegalizeFn& rule) {
    const Legalisation relu("nn.relu", rule, "FMyLegalize");
    try {
      legalize(read(program), "FMyLegalize");
    } catch (const UserError& e) {
      return fmt::format("{} {}: {}", e.where().op, e.where().place, e.message());
    }
    return std::string("no error");
  };
  const auto narrowed = [](const relay::CallNode& call, const Array<Type>&) {
    return ops::cast(call.args[0], DataType::float_(16));
  };
  EXPECT_EQ(error_of("def @main(%x: Tensor[(2), float32]) {\n  %0 = nn.relu(exp(%x));\n  add(%0, %x)\n}", narrowed),
            "nn.relu test.relay:3:8: its legalisation (FMyLegalize) gives Tensor[(2), float16] for a call that gives "
            "Tensor[(2), float32]");
  // An argument with an effect is a variable to the legalisation.
  EXPECT_EQ(
      error_of("def @main(%r: ref(float32)) { (nn.relu(ref_read(%r)), ref_write(%r, 2f)) }", narrowed).substr(0, 18),
      "nn.relu test.relay");
  const auto first = [](const relay::CallNode& call, const Array<Type>&) {
    return Expr(relay::make_tuple_get_item(relay::make_tuple({call.args[0]}), 0));
  };
  for (const char* type : {"Tensor[(2), float32]", "Tensor[(n, ?), float32]", "float16"})
    EXPECT_EQ(error_of(fmt::format("def @main(%x: {}) {{ add(nn.relu(%x), nn.relu(nn.relu(%x))) }}", type), first),
              "no error");
  const auto widened = [](const relay::CallNode& call, const Array<Type>&) {
    return ops::concatenate({call.args[0], call.args[0]}, 0);
  };
  EXPECT_EQ(error_of("def @main(%x: Tensor[(n, 2), float32]) { sum(nn.relu(%x)) }", widened), "no error");
  EXPECT_THAT(error_of("def @main(%x: Tensor[(3, 2), float32]) { sum(nn.relu(%x)) }", widened),
              testing::HasSubstr("gives Tensor[(6, 2), float32] for a call that gives Tensor[(3, 2), float32]"));
}

TEST(Legalize, VariablesThatNobodyBindsAreTold) {
  const Legalisation rule("nn.relu", [](const relay::CallNode&, const Array<Type>& types) -> Expr {
    return relay::make_var("q", types[0]);
  });
  const IRModule module = relay::infer_type(read("def @main(%x: Tensor[(2), float32]) { nn.relu(%x) }"));
  try {
    legalize(module);
    ADD_FAILURE() << "no error";
  } catch (const UserError& e) {
    EXPECT_EQ(e.message(),
              "the legalisation of nn.relu uses %q, which is bound nowhere; it may use the call's arguments");
  }
}

}  // namespace
}  // namespace headrace::passes
