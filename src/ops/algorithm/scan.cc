#include "ops/algorithm/scan.h"

#include "arith/canonical.h"
#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/loops/element.h"
#include "relay/expr.h"

namespace headrace::ops {

void ScanopAttrs::fields(FieldList<ScanopAttrs>& f) {
  f.field<&ScanopAttrs::axis>("axis", {.optional = true,
                                       .default_value = Value(),
                                       .has_default = true,
                                       .doc = "the axis to run along; None: the flattened data"})
      .field<&ScanopAttrs::dtype>(
          "dtype", {.optional = true, .default_value = Value(), .has_default = true, .doc = "None: as data"})
      .field<&ScanopAttrs::exclusive>(
          "exclusive",
          {.default_value = false, .has_default = true, .doc = "each result leaves out the element at its own place"});
}

namespace {

Type relate_scan(const RelationInput& input) {
  const TensorType data = input.tensor(0);
  if (!data) return {};
  const auto& attrs = input.call.attrs_as<ScanopAttrs>();
  const DataType dtype = attrs.dtype.value_or(data->dtype);
  if (!(dtype.is_int() || dtype.is_uint() || dtype.is_float()) || !dtype.is_scalar())
    input.fail(fmt::format("the result must be numbers, got dtype {}; data is {}", dtype, show(data)));
  if (attrs.axis) {
    normal_axis(input, *attrs.axis, data->shape.size());
    return make_tensor_type(data->shape, dtype);
  }
  return make_tensor_type(Array<PrimExpr>{arith::product(data->shape)}, dtype);
}

// Makes the evaluation of a scan, whose steps are computed in the result's dtype.
template <typename F>
EvalFn eval_scan(int start, F step) {
  return [=](const EvalInput& input) {
    const auto& attrs = input.attrs<ScanopAttrs>();
    const NDArray out = input.make_output();
    const Shape& shape = out.shape();
    const size_t axis = normal_axis(attrs.axis.value_or(0), shape.size());
    int64_t inner = 1;
    for (size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
    const int64_t size = shape[axis], lines = size == 0 ? 0 : out.num_elements() / size;
    dispatch_number(out.dtype(), [&]<typename To>() {
      using C = Compute<To>;
      const Elements<To> y(out);
      const auto x = reader_as<C>(input.args[0].dtype());
      for (int64_t line = 0; line < lines; ++line) {
        const int64_t begin = line / inner * size * inner + line % inner;
        auto total = static_cast<C>(start);
        for (int64_t at = begin; at < begin + size * inner; at += inner) {
          const C next = step(total, x(input.args[0], at));
          y.set(at, attrs.exclusive ? total : next);
          total = next;
        }
      }
    });
    return std::vector<NDArray>{out};
  };
}

void scan_op(const char* name, const char* what, EvalFn eval) {
  OpBuilder(name, fmt::format("{} of the elements up to each: data T[...] -> dtype[...], or dtype[n] flattened; "
                              "float16 and bfloat16 run in float32, integers wrap.",
                              what))
      .arg("data", "Tensor", "T[...]: the elements to sum or multiply, in dtype")
      .attrs<ScanopAttrs>()
      .relation(relate_scan)
      .fusion(FusionKind::opaque)
      .level(3)
      .eval(std::move(eval))
      .fact(kKeepLayout, [](const relay::CallNode& call, const LayoutForm& form) -> std::optional<Attrs> {
        const auto& attrs = call.attrs_as<ScanopAttrs>();
        const auto axis = attrs.axis ? form.whole(*attrs.axis) : std::nullopt;  // without one it runs over all elements
        if (!axis) return std::nullopt;
        return Attrs(copy_with(attrs, [&](ScanopAttrs& copy) { copy.axis = axis; }));
      });
}

}  // namespace

void register_scan_ops() {
  scan_op("cumsum", "The sum", eval_scan(0, [](auto a, auto x) { return wrapping_add(a, x); }));
  scan_op("cumprod", "The product", eval_scan(1, [](auto a, auto x) { return wrapping_mul(a, x); }));
}

Expr scan(std::string_view op, Expr data, std::optional<int64_t> axis, bool exclusive, Span span) {
  return call_with<ScanopAttrs>(op, {std::move(data)}, std::move(span),
                                [&](auto& a) { a.axis = axis, a.exclusive = exclusive; });
}

}  // namespace headrace::ops
