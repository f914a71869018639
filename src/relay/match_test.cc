#include "relay/match.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <sstream>

#include "kit/files.h"
#include "relay/infer/infer_type.h"

namespace headrace::relay {
namespace {

TEST(Match, TensorsHaveADtypeAndARank) {
  const Var matrix = make_var("x", make_tensor_type(Shape{2, 3}, DataType::float_(16)));
  const Expr pair = make_tuple({matrix, matrix});
  EXPECT_EQ(tensor_type_of(matrix), nullptr) << "no type was inferred";
  EXPECT_EQ(rank_of(matrix), 0u);
  const Function function = make_function({matrix}, pair);
  infer_type(function);
  EXPECT_EQ(dtype_of(matrix), DataType::float_(16));
  EXPECT_EQ(rank_of(matrix), 2u);
  EXPECT_EQ(known_shape_of(matrix), Shape({2, 3}));
  EXPECT_EQ(tensor_type_of(pair), nullptr);
  EXPECT_EQ(dtype_of(pair), DataType());
  EXPECT_EQ(rank_of(pair), 0u);
}

// Returns whether a line begins a definition of one of match.h's questions, at the outermost level of a file.
bool defines_question(const std::string& line) {
  static const std::regex definition(
      R"(^[\w:<> ]*[&*]* [&*]?(op_call|call_of|tensor_type_of|dtype_of|rank_of|known_shape_of)\((const )?(relay::)?Expr\b.*)");
  return !line.empty() && line[0] != ' ' && line[0] != '/' && line.find("Expr") != std::string::npos &&
         std::regex_match(line, definition);
}

// A second definition of a question would drift from the first.
TEST(Match, QuestionsAreDefinedOnce) {
  const std::filesystem::path source = HEADRACE_SOURCE_DIR "/src";
  int64_t found = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source)) {
    const std::filesystem::path& path = entry.path();
    if ((path.extension() != ".cc" && path.extension() != ".h") || path.stem().string().ends_with("_test")) continue;
    std::istringstream lines(kit::read_file(path));
    for (std::string line; std::getline(lines, line);) {
      if (!defines_question(line)) continue;
      ++found;
      EXPECT_EQ(path.lexically_relative(source), "relay/match.h") << line;
    }
  }
  EXPECT_EQ(found, 7);
}

}  // namespace
}  // namespace headrace::relay
