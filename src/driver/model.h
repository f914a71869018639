// A program to compile and the names that its users know its inputs and outputs by.
#pragma once

#include "relay/expr.h"
#include "runtime/module.h"

namespace headrace::driver {

struct Model {
  IRModule module;                      // `main` is the program
  std::vector<std::string> inputs;      // of main's parameters, in order
  std::vector<std::string> outputs;     // of main's results, tuples flattened
  std::vector<std::string> files = {};  // what it was read from: no artifact is written over them
  // What was given for parameters, which are constants since, and for names that main does not have: who runs the
  // program may give it again.
  std::map<std::string, NDArray> bound = {};
  // External modules that the artifact takes with it (driver/save_modules.h), in the order of their look-up.
  std::vector<runtime::Module> modules = {};
};

// Names of a module's own: its parameters' and output0, output1 ... Needs main's type (infers it). UserError when two
// parameters share a name, or one has none.
Model make_model(const IRModule& module);

// The shape of an input, for a message, in the words of whoever gives shapes.
using NamedShape = std::pair<std::string, std::vector<int64_t>>;
std::string shapes_as_flags(const std::vector<NamedShape>& shapes);  // --shape x=1,3 --shape y=2
// shapes={"x": (1, 3), "y": (2,)}, for the argument of that name
std::string shapes_as_dict(std::string_view argument, const std::vector<NamedShape>& shapes);

struct LoadOptions {
  std::map<std::string, std::vector<int64_t>> shapes = {};  // of inputs, by name; the others keep what the model says
  std::map<std::string, NDArray> bound = {};                // inputs that become constants
  std::string weights = {};  // a file with the data of relay text's constants; empty: none
  std::string (*show_shapes)(const std::vector<NamedShape>&) = &shapes_as_flags;
};

// Reads a model file: ONNX, or relay's text form (.relay). "/proc/self/fd/N", an open descriptor, is an ONNX model
// whose data lies in it alone. UserError: no such file, a format that is not known, a model that is malformed or not
// supported, an input that it does not have.
Model load_model(const std::string& path, const LoadOptions& options = {});

// What a model file declares, before any shape is fixed.
struct ModelDim {
  int64_t value = -1;  // -1: not fixed
  std::string symbol;  // its name, where it has one
};
struct ModelPort {
  std::string name;
  std::string dtype;
  std::vector<ModelDim> shape;
  bool has_shape = true;  // false: not even its rank is known
  // Whether every dimension is a number.
  bool is_fixed() const;
};
struct ModelPorts {
  std::vector<ModelPort> inputs;  // initialisers are none
  std::vector<ModelPort> outputs;
};

// `weights` as in LoadOptions. UserError as load_model, for what is wrong with the files themselves.
ModelPorts read_ports(const std::string& path, const std::string& weights = {});

// The files that hold a model: `path`, and those with data of an ONNX model beside it, which need not be there.
std::vector<std::string> model_files(const std::string& path);

}  // namespace headrace::driver
