// Tests modules made of functions: functions that code of the process registered, and given functions.
#include "runtime/system_lib.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kit/errors.h"
#include "runtime/function_module.h"
#include "tensor/ndarray.h"

namespace headrace::runtime {
namespace {

using ::testing::HasSubstr;

void* library() {
  static void* handle = dlopen(HEADRACE_SYSTEM_SYMBOLS, RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(handle, nullptr) << dlerror();
  return handle;
}

TEST(SystemLib, FindsWhatALibraryRegisteredWhenItWasLoaded) {
  const Module before = system_lib();
  library();
  EXPECT_EQ(before.GetFunction("test_twice")(21).as<int64_t>(), 42);
  const Module prefixed = system_lib("test_");
  EXPECT_EQ(prefixed.GetFunction("twice")(-1).as<int64_t>(), -2);
  EXPECT_FALSE(prefixed.GetFunction("test_twice"));
  EXPECT_FALSE(before.GetFunction("nobody"));
  EXPECT_EQ(before.type_key(), "system_lib");
}

TEST(SystemLib, TensorsArePassedEitherWay) {
  library();
  const PackedFunc sum = system_lib("test_").GetFunction("sum");
  const NDArray x = NDArray::from_vector({3}, DataType::float_(32), std::vector<float>{1, 2, 4});
  EXPECT_EQ(sum(x).as<double>(), 7);
  DLTensor lent = x.tensor();
  RawValue raw;
  raw.type_index = type_index::kDLTensorPtr;
  raw.v.v_ptr = &lent;
  EXPECT_EQ(sum.call(Args(&raw, 1)).as<double>(), 7);
}

TEST(SystemLib, FailuresAreErrorsOfTheCaller) {
  library();
  const Module lib = system_lib("test_");
  EXPECT_EQ(kit::user_error_of([&] { lib.GetFunction("twice")("x"); }), "twice: expected an int");
  EXPECT_EQ(kit::user_error_of([&] { lib.GetFunction("twice")(); }), "twice: expected an int");
  EXPECT_EQ(kit::user_error_of([&] { lib.GetFunction("silent")(); }),
            "a function of the process, 'test_silent', failed without saying why");
  EXPECT_THAT(kit::user_error_of([&] { lib.SaveToBinary(); }), HasSubstr("kind 'system_lib' cannot be saved"));
}

TEST(SystemLib, MistakesInRegisteringAreReported) {
  const auto mistakes = reinterpret_cast<int (*)()>(dlsym(library(), "test_mistakes"));
  ASSERT_NE(mistakes, nullptr);
  EXPECT_EQ(mistakes(), 1);
}

TEST(FunctionModule, HasItsFunctionsAndItsBytes) {
  const std::map<std::string, PackedFunc> functions = {{"next", make_packed([](int64_t x) { return x + 1; })}};
  const Module saved = make_function_module("mine", functions, std::string("a\0b", 3));
  EXPECT_EQ(saved.GetFunction("next")(1).as<int64_t>(), 2);
  EXPECT_FALSE(saved.GetFunction("last"));
  EXPECT_EQ(saved.SaveToBinary(), std::string("a\0b", 3));
  const Module unsaved = make_function_module("mine", functions, {});
  EXPECT_THAT(kit::user_error_of([&] { unsaved.SaveToBinary(); }), HasSubstr("kind 'mine' cannot be saved"));
  EXPECT_THAT(kit::user_error_of([&] { make_function_module("", functions, {}); }),
              HasSubstr("a module's kind is empty"));
  EXPECT_EQ(kit::user_error_of([&] { make_function_module(std::string(system_lib("").type_key()), functions, {}); }),
            "a module's kind is 'system_lib', which is that of a module that Headrace makes; name another kind");
}

}  // namespace
}  // namespace headrace::runtime
