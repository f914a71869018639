#include "values.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>

#include "objects.h"
#include "vectorcall.h"
#include "object/array.h"
#include "object/json.h"
#include "object/map.h"
#include "object/shape_tuple.h"
#include "object/string.h"
#include "runtime/module.h"
#include "tensor/data_type.h"
#include "tensor/device.h"

namespace headrace::python {

namespace {

constexpr const char* kCapsule = "dltensor";
constexpr const char* kVersionedCapsule = "dltensor_versioned";

template <typename Managed>
void delete_unused(PyObject* capsule, const char* name) {
  // A consumer renames the capsule and owns the tensor.
  if (PyCapsule_IsValid(capsule, name) == 0) return;
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  if (managed->deleter != nullptr) managed->deleter(managed);
}

nb::object ask_for_dlpack(nb::handle object) {
  try {
    return object.attr("__dlpack__")(nb::arg("max_version") = nb::make_tuple(1, 0));
  } catch (nb::python_error& error) {
    // Producers older than DLPack 1.0 know no such argument.
    if (!error.matches(PyExc_TypeError)) throw;
  }
  return object.attr("__dlpack__")();
}

NDArray from_capsule(const nb::object& capsule) {
  if (PyCapsule_IsValid(capsule.ptr(), kVersionedCapsule) != 0) {
    NDArray array = NDArray::from_dlpack(
        static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule.ptr(), kVersionedCapsule)));
    PyCapsule_SetName(capsule.ptr(), "used_dltensor_versioned");
    return array;
  }
  if (PyCapsule_IsValid(capsule.ptr(), kCapsule) != 0) {
    NDArray array = NDArray::from_dlpack(static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), kCapsule)));
    PyCapsule_SetName(capsule.ptr(), "used_dltensor");
    return array;
  }
  throw UserError("__dlpack__ gave no DLPack capsule");
}

std::string text_of(nb::handle object) { return nb::cast<std::string>(nb::str(object)); }

// "ndarray of object", "str"
std::string kind_of(nb::handle object) {
  if (object.is_none()) return "None";
  const std::string type = text_of(object.type().attr("__name__"));
  const std::string dtype = nb::hasattr(object, "dtype") ? " of " + text_of(object.attr("dtype")) : "";
  return type + dtype;
}

// The dtype of that name if numpy has it from ml_dtypes only, else nothing.
std::optional<DataType> dtype_of_ml_dtypes(const std::string& name) {
  try {
    const DataType dtype = DataType::parse(name);
    if (dtype.is_scalar() && (dtype.is_bfloat16() || dtype.is_narrow())) return dtype;
  } catch (const UserError&) {
  }
  return std::nullopt;
}

// The unsigned integer of an element's size.
DataType bits_of(DataType dtype) { return DataType::uint(static_cast<int>(dtype.bytes()) * 8); }

// The bits of a numpy array of a dtype of ml_dtypes, shared as they are; of a strided one, a copy.
NDArray share_bits(nb::handle array, DataType dtype) {
  const nb::object dense = nb::module_::import_("numpy").attr("ascontiguousarray")(array);
  // ascontiguousarray makes a scalar a vector.
  const nb::object bits = dense.attr("view")(bits_of(dtype).to_string()).attr("reshape")(array.attr("shape"));
  const NDArray shared = from_capsule(ask_for_dlpack(bits));
  const NDArray result = NDArray::view(shared.data<void>(), shared.shape(), dtype, [shared] {});
  result.object()->read_only = shared.object()->read_only;
  return result;
}

// Returns whether the error is one with which numpy and DLPack exporters reject an object. Any other error comes from
// the object's own code.
bool is_refusal(const nb::python_error& error) {
  for (PyObject* type :
       {PyExc_TypeError, PyExc_ValueError, PyExc_BufferError, PyExc_RuntimeError, PyExc_OverflowError}) {
    if (error.matches(type)) return true;
  }
  return false;
}

// Exporters refuse what DLPack cannot say: strings, objects, foreign byte orders; numpy's also the dtypes of ml_dtypes.
NDArray share(nb::handle object, const Label& what) {
  try {
    return from_capsule(ask_for_dlpack(object));
  } catch (nb::python_error& error) {
    if (nb::hasattr(object, "__array_interface__")) {
      if (const auto dtype = dtype_of_ml_dtypes(text_of(object.attr("dtype")))) return share_bits(object, *dtype);
    }
    if (!is_refusal(error)) throw;
    throw_user_error("{}: {} cannot be shared by DLPack: {}", what(), kind_of(object), nb::str(error.value()).c_str());
  } catch (const UserError& error) {
    throw_user_error("{}: {}", what(), error.message());
  }
}

nb::object as_numpy(nb::handle object, const Label& what) {
  // numpy would take these for arrays of objects and of characters.
  if (object.is_none() || nb::isinstance<nb::str>(object) || nb::isinstance<nb::dict>(object))
    throw_user_error("{}: {} is not a tensor; give a numpy array, a DLPack tensor, a list or a number", what(),
                     kind_of(object));
  try {
    return nb::module_::import_("numpy").attr("asarray")(object);
  } catch (nb::python_error& error) {
    if (!is_refusal(error)) throw;
    throw_user_error("{}: {} does not become an array: {}", what(), kind_of(object), nb::str(error.value()).c_str());
  }
}

// Those of numpy that numbers may get.
bool is_number_dtype(std::string_view name) {
  constexpr std::array<std::string_view, 11> kNames = {"float16", "float32", "float64", "int8",   "int16", "int32",
                                                       "int64",   "uint8",   "uint16",  "uint32", "uint64"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

// Plain numbers in the dtype `wanted`; as they are where it does not hold them, or one of the two is none of numbers.
nb::object with_dtype(nb::object numbers, const std::string& wanted) {
  const nb::module_ numpy = nb::module_::import_("numpy");
  const auto kind_is = [](const nb::object& dtype, std::string_view kinds) {
    return kinds.find(text_of(dtype.attr("kind"))) != std::string_view::npos;
  };
  if (!is_number_dtype(wanted)) return numbers;
  const nb::object dtype = numpy.attr("dtype")(wanted);
  const bool is_whole = kind_is(numbers.attr("dtype"), "iu"), is_real = kind_is(numbers.attr("dtype"), "f"),
             becomes_real = kind_is(dtype, "f");
  if (!is_whole && !(is_real && becomes_real)) return numbers;
  const nb::object quiet = numpy.attr("errstate")(nb::arg("all") = "ignore");
  quiet.attr("__enter__")();
  const nb::object cast = numbers.attr("astype")(dtype);
  quiet.attr("__exit__")(nb::none(), nb::none(), nb::none());
  const nb::object kept = becomes_real
                              ? numpy.attr("array_equal")(numpy.attr("isinf")(cast), numpy.attr("isinf")(numbers))
                              : numpy.attr("array_equal")(cast, numbers);
  return nb::cast<bool>(kept) ? cast : numbers;
}

nb::object to_numpy(nb::handle self) {
  const nb::module_ numpy = nb::module_::import_("numpy");
  const NDArray array = nb::cast<NDArray>(self);
  const auto dtype = dtype_of_ml_dtypes(array.dtype().to_string());
  if (!dtype) return numpy.attr("from_dlpack")(self);
  nb::object wanted;
  try {
    wanted = nb::module_::import_("ml_dtypes").attr(dtype->to_string().c_str());
  } catch (nb::python_error&) {
    throw_user_error("numpy has no {} of its own; install ml_dtypes, or take the tensor by DLPack", *dtype);
  }
  const NDArray dense = array.to_dense();
  const NDArray bits = NDArray::view(dense.data<void>(), dense.shape(), bits_of(*dtype), [dense] {});
  bits.object()->read_only = array.object()->read_only;
  return numpy.attr("from_dlpack")(nb::cast(bits)).attr("view")(wanted);
}

void set_items(nb::handle self, nb::handle index, nb::handle value) {
  if (nb::cast<NDArray>(self).object()->read_only)
    throw UserError(
        "this tensor is for reading only, as those of constants and of files are; headrace.nd.array(x) "
        "gives a copy to write to");
  to_numpy(self)[index] = value;
}

// The first of a pair of ints, an argument of __dlpack__.
int64_t first_int(nb::handle pair, const char* what) {
  int64_t first = 0;
  if (nb::isinstance<nb::tuple>(pair) && nb::len(pair) == 2 && nb::try_cast(pair[0], first)) return first;
  throw_user_error("{}: expected a tuple of two ints, got {}", what, nb::repr(pair).c_str());
}

Value to_map(nb::handle dict) {
  Map<Value, Value> map;
  for (const auto& [key, item] : nb::borrow<nb::dict>(dict)) map.set(to_value(key), to_value(item));
  return Value(map);
}

Value to_array(nb::handle sequence) {
  Array<Value> array;
  for (const nb::handle item : sequence) array.push_back(to_value(item));
  return Value(array);
}

Value to_int(nb::handle number) {
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow != 0)
    throw_user_error("{} does not fit into 64 bits ({} to {})", nb::str(number).c_str(), INT64_MIN, INT64_MAX);
  return Value(static_cast<int64_t>(value));
}

Value to_text(nb::handle text) {
  std::string value;
  if (nb::try_cast(text, value)) return Value(value);
  throw_user_error("{} is not text in UTF-8", nb::repr(text).c_str());
}

// Deep nesting is an error, not a crash.
class Nesting {
 public:
  Nesting() {
    if (++depth > kMaxDepth) {
      --depth;
      throw UserError("lists, tuples and dicts nest deeper than 200; does one contain itself?");
    }
  }
  ~Nesting() { --depth; }

 private:
  static constexpr int kMaxDepth = 200;
  static thread_local int depth;
};
thread_local int Nesting::depth = 0;

bool is_numpy_dtype(nb::handle object) { return nb::isinstance(object, nb::module_::import_("numpy").attr("dtype")); }

// A dtype object of numpy's by its name, as dtypes are written.
Value to_dtype_name(nb::handle dtype) {
  if (!nb::cast<bool>(dtype.attr("isnative")))
    throw_user_error("dtype {} is of another byte order than this machine's; give {}", nb::repr(dtype).c_str(),
                     nb::repr(dtype.attr("newbyteorder")("=")).c_str());
  return Value(DataType::parse(text_of(dtype.attr("name"))).to_string());
}

// Converts an object that is not a plain number, string or node.
Value to_other_value(nb::handle object) {
  if (nb::isinstance<NDArray>(object)) return Value(nb::cast<NDArray>(object));
  if (nb::isinstance<Device>(object)) return Value(nb::cast<Device>(object));
  if (nb::isinstance<runtime::Module>(object)) return Value(nb::cast<runtime::Module>(object));
  if (nb::isinstance<PackedFunc>(object)) return Value(nb::cast<PackedFunc>(object));
  const Nesting nesting;
  if (nb::isinstance<nb::dict>(object)) return to_map(object);
  if (nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object)) return to_array(object);
  if (nb::isinstance<nb::bytes>(object)) {
    const nb::bytes bytes = nb::borrow<nb::bytes>(object);
    return Value(Bytes{std::string(bytes.c_str(), bytes.size())});
  }
  if (PyByteArray_Check(object.ptr()) != 0) {
    const auto size = static_cast<size_t>(PyByteArray_Size(object.ptr()));
    return Value(Bytes{std::string(PyByteArray_AsString(object.ptr()), size)});
  }
  if (is_numpy_dtype(object)) return to_dtype_name(object);
  const bool is_type = PyType_Check(object.ptr()) != 0;
  if (!is_type && nb::hasattr(object, "asobject")) return to_value(object.attr("asobject")());
  // Numbers of numpy, which are arrays too.
  if (!is_type && nb::hasattr(object, "dtype") && nb::hasattr(object, "item") && !nb::hasattr(object, "__len__"))
    return to_value(object.attr("item")());
  if (!is_type && nb::hasattr(object, "__dlpack__"))
    return Value(to_ndarray(object, [] { return std::string("the argument"); }));
  if (!is_type && PyCallable_Check(object.ptr()) != 0) return Value(to_function(nb::borrow(object)));
  const std::string type = nb::cast<std::string>(object.type().attr("__name__"));
  throw nb::type_error(("a " + type + " cannot be passed to Headrace").c_str());
}

}  // namespace

NDArray borrow(const DLTensor& tensor, std::shared_ptr<const void> lease) {
  struct Borrowed {
    DLManagedTensor managed{};
    Shape shape, strides;
    std::shared_ptr<const void> lease;
  };
  const auto ndim = static_cast<size_t>(tensor.ndim);
  auto* borrowed = new Borrowed;
  borrowed->lease = std::move(lease);
  borrowed->shape.assign(tensor.shape, tensor.shape + ndim);
  if (tensor.strides != nullptr) borrowed->strides.assign(tensor.strides, tensor.strides + ndim);
  borrowed->managed.dl_tensor = tensor;
  borrowed->managed.dl_tensor.shape = borrowed->shape.data();
  borrowed->managed.dl_tensor.strides = tensor.strides == nullptr ? nullptr : borrowed->strides.data();
  borrowed->managed.manager_ctx = borrowed;
  borrowed->managed.deleter = [](DLManagedTensor* self) { delete static_cast<Borrowed*>(self->manager_ctx); };
  NDArray array = NDArray::from_dlpack(&borrowed->managed);
  // It does not own the memory, so its release is the same for memory that is kept (tensor/kept_memory.h).
  borrowed->managed.dl_tensor.data = nullptr;
  return array;
}

// Returns the name of a dtype. Each is made once, since programs ask for it at every run.
static nb::handle name_of(DataType dtype) {
  static auto& names = *new std::unordered_map<uint32_t, nb::object>;  // outlives the interpreter
  const auto key = static_cast<uint32_t>(dtype.code()) << 24 | static_cast<uint32_t>(dtype.bits()) << 16 |
                   static_cast<uint32_t>(dtype.lanes());
  nb::object& name = names[key];
  if (!name.is_valid()) name = nb::cast(dtype.to_string());
  return name;
}

NDArray to_ndarray(nb::handle object, const Label& what, std::optional<DataType> wanted) {
  if (nb::isinstance<NDArray>(object)) return nb::cast<NDArray>(object);
  // It would be shared without its mask.
  if (nb::hasattr(object, "mask") && nb::hasattr(object, "filled"))
    throw_user_error("{}: a masked array has elements without a value; give x.filled(value)", what());
  if (nb::hasattr(object, "__dlpack__")) return share(object, what);
  const nb::object array = as_numpy(object, what);
  // A scalar of numpy's has a dtype that somebody chose.
  const bool is_plain = wanted && !nb::hasattr(object, "dtype");
  return share(is_plain ? with_dtype(array, nb::cast<std::string>(name_of(*wanted))) : array, what);
}

// The capsule of an array of numpy; invalid where numpy refuses.
static nb::object ask_numpy_for_dlpack(nb::handle array) {
  static PyObject* const method = PyUnicode_InternFromString("__dlpack__");
  static PyObject* const version = Py_BuildValue("(ii)", 1, 0);
  static PyObject* const names = Py_BuildValue("(s)", "max_version");
  PyObject* const args[] = {array.ptr(), version};
  nb::object capsule = nb::steal(call_method_of(method, args, 1, names));
  if (!capsule.is_valid()) {
    if (PyErr_ExceptionMatches(PyExc_Exception) == 0) throw nb::python_error();
    PyErr_Clear();
  }
  return capsule;
}

// Returns numpy.ndarray, borrowed. Does not import numpy: null without it, where there is no such object.
static PyObject* numpy_class() {
  static PyObject* ndarray = nullptr;  // held for the life of the process
  if (ndarray == nullptr) {
    const nb::object name = nb::steal(PyUnicode_InternFromString("numpy"));
    const nb::object numpy = nb::steal(PyImport_GetModule(name.ptr()));
    if (!numpy.is_valid() || !nb::hasattr(numpy, "ndarray")) {  // also while numpy is being imported
      PyErr_Clear();
      return nullptr;
    }
    ndarray = nb::object(numpy.attr("ndarray")).release().ptr();
  }
  return ndarray;
}

static bool is_exactly_ndarray(nb::handle object) {
  return reinterpret_cast<PyObject*>(Py_TYPE(object.ptr())) == numpy_class();
}

bool is_numpy_array(nb::handle object) {
  PyObject* ndarray = numpy_class();
  return ndarray != nullptr && PyObject_TypeCheck(object.ptr(), reinterpret_cast<PyTypeObject*>(ndarray)) != 0;
}

std::optional<NDArray> try_to_ndarray(nb::handle object) {
  if (nb::isinstance<NDArray>(object)) return *nb::inst_ptr<NDArray>(object);
  // Accepts exactly numpy's class, because a subclass may have a mask.
  if (!is_exactly_ndarray(object)) return std::nullopt;
  const nb::object capsule = ask_numpy_for_dlpack(object);
  if (!capsule.is_valid()) return std::nullopt;
  try {
    return from_capsule(capsule);
  } catch (const UserError&) {
    return std::nullopt;  // to_ndarray says it with a name
  }
}

nb::object to_dlpack(const NDArray& array, bool versioned) {
  if (versioned) {
    return nb::steal(PyCapsule_New(array.to_dlpack_versioned(), kVersionedCapsule, [](PyObject* capsule) {
      delete_unused<DLManagedTensorVersioned>(capsule, kVersionedCapsule);
    }));
  }
  return nb::steal(PyCapsule_New(array.to_dlpack(), kCapsule,
                                 [](PyObject* capsule) { delete_unused<DLManagedTensor>(capsule, kCapsule); }));
}

Value to_value(nb::handle object) {
  // The common ones first, by exact type: this is the cost of a call.
  PyObject* pointer = object.ptr();
  if (pointer == Py_None) return {};
  if (PyBool_Check(pointer)) return Value(pointer == Py_True);
  if (PyLong_CheckExact(pointer)) return to_int(object);
  if (PyFloat_CheckExact(pointer)) return Value(PyFloat_AsDouble(pointer));
  if (const ObjectRef* node = find_object(object)) return Value(*node);
  if (nb::isinstance<nb::int_>(object)) return to_int(object);
  if (nb::isinstance<nb::float_>(object)) return Value(nb::cast<double>(object));
  if (nb::isinstance<nb::str>(object)) return to_text(object);
  return to_other_value(object);
}

nb::object from_value(const Value& value) {
  switch (value.type_index()) {
    case type_index::kNone:
      return nb::none();
    case type_index::kBool:
      return nb::cast(value.as<bool>());
    case type_index::kInt:
      return nb::cast(value.as<int64_t>());
    case type_index::kFloat:
      return nb::cast(value.as<double>());
    case type_index::kDLTensorPtr:
      return nb::cast(borrow(*static_cast<const DLTensor*>(value.raw().v.v_ptr), nullptr));
    default:
      break;
  }
  if (value.is<std::string>()) return nb::cast(value.as<std::string>());
  if (value.is<NDArray>()) return nb::cast(value.as<NDArray>());
  if (value.is<Device>()) return nb::cast(value.as<Device>());
  if (value.is<runtime::Module>()) return nb::cast(value.as<runtime::Module>());
  if (value.is<PackedFunc>()) return nb::cast(value.as<PackedFunc>());
  if (value.type_index() == type_index::kShape) return nb::tuple(nb::cast(value.as<Shape>()));
  if (value.type_index() == type_index::kDataType) return nb::cast(value.as<DataType>().to_string());
  if (is_bytes(value.raw())) {
    const std::string_view bytes = string_of(value.raw());
    return nb::bytes(bytes.data(), bytes.size());
  }
  if (value.is_object()) return wrap_object(value.as<ObjectRef>());
  throw UserError("a value of this kind does not cross into Python: " + repr(value));
}

static void bind_device(nb::module_& m) {
  nb::class_<Device>(m, "Device", "Where memory and work live.")
      .def_prop_ro("device_type", [](const Device& device) { return device.type; })
      .def_prop_ro("device_id", [](const Device& device) { return device.id; })
      .def(
          "__eq__", [](const Device& a, nb::handle b) { return nb::isinstance<Device>(b) && a == nb::cast<Device>(b); },
          nb::arg("other").none())
      .def("__hash__", [](const Device& device) { return (device.type << 16) + device.id; })
      .def_prop_ro("exist", [](const Device& device) { return device.type == kDLCPU; })
      .def("__repr__", &Device::to_string);
  m.def(
      "cpu",
      [](int id) {
        if (id < 0) throw_user_error("the device id must be 0 or more, got {}", id);
        return cpu(id);
      },
      nb::arg("id") = 0, "The CPU.");
}

// Binds the properties of a tensor and its conversion to numpy.
static void bind_reading(nb::class_<NDArray>& tensor) {
  tensor.def_prop_ro("shape", [](const NDArray& array) { return nb::tuple(nb::cast(array.shape())); })
      .def_prop_ro("dtype", [](const NDArray& array) { return nb::borrow(name_of(array.dtype())); })
      .def_prop_ro("device", &NDArray::device)
      .def_prop_ro("ndim", [](const NDArray& array) { return array.shape().size(); })
      .def("numpy", &to_numpy,
           "The tensor as a numpy array that shares its memory; of bfloat16 and narrow dtypes, with the dtype of "
           "ml_dtypes.")
      .def("__len__", [](nb::handle self) { return nb::len(to_numpy(self)); })
      .def(
          "__getitem__", [](nb::handle self, nb::handle index) -> nb::object { return to_numpy(self)[index]; },
          nb::arg("index").none(), "What numpy() has there, which shares the memory where numpy's does.")
      .def("__setitem__", &set_items, nb::arg("index").none(), nb::arg("value").none(),
           "Writes elements as numpy does.")
      .def("__iter__", [](nb::handle self) { return nb::iter(to_numpy(self)); });
}

// Binds the protocols by which other libraries read a tensor: DLPack and numpy's __array__.
static void bind_exchange(nb::class_<NDArray>& tensor) {
  tensor
      .def("__dlpack_device__",
           [](const NDArray& array) { return nb::make_tuple(array.device().type, array.device().id); })
      .def(
          "__dlpack__",
          [](const NDArray& array, nb::object stream, nb::object max_version, nb::object dl_device, nb::object copy) {
            if (!stream.is_none()) throw UserError("a CPU tensor has no stream");
            if (!dl_device.is_none() && first_int(dl_device, "dl_device") != array.device().type)
              throw UserError("the tensor is exported to its own device only");
            const bool versioned = !max_version.is_none() && first_int(max_version, "max_version") >= 1;
            const bool copies = !copy.is_none() && nb::cast<bool>(copy);
            return to_dlpack(copies ? array.copy() : array, versioned);
          },
          nb::kw_only(), nb::arg("stream") = nb::none(), nb::arg("max_version") = nb::none(),
          nb::arg("dl_device") = nb::none(), nb::arg("copy") = nb::none())
      .def(
          "__array__",
          [](nb::handle self, nb::object dtype, nb::object copy) {
            nb::object array = to_numpy(self);
            if (!dtype.is_none()) array = array.attr("astype")(dtype);
            return !copy.is_none() && nb::cast<bool>(copy) ? array.attr("copy")() : array;
          },
          nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none())
      .def("asnumpy", &to_numpy, "As numpy().");
}

static void bind_copies(nb::class_<NDArray>& tensor) {
  tensor
      .def(
          "copyto",
          [](const NDArray& array, const NDArray& target) {
            target.copy_from(array);
            return target;
          },
          nb::arg("target"), "Copies the elements into another tensor of the shape and dtype.")
      .def(
          "copyto",
          [](const NDArray& array, Device target) {
            if (target.type != kDLCPU)
              throw_user_error("copyto: there is no memory on {}; tensors are on the CPU: headrace.cpu()",
                               target.to_string());
            return array.copy();
          },
          nb::arg("target"), "A copy on that device, which is the CPU; UserError for another.")
      .def(
          "copyto",
          [](const NDArray&, nb::handle target) -> NDArray {
            throw_user_error("target: expected an NDArray or a Device, got {}", kind_of(target));
          },
          nb::arg("target").none())
      .def(
          "copyfrom",
          [](const NDArray& array, nb::handle source) {
            array.copy_from(to_ndarray(source, [] { return std::string("source"); }));
            return array;
          },
          nb::arg("source").none(), "Takes the elements of another tensor.");
}

// Returns whether two tensors have the same elements of one memory, as a constant's data and the array it was made of.
static bool is_one_memory(const NDArray& a, const NDArray& b) {
  if (a.object() == b.object()) return true;
  return a.num_elements() != 0 && a.data<void>() == b.data<void>() && a.dtype() == b.dtype() &&
         a.shape() == b.shape() && a.is_dense() && b.is_dense();
}

// Returns whether an object has elements that a reader of `array == object` may want to compare.
static bool has_elements(nb::handle object) {
  return nb::isinstance<nb::int_>(object) || nb::isinstance<nb::float_>(object) || nb::isinstance<nb::list>(object) ||
         nb::isinstance<nb::tuple>(object) || nb::hasattr(object, "__array__") || nb::hasattr(object, "__dlpack__");
}

// Returns whether two tensors are one memory, as TVM does. Refuses to compare with other arrays, which is never true by
// that rule and which numpy would do by element.
static nb::object equal(const NDArray& a, nb::handle b) {
  if (nb::isinstance<NDArray>(b)) return nb::bool_(is_one_memory(a, nb::cast<NDArray>(b)));
  if (!has_elements(b)) return nb::borrow(Py_NotImplemented);
  const std::string message = fmt::format(
      "NDArray == {}: == says whether two NDArrays are one memory; compare elements in numpy: a.numpy() == b",
      kind_of(b));
  throw nb::type_error(message.c_str());
}

// Returns the truth of the only element; there is no other that users agree on, and numpy refuses it, too.
static bool is_true(nb::handle self) {
  const NDArray& array = nb::cast<const NDArray&>(self);
  if (array.num_elements() == 1) return nb::cast<bool>(to_numpy(self).attr("any")().attr("item")());
  const std::string message = fmt::format(
      "an NDArray of {} elements is neither true nor false; write a.numpy().any() or a.numpy().all(), or `a is not "
      "None`",
      array.num_elements());
  throw nb::type_error(message.c_str());
}

static void bind_object_protocol(nb::class_<NDArray>& tensor) {
  tensor.def("same_as", [](const NDArray& a, const NDArray& b) { return a.object() == b.object(); })
      .def("__eq__", &equal, nb::arg("other").none(), nb::sig("def __eq__(self, other: object | None) -> bool"))
      .def("__bool__", &is_true)
      .def("__hash__", [](const NDArray& array) { return std::hash<const void*>()(array.data<void>()); })
      .def("_save", [](const NDArray& array) { return save_json(Value(array)); })
      .def("__str__", [](nb::handle self) { return nb::str(to_numpy(self)); })
      .def("__repr__", [](const NDArray& array) {
        const nb::str shape = nb::repr(nb::tuple(nb::cast(array.shape())));
        return fmt::format("NDArray(shape={}, dtype={})", shape.c_str(), array.dtype().to_string());
      });
}

void bind_values(nb::module_& m) {
  bind_device(m);
  nb::class_<NDArray> tensor(m, "NDArray", nb::is_weak_referenceable(),
                             "A tensor. Shares its memory with numpy and others through DLPack.");
  bind_reading(tensor);
  bind_exchange(tensor);
  bind_copies(tensor);
  bind_object_protocol(tensor);
  m.def(
      "array",
      [](nb::handle object, const std::string& name, const std::string& dtype) {
        const auto wanted = is_number_dtype(dtype) ? std::optional(DataType::parse(dtype)) : std::nullopt;
        return to_ndarray(object, [&] { return name; }, wanted);
      },
      nb::arg("data").none(), nb::arg("name") = "data", nb::arg("dtype") = "",
      "An NDArray that shares the memory of a DLPack tensor; of lists and numbers, a new one, of `dtype` where that "
      "holds them. Messages call it `name`.");
  m.def("try_array", &try_to_ndarray, nb::arg("data").none(),
        "As array, for an NDArray and an array of numpy's; None for what needs a name for messages, or a dtype.");
}

}  // namespace headrace::python
