#include "driver/register_all.h"

#include <mutex>

#include "driver/functions.h"
#include "ir/env_func.h"
#include "ir/target.h"
#include "ir/virtual_device.h"
#include "lower/compute_rule.h"
#include "relay/user_attrs.h"
#include "tir/stmt.h"

namespace headrace::driver {

void register_functions() {
  register_ir_functions();
  register_tir_functions();
  register_target_functions();
  register_relay_functions();
  register_transform_functions();
  register_build_functions();
  register_op_functions();
}

// register_all_rules() registers the ops before their rules.
void register_all() {
  lower::register_all_rules();
  static std::once_flag once;
  std::call_once(once, [] {
    tir::register_types();
    type_of<TargetKindNode>();
    type_of<TargetNode>();
    type_of<VirtualDeviceNode>();
    type_of<EnvFuncNode>();
    type_of<relay::UserAttrsNode>();
    register_functions();
  });
}

}  // namespace headrace::driver
