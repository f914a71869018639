// Pipelines: stages of programs and of Python's functions, and the tickets of requests. headrace/pipeline makes specs.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <set>

#include "artifact/artifact_file.h"
#include "base/reason_name.h"
#include "executors/pipeline/isolation/program_stage.h"
#include "executors/pipeline/pipeline.h"
#include "executors/pipeline/plan_spec.h"
#include "load/pipeline_file.h"
#include "objects.h"
#include "pipeline_values.h"
#include "runtime/processors.h"
#include "shared_object.h"
#ifndef HEADRACE_PYTHON_RUNTIME_ALONE
#include "devices/place_stages.h"
#include "driver/output_file.h"
#include "driver/save_pipeline.h"
#endif

namespace headrace::python {

namespace {

using namespace executors::pipeline;

// An array that nobody else can write to: it has its memory, and only its holder has it.
bool is_own(nb::handle array) {
  if (nb::isinstance<NDArray>(array))
    return Py_REFCNT(array.ptr()) == 1 && nb::inst_ptr<NDArray>(array)->object()->is_unique();
  return Py_REFCNT(array.ptr()) == 1 && nb::hasattr(array, "base") && array.attr("base").is_none();
}

// Makes a value of what a stage returned, or a caller gave, for a port. Arrays are copied unless `shares` says that
// their memory stays as it is; objects that are not tensors, numbers or texts stay Python's.
Value to_port_value(nb::handle object, const Port& port, bool shares) {
  if (!port.is_any) return Value(to_ndarray(object, [&] { return fmt::format("'{}'", port.name()); }, port.spec.dtype));
  if (std::optional<NDArray> tensor = try_to_ndarray(object)) return Value(shares ? *tensor : tensor->copy());
  if (object.is_none() || PyBool_Check(object.ptr()) || PyLong_CheckExact(object.ptr()) ||
      PyFloat_CheckExact(object.ptr()) || PyUnicode_CheckExact(object.ptr()))
    return to_value(object);
  nb::object kept = nb::borrow(object);
  if (is_numpy_array(object)) {
    // A file that is mapped is an array as others are. Those of other classes, as with a mask, and of other dtypes
    // stay.
    const nb::object mapped = nb::module_::import_("numpy").attr("memmap");
    if (nb::isinstance(object, mapped)) {
      const nb::object plain = nb::module_::import_("numpy").attr("asarray")(object);
      if (std::optional<NDArray> tensor = try_to_ndarray(plain)) return Value(shares ? *tensor : tensor->copy());
    }
    if (!shares) kept = object.attr("copy")();
  }
  Ref<PythonValueObj> boxed = make_object<PythonValueObj>();
  boxed->object = std::make_shared<SharedObject>(std::move(kept));
  return Value(ObjectRef(boxed));
}

nb::object from_port_value(const Value& value, bool as_numpy) {
  if (const auto* boxed = value.as_node<PythonValueObj>()) return nb::borrow(boxed->object->pointer);
  nb::object object = from_value(value);
  return as_numpy && matches_item<NDArray>(value.raw()) ? object.attr("numpy")() : object;
}

const Port any_port{.spec = {.name = "value", .dtype = {}, .shape = {}}, .is_any = true};

// Returns an argument of a function: arrays of numpy are for reading only, and stay as they are for as long as the
// function keeps them.
nb::object to_argument(const Value& value) {
  nb::object argument = from_port_value(value, true);
  const bool is_tensor = matches_item<NDArray>(value.raw());
  if (!is_tensor && !is_numpy_array(argument)) return argument;
  // A view of a masked array can be written to whatever its flags say.
  if (!is_tensor) argument = argument.attr("copy")();
  argument.attr("setflags")(nb::arg("write") = false);
  return argument;
}

// Returns a result: nobody else has its arrays.
nb::object to_result(const Value& value, bool as_numpy) {
  nb::object result = from_port_value(value, as_numpy);
  return !matches_item<NDArray>(value.raw()) && is_numpy_array(result) ? result.attr("copy")() : result;
}

nb::object call_python(nb::handle callable, nb::list inputs) {
  const nb::tuple arguments(inputs);
  inputs.clear();
  nb::object result = nb::steal(run_python([&] { return PyObject_CallObject(callable.ptr(), arguments.ptr()); }));
  if (!result.is_valid()) throw nb::python_error();
  return result;
}

bool is_sequence(nb::handle object) { return PyTuple_Check(object.ptr()) || PyList_Check(object.ptr()); }

// Calls a function of Python for a stage.
Value call_stage(const SharedObject& callable, const std::vector<Port>& outputs, Args args) {
  GilHeld held;
  try {
    nb::list inputs;
    for (int32_t i = 0; i < args.size(); ++i) inputs.append(to_argument(Value::own(args[i])));
    const nb::object result = call_python(callable.pointer, std::move(inputs));
    if (outputs.empty()) return {};
    if (outputs.size() == 1) return to_port_value(result, outputs[0], is_own(result));
    if (!is_sequence(result)) return to_port_value(result, any_port, true);
    std::vector<Value> values;
    for (const nb::handle item : nb::cast<nb::sequence>(result)) {
      const Port* port = values.size() < outputs.size() ? &outputs[values.size()] : &outputs.back();
      values.push_back(to_port_value(item, *port, false));
    }
    return Value(Array<Value>(values));
  } catch (nb::python_error& error) {
    throw_foreign(error);
  }
}

// Returns what a function returned for an output of several requests: a value for each, or a tensor of rows.
Value to_batch_value(nb::handle result) {
  if (!is_sequence(result)) return to_port_value(result, any_port, is_own(result));
  Array<Value> values;
  for (const nb::handle item : nb::cast<nb::sequence>(result)) values.push_back(to_port_value(item, any_port, false));
  return Value(values);
}

// Calls a function of Python once for several requests: with a list of their values for each input. With `any_rows` it
// gets the rows of all requests, and its results are split among them.
Value call_batch_stage(const SharedObject& callable, size_t num_outputs, bool any_rows, Args args) {
  GilHeld held;
  try {
    nb::list inputs;
    for (int32_t i = 0; i < args.size(); ++i) {
      const Value value = Value::own(args[i]);
      if (!value.is<Array<Value>>()) {
        inputs.append(to_argument(value));
        continue;
      }
      nb::list of_requests;
      for (const Value& item : value.as<Array<Value>>()) of_requests.append(to_argument(item));
      inputs.append(std::move(of_requests));
    }
    nb::object result;
    if (any_rows) {
      nb::list with_function;
      with_function.append(nb::handle(callable.pointer));
      with_function.append(std::move(inputs));
      with_function.append(num_outputs);
      const nb::object call = nb::module_::import_("headrace.pipeline._rows").attr("call_with_rows");
      result = call_python(call, std::move(with_function));
    } else {
      result = call_python(callable.pointer, std::move(inputs));
    }
    if (num_outputs == 0) return {};
    if (num_outputs == 1 || !is_sequence(result)) return to_batch_value(result);
    Array<Value> outputs;
    for (const nb::handle item : nb::cast<nb::sequence>(result)) outputs.push_back(to_batch_value(item));
    return Value(outputs);
  } catch (nb::python_error& error) {
    throw_foreign(error);
  }
}

using PortSpec = std::tuple<std::string, std::optional<std::string>, std::vector<int64_t>>;  // name, dtype, shape

Port to_port(const PortSpec& spec) {
  const auto& [name, dtype, shape] = spec;
  return {.spec = {.name = name, .dtype = dtype ? DataType::parse(*dtype) : DataType(), .shape = shape},
          .is_any = !dtype.has_value()};
}

PortSpec from_port(const Port& port) {
  return {port.name(), port.is_any ? std::nullopt : std::optional(port.spec.dtype.to_string()), port.spec.shape};
}

std::vector<Port> to_ports(const std::vector<PortSpec>& specs) {
  std::vector<Port> ports;
  for (const PortSpec& spec : specs) ports.push_back(to_port(spec));
  return ports;
}

std::vector<PortSpec> from_ports(const std::vector<Port>& ports) {
  std::vector<PortSpec> specs;
  for (const Port& port : ports) specs.push_back(from_port(port));
  return specs;
}

using Batch = artifact::PipelineBatch;

}  // namespace

std::shared_ptr<StageCode> make_callable_stage(nb::object function, const std::vector<Port>& inputs,
                                               const std::vector<Port>& outputs, const std::optional<Batch>& batch) {
  PackedFunc packed;
  if (nb::isinstance<PackedFunc>(function)) {
    packed = nb::cast<PackedFunc>(function);
  } else {
    const auto shared = std::make_shared<SharedObject>(std::move(function));
    if (batch.has_value()) {
      const auto call = [shared, count = outputs.size(), any_rows = batch->any_rows](Args args) {
        return call_batch_stage(*shared, count, any_rows, args);
      };
      packed = PackedFunc(call);
    } else {
      packed = PackedFunc([shared, outputs](Args args) { return call_stage(*shared, outputs, args); });
    }
  }
  return batch.has_value() ? make_batch_function_stage(std::move(packed), inputs, outputs)
                           : make_function_stage(std::move(packed), inputs, outputs);
}

namespace {

std::shared_ptr<StageCode> function_stage(nb::callable function, const std::vector<PortSpec>& inputs,
                                          const std::vector<PortSpec>& outputs, const std::optional<Batch>& batch) {
  return make_callable_stage(std::move(function), to_ports(inputs), to_ports(outputs), batch);
}

using SourceSpec = std::tuple<std::string, size_t, size_t>;  // "input", "stage" or "param"; its index; the port

Source to_source(const SourceSpec& spec) {
  const auto& [kind, index, port] = spec;
  return {.kind = kind == "input"   ? Source::Kind::input
                  : kind == "param" ? Source::Kind::param
                                    : Source::Kind::stage,
          .index = index,
          .port = port};
}

SourceSpec from_source(const Source& source) {
  const char* kind = source.kind == Source::Kind::input   ? "input"
                     : source.kind == Source::Kind::param ? "param"
                                                          : "stage";
  return {kind, source.index, source.port};
}

// A pipeline whose end may wait for threads that want the GIL.
struct PythonPipeline {
  std::unique_ptr<Pipeline> pipeline;

  ~PythonPipeline() {
    GilReleased released;
    pipeline.reset();
  }
  PythonPipeline() = default;
  PythonPipeline(PythonPipeline&&) = default;
};

Until until_of(std::optional<double> seconds) {
  if (!seconds.has_value()) return {};
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(std::clamp(*seconds, 0.0, 1e9)));
}

// Calls `wait` with times of at most a tenth of a second, until it says true or the time is over, so that Ctrl-C ends
// the wait.
template <typename Wait>
bool wait_in_slices(std::optional<double> seconds, Wait wait) {
  const Until end = until_of(seconds);
  while (true) {
    const Clock::time_point slice = Clock::now() + std::chrono::milliseconds(100);
    const bool is_last = end.has_value() && *end <= slice;
    bool is_done = false;
    {
      GilReleased released;
      is_done = wait(is_last ? *end : slice);
    }
    if (is_done || is_last) return is_done;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

nb::object failure_of(const std::optional<Failure>& failure) {
  if (!failure.has_value()) return nb::none();
  nb::object cause = nb::none();
  if (failure->cause && failure->kind == FailureKind::stage_failed) {
    cause = exception_of(*failure->cause);  // an exception of the stage
  } else if (failure->cause) {
    cause = nb::cast(to_shown(failure->cause->message));  // how its process ended
  }
  return nb::make_tuple(failure_name(failure->kind), to_shown(message_of(*failure)), failure->request, failure->stage,
                        failure->backend, cause);
}

using Codes = std::vector<std::vector<std::shared_ptr<StageCode>>>;  // by stage and replica

PythonPipeline make_pipeline(const artifact::PipelinePlan& plan, const Codes& codes, const PipelineOptions& options) {
  std::vector<std::shared_ptr<StageCode>> left;
  for (auto of_stage = codes.rbegin(); of_stage != codes.rend(); ++of_stage)
    left.insert(left.end(), of_stage->rbegin(), of_stage->rend());
  PipelineSpec spec = spec_of_plan(plan, [&](const artifact::PipelineStage&) {
    std::shared_ptr<StageCode> next = left.empty() ? nullptr : left.back();
    if (next == nullptr) throw_user_error("the plan of the pipeline has more replicas than there are codes");
    left.pop_back();
    return next;
  });
  PythonPipeline made;
  GilReleased released;
#ifndef HEADRACE_PYTHON_RUNTIME_ALONE
  devices::place_stages(plan, spec);
#endif
  made.pipeline = std::make_unique<Pipeline>(std::move(spec), options);
  return made;
}

// Throws UserError for a name that no stage of the plan calls: it is mistyped.
void check_names(const std::vector<std::string>& names, const std::string& path, const artifact::PipelinePlan& plan) {
  std::set<std::string> called;
  for (const artifact::PipelineStage& stage : plan.stages) {
    if (!stage.function.empty() && stage.isolation == artifact::PipelineIsolation::thread)
      called.insert(stage.function);
  }
  for (const std::string& name : names) {
    if (!called.contains(name))
      throw_user_error("functions: '{}' calls no function '{}'; it calls {}", path, name,
                       called.empty() ? "none" : fmt::format("{}", fmt::join(called, ", ")));
  }
}

// Opens the pipeline of a file, whose functions are those given, else those that Python registered.
PythonPipeline open_pipeline(const std::string& path, const nb::dict& functions, const nb::dict& registered,
                             const nb::object& function_command, std::optional<size_t> max_inflight, bool is_pinned,
                             executors::Fallback fallback, const PipelineOptions& options) {
  std::vector<std::string> given;
  for (const auto [name, unused] : functions) given.push_back(nb::cast<std::string>(name));
  load::PipelineFileOptions chosen{.pipeline = options,
                                   .max_inflight = max_inflight,
                                   .is_pinned = is_pinned,
                                   .fallback = fallback,
                                   .make_program_stage = &isolation::make_program_stage};
#ifndef HEADRACE_PYTHON_RUNTIME_ALONE
  chosen.place_stages = &devices::place_stages;
#endif
  chosen.check_plan = [&](const artifact::PipelinePlan& plan) { check_names(given, path, plan); };
  chosen.find_stage = [&](const artifact::PipelineStage& stage) -> std::shared_ptr<StageCode> {
    GilHeld held;
    const nb::str name(stage.function.data(), stage.function.size());
    if (stage.isolation == artifact::PipelineIsolation::process) return make_process_stage(stage, function_command);
    for (const nb::dict& known : {functions, registered}) {
      if (known.contains(name)) return make_callable_stage(known[name], stage.inputs, stage.outputs, stage.batch);
    }
    return nullptr;
  };
  PythonPipeline made;
  GilReleased released;
  made.pipeline = load::open_pipeline(path, chosen);
  return made;
}

#ifdef HEADRACE_PYTHON_RUNTIME_ALONE
[[noreturn]] void refuse(const char* what) {
  throw MissingError(
      fmt::format("{}: this is the runtime alone, which loads and runs compiled models; the compiler comes with pip "
                  "install headrace=={}",
                  what, HEADRACE_VERSION));
}

int64_t save(const artifact::PipelinePlan&, const nb::handle&, const nb::handle&, const std::string&) {
  refuse("saving a pipeline");
}

void save_trace(const Trace&, const std::string&) { refuse("saving a trace"); }
#else
int64_t save(artifact::PipelinePlan plan, const std::vector<std::pair<std::string, nb::bytes>>& models,
             const nb::list& first_values, const std::string& path) {
  driver::PipelineContent content{.plan = std::move(plan), .models = {}, .first_values = {}};
  for (const auto& [name, bytes] : models) {
    content.plan.models.push_back({.name = name, .section = ""});
    content.models.emplace_back(bytes.c_str(), bytes.size());
  }
  for (const nb::handle value : first_values)
    content.first_values.push_back(value.is_none() ? NDArray() : nb::cast<NDArray>(value));
  GilReleased released;
  return driver::save_pipeline(std::move(content), path).nbytes;
}

void save_trace(const Trace& trace, const std::string& path) {
  GilReleased released;
  driver::write_text(path, chrome_trace(trace));
}
#endif

artifact::PipelinePlan read_plan(const std::string& path) {
  GilReleased released;
  const Descriptor file = Descriptor::open(path).value_or_throw();
  artifact::Manifest manifest = artifact::read_artifact_file(file.number(), path).value_or_throw().manifest;
  if (!manifest.pipeline) throw_user_error("'{}' has no pipeline: it is a model, which headrace.load opens", path);
  return *std::move(manifest.pipeline);
}

// Submits once there is a place, which this waits for in slices. Returns what `submit` returns, or the kind and text of
// the refusal.
template <typename Submit>
nb::object submit_in_slices(Pipeline& pipeline, std::optional<double> timeout, Submit submit) {
  const Clock::time_point begin = Clock::now();
  while (true) {
    std::optional<double> left = timeout;
    if (timeout.has_value())
      left = std::max(0.0, *timeout - std::chrono::duration<double>(Clock::now() - begin).count());
    const bool has_place = wait_in_slices(left, [&](Until until) { return pipeline.wait_for_place(until); });
    try {
      return submit();
    } catch (const RefusedError& refused) {
      const bool was_taken = refused.kind() == "PipelineFull" && has_place && pipeline.waits_for_places();
      if (!was_taken) return nb::make_tuple(refused.kind(), to_shown(refused.message()));
    }
  }
}

nb::object submit(PythonPipeline& self, const nb::sequence& inputs, std::optional<double> timeout,
                  std::optional<double> deadline, bool keeps_inputs, bool is_pushed) {
  const std::vector<Port>& ports = self.pipeline->spec().inputs;
  std::vector<Value> values;
  for (const nb::handle input : inputs) {
    values.push_back(
        to_port_value(input, values.size() < ports.size() ? ports[values.size()] : any_port, keeps_inputs));
  }
  SubmitOptions options{.deadline = until_of(deadline), .keeps_inputs = keeps_inputs};
  options.place_until = Clock::now();
  return submit_in_slices(*self.pipeline, timeout, [&]() -> nb::object {
    std::optional<Ticket> ticket;
    uint64_t number = 0;
    {
      GilReleased released;
      if (is_pushed) {
        number = self.pipeline->push(values, options);
      } else {
        ticket = self.pipeline->submit(values, options);
      }
    }
    return is_pushed ? nb::cast(number) : nb::cast(*ticket);
  });
}

nb::object next(PythonPipeline& self, std::optional<double> timeout, bool in_order) {
  std::optional<Ticket> ticket;
  wait_in_slices(timeout, [&](Until until) {
    ticket = in_order ? self.pipeline->next(until) : self.pipeline->next_done(until);
    const State state = self.pipeline->state();
    const bool has_ended = state == State::stopped || state == State::failed;
    // The last outcome may have come between the two.
    if (!ticket.has_value() && has_ended)
      ticket = in_order ? self.pipeline->next(Clock::now()) : self.pipeline->next_done(Clock::now());
    return ticket.has_value() || has_ended;
  });
  return ticket.has_value() ? nb::cast(*ticket) : nb::none();
}

double seconds_of(uint64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

nb::dict durations_of(const Durations& durations) {
  nb::dict row;
  row["median"] = seconds_of(durations.median);
  row["p90"] = seconds_of(durations.p90);
  row["p99"] = seconds_of(durations.p99);
  row["max"] = seconds_of(durations.most);
  return row;
}

PipelineMetrics read_metrics(const PythonPipeline& self) {
  GilReleased released;
  return self.pipeline->metrics();
}

nb::dict metrics_of(const PythonPipeline& self) {
  const PipelineMetrics metrics = read_metrics(self);
  nb::dict result;
  const std::pair<const char*, uint64_t> counts[] = {{"submitted", metrics.submitted}, {"succeeded", metrics.succeeded},
                                                     {"failed", metrics.failed},       {"cancelled", metrics.cancelled},
                                                     {"expired", metrics.expired},     {"dropped", metrics.dropped},
                                                     {"stopped", metrics.stopped},     {"refused", metrics.refused},
                                                     {"in_flight", metrics.in_flight}, {"waiting", metrics.waiting}};
  for (const auto& [name, count] : counts) result[name] = count;
  result["seconds"] = seconds_of(metrics.elapsed_ns);
  result["latency"] = durations_of(metrics.latency);
  result["bottleneck"] = metrics.bottleneck;
  nb::list stages;
  for (const StageMetrics& stage : metrics.stages) {
    nb::dict row;
    row["name"] = stage.name;
    row["backend"] = stage.backend;
    row["replicas"] = stage.replicas;
    row["items"] = stage.items;
    row["errors"] = stage.errors;
    row["skipped"] = stage.skipped;
    row["busy"] = seconds_of(stage.busy_ns);
    row["starved"] = seconds_of(stage.starved_ns);
    row["blocked"] = seconds_of(stage.blocked_ns);
    row["run"] = durations_of(stage.run);
    row["batches"] = stage.batches;
    row["waited"] = seconds_of(stage.waited_ns);
    nb::list pids;
    for (const int64_t pid : stage.pids) pids.append(pid);
    row["pids"] = pids;
    row["restarts"] = stage.restarts;
    stages.append(row);
  }
  result["stages"] = stages;
  return result;
}

nb::list stage_fallbacks(const PythonPipeline& self) {
  nb::list list;
  for (const load::StageFallback& fallback : load::fallbacks_of(*self.pipeline)) {
    nb::dict row;
    row["stage"] = fallback.stage;
    row["region"] = fallback.event.region;
    row["backend"] = fallback.event.backend;
    row["reason"] = static_cast<int>(fallback.event.reason);
    row["reason_name"] = std::string(reason_name(fallback.event.reason));
    row["message"] = to_shown(fallback.event.message);
    list.append(row);
  }
  return list;
}

void add_done_callback(const Ticket& self, nb::object function) {
  const auto callback = std::make_shared<SharedObject>(std::move(function));
  self.on_done([callback](const Ticket& ticket) {
    GilHeld held;
    const nb::object given = nb::cast(ticket);
    const nb::object result =
        nb::steal(run_python([&] { return PyObject_CallFunctionObjArgs(callback->pointer, given.ptr(), nullptr); }));
    if (!result.is_valid()) PyErr_WriteUnraisable(callback->pointer);
  });
}

void bind_ticket(nb::module_& m) {
  nb::class_<Ticket>(m, "PipelineTicket", "A request of a pipeline.")
      .def_prop_ro("number", &Ticket::number)
      .def("done", &Ticket::is_done)
      .def("add_done_callback", &add_done_callback, nb::arg("function"))
      .def(
          "wait",
          [](const Ticket& self, std::optional<double> timeout) {
            return self.is_done() || wait_in_slices(timeout, [&](Until until) { return self.wait(until); });
          },
          nb::arg("timeout").none())
      .def_prop_ro("failure", [](const Ticket& self) { return failure_of(self.failure()); })
      .def("results",
           [](const Ticket& self, const std::vector<bool>& as_numpy) {
             const std::vector<Value> values = self.results();
             nb::list list;
             for (size_t i = 0; i < values.size(); ++i) list.append(to_result(values[i], as_numpy.at(i)));
             return list;
           })
      .def("cancel", [](const Ticket& self) {
        GilReleased released;
        return self.cancel();
      });
}

void bind_batch(nb::module_& m) {
  nb::class_<Batch>(m, "PipelineBatch", "How a stage takes several requests in one call.")
      .def(
          "__init__",
          [](Batch* self, int32_t max_batch, double max_delay, bool retry_alone, bool any_rows,
             const std::vector<std::pair<int32_t, std::string>>& others) {
            new (self) Batch{.max_batch = max_batch,
                             .max_delay_seconds = max_delay,
                             .retry_alone = retry_alone,
                             .any_rows = any_rows};
            for (const auto& [model, program] : others) self->others.push_back({.model = model, .program = program});
          },
          nb::arg("max_batch"), nb::arg("max_delay"), nb::arg("retry_alone"), nb::arg("any_rows"), nb::arg("others"))
      .def_ro("max_batch", &Batch::max_batch)
      .def_ro("max_delay", &Batch::max_delay_seconds)
      .def_ro("retry_alone", &Batch::retry_alone)
      .def_ro("any_rows", &Batch::any_rows);
  m.attr("MOST_IN_BATCH") = artifact::kMostInBatch;
  m.attr("MOST_REPLICAS") = artifact::kMostReplicas;
}

void bind_stages(nb::module_& m) {
  nb::class_<StageCode>(m, "StageCode", "What a stage of a pipeline computes.")
      .def_prop_ro("inputs", [](const StageCode& self) { return from_ports(self.inputs()); })
      .def_prop_ro("outputs", [](const StageCode& self) { return from_ports(self.outputs()); })
      .def_prop_ro("most_in_batch", &StageCode::most_in_batch);
  m.def("check_named_once", &runtime::check_named_once, nb::arg("cpus"), nb::arg("owner"));
  m.def("executor_stage", &make_executor_stage, nb::arg("executor"));
  m.def("batch_executor_stage", &make_batch_executor_stage, nb::arg("executors"), nb::arg("any_rows"));
  m.def("function_stage", &function_stage, nb::arg("function"), nb::arg("inputs"), nb::arg("outputs"),
        nb::arg("batch").none());
  bind_batch(m);
  bind_process_stages(m);
}

void bind_stage_plan(nb::module_& m) {
  nb::class_<artifact::PipelineStage>(m, "PipelineStage", "A stage in the plan of a pipeline.")
      .def(
          "__init__",
          [](artifact::PipelineStage* self, std::string name, std::string backend, int32_t model, std::string program,
             std::string function, const std::vector<PortSpec>& inputs, const std::vector<PortSpec>& outputs,
             const std::vector<SourceSpec>& sources, int32_t group, int32_t replicas, int32_t threads,
             double time_limit, std::optional<Batch> batch, const std::string& isolation, bool is_pure) {
            new (self)
                artifact::PipelineStage{.name = std::move(name),
                                        .backend = std::move(backend),
                                        .model = model,
                                        .program = std::move(program),
                                        .function = std::move(function),
                                        .inputs = to_ports(inputs),
                                        .outputs = to_ports(outputs),
                                        .sources = {},
                                        .group = group,
                                        .replicas = replicas,
                                        .threads = threads,
                                        .time_limit_seconds = time_limit,
                                        .batch = std::move(batch),
                                        .isolation = isolation == "process" ? artifact::PipelineIsolation::process
                                                                            : artifact::PipelineIsolation::thread,
                                        .is_pure = is_pure};
            for (const SourceSpec& source : sources) self->sources.push_back(to_source(source));
          },
          nb::arg("name"), nb::arg("backend"), nb::arg("model"), nb::arg("program"), nb::arg("function"),
          nb::arg("inputs"), nb::arg("outputs"), nb::arg("sources"), nb::arg("group"), nb::arg("replicas"),
          nb::arg("threads"), nb::arg("time_limit"), nb::arg("batch").none(), nb::arg("isolation"), nb::arg("is_pure"))
      .def_ro("name", &artifact::PipelineStage::name)
      .def_ro("backend", &artifact::PipelineStage::backend)
      .def_ro("model", &artifact::PipelineStage::model)
      .def_ro("program", &artifact::PipelineStage::program)
      .def_ro("function", &artifact::PipelineStage::function)
      .def_prop_ro("inputs", [](const artifact::PipelineStage& self) { return from_ports(self.inputs); })
      .def_prop_ro("outputs", [](const artifact::PipelineStage& self) { return from_ports(self.outputs); })
      .def_prop_ro("sources",
                   [](const artifact::PipelineStage& self) {
                     std::vector<SourceSpec> sources;
                     for (const Source& source : self.sources) sources.push_back(from_source(source));
                     return sources;
                   })
      .def_ro("group", &artifact::PipelineStage::group)
      .def_ro("replicas", &artifact::PipelineStage::replicas)
      .def_ro("threads", &artifact::PipelineStage::threads)
      .def_ro("time_limit", &artifact::PipelineStage::time_limit_seconds)
      .def_ro("batch", &artifact::PipelineStage::batch)
      .def_prop_ro("isolation",
                   [](const artifact::PipelineStage& self) {
                     return self.isolation == artifact::PipelineIsolation::process ? "process" : "thread";
                   })
      .def_ro("is_pure", &artifact::PipelineStage::is_pure);
}

// Sets where the groups of a plan are, by the texts of simulated devices; "" is the CPU.
void set_devices([[maybe_unused]] artifact::PipelinePlan& plan, const std::vector<std::string>& texts) {
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].empty()) continue;
#ifdef HEADRACE_PYTHON_RUNTIME_ALONE
    refuse("a simulated device");
#else
    plan.groups.at(i).location = devices::plan_location(devices::parse_simulated_device(texts[i]));
#endif
  }
}

// Returns the device of a group as set_devices takes it; another place as the plan has it.
std::string device_text(const artifact::PipelineGroup& group) {
  if (group.location == artifact::Location{}) return "";
#ifndef HEADRACE_PYTHON_RUNTIME_ALONE
  return devices::place_text(group.location);
#else
  return to_string(group.location);
#endif
}

using Groups = std::vector<std::pair<std::string, std::vector<int32_t>>>;

void bind_plan(nb::module_& m) {
  using artifact::PipelinePlan;
  nb::class_<PipelinePlan>(m, "PipelinePlan", "The plan of a pipeline, as data.")
      .def(
          "__init__",
          [](PipelinePlan* self, const std::vector<PortSpec>& inputs, std::vector<artifact::PipelineStage> stages,
             const std::vector<std::pair<std::string, SourceSpec>>& outputs,
             const std::vector<std::pair<std::string, PortSpec>>& params, const Groups& groups,
             const std::vector<std::string>& devices, int32_t max_inflight) {
            new (self) PipelinePlan{};
            self->inputs = to_ports(inputs);
            self->stages = std::move(stages);
            for (const auto& [name, source] : outputs)
              self->outputs.push_back({.name = name, .source = to_source(source)});
            for (const auto& [group, port] : params) self->params.push_back({.group = group, .port = to_port(port)});
            for (const auto& [name, cpus] : groups) self->groups.push_back({.name = name, .cpus = cpus});
            set_devices(*self, devices);
            self->max_inflight = max_inflight;
          },
          nb::arg("inputs"), nb::arg("stages"), nb::arg("outputs"), nb::arg("params"), nb::arg("groups"),
          nb::arg("devices"), nb::arg("max_inflight"))
      .def_prop_ro("inputs", [](const PipelinePlan& self) { return from_ports(self.inputs); })
      .def_ro("stages", &PipelinePlan::stages)
      .def_prop_ro("outputs",
                   [](const PipelinePlan& self) {
                     std::vector<std::pair<std::string, SourceSpec>> outputs;
                     for (const artifact::PipelineOutput& output : self.outputs)
                       outputs.emplace_back(output.name, from_source(output.source));
                     return outputs;
                   })
      .def_prop_ro("params",
                   [](const PipelinePlan& self) {
                     std::vector<std::tuple<std::string, PortSpec, bool>> params;
                     for (const artifact::PipelineParam& param : self.params)
                       params.emplace_back(param.group, from_port(param.port), param.weight >= 0);
                     return params;
                   })
      .def_prop_ro("groups",
                   [](const PipelinePlan& self) {
                     Groups groups;
                     for (const artifact::PipelineGroup& group : self.groups)
                       groups.emplace_back(group.name, group.cpus);
                     return groups;
                   })
      .def_prop_ro("devices",
                   [](const PipelinePlan& self) {
                     std::vector<std::string> texts;
                     for (const artifact::PipelineGroup& group : self.groups) texts.push_back(device_text(group));
                     return texts;
                   })
      .def_prop_ro("models",
                   [](const PipelinePlan& self) {
                     std::vector<std::string> names;
                     for (const artifact::PipelineModel& model : self.models) names.push_back(model.name);
                     return names;
                   })
      .def_ro("max_inflight", &PipelinePlan::max_inflight);
}

// Options of a running pipeline, as Python checked them.
PipelineOptions make_options(const std::string& when_full, uint64_t failures_in_row, double probe_seconds,
                             double stop_seconds, size_t max_unread, bool warms_up, bool starts) {
  return {.max_unread = max_unread,
          .when_full = when_full == "reject"        ? WhenFull::reject
                       : when_full == "drop_oldest" ? WhenFull::drop_oldest
                                                    : WhenFull::wait,
          .failures_in_row = failures_in_row,
          .probe_seconds = probe_seconds,
          .stop_seconds = stop_seconds,
          .warms_up = warms_up,
          .starts = starts};
}

void bind_making(nb::module_& m) {
  nb::class_<PipelineOptions>(m, "PipelineOptions", "How a pipeline runs.");
  m.def("make_pipeline_options", &make_options, nb::arg("when_full"), nb::arg("failures_in_row"),
        nb::arg("probe_seconds"), nb::arg("stop_seconds"), nb::arg("max_unread"), nb::arg("warms_up"),
        nb::arg("starts"));
  m.def(
      "make_pipeline",
      [](const artifact::PipelinePlan& plan, const Codes& codes, PipelineOptions options) {
        options.max_inflight = static_cast<size_t>(std::max(plan.max_inflight, 0));
        return make_pipeline(plan, codes, options);
      },
      nb::arg("plan"), nb::arg("codes"), nb::arg("options"));
  m.def(
      "open_pipeline",
      [](const std::string& path, const nb::dict& functions, const nb::dict& registered,
         const nb::object& function_command, std::optional<size_t> max_inflight, bool is_pinned, bool falls_back,
         const PipelineOptions& options) {
        return open_pipeline(path, functions, registered, function_command, max_inflight, is_pinned,
                             fallback_of(falls_back), options);
      },
      nb::arg("path"), nb::arg("functions"), nb::arg("registered"), nb::arg("function_command"),
      nb::arg("max_inflight").none(), nb::arg("is_pinned"), nb::arg("falls_back"), nb::arg("options"));
  m.def("save_pipeline", &save, nb::arg("plan"), nb::arg("models"), nb::arg("first_values"), nb::arg("path"));
  m.attr("MOST_IN_FLIGHT") = artifact::kMostInFlight;
  m.def("read_pipeline_plan", &read_plan, nb::arg("path"));
#ifndef HEADRACE_PYTHON_RUNTIME_ALONE
  m.def(
      "simulated_device",
      [](const std::string& text) { return devices::to_string(devices::parse_simulated_device(text)); },
      nb::arg("text"), "The text of a simulated device in its usual form.");
#endif
}

}  // namespace

void bind_trace(nb::module_& m) {
  nb::class_<Trace>(m, "PipelineTrace", "What the stages of a pipeline did, and when.")
      .def_ro("overwritten", &Trace::overwritten)
      .def("__len__", [](const Trace& self) { return self.events.size(); })
      .def("save", &save_trace);
}

void bind_pipeline(nb::module_& m) {
  bind_stages(m);
  bind_stage_plan(m);
  bind_trace(m);
  bind_ticket(m);
  nb::class_<PythonPipeline>(m, "Pipeline", "Stages that work on a stream of requests at the same time.")
      .def("has_place",
           [](const PythonPipeline& self) {
             return !self.pipeline->waits_for_places() || self.pipeline->wait_for_place(Clock::now());
           })
      .def_prop_ro("waits_for_places", [](const PythonPipeline& self) { return self.pipeline->waits_for_places(); })
      .def("submit", &submit, nb::arg("inputs"), nb::arg("timeout").none(), nb::arg("deadline").none(),
           nb::arg("keeps_inputs"), nb::arg("is_pushed"))
      .def("next", &next, nb::arg("timeout").none(), nb::arg("in_order"))
      .def("start",
           [](PythonPipeline& self) -> nb::object {
             try {
               GilReleased released;
               self.pipeline->start();
             } catch (const RefusedError& refused) {
               return nb::make_tuple(refused.kind(), to_shown(refused.message()));
             }
             return nb::none();
           })
      .def_prop_ro("state", [](const PythonPipeline& self) { return state_name(self.pipeline->state()); })
      .def("set_params",
           [](PythonPipeline& self, const std::string& group, const std::map<std::string, NDArray>& values) {
             GilReleased released;
             return self.pipeline->set_params(group, values);
           })
      .def("reset",
           [](PythonPipeline& self) {
             GilReleased released;
             self.pipeline->reset();
           })
      .def(
          "drain",
          [](PythonPipeline& self, std::optional<double> timeout) {
            return wait_in_slices(timeout, [&](Until until) { return self.pipeline->drain(until); });
          },
          nb::arg("timeout").none())
      .def(
          "stop",
          [](PythonPipeline& self, std::optional<double> timeout) {
            std::vector<std::string> running;
            const Until end = until_of(timeout);
            wait_in_slices(timeout, [&](Until until) {
              const bool is_last = end.has_value() && *until >= *end;
              running = self.pipeline->stop(until, !is_last);
              return running.empty();
            });
            return running;
          },
          nb::arg("timeout").none())
      .def("metrics", &metrics_of)
      .def_prop_ro("fallbacks", &stage_fallbacks)
      .def("start_trace",
           [](PythonPipeline& self) {
             GilReleased released;
             self.pipeline->start_trace();
           })
      .def("trace",
           [](const PythonPipeline& self) {
             GilReleased released;
             return self.pipeline->trace();
           })
      .def("stop_trace",
           [](PythonPipeline& self) {
             GilReleased released;
             return self.pipeline->stop_trace();
           })
      .def_prop_ro("inputs", [](const PythonPipeline& self) { return from_ports(self.pipeline->spec().inputs); })
      .def_prop_ro("outputs",
                   [](const PythonPipeline& self) {
                     const PipelineSpec& spec = self.pipeline->spec();
                     std::vector<PortSpec> ports;
                     for (const OutputSpec& output : spec.outputs) {
                       ports.push_back(from_port(port_of(spec, output.source)));
                       std::get<0>(ports.back()) = output.name;
                     }
                     return ports;
                   })
      .def_prop_ro("max_inflight", [](const PythonPipeline& self) { return self.pipeline->options().max_inflight; });
  bind_plan(m);
  bind_making(m);
}

}  // namespace headrace::python
