// The problem that the planner of a pipeline solves for a model: its calls and tensors, and the places for stages.
#pragma once

#include "driver/placing.h"
#include "driver/split_model.h"
#include "driver/straight_line.h"

namespace headrace::driver {

// The kinds of places: the options of compiles for them, which differ in their backends, and their speed.
struct PlaceKind {
  std::string name;
  CompileOptions compile;
  partition::OpCosts costs;
  double speed = 1;  // speed of a simulated device, beside the processors of this machine

  // Returns the seconds of a call in such a place: on the first backend that takes it, or where it takes least, as the
  // compile places calls; natively if no backend takes it.
  double seconds(const relay::CallNode& call) const;
};

// The places of a pipeline's stages: their kinds, and the kind of each.
struct Places {
  std::vector<PlaceKind> kinds = {};
  std::vector<int32_t> kind_of = {};

  // Returns whether some place has a backend that takes the call.
  bool may_leave_native_code(const relay::CallNode& call) const;
};

// Returns the places that the options ask for. UserError for a backend that there is not.
Places make_places(const CompileOptions& compile, const SplitModelOptions& options);

// Returns the bytes that a stage may take in a place: what the options say, and no more than a simulated device has.
int64_t memory_limit(const SplitModelOptions& options, size_t place);

// Makes the problem: the calls, numbered as in the program, then the constants that they read, and the tensors that
// calls read, with the buffers of driver/stage_buffers.h. Times are estimates. UserError for a value of unknown size.
plan::SplitProblem make_split_problem(const StraightLine& line, const cost::Machine& machine, const Places& places,
                                      const SplitModelOptions& options);

}  // namespace headrace::driver
