// A host of an earlier minor version of the backend interface. It is compiled against the header as that version had it
// (headers/VERSION), and takes libraries that were built with today's header through compile, load and run.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <headrace/backend_abi.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

// The region of the test: a - b, or a - c with a constant c, of four floats each.
struct hr_graph {
  bool has_constant = false;
};

namespace {

constexpr int64_t kCount = 4;
constexpr std::array<int64_t, 1> kShape{kCount}, kStrides{1};

std::array<float, kCount> constant_values{3, 5, 7, 9};

DLTensor tensor_of(float* data) {
  return {.data = data,
          .device = {kDLCPU, 0},
          .ndim = 1,
          .dtype = {kDLFloat, 32, 1},
          .shape = const_cast<int64_t*>(kShape.data()),
          .strides = const_cast<int64_t*>(kStrides.data()),
          .byte_offset = 0};
}

const DLTensor& constant_tensor() {
  static const DLTensor tensor = tensor_of(constant_values.data());
  return tensor;
}

// Node 0 is an input, node 1 another or the constant.
constexpr uint32_t kCall = 2;

hr_graph_api make_api() {
  hr_graph_api api{};
  api.abi = {sizeof(hr_graph_api), HR_BACKEND_ABI_MAJOR, HR_BACKEND_ABI_MINOR};
  api.name = [](const hr_graph*) { return "region"; };
  api.num_nodes = [](const hr_graph*) { return kCall + 1; };
  api.num_outputs = [](const hr_graph*) { return 1u; };
  api.output = [](const hr_graph*, uint32_t, uint32_t* result) {
    if (result != nullptr) *result = 0;
    return kCall;
  };
  api.kind = [](const hr_graph* graph, uint32_t node) -> int32_t {
    if (node == kCall) return HR_NODE_CALL;
    return node == 1 && graph->has_constant ? HR_NODE_CONST : HR_NODE_INPUT;
  };
  api.num_operands = [](const hr_graph*, uint32_t node) { return node == kCall ? 2u : 0u; };
  api.operand = [](const hr_graph*, uint32_t, uint32_t index) { return index; };
  api.num_results = [](const hr_graph*, uint32_t) { return 1u; };
  api.result_type = [](const hr_graph*, uint32_t, uint32_t) {
    return hr_tensor_type{{kDLFloat, 32, 1}, 1, kShape.data()};
  };
  api.op = [](const hr_graph*, uint32_t node) -> const char* { return node == kCall ? "subtract" : nullptr; };
  api.op_version = [](const hr_graph*, uint32_t) { return 1u; };
  api.index = [](const hr_graph*, uint32_t) { return 0u; };
  api.body = [](const hr_graph*, uint32_t) -> const hr_graph* { return nullptr; };
  api.constant = [](const hr_graph* graph, uint32_t node) {
    if (!graph->has_constant || node != 1) return hr_constant{"", nullptr};
    return hr_constant{"c0ffee", &constant_tensor()};
  };
  api.num_attrs = [](const hr_graph*, uint32_t) { return 0u; };
  api.attr = [](const hr_graph*, uint32_t, uint32_t) { return hr_attr{}; };
  api.find_attr = [](const hr_graph*, uint32_t, const char*) { return hr_attr{}; };
  api.place = [](const hr_graph*, uint32_t) { return ""; };
  return api;
}

}  // namespace

// Takes the results of a backend's compile. The interface names the type, and the host defines it.
struct hr_compile_sink {
  std::string blob, refusal;
  std::vector<std::string> constants;
};

namespace {

int32_t keep_blob(hr_compile_sink* sink, const void* blob, uint64_t size, const uint64_t*, uint64_t) {
  sink->blob.assign(static_cast<const char*>(blob), static_cast<size_t>(size));
  return 0;
}

int32_t keep_refusal(hr_compile_sink* sink, uint64_t, int32_t, const char* message) {
  sink->refusal = message;
  return 0;
}

#if HR_BACKEND_ABI_MINOR >= 1
int32_t keep_blob_with_constants(hr_compile_sink* sink, const void* blob, uint64_t size, const uint64_t* graphs,
                                 uint64_t num_graphs, const char* const* constants, uint64_t num_constants) {
  sink->constants.assign(constants, constants + num_constants);
  return keep_blob(sink, blob, size, graphs, num_graphs);
}
#endif

// Calls the body as one part.
int32_t in_one_part(const hr_kernel_env* env, hr_parallel_body body, void* closure, int64_t count) {
  return body(env, closure, 0, count);
}

class OldHost : public testing::Test {
 protected:
  // Opens a library and calls its entry with a table that ends where this version's does.
  void open(const std::string& name) {
    const std::string path = std::string(HEADRACE_TEST_PLUGINS) + "/" + name + ".so";
    library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
    const auto entry = reinterpret_cast<hr_backend_entry>(dlsym(library_, HR_BACKEND_ENTRY));
    ASSERT_NE(entry, nullptr);
    std::memset(&room_, 0, sizeof room_.table);
    std::memset(room_.beyond, 0x5A, sizeof room_.beyond);
    table().abi = {sizeof(hr_backend), HR_BACKEND_ABI_MAJOR, HR_BACKEND_ABI_MINOR};
    ASSERT_EQ(entry(&host(), &table(), &message_), 0) << text_.data();
    EXPECT_LE(table().abi.size, sizeof(hr_backend));
    for (const unsigned char byte : room_.beyond) ASSERT_EQ(byte, 0x5A) << "the library wrote beyond the table";
  }

  static const hr_host& host() {
    static const hr_graph_api api = make_api();
    static const hr_host one{{sizeof(hr_host), HR_BACKEND_ABI_MAJOR, HR_BACKEND_ABI_MINOR}, "0.0.9", &api};
    return one;
  }

  hr_backend& table() { return room_.table; }

  bool takes(const hr_graph& graph) {
    hr_verdict verdict{HR_REASON_NONE, message_};
    table().supports(table().self, &graph, kCall, &verdict);
    return verdict.reason == HR_REASON_NONE;
  }

  // Returns what compile returns; the code is in sink_.
  int32_t compile(const hr_graph& graph) {
    const std::array<const hr_graph*, 1> graphs{&graph};
    hr_compile_request request{};
    request.abi = {sizeof request, HR_BACKEND_ABI_MAJOR, HR_BACKEND_ABI_MINOR};
    request.num_graphs = 1;
    request.graphs = graphs.data();
    request.triple = "x86_64-unknown-linux-gnu";
    request.cpu = "x86-64";
    request.sink = &sink_;
    request.emit = &keep_blob;
    request.refuse = &keep_refusal;
#if HR_BACKEND_ABI_MINOR >= 1
    request.emit_with_constants = &keep_blob_with_constants;
#endif
    return table().compile(table().self, &request, &message_);
  }

  // Loads the blob, runs its region on a and, where it is an input, b, and returns the result.
  std::array<float, kCount> run(const hr_graph& graph, std::array<float, kCount> a, std::array<float, kCount> b) {
    void* loaded = nullptr;
    EXPECT_EQ(load(&loaded), 0) << text_.data();
    void* region = nullptr;
    EXPECT_EQ(table().find(table().self, loaded, "region", 1, &region, &message_), 0) << text_.data();
    std::array<float, kCount> y{};
    DLTensor first = tensor_of(a.data()), second = tensor_of(b.data()), out = tensor_of(y.data());
    std::vector<DLTensor*> args{&first, &second, &out};
    if (graph.has_constant) args.erase(args.begin() + 1);
    hr_kernel_env env{};
    env.size = sizeof env;
    env.version = HR_KERNEL_ABI_VERSION;
    env.parallel_for = &in_one_part;
    env.num_workers = 1;
    env.message = text_.data();
    env.message_size = text_.size();
    EXPECT_EQ(table().run(table().self, region, &env, args.data(), static_cast<int32_t>(args.size())), 0)
        << text_.data();
    table().unload(table().self, loaded);
    return y;
  }

  std::array<char, 512> text_{};
  const hr_message message_{text_.data(), text_.size()};
  hr_compile_sink sink_;

 private:
  int32_t load(void** loaded) {
#if HR_BACKEND_ABI_MINOR >= 1
    if (table().load_with_constants != nullptr) {
      constants_.assign(sink_.constants.size(), &constant_tensor());
      return table().load_with_constants(table().self, sink_.blob.data(), sink_.blob.size(), constants_.data(),
                                         constants_.size(), loaded, &message_);
    }
#endif
    return table().load(table().self, sink_.blob.data(), sink_.blob.size(), loaded, &message_);
  }

  std::vector<const DLTensor*> constants_;  // lives as long as what is loaded
  void* library_ = nullptr;                 // stays open: the tables of a library live as long as the process
  struct {
    hr_backend table;
    unsigned char beyond[256];
  } room_;
};

using Values = std::array<float, kCount>;

TEST_F(OldHost, IsOfTheVersionThatTheTestSays) { EXPECT_EQ(HR_BACKEND_ABI_MINOR, HEADRACE_EXPECTED_MINOR); }

const Values kA{1, 2, 3, 4}, kB{5, 3, 1, -1};

TEST_F(OldHost, CompilesAndRunsWithALibraryOfToday) {
  for (const std::string name : {"chip", "steps"}) {
    open(name);
    const hr_graph graph{.has_constant = false};
    ASSERT_TRUE(takes(graph)) << name;
    ASSERT_EQ(compile(graph), 0) << text_.data();
    EXPECT_EQ(sink_.refusal, "");
    EXPECT_EQ(run(graph, kA, kB), (Values{-4, -1, 2, 5})) << name;
  }
}

TEST_F(OldHost, ALibraryThatKeepsItsConstantsRuns) {
  open("chip");
  const hr_graph graph{.has_constant = true};
  ASSERT_TRUE(takes(graph));
  ASSERT_EQ(compile(graph), 0) << text_.data();
  EXPECT_EQ(run(graph, kA, kB), (Values{-2, -3, -4, -5}));
}

// The interface has had constants by reference since minor version 1.
TEST_F(OldHost, ALibraryThatLeavesConstantsToTheHostRunsOrSaysWhatIsMissing) {
  for (const auto& [name, fault] :
       {std::pair<std::string, std::string>{"apart_chip", "it stores no constants for backends"},
        {"steps", "this Headrace is older than the backend"}}) {
    open(name);
    const hr_graph graph{.has_constant = true};
    ASSERT_TRUE(takes(graph)) << name;
#if HR_BACKEND_ABI_MINOR >= 1
    ASSERT_EQ(compile(graph), 0) << text_.data();
    EXPECT_EQ(sink_.constants, std::vector<std::string>{"c0ffee"}) << name;
    EXPECT_EQ(run(graph, kA, kB), (Values{-2, -3, -4, -5})) << name;
#else
    EXPECT_NE(compile(graph), 0) << name;
    EXPECT_NE(std::string(text_.data()).find(fault), std::string::npos) << text_.data();
#endif
  }
}

}  // namespace
