// Checks that the entry points for clients without the runtime, headrace_run and __tvm_ffi_main, report bad tensors
// that would otherwise crash the process. The entry points are called as C calls them.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <headrace/c_api.h>
#include <headrace/system_lib.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <string>

#include "driver/compile.h"
#include "kit/errors.h"
#include "kit/host.h"
#include "object/function.h"
#include "ops/all_ops.h"
#include "relay/text/parse.h"
#include "runtime/system_lib.h"

namespace headrace::driver {
namespace {

// (x[2, 3], w[3]) -> x + w, of float32.
class StaticMain : public testing::Test {
 protected:
  void SetUp() override {
    ops::register_all_ops();
    const IRModule module = relay::parse_module(
        "#[version = \"0.0.5\"]\n"
        "def @main(%x: Tensor[(2, 3), float32], %w: Tensor[(3), float32]) { add(%x, %w) }\n");
    path_ = testing::TempDir() + "headrace_static_main_mistakes.so";
    compile_to_file(make_model(module), path_);
    library_ = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
    run_ = reinterpret_cast<headrace_run_function>(dlsym(library_, HR_RUN_SYMBOL));
    ASSERT_NE(run_, nullptr);
    for (size_t i = 0; i < 3; ++i) {
      tensors_[i] = {.data = memory_[i].data(),
                     .device = {kDLCPU, 0},
                     .ndim = i == 1 ? 1 : 2,
                     .dtype = {kDLFloat, 32, 1},
                     .shape = i == 1 ? shape_.data() + 1 : shape_.data(),
                     .strides = nullptr,
                     .byte_offset = 0};
    }
  }
  // Keeps the library open, because its functions may still be registered.
  void TearDown() override { unlink(path_.c_str()); }

  // Runs the program and returns its result as "reason: message"; "0: " for success.
  std::string run(DLTensor* const* in, DLTensor* const* out) {
    text_[0] = '\0';
    const HeadraceHost host = kit::host_with_message(text_);
    const int reason = run_(in, 2, out, 1, &host);
    EXPECT_EQ(run_(in, 2, out, 1, nullptr), reason);
    return fmt::format("{}: {}", reason, text_.data());
  }
  std::string run() {
    const std::array<DLTensor*, 2> in{&tensors_[0], &tensors_[1]};
    const std::array<DLTensor*, 1> out{&tensors_[2]};
    return run(in.data(), out.data());
  }
  // Runs the program with changed tensors, and restores them.
  std::string run_with(const std::function<void(std::array<DLTensor, 3>&)>& change) {
    const auto before = tensors_;
    change(tensors_);
    std::string said = run();
    tensors_ = before;
    return said;
  }

  std::string path_;
  void* library_ = nullptr;
  headrace_run_function run_ = nullptr;
  std::array<char, 300> text_{};
  std::array<std::array<float, 6>, 3> memory_{{{1, 2, 3, 4, 5, 6}, {10, 20, 30}, {}}};
  std::array<int64_t, 2> shape_{2, 3};
  std::array<DLTensor, 3> tensors_{};
};

const std::string kBad = fmt::format("{}: ", static_cast<int>(HR_REASON_BAD_TENSOR));
const std::string kInput = kBad + "input 0 must be a contiguous CPU tensor float32[2, 3]; ";
const std::string kOutput = kBad + "output 0 must be a contiguous CPU tensor float32[2, 3]; ";

TEST_F(StaticMain, AHostWithoutFunctionsIsServed) {
  EXPECT_EQ(run(), "0: ");
  EXPECT_EQ(memory_[2], (std::array<float, 6>{11, 22, 33, 14, 25, 36}));
}

TEST_F(StaticMain, ListsThatAreNull) {
  std::array<DLTensor*, 2> in{&tensors_[0], &tensors_[1]};
  std::array<DLTensor*, 1> out{&tensors_[2]};
  EXPECT_EQ(run(nullptr, out.data()), kBad + "the list of inputs is NULL");
  EXPECT_EQ(run(in.data(), nullptr), kBad + "the list of outputs is NULL");
  EXPECT_EQ(run(nullptr, nullptr), kBad + "the list of inputs is NULL");
  out[0] = nullptr;
  EXPECT_EQ(run(in.data(), out.data()), kOutput + "it is NULL");
  in[0] = nullptr;
  EXPECT_EQ(run(in.data(), out.data()), kInput + "it is NULL");
}

TEST_F(StaticMain, ATensorWithoutAShape) {
  EXPECT_EQ(run_with([](auto& t) { t[0].shape = nullptr; }), kInput + "it has no shape (shape is NULL)");
  EXPECT_EQ(run_with([](auto& t) { t[2].shape = nullptr; }), kOutput + "it has no shape (shape is NULL)");
  EXPECT_EQ(run_with([](auto& t) {
              t[0].shape = nullptr;
              t[0].ndim = 1;
            }),
            kInput + "it has 1 dimensions, not 2");
}

TEST_F(StaticMain, MemoryPastTheLastAddress) {
  const std::string said = "its 24 bytes go past the end of the address space";
  const auto at = [](uintptr_t address) { return reinterpret_cast<void*>(address); };
  EXPECT_EQ(run_with([&](auto& t) { t[0].data = at(UINTPTR_MAX - 15); }), kInput + said);
  EXPECT_EQ(run_with([&](auto& t) { t[2].data = at(UINTPTR_MAX - 23); }), kOutput + said);
  // The sum of the two begins again at the first address, where nothing may be.
  EXPECT_EQ(run_with([](auto& t) { t[0].byte_offset = UINT64_MAX - 3; }), kInput + said);
}

TEST_F(StaticMain, OtherDevices) {
  EXPECT_EQ(run_with([](auto& t) { t[0].device.device_id = 1; }), kInput + "it is on the device cpu(1)");
  EXPECT_EQ(run_with([](auto& t) { t[2].device = {kDLCUDA, 3}; }), kOutput + "it is on the device cuda(3)");
  EXPECT_EQ(run_with([](auto& t) { t[2].device = {kDLVulkan, 3}; }), kOutput + "it is on a device of DLPack's type 7");
}

TEST_F(StaticMain, ArgumentsOfTvmFfi) {
  const auto entry = reinterpret_cast<hr_function>(dlsym(library_, "__tvm_ffi_main"));
  ASSERT_NE(entry, nullptr);
  std::array<hr_value, 3> args{};
  for (size_t i = 0; i < 3; ++i) {
    args[i].type_index = HR_TYPE_DLTENSOR;
    args[i].v.pointer = &tensors_[i];
  }
  // Its error goes where hr_set_function_error puts it: to the caller of a registered function.
  static hr_function the_entry;
  static const hr_value* the_args;
  the_entry = entry;
  hr_register_system_symbol("static_main_test.entry", [](void*, const hr_value*, int32_t, hr_value*) {
    return the_entry(nullptr, the_args, 3, nullptr);
  });
  const PackedFunc call = runtime::system_lib("static_main_test.").GetFunction("entry");
  const auto said = [&](const hr_value* given) {
    the_args = given;
    return kit::user_error_of([&] { call(); });
  };
  EXPECT_EQ(said(args.data()), "");  // without a place for the result, because there is no result
  EXPECT_EQ(memory_[2][5], 36);
  EXPECT_EQ(said(nullptr), "the list of arguments is NULL");
  for (const int32_t type : {HR_TYPE_TENSOR, HR_TYPE_DLTENSOR}) {
    args[1].type_index = type;
    args[1].v.pointer = nullptr;
    EXPECT_EQ(said(args.data()), "argument 1 is not a tensor");
  }
  args[1].v.pointer = &tensors_[1];
  tensors_[1].shape = nullptr;
  EXPECT_EQ(said(args.data()), "input 1 must be a contiguous CPU tensor float32[3]; it has no shape (shape is NULL)");
}

}  // namespace
}  // namespace headrace::driver
