// Streams through empty or sleeping stages of other libraries, where they were there when this was built: oneTBB
// (parallel_pipeline, flow graph) and GStreamer (a queue before each stage). The functions of a library that was not
// there are not in the list.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace headrace::bench {

struct StreamPeer {
  std::string name;
  bool has_threads = false;  // each stage has a thread of its own
  // Returns the seconds that a stream of `items` through so many stages takes, each of which sleeps for `sleep_seconds`
  // (0: does nothing), with at most 64 items at once.
  std::function<double(size_t stages, int items, double sleep_seconds)> time;
};

std::vector<StreamPeer> stream_peers();

}  // namespace headrace::bench
