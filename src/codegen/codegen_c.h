// The base of code generators that write C: the three functions of a region, under the names that Relay users know.
//
//   region f(%a, %b), body "f_0(a, b, out0);"   ->   void f_(const float* a, const float* b, float* out0) { f_0(a, b,
//   out0); }
//                                                    int32_t f__wrapper_(DLTensor* a, DLTensor* b, DLTensor* out0)
//                                                    TVM_DLL_EXPORT_TYPED_FUNC(f, f__wrapper_)
//
// The last is the kernel (headrace/kernel_abi.h) that an artifact calls. The text is C that any C11 compiler takes,
// below c_source_head() (codegen/c_module.h).
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "relay/expr.h"
#include "runtime/module.h"

namespace headrace::codegen {

// A tensor that goes in or out of a region: its name in the text, and the type of its elements ("float").
struct CTensor {
  std::string name;
  std::string type;
};

struct CRegion {
  std::string symbol;
  std::vector<CTensor> inputs, outputs;
  std::vector<std::string> body;  // lines of the function SYMBOL_, which end with ';'
  bool has_workspace = false;     // whether the functions have a last parameter `char* workspace`, of the kernel's env
};

// Returns the functions SYMBOL_, SYMBOL__wrapper_ and SYMBOL.
std::string region_functions(const CRegion& region);

// The functions that a code generator offers to relay.ext.NAME.
class CSourceModuleCodegenBase {
 public:
  virtual ~CSourceModuleCodegenBase() = default;
  // Makes a module of C source (codegen/c_module.h) of a relay::Function or of all functions of an IRModule.
  virtual runtime::Module CreateCSourceModule(const ObjectRef& ref) = 0;

 protected:
  // Returns the function's global_symbol. UserError at one that has none.
  static std::string GetExtSymbol(const relay::Function& function);
};

// A value that a region gives.
struct Output {
  std::string name;        // the variable that holds it
  std::string dtype;       // the type of its elements in C: "float"
  bool need_copy = false;  // whether it is in memory of the function, which is copied to the output
  int64_t size = 0;        // its bytes
};

// Writes one region; a derived class visits its expressions.
class CodegenCBase {
 public:
  virtual ~CodegenCBase() = default;
  // Returns the text of the region, with the outputs that visiting its body gave.
  virtual std::string JIT(const std::vector<Output>& out) = 0;

 protected:
  void PrintIndents();
  void EnterScope() { indent_ += 2; }
  void ExitScope() { indent_ -= 2; }

  // Returns the functions of the region `symbol`: `buf_decl` declares buffers, whose names are those of outputs or come
  // from `body`; each that malloc or calloc gives ("float* buf_0 = (float*)malloc(400);") is freed once, after the
  // outputs are copied. `args` are parameters in order, tensors or tuples of them.
  static std::string JitImpl(const std::string& symbol, const Array<relay::Var>& args,
                             const std::vector<std::string>& buf_decl, const std::vector<std::string>& body,
                             const std::vector<Output>& out);

  // Returns the type of an element in C: "float", "int32_t". UserError for a dtype that C does not have.
  static std::string GetDtypeString(const Type& tensor);

  std::ostringstream code_stream_;

 private:
  int indent_ = 0;
};

}  // namespace headrace::codegen
