// Golden texts of the passes over regions. A file of tests/ has lines `// passes: A, B`, `// config: KEY=VALUE`, a
// program, and what the passes make of it; --bless writes that.
#include "object/structural_equal.h"
#include "partition/tests/region_testing.h"

namespace headrace::partition {
namespace {

struct RegionGolden {
  std::filesystem::path file;
  std::string passes, head, program;
  Map<std::string, Value> config;
};

constexpr std::string_view kRegionBecomes = "// becomes\n";

RegionGolden read_region_golden(const std::string& name) {
  register_test_compilers();
  RegionGolden golden;
  golden.file = fmt::format("{}/src/partition/tests/{}.relay", HEADRACE_SOURCE_DIR, name);
  std::ifstream file(golden.file);
  std::ostringstream text;
  text << file.rdbuf();
  golden.head = text.str().substr(0, text.str().find(kRegionBecomes)) + std::string(kRegionBecomes);
  const size_t begin = golden.head.find("#[version");
  if (!file || begin == std::string::npos) throw std::runtime_error("no program in " + golden.file.string());
  golden.program = golden.head.substr(begin, golden.head.size() - begin - kRegionBecomes.size());
  std::istringstream lines(golden.head.substr(0, begin));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("// passes: ")) golden.passes = line.substr(11);
    if (!line.starts_with("// config: ")) continue;
    const size_t equals = line.find('=');
    const std::string key = line.substr(11, equals - 11);
    golden.config.set(key, pass::parse_config_value(key, std::string_view(line).substr(equals + 1)));
  }
  return golden;
}

std::vector<std::string> region_golden_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(HEADRACE_SOURCE_DIR "/src/partition/tests")) {
    std::ifstream file(entry.path());
    std::string line;
    if (entry.path().extension() == ".relay" && std::getline(file, line) && line.starts_with("// passes: "))
      names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class RegionGoldens : public testing::TestWithParam<std::string> {};

TEST_P(RegionGoldens, TextAndResults) {
  const RegionGolden golden = read_region_golden(GetParam());
  const IRModule before = relay::infer_type(relay::parse_module(golden.program, golden.file.filename().string()));
  const IRModule after = run_list(golden.passes, before, golden.config);
  const std::string text = relay::print_module(after);
  EXPECT_TRUE(kit::matches_golden(golden.file, golden.head + text));
  EXPECT_TRUE(structural_equal(relay::parse_module(text), after));
  expect_equal_results(before, after);
}

INSTANTIATE_TEST_SUITE_P(Partition, RegionGoldens, testing::ValuesIn(region_golden_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace headrace::partition
