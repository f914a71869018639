// Models of a few hundred bytes whose constants would take gigabytes: they are refused, or stay calls that need no
// memory before they run.
#include <sys/resource.h>

#include "frontend/onnx/tests/import_testing.h"
#include "kit/options.h"
#include "passes/fold/fold_constant.h"
#include "relay/infer/infer_type.h"

namespace headrace::onnx {
namespace {

using namespace testing;

constexpr int64_t kMegabyte = int64_t{1} << 20;

// A graph whose node of that operator makes n x n numbers, named "huge", of constants alone.
GraphWriter huge_graph(std::string_view op, int64_t n) {
  GraphWriter graph;
  const Ints shape{n, n};
  graph.initializer("shape", ElementType::kInt64, {2}, std::as_bytes(std::span(shape)));
  const float one = 1;
  graph.initializer("one", ElementType::kFloat, {1, 1}, std::as_bytes(std::span(&one, 1)));
  if (op == "ConstantOfShape") graph.node("ConstantOfShape", {"shape"}, {}, "huge");
  if (op == "Expand" || op == "Tile") graph.node(op, {"one", "shape"}, {}, "huge");
  return graph;
}

// The operators that read the huge tensor in turn; the last one's result is the model's.
const std::vector<std::vector<std::string_view>> kReaders = {{},
                                                             {"Exp"},
                                                             {"Tile"},
                                                             {"ReduceSum"},
                                                             {"MatMul"},
                                                             {"Exp", "ReduceSum"},
                                                             {"Transpose", "ArgMax"},
                                                             {"NonZero", "Shape"}};

std::string huge_model(std::string_view op, const std::vector<std::string_view>& readers, int64_t n) {
  GraphWriter graph = huge_graph(op, n);
  std::string last = "huge";
  for (const std::string_view reader : readers) {
    std::vector<std::string> inputs{last};
    if (reader == "MatMul") inputs.push_back(last);
    if (reader == "Tile") inputs.push_back("shape");
    last += "_of";
    graph.node(reader, inputs, {}, last);
  }
  graph.output(last, ElementType::kUndefined);
  return kit::encode_model(std::move(graph).finish(), {{"", 13}});
}

int64_t peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} << 10;
}

IRModule folded(const IRModule& module) {
  pass::PassContext context;
  context.infer_type = [](const IRModule& m) { return relay::infer_type(m); };
  return passes::fold_constant(module, context);
}

// The importer folds 64 elements at most, and FoldConstant what its budget of 64 MB allows.
TEST(HugeConstants, StayCalls) {
  const int64_t before = peak_bytes();
  for (const std::string_view op : {"ConstantOfShape", "Expand", "Tile"}) {
    for (size_t i = 0; i < kReaders.size(); ++i) {
      if (!kit::is_chosen(i)) continue;
      const auto& readers = kReaders[i];
      for (const int64_t n : {2'000, 20'000}) {  // 16 MB and 1.6 GB
        SCOPED_TRACE(fmt::format("{} of {} x {}, then {}", op, n, n, fmt::join(readers, ", ")));
        const std::string bytes = huge_model(op, readers, n);
        EXPECT_LT(bytes.size(), 500U);
        const ImportedModel imported = import_bytes(bytes);
        EXPECT_LT(passes::program_bytes(imported.module), 10'000);
        EXPECT_LE(passes::program_bytes(folded(imported.module)), 64 * kMegabyte);
      }
    }
  }
  if (kit::options().size != kit::TestSize::kFew) {  // sanitizers keep what is freed
    EXPECT_LT(peak_bytes() - before, 256 * kMegabyte);
  }
}

// A table that the importer makes itself is a constant, and has a limit.
TEST(HugeConstants, TablesOfTheImporterAreRefused) {
  GraphWriter graph = huge_graph("ConstantOfShape", 20'000);
  graph.node("EyeLike", {"huge"}, {}, "y");
  graph.output("y", ElementType::kFloat);
  EXPECT_THAT(import_error(std::move(graph)),
              HasSubstr("(EyeLike): it would need a table of 400000000 entries, at most 4194304 are made"));
  EXPECT_THAT(node_error("HannWindow", 17, {fixed(i64({}, {1'000'000'000}))}),
              HasSubstr("it would need a table of 1000000000 entries"));
}

}  // namespace
}  // namespace headrace::onnx
