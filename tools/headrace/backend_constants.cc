#include "tools/headrace/backend_constants.h"

#include <set>

#include "base/count_of.h"

namespace headrace::tools {

BackendConstants backend_constants(const artifact::Manifest& manifest) {
  std::set<int64_t> own;
  for (const artifact::ExternalModule& module : manifest.modules)
    own.insert(module.constants.begin(), module.constants.end());
  for (const artifact::Program& program : manifest.programs) {
    for (const artifact::Entry& entry : program.graph.entries) {
      if (entry.place == artifact::Place::kWeight) own.erase(entry.index);
    }
  }
  BackendConstants constants{.count = std::ssize(own)};
  for (const int64_t weight : own) constants.nbytes += manifest.weights[static_cast<size_t>(weight)].nbytes;
  return constants;
}

Value to_value(const BackendConstants& constants) {
  return Value(Report{{"count", Value(constants.count)}, {"bytes", Value(constants.nbytes)}});
}

std::string to_text(const BackendConstants& constants) {
  if (constants.count == 0) return {};
  return fmt::format("backends add {} of {}, which the native code does not read",
                     count_of(constants.count, "constant"), show_bytes(constants.nbytes));
}

}  // namespace headrace::tools
