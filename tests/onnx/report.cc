#include "report.h"

#include <map>
#include <optional>
#include <set>

#include "frontend/onnx/op_table.h"
#include "frontend/onnx/read_model.h"
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

// Choices that the list of cases does not show.
constexpr std::string_view kChoices =
    R"(- **Indices out of range** are errors: a constant one of Gather when the model is imported, any other of Gather,
  GatherElements and GatherND when it runs, also where the result has no elements (as numpy; onnxruntime looks at no index
  there). Negative ones count from the end. Along an axis of symbolic length the indices of Gather wrap around instead.
  OneHot gives a row of off-values, as the standard has it.
- **Quantized operators** sum in int32 and multiply the sum once by (scale of a * scale of b / scale of y) in float32;
  halves are rounded to even, as in onnxruntime. QuantizeLinear of 16 bits divides in float32, since opset 23 in the
  scale's dtype. DynamicQuantizeLinear of zeros has the scale 1 (as onnxruntime).
- **Integers**: a division by zero gives 0, as does its remainder (onnxruntime stops with an error); sums, products and the
  negative of the least integer wrap around.
- **Resize** with align_corners and scales that do not give whole sizes: input coordinates come from the size before it is
  rounded down, as in the standard's data; onnxruntime takes the rounded one.
- **NaN**: the first one is the greatest and the least element for ArgMax, ArgMin and Hardmax, as in numpy (onnxruntime
  passes it over, or gives a row of zeros); ReduceMax, ReduceMin, Max and Min give NaN.
- **Pads** below 0 take elements off before the others are added, in every mode (as onnxruntime).
- **MaxUnpool** with an output shape: an index counts in the map that the pads and strides alone give, as in the standard's
  data; onnxruntime takes it in the map of that shape. **LpPool** with ceil_mode takes the mean of a window that sticks out
  over what of it lies within the pads, times the whole window's size, as the standard's reference.
- **LSTM, GRU and RNN**: a sequence whose length is 0 keeps its initial state as the last one (onnxruntime gives zeros). The
  activations Affine and ScaledTanh need their alpha and beta, since the standard has no defaults for them.
- **Random numbers** of RandomNormal, RandomUniform and their Like forms, Bernoulli, Multinomial and Dropout in training
  are the same at each run: they are Threefry's, by the node's `seed`, or without one by the name of its first output.
  Cases that draw are held to dtype, shape, and the same numbers interpreted and compiled.
- **If** is the branch that its condition selects, where that is known when the model is imported (a constant, or a bound
  input). Else it is an `if` of Relay, which the interpreter runs and artifacts do not have yet; both branches must give the
  same types.
- **Declared outputs**: an element type, a rank or a number in the shape of a graph output that is not what the nodes
  compute is an error, as is data outside of the model file that is missing, too short, or not below the model's folder.
)";

// The operators of onnxruntime's domain: no case of the data shows them.
constexpr std::string_view kMicrosoft =
    R"(onnxruntime's optimiser replaces standard operators with those of its domain `com.microsoft`. The importer makes
compositions of them; `python/tests/test_optimised_models.py` compares each with onnxruntime, and models that it optimised.
A model saved with a level above ORT_ENABLE_EXTENDED may have nodes of `com.microsoft.nchwc`, which are refused.

| operator | forms that are refused |
| --- | --- |
| Attention | do_rotary, past_present_share_buffer, past_sequence_length, masks of 3 * batch + 2 numbers |
| BiasGelu, FastGelu, Gelu, QuickGelu | |
| EmbedLayerNormalization | |
| FusedConv | activations that its list in `convert_activation.cc` does not have |
| FusedGemm | as FusedConv |
| FusedMatMul, TransposeMatMul | |
| MultiHeadAttention | past_sequence_length, cache_indirection, masks of 3 * batch + 2 numbers; unidirectional where the queries are not the last positions of the keys |
| NhwcConv, NhwcFusedConv | auto_pad SAME_UPPER and SAME_LOWER |
| RotaryEmbedding | is_packed_batching; a scale other than 1 |
| SkipLayerNormalization | |
| SkipSimplifiedLayerNormalization | its output `mean` |

SimplifiedLayerNormalization, which the optimiser writes in the default domain, is RMSNormalization of any opset.
)";

// Functions of models, which no case has either.
constexpr std::string_view kFunctions =
    R"(A call of a function (`ModelProto.functions`) is replaced with the function's nodes, each of which uses the operator
versions that its function imports. The nodes are named after the call: `layer1/Gelu_2`. An operator of the table takes
precedence over a function of its name, as in onnxruntime, unless the node names an overload. Refused are functions that
call themselves, calls more than 64 deep, more than 2^18 nodes or 256 MB of nodes by calls (each function counts once for
free), and attributes that are graphs.
)";

std::string cases_of(const std::vector<CaseResult>& results, Outcome outcome) {
  std::string text;
  for (const CaseResult& result : results) {
    if (result.outcome == outcome) text += fmt::format("{}{}", text.empty() ? "" : ", ", result.one->name);
  }
  return text + "\n";
}

// Lists for each operator the Relay ops of the case that has the fewest, and what other cases have beside them.
std::string ops_of_operators(const std::vector<CaseResult>& results) {
  struct Row {
    std::optional<std::vector<std::string>> fewest;
    std::set<std::string> all;
  };
  std::map<std::string, Row> rows;
  for (const CaseResult& result : results) {
    if (result.op.empty()) continue;
    Row& row = rows[result.op];
    if (!row.fewest || result.relay_ops.size() < row.fewest->size()) row.fewest = result.relay_ops;
    row.all.insert(result.relay_ops.begin(), result.relay_ops.end());
  }
  std::string text = "| operator | Relay ops | in other cases also |\n| --- | --- | --- |\n";
  for (auto& [op, row] : rows) {
    for (const std::string& known : *row.fewest) row.all.erase(known);
    const std::string ops =
        row.fewest->empty() ? "a constant, or the input itself" : fmt::format("{}", fmt::join(*row.fewest, ", "));
    text += fmt::format("| {} | {} | {} |\n", op, ops, fmt::join(row.all, ", "));
  }
  return text;
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

// Returns the parts that every page has. `others` are of operators that the cases do not show.
static std::string case_parts(const std::vector<CaseResult>& results, const std::vector<CaseResult>& others) {
  std::vector<CaseResult> shown = results;
  shown.insert(shown.end(), others.begin(), others.end());
  return fmt::format(
      "## Refused within a supported operator\n\n{}\n"
      "## Passed with an input compiled in as a constant\n\n"
      "These models have an input, such as a shape or an axis, that must be known when the model is imported.\n\n{}\n"
      "## Interpreted only\n\n"
      "A tensor inside these models has a data-dependent size. The interpreter runs the models; they cannot be "
      "compiled.\n\n{}\n"
      "## Relay ops of each operator\n\n"
      "The table shows which Relay ops the importer makes from an operator. It is made from the cases of "
      "one node, or from a\n"
      "model of the test if an operator has no such case. The second column has the ops of the case with "
      "the fewest ops. The\n"
      "third column has the further ops of other cases, which differ in attributes, inputs, dtypes or ranks.\n\n{}\n"
      "## Operators that are not supported\n\n{}",
      refusals_within(results), cases_of(results, Outcome::passed_bound), cases_of(results, Outcome::interpreted),
      ops_of_operators(shown), refused_ops(results));
}

std::string support_page(const std::vector<CaseResult>& results) {
  return fmt::format(
      "# What of ONNX is supported\n\n"
      "Written by `onnx_data_runner --bless` from the {} cases of Debian's libonnx-testdata; the test `onnx_data` "
      "fails when it is out of date.\nOperators of the default domain, opsets {} to {}; what came after opset 17 is "
      "shown by [onnx-new-opsets.md](onnx-new-opsets.md).\nWhatever is refused of a model comes as one error that "
      "lists every node.\n\n"
      "```\n{}```\n\n"
      "## Supported operators\n\n{}, If\n\n"
      "## Operators of onnxruntime\n\n{}\n"
      "## Functions of the model\n\n{}\n"
      "## What Headrace chose\n\n{}\n{}",
      results.size(), onnx::kOldestOpset, onnx::kNewestOpset, table(results), fmt::join(onnx::supported_ops(), ", "),
      kMicrosoft, kFunctions, kChoices, case_parts(results, other_operators()));
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
      onnx::kNewestOpset, results.size(), table(results), case_parts(results, {}));
}

}  // namespace headrace::onnx_test
