#include "passes/layout/convert_layout.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "object/function.h"
#include "ops/attrs_copy.h"
#include "ops/axis.h"
#include "ops/call_fusion.h"
#include "ops/image/image.h"
#include "ops/image/vision.h"
#include "ops/layout_form.h"
#include "ops/loops/window.h"
#include "ops/nn/adaptive_pool.h"
#include "ops/nn/conv.h"
#include "ops/nn/deformable.h"
#include "ops/nn/normalization.h"
#include "ops/nn/pad.h"
#include "ops/nn/pool.h"
#include "ops/op_handles.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/join.h"
#include "ops/tensor/rearrange.h"
#include "ops/tensor/reduce.h"
#include "ops/tensor/shape.h"
#include "ops/tensor/slice.h"
#include "passes/rewrite/for_each_function.h"
#include "passes/rewrite/form_rewriter.h"
#include "passes/rewrite/rewrite_calls.h"
#include "relay/match.h"

namespace headrace::passes {

using ops::LayoutForm;
using relay::CallNode;

namespace {

// Converts `expr` from layout `from` to layout `to`: itself, or a layout_transform.
Expr change_layout(const Expr& expr, const Layout& from, const Layout& to, const Span& span) {
  return from == to ? expr : ops::layout_transform(expr, from.text(), to.text(), span);
}

bool can_store(const Expr& expr, const LayoutForm& form) {
  const auto* tensor = relay::tensor_type_of(expr);
  return tensor != nullptr && ops::can_store(tensor->shape, form);
}

// Returns the form of a call's result whose axes are those of `form`; nothing for a tensor of other axes.
std::optional<LayoutForm> result_form(const Type& type, const LayoutForm& form) {
  const auto has_axes = [&](const Type& item) {
    const auto* tensor = item.as<TensorTypeNode>();
    return tensor != nullptr && tensor->shape.size() == form.rank();
  };
  const auto* tuple = type.as<TupleTypeNode>();
  if (tuple == nullptr) return has_axes(type) ? std::optional(form) : std::nullopt;
  LayoutForm result;
  for (const Type& item : tuple->items) result.fields.push_back(has_axes(item) ? form : LayoutForm());
  return result;
}

struct LayoutOp {
  const OpHandle& op;
  std::string_view data, kernel;  // the letters; no kernel: empty
  std::string_view in_parts = "";
};
constexpr LayoutOp kLayoutOps[] = {
    {op::kConv1D, "NCW", "OIW", ops::kPackedAxes},
    {op::kConv2D, "NCHW", "OIHW", ops::kPackedAxes},
    {op::kConv3D, "NCDHW", "OIDHW", ops::kPackedAxes},
    {op::kConv1DTranspose, "NCW", "IOW"},
    {op::kConv2DTranspose, "NCHW", "IOHW"},
    {op::kConv3DTranspose, "NCDHW", "IODHW"},
    {op::kDeformableConv2D, ops::kDeformableData, ops::kDeformableKernel},
    {op::kMaxPool1D, "NCW", "", ops::kPackedAxes},
    {op::kMaxPool2D, "NCHW", "", ops::kPackedAxes},
    {op::kMaxPool3D, "NCDHW", "", ops::kPackedAxes},
    {op::kAvgPool1D, "NCW", "", ops::kPackedAxes},
    {op::kAvgPool2D, "NCHW", "", ops::kPackedAxes},
    {op::kAvgPool3D, "NCDHW", "", ops::kPackedAxes},
    {op::kGlobalMaxPool2D, "NCHW", "", ops::kPackedAxes},
    {op::kGlobalAvgPool2D, "NCHW", "", ops::kPackedAxes},
    {op::kAdaptiveMaxPool1D, "NCW", "", ops::kPackedAxes},
    {op::kAdaptiveMaxPool2D, "NCHW", "", ops::kPackedAxes},
    {op::kAdaptiveMaxPool3D, "NCDHW", "", ops::kPackedAxes},
    {op::kAdaptiveAvgPool1D, "NCW", "", ops::kPackedAxes},
    {op::kAdaptiveAvgPool2D, "NCHW", "", ops::kPackedAxes},
    {op::kAdaptiveAvgPool3D, "NCDHW", "", ops::kPackedAxes},
    {op::kImageResize2D, "NCHW", ""},
    {op::kROIAlign, "NCHW", ""},
};

// Returns the row of an op; null for an op without a layout to convert.
const LayoutOp* find_layout_op(const OpNode* op) {
  const auto* found =
      std::find_if(std::begin(kLayoutOps), std::end(kLayoutOps), [&](const LayoutOp& row) { return row.op.is(op); });
  return found == std::end(kLayoutOps) ? nullptr : found;
}

class LayoutConverter final : FormRewriter<LayoutForm> {
 public:
  explicit LayoutConverter(const LayoutRequest& request) : request_(request) {}

  Expr run(const Expr& body) {
    rewrite(body);
    return as_written(body);
  }

 private:
  Expr change(const Expr& expr, const Stored& stored, const LayoutForm& form) override {
    const LayoutForm& own = stored.form;
    if (!own.fields.empty()) return items_as_written(expr, stored);
    if (form.is_as_written()) return change_layout(stored.expr, own.stored, own.written, expr->span);
    const Layout from = own.is_as_written() ? form.written : own.with_letters_of(form.written).stored;
    return change_layout(stored.expr, from, form.stored, expr->span);
  }

  static Expr items_as_written(const Expr& expr, const Stored& stored) {
    Array<Expr> items;
    for (size_t i = 0; i < stored.form.fields.size(); ++i) {
      const LayoutForm& form = stored.form.fields[i];
      const Expr item = relay::make_tuple_get_item(stored.expr, static_cast<int64_t>(i), expr->span);
      items.push_back(change_layout(item, form.stored, form.written, expr->span));
    }
    return relay::make_tuple(items, expr->span);
  }

  std::optional<Stored> convert(const Expr& e) override {
    if (const auto* item = e.as<relay::TupleGetItemNode>()) return convert_item(*item);
    const auto* call = relay::op_call(e);
    auto stored = call == nullptr ? std::nullopt : convert_call(*call);
    if (stored && request_.converted && !stored->form.is_as_written()) request_.converted(*call);
    return stored;
  }

  std::optional<Stored> convert_item(const relay::TupleGetItemNode& item) {
    const Stored& tuple = at(item.tuple);
    if (tuple.form.fields.empty()) return std::nullopt;
    return Stored{relay::make_tuple_get_item(tuple.expr, item.index, item.span),
                  tuple.form.fields[static_cast<size_t>(item.index)]};
  }

  // Returns `call` with its first argument stored as `data`, and the others as written.
  Expr with_data(const CallNode& call, const Expr& data, Attrs attrs) {
    Array<Expr> args = call.args;
    for (size_t i = 1; i < args.size(); ++i) args.set(i, as_written(call.args[i]));
    args.set(0, data);
    return with(call, args, std::move(attrs));
  }

  static Expr with(const CallNode& call, Array<Expr> args, Attrs attrs) {
    return copy_with(call, [&](CallNode& copy) {
      copy.args = std::move(args);
      copy.attrs = std::move(attrs);
    });
  }

  std::optional<Stored> convert_call(const CallNode& call) {
    if (const LayoutOp* row = find_layout_op(call.as_op())) {
      if (call.attrs.is<ops::ConvAttrs>()) return convert_conv(call, *row);
      if (call.attrs.is<ops::DeformableConv2DAttrs>()) return convert_deformable(call, *row);
      if (call.attrs.is<ops::PoolAttrs>()) return convert_window<ops::PoolAttrs>(call);
      if (call.attrs.is<ops::GlobalPool2DAttrs>()) return convert_window<ops::GlobalPool2DAttrs>(call);
      if (call.attrs.is<ops::AdaptivePoolAttrs>()) return convert_window<ops::AdaptivePoolAttrs>(call);
      if (call.attrs.is<ops::ROIAlignAttrs>()) return convert_window<ops::ROIAlignAttrs>(call);
      if (call.args.size() == 1) return convert_window<ops::Resize2DAttrs>(call);
    }
    return stays(call) ? std::nullopt : follow(call);
  }

  bool stays(const CallNode& call) const { return request_.stays && request_.stays(call); }

  std::optional<Stored> convert_conv(const CallNode& call, const LayoutOp& op) {
    const auto layouts = request_.choose(call);
    if (!layouts) return std::nullopt;
    const auto& attrs = call.attrs_as<ops::ConvAttrs>();
    const Layout own = Layout::parse(attrs.data_layout), own_kernel = Layout::parse(attrs.kernel_layout),
                 own_out = attrs.out_layout.empty() ? own : Layout::parse(attrs.out_layout);
    if (own.is_packed() || own_kernel.is_packed() || own_out.is_packed()) return std::nullopt;
    const Layout wanted = (*layouts)[0] == "default" ? own : Layout::parse((*layouts)[0]);
    const Layout wanted_out = layouts->size() > 2 ? Layout::parse((*layouts)[2]) : wanted;
    const LayoutForm data{own, wanted}, out{own_out, wanted_out};
    if (wanted.is_packed() && wanted_out == own_out) {
      return pad_channels(call, data, {own_kernel, kernel_layout(*layouts, wanted, op)});
    }
    const auto* weight = relay::tensor_type_of(call.args[1]);
    const auto kernel = weight == nullptr
                            ? std::nullopt
                            : ops::broadcast_form(weight->shape, {own_kernel, kernel_layout(*layouts, wanted, op)});
    if (!kernel || !can_store(call.args[0], data) || !can_store(ref(&call), out)) return std::nullopt;
    const Attrs changed = ops::copy_of_own_type(attrs, [&](ops::ConvAttrs& a) {
      a.data_layout = wanted.text();
      a.kernel_layout = kernel->stored.text();
      a.out_layout = wanted_out == wanted ? "" : wanted_out.text();
    });
    return Stored{with(call, {in_form(call.args[0], data), in_form(call.args[1], *kernel)}, changed), out};
  }

  // The offsets lie as the data does.
  std::optional<Stored> convert_deformable(const CallNode& call, const LayoutOp& op) {
    const auto layouts = request_.choose(call);
    const auto& attrs = call.attrs_as<ops::DeformableConv2DAttrs>();
    if (!layouts || (!attrs.out_layout.empty() && attrs.out_layout != attrs.data_layout)) return std::nullopt;
    const Layout own = Layout::parse(attrs.data_layout);
    const Layout wanted = (*layouts)[0] == "default" ? own : Layout::parse((*layouts)[0]);
    const LayoutForm data{own, wanted}, kernel{Layout::parse(attrs.kernel_layout), kernel_layout(*layouts, wanted, op)};
    const Attrs changed = copy_with(attrs, [&](ops::DeformableConv2DAttrs& a) {
      a.data_layout = wanted.text();
      a.kernel_layout = kernel.stored.text();
      a.out_layout = "";
    });
    return Stored{
        with(call, {in_form(call.args[0], data), in_form(call.args[1], data), in_form(call.args[2], kernel)}, changed),
        data};
  }

  // Computes a convolution in blocks that do not divide its output channels.
  Stored pad_channels(const CallNode& call, const LayoutForm& data, const LayoutForm& kernel) {
    const auto& attrs = call.attrs_as<ops::ConvAttrs>();
    const size_t axis = *kernel.written.find('O');
    const int64_t block = kernel.stored.factor('O'), channels = (*relay::known_shape_of(call.args[1]))[axis],
                  padded = (channels + block - 1) / block * block;
    Array<Shape> widths;
    for (size_t i = 0; i < kernel.rank(); ++i) widths.push_back({0, i == axis ? padded - channels : 0});
    const Expr zero = relay::make_scalar(0, relay::tensor_type_of(call.args[1])->dtype);
    const Expr weight = change_layout(ops::pad(as_written(call.args[1]), widths, zero, "constant", call.span),
                                      kernel.written, kernel.stored, call.span);
    const Attrs changed = ops::copy_of_own_type(attrs, [&](ops::ConvAttrs& a) {
      a.data_layout = data.stored.text();
      a.kernel_layout = kernel.stored.text();
      a.out_layout = "";
      a.channels = padded;
    });
    const Expr whole =
        change_layout(with(call, {in_form(call.args[0], data), weight}, changed), data.stored, data.written, call.span);
    return Stored{ops::strided_slice(whole, {0}, {channels}, {1}, {static_cast<int64_t>(*data.written.find('C'))},
                                     "end", call.span)};
  }

  // Returns the kernel's layout; "default" depends on the data's layout only, and not on the kernel's old one.
  static Layout kernel_layout(const Array<std::string>& layouts, const Layout& data, const LayoutOp& op) {
    if (layouts.size() > 1 && layouts[1] != "default") return Layout::parse(layouts[1]);
    const std::string_view channels = op.kernel.substr(0, 2), window = op.kernel.substr(2);
    if (data.text() == fmt::format("N{}C", window))
      return Layout::parse(fmt::format("{}{}", window, channels == "IO" ? "OI" : "IO"));
    const int64_t block = data.factor('C');
    return Layout::parse(block == 1 ? std::string(op.kernel) : fmt::format("{}{}i{}o", op.kernel, block, block));
  }

  // Pools and the like: in the layout that is asked for, else in that of their data.
  template <typename T>
  std::optional<Stored> convert_window(const CallNode& call) {
    const T& attrs = call.attrs_as<T>();
    const Layout own = Layout::parse(attrs.layout.empty() ? "NCHW" : attrs.layout);  // only resize2d has a default
    const auto asked = asked_form(call, own);
    const auto form = asked ? asked : window_form(call, own);
    const bool names_result = asked && request_.as_in_relay;
    if (!form || (form->is_as_written() && !names_result)) return std::nullopt;
    const auto changed = ops::copy_of_own_type(attrs, [&](T& a) { a.layout = form->stored.text(); });
    if constexpr (requires { changed->out_layout; }) {
      if (!attrs.out_layout.empty() && attrs.out_layout != own.text()) return std::nullopt;
      for (const Layout::Item& item : form->stored.items()) {
        if (item.is_part() && ops::kPackedAxes.find(item.letter) == std::string_view::npos) return std::nullopt;
      }
      changed->out_layout = names_result ? changed->layout : "";
    } else {
      if (changed->layout != "NCHW" && changed->layout != "NHWC") return std::nullopt;
    }
    return Stored{with_data(call, in_form(call.args[0], *form), Attrs(changed)), *form};
  }

  // Returns the form that is asked for.
  std::optional<LayoutForm> asked_form(const CallNode& call, const Layout& own) {
    const auto layouts = own.is_packed() ? std::nullopt : request_.choose(call);
    if (!layouts || (*layouts)[0] == "default") return std::nullopt;
    const LayoutForm wanted{own, Layout::parse((*layouts)[0])};
    return can_store(call.args[0], wanted) ? std::optional(wanted) : std::nullopt;
  }

  std::optional<LayoutForm> window_form(const CallNode& call, const Layout& own) {
    if (own.is_packed()) return std::nullopt;
    const LayoutForm& form = at(call.args[0]).form;
    if (stays(call)) return std::nullopt;
    // Results of roi_align count regions where its data counts images: it follows only where it is asked for.
    return form.is_as_written() || call.attrs.is<ops::ROIAlignAttrs>() ? std::nullopt
                                                                       : std::optional(form.with_letters_of(own));
  }

  // Converts ops that take their data's form; returns nothing for ops that cannot.
  std::optional<Stored> follow(const CallNode& call) {
    if (relay::is_call(call, op::kConcatenate)) return follow_concatenate(call);
    if (call.args.empty()) return std::nullopt;
    const auto kind = ops::promised_kind_of(call);
    const LayoutForm& first = at(call.args[0]).form;
    const bool is_broadcast = kind == ops::FusionKind::broadcast || kind == ops::FusionKind::elementwise;
    if (is_broadcast && !call.attrs && call.args.size() >= 2) return follow_broadcast(call);
    if (first.is_as_written()) return std::nullopt;
    if (request_.as_in_relay && relay::is_call(call, op::kBiasAdd)) return bias_as_sum(call, first);
    if (const ops::KeepLayoutFn* keep = call.as_op()->find(ops::kKeepLayout)) {
      auto stored = follow_by_key(call, first, *keep);
      if (!stored && request_.reduces_parts) stored = reduce_parts(call, first);
      return stored || !relay::is_call(call, op::kBiasAdd) ? stored : bias_as_sum(call, first);
    }
    if (kind == ops::FusionKind::elementwise && call.args.size() == 1 && relay::rank_of(ref(&call)) == first.rank())
      return Stored{with(call, {at(call.args[0]).expr}, call.attrs), first};
    if (relay::is_call(call, op::kPad) && call.args.size() == 2) return follow_pad(call, first);
    if (relay::is_call(call, op::kTranspose)) return follow_transpose(call, first);
    if (relay::is_call(call, op::kSliceLike)) return follow_slice_like(call, first);
    return std::nullopt;
  }

  std::optional<Stored> follow_by_key(const CallNode& call, const LayoutForm& form, const ops::KeepLayoutFn& keep) {
    if (relay::is_stateful(*call.as_op())) return std::nullopt;
    if (relay::rank_of(call.args[0]) != form.rank()) return std::nullopt;
    const ops::DroppedAxesFn* dropped = call.as_op()->find(ops::kDroppedAxes);
    const auto attrs = keep(call, form);
    if (!attrs) return std::nullopt;
    const auto result = result_form(call.checked_type(), dropped == nullptr ? form : form.without((*dropped)(call)));
    if (!result) return std::nullopt;
    return Stored{with_data(call, at(call.args[0]).expr, *attrs), *result};
  }

  // Reduces an axis over all its parts, each of which then has one element: a sum over the channels of data in NCHW16c
  // is in NCHW1c.
  std::optional<Stored> reduce_parts(const CallNode& call, const LayoutForm& form) {
    const auto* result = relay::tensor_type_of(ref(&call));
    if (!call.attrs.is<ops::ReduceAttrs>() || result == nullptr || result->shape.size() != form.rank())
      return std::nullopt;
    const auto& attrs = call.attrs_as<ops::ReduceAttrs>();
    const auto own = ops::broadcast_form(result->shape, form);
    if (!own || !attrs.keepdims || !attrs.axis || attrs.exclude) return std::nullopt;
    Shape axes;
    for (size_t i = 0; i < form.stored.items().size(); ++i) {
      const size_t axis = *form.written.find(form.stored.items()[i].letter);
      const auto is_axis = [&](int64_t reduced) { return ops::normal_axis(reduced, form.rank()) == axis; };
      if (std::any_of(attrs.axis->begin(), attrs.axis->end(), is_axis)) axes.push_back(static_cast<int64_t>(i));
    }
    const Attrs changed = copy_with(attrs, [&](ops::ReduceAttrs& a) { a.axis = axes; });
    return Stored{with(call, {at(call.args[0]).expr}, changed), *own};
  }

  // A transpose of a stored value gives the result as written, and so takes the place of a change of layout.
  std::optional<Stored> follow_transpose(const CallNode& call, const LayoutForm& form) {
    if (form.is_packed() || relay::rank_of(call.args[0]) != form.rank()) return std::nullopt;
    Shape axes = call.attrs_as<ops::TransposeAttrs>().axes;
    for (size_t i = form.rank(); axes.size() < form.rank();) axes.push_back(static_cast<int64_t>(--i));
    const auto stored = form.whole(axes);
    if (!stored) return std::nullopt;
    return Stored{ops::transpose(at(call.args[0]).expr, *stored, call.span)};
  }

  // Converts a call whose operands both have that form.
  std::optional<Stored> follow_slice_like(const CallNode& call, const LayoutForm& form) {
    const auto& attrs = call.attrs_as<ops::SliceLikeAttrs>();
    const auto axes = form.whole(attrs.axes);
    if (!axes || form.is_packed() || !(at(call.args[1]).form == form)) return std::nullopt;
    const Attrs changed = copy_with(attrs, [&](ops::SliceLikeAttrs& a) { a.axes = *axes; });
    return Stored{with(call, {at(call.args[0]).expr, at(call.args[1]).expr}, changed), form};
  }

  // Converts to an addition, also along an axis in parts: of b[C / 16, 1, 1, 16] to data in NCHW16c.
  std::optional<Stored> bias_as_sum(const CallNode& call, const LayoutForm& form) {
    const size_t axis = ops::normal_axis(call.attrs_as<ops::BiasAddAttrs>().axis, form.rank());
    const auto* bias = relay::tensor_type_of(call.args[1]);
    if (bias == nullptr) return std::nullopt;
    const auto after = static_cast<int64_t>(form.rank() - 1 - axis);
    const Expr column = after == 0 ? as_written(call.args[1])
                                   : ops::expand_dims(as_written(call.args[1]), 1, after, call.args[1]->span);
    Array<PrimExpr> dims(bias->shape);
    for (int64_t i = 0; i < after; ++i) dims.push_back(make_int(1));
    const Expr operand = broadcast_operand(column, std::move(dims), form);
    return operand ? std::optional(Stored{ops::add(at(call.args[0]).expr, operand, call.span), form}) : std::nullopt;
  }

  std::optional<Stored> follow_pad(const CallNode& call, const LayoutForm& form) {
    const auto& attrs = call.attrs_as<ops::PadAttrs>();
    if (attrs.pad_width.size() != form.rank()) return std::nullopt;
    Array<Shape> widths;
    for (const Layout::Item& item : form.stored.items()) {
      const Shape& width = attrs.pad_width[*form.written.find(item.letter)];
      if (!form.stored.factors(item.letter).empty() && width != Shape{0, 0}) return std::nullopt;
      widths.push_back(width);
    }
    const Attrs changed = copy_with(attrs, [&](ops::PadAttrs& a) { a.pad_width = widths; });
    return Stored{with(call, {at(call.args[0]).expr, as_written(call.args[1])}, changed), form};
  }

  // Returns the last form that one of them has.
  template <typename Exprs>
  LayoutForm common_form(const Exprs& list) {
    LayoutForm form;
    for (const Expr& expr : list) {
      if (!at(expr).form.is_as_written()) form = at(expr).form;
    }
    return form;
  }

  std::optional<Stored> follow_concatenate(const CallNode& call) {
    const auto* tuple = call.args[0].as<relay::TupleNode>();
    if (tuple == nullptr) return std::nullopt;
    const LayoutForm form = common_form(tuple->items);
    if (form.is_as_written()) return std::nullopt;
    Array<Expr> items;
    for (const Expr& item : tuple->items) {
      if (!can_store(item, form)) return std::nullopt;
      items.push_back(in_form(item, form));
    }
    const auto& attrs = call.attrs_as<ops::ConcatenateAttrs>();
    return Stored{ops::concatenate(items, form.outermost(attrs.axis), call.span), form};
  }

  std::optional<Stored> follow_broadcast(const CallNode& call) {
    const LayoutForm form = common_form(call.args);
    if (form.is_as_written() || !can_store(ref(&call), form)) return std::nullopt;
    Array<Expr> args;
    for (const Expr& arg : call.args) {
      const auto* tensor = relay::tensor_type_of(arg);
      if (tensor == nullptr) return std::nullopt;
      if (tensor->shape.size() == form.rank()) {
        const auto own = ops::broadcast_form(tensor->shape, form);
        if (!own) return std::nullopt;
        args.push_back(in_form(arg, *own));
      } else if (const Expr operand = broadcast_operand(as_written(arg), tensor->shape, form)) {
        args.push_back(operand);
      } else {
        return std::nullopt;
      }
    }
    return Stored{with(call, args, call.attrs), form};
  }

  // Converts a broadcast operand with fewer dimensions to meet a value of that form; returns null where it cannot.
  static Expr broadcast_operand(const Expr& expr, Array<PrimExpr> dims, const LayoutForm& form) {
    if (std::all_of(dims.begin(), dims.end(), [](const PrimExpr& dim) { return as_int(dim) == 1; })) return expr;
    const size_t added = form.rank() - dims.size();
    std::vector<PrimExpr> all(added, make_int(1));
    all.insert(all.end(), dims.begin(), dims.end());
    const auto own = ops::broadcast_form(Array<PrimExpr>(all), form);
    if (!own) return {};
    const Expr whole = added == 0 ? expr : ops::expand_dims(expr, 0, static_cast<int64_t>(added), expr->span);
    return change_layout(whole, own->written, own->stored, expr->span);
  }

  const LayoutRequest& request_;
};

constexpr const char* kKey = "relay.ConvertLayout.desired_layouts";

// Returns the conversion function that a user set on the op; null when there is none.
PackedFunc find_conversion(const std::string& name) {
  const Op op = find_op(name);
  const Value* value = op ? op->find(kConvertLayoutKey) : nullptr;
  if (value == nullptr || value->is_none()) return {};
  if (!value->is<PackedFunc>())
    throw_user_error("the attribute '{}' of op '{}' is not a function that converts layouts", kConvertLayoutAttr, name);
  return value->as<PackedFunc>();
}

}  // namespace

void check_layouts(std::string_view what, const std::string& op, const Array<std::string>& layouts) {
  const LayoutOp* known = find_layout_op(find_op(op).get());
  if (known == nullptr) {
    std::vector<std::string_view> names;
    for (const LayoutOp& row : kLayoutOps) names.push_back(row.op.name());
    throw_user_error("{}: '{}' has no layout to convert; these have: {}, and ops with the attribute {}", what, op,
                     fmt::join(names, ", "), kConvertLayoutAttr);
  }
  const size_t most = known->kernel.empty() ? 1 : 2;
  const bool is_default_after =
      most == 1 && layouts.size() == 2 && layouts[1] == "default";  // as Relay's programs have it
  if (layouts.empty() || (layouts.size() > most && !is_default_after))
    throw_user_error("{}: '{}' takes {}, got {} layouts", what, op,
                     most == 1 ? "one layout" : "one or two layouts (data, kernel)", layouts.size());
  for (size_t i = 0; i < layouts.size(); ++i) {
    const std::string_view letters = i == 0 ? known->data : known->kernel;
    const std::string fault =
        layouts[i] == "default" ? std::string() : ops::layout_fault(layouts[i], letters, known->in_parts);
    if (!fault.empty())
      throw_user_error("{}: '{}' is not an order of the letters {} of '{}'{}", what, layouts[i], letters, op, fault);
  }
}

void check_desired_layouts(const Value& value) {
  if (!value.is<DesiredLayouts>())
    throw_user_error("{} must map names of ops to lists of layouts, got {}", kKey, repr(value));
  for (const auto& [op, layouts] : value.as<DesiredLayouts>()) {
    if (!find_conversion(op)) {
      check_layouts(kKey, op, layouts);
    } else if (layouts.empty()) {
      throw_user_error("{}: '{}' takes a list of one layout or more, got none", kKey, op);
    }
  }
}

DesiredLayouts desired_layouts(const pass::PassContext& context) {
  const auto value = context.config.get(kKey);
  if (!value) return {};
  check_desired_layouts(*value);
  return value->as<DesiredLayouts>();
}

// Calls of the ops that users say the conversion of.
static IRModule convert_by_functions(const IRModule& module, const DesiredLayouts& desired) {
  static constexpr std::string_view kWhat = "layout conversion";
  const auto find = [&](const OpNode& op) -> CallRewriteFn {
    const auto layouts = desired.get(op.name);
    if (!layouts) return {};
    return [convert = find_conversion(op.name), layouts = *layouts](const CallNode& call, const Array<Type>& types) {
      const Value attrs = call.attrs ? Value(call.attrs) : Value();
      return given_expression(convert(attrs, call.args, types, layouts), call, kWhat);
    };
  };
  return rewrite_calls(module, {.what = kWhat, .attr = kConvertLayoutAttr, .find = find});
}

Expr convert_layout(const Expr& body, const LayoutRequest& request) { return LayoutConverter(request).run(body); }

IRModule convert_layout(const IRModule& module, const LayoutChoice& choose) {
  return rewrite_bodies(
      module, [&](const Expr& body) { return convert_layout(body, {.choose = choose, .reduces_parts = true}); });
}

IRModule convert_layout(const IRModule& module, const DesiredLayouts& desired) {
  DesiredLayouts ours, users;
  for (const auto& [op, layouts] : desired) (find_conversion(op) ? users : ours).set(op, layouts);
  const IRModule converted = users.empty() ? module : convert_by_functions(module, users);
  if (ours.empty()) return converted;
  const LayoutRequest request{.choose = [&](const CallNode& call) { return ours.get(call.as_op()->name); },
                              .as_in_relay = true,
                              .reduces_parts = true};
  return rewrite_bodies(converted, [&](const Expr& body) { return convert_layout(body, request); });
}

}  // namespace headrace::passes
