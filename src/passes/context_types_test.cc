// Tests types that only the context of an expression determines. A pass may remove that context (a parameter, an
// annotation, the other branch), and the program must keep its types.
#include <gmock/gmock.h>

#include "kit/errors.h"
#include "passes/tests/pass_testing.h"
#include "relay/visit.h"

namespace headrace::passes {
namespace {

constexpr const char* kTypes =
    "type Option[A] { None, Some(A) }\n"
    "def @id[A](%x: A) -> A { %x }\n"
    "def @none[A]() -> Option[A] { None }\n"
    "def @is_none[A](%o: Option[A]) -> float32 { match (%o) { None => 1f, Some(%a) => 0f } }\n"
    "def @or_zero(%o: Option[float32], Inline=1) -> float32 { match (%o) { None => 0f, Some(%a) => %a } }\n"
    "def @asks(%f: fn (Option[float32]) -> float32, Inline=1) -> float32 { %f(None) }\n"
    "def @makes(%f: fn () -> Option[float32], Inline=1) -> float32 { @or_zero(%f()) }\n"
    "def @twice[A](%f: fn (A) -> A, Inline=1) -> fn (A) -> A { fn (%y: A) -> A { %f(%f(%y)) } }\n"
    "def @none_like[A](%f: fn (A) -> A, Inline=1) -> Option[A] { None }\n"
    "def @first(%p: (fn (float32) -> float32, float32), Inline=1) -> float32 { %p.0(%p.1) }\n"
    "def @unread(%r: ref(fn (float32) -> float32), Inline=1) -> float32 { let %f = ref_read(%r); 2f }\n";

struct ContextCase {
  const char* says;
  const char* body;  // body of a function of %x: float32 and %c: bool
  double result;     // for 0.5 and true
  // A function with type parameters that no argument or let gives a type is refused there, with advice.
  bool has_first_order_form = true;
};

void PrintTo(const ContextCase& c, std::ostream* out) { *out << c.says; }

constexpr ContextCase kContextCases[] = {
    {"a parameter", "@or_zero(None)", 0},
    {"a parameter, of what a function gives", "@or_zero(@none())", 0},
    {"the type of a function that is an argument", "@asks(@is_none)", 1},
    {"the result of a function that is an argument", "@makes(@none)", 0},
    {"a literal's parameter", "@makes(fn () { None })", 0},
    {"a let that nobody reads", "let %o = None; let %p: Option[float32] = %o; @is_none(%o)", 1},
    {"a let of a closure's parameter", "let %f = fn (%v) { let %w: float32 = %v; %v }; %f(%x)", 0.5},
    {"a let of a function", "let %h: fn (float32) -> float32 = @twice(@id); %h(%x)", 0.5},
    {"a let of data", "let %o: Option[float32] = @none_like(@id); @or_zero(%o)", 0},
    {"an item", "@first((@id, %x))", 0.5, false},
    {"a reference", "@unread(ref(@id))", 2, false},
    {"the other branch", "let %f = if (%c) { @twice(@id) } else { fn (%y: float32) -> float32 { %y } }; %f(%x)", 0.5},
    {"what is done with the branches", "let %f = if (%c) { @id } else { @twice(@id) }; %f(%x)", 0.5},
};

class ContextTypes : public testing::TestWithParam<ContextCase> {};

std::string text_of(const ContextCase& c) {
  return std::string(kTypes) + "def @main(%x: float32, %c: bool) -> float32 { " + c.body + " }";
}

double result_of(const IRModule& module) {
  const NDArray condition = NDArray::empty({}, DataType::bool_());
  set_element_int(condition.tensor(), 0, 1);
  return element_as_double(interp::run_main(module, {ramp({}, 0.5f), condition}).at(0).tensor(), 0);
}

// A copy that has none of the types that inference found.
IRModule untyped(const IRModule& module) { return relay::parse_module(relay::print_module(module), "again.relay"); }

TEST_P(ContextTypes, StayAfterEveryPass) {
  const IRModule before = read(text_of(GetParam()));
  EXPECT_EQ(result_of(before), GetParam().result);
  for (const auto& list : {canonical(), by_name()}) {
    for (const pass::Pass& pass : list) {
      if (pass.info.name == "FirstOrderGradient") continue;  // it changes the result's type
      if (pass.info.name == "Defunctionalization" && !GetParam().has_first_order_form) continue;
      SCOPED_TRACE(pass.info.name);
      const IRModule after = run_pass(pass.info.name, before);
      EXPECT_EQ(result_of(relay::infer_type(untyped(after))), GetParam().result);
    }
  }
}

// One after the other, so that what one pass leaves the next one meets.
TEST_P(ContextTypes, StayAfterPassesOneAfterAnother) {
  IRModule module = read(text_of(GetParam()));
  for (const char* pass : {"Inline", "InlineCalls", "ToANormalForm", "PartialEvaluate", "DeadCodeElimination",
                           "ToGraphNormalForm", "ToBasicBlockNormalForm", "InlineCalls", "DeadCodeElimination"}) {
    SCOPED_TRACE(pass);
    module = relay::infer_type(untyped(run_pass(pass, module)));
    EXPECT_EQ(result_of(module), GetParam().result);
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, ContextTypes, testing::ValuesIn(kContextCases));

std::vector<std::string> type_args_of(const IRModule& module) {
  std::vector<std::string> found;
  for (const auto& [var, function] : module->functions()) {
    relay::post_order(function, [&](const Expr& expr) {
      const auto* call = expr.as<relay::CallNode>();
      for (size_t i = 0; call != nullptr && i < call->type_args.size(); ++i)
        found.push_back(to_string(call->type_args[i]));
    });
  }
  return found;
}

TEST(TypeArguments, AreWrittenIntoTheCallsWhoseArgumentsDoNotSayThem) {
  const std::string none = "type Option[A] { None, Some(A) }\n";
  EXPECT_THAT(type_args_of(read(none + "def @main() -> Option[float32] { None }")), testing::ElementsAre("float32"));
  EXPECT_THAT(type_args_of(read(none + "def @main(%x: float32) { Some(%x) }")), testing::IsEmpty());
  EXPECT_THAT(type_args_of(read(none + "def @main() -> Option[int32] { None[int32] }")), testing::ElementsAre("int32"));
  EXPECT_THAT(kit::user_error_of([&] { read(none + "def @main() -> Option[float32] { None[int32] }"); }),
              testing::HasSubstr("annotated to give Option[float32] and its body gives Option[int32]"));
}

}  // namespace
}  // namespace headrace::passes
