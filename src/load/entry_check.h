// Compares what the loaded code of a region says that it computes with the program that calls it.
#pragma once

#include <optional>

#include "artifact/manifest.h"
#include "base/expected.h"
#include "runtime/module.h"

namespace headrace::load {

// Returns why the module's code of that region, by its own word, is not what `step` calls: another number of tensors,
// or another dtype, rank or size of one. Nothing where they agree, and where the code does not say its types. UserError
// when what it says is not a list of types.
std::optional<Refusal> entry_refusal(const runtime::Module& module, const artifact::Region& region,
                                     const artifact::Program& program, const artifact::Step& step);

}  // namespace headrace::load
