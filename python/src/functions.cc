// Functions in both directions, and the errors that cross with them.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "base/interrupt.h"
#include "gil.h"
#include "object/foreign_error.h"
#include "objects.h"
#include "shared_object.h"
#include "tensor/kept_memory.h"
#include "vectorcall.h"

namespace headrace::python {

namespace {

// Carries a Python exception inside a C++ error.
struct PythonErrorObj : Object {
  using Parent = Object;
  static constexpr std::string_view type_key = "python.Error";
  static constexpr bool is_final = true;
  std::shared_ptr<SharedObject> exception;
};

// Returns the text of an exception, or its type's name where it has none. Copes with an exception whose __str__ fails
// or returns invalid text.
std::string message_of(const nb::object& exception) {
  try {
    nb::str text(exception);
    if (nb::len(text) == 0) text = nb::str(exception.type().attr("__name__"));
    return nb::cast<std::string>(text.attr("encode")("utf-8", "replace").attr("decode")("utf-8"));
  } catch (nb::python_error&) {
    return "an exception that cannot say what it is";
  }
}

// Returns the kind by which C++ knows an exception that no handler of Exception catches; null for another one.
const char* interrupt_kind(const nb::object& exception) {
  const auto is_a = [&](PyObject* type) { return PyErr_GivenExceptionMatches(exception.ptr(), type) != 0; };
  if (is_a(PyExc_Exception)) return nullptr;
  return is_a(PyExc_KeyboardInterrupt) ? "KeyboardInterrupt" : is_a(PyExc_SystemExit) ? "SystemExit" : "BaseException";
}

}  // namespace

[[noreturn]] void throw_foreign(nb::python_error& error) {
  const nb::object exception = nb::borrow(error.value());
  Ref<PythonErrorObj> payload = make_object<PythonErrorObj>();
  payload->exception = std::make_shared<SharedObject>(exception);
  const auto name = nb::cast<std::string>(exception.type().attr("__name__"));
  const char* interrupt = interrupt_kind(exception);
  if (interrupt == nullptr || name == interrupt) throw ForeignError(name, message_of(exception), std::move(payload));
  throw ForeignError(interrupt, fmt::format("{}: {}", name, message_of(exception)), std::move(payload));
}

namespace {

// The arguments of one call, as vectorcall takes them: with room before the first that it may write to.
class PythonArgs {
 public:
  PythonArgs() = default;
  void fill(Args args) {
    count_ = static_cast<size_t>(args.size());
    if (count_ > kFew) many_.resize(count_ + 1, nullptr);
    for (; owned_ < count_; ++owned_) first()[owned_] = convert(args[static_cast<int32_t>(owned_)]).release().ptr();
  }
  ~PythonArgs() { clear(); }
  PythonArgs(const PythonArgs&) = delete;
  PyObject** first() { return (count_ > kFew ? many_.data() : few_) + 1; }
  size_t count() const { return count_ | NB_VECTORCALL_ARGUMENTS_OFFSET; }
  // Whether tensors were passed whose memory is the caller's and ends with the call.
  bool has_borrowed() const { return lease_ != nullptr; }
  // Gives the arguments up. Returns whether somebody still holds such a tensor; then its memory is never freed.
  bool is_kept_after(Args args) {
    clear();
    if (lease_.use_count() <= 1) return false;
    for (int32_t i = 0; i < args.size(); ++i) {
      if (args[i].type_index == type_index::kDLTensorPtr)
        keep_memory_of(*static_cast<const DLTensor*>(args[i].v.v_ptr));
    }
    return true;
  }

 private:
  nb::object convert(const RawValue& raw) {
    if (raw.type_index != type_index::kDLTensorPtr) return from_value(Value::own(raw));
    if (lease_ == nullptr) lease_ = std::make_shared<int>(0);
    return nb::cast(borrow(*static_cast<const DLTensor*>(raw.v.v_ptr), lease_));
  }
  void clear() {
    for (; owned_ > 0; --owned_) Py_DECREF(first()[owned_ - 1]);
  }

  static constexpr size_t kFew = 6;
  PyObject* few_[kFew + 1] = {};
  std::vector<PyObject*> many_;
  size_t count_ = 0, owned_ = 0;
  std::shared_ptr<const void> lease_;  // held by each borrowed tensor, too
};

// Clears the variables of the frames in which an exception and those before it came up: they hold arrays whose memory
// ends with the call.
void clear_frames(const nb::object& exception) {
  constexpr int kMostExceptions = 100;
  std::vector<nb::object> pending{exception};
  const nb::object clear = nb::module_::import_("traceback").attr("clear_frames");
  for (int i = 0; i < kMostExceptions && !pending.empty(); ++i) {
    const nb::object one = std::move(pending.back());
    pending.pop_back();
    if (const nb::object trace = one.attr("__traceback__"); !trace.is_none()) clear(trace);
    for (const char* before : {"__cause__", "__context__"}) {
      if (const nb::object other = one.attr(before); !other.is_none()) pending.push_back(other);
    }
  }
}

Value call_python(const SharedObject& callable, Args args) {
  GilHeld held;
  PythonArgs python;
  try {
    python.fill(args);
    nb::object result =
        nb::steal(run_python([&] { return call_vector(callable.pointer, python.first(), python.count()); }));
    if (!result.is_valid()) throw nb::python_error();
    if (!python.has_borrowed()) return run_python([&] { return to_value(result); });
    // Such a function writes its results; what it returns may be one of the tensors.
    result.reset();
    if (python.is_kept_after(args))
      throw_user_error(
          "a function keeps an array that was passed to it, whose memory ends with the call: keep a copy, such as "
          "numpy.array(x)");
    return {};
  } catch (nb::python_error& error) {
    if (python.has_borrowed()) {
      try {
        clear_frames(nb::borrow(error.value()));
      } catch (nb::python_error&) {  // the function's own error matters more than a failure to clear its frames
      }
      python.is_kept_after(args);
    }
    throw_foreign(error);
  }
}

// Returns what `use` gives for the items of a tuple as an array. The stable ABI has no such array, so they are copied.
template <typename F>
nb::object with_items(const nb::args& tuple, F&& use) {
#ifdef Py_LIMITED_API
  constexpr size_t kFew = 8;
  PyObject* few[kFew];
  std::vector<PyObject*> many(tuple.size() > kFew ? tuple.size() : 0);
  PyObject** const items = many.empty() ? few : many.data();
  for (size_t i = 0; i < tuple.size(); ++i) items[i] = PyTuple_GetItem(tuple.ptr(), static_cast<Py_ssize_t>(i));
  return use(items, tuple.size());
#else
  return use(&PyTuple_GET_ITEM(tuple.ptr(), 0), tuple.size());
#endif
}

}  // namespace

void check_signals() {
  if (is_given_up()) throw UserError("the interpreter ends");
  GilHeld held;
  if (PyErr_CheckSignals() == 0) return;
  nb::python_error error;
  throw_foreign(error);
}

PackedFunc to_function(nb::object callable) {
  const auto shared = std::make_shared<SharedObject>(std::move(callable));
  return PackedFunc([shared](Args args) { return call_python(*shared, args); });
}

nb::object call_function(const PackedFunc& function, PyObject* const* args, size_t count) {
  constexpr size_t kFew = 8;
  std::array<Value, kFew> few;
  std::vector<Value> many(count > kFew ? count : 0);
  const std::span<Value> values = count > kFew ? std::span<Value>(many) : std::span<Value>(few.data(), count);
  for (size_t i = 0; i < count; ++i) values[i] = to_value_of(args[i], [i] { return fmt::format("argument {}", i); });
  Value result;
  {
    GilReleased released;
    const InterruptScope interruptible(&check_signals);
    result = function.call(std::span<const Value>(values));
  }
  return from_value(result);
}

namespace {

// Adds what was said of an exception on its way, such as the region that raised it, as a note, which Python 3.11 and
// later show below the exception. Each sentence once: an exception may be raised again and again.
void add_note(nb::handle exception, const std::string& message) {
  if (message == message_of(nb::borrow(exception)) || !nb::hasattr(exception, "add_note")) return;
  try {
    const nb::str note = to_shown(message);
    if (nb::hasattr(exception, "__notes__") && nb::cast<bool>(exception.attr("__notes__").attr("__contains__")(note)))
      return;
    exception.attr("add_note")(note);
  } catch (nb::python_error&) {  // one that takes no notes is raised without
  }
}

}  // namespace

bool restore_python_error(const ForeignError& error) {
  const auto* payload = error.payload().as<PythonErrorObj>();
  if (payload == nullptr) return false;
  PyObject* exception = payload->exception->pointer;
  add_note(exception, error.message());
  PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(exception));
  Py_INCREF(type);
  Py_INCREF(exception);
  // With the frames it came through; those of the caller are added as it goes up.
  PyErr_Restore(type, exception, PyException_GetTraceback(exception));
  return true;
}

nb::object carried_exception(const ErrorObj& error) {
  const auto* payload = error.payload.as<PythonErrorObj>();
  return payload == nullptr ? nb::none() : nb::borrow(payload->exception->pointer);
}

void carry_exception(ErrorObj& error, nb::object exception) {
  Ref<PythonErrorObj> payload = make_object<PythonErrorObj>();
  payload->exception = std::make_shared<SharedObject>(std::move(exception));
  error.payload = payload;
}

nb::object exception_of(const ErrorObj& error) {
  if (nb::object carried = carried_exception(error); !carried.is_none()) {
    add_note(carried, error.message);
    return carried;
  }
  const nb::module_ core = nb::module_::import_("headrace._core");
  const char* kind = error.kind == "UserError" ? "UserError" : "InternalError";
  return core.attr(kind)(to_shown(error.message));
}

void bind_functions(nb::module_& m) {
  nb::class_<PackedFunc>(m, "PackedFunc", nb::is_weak_referenceable(), "A function of any language.")
      .def(
          "__init__", [](PackedFunc* self, nb::callable body) { new (self) PackedFunc(to_function(body)); },
          nb::arg("body"))
      .def("__call__",
           [](const PackedFunc& function, const nb::args& args) {
             return with_items(
                 args, [&](PyObject* const* items, size_t count) { return call_function(function, items, count); });
           })
      .def("same_as", [](const PackedFunc& a, const PackedFunc& b) { return a.object() == b.object(); })
      .def(
          "__eq__",
          [](const PackedFunc& a, nb::handle b) {
            return nb::isinstance<PackedFunc>(b) && a.object() == nb::inst_ptr<PackedFunc>(b)->object();
          },
          nb::arg("other").none())
      .def("__hash__", [](const PackedFunc& self) { return reinterpret_cast<intptr_t>(self.object().object()) >> 4; });
  m.def(
      "register_global",
      [](const nb::str& name, nb::callable function, bool override) {
        const PackedFunc packed =
            nb::isinstance<PackedFunc>(function) ? nb::cast<PackedFunc>(function) : to_function(std::move(function));
        register_global(to_value(name).as<std::string>(), packed, override);
      },
      nb::arg("name"), nb::arg("function"), nb::arg("override") = false);
  m.def(
      "find_global",
      [](const nb::str& name) -> nb::object {
        const PackedFunc function = find_global(to_value(name).as<std::string>());
        return function ? nb::cast(function) : nb::none();
      },
      nb::arg("name"));
  m.def("global_names", &global_names);
}

}  // namespace headrace::python
