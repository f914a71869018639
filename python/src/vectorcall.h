// Python's calls with arguments in an array. The stable ABI of Python 3.10 lacks them: an extension that is built for
// it reaches them through nanobind's backend.
#pragma once

#include <nanobind/nanobind.h>

namespace headrace::python {

// Calls as PyObject_Vectorcall without arguments by name.
inline PyObject* call_vector(PyObject* callable, PyObject* const* args, size_t flagged_count) {
#ifdef Py_LIMITED_API
  return nanobind::detail::vectorcall(callable, args, flagged_count, nullptr);
#else
  return PyObject_Vectorcall(callable, args, flagged_count, nullptr);
#endif
}

// Calls as PyObject_CallOneArg.
inline PyObject* call_with_one(PyObject* callable, PyObject* arg) { return call_vector(callable, &arg, 1); }

// Calls as PyObject_VectorcallMethod.
inline PyObject* call_method_of(PyObject* name, PyObject* const* args, size_t flagged_count, PyObject* keywords) {
#ifdef Py_LIMITED_API
  return nanobind::detail::vectorcall_method(name, args, flagged_count, keywords);
#else
  return PyObject_VectorcallMethod(name, args, flagged_count, keywords);
#endif
}

}  // namespace headrace::python
