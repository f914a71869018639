// Networks: the backend's own form of a region, which artifacts hold as a blob. A compile makes one from a graph of
// Headrace (read_graph.h) and fuses it (fuse.h); where the model runs it becomes primitives of oneDNN (primitives.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace headrace_onednn {

using Dims = std::vector<int64_t>;

// Numbers of these are saved: never change one.
enum class OpKind : uint8_t {
  convolution = 0,  // data, weights [, bias]; sizes: groups, then strides, dilations, pads before, pads after
  dense = 1,        // data, weights [, bias]
  matmul = 2,       // batches of a, b; sizes: whether a, b are transposed
  pool = 3,         // sizes: kernel, strides, dilations, pads before, pads after
  eltwise = 4,      // numbers: alpha, beta
  binary = 5,       // a, b, which is broadcast to a
  softmax = 6,      // sizes: axis
  concat = 7,       // sizes: axis
  view = 8,         // keeps the elements and their order, changes the shape
  transpose = 9,    // sizes: which axis of the input each axis of the output is
  layer_norm = 10,  // data, scale, shift, over the last axis; numbers: epsilon
};

enum class Algorithm : uint8_t {
  none = 0,
  pool_max = 1,
  pool_average = 2,         // over the elements that are there
  pool_average_padded = 3,  // over the whole window, zeros included
  relu = 10,                // alpha: the slope below 0
  logistic = 11,
  tanh = 12,
  exp = 13,
  sqrt = 14,
  log = 15,
  abs = 16,
  clip = 17,    // to alpha .. beta
  gelu = 18,    // by erf
  swish = 19,   // x * logistic(alpha * x)
  linear = 20,  // alpha * x + beta
  add = 30,
  subtract = 31,
  multiply = 32,
  divide = 33,
  maximum = 34,
  minimum = 35,
  softmax = 40,
  log_softmax = 41,
};

enum class PostKind : uint8_t {
  eltwise = 0,
  sum = 1,     // plus a tensor of the output's sizes, whose memory may become that of the output
  binary = 2,  // with a tensor that is broadcast to the output
};

// An operation on an op's result before it is stored.
struct PostOp {
  PostKind kind = PostKind::eltwise;
  Algorithm algorithm = Algorithm::none;
  float alpha = 0, beta = 0;
  int32_t tensor = -1;  // the other operand of sum and binary
};

struct Op {
  OpKind kind = OpKind::view;
  Algorithm algorithm = Algorithm::none;
  std::vector<int32_t> inputs = {};
  int32_t output = -1;
  Dims sizes = {};
  std::vector<float> numbers = {};
  std::vector<PostOp> post = {};
};

// A dense float32 tensor.
struct Tensor {
  Dims dims = {};
  int32_t constant = -1;  // its elements' index in Network::constants; -1: none
};

// The elements of a constant, which somebody else keeps.
struct Constant {
  std::string content_id = {};  // while a model is compiled
  const float* data = nullptr;
  int64_t size = 0;
};

struct Network {
  std::string name;  // the region's name
  std::vector<Tensor> tensors = {};
  std::vector<int32_t> inputs = {}, outputs = {};
  std::vector<Op> ops = {};  // each after those that it needs
  std::vector<Constant> constants = {};

  int32_t add_tensor(Dims dims);
};

int64_t num_elements(const Dims& dims);

// The bytes of networks, and what they leave to the host: the constants, each content once.
struct Blob {
  std::string bytes;
  std::vector<std::string> content_ids;
};
Blob save(const std::vector<Network>& networks);

// Reads networks, which use the given constants in place. Throws std::runtime_error with a sentence for bytes that are
// no blob of this version, or that hold a network which breaks a rule: an index, a size or a number of operands that
// cannot be, or a number of constants that differs.
std::vector<Network> load(const char* data, uint64_t size, const std::vector<Constant>& constants);

}  // namespace headrace_onednn
