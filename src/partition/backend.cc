#include "partition/backend.h"

#include <map>
#include <mutex>

#include "cost/op_work.h"
#include "object/function.h"
#include "partition/checked_patterns.h"
#include "partition/rules.h"
#include "pass/pass_objects.h"
#include "relay/infer/infer_type.h"
#include "runtime/backend_name.h"

namespace headrace::partition {

namespace {

// A backend that is one function, relay.ext.NAME, as Relay users register it; null where only the hooks of the target
// kind of that name compile.
class FunctionBackend : public Backend {
 public:
  FunctionBackend(std::string name, PackedFunc compiler) : name_(std::move(name)), compiler_(std::move(compiler)) {}

  std::string_view name() const override { return name_; }

  Verdict supports(const relay::CallNode&) const override {
    return {.reason = HR_REASON_OP_UNSUPPORTED,
            .message = fmt::format("the op has no attribute target.{} that takes it", name_)};
  }

  std::span<const CompositePattern> patterns() const override {
    std::call_once(is_read_, [this] { table_ = read_patterns(); });
    if (table_ == nullptr) return {};
    return table_->entries();
  }

  double cost(const relay::CallNode& call, const cost::Machine& machine, int threads) const override {
    const std::string name = fmt::format("{}{}.cost", kRegionCompilerPrefix, name_);
    const PackedFunc function = find_global(name);
    if (!function) return Backend::cost(call, machine, threads);
    const Value seconds = function(ref(&call));
    if (seconds.is<double>()) return seconds.as<double>();
    throw_at(call.span, "compile",
             fmt::format("the function {} gave {}, expected a float, in seconds", name, kind_name(seconds.raw())));
  }

  std::vector<Expected<RegionCode>> compile(const RegionRequest& request) const override {
    std::vector<Expected<RegionCode>> codes;
    if (!compiler_) return std::vector(request.regions.size(), Expected<RegionCode>(no_function()));
    const pass::With scope(context_with(request.options));
    for (const RegionSource& region : request.regions) codes.emplace_back(RegionCode{.module = compile_one(region)});
    return codes;
  }

 private:
  // The function reads its options from the current context. Its instruments saw that context begin already.
  pass::PassContextRef context_with(const Map<std::string, Value>& options) const {
    return copy_with(*pass::current_context(), [&](pass::PassContextObj& copy) {
      copy.instruments = {};
      if (options.empty()) return;
      pass::declare_backend_key(name_);
      copy.config.set(pass::backend_key(name_), Value(options));
    });
  }

  // Reads what the function relay.ext.NAME.patterns gives; null where there is no such function.
  std::unique_ptr<const PatternTable> read_patterns() const {
    const std::string name = fmt::format("{}{}.patterns", kRegionCompilerPrefix, name_);
    const PackedFunc function = find_global(name);
    if (!function) return nullptr;
    const Value given = function();
    try {
      auto table = std::make_unique<const PatternTable>(given);
      check_pattern_names("it", name_, table->entries());
      return table;
    } catch (const UserError& error) {
      throw UserError(fmt::format("the pattern table of '{}', which the function {} gives, cannot be read: {}", name_,
                                  name, error.message()));
    }
  }

  Refusal no_function() const {
    return {HR_REASON_OP_UNSUPPORTED,
            fmt::format("the hook {} of the target kind '{}' left it a Relay function, and there is no function {}{}",
                        kRelayToTir, name_, kRegionCompilerPrefix, name_)};
  }

  runtime::Module compile_one(const RegionSource& region) const {
    const Value module = compiler_(region.function);
    const bool is_module = !module.is_none() && module.is<runtime::Module>();
    if (!is_module)
      throw_at(region.function->span, "compile",
               fmt::format("the function {}{} returned no module for the region '{}'; it must return a "
                           "runtime::Module that has a function of that name",
                           kRegionCompilerPrefix, name_, region.name));
    return module.as<runtime::Module>();
  }

  std::string name_;
  PackedFunc compiler_;
  mutable std::once_flag is_read_;
  mutable std::unique_ptr<const PatternTable> table_;
};

struct Registry {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<const Backend>> backends;

  void check_new(const std::string& name, const std::string& origin) const {
    runtime::check_backend_name(name);
    if (const auto known = backends.find(name); known != backends.end())
      throw_name_taken(name, known->second->origin(), origin);
  }
};

Registry& registry() {
  static Registry one;
  return one;
}

}  // namespace

void refuse_options(const Backend& backend, const Map<std::string, Value>& options) {
  for (const auto& [option, value] : options)
    throw_user_error("the backend '{}' has no option '{}', and no other", backend.name(), option);
}

double Backend::cost(const relay::CallNode& call, const cost::Machine& machine, int threads) const {
  return cost::native_seconds(call, machine, threads);
}

double Backend::saved(const relay::CallNode&, const std::vector<const relay::CallNode*>&, const cost::Machine&,
                      int) const {
  return 0;
}

double Backend::border(const Type&, const cost::Machine&, int) const { return 0; }

Expected<std::vector<TensorType>> Backend::claim(const ops::OnnxNode& node) const {
  if (!ops::are_known(node.results))
    return Refusal{HR_REASON_SHAPE_UNSUPPORTED,
                   "the model does not declare the types of its results; let ONNX's shape inference write them"};
  const Expr call = relay::infer_type(ops::extern_onnx(node));
  const Verdict verdict = verdict_of(*this, *call.as<relay::CallNode>());
  if (verdict.ok()) return node.results;
  return Refusal{verdict.reason, verdict.message};
}

void check_new_backend(const std::string& name, const std::string& origin) {
  Registry& all = registry();
  const std::scoped_lock lock(all.mutex);
  all.check_new(name, origin);
}

void throw_name_taken(const std::string& name, const std::string& known, const std::string& origin) {
  throw_user_error("there is a backend '{}' already, {}; {} another name", name,
                   known.empty() ? "which this program has" : known,
                   origin.empty() ? "give the new one" : fmt::format("leave out {}, or give it", origin));
}

void register_backend(std::shared_ptr<const Backend> backend, const std::vector<std::string>& aliases) {
  std::vector<std::string> names{std::string(backend->name())};
  names.insert(names.end(), aliases.begin(), aliases.end());
  Registry& all = registry();
  const std::scoped_lock lock(all.mutex);
  for (const std::string& name : names) all.check_new(name, backend->origin());
  for (const std::string& name : names) {
    register_backend_kind(name);
    pass::declare_backend_key(name);
    all.backends.emplace(name, backend);
  }
}

std::shared_ptr<const Backend> find_backend(const std::string& name) {
  {
    Registry& all = registry();
    const std::scoped_lock lock(all.mutex);
    if (const auto found = all.backends.find(name); found != all.backends.end()) return found->second;
  }
  const PackedFunc compiler = find_global(kRegionCompilerPrefix + name);
  const bool is_there = compiler || find_kind_hook(name, kRelayToTir);
  return is_there ? std::make_shared<FunctionBackend>(name, compiler) : nullptr;
}

std::string own_name(const std::string& name) {
  const auto backend = find_backend(name);
  return backend == nullptr ? name : std::string(backend->name());
}

std::vector<std::string> backend_names() {
  Registry& all = registry();
  const std::scoped_lock lock(all.mutex);
  std::vector<std::string> names;
  for (const auto& [name, backend] : all.backends) {
    if (name == backend->name()) names.push_back(name);
  }
  return names;
}

}  // namespace headrace::partition
