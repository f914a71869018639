// The backend ccompiler: regions as C text, compiled and linked into the artifact, against the reference interpreter.
#include "backends/ccompiler/compile/ccompiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "backends/ccompiler/compile/region_text.h"
#include "codegen/c_compiler.h"
#include "driver/compile.h"
#include "interp/interp.h"
#include "kit/errors.h"
#include "load/run.h"
#include "ops/all_ops.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"

namespace headrace::backends::ccompiler {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

IRModule read(const std::string& text) {
  ops::register_all_ops();
  return relay::infer_type(relay::parse_module("#[version = \"0.0.5\"]\n" + text));
}

partition::RegionSource source(const std::string& text) {
  const IRModule module = read(text);
  return {.name = "f", .function = module->lookup("f").cast<relay::FunctionNode>(), .module = module};
}

std::vector<NDArray> compiled_results(const std::string& text, const std::vector<NDArray>& inputs) {
  driver::Model model = driver::make_model(read(text));
  const auto artifact = driver::open_compiled(driver::compile_to_memory(model), "the artifact");
  const auto executor = load::make_executor(artifact, "default", {.threads = 1, .fallback = executors::Fallback::none});
  return load::run(*executor, inputs);
}

NDArray numbers(const Shape& shape, std::vector<float> values) {
  return NDArray::from_vector(shape, DataType::float_(32), values);
}

std::vector<float> values_of(const NDArray& array) {
  return {array.data<float>(), array.data<float>() + array.num_elements()};
}

// The program of the classic guide, on 2 x 5: ((a + b) - c) * d.
TEST(CCompiler, TheGuidesProgram) {
  const std::string four =
      "%a: Tensor[(2, 5), float32], %b: Tensor[(2, 5), float32], %c: Tensor[(2, 5), float32], %d: Tensor[(2, 5), "
      "float32]";
  std::vector<float> a, b, c, d, expected;
  for (int i = 0; i < 10; ++i) {
    const auto x = static_cast<float>(i);
    a.push_back(x), b.push_back(2 * x + 1), c.push_back(7 - x), d.push_back(0.5F * x);
    expected.push_back(((x + (2 * x + 1)) - (7 - x)) * (0.5F * x));
  }
  const auto results =
      compiled_results("def @f(" + four + ", Compiler=\"ccompiler\") { multiply(subtract(add(%a, %b), %c), %d) }\n" +
                           "def @main(" + four + ") { @f(%a, %b, %c, %d) }\n",
                       {numbers({2, 5}, a), numbers({2, 5}, b), numbers({2, 5}, c), numbers({2, 5}, d)});
  EXPECT_EQ(values_of(results.at(0)), expected);
}

// Every op and dtype that the backend takes, with broadcasting, constants, NaN and infinities, against the interpreter.
TEST(CCompiler, EachOpIsWhatTheInterpreterSays) {
  const std::vector<std::string> calls = {"add(%a, %b)",     "subtract(%a, %b)", "multiply(%a, %b)", "maximum(%a, %b)",
                                          "minimum(%a, %b)", "negative(%a)",     "abs(%a)",          "nn.relu(%a)",
                                          "divide(%a, %b)",  "sqrt(%a)",         "add(%a, meta)",    "exp(%a)",
                                          "tanh(%a)"};
  const std::vector<double> samples = {0, -0.0, 1, -1.5, 2.25, 1e30, -1e30, INFINITY, -INFINITY, NAN, 3, -7};
  int checked = 0;
  for (const DataType dtype : {DataType::float_(32), DataType::float_(64), DataType::int_(32), DataType::int_(64)}) {
    for (std::string call : calls) {
      const bool is_whole = dtype.is_int();
      if (is_whole && (call == "sqrt(%a)" || call == "exp(%a)" || call == "tanh(%a)")) continue;  // not of integers
      if (const size_t at = call.find("meta"); at != std::string::npos)
        call.replace(at, 4,
                     is_whole ? fmt::format("const(Tensor[(4), {}], [1, -2, 3, 2147483647])", dtype)
                              : fmt::format("const(Tensor[(4), {}], [1f, -2f, 0.1f, 3e30f])", dtype));
      const std::string head = fmt::format("%a: Tensor[(3, 1, 4), {0}], %b: Tensor[(2, 4), {0}]", dtype);
      const std::string text = fmt::format("def @f({0}, Compiler=\"ccompiler\") {{ {1} }}\n", head, call);
      const IRModule module = read(text);
      const auto function = module->lookup("f").cast<relay::FunctionNode>();
      if (!make_backend()->supports(*function->body.as<relay::CallNode>()).ok()) continue;
      NDArray a = NDArray::empty({3, 1, 4}, dtype), b = NDArray::empty({2, 4}, dtype);
      for (int64_t i = 0; i < 12; ++i)
        set_element(a.tensor(), i,
                    is_whole ? static_cast<double>(i * 1000003 - 5000000) : samples[static_cast<size_t>(i)]);
      for (int64_t i = 0; i < 8; ++i)
        set_element(b.tensor(), i, is_whole ? static_cast<double>(9 - i * 2147) : samples[static_cast<size_t>(i + 3)]);
      const NDArray want = interp::run_main(read(fmt::format("def @main({}) {{ {} }}\n", head, call)), {a, b}).at(0);
      const NDArray got = compiled_results(text + fmt::format("def @main({}) {{ @f(%a, %b) }}\n", head), {a, b}).at(0);
      for (int64_t i = 0; i < want.num_elements(); ++i) {
        const double x = element_as_double(want.tensor(), i), y = element_as_double(got.tensor(), i);
        EXPECT_TRUE(x == y || (std::isnan(x) && std::isnan(y)) || std::abs(x - y) <= 1e-6 * std::abs(x))
            << call << " of " << dtype.to_string() << " at " << i << ": " << x << ", " << y;
      }
      ++checked;
    }
  }
  EXPECT_EQ(checked, 2 * 13 + 2 * 9);
}

// Several outputs, one of them twice, one that is an input and one that is a constant; a tuple in and inside.
TEST(CCompiler, EmptyValuesNeedNoWorkspace) {
  const auto results = compiled_results(
      "def @f(%x: Tensor[(0, 3), float32], Compiler=\"ccompiler\") { subtract(multiply(%x, %x), %x) }\n"
      "def @main(%x: Tensor[(0, 3), float32]) { @f(%x) }\n",
      {numbers({0, 3}, {})});
  EXPECT_EQ(results.at(0).shape(), (Shape{0, 3}));
}

TEST(CCompiler, TuplesAndOutputsOfAllKinds) {
  const auto results = compiled_results(
      "def @f(%p: (Tensor[(2), float32], Tensor[(2), float32]), Compiler=\"ccompiler\") {\n"
      "  let %s = add(%p.0, %p.1);\n"
      "  let %t = (%s, multiply(%s, %s));\n"
      "  (%t.1, %s, %t.1, %p.0, const(Tensor[(2), float32], [5f, 6f]))\n}\n"
      "def @main(%x: Tensor[(2), float32], %y: Tensor[(2), float32]) { @f((%x, %y)) }\n",
      {numbers({2}, {1, 2}), numbers({2}, {10, 20})});
  const std::vector<std::vector<float>> expected = {{121, 484}, {11, 22}, {121, 484}, {1, 2}, {5, 6}};
  ASSERT_EQ(results.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(values_of(results[i]), expected[i]) << i;
}

TEST(CCompiler, TheTextHasTheClassicNamesAndPlansItsMemory) {
  const RegionText text = region_text(source("def @f(%a: Tensor[(8, 16), float32]) {\n"
                                             "  add(negative(abs(negative(%a))), %a) }\n"))
                              .value_or_throw();
  for (const char* name : {"static void f_0(", "void f_(const float* i0, float* o0, char* workspace)",
                           "int32_t f__wrapper_(DLTensor* i0, DLTensor* o0, char* workspace)",
                           "int32_t f(const hr_kernel_env* env, DLTensor* const* args)"})
    EXPECT_THAT(text.text, HasSubstr(name));
  EXPECT_THAT(text.text, Not(HasSubstr("malloc")));
  EXPECT_EQ(text.workspace_bytes, 2 * 8 * 16 * 4);  // three values, two of them alive at once
}

// A node that is used twice is computed once, and an input that is used twice is one parameter.
TEST(CCompiler, SharedNodesAreComputedOnce) {
  const std::string text = region_text(source("def @f(%a: Tensor[(4), int32]) {\n"
                                              "  let %s = add(%a, %a); multiply(%s, %s) }\n"))
                               .value_or_throw()
                               .text;
  EXPECT_THAT(text, HasSubstr("f_0(i0, i0, (int32_t*)(workspace + 0));"));
  EXPECT_THAT(text, HasSubstr("f_1((int32_t*)(workspace + 0), (int32_t*)(workspace + 0), o0);"));
  EXPECT_THAT(text, Not(HasSubstr("f_2(")));
}

// Calls of one op, type and shape have one function; another shape, order of broadcasting or type has its own.
TEST(CCompiler, EqualCallsHaveOneFunction) {
  const std::string text =
      region_text(source("def @f(%a: Tensor[(4), int32], %b: Tensor[(2, 4), int32], %c: Tensor[(4), float32]) {\n"
                         "  let %s = add(%a, %a); let %t = add(%s, %a); let %u = add(%a, %b); let %v = add(%b, %a);\n"
                         "  let %w = add(%v, %s); (%t, %u, %w, add(%c, %c), subtract(%t, %a)) }\n"))
          .value_or_throw()
          .text;
  int functions = 0;
  for (size_t at = text.find("static void f_"); at != std::string::npos; at = text.find("static void f_", at + 1))
    ++functions;
  EXPECT_EQ(functions, 5);  // add of two (4), (4) to (2, 4) and the other way round, add of float32, and subtract
  for (const char* call : {"  f_0(i0, i0, ", "  f_0((int32_t*)(workspace + 0), i0, o0);", "  f_1(i0, i1, o1);",
                           "  f_2(i1, i0, ", "  f_3(i2, i2, o3);", "  f_4(o0, i0, o4);"})
    EXPECT_THAT(text, HasSubstr(call));
}

TEST(CCompiler, EachNoHasItsReason) {
  const std::vector<std::tuple<std::string, hr_reason, std::string>> cases = {
      {"def @f(%a: Tensor[(4), float32]) { nn.softmax(%a) }", HR_REASON_OP_UNSUPPORTED, "no C text for this op"},
      {"def @f(%a: Tensor[(4), int32]) { divide(%a, %a) }", HR_REASON_DTYPE_UNSUPPORTED,
       "no C text for this op of int32"},
      {"def @f(%a: Tensor[(4), float16]) { add(%a, %a) }", HR_REASON_DTYPE_UNSUPPORTED,
       "the parameter 'a': it is of float16"},
      {"def @f(%a: Tensor[(n), float32]) { add(%a, %a) }", HR_REASON_DYNAMIC_UNSUPPORTED,
       "a size of it is not a number"},
      {"def @f(%a: Tensor[(1, 1, 1, 1, 1, 1, 1, 1, 1), float32]) { abs(%a) }", HR_REASON_SHAPE_UNSUPPORTED,
       "9 dimensions"},
      {"def @f(%a: Tensor[(4), float32]) {\n  let %g = fn (%z: Tensor[(4), float32]) { %z }; %g(%a) }",
       HR_REASON_OP_UNSUPPORTED, "holds a"},
  };
  for (const auto& [text, reason, words] : cases) {
    const Expected<RegionText> made = region_text(source(text));
    ASSERT_FALSE(made.has_value()) << text;
    EXPECT_EQ(made.refusal().code, reason) << text;
    EXPECT_THAT(made.refusal().message, HasSubstr(words));
  }
}

TEST(CCompiler, AMissingOrFailingCompilerSaysSo) {
  const auto said_by = [](const char* compiler) {
    return kit::user_error_of([&] { codegen::compile_c(compiler, "int x;"); });
  };
  EXPECT_THAT(said_by("/nowhere/cc"), HasSubstr("the C compiler '/nowhere/cc' cannot be started"));
  EXPECT_THAT(said_by("false"),
              HasSubstr("the C compiler 'false' failed: it ended with the exit status 1 and no message"));
  // Its message is cut at a character, and need not be UTF-8.
  const std::string script = ::testing::TempDir() + "latin_cc";
  std::ofstream(script) << "#!/bin/sh\nprintf 'zu hei\\337: ' >&2; printf '\\303\\274%.0s' $(seq 1000) >&2; exit 1\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  const std::string said = said_by(script.c_str());
  EXPECT_THAT(said, HasSubstr("failed: zu hei\xef\xbf\xbd: \xc3\xbc"));
  EXPECT_THAT(said, ::testing::EndsWith("\xc3\xbc"));
  EXPECT_LT(said.size(), 600u);
  EXPECT_THAT(said_by("true"), HasSubstr("the C compiler 'true' ended well and wrote no object file"));
  EXPECT_THAT(said_by("  "), HasSubstr("cannot be started"));
  EXPECT_FALSE(codegen::compile_c(codegen::find_c_compiler("", "this test") + " -g0  -Wall", "int x;").empty());
  EXPECT_THAT(kit::user_error_of([] { codegen::compile_c(codegen::find_c_compiler("", "this test"), "int x"); }),
              HasSubstr("failed: "));
  const auto error = [](Map<std::string, Value> options) {
    const std::vector<partition::RegionSource> regions{source("def @f(%a: Tensor[(4), float32]) { abs(%a) }")};
    return kit::user_error_of(
        [&] { make_backend()->compile({.regions = regions, .target = make_target("llvm"), .options = options}); });
  };
  EXPECT_THAT(error({{"gc", Value(std::string("gcc"))}}), HasSubstr("has no option 'gc'"));
  EXPECT_THAT(error({{"cc", Value(3)}}), HasSubstr("the option cc of the backend 'ccompiler' is not a name"));
  EXPECT_THAT(error({{"cc", Value(std::string("/nowhere/cc"))}}), HasSubstr("cannot be started"));
}

}  // namespace
}  // namespace headrace::backends::ccompiler
