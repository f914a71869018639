// Texts of programs after each pass of the room, and random programs that print, parse, keep the rules and compute what
// the module before planning computes.
#include <gtest/gtest.h>

#include "interp/interp.h"
#include "kit/golden.h"
#include "kit/property.h"
#include "ops/all_ops.h"
#include "passes/fuse/fuse_ops.h"
#include "plan/join_views.h"
#include "plan/plan_memory.h"
#include "plan/program_text.h"
#include "plan/read_program.h"
#include "plan/verify_program.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"
#include "relay/text/print.h"

namespace headrace::plan {
namespace {

IRModule typed(const std::string& text) {
  ops::register_all_ops();
  return relay::infer_type(relay::parse_module(text));
}

std::string text_of(const Program& program) { return relay::print_module(to_module(program)); }

Program planned_again(Program program) {
  plan_memory(program);
  return program;
}

std::filesystem::path golden(const char* name) {
  return std::filesystem::path(HEADRACE_SOURCE_DIR) / "src/plan/tests" / name;
}

// ---- golden texts

// Nested concatenations whose parts lie one after another, so that all of them become views of one storage. One part is
// also read elsewhere.
constexpr const char* kJoined =
    "#[version = \"0.0.5\"]\n"
    "def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(1, 3), float32]) {\n"
    "  %0 = nn.softmax(%x);\n"
    "  %1 = concatenate((%0, nn.softmax(%y)));\n"
    "  %2 = concatenate((%1, nn.log_softmax(%x)));\n"
    "  (nn.log_softmax(%2), nn.softmax(%0))\n"
    "}\n";

TEST(JoinViews, GoldenText) {
  GroupTable groups;
  Program program = read_program(relay::infer_type(passes::fuse_ops(typed(kJoined), {.max_depth = 1})), groups);
  EXPECT_TRUE(kit::matches_golden(golden("before_join_views.relay"), text_of(program)));
  join_views(program, groups);
  EXPECT_TRUE(kit::matches_golden(golden("join_views.relay"), text_of(program)));
}

// Names that the text chooses, two views of the same part of an arena, strides, a location and a copy.
constexpr const char* kRead =
    "#[version = \"0.0.5\"]\n"
    "def @main(%in: Tensor[(2, 3), float32], %out: Tensor[(3, 2), float32], num_outputs=1) -> () {\n"
    "  let %arena = memory.alloc_storage(size=192);\n"
    "  let %far = memory.alloc_storage(size=24, location=\"cuda:1/pinned\");\n"
    "  let %a = memory.view(%arena, byte_offset=64, shape=[3, 2], dtype=\"float32\");\n"
    "  let %b = memory.view(%far, byte_offset=0, shape=[2, 3], dtype=\"float32\");\n"
    "  let %_ = call_dps(@turn, (%in,), (%a,));\n"
    "  let %_1 = memory.copy(%in, %b);\n"
    "  let %c = memory.view(%arena, byte_offset=64, shape=[2, 3], dtype=\"float32\", strides=[1, 2]);\n"
    "  let %d = memory.view(%out, byte_offset=0, shape=[2, 3], dtype=\"float32\", strides=[1, 2]);\n"
    "  let %_2 = call_dps(@plus, (%c, %b), (%d,));\n"
    "  ()\n"
    "}\n"
    "def @turn(%p: Tensor[(2, 3), float32], Primitive=1) { transpose(%p) }\n"
    "def @plus(%p: Tensor[(2, 3), float32], %q: Tensor[(2, 3), float32], Primitive=1) { add(%p, %q) }\n";

TEST(ReadText, GoldenText) {
  const Program program = from_module(typed(kRead));
  EXPECT_TRUE(kit::matches_golden(golden("read_text.relay"), text_of(program)));
  EXPECT_TRUE(kit::matches_golden(golden("read_text_planned.relay"), text_of(planned_again(program))));
}

// ---- random programs

// One value more; operands are numbers of earlier values, taken modulo their count.
struct Choice {
  int kind = 0;
  size_t a = 0, b = 0;
};
struct Choices {
  std::vector<Choice> values;
  int64_t max_depth = 1;  // limit of fusion
};

// Returns a main over rows of nine elements. Softmaxes are kernels of their own, additions fuse, and concatenations
// along the first axis can be joined, those along the second one where parts may have gaps.
std::string module_text(const Choices& choices) {
  std::vector<std::pair<std::string, int>> values = {{"%x", 2}, {"%y", 1}};  // names and rows
  std::string body;
  for (const Choice& choice : choices.values) {
    const auto& [a, rows] = values[choice.a % values.size()];
    const auto& [b, more] = values[choice.b % values.size()];
    std::string made = fmt::format("nn.softmax({})", a);
    int made_rows = rows;
    if (choice.kind == 1) made = fmt::format("nn.relu({})", a);
    if (choice.kind == 2 && rows == more) made = fmt::format("add({}, {})", a, b);
    if (choice.kind == 5) {
      made = fmt::format(
          "strided_slice(concatenate((nn.log_softmax({0}), nn.softmax({0}), nn.log_softmax({1})), axis=1), "
          "begin=[0, 5], end=[{2}, 14])",
          a, rows == more ? b : a, rows);
    }
    if (choice.kind >= 3 && choice.kind <= 4 && rows + more <= 16) {
      made = fmt::format("concatenate(({}, {}))", a, b);
      made_rows = rows + more;
    }
    const std::string name = fmt::format("%{}", values.size() - 2);
    body += fmt::format("  {} = {};\n", name, made);
    values.emplace_back(name, made_rows);
  }
  return fmt::format(
      "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(2, 9), float32], %y: Tensor[(1, 9), float32]) {{\n{}  ({}, "
      "{})\n}}\n",
      body, values.back().first, values[values.size() / 2].first);
}

std::vector<NDArray> run_program(const IRModule& module, const Program& program, std::vector<NDArray> args) {
  std::vector<NDArray> outputs;
  for (const size_t output : program.outputs) {
    const View& view = program.views[output];
    outputs.push_back(NDArray::zeros(view.shape, view.type->dtype));
    args.push_back(outputs.back());
  }
  interp::run_main(module, args);
  return outputs;
}

// Returns what is wrong with a program that should compute `expected`: with its rules, its text, or its results.
std::optional<std::string> fault_of(const Program& program, const std::vector<NDArray>& inputs,
                                    const std::vector<NDArray>& expected) {
  const std::vector<std::string> breaches = find_breaches(program);
  if (!breaches.empty()) return "breaks a rule: " + breaches[0];
  const std::string text = text_of(program);
  const IRModule parsed = typed(text);
  const Program read = from_module(parsed);
  if (!find_breaches(read).empty()) return "as it is read it breaks a rule: " + find_breaches(read)[0];
  const bool is_planned = text.find("%arena") != std::string::npos;
  if (text_of(is_planned ? planned_again(read) : read) != text) return "reads back as another text, from\n" + text;
  const std::vector<NDArray> actual = run_program(parsed, program, inputs);
  for (size_t i = 0; i < expected.size(); ++i) {
    if (!actual.at(i).content_equal(expected[i])) return fmt::format("computes another output {}, by\n{}", i, text);
  }
  return std::nullopt;
}

NDArray rows_of(int64_t rows) {
  NDArray array = NDArray::empty({rows, 9}, DataType::float_(32));
  for (int64_t i = 0; i < array.num_elements(); ++i) array.data<float>()[i] = static_cast<float>(i % 5) - 1.5F;
  return array;
}

TEST(PlanPrograms, RandomOnesPrintParseVerifyAndCompute) {
  const std::vector<NDArray> inputs = {rows_of(2), rows_of(1)};
  int joined = 0;
  const kit::Property<Choices> property{
      .runs_ci = 60,
      .runs_full = 5000,
      .generate =
          [](kit::Random& random) {
            Choices choices{.values = std::vector<Choice>(static_cast<size_t>(random.integer(1, 12))),
                            .max_depth = random.integer(1, 8)};
            for (Choice& choice : choices.values) {
              choice = {static_cast<int>(random.integer(0, 5)), static_cast<size_t>(random.integer(0, 100)),
                        static_cast<size_t>(random.integer(0, 100))};
            }
            return choices;
          },
      .shrink =
          [](const Choices& choices) {
            std::vector<Choices> smaller;
            for (auto& values : kit::shrink_list(choices.values)) smaller.push_back({values, choices.max_depth});
            return smaller;
          },
      .show = module_text,
      .check = [&](const Choices& choices) -> std::optional<std::string> {
        const IRModule module =
            relay::infer_type(passes::fuse_ops(typed(module_text(choices)), {.max_depth = choices.max_depth}));
        const std::vector<NDArray> expected = interp::run_main(module, inputs);
        GroupTable groups;
        Program program = read_program(module, groups);
        if (auto fault = fault_of(program, inputs, expected)) return "before join_views it " + *fault;
        const size_t steps = program.steps.size();
        join_views(program, groups);
        joined += program.steps.size() < steps;
        if (auto fault = fault_of(program, inputs, expected)) return "after join_views it " + *fault;
        plan_memory(program);
        if (auto fault = fault_of(program, inputs, expected)) return "after plan_memory it " + *fault;
        return std::nullopt;
      }};
  EXPECT_TRUE(kit::holds(property));
  const auto size = kit::options().size;
  const bool is_whole = (size == kit::TestSize::kCi || size == kit::TestSize::kFull) && !kit::options().seed;
  EXPECT_TRUE(joined > 0 || !is_whole) << "no program has parts to join";
}

}  // namespace
}  // namespace headrace::plan
