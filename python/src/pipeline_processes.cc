// Stages in processes of their own, on both sides: those that a pipeline calls, and the process that is called.
#include "executors/pipeline/isolation/program_stage.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "pipeline_values.h"
#include "tools/stage_host/serve.h"

namespace headrace::python {

namespace {

using namespace executors::pipeline;
using isolation::ProcessOptions;

nb::object pickles() { return nb::module_::import_("headrace.pipeline._processes"); }

std::string to_bytes(const nb::object& bytes) {
  const auto held = nb::cast<nb::bytes>(bytes);
  return {held.c_str(), held.size()};
}

nb::object load(const std::string& bytes) { return pickles().attr("unpack")(nb::bytes(bytes.data(), bytes.size())); }

// Calls what runs Python, with the GIL.
template <typename F>
auto with_python(F call) {
  GilHeld held;
  try {
    return run_python(call);
  } catch (nb::python_error& error) {
    throw_foreign(error);
  }
}

// Pickles Python's objects and exceptions.
class PythonCodec final : public isolation::ObjectCodec {
 public:
  std::string pack(const Value& value) const override {
    const auto* boxed = value.as_node<PythonValueObj>();
    if (boxed == nullptr)
      throw_user_error("a {} cannot pass to a stage in a process of its own", kind_name(value.raw()));
    return with_python([&] { return to_bytes(pickles().attr("pack")(nb::handle(boxed->object->pointer))); });
  }
  Value unpack(const std::string& bytes) const override {
    return with_python([&] {
      Ref<PythonValueObj> boxed = make_object<PythonValueObj>();
      boxed->object = std::make_shared<SharedObject>(load(bytes));
      return Value(ObjectRef(boxed));
    });
  }
  std::string pack_error(const ErrorObj& error) const override {
    return with_python([&] {
      const nb::object exception = carried_exception(error);
      return exception.is_none() ? std::string() : to_bytes(pickles().attr("pack_error")(exception));
    });
  }
  void unpack_error(ErrorObj& error, const std::string& bytes) const override {
    with_python([&] {
      carry_exception(error, load(bytes));
      return true;
    });
  }
};

isolation::Codec codec() { return std::make_shared<PythonCodec>(); }

using Programs = std::vector<std::pair<std::string, std::string>>;  // paths and programs

std::shared_ptr<StageCode> process_program_stage(const Programs& programs, bool has_batch, bool any_rows,
                                                 int32_t threads, const std::vector<int32_t>& cpus, bool falls_back,
                                                 bool is_pure, double time_limit) {
  isolation::ProgramFiles chosen{.programs = {},
                                 .has_batch = has_batch,
                                 .any_rows = any_rows,
                                 .threads = threads,
                                 .cpus = cpus,
                                 .fallback = fallback_of(falls_back)};
  for (const auto& [path, program] : programs)
    chosen.programs.push_back({.file = std::make_shared<const Descriptor>(Descriptor::open(path).value_or_throw()),
                               .name = path,
                               .program = program});
  GilReleased released;
  return isolation::make_program_stage(chosen,
                                       {.is_pure = is_pure, .time_limit_seconds = time_limit, .codec = codec()});
}

std::shared_ptr<StageCode> process_function_stage(std::vector<std::string> words, bool is_pure, double time_limit) {
  GilReleased released;
  return isolation::make_process_stage({.words = std::move(words)},
                                       {.is_pure = is_pure, .time_limit_seconds = time_limit, .codec = codec()});
}

// Answers calls with the code that `make` returns, until the pipeline that started this process ends.
int serve_stage(nb::object make) {
  const auto shared = std::make_shared<SharedObject>(std::move(make));
  GilReleased released;
  return stage_host::serve(
      [&] {
        GilHeld held;
        try {
          const nb::object made = nb::steal(run_python([&] { return PyObject_CallNoArgs(shared->pointer); }));
          if (!made.is_valid()) throw nb::python_error();
          return nb::cast<std::shared_ptr<StageCode>>(made);
        } catch (nb::python_error& error) {
          throw_foreign(error);
        }
      },
      {.copies_inputs = true, .codec = codec()});
}

nb::list names_of(const std::vector<Port>& ports) {
  nb::list names;
  for (const Port& port : ports) names.append(nb::str(port.name().data(), port.name().size()));
  return names;
}

}  // namespace

std::shared_ptr<StageCode> make_process_stage(const artifact::PipelineStage& stage,
                                              const nb::object& function_command) {
  try {
    nb::object batch = nb::none();
    if (stage.batch.has_value())
      batch = nb::make_tuple(stage.batch->max_batch, stage.batch->max_delay_seconds, stage.batch->retry_alone,
                             stage.batch->any_rows);
    const nb::object words = function_command(nb::str(stage.function.data(), stage.function.size()),
                                              names_of(stage.inputs), names_of(stage.outputs), batch);
    return process_function_stage(nb::cast<std::vector<std::string>>(words), stage.is_pure, stage.time_limit_seconds);
  } catch (nb::python_error& error) {
    throw_foreign(error);
  }
}

void bind_process_stages(nb::module_& m) {
  m.def("process_program_stage", &process_program_stage, nb::arg("programs"), nb::arg("has_batch"), nb::arg("any_rows"),
        nb::arg("threads"), nb::arg("cpus"), nb::arg("falls_back"), nb::arg("is_pure"), nb::arg("time_limit"));
  m.def("process_function_stage", &process_function_stage, nb::arg("words"), nb::arg("is_pure"), nb::arg("time_limit"));
  m.def("serve_stage", &serve_stage, nb::arg("make"));
}

}  // namespace headrace::python
