#include "artifact/manifest_json.h"

#include <algorithm>
#include <array>
#include <concepts>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "artifact/check_manifest.h"
#include "base/error.h"
#include "base/json_fault.h"

namespace headrace::artifact {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormatName = "headrace-manifest";

constexpr std::array<std::pair<Place, std::string_view>, 4> kPlaceNames = {{
    {Place::kStorage, "storage"},
    {Place::kWeight, "weight"},
    {Place::kInput, "input"},
    {Place::kOutput, "output"},
}};

constexpr std::array<std::pair<PipelineSource::Kind, std::string_view>, 3> kSourceNames = {{
    {PipelineSource::Kind::input, "input"},
    {PipelineSource::Kind::stage, "stage"},
    {PipelineSource::Kind::param, "param"},
}};
constexpr std::array<std::pair<PipelineIsolation, std::string_view>, 2> kIsolationNames = {{
    {PipelineIsolation::thread, "thread"},
    {PipelineIsolation::process, "process"},
}};

template <typename Enum, size_t N>
std::string_view text_of(const std::array<std::pair<Enum, std::string_view>, N>& names, Enum value) {
  for (const auto& [known, name] : names) {
    if (known == value) return name;
  }
  throw InternalError("an enumerator of the manifest has no name");
}

// ---- writing

template <typename T, typename Write>
Json list_of(const std::vector<T>& values, Write write) {
  Json list = Json::array();
  for (const T& value : values) list.push_back(write(value));
  return list;
}

Json write_tensor_spec(const TensorSpec& spec) {
  return {{"name", spec.name},
          {"dtype", spec.dtype.to_string()},
          {"shape", spec.shape},
          {"location", to_string(spec.location)},
          {"dims", spec.dims}};
}

Json write_target(const Target& target) {
  return {{"triple", target.triple}, {"cpu", target.cpu}, {"features", target.features}};
}

Json write_arena(const Arena& arena) { return {{"location", to_string(arena.location)}, {"nbytes", arena.nbytes}}; }

Json write_storage(const Storage& storage) {
  return {{"arena", storage.arena}, {"offset", storage.offset}, {"nbytes", storage.nbytes}};
}

Json write_memory(const MemoryPlan& memory) {
  return {{"arenas", list_of(memory.arenas, write_arena)},
          {"workspace_bytes", memory.workspace_bytes},
          {"storages", list_of(memory.storages, write_storage)}};
}

Json write_entry(const Entry& entry) {
  return {{"place", text_of(kPlaceNames, entry.place)}, {"index", entry.index}, {"byte_offset", entry.byte_offset},
          {"dtype", entry.dtype.to_string()},           {"shape", entry.shape}, {"strides", entry.strides},
          {"location", to_string(entry.location)}};
}

Json write_step(const Step& step) {
  return {{"kind", name_of(step.action)},
          {"callee", callee_of(step.action)},
          {"args", step.args},
          {"num_outputs", step.num_outputs},
          {"op", step.op},
          {"operations", step.operations}};
}

Json write_placement(const Placement& placement) {
  return {{"op", placement.op},           {"kind", placement.kind},
          {"backend", placement.backend}, {"reason", static_cast<int>(placement.reason)},
          {"message", placement.message}, {"region", placement.region}};
}

Json write_note(const CompileNote& note) {
  return {{"pass", note.pass}, {"op", note.op}, {"reason", static_cast<int>(note.reason)}, {"message", note.message}};
}

Json write_bounded_output(const BoundedOutput& bounded) {
  return {{"output", bounded.output}, {"axis", bounded.axis}, {"extent", bounded.extent}};
}

Json write_bound_param(const BoundParam& param) {
  return {{"name", param.spec.name},
          {"dtype", param.spec.dtype.to_string()},
          {"shape", param.spec.shape},
          {"hash", param.hash}};
}

Json write_program(const Program& program) {
  const Json graph = {{"entries", list_of(program.graph.entries, write_entry)},
                      {"steps", list_of(program.graph.steps, write_step)}};
  return {{"name", program.name},
          {"region", program.region},
          {"inputs", list_of(program.inputs, write_tensor_spec)},
          {"outputs", list_of(program.outputs, write_tensor_spec)},
          {"bounded_outputs", list_of(program.bounded_outputs, write_bounded_output)},
          {"bound_params", list_of(program.bound_params, write_bound_param)},
          {"target", write_target(program.target)},
          {"compiler", program.compiler},
          {"kernel_abi", program.kernel_abi},
          {"memory", write_memory(program.memory)},
          {"graph", graph},
          {"placement", list_of(program.placement, write_placement)},
          {"notes", list_of(program.notes, write_note)}};
}

Json write_weight(const Weight& weight) {
  return {{"hash", weight.hash},
          {"offset", weight.offset},
          {"nbytes", weight.nbytes},
          {"dtype", weight.dtype.to_string()},
          {"shape", weight.shape}};
}

Json write_module(const ExternalModule& module) {
  return {{"loader", module.loader},
          {"section", module.section},
          {"imports", module.imports},
          {"constants", module.constants}};
}

Json write_side_file(const SideFile& file) {
  return {{"name", file.name}, {"nbytes", file.nbytes}, {"hash", file.hash}};
}

Json write_backend(const Backend& backend) { return {{"name", backend.name}, {"version", backend.version}}; }

Json write_region(const Region& region) {
  return {{"name", region.name},
          {"backend", region.backend},
          {"symbol", region.symbol},
          {"module", region.module},
          {"fallback", region.fallback},
          {"body", region.body},
          {"body_weights", region.body_weights}};
}

Json write_port(const PipelinePort& port) {
  return {{"name", port.name()},
          {"dtype", port.is_any ? Json() : Json(port.spec.dtype.to_string())},
          {"shape", port.spec.shape},
          {"location", to_string(port.spec.location)}};
}

Json write_source(const PipelineSource& source) {
  return {{"kind", text_of(kSourceNames, source.kind)}, {"index", source.index}, {"port", source.port}};
}

Json write_model(const PipelineModel& model) { return {{"name", model.name}, {"section", model.section}}; }

Json write_group(const PipelineGroup& group) {
  return {{"name", group.name}, {"location", to_string(group.location)}, {"cpus", group.cpus}};
}

Json write_batch(const PipelineBatch& batch) {
  const auto write_program = [](const PipelineProgram& program) {
    return Json{{"model", program.model}, {"program", program.program}};
  };
  return {{"max_batch", batch.max_batch},
          {"max_delay_seconds", batch.max_delay_seconds},
          {"retry_alone", batch.retry_alone},
          {"any_rows", batch.any_rows},
          {"others", list_of(batch.others, write_program)}};
}

Json write_stage(const PipelineStage& stage) {
  return {{"name", stage.name},
          {"backend", stage.backend},
          {"model", stage.model},
          {"program", stage.program},
          {"function", stage.function},
          {"inputs", list_of(stage.inputs, write_port)},
          {"outputs", list_of(stage.outputs, write_port)},
          {"sources", list_of(stage.sources, write_source)},
          {"group", stage.group},
          {"replicas", stage.replicas},
          {"threads", stage.threads},
          {"time_limit_seconds", stage.time_limit_seconds},
          {"batch", stage.batch ? write_batch(*stage.batch) : Json()},
          {"isolation", text_of(kIsolationNames, stage.isolation)},
          {"pure", stage.is_pure}};
}

Json write_output(const PipelineOutput& output) {
  return {{"name", output.name}, {"source", write_source(output.source)}};
}

Json write_param(const PipelineParam& param) {
  return {{"group", param.group}, {"port", write_port(param.port)}, {"weight", param.weight}};
}

Json write_pipeline(const PipelinePlan& plan) {
  return {{"models", list_of(plan.models, write_model)},
          {"groups", list_of(plan.groups, write_group)},
          {"inputs", list_of(plan.inputs, write_port)},
          {"stages", list_of(plan.stages, write_stage)},
          {"outputs", list_of(plan.outputs, write_output)},
          {"params", list_of(plan.params, write_param)},
          {"max_inflight", plan.max_inflight}};
}

// ---- reading

// A JSON value and the path that leads to it, for messages.
class Cursor {
 public:
  Cursor(const Json& value, std::string path) : value_(&value), path_(std::move(path)) {}

  [[noreturn]] void fail(const std::string& problem) const {
    throw_user_error("the manifest is malformed: {} {}", path_.empty() ? "the top" : path_, problem);
  }

  bool is_null() const { return value_->is_null(); }

  // Returns the fields of an object, in any order; exactly these.
  template <size_t N>
  std::array<Cursor, N> fields(const std::array<std::string_view, N>& names) const {
    if (!value_->is_object()) fail("is not an object");
    for (const auto& [key, unused] : value_->items()) {
      if (std::find(names.begin(), names.end(), key) == names.end())
        fail(fmt::format("has an unknown field '{}'", key));
    }
    return fields(names, std::make_index_sequence<N>());
  }

  template <std::integral T>
  T integer(T low = std::numeric_limits<T>::min(), T high = std::numeric_limits<T>::max()) const {
    if (!value_->is_number_integer()) fail("is not an integer");
    // A literal beyond int64_t is kept unsigned, where get<int64_t> would wrap.
    const bool too_large = value_->is_number_unsigned() &&
                           value_->get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    const auto number = too_large ? int64_t{0} : value_->get<int64_t>();
    if (too_large || std::cmp_less(number, low) || std::cmp_greater(number, high))
      fail(fmt::format("is {}, outside {} .. {}", value_->dump(), low, high));
    return static_cast<T>(number);
  }

  double number() const {
    if (!value_->is_number()) fail("is not a number");
    return value_->get<double>();
  }

  bool boolean() const {
    if (!value_->is_boolean()) fail("is neither true nor false");
    return value_->get<bool>();
  }

  std::string string() const {
    if (!value_->is_string()) fail("is not a string");
    return value_->get<std::string>();
  }

  DataType dtype() const {
    const std::string name = string();
    try {
      return DataType::parse(name);
    } catch (const UserError& error) {
      fail("is not a dtype: " + error.message());
    }
  }

  template <typename Enum, size_t N>
  Enum one_of(const std::array<std::pair<Enum, std::string_view>, N>& names) const {
    const std::string name = string();
    for (const auto& [value, known] : names) {
      if (known == name) return value;
    }
    fail(fmt::format("is '{}', which this version does not know", name));
  }

  template <typename Read>
  auto list(Read read) const {
    if (!value_->is_array()) fail("is not a list");
    std::vector<decltype(read(*this))> values;
    values.reserve(value_->size());
    for (size_t i = 0; i < value_->size(); ++i)
      values.push_back(read(Cursor((*value_)[i], fmt::format("{}[{}]", path_, i))));
    return values;
  }

 private:
  Cursor field(std::string_view name) const {
    const auto found = value_->find(name);
    if (found == value_->end()) fail(fmt::format("has no field '{}'", name));
    return {*found, path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name)};
  }

  template <size_t N, size_t... I>
  std::array<Cursor, N> fields(const std::array<std::string_view, N>& names, std::index_sequence<I...>) const {
    return {field(names[I])...};
  }

  const Json* value_;
  std::string path_;
};

template <typename... Names>
auto fields(const Cursor& cursor, Names... names) {
  return cursor.fields(std::array<std::string_view, sizeof...(Names)>{names...});
}

int64_t read_int64(const Cursor& cursor) { return cursor.integer<int64_t>(); }
int32_t read_int32(const Cursor& cursor) { return cursor.integer<int32_t>(); }
std::string read_string(const Cursor& cursor) { return cursor.string(); }

Location read_location(const Cursor& cursor) {
  const std::string text = cursor.string();
  std::optional<Location> location = parse_location(text);
  if (!location) cursor.fail(fmt::format("is '{}', which names no device as KIND:ID or KIND:ID/MEMORY", text));
  return *std::move(location);
}

hr_reason read_reason(const Cursor& cursor) { return static_cast<hr_reason>(cursor.integer<int32_t>(0)); }

TensorSpec read_tensor_spec(const Cursor& cursor) {
  const auto [name, dtype, shape, location, dims] = fields(cursor, "name", "dtype", "shape", "location", "dims");
  return {.name = name.string(),
          .dtype = dtype.dtype(),
          .shape = shape.list(read_int64),
          .location = read_location(location),
          .dims = dims.list(read_string)};
}

Target read_target(const Cursor& cursor) {
  const auto [triple, cpu, features] = fields(cursor, "triple", "cpu", "features");
  return {.triple = triple.string(), .cpu = cpu.string(), .features = features.list(read_string)};
}

Arena read_arena(const Cursor& cursor) {
  const auto [location, nbytes] = fields(cursor, "location", "nbytes");
  return {.location = read_location(location), .nbytes = read_int64(nbytes)};
}

Storage read_storage(const Cursor& cursor) {
  const auto [arena, offset, nbytes] = fields(cursor, "arena", "offset", "nbytes");
  return {.arena = read_int32(arena), .offset = read_int64(offset), .nbytes = read_int64(nbytes)};
}

MemoryPlan read_memory(const Cursor& cursor) {
  const auto [arenas, workspace, storages] = fields(cursor, "arenas", "workspace_bytes", "storages");
  return {.arenas = arenas.list(read_arena),
          .workspace_bytes = read_int64(workspace),
          .storages = storages.list(read_storage)};
}

Entry read_entry(const Cursor& cursor) {
  const auto [place, index, byte_offset, dtype, shape, strides, location] =
      fields(cursor, "place", "index", "byte_offset", "dtype", "shape", "strides", "location");
  return {.place = place.one_of(kPlaceNames),
          .index = read_int64(index),
          .byte_offset = read_int64(byte_offset),
          .dtype = dtype.dtype(),
          .shape = shape.list(read_int64),
          .strides = strides.list(read_int64),
          .location = read_location(location)};
}

StepAction read_action(const Cursor& kind, const Cursor& callee) {
  const std::string name = kind.string();
  std::optional<StepAction> action = make_step_action(name, callee.string());
  if (!action) kind.fail(fmt::format("is '{}', which this version does not know", name));
  if (callee_of(*action) != callee.string()) callee.fail(fmt::format("is set, and a {} calls nothing", name));
  return *std::move(action);
}

Step read_step(const Cursor& cursor) {
  const auto [kind, callee, args, num_outputs, op, operations] =
      fields(cursor, "kind", "callee", "args", "num_outputs", "op", "operations");
  return {.action = read_action(kind, callee),
          .args = args.list(read_int32),
          .num_outputs = read_int32(num_outputs),
          .op = op.string(),
          .operations = operations.integer<int64_t>(0)};
}

GraphProgram read_graph(const Cursor& cursor) {
  const auto [entries, steps] = fields(cursor, "entries", "steps");
  return {.entries = entries.list(read_entry), .steps = steps.list(read_step)};
}

Placement read_placement(const Cursor& cursor) {
  const auto [op, kind, backend, reason, message, region] =
      fields(cursor, "op", "kind", "backend", "reason", "message", "region");
  return {.op = op.string(),
          .kind = kind.string(),
          .backend = backend.string(),
          .reason = read_reason(reason),
          .message = message.string(),
          .region = region.string()};
}

CompileNote read_note(const Cursor& cursor) {
  const auto [pass, op, reason, message] = fields(cursor, "pass", "op", "reason", "message");
  return {.pass = pass.string(), .op = op.string(), .reason = read_reason(reason), .message = message.string()};
}

BoundedOutput read_bounded_output(const Cursor& cursor) {
  const auto [output, axis, extent] = fields(cursor, "output", "axis", "extent");
  return {.output = read_int64(output), .axis = read_int64(axis), .extent = read_int32(extent)};
}

BoundParam read_bound_param(const Cursor& cursor) {
  const auto [name, dtype, shape, hash] = fields(cursor, "name", "dtype", "shape", "hash");
  return {.spec = {.name = name.string(), .dtype = dtype.dtype(), .shape = shape.list(read_int64)},
          .hash = hash.string()};
}

Program read_program(const Cursor& cursor) {
  const auto [name, region, inputs, outputs, bounded_outputs, bound_params, target, compiler, kernel_abi, memory, graph,
              placement, notes] =
      fields(cursor, "name", "region", "inputs", "outputs", "bounded_outputs", "bound_params", "target", "compiler",
             "kernel_abi", "memory", "graph", "placement", "notes");
  return {.name = name.string(),
          .region = region.string(),
          .inputs = inputs.list(read_tensor_spec),
          .outputs = outputs.list(read_tensor_spec),
          .bounded_outputs = bounded_outputs.list(read_bounded_output),
          .bound_params = bound_params.list(read_bound_param),
          .target = read_target(target),
          .compiler = compiler.string(),
          .kernel_abi = read_int64(kernel_abi),
          .memory = read_memory(memory),
          .graph = read_graph(graph),
          .placement = placement.list(read_placement),
          .notes = notes.list(read_note)};
}

Weight read_weight(const Cursor& cursor) {
  const auto [hash, offset, nbytes, dtype, shape] = fields(cursor, "hash", "offset", "nbytes", "dtype", "shape");
  return {.hash = hash.string(),
          .offset = read_int64(offset),
          .nbytes = read_int64(nbytes),
          .dtype = dtype.dtype(),
          .shape = shape.list(read_int64)};
}

ExternalModule read_module(const Cursor& cursor) {
  const auto [loader, section, imports, constants] = fields(cursor, "loader", "section", "imports", "constants");
  return {.loader = loader.string(),
          .section = section.string(),
          .imports = imports.list(read_int32),
          .constants = constants.list(read_int64)};
}

std::optional<SideFile> read_side_file(const Cursor& cursor) {
  if (cursor.is_null()) return std::nullopt;
  const auto [name, nbytes, hash] = fields(cursor, "name", "nbytes", "hash");
  return SideFile{.name = name.string(), .nbytes = read_int64(nbytes), .hash = hash.string()};
}

// Reads the version first, because another version may have other fields.
int64_t read_version(const Json& json) {
  if (!json.is_object() || json.value("format", Json()) != kFormatName)
    throw_user_error("the manifest is malformed: its field 'format' is not '{}'", kFormatName);
  const auto version = json.find("version");
  if (version == json.end()) throw_user_error("the manifest is malformed: the top has no field 'version'");
  const auto number = Cursor(*version, "version").integer<int64_t>();
  if (number < kManifestOldest || number > kManifestVersion) {
    throw_user_error(
        "the manifest has version {}, this runtime reads {} to {}; use the runtime that belongs to the compiler, or "
        "compile the model again",
        number, kManifestOldest, kManifestVersion);
  }
  return number;
}

Backend read_backend(const Cursor& cursor) {
  const auto [name, version] = fields(cursor, "name", "version");
  return {.name = name.string(), .version = version.string()};
}

Region read_region(const Cursor& cursor) {
  const auto [name, backend, symbol, module, fallback, body, weights] =
      fields(cursor, "name", "backend", "symbol", "module", "fallback", "body", "body_weights");
  return {.name = name.string(),
          .backend = backend.string(),
          .symbol = symbol.string(),
          .module = read_int32(module),
          .fallback = fallback.string(),
          .body = body.string(),
          .body_weights = weights.list(read_int64)};
}

PipelinePort read_port(const Cursor& cursor) {
  const auto [name, dtype, shape, location] = fields(cursor, "name", "dtype", "shape", "location");
  return {.spec = {.name = name.string(),
                   .dtype = dtype.is_null() ? DataType() : dtype.dtype(),
                   .shape = shape.list(read_int64),
                   .location = read_location(location)},
          .is_any = dtype.is_null()};
}

PipelineSource read_source(const Cursor& cursor) {
  const auto [kind, index, port] = fields(cursor, "kind", "index", "port");
  return {.kind = kind.one_of(kSourceNames), .index = index.integer<size_t>(), .port = port.integer<size_t>()};
}

PipelineModel read_model(const Cursor& cursor) {
  const auto [name, section] = fields(cursor, "name", "section");
  return {.name = name.string(), .section = section.string()};
}

PipelineGroup read_group(const Cursor& cursor) {
  const auto [name, location, cpus] = fields(cursor, "name", "location", "cpus");
  return {.name = name.string(), .location = read_location(location), .cpus = cpus.list(read_int32)};
}

PipelineProgram read_pipeline_program(const Cursor& cursor) {
  const auto [model, program] = fields(cursor, "model", "program");
  return {.model = read_int32(model), .program = program.string()};
}

std::optional<PipelineBatch> read_batch(const Cursor& cursor) {
  if (cursor.is_null()) return std::nullopt;
  const auto [max_batch, max_delay, retry_alone, any_rows, others] =
      fields(cursor, "max_batch", "max_delay_seconds", "retry_alone", "any_rows", "others");
  return PipelineBatch{.max_batch = read_int32(max_batch),
                       .max_delay_seconds = max_delay.number(),
                       .retry_alone = retry_alone.boolean(),
                       .any_rows = any_rows.boolean(),
                       .others = others.list(read_pipeline_program)};
}

PipelineStage read_stage(const Cursor& cursor) {
  const auto [name, backend, model, program, function, inputs, outputs, sources, group, replicas, threads, time_limit,
              batch, isolation, pure] =
      fields(cursor, "name", "backend", "model", "program", "function", "inputs", "outputs", "sources", "group",
             "replicas", "threads", "time_limit_seconds", "batch", "isolation", "pure");
  return {.name = name.string(),
          .backend = backend.string(),
          .model = read_int32(model),
          .program = program.string(),
          .function = function.string(),
          .inputs = inputs.list(read_port),
          .outputs = outputs.list(read_port),
          .sources = sources.list(read_source),
          .group = read_int32(group),
          .replicas = read_int32(replicas),
          .threads = read_int32(threads),
          .time_limit_seconds = time_limit.number(),
          .batch = read_batch(batch),
          .isolation = isolation.one_of(kIsolationNames),
          .is_pure = pure.boolean()};
}

PipelineOutput read_output(const Cursor& cursor) {
  const auto [name, source] = fields(cursor, "name", "source");
  return {.name = name.string(), .source = read_source(source)};
}

PipelineParam read_param(const Cursor& cursor) {
  const auto [group, port, weight] = fields(cursor, "group", "port", "weight");
  return {.group = group.string(), .port = read_port(port), .weight = read_int64(weight)};
}

std::optional<PipelinePlan> read_pipeline(const Cursor& cursor) {
  if (cursor.is_null()) return std::nullopt;
  const auto [models, groups, inputs, stages, outputs, params, max_inflight] =
      fields(cursor, "models", "groups", "inputs", "stages", "outputs", "params", "max_inflight");
  return PipelinePlan{.models = models.list(read_model),
                      .groups = groups.list(read_group),
                      .inputs = inputs.list(read_port),
                      .stages = stages.list(read_stage),
                      .outputs = outputs.list(read_output),
                      .params = params.list(read_param),
                      .max_inflight = read_int32(max_inflight)};
}

// Calls `change` for each object in the list `field` of `owner`, where there is one; reading reports what has another
// form.
template <typename Change>
void for_each_object(Json& owner, const char* field, Change change) {
  if (!owner.is_object()) return;
  const auto list = owner.find(field);
  if (list == owner.end() || !list->is_array()) return;
  for (Json& item : *list) {
    if (item.is_object()) change(item);
  }
}

// Makes the one arena of the CPU, which versions before 5 had, the first of a list.
void upgrade_memory(Json& program) {
  const auto memory = program.find("memory");
  if (memory == program.end() || !memory->is_object()) return;
  if (const auto nbytes = memory->find("arena_bytes"); nbytes != memory->end()) {
    const Json arena = {{"location", to_string(Location())}, {"nbytes", *nbytes}};
    memory->emplace("arenas", Json::array({arena}));
    memory->erase("arena_bytes");
  }
  for_each_object(*memory, "storages", [](Json& storage) { storage.emplace("arena", 0); });
}

// Adds what version 5 brought: locations, arenas of several devices, regions, notes.
void upgrade_to_5(Json& program) {
  const auto add_location = [](Json& item) { item.emplace("location", to_string(Location())); };
  for (const char* field : {"inputs", "outputs"}) for_each_object(program, field, add_location);
  if (const auto graph = program.find("graph"); graph != program.end())
    for_each_object(*graph, "entries", add_location);
  for_each_object(program, "placement", [](Json& placement) {
    for (const char* field : {"kind", "region"}) placement.emplace(field, "");
  });
  program.emplace("notes", Json::array());
  program.emplace("region", "");
  upgrade_memory(program);
}

// Adds the fields that old versions lack: version 2 had no bounded outputs, versions 2 and 3 no bound parameters,
// versions 2 to 4 one device and one backend, versions 2 to 5 no constants of modules, versions 2 to 7 no operations,
// versions 5 to 8 no batches of stages, versions 5 to 9 no processes of stages, versions 2 to 10 no names of
// dimensions.
void upgrade(Json& json, int64_t version) {
  for_each_object(json, "programs", [&](Json& program) {
    const auto add_dims = [](Json& spec) { spec.emplace("dims", Json::array()); };
    for (const char* field : {"inputs", "outputs"}) {
      if (version < 11) for_each_object(program, field, add_dims);
    }
    if (version < 3) program.emplace("bounded_outputs", Json::array());
    if (version < 4) program.emplace("bound_params", Json::array());
    if (version < 5) upgrade_to_5(program);
    if (version >= 8) return;
    if (const auto graph = program.find("graph"); graph != program.end())
      for_each_object(*graph, "steps", [](Json& step) { step.emplace("operations", 0); });
  });
  if (const auto plan = json.find("pipeline"); version < 10 && plan != json.end())
    for_each_object(*plan, "stages", [&](Json& stage) {
      if (version < 9) stage.emplace("batch", nullptr);
      stage.emplace("isolation", text_of(kIsolationNames, PipelineIsolation::thread));
      stage.emplace("pure", false);
    });
  if (version < 6) for_each_object(json, "modules", [](Json& module) { module.emplace("constants", Json::array()); });
  if (version >= 5) return;
  for (const char* field : {"backends", "regions"}) json.emplace(field, Json::array());
  json.emplace("pipeline", nullptr);
}

// Parses, and refuses an object with two fields of one name (the library would keep the last).
Json parse_json(std::string_view text) {
  std::vector<std::vector<std::string>> open_objects;
  const auto on_event = [&](int, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::object_start) open_objects.emplace_back();
    if (event == Json::parse_event_t::object_end) open_objects.pop_back();
    if (event == Json::parse_event_t::key) {
      const std::string key = value.get<std::string>();
      std::vector<std::string>& keys = open_objects.back();
      if (std::find(keys.begin(), keys.end(), key) != keys.end())
        throw_user_error("the manifest is malformed: a field '{}' is there twice", key);
      keys.push_back(key);
    }
    return true;
  };
  try {
    return Json::parse(text, on_event);
  } catch (const Json::exception& error) {  // also numbers that no double holds
    throw_user_error("the manifest is not JSON text: {}", json_fault(error));
  }
}

}  // namespace

std::string write_manifest(const Manifest& manifest) {
  Json json = {{"format", kFormatName},
               {"version", kManifestVersion},
               {"programs", list_of(manifest.programs, write_program)},
               {"weights", list_of(manifest.weights, write_weight)},
               {"side_file", manifest.side_file ? write_side_file(*manifest.side_file) : Json()},
               {"modules", list_of(manifest.modules, write_module)},
               {"backends", list_of(manifest.backends, write_backend)},
               {"regions", list_of(manifest.regions, write_region)},
               {"pipeline", manifest.pipeline ? write_pipeline(*manifest.pipeline) : Json()},
               {"default_threads", manifest.default_threads}};
  // Names may come from files whose paths are not UTF-8.
  return json.dump(1, ' ', false, Json::error_handler_t::replace);
}

Manifest read_manifest(std::string_view text) {
  Json json = parse_json(text);
  upgrade(json, read_version(json));
  const auto [format, version, programs, weights, side_file, modules, backends, regions, pipeline, threads] =
      fields(Cursor(json, ""), "format", "version", "programs", "weights", "side_file", "modules", "backends",
             "regions", "pipeline", "default_threads");
  Manifest manifest{.programs = programs.list(read_program),
                    .weights = weights.list(read_weight),
                    .side_file = read_side_file(side_file),
                    .modules = modules.list(read_module),
                    .backends = backends.list(read_backend),
                    .regions = regions.list(read_region),
                    .pipeline = read_pipeline(pipeline),
                    .default_threads = read_int32(threads)};
  check_manifest(manifest);
  return manifest;
}

}  // namespace headrace::artifact
