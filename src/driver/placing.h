// Places a model as the options of a compile say: by the order of backends, by cost, by a plan, with overrides.
#pragma once

#include "driver/compile.h"
#include "partition/placement/by_cost.h"
#include "partition/place.h"
#include "partition/plan_file/plan_decision.h"

namespace headrace::driver {

// Returns the backends that the options name, and then those of the target's option -extern=, each once. UserError for
// one that there is not.
partition::Backends chosen_backends(const CompileOptions& options);

// Reads the file of the options' plan, if they name one, into `plan_text`. Whoever gets these options later uses that
// text and does not read the file again. UserError for a file that cannot be read, and for a placement that needs none.
void read_plan_file(CompileOptions& options);

// Returns all backends that a compile with these options may place ops on: those, or else the ones of its plan.
// UserError for one that there is not, for a plan that cannot be read, and for options that compiles refuse.
partition::Backends possible_backends(const CompileOptions& options);

// Returns the hash of a module after the canonical passes that plans and costs know a model by: of ops, attributes,
// types and small constants. Other weights of the same shapes do not change it. Empty for a program without a text
// form.
std::string model_hash(const IRModule& canonical);

// Returns the number of threads that costs count with: those of the options, else those that the target names, else 1.
int threads_of(const CompileOptions& options);

// Returns what calls cost natively and on some backends, on the machine and with the threads of the options, and, for a
// model of that hash, what was measured of its whole plans. UserError for a table of costs that cannot be read or is of
// another machine.
partition::OpCosts op_costs(const partition::Backends& backends, const CompileOptions& options,
                            const std::string& model = {});

// The options of each backend, by its own name.
using BackendOptions = std::map<std::string, Map<std::string, Value>>;

// Returns the options of backends: those of the pass configuration, relay.ext.NAME.options, replaced by those that
// `options` itself gives. An alias stands for its backend. UserError where `options` names a backend that there is not,
// or gives an option twice by two names of one backend.
BackendOptions backend_options(const CompileOptions& options);

struct Placing {
  IRModule program;                                     // lets order its effects where not all is native
  std::shared_ptr<const partition::Decision> decision;  // on a split of `program`
  std::string costs_hash = {};                          // hash of the measured costs that it was made by; empty: none
};

// Returns where the calls of a module after the canonical passes go by these costs alone.
Placing place_by_cost(const IRModule& canonical, partition::OpCosts costs);

// Throws UserError for options of a backend that this compile does not use: it is not among those of `backends`, and
// computes none of the regions that the program marks by hand. Asks the others about their options: UserError as
// Backend::compile.
void check_backend_options(const CompileOptions& options, const partition::Backends& backends,
                           const std::vector<partition::Region>& regions);

// A model whose calls have their places.
struct PlacedModel {
  Placing placing;
  partition::PlacedModule placed;
};

// Places a module after the canonical passes as the options say, and checks the options of backends
// (check_backend_options). Does not keep `canonical` where effects need an order. UserError for a backend that there is
// not; for a plan that cannot be read (partition/plan_file/plan.h), is of another model or of another version of a
// backend, was made by other costs than the options name, or is for other backends than they name; for costs that
// cannot be read (partition/placement/cost_table.h), or are of another processor, number of threads or version of a
// backend; and as OverrideDecision, PlanDecision and partition::place.
PlacedModel place_model(IRModule canonical, const CompileOptions& options);

// Removes the options of backends that are not in the list: a compile refuses options without effect.
void drop_unused_options(CompileOptions& options, const partition::Backends& backends);

// Returns the options without those that say where ops go, but for `backends`: no plan, costs, overrides and -extern=.
CompileOptions without_placement(CompileOptions options);

// Returns the plan of a placement. UserError for a program without a text form.
partition::Plan make_model_plan(const IRModule& canonical, const Placing& placing);

}  // namespace headrace::driver
