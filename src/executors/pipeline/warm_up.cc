#include "executors/pipeline/warm_up.h"

#include <algorithm>

#include "base/error.h"
#include "executors/pipeline/tensor_pool.h"

namespace headrace::executors::pipeline {
namespace {

bool has_types(const std::vector<Port>& ports) {
  return std::none_of(ports.begin(), ports.end(), [](const Port& port) { return port.is_any; });
}

Value zeros_of(const Port& port) {
  NDArray tensor = TensorPool(port.spec, 0, 0).take();
  tensor.copy_from(NDArray::zeros(tensor.shape(), tensor.dtype()));
  return Value(std::move(tensor));
}

Ref<ErrorObj> call(StageCode& code) {
  const auto requests = static_cast<size_t>(std::max(code.most_in_batch(), 1));
  std::vector<Value> zeros, outputs;
  std::vector<const Value*> inputs;
  std::vector<Source> sources;
  for (const Port& port : code.inputs()) zeros.push_back(zeros_of(port));
  for (size_t i = 0; i < zeros.size(); ++i) {
    inputs.insert(inputs.end(), requests, &zeros[i]);
    sources.push_back({.kind = code.is_shared(i) ? Source::Kind::param : Source::Kind::input, .index = i});
  }
  for (const Port& port : code.outputs()) {
    for (size_t request = 0; request < requests; ++request) outputs.push_back(zeros_of(port));
  }
  if (code.most_in_batch() == 0) return code.run(inputs, outputs);
  std::vector<Ref<ErrorObj>> errors(requests);
  Ref<ErrorObj> error =
      code.run_batch({.count = requests, .sources = sources, .inputs = inputs, .outputs = outputs, .errors = errors});
  for (size_t request = 0; request < requests && !error; ++request) error = errors[request];
  return error;
}

}  // namespace

Ref<ErrorObj> warm_up(StageCode& code) noexcept {
  if (!code.is_program() || !has_types(code.inputs()) || !has_types(code.outputs())) return {};
  try {
    return call(code);
  } catch (...) {
    store_current_exception();
    return take_stored_error();
  }
}

}  // namespace headrace::executors::pipeline
