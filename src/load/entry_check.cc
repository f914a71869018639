#include "load/entry_check.h"

#include <span>

namespace headrace::load {
namespace {

using runtime::EntryTensor;

bool fits(const EntryTensor& said, const artifact::Entry& called) {
  if (said.dtype != called.dtype || said.shape.size() != called.shape.size()) return false;
  for (size_t i = 0; i < said.shape.size(); ++i) {
    if (said.shape[i] >= 0 && said.shape[i] != called.shape[i]) return false;
  }
  return true;
}

class EntryCheck {
 public:
  EntryCheck(const artifact::Region& region, const artifact::Program& program, const artifact::Step& step)
      : region_(region),
        entries_(program.graph.entries),
        args_(step.args),
        num_inputs_(step.args.size() - static_cast<size_t>(step.num_outputs)) {}

  std::optional<Refusal> refusal(const runtime::EntryTypes& said) const {
    if (said.inputs.size() != num_inputs_ || said.outputs.size() != args_.size() - num_inputs_) {
      return refuse(fmt::format("takes {} tensors and gives {}", said.inputs.size(), said.outputs.size()),
                    fmt::format("a region that takes {} and gives {}", num_inputs_, args_.size() - num_inputs_));
    }
    if (std::optional<Refusal> found = differing("input", said.inputs, args_.first(num_inputs_))) return found;
    return differing("result", said.outputs, args_.subspan(num_inputs_));
  }

 private:
  std::optional<Refusal> differing(std::string_view what, const std::vector<EntryTensor>& said,
                                   std::span<const int32_t> args) const {
    for (size_t i = 0; i < said.size(); ++i) {
      const artifact::Entry& called = entries_[static_cast<size_t>(args[i])];
      if (fits(said[i], called)) continue;
      const EntryTensor wanted{.dtype = called.dtype, .shape = Shape(called.shape.begin(), called.shape.end())};
      return refuse(fmt::format("has {} {} of the type {}", what, i, said[i].to_string()), wanted.to_string());
    }
    return std::nullopt;
  }

  Refusal refuse(const std::string& said, const std::string& wanted) const {
    return {HR_REASON_BACKEND_FAILED,
            fmt::format("the backend '{}' says that its region '{}' {}, and the model was compiled for {}; install the "
                        "version of the backend that compiled it, or compile the model again",
                        region_.backend, region_.name, said, wanted)};
  }

  const artifact::Region& region_;
  const std::vector<artifact::Entry>& entries_;
  std::span<const int32_t> args_;
  size_t num_inputs_;
};

}  // namespace

std::optional<Refusal> entry_refusal(const runtime::Module& module, const artifact::Region& region,
                                     const artifact::Program& program, const artifact::Step& step) {
  const std::optional<runtime::EntryTypes> said = module.entry_types(region.name);
  if (!said) return std::nullopt;
  return EntryCheck(region, program, step).refusal(*said);
}

}  // namespace headrace::load
