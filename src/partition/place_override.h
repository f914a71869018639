// An override of a placement, as --place 'layer4.*=native' gives it.
#pragma once

#include <string>

namespace headrace::partition {

// Puts the ops whose names match a pattern on a backend. A name is what `headrace explain` shows.
struct PlaceOverride {
  std::string pattern;  // *, ? and [] as in names of files; or the name as it stands
  std::string backend;  // a name, or "native"
};

}  // namespace headrace::partition
