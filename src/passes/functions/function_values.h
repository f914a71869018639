// Functions as data: a data type for each function type of a program, with one constructor for each function that is
// used as a value of that type, and a function that calls the function behind such a value.
//
//   fn (float32) -> float32        type Fn0 { Fn0_main_f(float32), Fn0_step }
//                                  def @apply_Fn0(%f: Fn0, %x0: float32) -> float32 {
//                                    match (%f) { Fn0_main_f(%c0) => @main_f(%c0, %x0), Fn0_step => @step(%x0) }
//                                  }
#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "relay/expr.h"

namespace headrace::passes {

// Returns whether a type contains a function type.
bool contains_function(const Type& type);

// The data types of a module that hold functions: in a field, or in a data type of a field, and so on.
class FunctionHolders {
 public:
  // Reads the module's definitions, in time linear in their size.
  explicit FunctionHolders(const IRModule& module);
  // Returns the name of a data type with functions that is written in the type; empty where none is.
  std::string find_in(const Type& type) const;

 private:
  std::unordered_set<std::string> names_;
};

class FunctionValues {
 public:
  explicit FunctionValues(IRModule module) : module_(std::move(module)) {}

  // Replaces each function type in `type` by its data type. UserError at `span` for one that has type parameters or
  // symbolic dimensions.
  Type encoded(const Type& type, const Span& span);

  // Returns the constructor call that stands for the function `callee` (a GlobalVar, a Constructor or a closed function
  // literal) with `captured` before its other arguments; the captured values have these types (not encoded).
  Expr value(const FuncTypeNode& type, const Expr& callee, const Array<Expr>& captured,
             const std::vector<Type>& captured_types, const Span& span);
  // Returns a call of such a value.
  Expr apply(const FuncTypeNode& type, const Expr& function, const Array<Expr>& args, const Span& span);

  // Adds the data types and the functions that call their values.
  void define(const IRModule& result);

 private:
  struct Case {
    Constructor constructor;
    Expr callee;
  };
  struct Encoding {
    FuncType type;
    GlobalTypeVar name;
    GlobalVar apply;
    std::vector<Case> cases;
    std::map<std::tuple<const Object*, std::string, size_t>, Constructor> constructors;  // constructors of the cases
  };

  Encoding& encoding_of(const FuncTypeNode& type, const Span& span);
  Constructor constructor_of(Encoding& encoding, const Expr& callee, const std::vector<Type>& captured,
                             const Span& span);
  relay::Function apply_function(const Encoding& encoding);
  std::string fresh_type_name(const std::string& wanted);

  IRModule module_;
  std::vector<std::unique_ptr<Encoding>> encodings_;  // an encoding may make others
  std::unordered_map<std::string, Encoding*> by_type_;
  std::unordered_set<std::string> names_;
  std::unordered_map<std::string, int> numbers_;  // the last that was put behind a name
};

}  // namespace headrace::passes
