// StageCode: what a stage of a pipeline computes for one request, or for several in one call.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "executors/executor.h"
#include "executors/pipeline/failure.h"
#include "executors/pipeline/port.h"
#include "object/function.h"
#include "tensor/ndarray.h"

namespace headrace::executors::pipeline {

// One call for several requests. Values are ordered by port first: those of input i are inputs[i * count] to
// inputs[i * count + count - 1], in the order of the requests, and so are those of outputs.
struct BatchCall {
  size_t count = 0;  // requests
  // Where each input comes from: all requests of a call see the same parameters.
  std::span<const Source> sources;
  std::span<const Value* const> inputs;
  std::span<Value> outputs;
  // One for each request, null before the call: the error of a request that failed while others did not.
  std::span<Ref<ErrorObj>> errors;
};

// The process that runs a code which has one of its own.
struct CodeProcess {
  int64_t pid = 0;        // 0: it does not run now
  uint64_t restarts = 0;  // after it crashed or was killed
};

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
  // with. Only called for code with `most_in_batch() == 0`.
  virtual Ref<ErrorObj> run(std::span<const Value* const> inputs, std::span<Value> outputs) noexcept = 0;

  // Returns how many requests, or rows of requests, one call may have; 0: the code takes one request at a time.
  virtual int32_t most_in_batch() const { return 0; }
  // Returns whether the input is the same for all requests of a call, so that only a parameter can be connected to it.
  virtual bool is_shared(size_t) const { return false; }
  // Computes the outputs of several requests; outputs are as for `run`. Returns null, or the error of all of them. Only
  // called for code with `most_in_batch() > 0`.
  virtual Ref<ErrorObj> run_batch(const BatchCall& call) noexcept;

  // Returns whether a call computes its outputs from its inputs and does nothing else, so that a pipeline may make one
  // before the first request.
  virtual bool is_program() const { return false; }

  // Adds what the code holds beside the tensors of its ports; nothing if that is unknown: weights, working memory, and
  // the tensors in which a stage gathers batches. The weights stay where they are as long as the code lives.
  virtual void add_memory(MemoryUse&) const {}
  // Returns the regions of other backends that run natively instead. A code in a process of its own knows those from
  // the start of its process.
  virtual std::vector<FallbackEvent> fallbacks() const { return {}; }
  // Returns what an error of a call is for its requests.
  virtual FailureKind failure_kind(const ErrorObj&) const noexcept { return FailureKind::stage_failed; }
  // Returns the process of the code; nothing for code that runs in this one. Any thread may call it.
  virtual std::optional<CodeProcess> process() const { return {}; }
  // Makes a call that runs return soon, with an error, where the code can: returns whether it can. Any thread may call
  // it.
  virtual bool interrupt() noexcept { return false; }
  // Gives back what the code has outside of this process, after the last call of a pipeline; a later call takes it
  // again.
  virtual void release() noexcept {}
};

// A code that takes several requests in one call.
class BatchStageCode : public StageCode {
 public:
  Ref<ErrorObj> run(std::span<const Value* const> inputs, std::span<Value> outputs) noexcept final;
  int32_t most_in_batch() const override = 0;
  Ref<ErrorObj> run_batch(const BatchCall& call) noexcept override = 0;
};

// Makes a stage of a program that is ready to run. It reads its inputs and writes its outputs in place. The ports have
// the names of the program's inputs and outputs.
std::shared_ptr<StageCode> make_executor_stage(std::shared_ptr<Executor> executor);

// Makes a stage of programs that are ready to run and differ in their batch only, which is the first dimension of all
// outputs and of those inputs that have it in every program; the other inputs take parameters. The ports are those of
// one row. A call gathers the rows of its requests in the inputs of the program with the smallest batch that they fit
// in; zeros fill the others. It copies each row in and out, and allocates nothing. With `any_rows` a request may have
// any number of rows, and ports of rows take any value: a tensor with its rows as first dimension. UserError for
// programs that differ in more than their batch, or have none.
std::shared_ptr<StageCode> make_batch_executor_stage(const std::vector<std::shared_ptr<Executor>>& executors,
                                                     bool any_rows = false);

// Makes a stage of a function that is called once for several requests. For each input it gets an array of the
// requests' values, and for a parameter its value. It returns an array of one value for each request; with several
// outputs, an array of such arrays. A tensor stands for the array of its rows.
std::shared_ptr<StageCode> make_batch_function_stage(PackedFunc function, std::vector<Port> inputs,
                                                     std::vector<Port> outputs);

// Makes a stage of a function. It gets the inputs as its arguments and returns the output; with several outputs, an
// array of them; without outputs, anything. What it returns for a typed output is checked and copied.
std::shared_ptr<StageCode> make_function_stage(PackedFunc function, std::vector<Port> inputs,
                                               std::vector<Port> outputs);

}  // namespace headrace::executors::pipeline
