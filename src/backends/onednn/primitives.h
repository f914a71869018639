// Networks as primitives of oneDNN: weights in the layouts that the primitives like, intermediate tensors in memory
// that is laid out once, blocked layouts kept from one primitive to the next.
#pragma once

#include <dlpack/dlpack.h>

#include <dnnl.hpp>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/onednn/network.h"

namespace headrace_onednn {

// Returns how many of so many threads oneDNN may use in this process: 1 in a child that was forked after its parent
// used several, because the child has none of the threads that OpenMP keeps and would wait for them.
int32_t usable_threads(int32_t count);

// Memory for runs of several networks; each run takes one piece for itself. The piece that was given back last
// is taken first: a run after another one finds it in the caches, whichever network that was. Threads may share it.
class Arenas {
 public:
  // Memory for the run of any network that reserved as much as it needs.
  struct Arena {
    std::unique_ptr<std::byte[]> bytes;
    size_t nbytes = 0;

    std::byte* begin() const;  // aligned as oneDNN wants it
  };

  // Call before the first take() of a network that needs so many bytes.
  void reserve(size_t nbytes);
  Arena take();
  void give_back(Arena arena);

 private:
  std::mutex mutex_;
  size_t nbytes_ = 0;
  std::vector<Arena> free_;
};

// A network for a number of threads. Threads may run it at once: each run has memory of its own, which later runs use
// again.
class Primitives {
 public:
  // Throws dnnl::error and std::runtime_error when oneDNN has no primitive for an op. Keeps no reference to `network`,
  // but for its constants. `arenas` lives as long as this.
  Primitives(std::shared_ptr<const Network> network, int num_threads, Arenas& arenas);

  ~Primitives();

  // Runs on the tensors of the network's inputs, then of its outputs.
  void run(DLTensor* const* args);

  // A step of each run: its kind, and the name that oneDNN gives the code.
  struct StepInfo {
    dnnl::primitive::kind kind;
    std::string implementation;
  };
  std::vector<StepInfo> steps() const;

  int32_t num_args() const { return static_cast<int32_t>(network_->inputs.size() + network_->outputs.size()); }

 private:
  friend class Builder;

  enum class Place : uint8_t { constant, arena, input, output };
  // Memory that tensors share, one after another or as views.
  struct Storage {
    Place place = Place::arena;
    size_t index = 0;  // number of the input or output
    size_t nbytes = 0, offset = 0;
    size_t parent = SIZE_MAX;           // the storage that it is a part of, at `offset`; SIZE_MAX: none
    size_t first = SIZE_MAX, last = 0;  // the steps between which it holds something
    dnnl::memory constant = {};
  };
  // A tensor in one layout.
  struct Slot {
    dnnl::memory::desc desc;
    size_t storage = 0;
  };
  struct Step {
    dnnl::primitive primitive;
    std::vector<std::pair<int, size_t>> args;  // dnnl's number of an argument, and its slot
    dnnl::memory::desc scratchpad = {};
  };
  // The arguments of the steps in one run.
  struct Context;

  std::unique_ptr<Context> make_context() const;
  std::unique_ptr<Context> take_context();

  Arenas& arenas_;
  std::shared_ptr<const Network> network_;
  int num_threads_;
  dnnl::engine engine_;
  std::vector<Storage> storages_;
  std::vector<Slot> slots_;
  std::vector<Step> steps_;
  size_t arena_nbytes_ = 0, scratchpad_nbytes_ = 0;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Context>> free_;
};

}  // namespace headrace_onednn
