// The other side of a stage in a process of its own: answers the calls that a pipeline makes.
#pragma once

#include <functional>
#include <memory>

#include "executors/pipeline/isolation/wire.h"

namespace headrace::stage_host {

struct ServeOptions {
  // Whether the code may keep its inputs: then each is a copy. Otherwise they lie in the memory that both processes
  // share until the call returns.
  bool copies_inputs = false;
  executors::pipeline::isolation::Codec codec = {};
};
using MakeCode = std::function<std::shared_ptr<executors::pipeline::StageCode>()>;

// Makes the code, which a pipeline that started this process then calls, until the pipeline has ended. What `make_code`
// throws is reported to the pipeline. Returns the exit code of the program. When the pipeline ends while a call runs,
// the process ends a second later; when the pipeline's process ends, at once.
int serve(const MakeCode& make_code, const ServeOptions& options);

}  // namespace headrace::stage_host
