#include "partition/checked_patterns.h"

#include "object/structural_equal.h"
#include "relay/patterns/pattern_mistakes.h"

namespace headrace::partition {

void check_pattern_names(const std::string& owner, std::string_view backend, std::span<const CompositePattern> table) {
  for (const CompositePattern& entry : table) {
    if (!entry.name.starts_with(fmt::format("{}.", backend)))
      throw_user_error("{} has a pattern '{}'; names of its patterns must begin with '{}.'", owner, entry.name,
                       backend);
  }
}

void check_patterns(const std::string& owner, std::span<const CompositePattern> table) {
  for (size_t i = 0; i < table.size(); ++i) {
    const std::string mistake = relay::mistake_in(table[i].pattern);
    if (!mistake.empty())
      throw_user_error("{} has a pattern '{}', number {} of {}, with a part that matches nothing: {}", owner,
                       table[i].name, i + 1, table.size(), mistake);
    for (size_t j = 0; j < i; ++j) {
      if (table[j].name == table[i].name && structural_equal(Value(table[j].pattern), Value(table[i].pattern)))
        throw_user_error("{} has the pattern '{}' twice: numbers {} and {} of {} are equal", owner, table[i].name,
                         j + 1, i + 1, table.size());
    }
  }
}

}  // namespace headrace::partition
