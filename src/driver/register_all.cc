#include "driver/register_all.h"

#include <mutex>

#include "backends/plugin/compile/graph_view.h"
#include "backends/plugin/run/plugin.h"
#include "driver/all_backends.h"
#include "driver/all_passes.h"
#include "ir/env_func.h"
#include "ir/target.h"
#include "ir/virtual_device.h"
#include "lower/compute_rule.h"
#include "lower/user_ops/open_attrs.h"
#include "relay/patterns/attr_match.h"
#include "relay/user_attrs.h"
#include "tir/stmt.h"

namespace headrace::driver {

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
    relay::register_pattern_types();
    relay::set_op_attr_reader(&lower::get_open_attr);
    declare_passes();
    backends::plugin::set_graph_api(backends::plugin::graph_api());
    register_all_backends();
  });
}

}  // namespace headrace::driver
