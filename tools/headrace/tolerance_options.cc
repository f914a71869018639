#include "tools/headrace/tolerance_options.h"

#include "tools/headrace/usage.h"

namespace headrace::tools {

namespace {

// The half of an elementwise tolerance that is not given, as polygraphy has it.
constexpr double kOtherTolerance = 1e-5;

}  // namespace

void ToleranceOptions::add_to(CLI::App& verb, const std::string& limit_help) {
  CLI::Option* limit = takes_size(verb.add_option("--limit", limit_, limit_help), "1e-4");
  takes_size(verb.add_option("--rtol", relative_,
                             "Compare each element by itself: a difference of at most atol + rtol x |reference| is "
                             "allowed, and integers must be equal (default with --atol: 1e-5)"),
             "1e-3")
      ->excludes(limit);
  takes_size(verb.add_option("--atol", absolute_, "See --rtol (default with --rtol: 1e-5)"), "1e-5")->excludes(limit);
}

std::string ToleranceOptions::given() const {
  return limit_ ? "--limit" : relative_ ? "--rtol" : absolute_ ? "--atol" : "";
}

Tolerance ToleranceOptions::read() const {
  Tolerance tolerance{.limit = limit_};
  if (relative_ || absolute_) {
    tolerance.elementwise = ElementTolerance{.relative = relative_.value_or(kOtherTolerance),
                                             .absolute = absolute_.value_or(kOtherTolerance)};
  }
  return tolerance;
}

}  // namespace headrace::tools
