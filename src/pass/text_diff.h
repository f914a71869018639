// Shows the changes between two program texts, for people.
#pragma once

#include <string>
#include <string_view>

namespace headrace::pass {

// Returns the lines that differ, `-` for `before` and `+` for `after`, with up to `context` equal lines around them and
// `...` between distant places; empty when nothing differs. Both sides have one numbering of values (%7), so that a
// value that is added or removed does not change the lines after it: lines that differ only in numbers are the same
// value, which keeps its number of `before`, and a new value has a number that `before` does not use. Such a line is
// shown where it reads another value. A shortest list of changes (Myers, "An O(ND) difference algorithm", 1986) up to
// 1000 changed lines; past that, everything between the first and the last change.
std::string diff_texts(std::string_view before, std::string_view after, size_t context = 2);

}  // namespace headrace::pass
