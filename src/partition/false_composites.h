// Composite functions that have a pattern's name and another body: a program may write any.
#pragma once

#include <span>

#include "partition/compose.h"

namespace headrace::partition {

// Returns the typed function with the bodies in place of the calls of composite functions that have the name of one of
// these patterns, and a body that no pattern of that name matches as a whole; the function itself where there are none.
// Names that are none of the patterns' stay. The checks of patterns are not asked: they may read what is outside of a
// composite function, as MergeComposite shows it to them.
relay::Function without_false_composites(const relay::Function& function, std::span<const CompositePattern> patterns);

}  // namespace headrace::partition
