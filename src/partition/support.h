// Support: which calls a compiler takes, and why not. One rule for AnnotateTarget and for all decisions:
//
// - An op with effects is taken by none.
// - The op's attribute target.<compiler> decides, if there is one: a function of the call, whose answer read_answer
//   (partition/verdict.h) reads. Otherwise the backend of that name decides (partition/backend.h).
// - A composite function is taken by the compiler whose name, or alias, its own name begins with, up to the first '.'.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "object/function.h"
#include "partition/verdict.h"
#include "relay/expr.h"

namespace headrace::partition {

class Backend;

// Returns the name of the op attribute that says which calls `compiler` supports. UserError for a compiler without a
// name and for "default".
std::string target_attr(const std::string& compiler);

// A check written in C++, which may return a bool or a Verdict.
using TargetCheckFn = std::function<CheckAnswer(const relay::CallNode& call)>;
// Sets the attribute target.<compiler> of an op.
void set_target_check(const Op& op, const std::string& compiler, const TargetCheckFn& check);

// A compiler, and where its answers come from. UserError as target_attr.
class CheckedCompiler {
 public:
  // Finds the backend of that name or alias; a compiler may have none.
  explicit CheckedCompiler(const std::string& name);
  // `backend` outlives this.
  explicit CheckedCompiler(const Backend& backend);
  CheckedCompiler(const CheckedCompiler&) = delete;
  CheckedCompiler& operator=(const CheckedCompiler&) = delete;

  const std::string& name() const { return name_; }
  // Returns whether the compiler takes a typed call of an op or of a composite function, and why not: the rest of a
  // sentence. UserError that names the op when the value of the attribute is not a function, or gives no answer.
  Verdict verdict_of(const relay::CallNode& call) const;

 private:
  Verdict verdict_of_op(const OpNode& op, const relay::CallNode& call) const;

  const std::string name_, attr_;
  const OpKey<Value> key_{attr_};
  const std::shared_ptr<const Backend> found_ = {};
  const Backend* const backend_;
};

// Returns the verdict of CheckedCompiler(backend).
Verdict verdict_of(const Backend& backend, const relay::CallNode& call);

}  // namespace headrace::partition
