#include "artifact/check_manifest.h"

#include <algorithm>
#include <set>

#include "artifact/check_pipeline.h"
#include "artifact/tensor_extent.h"
#include "base/error.h"
#include "tensor/strides.h"

namespace headrace::artifact {
namespace {

template <typename... Args>
[[noreturn]] void broken(const std::string& path, fmt::format_string<Args...> format, Args&&... args) {
  throw_user_error("the manifest is malformed: {} {}", path, fmt::format(format, std::forward<Args>(args)...));
}

void check_multiple(const std::string& path, int64_t number) {
  if (number < 0 || number % HR_ALIGNMENT != 0)
    broken(path, "is {}, which is not a multiple of {} from 0 up", number, HR_ALIGNMENT);
}

void check_hash(const std::string& path, const ContentHash& hash) {
  const bool is_hex =
      std::all_of(hash.begin(), hash.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  if (hash.size() != 32 || !is_hex) broken(path, "is '{}', not 32 hexadecimal digits", hash);
}

// Checks 0 <= offset, 0 <= nbytes, offset + nbytes <= limit.
void check_range(const std::string& path, int64_t offset, int64_t nbytes, int64_t limit) {
  if (offset < 0 || nbytes < 0 || offset > limit || nbytes > limit - offset)
    broken(path, "covers {} bytes at {}, outside the {} bytes there are", nbytes, offset, limit);
}

int64_t checked_nbytes(const std::string& path, DataType dtype, const std::vector<int64_t>& shape) {
  const std::optional<int64_t> nbytes = tensor_nbytes(dtype, shape);
  if (!nbytes) broken(path, "has an impossible shape [{}]", fmt::join(shape, ", "));
  return *nbytes;
}

void check_tensor_specs(const std::string& path, const std::vector<TensorSpec>& specs) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < specs.size(); ++i) {
    const std::string at = fmt::format("{}[{}]", path, i);
    if (specs[i].name.empty()) broken(at, "has no name");
    if (!names.insert(specs[i].name).second) broken(at, "has the name '{}' of an earlier one", specs[i].name);
    checked_nbytes(at, specs[i].dtype, specs[i].shape);
    if (!specs[i].dims.empty() && specs[i].dims.size() != specs[i].shape.size())
      broken(at + ".dims", "has {} names, the shape has {} dimensions", specs[i].dims.size(), specs[i].shape.size());
  }
}

void check_arenas(const std::string& path, const std::vector<Arena>& arenas) {
  int64_t left = kMaxTensorBytes;
  for (size_t i = 0; i < arenas.size(); ++i) {
    const std::string at = fmt::format("{}[{}]", path, i);
    if (arenas[i].nbytes < 0 || arenas[i].nbytes > left)
      broken(at + ".nbytes", "is {}, outside 0 .. {}", arenas[i].nbytes, left);
    left -= arenas[i].nbytes;
    for (size_t k = 0; k < i; ++k) {
      if (arenas[k].location == arenas[i].location)
        broken(at + ".location", "is {}, as is an earlier one's", to_string(arenas[i].location));
    }
  }
}

void check_memory(const std::string& path, const MemoryPlan& memory) {
  check_arenas(path + ".arenas", memory.arenas);
  check_multiple(path + ".workspace_bytes", memory.workspace_bytes);
  if (memory.workspace_bytes > kMaxTensorBytes)
    broken(path + ".workspace_bytes", "is {}, above {}", memory.workspace_bytes, kMaxTensorBytes);
  for (size_t i = 0; i < memory.storages.size(); ++i) {
    const Storage& storage = memory.storages[i];
    const std::string at = fmt::format("{}.storages[{}]", path, i);
    if (storage.arena < 0 || storage.arena >= static_cast<int64_t>(memory.arenas.size()))
      broken(at + ".arena", "is {}, there are {} arenas", storage.arena, memory.arenas.size());
    check_multiple(at + ".offset", storage.offset);
    check_range(at, storage.offset, storage.nbytes, memory.arenas[static_cast<size_t>(storage.arena)].nbytes);
  }
}

// An entry's base: how many bytes it has, and where they lie. Weights lie where their entries say.
struct EntryBase {
  int64_t nbytes = 0;
  Location location;
};

EntryBase base_of(const TensorSpec& spec) { return {tensor_nbytes(spec.dtype, spec.shape).value(), spec.location}; }

EntryBase base_of(const std::string& path, const Manifest& manifest, const Program& program, const Entry& entry) {
  const auto at = [&](const auto& bases, std::string_view what) -> const auto& {
    if (entry.index < 0 || entry.index >= static_cast<int64_t>(bases.size()))
      broken(path + ".index", "is {}, there are {} {}", entry.index, bases.size(), what);
    return bases[static_cast<size_t>(entry.index)];
  };
  switch (entry.place) {
    case Place::kStorage: {
      const Storage& storage = at(program.memory.storages, "storages");
      return {storage.nbytes, program.memory.arenas[static_cast<size_t>(storage.arena)].location};
    }
    case Place::kWeight:
      return {at(manifest.weights, "weights").nbytes, entry.location};
    case Place::kInput:
      return base_of(at(program.inputs, "inputs"));
    case Place::kOutput:
      return base_of(at(program.outputs, "outputs"));
  }
  throw InternalError("an entry of a manifest is in no place");
}

void check_entry(const std::string& path, const Manifest& manifest, const Program& program, const Entry& entry) {
  const EntryBase base = base_of(path, manifest, program, entry);
  const std::optional<int64_t> nbytes = view_nbytes(entry.dtype, entry.shape, entry.strides);
  if (!nbytes) {
    broken(path, "has impossible extents: shape [{}], strides [{}]", fmt::join(entry.shape, ", "),
           fmt::join(entry.strides, ", "));
  }
  check_range(path, entry.byte_offset, *nbytes, base.nbytes);
  if (entry.location != base.location)
    broken(path + ".location", "is {}, and its base lies at {}", to_string(entry.location), to_string(base.location));
  const auto alignment = static_cast<int64_t>(entry.dtype.element().bytes());
  if (entry.byte_offset % alignment != 0)
    broken(path + ".byte_offset", "is {}, not aligned to its element of {} bytes", entry.byte_offset, alignment);
}

void check_copy(const std::string& path, const GraphProgram& graph, const Step& step) {
  if (step.args.size() != 2 || step.num_outputs != 1) broken(path, "is a copy without exactly two arguments");
  const Entry& src = graph.entries[static_cast<size_t>(step.args[0])];
  const Entry& dst = graph.entries[static_cast<size_t>(step.args[1])];
  if (src.dtype != dst.dtype || src.shape != dst.shape)
    broken(path, "copies between entries of different dtype or shape");
  for (const Entry* entry : {&src, &dst}) {
    if (!entry->strides.empty() && !is_dense(entry->shape, entry->strides))
      broken(path, "copies an entry that is not contiguous");
  }
}

// Checks that the native form of a region takes and gives the tensors of a step that runs the region.
void check_native_form(const std::string& path, const GraphProgram& graph, const Step& step, const Program& native) {
  const size_t num_inputs = native.inputs.size(), count = num_inputs + native.outputs.size();
  if (step.args.size() != count || static_cast<size_t>(step.num_outputs) != native.outputs.size())
    broken(path + ".args", "has {} inputs and {} outputs, the native form '{}' has {} and {}",
           step.args.size() - static_cast<size_t>(step.num_outputs), step.num_outputs, native.name, num_inputs,
           native.outputs.size());
  for (size_t i = 0; i < count; ++i) {
    const TensorSpec& spec = i < num_inputs ? native.inputs[i] : native.outputs[i - num_inputs];
    const Entry& entry = graph.entries[static_cast<size_t>(step.args[i])];
    if (entry.dtype != spec.dtype || entry.shape != spec.shape)
      broken(fmt::format("{}.args[{}]", path, i), "is a {} of shape [{}], the native form '{}' has {} of [{}]",
             entry.dtype, fmt::join(entry.shape, ", "), native.name, spec.dtype, fmt::join(spec.shape, ", "));
    if (!entry.strides.empty() && !is_dense(entry.shape, entry.strides))
      broken(fmt::format("{}.args[{}]", path, i), "is not contiguous, as the tensors of regions are");
  }
}

void check_region_call(const std::string& path, const Manifest& manifest, const Program& program, const Step& step) {
  const std::string& name = callee_of(step.action);
  const Region* region = find_region(manifest, name);
  if (region == nullptr) broken(path + ".callee", "is '{}', which is not a region of the file", name);
  if (!program.region.empty()) broken(path, "runs a region within the native form of one");
  const Program* native = region->fallback.empty() ? nullptr : find_program(manifest, region->fallback);
  if (native != nullptr) check_native_form(path, program.graph, step, *native);
}

void check_step(const std::string& path, const GraphProgram& graph, const Step& step) {
  for (size_t i = 0; i < step.args.size(); ++i) {
    if (step.args[i] < 0 || step.args[i] >= static_cast<int64_t>(graph.entries.size()))
      broken(fmt::format("{}.args[{}]", path, i), "is {}, there are {} entries", step.args[i], graph.entries.size());
  }
  const auto count = static_cast<int64_t>(step.args.size());
  if (step.num_outputs < 1 || step.num_outputs > count)
    broken(path + ".num_outputs", "is {}, outside 1 .. {}", step.num_outputs, count);
  for (size_t i = static_cast<size_t>(count - step.num_outputs); i < step.args.size(); ++i) {
    const Place place = graph.entries[static_cast<size_t>(step.args[i])].place;
    if (place == Place::kWeight || place == Place::kInput)
      broken(fmt::format("{}.args[{}]", path, i), "writes to a weight or an input");
  }
  if (std::holds_alternative<CopyStep>(step.action)) return check_copy(path, graph, step);
  if (callee_of(step.action).empty()) broken(path + ".callee", "is empty");
}

void check_outputs_are_written(const std::string& path, const Program& program) {
  std::vector<bool> written(program.outputs.size());
  for (const Step& step : program.graph.steps) {
    for (size_t i = step.args.size() - static_cast<size_t>(step.num_outputs); i < step.args.size(); ++i) {
      const Entry& entry = program.graph.entries[static_cast<size_t>(step.args[i])];
      if (entry.place == Place::kOutput) written[static_cast<size_t>(entry.index)] = true;
    }
  }
  for (size_t i = 0; i < written.size(); ++i) {
    if (!written[i]) broken(fmt::format("{}.outputs[{}]", path, i), "is written by no step");
  }
}

void check_bounded_outputs(const std::string& path, const Program& program) {
  std::set<int64_t> outputs;
  for (size_t i = 0; i < program.bounded_outputs.size(); ++i) {
    const BoundedOutput& bounded = program.bounded_outputs[i];
    const std::string at = fmt::format("{}.bounded_outputs[{}]", path, i);
    if (bounded.output < 0 || bounded.output >= static_cast<int64_t>(program.outputs.size()))
      broken(at + ".output", "is {}, there are {} outputs", bounded.output, program.outputs.size());
    if (!outputs.insert(bounded.output).second) broken(at + ".output", "is {}, as is an earlier one's", bounded.output);
    const TensorSpec& spec = program.outputs[static_cast<size_t>(bounded.output)];
    if (bounded.axis < 0 || bounded.axis >= static_cast<int64_t>(spec.shape.size()))
      broken(at + ".axis", "is {}, the output has {} dimensions", bounded.axis, spec.shape.size());
    if (bounded.extent < 0 || bounded.extent >= static_cast<int64_t>(program.graph.entries.size()))
      broken(at + ".extent", "is {}, there are {} entries", bounded.extent, program.graph.entries.size());
    const Entry& extent = program.graph.entries[static_cast<size_t>(bounded.extent)];
    const bool is_one = std::all_of(extent.shape.begin(), extent.shape.end(), [](int64_t dim) { return dim == 1; });
    if (extent.dtype != DataType::int_(64) || !is_one)
      broken(at + ".extent", "is a {} of shape [{}], not an int64 of one element", extent.dtype,
             fmt::join(extent.shape, ", "));
  }
}

void check_bound_params(const std::string& path, const Program& program) {
  std::set<std::string_view> names;
  for (const TensorSpec& input : program.inputs) names.insert(input.name);
  for (size_t i = 0; i < program.bound_params.size(); ++i) {
    const auto& [spec, hash] = program.bound_params[i];
    const std::string at = fmt::format("{}.bound_params[{}]", path, i);
    if (!names.insert(spec.name).second) broken(at, "has the name '{}' of an input or of an earlier one", spec.name);
    checked_nbytes(at, spec.dtype, spec.shape);
    check_hash(at + ".hash", hash);
  }
}

void check_native_form_of_region(const std::string& path, const Manifest& manifest, const Program& program) {
  const Region* region = find_region(manifest, program.region);
  if (region == nullptr || region->fallback != program.name)
    broken(path + ".region", "is '{}', which is not a region with this native form", program.region);
  if (!program.bounded_outputs.empty()) broken(path + ".bounded_outputs", "is not empty, in a region's native form");
}

void check_program(const std::string& path, const Manifest& manifest, const Program& program) {
  if (program.kernel_abi < HR_KERNEL_ABI_OLDEST || program.kernel_abi > HR_KERNEL_ABI_VERSION) {
    throw_user_error(
        "program '{}' was compiled for version {} of the kernel ABI, this runtime has {} to {}; use the runtime that "
        "belongs to the compiler, or compile the model again",
        program.name, program.kernel_abi, HR_KERNEL_ABI_OLDEST, HR_KERNEL_ABI_VERSION);
  }
  check_tensor_specs(path + ".inputs", program.inputs);
  check_tensor_specs(path + ".outputs", program.outputs);
  check_memory(path + ".memory", program.memory);
  const GraphProgram& graph = program.graph;
  for (size_t i = 0; i < graph.entries.size(); ++i)
    check_entry(fmt::format("{}.graph.entries[{}]", path, i), manifest, program, graph.entries[i]);
  for (size_t i = 0; i < graph.steps.size(); ++i) {
    const std::string at = fmt::format("{}.graph.steps[{}]", path, i);
    check_step(at, graph, graph.steps[i]);
    if (std::holds_alternative<RegionCall>(graph.steps[i].action))
      check_region_call(at, manifest, program, graph.steps[i]);
  }
  check_outputs_are_written(path, program);
  check_bounded_outputs(path, program);
  check_bound_params(path, program);
}

void check_side_file(const SideFile& file) {
  const bool is_plain = !file.name.empty() && file.name.find('/') == std::string::npos && file.name != "." &&
                        file.name != ".." && file.name.find('\0') == std::string::npos;
  if (!is_plain) broken("side_file.name", "is '{}', not a plain file name", file.name);
  check_hash("side_file.hash", file.hash);
  if (file.nbytes < 0) broken("side_file.nbytes", "is {}", file.nbytes);
}

void check_weight(const std::string& path, const Manifest& manifest, const Weight& weight) {
  check_hash(path + ".hash", weight.hash);
  check_multiple(path + ".offset", weight.offset);
  if (const int64_t nbytes = checked_nbytes(path, weight.dtype, weight.shape); weight.nbytes != nbytes)
    broken(path + ".nbytes", "is {}, its dtype and shape need {}", weight.nbytes, nbytes);
  const int64_t limit = manifest.side_file ? manifest.side_file->nbytes : INT64_MAX;
  check_range(path, weight.offset, weight.nbytes, limit);
}

void check_weights(const std::string& path, const Manifest& manifest, const std::vector<int64_t>& weights) {
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] < 0 || weights[i] >= static_cast<int64_t>(manifest.weights.size()))
      broken(fmt::format("{}[{}]", path, i), "is {}, there are {} weights", weights[i], manifest.weights.size());
  }
}

void check_module(const std::string& path, const Manifest& manifest, size_t index) {
  const ExternalModule& module = manifest.modules[index];
  if (module.loader.empty()) broken(path + ".loader", "is empty");
  if (!module.section.starts_with(kBlobSectionPrefix))
    broken(path + ".section", "is '{}', which does not start with '{}'", module.section, kBlobSectionPrefix);
  for (size_t i = 0; i < module.imports.size(); ++i) {
    if (module.imports[i] <= static_cast<int64_t>(index) ||
        module.imports[i] >= static_cast<int64_t>(manifest.modules.size()))
      broken(fmt::format("{}.imports[{}]", path, i), "is {}, which is not a later module", module.imports[i]);
  }
  check_weights(path + ".constants", manifest, module.constants);
}

void check_backends(const std::vector<Backend>& backends) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < backends.size(); ++i) {
    const std::string path = fmt::format("backends[{}].name", i);
    if (backends[i].name.empty()) broken(path, "is empty");
    if (!names.insert(backends[i].name).second) broken(path, "is '{}', as is an earlier one's", backends[i].name);
  }
}

void check_fallback(const std::string& path, const Manifest& manifest, const Region& region) {
  if (region.fallback.empty()) return;
  const Program* program = find_program(manifest, region.fallback);
  if (program == nullptr) broken(path + ".fallback", "is '{}', which is not a program of the file", region.fallback);
  if (program->region != region.name)
    broken(path + ".fallback", "is '{}', which is not the native form of '{}'", region.fallback, region.name);
}

void check_region(const std::string& path, const Manifest& manifest, const Region& region) {
  if (region.name.empty()) broken(path + ".name", "is empty");
  const auto is_its_backend = [&](const Backend& backend) { return backend.name == region.backend; };
  if (std::none_of(manifest.backends.begin(), manifest.backends.end(), is_its_backend))
    broken(path + ".backend", "is '{}', which is not one of the backends", region.backend);
  if (region.module < -1 || region.module >= static_cast<int64_t>(manifest.modules.size()))
    broken(path + ".module", "is {}, there are {} modules", region.module, manifest.modules.size());
  if (region.module >= 0 && !region.symbol.empty()) broken(path + ".module", "is set, and so is the symbol");
  check_fallback(path, manifest, region);
  check_weights(path + ".body_weights", manifest, region.body_weights);
}

void check_programs(const Manifest& manifest) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < manifest.programs.size(); ++i) {
    const std::string path = fmt::format("programs[{}]", i);
    const std::string& name = manifest.programs[i].name;
    if (name.empty()) broken(path + ".name", "is empty");
    if (!names.insert(name).second) broken(path + ".name", "is '{}', as is an earlier one's", name);
    check_program(path, manifest, manifest.programs[i]);
  }
}

void check_regions(const Manifest& manifest) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < manifest.regions.size(); ++i) {
    const std::string path = fmt::format("regions[{}]", i);
    check_region(path, manifest, manifest.regions[i]);
    if (!names.insert(manifest.regions[i].name).second)
      broken(path + ".name", "is '{}', as is an earlier one's", manifest.regions[i].name);
  }
}

}  // namespace

void check_manifest(const Manifest& manifest) {
  if (manifest.default_threads < 0) broken("default_threads", "is {}", manifest.default_threads);
  if (manifest.programs.empty() && !manifest.pipeline) broken("programs", "is empty");
  if (manifest.side_file) check_side_file(*manifest.side_file);
  for (size_t i = 0; i < manifest.weights.size(); ++i)
    check_weight(fmt::format("weights[{}]", i), manifest, manifest.weights[i]);
  for (size_t i = 0; i < manifest.modules.size(); ++i) check_module(fmt::format("modules[{}]", i), manifest, i);
  check_programs(manifest);
  check_backends(manifest.backends);
  check_regions(manifest);
  for (size_t i = 0; i < manifest.programs.size(); ++i) {
    const Program& program = manifest.programs[i];
    if (!program.region.empty()) check_native_form_of_region(fmt::format("programs[{}]", i), manifest, program);
  }
  if (manifest.pipeline) check_pipeline(*manifest.pipeline, manifest);
}

}  // namespace headrace::artifact
