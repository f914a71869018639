// A question to a backend whose library may crash, hang or end the process.
#pragma once

#include <cstdint>
#include <functional>

namespace headrace::conformance {

enum class Answer : uint8_t { yes, no, crashed, late };

// Asks in a forked child, which has the calling thread alone and writes to no standard output: `crashed` where it ends
// without an answer, `late` where it has none after so many seconds. Without memory for a child the question is asked
// here.
Answer ask_in_child(const std::function<bool()>& question, double seconds);

}  // namespace headrace::conformance
