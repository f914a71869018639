#include "kit/relay_programs.h"

#include "kit/functional_motifs.h"
#include "ops/all_ops.h"
#include "ops/nn/conv.h"
#include "ops/nn/matmul.h"
#include "ops/nn/normalization.h"
#include "ops/nn/pad.h"
#include "ops/nn/pool.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/creation.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/join.h"
#include "ops/tensor/reduce.h"
#include "ops/tensor/repeat.h"
#include "ops/tensor/shape.h"
#include "ops/tensor/slice.h"
#include "relay/infer/infer_type.h"

namespace headrace::kit {

namespace {

using relay::make_call;
using relay::Var;

const DataType kFloat = DataType::float_(32);
constexpr int64_t kMostElements = 600;

Shape shape_of(const Expr& expr) { return *as_shape(expr->checked_type().as<TensorTypeNode>()->shape); }

class Generator {
 public:
  Generator(uint64_t seed, const ProgramSize& size) : random_(seed), size_(size), inline_helper_(seed % 3 == 0) {}

  IRModule run() {
    const int64_t inputs = random_.integer(2, 3);
    for (int64_t i = 0; i < inputs; ++i) add_input();
    helper_ = relay::make_function({}, Expr());
    make_helper();
    for (int i = 0; i < size_.steps; ++i) step();
    Expr body = result();
    for (size_t i = lets_.size(); i > 0; --i) body = relay::make_let(lets_[i - 1].first, lets_[i - 1].second, body);
    const IRModule module = snapshot(module_for_types_);
    module->add_function(make_global_var("main"), relay::make_function(params_, body));
    return relay::infer_type(module);
  }

 private:
  void add_input() {
    static const Shape kShapes[] = {{2, 3}, {3}, {1, 4, 6, 6}, {2, 3, 4}, {1, 2, 5, 5}, {4, 6}};
    Shape shape = kShapes[random_.index(std::size(kShapes))];
    if (shape.size() == 4 && size_.channels != ProgramSize().channels) shape[1] = size_.channels;
    const auto var = relay::make_var(fmt::format("x{}", params_.size()), make_tensor_type(shape, kFloat));
    params_.push_back(var);
    keep(var);
  }

  // @helper(%a) gives tanh(a * 0.5) of a vector of 3; in a third of the programs it is marked Inline.
  void make_helper() {
    const Type type = make_tensor_type({3}, kFloat);
    const auto param = relay::make_var("a", type);
    DictAttrs attrs;
    if (inline_helper_) attrs.set("Inline", Value(1));
    const Expr body = ops::unary("tanh", ops::multiply(param, relay::make_scalar(0.5)));
    helper_ = relay::make_function({param}, body, type, {}, attrs);
    helper_name_ = make_global_var("helper");
    module_for_types_ = size_.functional ? functional_prelude() : make_module();
    module_for_types_->add_function(helper_name_, helper_);
  }

  // Takes `expr` as a value of the program if it has a type, and one of moderate size.
  bool keep(const Expr& expr) {
    try {
      const Expr typed = relay::infer_type(expr, module_for_types_);
      const auto* tensor = typed->checked_type().as<TensorTypeNode>();
      const auto shape = tensor == nullptr ? std::nullopt : as_shape(tensor->shape);
      if (!shape || tensor->dtype != kFloat) return false;
      const int64_t count = num_elements(*shape);
      if (count == 0 || count > kMostElements * size_.channels / 3 || shape->size() > 5) return false;
      pool_.push_back(typed);
      return true;
    } catch (const UserError&) {
      return false;  // these operands do not go together
    }
  }

  // Recent values more often than old ones.
  Expr pick() {
    const size_t window = random_.chance(0.6f) ? std::min<size_t>(4, pool_.size()) : pool_.size();
    return pool_[pool_.size() - 1 - random_.index(window)];
  }
  Expr pick_of_rank(size_t rank) {
    for (int i = 0; i < 8; ++i) {
      if (Expr value = pick(); shape_of(value).size() == rank) return value;
    }
    return {};
  }

  NDArray tensor(const Shape& shape, float low = -1, float high = 1) {
    NDArray data = NDArray::empty(shape, kFloat);
    for (int64_t i = 0; i < data.num_elements(); ++i) data.data<float>()[i] = random_.uniform(low, high);
    return data;
  }
  Expr constant(const Shape& shape, float low = -1, float high = 1) {
    return relay::make_constant(tensor(shape, low, high));
  }
  Expr scalar() {
    static constexpr double kValues[] = {0, 1, 0.5, -1, 2, -0.25};
    return relay::make_scalar(kValues[random_.index(std::size(kValues))]);
  }

  void step() {
    for (int tries = 0; tries < 20; ++tries) {
      if (keep(make())) return;
    }
  }

  Expr make() {
    switch (random_.integer(0, size_.functional ? 13 : 11)) {
      case 12:
      case 13:
        return make_functional();
      case 0:
        return make_unary();
      case 1:
      case 2:
        return make_binary_op();
      case 3:
        return make_constant_chain();
      case 4:
        return make_reduction();
      case 5:
      case 6:
        return make_view();
      case 7:
        return make_join();
      case 8:
      case 9:
        return make_anchor();
      case 10:
        return size_.control_flow ? make_control() : make_unary();
      default:
        return size_.shape_arithmetic ? make_dynamic() : make_view();
    }
  }

  Expr make_unary() {
    static constexpr const char* kOps[] = {"nn.relu", "tanh", "sigmoid", "negative", "abs", "copy", "erf", "sin"};
    const char* op = kOps[random_.index(std::size(kOps))];
    const Expr data = pick();
    if (random_.chance(0.4f)) return make_law(data, pick());
    if (random_.chance(0.2f)) return make_wide(data);
    if (random_.chance(0.2f)) return ops::clip(data, -0.75, 0.5);
    return random_.chance(0.2f) ? ops::unary(op, ops::unary(op, data)) : ops::unary(op, data);
  }

  // By way of float64, which one op or two read.
  Expr make_wide(const Expr& data) {
    const DataType wide = DataType::float_(64);
    const Expr widened = ops::cast(data, wide);
    if (random_.chance(0.5f)) return ops::cast(widened, kFloat);
    const Expr half = ops::multiply(widened, relay::make_scalar(0.5, wide));
    return ops::cast(ops::add(ops::unary("tanh", widened), half), kFloat);
  }

  // Makes expressions for SimplifyExpr's laws: negatives, bounds, conditions, powers, shapes twice.
  Expr make_law(const Expr& a, const Expr& b) {
    const auto one = [](const char* op, const Expr& x) { return ops::unary(op, x); };
    const Expr zero = relay::make_scalar(0), half = relay::make_scalar(0.5);
    switch (random_.integer(0, 11)) {
      case 0:
        return one("tanh", ops::add(one("negative", a), b));
      case 1:
        return one("tanh", ops::subtract(a, one("negative", b)));
      case 2:
        return one("negative", one("tanh", ops::subtract(zero, one("negative", a))));
      case 3:
        return one("tanh", ops::multiply(one("negative", a), one("negative", b)));
      case 4:
        return ops::binary("minimum", ops::binary("maximum", a, relay::make_scalar(-0.25)), half);
      case 5:
        return ops::relu(ops::clip(ops::clip(a, -0.5, 2), -0.25, 1));
      case 6: {
        const Expr condition = one("logical_not", ops::binary("less", params_[0], zero));
        return ops::where(condition, params_[0], one("abs", one("negative", params_[0])));
      }
      case 7:
        return one("tanh", ops::binary("power", a, relay::make_scalar(2)));
      case 8:
        return ops::relu(one("sigmoid", ops::subtract(ops::add(a, half), relay::make_scalar(2))));
      case 9:
        return one("tanh", ops::add(ops::subtract(a, half), scalar()));
      case 10:
        return ops::reverse(ops::reverse(a, -1), -1);
      default:
        return one("tanh", ops::reduce("sum", ops::expand_dims(a, 0), Shape{0}, random_.chance(0.5f)));
    }
  }

  Expr make_binary_op() {
    const Expr a = pick(), b = random_.chance(0.3f) ? scalar() : pick();
    switch (random_.integer(0, 4)) {
      case 0:
        return ops::unary("tanh", ops::add(a, b));
      case 1:
        return ops::unary("tanh", ops::subtract(a, b));
      case 2:
        return ops::unary("tanh", ops::multiply(b, a));
      case 3:
        return ops::binary("maximum", a, b);
      default:
        if (random_.chance(0.4f)) return ops::unary("tanh", ops::divide(a, make_divisor(a)));
        return ops::divide(a, ops::add(ops::unary("abs", b), relay::make_scalar(1)));
    }
  }

  // Returns a constant for the last axis of `a`, or for all of it.
  Expr make_divisor(const Expr& a) {
    const Shape shape = shape_of(a);
    return shape.empty() || random_.chance(0.5f) ? relay::make_scalar(1.5) : constant({shape.back()}, 0.5f, 2);
  }

  // Makes a chain of constants that SimplifyExpr joins.
  Expr make_constant_chain() {
    Expr value = pick();
    const char* op = random_.chance(0.5f) ? "add" : "multiply";
    for (int64_t i = random_.integer(1, 3); i > 0; --i) {
      const Shape shape = shape_of(pool_.back());
      const Expr c = random_.chance(0.5f) || shape.empty() ? scalar() : constant({shape.back()});
      value = random_.chance(0.5f) ? ops::binary(op, value, c) : ops::binary(op, c, value);
    }
    return ops::unary("tanh", value);
  }

  Expr make_reduction() {
    const Expr data = pick();
    const auto rank = static_cast<int64_t>(shape_of(data).size());
    if (rank == 0) return ops::unary("tanh", data);
    if (random_.chance(0.3f)) return ops::softmax(data, random_.integer(-1, rank - 1));
    static constexpr const char* kOps[] = {"sum", "mean", "max", "min"};
    ops::ReduceAttrs attrs;
    attrs.axis = Shape{random_.integer(0, rank - 1)};
    attrs.keepdims = random_.chance(0.5f);
    return ops::unary("tanh",
                      make_call(kOps[random_.index(std::size(kOps))], {data}, make_object<ops::ReduceAttrs>(attrs)));
  }

  Expr make_view() {
    const Expr data = pick();
    const Shape shape = shape_of(data);
    const auto rank = static_cast<int64_t>(shape.size());
    switch (random_.integer(0, 7)) {
      case 0:
        return ops::reshape(data, {-1});
      case 1:
        return ops::reshape(data, {num_elements(shape), 1});
      case 2: {
        Shape axes;
        for (int64_t i = 0; i < rank; ++i) axes.insert(axes.begin() + random_.integer(0, i), i);
        return ops::transpose(data, axes);
      }
      case 3:
        return ops::expand_dims(data, random_.integer(0, rank), random_.integer(1, 2));
      case 4:
        return ops::squeeze(data);
      case 5:
        return rank == 0 ? data : Expr(ops::reverse(data, random_.integer(0, rank - 1)));
      case 6:
        return ops::strided_slice(data, Shape(shape.size(), 0), shape, Shape(shape.size(), random_.integer(1, 2)));
      default: {
        Array<Shape> widths;
        for (int64_t i = 0; i < rank; ++i) widths.push_back({random_.integer(0, 1), 0});
        return ops::pad(data, widths, relay::make_scalar(0.5));
      }
    }
  }

  Expr make_join() {
    const Expr data = pick();
    const auto rank = static_cast<int64_t>(shape_of(data).size());
    if (rank == 0) return ops::unary("abs", data);
    const int64_t axis = random_.integer(0, rank - 1);
    if (random_.chance(0.5f)) {
      Array<Expr> items{data};
      for (int64_t i = random_.integer(0, 2); i > 0; --i)
        items.push_back(random_.chance(0.5f) ? pick() : ops::relu(data));
      return ops::concatenate(items, axis);
    }
    const int64_t length = shape_of(data)[static_cast<size_t>(axis)];
    const Expr parts = ops::split(data, length, axis);
    const Expr first = relay::make_tuple_get_item(parts, 0);
    return ops::binary("minimum", first, relay::make_tuple_get_item(parts, length - 1));
  }

  Expr scaled(const Expr& data, const Shape& along) {
    const float low = random_.chance(0.7f) ? 0.25f : -1.0f;
    return random_.chance(0.7f) ? ops::multiply(data, constant(along, low, 1.5f)) : data;
  }

  // Makes branches of one tensor, which CombineParallelConv2D, CombineParallelDense and CombineParallelBatchMatmul
  // join.
  Expr make_parallel() {
    const Expr data = pick();
    const size_t rank = shape_of(data).size();
    if (rank < 2 || rank > 4) return {};
    const bool is_conv = rank == 4;
    const bool equal = random_.chance(0.7f), biased = random_.chance(0.7f), bounded = random_.chance(0.7f);
    const int64_t outputs = random_.integer(1, 3), window = random_.chance(0.5f) ? 1 : 3;
    Array<Expr> parts;
    for (int64_t i = random_.integer(3, 4); i > 0; --i) {
      const int64_t own = equal ? outputs : random_.integer(1, 3);
      Expr part = branch(data, own, window);
      if (biased || random_.chance(0.3f)) part = ops::add(part, constant(is_conv ? Shape{own, 1, 1} : Shape{own}));
      parts.push_back(bounded || random_.chance(0.5f) ? ops::unary("tanh", part) : part);
    }
    return ops::unary("tanh", ops::concatenate(parts, is_conv ? 1 : -1));
  }

  // Returns a product of `data` with `outputs` channels or columns.
  Expr branch(const Expr& data, int64_t outputs, int64_t window) {
    const Shape shape = shape_of(data);
    if (shape.size() == 2) return ops::dense(data, constant({outputs, shape[1]}));
    if (shape.size() == 3) return ops::batch_matmul(data, constant({shape[0], outputs, shape[2]}));
    ops::Conv2DAttrs attrs;
    attrs.padding = {window / 2, window / 2};
    return ops::conv2d(data, constant({outputs, shape[1], window, window}, -0.5f, 0.5f), attrs);
  }

  Expr make_anchor() {
    if (random_.chance(0.3f)) {
      if (const Expr parallel = make_parallel()) return parallel;
    }
    if (const Expr data = pick_of_rank(4)) return random_.chance(0.75f) ? make_conv(data) : make_pool(data);
    if (const Expr data = pick_of_rank(2)) {
      const Expr product =
          random_.chance(0.4f) ? make_matmul(data) : ops::dense(data, constant({3, shape_of(data)[1]}));
      const Expr biased = random_.chance(0.5f) ? ops::bias_add(product, constant({3}), -1) : product;
      return ops::unary("tanh", scaled(random_.chance(0.5f) ? ops::relu(biased) : biased, {3}));
    }
    return ops::unary("sin", pick());
  }

  // Returns a product of 3 columns, of two dimensions or over a batch, with its data scaled by rows or columns.
  Expr make_matmul(const Expr& matrix) {
    const Shape shape = shape_of(matrix);
    const bool is_batch = random_.chance(0.5f);
    Expr data = is_batch ? ops::reshape(matrix, {1, shape[0], shape[1]}) : matrix;
    data = scaled(data, random_.chance(0.5f) ? Shape{shape[1]} : Shape{shape[0], 1});
    ops::MatmulAttrs attrs;
    attrs.transpose_a = random_.chance(0.5f);
    attrs.transpose_b = random_.chance(0.5f);
    const int64_t summed = shape[attrs.transpose_a ? 0 : 1];
    const Expr product = ops::matmul(data, constant(attrs.transpose_b ? Shape{3, summed} : Shape{summed, 3}), attrs);
    return is_batch ? ops::squeeze(product, Shape{0}) : product;
  }

  Expr make_conv(const Expr& data) {
    const int64_t channels = shape_of(data)[1];
    const bool depthwise = random_.chance(0.3f);
    ops::Conv2DAttrs attrs;
    attrs.padding = {1, 1};
    const bool pads = random_.chance(0.3f);
    const Expr padded = pads ? ops::pad(data, {{0, 0}, {0, 0}, {1, 0}, {0, 2}}, relay::make_scalar(0)) : data;
    attrs.groups = depthwise ? channels : 1;
    const int64_t outputs = depthwise ? channels : size_.channels;
    Expr value = ops::conv2d(padded, constant({outputs, depthwise ? 1 : channels, 3, 3}, -0.5f, 0.5f), attrs);
    if (random_.chance(0.4f)) value = ops::bias_add(value, constant({outputs}));
    if (random_.chance(0.5f)) {
      value = relay::make_tuple_get_item(ops::batch_norm(value, constant({outputs}), constant({outputs}),
                                                         constant({outputs}), constant({outputs}, 0.5f, 1.5f)),
                                         0);
    } else {
      value = ops::add(scaled(value, {outputs, 1, 1}), constant({outputs, 1, 1}));
    }
    if (random_.chance(0.6f)) value = ops::relu(value);
    return ops::unary("tanh", scaled(value, {1, outputs, 1, 1}));
  }

  Expr make_pool(const Expr& data) {
    if (random_.chance(0.4f)) return make_call("nn.global_avg_pool2d", {data}, make_object<ops::GlobalPool2DAttrs>());
    ops::MaxPool2DAttrs attrs;
    attrs.pool_size = {2, 2};
    return make_call("nn.max_pool2d", {data}, make_object<ops::MaxPool2DAttrs>(attrs));
  }

  Expr make_control() {
    const Expr value = pick();
    const Type type = value->checked_type();
    switch (random_.integer(0, 3)) {
      case 0: {
        const auto var = relay::make_var(fmt::format("v{}", lets_.size()), type);
        lets_.emplace_back(var, ops::unary("tanh", value));
        return random_.chance(0.8f) ? ops::unary("sin", var) : Expr(ops::relu(value));  // sometimes not used
      }
      case 1:
        return relay::make_if(condition(), ops::unary("tanh", value), ops::unary("negative", ops::relu(value)));
      case 2: {
        const auto var = relay::make_var("p", type);
        const auto function = relay::make_function({var}, ops::unary("tanh", ops::add(var, value)), type);
        return relay::make_call(Expr(function), {ops::relu(value)});
      }
      default: {  // takes a vector of 3
        const Expr mean = ops::reduce("mean", value);
        return relay::make_call(Expr(helper_name_), {ops::add(mean, constant({3}))});
      }
    }
  }

  // Returns a condition on an input alone: no rounding decides it.
  Expr condition() {
    const Expr total = make_call("sum", {params_[0]}, make_object<ops::ReduceAttrs>());
    return ops::binary("less", total, scalar());
  }

  Expr make_functional() {
    const Expr a = pick();
    FunctionalMotif motif = make_functional_motif(random_, module_for_types_, a, condition(), lets_.size());
    lets_.insert(lets_.end(), motif.lets.begin(), motif.lets.end());
    return motif.value;
  }

  // Shapes as values.
  Expr make_dynamic() {
    const Expr data = pick();
    const Expr shape = ops::shape_of(data, DataType::int_(64));
    if (random_.chance(0.5f)) {
      const NDArray minus_one = NDArray::from_vector<int64_t>({1}, DataType::int_(64), {-1});
      const Expr first = ops::strided_slice(shape, Shape{0}, Shape{1});
      return ops::reshape(data, ops::concatenate({first, relay::make_constant(minus_one)}));
    }
    return random_.chance(0.5f) ? ops::broadcast_to(pick(), shape) : ops::add(data, ops::full(scalar(), shape, kFloat));
  }

  Expr result() {
    Array<Expr> items;
    const size_t last = std::min<size_t>(pool_.size(), 2);
    for (size_t i = 0; i < last; ++i) items.push_back(pool_[pool_.size() - 1 - i]);
    for (int i = 0; i < 3; ++i) items.push_back(pool_[random_.index(pool_.size())]);
    return relay::make_tuple(items);
  }

  Random random_;
  ProgramSize size_;
  bool inline_helper_;
  Array<Var> params_;
  std::vector<Expr> pool_;
  std::vector<std::pair<Var, Expr>> lets_;
  relay::Function helper_;
  GlobalVar helper_name_;
  IRModule module_for_types_;
};

}  // namespace

IRModule random_program(uint64_t seed, const ProgramSize& size) {
  ops::register_all_ops();
  return Generator(seed, size).run();
}

std::vector<NDArray> random_inputs(const IRModule& module, Random& random) {
  std::vector<NDArray> inputs;
  const BaseFunc main = module->lookup("main");
  for (const Var& param : main.as<relay::FunctionNode>()->params) {
    NDArray data = NDArray::empty(shape_of(param), kFloat);
    for (int64_t i = 0; i < data.num_elements(); ++i) data.data<float>()[i] = random.uniform(-1, 1);
    inputs.push_back(data);
  }
  return inputs;
}

}  // namespace headrace::kit
