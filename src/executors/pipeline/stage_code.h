// StageCode: what a stage of a pipeline computes for one request.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "executors/executor.h"
#include "executors/pipeline/port.h"
#include "object/function.h"
#include "tensor/ndarray.h"

namespace headrace::executors::pipeline {

// Any thread may call `run`, of one pipeline or of several that have the stage; a code that cannot run twice at once
// locks itself.
class StageCode {
 public:
  StageCode() = default;
  StageCode(const StageCode&) = delete;
  StageCode& operator=(const StageCode&) = delete;
  virtual ~StageCode() = default;

  virtual const std::vector<Port>& inputs() const = 0;
  virtual const std::vector<Port>& outputs() const = 0;

  // Computes the outputs of one request. The value of a typed output is a tensor of that type, to be written; the value
  // of an output of any type is empty, to be replaced. Inputs are only read. Returns null, or the error that it failed
  // with.
  virtual Ref<ErrorObj> run(std::span<const Value* const> inputs, std::span<Value> outputs) noexcept = 0;
};

// Makes a stage of a program that is ready to run. It reads its inputs and writes its outputs in place. The ports have
// the names of the program's inputs and outputs.
std::shared_ptr<StageCode> make_executor_stage(std::shared_ptr<Executor> executor);

// Makes a stage of a function. It gets the inputs as its arguments and returns the output; with several outputs, an
// array of them; without outputs, anything. What it returns for a typed output is checked and copied.
std::shared_ptr<StageCode> make_function_stage(PackedFunc function, std::vector<Port> inputs,
                                               std::vector<Port> outputs);

}  // namespace headrace::executors::pipeline
