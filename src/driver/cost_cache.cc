#include "driver/cost_cache.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/count_of.h"
#include "base/descriptor.h"
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

// Makes the folder of a file, and the one that it is in; only their owner may enter them.
void make_folder_of(const fs::path& file) {
  std::error_code error;
  const fs::path costs = file.parent_path();
  if (costs.parent_path().has_parent_path()) fs::create_directories(costs.parent_path().parent_path(), error);
  for (const fs::path& folder : {costs.parent_path(), costs}) {
    const bool is_new = !error && fs::create_directory(folder, error);
    if (is_new) fs::permissions(folder, fs::perms::owner_all, error);
  }
  if (error) throw_user_error("{}: cannot make the folder for costs: {}", costs.string(), error.message());
}

// Returns whether there is a file. UserError where the system cannot say, and for a folder or a device.
bool is_there(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) return false;
  if (error) throw_user_error("{}: {}", path, error.message());
  if (status.type() != fs::file_type::regular) throw_user_error("'{}' is not a file; costs are kept there", path);
  return true;
}

// Keeps other processes from writing to a folder in the same way.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder) : folder_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (folder_.number() < 0 || ::flock(folder_.number(), LOCK_EX) != 0)
      throw_user_error("cannot lock the folder '{}': {}", folder, std::strerror(errno));
  }

 private:
  Descriptor folder_;
};

}  // namespace

std::string cost_cache_path(const std::string& cpu, int64_t threads) {
  return (cache_folder() / "costs" / fmt::format("{}-{}.json", cpu, threads)).string();
}

partition::NamedText read_cost_cache(const std::string& cpu, int64_t threads) {
  std::string path = cost_cache_path(cpu, threads);
  if (!is_there(path))
    throw_user_error("no costs are kept for {} and {} in '{}'; measure some by headrace profile MODEL --backends NAMES",
                     cpu, count_of(threads, "thread"), path);
  return {.text = read_text(path, "table of costs"), .name = std::move(path)};
}

partition::CostTable kept_costs(const std::string& cpu, int64_t threads) {
  const std::string path = cost_cache_path(cpu, threads);
  if (!is_there(path)) return {.cpu = cpu, .threads = threads, .costs = {}};
  try {
    return partition::parse_cost_table({.text = read_text(path, "table of costs"), .name = path});
  } catch (const UserError& error) {
    throw_user_error("{}; remove the file to keep costs anew", error.message());
  }
}

size_t keep_costs(const partition::CostTable& table) {
  const std::string path = cost_cache_path(table.cpu, table.threads);
  make_folder_of(path);
  const FolderLock lock(fs::path(path).parent_path().string());
  partition::CostTable all = table;
  partition::CostTable kept = kept_costs(table.cpu, table.threads);
  all.costs.merge(kept.costs);  // leaves out what the table has
  all.plans.merge(kept.plans);
  write_text(path, partition::to_json(all));
  return all.costs.size();
}

}  // namespace headrace::driver
