// Shows the changes between two program texts, for people.
#pragma once

#include <string>
#include <string_view>

namespace headrace::pass {

// Returns the lines that differ, `-` for `before` and `+` for `after`, with up to `context` equal lines around them and
// `...` between distant places; empty when nothing differs. Lines that differ only in the numbers of values (%7) count
// as equal, since one value more renumbers all after it. A shortest such list (Myers, "An O(ND) difference algorithm",
// 1986) up to 1000 changed lines; past that, everything between the first and the last change.
std::string diff_texts(std::string_view before, std::string_view after, size_t context = 2);

}  // namespace headrace::pass
