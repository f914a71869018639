// A program to compile, with the names of its inputs and outputs, and the functions that load one from a file.
#pragma once

#include "partition/rules.h"
#include "relay/expr.h"
#include "runtime/module.h"

namespace headrace::driver {

struct Model {
  IRModule module;                      // `main` is the program
  std::vector<std::string> inputs;      // the names of main's parameters, in order
  std::vector<std::string> outputs;     // the names of main's results, tuples flattened
  std::vector<std::string> files = {};  // the files that it was read from; artifacts never overwrite them
  // The values of parameters that were bound as constants, and values for names that main does not have. Callers of the
  // compiled program may pass the same values again.
  std::map<std::string, NDArray> bound = {};
  // External modules that are saved in the artifact (driver/save_modules.h), in the order in which functions are looked
  // up in them.
  std::vector<runtime::Module> modules = {};
  // The names of dimensions of inputs and outputs, "" for one without; tensors without any are left out.
  std::map<std::string, std::vector<std::string>> dims = {};
};

// Makes a model whose inputs have the names of main's parameters, and whose outputs are output0, output1, ... Infers
// the types. Throws UserError if two parameters share a name, or if one has no name.
Model make_model(const IRModule& module);

// Example sizes for the open dimensions of a model, for a message.
struct OpenSizes {
  std::vector<std::pair<std::string, std::vector<int64_t>>> shapes = {};  // for the inputs that have open dimensions
  std::vector<std::pair<std::string, int64_t>> dims = {};  // by name; empty if a dimension that has no name is open
};
// Format them as the user would write them: on the command line and in Python the dimensions by name if they suffice.
std::string sizes_as_flags(const OpenSizes& sizes);      // --dim batch=1; --shape x=1,3 --shape y=2
std::string sizes_as_arguments(const OpenSizes& sizes);  // dims={"batch": 1}; shapes={"x": (1, 3), "y": (2,)}
// shape={"x": (1, 3), "y": (2,)}, if `argument` is "shape"
std::string shapes_as_dict(std::string_view argument, const OpenSizes& sizes);

struct LoadOptions {
  std::map<std::string, std::vector<int64_t>> shapes = {};  // shapes of inputs by name; default: as the model declares
  std::map<std::string, int64_t> dims = {};                 // sizes of named dimensions, in every input that has them
  std::map<std::string, NDArray> bound = {};                // inputs that become constants
  // Backends that may claim nodes of an ONNX model for which there is no op (partition/backend.h): those of the compile
  // (driver/placing.h).
  partition::Backends backends = {};
  std::string weights = {};  // a file with the data of the constants of a relay text; empty: none
  std::string (*show_sizes)(const OpenSizes&) = &sizes_as_flags;  // formats sizes in messages
};

enum class ModelFormat : uint8_t { onnx, relay };  // relay: its text form
// Returns the format of a model file: by its name if that ends in .onnx or .relay, else by how the file begins; nullopt
// if that is as neither does.
std::optional<ModelFormat> find_model_format(const std::string& path);
// Throws UserError for a folder, for an artifact, and for a file that begins as neither does. A file that is empty or
// cannot be read counts as ONNX, whose reader reports it.
ModelFormat model_format(const std::string& path);
// Returns whether a file begins as an ELF file, as artifacts do.
bool is_elf_file(const std::string& path);

// Reads a model file: ONNX, or relay's text form (model_format). The path "/proc/self/fd/N" of an open descriptor names
// an ONNX model without external data. Throws UserError for a missing file, an unknown format, a malformed or
// unsupported model, and an option for an input that the model does not have.
Model load_model(const std::string& path, const LoadOptions& options = {});

// The inputs and outputs that a model file declares, before any shape is fixed.
struct ModelDim {
  int64_t value = -1;  // -1: not fixed
  std::string symbol;  // its name, where it has one
};
struct ModelPort {
  std::string name;
  std::string dtype;
  std::vector<ModelDim> shape;
  bool has_shape = true;  // false: not even its rank is known
  // Returns whether every dimension is a number.
  bool is_fixed() const;
};
struct ModelPorts {
  std::vector<ModelPort> inputs;  // without initialisers
  std::vector<ModelPort> outputs;
};

// Reads the declared inputs and outputs. `weights` as in LoadOptions. Throws UserError as load_model for files that
// cannot be read or are malformed.
ModelPorts read_ports(const std::string& path, const std::string& weights = {});

// Returns the files that hold a model: `path` and the external data files of an ONNX model, which need not exist.
std::vector<std::string> model_files(const std::string& path);

}  // namespace headrace::driver
