// Programs that bind one variable in several places, as people put them together by hand.
#pragma once

#include "kit/random.h"
#include "relay/expr.h"

namespace headrace::kit {

// Returns `module`, whose binders are unique, with the same meaning and with one variable where it has several of one
// type: a binder takes the variable of another where neither reaches a use of the other's. The module itself where no
// two may be one.
IRModule repeat_binders(const IRModule& module, Random& random);

}  // namespace headrace::kit
