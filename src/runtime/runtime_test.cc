#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <future>
#include <thread>

#include "artifact/trailer.h"
#include "base/error.h"
#include "kit/artifact_kit.h"
#include "kit/errors.h"
#include "runtime/aligned_buffer.h"
#include "runtime/cpu_features.h"
#include "runtime/library.h"
#include "runtime/loader_finder.h"
#include "runtime/module.h"
#include "runtime/turn.h"
#include "tensor/kept_memory.h"

namespace headrace::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(AlignedBuffer, IsAlignedAndZero) {
  for (int64_t nbytes : {int64_t{1}, int64_t{64}, int64_t{1000}, int64_t{2} << 20, (int64_t{5} << 20) + 3}) {
    AlignedBuffer buffer(nbytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % HR_ALIGNMENT, 0u);
    EXPECT_TRUE(std::all_of(buffer.data(), buffer.data() + nbytes, [](std::byte b) { return b == std::byte{0}; }));
    std::memset(buffer.data(), 0xff, static_cast<size_t>(nbytes));
    const AlignedBuffer moved = std::move(buffer);
    EXPECT_EQ(moved.nbytes(), nbytes);
    EXPECT_EQ(moved.data()[nbytes - 1], std::byte{0xff});
  }
  EXPECT_EQ(AlignedBuffer(0).data(), nullptr);
}

TEST(AlignedBuffer, IsNotFreedWhereItsMemoryIsKept) {
  for (const int64_t nbytes : {int64_t{1000}, int64_t{4} << 20}) {
    int64_t size = nbytes / 4;
    const std::byte* kept = nullptr;
    {
      const AlignedBuffer buffer(nbytes);
      kept = buffer.data();
      buffer.data()[nbytes / 2] = std::byte{7};
      keep_memory_of({.data = buffer.data(),
                      .device = {kDLCPU, 0},
                      .ndim = 1,
                      .dtype = {kDLInt, 8, 1},
                      .shape = &size,
                      .strides = nullptr,
                      .byte_offset = static_cast<uint64_t>(nbytes / 2)});
    }
    for (int i = 0; i < 100; ++i) EXPECT_NE(AlignedBuffer(nbytes).data(), kept);
    EXPECT_EQ(kept[nbytes / 2], std::byte{7});
  }
}

// Runs in a child process, which must end within ten seconds. Returns whether it gave true.
bool is_true_in_a_child(const std::function<bool()>& run) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    _exit(run() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(Turn, IsFreeInAChildThatLacksItsThread) {
  Turn turn;
  std::promise<void> held, released;
  std::thread holder([&] {
    const std::lock_guard lock(turn);
    held.set_value();
    released.get_future().wait();
  });
  held.get_future().wait();
  EXPECT_TRUE(is_true_in_a_child([&] {
    for (int i = 0; i < 2; ++i) const std::lock_guard lock(turn);
    return true;
  }));
  released.set_value();
  holder.join();
  const std::lock_guard lock(turn);
  // The thread that forks still has it in the child.
  EXPECT_TRUE(
      is_true_in_a_child([&] { return kit::user_error_of([&] { turn.lock(); }).starts_with("the module is"); }));
}

TEST(AlignedBuffer, RefusesWhatIsNotThere) { EXPECT_THROW(AlignedBuffer(int64_t{1} << 60), UserError); }

TEST(CpuFeatures, MissingOnes) {
  const std::vector<std::string> needed = {"avx2", "sse2", "amx-tile"};
  const std::vector<std::string_view> available = {"fma", "sse2"};
  EXPECT_THAT(missing_features(needed, available), ElementsAre("avx2", "amx-tile"));
#if defined(__x86_64__)
  const std::vector<std::string> baseline = {"sse2", "cmov", "fxsr"};
  EXPECT_THAT(missing_features(baseline, host_cpu_features()), ElementsAre());
  // The compiler's own detection is the outside reference.
  const auto has = [](const char* name) {
    return missing_features(std::vector<std::string>{name}, host_cpu_features()).empty();
  };
  EXPECT_EQ(has("avx2"), __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(has("fma"), __builtin_cpu_supports("fma") != 0);
  EXPECT_EQ(has("avx512f"), __builtin_cpu_supports("avx512f") != 0);
  EXPECT_EQ(has("avx512vl"), __builtin_cpu_supports("avx512vl") != 0);
  EXPECT_EQ(has("avx512vnni"), __builtin_cpu_supports("avx512vnni") != 0);
  EXPECT_EQ(has("bmi2"), __builtin_cpu_supports("bmi2") != 0);
#endif
}

TEST(CpuFeatures, KnownOnesOfEachArchitecture) {
  for (const char* architecture : {"x86_64", "aarch64"}) {
    const std::vector<std::string_view> known = known_cpu_features(architecture);
    EXPECT_TRUE(std::is_sorted(known.begin(), known.end())) << architecture;
  }
  EXPECT_THAT(known_cpu_features("x86_64"), ::testing::Contains("avx2"));
  EXPECT_THAT(known_cpu_features("aarch64"), ::testing::Contains("dotprod"));
  EXPECT_THAT(known_cpu_features("riscv64"), ElementsAre());
}

// ---- weights beside the artifact

artifact::Manifest side_file_manifest(const headrace::testing::TempFile& weights, const std::vector<uint8_t>& bytes) {
  artifact::Manifest manifest = headrace::testing::toy_manifest();
  manifest.side_file = artifact::SideFile{.name = weights.path().substr(weights.path().rfind('/') + 1),
                                          .nbytes = static_cast<int64_t>(bytes.size()),
                                          .hash = artifact::content_hash(bytes)};
  return manifest;
}

TEST(Library, WeightsInASideFile) {
  std::vector<uint8_t> bytes(256);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i);
  const headrace::testing::TempFile weights(bytes);
  const headrace::testing::TempFile file(headrace::testing::make_artifact(side_file_manifest(weights, bytes)));
  const auto library = Library::open(file.path());
  ASSERT_TRUE(library) << library.refusal().message;
  EXPECT_EQ(std::memcmp(library.value()->weight(1), bytes.data() + 192, 20), 0);
  bytes[7] ^= 1;
  weights.write(bytes);
  EXPECT_EQ(Library::open(file.path()).refusal().code, HR_REASON_BAD_CHECKSUM);
  bytes.pop_back();
  weights.write(bytes);
  EXPECT_EQ(Library::open(file.path()).refusal().code, HR_REASON_TRUNCATED);
}

TEST(Library, AMissingSideFileIsNamed) {
  artifact::Manifest manifest = headrace::testing::toy_manifest();
  manifest.side_file = artifact::SideFile{.name = "nowhere.safetensors", .nbytes = 256, .hash = std::string(32, '0')};
  const headrace::testing::TempFile file(headrace::testing::make_artifact(manifest));
  const auto library = Library::open(file.path());
  ASSERT_FALSE(library);
  EXPECT_EQ(library.refusal().code, HR_REASON_NOT_FOUND);
  EXPECT_THAT(library.refusal().message, HasSubstr("nowhere.safetensors'; it holds the artifact's weights"));
}

TEST(Library, WeightsAreMapped) {
  const headrace::testing::TempFile file(headrace::testing::make_artifact(headrace::testing::toy_manifest()));
  const auto library = Library::open(file.path());
  ASSERT_TRUE(library) << library.refusal().message;
  const auto* b = reinterpret_cast<const float*>(library.value()->weight(1));
  EXPECT_EQ(std::vector<float>(b, b + 5), (std::vector<float>{0, 1, -2, 3, .25f}));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(library.value()->weight(0)) % HR_ALIGNMENT, 0u);
  EXPECT_EQ(library.value()->symbol("nothing"), nullptr);
}

// ---- modules

class NamedBody : public ModuleBody {
 public:
  explicit NamedBody(std::string name) : name_(std::move(name)) {}
  std::string_view type_key() const override { return "named"; }
  PackedFunc get_function(const std::string& name, const Module&) override {
    if (name != name_) return {};
    return make_packed([name = name_] { return name; });
  }

 private:
  std::string name_;
};

Module named(const std::string& name) { return Module(std::make_unique<NamedBody>(name)); }

TEST(Module, FunctionsComeFromTheImportTree) {
  const Module a = named("a");
  const Module b = named("b");
  const Module c = named("c");
  a.Import(b);
  b.Import(c);
  EXPECT_EQ(a.GetFunction("a")().as<std::string>(), "a");
  EXPECT_FALSE(a.GetFunction("c"));
  EXPECT_EQ(a.GetFunction("c", true)().as<std::string>(), "c");
  EXPECT_TRUE(a.ImplementsFunction("b", true));
  EXPECT_EQ(a.GetFuncFromEnv("c")().as<std::string>(), "c");
  EXPECT_EQ(a.imports().size(), 1u);
  EXPECT_EQ(a.type_key(), "named");
  EXPECT_EQ(Value(a).as<Module>().GetFunction("a")().as<std::string>(), "a");
}

TEST(Module, ThreadsImportAndReadImports) {
  constexpr size_t kImports = 200;
  const Module root = named("root");
  {
    const std::jthread writer([&] {
      for (size_t i = 0; i < kImports; ++i) root.Import(named("import"));
    });
    const std::jthread reader([&] {
      for (size_t seen = 0; seen < kImports;) {
        const bool is_there = root.ImplementsFunction("import", true);
        const size_t now = root.imports().size();
        EXPECT_GE(now, seen);
        EXPECT_TRUE(is_there || seen == 0);
        seen = now;
      }
    });
  }
  EXPECT_EQ(root.imports().size(), kImports);
}

// Whichever comes second would make a cycle.
TEST(Module, TwoThreadsMakeNoCycle) {
  for (int round = 0; round < 50; ++round) {
    const Module a = named("a"), b = named("b");
    std::atomic<int> num_refused = 0;
    const auto import = [&](const Module& from, const Module& to) {
      try {
        from.Import(to);
      } catch (const UserError&) {
        ++num_refused;
      }
    };
    {
      const std::jthread one([&] { import(a, b); });
      const std::jthread other([&] { import(b, a); });
    }
    EXPECT_EQ(num_refused, 1);
  }
}

TEST(Module, Errors) {
  const Module a = named("a");
  const Module b = named("b");
  a.Import(b);
  EXPECT_THAT(kit::user_error_of([&] { b.Import(a); }), HasSubstr("would make a cycle"));
  EXPECT_THAT(kit::user_error_of([&] { a.Import(a); }), HasSubstr("would make a cycle"));
  EXPECT_THAT(kit::user_error_of([&] { a.Import(Module()); }), HasSubstr("null module"));
  EXPECT_THAT(kit::user_error_of([&] { (void)a.GetFuncFromEnv("nobody.has.this"); }), HasSubstr("needs the function"));
  EXPECT_THAT(kit::user_error_of([&] { (void)a.SaveToBinary(); }), HasSubstr("cannot be saved in an artifact"));
  EXPECT_THAT(kit::user_error_of([&] { a.SaveToFile("a.txt", "txt"); }), HasSubstr("cannot be saved to 'a.txt'"));
  EXPECT_EQ(a.GetSource(), "");
  EXPECT_FALSE(load_from_binary("nobody", ""));
}

TEST(Module, ALoaderIsFoundWhenItsKindIsMet) {
  set_loader_finder([](const std::string& key) {
    if (key == "late") register_module_loader(key, [](const std::string& bytes) { return named(bytes); });
    if (key == "broken") throw UserError("the package of 'broken' cannot be imported");
  });
  EXPECT_EQ(load_from_binary("late", "x").type_key(), "named");
  EXPECT_FALSE(load_from_binary("nobody", ""));
  EXPECT_THAT(kit::user_error_of([] { load_from_binary("broken", ""); }), HasSubstr("cannot be imported"));
  set_loader_finder(nullptr);
  EXPECT_EQ(load_from_binary("late", "y").type_key(), "named");
}

TEST(Module, AVersionIsCheckedBeforeItsLoader) {
  int num_loads = 0;
  std::vector<std::string> asked;
  register_module_loader("versioned", [&](const std::string& bytes) { return ++num_loads, named(bytes); });
  const auto load = [](const std::string& version) {
    return load_from_binary("versioned", {.bytes = "x", .version = version});
  };
  EXPECT_EQ(load("1").type_key(), "named");  // nothing checks it
  register_version_check("versioned", [&](const std::string& recorded) {
    asked.push_back(recorded);
    if (recorded != "3") refuse_version("chip", recorded, "3", recorded == "2" ? "2 had other weights" : "");
  });
  EXPECT_EQ(load("3").type_key(), "named");
  EXPECT_EQ(load("").type_key(), "named");
  EXPECT_THAT(asked, ::testing::ElementsAre("3"));
  num_loads = 0;
  EXPECT_EQ(kit::user_error_of([&] { load("1"); }),
            "the backend 'chip' does not load its part: the region was compiled by version 1 of the backend, and this "
            "is version 3; compile the model again");
  EXPECT_THAT(kit::user_error_of([&] { load("2"); }),
              HasSubstr("this is version 3, which says: 2 had other weights; compile the model again"));
  EXPECT_EQ(num_loads, 0);
  register_version_check("versioned", [](const std::string&) {});
}

}  // namespace
}  // namespace headrace::runtime
