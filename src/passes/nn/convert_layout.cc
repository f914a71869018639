#include "passes/nn/convert_layout.h"

#include <fmt/ranges.h>

#include <numeric>

#include "ops/image/image.h"
#include "ops/nn/conv.h"
#include "ops/nn/normalization.h"
#include "ops/nn/pad.h"
#include "ops/nn/pool.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/join.h"
#include "ops/tensor/reduce.h"
#include "ops/tensor/shape.h"
#include "passes/rewrite/for_each_function.h"
#include "relay/function_attrs.h"
#include "relay/visit.h"

namespace headrace::passes {

using relay::CallNode;
using relay::LetNode;
using relay::Var;

namespace {

// Axis i of the value as it is stored is axis order[i] of the value as it was written; empty: as it was written.
using Order = Shape;

bool is_as_written(const Order& order) { return std::is_sorted(order.begin(), order.end()); }

Order inverse(const Order& order) {
  Order result(order.size());
  for (size_t i = 0; i < order.size(); ++i) result[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return result;
}

// The order that makes `from` into `to`; nothing when they are not made of the same letters.
std::optional<Order> order_between(std::string_view from, std::string_view to) {
  Order order;
  for (const char letter : to) {
    const size_t at = from.find(letter);
    if (at == std::string_view::npos) return std::nullopt;
    order.push_back(static_cast<int64_t>(at));
  }
  Order sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<int64_t>(i)) return std::nullopt;
  }
  return from.size() == to.size() ? std::optional(order) : std::nullopt;
}

std::string reordered(std::string_view layout, const Order& order) {
  std::string result;
  for (const int64_t axis : order) result.push_back(layout[static_cast<size_t>(axis)]);
  return result;
}

int64_t new_axis(int64_t axis, const Order& order) { return inverse(order)[ops::normal_axis(axis, order.size())]; }

size_t rank_of(const Expr& expr) {
  const auto* tensor = expr->has_checked_type() ? expr->checked_type().as<TensorTypeNode>() : nullptr;
  return tensor == nullptr ? 0 : tensor->shape.size();
}

struct Stored {
  Expr expr;
  Order order;
  Expr as_written;  // made when first asked for
};

class LayoutConverter {
 public:
  explicit LayoutConverter(const DesiredLayouts& desired) : desired_(desired) {}

  Expr run(const Expr& body) {
    relay::post_order(body, is_entered, [&](const Expr& e) {
      if (const auto* let = e.as<LetNode>()) let_values_.emplace(let->var.object(), let);
    });
    relay::post_order(body, is_entered, [&](const Expr& e) { done_.emplace(e.object(), convert(e)); });
    return as_written(body);
  }

 private:
  static bool is_entered(const Expr& e) {
    const auto* function = e.as<relay::FunctionNode>();
    return function == nullptr || !(relay::is_sealed(*function) || relay::is_left_alone(*function));
  }

  Stored& at(const Expr& expr) { return done_.at(expr.object()); }

  Expr as_written(const Expr& expr) {
    Stored& stored = at(expr);
    if (stored.order.empty()) return stored.expr;
    if (!stored.as_written) stored.as_written = ops::transpose(stored.expr, inverse(stored.order), expr->span);
    return stored.as_written;
  }

  // `expr` in that order.
  Expr in_order(const Expr& expr, const Order& order) {
    if (order.empty() || is_as_written(order)) return as_written(expr);
    return at(expr).order == order ? at(expr).expr : ops::transpose(as_written(expr), order, expr->span);
  }

  Stored convert(const Expr& e) {
    if (const auto* call = e.as<CallNode>(); call != nullptr && call->as_op() != nullptr) {
      if (auto stored = convert_call(*call)) {
        if (is_as_written(stored->order)) stored->order = {};
        return *stored;
      }
    }
    if (const auto* let = e.as<LetNode>()) return convert_let(e, *let);
    if (e.is<relay::VarNode>()) return convert_var(e);
    std::vector<Expr> children = relay::children_of(e);
    for (Expr& child : children) child = as_written(child);
    return {relay::with_children(e, children), {}, {}};
  }

  // A variable is as its value is.
  Stored convert_var(const Expr& e) {
    const auto let = let_values_.find(e.object());
    const auto value = let == let_values_.end() ? done_.end() : done_.find(let->second->value.object());
    const Var& var = ref(e.as<relay::VarNode>());
    if (value == done_.end() || value->second.order.empty()) return {e, {}, {}};
    return {relay::make_var(var->name_hint, {}, var->span), value->second.order, {}};
  }

  Stored convert_let(const Expr& e, const LetNode& let) {
    const Stored value = at(let.value), body = at(let.body);
    const Stored& var = at(let.var);
    const Expr bound = var.order.empty() ? as_written(let.value) : value.expr;
    if (bound == let.value && body.expr == let.body) return {e, body.order, {}};
    return {relay::make_let(var.expr.cast<relay::VarNode>(), bound, body.expr, e->span), body.order, {}};
  }

  static Expr with(const CallNode& call, Array<Expr> args, Attrs attrs) {
    return copy_with(call, [&](CallNode& copy) {
      copy.args = std::move(args);
      copy.attrs = std::move(attrs);
    });
  }

  std::optional<Stored> convert_call(const CallNode& call) {
    const std::string& op = call.as_op()->name;
    if (op == "nn.conv2d") return convert_conv<ops::Conv2DAttrs>(call);
    if (op == "nn.conv2d_transpose") return convert_conv<ops::Conv2DTransposeAttrs>(call);
    if (op == "nn.max_pool2d") return convert_window<ops::MaxPoolAttrs>(call);
    if (op == "nn.avg_pool2d") return convert_window<ops::AvgPoolAttrs>(call);
    if (op == "nn.global_max_pool2d" || op == "nn.global_avg_pool2d")
      return convert_window<ops::GlobalPool2DAttrs>(call);
    if (op == "image.resize2d" && call.args.size() == 1) return convert_window<ops::Resize2DAttrs>(call);
    return follow(call, op);
  }

  template <typename T>
  std::optional<Stored> convert_conv(const CallNode& call) {
    const auto layouts = desired_.get(call.as_op()->name);
    if (!layouts) return std::nullopt;
    const T& attrs = call.attrs_as<T>();
    const std::string wanted = (*layouts)[0] == "default" ? attrs.data_layout : (*layouts)[0];
    const std::string kernel = kernel_layout(*layouts, wanted, attrs.kernel_layout);
    const std::string& out_layout = attrs.out_layout.empty() ? attrs.data_layout : attrs.out_layout;
    const auto data = order_between(attrs.data_layout, wanted), weight = order_between(attrs.kernel_layout, kernel);
    const auto out = order_between(out_layout, wanted);
    if (!data || !weight || !out) return std::nullopt;
    const Attrs changed = copy_with(attrs, [&](T& a) {
      a.data_layout = wanted;
      a.kernel_layout = kernel;
      a.out_layout = "";
    });
    return Stored{with(call, {in_order(call.args[0], *data), in_order(call.args[1], *weight)}, changed), *out, {}};
  }

  static std::string kernel_layout(const Array<std::string>& layouts, const std::string& data, const std::string& own) {
    const std::string given = layouts.size() < 2 ? "default" : layouts[1];
    if (given != "default" || own.find('O') == std::string::npos) return given;
    const bool output_first = own.find('O') < own.find('I');
    if (data == "NHWC") return output_first ? "HWIO" : "HWOI";
    return output_first ? "OIHW" : "IOHW";
  }

  // Pools and the like: in the order that is asked for, else in that of their data.
  template <typename T>
  std::optional<Stored> convert_window(const CallNode& call) {
    const T& attrs = call.attrs_as<T>();
    const std::string own = attrs.layout.empty() ? "NCHW" : attrs.layout;
    const auto layouts = desired_.get(call.as_op()->name);
    std::optional<Order> order = at(call.args[0]).order;
    if (layouts && (*layouts)[0] != "default") order = order_between(own, (*layouts)[0]);
    if (!order || order->empty()) return std::nullopt;
    const std::string layout = reordered(own, *order);
    auto changed = make_object<T>(attrs);
    if constexpr (requires { changed->out_layout; }) {
      if (!attrs.out_layout.empty() && attrs.out_layout != own) return std::nullopt;
      changed->out_layout = "";
    } else {
      if (layout != "NCHW" && layout != "NHWC") return std::nullopt;
    }
    changed->layout = layout;
    return Stored{with(call, {in_order(call.args[0], *order)}, Attrs(changed)), *order, {}};
  }

  // Ops that take their data's order; nothing for those that cannot.
  std::optional<Stored> follow(const CallNode& call, const std::string& op) {
    if (op == "concatenate") return follow_concatenate(call);
    if (call.args.empty() || !call.as_op()->find(ops::kFusionKind)) return std::nullopt;
    const Order& first = at(call.args[0]).order;
    const auto kind = *call.as_op()->find(ops::kFusionKind);
    if (kind == ops::FusionKind::elementwise && call.args.size() == 1 && rank_of(ref(&call)) == first.size())
      return first.empty() ? std::nullopt
                           : std::optional(Stored{with(call, {at(call.args[0]).expr}, call.attrs), first, {}});
    const bool is_broadcast = kind == ops::FusionKind::broadcast || kind == ops::FusionKind::elementwise;
    if (is_broadcast && !call.attrs && call.args.size() >= 2) return follow_broadcast(call);
    if (first.empty()) return std::nullopt;
    if (op == "nn.bias_add") return with_axis<ops::BiasAddAttrs>(call, first);
    if (op == "nn.prelu") return with_axis<ops::PReluAttrs>(call, first);
    if (op == "nn.softmax" || op == "nn.log_softmax") return with_axis<ops::SoftmaxAttrs>(call, first);
    if (op == "nn.pad" && call.args.size() == 2) return follow_pad(call, first);
    if (call.attrs.is<ops::ReduceAttrs>()) return follow_reduce(call, first);
    return std::nullopt;
  }

  template <typename T>
  std::optional<Stored> with_axis(const CallNode& call, const Order& order) {
    Array<Expr> args = call.args;
    for (size_t i = 1; i < args.size(); ++i) args.set(i, as_written(call.args[i]));
    args.set(0, at(call.args[0]).expr);
    const T& attrs = call.attrs_as<T>();
    return Stored{with(call, args, copy_with(attrs, [&](T& a) { a.axis = new_axis(attrs.axis, order); })), order, {}};
  }

  std::optional<Stored> follow_pad(const CallNode& call, const Order& order) {
    const auto& attrs = call.attrs_as<ops::PadAttrs>();
    if (attrs.pad_width.size() != order.size()) return std::nullopt;
    Array<Shape> widths;
    for (const int64_t axis : order) widths.push_back(attrs.pad_width[static_cast<size_t>(axis)]);
    const Attrs changed = copy_with(attrs, [&](ops::PadAttrs& a) { a.pad_width = widths; });
    return Stored{with(call, {at(call.args[0]).expr, as_written(call.args[1])}, changed), order, {}};
  }

  std::optional<Stored> follow_reduce(const CallNode& call, const Order& order) {
    const auto& attrs = call.attrs_as<ops::ReduceAttrs>();
    if (!attrs.keepdims) return std::nullopt;
    const Attrs changed = copy_with(attrs, [&](ops::ReduceAttrs& a) {
      if (!attrs.axis) return;
      Shape axes;
      for (const int64_t axis : *attrs.axis) axes.push_back(new_axis(axis, order));
      a.axis = axes;
    });
    return Stored{with(call, {at(call.args[0]).expr}, changed), order, {}};
  }

  std::optional<Stored> follow_concatenate(const CallNode& call) {
    const auto* tuple = call.args[0].as<relay::TupleNode>();
    if (tuple == nullptr) return std::nullopt;
    Order order;
    for (const Expr& item : tuple->items) {
      if (!at(item).order.empty()) order = at(item).order;
    }
    if (order.empty()) return std::nullopt;
    Array<Expr> items;
    for (const Expr& item : tuple->items) items.push_back(in_order(item, order));
    const auto& attrs = call.attrs_as<ops::ConcatenateAttrs>();
    return Stored{ops::concatenate(items, new_axis(attrs.axis, order), call.span), order, {}};
  }

  std::optional<Stored> follow_broadcast(const CallNode& call) {
    Order order;
    for (const Expr& arg : call.args) {
      if (!at(arg).order.empty()) order = at(arg).order;
    }
    const size_t rank = rank_of(ref(&call));
    if (order.empty() || order.size() != rank) return std::nullopt;
    Array<Expr> args;
    for (const Expr& arg : call.args) {
      const size_t arg_rank = rank_of(arg);
      if (arg_rank == rank) {
        args.push_back(in_order(arg, order));
      } else if (arg_rank == 0) {
        args.push_back(as_written(arg));
      } else {
        const auto added = static_cast<int64_t>(rank - arg_rank);
        args.push_back(ops::transpose(ops::expand_dims(as_written(arg), 0, added, arg->span), order, arg->span));
      }
    }
    return Stored{with(call, args, call.attrs), order, {}};
  }

  const DesiredLayouts& desired_;
  std::unordered_map<const Object*, const LetNode*> let_values_;
  std::unordered_map<const Object*, Stored> done_;
};

struct LayoutOp {
  std::string_view name;
  std::string_view data, kernel;  // the letters; no kernel: empty
};
constexpr LayoutOp kLayoutOps[] = {
    {"nn.conv2d", "NCHW", "OIHW"},  {"nn.conv2d_transpose", "NCHW", "IOHW"}, {"nn.max_pool2d", "NCHW", ""},
    {"nn.avg_pool2d", "NCHW", ""},  {"nn.global_max_pool2d", "NCHW", ""},    {"nn.global_avg_pool2d", "NCHW", ""},
    {"image.resize2d", "NCHW", ""},
};
constexpr const char* kKey = "relay.ConvertLayout.desired_layouts";

void check_layouts(const std::string& op, const Array<std::string>& layouts) {
  const auto* known =
      std::find_if(std::begin(kLayoutOps), std::end(kLayoutOps), [&](const LayoutOp& row) { return row.name == op; });
  if (known == std::end(kLayoutOps)) {
    std::vector<std::string_view> names;
    for (const LayoutOp& row : kLayoutOps) names.push_back(row.name);
    throw_user_error("{}: '{}' has no layout to convert; these have: {}", kKey, op, fmt::join(names, ", "));
  }
  const size_t most = known->kernel.empty() ? 1 : 2;
  if (layouts.empty() || layouts.size() > most)
    throw_user_error("{}: '{}' takes {}, got {} layouts", kKey, op,
                     most == 1 ? "one layout" : "one or two layouts (data, kernel)", layouts.size());
  for (size_t i = 0; i < layouts.size(); ++i) {
    const std::string_view letters = i == 0 ? known->data : known->kernel;
    if (layouts[i] != "default" && !order_between(letters, layouts[i]))
      throw_user_error("{}: '{}' is no order of the letters {} of '{}'", kKey, layouts[i], letters, op);
  }
}

}  // namespace

DesiredLayouts desired_layouts(const pass::PassContext& context) {
  const auto value = context.config.get(kKey);
  if (!value) return {};
  if (!value->is<DesiredLayouts>())
    throw_user_error("{} must map names of ops to lists of layouts, got {}", kKey, repr(*value));
  const auto desired = value->as<DesiredLayouts>();
  for (const auto& [op, layouts] : desired) check_layouts(op, layouts);
  return desired;
}

IRModule convert_layout(const IRModule& module, const DesiredLayouts& desired) {
  if (desired.empty()) return module;
  return rewrite_bodies(module, [&](const Expr& body) { return LayoutConverter(desired).run(body); });
}

}  // namespace headrace::passes
