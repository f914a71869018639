// Facts (ops/op_facts.h, ops/work.h) of an op that a user registered, which passes ask for beyond types, computation
// and fusion.
#pragma once

#include "lower/rule_input.h"
#include "ops/op_facts.h"
#include "ops/work.h"

namespace headrace::lower {

// Each fact is optional. Without it passes assume nothing of the op.
struct UserFacts {
  std::optional<ops::KeepsElements> keeps_elements = {};
  std::optional<ops::Repeats> repeats = {};
  ops::CommutingFactorsFn commuting_factors = {};
  ops::KeepLayoutFn keep_layout = {};  // keep_layout_with makes one
  ops::BoundedFormFn bounded_form = {};
  ops::TreatsApartFn treats_apart = {};
  ops::WorkFn work = {};
};

// Returns a function that renumbers the named attributes of a call, each the number of an axis of the first argument;
// without names it returns the attributes as they are. UserError when the op has no attribute of a name and kind "int",
// and at a call whose attribute is not an axis.
ops::KeepLayoutFn keep_layout_with(const OpNode& op, std::vector<std::string> axis_attrs);

// Throws a UserError at the call unless `result` has the dtype and the number of elements of the first argument, where
// both are known.
void check_keeps_elements(const relay::RelationInput& input, const Type& result);

// Returns `make` with its expressions checked. The expression is typed; UserError at the call when it is not a tuple of
// a buffer with the call's type but for a known size, and of int64[1]. `make` gets the call over variables in place of
// the arguments, except those that are constants.
ops::BoundedFormFn checked_bounded_form(ops::BoundedFormFn make);

}  // namespace headrace::lower
