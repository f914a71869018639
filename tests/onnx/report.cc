#include "report.h"

#include <map>
#include <optional>
#include <set>

#include "frontend/onnx/op_table.h"
#include "frontend/onnx/file/read_model.h"
#include "other_operators.h"

namespace headrace::onnx_test {

namespace {

std::string_view name_of(hr_reason reason) {
  switch (reason) {
    case HR_REASON_OP_UNSUPPORTED:
      return "op";
    case HR_REASON_ATTRIBUTE_UNSUPPORTED:
      return "attribute";
    case HR_REASON_DTYPE_UNSUPPORTED:
      return "dtype";
    case HR_REASON_SHAPE_UNSUPPORTED:
      return "shape";
    case HR_REASON_OPSET_UNSUPPORTED:
      return "opset";
    case HR_REASON_DYNAMIC_UNSUPPORTED:
      return "dynamic shape";
    case HR_REASON_BAD_TENSOR:
      return "data";
    case HR_REASON_DATA_DEPENDENT:
      return "value not known";
    default:
      return "other";
  }
}

// Returns the refusal that a case is counted under; an unknown operator takes precedence over unsupported features.
const onnx::NodeRefusal& main_refusal(const CaseResult& result) {
  const onnx::NodeRefusal* chosen = &result.refusals.front();
  for (const onnx::NodeRefusal& refusal : result.refusals) {
    if (refusal.reason == HR_REASON_OP_UNSUPPORTED) return refusal;
    if (chosen->op.empty() && !refusal.op.empty()) chosen = &refusal;
  }
  return *chosen;
}

std::map<std::string, size_t> count_reasons(const std::vector<CaseResult>& results) {
  std::map<std::string, size_t> reasons;
  for (const CaseResult& result : results) {
    if (result.outcome == Outcome::refused) ++reasons[std::string(name_of(main_refusal(result).reason))];
  }
  return reasons;
}

std::string line(std::string_view name, const Totals& totals) {
  return fmt::format("{:<18} {:>5} {:>7} {:>13} {:>12} {:>12} {:>8} {:>7}\n", name, totals.cases, totals.passed(),
                     totals.passed_static, totals.passed_bound, totals.interpreted, totals.refused, totals.failed);
}

std::string table(const std::vector<CaseResult>& results) {
  std::string text = fmt::format("{:<18} {:>5} {:>7} {:>13} {:>12} {:>12} {:>8} {:>7}\n", "suite", "cases", "passed",
                                 "as it is", "input bound", "interpreted", "refused", "failed");
  std::vector<std::pair<std::string, std::vector<CaseResult>>> suites;
  for (const CaseResult& result : results) {
    if (suites.empty() || suites.back().first != result.one->suite) suites.push_back({result.one->suite, {}});
    suites.back().second.push_back(result);
  }
  for (const auto& [name, mine] : suites) text += line(name, count(mine));
  return suites.size() == 1 ? text : text + line("all", count(results));
}

std::string refused_ops(const std::vector<CaseResult>& results) {
  std::map<std::string, size_t> ops;
  for (const CaseResult& result : results) {
    if (result.outcome != Outcome::refused) continue;
    std::set<std::string> mine;
    for (const onnx::NodeRefusal& refusal : result.refusals) {
      if (refusal.reason == HR_REASON_OP_UNSUPPORTED) mine.insert(refusal.op);
    }
    for (const std::string& op : mine) ++ops[op];
  }
  std::string text = "| operator | cases |\n| --- | --- |\n";
  for (const auto& [op, cases] : ops) text += fmt::format("| {} | {} |\n", op, cases);
  return text;
}

std::string refusals_within(const std::vector<CaseResult>& results) {
  std::string text = "| case | operator | reason | message |\n| --- | --- | --- | --- |\n";
  for (const CaseResult& result : results) {
    if (result.outcome != Outcome::refused) continue;
    const onnx::NodeRefusal& refusal = main_refusal(result);
    if (refusal.reason == HR_REASON_OP_UNSUPPORTED || refusal.reason == HR_REASON_OPSET_UNSUPPORTED) continue;
    std::string message = refusal.message.substr(0, refusal.message.find('\n'));
    text += fmt::format("| {}/{} | {} | {} | {} |\n", result.one->suite, result.one->name, refusal.op,
                        name_of(refusal.reason), message);
  }
  return text;
}

// Behaviour that the list of cases does not show.
constexpr std::string_view kChoices =
    R"(
- **Indices out of range** are errors. A constant index of Gather is checked when the model is imported. Any other
  index of Gather, GatherElements and GatherND is checked when the model runs, also if the result has no elements (as in
  numpy; onnxruntime then checks no index). Negative indices count from the end. Along an axis of symbolic length the
  indices of Gather wrap around instead. OneHot gives a row of off-values for such an index, as the standard defines.
- **Quantized operators** sum in int32 and multiply the sum once by (scale of a * scale of b / scale of y) in float32.
  They round halves to even, as onnxruntime does. QuantizeLinear to 16 bits divides in float32, and since opset 23 in
  the dtype of the scale. DynamicQuantizeLinear of a tensor of zeros has the scale 1 (as in onnxruntime).
- **Integers**: a division by zero gives 0, and so does its remainder (onnxruntime stops with an error). Sums, products
  and the negative of the least integer wrap around.
- **Cast** of floats to integers saturates: a number out of range becomes the nearest integer of the dtype, and NaN
  becomes 0. onnxruntime gives other integers, such as the number wrapped around or the least integer of the dtype.
  Integers of 4 and 2 bits wrap around instead, as in the standard's data.
- **Floats of 8 and 4 bits and integers of 4 and 2 bits** are cast, quantized, dequantized and moved; no operator
  computes with them. An element of 4 or 2 bits takes a byte of memory. FLOAT8E8M0 is refused.
- **Resize** with align_corners, if the scales do not give whole sizes: the input coordinates come from the size before
  it is rounded down, as in the standard's data; onnxruntime uses the rounded size.
- **NaN**: for ArgMax, ArgMin and Hardmax the first NaN is the greatest and the least element, as in numpy (onnxruntime
  ignores NaN, or gives a row of zeros). ReduceMax, ReduceMin, Max and Min give NaN.
- **Pads** below 0 remove elements before the other pads add some, in every mode (as in onnxruntime).
- **MaxUnpool** with an output shape: an index counts in the map that the pads and strides alone give, as in the
  standard's data; onnxruntime counts it in the map of that shape.
- **AffineGrid** with align_corners: along an extent of 1 the coordinate is 0 (onnxruntime gives 1, the standard's
  reference -1).
- **ConvTranspose** with auto_pad SAME_UPPER or SAME_LOWER and a kernel below the stride: an extent is n * stride, as in
  the standard's reference; onnxruntime and ONNX's shape inference give (n - 1) * stride + kernel.
- **LpPool** with ceil_mode: for a window that extends past the pads, the mean of its elements within the pads is
  multiplied by the size of the whole window, as in the standard's reference.
- **LSTM, GRU and RNN**: a sequence of length 0 keeps its initial state as the last state (onnxruntime gives zeros). The
  activations Affine and ScaledTanh need alpha and beta, because the standard has no defaults for them. ThresholdedRelu
  without alpha has 1, the default of its operator (onnxruntime has 0). A clip of 0 is refused: every gate would be 0.
- **Random numbers** (RandomNormal, RandomUniform and their Like forms, Bernoulli, Multinomial, Dropout in training) are
  the same in each run. The generator is Threefry; the seed is the node's `seed` or comes from the name of its first
  output. The tests check the dtype and the shape, and that interpreted and compiled programs draw the same numbers.
- **If** is replaced by the selected branch if its condition is known when the model is imported (a constant, or a bound
  input). Otherwise it becomes an `if` of Relay, which the interpreter runs and artifacts cannot run yet; both branches
  must then give the same types.
- **Refused, though onnxruntime computes them**: an Einsum label of extent 1 against a larger one; ReduceMean over an empty
  axis; TopK with k = 0; linear Resize of uint8; RoiAlign with mode max.
- **Declared outputs**: it is an error if the nodes compute another element type, rank or dimension than a graph output
  declares.
- **Data outside of the model file** must lie below the model's folder. It is an error if it is missing or too short.
)";

// The operators of onnxruntime's domain: no case of the data shows them.
constexpr std::string_view kMicrosoft =
    R"(
onnxruntime's optimiser replaces standard operators with operators of its domain `com.microsoft`. The importer replaces
each by several Relay ops. `python/tests/test_optimised_models.py` compares each operator, and some optimised models,
with onnxruntime. A model saved with a level above ORT_ENABLE_EXTENDED may contain nodes of `com.microsoft.nchwc`,
which are refused.

| operator | forms that are refused |
| --- | --- |
| Attention | do_rotary, past_present_share_buffer, past_sequence_length, masks of 3 * batch + 2 numbers |
| BiasGelu, FastGelu, Gelu, QuickGelu | |
| EmbedLayerNormalization | |
| FusedConv | activations that are not in the list in `compositions/activation.cc` |
| FusedGemm | activations, as for FusedConv |
| FusedMatMul, TransposeMatMul | |
| MultiHeadAttention | past_sequence_length, cache_indirection, masks of 3 * batch + 2 numbers; unidirectional where the queries are not the last positions of the keys |
| NhwcConv, NhwcFusedConv | auto_pad SAME_UPPER and SAME_LOWER |
| RotaryEmbedding | is_packed_batching; a scale other than 1 |
| SkipLayerNormalization | |
| SkipSimplifiedLayerNormalization | its output `mean` |

SimplifiedLayerNormalization, which the optimiser writes in the default domain, is imported as RMSNormalization, in any
opset.
)";

// Functions of models, which no case has either.
constexpr std::string_view kFunctions =
    R"(
A call of a function (`ModelProto.functions`) is replaced with the function's nodes, each of which uses the operator
versions that its function imports. The nodes are named after the call: `layer1/Gelu_2`. An operator of the table takes
precedence over a function of its name, as in onnxruntime, unless the node names an overload. Headrace refuses an
operator that is newer than the opset that its graph or function imports (onnxruntime inlines functions first and
compares with the model's opset), functions that use the default domain without importing it, functions that call
themselves, calls nested more than 64 deep, attributes that are graphs, and models whose calls add more than 2^18 nodes
or 256 MB of nodes (the first call of each function is not counted).
)";

// Explains the table of operators and ops.
constexpr std::string_view kOpsTable =
    R"(The table shows which Relay ops the importer makes from an operator. It is made from tests of one node, and for
operators that these do not show, or not in their usual form, from models in tests/onnx/other_operators.cc. Column 2
says where the operator is registered:

- `single` (`src/frontend/onnx/single/`): one Relay op computes the operator, so a backend can claim it. Other ops adapt
  its operands and results: casts, changes of shape, slices, and indices that count from the end.
- `composed` (`src/frontend/onnx/compositions/`): Relay has no op for the whole. QLinearConv and QLinearMatMul contain
  `qnn.conv2d` and `qnn.dense`, but `qnn.requantize` rounds halves up or away from zero, and ONNX rounds them to even.
  Multinomial takes logarithms, and `random.multinomial` takes probabilities.

A form of a single operator that the op does not have is composed, too: for example LayerNormalization if it also gives
its mean, and Resize by a scale that is not the ratio of the sizes. Column 3: ops of the simplest test. Column 4: ops
seen only in other tests, which differ in attributes, inputs, dtypes or ranks.
)";

// Returns a section that lists the cases with an outcome; empty if there are none.
std::string section_of(const std::vector<CaseResult>& results, Outcome outcome, std::string_view title,
                       std::string_view meaning) {
  std::vector<std::string> names;
  for (const CaseResult& result : results) {
    if (result.outcome == outcome) names.push_back(result.one->name);
  }
  return names.empty() ? "" : fmt::format("## {}\n\n{}\n\n{}\n\n", title, meaning, fmt::join(names, ", "));
}

// The Relay ops of an operator in its cases.
struct OperatorOps {
  std::optional<std::vector<std::string>> fewest;  // ops of the case with the fewest
  std::set<std::string> all;
};

std::map<std::string, OperatorOps> collect_ops(const std::vector<CaseResult>& results) {
  std::map<std::string, OperatorOps> operators;
  for (const CaseResult& result : results) {
    if (result.op.empty()) continue;
    OperatorOps& row = operators[result.op];
    if (!row.fewest || result.relay_ops.size() < row.fewest->size()) row.fewest = result.relay_ops;
    row.all.insert(result.relay_ops.begin(), result.relay_ops.end());
  }
  return operators;
}

std::string_view form_name(std::string_view op) {
  const auto form = onnx::find_form("", op);
  if (!form) return "its branch";  // If, which has no row
  return *form == onnx::OpForm::single ? "single" : "composed";
}

// Lists for each operator its form, the Relay ops of the case with the fewest ops, and the further ops of other cases.
std::string ops_of_operators(const std::vector<CaseResult>& results) {
  std::string text = "| operator | form | Relay ops | only in other tests |\n| --- | --- | --- | --- |\n";
  for (auto& [op, row] : collect_ops(results)) {
    std::set<std::string> others = row.all;
    for (const std::string& known : *row.fewest) others.erase(known);
    const std::string ops =
        row.fewest->empty() ? "a constant, or the input itself" : fmt::format("{}", fmt::join(*row.fewest, ", "));
    text += fmt::format("| {} | {} | {} | {} |\n", op, form_name(op), ops, fmt::join(others, ", "));
  }
  return text;
}

// Returns how many of the ops compute: not those that adapt operands and results. Indices that count from the end are
// adapted by three ops together.
size_t count_computing(const std::vector<std::string>& ops) {
  static const std::set<std::string, std::less<>> kAdapting = {
      "broadcast_to", "cast",    "concatenate", "expand_dims",   "reshape",   "reshape_like", "reverse",
      "split",        "squeeze", "stack",       "strided_slice", "transpose", "zeros_like"};
  static const std::set<std::string, std::less<>> kIndices = {"add", "less", "where"};
  size_t count = 0, of_indices = 0;
  for (const std::string& op : ops) {
    count += kAdapting.contains(op) ? 0 : 1;
    of_indices += kIndices.contains(op) ? 1 : 0;
  }
  return of_indices == kIndices.size() ? count - of_indices : count;
}

}  // namespace

Totals count(const std::vector<CaseResult>& results) {
  Totals totals{.cases = results.size()};
  for (const CaseResult& result : results) {
    totals.passed_static += result.outcome == Outcome::passed_static;
    totals.passed_bound += result.outcome == Outcome::passed_bound;
    totals.interpreted += result.outcome == Outcome::interpreted;
    totals.refused += result.outcome == Outcome::refused;
    totals.failed += result.outcome == Outcome::failed;
  }
  return totals;
}

std::string summary(const std::vector<CaseResult>& results) {
  std::string text = table(results) + "refused by reason:";
  const auto reasons = count_reasons(results);
  for (const auto& [reason, cases] : reasons) text += fmt::format(" {} {}", reason, cases);
  text += reasons.empty() ? " none\n" : "\n";
  for (const CaseResult& result : results) {
    if (result.outcome == Outcome::failed)
      text += fmt::format("FAILED {}/{}: {}\n", result.one->suite, result.one->name, result.message);
  }
  return text;
}

// Returns the results with those of operators that the cases do not show.
static std::vector<CaseResult> with_others(std::vector<CaseResult> results) {
  const std::vector<CaseResult> others = other_operators();
  results.insert(results.end(), others.begin(), others.end());
  return results;
}

std::vector<std::string> form_mistakes(const std::vector<CaseResult>& results) {
  std::vector<std::string> mistakes;
  for (const auto& [op, row] : collect_ops(with_others(results))) {
    if (onnx::find_form("", op) == onnx::OpForm::single && count_computing(*row.fewest) > 1)
      mistakes.push_back(
          fmt::format("{} is registered as one Relay op, but becomes {}", op, fmt::join(*row.fewest, ", ")));
  }
  return mistakes;
}

// Returns the parts that every page has. `shown` has the results whose operators the table lists.
static std::string case_parts(const std::vector<CaseResult>& results, const std::vector<CaseResult>& shown) {
  return fmt::format(
      "## Refused forms of supported operators\n\n{}\n{}{}"
      "## Relay ops of each operator\n\n"
      "{}\n{}\n"
      "## Operators that are not supported\n\n{}",
      refusals_within(results),
      section_of(results, Outcome::passed_bound, "Passed with an input compiled in as a constant",
                 "These models have an input, such as a shape or an axis, that must be known when the model is "
                 "imported."),
      section_of(results, Outcome::interpreted, "Interpreted only",
                 "A tensor inside these models has a data-dependent size. The interpreter runs the models; they cannot "
                 "be compiled."),
      kOpsTable, ops_of_operators(shown), refused_ops(results));
}

std::string support_page(const std::vector<CaseResult>& results) {
  return fmt::format(
      "# Supported parts of ONNX\n\n"
      "`onnx_data_runner --bless` writes this page from the {} cases of Debian's libonnx-testdata, and the test "
      "`onnx_data`\nfails if the page is out of date. Headrace imports operators of the default domain, opsets {} to "
      "{}.\n[onnx-new-opsets.md](onnx-new-opsets.md) has the cases of later opsets than 17. If Headrace refuses a "
      "model, one error\nlists every node that it cannot import.\n\n"
      "```\n{}```\n\n"
      "## Supported operators\n\n{}, If\n\n"
      "## Operators of onnxruntime\n{}\n"
      "## Functions of the model\n{}\n"
      "## Behaviour where other tools differ\n{}\n{}",
      results.size(), onnx::kOldestOpset, onnx::kNewestOpset, table(results), fmt::join(onnx::supported_ops(), ", "),
      kMicrosoft, kFunctions, kChoices, case_parts(results, with_others(results)));
}

std::string new_opsets_page(const std::vector<CaseResult>& results) {
  return fmt::format(
      "# Support of ONNX's opsets 18 to {}\n\n"
      "The test `onnx_new_opsets` writes this page if HEADRACE_BLESS=1 is set, and fails if the page is "
      "out of date. It runs\n"
      "{} cases that the `onnx` package of deps/py.txt makes for operators changed since opset 17.\n"
      "tests/onnx/make_node_cases.py names the cases that are left out. [onnx-support.md](onnx-support.md) "
      "lists the operators.\n\n"
      "```\n{}```\n\n{}",
      onnx::kNewestOpset, results.size(), table(results), case_parts(results, results));
}

}  // namespace headrace::onnx_test
