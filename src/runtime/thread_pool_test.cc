#include "runtime/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sched.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <numeric>

#include "base/error.h"
#include "kit/errors.h"

namespace headrace::runtime {
namespace {

hr_kernel_env make_env(ThreadPool& pool) {
  return {.size = sizeof(hr_kernel_env),
          .version = HR_KERNEL_ABI_VERSION,
          .workspace = nullptr,
          .workspace_size = 0,
          .parallel_for = &ThreadPool::parallel_for_entry,
          .launch = nullptr,
          .stream = nullptr,
          .worker_index = 0,
          .num_workers = pool.num_workers(),
          .message = nullptr,
          .message_size = 0,
          .host = &pool};
}

int32_t add_one(const hr_kernel_env*, void* closure, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) ++static_cast<int64_t*>(closure)[i];
  return 0;
}

TEST(ThreadPool, RunsEachIterationOnce) {
  for (int32_t workers : {1, 2, 3, 5}) {
    ThreadPool pool(workers);
    const hr_kernel_env env = make_env(pool);
    for (int64_t count : {0, 1, 2, 3, 4, 5, 17, 1000}) {
      std::vector<int64_t> hits(static_cast<size_t>(count) + 1);
      EXPECT_EQ(pool.parallel_for(&env, &add_one, hits.data(), count), 0);
      EXPECT_EQ(std::accumulate(hits.begin(), hits.end(), int64_t{0}), count);
      for (int64_t i = 0; i < count; ++i) EXPECT_EQ(hits[static_cast<size_t>(i)], 1);
    }
  }
}

// Worker 1 runs on the processor that it was given; the calling thread stays where it may run.
TEST(ThreadPool, WorkersRunOnTheirProcessors) {
  cpu_set_t before, after;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  for (int32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(static_cast<size_t>(cpu), &before)) continue;
    ThreadPool pool(2, {cpu});
    const hr_kernel_env env = make_env(pool);
    struct Seen {
      pthread_t caller;
      std::atomic<int> cpu;
    } seen{::pthread_self(), -1};
    // The caller stays in its own part until the worker has taken the other one, which it would take itself otherwise.
    const auto record = [](const hr_kernel_env*, void* closure, int64_t, int64_t) {
      auto& found = *static_cast<Seen*>(closure);
      if (::pthread_equal(::pthread_self(), found.caller) == 0) found.cpu = ::sched_getcpu();
      for (int i = 0; i < 10'000 && found.cpu < 0; ++i) ::usleep(1000);
      return 0;
    };
    ASSERT_EQ(pool.parallel_for(&env, record, &seen, 2), 0);
    EXPECT_EQ(seen.cpu, cpu);
  }
  ASSERT_EQ(::sched_getaffinity(0, sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

TEST(ThreadPool, AProcessorThatIsNotOursIsNamed) {
  for (const int32_t cpu : {-1, 1 << 20, CPU_SETSIZE - 1}) {
    const std::string error = kit::user_error_of([&] { ThreadPool pool(2, {cpu}); });
    EXPECT_NE(error.find(fmt::format("processor {} was asked for; this process may use ", cpu)), std::string::npos)
        << error;
  }
}

TEST(ThreadPool, AProcessorThatIsNamedTwiceIsNamed) {
  EXPECT_EQ(kit::user_error_of([] { ThreadPool pool(2, {0, 0}); }), "processor 0 is named twice; name it once");
}

TEST(ThreadPool, PartitionIsStatic) {
  ThreadPool pool(3);
  const hr_kernel_env env = make_env(pool);
  std::vector<int32_t> owner(10, -1);
  const auto record = [](const hr_kernel_env* env, void* closure, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) static_cast<int32_t*>(closure)[i] = env->worker_index;
    return 0;
  };
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(pool.parallel_for(&env, record, owner.data(), 10), 0);
    ASSERT_EQ(owner, (std::vector<int32_t>{0, 0, 0, 1, 1, 1, 2, 2, 2, 2}));
  }
}

TEST(ThreadPool, ManyShortLoopsWithPauses) {
  ThreadPool pool(4);
  const hr_kernel_env env = make_env(pool);
  std::vector<int64_t> hits(64);
  for (int i = 0; i < 20000; ++i) {
    ASSERT_EQ(pool.parallel_for(&env, &add_one, hits.data(), 64), 0);
    // Long enough for the workers to fall asleep, now and then.
    if (i % 1000 == 0) ::usleep(2000);
  }
  EXPECT_EQ(hits, std::vector<int64_t>(64, 20000));
}

TEST(ThreadPool, ConcurrentCallers) {
  ThreadPool pool(3);
  std::vector<std::thread> callers;
  std::atomic<int> wrong = 0;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      const hr_kernel_env env = make_env(pool);
      std::vector<int64_t> hits(30);
      for (int i = 0; i < 2000; ++i) pool.parallel_for(&env, &add_one, hits.data(), 30);
      if (hits != std::vector<int64_t>(30, 2000)) ++wrong;
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST(ThreadPool, LoopsWithinLoopsRunSerially) {
  ThreadPool pool(3);
  const hr_kernel_env env = make_env(pool);
  std::vector<int64_t> hits(6 * 10);
  const auto outer = [](const hr_kernel_env* env, void* closure, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) env->parallel_for(env, &add_one, static_cast<int64_t*>(closure) + i * 10, 10);
    return 0;
  };
  EXPECT_EQ(pool.parallel_for(&env, outer, hits.data(), 6), 0);
  EXPECT_EQ(hits, std::vector<int64_t>(60, 1));
}

TEST(ThreadPool, TheLowestFailingWorkerIsReported) {
  ThreadPool pool(4);
  std::array<char, 32> message{};
  hr_kernel_env env = make_env(pool);
  env.message = message.data();
  env.message_size = message.size();
  const auto fail = [](const hr_kernel_env* env, void*, int64_t begin, int64_t) -> int32_t {
    if (begin < 2) return 0;
    fmt::format_to_n(env->message, env->message_size - 1, "part {} of a long sentence that has to be cut", begin);
    return static_cast<int32_t>(begin) * 10;
  };
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(pool.parallel_for(&env, fail, nullptr, 4), 20);
    ASSERT_STREQ(message.data(), "part 2 of a long sentence that ");
  }
  EXPECT_EQ(pool.parallel_for(&env, [](const hr_kernel_env*, void*, int64_t, int64_t) { return 0; }, nullptr, 4), 0);
}

TEST(ThreadPool, AForkedChildWorksAlone) {
  ThreadPool pool(3);
  const hr_kernel_env env = make_env(pool);
  const pid_t child = ::fork();
  if (child == 0) {
    std::vector<int64_t> hits(9);
    pool.parallel_for(&env, &add_one, hits.data(), 9);
    ::_exit(hits == std::vector<int64_t>(9, 1) ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(ThreadPool, AForkedChildDestroysIt) {
  auto pool = std::make_unique<ThreadPool>(3);
  const pid_t child = ::fork();
  if (child == 0) {
    pool.reset();
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(ThreadPool, IsShared) {
  const auto a = shared_pool(2);
  EXPECT_EQ(shared_pool(2), a);
  EXPECT_NE(shared_pool(3), a);
  EXPECT_GE(num_processors(), 1);
}

}  // namespace
}  // namespace headrace::runtime
