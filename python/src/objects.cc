#include "objects.h"

#include <nanobind/stl/string.h>

#include "object/json.h"
#include "object/map.h"
#include "object/reflect.h"
#include "object/shape_tuple.h"
#include "object/repr.h"

namespace headrace::python {

namespace {

// Python's class of each type, by type index; null where none was asked for yet. They live as long as the process.
std::vector<PyObject*>& classes() {
  static std::vector<PyObject*>& table = *new std::vector<PyObject*>;
  return table;
}

PyObject* class_maker = nullptr;  // (type index) -> class

PyObject* class_of(int32_t index) {
  const auto at = static_cast<size_t>(index);
  if (at < classes().size() && classes()[at] != nullptr) return classes()[at];
  if (class_maker == nullptr) throw InternalError("headrace._core is used without headrace");
  const nb::object made = nb::steal(PyObject_CallFunction(class_maker, "i", index));
  if (!made.is_valid()) throw nb::python_error();
  if (at >= classes().size() || classes()[at] == nullptr) throw InternalError("no class was set");
  return classes()[at];
}

void set_class(int32_t index, nb::object type) {
  const auto at = static_cast<size_t>(index);
  if (at >= classes().size()) classes().resize(at + 1, nullptr);
  classes()[at] = type.release().ptr();
}

nb::dict describe_field(const FieldInfo& field) {
  nb::dict row;
  row["name"] = field.name;
  row["kind"] = field.kind;
  row["doc"] = field.options.doc;
  row["optional"] = field.options.optional;
  row["transient"] = field.options.transient;
  row["has_default"] = field.options.has_default;
  row["default"] = field.options.has_default ? from_value(field.options.default_value) : nb::none();
  return row;
}

nb::dict describe_type(const TypeInfo& type) {
  nb::dict row;
  row["index"] = type.index;
  row["key"] = type.key;
  row["parent"] = type.parent == nullptr ? nb::object(nb::none()) : nb::cast(type.parent->index);
  row["makeable"] = type.make_empty != nullptr;
  return row;
}

nb::list fields_of(int32_t index) {
  nb::list fields;
  for (const FieldInfo& field : type_info_of(index).fields) fields.append(describe_field(field));
  return fields;
}

// Makes the getter of a property that reads a field.
nb::object field_getter(int32_t index, const std::string& name) {
  const FieldInfo* field = find_field(type_info_of(index), name);
  if (field == nullptr) throw_user_error("type {} has no field '{}'", type_info_of(index).key, name);
  return nb::cpp_function([field](const ObjectRef& self) {
    const Value value = field->get(self.get());
    // Tensors of a program are read-only, because its types and folded values were derived from their elements.
    if (value.type_index() == type_index::kTensor) return nb::cast(value.as<NDArray>().as_read_only());
    return from_value(value);
  });
}

// Arrays of floats and of shapes as C++ stores them, so that equal arrays are equal: they may be given as ints and as
// tuples.
template <typename T>
Value stored_items(const Value& value) {
  Array<T> stored;
  for (const Value& item : value.as_node<ArrayObj>()->items) stored.push_back(item.as<T>());
  return Value(stored);
}

Value field_value(const std::string& key, const TypeInfo* type, const std::string& name, nb::handle given) {
  Value value = to_value_of(given, [&] { return fmt::format("field '{}' of {}", name, key); });
  const FieldInfo* field = type == nullptr ? nullptr : find_field(*type, name);
  if (field == nullptr || value.as_node<ArrayObj>() == nullptr || !field->accepts(value.raw())) return value;
  if (field->kind == "Array[float]") return stored_items<double>(value);
  if (field->kind == "Array[shape]") return stored_items<Shape>(value);
  return value;
}

nb::object make(const std::string& key, const nb::dict& fields) {
  const TypeInfo* type = find_type(key);
  std::vector<std::pair<std::string, Value>> values;
  for (const auto& [name, value] : fields) {
    auto text = nb::cast<std::string>(name);
    Value stored = field_value(key, type, text, value);
    values.emplace_back(std::move(text), std::move(stored));
  }
  return wrap_object(make_node(key, values));
}

const ArrayObj& array_of(const ObjectRef& ref) {
  const auto* array = ref.as<ArrayObj>();
  if (array == nullptr) throw_user_error("expected an Array, got {}", ref->key());
  return *array;
}

const MapObj& map_of(const ObjectRef& ref) {
  const auto* map = ref.as<MapObj>();
  if (map == nullptr) throw_user_error("expected a Map, got {}", ref->key());
  return *map;
}

nb::object map_get(const ObjectRef& ref, nb::handle key, nb::object missing) {
  const Value* found = map_of(ref).find(to_value(key).raw());
  return found == nullptr ? missing : from_value(*found);
}

nb::list map_items(const ObjectRef& ref) {
  nb::list items;
  for (const auto& [key, value] : map_of(ref).items) items.append(nb::make_tuple(from_value(key), from_value(value)));
  return items;
}

nb::object array_item(const ObjectRef& ref, int64_t index) {
  const ArrayObj& array = array_of(ref);
  const auto size = static_cast<int64_t>(array.items.size());
  if (index < 0) index += size;
  if (index < 0 || index >= size) throw nb::index_error(fmt::format("an Array of {} items", size).c_str());
  return from_value(array.items[static_cast<size_t>(index)]);
}

nb::list array_items(const ObjectRef& ref) {
  nb::list items;
  for (const Value& item : array_of(ref).items) items.append(from_value(item));
  return items;
}

void bind_containers(nb::module_& m) {
  m.def("array_size", [](const ObjectRef& ref) { return array_of(ref).items.size(); });
  m.def("array_item", &array_item);
  m.def("array_items", &array_items);
  m.def("make_array", [](nb::handle items) {
    Array<Value> array;
    for (const nb::handle item : items) array.push_back(to_value(item));
    return wrap_object(Value(array).as<ObjectRef>());
  });
  m.def("map_size", [](const ObjectRef& ref) { return map_of(ref).items.size(); });
  m.def("map_get", &map_get, nb::arg("map"), nb::arg("key").none(), nb::arg("missing").none());
  m.def("map_items", &map_items);
  m.def("make_map", [](const nb::dict& dict) {
    Map<Value, Value> map;
    for (const auto& [key, value] : dict) map.set(to_value(key), to_value(value));
    return wrap_object(Value(map).as<ObjectRef>());
  });
}

}  // namespace

nb::object wrap_object(ObjectRef ref) {
  nb::object instance = nb::inst_alloc(class_of(ref->type_index()));
  new (nb::inst_ptr<ObjectRef>(instance)) ObjectRef(std::move(ref));
  nb::inst_mark_ready(instance);
  return instance;
}

const ObjectRef* find_object(nb::handle instance) {
  return nb::isinstance<ObjectRef>(instance) ? nb::inst_ptr<ObjectRef>(instance) : nullptr;
}

void bind_objects(nb::module_& m) {
  nb::class_<ObjectRef>(m, "Object", nb::is_weak_referenceable(), "A node that C++ and Python share.")
      .def(nb::init<const ObjectRef&>())
      .def(
          "same_as",
          [](const ObjectRef& self, nb::handle other) {
            const ObjectRef* object = find_object(other);
            return object != nullptr && self == *object;
          },
          nb::arg("other").none(), "Whether both are one node.")
      .def("__hash__", [](const ObjectRef& self) { return reinterpret_cast<intptr_t>(self.object()) >> 4; })
      .def_prop_ro("type_key", [](const ObjectRef& self) { return std::string(self->key()); })
      .def("_short_text", [](const ObjectRef& self) { return to_shown(repr(Value(self))); })
      .def("_save", [](const ObjectRef& self) { return save_json(Value(self)); });
  m.def("type_table", [] {
    nb::list rows;
    for (const TypeInfo* type : all_types()) rows.append(describe_type(*type));
    return rows;
  });
  m.def("type_row", [](int32_t index) { return describe_type(type_info_of(index)); });
  m.def("type_fields", &fields_of);
  m.def("field_getter", &field_getter);
  m.def("set_class", &set_class);
  m.def("set_class_maker", [](nb::object maker) { class_maker = maker.release().ptr(); });
  m.def(
      "is_made", [](nb::handle instance) { return nb::inst_ready(instance); }, nb::arg("instance"),
      "Whether an instance of a node's class has its node: its constructor gives it one.");
  m.def("make", &make, nb::arg("key"), nb::arg("fields"), "A node of that type from its fields.");
  m.def("load_json", [](const std::string& text) { return from_value(load_json(text)); });
  bind_containers(m);
}

}  // namespace headrace::python
