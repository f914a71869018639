// Measures a model for placement by cost: its calls, one by one, natively and by backends, and whole plans, also the
// one of least cost.
#pragma once

#include "driver/compile.h"
#include "partition/placement/cost_table.h"

namespace headrace::driver {

struct ProfileOptions {
  int rounds = 30;  // rounds per call and of the whole plans; the best one counts
  // Called before the whole plans, before each call, and before the plan of least cost: with what is measured next, as
  // "nn.conv2d", its index and the number of all of them. May be empty.
  std::function<void(std::string_view what, size_t index, size_t count)> progress = {};
  // Costs that are not measured again, by the same versions of the backends, on the same processor and with as many
  // threads. May be null.
  const partition::CostTable* known = nullptr;
};

// The backends are those that the options name, else those of their plan. Compiles the whole model natively, for each
// backend alone and for the list of backends in its order, and each call that placement by cost with these options
// would ask about as a program of its own, natively and by each backend that takes it. Then tries the plan that costs
// least by all these times, in turns with the fastest of the whole plans, if it is none of them. Runs the programs of
// each of these groups in turns, on inputs of zeros and on outputs that are bound once, with as many threads as
// threads_of() says (driver/placing.h). Equal calls and equal plans are measured once. What is known is not measured,
// and is not in the table. Calls of unknown sizes, and regions that their backend refuses, are left out; so are whole
// plans of a program that marks regions itself or has no text form. The times hold what it takes to call a program,
// about the same everywhere. Throws as compile_to_memory and load::run.
partition::CostTable profile(const Model& model, const CompileOptions& compile, const ProfileOptions& options = {});

struct KeptCosts {
  std::string path;
  size_t num_measured = 0;  // costs of calls that were measured now
  size_t num_kept = 0;      // costs of calls in the file
};

// Measures a model as profile() does, and adds the costs to those that this machine keeps (driver/cost_cache.h). What
// is kept of the same versions of the backends is measured only where `again` is true. UserError as profile(), and
// where the file cannot be written.
KeptCosts profile_into_cache(const Model& model, const CompileOptions& compile, ProfileOptions options, bool again);

}  // namespace headrace::driver
