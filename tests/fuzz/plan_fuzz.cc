// libFuzzer entry: plans. An accepted plan is printed again, reads back to the same text, and is equal to itself.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "partition/plan_file/plan.h"

using namespace headrace;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const partition::Plan plan = partition::parse_plan({reinterpret_cast<const char*>(data), size}, "plan.json");
    const std::string text = partition::print_plan(plan);
    const partition::Plan again = partition::parse_plan(text, "again.json");
    if (partition::print_plan(again) != text || !partition::compare_plans(again, again).empty()) std::abort();
  } catch (const UserError&) {
    // Bad input must give a UserError.
  }
  return 0;
}
