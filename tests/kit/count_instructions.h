// Counts the instructions of a piece of work, by running it step by step in a child process. The number is the same in
// every run, whatever else the machine does: the kernel's code that reads clocks, whose length differs, is left out (on
// x86-64).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace headrace::kit {

// Returns how many instructions `run` executes in user space, and some hundred more for the end of the process. The
// child calls `prepare` first, which is not counted. Nothing where the system does not let a process trace its child,
// and under sanitizers, whose instructions would be counted, too. A step takes some microseconds, so `run` should have
// less than a million instructions. Throws InternalError when the child ends otherwise than by the end of `run`.
std::optional<int64_t> count_instructions(const std::function<void()>& prepare, const std::function<void()>& run);

}  // namespace headrace::kit
