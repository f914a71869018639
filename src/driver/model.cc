#include "driver/model.h"

#include <filesystem>
#include <fstream>

#include "ops/all_ops.h"
#include "relay/infer_type.h"
#include "relay/parse.h"

namespace headrace::driver {

namespace {

size_t count_tensors(const Type& type) {
  const auto* tuple = type.as<TupleTypeNode>();
  if (tuple == nullptr) return 1;
  size_t count = 0;
  for (const Type& item : tuple->items) count += count_tensors(item);
  return count;
}

}  // namespace

Model make_model(const IRModule& module) {
  ops::register_all_ops();
  Model model{relay::infer_type(module), {}, {}};
  const auto* main = model.module->lookup("main").as<relay::FunctionNode>();
  if (main == nullptr) throw_user_error("'@main' is no relay function");
  for (const relay::Var& param : main->params) model.inputs.push_back(param->name_hint);
  const size_t count = count_tensors(main->body->checked_type());
  for (size_t i = 0; i < count; ++i) model.outputs.push_back(fmt::format("output{}", i));
  return model;
}

}  // namespace headrace::driver
