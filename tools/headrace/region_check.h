// Compares each region of a model with the interpreter, on the values that the interpreter computes for its inputs. So
// a fault of a backend is found also where ops after it hide it from the outputs of the model.
//
//   main(%x) { abs(@r(%x, %x)) }   ->   @r(x, x) compared with the interpreter's, for the x of this run
//
// One run of the interpreter gives the inputs and the results of all regions, and one compile computes all of them.
#pragma once

#include "artifact/manifest.h"
#include "tools/headrace/guilty_op.h"

namespace headrace::tools {

// A region, or a reason that it was not compared.
struct ComparedRegion {
  std::string name, backend;
  std::optional<OutputComparison> worst = {};  // the output that is nearest to its limit, or furthest above it
  bool is_right = true;
  std::string note = {};  // why it was not compared; empty where it was
};

struct RegionCheck {
  std::vector<ComparedRegion> regions;
  std::string guilty_region = {};           // the first one that is wrong; empty: none
  std::optional<Bisection> bisection = {};  // inside of it

  bool ok() const { return guilty_region.empty(); }
};

struct RegionCheckOptions {
  driver::CompileOptions compile;         // those of the model
  std::vector<artifact::Region> regions;  // those that the compiled model has
  Tolerance tolerance = {};
  int threads = 1;
  bool bisects = true;
};

// Returns what each region computes against the interpreter in float64. A region is right if its error is within the
// limit of an output of the model, or at most twice that of native code: then rounding causes it and no backend.
// Regions that fall back to native code are not compared, and count as wrong.
RegionCheck check_regions(const driver::Model& model, const std::vector<NDArray>& inputs,
                          const RegionCheckOptions& options);

// The sentence about the region that is wrong; empty if none is.
std::string explain(const RegionCheck& check);
Array<Value> regions_report(const RegionCheck& check);

}  // namespace headrace::tools
