#include "pass/known_passes.h"

#include <map>
#include <mutex>

namespace headrace::pass {

namespace {

struct PassTable {
  std::mutex mutex;
  std::map<std::string, PassInfo> passes;
};

PassTable& pass_table() {
  static PassTable& instance = *new PassTable;
  return instance;
}

}  // namespace

void make_known(const PassInfo& info) {
  std::lock_guard lock(pass_table().mutex);
  pass_table().passes.try_emplace(info.name, info);
}

void check_pass_names(const std::vector<std::string>& names, std::string_view purpose) {
  if (names.empty()) return;
  std::lock_guard lock(pass_table().mutex);
  for (const std::string& name : names) {
    const auto is_called = [&](const auto& row) { return row.second.is_called(name); };
    if (std::any_of(pass_table().passes.begin(), pass_table().passes.end(), is_called)) continue;
    std::vector<std::string> known;
    for (const auto& [key, info] : pass_table().passes) known.push_back(key);
    throw_user_error("there is no pass '{}' to {}; the passes are {}", name, purpose, fmt::join(known, ", "));
  }
}

}  // namespace headrace::pass
