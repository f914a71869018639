// Extraction: regions become functions of the module that another compiler takes, and calls of them.
//
//   def @main(%x) { nn.relu(exp(%x)) }, both by gpu
//     ->
//   def @main(%x) { @tvmgen_default_gpu_main_0(%x) }
//   def @tvmgen_default_gpu_main_0(%gpu_0_i0, global_symbol="tvmgen_default_gpu_main_0", Primitive=1, Compiler="gpu",
//                                  Inline=1) { nn.relu(exp(%gpu_0_i0)) }
//
// A region's parameters are the values that enter it, each once, in the order in which a walk from the results meets
// them. Its result is the one tensor that leaves it, or a flat tuple of all of them, each once; tuples that leave it
// are put together by the caller. A function is named by the module name, the backend, the function it was in and a
// number; characters that a C name cannot have become '_', and a name that the module has already is not taken. Where a
// global function relay.ext.<backend>.optimize exists, it gets a module whose @main is the region and gives another one
// with the same parameters and result.
//
// Functions, types, sources and attributes of the module stay, as do results to the last bit. All nodes have types
// afterwards where they had types before. Needs types. Near-linear; no recursion.
#pragma once

#include "object/object_map.h"
#include "partition/regions.h"

namespace headrace::partition {

struct PartitionOptions {
  std::string mod_name = "default";     // part of the names of functions; may be empty
  bool bind_constants = true;           // whether constants are inside of the regions; otherwise they are arguments
  std::set<std::string> one_call = {};  // backends whose regions have one call each, where labels choose them
};

struct ExtractedRegion {
  std::string name;     // name of the function in the module, and its global_symbol
  std::string backend;  // its Compiler
  int64_t num_calls = 0;
};

// The calls of a module before a rewrite, by the calls that became of them; of those that are others.
using CallsBefore = ObjectMap<const relay::CallNode*>;

struct Partitioned {
  IRModule module;
  std::vector<ExtractedRegion> regions;  // in the order of the module's functions and of the results within each
  int64_t fewest_regions = 0;            // a lower bound of the number of regions; 0 where none was computed
  // Calls of the given module, which it borrows. What relay.ext.<backend>.optimize made anew has none.
  CallsBefore before = {};
};

// PartitionGraph: extracts the parts that compiler_begin and compiler_end enclose (partition/annotations.h), one
// function each, and removes all annotations. Run AnnotateTarget and MergeCompilerRegions before, or annotate by hand.
// UserError for annotations that read_annotations() refuses, and for a part that a path leaves and enters again.
Partitioned partition_graph(const IRModule& module, const PartitionOptions& options = {});

// The backend of each call that does not stay in the program, by the call's node.
using Labels = std::unordered_map<const Object*, std::string>;

// Merges calls into few regions (choose_regions) and extracts them, without annotations in between: what a compile
// calls once it has decided which backend computes which call. Labels of nodes that are not in a function that passes
// enter have no effect. UserError at a call that a region cannot hold (region_fault); calls without arguments stay in
// the program.
Partitioned partition_by_labels(const IRModule& module, const Labels& labels, const PartitionOptions& options = {});

// Returns `text` with '_' for each character that a C identifier cannot have.
std::string sanitized(std::string_view text);

}  // namespace headrace::partition
