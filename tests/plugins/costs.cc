// A backend for tests of costs on headrace/backend.hpp: it takes multiply and subtract, and computes nothing.
#include <headrace/backend.hpp>

namespace {

using namespace headrace::plugin;

double peak_seconds(const TensorType& type, const CostQuery& query) {
  return static_cast<double>(type.num_elements()) / query.machine->operations_per_second;
}

class Costs : public Backend {
  std::string name() const override { return "joining_cpp"; }
  Verdict supports(const Node& call) const override {
    return call.is_call("multiply") || call.is_call("subtract") ? yes() : no("it does not compute this op");
  }
  // The time of the result's elements at the machine's peak, half of it after a multiply in one region.
  double cost_on(const Node& call, const CostQuery& query) const override { return peak_seconds(call.type(), query); }
  double saved(const Node& call, const CostQuery& query) const override {
    if (!call.is_call("subtract")) throw std::runtime_error("nothing is known of it");
    return call.operand(0).is_call("multiply") ? peak_seconds(call.type(), query) / 2 : 0;
  }
  double border(const TensorType& type, const CostQuery& query) const override { return peak_seconds(type, query); }
  void compile(const Graph&, const Request&, Writer&) const override { throw Refusal("it computes nothing"); }
  std::unique_ptr<Kernel> load(Reader&) const override { return nullptr; }
};

}  // namespace

HEADRACE_BACKEND(Costs)
