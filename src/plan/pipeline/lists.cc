#include "plan/pipeline/lists.h"

namespace headrace::plan {

Lists inverse(const Lists& lists, size_t count) {
  Lists made;
  made.begins.assign(count + 1, 0);
  for (const int32_t item : lists.items) ++made.begins[static_cast<size_t>(item) + 1];
  for (size_t i = 0; i < count; ++i) made.begins[i + 1] += made.begins[i];
  made.items.resize(lists.items.size());
  std::vector<int64_t> next(made.begins.begin(), made.begins.end() - 1);
  for (size_t list = 0; list < lists.size(); ++list) {
    for (const int32_t item : lists[list])
      made.items[static_cast<size_t>(next[static_cast<size_t>(item)]++)] = static_cast<int32_t>(list);
  }
  return made;
}

}  // namespace headrace::plan
