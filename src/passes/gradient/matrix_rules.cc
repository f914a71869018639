// Gradients of products of matrices, and of sums of products in general.
#include <map>
#include <set>

#include "arith/canonical.h"
#include "ops/loops/dims.h"
#include "ops/nn/matmul.h"
#include "ops/op_handles.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/creation.h"
#include "ops/tensor/einsum.h"
#include "ops/tensor/reduce.h"
#include "ops/tensor/shape.h"
#include "passes/gradient/rule_tools.h"

namespace headrace::passes::gradient_rules {

namespace {

// The last two dimensions change places.
Expr turned(const Expr& matrix, size_t rank = 2) {
  Shape axes;
  for (size_t i = 0; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  std::swap(axes[rank - 2], axes[rank - 1]);
  return ops::transpose(matrix, axes);
}
// Reshapes a tensor to one matrix with rows of `width` elements, as many as `like` has.
Expr as_rows(const Expr& tensor, const Expr& like, int64_t width) {
  const auto shape = known_shape_of(like);
  const int64_t rows = shape ? num_elements(Shape(shape->begin(), shape->end() - 1)) : -1;
  return ops::reshape(tensor, {rows, width}, rows == 0 || width == 0);
}

// y = x w^T: g w, and g^T x, over the rows of all batches
Gradients grad_dense(const GradientSite& s) {
  const Shape weight = s.arg_shape(1);
  const Expr g = as_rows(operand_gradient(s), s.result, weight[0]), x = as_rows(s.arg(0), s.arg(0), weight[1]);
  return {reshaped_as(ops::matmul(g, s.arg(1)), s.arg(0)), ops::matmul(turned(g), x)};
}
// y = a b: g b^T, and a^T g. `a` has any batch dimensions, b is a matrix: the rows of all batches are those of one
// matrix.
Gradients grad_matmul(const GradientSite& s) {
  const auto& attrs = s.call.attrs_as<ops::MatmulAttrs>();
  const size_t rank = tensor_of(s.arg(0)).shape.size();
  const Shape matrix = s.arg_shape(1);
  const Expr rows_of_a = attrs.transpose_a ? turned(s.arg(0), rank) : s.arg(0);
  const Expr b = attrs.transpose_b ? turned(s.arg(1)) : s.arg(1);
  const Expr a = as_rows(rows_of_a, s.result, matrix[attrs.transpose_b ? 1 : 0]);
  const Expr g = as_rows(operand_gradient(s), s.result, matrix[attrs.transpose_b ? 0 : 1]);
  const Expr by_rows = ops::matmul(g, turned(b)), by_b = ops::matmul(turned(a), g);
  const Expr by_a =
      attrs.transpose_a ? turned(ops::reshape_like(by_rows, rows_of_a), rank) : reshaped_as(by_rows, s.arg(0));
  return {by_a, attrs.transpose_b ? turned(by_b) : by_b};
}
// Applies the matrix rule to each of a batch; where one matrix serves all, its gradient is the sum.
Gradients grad_batch_matmul(const GradientSite& s) {
  const auto& attrs = s.call.attrs_as<ops::BatchMatmulAttrs>();
  const auto product = [](const Expr& a, const Expr& b) {
    ops::BatchMatmulAttrs plain;
    plain.transpose_b = false;
    return ops::batch_matmul(a, b, plain);
  };
  const auto of_batch = [&](const Expr& gradient, size_t i) {
    const PrimExpr &own = tensor_of(s.arg(i)).shape[0], &all = tensor_of(s.result).shape[0];
    if (arith::is_equal(own, all)) return gradient;
    if (as_int(own) != 1) return ops::binary(op::kCollapseSumLike, gradient, s.arg(i));
    return ops::reduce(op::kSum, gradient, Shape{0}, true);
  };
  const Expr g = operand_gradient(s);
  const Expr a = attrs.transpose_a ? turned(s.arg(0), 3) : s.arg(0),
             b = attrs.transpose_b ? turned(s.arg(1), 3) : s.arg(1);
  const Expr by_a = product(g, turned(b, 3)), by_b = product(turned(a, 3), g);
  return {of_batch(attrs.transpose_a ? turned(by_a, 3) : by_a, 0),
          of_batch(attrs.transpose_b ? turned(by_b, 3) : by_b, 1)};
}

// A letter for each label of an einsum: those of "..." get letters that it does not use.
class EinsumLetters {
 public:
  explicit EinsumLetters(const ops::EinsumForm& form) {
    for (const auto& labels : form.operands) add(labels, false);
    for (const auto& labels : form.operands) add(labels, true);
  }
  bool has_all() const { return has_all_; }
  std::string term(const std::vector<int>& labels) const {
    std::string text;
    for (const int label : labels) text += letters_.at(label);
    return text;
  }

 private:
  void add(const std::vector<int>& labels, bool rest) {
    for (const int label : labels) {
      if (letters_.contains(label) || (label < 0) != rest) continue;
      const size_t next = rest ? free_letter() : 0;
      has_all_ = has_all_ && next != std::string::npos;
      const char letter = rest ? kAll[has_all_ ? next : 0] : static_cast<char>(label);
      letters_.emplace(label, letter);
      used_ += letter;
    }
  }
  size_t free_letter() const { return kAll.find_first_not_of(used_); }

  static constexpr std::string_view kAll = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::map<int, char> letters_;
  std::string used_;
  bool has_all_ = true;
};

// An operand of an einsum, without the axes of one element that "..." broadcasts.
struct EinsumOperand {
  Expr whole, tensor;
  std::vector<int> labels;
  std::vector<PrimExpr> dims;
};
EinsumOperand einsum_operand(const Expr& tensor, const Type& type, const std::vector<int>& labels) {
  EinsumOperand result{tensor, tensor, {}, {}};
  Shape broadcast;
  for (size_t i = 0; i < labels.size(); ++i) {
    const PrimExpr& dim = type.as<TensorTypeNode>()->shape[i];
    if (labels[i] < 0 && as_int(dim) == 1) {
      broadcast.push_back(static_cast<int64_t>(i));
    } else {
      result.labels.push_back(labels[i]);
      result.dims.push_back(dim);
    }
  }
  if (!broadcast.empty()) result.tensor = ops::squeeze(tensor, broadcast);
  return result;
}

// Gradient by operand k: the sum of the products of the gradient with the other operands, over the labels that k lacks.
// A vector of ones replaces an axis that only k has, since the result sums over it.
Expr by_operand(const GradientSite& s, const std::vector<EinsumOperand>& operands, const ops::EinsumForm& form,
                const EinsumLetters& letters, size_t k) {
  const auto& equation = s.call.attrs_as<ops::EinsumAttrs>().equation;
  std::set<int> here(form.output.begin(), form.output.end());
  Array<Expr> factors{s.gradient};
  std::string terms = letters.term(form.output);
  for (size_t i = 0; i < operands.size(); ++i) {
    if (i == k) continue;
    factors.push_back(operands[i].tensor);
    terms += "," + letters.term(operands[i].labels);
    here.insert(operands[i].labels.begin(), operands[i].labels.end());
  }
  const EinsumOperand& own = operands[k];
  if (std::set<int>(own.labels.begin(), own.labels.end()).size() != own.labels.size())
    refuse(s, fmt::format("no gradient where an operand has one axis twice, as operand {} of '{}'", k, equation));
  for (size_t i = 0; i < own.labels.size(); ++i) {
    if (!here.insert(own.labels[i]).second) continue;
    const auto size = as_int(own.dims[i]);
    if (!size)
      refuse(s, fmt::format("no gradient where an axis of unknown size is only summed up, as in '{}'", equation));
    factors.push_back(ops::ones({*size}, tensor_of(s.result).dtype));
    terms += "," + letters.term({own.labels[i]});
  }
  const Expr sum = ops::einsum(factors, terms + "->" + letters.term(own.labels));
  return own.whole == own.tensor ? sum : ops::reshape_like(sum, own.whole);
}
Gradients grad_einsum(const GradientSite& s) {
  const auto* tuple = s.arg(0).as<relay::TupleNode>();
  std::vector<size_t> ranks;
  for (const Type& type : item_types(s)) ranks.push_back(type.as<TensorTypeNode>()->shape.size());
  const ops::EinsumForm form = ops::einsum_form(s.call.attrs_as<ops::EinsumAttrs>().equation, ranks);
  const EinsumLetters letters(form);
  if (!letters.has_all()) refuse(s, "no gradient of an equation with more than 52 axes");
  std::vector<EinsumOperand> operands;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const Expr item =
        tuple != nullptr ? tuple->items[i] : Expr(relay::make_tuple_get_item(s.arg(0), static_cast<int64_t>(i)));
    operands.push_back(einsum_operand(item, item_types(s)[i], form.operands[i]));
  }
  Array<Expr> gradients;
  for (size_t k = 0; k < operands.size(); ++k) gradients.push_back(by_operand(s, operands, form, letters, k));
  return {relay::make_tuple(gradients)};
}

constexpr GradientRow kMatrixRows[] = {
    {op::kEinsum, grad_einsum},
    {op::kBatchMatmul, grad_batch_matmul},
    {op::kDense, grad_dense},
    {op::kMatmul, grad_matmul},
};

}  // namespace

std::span<const GradientRow> matrix_gradients() { return kMatrixRows; }

}  // namespace headrace::passes::gradient_rules
