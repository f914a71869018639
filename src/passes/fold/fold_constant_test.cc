// Tests what FoldConstant folds, what it leaves, and what evaluates it. Its golden text is among those of
// passes_test.cc.
#include <gmock/gmock.h>

#include "base/interrupt.h"
#include "kit/errors.h"
#include "kit/options.h"
#include "object/structural_equal.h"
#include "ops/nn/matmul.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/reduce.h"
#include "passes/fold/fold_constant.h"
#include "passes/tests/pass_testing.h"
#include "relay/visit.h"

namespace headrace::passes {
namespace {

TEST(FoldConstant, LeavesWhatDependsOnAnInput) {
  const IRModule before = read("def @main(%x: Tensor[(2), float32]) { add(%x, negative(%x)) }");
  EXPECT_EQ(run_pass("FoldConstant", before)->lookup("main"), before->lookup("main"));
}

TEST(FoldConstant, FreesLargeOperandsAsItGoes) {
  std::vector<std::string> log;
  const auto negative = [&](const char* name) { return relay::make_call("negative", {logged_constant(log, name)}); };
  IRModule module = typed_main({}, relay::make_tuple({negative("a"), negative("b")}));
  const IRModule folded = fold_constant(std::move(module), typed_context());
  log.push_back("done");
  EXPECT_EQ(log, (std::vector<std::string>{"free a", "free b", "done"}));
  const auto* results = main_of(folded).body.as<relay::TupleNode>();
  for (const Expr& result : results->items) {
    const auto* constant = result.as<relay::ConstantNode>();
    ASSERT_NE(constant, nullptr);
    EXPECT_EQ(constant->data.data<float>()[1000], -2.0F);
  }
}

TEST(FoldConstant, LeavesTheOperandsOfAModuleThatIsHeld) {
  std::vector<std::string> log;
  const IRModule kept = typed_main({}, relay::make_call("negative", {logged_constant(log, "a")}));
  fold_constant(kept, typed_context());
  EXPECT_EQ(log, std::vector<std::string>{});
  EXPECT_EQ(main_of(kept).body.as<relay::CallNode>()->args[0].as<relay::ConstantNode>()->data.data<float>()[1000],
            2.0F);
}

// The constants of a call that is not folded are the same objects as before.
TEST(FoldConstant, PutsLargeOperandsBackWhereTheCallStays) {
  const NDArray column = NDArray::zeros({65536, 1}, DataType::float_(32)),
                row = NDArray::zeros({1, 65536}, DataType::float_(32));
  column.data<float>()[5] = 7;
  const Expr constant = relay::make_constant(column), other = relay::make_constant(row);
  IRModule module = typed_main({}, relay::make_call("add", {constant, other}));  // 16 GiB would be too large a result
  const IRModule folded = fold_constant(std::move(module), typed_context());
  const auto* call = main_of(folded).body.as<relay::CallNode>();
  ASSERT_NE(call, nullptr);
  EXPECT_EQ(call->args[0], constant);
  EXPECT_EQ(call->args[1], other);
}

// Names of the ops that `text` is left with, and bytes of its constants.
struct Left {
  std::vector<std::string> ops;
  size_t constant_bytes = 0;
};
Left fold(const std::string& text, const std::vector<NDArray>& args = {}) {
  const IRModule before = read(text), after = run_pass("FoldConstant", before);
  expect_same_results(before, after, args, 0);
  Left left;
  relay::post_order(after->lookup("main"), [&](const Expr& e) {
    if (const auto* call = e.as<relay::CallNode>()) left.ops.push_back(call->as_op()->name);
    if (const auto* constant = e.as<relay::ConstantNode>()) left.constant_bytes += constant->data.size_bytes();
  });
  return left;
}

using Ops = std::vector<std::string>;

TEST(FoldConstant, LargeRepetitionsStayCalls) {
  const char* row = "broadcast_to(const(Tensor[(4), float32], [1, 2, 3, 4]), shape=[5000, 4])";
  for (const std::string call :
       {"zeros(shape=[5000, 4])", "ones(shape=[5000, 4])", "full(2f, shape=[5000, 4], dtype=\"float32\")", row}) {
    const Left left = fold(fmt::format("def @main() {{ {} }}", call));
    EXPECT_EQ(left.ops, Ops{call.substr(0, call.find('('))});
    EXPECT_LE(left.constant_bytes, 16u);
  }
  EXPECT_EQ(fold("def @main() { zeros(shape=[50, 4]) }").ops, Ops{}) << "small";
  EXPECT_EQ(fold("def @main() { tile(zeros(shape=[4000, 4]), reps=[2, 1]) }").ops, Ops{}) << "no longer than its data";
}

// An op that only gives the shape does not make the constant large.
TEST(FoldConstant, LargeLikesStayCalls) {
  const char* like = "negative(broadcast_to(const(Tensor[(4), float32], [1, 2, 3, 4]), shape=[5000, 4]))";
  for (const std::string call : {"zeros_like({})", "ones_like({})", "full_like({}, 2f)",
                                 "broadcast_to_like(const(Tensor[(1), float32], [3]), {})"})
    EXPECT_EQ(fold(fmt::format("def @main() {{ {} }}", fmt::format(fmt::runtime(call), like))).ops,
              Ops{call.substr(0, call.find('('))});
  EXPECT_EQ(fold("def @main() { zeros_like(const(Tensor[(2), float32], [1, 2])) }").ops, Ops{}) << "small";
}

TEST(FoldConstant, BranchesOfConstantsAndSizes) {
  EXPECT_EQ(fold("def @main() { if (True) { add(1f, 2f) } else { subtract(1f, 2f) } }").ops, Ops{});
  EXPECT_EQ(fold("def @main() { if (False) { add(1f, 2f) } else { negative(2f) } }").ops, Ops{});
  const NDArray x = NDArray::from_vector({2, 3}, DataType::float_(32), std::vector<float>{1, 2, 3, 4, 5, 6});
  EXPECT_EQ(fold("def @main(%x: Tensor[(2, 3), float32]) { if (False) { negative(%x) } else { exp(%x) } }", {x}).ops,
            Ops{"exp"});
  EXPECT_EQ(fold("def @main(%x: Tensor[(2, 3), float32]) { ndarray_size(negative(%x)) }", {x}).ops, Ops{});
  EXPECT_EQ(fold("def @main(%x: Tensor[(2, 3), float32]) { shape_of(%x, dtype=\"float32\") }", {x}).ops, Ops{});
}

// Whether one is met inside an expression makes no difference.
TEST(FoldConstant, ExpressionsOfConstantsAreFolded) {
  const Left left = fold(
      "def @main() { negative(broadcast_to(const(Tensor[(4), float32], [1, 2, 3, 4]),"
      " shape=[5000, 4])) }");
  EXPECT_EQ(left.ops, Ops{});
  EXPECT_EQ(left.constant_bytes, 80000u);
  EXPECT_EQ(fold("def @main() { sum(multiply(ones(shape=[5000, 4]), 3f)) }").constant_bytes, 4u);
  EXPECT_EQ(fold("def @main() { concatenate((zeros(shape=[5000, 4]), ones(shape=[1, 4]))) }").ops, Ops{});
}

// A weight is read as it lies in memory: computing it would take a kernel of its own, each run.
TEST(FoldConstant, WeightsAreData) {
  const Left left = fold(
      "def @main() { nn.dense(full(1f, shape=[1, 40], dtype=\"float32\"),"
      " ones(shape=[500, 40])) }");
  EXPECT_EQ(left.ops, Ops{});
  const IRModule after = run_pass("FoldConstant", read("def @main(%x: Tensor[(1, 40), float32]) {"
                                                       " %0 = ones(shape=[500, 40]);"
                                                       " (nn.dense(%x, %0), sum(%0)) }"));
  relay::post_order(after->lookup("main"), [](const Expr& e) {
    const auto* call = e.as<relay::CallNode>();
    EXPECT_TRUE(call == nullptr || call->as_op()->name != "ones");
  });
}

TEST(FoldConstant, UnlessItIsVeryLarge) {
  const IRModule after = run_pass("FoldConstant", read("def @main() { negative(ones(shape=[5000, 1000])) }"));
  const Expr body = after->lookup("main").cast<relay::FunctionNode>()->body;
  EXPECT_EQ(body.cast<relay::CallNode>()->as_op()->name, "negative");
}

// The read stands before the write, and its value is used after it.
TEST(FoldConstant, ReadsStayBeforeWrites) {
  const IRModule before =
      read("def @main() { let %r = ref(1f); %0 = (ref_read(%r), 2f); (%0.1, ref_write(%r, 5f), %0.0) }");
  const IRModule after = run_pass("FoldConstant", before);
  EXPECT_EQ(element_as_double(interp::run_main(before, {}).back().tensor(), 0), 1);
  expect_same_results(before, after, {}, 0);
}

// A sequence of 9 steps does not fit 2.
TEST(FoldConstant, FailedEvaluationsStay) {
  const IRModule before = read(
      "def @main(%c: bool) { if (%c) { unravel_index(const(Tensor[(1), int32], [9]), const(Tensor[(2), int32], [2, 2]))"
      " } else { ones(shape=[2, 1], dtype=\"int32\") } }");
  const IRModule after = run_pass("FoldConstant", before);
  NDArray condition = NDArray::empty({}, DataType::bool_());
  set_element(condition.tensor(), 0, 0);
  expect_same_results(before, after, {condition}, 0);
  set_element(condition.tensor(), 0, 1);
  const auto run = [&] { interp::run_main(after, {condition}); };
  EXPECT_THAT(kit::user_error_of(run), testing::HasSubstr("index 9 is out of range"));
}

// ---- what folding may cost

// The result of FoldConstant for a body, with the notes that the pass reports.
struct Folded {
  Expr body;
  std::vector<pass::PassNote> notes;
};
Folded fold_noting(const std::string& body, int32_t threads = 1) {
  Folded folded;
  pass::PassContext context = typed_context();
  context.threads = threads;
  context.note = [&](const pass::PassNote& note) { folded.notes.push_back(note); };
  const IRModule after = run_pass("FoldConstant", read(fmt::format("def @main() {{ {} }}", body)), context);
  folded.body = after->lookup("main").cast<relay::FunctionNode>()->body;
  return folded;
}

// Each of these texts would take minutes, or gigabytes, of a compile.
TEST(FoldConstant, WorkAndGrowthAreLimited) {
  std::vector<std::string> bodies{"nn.dense(ones(shape=[9000, 9000]), ones(shape=[9000, 9000]))",
                                  "nn.adaptive_avg_pool2d(ones(shape=[1, 64, 4000, 4000]), output_size=[1, 1])",
                                  "nn.dense(ones(shape=[1, 10000]), tile(ones(shape=[10000, 1]), reps=[1, 10000]))"};
  if (kit::options().size != kit::TestSize::kFew) {  // these run until their budget is spent
    bodies.push_back("nn.max_pool2d(ones(shape=[1, 1, 2000, 2000]), pool_size=[1000, 1000])");
    bodies.push_back(
        "einsum((ones(shape=[300, 300]), ones(shape=[300, 300]), ones(shape=[300, 300])),"
        " equation=\"ab,cd,ef->a\")");
  }
  for (const std::string& body : bodies) {
    const Folded folded = fold_noting(body);
    EXPECT_FALSE(folded.body.is<relay::ConstantNode>()) << body;
    ASSERT_FALSE(folded.notes.empty()) << body;
    EXPECT_EQ(folded.notes[0].reason, HR_REASON_FOLD_LIMIT);
    EXPECT_THAT(folded.notes[0].message, testing::HasSubstr("is left to be computed at each run")) << body;
  }
}

// A product of 64 MB of two rows of 16 kB would be part of the artifact; a repetition costs its reader nothing.
TEST(FoldConstant, LargeConstantsStayWithANote) {
  const std::string row = "arange(0f, 4096f, 1f, dtype=\"float32\")";
  const Folded folded = fold_noting(fmt::format("multiply({0}, reshape({0}, newshape=[4096, 1]))", row));
  EXPECT_TRUE(folded.body.is<relay::CallNode>());
  ASSERT_EQ(folded.notes.size(), 1u);
  EXPECT_EQ(folded.notes[0].reason, HR_REASON_FOLD_LIMIT);
  EXPECT_EQ(folded.notes[0].message,
            "a call of multiply of constants is left to be computed at each run: its result would enlarge the artifact "
            "too much");
  EXPECT_TRUE(fold_noting("ones(shape=[4096, 4096])").notes.empty());
}

// Four results of 20 MB are more than the budget of a program without data of its own, which a build says it has: the
// constant is what an earlier run of the pass made.
TEST(FoldConstant, TheBudgetGrowsWithTheProgramsOwnConstantsOnly) {
  Expr chain = relay::make_constant(NDArray::zeros({5'000'000}, DataType::float_(32)));
  for (const char* op : {"exp", "negative", "exp", "negative"}) chain = ops::unary(op, chain);
  chain = ops::reduce("sum", chain);
  const IRModule module = relay::infer_type(make_module(relay::make_function({}, chain)));
  EXPECT_EQ(program_bytes(module), 20'000'000);
  for (const bool is_own : {true, false}) {
    pass::PassContext context = typed_context();
    std::vector<pass::PassNote> notes;
    context.note = [&](const pass::PassNote& note) { notes.push_back(note); };
    if (!is_own) context.config.set(kProgramBytes, Value(int64_t{0}));
    const IRModule after = run_pass("FoldConstant", module, context);
    EXPECT_EQ(after->lookup("main").cast<relay::FunctionNode>()->body.is<relay::ConstantNode>(), is_own);
    EXPECT_EQ(notes.size(), is_own ? 0u : 1u);
  }
}

TEST(FoldConstant, OrdinaryWorkIsWithinTheBudget) {
  for (const std::string& body :
       std::vector<std::string>{"nn.dense(ones(shape=[200, 1000]), ones(shape=[200, 1000]))",
                                "sum(ones(shape=[2500, 2000]))", "transpose(ones(shape=[4000, 1000]))"}) {
    const Folded folded = fold_noting(body);
    EXPECT_TRUE(folded.body.is<relay::ConstantNode>()) << body;
    EXPECT_TRUE(folded.notes.empty()) << body;
  }
}

TEST(FoldConstant, ThreadsChangeNoBits) {
  for (const std::string& body : std::vector<std::string>{
           "multiply(exp(reshape(arange(0f, 3000000f, 1f, dtype=\"float32\"), newshape=[3000, 1000])),"
           " reshape(arange(0f, 1000f, 1f, dtype=\"float32\"), newshape=[1, 1000]))",
           "nn.dense(reshape(arange(0f, 90000f, 1f, dtype=\"float32\"), newshape=[300, 300]),"
           " reshape(arange(0f, 90000f, 1f, dtype=\"float32\"), newshape=[300, 300]))",
           "layout_transform(reshape(arange(0f, 3000000f, 1f, dtype=\"float32\"), newshape=[300, 100, 10, 10]),"
           " src_layout=\"OIHW\", dst_layout=\"OIHW4i4o\")",
           "layout_transform(arange(0f, 3000000f, 1f, dtype=\"float32\"), src_layout=\"C\", dst_layout=\"C4c\")",
           "transpose(reshape(arange(0f, 3000000f, 1f, dtype=\"float32\"), newshape=[1000, 3000]))",
           "transpose(reshape(arange(0f, 3000000f, 1f, dtype=\"float32\"), newshape=[30, 100, 10, 100]), axes=[2, 0, "
           "3, "
           "1])"}) {
    const Expr one = fold_noting(body, 1).body, four = fold_noting(body, 4).body;
    ASSERT_TRUE(one.is<relay::ConstantNode>() && four.is<relay::ConstantNode>()) << body;
    EXPECT_TRUE(one.as<relay::ConstantNode>()->data.content_equal(four.as<relay::ConstantNode>()->data)) << body;
  }
}

// An interrupt reaches into one long evaluation.
TEST(FoldConstant, AnInterruptEndsIt) {
  struct Interrupted {};
  static int asked = 0;
  asked = 0;
  const InterruptScope scope([] {
    if (++asked > 2) throw Interrupted();
  });
  EXPECT_THROW(fold_noting("nn.dense(ones(shape=[600, 900]), ones(shape=[600, 900]))"), Interrupted);
}

// ---- lets

struct LetCase {
  const char* name;
  const char* before;
  const char* after;  // the body after the pass; null: unchanged
};

// Bodies of a function with a parameter %x.
constexpr LetCase kLets[] = {
    {"AsInRelay", "let %t = 1f; let %u = add(%t, %t); let %v = add(%u, %x); %v", "let %v = add(2f, %x); %v"},
    {"OperandOfTheResult", "let %t = 1f; let %u = add(%t, %t); multiply(%x, %u)", "multiply(%x, 2f)"},
    {"AnotherName", "let %a = 3f; let %b = %a; multiply(%x, %b)", "multiply(%x, 3f)"},
    {"ALetInAValue", "let %a = { let %b = 2f; negative(%b) }; multiply(%x, %a)", "multiply(%x, -2f)"},
    {"NeverUsed", "let %a = exp(0f); %x", "%x"},
    {"InAFunction", "let %a = 3f; let %f = fn (%y: float32) { multiply(%y, %a) }; %f(%x)",
     "let %f = fn (%y: float32) { multiply(%y, 3f) }; %f(%x)"},
    {"InABranch", "let %a = 3f; if (less(%x, %a)) { let %b = negative(%a); %b } else { %a }",
     "if (less(%x, 3f)) { -3f } else { 3f }"},
    {"AnItem", "let %a = (1f, 2f).1; multiply(%x, %a)", "multiply(%x, 2f)"},
    {"BetweenEffects",
     "let %r = ref(%x); let %a = 2f; let %old = ref_read(%r); let %_ = ref_write(%r, add(%a, %a));"
     " let %c = 7f; subtract(%old, multiply(ref_read(%r), %c))",
     "let %r = ref(%x); let %old = ref_read(%r); let %_ = ref_write(%r, 4f);"
     " subtract(%old, multiply(ref_read(%r), 7f))"},
    {"AValueWithAnEffect", "let %r = ref(%x); let %a = { let %_ = ref_write(%r, 5f); 2f }; multiply(ref_read(%r), %a)",
     "let %r = ref(%x); let %_ = ref_write(%r, 5f); let %v = ref_read(%r); multiply(%v, 2f)"},
    {"TheValueOfARead", "let %r = ref(2f); let %a = ref_read(%r); multiply(%x, %a)", nullptr},
    {"ATuple", "let %a = (2f, %x); multiply(%a.0, %a.1)", nullptr},
    {"AFunction", "let %f = fn (%y: float32) { %y }; %f(%x)", nullptr},
    {"ALoop",
     "let %n = 3; let %f = fn (%i: int32, %y: float32) -> float32 {"
     " if (less(%i, %n)) { %f(add(%i, 1), add(%y, %y)) } else { %y } }; %f(0, %x)",
     "let %f = fn (%i: int32, %y: float32) -> float32 {"
     " if (less(%i, 3)) { %f(add(%i, 1), add(%y, %y)) } else { %y } }; %f(0, %x)"},
};

void PrintTo(const LetCase& c, std::ostream* out) { *out << c.before; }

IRModule let_program(const char* body) { return read(fmt::format("def @main(%x: float32) {{ {} }}", body)); }

class FoldLets : public testing::TestWithParam<LetCase> {};

TEST_P(FoldLets, ConstantsStandForTheirVariables) {
  const IRModule before = let_program(GetParam().before);
  const IRModule got = run_pass("FoldConstant", before);
  const IRModule want = let_program(GetParam().after == nullptr ? GetParam().before : GetParam().after);
  const auto mismatch = first_mismatch(Value(got), Value(want));
  EXPECT_FALSE(mismatch) << mismatch->path << "\n" << relay::print_module(got);
  expect_same_results(before, got, {ramp({}, 1.5f)}, 0);
}

INSTANTIATE_TEST_SUITE_P(Programs, FoldLets, testing::ValuesIn(kLets),
                         [](const auto& info) { return std::string(info.param.name); });

// A reference to the constant itself could hold no vector of another length.
TEST(FoldConstant, AVariableOfAWiderTypeStays) {
  const IRModule before = read(
      "def @main(%x: Tensor[(?), float32]) -> Tensor[(?), float32] {\n"
      "  let %a: Tensor[(?), float32] = const(Tensor[(3), float32], [1, 2, 3]);\n"
      "  let %r = ref(%a); let %_ = ref_write(%r, %x); ref_read(%r)\n}");
  const IRModule after = run_pass("FoldConstant", before);
  EXPECT_EQ(after->lookup("main"), before->lookup("main"));
  expect_same_results(before, relay::infer_type(after), {ramp({2}, 0)}, 0);
}

// As deep as a model is long.
TEST(FoldConstant, AChainOfLets) {
  std::string body = "let %v0 = 1f; ";
  for (int i = 1; i < 3000; ++i) body += fmt::format("let %v{} = negative(%v{}); ", i, i - 1);
  const IRModule after = run_pass("FoldConstant", let_program((body + "multiply(%x, %v2999)").c_str()));
  const Expr result = after->lookup("main").cast<relay::FunctionNode>()->body;
  ASSERT_TRUE(result.is<relay::CallNode>());
  EXPECT_EQ(element_as_double(result.cast<relay::CallNode>()->args[1].as<relay::ConstantNode>()->data.tensor(), 0), -1);
}

}  // namespace
}  // namespace headrace::passes
