// Gathers the rows of several requests in tensors of its own, which the programs read and write in place.
#include <algorithm>
#include <cstring>
#include <mutex>

#include "artifact/tensor_extent.h"
#include "executors/pipeline/batch_ports.h"
#include "executors/pipeline/stage_code.h"
#include "executors/pipeline/stage_error.h"
#include "executors/tensor_check.h"

namespace headrace::executors::pipeline {
namespace {

using artifact::TensorSpec;

// A program with the tensors of a batch.
struct BatchedProgram {
  std::shared_ptr<Executor> executor;
  int64_t batch = 0;
  std::vector<NDArray> inputs;  // null for an input without rows
  std::vector<NDArray> outputs;
  int64_t filled = 0;  // rows of inputs that may be other than zero
};

int64_t row_nbytes(const TensorSpec& spec, int64_t batch) {
  TensorSpec row = spec;
  row.shape[0] = 1;
  const std::optional<int64_t> one = artifact::tensor_nbytes(spec.dtype, row.shape);
  const std::optional<int64_t> all = artifact::tensor_nbytes(spec.dtype, spec.shape);
  if (!one || !all || *one * batch != *all)
    throw_user_error("'{}' has rows that do not begin at a byte, which a stage cannot gather", spec.name);
  return *one;
}

BatchPorts ports_of_executors(const std::vector<std::shared_ptr<Executor>>& executors, bool any_rows) {
  std::vector<BatchProgram> programs;
  for (const std::shared_ptr<Executor>& executor : executors)
    programs.push_back({.inputs = executor->inputs(), .outputs = executor->outputs()});
  return batch_ports(programs, any_rows);
}

class BatchExecutorStage final : public BatchStageCode {
 public:
  BatchExecutorStage(const std::vector<std::shared_ptr<Executor>>& executors, bool any_rows)
      : any_rows_(any_rows), ports_(ports_of_executors(executors, any_rows)) {
    for (size_t i = 0; i < executors.size(); ++i) add_program(executors[i], ports_.batches[i]);
    std::sort(programs_.begin(), programs_.end(),
              [](const BatchedProgram& a, const BatchedProgram& b) { return a.batch < b.batch; });
    row_specs_ = executors[0]->inputs();
  }

  const std::vector<Port>& inputs() const override { return ports_.inputs; }
  const std::vector<Port>& outputs() const override { return ports_.outputs; }
  bool is_shared(size_t input) const override { return !ports_.has_rows[input]; }
  std::vector<FallbackEvent> fallbacks() const override {
    std::vector<FallbackEvent> events;
    for (const auto& program : programs_) {
      const std::vector<FallbackEvent> own = program.executor->fallbacks();
      events.insert(events.end(), own.begin(), own.end());
    }
    return events;
  }
  bool is_program() const override { return true; }
  void add_memory(MemoryUse& memory) const override {
    for (const BatchedProgram& program : programs_) {
      program.executor->add_memory(memory);
      for (const auto* tensors : {&program.inputs, &program.outputs}) {
        for (const NDArray& tensor : *tensors)
          memory.working_bytes += tensor ? static_cast<int64_t>(tensor.size_bytes()) : 0;
      }
    }
  }
  int32_t most_in_batch() const override {
    const int64_t most = any_rows_ ? artifact::kMostInBatch : programs_.back().batch;
    return static_cast<int32_t>(std::min<int64_t>(most, artifact::kMostInBatch));
  }

  Ref<ErrorObj> run_batch(const BatchCall& call) noexcept override {
    try {
      const std::lock_guard lock(mutex_);
      const int64_t total = count_rows(call);
      const int64_t largest = programs_.back().batch;
      for (int64_t begin = 0; begin < total; begin += largest) {
        if (Ref<ErrorObj> error = run_rows(call, begin, std::min(largest, total - begin))) return error;
      }
      return {};
    } catch (...) {
      store_current_exception();
      return take_stored_error();
    }
  }

 private:
  void add_program(const std::shared_ptr<Executor>& executor, int64_t batch) {
    BatchedProgram program{.executor = executor, .batch = batch, .inputs = {}, .outputs = {}};
    const auto zeros = [&](const TensorSpec& spec) {
      row_nbytes(spec, batch);
      return NDArray::zeros(Shape(spec.shape.begin(), spec.shape.end()), spec.dtype);
    };
    for (size_t i = 0; i < ports_.inputs.size(); ++i)
      program.inputs.push_back(ports_.has_rows[i] ? zeros(executor->inputs()[i]) : NDArray());
    for (const TensorSpec& spec : executor->outputs()) program.outputs.push_back(zeros(spec));
    programs_.push_back(std::move(program));
  }

  // Fills in the rows of each request, and makes its outputs where their number is known only now. A request whose
  // tensors do not fit fails, and has no rows. Returns the rows of all.
  int64_t count_rows(const BatchCall& call) {
    rows_.assign(call.count, 0);
    int64_t total = 0;
    for (size_t request = 0; request < call.count; ++request) {
      Message message;
      const std::optional<int64_t> rows = rows_of(call, request, message);
      if (!rows.has_value()) {
        call.errors[request] = make_stage_error(std::string(message.view()));
        continue;
      }
      rows_[request] = *rows;
      total += *rows;
      for (size_t i = 0; i < ports_.outputs.size() && any_rows_; ++i) {
        const NDArray& batch = programs_[0].outputs[i];
        Shape shape = batch.shape();
        shape[0] = *rows;
        call.outputs[i * call.count + request] = Value(NDArray::empty(shape, batch.dtype()));
      }
    }
    return total;
  }

  // Returns the rows of a request, which all of its inputs have; nothing, and why, if one does not fit.
  std::optional<int64_t> rows_of(const BatchCall& call, size_t request, Message& message) {
    std::optional<int64_t> rows;
    for (size_t i = 0; i < ports_.inputs.size(); ++i) {
      if (!ports_.has_rows[i]) continue;
      const Value& value = *call.inputs[i * call.count + request];
      const std::string& name = ports_.inputs[i].name();
      if (!matches_item<NDArray>(value.raw())) {
        message.write("input '{}' is a {}; it takes a tensor", name, kind_name(value.raw()));
        return {};
      }
      const DLTensor& tensor = value.as_node<NDArrayObj>()->tensor;
      TensorSpec& spec = row_specs_[i];
      const bool has_own = any_rows_ && tensor.ndim > 0;
      spec.shape[0] = has_own ? tensor.shape[0] : 1;
      if (!check_tensor("input", spec, tensor, Access::copied, message)) return {};
      if (rows.has_value() && *rows != spec.shape[0]) {
        message.write("input '{}' has {} rows, and another input {}", name, spec.shape[0], *rows);
        return {};
      }
      rows = spec.shape[0];
    }
    return rows;
  }

  // Calls visit(request, row of the request, row of the call, number of rows) for the parts of the requests that are
  // among `rows` rows from row `begin` of all.
  template <typename Visit>
  void for_each_part(int64_t begin, int64_t rows, Visit visit) const {
    int64_t first = 0;  // first row of the request
    for (size_t request = 0; request < rows_.size() && first < begin + rows; ++request) {
      const int64_t from = std::max(first, begin), to = std::min(first + rows_[request], begin + rows);
      if (from < to) visit(request, from - first, from - begin, to - from);
      first += rows_[request];
    }
  }

  Ref<ErrorObj> run_rows(const BatchCall& call, int64_t begin, int64_t rows) {
    BatchedProgram& program =
        *std::find_if(programs_.begin(), programs_.end(), [&](const BatchedProgram& one) { return one.batch >= rows; });
    gather_rows(program, call, begin, rows);
    const std::lock_guard turn(program.executor->turn());
    if (Status status = bind(program, call); !status.ok()) return error_of(status);
    if (Status status = program.executor->run(); !status.ok()) return error_of(status);
    scatter_rows(program, call, begin, rows);
    return {};
  }

  void gather_rows(BatchedProgram& program, const BatchCall& call, int64_t begin, int64_t rows) const {
    for (size_t i = 0; i < program.inputs.size(); ++i) {
      if (!ports_.has_rows[i]) continue;
      const int64_t nbytes = row_bytes(program.inputs[i], program.batch);
      auto* to = program.inputs[i].data<std::byte>();
      for_each_part(begin, rows, [&](size_t request, int64_t from_row, int64_t to_row, int64_t count) {
        const NDArray from = call.inputs[i * call.count + request]->as<NDArray>().to_dense();
        std::memcpy(to + to_row * nbytes, from.data<std::byte>() + from_row * nbytes,
                    static_cast<size_t>(count * nbytes));
      });
      if (program.filled > rows)
        std::memset(to + rows * nbytes, 0, static_cast<size_t>((program.filled - rows) * nbytes));
    }
    program.filled = rows;
  }

  // Programs that other callers run, too, may have other tensors now.
  Status bind(const BatchedProgram& program, const BatchCall& call) const {
    for (size_t i = 0; i < program.inputs.size(); ++i) {
      const Value& shared = *call.inputs[i * call.count];
      if (!ports_.has_rows[i] && !matches_item<NDArray>(shared.raw()))
        throw_user_error("input '{}' is a {}; it takes a tensor", ports_.inputs[i].name(), kind_name(shared.raw()));
      Status status = ports_.has_rows[i] ? program.executor->bind_input(i, program.inputs[i].tensor())
                                         : program.executor->give_input(i, shared.as<NDArray>().tensor());
      if (!status.ok()) return status;
    }
    for (size_t i = 0; i < program.outputs.size(); ++i) {
      if (Status status = program.executor->bind_output(i, program.outputs[i].tensor()); !status.ok()) return status;
    }
    return {};
  }

  void scatter_rows(const BatchedProgram& program, const BatchCall& call, int64_t begin, int64_t rows) const {
    for (size_t i = 0; i < program.outputs.size(); ++i) {
      const DLTensor& made = program.executor->output(i);
      const Shape& shape = program.outputs[i].shape();
      if (!std::equal(shape.begin(), shape.end(), made.shape, made.shape + made.ndim))
        throw_user_error("output '{}' has a shape that the program computes, which rows cannot have",
                         ports_.outputs[i].name());
      const int64_t nbytes = row_bytes(program.outputs[i], program.batch);
      const auto* from = program.outputs[i].data<std::byte>();
      for_each_part(begin, rows, [&](size_t request, int64_t to_row, int64_t from_row, int64_t count) {
        const NDArray to = call.outputs[i * call.count + request].as<NDArray>();
        std::memcpy(to.data<std::byte>() + to_row * nbytes, from + from_row * nbytes,
                    static_cast<size_t>(count * nbytes));
      });
    }
  }

  static int64_t row_bytes(const NDArray& batch, int64_t rows) {
    return static_cast<int64_t>(batch.size_bytes()) / rows;
  }

  const bool any_rows_;
  const BatchPorts ports_;
  std::vector<BatchedProgram> programs_;  // by their batch
  std::mutex mutex_;                      // guards what follows, and the programs' tensors
  std::vector<int64_t> rows_;             // by request
  std::vector<TensorSpec> row_specs_;     // inputs of one request
};

}  // namespace

std::shared_ptr<StageCode> make_batch_executor_stage(const std::vector<std::shared_ptr<Executor>>& executors,
                                                     bool any_rows) {
  return std::make_shared<BatchExecutorStage>(executors, any_rows);
}

}  // namespace headrace::executors::pipeline
