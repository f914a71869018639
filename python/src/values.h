// Conversion of values between Python and the object system. Python's side of it lives here and nowhere else.
#pragma once

#include <nanobind/nanobind.h>

#include <functional>
#include <memory>
#include <optional>

#include "artifact/manifest.h"
#include "executors/executor.h"
#include "object/function.h"
#include "tensor/ndarray.h"

namespace headrace::python {

namespace nb = nanobind;

// None, bool, int, float, str, bytes, nodes, NDArray, Device, Module, PackedFunc, functions of Python, numbers of
// numpy, anything with __dlpack__ or asobject(), and lists, tuples and dicts of all these. TypeError for other things.
Value to_value(nb::handle object);
nb::object from_value(const Value& value);

// As to_value(object); the TypeError says where the object was given, as `where()` tells.
template <typename F>
Value to_value_of(nb::handle object, F&& where) {
  try {
    return to_value(object);
  } catch (const nb::builtin_exception& error) {
    throw nb::type_error(fmt::format("{}: {}", where(), error.what()).c_str());
  }
}

// A tensor that shares the object's memory: of an NDArray, of anything with __dlpack__; a copy of what numpy.asarray
// makes of lists and numbers. They have no dtype of their own: they get `wanted` where numpy has it and it holds their
// values (of integers exactly; an integer dtype takes no others). `what`, which names it in UserErrors ("input 'x'"),
// is asked for an error alone.
using Label = std::function<std::string()>;
NDArray to_ndarray(nb::handle object, const Label& what, std::optional<DataType> wanted = std::nullopt);
// As to_ndarray of an NDArray and of an array of numpy that DLPack can share; null for anything else.
std::optional<NDArray> try_to_ndarray(nb::handle object);
// Returns whether the object is an array of numpy, also of a subclass or of a dtype that no NDArray has.
bool is_numpy_array(nb::handle object);
// A view of memory that is the caller's, as a step of an artifact passes it to a function: valid while the call runs.
// `lease` is held as long as the view and what was made of it.
NDArray borrow(const DLTensor& tensor, std::shared_ptr<const void> lease);
// The capsule that __dlpack__ gives.
nb::object to_dlpack(const NDArray& array, bool versioned);

// Runs Python's signal handlers, on the main thread; what they raise, KeyboardInterrupt, becomes a ForeignError. For an
// InterruptScope: called without the GIL.
void check_signals();

// A program that was compiled for another processor: `run` says why it does not run here.
struct Elsewhere {
  artifact::Program program;
  int32_t threads = 0;
  std::string reason;
};

inline executors::Fallback fallback_of(bool falls_back) {
  return falls_back ? executors::Fallback::native : executors::Fallback::none;
}

// Opens a program of an artifact. `cpus` may be empty; with `owns_threads` its threads are its own without them, too.
std::shared_ptr<executors::Executor> open_executor(const std::string& path, const std::string& program, int threads,
                                                   std::vector<int32_t> cpus = {}, bool falls_back = true,
                                                   double region_timeout = 0, bool owns_threads = false);

// Makes UserError and InternalError Python exceptions of module `m`.
void bind_errors(nb::module_& m);
void bind_values(nb::module_& m);
void bind_runtime(nb::module_& m);
void bind_compile(nb::module_& m);
void bind_onnx_file(nb::module_& m);
void bind_backends(nb::module_& m);
void bind_pipeline(nb::module_& m);

}  // namespace headrace::python
