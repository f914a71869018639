// The checks of one case: what a backend that claims a program must do with it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/cases.h"

namespace headrace::conformance {

// A check that failed. The names of checks are listed in docs/bring-your-own-codegen.md.
struct Finding {
  std::string check;    // "result", "threads" ...
  std::string message;  // the result, and the expected one
};

struct CaseReport {
  std::string name;
  bool is_claimed = false;  // the backend takes all ops of the program
  int64_t num_checks = 0;   // that were made
  std::vector<Finding> findings = {};
  std::vector<Finding> warnings = {};  // that are no mistakes: costs far from the time of a run
  std::string refusal = {};            // why the backend does not take an op of a case that it does not claim
  std::string program = {};            // the Relay text of the case; run_isolated fills it in
};

// Checks a backend on a case:
//   verdict      a no has a sentence, and no question ends in an exception
//   cost         costs, what is saved in regions and borders are numbers of seconds
//   cost_repeat  costs are equal when they are asked for again
//   cost_threads  and when several threads ask at once
//   cost_names   and when variables have other names, on other lines of the program
//   compile      what is claimed is compiled
//   load         the code that was compiled is loaded; without it no other check is made
//   same_code    a second compile gives the same bytes
//   types        the types that a loaded module declares for its regions are the program's
//   result       outputs are those of the interpreter, on two sets of inputs: to the bit, floats to a tolerance
//   repeat       later runs give the bits of the first, also after other inputs
//   written      every element of the outputs is written, and nothing beside them
//   inputs       inputs are left alone
//   alignment    tensors that are aligned to their element alone do not matter
//   threads      executors on several threads at once, and of several workers each, give what the first run gave
//   save         a module that is saved and loaded gives the same results and the same bytes
//   file         a module that is written to a file and loaded from it has the same bytes
//   cut          a module whose bytes are cut off or changed is refused or runs, and never crashes
//   memory       runs, and loading and unloading, keep no memory
//   unknown      a region that the module does not have is not found
//   cost_time    only a warning: the estimate is within ten times the time of a run
// load, types, save, file, cut and unknown are not checked where the code is a part of the file, as that of C source
// is. A crash ends the process: run cases in one of their own.
CaseReport check_case(const std::string& backend, const Case& one);

}  // namespace headrace::conformance
