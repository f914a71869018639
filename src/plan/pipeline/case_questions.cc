#include "plan/pipeline/case_questions.h"

#include <algorithm>

namespace headrace::plan {
namespace {

// A unit that decides about this share of all units is the only question.
constexpr int64_t kLargeShare = 32;
constexpr size_t kTensorQuestions = 4;
// No question is about a tensor whose transfer takes a smaller share of the period at both ends.
constexpr int64_t kTensorShare = 20;

struct UnitQuestion {
  Question question;
  int64_t decided = 0;  // units, in the answer that decides about fewer
};

UnitQuestion widest_question(const SplitGraph& graph, const Dependencies& dependencies, const StageRanges& ranges,
                             int32_t border) {
  UnitSet undecided(graph.num_units);
  for (int32_t unit = 0; unit < graph.num_units; ++unit) {
    if (ranges.first[as_index(unit)] < border && border <= ranges.last[as_index(unit)]) undecided.add(unit);
  }
  UnitQuestion made{.question = {.stage = border}};
  undecided.each_of_both(undecided, [&](int32_t unit) {
    const int64_t decided = std::min(dependencies.before[as_index(unit)].count_both(undecided),
                                     dependencies.after[as_index(unit)].count_both(undecided));
    if (decided <= made.decided) return;
    made.decided = decided;
    made.question.unit = unit;
  });
  return made;
}

// Returns how many consumers of the tensor may lie in the stage; 0 when some does for sure.
int64_t count_possible_readers(const SplitGraph& graph, const StageRanges& ranges, size_t tensor, int32_t stage) {
  if ((ranges.read_in[tensor] >> static_cast<uint32_t>(stage) & 1) != 0) return 0;
  int64_t count = 0;
  for (const int32_t consumer : graph.tensor_consumers[tensor]) {
    if (!ranges.may_have(consumer, stage)) continue;
    if (ranges.first[as_index(consumer)] == ranges.last[as_index(consumer)]) return 0;
    ++count;
  }
  return count;
}

void add_tensor_questions(const SplitGraph& graph, const std::vector<int64_t>& times, const StageRanges& ranges,
                          int64_t period_ns, std::vector<Question>& questions) {
  const int32_t stages = graph.devices.num_devices;
  std::vector<std::pair<int64_t, Question>> found;
  for (size_t tensor = 0; tensor < graph.tensor_bytes.size(); ++tensor) {
    const int64_t time = times[tensor];
    if (graph.tensor_consumers[tensor].size() < 2 || 2 * time * kTensorShare < period_ns) continue;
    for (int32_t stage = ranges.first[as_index(graph.tensor_producer[tensor])] + 1; stage < stages; ++stage) {
      const int64_t readers = count_possible_readers(graph, ranges, tensor, stage);
      if (readers > 0) found.push_back({time * readers, {.tensor = static_cast<int32_t>(tensor), .stage = stage}});
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (size_t i = 0; i < std::min(found.size(), kTensorQuestions); ++i) questions.push_back(found[i].second);
}

}  // namespace

void restrict_to_answer(const SplitGraph& graph, const Question& question, bool is_yes, StageRanges& ranges) {
  if (question.unit >= 0) {
    int8_t &first = ranges.first[as_index(question.unit)], &last = ranges.last[as_index(question.unit)];
    if (is_yes) last = std::min(last, static_cast<int8_t>(question.stage - 1));
    if (!is_yes) first = std::max(first, static_cast<int8_t>(question.stage));
    return;
  }
  const auto stage = static_cast<uint8_t>(1U << static_cast<uint32_t>(question.stage));
  if (!is_yes) ranges.read_in[as_index(question.tensor)] |= stage;
  if (!is_yes) return;
  for (const int32_t consumer : graph.tensor_consumers[as_index(question.tensor)])
    ranges.barred[as_index(consumer)] |= stage;
}

std::vector<Question> make_questions(const SplitGraph& graph, const RangeNarrower& narrower, const StageRanges& ranges,
                                     int64_t period_ns) {
  std::vector<UnitQuestion> found;
  for (int32_t border = 1; border < graph.devices.num_devices; ++border) {
    found.push_back(widest_question(graph, narrower.dependencies(), ranges, border));
    if (found.back().decided == 0) found.pop_back();
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const UnitQuestion& a, const UnitQuestion& b) { return a.decided > b.decided; });
  if (!found.empty() && found.front().decided * kLargeShare >= graph.num_units) return {found.front().question};
  std::vector<Question> made;
  for (const UnitQuestion& one : found) made.push_back(one.question);
  add_tensor_questions(graph, narrower.transfer_times(), ranges, period_ns, made);
  return made;
}

}  // namespace headrace::plan
