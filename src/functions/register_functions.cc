#include "functions/register_functions.h"

#include <mutex>

#include "driver/register_all.h"

namespace headrace::functions {

void register_functions() {
  driver::register_all();
  static std::once_flag once;
  std::call_once(once, [] {
    register_ir_functions();
    register_tir_functions();
    register_target_functions();
    register_relay_functions();
    register_interpreter_functions();
    register_transform_functions();
    register_build_functions();
    register_op_functions();
    register_pattern_functions();
  });
}

}  // namespace headrace::functions
