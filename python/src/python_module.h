// Modules whose code is of a backend in Python: the bytes that it compiled regions to, and the functions that it loads
// from them.
#pragma once

#include <string>
#include <vector>

#include "object/foreign_error.h"
#include "runtime/module.h"

namespace headrace::python {

struct RegionEntry {
  std::string name;
  uint32_t num_inputs = 0;  // tensors of its parameters, which come before those of its results

  bool operator==(const RegionEntry&) const = default;
};

// The content of a module, which it saves.
struct PythonBlob {
  std::vector<RegionEntry> regions;
  std::string blob;  // the backend's own bytes
};

// Returns the kind of the modules of a backend: "python.NAME".
std::string python_module_kind(const std::string& backend);

// Makes a module that loads its bytes when a function is first asked for. `load` is a function of the bytes, which
// gives two functions: one of a region's name and its number of inputs, which gives the region's function of tensors;
// and one of the name, which gives the types of its inputs and of its results or None. The second may be None.
runtime::Module make_python_module(const std::string& backend, const PackedFunc& load, PythonBlob blob);

// Makes the module from its saved bytes, and loads it. UserError for bytes that are no such module's, or that the
// backend refuses.
runtime::Module load_python_module(const std::string& backend, const PackedFunc& load, const std::string& bytes);

// Returns the result of `call`, which calls Python. A UserError of Python's becomes one of C++'s, for callers that go
// on after a UserError; any other exception passes through, such as an interrupt.
template <typename F>
auto as_user_error(F&& call) {
  try {
    return call();
  } catch (const ForeignError& error) {
    if (error.kind() == "MissingError") throw MissingError(error.message(), error.where());
    if (error.kind() == "UserError" || error.kind() == "DiagnosticError")
      throw UserError(error.message(), error.where());
    throw;
  }
}

}  // namespace headrace::python
