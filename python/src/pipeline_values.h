// Values and codes of Python, as the bindings of pipelines share them.
#pragma once

#include "executors/pipeline/stage_code.h"
#include "objects.h"
#include "shared_object.h"

namespace headrace::python {

// A value that only Python's stages and callers look at.
struct PythonValueObj : Object {
  using Parent = Object;
  static constexpr std::string_view type_key = "python.Value";
  static constexpr bool is_final = true;
  std::shared_ptr<SharedObject> object;
};

// Makes a stage that calls a function of Python, or a PackedFunc.
std::shared_ptr<executors::pipeline::StageCode> make_callable_stage(
    nb::object function, const std::vector<executors::pipeline::Port>& inputs,
    const std::vector<executors::pipeline::Port>& outputs, const std::optional<executors::pipeline::Batch>& batch);
// Makes the stage of a plan that calls a function in a process of its own; `function_command` gives the words that
// start it. Call it with the GIL.
std::shared_ptr<executors::pipeline::StageCode> make_process_stage(const artifact::PipelineStage& stage,
                                                                   const nb::object& function_command);

void bind_process_stages(nb::module_& m);

}  // namespace headrace::python
