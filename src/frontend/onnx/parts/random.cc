#include "frontend/onnx/parts/random.h"

#include <bit>

#include "object/hash.h"
#include "ops/algorithm/random.h"

namespace headrace::onnx {

Expr key_of(NodeContext& context) {
  std::vector<uint64_t> words(static_cast<size_t>(ops::kKeyWords), 0);
  if (context.has_attr("seed") && context.node().op_type == "Dropout") {  // whose seed is an integer
    words[0] = static_cast<uint64_t>(context.int_attr("seed"));
  } else if (context.has_attr("seed")) {
    words[0] = std::bit_cast<uint32_t>(static_cast<float>(context.float_attr("seed", 0)));
  } else {
    words[0] = hash_text(context.unique_name());
    words[1] = 1;  // none of those that a seed makes
  }
  return relay::make_constant(NDArray::from_vector({ops::kKeyWords}, DataType::uint(64), words), context.span());
}

DataType dtype_attr(NodeContext& context, DataType otherwise) {
  if (!context.has_attr("dtype")) return otherwise;
  const ElementType type = context.element_type_attr("dtype", ElementType::kUndefined);
  const auto dtype = find_dtype(type);
  if (!dtype) context.refuse(HR_REASON_DTYPE_UNSUPPORTED, "numbers of {} are not supported", element_type_name(type));
  return *dtype;
}

DataType drawn_in(DataType dtype) {
  return dtype == DataType::float_(64) ? DataType::float_(64) : DataType::float_(32);
}

Expr draw(NodeContext& context, std::string_view op, double a, double b, const Shape& shape, DataType dtype) {
  const DataType drawn = drawn_in(dtype);
  const Array<Expr> args{key_of(context), context.scalar(a, drawn), context.scalar(b, drawn)};
  const Expr both = ops::call_with<ops::UniformAttrs>(
      op, args, context.span(), [&](auto& attrs) { attrs.out_shape = shape, attrs.out_dtype = drawn; });
  return context.cast(relay::make_tuple_get_item(both, 1, context.span()), dtype);
}

}  // namespace headrace::onnx
