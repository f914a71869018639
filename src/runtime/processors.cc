#include "runtime/processors.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/error.h"
#include "runtime/thread_pool.h"

namespace headrace::runtime {
namespace {

std::atomic<uint64_t> fork_count = 0;
std::atomic<std::thread::id> thread_that_forked;

cpu_set_t allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) CPU_SET(0, &set);
  return set;
}

}  // namespace

int32_t num_processors() {
  const cpu_set_t allowed = allowed_cpus();
  return std::clamp(CPU_COUNT(&allowed), 1, kMaxWorkers);
}

void check_named_once(const std::vector<int32_t>& cpus, const std::string& owner) {
  for (size_t i = 0; i < cpus.size(); ++i) {
    if (std::count(cpus.begin() + static_cast<std::ptrdiff_t>(i), cpus.end(), cpus[i]) > 1)
      throw UserError(fmt::format("processor {} is named twice; name it once", cpus[i]), {.op = {}, .place = owner});
  }
}

void check_cpus(const std::vector<int32_t>& cpus, const std::string& owner) {
  check_named_once(cpus, owner);
  const cpu_set_t allowed = allowed_cpus();
  for (const int32_t cpu : cpus) {
    if (cpu >= 0 && cpu < CPU_SETSIZE && CPU_ISSET(static_cast<size_t>(cpu), &allowed)) continue;
    std::vector<int> known;
    for (int i = 0; i < CPU_SETSIZE; ++i) {
      if (CPU_ISSET(static_cast<size_t>(i), &allowed)) known.push_back(i);
    }
    throw UserError(fmt::format("processor {} was asked for; this process may use {}", cpu, fmt::join(known, ", ")),
                    {.op = {}, .place = owner});
  }
}

void move_this_thread(const std::vector<int32_t>& cpus) noexcept {
  if (cpus.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int32_t cpu : cpus) CPU_SET(static_cast<size_t>(cpu), &set);
  static_cast<void>(::pthread_setaffinity_np(::pthread_self(), sizeof set, &set));
}

uint64_t process_generation() {
  static const int registered = ::pthread_atfork(nullptr, nullptr, [] {
    thread_that_forked.store(std::this_thread::get_id(), std::memory_order_relaxed);
    fork_count.fetch_add(1, std::memory_order_relaxed);
  });
  static_cast<void>(registered);
  return fork_count.load(std::memory_order_relaxed);
}

bool is_thread_that_forked(std::thread::id thread) {
  return thread != std::thread::id() && thread == thread_that_forked.load(std::memory_order_relaxed);
}

void drop_thread_of_parent(std::thread& thread) { static_cast<void>(new std::thread(std::move(thread))); }

}  // namespace headrace::runtime
