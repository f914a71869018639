#include "plan/pipeline/case_questions.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plan/pipeline/contract.h"

namespace headrace::plan {
namespace {

// A row of 40 units of 1 ns over three devices. The tensor of unit 37 takes 1,000 ns and is read by both units after
// it, which do not depend on each other.
SplitGraph row_with_fork() {
  SplitProblem problem{.kinds = {"cpu"}};
  for (int32_t i = 0; i < 40; ++i) {
    problem.nodes.push_back({.name = fmt::format("n{}", i), .time_ns = {1}});
    if (i < 37) problem.tensors.push_back({.producer = i, .consumers = {i + 1}, .size_bytes = 1});
  }
  problem.tensors.push_back({.producer = 37, .consumers = {38, 39}, .size_bytes = 1000});
  const std::vector<SplitLink> links(3, {1'000'000'000, 0});
  for (const char* name : {"a", "b", "c"}) problem.devices.push_back({.name = name, .links = links});
  return contract_problem(problem).graph;
}

std::string text_of(const Question& one) {
  if (one.unit >= 0) return fmt::format("unit {} below {}", one.unit, one.stage);
  return fmt::format("tensor {} not in {}", one.tensor, one.stage);
}

std::vector<std::string> questions(const SplitGraph& graph, const StageRanges& ranges, int64_t period_ns) {
  std::vector<std::string> made;
  for (const Question& one : make_questions(graph, RangeNarrower(graph), ranges, period_ns))
    made.push_back(text_of(one));
  return made;
}

using Texts = std::vector<std::string>;

TEST(CaseQuestions, TheUnitThatDecidesAboutManyIsTheOnlyOne) {
  const SplitGraph graph = row_with_fork();
  EXPECT_EQ(questions(graph, StageRanges(graph, 3), 1000), (Texts{"unit 19 below 1"}));
}

TEST(CaseQuestions, TensorsAreAskedAboutWhenUnitsDecideAboutFew) {
  const SplitGraph graph = row_with_fork();
  StageRanges ranges(graph, 3);
  for (size_t unit = 0; unit < 38; ++unit) ranges.last[unit] = 0;
  EXPECT_EQ(questions(graph, ranges, 1000),
            (Texts{"unit 38 below 1", "unit 38 below 2", "tensor 37 not in 1", "tensor 37 not in 2"}));
  EXPECT_EQ(questions(graph, ranges, 1'000'000), (Texts{"unit 38 below 1", "unit 38 below 2"}));  // a short transfer
  StageRanges read = ranges;
  restrict_to_answer(graph, {.tensor = 37, .stage = 1}, false, read);
  EXPECT_EQ(questions(graph, read, 1000), (Texts{"unit 38 below 1", "unit 38 below 2", "tensor 37 not in 2"}));
  restrict_to_answer(graph, {.tensor = 37, .stage = 1}, true, ranges);
  EXPECT_EQ(questions(graph, ranges, 1000), (Texts{"unit 38 below 1", "unit 38 below 2", "tensor 37 not in 2"}));
  EXPECT_FALSE(ranges.may_have(38, 1));
  EXPECT_FALSE(ranges.may_have(39, 1));
  EXPECT_TRUE(ranges.may_have(39, 2));
}

TEST(CaseQuestions, NothingIsAskedWhereEachUnitHasOneStage) {
  const SplitGraph graph = row_with_fork();
  StageRanges ranges(graph, 3);
  ranges.last = ranges.first;
  EXPECT_EQ(questions(graph, ranges, 1000), Texts{});
}

TEST(CaseQuestions, AnswersAboutAUnitAreItsRange) {
  const SplitGraph graph = row_with_fork();
  StageRanges below(graph, 3), above(graph, 3);
  restrict_to_answer(graph, {.unit = 5, .stage = 2}, true, below);
  restrict_to_answer(graph, {.unit = 5, .stage = 2}, false, above);
  EXPECT_EQ(below.first[5], 0);
  EXPECT_EQ(below.last[5], 1);
  EXPECT_EQ(above.first[5], 2);
  EXPECT_EQ(above.last[5], 2);
}

}  // namespace
}  // namespace headrace::plan
