// Options of a test program: from its command line (--bless, --seed=N) or from HEADRACE_BLESS, HEADRACE_SEED,
// HEADRACE_PROPERTY_SEED and HEADRACE_TEST_SIZE.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace headrace::kit {

// list: properties run no case and record how many cases `full` has, for tools/prove.py. few: a part of ci, for slow
// builds that look for other defects than wrong results (the sanitizers'). ci: the size of every check, at most 25 s a
// suite. full: the size of a proof.
enum class TestSize { kList, kFew, kCi, kFull };

struct Options {
  std::string program;  // the path the program was started by, for messages
  bool bless = false;
  std::optional<uint64_t> seed;  // seed of the one case that property tests run then
  uint64_t property_seed = 0;    // changes the fixed seed of every property, to try other cases
  TestSize size = TestSize::kCi;
};

// Returns the options of this process. The kit's main() sets them; without it they come from the environment alone.
const Options& options();

// Reads the kit's arguments and removes them from argv. Called once, by main(). Throws UserError for a value that is
// not understood.
void read_options(int& argc, char** argv);

// Returns one of two numbers by test size; `few` uses ci's.
int by_size(int ci, int full);

// Returns by_size() for the number of cases of a test without a kit::Property, and records it with the test's result.
int case_count(int ci, int full);

// Returns how long or deep a program is that must need no stack: an eighth of it at test size few, where frames are
// larger.
int by_depth(int depth);

// Returns whether a long list's case i is run: every one, or every fifth at test size few.
bool is_chosen(size_t i);

}  // namespace headrace::kit
