#include "codegen/native.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "kit/errors.h"
#include "kit/files.h"

namespace headrace::codegen {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// A file in memory that takes a linked library; dlopen finds it under its name.
class MemoryLibrary {
 public:
  MemoryLibrary() : fd_(memfd_create("library", MFD_CLOEXEC)) {}
  ~MemoryLibrary() {
    if (handle_ != nullptr) dlclose(handle_);
    close(fd_);
  }
  int fd() const { return fd_; }
  std::string bytes() const {
    struct stat status{};
    fstat(fd_, &status);
    std::string result(static_cast<size_t>(status.st_size), '\0');
    EXPECT_EQ(pread(fd_, result.data(), result.size(), 0), status.st_size);
    return result;
  }
  template <typename T>
  T symbol(const char* name) {
    if (handle_ == nullptr) handle_ = dlopen(fmt::format("/proc/self/fd/{}", fd_).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) throw std::runtime_error(dlerror());
    return reinterpret_cast<T>(dlsym(handle_, name));
  }

 private:
  int fd_;
  void* handle_ = nullptr;
};

constexpr const char* kScale = R"(
declare float @llvm.exp.f32(float)
define void @scale(ptr %x, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  %p = getelementptr float, ptr %x, i64 %i
  %v = load float, ptr %p
  %w = fmul float %v, 2.0
  store float %w, ptr %p
  %next = add i64 %i, 1
  %done = icmp uge i64 %next, %n
  br i1 %done, label %end, label %loop
end:
  ret void
}
define float @exponential(float %x) {
  %y = call float @llvm.exp.f32(float %x)
  ret float %y
}
)";

constexpr const char* kWeights = R"(
@hr_params = external hidden constant [0 x i32]
@counter = internal global i32 7
@table = internal constant [2 x ptr] [ptr @hr_params, ptr @counter]
define i32 @weight(i64 %i) {
  %p = getelementptr i32, ptr @hr_params, i64 %i
  %v = load i32, ptr %p
  ret i32 %v
}
define ptr @where() { ret ptr @hr_params }
define ptr @entry_of(i64 %i) {
  %p = getelementptr ptr, ptr @table, i64 %i
  %v = load volatile ptr, ptr %p
  ret ptr %v
}
)";

std::vector<std::byte> some_bytes(size_t count) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
  return bytes;
}

TEST(NativePlugin, MissingPluginSaysWhatToInstall) {
  EXPECT_THROW(NativeCompiler::load("/nowhere/libheadrace_llvm.so"), MissingError);
  EXPECT_THAT(kit::user_error_of([] { NativeCompiler::load("/nowhere/libheadrace_llvm.so"); }),
              testing::AllOf(HasSubstr("/nowhere/libheadrace_llvm.so"), HasSubstr("LLVM 19.1")));
}

TEST(NativePlugin, OtherLibraryIsRefused) {
  EXPECT_THROW(NativeCompiler::load("libm.so.6"), MissingError);
  EXPECT_THAT(kit::user_error_of([] { NativeCompiler::load("libm.so.6"); }), HasSubstr("not a native code generator"));
  const std::string text = testing::TempDir() + "/no_plugin.so";
  std::ofstream(text) << "no library";
  EXPECT_THAT(kit::user_error_of([&] { NativeCompiler::load(text); }),
              AllOf(HasSubstr("no_plugin.so' exists but cannot be loaded: "), HasSubstr("install it again"),
                    Not(HasSubstr("LLVM 19.1"))));
}

TEST(NativePlugin, KeepsLlvmOutOfTheGlobalScope) {
  NativeCompiler::load();
  EXPECT_EQ(dlsym(RTLD_DEFAULT, "LLVMContextCreate"), nullptr);
  EXPECT_EQ(dlsym(RTLD_DEFAULT, "headrace_llvm_plugin"), nullptr);
}

TEST(NativeTarget, NamedProcessors) {
  const std::string triple = "x86_64-unknown-linux-gnu";
  const NativeTarget v2 = NativeCompiler::load().resolve_target({.cpu = "x86-64-v2", .features = "", .triple = triple});
  const NativeTarget v3 = NativeCompiler::load().resolve_target({.cpu = "x86-64-v3", .features = "", .triple = triple});
  const NativeTarget v4 = NativeCompiler::load().resolve_target({.cpu = "x86-64-v4", .features = "", .triple = triple});
  EXPECT_EQ(v2.vector_bits, 128);
  EXPECT_EQ(v3.vector_bits, 256);
  EXPECT_EQ(v4.vector_bits, 512);
  EXPECT_TRUE(v3.has("fma") && v3.has("avx2") && v3.has("f16c") && !v3.has("avx512f"));
  EXPECT_FALSE(v2.has("avx"));
  EXPECT_TRUE(
      NativeCompiler::load().resolve_target({.cpu = "znver4", .features = "", .triple = triple}).has("avx512bf16"));
  // Hints for tuning are not an instruction sets.
  EXPECT_FALSE(v4.has("prefer-256-bit"));
  EXPECT_THAT(v4.features, HasSubstr("prefer-256-bit"));
}

TEST(NativeTarget, FeaturesChangeAProcessor) {
  const NativeTarget target = NativeCompiler::load().resolve_target(
      {.cpu = "x86-64-v4", .features = "-avx512f,+gfni", .triple = "x86_64-unknown-linux-gnu"});
  EXPECT_FALSE(target.has("avx512f"));
  EXPECT_FALSE(target.has("avx512vl")) << "what needs a removed feature goes as well";
  EXPECT_TRUE(target.has("gfni"));
  EXPECT_EQ(target.vector_bits, 256);
}

TEST(NativeTarget, WideRegistersCanBeAvoided) {
  const NativeTarget target = NativeCompiler::load().resolve_target(
      {.cpu = "x86-64-v4", .features = "-evex512", .triple = "x86_64-unknown-linux-gnu"});
  EXPECT_TRUE(target.has("avx512vl"));
  EXPECT_EQ(target.vector_bits, 256);
}

TEST(NativeTarget, HostIsItsOwnFullDescription) {
  const NativeTarget host = NativeCompiler::load().host_target();
  EXPECT_EQ(host, NativeCompiler::load().resolve_target({.cpu = "native", .features = "", .triple = ""}));
  EXPECT_EQ(host,
            NativeCompiler::load().resolve_target({.cpu = host.cpu, .features = host.features, .triple = host.triple}));
}

TEST(NativeTarget, OtherArchitectures) {
  const NativeTarget arm =
      NativeCompiler::load().resolve_target({.cpu = "", .features = "", .triple = "aarch64-linux-gnu"});
  EXPECT_TRUE(arm.has("neon"));
  const std::string text = NativeCompiler::load().emit_llvm(kScale, arm, CodeForm::kAssembly, 2);
  EXPECT_THAT(text, HasSubstr("fadd\tv"));
  // Hints of tuning are no instruction sets; those keep what they imply.
  const NativeTarget server =
      NativeCompiler::load().resolve_target({.cpu = "neoverse-n1", .features = "", .triple = "aarch64-linux-gnu"});
  EXPECT_TRUE(server.has("dotprod"));
  EXPECT_FALSE(server.has("fuse-aes"));
  EXPECT_THAT(server.features, HasSubstr("+fuse-aes"));
  EXPECT_EQ(
      NativeCompiler::load().resolve_target({.cpu = "", .features = "+v", .triple = "riscv64-linux-gnu"}).vector_bits,
      128);
}

TEST(NativeTarget, UnknownNamesAreErrorsWithNeighbours) {
  auto resolve = [](TargetRequest request) {
    return kit::user_error_of([&] { NativeCompiler::load().resolve_target(request); });
  };
  const std::string triple = "x86_64-unknown-linux-gnu";
  EXPECT_THAT(resolve({.cpu = "znver44", .features = "", .triple = triple}),
              testing::AllOf(HasSubstr("unknown processor 'znver44'"), HasSubstr("znver4"),
                             HasSubstr("; headrace targets lists the usual ones")));
  EXPECT_THAT(resolve({.cpu = "x86-64-v3", .features = "+avx512ff", .triple = triple}),
              testing::AllOf(HasSubstr("'avx512ff'"), HasSubstr("avx512f,")));
  EXPECT_THAT(resolve({.cpu = "x86-64-v3", .features = "fma", .triple = triple}), HasSubstr("write +name"));
  EXPECT_THAT(resolve({.cpu = "", .features = "", .triple = "mips-linux-gnu"}), HasSubstr("mips"));
  EXPECT_THAT(resolve({.cpu = "", .features = "", .triple = "x86_64-linux-gnux32"}), HasSubstr("gnux32"));
  EXPECT_THAT(resolve({.cpu = "", .features = "", .triple = "x86_64-apple-darwin"}), HasSubstr("on Linux"));
  EXPECT_THAT(resolve({.cpu = "native", .features = "", .triple = "riscv64-linux-gnu"}), HasSubstr("this machine is"));
}

TEST(NativeCompiler, SameBytesTwiceAndForAnyNumberOfJobs) {
  const NativeTarget target = NativeCompiler::load().host_target();
  std::vector<std::string> texts;
  for (int i = 0; i < 6; ++i) texts.push_back(fmt::format("{}\ndefine i32 @number() {{ ret i32 {} }}", kScale, i));
  const auto one = NativeCompiler::load().compile_llvm(texts, target, {.opt_level = 3, .jobs = 1});
  const auto two = NativeCompiler::load().compile_llvm(texts, target, {.opt_level = 3, .jobs = 2});
  const auto nine = NativeCompiler::load().compile_llvm(texts, target, {.opt_level = 3, .jobs = 9});
  ASSERT_EQ(one.size(), 6U);
  for (size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(one[i].bytes, two[i].bytes);
    EXPECT_EQ(one[i].bytes, nine[i].bytes);
  }
  EXPECT_NE(one[0].bytes, one[1].bytes);
}

TEST(NativeCompiler, BadTextIsAnErrorWithItsPlace) {
  const NativeTarget target = NativeCompiler::load().host_target();
  EXPECT_THAT(kit::user_error_of([&] {
                NativeCompiler::load().emit_llvm("\ndefine i32 @f() { ret i33 0 }", target, CodeForm::kLlvm, 2);
              }),
              HasSubstr("line 2, column"));
  const std::string assembly = "define void @f() { call void asm sideeffect \"no_such_instruction\", \"\"() ret void }";
  EXPECT_THAT(kit::user_error_of([&] { NativeCompiler::load().emit_llvm(assembly, target, CodeForm::kObject, 2); }),
              HasSubstr("no_such_instruction"));
}

TEST(NativeCompiler, FirstFailureIsReportedForAnyNumberOfJobs) {
  const NativeTarget target = NativeCompiler::load().host_target();
  const std::vector<std::string> texts = {kScale, "bad_one", "bad_two", kWeights};
  for (int jobs : {1, 4}) {
    EXPECT_THAT(
        kit::user_error_of([&] { NativeCompiler::load().compile_llvm(texts, target, {.opt_level = 1, .jobs = jobs}); }),
        HasSubstr("line 1"));
  }
}

TEST(NativeCompiler, FloatingPointIsNotContracted) {
  const NativeTarget target =
      NativeCompiler::load().resolve_target({.cpu = "x86-64-v3", .features = "", .triple = "x86_64-unknown-linux-gnu"});
  const std::string text =
      "define float @f(float %a, float %b, float %c) {\n %p = fmul float %a, %b\n"
      " %s = fadd float %p, %c\n ret float %s }";
  EXPECT_THAT(NativeCompiler::load().emit_llvm(text, target, CodeForm::kAssembly, 3), Not(HasSubstr("vfmadd")));
}

TEST(NativeLink, CodeRuns) {
  const NativeTarget target = NativeCompiler::load().host_target();
  const std::vector<std::string> texts = {kScale};
  const auto objects = NativeCompiler::load().compile_llvm(texts, target, {});
  const std::vector<std::string> exports = {"scale", "exponential"};
  MemoryLibrary library;
  NativeCompiler::load().link({.target = target, .objects = objects, .sections = {}, .exports = exports}, library.fd());
  std::vector<float> values = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  library.symbol<void (*)(float*, int64_t)>("scale")(values.data(), 9);
  EXPECT_EQ(values, (std::vector<float>{2, 4, 6, 8, 10, 12, 14, 16, 18}));
  EXPECT_FLOAT_EQ(library.symbol<float (*)(float)>("exponential")(1.0F), std::exp(1.0F));
  EXPECT_THAT(library.bytes(), HasSubstr("libm.so.6"));
  EXPECT_THAT(library.bytes(), Not(HasSubstr("libc.so.6"))) << "needed only when used";
}

TEST(NativeLink, SectionsAreFoundAlignedAndReadOnly) {
  const NativeTarget target = NativeCompiler::load().host_target();
  const std::vector<std::string> texts = {kWeights};
  const auto objects = NativeCompiler::load().compile_llvm(texts, target, {});
  const std::vector<std::byte> weights = some_bytes(100'000);
  const std::vector<std::byte> manifest = some_bytes(33);
  const std::vector<DataSection> sections = {
      {.name = ".headrace.manifest", .alignment = 1, .size_bytes = 33, .chunks = {{0, manifest}}, .symbol = {}},
      {.name = ".headrace.params",
       .alignment = 64,
       .size_bytes = 300'000,
       .chunks = {{0, std::span(weights).first(50'000)}, {128'000, weights}},
       .symbol = "hr_params"},
      {.name = ".headrace.blob", .alignment = 4096, .size_bytes = 5, .chunks = {}, .symbol = "blob"}};
  const std::vector<std::string> exports = {"weight", "where", "entry_of", "blob"};
  MemoryLibrary library;
  NativeCompiler::load().link({.target = target, .objects = objects, .sections = sections, .exports = exports},
                              library.fd());

  auto* at = library.symbol<const std::byte* (*)()>("where")();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(at) % 64, 0U);
  EXPECT_EQ(std::memcmp(at, weights.data(), 50'000), 0);
  EXPECT_EQ(at[50'000], std::byte{0}) << "between the chunks";
  EXPECT_EQ(std::memcmp(at + 128'000, weights.data(), 100'000), 0);
  EXPECT_EQ(at[299'999], std::byte{0});
  int32_t third = 0;
  std::memcpy(&third, weights.data() + 12, 4);
  EXPECT_EQ(library.symbol<int32_t (*)(int64_t)>("weight")(3), third);
  EXPECT_EQ(library.symbol<const std::byte* (*)(int64_t)>("entry_of")(0), at) << "a relocated table";
  EXPECT_EQ(library.symbol<const std::byte*>("hr_params"), nullptr) << "not exported";
  auto* blob = library.symbol<const std::byte*>("blob");
  ASSERT_NE(blob, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(blob) % 4096, 0U);
  EXPECT_DEATH(*const_cast<std::byte*>(at) = std::byte{1}, "");
}

TEST(NativeLink, ByteForByteTheSame) {
  const NativeTarget target = NativeCompiler::load().host_target();
  const std::vector<std::string> texts = {kScale, kWeights};
  const auto objects = NativeCompiler::load().compile_llvm(texts, target, {});
  const std::vector<std::byte> weights = some_bytes(10'000);
  const std::vector<DataSection> sections = {{.name = ".headrace.params",
                                              .alignment = 64,
                                              .size_bytes = weights.size(),
                                              .chunks = {{0, weights}},
                                              .symbol = "hr_params"}};
  const std::vector<std::string> exports = {"scale", "weight"};
  const LinkRequest request{.target = target, .objects = objects, .sections = sections, .exports = exports};
  MemoryLibrary first;
  NativeCompiler::load().link(request, first.fd());
  // A file with other contents, longer than the result.
  const std::string path = testing::TempDir() + "/headrace_link_test.so";
  kit::write_file(path, std::string(1'000'000, 'x'));
  const int fd = open(path.c_str(), O_RDWR);
  NativeCompiler::load().link(request, fd);
  close(fd);
  const std::string second = kit::read_file(path);
  std::filesystem::remove(path);
  EXPECT_EQ(first.bytes(), second);
}

// A service compiles repeatedly. (The sanitizers' malloc does not report the memory in use.)
TEST(NativeLink, NothingIsKept) {
  const NativeTarget target = NativeCompiler::load().host_target();
  const std::vector<std::string> texts = {kScale};
  const auto objects = NativeCompiler::load().compile_llvm(texts, target, {});
  const std::vector<std::string> exports = {"scale"};
  const auto used_after = [&](int links) {
    for (int i = 0; i < links; ++i) {
      MemoryLibrary library;
      NativeCompiler::load().link({.target = target, .objects = objects, .sections = {}, .exports = exports},
                                  library.fd());
    }
    return mallinfo2().uordblks;
  };
  const size_t before = used_after(3);
  if (before == 0) GTEST_SKIP() << "this malloc does not count";
  EXPECT_LT(used_after(20), before + size_t{20} * 1000);
}

TEST(NativeLink, TwoThreadsAtOnce) {
  const NativeTarget target = NativeCompiler::load().host_target();
  const std::vector<std::string> texts = {kWeights};
  auto work = [&](int32_t first, int32_t* result) {
    for (int round = 0; round < 5; ++round) {
      const auto objects = NativeCompiler::load().compile_llvm(texts, target, {});
      const std::vector<int32_t> values(1000, first + round);
      const std::vector<DataSection> sections = {{.name = ".headrace.params",
                                                  .alignment = 64,
                                                  .size_bytes = 4000,
                                                  .chunks = {{0, std::as_bytes(std::span(values))}},
                                                  .symbol = "hr_params"}};
      const std::vector<std::string> exports = {"weight"};
      MemoryLibrary library;
      NativeCompiler::load().link({.target = target, .objects = objects, .sections = sections, .exports = exports},
                                  library.fd());
      *result += library.symbol<int32_t (*)(int64_t)>("weight")(999) == first + round ? 1 : 0;
    }
  };
  int32_t good[2] = {0, 0};
  {
    std::jthread one(work, 100, &good[0]);
    std::jthread two(work, 200, &good[1]);
  }
  EXPECT_EQ(good[0], 5);
  EXPECT_EQ(good[1], 5);
}

TEST(NativeLink, BadObjectsAreErrorsAndTheNextLinkWorks) {
  const NativeTarget target = NativeCompiler::load().host_target();
  const std::vector<std::string> texts = {kScale};
  const std::vector<std::string> exports = {"scale"};
  const auto good = NativeCompiler::load().compile_llvm(texts, target, {});
  auto link = [&](std::vector<ObjectCode> objects, std::vector<std::string> names) {
    MemoryLibrary library;
    return kit::user_error_of([&] {
      NativeCompiler::load().link({.target = target, .objects = objects, .sections = {}, .exports = names},
                                  library.fd());
    });
  };
  EXPECT_THAT(link({{"some text", "hello"}}, exports), HasSubstr("cannot link 'some text'"));
  EXPECT_THAT(link({{"cut", good[0].bytes.substr(0, 200)}}, exports), HasSubstr("cut"));
  EXPECT_THAT(link(good, {"scale", "nobody"}), HasSubstr("nobody"));
  const std::vector<std::string> caller = {"declare void @absent()\ndefine void @f() { call void @absent() ret void }"};
  EXPECT_THAT(link(NativeCompiler::load().compile_llvm(caller, target, {}), {"f"}),
              HasSubstr("undefined symbol: absent"));
  EXPECT_THAT(link({good[0], good[0]}, exports), HasSubstr("duplicate symbol: exponential"));
  const NativeTarget arm =
      NativeCompiler::load().resolve_target({.cpu = "", .features = "", .triple = "aarch64-linux-gnu"});
  EXPECT_THAT(link({good[0], NativeCompiler::load().compile_llvm(texts, arm, {})[0]}, exports),
              HasSubstr("another machine"));
  EXPECT_EQ(link(good, exports), "");
}

// Damaged objects end in an error or a library, never in an exit.
TEST(NativeLink, DamagedObjects) {
  const NativeTarget target = NativeCompiler::load().host_target();
  const std::vector<std::string> texts = {kScale};
  const std::vector<std::string> exports = {"scale"};
  const auto good = NativeCompiler::load().compile_llvm(texts, target, {});
  int refused = 0;
  for (size_t at = 0; at < good[0].bytes.size(); ++at) {
    std::vector<ObjectCode> objects = {{"damaged", good[0].bytes}};
    objects[0].bytes[at] = static_cast<char>(objects[0].bytes[at] ^ (at % 3 == 0 ? 0xff : 1 << (at % 8)));
    MemoryLibrary library;
    const LinkRequest request{.target = target, .objects = objects, .sections = {}, .exports = exports};
    refused += kit::user_error_of([&] { NativeCompiler::load().link(request, library.fd()); }) != "";
  }
  EXPECT_GT(refused, 10);
  MemoryLibrary library;
  NativeCompiler::load().link({.target = target, .objects = good, .sections = {}, .exports = exports}, library.fd());
  EXPECT_NE(library.symbol<void*>("scale"), nullptr);
}

TEST(NativeLink, UnwritableOutput) {
  const NativeTarget target = NativeCompiler::load().host_target();
  const std::vector<std::string> texts = {kScale};
  const auto objects = NativeCompiler::load().compile_llvm(texts, target, {});
  const std::vector<std::string> exports = {"scale"};
  const int fd = open("/dev/null", O_RDONLY);
  EXPECT_THAT(kit::user_error_of([&] {
                NativeCompiler::load().link({.target = target, .objects = objects, .sections = {}, .exports = exports},
                                            fd);
              }),
              HasSubstr("cannot write the linked library"));
  close(fd);
}

}  // namespace
}  // namespace headrace::codegen
