// SharedObject: a Python object that C++ holds.
#pragma once

#include "gil.h"

namespace headrace::python {

// Any thread may destroy the holder, with or without the GIL.
struct SharedObject {
  explicit SharedObject(nb::object object) : pointer(object.release().ptr()) {}
  SharedObject(const SharedObject&) = delete;
  ~SharedObject() {
    if (!Py_IsInitialized()) return;
    GilHeld held;
    Py_DECREF(pointer);
  }
  PyObject* pointer;
};

}  // namespace headrace::python
