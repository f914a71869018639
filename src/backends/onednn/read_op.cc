#include "backends/onednn/read_op.h"

#include <algorithm>
#include <map>

namespace headrace_onednn {

namespace {

using Read = OpOrNo (*)(const CallView& call, Network& network);

OpOrNo no(std::string message, int32_t reason = HR_REASON_OP_UNSUPPORTED) {
  return {.no = No{.reason = reason, .message = std::move(message)}};
}

const Dims& dims_of(const Network& network, int32_t tensor) {
  return network.tensors[static_cast<size_t>(tensor)].dims;
}

OpOrNo add_op(const CallView& call, Network& network, Op op) {
  op.output = network.add_tensor(call.result());
  if (op.inputs.empty()) op.inputs = call.operands;
  network.ops.push_back(std::move(op));
  return {.tensor = network.ops.back().output};
}

// Splits a padding of one number, one for each axis, or one for each side, into those before and after.
bool split_padding(const Dims& padding, size_t axes, Dims& before, Dims& after) {
  if (padding.size() == 2 * axes) {
    before.assign(padding.begin(), padding.begin() + static_cast<int64_t>(axes));
    after.assign(padding.begin() + static_cast<int64_t>(axes), padding.end());
  } else if (padding.size() == axes) {
    before = after = padding;
  } else if (padding.size() <= 1) {
    before = after = Dims(axes, padding.empty() ? 0 : padding[0]);
  } else {
    return false;
  }
  return true;
}

// Returns a list with one number for each axis.
Dims spread(Dims values, size_t axes) {
  return values.size() == axes ? values : Dims(axes, values.empty() ? 1 : values[0]);
}

template <typename... Lists>
Dims joined(const Lists&... lists) {
  Dims all;
  (all.insert(all.end(), lists.begin(), lists.end()), ...);
  return all;
}

OpOrNo convolution(const CallView& call, Network& network) {
  const Dims& data = dims_of(network, call.operands[0]);
  const Dims weights = dims_of(network, call.operands[1]);
  const size_t axes = data.size() - 2;
  const std::string letters = axes == 1 ? "W" : axes == 2 ? "HW" : "DHW";
  const std::string out = call.text("out_layout", "");
  if (call.text("data_layout", "NC" + letters) != "NC" + letters || (!out.empty() && out != "NC" + letters))
    return no("its data is not in the layout NC" + letters, HR_REASON_ATTRIBUTE_UNSUPPORTED);
  if (call.text("kernel_layout", "OI" + letters) != "OI" + letters)
    return no("its weights are not in the layout OI" + letters, HR_REASON_ATTRIBUTE_UNSUPPORTED);
  Dims before, after;
  if (!split_padding(call.integers("padding"), axes, before, after))
    return no("its padding has an odd number of sides", HR_REASON_ATTRIBUTE_UNSUPPORTED);
  const int64_t groups = call.integer("groups", 1);
  if (groups < 1 || weights[0] % groups != 0 || data[1] != weights[1] * groups)
    return no("its groups do not divide its channels", HR_REASON_SHAPE_UNSUPPORTED);
  return add_op(call, network,
                {.kind = OpKind::convolution,
                 .sizes = joined(Dims{groups}, spread(call.integers("strides"), axes),
                                 spread(call.integers("dilation"), axes), before, after)});
}

// One axis of a pool.
struct PoolAxis {
  int64_t size, result, kernel, stride, dilation, before;

  // Returns whether all that a window reads lies in the padding. A dilated window may step over the data.
  bool has_empty_window() const {
    for (int64_t at = 0; at < result; ++at) {
      const int64_t begin = at * stride - before;
      // The first element that is not before the data.
      const int64_t skipped = begin >= 0 ? 0 : (-begin + dilation - 1) / dilation;
      if (skipped >= kernel || begin + skipped * dilation >= size) return true;
    }
    return false;
  }
};

OpOrNo pool(const CallView& call, Network& network, Algorithm algorithm) {
  const Dims& data = dims_of(network, call.operands[0]);
  const size_t axes = data.size() - 2;
  const std::string letters = axes == 1 ? "NCW" : axes == 2 ? "NCHW" : "NCDHW";
  if (call.text("layout", letters) != letters)
    return no("its layout is not " + letters, HR_REASON_ATTRIBUTE_UNSUPPORTED);
  const Dims kernel = spread(call.integers("pool_size"), axes), strides = spread(call.integers("strides"), axes),
             dilation = spread(call.integers("dilation"), axes), result = call.result();
  Dims before, after;
  if (!split_padding(call.integers("padding"), axes, before, after))
    return no("its padding has an odd number of sides", HR_REASON_ATTRIBUTE_UNSUPPORTED);
  for (size_t i = 0; i < axes; ++i) {
    // The padding that the last window needs; less than the padding where windows do not reach the end, more in
    // ceil_mode.
    const int64_t needed =
        (result[i + 2] - 1) * strides[i] + (kernel[i] - 1) * dilation[i] + 1 - data[i + 2] - before[i];
    if (needed > after[i] && algorithm == Algorithm::pool_average_padded)
      return no("its last window reaches past the padding, and the zeros there do not count",
                HR_REASON_SHAPE_UNSUPPORTED);
    const PoolAxis axis{data[i + 2], result[i + 2], kernel[i], strides[i], dilation[i], before[i]};
    if (before[i] >= kernel[i] || needed >= kernel[i] || axis.has_empty_window())
      return no("a window lies in the padding alone", HR_REASON_SHAPE_UNSUPPORTED);
    after[i] = needed;
  }
  if (std::any_of(dilation.begin(), dilation.end(), [](int64_t d) { return d != 1; }) &&
      algorithm != Algorithm::pool_max)
    return no("the windows of its average are dilated", HR_REASON_ATTRIBUTE_UNSUPPORTED);
  return add_op(
      call, network,
      {.kind = OpKind::pool, .algorithm = algorithm, .sizes = joined(kernel, strides, dilation, before, after)});
}

OpOrNo max_pool(const CallView& call, Network& network) { return pool(call, network, Algorithm::pool_max); }

OpOrNo avg_pool(const CallView& call, Network& network) {
  return pool(call, network,
              call.integer("count_include_pad", 0) != 0 ? Algorithm::pool_average_padded : Algorithm::pool_average);
}

OpOrNo global_pool(const CallView& call, Network& network, Algorithm algorithm) {
  const Dims& data = dims_of(network, call.operands[0]);
  if (call.text("layout", "NCHW") != "NCHW") return no("its layout is not NCHW", HR_REASON_ATTRIBUTE_UNSUPPORTED);
  const Dims kernel(data.begin() + 2, data.end()), ones(kernel.size(), 1), zeros(kernel.size(), 0);
  return add_op(call, network,
                {.kind = OpKind::pool, .algorithm = algorithm, .sizes = joined(kernel, ones, ones, zeros, zeros)});
}

OpOrNo global_max_pool(const CallView& call, Network& network) {
  return global_pool(call, network, Algorithm::pool_max);
}
OpOrNo global_avg_pool(const CallView& call, Network& network) {
  return global_pool(call, network, Algorithm::pool_average);
}

// A constant with other sizes is another constant of the same elements.
int32_t add_view(Network& network, int32_t tensor, Dims dims) {
  const int32_t view = network.add_tensor(std::move(dims));
  network.tensors[static_cast<size_t>(view)].constant = network.tensors[static_cast<size_t>(tensor)].constant;
  if (network.tensors[static_cast<size_t>(view)].constant >= 0) return view;
  network.ops.push_back({.kind = OpKind::view, .inputs = {tensor}, .output = view});
  return view;
}

// Data of more axes than two is a matrix of its last one.
OpOrNo dense(const CallView& call, Network& network) {
  const Dims data = dims_of(network, call.operands[0]), weights = dims_of(network, call.operands[1]);
  const Dims result = call.result();
  if (data.size() < 2) return no("its data has one axis", HR_REASON_SHAPE_UNSUPPORTED);
  if (data.size() == 2) return add_op(call, network, {.kind = OpKind::dense});
  const int64_t rows = num_elements(data) / data.back();
  const int32_t matrix = add_view(network, call.operands[0], {rows, data.back()});
  const int32_t product = network.add_tensor({rows, weights[0]});
  network.ops.push_back({.kind = OpKind::dense, .inputs = {matrix, call.operands[1]}, .output = product});
  return {.tensor = add_view(network, product, result)};
}

OpOrNo matmul(const CallView& call, Network& network) {
  const bool is_batched = call.op() == "nn.batch_matmul";
  const size_t rank = is_batched ? 3 : 2;
  for (const int32_t operand : call.operands) {
    if (dims_of(network, operand).size() != rank)
      return no("its operands have other ranks", HR_REASON_SHAPE_UNSUPPORTED);
  }
  if (is_batched && dims_of(network, call.operands[0])[0] != dims_of(network, call.operands[1])[0])
    return no("one operand has one batch for many of the other", HR_REASON_SHAPE_UNSUPPORTED);
  return add_op(call, network,
                {.kind = OpKind::matmul,
                 .sizes = {call.integer("transpose_a", 0), call.integer("transpose_b", is_batched ? 1 : 0)}});
}

OpOrNo eltwise(const CallView& call, Network& network, Algorithm algorithm, double alpha = 0, double beta = 0) {
  return add_op(call, network,
                {.kind = OpKind::eltwise,
                 .algorithm = algorithm,
                 .numbers = {static_cast<float>(alpha), static_cast<float>(beta)}});
}

template <Algorithm algorithm>
OpOrNo plain_eltwise(const CallView& call, Network& network) {
  return eltwise(call, network, algorithm);
}

OpOrNo clip(const CallView& call, Network& network) {
  if (!(call.real("a_min", 0) <= call.real("a_max", 0)))
    return no("its lower bound is not at most its upper one", HR_REASON_ATTRIBUTE_UNSUPPORTED);
  return eltwise(call, network, Algorithm::clip, call.real("a_min", 0), call.real("a_max", 0));
}

OpOrNo leaky_relu(const CallView& call, Network& network) {
  return eltwise(call, network, Algorithm::relu, call.real("alpha", 0.25));
}

// Whether a tensor of these sizes, aligned at the last axis, is stretched to `dims` or has it.
bool broadcasts_to(const Dims& from, const Dims& dims) {
  if (from.size() > dims.size()) return false;
  for (size_t i = 0; i < from.size(); ++i) {
    const int64_t a = from[from.size() - 1 - i], b = dims[dims.size() - 1 - i];
    if (a != b && a != 1) return false;
  }
  return true;
}

OpOrNo binary(const CallView& call, Network& network, Algorithm algorithm) {
  const Dims result = call.result();
  std::vector<int32_t> operands = call.operands;
  const bool is_ordered = algorithm == Algorithm::subtract || algorithm == Algorithm::divide;
  if (dims_of(network, operands[0]) != result && !is_ordered) std::swap(operands[0], operands[1]);
  if (dims_of(network, operands[0]) != result) return no("its first operand is broadcast", HR_REASON_SHAPE_UNSUPPORTED);
  Dims second = dims_of(network, operands[1]);
  if (!broadcasts_to(second, result)) return no("both of its operands are broadcast", HR_REASON_SHAPE_UNSUPPORTED);
  if (result.empty()) return no("its operands are scalars", HR_REASON_SHAPE_UNSUPPORTED);
  if (second.size() < result.size()) {
    second.insert(second.begin(), result.size() - second.size(), 1);
    operands[1] = add_view(network, operands[1], second);
  }
  return add_op(call, network, {.kind = OpKind::binary, .algorithm = algorithm, .inputs = operands});
}

template <Algorithm algorithm>
OpOrNo plain_binary(const CallView& call, Network& network) {
  return binary(call, network, algorithm);
}

bool fit_axis(int64_t& axis, size_t rank) {
  if (axis < 0) axis += static_cast<int64_t>(rank);
  return axis >= 0 && static_cast<size_t>(axis) < rank;
}

OpOrNo bias_add(const CallView& call, Network& network) {
  const Dims result = call.result();
  int64_t axis = call.integer("axis", 1);
  if (!fit_axis(axis, result.size())) return no("it has no such axis", HR_REASON_ATTRIBUTE_UNSUPPORTED);
  Dims bias(result.size(), 1);
  bias[static_cast<size_t>(axis)] = result[static_cast<size_t>(axis)];
  const int32_t view = bias.size() == 1 ? call.operands[1] : add_view(network, call.operands[1], bias);
  return add_op(call, network,
                {.kind = OpKind::binary, .algorithm = Algorithm::add, .inputs = {call.operands[0], view}});
}

OpOrNo softmax(const CallView& call, Network& network) {
  int64_t axis = call.integer("axis", -1);
  if (!fit_axis(axis, call.result().size())) return no("it has no such axis", HR_REASON_ATTRIBUTE_UNSUPPORTED);
  const bool is_log = call.op() == "nn.log_softmax";
  return add_op(
      call, network,
      {.kind = OpKind::softmax, .algorithm = is_log ? Algorithm::log_softmax : Algorithm::softmax, .sizes = {axis}});
}

OpOrNo concatenate(const CallView& call, Network& network) {
  int64_t axis = call.integer("axis", 0);
  if (!fit_axis(axis, call.result().size())) return no("it has no such axis", HR_REASON_ATTRIBUTE_UNSUPPORTED);
  if (call.operands.empty()) return no("it joins nothing");
  return add_op(call, network, {.kind = OpKind::concat, .sizes = {axis}});
}

OpOrNo view(const CallView& call, Network& network) {
  const Dims result = call.result();
  if (result.empty() || dims_of(network, call.operands[0]).empty())
    return no("it takes or gives a scalar", HR_REASON_SHAPE_UNSUPPORTED);
  return {.tensor = add_view(network, call.operands[0], result)};
}

OpOrNo transpose(const CallView& call, Network& network) {
  const size_t rank = call.result().size();
  Dims axes = call.integers("axes");
  if (axes.empty()) {
    for (size_t i = rank; i-- > 0;) axes.push_back(static_cast<int64_t>(i));
  }
  for (int64_t& axis : axes) {
    if (!fit_axis(axis, rank)) return no("it has no such axis", HR_REASON_ATTRIBUTE_UNSUPPORTED);
  }
  if (axes.size() != rank || rank == 0)
    return no("its axes are not those of its data", HR_REASON_ATTRIBUTE_UNSUPPORTED);
  return add_op(call, network, {.kind = OpKind::transpose, .sizes = axes});
}

OpOrNo layer_norm(const CallView& call, Network& network) {
  const size_t rank = call.result().size();
  int64_t axis = call.integer("axis", -1);
  if (!fit_axis(axis, rank) || static_cast<size_t>(axis) + 1 != rank || rank < 2)
    return no("its axis is not the last of several", HR_REASON_ATTRIBUTE_UNSUPPORTED);
  if (call.integer("center", 1) == 0 || call.integer("scale", 1) == 0)
    return no("it has no scale or no shift", HR_REASON_ATTRIBUTE_UNSUPPORTED);
  return add_op(call, network,
                {.kind = OpKind::layer_norm, .numbers = {static_cast<float>(call.real("epsilon", 1e-5))}});
}

const std::map<std::string, Read>& readers() {
  static const std::map<std::string, Read> all{
      {"nn.conv1d", &convolution},
      {"nn.conv2d", &convolution},
      {"nn.conv3d", &convolution},
      {"nn.max_pool1d", &max_pool},
      {"nn.max_pool2d", &max_pool},
      {"nn.max_pool3d", &max_pool},
      {"nn.avg_pool1d", &avg_pool},
      {"nn.avg_pool2d", &avg_pool},
      {"nn.avg_pool3d", &avg_pool},
      {"nn.global_max_pool2d", &global_max_pool},
      {"nn.global_avg_pool2d", &global_avg_pool},
      {"nn.dense", &dense},
      {"nn.matmul", &matmul},
      {"nn.batch_matmul", &matmul},
      {"nn.relu", &plain_eltwise<Algorithm::relu>},
      {"sigmoid", &plain_eltwise<Algorithm::logistic>},
      {"tanh", &plain_eltwise<Algorithm::tanh>},
      {"exp", &plain_eltwise<Algorithm::exp>},
      {"sqrt", &plain_eltwise<Algorithm::sqrt>},
      {"abs", &plain_eltwise<Algorithm::abs>},
      {"clip", &clip},
      {"nn.leaky_relu", &leaky_relu},
      {"add", &plain_binary<Algorithm::add>},
      {"subtract", &plain_binary<Algorithm::subtract>},
      {"multiply", &plain_binary<Algorithm::multiply>},
      {"divide", &plain_binary<Algorithm::divide>},
      {"maximum", &plain_binary<Algorithm::maximum>},
      {"minimum", &plain_binary<Algorithm::minimum>},
      {"nn.bias_add", &bias_add},
      {"nn.softmax", &softmax},
      {"nn.log_softmax", &softmax},
      {"concatenate", &concatenate},
      {"reshape", &view},
      {"nn.batch_flatten", &view},
      {"squeeze", &view},
      {"expand_dims", &view},
      {"transpose", &transpose},
      {"nn.layer_norm", &layer_norm},
  };
  return all;
}

}  // namespace

Dims CallView::result() const {
  const hr_tensor_type type = api.result_type(graph, node, 0);
  return {type.shape, type.shape + type.ndim};
}

int64_t CallView::integer(const char* name, int64_t otherwise) const {
  const hr_attr attr = api.find_attr(graph, node, name);
  return attr.kind == HR_ATTR_INTEGER ? attr.integers[0] : otherwise;
}

double CallView::real(const char* name, double otherwise) const {
  const hr_attr attr = api.find_attr(graph, node, name);
  if (attr.kind == HR_ATTR_INTEGER) return static_cast<double>(attr.integers[0]);
  return attr.kind == HR_ATTR_REAL ? attr.reals[0] : otherwise;
}

std::string CallView::text(const char* name, const std::string& otherwise) const {
  const hr_attr attr = api.find_attr(graph, node, name);
  return attr.kind == HR_ATTR_TEXT ? attr.texts[0] : otherwise;
}

Dims CallView::integers(const char* name) const {
  const hr_attr attr = api.find_attr(graph, node, name);
  const bool has_them = attr.kind == HR_ATTR_INTEGERS || attr.kind == HR_ATTR_INTEGER;
  return has_them ? Dims(attr.integers, attr.integers + attr.count) : Dims();
}

OpOrNo read_op(const CallView& call, Network& network) {
  const auto reader = readers().find(call.op());
  if (reader == readers().end()) return no("the backend has no primitive for this op");
  return reader->second(call, network);
}

}  // namespace headrace_onednn
