// The formats of a compiled module, each written, read back and run: results are those computed by hand.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <headrace/system_lib.h>
#include <sys/stat.h>

#include <array>
#include <bit>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "artifact/trailer.h"
#include "base/temporary_name.h"
#include "driver/built_module.h"
#include "driver/output_file.h"
#include "driver/seal_library.h"
#include "lower/user_ops/user_op.h"
#include "functions/register_functions.h"
#include "kit/errors.h"
#include "kit/files.h"
#include "kit/mutate.h"
#include "load/artifact.h"
#include "load/artifact_module.h"
#include "load/load_module.h"
#include "object/repr.h"
#include "relay/text/parse.h"
#include "runtime/cpu_features.h"
#include "runtime/function_module.h"
#include "runtime/system_lib.h"

namespace headrace::driver {
namespace {

namespace fs = std::filesystem;
using runtime::Module;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// y = relu(x w^T): a weight, and two kernels at opt_level 0.
constexpr const char* kSavedProgram =
    "#[version = \"0.0.5\"]\n"
    "def @main(%x: Tensor[(1, 2), float32]) {\n"
    "  nn.relu(nn.dense(%x, const(Tensor[(3, 2), float32], [1, 2, 3, 4, -5, -6]), units=3))\n"
    "}\n";

Model small_model() {
  functions::register_functions();
  return make_model(relay::parse_module(kSavedProgram));
}

NDArray input() { return NDArray::from_vector({1, 2}, DataType::float_(32), std::vector<float>{1, 10}); }

std::vector<float> floats(const NDArray& array) {
  return {array.data<const float>(), array.data<const float>() + array.num_elements()};
}

// x w^T = 21, 43, -65.
void expect_runs(const Module& lib) {
  const auto executor = lib.GetFunction("default")(cpu(0)).as<Module>();
  executor.GetFunction("set_input")(0, input());
  executor.GetFunction("run")();
  EXPECT_THAT(floats(executor.GetFunction("get_output")(0).as<NDArray>()), ElementsAre(21, 43, 0));
}

// With a trailer that is right, whatever stands before it.
std::string with_trailer(const std::string& bytes) {
  std::vector<uint8_t> file(bytes.begin(), bytes.end());
  artifact::append_trailer(file);
  return {file.begin(), file.end()};
}

class ModuleFormats : public ::testing::Test {
 protected:
  ModuleFormats() {
    std::string name = temporary_name(::testing::TempDir() + "headrace_formats_");
    folder_ = mkdtemp(name.data());
  }
  ~ModuleFormats() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  size_t num_files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
};

TEST_F(ModuleFormats, TheEndingChoosesTheFormat) {
  EXPECT_EQ(load::format_of("a/b.c/model.so", ""), "so");
  EXPECT_EQ(load::format_of("a/b.c/model", ""), "so");
  EXPECT_EQ(load::format_of(".hidden", ""), "so");
  EXPECT_EQ(load::format_of("model.so", "o"), "o");
  for (const char* name : {"lib.so.1", "a.b/lib.so.1.22.3"}) EXPECT_EQ(load::format_of(name, ""), "so") << name;
  for (const char* name : {"lib.so.1a", "lib.so..1", "lib.1", ".so.1", "lib.so.1/m.1"})
    EXPECT_NE(load::format_of(name, ""), "so") << name;
}

TEST_F(ModuleFormats, ABuiltModuleIsSavedAsACompileWouldWriteIt) {
  const Module built = build_module(small_model());
  expect_runs(built);
  built.SaveToFile(path("a.so"), "");
  compile_to_file(small_model(), path("b.so"));
  EXPECT_EQ(kit::read_file(path("a.so")), kit::read_file(path("b.so")));
  expect_runs(load::load_module(path("a.so")));
  built.SaveToFile(path("plain"), "");
  expect_runs(load::load_module(path("plain")));
}

#if defined(__x86_64__)
TEST_F(ModuleFormats, ABuildForAnotherProcessorIsSavedAndSaysWhatIsMissing) {
  const auto& here = runtime::host_cpu_features();
  if (std::find(here.begin(), here.end(), "avx512fp16") != here.end()) GTEST_SKIP() << "this processor has it";
  const CompileOptions options{.target = parse_target("llvm -mcpu=x86-64-v3 -mattr=+avx512fp16")};
  const Module built = build_module(small_model(), options);
  for (const char* ending : {"so", "o", "s", "ll", "c"}) {
    const std::string name = path(fmt::format("built.{}", ending)), same = path(fmt::format("compiled.{}", ending));
    built.SaveToFile(name, "");
    compile_to_file(small_model(), same, options);
    EXPECT_EQ(kit::read_file(name), kit::read_file(same)) << ending;
  }
  EXPECT_THAT(built.GetSource("s"), HasSubstr("vfmadd"));
  EXPECT_FALSE(built.GetFunction("other"));
  EXPECT_THAT(repr(built.GetFunction("get_graph_nodes")(), {.depth = 6}), HasSubstr("nn_dense_nn_relu_"));
  const std::string message = kit::user_error_of([&] { built.GetFunction("default")(cpu(0)); });
  EXPECT_THAT(message, AllOf(HasSubstr("needs CPU features that this machine lacks"), HasSubstr("avx512fp16")));
  EXPECT_THAT(kit::user_error_of([&] { load::load_module(path("built.so")); }), HasSubstr("this machine lacks"));
}
#endif

TEST_F(ModuleFormats, AnObjectHoldsTheWholeModel) {
  for (const int opt_level : {0, 3}) {
    const Module built = build_module(small_model(), {.passes = {.opt_level = opt_level}});
    built.SaveToFile(path("model.o"), "");
    EXPECT_EQ(kit::read_file(path("model.o")).substr(1, 3), "ELF");
    expect_runs(load::load_module(path("model.o")));
    built.SaveToFile(path("again.o"), "o");
    EXPECT_EQ(kit::read_file(path("again.o")), kit::read_file(path("model.o")));
  }
}

TEST_F(ModuleFormats, ACompileWritesWhatTheEndingNames) {
  const Module built = build_module(small_model());
  for (const char* name :
       {"model", "model.so", "model.so.1.2", "model.o", "model.ll", "model.s", "model.asm", "model.c"}) {
    const CompileReport report = compile_to_file(small_model(), path(name));
    built.SaveToFile(path("saved"), load::format_of(name, ""));
    EXPECT_EQ(kit::read_file(path(name)), kit::read_file(path("saved"))) << name;
    EXPECT_EQ(report.artifact_bytes, static_cast<int64_t>(fs::file_size(path(name)))) << name;
    EXPECT_EQ(report.manifest.programs.at(0).inputs.at(0).name, "x") << name;
  }
  expect_runs(load::load_module(path("model.o")));
  expect_runs(load::load_module(path("model.so.1.2")));
  EXPECT_THAT(kit::read_file(path("model.ll")), HasSubstr(" i32 @nn_dense_nn_relu_"));
  const size_t before = num_files();
  int stages = 0;
  const auto error = [&](const std::string& name) {
    return kit::user_error_of([&] {
      compile_to_file(small_model(), path(name), {.progress = [&](std::string_view, int, int) { ++stages; }});
    });
  };
  EXPECT_EQ(error("model.exe"),
            "cannot write '" + path("model.exe") +
                "': there is no format 'exe'; a compiled module is saved as one of so, o, ll, s, asm, "
                "c, and the name ends in that, as model.so does (or model.so.1)");
  EXPECT_THAT(error("lib.1"), HasSubstr("there is no format '1'"));
  for (const std::string name : {".o", ".so", ".ll"})
    EXPECT_EQ(error(name),
              "cannot write '" + path(name) + "': the name is an ending alone; name a file, such as model" + name);
  EXPECT_EQ(stages, 0);
  EXPECT_EQ(num_files(), before);
}

// Code that is loaded may be executed, data may not; the rest is the umask's.
TEST_F(ModuleFormats, OnlyProgramsAreExecutable) {
  const mode_t mask = umask(027);
  for (const char* name : {"model.so", "model.o", "model.ll"}) compile_to_file(small_model(), path(name));
  compile_to_file(small_model(), path("split.so"), {.weights_limit_bytes = 0});
  seal_library(path("model.so"), path("sealed.so"));
  write_text(path("text.relay"), kSavedProgram);
  umask(mask);
  const auto mode = [&](const std::string& name) { return static_cast<int>(fs::status(path(name)).permissions()); };
  for (const char* name : {"model.so", "split.so", "sealed.so"}) EXPECT_EQ(mode(name), 0750) << name;
  for (const char* name : {"model.o", "model.ll", "split.so.safetensors", "text.relay"})
    EXPECT_EQ(mode(name), 0640) << name;
}

TEST_F(ModuleFormats, SourceIsTextOfAllKernels) {
  const Module built = build_module(small_model(), {.passes = {.opt_level = 0}});
  const std::string llvm = built.GetSource();
  EXPECT_EQ(built.GetSource("ll"), llvm);
  EXPECT_THAT(llvm, AllOf(HasSubstr(" i32 @nn_dense_"), HasSubstr(" i32 @nn_relu_")));
  EXPECT_THAT(built.GetSource("s"), AllOf(HasSubstr(".globl\tnn_dense"), HasSubstr(".globl\tnn_relu")));
  EXPECT_EQ(built.GetSource("asm"), built.GetSource("s"));
  EXPECT_THAT(built.GetSource("c"), AllOf(HasSubstr("\nint32_t nn_dense_"), HasSubstr("\nint32_t nn_relu_")));
  built.SaveToFile(path("kernels.c"), "");
  EXPECT_EQ(kit::read_file(path("kernels.c")), built.GetSource("c"));
  EXPECT_EQ(kit::user_error_of([&] { built.GetSource("o"); }),
            "there is no source in format 'o'; there are ll, s, asm, c");
  built.SaveToFile(path("kernels.ll"), "");
  EXPECT_EQ(kit::read_file(path("kernels.ll")), llvm);
  // It is a module of LLVM's that compiles.
  const auto compiler = codegen::NativeCompiler::load();
  EXPECT_EQ(compiler.compile_llvm(std::vector{llvm}, compiler.host_target(), {})[0].bytes.substr(1, 3), "ELF");
}

TEST_F(ModuleFormats, OtherFormatsAreRefused) {
  const Module built = build_module(small_model());
  EXPECT_EQ(kit::user_error_of([&] { built.SaveToFile(path("a"), "cc"); }),
            "cannot write '" + path("a") +
                "': there is no format 'cc'; a compiled module is saved as one of so, o, ll, s, asm, c");
  EXPECT_THAT(kit::user_error_of([&] { built.SaveToFile(path("a.tar"), ""); }), HasSubstr("there is no format 'tar'"));
  EXPECT_THAT(kit::user_error_of([&] { built.SaveToFile(path("no/a.o"), ""); }), HasSubstr("cannot write"));
  EXPECT_EQ(num_files(), 0u);
}

TEST_F(ModuleFormats, WeightsPastTheLimitDoNotGoIntoAnObject) {
  const Module built = build_module(small_model(), {.weights_limit_bytes = 10});
  EXPECT_THAT(kit::user_error_of([&] { built.SaveToFile(path("model.o"), "o"); }),
              HasSubstr("its weights are 64 bytes, and an object takes 10; save the artifact as so"));
  EXPECT_EQ(num_files(), 0u);
  built.SaveToFile(path("model.so"), "so");
  EXPECT_EQ(num_files(), 2u);
  const Module loaded = load::load_module(path("model.so"));
  EXPECT_THAT(kit::user_error_of([&] { loaded.SaveToBinary(); }),
              HasSubstr("its weights lie in 'model.so.safetensors'; copy the two files"));
}

// Whatever is in the file, it is told: an object is no more than its reader checks.
TEST_F(ModuleFormats, DamagedObjectsAreErrors) {
  build_module(small_model()).SaveToFile(path("model.o"), "o");
  const std::string good = kit::read_file(path("model.o"));
  const auto error = [&](const std::string& bytes) {
    kit::write_file(path("bad.o"), bytes);
    return kit::user_error_of([&] { load::load_module(path("bad.o")); });
  };
  EXPECT_EQ(error(good), "");
  EXPECT_THAT(error(""), HasSubstr("bad.o' is empty; copy the whole file"));
  EXPECT_THAT(error(std::string(100, 'x')), HasSubstr("bad.o' does not end in Headrace's trailer"));
  EXPECT_THAT(error(with_trailer("hello")), HasSubstr("cannot link '" + path("bad.o") + "'"));
  for (size_t size = 1; size < good.size(); size += good.size() / 37)
    EXPECT_NE(error(good.substr(0, size)), "") << size;
  EXPECT_THAT(kit::user_error_of([&] { load::load_module(path("none.o")); }), HasSubstr("none.o"));
  compile_to_file(small_model(), path("model.so"));
  EXPECT_THAT(error(kit::read_file(path("model.so"))), HasSubstr("it is not relocatable"));
  kit::Random random(11);
  for (int i = 0; i < 60; ++i) {
    const std::string bad = kit::mutate(good, random);
    if (bad == good) continue;
    EXPECT_NE(error(bad), "") << i;
  }
  // A weight that lost one bit is not a fault that a linker could see.
  std::string flipped = good;
  const auto weight = std::bit_cast<std::array<char, 4>>(4.0f);
  const size_t at = good.find(std::string(weight.begin(), weight.end()));
  ASSERT_NE(at, std::string::npos);
  flipped[at + 2] ^= 1;
  EXPECT_THAT(error(flipped), HasSubstr("bad.o' is damaged: its checksum does not match"));
}

TEST_F(ModuleFormats, AnObjectOfOthersIsNoArtifact) {
  const auto compiler = codegen::NativeCompiler::load();
  const std::vector<std::string> texts = {"define i32 @f() { ret i32 1 }"};
  kit::write_file(path("f.o"), with_trailer(compiler.compile_llvm(texts, compiler.host_target(), {})[0].bytes));
  EXPECT_THAT(kit::user_error_of([&] { load::load_module(path("f.o")); }),
              HasSubstr("f.o' is not an artifact of Headrace: it has no section '.headrace.manifest'"));
  // Objects of C compilers often refer to the global offset table, with which lld would end the process.
  const std::vector<std::string> tables = {"module asm \".data\"\nmodule asm \".quad _GLOBAL_OFFSET_TABLE_\""};
  kit::write_file(path("g.o"), with_trailer(compiler.compile_llvm(tables, compiler.host_target(), {})[0].bytes));
  EXPECT_THAT(kit::user_error_of([&] { load::load_module(path("g.o")); }),
              HasSubstr("it names the global offset table"));
}

TEST_F(ModuleFormats, BytesAreLoadedByTheirKind) {
  const Module built = build_module(small_model());
  const std::string bytes = built.SaveToBinary();
  EXPECT_EQ(built.type_key(), "graph_executor_factory");
  const Module loaded = load::load_binary("graph_executor_factory", bytes);
  expect_runs(loaded);
  EXPECT_EQ(loaded.SaveToBinary(), bytes);
  EXPECT_THAT(kit::user_error_of([&] { load::load_binary("graph_executor_factory", bytes.substr(0, 5000)); }),
              HasSubstr("'the module's bytes'"));
  EXPECT_THAT(kit::user_error_of([&] { load::load_binary("graph_executor_factory", ""); }),
              HasSubstr("is empty; copy"));
  EXPECT_THAT(kit::user_error_of([&] { load::load_binary("nobody", bytes); }),
              AllOf(HasSubstr("no loader is registered for modules of the kind 'nobody'; there are "),
                    HasSubstr("graph_executor_factory"), HasSubstr("runtime.module.loadbinary_nobody")));
}

TEST_F(ModuleFormats, OurOwnKindsAndFormatAreNotForUsers) {
  const Module built = build_module(small_model());
  built.SaveToFile(path("model.so"), "");
  const auto executor = built.GetFunction("default")(cpu(0)).as<Module>();
  const auto root = load::open_artifact(path("model.so")).value()->root;
  for (const Module& own : {built, executor, root, runtime::system_lib("")}) {
    const std::string kind(own.type_key());
    EXPECT_EQ(kit::user_error_of([&] { runtime::make_function_module(kind, {}, ""); }),
              "a module's kind is '" + kind + "', which is that of a module that Headrace makes; name another kind");
    EXPECT_EQ(
        kit::user_error_of([&] { runtime::register_module_loader(kind, [](const std::string&) { return Module(); }); }),
        "global function 'runtime.module.loadbinary_" + kind +
            "' is not for registering: modules of this kind are Headrace's own; give yours another kind");
  }
  const auto loader = make_packed([](const std::string&, const std::string&) { return Module(); });
  EXPECT_EQ(kit::user_error_of([&] { register_global("runtime.module.loadfile_so", loader, true); }),
            "global function 'runtime.module.loadfile_so' is not for registering: Headrace opens the format so itself, "
            "and would never ask another loader; name your format otherwise");
  expect_runs(load::load_module(path("model.so")));
}

// ---- C

// A file that holds the kernels of a network as a C compiler makes them of their text runs it to the bit as one that
// holds ours.
TEST_F(ModuleFormats, CMakesTheSameKernels) {
  const Model model =
      load_model(HEADRACE_SOURCE_DIR "/models/digits.onnx", {.shapes = {{"x", {2, 1, 8, 8}}}, .bound = {}});
  for (const int opt_level : {0, 3}) {
    compile_to_file(model, path("model.c"), {.passes = {.opt_level = opt_level}});
    const std::string compile =
        fmt::format("cc -std=c99 -O2 -Wall -Wextra -Werror -fPIC -c {} -o {}", path("model.c"), path("kernels.o"));
    ASSERT_EQ(std::system(compile.c_str()), 0);
    CompiledCode code;
    const auto native = open_compiled(compile_to_memory(model, {.passes = {.opt_level = opt_level}}, &code), "native");
    code.objects = {{"kernels.o", kit::read_file(path("kernels.o"))}};
    OutputFile file(path("model.so"), FileKind::kProgram);
    link_artifact(code, file, kWeightsLimitBytes, {});
    std::vector<float> pixels(128), results[2];
    for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(i * i % 17) / 16;
    const NDArray x = NDArray::from_vector({2, 1, 8, 8}, DataType::float_(32), pixels);
    for (const auto& [lib, result] : {std::pair(load::make_artifact_module(native), &results[0]),
                                      std::pair(load::load_module(path("model.so")), &results[1])}) {
      const auto executor = lib.GetFunction("default")(cpu(0)).as<Module>();
      executor.GetFunction("set_input")(0, x);
      executor.GetFunction("run")();
      *result = floats(executor.GetFunction("get_output")(0).as<NDArray>());
    }
    ASSERT_EQ(results[0].size(), 20u);
    EXPECT_EQ(results[0], results[1]) << opt_level;
  }
}

// ---- import trees

Module constant_module(const std::string& bytes) {
  return runtime::make_function_module("test_constant", {{"value", make_packed([bytes] { return bytes; })}}, bytes);
}

TEST_F(ModuleFormats, ModulesImportedLaterAreSavedToo) {
  runtime::register_module_loader("test_constant", [](const std::string& bytes) { return constant_module(bytes); });
  const Module built = build_module(small_model()), outer = constant_module("outer"), inner = constant_module("inner");
  outer.Import(inner);
  built.Import(outer);
  built.SaveToFile(path("model.so"), "");
  built.SaveToFile(path("model.o"), "");
  const std::string bytes = built.SaveToBinary();
  for (const Module& loaded : {load::load_module(path("model.so")), load::load_module(path("model.o")),
                               load::load_binary("graph_executor_factory", bytes)}) {
    expect_runs(loaded);
    ASSERT_EQ(loaded.imports().size(), 1u);
    EXPECT_EQ(loaded.GetFunction("value", true)().as<std::string>(), "outer");
    EXPECT_EQ(loaded.imports()[0].imports().at(0).GetFunction("value")().as<std::string>(), "inner");
  }
}

// A module that holds its own imports is one module of another's.
TEST_F(ModuleFormats, ACompiledModuleMayBeImported) {
  runtime::register_module_loader("test_constant", [](const std::string& bytes) { return constant_module(bytes); });
  const Module built = build_module(small_model()), other = build_module(small_model());
  other.Import(constant_module("deep"));
  built.Import(other);
  built.SaveToFile(path("model.so"), "");
  const Module loaded = load::load_module(path("model.so"));
  ASSERT_EQ(loaded.imports().size(), 1u);
  expect_runs(loaded.imports()[0]);
  ASSERT_EQ(loaded.imports()[0].imports().size(), 1u);
  EXPECT_EQ(loaded.GetFunction("value", true)().as<std::string>(), "deep");
}

TEST_F(ModuleFormats, ALoadedModuleIsSavedAsItWas) {
  compile_to_file(small_model(), path("model.so"));
  const Module loaded = load::load_module(path("model.so"));
  EXPECT_EQ(loaded.SaveToBinary(), kit::read_file(path("model.so")));
  loaded.Import(constant_module("late"));
  EXPECT_THAT(kit::user_error_of([&] { loaded.SaveToBinary(); }),
              HasSubstr("its file does not have the modules that it imports now"));
}

// ---- what another linker made

TEST_F(ModuleFormats, SealingMakesAnArtifact) {
  compile_to_file(small_model(), path("model.so"));
  const std::string sealed = kit::read_file(path("model.so"));
  kit::write_file(path("bare.so"), sealed.substr(0, sealed.size() - 64));
  EXPECT_THAT(kit::user_error_of([&] { load::load_module(path("bare.so")); }), HasSubstr("trailer"));
  seal_library(path("bare.so"), path("new.so"));
  EXPECT_EQ(kit::read_file(path("new.so")), sealed);
  expect_runs(load::load_module(path("new.so")));
  seal_library(path("bare.so"), path("bare.so"));
  EXPECT_EQ(kit::read_file(path("bare.so")), sealed);
  seal_library(path("new.so"), path("new.so"));
  EXPECT_EQ(kit::read_file(path("new.so")), sealed);
}

TEST_F(ModuleFormats, OnlyWholeArtifactsAreSealed) {
  const auto error = [&](const std::string& bytes) {
    kit::write_file(path("in"), bytes);
    return kit::user_error_of([&] { seal_library(path("in"), path("out.so")); });
  };
  compile_to_file(small_model(), path("model.so"));
  const std::string good = kit::read_file(path("model.so"));
  EXPECT_THAT(error(""), HasSubstr("is not an artifact of Headrace: it is not an ELF file"));
  EXPECT_THAT(error("text"), HasSubstr("'" + path("in") + "' is not an artifact of Headrace: it is not an ELF file"));
  EXPECT_THAT(error(good.substr(0, good.size() / 2)), HasSubstr("is not an artifact"));
  EXPECT_THAT(error(kit::read_file(HEADRACE_SYSTEM_SYMBOLS)), HasSubstr("it has no section '.headrace.manifest'"));
  build_module(small_model()).SaveToFile(path("model.o"), "o");
  EXPECT_THAT(error(kit::read_file(path("model.o"))),
              HasSubstr("it is an object file, no shared object; link it into a shared library first"));
  EXPECT_THAT(kit::user_error_of([&] { seal_library(path("none"), path("out.so")); }), HasSubstr("none"));
  EXPECT_FALSE(fs::exists(path("out.so")));
}

// ---- the entry for tvm-ffi, as a function of the process

class TvmFfiMain : public ModuleFormats {
 protected:
  // The entry of an artifact, registered: what it says goes where hr_set_function_error puts it.
  PackedFunc entry(const std::string& file) {
    library_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library_, nullptr) << dlerror();
    static int count = 0;
    const std::string name = fmt::format("model{}", ++count);
    const auto function = reinterpret_cast<hr_function>(dlsym(library_, "__tvm_ffi_main"));
    EXPECT_EQ(hr_register_system_symbol(name.c_str(), function), HR_OK);
    return runtime::system_lib("model").GetFunction(name.substr(5));
  }
  void* library_ = nullptr;
};

// As another language passes a tensor that it keeps.
Value pointer_to(DLTensor& tensor) {
  RawValue raw;
  raw.type_index = type_index::kDLTensorPtr;
  raw.v.v_ptr = &tensor;
  return Value::adopt(raw);
}

TEST_F(TvmFfiMain, RunsOnTheCallersTensors) {
  compile_to_file(small_model(), path("model.so"));
  const PackedFunc f = entry(path("model.so"));
  const NDArray x = input(), y = NDArray::zeros({1, 3}, DataType::float_(32));
  EXPECT_TRUE(f(x, y).is_none());
  EXPECT_THAT(floats(y), ElementsAre(21, 43, 0));
}

TEST_F(TvmFfiMain, MistakesAreTold) {
  compile_to_file(small_model(), path("model.so"));
  const PackedFunc f = entry(path("model.so"));
  const NDArray x = input(), y = NDArray::zeros({1, 3}, DataType::float_(32));
  const auto error = [&](auto... args) { return kit::user_error_of([&] { f(args...); }); };
  EXPECT_EQ(error(), "expected 2 arguments, 1 inputs and then 1 outputs, got 0");
  EXPECT_EQ(error(x), "expected 2 arguments, 1 inputs and then 1 outputs, got 1");
  EXPECT_EQ(error(x, y, y), "expected 2 arguments, 1 inputs and then 1 outputs, got 3");
  EXPECT_EQ(error(x, 3), "argument 1 is not a tensor");
  EXPECT_EQ(error(nullptr, y), "argument 0 is not a tensor");
  const std::string in = "input 0 must be a contiguous CPU tensor float32[1, 2]; ";
  EXPECT_EQ(error(y, x), in + "its shape is [1, 3]");
  EXPECT_EQ(error(x, NDArray::zeros({1, 3}, DataType::float_(64))),
            "output 0 must be a contiguous CPU tensor float32[1, 3]; it is float64");
  EXPECT_EQ(error(NDArray::zeros({1, 2}, DataType::int_(32)), y), in + "it is int32");
  EXPECT_EQ(error(NDArray::zeros({1, 2}, DataType::bool_()), y), in + "it is bool");
  EXPECT_EQ(error(NDArray::zeros({2}, DataType::float_(32)), y), in + "it has 1 dimensions, not 2");
}

TEST_F(TvmFfiMain, MalformedTensorsAreReported) {
  compile_to_file(small_model(), path("model.so"));
  const PackedFunc f = entry(path("model.so"));
  const NDArray x = input(), y = NDArray::zeros({1, 3}, DataType::float_(32));
  const auto error = [&](const std::function<void(DLTensor&)>& change) {
    DLTensor tensor = x.tensor();
    change(tensor);
    return kit::user_error_of([&] { f(pointer_to(tensor), y); });
  };
  EXPECT_EQ(error([](DLTensor&) {}), "");
  const std::string in = "input 0 must be a contiguous CPU tensor float32[1, 2]; ";
  EXPECT_EQ(error([](DLTensor& it) { it.device.device_type = kDLCUDA; }), in + "it is on the device cuda(0)");
  EXPECT_EQ(error([](DLTensor& it) { it.device.device_id = 2; }), in + "it is on the device cpu(2)");
  EXPECT_EQ(error([](DLTensor& it) { it.dtype.lanes = 4; }), in + "it is float32x4");
  EXPECT_EQ(error([](DLTensor& it) { it.dtype.code = 17; }), in + "it is the dtype of code 17 and 32 bits");
  int64_t strides[] = {2, 2};
  EXPECT_EQ(error([&](DLTensor& it) { it.strides = strides; }), in + "its strides are [2, 2], not [2, 1]");
  int64_t of_one[] = {77, 1};  // the stride of a dimension of one means nothing
  EXPECT_EQ(error([&](DLTensor& it) { it.strides = of_one; }), "");
  EXPECT_EQ(error([](DLTensor& it) { it.data = nullptr; }), in + "it has no memory (data is NULL)");
  EXPECT_EQ(error([](DLTensor& it) { it.byte_offset = 2; }), in + "it is not aligned to its element of 4 bytes");
}

// Two inputs and two outputs; the second output has no elements.
TEST_F(TvmFfiMain, TensorsAreApart) {
  functions::register_functions();
  const std::string text =
      "#[version = \"0.0.5\"]\n"
      "def @main(%a: Tensor[(4), float32], %b: Tensor[(4), float32], %c: Tensor[(0), float32]) {\n"
      "  (add(%a, %b), multiply(%a, %b), nn.relu(%c))\n}\n";
  compile_to_file(make_model(relay::parse_module(text)), path("model.so"));
  const PackedFunc f = entry(path("model.so"));
  std::vector<float> memory(20, 1);
  int64_t four = 4, none = 0;
  const auto at = [&](size_t offset, int64_t& count) {
    DLTensor tensor{};
    tensor.data = memory.data() + offset;
    tensor.device = {kDLCPU, 0};
    tensor.ndim = 1;
    tensor.dtype = {kDLFloat, 32, 1};
    tensor.shape = &count;
    return tensor;
  };
  // Offsets of a, b, c and of the three outputs.
  const auto error = [&](const std::array<size_t, 6>& offsets) {
    std::vector<DLTensor> t;
    for (size_t i = 0; i < 6; ++i) t.push_back(at(offsets[i], i % 3 == 2 ? none : four));
    return kit::user_error_of([&] {
      f(pointer_to(t[0]), pointer_to(t[1]), pointer_to(t[2]), pointer_to(t[3]), pointer_to(t[4]), pointer_to(t[5]));
    });
  };
  EXPECT_EQ(error({0, 4, 0, 8, 12, 0}), "");
  EXPECT_THAT(std::vector<float>(memory.begin() + 8, memory.begin() + 16), ElementsAre(2, 2, 2, 2, 1, 1, 1, 1));
  EXPECT_EQ(error({0, 0, 2, 8, 12, 9}), "");  // inputs may be one, and what has no elements is nowhere
  EXPECT_EQ(error({0, 4, 0, 7, 12, 0}), "output 0 shares memory with input 1; give it memory of its own");
  EXPECT_EQ(error({0, 4, 0, 8, 3, 0}), "output 1 shares memory with input 0; give it memory of its own");
  EXPECT_EQ(error({0, 4, 0, 8, 11, 0}), "output 1 shares memory with output 0; give it memory of its own");
  EXPECT_EQ(error({0, 4, 0, 8, 8, 0}), "output 1 shares memory with output 0; give it memory of its own");
}

TEST_F(TvmFfiMain, AFileThatNeedsTheRuntimeSaysSo) {
  compile_to_file(small_model(), path("model.so"), {.weights_limit_bytes = 0});
  const PackedFunc f = entry(path("model.so"));
  for (const auto& call : {std::function([&] { f(); }), std::function([&] { f(input(), input()); })})
    EXPECT_EQ(kit::user_error_of(call),
              "this file needs libheadrace_rt: its weights lie beside it, in 'model.so.safetensors'");
}

TEST_F(TvmFfiMain, EachReasonToNeedTheRuntimeIsTold) {
  functions::register_functions();
  lower::register_user_op({.name = "test.elsewhere",
                           .arguments = {{"data", "Tensor", ""}},
                           .relation = [](const relay::RelationInput& call) -> Type { return call.tensor(0); },
                           .compute = lower::ExternalFunction{"a \"named\" é\\"}});
  const auto error = [&](const std::string& file, const std::string& body, int64_t weights_limit_bytes) {
    const std::string text = "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(2), float32]) { " + body + " }\n";
    compile_to_file(make_model(relay::parse_module(text)), path(file), {.weights_limit_bytes = weights_limit_bytes});
    const PackedFunc f = entry(path(file));
    return kit::user_error_of([&] { f(); });
  };
  EXPECT_EQ(error("a.so", "argwhere(%x)", 1000),
            "this file needs libheadrace_rt: the size of its output 'output0' is data-dependent");
  EXPECT_EQ(error("b.so", "test.elsewhere(%x)", 1000),
            "this file needs libheadrace_rt: it calls the function 'a \"named\" é\\' of an external module or of the "
            "process");
  EXPECT_EQ(
      error("c.so", "argwhere(test.elsewhere(add(%x, const(Tensor[(2), float32], [1, 2]))))", 0),
      "this file needs libheadrace_rt: its weights lie beside it, in 'c.so.safetensors', and it calls the "
      "function 'a \"named\" é\\' of an external module or of the process, and the size of its output 'output0' is "
      "data-dependent");
}

}  // namespace
}  // namespace headrace::driver
