#include "driver/region_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <thread>

#include "driver/explain.h"
#include "kit/errors.h"
#include "object/shape_tuple.h"
#include "ops/all_ops.h"
#include "partition/backend.h"
#include "partition/merge.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"
#include "runtime/function_module.h"

namespace headrace::driver::region_calls {
namespace {

using executors::Fallback;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::atomic<int> num_compiled = 0;

// Sets all results of a region to 42, so that results tell which of the two computed them; a first input above 1000 is
// a failure.
Value write_42(Args args) {
  const auto* x = static_cast<const DLTensor*>(args[0].v.v_ptr);
  const auto* y = static_cast<const DLTensor*>(args[args.size() - 1].v.v_ptr);
  const float first = static_cast<const float*>(x->data)[0];
  if (first > 2000) throw_user_error("the chip is too hei\xdf");  // not UTF-8
  if (first > 1000) throw_user_error("the chip is on fire");
  for (int64_t i = 0; i < y->shape[0]; ++i) static_cast<float*>(y->data)[i] = 42;
  return Value();
}

class Backend42 : public partition::Backend {
 public:
  std::string_view name() const override { return "always42"; }
  partition::Verdict supports(const relay::CallNode&) const override { return {}; }
  std::vector<Expected<partition::RegionCode>> compile(const partition::RegionRequest& request) const override {
    std::vector<Expected<partition::RegionCode>> codes;
    for (const partition::RegionSource& region : request.regions) {
      ++num_compiled;
      codes.push_back(partition::RegionCode{.module = module_of(region.name)});
    }
    return codes;
  }
  static runtime::Module module_of(const std::string& name) {
    return runtime::make_function_module("always42", {{name, PackedFunc(&write_42)}}, name);
  }
};

IRModule read(const std::string& text) {
  static const bool is_registered = [] {
    ops::register_all_ops();
    runtime::register_module_loader("always42", &Backend42::module_of);
    partition::register_backend(std::make_shared<const Backend42>());
    return true;
  }();
  EXPECT_TRUE(is_registered);
  return relay::infer_type(relay::parse_module("#[version = \"0.0.5\"]\n" + text));
}

NDArray tensor(const std::vector<float>& data) {
  return NDArray::from_vector({static_cast<int64_t>(data.size())}, DataType::float_(32), data);
}
NDArray scalar(bool value) { return NDArray::from_vector({}, DataType::bool_(), std::vector<uint8_t>{value}); }

std::vector<float> floats(const Value& value) {
  const NDArray array = value.as<NDArray>();
  return {array.data<float>(), array.data<float>() + array.num_elements()};
}

// An interpreter whose regions run on their backends.
struct Program {
  explicit Program(const std::string& text, Fallback fallback = Fallback::native)
      : module(read(text)), calls(module, {}, fallback) {}

  Value operator()(const std::vector<Value>& args) {
    const auto call = [this](const relay::Function& region, std::span<const Value> its) {
      return calls.call(region, its);
    };
    return interp::run(module, "main", args, {.call_external = call});
  }

  IRModule module;
  RegionCalls calls;
};

constexpr const char* kExp =
    "def @exp_of(%a: Tensor[(2), float32], Compiler=\"always42\", Primitive=1) -> Tensor[(2), float32] { exp(%a) }\n";

TEST(RegionCalls, ALetAndABranchCallTheBackend) {
  Program run(std::string(kExp) +
              "def @main(%c: bool, %x: Tensor[(2), float32]) {\n"
              "  let %y = @exp_of(%x);\n"
              "  if (%c) { add(@exp_of(%x), %y) } else { negative(%y) }\n}\n");
  EXPECT_THAT(floats(run({Value(scalar(true)), Value(tensor({0, 1}))})), ElementsAre(84, 84));
  EXPECT_THAT(floats(run({Value(scalar(false)), Value(tensor({0, 1}))})), ElementsAre(-42, -42));
  EXPECT_THAT(run.calls.fallbacks(), IsEmpty());
}

TEST(RegionCalls, ARecursiveFunctionCallsTheBackend) {
  Program run(
      std::string(kExp) +
      "def @go(%n: int32, %x: Tensor[(2), float32]) -> Tensor[(2), float32] {\n"
      "  if (equal(%n, 0)) { %x } else { @go(subtract(%n, 1), add(@exp_of(%x), cast(%n, dtype=\"float32\"))) }\n}\n"
      "def @main(%n: int32, %x: Tensor[(2), float32]) { @go(%n, %x) }\n");
  num_compiled = 0;
  const NDArray three = NDArray::from_vector({}, DataType::int_(32), std::vector<int32_t>{3});
  EXPECT_THAT(floats(run({Value(three), Value(tensor({0, 1}))})), ElementsAre(43, 43));
  EXPECT_EQ(num_compiled, 1);
}

TEST(RegionCalls, FunctionsThatAreValuesCallTheBackend) {
  Program global(std::string(kExp) +
                 "def @twice(%f: fn (Tensor[(2), float32]) -> Tensor[(2), float32], %x: Tensor[(2), float32])\n"
                 "    -> Tensor[(2), float32] { add(%f(%x), %f(%x)) }\n"
                 "def @main(%x: Tensor[(2), float32]) { @twice(@exp_of, %x) }\n");
  EXPECT_THAT(floats(global({Value(tensor({0, 1}))})), ElementsAre(84, 84));
  // The literal is a new object in each run, and is compiled once.
  Program literal(
      "def @main(%c: bool, %x: Tensor[(2), float32]) {\n"
      "  let %f = fn (%a: Tensor[(2), float32], Compiler=\"always42\", global_symbol=\"lit\") { exp(%a) };\n"
      "  if (%c) { %f(%x) } else { %x }\n}\n");
  num_compiled = 0;
  for (int i = 0; i < 3; ++i)
    EXPECT_THAT(floats(literal({Value(scalar(true)), Value(tensor({0, 1}))})), ElementsAre(42, 42));
  EXPECT_EQ(num_compiled, 1);
}

// A backend that is registered, and whose library is not there.
class WithoutLibrary : public partition::Backend {
 public:
  std::string_view name() const override { return "without_library"; }
  partition::Verdict supports(const relay::CallNode&) const override { throw MissingError("its library is not there"); }
  bool one_call_per_region() const override { throw MissingError("its library is not there"); }
  std::span<const partition::CompositePattern> patterns() const override { throw MissingError("not there"); }
  std::vector<Expected<partition::RegionCode>> compile(const partition::RegionRequest&) const override {
    throw MissingError("its library is not there");
  }
};

TEST(RegionCalls, ABackendWithoutItsLibraryIsMissing) {
  const std::string text = "def @main(%a: Tensor[(2), float32], Compiler=\"without_library\") { negative(%a) }\n";
  read(text);
  partition::register_backend(std::make_shared<const WithoutLibrary>());
  Program run(text);
  EXPECT_THAT(floats(run({Value(tensor({0, 1}))})), ElementsAre(0, -1));
  ASSERT_THAT(run.calls.fallbacks(), SizeIs(1));
  EXPECT_EQ(run.calls.fallbacks()[0].reason, HR_REASON_BACKEND_MISSING);
  EXPECT_THAT(run.calls.fallbacks()[0].message, HasSubstr("its library is not there"));
  Program strict(text, Fallback::none);
  EXPECT_THAT(kit::user_error_of([&] { strict({Value(tensor({0, 1}))}); }), HasSubstr("its library is not there"));
  // A pass over graphs needs no backend, and what the costs are is all that is not said of the program.
  const IRModule annotated = read(
      "def @main(%x: Tensor[(2), float32]) {\n"
      "  annotation.compiler_end(exp(annotation.compiler_begin(%x, compiler=\"without_library\")), "
      "compiler=\"without_library\")\n}\n");
  EXPECT_NO_THROW(partition::merge_compiler_regions(annotated));
  const Explanation explained =
      explain(make_model(read("def @f(%a: Tensor[(2), float32], Compiler=\"without_library\") { negative(%a) }\n"
                              "def @main(%a: Tensor[(2), float32]) { exp(@f(%a)) }\n")),
              {});
  EXPECT_EQ(explained.placement.at(0).backend, "without_library");
}

// Threads that call a region for the first time together get one result, and one event.
TEST(RegionCalls, ThreadsShareTheFirstCall) {
  for (int trial = 0; trial < 20; ++trial) {
    Program run("def @main(%a: Tensor[(2), float32], Compiler=\"nobody\") { negative(%a) }\n");
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back([&] { run({Value(tensor({0, 1}))}); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_THAT(run.calls.fallbacks(), SizeIs(1));
  }
}

TEST(RegionCalls, ARegionIsTheWholeProgram) {
  Program run("def @main(%a: Tensor[(2), float32], Compiler=\"always42\") { exp(%a) }\n");
  EXPECT_THAT(floats(run({Value(tensor({0, 1}))})), ElementsAre(42, 42));
}

TEST(RegionCalls, TuplesGoInAndComeOut) {
  Program run(
      "def @pair(%p: (Tensor[(2), float32], Tensor[(2), float32]), Compiler=\"always42\") {\n"
      "  (add(%p.0, %p.1), exp(%p.1)) }\n"
      "def @main(%x: Tensor[(2), float32]) { @pair((%x, %x)) }\n");
  const Value result = run({Value(tensor({0, 1}))});
  const auto* tuple = result.as_node<ADTObj>();
  ASSERT_NE(tuple, nullptr);
  ASSERT_EQ(tuple->items.size(), 2u);
  EXPECT_THAT(floats(tuple->items[1]), ElementsAre(42, 42));
}

// A region of an open size is compiled for each size that it is called with.
TEST(RegionCalls, OpenSizesTakeThoseOfTheArguments) {
  Program run(
      "def @r(%a: Tensor[(?), float32], Compiler=\"always42\") -> Tensor[(?), float32] { exp(%a) }\n"
      "def @main(%x: Tensor[(?), float32]) { @r(%x) }\n");
  num_compiled = 0;
  EXPECT_THAT(floats(run({Value(tensor({0, 1}))})), ElementsAre(42, 42));
  EXPECT_THAT(floats(run({Value(tensor({0, 1, 2}))})), ElementsAre(42, 42, 42));
  EXPECT_THAT(floats(run({Value(tensor({5, 1}))})), ElementsAre(42, 42));
  EXPECT_EQ(num_compiled, 2);
}

TEST(RegionCalls, ABackendThatFailsIsReplacedAndReported) {
  const std::string text = std::string(kExp) + "def @main(%x: Tensor[(2), float32]) { @exp_of(%x) }\n";
  Program run(text);
  EXPECT_THAT(floats(run({Value(tensor({0, 0}))})), ElementsAre(42, 42));
  EXPECT_THAT(floats(run({Value(tensor({2000, 0}))})), ElementsAre(std::numeric_limits<float>::infinity(), 1));
  const std::vector<executors::FallbackEvent> events = run.calls.fallbacks();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].region, "exp_of");
  EXPECT_EQ(events[0].reason, HR_REASON_BACKEND_FAILED);
  EXPECT_EQ(events[0].message, "the chip is on fire");
  EXPECT_EQ(events[0].run, 2u);
  Program strict(text, Fallback::none);
  EXPECT_THAT(kit::user_error_of([&] { strict({Value(tensor({2000, 0}))}); }), HasSubstr("the chip is on fire"));
}

TEST(RegionCalls, AMessageInAnotherEncodingIsShown) {
  Program run(std::string(kExp) + "def @main(%x: Tensor[(2), float32]) { @exp_of(%x) }\n");
  run({Value(tensor({3000, 0}))});
  ASSERT_EQ(run.calls.fallbacks().size(), 1u);
  EXPECT_EQ(run.calls.fallbacks()[0].message, "the chip is too hei\xef\xbf\xbd");
}

TEST(RegionCalls, ABackendThatIsMissingIsReplacedAndReported) {
  const std::string text =
      "def @r(%a: Tensor[(2), float32], Compiler=\"neverheardof\") { add(%a, %a) }\n"
      "def @main(%x: Tensor[(2), float32]) { add(@r(%x), @r(%x)) }\n";
  Program run(text);
  EXPECT_THAT(floats(run({Value(tensor({1, 2}))})), ElementsAre(4, 8));
  const std::vector<executors::FallbackEvent> events = run.calls.fallbacks();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].region, "r");
  EXPECT_EQ(events[0].backend, "neverheardof");
  EXPECT_EQ(events[0].reason, HR_REASON_BACKEND_MISSING);
  EXPECT_EQ(events[0].run, 0u);
  EXPECT_THAT(events[0].message, HasSubstr("is for the compiler 'neverheardof', which is not registered"));
  Program strict(text, Fallback::none);
  EXPECT_THAT(kit::user_error_of([&] { strict({Value(tensor({1, 2}))}); }),
              HasSubstr("is for the compiler 'neverheardof', which is not registered"));
}

// A region that is called with a wrong shape is refused at the call, as a call of any function.
TEST(RegionCalls, ArgumentsAreChecked) {
  Program run("def @main(%a: Tensor[(2), float32], Compiler=\"always42\") { exp(%a) }\n");
  EXPECT_THAT(kit::user_error_of([&] { run({Value(tensor({1, 2, 3}))}); }),
              HasSubstr("expected Tensor[(2), float32], got Tensor[(3), float32]"));
}

TEST(RegionCalls, TheReferenceEvaluatesBodies) {
  const IRModule module = read(std::string(kExp) + "def @main(%x: Tensor[(2), float32]) { @exp_of(%x) }\n");
  EXPECT_THAT(floats(interp::run(module, "main", {Value(tensor({0, 0}))})), ElementsAre(1, 1));
  const interp::Options wide{.precision = interp::Precision::float64,
                             .call_external = [](const relay::Function&, std::span<const Value>) {
                               ADD_FAILURE() << "asked in a run in float64";
                               return std::optional<Value>();
                             }};
  interp::run(module, "main", {Value(tensor({0, 0}))}, wide);
}

}  // namespace
}  // namespace headrace::driver::region_calls
