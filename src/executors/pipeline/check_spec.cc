#include <algorithm>
#include <set>

#include "base/error.h"
#include "executors/pipeline/spec.h"
#include "runtime/processors.h"

namespace headrace::executors::pipeline {
namespace {

using Kind = Source::Kind;

void check_names(const std::vector<std::string>& names, std::string_view what) {
  std::set<std::string_view> seen;
  for (const std::string& name : names) {
    if (name.empty()) throw_user_error("{} has no name; give each one a name", what);
    if (!seen.insert(name).second) throw_user_error("two of the pipeline's {}s are called '{}'", what, name);
  }
}

template <typename Items, typename Name>
std::vector<std::string> names_of(const Items& items, Name name) {
  std::vector<std::string> names;
  for (const auto& item : items) names.push_back(name(item));
  return names;
}

void check_all_names(const PipelineSpec& spec) {
  check_names(names_of(spec.inputs, [](const Port& port) { return port.name(); }), "input");
  check_names(names_of(spec.stages, [](const StageSpec& stage) { return stage.name; }), "stage");
  check_names(names_of(spec.outputs, [](const OutputSpec& output) { return output.name; }), "output");
  check_names(names_of(spec.params,
                       [](const ParamSpec& param) { return fmt::format("{}.{}", param.group, param.port.name()); }),
              "parameter");
}

bool same_ports(const std::vector<Port>& a, const std::vector<Port>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Port& x, const Port& y) {
    return x.is_any == y.is_any && x.name() == y.name() && (x.is_any || fits(x, y));
  });
}

void check_replicas(const PipelineSpec& spec, const StageSpec& stage) {
  if (stage.replicas.size() > artifact::kMostReplicas)
    throw_user_error("stage '{}' has {} replicas; {} are the most", stage.name, stage.replicas.size(),
                     artifact::kMostReplicas);
  if (stage.replicas.empty() || stage.replicas[0] == nullptr) throw_user_error("stage '{}' has no code", stage.name);
  for (const auto& replica : stage.replicas) {
    if (replica == nullptr || !same_ports(replica->inputs(), stage.replicas[0]->inputs()) ||
        !same_ports(replica->outputs(), stage.replicas[0]->outputs()))
      throw_user_error("the replicas of stage '{}' differ in their inputs or outputs", stage.name);
  }
  if (stage.group >= spec.groups.size())
    throw_user_error("stage '{}' is in group {}, and there are {} groups", stage.name, stage.group, spec.groups.size());
  const bool is_alone = std::count_if(spec.stages.begin(), spec.stages.end(),
                                      [&](const StageSpec& other) { return other.group == stage.group; }) == 1;
  if (stage.replicas.size() > 1 && !is_alone)
    throw_user_error("stage '{}' has {} replicas, so it cannot share its group with other stages", stage.name,
                     stage.replicas.size());
  if (!(stage.time_limit_seconds >= 0 && stage.time_limit_seconds <= kMaxRegionTimeout))
    throw_user_error("the time limit of stage '{}' is {} seconds; it lies from 0 (none) to {}", stage.name,
                     stage.time_limit_seconds, kMaxRegionTimeout);
  if (stage.time_limit_seconds > 0 && stage.replicas[0]->process().has_value())
    throw_user_error(
        "stage '{}' runs in a process of its own and has a time limit of the pipeline; give the limit to the code "
        "(ProcessOptions::time_limit_seconds)",
        stage.name);
}

void check_batch(const StageSpec& stage) {
  if (!stage.batch.has_value()) {
    if (stage.replicas[0]->most_in_batch() > 0)
      throw_user_error("the code of stage '{}' takes several requests in one call; give the stage a batch", stage.name);
    return;
  }
  const Batch& batch = *stage.batch;
  if (batch.max_batch < 1 || batch.max_batch > artifact::kMostInBatch)
    throw_user_error("max_batch of stage '{}' is {}; it lies from 1 to {}", stage.name, batch.max_batch,
                     artifact::kMostInBatch);
  if (!(batch.max_delay_seconds >= 0 && batch.max_delay_seconds <= kMaxRegionTimeout))
    throw_user_error("max_delay of stage '{}' is {} seconds; it lies from 0 to {}", stage.name, batch.max_delay_seconds,
                     kMaxRegionTimeout);
  for (const std::shared_ptr<StageCode>& code : stage.replicas) {
    const int32_t most = code->most_in_batch();
    if (most == 0) throw_user_error("stage '{}' has a max_batch, and its code takes one request at a time", stage.name);
    if (batch.max_batch > most)
      throw_user_error("max_batch of stage '{}' is {}, and the largest batch of its programs is {}", stage.name,
                       batch.max_batch, most);
  }
}

void check_source(const PipelineSpec& spec, const Source& source, const std::string& reader) {
  const size_t count = source.kind == Kind::input   ? spec.inputs.size()
                       : source.kind == Kind::param ? spec.params.size()
                                                    : spec.stages.size();
  if (source.index >= count) throw_user_error("{} reads what the pipeline does not have", reader);
  if (source.kind != Kind::stage) return;
  const StageSpec& stage = spec.stages[source.index];
  const size_t outputs = stage.replicas[0]->outputs().size();
  if (source.port >= outputs)
    throw_user_error("{} reads output {} of stage '{}', which has {}", reader, source.port, stage.name, outputs);
}

void check_types(const PipelineSpec& spec, const Source& source, const Port& to, const std::string& reader) {
  const Port& from = port_of(spec, source);
  if (fits(from, to)) return;
  throw_user_error("{} is {}, and {} is {}: both ends of a connection have the same type and memory",
                   source_text(spec, source), type_text(from), reader, type_text(to));
}

void check_stage_inputs(const PipelineSpec& spec, const StageSpec& stage) {
  const std::vector<Port>& ports = stage.replicas[0]->inputs();
  if (stage.inputs.size() != ports.size())
    throw_user_error("stage '{}' has {} inputs, and {} of them are connected", stage.name, ports.size(),
                     stage.inputs.size());
  for (size_t i = 0; i < ports.size(); ++i) {
    const std::string reader = fmt::format("input '{}' of stage '{}'", ports[i].name(), stage.name);
    check_source(spec, stage.inputs[i], reader);
    check_types(spec, stage.inputs[i], ports[i], reader);
    if (stage.batch.has_value() && stage.replicas[0]->is_shared(i) && stage.inputs[i].kind != Kind::param)
      throw_user_error(
          "{} has no batch as its first dimension, so all requests of a batch share it: connect it to a "
          "parameter, not to {}",
          reader, source_text(spec, stage.inputs[i]));
  }
}

void check_outputs(const PipelineSpec& spec) {
  if (spec.outputs.empty()) throw_user_error("the pipeline has no outputs; connect a stage's output to one");
  for (const OutputSpec& output : spec.outputs) {
    const std::string reader = fmt::format("output '{}' of the pipeline", output.name);
    check_source(spec, output.source, reader);
    if (output.source.kind != Kind::stage)
      throw_user_error("{} is connected to {}; only a stage's output can leave the pipeline", reader,
                       source_text(spec, output.source));
  }
}

void check_all_read(const PipelineSpec& spec) {
  const auto check = [&](Kind kind, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const bool is_read = std::any_of(spec.stages.begin(), spec.stages.end(), [&](const StageSpec& stage) {
        return std::any_of(stage.inputs.begin(), stage.inputs.end(),
                           [&](const Source& source) { return source.kind == kind && source.index == i; });
      });
      if (!is_read) throw_user_error("nothing reads {}", source_text(spec, {.kind = kind, .index = i}));
    }
  };
  check(Kind::input, spec.inputs.size());
  check(Kind::param, spec.params.size());
}

void check_groups(const PipelineSpec& spec) {
  for (size_t i = 0; i < spec.groups.size(); ++i) {
    const bool is_used =
        std::any_of(spec.stages.begin(), spec.stages.end(), [&](const StageSpec& stage) { return stage.group == i; });
    if (!is_used) throw_user_error("group {} '{}' has no stages", i, spec.groups[i].name);
    for (const int32_t cpu : spec.groups[i].cpus) {
      if (cpu < 0) throw_user_error("group {} '{}' has the processor {}; give 0 or more", i, spec.groups[i].name, cpu);
    }
    runtime::check_named_once(spec.groups[i].cpus, "group '" + spec.groups[i].name + "'");
  }
}

bool reads_waiting(const StageSpec& stage, const std::vector<bool>& is_ordered) {
  return std::any_of(stage.inputs.begin(), stage.inputs.end(),
                     [&](const Source& source) { return source.kind == Kind::stage && !is_ordered[source.index]; });
}

// Takes the first stage of the list that reads none of those left, again and again.
std::vector<size_t> order_stages(const PipelineSpec& spec) {
  std::vector<size_t> order;
  std::vector<bool> is_ordered(spec.stages.size(), false);
  while (order.size() < spec.stages.size()) {
    const size_t before = order.size();
    for (size_t i = 0; i < spec.stages.size(); ++i) {
      if (is_ordered[i] || reads_waiting(spec.stages[i], is_ordered)) continue;
      order.push_back(i);
      is_ordered[i] = true;
    }
    if (order.size() > before) continue;
    std::vector<std::string> left;
    for (size_t i = 0; i < spec.stages.size(); ++i) {
      if (!is_ordered[i]) left.push_back(spec.stages[i].name);
    }
    throw_user_error(
        "stages wait for each other in a circle; it is among: {}; remove a connection "
        "between them",
        fmt::join(left, ", "));
  }
  return order;
}

}  // namespace

const Port& port_of(const PipelineSpec& spec, const Source& source) {
  switch (source.kind) {
    case Kind::input:
      return spec.inputs.at(source.index);
    case Kind::param:
      return spec.params.at(source.index).port;
    case Kind::stage:
      break;
  }
  return spec.stages.at(source.index).replicas.at(0)->outputs().at(source.port);
}

std::string source_text(const PipelineSpec& spec, const Source& source) {
  const std::string& name = port_of(spec, source).name();
  switch (source.kind) {
    case Kind::input:
      return fmt::format("input '{}' of the pipeline", name);
    case Kind::param:
      return fmt::format("parameter '{}' of group '{}'", name, spec.params[source.index].group);
    case Kind::stage:
      break;
  }
  return fmt::format("output '{}' of stage '{}'", name, spec.stages[source.index].name);
}

std::vector<size_t> check_spec(const PipelineSpec& spec) {
  if (spec.stages.empty()) throw_user_error("the pipeline has no stages");
  check_all_names(spec);
  for (const StageSpec& stage : spec.stages) check_replicas(spec, stage);
  for (const StageSpec& stage : spec.stages) check_batch(stage);
  for (const StageSpec& stage : spec.stages) check_stage_inputs(spec, stage);
  check_outputs(spec);
  check_all_read(spec);
  check_groups(spec);
  return order_stages(spec);
}

}  // namespace headrace::executors::pipeline
