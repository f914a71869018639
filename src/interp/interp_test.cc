#include "interp/interp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/interrupt.h"
#include "kit/count_allocations.h"
#include "kit/errors.h"
#include "kit/property.h"
#include "object/shape_tuple.h"
#include "ops/all_ops.h"
#include "relay/text/parse.h"

namespace headrace::interp {
namespace {

using ::testing::HasSubstr;

// The tensors that the text's @main gives for `args`.
std::vector<NDArray> run_text(const std::string& body, const std::vector<NDArray>& args, const Options& options = {}) {
  ops::register_all_ops();
  return run_main(relay::parse_module("#[version = \"0.0.5\"]\n" + body, "test.relay"), args, options);
}

NDArray tensor(const Shape& shape, const std::vector<float>& data) {
  return NDArray::from_vector(shape, DataType::float_(32), data);
}

std::vector<float> floats(const NDArray& array) {
  return {array.data<float>(), array.data<float>() + array.num_elements()};
}

std::string error_of(const std::string& body, const std::vector<NDArray>& args, const Options& options = {}) {
  try {
    run_text(body, args, options);
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

TEST(Interp, CallsShareNodes) {
  const auto out =
      run_text("def @main(%x: Tensor[(3), float32]) { %0 = add(%x, %x); multiply(%0, %0) }", {tensor({3}, {1, -2, 3})});
  EXPECT_EQ(floats(out.at(0)), (std::vector<float>{4, 16, 36}));
}

TEST(Interp, TuplesAndItems) {
  const auto out = run_text("def @main(%x: Tensor[(2), float32]) { let %t = (%x, negative(%x)); (%t.1, %t.0) }",
                            {tensor({2}, {1, 2})});
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(floats(out[0]), (std::vector<float>{-1, -2}));
  EXPECT_EQ(floats(out[1]), (std::vector<float>{1, 2}));
}

TEST(Interp, SizesPastMemoryAreReportedAtTheOp) {
  const std::string error = error_of(
      "def @main(%x: Tensor[(1, 1, 2, 2), float32]) {\n"
      "  nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [0, 2000000000], [0, 2000000000]])\n}",
      {NDArray::zeros({1, 1, 2, 2}, DataType::float_(32))});
  EXPECT_NE(error.find("(1, 1, 2000000002, 2000000002)"), std::string::npos) << error;
  EXPECT_NE(error.find("\n  at: nn.pad\n  in: test.relay:3:3"), std::string::npos) << error;
}

TEST(Interp, IfTakesOneBranch) {
  const std::string text =
      "def @main(%c: bool, %x: Tensor[(1), float32]) { if (%c) { add(%x, %x) } else { multiply(%x, %x) } }";
  const NDArray yes = NDArray::from_vector<uint8_t>({}, DataType::bool_(), {1});
  const NDArray no = NDArray::from_vector<uint8_t>({}, DataType::bool_(), {0});
  EXPECT_EQ(floats(run_text(text, {yes, tensor({1}, {5})}).at(0)), std::vector<float>{10});
  EXPECT_EQ(floats(run_text(text, {no, tensor({1}, {5})}).at(0)), std::vector<float>{25});
}

TEST(Interp, GlobalFunctionsCallEachOther) {
  const auto out = run_text(
      "def @twice(%x: Tensor[(1), float32]) -> Tensor[(1), float32] { add(%x, %x) }\n"
      "def @main(%x: Tensor[(1), float32]) { @twice(@twice(%x)) }",
      {tensor({1}, {3})});
  EXPECT_EQ(floats(out.at(0)), std::vector<float>{12});
}

TEST(Interp, Float64RunDoesNotRound) {
  const std::string text = "def @main(%x: Tensor[(1), float32]) { subtract(add(%x, 1e-9f), %x) }";
  EXPECT_EQ(run_text(text, {tensor({1}, {1})}).at(0).data<float>()[0], 0.0f);
  const NDArray wide = run_text(text, {tensor({1}, {1})}, {.precision = Precision::float64}).at(0);
  EXPECT_EQ(wide.dtype(), DataType::float_(64));
  EXPECT_NEAR(wide.data<double>()[0], 1e-9, 1e-15);
}

TEST(Interp, WrongArgumentsAreNamed) {
  const std::string text = "def @main(%x: Tensor[(3), float32]) { negative(%x) }";
  EXPECT_NE(error_of(text, {}).find("takes 1 argument, got 0"), std::string::npos);
  const std::string message = error_of(text, {tensor({2}, {1, 2})});
  EXPECT_NE(message.find("argument 0 ('x'): expected Tensor[(3), float32], got Tensor[(2), float32]"),
            std::string::npos)
      << message;
}

TEST(Interp, ASymbolHasOneSize) {
  const std::string text =
      "def @main(%x: Tensor[(n + 1), float32], %y: Tensor[(n), float32], %z: Tensor[(n, ?), float32]) { %y }";
  const auto ones = [](const Shape& shape) { return NDArray::zeros(shape, DataType::float_(32)); };
  EXPECT_EQ(run_text(text, {ones({3}), ones({2}), ones({2, 7})}).at(0).shape(), Shape{2});
  EXPECT_THAT(error_of(text, {ones({3}), ones({2}), ones({3, 7})}),
              HasSubstr("argument 2 ('z'): expected Tensor[(n, ?), float32] with n = 2, got Tensor[(3, 7), float32]"));
  EXPECT_THAT(error_of(text, {ones({2}), ones({2}), ones({2, 7})}),
              HasSubstr("argument 0 ('x'): expected Tensor[(n + 1), float32] with n = 2, got Tensor[(2), float32]"));
}

TEST(Interp, ASumOfSymbolsTellsTheirSizes) {
  const auto ones = [](const Shape& shape) { return NDArray::zeros(shape, DataType::float_(32)); };
  const std::string text =
      "def @main(%x: Tensor[(n + m), float32], %y: Tensor[(m * 2), float32], %z: Tensor[(1 + n), float32]) { %z }";
  EXPECT_EQ(run_text(text, {ones({5}), ones({4}), ones({4})}).at(0).shape(), Shape{4});
  EXPECT_THAT(error_of(text, {ones({5}), ones({4}), ones({3})}),
              HasSubstr("argument 0 ('x'): expected Tensor[(n + m), float32] with m = 2, n = 2, got"));
  EXPECT_THAT(error_of(text, {ones({5}), ones({3}), ones({4})}),
              HasSubstr("argument 1 ('y'): expected Tensor[(m * 2), float32], got Tensor[(3), float32]"));
  EXPECT_THAT(error_of(text, {ones({5}), ones({4}), ones({0})}),
              HasSubstr("argument 2 ('z'): expected Tensor[(1 + n), float32]"));
}

TEST(Interp, TensorsInTuplesAreChecked) {
  const IRModule module = relay::parse_module(
      "#[version = \"0.0.5\"]\ndef @main(%t: (Tensor[(n), float32], (Tensor[(n), float32],))) { %t.0 }");
  const auto pair = [&](int64_t a, int64_t b, DataType dtype) {
    const Value inner(make_adt(0, {Value(NDArray::zeros({b}, dtype))}));
    return Value(make_adt(0, {Value(NDArray::zeros({a}, DataType::float_(32))), inner}));
  };
  const auto error = [&](const Value& argument) {
    return kit::user_error_of([&] { run(module, "main", {argument}); });
  };
  EXPECT_EQ(error(pair(2, 2, DataType::float_(32))), "");
  EXPECT_THAT(error(pair(2, 3, DataType::float_(32))), HasSubstr("argument 0 ('t'): expected (Tensor[(n), float32]"));
  EXPECT_THAT(error(pair(2, 2, DataType::float_(16))), HasSubstr("argument 0 ('t'): expected"));
  EXPECT_THAT(error(Value(NDArray::zeros({2}, DataType::float_(32)))), HasSubstr("got Tensor[(2), float32]"));
}

TEST(Interp, EndlessRecursionIsAnError) {
  const std::string message = error_of(
      "def @f(%x: Tensor[(1), float32]) -> Tensor[(1), float32] { @f(%x) }\n"
      "def @main(%x: Tensor[(1), float32]) { @f(%x) }",
      {tensor({1}, {1})}, {.max_depth = 100});
  EXPECT_NE(message.find("nested more than 100 deep"), std::string::npos) << message;
}

// The int32 scalar that the text's @main gives.
int32_t run_int(const std::string& body) {
  const NDArray result = run_text(body, {}).at(0);
  return result.num_elements() == 1 ? result.data<int32_t>()[0] : -1;
}

struct RunCalledOff {};

// A second of short calls.
TEST(Interp, ARunMayBeCalledOff) {
  const InterruptScope scope([] { throw RunCalledOff(); });
  EXPECT_THROW(run_int("def @fib(%n: int32) -> int32 { if (less(%n, 2)) { %n } else { "
                       "add(@fib(subtract(%n, 1)), @fib(subtract(%n, 2))) } }\n"
                       "def @main() { @fib(22) }"),
               RunCalledOff);
}

constexpr const char* kLists = R"(
type List[A] { Cons(A, List[A]), Nil, }
type Nat { Z, S(Nat), }
def @upto(%n: int32) -> List[int32] { if (equal(%n, 0)) { Nil } else { Cons(%n, @upto(subtract(%n, 1))) } }
def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] {
  match (%l) { Cons(%h, %t) => { Cons(%f(%h), @map(%f, %t)) }, Nil => { Nil } }
}
def @foldl[A, B](%f: fn (A, B) -> A, %a: A, %l: List[B]) -> A {
  match (%l) { Cons(%h, %t) => { @foldl(%f, %f(%a, %h), %t) }, Nil => { %a } }
}
def @sum(%l: List[int32]) -> int32 { @foldl(fn (%a: int32, %b: int32) { add(%a, %b) }, 0, %l) }
def @to_int(%n: Nat) -> int32 { match (%n) { S(%m) => { add(@to_int(%m), 1) }, Z => { 0 } } }
def @plus(%a: Nat, %b: Nat) -> Nat { match (%a) { S(%m) => { S(@plus(%m, %b)) }, Z => { %b } } }
)";

TEST(Interp, DataTypes) {
  EXPECT_EQ(run_int(std::string(kLists) + "def @main() { @sum(@upto(10)) }"), 55);
  EXPECT_EQ(run_int(std::string(kLists) + "def @main() { @sum(@map(fn (%x: int32) { multiply(%x, %x) }, @upto(4))) }"),
            30);
  EXPECT_EQ(run_int(std::string(kLists) + "def @main() { @to_int(@plus(S(S(Z)), S(S(S(Z))))) }"), 5);
  EXPECT_EQ(run_int(std::string(kLists) + "def @main() { @sum(@map(@to_int, Cons(S(Z), Cons(S(S(Z)), Nil)))) }"), 3);
  EXPECT_EQ(run_int(std::string(kLists) +
                    "def @main() { match ((S(Z), Cons(7, Nil))) { (Z, _) => { 1 }, (S(Z), Cons(%x, Nil)) => { %x }, "
                    "_ => { 2 } } }"),
            7);
  EXPECT_EQ(run_int(std::string(kLists) + "def @main() { let %make = &S; @to_int(%make(%make(Z))) }"), 2);
  const std::string none = error_of(std::string(kLists) + "def @main() { match? (Z) { S(_) => { 1 } } }", {});
  EXPECT_NE(none.find("no clause covers the value"), std::string::npos) << none;
}

TEST(Interp, ClosuresReferencesAndMutualRecursion) {
  EXPECT_EQ(run_int("def @main() { let %add = fn (%a: int32) { fn (%b: int32) { add(%a, %b) } }; "
                    "let %three = %add(3); multiply(%three(4), %three(1)) }"),
            28);
  EXPECT_EQ(run_int("def @main() { let %r = ref(1); let %bump = fn () { ref_write(%r, multiply(ref_read(%r), 3)) }; "
                    "let %a = %bump(); let %b = %bump(); ref_read(%r) }"),
            9);
  EXPECT_EQ(run_int("def @even(%n: int32) -> bool { if (equal(%n, 0)) { True } else { @odd(subtract(%n, 1)) } }\n"
                    "def @odd(%n: int32) -> bool { if (equal(%n, 0)) { False } else { @even(subtract(%n, 1)) } }\n"
                    "def @main() { if (@even(10)) { 1 } else { 0 } }"),
            1);
}

// The captured values of a closure stay the same in every call.
TEST(Interp, ClosuresKeepWhatTheyCaptured) {
  EXPECT_EQ(run_int("def @main() { let %k = 3; let %f = fn (%n: int32) -> int32 {"
                    " if (equal(%n, 0)) { %k } else { let %m = subtract(%n, 1); add(%f(%m), %m) } }; %f(4) }"),
            9);
  EXPECT_EQ(run_int("def @main() { let %outer = fn (%a: int32) { fn (%b: int32) { fn (%c: int32) {"
                    " add(multiply(%a, 100), add(multiply(%b, 10), %c)) } } };"
                    " let %one = %outer(1); let %two = %outer(2); let %first = %one(3);"
                    " add(%first(4), add(multiply(%two(5)(6), 1000), %one(7)(8))) }"),
            134 + 256'000 + 178);
  EXPECT_EQ(run_int("def @main() { let %x = 1; let %f = fn (%x: int32, %g: fn (int32) -> int32) { add(%g(10), %x) };"
                    " %f(5, fn (%y: int32) { add(%y, %x) }) }"),
            16);
}

// Returns the bytes that running `depth` nested functions allocates.
int64_t bytes_of_nest(int depth) {
  std::string nest = fmt::format("add(%a{}, 0)", depth - 1);
  for (int i = depth - 1; i >= 0; --i)
    nest =
        fmt::format("let %f{0} = fn (%a{0}) {{ {1} }}; %f{0}({2})", i, nest, i == 0 ? "1" : fmt::format("%a{}", i - 1));
  const IRModule module = relay::parse_module("#[version = \"0.0.5\"]\ndef @main() { " + nest + " }", "test.relay");
  const kit::CountAllocations counter;
  EXPECT_EQ(run_main(module, {}).at(0).data<const int32_t>()[0], 1);
  return counter.count().bytes;
}

// Each function is looked through once for what the functions in it capture: four times the bytes if it were quadratic.
TEST(Interp, NestedFunctionsAreLinear) {
  ops::register_all_ops();
  const int64_t half = bytes_of_nest(1500), whole = bytes_of_nest(3000);
  EXPECT_LT(whole, 3 * half);
}

// A program may nest far deeper than the machine's stack.
TEST(Interp, DeepRecursionNeedsNoStack) {
  EXPECT_EQ(
      run_int("def @count(%n: int32) -> int32 { if (equal(%n, 0)) { 0 } else { add(@count(subtract(%n, 1)), 1) } }"
              "\ndef @main() { @count(10000) }"),
      10000);
  EXPECT_EQ(run_text(std::string(kLists) + "def @main() { @upto(10000) }", {}).size(), 10000u);
}

// Tables for the other axes of these results would not fit any memory.
TEST(Interp, OpsWithoutElementsTakeNoTime) {
  const auto shape_of = [](const std::string& call) {
    return run_text("def @main() { " + call + " }", {}).at(0).shape();
  };
  EXPECT_EQ(shape_of("image.resize1d(zeros(shape=[0, 1, 8], dtype=\"float32\"), size=[1099511627776])"),
            (Shape{0, 1, int64_t{1} << 40}));
  EXPECT_EQ(shape_of("sort(zeros(shape=[0, 1000000000000], dtype=\"float32\"))"), (Shape{0, 1000000000000}));
}

TEST(Interp, LongChainNeedsNoStack) {
  ops::register_all_ops();
  const auto x = relay::make_var("x", make_tensor_type(Shape{1}));
  Expr at = x;
  for (int i = 0; i < 100000; ++i) at = relay::make_call("negative", {at});
  const auto out = run_main(make_module(relay::make_function({x}, at)), {tensor({1}, {7})});
  EXPECT_EQ(floats(out.at(0)), std::vector<float>{7});
}

// ---- transposes, which move elements by planes in blocks

struct RandomTranspose {
  Shape shape = {}, axes = {};
  const char* dtype = "float32";
};

RandomTranspose random_transpose(kit::Random& random) {
  RandomTranspose drawn{.dtype = std::array{"uint8", "float16", "float32", "float64"}[random.index(4)]};
  const auto rank = static_cast<size_t>(random.integer(1, 5));
  for (size_t i = 0; i < rank; ++i) {
    drawn.shape.push_back(random.chance(0.2F) ? 1 : random.integer(0, rank > 3 ? 9 : 40));
    drawn.axes.push_back(static_cast<int64_t>(i));
  }
  for (size_t i = rank; i > 1; --i) std::swap(drawn.axes[i - 1], drawn.axes[random.index(i)]);
  return drawn;
}

// Element [i, j, ..] of the result is the element of the data whose index along axis axes[0] is i, and so on.
std::optional<std::string> check_transpose(const RandomTranspose& drawn) {
  const DataType dtype = DataType::parse(drawn.dtype);
  const NDArray data = NDArray::empty(drawn.shape, dtype);
  for (int64_t i = 0; i < data.num_elements(); ++i) set_element(data.tensor(), i, static_cast<double>(i % 251));
  const NDArray result = run_text(fmt::format("def @main(%x: Tensor[({}{}), {}]) {{ transpose(%x, axes=[{}]) }}",
                                              fmt::join(drawn.shape, ", "), drawn.shape.size() == 1 ? "," : "",
                                              drawn.dtype, fmt::join(drawn.axes, ", ")),
                                  {data})
                             .at(0);
  Shape index(drawn.shape.size(), 0);
  for (int64_t i = 0; i < result.num_elements(); ++i) {
    int64_t rest = i;
    for (size_t axis = index.size(); axis-- > 0; rest /= result.shape()[axis])
      index[axis] = rest % result.shape()[axis];
    int64_t place = 0;
    for (size_t d = 0; d < drawn.shape.size(); ++d) {
      const auto at = std::find(drawn.axes.begin(), drawn.axes.end(), static_cast<int64_t>(d)) - drawn.axes.begin();
      place = place * drawn.shape[d] + index[static_cast<size_t>(at)];
    }
    if (element_as_double(result.tensor(), i) != static_cast<double>(place % 251))
      return fmt::format("element {} is {}, not {}", i, element_as_double(result.tensor(), i), place % 251);
  }
  return std::nullopt;
}

TEST(Transpose, MovesEveryElement) {
  kit::Property<RandomTranspose> property;
  property.runs_ci = 300;
  property.runs_full = 20000;
  property.generate = random_transpose;
  property.show = [](const RandomTranspose& t) {
    return fmt::format("{} ({}) by ({})", t.dtype, fmt::join(t.shape, ", "), fmt::join(t.axes, ", "));
  };
  property.check = check_transpose;
  EXPECT_TRUE(kit::holds(property));
}

}  // namespace
}  // namespace headrace::interp
