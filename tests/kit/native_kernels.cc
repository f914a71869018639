#include "kit/native_kernels.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <headrace/kernel_abi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <map>

#include "codegen/workspace.h"
#include "kit/guard_page.h"
#include "lower/compute_rule.h"
#include "relay/infer_type.h"

namespace headrace::kit {

namespace {

constexpr int32_t kWorkers = 3;

// The loop in three uneven parts, the last one first, each with its own worker's memory.
int32_t run_in_parts(const hr_kernel_env* env, hr_parallel_body body, void* closure, int64_t count) {
  const int64_t cuts[] = {0, count / 4, count - count / 4, count};
  for (int i = kWorkers - 1; i >= 0; --i) {
    const hr_kernel_env worker = hr_worker_env(env, i);
    if (const int32_t status = body(&worker, closure, cuts[i], cuts[i + 1]); status != 0) return status;
  }
  return 0;
}

std::vector<TensorType> tensor_types(const Type& type) {
  std::vector<TensorType> types;
  if (const auto* tuple = type.as<TupleTypeNode>()) {
    for (const Type& item : tuple->items) types.push_back(item.cast<TensorTypeNode>());
  } else {
    types.push_back(type.cast<TensorTypeNode>());
  }
  return types;
}

class Composer {
 public:
  std::vector<Buffer> lower(const Expr& expr) {
    auto it = buffers_.find(expr.get());
    if (it != buffers_.end()) return it->second;
    std::vector<Buffer> result = lower_new(expr);
    buffers_[expr.get()] = result;
    return result;
  }
  void bind(const relay::Var& var) {
    const TensorType type = tensor_types(var->checked_type())[0];
    compute.inputs.push_back(make_buffer(var->name_hint, type->dtype, type->shape));
    buffers_[var.get()] = {compute.inputs.back()};
  }
  tir::Compute compute;

 private:
  std::vector<Buffer> lower_new(const Expr& expr) {
    if (const auto* tuple = expr.as<relay::TupleNode>()) {
      std::vector<Buffer> all;
      for (const Expr& item : tuple->items) {
        const std::vector<Buffer> one = lower(item);
        all.insert(all.end(), one.begin(), one.end());
      }
      return all;
    }
    if (const auto* item = expr.as<relay::TupleGetItemNode>()) {
      return {lower(item->tuple)[static_cast<size_t>(item->index)]};
    }
    if (const auto* constant = expr.as<relay::ConstantNode>()) return fill(*constant);
    const auto* call = expr.as<relay::CallNode>();
    HEADRACE_CHECK(call != nullptr && call->as_op() != nullptr, "the kit composes calls of ops only");
    const auto* rule = call->as_op()->find(lower::kComputeRule);
    HEADRACE_CHECK(rule != nullptr, "'{}' has no rule", call->as_op()->name);
    lower::RuleInput input{*call, {}, {}, tensor_types(call->checked_type())};
    for (const Expr& arg : call->args) {
      const std::vector<Buffer> buffers = lower(arg);
      input.inputs.insert(input.inputs.end(), buffers.begin(), buffers.end());
      for (const TensorType& type : tensor_types(arg->checked_type())) input.in_types.push_back(type);
    }
    const tir::Compute part = (*rule)(input);
    compute.stages.insert(compute.stages.end(), part.stages.begin(), part.stages.end());
    return part.outputs;
  }
  // A constant of one element.
  std::vector<Buffer> fill(const relay::ConstantNode& constant) {
    HEADRACE_CHECK(constant.data.num_elements() == 1, "the kit composes scalar constants only");
    const DataType dtype = constant.data.dtype();
    compute.stages.push_back(lower::map_stage(
        make_buffer("constant", dtype, to_dims(constant.data.shape())),
        [&](const lower::Index&) { return make_const(element_as_double(constant.data.tensor(), 0), dtype); }));
    return {compute.stages.back().output};
  }

  std::map<const Object*, std::vector<Buffer>> buffers_;
};

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

}  // namespace

tir::Compute compute_of(const relay::Function& function) {
  const auto typed = relay::infer_type(function).cast<relay::FunctionNode>();
  Composer composer;
  for (const relay::Var& param : typed->params) composer.bind(param);
  composer.compute.outputs = composer.lower(typed->body);
  return composer.compute;
}

NativeKernels::NativeKernels(std::vector<tir::PrimFunc> functions) : functions_(std::move(functions)) {
  const auto compiler = codegen::NativeCompiler::load();
  const auto target = compiler.host_target();
  const auto objects = compiler.compile(functions_, target, {.jobs = 2});
  std::vector<std::string> exports;
  for (const tir::PrimFunc& function : functions_) exports.push_back(tir::symbol_of(*function));
  fd_ = memfd_create("kernels", MFD_CLOEXEC);
  compiler.link({.target = target, .objects = objects, .sections = {}, .exports = exports}, fd_);
  library_ = dlopen(fmt::format("/proc/self/fd/{}", fd_).c_str(), RTLD_NOW | RTLD_LOCAL);
  HEADRACE_CHECK(library_ != nullptr, "cannot load kernels: {}", dlerror());
}

NativeKernels::~NativeKernels() {
  if (library_ != nullptr) dlclose(library_);
  if (fd_ >= 0) close(fd_);
}

int NativeKernels::vector_bits() { return codegen::NativeCompiler::load().host_target().vector_bits; }

std::vector<NDArray> NativeKernels::run(size_t i, const std::vector<NDArray>& inputs) const {
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
  const uint64_t workspace_bytes = codegen::layout_workspace(function).size_bytes;
  GuardedBuffer workspace(static_cast<size_t>(kWorkers * workspace_bytes), HR_ALIGNMENT);
  hr_kernel_env env{};
  env.size = sizeof(env);
  env.version = HR_KERNEL_ABI_VERSION;
  env.workspace = workspace.data();
  env.workspace_size = workspace_bytes;
  env.parallel_for = run_in_parts;
  env.num_workers = kWorkers;
  EXPECT_EQ(entry(&env, tensors.data()), 0) << tir::symbol_of(function);
  std::vector<NDArray> outputs;
  for (size_t k = function.params.size() - static_cast<size_t>(function.num_outputs); k < arguments.size(); ++k) {
    EXPECT_TRUE(arguments[k]->buffer.is_slack_intact()) << tir::symbol_of(function);
    NDArray output = NDArray::empty(arguments[k]->shape, function.params[k]->dtype);
    if (output.size_bytes() > 0) std::memcpy(output.data<char>(), arguments[k]->buffer.data(), output.size_bytes());
    outputs.push_back(output);
  }
  return outputs;
}

}  // namespace headrace::kit
