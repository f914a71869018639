// A user's ops, written in the forms of Relay's time.
#include "lower/user_ops/porting.h"

namespace mine {

using namespace headrace;

bool ScaleRel(const Array<Type>& types, int num_inputs, const Attrs&, const TypeReporter& reporter) {
  if (!types[0].is<TensorTypeNode>()) return false;
  reporter->Assign(types[static_cast<size_t>(num_inputs)], types[0]);
  return true;
}

tir::Compute scale(const lower::RuleInput& input) {
  const double factor = relay::user_attr(input.call, "factor").as<double>();
  return lower::single_stage(input, lower::map_stage(input.make_output(), [&](const lower::Index& i) {
                               return lower::load(input.inputs[0], i) * make_float(factor, input.in_types[0]->dtype);
                             }));
}

RELAY_REGISTER_OP("mine.scale")
    .describe("data * factor")
    .set_num_inputs(1)
    .add_argument("data", "Tensor", "What is scaled.")
    .add_attr({"factor", relay::AttrKind::real, Value(2.0), "What it is multiplied by."})
    .set_support_level(3)
    .add_type_rel("Scale", ScaleRel)
    .set_compute(lower::ComputeRuleFn(scale))
    .set_attr<int>("TOpPattern", 0)
    .set_attr<bool>("target.mychip", true);

// The second argument has the type of the first, which determines it.
bool PairRel(const Array<Type>& types, int, const Attrs&, const TypeReporter& reporter) {
  if (!types[0].is<TensorTypeNode>()) return false;
  reporter->Assign(types[1], types[0]);
  reporter->Assign(types[2], types[0]);
  return true;
}

bool StrayRel(const Array<Type>&, int, const Attrs&, const TypeReporter& reporter) {
  reporter->Assign(make_tuple_type({}), make_tuple_type({}));
  return true;
}

RELAY_REGISTER_OP("mine.pair")
    .set_num_inputs(2)
    .add_argument("a", "Tensor", "")
    .add_argument("b", "Tensor", "")
    .add_type_rel("Pair", PairRel);
RELAY_REGISTER_OP("mine.stray").set_num_inputs(1).add_argument("a", "Tensor", "").add_type_rel("Stray", StrayRel);

// A built-in op accepts open attributes only; stderr reports the error.
RELAY_REGISTER_OP("nn.relu").set_attr<bool>("target.mychip", false);
RELAY_REGISTER_OP("nn.relu").set_num_inputs(2);
RELAY_REGISTER_OP("not a name").describe("no op");

}  // namespace mine
