// Nodes in Python: one class for each registered type. The classes are made in Python (headrace/_node.py) from the type
// table; here they get their instances.
#pragma once

#include "object/foreign_error.h"
#include "values.h"

namespace headrace::python {

// Returns an instance of the Python class of the object's type. `ref` must not be null.
nb::object wrap_object(ObjectRef ref);
// Returns the object that a Python instance holds; null if the instance is not an Object.
const ObjectRef* find_object(nb::handle instance);

// A function of C++ that calls `callable`. It may be called and dropped by any thread.
PackedFunc to_function(nb::object callable);
// Calls a function with Python's arguments, the GIL released.
nb::object call_function(const PackedFunc& function, PyObject* const* args, size_t count);

// Converts bytes to text for people: each byte that is not part of valid UTF-8 becomes an escape (\xff).
nb::str to_shown(std::string_view bytes);
// Raises the Python exception that a ForeignError carries; returns false if it carries none.
bool restore_python_error(const ForeignError& error);

// Throws a Python exception as an error that can raise it again.
[[noreturn]] void throw_foreign(nb::python_error& error);
// Returns the Python exception that an error stands for: the one that it carries, or a new one with its message.
nb::object exception_of(const ErrorObj& error);
// Returns the Python exception that an error carries, or None.
nb::object carried_exception(const ErrorObj& error);
// Lets an error carry a Python exception.
void carry_exception(ErrorObj& error, nb::object exception);

void bind_objects(nb::module_& m);
void bind_functions(nb::module_& m);

}  // namespace headrace::python
