// Modules that give constants to the functions of their imports.
#include "runtime/const_module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "kit/errors.h"
#include "object/json.h"
#include "runtime/function_module.h"

namespace headrace::runtime {
namespace {

using ::testing::HasSubstr;

// Returns the sum of its constants; counts the calls of __init_f, the first `failures` of which throw.
struct Code {
  std::atomic<int> inits = 0, failures = 0;
  std::atomic<float> sum = 0;

  Module module() {
    const auto init = [this](const Array<NDArray>& constants) {
      if (inits++ < failures) throw_user_error("not yet");
      float total = 0;
      for (const NDArray& constant : constants) total += constant.data<float>()[0];
      sum = total;
    };
    return make_function_module(
        "test_code", {{"f", make_packed([this] { return static_cast<double>(sum); })}, {"__init_f", make_packed(init)}},
        "");
  }
};

Array<NDArray> two_constants() {
  return {NDArray::from_vector({1}, DataType::float_(32), std::vector<float>{2}),
          NDArray::from_vector({1}, DataType::float_(32), std::vector<float>{40})};
}

TEST(ConstModule, ThreadsThatCallTogetherInitializeOnce) {
  Code code;
  const Module module = make_const_module("f", two_constants(), code.module());
  const PackedFunc f = module.GetFunction("f");
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back([&] { right += f().as<double>() == 42 ? 1 : 0; });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 8);
  EXPECT_EQ(code.inits, 1);
}

TEST(ConstModule, AFailedStartIsTriedAgain) {
  Code code;
  code.failures = 1;
  const PackedFunc f = make_const_module("f", two_constants(), code.module()).GetFunction("f");
  EXPECT_THAT(kit::user_error_of([&] { f(); }), HasSubstr("not yet"));
  EXPECT_EQ(f().as<double>(), 42);
}

// An artifact holds the tensors among its weights.
TEST(ConstModule, IsSavedApartFromItsConstants) {
  Code code;
  const Module module = make_const_module("f", two_constants(), code.module());
  const SavedModule saved = module.save_apart();
  ASSERT_EQ(saved.constants.size(), 2u);
  EXPECT_EQ(saved.constants[1].data<float>()[0], 40);
  EXPECT_LT(saved.bytes.size(), module.SaveToBinary().size());
  EXPECT_EQ(load_const_module(saved).SaveToBinary(), module.SaveToBinary());
}

TEST(ConstModule, IsSavedWithoutItsImports) {
  Code code;
  const std::string bytes = make_const_module("f", two_constants(), code.module()).SaveToBinary();
  const Module loaded = load_const_module({.bytes = bytes});
  EXPECT_FALSE(loaded.GetFunction("f"));
  loaded.Import(code.module());
  EXPECT_EQ(loaded.GetFunction("f")().as<double>(), 42);
  EXPECT_EQ(loaded.SaveToBinary(), bytes);
  EXPECT_THAT(kit::user_error_of([] { load_const_module({.bytes = save_json(Value(int64_t{3}))}); }),
              HasSubstr("the bytes are not those of a module of the kind const_loader"));
  for (size_t end = 0; end < bytes.size(); end += 7)
    EXPECT_NE(kit::user_error_of([&] { load_const_module({.bytes = bytes.substr(0, end)}); }), "") << end;
}

}  // namespace
}  // namespace headrace::runtime
