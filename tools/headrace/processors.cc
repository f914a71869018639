#include "tools/headrace/processors.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "base/error.h"

namespace headrace::tools {

namespace {

// The processors of the core that `processor` is one of, as Linux lists them ("0,4" or "0-1"): the same text for each.
std::string core_of(int processor) {
  std::ifstream file(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", processor));
  std::string list;
  if (!std::getline(file, list)) list = std::to_string(processor);
  return list;
}

// One of each core first.
std::vector<int> in_order_of_choice(const cpu_set_t& allowed) {
  std::vector<int> first, others;
  std::vector<std::string> cores;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (!CPU_ISSET(processor, &allowed)) continue;
    std::string core = core_of(processor);
    const bool is_new = std::find(cores.begin(), cores.end(), core) == cores.end();
    (is_new ? first : others).push_back(processor);
    if (is_new) cores.push_back(std::move(core));
  }
  first.insert(first.end(), others.begin(), others.end());
  return first;
}

}  // namespace

ProcessorScope::ProcessorScope(int count) {
  if (sched_getaffinity(0, sizeof before_, &before_) != 0) return;
  std::vector<int> chosen = in_order_of_choice(before_);
  chosen.resize(std::min(chosen.size(), static_cast<size_t>(count)));
  restrict_to(chosen);
}

ProcessorScope::ProcessorScope(const std::vector<int>& processors) {
  const bool is_known = sched_getaffinity(0, sizeof before_, &before_) == 0;
  for (const int processor : processors) {
    if (processor < 0 || processor >= CPU_SETSIZE || (is_known && !CPU_ISSET(processor, &before_)))
      throw_user_error("--cpus: this process may not use processor {}; it may use {}", processor,
                       fmt::join(in_order_of_choice(before_), ", "));
  }
  restrict_to(processors);
}

void ProcessorScope::restrict_to(const std::vector<int>& processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int processor : processors) CPU_SET(processor, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) return;
  processors_ = processors;
  std::sort(processors_.begin(), processors_.end());
}

ProcessorScope::~ProcessorScope() {
  if (!processors_.empty()) sched_setaffinity(0, sizeof before_, &before_);
}

}  // namespace headrace::tools
