#include "kit/native_kernels.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <headrace/kernel_abi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/temporary_name.h"
#include "codegen/c_source.h"
#include "kit/guard_page.h"
#include "kit/options.h"
#include "tir/workspace.h"

namespace headrace::kit {

namespace {

constexpr int32_t kWorkers = 3;

// Runs the loop in three uneven parts, the last one first, each with its own worker's memory.
int32_t run_in_parts(const hr_kernel_env* env, hr_parallel_body body, void* closure, int64_t count) {
  const int64_t cuts[] = {0, count / 4, count - count / 4, count};
  for (int i = kWorkers - 1; i >= 0; --i) {
    const hr_kernel_env worker = hr_worker_env(env, i);
    if (const int32_t status = body(&worker, closure, cuts[i], cuts[i + 1]); status != 0) return status;
  }
  return 0;
}

// A tensor as a kernel gets it, in guarded memory.
struct Argument {
  Argument(const Shape& dims, DataType dtype)
      : buffer(static_cast<size_t>(num_elements(dims)) * dtype.bytes(), dtype.bytes()), shape(dims), strides(dims) {
    int64_t step = 1;
    for (size_t i = shape.size(); i-- > 0;) {
      strides[i] = step;
      step *= shape[i];
    }
    tensor.data = buffer.data();
    tensor.device = {kDLCPU, 0};
    tensor.ndim = static_cast<int32_t>(shape.size());
    tensor.dtype = {static_cast<uint8_t>(dtype.code()), static_cast<uint8_t>(dtype.bits()), 1};
    tensor.shape = shape.data();
    tensor.strides = strides.data();
  }
  GuardedBuffer buffer;
  Shape shape, strides;
  DLTensor tensor{};
};

// Lays out the workspaces of functions that tests wrote by hand.
std::vector<tir::PrimFunc> laid_out(std::vector<tir::PrimFunc> functions) {
  for (tir::PrimFunc& function : functions) function = tir::with_workspace(function);
  return functions;
}

}  // namespace

NativeKernels::NativeKernels(std::vector<tir::PrimFunc> functions) : functions_(laid_out(std::move(functions))) {
  const auto compiler = codegen::NativeCompiler::load();
  const auto target = compiler.host_target();
  // Sanitizers see the compiler and not the kernels, so at test size few LLVM does not optimise them.
  const int level = options().size == TestSize::kFew ? 0 : 3;
  const auto objects = compiler.compile(functions_, target, {.opt_level = level, .jobs = 2});
  std::vector<std::string> exports;
  for (const tir::PrimFunc& function : functions_) exports.push_back(tir::symbol_of(*function));
  fd_ = memfd_create("kernels", MFD_CLOEXEC);
  compiler.link({.target = target, .objects = objects, .sections = {}, .exports = exports}, fd_);
  library_ = dlopen(fmt::format("/proc/self/fd/{}", fd_).c_str(), RTLD_NOW | RTLD_LOCAL);
  HEADRACE_CHECK(library_ != nullptr, "cannot load kernels: {}", dlerror());
}

NativeKernels::NativeKernels(std::vector<tir::PrimFunc> functions, const std::string& options)
    : functions_(laid_out(std::move(functions))) {
  // One file of all would take a compiler much memory.
  constexpr size_t kMostInAFile = 100;
  std::string folder = temporary_name(testing::TempDir() + "headrace_c_kernels_");
  HEADRACE_CHECK(mkdtemp(folder.data()) != nullptr, "cannot make {}", folder);
  std::string command = fmt::format("cc {} -shared -fPIC -o {}/kernels.so", options, folder);
  for (size_t i = 0; i < functions_.size(); i += kMostInAFile) {
    const size_t count = std::min(kMostInAFile, functions_.size() - i);
    const std::string file = fmt::format("{}/{}.c", folder, i / kMostInAFile);
    std::ofstream(file) << codegen::c_source(std::span(functions_).subspan(i, count));
    command += " " + file;
  }
  const int status = std::system((command + " -lm").c_str());
  if (status == 0) library_ = dlopen((folder + "/kernels.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  std::filesystem::remove_all(folder);
  HEADRACE_CHECK(status == 0, "the C compiler refuses kernels: {}", command);
  HEADRACE_CHECK(library_ != nullptr, "cannot load kernels: {}", dlerror());
}

NativeKernels::~NativeKernels() {
  if (library_ != nullptr) dlclose(library_);
  if (fd_ >= 0) close(fd_);
}

int NativeKernels::vector_bits() { return codegen::NativeCompiler::load().host_target().vector_bits; }

std::vector<NDArray> NativeKernels::run(size_t i, const std::vector<NDArray>& inputs) const {
  std::vector<NDArray> outputs;
  std::string message;
  EXPECT_EQ(call(i, inputs, &outputs, &message), 0) << tir::symbol_of(*functions_[i]) << ": " << message;
  return outputs;
}

std::string NativeKernels::error_of(size_t i, const std::vector<NDArray>& inputs) const {
  std::vector<NDArray> outputs;
  std::string message;
  return call(i, inputs, &outputs, &message) == 0 ? "" : message;
}

int32_t NativeKernels::call(size_t i, const std::vector<NDArray>& inputs, std::vector<NDArray>* outputs,
                            std::string* message) const {
  const tir::PrimFuncNode& function = *functions_[i];
  const auto entry = reinterpret_cast<hr_kernel>(dlsym(library_, tir::symbol_of(function).c_str()));
  std::vector<std::unique_ptr<Argument>> arguments;
  std::vector<DLTensor*> tensors;
  for (size_t k = 0; k < function.params.size(); ++k) {
    const Buffer& param = function.params[k];
    arguments.push_back(std::make_unique<Argument>(*as_shape(param->shape), param->dtype));
    tensors.push_back(&arguments.back()->tensor);
    if (k < inputs.size() && inputs[k].size_bytes() > 0) {
      std::memcpy(arguments[k]->buffer.data(), inputs[k].data<char>(), inputs[k].size_bytes());
    }
  }
  const uint64_t workspace_bytes = tir::workspace_of(function).size_bytes;
  GuardedBuffer workspace(static_cast<size_t>(kWorkers * workspace_bytes), HR_ALIGNMENT);
  hr_kernel_env env{};
  env.size = sizeof(env);
  env.version = HR_KERNEL_ABI_VERSION;
  env.workspace = workspace.data();
  env.workspace_size = workspace_bytes;
  env.parallel_for = run_in_parts;
  env.num_workers = kWorkers;
  char text[256] = "";
  env.message = text;
  env.message_size = sizeof(text);
  const int32_t status = entry(&env, tensors.data());
  *message = text;
  for (size_t k = function.params.size() - static_cast<size_t>(function.num_outputs); k < arguments.size(); ++k) {
    EXPECT_TRUE(arguments[k]->buffer.is_slack_intact()) << tir::symbol_of(function);
    NDArray output = NDArray::empty(arguments[k]->shape, function.params[k]->dtype);
    if (output.size_bytes() > 0) std::memcpy(output.data<char>(), arguments[k]->buffer.data(), output.size_bytes());
    outputs->push_back(output);
  }
  return status;
}

}  // namespace headrace::kit
