#include "executors/pipeline/stage_code.h"

#include "executors/pipeline/stage_error.h"

namespace headrace::executors::pipeline {

Ref<ErrorObj> BatchStageCode::run(std::span<const Value* const>, std::span<Value>) noexcept {
  return make_stage_error("the code of the stage takes several requests at a time");
}

Ref<ErrorObj> StageCode::run_batch(const BatchCall&) noexcept {
  return make_stage_error("the code of the stage takes one request at a time");
}

Ref<ErrorObj> make_stage_error(std::string message) {
  Ref<ErrorObj> error = make_object<ErrorObj>();
  error->kind = "UserError";
  error->message = std::move(message);
  return error;
}

Ref<ErrorObj> error_of(const Status& status) {
  if (status.error) return status.error;
  Ref<ErrorObj> error = make_stage_error(std::string(status.message));
  error->op = std::string(status.op);
  return error;
}

}  // namespace headrace::executors::pipeline
