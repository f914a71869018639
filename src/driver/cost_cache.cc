#include "driver/cost_cache.h"

#include <cstdlib>
#include <filesystem>

#include "base/count_of.h"
#include "base/read_text.h"
#include "driver/output_file.h"

namespace headrace::driver {

namespace {

namespace fs = std::filesystem;

// Returns the value of a variable of the environment; empty where it is not set.
std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

fs::path cache_folder() {
  if (const std::string named = variable("HEADRACE_CACHE"); !named.empty()) return named;
  if (const std::string base = variable("XDG_CACHE_HOME"); !base.empty()) return fs::path(base) / "headrace";
  if (const std::string home = variable("HOME"); !home.empty()) return fs::path(home) / ".cache" / "headrace";
  throw_user_error("there is no folder for costs: none of HEADRACE_CACHE, XDG_CACHE_HOME and HOME is set");
}

// Makes the folder of a file, which only its owner may enter.
void make_folder_of(const fs::path& file) {
  std::error_code error;
  fs::create_directories(file.parent_path().parent_path(), error);
  const bool is_new = !error && fs::create_directory(file.parent_path(), error);
  if (is_new) fs::permissions(file.parent_path(), fs::perms::owner_all, error);
  if (error) throw_user_error("{}: cannot make the folder for costs: {}", file.parent_path().string(), error.message());
}

}  // namespace

std::string cost_cache_path(const std::string& cpu, int64_t threads) {
  return (cache_folder() / "costs" / fmt::format("{}-{}.json", cpu, threads)).string();
}

partition::NamedText read_cost_cache(const std::string& cpu, int64_t threads) {
  std::string path = cost_cache_path(cpu, threads);
  if (!fs::exists(path))
    throw_user_error("no costs are kept for {} and {} in '{}'; measure some by headrace profile MODEL --backends NAMES",
                     cpu, count_of(threads, "thread"), path);
  return {.text = read_text(path, "table of costs"), .name = std::move(path)};
}

partition::CostTable kept_costs(const std::string& cpu, int64_t threads) {
  partition::CostTable none{.cpu = cpu, .threads = threads, .costs = {}};
  const std::string path = cost_cache_path(cpu, threads);
  if (!fs::exists(path)) return none;
  try {
    partition::CostTable table = partition::parse_cost_table({.text = read_text(path, "table of costs"), .name = path});
    return table.cpu == cpu && table.threads == threads ? table : none;
  } catch (const UserError&) {
    return none;
  }
}

void keep_costs(const partition::CostTable& table) {
  const std::string path = cost_cache_path(table.cpu, table.threads);
  make_folder_of(path);
  write_text(path, partition::to_json(table));
}

}  // namespace headrace::driver
