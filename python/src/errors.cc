#include "base/error.h"

#include <nanobind/stl/string.h>

#include "objects.h"

namespace headrace::python {

namespace {

nb::object* user_error = nullptr;
nb::object* diagnostic_error = nullptr;
nb::object* missing_error = nullptr;
nb::object* internal_error = nullptr;

void raise(const nb::object& type, const Error& error) {
  nb::object instance = type(to_shown(error.what()));
  instance.attr("op") = to_shown(error.where().op);
  instance.attr("place") = to_shown(error.where().place);
  PyErr_SetObject(type.ptr(), instance.ptr());
}

nb::object make_type(nb::module_& m, const char* name, PyObject* base, const char* doc) {
  const std::string full = std::string("headrace.") + name;
  nb::object type = nb::steal(PyErr_NewExceptionWithDoc(full.c_str(), doc, base, nullptr));
  m.attr(name) = type;
  return type;
}

}  // namespace

nb::str to_shown(std::string_view bytes) {
  return nb::steal<nb::str>(
      PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "backslashreplace"));
}

void bind_errors(nb::module_& m) {
  // Live as long as the process: exceptions may be raised until its end.
  user_error = new nb::object(make_type(m, "UserError", PyExc_ValueError,
                                        "A bad model, shape, option or file: the message says what is wrong and what "
                                        "to do. `op` and `place` say where, where that is known."));
  diagnostic_error = new nb::object(make_type(m, "DiagnosticError", user_error->ptr(),
                                              "A fault at a known place of a program, its text or a model: what the "
                                              "parser and type inference find. `place` says where."));
  missing_error = new nb::object(make_type(m, "MissingError", user_error->ptr(),
                                           "Something that is needed is not here: a code generator, a backend, a "
                                           "feature of the processor."));
  internal_error = new nb::object(make_type(m, "InternalError", PyExc_RuntimeError, "A defect of Headrace."));
  nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    try {
      std::rethrow_exception(pointer);
    } catch (const ForeignError& error) {
      if (!restore_python_error(error)) raise(*internal_error, error);
    } catch (const MissingError& error) {
      raise(*missing_error, error);
    } catch (const UserError& error) {
      raise(error.where().place.empty() ? *user_error : *diagnostic_error, error);
    } catch (const Error& error) {
      raise(*internal_error, error);
    }
  });
}

}  // namespace headrace::python
