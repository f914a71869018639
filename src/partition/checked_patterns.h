// Mistakes in the patterns of a backend, found when the backend is made.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "partition/compose.h"

namespace headrace::partition {

// Throws UserError for the first pattern whose name does not begin with that of its backend and a dot. `owner` as
// below.
void check_pattern_names(const std::string& owner, std::string_view backend, std::span<const CompositePattern> table);

// Throws UserError for the first pattern with a part that matches nothing (relay/patterns/pattern_mistakes.h), and for
// two that have one name and are equal. Different patterns may have one name: they are forms of one thing. `owner`
// names the backend in the message: "the backend 'mine' of './libmine.so'".
void check_patterns(const std::string& owner, std::span<const CompositePattern> table);

}  // namespace headrace::partition
