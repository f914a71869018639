// No pass loses, repeats or reorders an effect: programs with references and with an op that counts its calls, each
// with its result worked out by hand.
#include <mutex>

#include "ops/register.h"
#include "passes/tests/pass_testing.h"

namespace headrace::passes {
namespace {

// How often test.next was evaluated.
int g_calls = 0;

// test.next(x: float32) -> float32: which call of it this is, from 1.
void register_next() {
  static std::once_flag once;
  std::call_once(once, [] {
    const auto number = [](const ops::EvalInput& in) {
      NDArray result = in.make_output();
      result.data<float>()[0] = static_cast<float>(++g_calls);
      return std::vector<NDArray>{result};
    };
    ops::OpBuilder("test.next", "Which call of it this is.")
        .arg("x")
        .relation([](const relay::RelationInput& in) -> Type { return in.tensor(0); })
        .fusion(ops::FusionKind::opaque)
        .eval(number)
        .stateful();
  });
}

struct EffectCase {
  const char* name;
  const char* text;
  std::vector<double> expected;  // one per scalar that main gives
};

void PrintTo(const EffectCase& c, std::ostream* out) { *out << c.name; }

const std::vector<EffectCase> kEffectCases = {
    {"dropped_item_of_a_tuple",
     "def @main() { let %r = ref(1f); let %x = (ref_write(%r, 2f), 7f).1; (%x, ref_read(%r)) }",
     {7, 2}},
    {"dropped_shape_operand",
     "def @main() { let %r = ref(1f); let %x = reshape(full(3f, shape=[4]), (ref_write(%r, 5f), "
     "const(Tensor[(2), int64], [2, 2])).1); (max(%x), ref_read(%r)) }",
     {3, 5}},
    {"dropped_shape_of",
     "def @write(%r: ref(float32)) -> Tensor[(2), float32] { let %u = ref_write(%r, 6f); full(1f, shape=[2]) }\n"
     "def @main() { let %r = ref(1f); let %s = sum(shape_of(@write(%r))); (%s, ref_read(%r)) }",
     {2, 6}},
    {"dropped_gamma",
     "def @write(%r: ref(float32)) -> Tensor[(2), float32] { let %u = ref_write(%r, 8f); full(1f, shape=[2]) }\n"
     "def @main() { let %r = ref(1f); let %c = full(1f, shape=[2]); let %y = nn.batch_norm(full(0f, shape=[1, 2]), "
     "@write(%r), %c, %c, %c, scale=False, epsilon=0f).0; (max(%y), ref_read(%r)) }",
     {0, 8}},
    {"folded_condition",
     "def @main() { let %r = ref(1f); let %y = if ((ref_write(%r, 2f), True).1) { 3f } else { 4f }; (%y, ref_read(%r)) "
     "}",
     {3, 2}},
    {"operands_of_a_group_in_order",
     "def @next(%r: ref(float32)) -> float32 { let %v = ref_read(%r); let %u = ref_write(%r, add(%v, 1f)); %v }\n"
     "def @main() { let %r = ref(10f); let %y = subtract(@next(%r), negative(multiply(@next(%r), 100f))); "
     "(%y, ref_read(%r)) }",
     {10 + 1100, 12}},
    {"equal_calls_that_write",
     "def @next(%r: ref(float32)) -> float32 { let %v = ref_read(%r); let %u = ref_write(%r, add(%v, 1f)); %v }\n"
     "def @main() { let %r = ref(1f); (add(exp(0f), @next(%r)), add(exp(0f), @next(%r)), ref_read(%r)) }",
     {2, 3, 3}},
    {"shared_by_both_branches",
     "def @next(%r: ref(float32)) -> float32 { let %v = ref_read(%r); let %u = ref_write(%r, add(%v, 1f)); %v }\n"
     "def @main() { let %r = ref(1f); %0 = @next(%r); let %y = if (less(ref_read(%r), 2f)) { multiply(%0, 10f) } else "
     "{ "
     "multiply(%0, 20f) }; (%y, ref_read(%r)) }",
     {10, 2}},
    {"before_what_branches_share",
     "def @next(%r: ref(float32)) -> float32 { let %v = ref_read(%r); let %u = ref_write(%r, add(%v, 1f)); %v }\n"
     "def @main() { let %r = ref(1f); %0 = @next(%r); (add(multiply(@next(%r), 100f), if (less(ref_read(%r), 3f)) { %0 "
     "} else { negative(%0) }), ref_read(%r)) }",
     {102, 3}},
    {"shared_by_two_closures",
     "def @main() { %0 = ref(1f); let %put = fn () { ref_write(%0, 5f) }; let %get = fn () { ref_read(%0) }; "
     "let %u = %put(); (%get(), 0f) }",
     {5, 0}},
    {"in_one_closure_only",
     "def @next(%r: ref(float32)) -> float32 { let %v = ref_read(%r); let %u = ref_write(%r, add(%v, 1f)); %v }\n"
     "def @main() { let %r = ref(1f); let %f = fn () { @next(%r) }; let %a = %f(); let %b = %f(); "
     "(%a, %b, ref_read(%r)) }",
     {1, 2, 3}},
    {"a_branch_that_is_not_taken",
     "def @main() { let %r = ref(1f); let %u = if (False) { ref_write(%r, 2f) } else { () }; (ref_read(%r), 0f) }",
     {1, 0}},
    {"an_operand_of_what_branches_share",
     "def @next(%r: ref(float32)) -> float32 { let %v = ref_read(%r); let %u = ref_write(%r, add(%v, 1f)); %v }\n"
     "def @main() { let %r = ref(1f); %0 = @next(%r); %1 = add(@next(%r), 10f); (%0, if (less(ref_read(%r), 5f)) { "
     "add(%1, 1f) } else { %1 }, ref_read(%r)) }",
     {1, 13, 3}},
    {"first_use_is_dead",
     "def @main() { let %r = ref(1f); %0 = ref_read(%r); let %a = add(%0, 1f); let %u = ref_write(%r, 2f); "
     "(%0, ref_read(%r)) }",
     {1, 2}},
    {"first_use_is_of_the_shape",
     "def @main() { let %r = ref(1f); %0 = ref_read(%r); let %a = (zeros_like(%0), ones_like(%0), full_like(%0, 3f), "
     "ndarray_size(%0), broadcast_to_like(4f, %0), reshape_like(5f, %0), shape_of(%0)); let %u = ref_write(%r, 2f); "
     "(%0, %a.0, %a.1, %a.2, %a.3, %a.4, %a.5) }",
     {1, 0, 1, 3, 1, 4, 5}},
    {"first_use_is_in_the_branch_that_is_not_taken",
     "def @main() { let %r = ref(1f); %0 = ref_read(%r); let %a = if (True) { 7f } else { %0 }; "
     "let %u = ref_write(%r, 2f); (%0, %a) }",
     {1, 7}},
    {"first_use_is_an_operand_that_a_law_drops",
     "def @main() { let %r = ref(1); %0 = ref_read(%r); let %a = multiply(%0, 0); let %b = subtract(%0, %0); "
     "let %u = ref_write(%r, 2); (%0, %a, %b) }",
     {1, 0, 0}},
    {"first_use_is_gamma",
     "def @main() { let %r = ref(full(1f, shape=[2])); %0 = ref_read(%r); let %c = full(1f, shape=[2]); "
     "let %y = nn.batch_norm(full(0f, shape=[1, 2]), %0, %c, %c, %c, scale=False, epsilon=0f).0; "
     "let %u = ref_write(%r, full(2f, shape=[2])); (max(%y), max(%0)) }",
     {0, 1}},
    {"first_use_is_gamma_of_a_layer",
     "def @main() { let %r = ref(full(1f, shape=[2])); %0 = ref_read(%r); let %c = full(1f, shape=[2]); "
     "let %y = nn.layer_norm(full(0f, shape=[1, 2]), %0, %c, scale=False); "
     "let %u = ref_write(%r, full(2f, shape=[2])); (max(%y), max(%0)) }",
     {1, 1}},
    {"first_use_is_in_braces_that_go",
     "def @main() { let %r = ref(1f); %0 = ref_read(%r); ({ let %d = 5f; (ref_write(%r, 2f), %0).1 }, %0) }",
     {1, 1}},
    {"shared_braces_around_a_call_that_goes",
     "def @id(%x: float32, Inline=1) -> float32 { %x }\n"
     "def @main() { let %r = ref(1f); %0 = { let %u = ref_write(%r, 2f); 10f }; %1 = { let %w = ref_write(%r, 3f); "
     "20f }; (@id(add(%0, %1)), %1, ref_read(%r)) }",
     {30, 20, 3}},
    {"stateful_and_dropped", "def @main() { let %x = (test.next(0f), 7f).1; (%x, test.next(0f)) }", {7, 2}},
    {"stateful_and_unused", "def @main() { let %u = test.next(0f); (test.next(0f), 0f) }", {2, 0}},
    {"stateful_and_equal",
     "def @main() { (add(exp(0f), test.next(0f)), add(exp(0f), test.next(0f)), test.next(0f)) }",
     {2, 3, 3}},
    {"stateful_in_a_group",
     "def @main() { (subtract(test.next(0f), negative(multiply(test.next(0f), 100f))), 0f) }",
     {201, 0}},
    {"stateful_in_a_branch_that_is_not_taken",
     "def @main() { let %y = if (False) { test.next(0f) } else { 5f }; (%y, test.next(0f)) }",
     {5, 1}},
    {"stateful_and_shared_by_both_branches",
     "def @main() { let %r = ref(1f); %0 = test.next(0f); %1 = test.next(0f); (%0, if (less(ref_read(%r), 2f)) { "
     "add(%1, 10f) } else { %1 }) }",
     {1, 12}},
    {"stateful_operand_of_what_branches_share",
     "def @main() { let %r = ref(1f); %0 = test.next(0f); %1 = add(test.next(0f), 10f); (%0, if (less(ref_read(%r), "
     "2f)) { add(%1, 100f) } else { %1 }) }",
     {1, 112}},
    {"stateful_and_shared_with_a_let_in_braces",
     "def @main() { %0 = test.next(0f); ({ let %u = test.next(0f); (%0, %u) }.1, %0) }",
     {2, 1}},
    {"stateful_and_shared_with_a_branch_in_braces",
     "def @main() { let %r = ref(1f); %0 = test.next(0f); ({ let %u = 0f; %1 = test.next(0f); "
     "(%0, if (less(ref_read(%r), 2f)) { add(%1, 10f) } else { %1 }) }.1, %0) }",
     {12, 1}},
    {"stateful_in_one_closure_only",
     "def @main() { let %f = fn () { test.next(0f) }; let %a = %f(); let %b = %f(); (%a, %b, test.next(0f)) }",
     {1, 2, 3}},
    {"stateful_and_shared_by_two_closures",
     "def @main() { %0 = test.next(0f); %1 = test.next(0f); %2 = fn () { add(%1, 10f) }; "
     "%3 = fn () { add(%1, 20f) }; (%0, %2(), %3(), test.next(0f)) }",
     {1, 12, 22, 3}},
};

std::vector<double> effect_results(const IRModule& module) {
  g_calls = 0;
  std::vector<double> results;
  for (const NDArray& result : interp::run_main(module, {})) results.push_back(element_as_double(result.tensor(), 0));
  return results;
}

class Effects : public testing::TestWithParam<EffectCase> {
 protected:
  static IRModule program() {
    register_next();
    return read(GetParam().text);
  }
};

TEST_P(Effects, AreWhatTheProgramSays) { EXPECT_EQ(effect_results(program()), GetParam().expected); }

TEST_P(Effects, SurviveEveryPass) {
  for (const auto& list : {canonical(), native({}), by_name()}) {
    for (const pass::Pass& pass : list) {
      if (pass.info.name == "FirstOrderGradient") continue;  // gives another result, and refuses references
      EXPECT_EQ(effect_results(run_pass(pass.info.name, program())), GetParam().expected) << "after " << pass.info.name;
    }
  }
}

TEST_P(Effects, SurviveTheLists) {
  std::vector<pass::Pass> passes = canonical();
  for (const pass::Pass& pass : native({})) passes.push_back(pass);
  const IRModule after = pass::run_passes(passes, program(), typed_context());
  EXPECT_EQ(effect_results(after), GetParam().expected) << relay::print_module(after);
}

INSTANTIATE_TEST_SUITE_P(Programs, Effects, testing::ValuesIn(kEffectCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace headrace::passes
