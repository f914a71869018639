// The function of one region, and the call of it.
#pragma once

#include <map>

#include "ir/target_kind.h"
#include "object/function.h"
#include "partition/composition.h"
#include "partition/extract.h"
#include "partition/regions.h"

namespace headrace::partition {

struct RegionName {
  std::string symbol;  // tvmgen_default_gpu_main_0
  int64_t number = 0;  // 0
};

// Names the regions of one function of a module, one after another.
class RegionNames {
 public:
  RegionNames(std::string mod_name, std::string function)
      : mod_name_(std::move(mod_name)), function_(std::move(function)) {}
  // Returns the next name that the module has no function of.
  RegionName next(const IRModuleNode& module, const std::string& backend);

 private:
  std::string mod_name_, function_;
  int64_t next_ = 0;
};

struct RegionSpec {
  std::string backend;
  int64_t number = 0;
  bool bind_constants = true;
};

// Builds a region's function: all inputs first, then the members, each after those it uses, then the outputs; then the
// function; then the call; then the values that took the place of outputs.
class RegionBuilder {
 public:
  explicit RegionBuilder(RegionSpec spec) : spec_(std::move(spec)) {}

  // Adds a value from outside, which is `outer` in the rewritten body. One that is there already is the same parameter.
  void add_input(const Expr& value, const Expr& outer);
  void add_member(const Expr& node);
  void add_output(const Expr& node);
  // Returns whether something leaves the region that it computes.
  bool has_results() const { return !results_.empty(); }
  // Returns the function under that name, after relay.ext.<backend>.optimize. UserError when that gives a function of
  // another type.
  relay::Function function(const std::string& symbol);
  // Adds the members that are calls, by the calls of the function's body that they became.
  void add_calls_before(const Expr& body, CallsBefore& before) const;
  void make_call(const GlobalVar& function, const Type& type);
  // Returns what computes the output `node` outside.
  Expr outside(const Expr& node) const;

 private:
  // One tensor of a value: a parameter's, or the one at `index` of a member's leaves.
  struct Leaf {
    Expr inner;
    Expr outer;  // set where it is a value from outside
    const Object* source = nullptr;
    size_t index = 0;
  };
  std::vector<Leaf> leaves(const Expr& node) const;
  std::vector<Leaf> find_leaves(const Expr& node);
  const Expr& inner(const Expr& value) const;
  bool is_member(const Expr& node) const;
  Expr result() const;
  Expr leaf_outside(const Leaf& leaf) const;
  Array<TypeVar> type_variables() const;
  std::string optimize_hook() const { return fmt::format("{}{}.optimize", kRegionCompilerPrefix, spec_.backend); }
  relay::Function optimized(const relay::Function& made, const PackedFunc& optimize) const;
  void add_optimized_calls(const Expr& body, const CallsBefore& members, CallsBefore& before) const;

  RegionSpec spec_;
  Array<relay::Var> params_;
  std::vector<Expr> args_;
  ObjectMap<Expr> inner_;                // parameters, constants and members by the node outside
  std::vector<Expr> calls_;              // members that are calls, by the node outside
  Expr unoptimized_;                     // the function's body before relay.ext.<backend>.optimize; null without one
  ObjectMap<Expr> outer_;                // values from outside by the node outside
  ObjectMap<std::vector<Leaf>> leaves_;  // those of values with several tensors, by the node outside
  std::vector<Leaf> results_;
  std::map<std::pair<const Object*, size_t>, size_t> places_;  // places of results by source and index
  Expr call_;
  std::vector<Expr> items_;  // the call's items by result, where there are several: each once
  Array<TypeVar> type_params_;
  std::vector<Expr> children_;  // children of one member
};

}  // namespace headrace::partition
