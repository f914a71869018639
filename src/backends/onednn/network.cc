#include "backends/onednn/network.h"

#include <cstring>
#include <map>
#include <stdexcept>
#include <string_view>

namespace headrace_onednn {

namespace {

constexpr std::string_view kMagic = "HR1DNN02";
constexpr int64_t kMaxElements = int64_t{1} << 40;

class Writer {
 public:
  void number(int64_t value) { out_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void real(float value) { out_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void text(std::string_view value) {
    number(static_cast<int64_t>(value.size()));
    out_ += value;
  }
  template <typename T>
  void numbers(const std::vector<T>& values) {
    number(static_cast<int64_t>(values.size()));
    for (const T value : values) number(value);
  }
  void reals(const std::vector<float>& values) {
    number(static_cast<int64_t>(values.size()));
    out_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_{kMagic};
};

class Reader {
 public:
  Reader(const char* data, uint64_t size) : data_(data), left_(size) {
    if (size < kMagic.size() || std::string_view(data, kMagic.size()) != kMagic)
      throw std::runtime_error("its bytes are not a network of this version of the backend; compile the model again");
    skip(kMagic.size());
  }
  int64_t number() {
    int64_t value = 0;
    std::memcpy(&value, need(sizeof value), sizeof value);
    return value;
  }
  float real() {
    float value = 0;
    std::memcpy(&value, need(sizeof value), sizeof value);
    return value;
  }
  // The number of items that follow, each of at least `item` bytes.
  size_t count(size_t item) {
    const int64_t value = number();
    if (value < 0 || static_cast<uint64_t>(value) > left_ / item) fail();
    return static_cast<size_t>(value);
  }
  std::string text() {
    const size_t size = count(1);
    return {need(size), size};
  }
  template <typename T>
  std::vector<T> numbers() {
    std::vector<T> values(count(sizeof(int64_t)));
    for (T& value : values) {
      const int64_t read = number();
      value = static_cast<T>(read);
      if (value != read) fail();
    }
    return values;
  }
  std::vector<float> reals() {
    std::vector<float> values(count(sizeof(float)));
    if (!values.empty()) std::memcpy(values.data(), need(values.size() * sizeof(float)), values.size() * sizeof(float));
    return values;
  }
  bool is_at_end() const { return left_ == 0; }
  [[noreturn]] static void fail() {
    throw std::runtime_error(
        "its bytes are damaged: a network breaks off or contradicts itself; compile the model again");
  }

 private:
  const char* need(size_t size) {
    if (size > left_) fail();
    const char* begin = data_;
    skip(size);
    return begin;
  }
  void skip(size_t size) {
    data_ += size;
    left_ -= size;
  }
  const char* data_;
  uint64_t left_;
};

void check(bool holds) {
  if (!holds) Reader::fail();
}

void write(Writer& writer, const Op& op) {
  writer.number(static_cast<int64_t>(op.kind));
  writer.number(static_cast<int64_t>(op.algorithm));
  writer.numbers(op.inputs);
  writer.number(op.output);
  writer.numbers(op.sizes);
  writer.reals(op.numbers);
  writer.number(static_cast<int64_t>(op.post.size()));
  for (const PostOp& post : op.post) {
    writer.number(static_cast<int64_t>(post.kind));
    writer.number(static_cast<int64_t>(post.algorithm));
    writer.real(post.alpha);
    writer.real(post.beta);
    writer.number(post.tensor);
  }
}

int32_t read_index(Reader& reader, size_t limit) {
  const int64_t index = reader.number();
  check(index >= 0 && static_cast<uint64_t>(index) < limit);
  return static_cast<int32_t>(index);
}

Algorithm read_algorithm(Reader& reader) {
  const int64_t number = reader.number();
  check(number >= 0 && number <= static_cast<int64_t>(Algorithm::log_softmax));
  return static_cast<Algorithm>(number);
}

PostOp read_post(Reader& reader, size_t num_tensors) {
  const int64_t kind = reader.number();
  check(kind >= 0 && kind <= static_cast<int64_t>(PostKind::binary));
  PostOp post{.kind = static_cast<PostKind>(kind), .algorithm = read_algorithm(reader)};
  post.alpha = reader.real();
  post.beta = reader.real();
  const int64_t tensor = reader.number();
  check(tensor >= -1 && tensor < static_cast<int64_t>(num_tensors));
  check((tensor >= 0) == (post.kind != PostKind::eltwise));
  post.tensor = static_cast<int32_t>(tensor);
  return post;
}

// Numbers of things that a kind of op must have, given the rank of its first input.
struct OpRule {
  size_t min_inputs, max_inputs, sizes, numbers;
};

OpRule rule_of(OpKind kind, size_t rank) {
  const size_t spatial = rank < 2 ? 0 : rank - 2;
  switch (kind) {
    case OpKind::convolution:
      return {2, 3, 1 + 4 * spatial, 0};
    case OpKind::dense:
      return {2, 3, 0, 0};
    case OpKind::matmul:
      return {2, 2, 2, 0};
    case OpKind::pool:
      return {1, 1, 5 * spatial, 0};
    case OpKind::eltwise:
      return {1, 1, 0, 2};
    case OpKind::binary:
      return {2, 2, 0, 0};
    case OpKind::softmax:
      return {1, 1, 1, 0};
    case OpKind::concat:
      return {1, SIZE_MAX, 1, 0};
    case OpKind::view:
      return {1, 1, 0, 0};
    case OpKind::transpose:
      return {1, 1, rank, 0};
    case OpKind::layer_norm:
      return {3, 3, 0, 1};
  }
  Reader::fail();
}

// The operands are the parts of the result.
void check_concat(const Network& network, const Op& op) {
  Dims whole = network.tensors[static_cast<size_t>(op.inputs[0])].dims;
  const auto axis = static_cast<size_t>(op.sizes[0]);
  check(op.sizes[0] >= 0 && axis < whole.size());
  whole[axis] = 0;
  for (const int32_t input : op.inputs) {
    const Dims& part = network.tensors[static_cast<size_t>(input)].dims;
    check(part.size() == whole.size());
    for (size_t i = 0; i < whole.size(); ++i) check(i == axis || part[i] == whole[i]);
    whole[axis] += part[axis];
  }
  check(whole == network.tensors[static_cast<size_t>(op.output)].dims);
}

// The sizes of convolutions, dense layers and pools that do not fit each other oneDNN itself refuses. Those of other
// ops are checked here, and what is indexed by.
void check_dims(const Network& network, const Op& op, const Dims& first, const Dims& result) {
  const auto dims_of = [&](size_t input) -> const Dims& {
    return network.tensors[static_cast<size_t>(op.inputs[input])].dims;
  };
  const bool keeps_dims = op.kind == OpKind::eltwise || op.kind == OpKind::binary || op.kind == OpKind::softmax ||
                          op.kind == OpKind::layer_norm;
  check(!keeps_dims || result == first);
  if (op.kind == OpKind::convolution) {
    check(!op.sizes.empty() && op.sizes[0] > 0 && first.size() >= 3 && dims_of(1).size() == first.size());
    check(dims_of(1)[0] % op.sizes[0] == 0);
  }
  if (op.kind == OpKind::pool) check(first.size() >= 3);
  if (op.kind == OpKind::matmul)
    check(first.size() >= 2 && dims_of(1).size() == first.size() && result.size() == first.size());
  if (op.kind == OpKind::layer_norm) {
    check(!first.empty());
    for (size_t input : {1, 2}) check(num_elements(dims_of(input)) == first.back());
  }
  if (op.kind == OpKind::transpose) {
    check(result.size() == first.size());
    for (size_t i = 0; i < result.size(); ++i) check(result[i] == first[static_cast<size_t>(op.sizes[i])]);
  }
  for (const PostOp& post : op.post)
    check(post.kind != PostKind::sum || network.tensors[static_cast<size_t>(post.tensor)].dims == result);
}

void check_op(const Network& network, const Op& op) {
  check(!op.inputs.empty());
  const auto& first = network.tensors[static_cast<size_t>(op.inputs[0])].dims;
  const auto& result = network.tensors[static_cast<size_t>(op.output)].dims;
  const OpRule rule = rule_of(op.kind, first.size());
  check(op.inputs.size() >= rule.min_inputs && op.inputs.size() <= rule.max_inputs);
  check(op.sizes.size() == rule.sizes && op.numbers.size() == rule.numbers);
  const bool has_axes = op.kind == OpKind::softmax || op.kind == OpKind::concat || op.kind == OpKind::transpose;
  for (const int64_t size : op.sizes) check(!has_axes || (size >= 0 && static_cast<size_t>(size) < first.size()));
  if (op.kind == OpKind::concat) check_concat(network, op);
  if (op.kind == OpKind::view) check(num_elements(first) == num_elements(result));
  if (op.kind == OpKind::pool || op.kind == OpKind::convolution) check(result.size() == first.size());
  check_dims(network, op, first, result);
}

Op read_op(Reader& reader, size_t num_tensors) {
  Op op;
  const int64_t kind = reader.number();
  check(kind >= 0 && kind <= static_cast<int64_t>(OpKind::layer_norm));
  op.kind = static_cast<OpKind>(kind);
  op.algorithm = read_algorithm(reader);
  op.inputs = reader.numbers<int32_t>();
  for (const int32_t input : op.inputs) check(input >= 0 && static_cast<size_t>(input) < num_tensors);
  op.output = read_index(reader, num_tensors);
  op.sizes = reader.numbers<int64_t>();
  op.numbers = reader.reals();
  const size_t num_post = reader.count(3 * sizeof(int64_t));
  for (size_t i = 0; i < num_post; ++i) op.post.push_back(read_post(reader, num_tensors));
  return op;
}

// Each tensor is an input, a constant or the result of one op, and is there before it is used.
void check_order(const Network& network) {
  std::vector<bool> is_there(network.tensors.size(), false);
  const auto use = [&](int32_t tensor) { check(is_there[static_cast<size_t>(tensor)]); };
  const auto define = [&](int32_t tensor) {
    check(!is_there[static_cast<size_t>(tensor)]);
    is_there[static_cast<size_t>(tensor)] = true;
  };
  for (size_t i = 0; i < network.tensors.size(); ++i) {
    if (network.tensors[i].constant >= 0) define(static_cast<int32_t>(i));
  }
  for (const int32_t input : network.inputs) define(input);
  for (const Op& op : network.ops) {
    for (const int32_t input : op.inputs) use(input);
    for (const PostOp& post : op.post) {
      if (post.tensor >= 0) use(post.tensor);
    }
    define(op.output);
  }
  for (const int32_t output : network.outputs) use(output);
}

Network read_network(Reader& reader, const std::vector<Constant>& constants) {
  Network network{.name = reader.text()};
  const size_t num_constants = reader.count(sizeof(int64_t));
  for (size_t i = 0; i < num_constants; ++i)
    network.constants.push_back(constants[static_cast<size_t>(read_index(reader, constants.size()))]);
  const size_t num_tensors = reader.count(2 * sizeof(int64_t));
  for (size_t i = 0; i < num_tensors; ++i) {
    Tensor tensor{.dims = reader.numbers<int64_t>()};
    int64_t elements = 1;
    for (const int64_t dim : tensor.dims) {
      check(dim > 0 && elements <= kMaxElements / dim);
      elements *= dim;
    }
    const int64_t constant = reader.number();
    check(constant >= -1 && constant < static_cast<int64_t>(num_constants));
    tensor.constant = static_cast<int32_t>(constant);
    if (constant >= 0) check(network.constants[static_cast<size_t>(constant)].size == elements);
    network.tensors.push_back(std::move(tensor));
  }
  for (std::vector<int32_t>* list : {&network.inputs, &network.outputs}) {
    *list = reader.numbers<int32_t>();
    for (const int32_t tensor : *list) check(tensor >= 0 && static_cast<size_t>(tensor) < num_tensors);
  }
  const size_t num_ops = reader.count(sizeof(int64_t));
  for (size_t i = 0; i < num_ops; ++i) {
    network.ops.push_back(read_op(reader, num_tensors));
    check_op(network, network.ops.back());
  }
  check_order(network);
  return network;
}

// Writes indices into `places` for the constants.
void write(Writer& writer, const Network& network, const std::map<std::string, int64_t>& places) {
  writer.text(network.name);
  writer.number(static_cast<int64_t>(network.constants.size()));
  for (const Constant& constant : network.constants) writer.number(places.at(constant.content_id));
  writer.number(static_cast<int64_t>(network.tensors.size()));
  for (const Tensor& tensor : network.tensors) {
    writer.numbers(tensor.dims);
    writer.number(tensor.constant);
  }
  writer.numbers(network.inputs);
  writer.numbers(network.outputs);
  writer.number(static_cast<int64_t>(network.ops.size()));
  for (const Op& op : network.ops) write(writer, op);
}

}  // namespace

int32_t Network::add_tensor(Dims dims) {
  tensors.push_back({.dims = std::move(dims)});
  return static_cast<int32_t>(tensors.size() - 1);
}

int64_t num_elements(const Dims& dims) {
  int64_t elements = 1;
  for (const int64_t dim : dims) elements *= dim;
  return elements;
}

Blob save(const std::vector<Network>& networks) {
  Blob blob;
  std::map<std::string, int64_t> places;
  for (const Network& network : networks) {
    for (const Constant& constant : network.constants) {
      const bool is_new = places.emplace(constant.content_id, static_cast<int64_t>(places.size())).second;
      if (is_new) blob.content_ids.push_back(constant.content_id);
    }
  }
  Writer writer;
  writer.number(static_cast<int64_t>(places.size()));
  writer.number(static_cast<int64_t>(networks.size()));
  for (const Network& network : networks) write(writer, network, places);
  blob.bytes = writer.take();
  return blob;
}

std::vector<Network> load(const char* data, uint64_t size, const std::vector<Constant>& constants) {
  Reader reader(data, size);
  std::vector<Network> networks;
  if (const int64_t needed = reader.number(); needed != static_cast<int64_t>(constants.size()))
    throw std::runtime_error("it needs " + std::to_string(needed) + " constants and got " +
                             std::to_string(constants.size()) + "; compile the model again");
  const size_t count = reader.count(sizeof(int64_t));
  for (size_t i = 0; i < count; ++i) networks.push_back(read_network(reader, constants));
  if (!reader.is_at_end()) Reader::fail();
  return networks;
}

}  // namespace headrace_onednn
