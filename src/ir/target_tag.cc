#include "ir/target_tag.h"

#include <map>
#include <mutex>

#include "ir/near_names.h"

namespace headrace {

namespace {

// Processors of kind llvm that have a tag, cpu/NAME, by LLVM's names: the four levels of x86-64 (its psABI), and one of
// each generation of common servers.
constexpr const char* kProcessors[] = {"x86-64-v2",      "x86-64-v3",      "x86-64-v4", "haswell", "skylake-avx512",
                                       "icelake-server", "sapphirerapids", "znver2",    "znver3",  "znver4"};

// A tag may be replaced, never taken away.
struct TagTable {
  std::mutex mutex;
  std::map<std::string, Target, std::less<>> targets;
};

Target make_tagged(const std::string& tag, const Map<std::string, Value>& config) {
  Map<std::string, Value> with_tag = config;
  with_tag.set("tag", Value(tag));
  return make_target_from_config(with_tag);
}

TagTable* make_table() {
  auto* made = new TagTable;
  for (const std::string processor : kProcessors) {
    const std::string tag = "cpu/" + processor;
    made->targets.emplace(tag, make_tagged(tag, {{"kind", Value("llvm")}, {"mcpu", Value(processor)}}));
  }
  return made;
}

TagTable& tag_table() {
  static TagTable& instance = *make_table();
  return instance;
}

}  // namespace

void register_target_tag(const std::string& name, const Map<std::string, Value>& config, bool override) {
  const size_t slash = name.find('/');
  if (slash == std::string::npos) throw_user_error("'{}' is not a tag: one is written GROUP/NAME, as cpu/znver4", name);
  check_target_name(std::string_view(name).substr(0, slash), "a tag's group");
  check_target_name(std::string_view(name).substr(slash + 1), "a tag");
  const Target target = make_tagged(name, config);
  std::lock_guard lock(tag_table().mutex);
  if (!tag_table().targets.emplace(name, target).second) {
    if (!override) throw_user_error("the tag '{}' is registered already; give override to replace it", name);
    tag_table().targets.insert_or_assign(name, target);
  }
}

Target get_tagged_target(std::string_view name) {
  {
    std::lock_guard lock(tag_table().mutex);
    if (const auto found = tag_table().targets.find(name); found != tag_table().targets.end()) return found->second;
  }
  const std::vector<std::string> near = near_names(name, target_tags(), '/');
  throw_user_error("there is no tag '{}' of a target; {} {}", name, near.empty() ? "the tags are" : "near are",
                   fmt::join(near.empty() ? target_tags() : near, ", "));
}

std::vector<std::string> target_tags() {
  std::lock_guard lock(tag_table().mutex);
  std::vector<std::string> names;
  for (const auto& [name, target] : tag_table().targets) names.push_back(name);
  return names;
}

}  // namespace headrace
