#include "backends/onednn/fuse.h"

#include <algorithm>
#include <array>
#include <map>

namespace headrace_onednn {

namespace {

class Fuser {
 public:
  explicit Fuser(Network& network)
      : network_(network), maker_(network.tensors.size(), -1), uses_(network.tensors.size(), 0) {
    for (size_t i = 0; i < network.ops.size(); ++i) {
      const Op& op = network.ops[i];
      maker_[at(op.output)] = static_cast<int32_t>(i);
      for (const int32_t input : op.inputs) ++uses_[at(input)];
    }
    for (const int32_t output : network.outputs) ++uses_[at(output)];
  }

  void run() {
    std::vector<bool> is_gone(network_.ops.size(), false);
    for (size_t i = 0; i < network_.ops.size(); ++i) {
      const OpKind kind = network_.ops[i].kind;
      if (kind == OpKind::eltwise) is_gone[i] = take_eltwise(i);
      if (kind == OpKind::binary) is_gone[i] = take_binary(i);
    }
    std::vector<Op> kept;
    for (size_t i = 0; i < network_.ops.size(); ++i) {
      if (!is_gone[i]) kept.push_back(std::move(network_.ops[i]));
    }
    network_.ops = std::move(kept);
  }

 private:
  static size_t at(int32_t index) { return static_cast<size_t>(index); }
  const Tensor& tensor(int32_t index) const { return network_.tensors[at(index)]; }

  // Returns the op that makes a tensor which nothing else reads, if it is one that does more on its result; -1: none.
  int32_t host_of(int32_t tensor) const {
    const int32_t maker = maker_[at(tensor)];
    if (maker < 0 || uses_[at(tensor)] != 1) return -1;
    const OpKind kind = network_.ops[at(maker)].kind;
    return kind == OpKind::convolution || kind == OpKind::dense ? maker : -1;
  }

  void give_result(int32_t host, int32_t output) {
    network_.ops[at(host)].output = output;
    maker_[at(output)] = host;
  }

  bool take_eltwise(size_t index) {
    const Op& op = network_.ops[index];
    const int32_t host = host_of(op.inputs[0]);
    if (host < 0 || has_other_numbers(network_.ops[at(host)], op)) return false;
    network_.ops[at(host)].post.push_back(
        {.kind = PostKind::eltwise, .algorithm = op.algorithm, .alpha = op.numbers[0], .beta = op.numbers[1]});
    give_result(host, op.output);
    return true;
  }

  // Returns whether the op before has such an operation with other numbers: oneDNN 2.6 computes the second relu of a
  // convolution or product by the slope of the first.
  static bool has_other_numbers(const Op& host, const Op& eltwise) {
    return std::any_of(host.post.begin(), host.post.end(), [&](const PostOp& post) {
      return post.kind == PostKind::eltwise && post.algorithm == eltwise.algorithm &&
             (post.alpha != eltwise.numbers[0] || post.beta != eltwise.numbers[1]);
    });
  }

  // Returns whether a window of a convolution lies in the padding as a whole. oneDNN 2.6 crashes there where a sum and
  // another operation follow.
  bool has_window_of_padding(const Op& op) const {
    if (op.kind != OpKind::convolution) return false;
    const Dims& kernel = tensor(op.inputs[1]).dims;
    const size_t axes = tensor(op.output).dims.size() - 2;
    const auto size = [&](size_t part, size_t axis) { return op.sizes[1 + part * axes + axis]; };  // after the groups
    for (size_t i = 0; i < axes; ++i) {
      const auto extent = (kernel[kernel.size() - axes + i] - 1) * size(1, i) + 1;
      if (size(2, i) >= extent || size(3, i) >= extent) return true;
    }
    return false;
  }

  // Where two operands could take the op, the one that is made later does: then the other one is there.
  bool take_binary(size_t index) {
    const Op& op = network_.ops[index];
    int32_t main = op.inputs[0], other = op.inputs[1];
    const bool is_symmetric = op.algorithm == Algorithm::add && tensor(other).dims == tensor(op.output).dims;
    if (is_symmetric && host_of(other) > host_of(main)) std::swap(main, other);
    const int32_t host = host_of(main);
    if (host < 0 || maker_[at(other)] >= host || other == main) return false;
    Op& taker = network_.ops[at(host)];
    if (op.algorithm == Algorithm::add && is_bias(taker, other, op.output)) {
      taker.inputs.push_back(bias_of(other));
    } else if (op.algorithm == Algorithm::add && taker.post.empty() && tensor(other).dims == tensor(op.output).dims &&
               !has_window_of_padding(taker)) {
      taker.post.push_back({.kind = PostKind::sum, .algorithm = Algorithm::none, .tensor = other});
    } else if (is_by_channel(other)) {
      taker.post.push_back({.kind = PostKind::binary, .algorithm = op.algorithm, .tensor = other});
    } else {
      return false;
    }
    give_result(host, op.output);
    return true;
  }

  // Whether a tensor has one element for each channel, or for all.
  bool is_by_channel(int32_t index) const {
    const Dims& dims = tensor(index).dims;
    for (size_t i = 0; i < dims.size(); ++i) {
      if (i != 1 && dims[i] != 1) return false;
    }
    return true;
  }

  bool is_bias(const Op& taker, int32_t other, int32_t output) const {
    return taker.inputs.size() == 2 && taker.post.empty() && tensor(other).constant >= 0 && is_by_channel(other) &&
           tensor(other).dims[1] == tensor(output).dims[1];
  }

  int32_t bias_of(int32_t other) {
    const Tensor bias{.dims = {tensor(other).dims[1]}, .constant = tensor(other).constant};
    network_.tensors.push_back(bias);
    maker_.push_back(-1);
    uses_.push_back(1);
    return static_cast<int32_t>(network_.tensors.size() - 1);
  }

  Network& network_;
  std::vector<int32_t> maker_;  // the op of each tensor; -1: an input or a constant
  std::vector<int32_t> uses_;
};

// Lets a concat that begins with all operands of an earlier one read that one's result. Looks only at the last concat
// with the same first two operands, so that the time grows with the number of operands.
void chain_concats(Network& network) {
  std::map<std::array<int64_t, 3>, std::pair<std::vector<int32_t>, int32_t>>
      last;  // operands and result, by axis and two
  for (Op& op : network.ops) {
    if (op.kind != OpKind::concat || op.inputs.size() < 2) continue;
    const std::vector<int32_t> operands = op.inputs;
    auto& [earlier, result] = last[{op.sizes[0], operands[0], operands[1]}];
    const bool is_longer = !earlier.empty() && earlier.size() < operands.size();
    if (is_longer && std::equal(earlier.begin(), earlier.end(), operands.begin())) {
      op.inputs.assign(1, result);
      op.inputs.insert(op.inputs.end(), operands.begin() + static_cast<int64_t>(earlier.size()), operands.end());
    }
    earlier = operands;
    result = op.output;
  }
}

}  // namespace

void fuse(Network& network) {
  chain_concats(network);
  Fuser(network).run();
}

}  // namespace headrace_onednn
