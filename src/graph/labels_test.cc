// Labels: hand-made problems, and random ones against an exhaustive search that follows the definition in labels.h.
#include "graph/labels.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "graph/min_cut.h"
#include "kit/property.h"

namespace headrace::graph {
namespace {

using Labels = std::vector<int32_t>;
using Table = std::vector<LabelCost>;

// The cost of labels by the definition; nothing when one is forbidden.
std::optional<LabelCost> defined_cost(const LabelProblem& problem, const Labels& labels) {
  const auto class_of = [&](int32_t label) {
    return problem.label_class.empty() ? label : problem.label_class[static_cast<size_t>(label)];
  };
  int32_t classes = 0;
  for (int32_t label = 0; label < problem.num_labels; ++label) classes = std::max(classes, class_of(label) + 1);
  const auto at = [&](int32_t node) { return labels[static_cast<size_t>(node)]; };
  const auto entry = [&](int32_t table, int32_t i) {
    return problem.tables[static_cast<size_t>(table)][static_cast<size_t>(i)];
  };
  LabelCost total = 0;
  for (int32_t node = 0; node < problem.num_nodes; ++node) {
    const LabelCost cost = problem.costs[static_cast<size_t>(node * problem.num_labels + at(node))];
    if (cost == kForbidden) return {};
    total += cost;
  }
  for (const auto& pair : problem.pairs) total += entry(pair.table, at(pair.a) * problem.num_labels + at(pair.b));
  for (const auto& shared : problem.shared) {
    uint32_t wanted = 0;  // a bit for each class
    for (const int32_t consumer : shared.consumers) wanted |= 1U << class_of(at(consumer));
    wanted &= ~(1U << class_of(at(shared.producer)));
    for (int32_t i = 0; i < classes; ++i)
      total += (wanted >> i & 1) * entry(shared.table, at(shared.producer) * classes + i);
  }
  return total;
}

LabelCost least_cost(const LabelProblem& problem) {
  Labels labels(static_cast<size_t>(problem.num_nodes), 0);
  std::optional<LabelCost> least;
  for (bool more = true; more;) {
    if (const auto cost = defined_cost(problem, labels); cost && (!least || *cost < *least)) least = cost;
    more = false;
    for (size_t i = 0; i < labels.size() && !more; ++i) {
      more = ++labels[i] < problem.num_labels;
      if (!more) labels[i] = 0;
    }
  }
  return *least;
}

void add_random_terms(kit::Random& random, LabelProblem& problem, int32_t classes) {
  const auto node = [&] { return static_cast<int32_t>(random.integer(0, problem.num_nodes - 1)); };
  const auto add_table = [&](int32_t columns) {
    Table table;
    for (int32_t i = 0; i < problem.num_labels * columns; ++i) table.push_back(random.integer(0, 12));
    problem.tables.push_back(table);
    return static_cast<int32_t>(problem.tables.size()) - 1;
  };
  const int64_t pairs = problem.num_nodes < 2 ? 0 : random.integer(0, problem.num_nodes);
  for (int64_t i = 0; i < pairs; ++i) {
    const int32_t a = node(), b = node();
    if (a != b) problem.pairs.push_back({a, b, add_table(problem.num_labels)});
  }
  for (int64_t i = random.integer(0, problem.num_nodes); i > 0; --i) {
    LabelProblem::SharedCost shared{node(), {}, add_table(classes)};
    for (int64_t j = random.integer(0, 6); j > 0; --j) shared.consumers.push_back(node());
    problem.shared.push_back(shared);
  }
}

LabelProblem random_problem(kit::Random& random, int32_t max_nodes, int32_t labels) {
  LabelProblem problem{.num_nodes = static_cast<int32_t>(random.integer(1, max_nodes)), .num_labels = labels};
  for (int32_t i = 0; i < problem.num_nodes; ++i) {
    const auto allowed = static_cast<int32_t>(random.integer(0, labels - 1));
    for (int32_t label = 0; label < labels; ++label)
      problem.costs.push_back(label != allowed && random.chance(0.2F) ? kForbidden : random.integer(0, 20));
  }
  int32_t classes = labels;
  if (labels == 3 && random.chance(0.3F)) {
    problem.label_class = {0, 1, 0};
    classes = 2;
  }
  add_random_terms(random, problem, classes);
  return problem;
}

std::string show(const LabelProblem& problem) {
  std::string text = fmt::format("{} nodes, {} labels, classes [{}], costs", problem.num_nodes, problem.num_labels,
                                 fmt::join(problem.label_class, " "));
  for (const LabelCost cost : problem.costs) text += cost == kForbidden ? " -" : fmt::format(" {}", cost);
  for (const auto& pair : problem.pairs)
    text +=
        fmt::format("; {}-{} [{}]", pair.a, pair.b, fmt::join(problem.tables[static_cast<size_t>(pair.table)], " "));
  for (const auto& shared : problem.shared)
    text += fmt::format("; {} -> {} [{}]", shared.producer, fmt::join(shared.consumers, " "),
                        fmt::join(problem.tables[static_cast<size_t>(shared.table)], " "));
  return text;
}

std::optional<std::string> check_result(const LabelProblem& problem, const Labelling& result, LabelCost least) {
  const auto cost = defined_cost(problem, result.labels);
  if (!cost || *cost != result.cost) return fmt::format("the labels cost {}, not {}", cost.value_or(-1), result.cost);
  if (result.lower_bound > least) return fmt::format("the bound {} is above {}", result.lower_bound, least);
  if (result.method != LabelMethod::moves && (result.cost != least || result.lower_bound != least))
    return fmt::format("{} found {} with the bound {}, the least is {}", to_string(result.method), result.cost,
                       result.lower_bound, least);
  return std::nullopt;
}

TEST(Labels, EliminationFindsTheLeastAndMovesBoundIt) {
  kit::Property<LabelProblem> property;
  property.runs_ci = 2000;
  property.runs_full = 20'000;
  property.generate = [](kit::Random& random) { return random_problem(random, random.chance(0.05F) ? 10 : 7, 3); };
  property.show = show;
  property.check = [](const LabelProblem& problem) -> std::optional<std::string> {
    const LabelCost least = least_cost(problem);
    const Labelling exact = find_labels(problem);
    if (exact.method != LabelMethod::elimination) return "the elimination did not solve it";
    if (const auto wrong = check_result(problem, exact, least)) return wrong;
    return check_result(problem, find_labels(problem, {.method = LabelMethod::moves}), least);
  };
  EXPECT_TRUE(kit::holds(property));
}

// Shared costs that are too large for one table get variables of their own.
TEST(Labels, ManyConsumersCostOnce) {
  kit::Property<LabelProblem> property;
  property.runs_ci = 20;
  property.runs_full = 200;
  property.generate = [](kit::Random& random) {
    LabelProblem problem{.num_nodes = 9, .num_labels = 3};
    for (int i = 0; i < 27; ++i) problem.costs.push_back(random.integer(0, 9));
    Labels consumers;
    for (int32_t i = 1; i < 9; ++i) consumers.push_back(i);
    Table table;
    for (int i = 0; i < 9; ++i) table.push_back(random.integer(0, 40));
    problem.tables = {table};
    problem.shared = {{0, consumers, 0}};
    return problem;
  };
  property.show = show;
  property.check = [](const LabelProblem& problem) {
    return check_result(problem, find_labels(problem), least_cost(problem));
  };
  EXPECT_TRUE(kit::holds(property));
}

TEST(Labels, OneCutSolvesTwoSubmodularLabels) {
  kit::Property<LabelProblem> property;
  property.runs_ci = 500;
  property.runs_full = 5000;
  property.generate = [](kit::Random& random) {
    LabelProblem problem = random_problem(random, 8, 2);
    for (const auto& pair : problem.pairs) {  // no pair costs more where its labels agree
      Table& table = problem.tables[static_cast<size_t>(pair.table)];
      table[1] = std::max(table[1], table[0] + table[3] - table[2]);
    }
    return problem;
  };
  property.show = show;
  property.check = [](const LabelProblem& problem) {
    return check_result(problem, find_labels(problem, {.method = LabelMethod::min_cut}), least_cost(problem));
  };
  EXPECT_TRUE(kit::holds(property));
}

TEST(Labels, ACutThatCannotSolveTheProblemIsRefused) {
  LabelProblem problem{
      .num_nodes = 2, .num_labels = 2, .costs = {0, 1, 0, 1}, .tables = {{1, 0, 0, 1}}, .pairs = {{0, 1, 0}}};
  EXPECT_THROW(find_labels(problem, {.method = LabelMethod::min_cut}), InternalError);
  EXPECT_EQ(find_labels(problem).cost, 1);
  problem.tables[0] = {0, 1, 1, 0};
  EXPECT_EQ(find_labels(problem, {.method = LabelMethod::min_cut}).cost, 0);
  // Without tables of more than one entry, a cut solves it by itself.
  EXPECT_EQ(find_labels(problem, {.max_table_entries = 1}).method, LabelMethod::min_cut);
}

// A tensor is copied once: three consumers together may leave the producer's label, each alone would not.
TEST(Labels, TheCopyIsPaidOnce) {
  const LabelProblem problem{.num_nodes = 4,
                             .num_labels = 2,
                             .costs = {0, kForbidden, 5, 1, 5, 1, 5, 1},
                             .tables = {{0, 10, 10, 0}},
                             .shared = {{0, {1, 2, 3, 3}, 0}}};
  const Labelling found = find_labels(problem);
  EXPECT_EQ(found.labels, (Labels{0, 1, 1, 1}));
  EXPECT_EQ(found.cost, 13);
  EXPECT_EQ(found.gap(), 0);
}

TEST(Labels, TheLowestLabelsWinATie) {
  EXPECT_EQ(find_labels({.num_nodes = 3, .num_labels = 2, .costs = {4, 4, 4, 4, 9, 4}}).labels, (Labels{0, 0, 1}));
  EXPECT_EQ(find_labels({.num_nodes = 0, .num_labels = 1}).cost, 0);
}

TEST(Labels, MalformedProblemsAreRefused) {
  const LabelProblem good{.num_nodes = 2, .num_labels = 2, .costs = {0, 1, 2, 3}, .tables = {{0, 1, 1, 0}}};
  const auto refuses = [&](auto&& change) {
    LabelProblem problem = good;
    change(problem);
    EXPECT_THROW(find_labels(problem), InternalError);
  };
  EXPECT_EQ(find_labels(good).cost, 2);
  refuses([](LabelProblem& p) { p.costs.pop_back(); });
  refuses([](LabelProblem& p) { p.costs[0] = -1; });
  refuses([](LabelProblem& p) { p.costs[0] = p.costs[1] = kForbidden; });
  refuses([](LabelProblem& p) { p.costs[0] = p.costs[2] = LabelCost{1} << 60; });
  refuses([](LabelProblem& p) { p.label_class = {0, 2}; });
  refuses([](LabelProblem& p) { p.pairs = {{0, 0, 0}}; });
  refuses([](LabelProblem& p) { p.pairs = {{0, 2, 0}}; });
  refuses([](LabelProblem& p) { p.pairs = {{0, 1, 1}}; });
  refuses([](LabelProblem& p) { p.tables[0].push_back(1), p.pairs = {{0, 1, 0}}; });
  refuses([](LabelProblem& p) { p.tables[0][1] = kForbidden, p.shared = {{0, {1}, 0}}; });
  refuses([](LabelProblem& p) { p.shared = {{0, {-1}, 0}}; });
  refuses([](LabelProblem& p) { p.num_labels = 256; });
  EXPECT_THROW(cost_of(good, {0, 2}), InternalError);
  EXPECT_THROW(cost_of(good, {0}), InternalError);
}

// A chain with skips of eight labels, so wide that the elimination must give up when it may make small tables only.
LabelProblem skipping_chain(int32_t nodes, int32_t labels) {
  kit::Random random(3);
  LabelProblem problem{.num_nodes = nodes, .num_labels = labels};
  for (int32_t i = 0; i < nodes * labels; ++i) problem.costs.push_back(random.integer(0, 1000));
  Table table;
  for (int32_t i = 0; i < labels * labels; ++i) table.push_back(random.integer(100, 400));
  problem.tables = {table};
  for (int32_t i = 0; i < nodes; ++i) {
    LabelProblem::SharedCost shared{i, {}, 0};
    for (const int32_t step : {1, 3, 4}) {
      if (i + step < nodes) shared.consumers.push_back(i + step);
    }
    problem.shared.push_back(shared);
  }
  return problem;
}

TEST(Labels, MovesComeCloseOnWiderGraphs) {
  const LabelProblem problem = skipping_chain(300, 4);
  const Labelling exact = find_labels(problem);
  ASSERT_EQ(exact.method, LabelMethod::elimination);
  const Labelling moved = find_labels(problem, {.max_table_entries = 64});
  ASSERT_EQ(moved.method, LabelMethod::moves);
  EXPECT_LE(moved.lower_bound, exact.cost);
  EXPECT_GE(moved.cost, exact.cost);
  EXPECT_LE(moved.cost, exact.cost + exact.cost / 50);
  EXPECT_GE(moved.lower_bound, exact.cost - exact.cost / 4);
  EXPECT_EQ(moved.labels, find_labels(problem, {.max_table_entries = 64}).labels);
}

// One producer whose tensor all nodes of a long chain take.
TEST(Labels, AHubOfManyConsumersIsExact) {
  constexpr int32_t kNodes = 50'000;
  LabelProblem problem{.num_nodes = kNodes, .num_labels = 2, .tables = {{0, 7, 7, 0}}};
  LabelProblem::SharedCost hub{0, {}, 0};
  for (int32_t i = 0; i < kNodes; ++i) {
    problem.costs.insert(problem.costs.end(), {i == 0 ? 0 : 2, i == 0 ? kForbidden : 1});
    if (i > 0) hub.consumers.push_back(i);
    if (i > 1) problem.pairs.push_back({i - 1, i, 0});
  }
  problem.shared = {hub};
  const Labelling found = find_labels(problem);
  EXPECT_EQ(found.method, LabelMethod::elimination);
  EXPECT_EQ(found.cost, kNodes - 1 + 7);
  EXPECT_EQ(find_labels(problem, {.method = LabelMethod::min_cut}).cost, kNodes - 1 + 7);
}

TEST(BinaryCosts, CostsOfAgreementMustNotBeHigher) {
  BinaryCosts costs(2);
  costs.add(0, 5, 2);
  costs.add(1, 0, 1);
  costs.add(0, 1, 0, 4, 2, 0);
  EXPECT_EQ(costs.minimize(), (std::vector<bool>{true, true}));
  EXPECT_THROW(costs.add(0, 1, 1, 0, 0, 0), InternalError);
}

}  // namespace
}  // namespace headrace::graph
