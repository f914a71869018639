// Nodes in Python: one class for each registered type. The classes are made in Python (headrace/_node.py) from the type
// table; here they get their instances.
#pragma once

#include "object/foreign_error.h"
#include "values.h"

namespace headrace::python {

// An instance of the class of the object's type; `ref` is not null.
nb::object wrap_object(ObjectRef ref);
// The object that a Python instance holds; null when it is no Object.
const ObjectRef* find_object(nb::handle instance);

// A function of C++ that calls `callable`. It may be called and dropped by any thread.
PackedFunc to_function(nb::object callable);
// Calls a function with Python's arguments, the GIL released.
nb::object call_function(const PackedFunc& function, PyObject* const* args, size_t count);

// What is for people to read: text, or bytes that are none with an escape for each (\xff).
nb::str to_shown(std::string_view bytes);
// Raises the Python exception that a ForeignError carries; false when it carries none of Python's.
bool restore_python_error(const ForeignError& error);

void bind_objects(nb::module_& m);
void bind_functions(nb::module_& m);

}  // namespace headrace::python
