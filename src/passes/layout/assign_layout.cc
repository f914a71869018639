#include "passes/layout/assign_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "cost/op_work.h"
#include "graph/labels.h"
#include "ops/nn/conv.h"
#include "ops/op_handles.h"
#include "passes/layout/convert_layout.h"
#include "passes/layout/varying.h"
#include "passes/rewrite/for_each_function.h"
#include "relay/function_attrs.h"
#include "relay/leaves.h"
#include "relay/match.h"
#include "relay/visit.h"

namespace headrace::passes {

using graph::LabelCost;
using relay::CallNode;

namespace {

constexpr int32_t kBlocked = 1, kNumLabels = 2;  // label 0: as written

LabelCost picoseconds(double seconds) { return static_cast<LabelCost>(std::llround(seconds * 1e12)); }

// Returns the time to store a tensor in another layout.
double change_seconds(const TensorTypeNode& type, const cost::Machine& machine) {
  auto bytes = static_cast<double>(type.dtype.bytes());
  for (const int64_t dim : as_shape(type.shape).value_or(Shape{})) bytes *= static_cast<double>(dim);
  return machine.call_seconds + cost::seconds_of({.bytes_read = bytes, .bytes_written = bytes}, machine, 1);
}

// A convolution that may run in blocks. It is two nodes of the label problem, since it may read another form than it
// writes.
struct Conv {
  const CallNode* call;
  bool is_depthwise = false, reads_blocks = false;
  double padding = 0;  // output channels of zeros in blocks, as a share of all that it has; then it writes as written
  int32_t reads = -1;
};

// More channels of zeros would cost what blocks bring.
constexpr double kMostPadding = 0.1;

// Two forms whose time is that of the memory would be equal, and then the one with less arithmetic is to be chosen.
// This share of the arithmetic's time decides that, and is too small to pay for a change of layout.
constexpr double kTieShare = 1e-3;

// Returns a convolution that blocks suit.
std::optional<Conv> as_blocked(const CallNode& call, int64_t block) {
  const auto data = relay::known_shape_of(call.args[0]), kernel = relay::known_shape_of(call.args[1]);
  const auto* type = relay::tensor_type_of(ref(&call));
  const ops::ConvForm form = ops::conv_form(call.attrs_as<ops::ConvAttrs>());
  const bool is_as_written =
      form.data_layout == "NCHW" && form.kernel_layout == "OIHW" && form.out_layout == form.data_layout;
  if (!data || !kernel || !is_as_written || type->dtype != DataType::float_(32)) return std::nullopt;
  if (relay::tensor_type_of(call.args[0])->dtype != type->dtype) return std::nullopt;
  const int64_t in_channels = (*data)[1], out_channels = (*kernel)[0];
  const bool is_depthwise = form.groups > 1 && form.groups == in_channels && form.groups == out_channels;
  if ((form.groups > 1 && !is_depthwise) || out_channels == 0) return std::nullopt;
  const auto zeros = static_cast<double>((block - out_channels % block) % block);
  const Conv conv{&call, is_depthwise, in_channels % block == 0, zeros / static_cast<double>(out_channels)};
  if (conv.padding > kMostPadding || (conv.padding > 0 && (is_depthwise || !conv.reads_blocks))) return std::nullopt;
  return conv;
}

// Chooses the forms of one body.
class LayoutAssigner {
 public:
  LayoutAssigner(const cost::Machine& machine, int64_t block)
      : machine_(machine), block_(block), data_(fmt::format("NCHW{}c", block)) {
    problem_.num_labels = kNumLabels;
  }

  Expr run(const Expr& body) {
    varying_ = varying_values(body);
    relay::post_order(body, relay::is_entered, [&](const Expr& expr) { read(expr); });
    if (convs_.empty()) return body;
    find_followers(body);
    add_nodes();
    add_flow(body);
    labels_ = graph::find_labels(problem_).labels;
    return convert_layout(body, {.choose = [this](const CallNode& call) { return chosen(call); },
                                 .stays = [this](const CallNode& call) { return !is_blocked(call); }});
  }

 private:
  void read(const Expr& expr) {
    order_.push_back(expr);
    const auto* call = relay::call_of(expr, op::kConv2D);
    // A convolution of constants alone is computed once, before the first run; it has no node in the label problem.
    if (call == nullptr || !varying_.contains(call) || varying_.contains(call->args[1].object())) return;
    if (const auto conv = as_blocked(*call, block_)) {
      conv_of_.emplace(call, convs_.size());
      convs_.push_back(*conv);
    }
  }

  const Conv* find(const CallNode& call) const {
    const auto found = conv_of_.find(&call);
    return found == conv_of_.end() ? nullptr : &convs_[found->second];
  }

  Array<std::string> layouts(const Conv& conv, bool reads_blocks) const {
    if (!reads_blocks) return {"NCHW", fmt::format("OIHW{}o", block_), data_};
    if (conv.padding > 0) return {data_, fmt::format("OIHW{0}i{0}o", block_), "NCHW"};
    return {data_, fmt::format("OIHW{}i{}o", conv.is_depthwise ? 1 : block_, block_)};
  }

  // Finds the calls whose results can be in blocks: those that ConvertLayout stores so when all convolutions run so.
  void find_followers(const Expr& body) {
    const auto choose = [this](const CallNode& call) -> std::optional<Array<std::string>> {
      const Conv* conv = find(call);
      if (conv == nullptr) return std::nullopt;
      return layouts(*conv, conv->reads_blocks);
    };
    convert_layout(body, {.choose = choose, .converted = [this](const CallNode& call) { followers_.insert(&call); }});
  }

  int32_t add_node(bool may_be_blocked) {
    problem_.costs.push_back(0);
    problem_.costs.push_back(may_be_blocked ? 0 : graph::kForbidden);
    return problem_.num_nodes++;
  }

  void add_nodes() {
    outside_ = add_node(false);
    for (const Expr& expr : order_) {
      if (varying_.contains(expr.object()) && relay::known_shape_of(expr))
        writes_.emplace(expr.object(), add_node(followers_.contains(expr.object())));
    }
    for (Conv& conv : convs_) {
      conv.reads = add_node(conv.reads_blocks);
      problem_.pairs.push_back({conv.reads, writes_.at(conv.call), static_cast<int32_t>(problem_.tables.size())});
      problem_.tables.push_back(times_of(conv));
    }
  }

  // Returns the times of a convolution, by the form that it reads, then the one that it writes.
  std::vector<LabelCost> times_of(const Conv& conv) const {
    const auto time = [&](double share) {
      cost::StepWork work = cost::work_of(*conv.call);
      work.operations /= share;
      const double arithmetic = cost::seconds_of({.operations = work.operations, .dtype = work.dtype}, machine_, 1);
      return picoseconds(cost::seconds_of(work, machine_, 1) + kTieShare * arithmetic);
    };
    const LabelCost none = LabelCost{1} << 50;  // no kernel has these forms
    if (conv.padding > 0) {
      const LabelCost slice = picoseconds(change_seconds(*relay::tensor_type_of(ref(conv.call)), machine_));
      return {time(machine_.plain_conv_share), none, time(machine_.blocked_conv_share / (1 + conv.padding)) + slice,
              none};
    }
    return {time(machine_.plain_conv_share), conv.is_depthwise ? none : time(machine_.packing_conv_share), none,
            conv.reads_blocks ? time(machine_.blocked_conv_share) : none};
  }

  using Readers = std::unordered_map<const Object*, std::vector<int32_t>>;

  // Adds what changes of layout cost: each tensor once for all its readers.
  void add_flow(const Expr& body) {
    Readers readers;
    readers[body.object()].push_back(outside_);
    for (auto expr = order_.rbegin(); expr != order_.rend(); ++expr) add_reads(*expr, readers);
    for (const Expr& expr : order_) {
      const auto written = writes_.find(expr.object());
      const auto reading = readers.find(expr.object());
      if (written == writes_.end() || reading == readers.end()) continue;
      const LabelCost price = picoseconds(change_seconds(*relay::tensor_type_of(expr), machine_));
      problem_.shared.push_back({written->second, reading->second, static_cast<int32_t>(problem_.tables.size())});
      problem_.tables.push_back({0, price, price, 0});
    }
  }

  // Notes who reads the operands of `expr`: a call of an op in the form of its result, a convolution in that of its
  // data, all others as written. A tuple that only calls read is not a reader of its own.
  void add_reads(const Expr& expr, Readers& readers) const {
    const auto* call = relay::op_call(expr);
    if (call == nullptr) {
      if (expr.is<relay::TupleNode>() && !readers.contains(expr.object())) return;
      for (const Expr& child : relay::children_of(expr)) readers[child.object()].push_back(outside_);
      return;
    }
    const Conv* conv = find(*call);
    const auto written = writes_.find(call);
    const int32_t reader = conv != nullptr ? conv->reads : written != writes_.end() ? written->second : outside_;
    for (const Expr& operand : relay::items_of_args(*call)) readers[operand.object()].push_back(reader);
  }

  bool is_blocked(const CallNode& call) const {
    const auto node = writes_.find(&call);
    return node != writes_.end() && labels_[static_cast<size_t>(node->second)] == kBlocked;
  }

  std::optional<Array<std::string>> chosen(const CallNode& call) const {
    const Conv* conv = find(call);
    if (conv == nullptr) return std::nullopt;
    const bool reads_blocks = labels_[static_cast<size_t>(conv->reads)] == kBlocked;
    return reads_blocks || is_blocked(call) ? std::optional(layouts(*conv, reads_blocks)) : std::nullopt;
  }

  const cost::Machine& machine_;
  int64_t block_;
  std::string data_;
  std::vector<Expr> order_;                                // the body, operands first
  std::unordered_set<const Object*> varying_, followers_;  // values that runs compute; calls that can give blocks
  std::vector<Conv> convs_;
  std::unordered_map<const Object*, size_t> conv_of_;
  graph::LabelProblem problem_;
  int32_t outside_ = -1;  // reads and writes tensors as written
  std::unordered_map<const Object*, int32_t> writes_;
  std::vector<int32_t> labels_;
};

}  // namespace

int64_t layout_block(const pass::PassContext& context) {
  const int64_t block = context.option<int64_t>("relay.AssignLayout.block").value_or(0);
  if (block != 0 && block != 8 && block != 16)
    throw_user_error("relay.AssignLayout.block is {}; it is 8, 16, or 0 (that of the machine)", block);
  return block;
}

IRModule assign_layout(const IRModule& module, const cost::Machine& machine, int64_t block) {
  if (block == 0) block = cost::lanes_of(machine, DataType::float_(32));
  if (block != 8 && block != 16) return module;
  return rewrite_bodies(module, [&](const Expr& body) { return LayoutAssigner(machine, block).run(body); });
}

}  // namespace headrace::passes
