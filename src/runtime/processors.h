// Processors that this process may use, threads on them, and forks.
#pragma once

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace headrace::runtime {

// Returns the number of processors that this process may run on; at least 1.
int32_t num_processors();
// Throws UserError for a processor that is named twice; `owner` is the error's place.
void check_named_once(const std::vector<int32_t>& cpus, const std::string& owner);
// Throws UserError as check_named_once, and for a processor that this process may not use.
void check_cpus(const std::vector<int32_t>& cpus, const std::string& owner = {});
// Moves the calling thread to these processors; to none of them: leaves it where it is. A thread whose processors were
// taken from the process after the check runs where it may.
void move_this_thread(const std::vector<int32_t>& cpus) noexcept;

// Returns a number that changes with every fork: what holds another one has no threads in this process.
uint64_t process_generation();
// Returns whether this is the thread that forked, the only one that the parent and this process have in common. False
// where there was no fork since the first call of process_generation().
bool is_thread_that_forked(std::thread::id thread);
// Drops the handle of a thread that stayed in the process before a fork, which may neither be joined nor detached here:
// the C library may say that there is no such thread, and std::thread ends the process then.
void drop_thread_of_parent(std::thread& thread);

}  // namespace headrace::runtime
