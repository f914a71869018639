#include "driver/register_all.h"

#include "lower/compute_rule.h"

namespace headrace::driver {

// The ops themselves come first there.
void register_all() { lower::register_all_rules(); }

}  // namespace headrace::driver
