// The programs of the classic guide for backend authors: C and graphs from a shared library of a user's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "codegen/c_module.h"
#include "driver/built_module.h"
#include "driver/compile.h"
#include "driver/plugins.h"
#include "driver/register_all.h"
#include "functions/register_functions.h"
#include "kit/backends.h"
#include "kit/errors.h"
#include "load/run.h"
#include "relay/text/parse.h"

namespace headrace::driver {
namespace {

using ::testing::HasSubstr;

constexpr const char* kFourTensors =
    "%a: Tensor[(10, 10), float32], %b: Tensor[(10, 10), float32], %c: Tensor[(10, 10), float32], %d: Tensor[(10, 10), "
    "float32]";

class ClassicGuide : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    functions::register_functions();
    ASSERT_EQ(load_plugin(HEADRACE_PORTED_CODEGEN), "");  // it registers its code generators itself
  }

  static IRModule program(const std::string& compiler) {
    return relay::parse_module(
        fmt::format("#[version = \"0.0.5\"]\n"
                    "def @f({0}, Compiler=\"{1}\", global_symbol=\"f\", Primitive=1) {{\n"
                    "  multiply(subtract(add(%a, %b), %c), %d) }}\n"
                    "def @main({0}) {{ @f(%a, %b, %c, %d) }}\n",
                    kFourTensors, compiler));
  }

  static NDArray filled(float first, float step) {
    std::vector<float> values;
    for (int i = 0; i < 100; ++i) values.push_back(first + step * static_cast<float>(i));
    return NDArray::from_vector({10, 10}, DataType::float_(32), values);
  }

  static std::shared_ptr<executors::Executor> executor_of(const IRModule& module) {
    const auto artifact = open_compiled(compile_to_memory(make_model(module)), "the artifact");
    return load::make_executor(artifact, "default", {.threads = 1, .fallback = executors::Fallback::none});
  }

  // Returns whether ((a + b) - c) * d is right for some inputs that depend on `seed`.
  static bool is_right(executors::Executor& executor, int seed) {
    const auto k = static_cast<float>(seed);
    const NDArray result =
        load::run(executor, std::vector<NDArray>{filled(k, 1), filled(2, 2), filled(1, -1), filled(3, 0.5F)}).at(0);
    for (int i = 0; i < 100; ++i) {
      const auto x = static_cast<float>(i);
      if (result.data<float>()[i] != ((k + x + (2 + 2 * x)) - (1 - x)) * (3 + 0.5F * x)) return false;
    }
    return true;
  }
};

TEST_F(ClassicGuide, ALibraryOfAUserCompilesRegionsToC) {
  EXPECT_TRUE(is_right(*executor_of(program("ported_c")), 1));
  const runtime::Module built = build_module(make_model(program("ported_c")));
  ASSERT_EQ(built.imports().size(), 1u);
  const std::string source = built.imports()[0].GetSource();
  for (const char* line : {"static void f_0(const float* a", "void f_(const float* a, const float* b",
                           "int32_t f__wrapper_(DLTensor* a, DLTensor* b, DLTensor* c, DLTensor* d, DLTensor* out0)",
                           "TVM_DLL_EXPORT_TYPED_FUNC(f, f__wrapper_)"})
    EXPECT_THAT(source, HasSubstr(line));
  // A function frees all buffers that it allocates, those of its results too, after it has copied the results.
  EXPECT_THAT(source, HasSubstr("memcpy(out0, buf_2, 400);\n  free(buf_0);\n  free(buf_1);\n  free(buf_2);\n}"));
}

TEST_F(ClassicGuide, ThreadsRunOneFileAtOnce) {
  if (const std::string why = kit::why_without("ccompiler"); !why.empty()) GTEST_SKIP() << why;
  for (const char* compiler : {"ported_c", "ccompiler"}) {
    const auto artifact = open_compiled(compile_to_memory(make_model(program(compiler))), "the artifact");
    std::atomic<int> right = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t)
      threads.emplace_back([&, t] {
        const auto executor = load::make_executor(artifact, "default", {.threads = 1});
        for (int i = 0; i < 20; ++i) right += is_right(*executor, 10 * t + i) ? 1 : 0;
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(right, 40) << compiler;
  }
}

TEST_F(ClassicGuide, ALibraryOfAUserWritesGraphsForAnotherRuntime) {
  if (const std::string why = kit::why_without("examplejson"); !why.empty()) GTEST_SKIP() << why;
  const IRModule module = relay::parse_module(
      "#[version = \"0.0.5\"]\n"
      "def @subgraph_0(%a: Tensor[(2), float32], %b: Tensor[(2), float32], Compiler=\"ported_graph\", Primitive=1) {\n"
      "  add(%a, %b) }\n"
      "def @main(%x: Tensor[(2), float32], %y: Tensor[(2), float32]) { negative(@subgraph_0(%x, %y)) }\n");
  const auto executor = executor_of(module);
  const auto tensor = [](std::vector<float> values) {
    return NDArray::from_vector({2}, DataType::float_(32), std::move(values));
  };
  const NDArray result = load::run(*executor, std::vector<NDArray>{tensor({1, 2}), tensor({10, 20})}).at(0);
  EXPECT_EQ(result.data<float>()[0], -11);
  EXPECT_EQ(result.data<float>()[1], -22);
}

TEST_F(ClassicGuide, SourceThatIsWrongSaysSo) {
  const auto error = [](const std::string& source, const std::string& format) {
    register_global("relay.ext.wrong_c", make_packed([source, format](const relay::Function&) {
                      return codegen::make_c_module(source, format, {"f"});
                    }),
                    true);
    return kit::user_error_of([] { compile_to_memory(make_model(program("wrong_c"))); });
  };
  EXPECT_THAT(error("int f", "c"), HasSubstr("the C compiler"));
  EXPECT_THAT(error("int f", "cc"), HasSubstr("the C++ compiler"));
  for (const char* without : {"double x;", "/* f */ double x;", "int f_alone;",
                              "static int f(void) { return 0; } int (*g)(void) = f;", "int f(void);"})
    EXPECT_THAT(error(without, "c"),
                HasSubstr("the code of the backend 'wrong_c' lacks the function 'f' of the region 'f'; check that its "
                          "source defines that function, that it is not static"));
  EXPECT_THAT(error("int f() { return 0; }", "cc"), HasSubstr("that it is extern \"C\" in C++"));
  register_global("relay.ext.wrong_c", make_packed([](const relay::Function&) {
                    return codegen::make_c_module("int f;", "c", {"f"}, {"f_const_0"});
                  }),
                  true);
  EXPECT_THAT(kit::user_error_of([] { compile_to_memory(make_model(program("wrong_c"))); }),
              HasSubstr("the C source for the region 'f' asks for constants, which kernels do not take"));
  EXPECT_THAT(error("int x;", "rust"), HasSubstr("there is no source format 'rust'; the formats are c, and cc"));
  const runtime::Module module = codegen::make_c_module("int x;", "c", {"f"});
  EXPECT_THAT(kit::user_error_of([&] { module.GetFunction("f")(); }), HasSubstr("'f' is C source, which is compiled"));
  EXPECT_EQ(module.GetFunction("get_symbol")().as<std::string>(), "f");
  EXPECT_FALSE(module.GetFunction("g"));
}

}  // namespace
}  // namespace headrace::driver
