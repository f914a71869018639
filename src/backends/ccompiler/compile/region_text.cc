#include "backends/ccompiler/compile/region_text.h"

#include <headrace/kernel_abi.h>

#include <cmath>

#include "backends/ccompiler/compile/ops.h"
#include "codegen/codegen_c.h"
#include "relay/leaves.h"
#include "relay/match.h"
#include "relay/visit.h"
#include "tensor/ndarray.h"
#include "tensor/strides.h"

namespace headrace::backends::ccompiler {

namespace {

using relay::CallNode;
using relay::ConstantNode;

// A tensor of the region: how the text names it, and its dtype and sizes.
struct Tensor {
  std::string name;
  DataType dtype = {};
  Shape shape = {};
  size_t call = SIZE_MAX;  // the call that computes it; none for parameters and constants
};

Tensor tensor_of(const Type& type) {
  const auto* tensor = type.as<TensorTypeNode>();
  return {.name = "", .dtype = tensor->dtype, .shape = *as_shape(tensor->shape)};
}

int64_t nbytes_of(const Tensor& tensor) {
  const int64_t bytes = num_elements(tensor.shape) * static_cast<int64_t>(tensor.dtype.bytes());
  return (bytes + HR_ALIGNMENT - 1) / HR_ALIGNMENT * HR_ALIGNMENT;
}

// Returns a number as C writes it, to the last bit.
std::string literal(const NDArray& data, int64_t index) {
  const DataType dtype = data.dtype();
  if (dtype == DataType::int_(64)) {
    const int64_t value = data.data<int64_t>()[index];
    return value == INT64_MIN ? "INT64_MIN" : fmt::format("INT64_C({})", value);
  }
  if (dtype == DataType::int_(32)) {
    const int32_t value = data.data<int32_t>()[index];
    return value == INT32_MIN ? "INT32_MIN" : fmt::format("{}", value);
  }
  const double value = element_as_double(data.tensor(), index);
  if (std::isnan(value)) return "NAN";
  if (std::isinf(value)) return value > 0 ? "INFINITY" : "-INFINITY";
  return fmt::format("{:a}{}", value, dtype == DataType::float_(32) ? "f" : "");
}

// Gives intermediate values places in the workspace: each the first that is free from its call to its last use.
class Workspace {
 public:
  // Returns the offset of a value of `nbytes` that is written by call `from` and last read by call `to`.
  int64_t place(int64_t nbytes, size_t from, size_t to) {
    int64_t offset = 0;
    bool is_free = false;
    while (!is_free) {
      is_free = true;
      for (const Piece& piece : pieces_) {
        const bool meets = piece.from <= to && from <= piece.to;
        if (!meets || offset + nbytes <= piece.offset || piece.offset + piece.nbytes <= offset) continue;
        offset = piece.offset + piece.nbytes;
        is_free = false;
      }
    }
    pieces_.push_back({offset, nbytes, from, to});
    size_ = std::max(size_, offset + nbytes);
    return offset;
  }
  int64_t size() const { return size_; }

 private:
  struct Piece {
    int64_t offset, nbytes;
    size_t from, to;
  };
  std::vector<Piece> pieces_;
  int64_t size_ = 0;
};

class Writer {
 public:
  explicit Writer(const partition::RegionSource& region) : name_(region.name), function_(*region.function) {}

  Expected<RegionText> write() {
    std::optional<Refusal> refusal;
    for (const relay::Var& param : function_.params) {
      for (const Type& leaf : leaves_of(param->checked_type())) {
        if (!refusal) refusal = refusal_of(takes(leaf), fmt::format("the parameter '{}'", param->name_hint));
      }
      if (!refusal) add_parameter(param);
    }
    if (refusal) return *std::move(refusal);
    relay::post_order(
        function_.body,
        [&](const Expr& expr) {
          if (const auto* let = expr.as<relay::LetNode>()) let_values_[let->var.get()] = let->value;
          return !expr.is<relay::FunctionNode>();
        },
        [&](const Expr& expr) {
          if (!refusal) refusal = visit(expr);
        });
    if (refusal) return *std::move(refusal);
    for (const size_t tensor : tensors_of_.at(function_.body.get())) outputs_.push_back(tensor);
    return RegionText{.text = constants_ + functions_ + body(), .workspace_bytes = workspace_.size()};
  }

 private:
  using Tensors = std::vector<size_t>;

  static std::optional<Refusal> refusal_of(const partition::Verdict& verdict, std::string_view what) {
    if (verdict.ok()) return std::nullopt;
    return Refusal{verdict.reason, fmt::format("{}: {}", what, verdict.message)};
  }

  void add_parameter(const relay::Var& param) {
    Tensors& own = tensors_of_[param.get()];
    for (const Type& leaf : leaves_of(param->checked_type())) {
      own.push_back(tensors_.size());
      Tensor tensor = tensor_of(leaf);
      tensor.name = fmt::format("i{}", num_inputs_++);
      tensors_.push_back(std::move(tensor));
    }
  }

  std::optional<Refusal> visit(const Expr& expr) {
    if (expr.is<OpNode>() || tensors_of_.contains(expr.get())) return std::nullopt;
    if (const auto* call = expr.as<CallNode>(); call != nullptr && call->as_op() != nullptr) return visit_call(*call);
    Tensors own;
    if (const auto* constant = expr.as<ConstantNode>()) {
      if (auto refusal = refusal_of(takes(expr->checked_type()), "a constant")) return refusal;
      own = {add_constant(constant->data)};
    } else if (const auto bound = let_values_.find(expr.get()); bound != let_values_.end()) {
      own = tensors_of_.at(bound->second.get());
    } else if (const auto* let = expr.as<relay::LetNode>()) {
      own = tensors_of_.at(let->body.get());
    } else if (const auto* tuple = expr.as<relay::TupleNode>()) {
      for (const Expr& item : tuple->items) {
        const Tensors& more = tensors_of_.at(item.get());
        own.insert(own.end(), more.begin(), more.end());
      }
    } else if (const auto* item = expr.as<relay::TupleGetItemNode>()) {
      own = relay::leaves_of_item(*item, tensors_of_.at(item->tuple.get()));
    } else {
      return Refusal{HR_REASON_OP_UNSUPPORTED, fmt::format("the region holds a {}, which has no C text", expr->key())};
    }
    tensors_of_[expr.get()] = std::move(own);
    return std::nullopt;
  }

  size_t add_constant(const NDArray& data) {
    Tensor tensor{.name = fmt::format("{}_c{}", name_, num_constants_++), .dtype = data.dtype(), .shape = data.shape()};
    constants_ += fmt::format("static const {} {}[] = {{", c_type(data.dtype()), tensor.name);
    for (int64_t i = 0; i < data.num_elements(); ++i)
      constants_ += fmt::format("{}{}", i == 0 ? "" : i % 8 == 0 ? ",\n  " : ", ", literal(data, i));
    constants_ += data.num_elements() == 0 ? "0};\n" : "};\n";
    tensors_.push_back(std::move(tensor));
    return tensors_.size() - 1;
  }

  std::optional<Refusal> visit_call(const CallNode& call) {
    if (auto refusal = refusal_of(supports(call), fmt::format("the call of '{}'", call.as_op()->name))) return refusal;
    Tensors operands;
    for (const Expr& arg : call.args) operands.push_back(tensors_of_.at(arg.get()).at(0));
    Tensor result = tensor_of(call.checked_type());
    result.call = calls_.size();
    for (const size_t operand : operands) last_use_[operand] = calls_.size();
    tensors_of_[&call] = {tensors_.size()};
    calls_.push_back(
        {.function = function_of(call, operands, result), .operands = operands, .result = tensors_.size()});
    tensors_.push_back(std::move(result));
    return std::nullopt;
  }

  // Returns the index of an operand's element for the loops i0, i1 .. of the result: dimensions of 1 are repeated.
  static std::string index_text(const Shape& operand, const Shape& result) {
    const std::vector<int64_t> strides = dense_strides(operand);
    std::string text;
    for (size_t d = 0; d < operand.size(); ++d) {
      if (operand[d] == 1) continue;
      const size_t loop = result.size() - operand.size() + d;
      text += fmt::format("{}i{}{}", text.empty() ? "" : " + ", loop,
                          strides[d] == 1 ? "" : fmt::format(" * {}", strides[d]));
    }
    return text.empty() ? "0" : text;
  }

  // Returns the number of the function that computes the call, and writes it where no equal call has it already.
  size_t function_of(const CallNode& call, const Tensors& operands, const Tensor& result) {
    const std::string text = parameters_and_loops(call, operands, result);
    const auto [entry, is_new] = function_numbers_.try_emplace(text, function_numbers_.size());
    if (is_new)
      functions_ += fmt::format("/* {} */\nstatic void {}_{}{}", call.as_op()->name, name_, entry->second, text);
    return entry->second;
  }

  std::string parameters_and_loops(const CallNode& call, const Tensors& operands, const Tensor& result) const {
    std::string params, elements[2];
    const bool is_flat = std::all_of(operands.begin(), operands.end(),
                                     [&](size_t operand) { return tensors_[operand].shape == result.shape; });
    for (size_t k = 0; k < operands.size(); ++k) {
      const Tensor& operand = tensors_[operands[k]];
      const char letter = k == 0 ? 'a' : 'b';
      params += fmt::format("const {}* {}, ", c_type(operand.dtype), letter);
      elements[k] = fmt::format("{}[{}]", letter, is_flat ? "i0" : index_text(operand.shape, result.shape));
    }
    const Shape loops = is_flat ? Shape{num_elements(result.shape)} : result.shape;
    std::string text = fmt::format("({}{}* y) {{\n", params, c_type(result.dtype));
    std::string indent = "  ";
    for (size_t d = 0; d < loops.size(); ++d, indent += "  ")
      text += fmt::format("{0}for (int64_t i{1} = 0; i{1} < {2}; ++i{1})\n", indent, d, loops[d]);
    return text + fmt::format("{}y[{}] = {};\n}}\n\n", indent, index_text(loops, loops),
                              element_text(call, elements[0], elements[1]));
  }

  // Names the memory of each value that a call computes: an output where it is one, else a place of the workspace.
  void place_values() {
    for (size_t i = 0; i < outputs_.size(); ++i) {
      Tensor& tensor = tensors_[outputs_[i]];
      if (tensor.call != SIZE_MAX && tensor.name.empty()) tensor.name = fmt::format("o{}", i);
    }
    for (const Call& call : calls_) {
      Tensor& tensor = tensors_[call.result];
      if (!tensor.name.empty()) continue;
      if (nbytes_of(tensor) == 0) {  // no memory, and a region of such values alone has no workspace
        tensor.name = fmt::format("(({}*)0)", c_type(tensor.dtype));
        continue;
      }
      const auto last = last_use_.find(call.result);
      const int64_t offset =
          workspace_.place(nbytes_of(tensor), tensor.call, last == last_use_.end() ? tensor.call : last->second);
      tensor.name = fmt::format("({}*)(workspace + {})", c_type(tensor.dtype), offset);
    }
  }

  std::string body() {
    place_values();
    codegen::CRegion region{
        .symbol = name_, .inputs = {}, .outputs = {}, .body = {}, .has_workspace = workspace_.size() > 0};
    for (const relay::Var& param : function_.params) {
      for (const size_t input : tensors_of_.at(param.get()))
        region.inputs.push_back({.name = tensors_[input].name, .type = std::string(c_type(tensors_[input].dtype))});
    }
    for (size_t i = 0; i < outputs_.size(); ++i)
      region.outputs.push_back(
          {.name = fmt::format("o{}", i), .type = std::string(c_type(tensors_[outputs_[i]].dtype))});
    for (const Call& call : calls_) region.body.push_back(call_text(call));
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (std::string copy = copy_text(i); !copy.empty()) region.body.push_back(std::move(copy));
    }
    return codegen::region_functions(region);
  }

  struct Call {
    size_t function;
    Tensors operands;
    size_t result;
  };

  std::string call_text(const Call& call) const {
    std::string text = fmt::format("{}_{}(", name_, call.function);
    for (const size_t operand : call.operands) text += tensors_[operand].name + ", ";
    return text + tensors_[call.result].name + ");";
  }

  // Fills an output that is not where its value was computed: an input, a constant, or another output's value.
  std::string copy_text(size_t output) const {
    const Tensor& tensor = tensors_[outputs_[output]];
    const std::string own = fmt::format("o{}", output);
    if (tensor.name == own) return "";
    return fmt::format("memcpy({}, {}, {});", own, tensor.name,
                       num_elements(tensor.shape) * static_cast<int64_t>(tensor.dtype.bytes()));
  }

  const std::string& name_;
  const relay::FunctionNode& function_;
  std::vector<Tensor> tensors_;
  std::unordered_map<const Object*, Tensors> tensors_of_;
  std::unordered_map<const Object*, Expr> let_values_;        // by variable
  std::unordered_map<size_t, size_t> last_use_;               // the last call that reads a tensor
  std::unordered_map<std::string, size_t> function_numbers_;  // by parameters and loops
  std::vector<Call> calls_;
  Tensors outputs_;
  size_t num_inputs_ = 0, num_constants_ = 0;
  Workspace workspace_;
  std::string constants_, functions_;
};

}  // namespace

Expected<RegionText> region_text(const partition::RegionSource& region) { return Writer(region).write(); }

}  // namespace headrace::backends::ccompiler
