#include "conformance/check.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <random>
#include <set>
#include <thread>

#include "conformance/cost_checks.h"
#include "conformance/guarded_tensor.h"
#include "conformance/values.h"
#include "driver/all_backends.h"
#include "driver/compile.h"
#include "driver/explain.h"
#include "interp/interp.h"
#include "load/entry_check.h"
#include "load/load_module.h"
#include "load/run.h"
#include "relay/bind.h"
#include "relay/infer/infer_type.h"
#include "tensor/ndarray.h"

namespace headrace::conformance {

namespace {

using executors::Executor;
using executors::ExecutorOptions;
using executors::Fallback;

constexpr int kThreads = 4, kRunsOfAThread = 8, kTimedRuns = 8;
// A library that keeps a few kilobytes now and then, as allocators and onnxruntime do, has an attempt without them
// soon; so many in a row mean that each round keeps memory.
constexpr int kMemoryRounds = 24, kMemoryAttempts = 16;

// The largest error of a result, relative to its largest element.
double tolerance_of(DataType dtype) {
  if (!dtype.is_float()) return 0;
  return dtype.bits() == 64 ? 1e-9 : dtype.bits() == 32 ? 1e-4 : 2e-2;
}

bool is_near(double got, double want, double limit) {
  if (std::isnan(want) || std::isinf(want)) return std::isnan(want) ? std::isnan(got) : got == want;
  return std::abs(got - want) <= limit;
}

std::string integer_text(const NDArray& tensor, int64_t i) {
  if (tensor.dtype() == DataType::uint(64)) return fmt::format("{}", tensor.data<uint64_t>()[i]);
  return fmt::format("{}", element_as_int(tensor.tensor(), i));
}

// Returns where two tensors of integers differ: float64, which shows them, does not tell all of 64 bits apart.
std::string difference_of_bits(const NDArray& got, const NDArray& want) {
  const size_t bytes = want.dtype().bytes();
  for (int64_t i = 0; i < want.num_elements(); ++i) {
    const size_t at = static_cast<size_t>(i) * bytes;
    if (std::memcmp(got.data<char>() + at, want.data<char>() + at, bytes) == 0) continue;
    return fmt::format("element {} is {}, and {} is right", i, integer_text(got, i), integer_text(want, i));
  }
  return "";
}

// Returns where two tensors differ by more than rounding; empty when they do not.
std::string difference(const NDArray& got, const NDArray& want) {
  if (want.dtype().is_int() || want.dtype().is_uint()) return difference_of_bits(got, want);
  double largest = 0;
  for (int64_t i = 0; i < want.num_elements(); ++i) {
    const double value = std::abs(element_as_double(want.tensor(), i));
    if (std::isfinite(value)) largest = std::max(largest, value);
  }
  const double limit = tolerance_of(want.dtype()) * std::max(1.0, largest);
  for (int64_t i = 0; i < want.num_elements(); ++i) {
    const double a = element_as_double(got.tensor(), i), b = element_as_double(want.tensor(), i);
    if (!is_near(a, b, limit)) return fmt::format("element {} is {}, and {} is right", i, a, b);
  }
  return "";
}

// Results with more of them than this share are no test.
constexpr double kMostNans = 0.5;

// Returns the share of elements that are not numbers, in the result that has most of them.
double nan_share(const std::vector<NDArray>& results) {
  double most = 0;
  for (const NDArray& one : results) {
    if (!one.dtype().is_float() || one.num_elements() == 0) continue;
    int64_t count = 0;
    for (int64_t i = 0; i < one.num_elements(); ++i) count += std::isnan(element_as_double(one.tensor(), i)) ? 1 : 0;
    most = std::max(most, static_cast<double>(count) / static_cast<double>(one.num_elements()));
  }
  return most;
}

// Returns floats with the absolute values of these, scaled and moved; with their signs where they are not moved.
NDArray in_domain(const NDArray& given, double factor, double offset) {
  if (!given.dtype().is_float()) return given;
  NDArray made = NDArray::zeros(given.shape(), given.dtype());
  for (int64_t i = 0; i < given.num_elements(); ++i) {
    const double value = element_as_double(given.tensor(), i);
    set_element(made.tensor(), i, factor * (offset == 0 ? value : std::abs(value)) + offset);
  }
  return made;
}

bool is_same(const NDArray& a, const NDArray& b) {
  return a.size_bytes() == b.size_bytes() && std::memcmp(a.data<char>(), b.data<char>(), a.size_bytes()) == 0;
}

using Tensors = std::vector<NDArray>;

constexpr const char* kOtherPrefix = "renamed_";

// Returns the case with other names of variables, on other lines.
Case renamed(const Case& one) {
  Case made = one;
  made.text = "\n\n";
  for (size_t i = 0; i < one.text.size(); ++i) {
    made.text += one.text[i];
    const auto next = static_cast<unsigned char>(i + 1 < one.text.size() ? one.text[i + 1] : ' ');
    if (one.text[i] == '%' && (std::isalpha(next) != 0 || next == '_')) made.text += kOtherPrefix;
  }
  return made;
}

// A name for a file of this process, which is removed at the end.
struct TemporaryFile {
  TemporaryFile() = default;
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { ::unlink(path.c_str()); }

  const std::string path = std::filesystem::temp_directory_path() / fmt::format("headrace-check-{}", ::getpid());
};

class CaseCheck {
 public:
  CaseCheck(const std::string& backend, const Case& one) : backend_(backend), case_(one) { report_.name = one.name; }

  CaseReport run() {
    make_model();
    if (case_.is_marked) {
      check("marked", [&] { return refused_or_right(); });
      report_.is_claimed = true;
      return report_;
    }
    if (!is_taken()) return report_;
    report_.is_claimed = true;
    if (!case_.is_brief) check_costs();
    if (compile()) check_code();
    return report_;
  }

 private:
  void fail(const std::string& check, std::string message) { report_.findings.push_back({check, std::move(message)}); }

  void make_model() {
    module_ = module_of(case_);
    const auto main = module_->lookup("main").cast<relay::FunctionNode>();
    make_arguments(*main);
    Map<std::string, NDArray> bound;
    for (size_t i = 0; i < arguments_.size(); ++i) {
      const std::string& name = main->params[i]->name_hint;
      if (std::count(case_.constants.begin(), case_.constants.end(), name) > 0) {
        bound.set(name, others_[i] = arguments_[i]);
      } else {
        inputs_.push_back(arguments_[i]);
        other_inputs_.push_back(others_[i]);
      }
    }
    constants_ = bound;
    model_ = driver::make_model(with_constants(module_, ""));
  }

  // Returns the typed module with its constants, for whose parameters the names have a prefix.
  IRModule with_constants(const IRModule& module, const std::string& prefix) const {
    Map<std::string, NDArray> bound;
    for (const auto& [name, value] : constants_) bound.set(prefix + name, value);
    const IRModule made = snapshot(module);
    const auto main = made->lookup("main").cast<relay::FunctionNode>();
    made->add_function(made->get_global_var("main"), relay::bind_params_by_name(main, bound), true);
    return relay::infer_type(made);
  }

  // Costs that are no seconds, or differ from answer to answer, would fail the checks that follow as well.
  void check_costs() {
    const auto add = [&](const char* name, auto&& body) {
      const size_t before = report_.findings.size();
      check(name, body);
      return report_.findings.size() == before;
    };
    const bool holds = add("cost", [&] {
      costs_ = std::make_unique<CostChecks>(driver::require_backend(backend_), with_constants(module_, ""));
      return costs_->answers();
    });
    if (!holds || !add("cost_repeat", [&] { return costs_->repeated(); })) costs_.reset();
    if (costs_ == nullptr) return;
    check("cost_threads", [&] { return costs_->on_threads(); });
    check("cost_names",
          [&] { return costs_->with_other_names(with_constants(module_of(renamed(case_)), kOtherPrefix)); });
  }

  // Compares the time of the fastest of some runs with the estimate, which is not a mistake where it is wrong.
  void compare_time() {
    if (costs_ == nullptr) return;
    const auto one = executor();
    for (size_t i = 0; i < inputs_.size(); ++i) throw_if_failed(one->set_input(i, inputs_[i].tensor()));
    double best = std::numeric_limits<double>::infinity();
    for (int i = 0; i < kTimedRuns; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      throw_if_failed(one->run());
      best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    if (std::string text = costs_->compared_with(best); !text.empty())
      report_.warnings.push_back({"cost_time", std::move(text)});
  }

  void make_arguments(const relay::FunctionNode& main) {
    std::mt19937 random(17);
    for (size_t i = 0; i < main.params.size(); ++i) {
      const auto* type = main.params[i]->checked_type().as<TensorTypeNode>();
      const std::string& name = main.params[i]->name_hint;
      const bool is_given = !case_.values.empty();
      arguments_.push_back(is_given ? given_tensor(*type, case_.values[i]) : random_tensor(*type, name, random));
      others_.push_back(is_given ? reversed(arguments_[i]) : random_tensor(*type, name, random));
    }
  }

  // Asks the backend. A question that ends in an exception is a finding.
  bool is_taken() {
    try {
      if (case_.is_brief && !case_.is_match && !takes_all_calls()) return false;
      return claims();
    } catch (const std::exception& error) {
      fail("verdict", error.what());
      return false;
    }
  }

  // Asks the backend about each call, which takes less time than placing them.
  bool takes_all_calls() {
    const auto backend = driver::require_backend(backend_);
    bool takes_all = true;
    ++report_.num_checks;
    for (const auto& [call, verdict] : verdicts_on(*backend, model_.module)) {
      takes_all &= verdict.ok();
      if (!verdict.ok()) add_refusal(call->as_op()->name, verdict.reason, verdict.message);
    }
    return takes_all;
  }

  // Keeps the first refusal of the case, and reports one without a sentence and one by an exception.
  void add_refusal(const std::string& op, hr_reason reason, const std::string& message) {
    if (report_.refusal.empty()) report_.refusal = message;
    if (message.empty() || message.ends_with("it does not say why"))
      fail("verdict", fmt::format("it does not take {} and does not say why", op));
    if (reason == HR_REASON_BACKEND_FAILED) fail("verdict", fmt::format("asked about {}, it fails: {}", op, message));
  }

  // Runs a check; what it throws is its finding.
  template <typename F>
  void check(const std::string& name, F&& body) {
    ++report_.num_checks;
    try {
      if (const std::string fault = body(); !fault.empty()) fail(name, fault);
    } catch (const std::exception& error) {
      fail(name, error.what());
    }
  }

  driver::CompileOptions options() const {
    driver::CompileOptions options{.jobs = 1, .backends = {backend_}, .native_forms = false};
    if (!case_.disabled_pass.empty()) options.passes.disabled_pass.push_back(case_.disabled_pass);
    if (case_.native_line > 0) options.overrides.push_back({native_places(case_), std::string(partition::kNative)});
    return options;
  }

  // Returns whether an op is where the case wants it.
  bool is_in_place(const artifact::Placement& one) const {
    return one.backend == backend_ || one.reason == HR_REASON_PLACE_BY_OVERRIDE;
  }

  bool claims() {
    const driver::Explanation explained = driver::explain(model_, options());
    bool takes_all = !explained.placement.empty();
    for (const artifact::Placement& one : explained.placement) {
      takes_all &= is_in_place(one);
      if (is_in_place(one)) continue;
      const std::string prefix = backend_ + ": ";
      add_refusal(one.kind, one.reason,
                  one.message.starts_with(prefix) ? one.message.substr(prefix.size()) : one.message);
    }
    ++report_.num_checks;
    return takes_all && !explained.regions.empty();
  }

  bool compile() {
    std::optional<driver::CompiledModel> compiled;
    check("compile", [&]() -> std::string {
      driver::CompiledModel made = driver::compile_to_memory(model_, options());
      for (const artifact::Placement& one : made.report.manifest.programs[0].placement) {
        const bool is_refused = !is_in_place(one);
        // A backend may take ops and not regions of several of them: then it says why, and the region is native.
        const bool has_large_regions = case_.name.starts_with("structure/") && case_.native_line == 0;
        if (is_refused && has_large_regions) return report_.is_claimed = false, std::string();
        if (is_refused) return fmt::format("{} {}", one.kind, one.message);
      }
      compiled.emplace(std::move(made));
      return "";
    });
    return compiled && open(std::move(*compiled));
  }

  // Modules are loaded as the file is opened, since no region has a native form.
  bool open(driver::CompiledModel compiled) {
    check("load", [&]() -> std::string {
      artifact_ = driver::open_compiled(std::move(compiled), case_.name);
      return "";
    });
    return artifact_ != nullptr;
  }

  // Returns what the interpreter computes, on all arguments of main.
  Tensors right_results_of(const Tensors& arguments) const {
    return interp::run_main(
        case_.reference.empty() ? module_ : module_of({.name = case_.name, .text = case_.reference}), arguments);
  }

  // Computes the right results. Other inputs that an op refuses are replaced by the first ones.
  bool has_right_results() {
    try {
      want_ = right_results_of(arguments_);
    } catch (const UserError& error) {
      fail("case", case_.is_probe ? fmt::format("claimed without a case: {}", error.what()) : error.what());
      return false;
    }
    try {
      other_want_ = right_results_of(others_);
    } catch (const UserError&) {
      others_ = arguments_, other_inputs_ = inputs_, other_want_ = want_;
    }
    return true;
  }

  // Random inputs of an op such as sqrt or acosh may lie outside of its domain, where any value is as right as NaN to
  // the checks that follow: takes inputs that give more numbers, if there are any.
  void choose_inputs_in_the_domain() {
    if (!case_.values.empty() || !case_.constants.empty()) return;
    for (const auto& [factor, offset] : {std::pair(1.0, 0.1), std::pair(1.0, 1.0), std::pair(0.6, 0.0)}) {
      if (nan_share(want_) <= kMostNans && nan_share(other_want_) <= kMostNans) return;
      Tensors first, second;
      for (const NDArray& one : arguments_) first.push_back(in_domain(one, factor, offset));
      for (const NDArray& one : others_) second.push_back(in_domain(one, factor, offset));
      const Tensors want = right_results_of(first), other_want = right_results_of(second);
      const bool is_better =
          std::max(nan_share(want), nan_share(other_want)) < std::max(nan_share(want_), nan_share(other_want_));
      if (!is_better) continue;
      arguments_ = inputs_ = first, others_ = other_inputs_ = second, want_ = want, other_want_ = other_want;
    }
  }

  void check_code() {
    if (!has_right_results()) return;
    choose_inputs_in_the_domain();
    // The code of a backend that writes C is a part of the file, and has nothing of its own to load and to save.
    const bool has_modules = !artifact_->modules.empty();
    if (!case_.is_brief) check("same_code", [&] { return same_code(); });
    if (has_modules) check("types", [&] { return declared_types(); });
    check("result", [&] { return right_results(); });
    if (!report_.findings.empty()) return;  // the rest says the same again
    check("repeat", [&] { return repeated(); });
    check("written", [&] { return written(); });
    check("inputs", [&] { return inputs_left_alone(); });
    check("alignment", [&] { return unaligned(); });
    if (case_.is_brief) return;
    check("threads", [&] { return threads(); });
    if (has_modules) {
      check("save", [&] { return saved(); });
      check("file", [&] { return written_to_a_file(); });
      check("cut", [&] { return cut(); });
      check("unknown", [&] { return unknown(); });
    }
    check("memory", [&] { return memory(); });
    compare_time();
  }

  // A program may mark a region without a question to the backend, which then refuses what it would not take.
  std::string refused_or_right() {
    try {
      want_ = right_results_of(arguments_);
      artifact_ = driver::open_compiled(driver::compile_to_memory(model_, options()), case_.name);
    } catch (const UserError&) {  // nobody computes it, or it is refused
      return "";
    }
    const std::string fault = differs(load::run(*executor(), inputs_), want_);
    return fault.empty() ? "" : "it compiles an op that it says it does not take: " + fault;
  }

  std::shared_ptr<Executor> executor(int32_t threads = 1) const {
    return load::make_executor(artifact_, "default", {.threads = threads, .fallback = Fallback::none});
  }

  std::vector<std::string> blobs_of(const load::Artifact& artifact) const {
    std::vector<std::string> blobs;
    for (const auto& module : artifact.modules) blobs.push_back(module.value().SaveToBinary());
    return blobs;
  }

  std::string same_code() const {
    const auto again = driver::open_compiled(driver::compile_to_memory(model_, options()), case_.name);
    return blobs_of(*again) == blobs_of(*artifact_) ? "" : "two compiles of one program give different bytes";
  }

  // A backend may leave out to declare types; those that it declares are the program's.
  std::string declared_types() const {
    const artifact::Program& program = artifact_->manifest().programs[0];
    for (const artifact::Step& step : program.graph.steps) {
      const auto* call = std::get_if<artifact::RegionCall>(&step.action);
      const auto* region = call == nullptr ? nullptr : artifact::find_region(artifact_->manifest(), call->region);
      if (region == nullptr || region->module < 0) continue;
      const auto& module = artifact_->modules[static_cast<size_t>(region->module)];
      const auto refusal = load::entry_refusal(module.value_or_throw(), *region, program, step);
      if (refusal) return refusal->message;
    }
    return "";
  }

  std::string differs(const Tensors& got, const Tensors& want) const {
    for (size_t i = 0; i < want.size(); ++i) {
      if (const std::string fault = difference(got[i], want[i]); !fault.empty())
        return want.size() == 1 ? fault : fmt::format("result {}: {}", i, fault);
    }
    return "";
  }

  std::string right_results() {
    first_ = load::run(*executor(), inputs_);
    if (std::string fault = differs(first_, want_); !fault.empty()) return fault;
    other_first_ = load::run(*executor(), other_inputs_);
    const std::string fault = differs(other_first_, other_want_);
    return fault.empty() ? "" : fmt::format("on other inputs, after a run on the first ones: {}", fault);
  }

  std::string repeated() const {
    const auto one = executor();
    for (const Tensors* inputs : {&inputs_, &other_inputs_, &inputs_, &other_inputs_}) {
      const Tensors got = load::run(*one, *inputs), &first = inputs == &inputs_ ? first_ : other_first_;
      for (size_t i = 0; i < got.size(); ++i) {
        if (!is_same(got[i], first[i])) return fmt::format("a later run gives other bits in result {}", i);
      }
    }
    return "";
  }

  // Outputs are given with two different contents.
  std::string written() const {
    const auto one = executor();
    for (size_t i = 0; i < inputs_.size(); ++i) throw_if_failed(one->set_input(i, inputs_[i].tensor()));
    std::vector<std::unique_ptr<GuardedTensor>> outputs;
    for (size_t i = 0; i < first_.size(); ++i) {
      outputs.push_back(std::make_unique<GuardedTensor>(first_[i].shape(), first_[i].dtype()));
      throw_if_failed(one->bind_output(i, outputs.back()->tensor()));
    }
    for (const uint8_t content : {uint8_t{0x00}, uint8_t{0x5A}}) {
      for (const auto& output : outputs) output->fill(content);
      throw_if_failed(one->run());
      for (size_t i = 0; i < outputs.size(); ++i) {
        if (!outputs[i]->is_fence_whole()) return fmt::format("it writes before the first element of result {}", i);
        if (!is_same(outputs[i]->copy(), first_[i]))
          return fmt::format("result {} depends on what its memory held before", i);
      }
    }
    return "";
  }

  std::string inputs_left_alone() const {
    const auto one = executor();
    std::vector<std::unique_ptr<GuardedTensor>> inputs;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      inputs.push_back(std::make_unique<GuardedTensor>(inputs_[i].shape(), inputs_[i].dtype()));
      inputs.back()->copy_from(inputs_[i]);
      throw_if_failed(one->bind_input(i, inputs.back()->tensor()));
    }
    throw_if_failed(one->run());
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!is_same(inputs[i]->copy(), inputs_[i]) || !inputs[i]->is_fence_whole())
        return fmt::format("it writes to input {}", i);
    }
    return "";
  }

  // Every input and output begins at an odd multiple of its element's size.
  std::string unaligned() const {
    const auto one = executor();
    std::vector<std::vector<std::byte>> memory;
    const auto place = [&](const DLTensor& like, size_t nbytes) {
      const size_t element = DataType(like.dtype).bytes();
      auto& bytes = memory.emplace_back(nbytes + 64 + element);
      const auto begin = reinterpret_cast<uintptr_t>(bytes.data());
      DLTensor tensor = like;
      tensor.data = bytes.data() + ((begin + 63) / 64 * 64 - begin) + element;
      return tensor;
    };
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const DLTensor tensor = place(inputs_[i].tensor(), inputs_[i].size_bytes());
      std::memcpy(tensor.data, inputs_[i].data<char>(), inputs_[i].size_bytes());
      throw_if_failed(one->bind_input(i, tensor));
    }
    std::vector<DLTensor> outputs;
    for (size_t i = 0; i < first_.size(); ++i) {
      outputs.push_back(place(first_[i].tensor(), first_[i].size_bytes()));
      throw_if_failed(one->bind_output(i, outputs.back()));
    }
    throw_if_failed(one->run());
    Tensors got;
    for (size_t i = 0; i < first_.size(); ++i)
      got.push_back(NDArray::from_bytes(first_[i].shape(), first_[i].dtype(),
                                        {static_cast<const std::byte*>(outputs[i].data), first_[i].size_bytes()}));
    return differs(got, want_);
  }

  std::string threads() const {
    for (const int32_t workers : {2, 3}) {
      if (const std::string fault = differs(load::run(*executor(workers), inputs_), first_); !fault.empty())
        return fmt::format("with {} workers, compared with the first run: {}", workers, fault);
    }
    std::mutex mutex;
    std::string fault;
    std::vector<std::thread> all;
    for (int t = 0; t < kThreads; ++t) {
      all.emplace_back([&, t] {
        std::string own;
        try {
          const auto one = executor();
          for (int run = 0; run < kRunsOfAThread && own.empty(); ++run)
            own = t % 2 == 0 ? differs(load::run(*one, inputs_), first_)
                             : differs(load::run(*one, other_inputs_), other_first_);
        } catch (const std::exception& error) {
          own = error.what();
        }
        const std::scoped_lock lock(mutex);
        if (fault.empty()) fault = own;
      });
    }
    for (std::thread& thread : all) thread.join();
    return fault.empty() ? ""
                         : fmt::format("with {} threads at once, compared with the first run: {}", kThreads, fault);
  }

  std::string saved() const {
    for (const auto& module : artifact_->modules) {
      const std::string kind(module.value().type_key()), bytes = module.value().SaveToBinary();
      const runtime::SavedModule apart = module.value().save_apart();
      const runtime::Module again = runtime::load_from_binary(kind, bytes);
      if (!again) return fmt::format("nothing loads modules of the kind '{}'", kind);
      const bool is_same = again.SaveToBinary() == bytes && again.save_apart().bytes == apart.bytes;
      if (!is_same) return "a module that is saved, loaded and saved again has other bytes";
    }
    return "";
  }

  // A module may have no form as a file; then it refuses to be written.
  std::string written_to_a_file() const {
    const TemporaryFile file;
    for (const auto& module : artifact_->modules) {
      const std::string kind(module.value().type_key());
      try {
        module.value().SaveToFile(file.path, kind);
      } catch (const UserError&) {
        continue;
      }
      if (load::load_module(file.path, kind).SaveToBinary() != module.value().SaveToBinary())
        return fmt::format("a module of the kind '{}' that is written to a file and loaded has other bytes", kind);
    }
    return "";
  }

  // Loads bytes that are not what was saved. Whether changed ones are refused is the backend's; a part never is enough.
  std::string cut() const {
    for (const auto& module : artifact_->modules) {
      const std::string kind(module.value().type_key());
      const runtime::SavedModule apart = module.value().save_apart();
      const std::string& bytes = apart.bytes;
      const std::vector<NDArray>& constants = apart.constants;
      for (const size_t size :
           {size_t{0}, size_t{1}, bytes.size() / 2, bytes.size() - std::min<size_t>(bytes.size(), 1)}) {
        if (size >= bytes.size() || !loads(kind, {bytes.substr(0, size), constants})) continue;
        return fmt::format("{} of the {} bytes of a module load without an error", size, bytes.size());
      }
      std::mt19937 random(3);
      for (int i = 0; i < 64 && !bytes.empty(); ++i) {
        std::string changed = bytes;
        changed[random() % changed.size()] = static_cast<char>(random());
        loads(kind, {changed, constants});
      }
      if (constants.empty()) continue;
      if (loads(kind, {bytes, {constants.begin(), constants.end() - 1}}))
        return "a module loads without one of its constants";
    }
    return "";
  }

  static bool loads(const std::string& kind, const runtime::SavedModule& saved) {
    try {
      return static_cast<bool>(runtime::load_from_binary(kind, saved));
    } catch (const UserError&) {
      return false;
    }
  }

  std::string unknown() const {
    for (const auto& module : artifact_->modules) {
      if (module.value().GetFunction("no_such_region")) return "it finds a region that it was not given";
    }
    return "";
  }

  // Bytes of malloc that are in use; large blocks are counted apart.
  static size_t allocated_bytes() {
    const struct mallinfo2 info = ::mallinfo2();
    return info.uordblks + info.hblkhd;
  }

  // Memory that rounds keep grows in every attempt. The first attempt warms up; caches that fill grow in some more, and
  // one attempt that keeps less than 16 bytes a round is enough to see that rounds do not.
  std::string memory() const {
    const auto round = [&] {
      for (const auto& module : artifact_->modules)
        loads(std::string(module.value().type_key()), module.value().save_apart());
      load::run(*executor(), inputs_);
    };
    size_t warm = 0, before = allocated_bytes();
    for (int attempt = 0; attempt < kMemoryAttempts; ++attempt) {
      for (int i = 0; i < kMemoryRounds; ++i) round();
      const size_t after = allocated_bytes();
      if (attempt > 0 && after < before + kMemoryRounds * 16) return "";
      if (attempt == 0) warm = after;
      before = after;
    }
    constexpr int kCounted = (kMemoryAttempts - 1) * kMemoryRounds;
    return fmt::format("{} rounds of loading and running keep {} bytes", kCounted, before - warm);
  }

  std::string backend_;
  const Case& case_;
  CaseReport report_;
  IRModule module_;
  driver::Model model_;
  Map<std::string, NDArray> constants_;  // by parameter
  std::unique_ptr<CostChecks> costs_;    // null unless the costs can be compared
  Tensors arguments_, others_;           // one per parameter
  Tensors inputs_, other_inputs_;        // those of these that are not constants
  Tensors want_, other_want_;            // the right results of both
  Tensors first_, other_first_;          // results of the first runs on both
  std::shared_ptr<const load::Artifact> artifact_;
};

}  // namespace

CaseReport check_case(const std::string& backend, const Case& one) { return CaseCheck(backend, one).run(); }

}  // namespace headrace::conformance
