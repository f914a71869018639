#include "ops/tensor/memory.h"

#include "arith/canonical.h"
#include "artifact/location.h"
#include "artifact/tensor_extent.h"
#include "object/structural_equal.h"
#include "ops/families.h"

namespace headrace::ops {

void AllocStorageAttrs::fields(FieldList<AllocStorageAttrs>& f) {
  f.field<&AllocStorageAttrs::size>("size", {.doc = "bytes"})
      .field<&AllocStorageAttrs::alignment>("alignment",
                                            {.default_value = 64, .has_default = true, .doc = "bytes, a power of 2"})
      .field<&AllocStorageAttrs::location>(
          "location",
          {.default_value = "cpu:0", .has_default = true, .doc = "where it lies: KIND:ID, or KIND:ID/MEMORY"});
}

void MemoryViewAttrs::fields(FieldList<MemoryViewAttrs>& f) {
  f.field<&MemoryViewAttrs::byte_offset>("byte_offset", {.doc = "from the start of the base"})
      .field<&MemoryViewAttrs::shape>("shape", {.doc = "the shape of the view"})
      .field<&MemoryViewAttrs::dtype>("dtype", {.doc = "the dtype of the view"})
      .field<&MemoryViewAttrs::strides>("strides", {.default_value = Shape(),
                                                    .has_default = true,
                                                    .doc = "the strides of the view in elements; empty: it is dense"});
}

namespace {

using relay::make_call;
using relay::make_tuple;

Type no_result() { return make_tuple_type({}); }

Type relate_alloc_storage(const RelationInput& input) {
  const auto& attrs = input.call.attrs_as<AllocStorageAttrs>();
  if (attrs.size < 0) input.fail(fmt::format("size is {}", attrs.size));
  if (attrs.alignment <= 0 || (attrs.alignment & (attrs.alignment - 1)) != 0 || attrs.alignment > 64)
    input.fail(fmt::format("alignment must be a power of 2 up to 64, got {}", attrs.alignment));
  if (!artifact::parse_location(attrs.location))
    input.fail(fmt::format("'{}' is not a location; write KIND:ID, such as cpu:0", attrs.location));
  return make_tensor_type({make_int(attrs.size)}, DataType::uint(8));
}

// Returns the bytes of a dense tensor; nothing while a dimension is symbolic.
std::optional<int64_t> size_bytes(const Array<PrimExpr>& dims, DataType dtype) {
  const auto shape = as_shape(dims);
  if (!shape) return std::nullopt;
  return num_elements(*shape) * static_cast<int64_t>(dtype.bytes());
}

Type relate_view(const RelationInput& input) {
  const auto& attrs = input.call.attrs_as<MemoryViewAttrs>();
  const TensorType base = input.tensor(0);
  if (!base) return {};
  if (attrs.dtype.is_void() || attrs.dtype.is_handle()) input.fail(fmt::format("no tensor has dtype {}", attrs.dtype));
  const Array<PrimExpr> dims = to_dims(attrs.shape);
  const auto room = size_bytes(base->shape, base->dtype);
  const std::optional<int64_t> need = artifact::view_nbytes(attrs.dtype, attrs.shape, attrs.strides);
  if (!need)
    input.fail(fmt::format("no tensor has shape [{}] and strides [{}]", fmt::join(attrs.shape, ", "),
                           fmt::join(attrs.strides, ", ")));
  if (!room) input.fail(fmt::format("the base's size is not known: {}", show(base)));
  if (attrs.byte_offset < 0 || attrs.byte_offset > *room || *need > *room - attrs.byte_offset)
    input.fail(fmt::format("{} bytes at offset {} do not lie within {} ({} bytes)", *need, attrs.byte_offset,
                           show(base), *room));
  if (attrs.byte_offset % static_cast<int64_t>(attrs.dtype.bytes()) != 0)
    input.fail(fmt::format("offset {} is not a multiple of {}'s size", attrs.byte_offset, attrs.dtype));
  return make_tensor_type(dims, attrs.dtype);
}

Type relate_copy(const RelationInput& input) {
  const TensorType source = input.tensor(0), destination = input.tensor(1);
  if (!source || !destination) return {};
  bool same = source->dtype == destination->dtype && source->shape.size() == destination->shape.size();
  for (size_t i = 0; same && i < source->shape.size(); ++i)
    same = arith::is_equal(source->shape[i], destination->shape[i]);
  if (!same) input.fail(fmt::format("a {} is copied to a {}", show(source), show(destination)));
  return no_result();
}

Type relate_kill(const RelationInput& input) { return input.tensor(0) ? no_result() : Type(); }

// Checks that the outputs match the function's results; the function's own call checks its arguments.
Type relate_call_dps(const RelationInput& input) {
  const auto* function = input.arg_types[0].as<FuncTypeNode>();
  if (function == nullptr)
    input.fail(fmt::format("the callee must be a function, got {}", to_string(input.arg_types[0])));
  std::vector<Type> given;
  if (const auto* tuple = function->ret_type.as<TupleTypeNode>()) {
    given.assign(tuple->items.begin(), tuple->items.end());
  } else {
    given.push_back(function->ret_type);
  }
  const auto check = [&](const char* what, const std::vector<Type>& want, const std::vector<TensorType>& got) {
    bool same = want.size() == got.size();
    for (size_t i = 0; same && i < want.size(); ++i) same = structural_equal(want[i], Type(got[i]));
    if (!same)
      input.fail(fmt::format("the {} are {}, the function has {}", what,
                             to_string(Type(make_tuple_type(Array<Type>(got.begin(), got.end())))),
                             to_string(Type(make_tuple_type(Array<Type>(want.begin(), want.end()))))));
  };
  check("inputs", {function->arg_types.begin(), function->arg_types.end()}, input.tensors(1));
  check("outputs", given, input.tensors(2));
  return no_result();
}

std::vector<NDArray> eval_alloc_storage(const EvalInput& input) { return {input.make_output()}; }

// Shares the base's memory.
std::vector<NDArray> eval_view(const EvalInput& input) {
  const auto& attrs = input.attrs<MemoryViewAttrs>();
  if (input.out_types[0]->dtype != attrs.dtype)
    throw UserError("a program in destination passing form runs in its declared dtypes only");
  const NDArray base = input.args[0];
  const NDArray view = NDArray::view(base.data<std::byte>() + attrs.byte_offset, attrs.shape, attrs.dtype, [base] {});
  if (!attrs.strides.empty()) {
    view.object()->strides = attrs.strides;
    view.object()->tensor.strides = view.object()->strides.data();
  }
  return {view};
}

std::vector<NDArray> eval_copy_into(const EvalInput& input) {
  input.args[1].copy_from(input.args[0]);
  return {};
}

std::vector<NDArray> eval_nothing(const EvalInput&) { return {}; }

OpBuilder effect(const char* name, const char* doc) {
  OpBuilder builder(name, doc);
  builder.fusion(FusionKind::opaque).stateful();
  return builder;
}

}  // namespace

void register_memory_ops() {
  effect("memory.alloc_storage", "Uninitialised memory of `size` bytes: [size], uint8.")
      .any_args()
      .attrs<AllocStorageAttrs>()
      .relation(relate_alloc_storage)
      .eval(eval_alloc_storage);
  effect("memory.view", "Part of a storage (or of a tensor's memory) as a tensor: base T[...] -> dtype[shape].")
      .arg("base", "Tensor", "T[...]: the storage, or a tensor")
      .attrs<MemoryViewAttrs>()
      .relation(relate_view)
      .eval(eval_view);
  effect("memory.kill", "The storage's content is not read again. Gives ().")
      .arg("storage", "Tensor", "uint8[size]: the storage")
      .relation(relate_kill)
      .eval(eval_nothing);
  effect("memory.copy", "Writes the elements of one tensor into another of the same type. Gives ().")
      .arg("source", "Tensor", "T[...]: the tensor to read")
      .arg("destination", "Tensor", "T[...], of source's type: the tensor to write into")
      .relation(relate_copy)
      .eval(eval_copy_into);
  effect("call_dps", "Calls a function and writes its results into `outputs`. Gives ().")
      .arg("function", "Function", "a function of the inputs, or an op")
      .arg("inputs", "Tuple of tensors", "the arguments of the function")
      .arg("outputs", "Tuple of tensors", "where its results go, of their types")
      .relation(relate_call_dps);
}

Expr alloc_storage(int64_t size, std::string location, Span span) {
  auto attrs = make_object<AllocStorageAttrs>();
  attrs->size = size;
  attrs->location = std::move(location);
  return make_call("memory.alloc_storage", {}, attrs, span);
}

Expr memory_view(Expr base, int64_t byte_offset, Shape shape, DataType dtype, Shape strides, Span span) {
  auto attrs = make_object<MemoryViewAttrs>();
  attrs->byte_offset = byte_offset;
  attrs->shape = std::move(shape);
  attrs->dtype = dtype;
  attrs->strides = std::move(strides);
  return make_call("memory.view", {base}, attrs, span);
}

Expr memory_kill(Expr storage, Span span) { return make_call("memory.kill", {storage}, {}, span); }

Expr memory_copy(Expr source, Expr destination, Span span) {
  return make_call("memory.copy", {source, destination}, {}, span);
}

Expr call_dps(Expr function, Array<Expr> inputs, Array<Expr> outputs, Span span) {
  return make_call("call_dps", {function, make_tuple(inputs), make_tuple(outputs)}, {}, span);
}

}  // namespace headrace::ops
