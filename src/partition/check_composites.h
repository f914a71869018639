// The composite functions that a program brings must be what their names say.
#pragma once

#include "partition/backend.h"

namespace headrace::partition {

// Throws UserError for a composite function inside of `body`, a region that the program marks for the backend, that has
// the name of a pattern of the backend, but a body that no pattern of that name matches as a whole. Names that are none
// of the backend's are its own business. The checks of patterns are not asked: they may read what is outside of a
// function, as MergeComposite shows it to them.
void check_composites(const Expr& body, const Backend& backend);

}  // namespace headrace::partition
