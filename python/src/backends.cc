// Backends that are objects of Python (headrace/backend): the compiler and the loader call their methods.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <atomic>
#include <map>

#include "base/interrupt.h"
#include "base/library_folder.h"
#include "conformance/isolated.h"
#include "conformance/report.h"
#include "driver/all_backends.h"
#include "driver/register_all.h"
#include "gil.h"
#include "objects.h"
#include "partition/backend.h"
#include "partition/checked_patterns.h"
#include "python_module.h"
#include "runtime/loader_finder.h"
#include "values.h"

namespace headrace::python {

namespace {

using conformance::CaseReport;
using partition::RegionCode;
using partition::RegionSource;

// The methods of a backend, as headrace/backend checks their arguments and answers.
struct Methods {
  // Those that may refuse give an answer that partition::read_answer reads.
  PackedFunc supports;  // (call) -> True, or why not
  PackedFunc compile;   // ([(name, function, module)], options) -> [bytes, or why not]
  PackedFunc load;      // (bytes) -> a function (region, number of inputs) -> a function of tensors
  PackedFunc cost;      // (call) -> seconds, or None
  PackedFunc saved;     // (call, [call]) -> seconds. Null: 0
  PackedFunc border;    // (type) -> seconds. Null: 0
  // (op, opset, NodeProto, types of inputs, declared types of results or None) -> types, or why not. Null: what
  // `supports` says of the call.
  PackedFunc claim;
  PackedFunc accepts_version;  // (recorded version) -> None, or why not. Null: no other version is accepted
};

// The parts of a backend. Its methods are called without a lock.
struct Parts {
  std::string version;
  bool one_call_per_region = false;
  std::vector<partition::CompositePattern> patterns;
  Methods methods;
};

// A backend whose parts may be replaced, as authors do who try one out in a session.
class PythonBackend : public partition::Backend {
 public:
  PythonBackend(std::string name, Parts parts) : name_(std::move(name)) { replace(std::move(parts)); }
  std::string origin() const override { return "that of Python"; }

  // Earlier parts stay: compiles under way use their patterns. Called with Python's lock held.
  void replace(Parts parts) {
    all_.push_back(std::make_unique<const Parts>(std::move(parts)));
    parts_ = all_.back().get();
  }

  std::string_view name() const override { return name_; }
  std::string version() const override { return parts().version; }
  std::span<const partition::CompositePattern> patterns() const override { return parts().patterns; }

  bool one_call_per_region() const override { return parts().one_call_per_region; }

  partition::Verdict supports(const relay::CallNode& call) const override {
    return partition::read_answer(parts().methods.supports(ref(&call)), source_of("supports"));
  }

  double cost(const relay::CallNode& call, const cost::Machine& machine, int threads) const override {
    const Value seconds = parts().methods.cost(ref(&call));
    return seconds.is_none() ? Backend::cost(call, machine, threads) : seconds.as<double>();
  }

  double saved(const relay::CallNode& call, const std::vector<const relay::CallNode*>& producers, const cost::Machine&,
               int) const override {
    const PackedFunc& saved = parts().methods.saved;
    if (!saved) return 0;
    Array<Value> before;
    for (const relay::CallNode* producer : producers) before.push_back(Value(ref(producer)));
    return saved(ref(&call), before).as<double>();
  }

  double border(const Type& type, const cost::Machine&, int) const override {
    const PackedFunc& border = parts().methods.border;
    if (!border) return 0;
    double seconds = 0;
    for (const Type& leaf : leaves_of(type)) {
      if (leaf.is<TensorTypeNode>()) seconds += border(leaf).as<double>();
    }
    return seconds;
  }

  Expected<std::vector<TensorType>> claim(const ops::OnnxNode& node) const override {
    const PackedFunc& claim = parts().methods.claim;
    if (!claim) return Backend::claim(node);
    Array<Value> inputs, results;
    for (const Expr& input : node.inputs) inputs.push_back(Value(input->checked_type()));
    for (const TensorType& type : node.results) results.push_back(type ? Value(type) : Value());
    const Value answer = claim(node.op, node.opset, Bytes{node.bytes}, inputs, results);
    if (answer.is<Array<TensorType>>()) return answer.as<Array<TensorType>>().to_vector();
    return refusal_of(answer, "claim");
  }

  // Regions with the same bytes have one module.
  std::vector<Expected<RegionCode>> compile(const partition::RegionRequest& request) const override {
    Array<Value> rows;
    for (const RegionSource& region : request.regions)
      rows.push_back(Value(Array<Value>{Value(region.name), Value(region.function), Value(region.module)}));
    const Methods& methods = parts().methods;
    const auto answers = methods.compile(rows, request.options).as<Array<Value>>();
    std::map<std::string, std::vector<RegionEntry>> regions;  // by their bytes
    for (size_t i = 0; i < answers.size(); ++i) {
      if (is_bytes(answers[i].raw())) regions[answers[i].as<Bytes>().data].push_back(entry_of(request.regions[i]));
    }
    std::map<std::string, runtime::Module> modules;
    for (const auto& [blob, entries] : regions)
      modules.emplace(blob, make_python_module(name_, methods.load, {.regions = entries, .blob = blob}));
    std::vector<Expected<RegionCode>> codes;
    for (const Value& answer : answers) {
      if (is_bytes(answer.raw())) {
        codes.emplace_back(RegionCode{.module = modules.at(answer.as<Bytes>().data)});
      } else {
        codes.emplace_back(refusal_of(answer, "compile"));
      }
    }
    return codes;
  }

 private:
  std::string source_of(std::string_view method) const { return fmt::format("the backend '{}': {}", name_, method); }

  Refusal refusal_of(const Value& answer, std::string_view method) const {
    partition::Verdict verdict = partition::read_answer(answer, source_of(method));
    HEADRACE_CHECK(!verdict.ok(), "{} of the backend '{}' accepts and gives nothing", method, name_);
    return {verdict.reason, std::move(verdict.message)};
  }

  static uint32_t num_tensors(const Type& type) {
    const auto* tuple = type.as<TupleTypeNode>();
    if (tuple == nullptr) return 1;
    uint32_t count = 0;
    for (const Type& field : tuple->items) count += num_tensors(field);
    return count;
  }

  static RegionEntry entry_of(const RegionSource& region) {
    RegionEntry entry{.name = region.name};
    for (const relay::Var& param : region.function->params) entry.num_inputs += num_tensors(param->checked_type());
    return entry;
  }

  const Parts& parts() const { return *parts_.load(); }

  std::string name_;
  std::vector<std::unique_ptr<const Parts>> all_;
  std::atomic<const Parts*> parts_ = nullptr;
};

// Registers the loader of a backend's modules, and the check of the versions that compiled them.
void register_module_functions(const std::string& name, const std::string& version, const Methods& methods) {
  const std::string kind = python_module_kind(name);
  runtime::register_module_loader(
      kind, [name, load = methods.load](const std::string& bytes) { return load_python_module(name, load, bytes); });
  runtime::register_version_check(kind,
                                  [name, version, accepts = methods.accepts_version](const std::string& recorded) {
                                    if (recorded == version) return;
                                    Value why = std::string();
                                    if (accepts) why = as_user_error([&] { return accepts(recorded); });
                                    if (!why.is_none())
                                      runtime::refuse_version(name, recorded, version, why.as<std::string>());
                                  });
}

// Registers a backend, or replaces the one of Python that has the name.
void register_python_backend(const std::string& name, const std::string& version, bool one_call_per_region,
                             nb::handle patterns, nb::callable supports, nb::callable compile, nb::callable load,
                             nb::callable cost, std::optional<nb::callable> saved, std::optional<nb::callable> border,
                             std::optional<nb::callable> claim, std::optional<nb::callable> accepts_version) {
  static auto& known = *new std::map<std::string, std::shared_ptr<PythonBackend>>;  // Python's lock guards it
  driver::register_all();
  const auto optional = [](std::optional<nb::callable> method) {
    return method ? to_function(*std::move(method)) : PackedFunc();
  };
  Parts parts{.version = version,
              .one_call_per_region = one_call_per_region,
              .patterns = partition::read_table(to_value(patterns)),
              .methods = {.supports = to_function(std::move(supports)),
                          .compile = to_function(std::move(compile)),
                          .load = to_function(std::move(load)),
                          .cost = to_function(std::move(cost)),
                          .saved = optional(std::move(saved)),
                          .border = optional(std::move(border)),
                          .claim = optional(std::move(claim)),
                          .accepts_version = optional(std::move(accepts_version))}};
  const std::string owner = fmt::format("the backend '{}'", name);
  partition::check_pattern_names(owner, name, parts.patterns);
  partition::check_patterns(owner, parts.patterns);
  const Methods methods = parts.methods;
  if (const auto found = known.find(name); found != known.end()) {
    found->second->replace(std::move(parts));
  } else {
    const auto backend = std::make_shared<PythonBackend>(name, std::move(parts));
    partition::register_backend(backend);
    known.emplace(name, backend);
  }
  register_module_functions(name, version, methods);
}

PackedFunc function_of_package(const char* name) {
  GilHeld held;
  return to_function(nb::module_::import_("headrace.backend").attr(name));
}

// Registers the installed backend of that name, if there is one.
void offer_python_backend(const std::string& name) {
  if (!Py_IsInitialized()) return;
  const PackedFunc find = function_of_package("_find_installed");
  as_user_error([&] { return find(name); });
}

// Imports the module of relay.op.contrib that has checks for that name, if there is one.
void find_python_checks(const std::string& name) {
  if (!Py_IsInitialized()) return;
  const PackedFunc find = function_of_package("_find_checks");
  as_user_error([&] { return find(name); });
}

std::vector<std::string> python_backend_names() {
  if (!Py_IsInitialized()) return {};
  const PackedFunc names = function_of_package("names");
  return as_user_error([&] { return names(); }).as<Array<std::string>>().to_vector();
}

// Registers the installed backend whose module is met, if there is one.
void find_python_loader(const std::string& kind) {
  if (kind.starts_with(runtime::kPythonKindPrefix))
    offer_python_backend(kind.substr(runtime::kPythonKindPrefix.size()));
}

// Starts a child by fork, because a backend of this process may be in no file. The child has this thread alone.
pid_t fork_child(const std::string& backend, const std::vector<conformance::Case>& cases, size_t first, int report,
                 int output) {
  GilHeld held;
  PyOS_BeforeFork();
  const pid_t child = ::fork();
  if (child != 0) {
    PyOS_AfterFork_Parent();
    if (child < 0) throw_user_error("a process for the checks cannot be started: {}", std::strerror(errno));
    return child;
  }
  PyOS_AfterFork_Child();
  ::dup2(output, STDOUT_FILENO);
  try {
    nb::module_::import_("headrace.backend._kit").attr("begin_child")();
    GilReleased released;
    conformance::run_child(backend, cases, first, report);
  } catch (...) {
    ::_exit(1);  // the parent reports it
  }
  ::_exit(0);
}

std::vector<CaseReport> check_backend(const std::string& wanted, const std::vector<std::string>& patterns,
                                      double timeout) {
  GilReleased released;
  driver::register_all();
  const std::string backend(driver::require_backend(wanted)->name());  // `wanted` may be an alias
  const std::vector<conformance::Case> cases = conformance::cases_for(backend, patterns, timeout);
  return conformance::run_isolated(
      {.cases = cases,
       .start = [&](size_t first, int report, int output) { return fork_child(backend, cases, first, report, output); },
       .timeout_seconds = timeout,
       .progress = [](size_t) { check_signals(); }});
}

// Returns (op, the cases that the backend takes, all cases) for each op with a case that it takes.
nb::list claims_of(const std::string& backend) {
  std::map<std::string, std::vector<conformance::Claims>> claims;
  {
    GilReleased released;
    claims = conformance::claims_of({driver::require_backend(backend)});
  }
  nb::list rows;
  for (const auto& [op, row] : claims) rows.append(nb::make_tuple(op, row[0].taken, row[0].all));
  return rows;
}

void bind_kit(nb::module_& m) {
  nb::class_<conformance::Finding>(m, "Finding", "A check of the conformance kit that failed.")
      .def_ro("check", &conformance::Finding::check)
      .def_ro("message", &conformance::Finding::message);
  nb::class_<CaseReport>(m, "CaseReport", "The checks of one case of the conformance kit.")
      .def_ro("name", &CaseReport::name)
      .def_ro("is_claimed", &CaseReport::is_claimed)
      .def_ro("num_checks", &CaseReport::num_checks)
      .def_ro("findings", &CaseReport::findings)
      .def_ro("warnings", &CaseReport::warnings)
      .def_ro("refusal", &CaseReport::refusal)
      .def_ro("program", &CaseReport::program);
  m.def("check_backend", &check_backend, nb::arg("backend"), nb::arg("cases"), nb::arg("timeout"),
        "Checks a backend in child processes.");
  m.def("check_matrix", &conformance::matrix_of, nb::arg("reports"), "The rows of the pass matrix, a heading first.");
  m.def("check_failures", &conformance::failures_of, nb::arg("reports"), "A line for each finding.");
  m.def("check_summary", &conformance::summary_of, nb::arg("backend"), nb::arg("reports"));
  m.def("unchecked_patterns", &conformance::unchecked_patterns, nb::arg("backend"), nb::arg("reports"),
        "The patterns that no case matched.");
  m.def("backend_claims", &claims_of, nb::arg("backend"),
        "(op, cases that the backend takes, all cases) for each op with a case that it takes.");
}

}  // namespace

void bind_backends(nb::module_& m) {
  m.def("register_backend", &register_python_backend, nb::arg("name"), nb::arg("version"),
        nb::arg("one_call_per_region"), nb::arg("patterns"), nb::arg("supports"), nb::arg("compile"), nb::arg("load"),
        nb::arg("cost"), nb::arg("saved").none(), nb::arg("border").none(), nb::arg("claim").none(),
        nb::arg("accepts_version").none());
  m.def(
      "has_backend",
      [](const std::string& name) {
        driver::register_all();
        return partition::find_backend(name) != nullptr;
      },
      nb::arg("name"), "Whether the compiler knows a backend of that name.");
  bind_kit(m);
  m.def(
      "refusal_reason", [](const std::string& name) { return static_cast<int>(partition::read_refusal_reason(name)); },
      nb::arg("name"), "The number of a reason why a backend takes no call; UserError for other names.");
  m.def("own_folder", &library_folder, "The folder of Headrace's own libraries.");
  runtime::set_loader_finder(&find_python_loader);
  driver::set_backend_source(driver::BackendSource{
      .names = &python_backend_names, .offer = &offer_python_backend, .find_checks = &find_python_checks});
}

}  // namespace headrace::python
