// Backend: what a code generator beside the native one offers. The driver gives it the regions that placement chose for
// it, and puts the code that it returns into the artifact.
//
//   region @f(%a) { exp(%a) }, target, options   ->   a module with a function f, or an object with a kernel
//
// A backend is immutable; threads share it. Backends of this project have a folder under backends/, those of users are
// registered at run time; both are found by name.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.h"
#include "codegen/native.h"
#include "cost/machine.h"
#include "ir/target.h"
#include "ops/tensor/extern_onnx.h"
#include "partition/compose.h"
#include "partition/verdict.h"
#include "relay/expr.h"
#include "runtime/module.h"

namespace headrace::partition {

// A region to compile.
struct RegionSource {
  std::string name;          // name of the function that its code must have
  relay::Function function;  // has types; its attribute global_symbol is `name`
  IRModule module;           // the function, under `name`, with all functions and data types that it uses
};

// The code of a region: a module, or else an object with a symbol. One with neither is an error of the backend.
struct RegionCode {
  // A module of C source (codegen/c_module.h), which is compiled to such an object; or any other module with a function
  // of the region's name. It is called with a DLTensor* for each tensor of the parameters,
  // then for each of the results, from any thread. Several regions may have one module.
  runtime::Module module = {};
  // Otherwise: an object that is linked into the artifact's own code, with a kernel (hr_kernel, headrace/kernel_abi.h)
  // named `symbol`, whose arguments are those tensors.
  codegen::ObjectCode object = {};
  std::string symbol = {};
  int64_t workspace_bytes = 0;  // size that the kernel needs in its env; a multiple of HR_ALIGNMENT
  runtime::Module source = {};  // for readers of a build: a module whose GetSource is what the kernel was made of
};

// The most seconds that a call or a border may cost.
constexpr double kMaxCostSeconds = 1000;

struct RegionRequest {
  std::span<const RegionSource> regions;
  Target target;                         // target of the artifact's native code, as the user wrote it
  codegen::NativeTarget machine = {};    // `target`, resolved
  Map<std::string, Value> options = {};  // this backend's pass configuration relay.ext.NAME.options
};

// Computes regions. Every function may throw a MissingError: the backend is known, and its library is not there.
class Backend {
 public:
  virtual ~Backend() = default;
  // Returns the name, which is also the value of the attribute Compiler.
  virtual std::string_view name() const = 0;
  // Returns the backend's own version, which artifacts record; may be empty.
  virtual std::string version() const { return ""; }
  // Returns where the backend is from, for messages, as "that of the library 'x.so'"; empty for one that a program has
  // itself.
  virtual std::string origin() const { return ""; }
  // Returns what the backend computes as one, in the order of its priority. The names begin with that of the backend
  // and a dot. What an entry accepts, the backend takes.
  virtual std::span<const CompositePattern> patterns() const { return {}; }
  // Returns whether the backend computes a typed call of an op, and why not.
  virtual Verdict supports(const relay::CallNode& call) const = 0;
  // Returns the seconds that the backend takes for a typed call that it supports, or for one of a composite function
  // that one of its patterns made, with that many threads. Placement by cost (placement/by_cost.h) compares them. By
  // default the analytic time that the call takes natively (cost/op_work.h). A change of layout at the region's border
  // is no part of it. From 0 to kMaxCostSeconds.
  virtual double cost(const relay::CallNode& call, const cost::Machine& machine, int threads) const;
  // Returns the seconds that `call` costs less than cost() says where its region also computes `producers`: calls that
  // it needs, whose values nothing else uses, the first of them an operand. By default nothing.
  virtual double saved(const relay::CallNode& call, const std::vector<const relay::CallNode*>& producers,
                       const cost::Machine& machine, int threads) const;
  // Returns the seconds that a value of this type takes to enter or to leave a region, beside the call of the region:
  // such as those of a change of layout. By default nothing.
  virtual double border(const Type& type, const cost::Machine& machine, int threads) const;
  // Returns whether each call, or each composite function, is a region of its own: what computes one at a time.
  virtual bool one_call_per_region() const { return false; }
  // Returns the types of the results of an ONNX node for which there is no op, where the backend computes it; the node
  // becomes a call of extern.onnx then. Otherwise why not, in a sentence that may be empty. By default what supports()
  // says of that call, with the types that the model declares.
  virtual Expected<std::vector<TensorType>> claim(const ops::OnnxNode& node) const;
  // Returns the code of each region, in order, or why the backend does not compile it: then the region is compiled
  // natively, unless the program itself marks it. Throws a UserError for what the user must mend, such as a wrong
  // option. A request without regions asks only for that: `headrace explain` checks options so.
  virtual std::vector<Expected<RegionCode>> compile(const RegionRequest& request) const = 0;
};

// Throws UserError for options of a backend that has none.
void refuse_options(const Backend& backend, const Map<std::string, Value>& options);

// Makes a backend known to this process, under its name and its aliases; targets may be of these
// kinds then, and pass configurations have the key of its options. UserError as check_new_backend.
void register_backend(std::shared_ptr<const Backend> backend, const std::vector<std::string>& aliases = {});

// Throws UserError for a name that no backend may have (runtime/backend_name.h), or that is taken; the message names
// the origins of both. `origin`: as Backend::origin of the new backend.
void check_new_backend(const std::string& name, const std::string& origin);

// Throws the UserError for a new backend of a name that another one has, from `known`.
[[noreturn]] void throw_name_taken(const std::string& name, const std::string& known, const std::string& origin);

// Returns the backend of that name: one that was registered, else one whose regions the global function relay.ext.NAME
// or the hooks of the target kind of that name compile; null when there is neither. The patterns of the latter are the
// table that the global function relay.ext.NAME.patterns gives, if there is one.
std::shared_ptr<const Backend> find_backend(const std::string& name);

// Returns the own name of the backend that has this name or alias; the name itself where none has.
std::string own_name(const std::string& name);

// Returns the names of the backends that were registered, sorted.
std::vector<std::string> backend_names();

}  // namespace headrace::partition
