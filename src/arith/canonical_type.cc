#include "arith/canonical_type.h"

#include "arith/canonical.h"
#include "ir/map_operands.h"
#include "ir/type_parts.h"

namespace headrace::arith {

namespace {

Type with_canonical_dims(const Type& type, const TensorTypeNode& tensor) {
  const Array<PrimExpr> dims = map_items(tensor.shape, [](const PrimExpr& dim) {
    return as_int(dim) || is_any(dim) ? dim : canonical(dim).value_or(dim);
  });
  return dims.same_as(tensor.shape) ? type : Type(make_tensor_type(dims, tensor.dtype));
}

}  // namespace

// Works off a list of its own instead of the stack, because types may nest as deep as a program makes them.
Type canonical_type(const Type& root) {
  if (!root) return root;
  std::unordered_map<const Object*, Type> done;
  std::vector<Type> open{root};
  while (!open.empty()) {
    const Type type = open.back();
    const size_t before = open.size();
    if (!done.contains(type.object())) {
      for (const Type& part : type_children(type)) {
        if (part && !done.contains(part.object())) open.push_back(part);
      }
    }
    if (open.size() != before) continue;
    open.pop_back();
    if (done.contains(type.object())) continue;
    const auto* tensor = type.as<TensorTypeNode>();
    done[type.object()] =
        tensor != nullptr
            ? with_canonical_dims(type, *tensor)
            : map_type_children(type, [&](const Type& part) { return part ? done.at(part.object()) : part; });
  }
  return done.at(root.object());
}

}  // namespace headrace::arith
