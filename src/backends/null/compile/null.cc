#include "backends/null/compile/null.h"

namespace headrace::backends::null {

namespace {

constexpr const char* kWhyNot = "the backend takes no op";

class Null : public partition::Backend {
 public:
  std::string_view name() const override { return "null"; }
  std::string version() const override { return "1"; }
  partition::Verdict supports(const relay::CallNode&) const override { return {HR_REASON_OP_UNSUPPORTED, kWhyNot}; }

  std::vector<Expected<partition::RegionCode>> compile(const partition::RegionRequest& request) const override {
    partition::refuse_options(*this, request.options);
    std::vector<Expected<partition::RegionCode>> codes;
    for (size_t i = 0; i < request.regions.size(); ++i) codes.emplace_back(Refusal{HR_REASON_OP_UNSUPPORTED, kWhyNot});
    return codes;
  }
};

}  // namespace

std::shared_ptr<const partition::Backend> make_backend() { return std::make_shared<Null>(); }

}  // namespace headrace::backends::null
