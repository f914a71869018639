#include "frontend/onnx/parts/quantization.h"

#include <algorithm>

#include "ops/loops/dims.h"
#include "ops/tensor/shape.h"

namespace headrace::onnx {

namespace {

bool has_one_element(NodeContext& context, const Expr& x) {
  const std::vector<PrimExpr> dims = context.dims(x);
  return std::all_of(dims.begin(), dims.end(), [](const PrimExpr& dim) { return is_int(dim, 1); });
}

// Returns x, or a scalar where it has one element.
Expr scalar_if_one(NodeContext& context, const Expr& x) {
  return context.rank(x) > 0 && has_one_element(context, x) ? context.reshape(x, Shape{}) : x;
}

}  // namespace

Expr read_scale(NodeContext& context, size_t i, std::string_view name) {
  const Expr scale = context.input(i);
  if (!context.dtype(scale).is_float())
    context.invalid("its {} has dtype {}, expected a float", name, context.dtype(scale));
  return scalar_if_one(context, context.cast(scale, kScale));
}

Expr read_zero_point(NodeContext& context, size_t i, std::string_view name, DataType of) {
  const DataType dtype = of.is_narrow_float() ? kScale : kSum;
  if (!context.has(i)) return context.scalar(0, dtype);
  const Expr zero = context.input(i);
  if (context.dtype(zero) != of)
    context.invalid("its {} has dtype {}, but it belongs to {}", name, context.dtype(zero), of);
  return scalar_if_one(context, context.cast(zero, dtype));
}

Expr along_data(NodeContext& context, const Expr& x, const Expr& data, size_t axis, std::string_view name) {
  const std::vector<PrimExpr> own = context.dims(x), all = context.dims(data);
  if (own.empty()) return x;
  const auto fits = [&](const PrimExpr& dim, size_t i) {
    return is_int(dim, 1) || ops::unify_dims(dim, all[i]).has_value();
  };
  bool is_fit = axis < all.size() && (own.size() == all.size() || own.size() == 1);
  if (is_fit && own.size() == 1) is_fit = ops::unify_dims(own[0], all[axis]).has_value();
  for (size_t i = 0; is_fit && own.size() > 1 && i < own.size(); ++i) is_fit = fits(own[i], i);
  if (!is_fit)
    context.invalid("its {} has the shape {}, which does not fit {}", name, ops::show_dims(Array<PrimExpr>(own)),
                    ops::show_dims(Array<PrimExpr>(all)));
  if (own.size() > 1 || axis + 1 == all.size()) return x;
  return ops::expand_dims(x, 1, static_cast<int64_t>(all.size() - axis - 1), context.span());
}

}  // namespace headrace::onnx
