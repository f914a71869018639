// External modules: saved by their own SaveToBinary, linked into an artifact, loaded, run.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <headrace/c_api.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>

#include "driver/built_module.h"
#include "driver/compile.h"
#include "driver/target.h"
#include "kit/errors.h"
#include "load/artifact_module.h"
#include "load/external_call.h"
#include "load/run.h"
#include "ops/all_ops.h"
#include "relay/text/parse.h"

namespace headrace::driver {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// ---- a toy kind: the function that its blob names multiplies by what its blob says; "NAME=3". An empty blob has none.

class ToyBody : public runtime::ModuleBody {
 public:
  ToyBody(std::string function, float scale) : function_(std::move(function)), scale_(scale) {}
  std::string_view type_key() const override { return "toy"; }
  std::string save_to_binary(const runtime::Module&) const override {
    return function_.empty() ? "" : fmt::format("{}={}", function_, scale_);
  }
  std::string get_source(const std::string&) const override { return fmt::format("y = {} x", scale_); }
  PackedFunc get_function(const std::string& name, const runtime::Module& self) override {
    if (function_.empty() || name != function_) return {};
    return PackedFunc([self](Args args) {
      const auto* x = static_cast<const DLTensor*>(args[0].v.v_ptr);
      const auto* y = static_cast<const DLTensor*>(args[1].v.v_ptr);
      const float scale = static_cast<ToyBody&>(self.body()).scale_;
      if (static_cast<const float*>(x->data)[0] > 1000) throw_user_error("toy: x[0] is above 1000");
      for (int64_t i = 0; i < x->shape[0]; ++i)
        static_cast<float*>(y->data)[i] = scale * static_cast<const float*>(x->data)[i];
      return Value();
    });
  }

 private:
  std::string function_;
  float scale_;
};

runtime::Module toy(const std::string& function, float scale) {
  return runtime::Module(std::make_unique<ToyBody>(function, scale));
}

runtime::Module load_toy(const std::string& bytes) {
  if (bytes.empty()) return toy("", 0);
  const size_t at = bytes.find('=');
  if (at == std::string::npos) throw_user_error("a toy's blob is NAME=NUMBER");
  return toy(bytes.substr(0, at), std::stof(bytes.substr(at + 1)));
}

// ---- other kinds: bytes of any size or value, a kind that cannot be saved, one that nobody loads, one whose loader
// finds its own bytes wrong

class BytesBody : public runtime::ModuleBody {
 public:
  BytesBody(std::string kind, std::string bytes) : kind_(std::move(kind)), bytes_(std::move(bytes)) {}
  std::string_view type_key() const override { return kind_; }
  PackedFunc get_function(const std::string&, const runtime::Module&) override { return {}; }
  std::string save_to_binary(const runtime::Module& self) const override {
    if (kind_ == "toy_unsaved") return ModuleBody::save_to_binary(self);
    return bytes_;
  }

 private:
  std::string kind_, bytes_;
};

runtime::Module bytes_module(const std::string& kind, const std::string& bytes) {
  return runtime::Module(std::make_unique<BytesBody>(kind, bytes));
}

void register_kinds() {
  runtime::register_module_loader("toy", &load_toy);
  runtime::register_module_loader("toy_bytes",
                                  [](const std::string& bytes) { return bytes_module("toy_bytes", bytes); });
}

Model relu_model(std::vector<runtime::Module> modules) {
  ops::register_all_ops();
  register_kinds();
  Model model =
      make_model(relay::parse_module("#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(2), float32]) { nn.relu(%x) }"));
  model.modules = std::move(modules);
  return model;
}

std::shared_ptr<const load::Artifact> compile_and_open(const Model& model) {
  return load::open_artifact(compile_to_memory(model).descriptor, "the artifact").value_or_throw();
}

// Makes code whose only step calls the external `function`, as a region of a backend would.
CompiledCode external_code(const std::string& function, const std::vector<runtime::Module>& modules) {
  ops::register_all_ops();
  register_kinds();
  CompiledCode code;
  code.target = choose_target(codegen::NativeCompiler::load(), make_target("llvm"));
  code.modules = save_modules(modules);
  artifact::Program& program = code.programs.emplace_back();
  program.name = "default";
  program.inputs = {{"x", DataType::float_(32), {4}}};
  program.outputs = {{"y", DataType::float_(32), {4}}};
  program.target = {code.target.triple, code.target.cpu, code.target.enabled};
  const auto entry = [](artifact::Place place) {
    return artifact::Entry{.place = place, .dtype = DataType::float_(32), .shape = {4}, .strides = {}};
  };
  program.graph.entries = {entry(artifact::Place::kInput), entry(artifact::Place::kOutput)};
  program.graph.steps = {{.action = artifact::ExternalCall{function}, .args = {0, 1}, .op = "scale1"}};
  program.placement = {{.op = "scale1", .backend = "toy", .reason = HR_REASON_NONE, .message = ""}};
  return code;
}

Descriptor link(const CompiledCode& code) {
  Descriptor descriptor(memfd_create("toy", MFD_CLOEXEC));
  link_artifact(code, descriptor.number(), "toy");
  return descriptor;
}

std::vector<float> run_toy(const std::shared_ptr<executors::Executor>& executor, const std::vector<float>& x) {
  const NDArray y = load::run(*executor, std::vector{NDArray::from_vector({4}, DataType::float_(32), x)}).at(0);
  return {y.data<const float>(), y.data<const float>() + 4};
}

std::shared_ptr<executors::Executor> executor_of(const std::shared_ptr<const load::Artifact>& artifact) {
  return load::try_make_executor(artifact, "default", {.threads = 1}).value_or_throw();
}

// As a step of a program calls it.
void call_with_tensors(const PackedFunc& function, const NDArray& x, const NDArray& y) {
  const auto call = load::external_call(function);
  DLTensor from = x.tensor(), to = y.tensor();
  RawValue args[2];
  for (size_t i = 0; i < 2; ++i) {
    args[i].type_index = type_index::kDLTensorPtr;
    args[i].v.v_ptr = i == 0 ? &from : &to;
  }
  ASSERT_FALSE(call.function(call.self, args, 2));
}

TEST(ExternalModules, AStepCallsWhatWasSaved) {
  const std::vector<runtime::Module> modules = {toy("other", 7), toy("toy_scale", 3)};
  const auto artifact = load::open_artifact(link(external_code("toy_scale", modules)), "toy").value_or_throw();
  ASSERT_EQ(artifact->root.imports().size(), 2u);
  EXPECT_EQ(artifact->root.imports()[1].SaveToBinary(), "toy_scale=3");
  EXPECT_EQ(artifact->root.imports()[1].GetSource(), "y = 3 x");
  const auto executor = executor_of(artifact);
  EXPECT_THAT(run_toy(executor, {1, 2, 3, -4}), ElementsAre(3, 6, 9, -12));
  const NDArray x = NDArray::from_vector({4}, DataType::float_(32), std::vector<float>{2000, 0, 0, 0});
  executors::throw_if_failed(executor->set_input(0, x.tensor()));
  const executors::Status status = executor->run();
  EXPECT_EQ(status.reason, HR_REASON_KERNEL_FAILED);
  EXPECT_EQ(status.op, "scale1");
  EXPECT_EQ(status.message, "toy: x[0] is above 1000");
  ASSERT_TRUE(status.error);
  EXPECT_EQ(status.error->message, status.message);
  EXPECT_FALSE(take_stored_error()) << "the error is left with the thread";
}

TEST(ExternalModules, AFailureIsTheCallsOwn) {
  const auto raise = [](std::string kind, std::string message) {
    auto error = make_object<ErrorObj>();
    error->kind = std::move(kind);
    error->message = std::move(message);
    store_error(std::move(error));
  };
  // A C function that says that it failed, and nothing else; the thread still holds what an earlier call left there.
  auto silent = make_object<FunctionObj>();
  silent->safe_call = [](void*, const RawValue*, int32_t, RawValue*) { return -1; };
  raise("UserError", "of another call");
  const auto call = load::external_call(PackedFunc(silent));
  const Ref<ErrorObj> error = call.function(call.self, nullptr, 0);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->message, "an external function failed without saying why");
  EXPECT_FALSE(take_stored_error());
  // Outside a run, an error of the thread is not business of who asks how a run ended.
  raise("UserError", "of another call");
  const executors::Status status{.code = -1, .op = "scale1", .message = "toy"};
  EXPECT_EQ(kit::user_error_of([&] { executors::throw_if_failed(status); }), "toy\n  at: scale1");
  EXPECT_TRUE(take_stored_error());
}

TEST(ExternalModules, NestedAndSharedImportsComeBack) {
  const runtime::Module a = toy("a", 1), b = toy("b", 2), c = toy("c", 3), deep = toy("toy_scale", 4);
  a.Import(c);
  b.Import(c);
  c.Import(deep);
  const std::vector<runtime::Module> modules = {a, b};
  const auto artifact = load::open_artifact(link(external_code("toy_scale", modules)), "toy").value_or_throw();
  const std::vector<runtime::Module> roots = artifact->root.imports();
  ASSERT_EQ(roots.size(), 2u);
  EXPECT_EQ(roots[0].SaveToBinary(), "a=1");
  EXPECT_EQ(roots[1].SaveToBinary(), "b=2");
  EXPECT_EQ(roots[0].imports().at(0).object(), roots[1].imports().at(0).object());
  EXPECT_EQ(roots[0].imports()[0].imports().at(0).SaveToBinary(), "toy_scale=4");
  EXPECT_THAT(run_toy(executor_of(artifact), {1, 2, 3, -4}), ElementsAre(4, 8, 12, -16));
}

// The first module that has the function: before and after.
TEST(ExternalModules, TheOrderOfLookUpIsKept) {
  const runtime::Module a = toy("a", 1), b = toy("toy_scale", 2), inner = toy("toy_scale", 5);
  a.Import(inner);
  for (const bool a_first : {true, false}) {
    const std::vector<runtime::Module> modules = a_first ? std::vector{a, b} : std::vector{b, a};
    const auto artifact = load::open_artifact(link(external_code("toy_scale", modules)), "toy").value_or_throw();
    EXPECT_EQ(run_toy(executor_of(artifact), {1, 0, 0, 0})[0], a_first ? 5 : 2);
  }
}

TEST(ExternalModules, BareClientsNeedTheRuntimeForTheirSteps) {
  const std::vector<runtime::Module> modules = {toy("toy_scale", 3)};
  const auto run_bare = [](int descriptor) {
    const std::string path = fmt::format("/proc/self/fd/{}", descriptor);
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library, nullptr) << dlerror();
    if (library == nullptr) return -1;
    const auto run = reinterpret_cast<headrace_run_function>(dlsym(library, HR_RUN_SYMBOL));
    const int code = run(nullptr, 0, nullptr, 0, nullptr);
    dlclose(library);
    return code;
  };
  EXPECT_EQ(run_bare(link(external_code("toy_scale", modules)).number()), HR_REASON_NEEDS_RUNTIME);
  // A program of kernels alone runs, whatever else the file holds.
  EXPECT_EQ(run_bare(compile_to_memory(relu_model(modules)).descriptor.number()), HR_REASON_BAD_TENSOR);
}

TEST(ExternalModules, ACompiledModelTakesItsModulesWithIt) {
  const Model model = relu_model({toy("double", 2), bytes_module("toy_bytes", "")});
  const auto artifact = compile_and_open(model);
  EXPECT_EQ(artifact->manifest().modules.size(), 2u);
  const runtime::Module lib = load::make_artifact_module(artifact);
  const NDArray x = NDArray::from_vector({2}, DataType::float_(32), std::vector<float>{1, 2});
  const NDArray y = NDArray::zeros({2}, DataType::float_(32));
  call_with_tensors(lib.GetFunction("double", true), x, y);
  EXPECT_EQ(y.data<const float>()[0], 2);
  EXPECT_EQ(y.data<const float>()[1], 4);
  EXPECT_EQ(lib.imports().at(1).SaveToBinary(), "");
  // relay.build's module has them too, and saves them.
  const runtime::Module built = build_module(model);
  EXPECT_TRUE(built.ImplementsFunction("double", true));
  const std::string path = ::testing::TempDir() + "headrace_external.so";
  built.SaveToFile(path, "so");
  EXPECT_TRUE(load::load_artifact_module(path).ImplementsFunction("double", true));
  std::filesystem::remove(path);
}

TEST(ExternalModules, BlobsOfAnySizeAndValue) {
  std::string every(256, '\0');
  for (size_t i = 0; i < every.size(); ++i) every[i] = static_cast<char>(i);
  std::string big(20'000'003, '\x5a');
  for (size_t i = 0; i < big.size(); i += 4099) big[i] = static_cast<char>(i);
  const std::vector<std::string> blobs = {"", every, big, "", "1", std::string(64, '\0')};
  std::vector<runtime::Module> modules;
  for (const std::string& blob : blobs) modules.push_back(bytes_module("toy_bytes", blob));
  const auto artifact = compile_and_open(relu_model(modules));
  const std::vector<runtime::Module> loaded = artifact->root.imports();
  ASSERT_EQ(loaded.size(), blobs.size());
  for (size_t i = 0; i < blobs.size(); ++i) EXPECT_TRUE(loaded[i].SaveToBinary() == blobs[i]) << i;
}

TEST(ExternalModules, SameModulesSameBytes) {
  const auto bytes = [] {
    const Descriptor file = link(external_code("toy_scale", {toy("toy_scale", 3), bytes_module("toy_bytes", "abc")}));
    std::string text(static_cast<size_t>(lseek(file.number(), 0, SEEK_END)), '\0');
    EXPECT_EQ(pread(file.number(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    return text;
  };
  EXPECT_EQ(bytes(), bytes());
}

TEST(ExternalModules, AKindThatNobodyLoadsIsNamed) {
  const Model model = relu_model({toy("double", 2), bytes_module("neverheardof", "x")});
  const auto artifact = load::open_artifact(compile_to_memory(model).descriptor, "net.so");
  ASSERT_FALSE(artifact);
  EXPECT_EQ(artifact.refusal().code, HR_REASON_BACKEND_MISSING);
  EXPECT_THAT(
      artifact.refusal().message,
      HasSubstr("'net.so' has a module of the kind 'neverheardof', for which no loader is registered; register the "
                "function runtime.module.loadbinary_neverheardof ("));
}

// A region without a native form needs its module: the refusal names the backend.
TEST(ExternalModules, ABackendThatIsMissingIsNamed) {
  CompiledCode code = external_code("toy_scale", {bytes_module("neverheardof", "x")});
  code.backends = {{.name = "chip", .version = ""}};
  code.regions = {{.name = "their_part", .backend = "chip", .module = 0}};
  const auto artifact = load::open_artifact(link(code), "net.so");
  ASSERT_FALSE(artifact);
  EXPECT_EQ(artifact.refusal().code, HR_REASON_BACKEND_MISSING);
  EXPECT_EQ(
      artifact.refusal().message,
      "'net.so' needs the backend 'chip', and this runtime has no loader for modules of the kind 'neverheardof'; load "
      "its library (--plugin, headrace.load_backend in Python), or install it, or compile the model without it");
}

TEST(ExternalModules, ALoaderThatRefusesIsHeard) {
  runtime::register_module_loader("toy_picky", [](const std::string& bytes) -> runtime::Module {
    if (bytes == "gone") throw MissingError("the driver is not installed");
    throw_user_error("the blob begins with '{}'", bytes);
  });
  const auto error = [](const std::string& blob) {
    return kit::user_error_of([&] { compile_and_open(relu_model({bytes_module("toy_picky", blob)})); });
  };
  EXPECT_EQ(error("x"),
            "'the artifact': its external module of kind 'toy_picky' cannot be loaded: the blob begins with 'x'");
  EXPECT_THAT(error("gone"), HasSubstr("cannot be loaded: the driver is not installed"));
}

// Nothing is compiled, nothing is written.
TEST(ExternalModules, AModuleThatCannotBeSavedStopsTheCompile) {
  const std::string path = ::testing::TempDir() + "headrace_unsaved.so";
  const runtime::Module outer = toy("double", 2);
  outer.Import(bytes_module("toy_unsaved", ""));
  int stages = 0;
  const std::string error = kit::user_error_of(
      [&] { compile_to_file(relu_model({outer}), path, {.progress = [&](std::string_view, int, int) { ++stages; }}); });
  EXPECT_EQ(error,
            "the external module of kind 'toy_unsaved' is not saved: a module of kind 'toy_unsaved' cannot be saved in "
            "an artifact");
  EXPECT_EQ(stages, 0);
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace headrace::driver
