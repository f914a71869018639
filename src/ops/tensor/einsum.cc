#include "ops/tensor/einsum.h"

#include <algorithm>
#include <map>

#include "arith/canonical.h"
#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/loops/element.h"
#include "ops/loops/move.h"

namespace headrace::ops {

void EinsumAttrs::fields(FieldList<EinsumAttrs>& f) {
  f.field<&EinsumAttrs::equation>("equation", {.doc = "the axes of each operand and of the result: ij,jk->ik"});
}

namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::string without_spaces(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c != ' ') result += c;
  }
  return result;
}

// Returns a term with its "...", at most one, as the character '.'.
std::string read_term(std::string_view term, std::string_view equation) {
  std::string letters;
  for (size_t i = 0; i < term.size(); ++i) {
    if (is_letter(term[i])) {
      letters += term[i];
    } else if (term.substr(i, 3) == "..." && letters.find('.') == std::string::npos) {
      letters += '.';
      i += 2;
    } else {
      throw_user_error("equation '{}': expected letters and at most one '...', got '{}'", equation, term);
    }
  }
  return letters;
}

// Returns the labels of a term of `rank` axes.
std::vector<int> labels_of(std::string_view term, size_t rank) {
  std::vector<int> labels;
  for (const char c : term) {
    if (c != '.') labels.push_back(c);
    for (size_t i = rank - (term.size() - 1); c == '.' && i > 0; --i) labels.push_back(-static_cast<int>(i));
  }
  return labels;
}

std::vector<std::string> operand_terms(std::string_view text, std::string_view equation,
                                       const std::vector<size_t>& ranks) {
  std::vector<std::string> terms;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    terms.push_back(read_term(text.substr(begin, comma - begin), equation));
    begin = comma + 1;
  }
  if (terms.size() != ranks.size())
    throw_user_error("equation '{}' has {} operands, but {} are given", equation, terms.size(), ranks.size());
  for (size_t i = 0; i < terms.size(); ++i) {
    const bool has_rest = terms[i].find('.') != std::string::npos;
    const size_t named = terms[i].size() - (has_rest ? 1 : 0);
    if (has_rest ? named > ranks[i] : named != ranks[i])
      throw_user_error("equation '{}': operand {} has {} dimensions, its term '{}' names {}", equation, i, ranks[i],
                       terms[i], named);
  }
  return terms;
}

// The labels of all operands with how often each occurs, those of "..." first, the letters in their order.
using Counts = std::map<int, int>;

std::vector<int> implicit_output(const Counts& counts) {
  std::vector<int> output;
  for (const auto& [label, count] : counts) {
    if (label < 0 || count == 1) output.push_back(label);
  }
  return output;
}

std::vector<int> explicit_output(std::string_view text, std::string_view equation, const Counts& counts) {
  const std::string term = read_term(text, equation);
  std::vector<int> output;
  for (const char c : term) {
    if (c == '.') {
      for (const auto& [label, count] : counts) {
        if (label < 0) output.push_back(label);
      }
      continue;
    }
    if (!counts.contains(c)) throw_user_error("equation '{}': no operand has the axis '{}'", equation, c);
    if (std::find(output.begin(), output.end(), c) != output.end())
      throw_user_error("equation '{}': the result has the axis '{}' twice", equation, c);
    output.push_back(c);
  }
  const bool has_rest = !counts.empty() && counts.begin()->first < 0;
  if (has_rest && term.find('.') == std::string::npos)
    throw_user_error("equation '{}': the axes of '...' are missing in the result; write '...' there, too", equation);
  return output;
}

Type relate_einsum(const RelationInput& input) {
  const std::vector<TensorType> operands = input.tensors(0);
  if (operands.empty()) input.fail("needs at least one tensor");
  std::vector<size_t> ranks;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i]) return {};
    check_same_dtype(input, operands[0], operands[i], fmt::format("operand {}", i));
    ranks.push_back(operands[i]->shape.size());
  }
  if (operands[0]->dtype.is_bool()) input.fail(fmt::format("operands must be numbers, got {}", show(operands[0])));
  EinsumForm form;
  try {
    form = einsum_form(input.call.attrs_as<EinsumAttrs>().equation, ranks);
  } catch (const UserError& error) {
    input.fail(error.message());
  }
  std::map<int, PrimExpr> sizes;
  for (size_t i = 0; i < operands.size(); ++i) {
    for (size_t axis = 0; axis < ranks[i]; ++axis) {
      const int label = form.operands[i][axis];
      const PrimExpr& mine = operands[i]->shape[axis];
      const auto [it, is_new] = sizes.emplace(label, mine);
      if (is_new) continue;
      const auto joined = label < 0                             ? broadcast_dims(it->second, mine)
                          : arith::is_unequal(it->second, mine) ? std::nullopt
                                                                : unify_dims(it->second, mine);
      if (!joined)
        input.fail(fmt::format("axis {} of operand {} is {}, and {} elsewhere in '{}'", axis, i, to_string(mine),
                               to_string(it->second), input.call.attrs_as<EinsumAttrs>().equation));
      it->second = *joined;
    }
  }
  Array<PrimExpr> dims;
  for (const int label : form.output) dims.push_back(sizes.at(label));
  return make_tensor_type(dims, operands[0]->dtype);
}

std::vector<NDArray> eval_einsum(const EvalInput& input) {
  std::vector<size_t> ranks;
  for (const NDArray& operand : input.args) ranks.push_back(operand.shape().size());
  const EinsumForm form = einsum_form(input.attrs<EinsumAttrs>().equation, ranks);
  const NDArray out = input.make_output();
  Shape sizes(form.output.size() + form.summed.size(), 1);
  std::vector<Shape> strides;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const Shape& shape = input.args[i].shape();
    const Shape own = dense_strides(shape);
    strides.emplace_back(sizes.size(), 0);
    for (size_t axis = 0; axis < ranks[i]; ++axis) {
      const size_t place = form.place_of(form.operands[i][axis]);
      const bool is_repeated = form.operands[i][axis] < 0 && shape[axis] == 1;
      if (!is_repeated) sizes[place] = shape[axis], strides.back()[place] += own[axis];
    }
  }
  const auto rank = static_cast<std::ptrdiff_t>(form.output.size());
  const Shape summed(sizes.begin() + rank, sizes.end());
  dispatch_number(out.dtype(), [&]<typename T>() {
    int64_t at = 0;
    for_each_index(out.shape(), [&](const Shape& index) {
      Compute<T> total = 0;
      constexpr int64_t kStepsOfAFactor = 8;  // its place is computed anew each time
      input.spend(num_elements(summed) * static_cast<int64_t>(strides.size()) * kStepsOfAFactor);
      for_each_index(summed, [&](const Shape& inner) {
        Shape place = index;
        place.insert(place.end(), inner.begin(), inner.end());
        Compute<T> product = 1;
        for (size_t i = 0; i < strides.size(); ++i)
          product = wrapping_mul(product, Elements<T>(input.args[i])[dot(place, strides[i])]);
        total = wrapping_add(total, product);
      });
      Elements<T>(out).set(at++, total);
    });
  });
  return {out};
}

}  // namespace

size_t EinsumForm::place_of(int label) const {
  const auto found = std::find(output.begin(), output.end(), label);
  if (found != output.end()) return static_cast<size_t>(found - output.begin());
  return output.size() + static_cast<size_t>(std::find(summed.begin(), summed.end(), label) - summed.begin());
}

EinsumForm einsum_form(std::string_view equation, const std::vector<size_t>& ranks) {
  const std::string text = without_spaces(equation);
  const size_t arrow = text.find("->");
  const std::vector<std::string> terms = operand_terms(std::string_view(text).substr(0, arrow), equation, ranks);
  EinsumForm form;
  Counts counts;
  for (size_t i = 0; i < terms.size(); ++i) {
    form.operands.push_back(labels_of(terms[i], ranks[i]));
    for (const int label : form.operands.back()) ++counts[label];
  }
  form.output = arrow == std::string::npos
                    ? implicit_output(counts)
                    : explicit_output(std::string_view(text).substr(arrow + 2), equation, counts);
  for (const auto& operand : form.operands) {
    for (const int label : operand) {
      const auto is_label = [label](const std::vector<int>& list) {
        return std::find(list.begin(), list.end(), label) != list.end();
      };
      if (!is_label(form.output) && !is_label(form.summed)) form.summed.push_back(label);
    }
  }
  return form;
}

void register_einsum_op() {
  OpBuilder(
      "einsum",
      "The sum of products of a tuple of tensors, as numpy's einsum: T[...], T[...], ... -> T[...] by an equation "
      "such as ij,jk->ik. Axes of one letter agree, those of ... broadcast, what the result does not name is "
      "summed; without -> the result has the letters that occur once. float16 and bfloat16 sum in float32; "
      "integers wrap.")
      .arg("data", "Tuple of tensors", "T[...], T[...], ..., numbers: a tensor for each term of the equation")
      .attrs<EinsumAttrs>()
      .relation(relate_einsum)
      .fusion(FusionKind::anchor)
      .level(11)
      .eval(eval_einsum);
}

Expr einsum(Array<Expr> data, std::string equation, Span span) {
  return call_with<EinsumAttrs>("einsum", {relay::make_tuple(std::move(data))}, std::move(span),
                                [&](auto& a) { a.equation = std::move(equation); });
}

}  // namespace headrace::ops
