#include "arith/canonical_type.h"
#include "functions/register_functions.h"
#include "ir/module.h"
#include "object/function.h"
#include "object/json.h"
#include "object/repr.h"
#include "object/structural_equal.h"
#include "relay/text/tvm_json.h"
#include "tensor/ndarray.h"

namespace headrace::functions {

namespace {

Array<Value> describe_arguments(const OpNode& op) {
  Array<Value> arguments;
  for (const OpArgument& argument : op.arguments)
    arguments.push_back(Value(Array<std::string>{argument.name, argument.kind, argument.doc}));
  return arguments;
}

// Returns the properties from which Python generates the op's function.
Map<std::string, Value> describe_op(const std::string& name) {
  const Op op = get_op(name);
  return {{"name", op->name},
          {"doc", op->doc},
          {"arguments", Value(describe_arguments(*op))},
          {"num_inputs", op->num_inputs},
          {"support_level", op->support_level},
          {"attrs_type_key", op->attrs_type_key}};
}

// Returns a value to compare, with dimensions for integers, also within lists and maps: in Relay a shape equals the
// list of its sizes. Equality and hash of nodes do not change. Lists are expected to nest 64 deep at most; integers
// below stay as they are.
Value with_dimensions(const Value& value, int depth = 0) {
  constexpr int kMostNesting = 64;
  if (value.type_index() == type_index::kInt) return Value(make_int(value.as<int64_t>()));
  if (depth > kMostNesting) return value;
  if (const auto* list = value.as_node<ArrayObj>()) {
    Array<Value> items;
    for (const Value& item : list->items) items.push_back(with_dimensions(item, depth + 1));
    return Value(items);
  }
  if (const auto* map = value.as_node<MapObj>()) {
    const auto result = make_object<MapObj>();
    for (const auto& [key, item] : map->items) result->set(key, with_dimensions(item, depth + 1));
    return Value(result);
  }
  return value;
}

Value describe_mismatch(const Value& a, const Value& b, bool map_free_vars) {
  const std::optional<Mismatch> found =
      first_mismatch(with_dimensions(a), with_dimensions(b), {.map_free_vars = map_free_vars});
  if (!found) return {};
  return Map<std::string, Value>{
      {"path", found->path}, {"reason", found->reason}, {"left", found->left}, {"right", found->right}};
}

// Reads Headrace's JSON, or TVM's.
Value load_any_json(const std::string& text) {
  try {
    return load_json(text);
  } catch (const UserError&) {
    if (!relay::is_tvm_json(text)) throw;
  }
  try {
    return relay::read_tvm_json(text);
  } catch (const UserError& error) {
    throw_user_error("load_json: JSON of TVM's save_json: {}", error.message());
  }
}

// Returns the elements of a dense tensor as bytes, in its memory.
NDArray bytes_of(const NDArray& dense) {
  const std::span<const std::byte> bytes = dense.bytes();
  return NDArray::view(const_cast<std::byte*>(bytes.data()), {static_cast<int64_t>(bytes.size())}, DataType::uint(8),
                       [dense] {});
}

// Returns the JSON of a graph without the elements of its tensors, and for each tensor its dtype, shape and bytes.
Array<Value> save_json_without_tensors(const Value& root) {
  std::vector<Value> tensors;
  const std::string text = save_json_apart(root, NDArrayObj::type_key, tensors);
  Array<Value> rows;
  for (const Value& tensor : tensors) {
    const NDArray dense = tensor.as<NDArray>().to_dense();
    rows.push_back(Value(Array<Value>{Value(dense.dtype().to_string()), Value(dense.shape()), Value(bytes_of(dense))}));
  }
  return {Value(text), Value(rows)};
}

void register_object_functions() {
  register_global("ir.SaveJSON", make_packed([](const Value& root) { return save_json(root); }));
  register_global("ir.SaveJSONWithoutTensors", make_packed(&save_json_without_tensors));
  register_global("ir.LoadJSON", make_packed(&load_any_json));
  register_global("ir.StructuralEqual", make_packed([](const Value& a, const Value& b, bool map_free_vars) {
                    return structural_equal(with_dimensions(a), with_dimensions(b), {.map_free_vars = map_free_vars});
                  }));
  register_global("ir.AssertStructuralEqual", make_packed([](const Value& a, const Value& b, bool map_free_vars) {
                    assert_structural_equal(with_dimensions(a), with_dimensions(b), {.map_free_vars = map_free_vars});
                  }));
  register_global("ir.FirstMismatch", make_packed(&describe_mismatch));
  // Returns the hash as a signed number, because a Value cannot hold an unsigned one.
  register_global(
      "ir.StructuralHash", make_packed([](const Value& value, bool map_free_vars) {
        return static_cast<int64_t>(structural_hash(with_dimensions(value), {.map_free_vars = map_free_vars}));
      }));
  // Equality of types in which dimensions of one value, such as n + n and n * 2, are one.
  register_global("ir.TypeEqual", make_packed([](const Type& a, const Type& b) {
                    return structural_equal(Value(a), Value(b)) ||
                           structural_equal(Value(arith::canonical_type(a)), Value(arith::canonical_type(b)));
                  }));
  register_global("ir.TypeHash", make_packed([](const Type& type) {
                    return static_cast<int64_t>(structural_hash(Value(arith::canonical_type(type))));
                  }));
  register_global("ir.Repr", make_packed([](const Value& value) { return repr(value); }));
}

void register_module_functions() {
  register_global("ir.ModuleAdd", make_packed([](const IRModule& module, const GlobalVar& var, const BaseFunc& function,
                                                 bool update) { return module->add_function(var, function, update); }));
  register_global("ir.ModuleAddTypeDef", make_packed([](const IRModule& module, const TypeData& data, bool update) {
                    module->add_type_def(data, update);
                  }));
  register_global("ir.ModuleGetGlobalVar", make_packed([](const IRModule& module, const std::string& name) {
                    return module->get_global_var(name);
                  }));
  register_global("ir.ModuleFindGlobalVar", make_packed([](const IRModule& module, const std::string& name) {
                    return Value(module->find_global_var(name));
                  }));
  register_global("ir.ModuleFindGlobalTypeVar", make_packed([](const IRModule& module, const std::string& name) {
                    return Value(module->find_global_type_var(name));
                  }));
  register_global("ir.ModuleAddSource",
                  make_packed([](const IRModule& module, const Source& source) { module->add_source(source); }));
  register_global("ir.ModuleCopy", make_packed([](const IRModule& module) { return snapshot(module); }));
}

}  // namespace

void register_ir_functions() {
  register_object_functions();
  register_module_functions();
  // Does nothing, with any arguments. Benchmarks measure the cost of a call with it.
  register_global("testing.Nop", PackedFunc([](Args) { return Value(); }));
  register_global("ir.OpNames", make_packed([] { return Array<std::string>(op_names()); }));
  register_global("ir.GetOp", make_packed([](const std::string& name) { return get_op(name); }));
  register_global("ir.DescribeOp", make_packed(&describe_op));
}

}  // namespace headrace::functions
