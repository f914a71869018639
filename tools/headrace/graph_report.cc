#include "tools/headrace/graph_report.h"

#include <map>

#include "base/read_text.h"
#include "base/reason_name.h"
#include "object/array.h"
#include "object/map.h"
#include "object/shape_tuple.h"
#include "partition/reasons.h"
#include "tools/headrace/output.h"

namespace headrace::tools {

namespace {

using artifact::Entry;

Value number_or_none(int32_t number) { return number < 0 ? Value() : Value(int64_t{number}); }

Value text_or_none(std::string_view text) { return text.empty() ? Value() : Value(std::string(text)); }

Value tensor_value(std::string dtype, const std::optional<Shape>& shape, const std::optional<int64_t>& n_bytes) {
  return Value(Report{{"dtype", Value(std::move(dtype))},
                      {"shape", shape ? Value(*shape) : Value()},
                      {"bytes", n_bytes ? Value(*n_bytes) : Value()}});
}

Array<Value> tensor_values(const std::vector<partition::GraphTensor>& tensors) {
  Array<Value> list;
  for (const partition::GraphTensor& tensor : tensors)
    list.push_back(tensor_value(tensor.dtype, tensor.shape, tensor.n_bytes));
  return list;
}

Array<Value> alternatives_of(const partition::GraphNode& node) {
  Array<Value> list;
  for (const partition::GraphAlternative& one : node.alternatives)
    list.push_back(Value(Report{{"backend", Value(one.backend)},
                                {"reason", Value(static_cast<int64_t>(one.reason))},
                                {"reason_name", Value(std::string(reason_name(one.reason)))},
                                {"message", Value(one.message)},
                                {"remedy", text_or_none(partition::remedy_of(one.reason))}}));
  return list;
}

Report edge_report(const partition::GraphEdge& edge) {
  return {{"from", Value(int64_t{edge.from})},
          {"output", Value(int64_t{edge.output})},
          {"to", Value(int64_t{edge.to})},
          {"input", Value(int64_t{edge.input})}};
}

Value block_value(const std::string& region, const std::string& backend) {
  return Value(Report{{"region", Value(region)}, {"backend", Value(backend)}});
}

// ---- the steps of a program

// The bytes of its base that an entry spans.
struct ByteRange {
  int64_t begin = 0, end = 0;
};

int64_t bytes_of_entry(const Entry& entry) {
  int64_t count = 1;
  for (const int64_t size : entry.shape) count *= size;
  return count * static_cast<int64_t>(entry.dtype.bytes());
}

ByteRange span_of(const Entry& entry) {
  const auto element = static_cast<int64_t>(entry.dtype.bytes());
  if (entry.strides.empty()) return {entry.byte_offset, entry.byte_offset + bytes_of_entry(entry)};
  int64_t last = 0;
  for (size_t i = 0; i < entry.shape.size(); ++i) {
    if (entry.shape[i] == 0) return {entry.byte_offset, entry.byte_offset};
    last += (entry.shape[i] - 1) * entry.strides[i];
  }
  return {entry.byte_offset, entry.byte_offset + (last + 1) * element};
}

Value tensor_of_entry(const Entry& entry) {
  return tensor_value(entry.dtype.to_string(), Shape(entry.shape.begin(), entry.shape.end()), bytes_of_entry(entry));
}

// "nn_softmax" of "nn_softmax_e509efb65d31f01c".
std::string without_hash(const std::string& callee) {
  const size_t last = callee.rfind('_');
  constexpr size_t kDigits = 16;
  const bool has_hash = last != std::string::npos && last > 0 && callee.size() == last + 1 + kDigits &&
                        callee.find_first_not_of("0123456789abcdef", last + 1) == std::string::npos;
  return has_hash ? callee.substr(0, last) : callee;
}

// Follows which step wrote what each step reads. Memory is reused, so the last write to the bytes counts.
class StepGraph {
 public:
  StepGraph(const artifact::Program& program, const artifact::Manifest& manifest, const MeasuredSteps& measured)
      : program_(program), manifest_(manifest), measured_(measured) {}

  Report report() {
    for (size_t i = 0; i < program_.inputs.size(); ++i) add_port("input", program_.inputs[i], i);
    for (size_t i = 0; i < program_.graph.steps.size(); ++i) add_step(i);
    for (size_t i = 0; i < program_.outputs.size(); ++i) add_port("output", program_.outputs[i], i);
    return {{"nodes", Value(nodes_)}, {"edges", Value(edges_)}, {"blocks", Value(blocks_)}};
  }

 private:
  struct Write {
    ByteRange span;
    int32_t node, output;
  };
  using Base = std::pair<artifact::Place, int64_t>;

  void add_port(const char* kind, const artifact::TensorSpec& spec, size_t i) {
    const bool is_input = std::string_view(kind) == "input";
    Entry entry{.place = is_input ? artifact::Place::kInput : artifact::Place::kOutput,
                .index = static_cast<int64_t>(i),
                .dtype = spec.dtype,
                .shape = {spec.shape.begin(), spec.shape.end()}};
    const auto node = static_cast<int32_t>(nodes_.size());
    if (is_input)
      write(entry, node, 0);
    else
      read(entry, node, 0);
    Array<Value> own, none;
    own.push_back(tensor_of_entry(entry));
    nodes_.push_back(Value(Report{{"kind", Value(std::string(kind))},
                                  {"name", Value(spec.name)},
                                  {"op", Value()},
                                  {"backend", Value()},
                                  {"callee", Value()},
                                  {"block", Value()},
                                  {"inputs", Value(is_input ? none : own)},
                                  {"outputs", Value(is_input ? own : none)},
                                  {"seconds", Value()},
                                  {"fallback", Value()}}));
  }

  const Entry& entry_of(const artifact::Step& step, size_t arg) const {
    return program_.graph.entries[static_cast<size_t>(step.args[arg])];
  }

  void add_step(size_t i) {
    const artifact::Step& step = program_.graph.steps[i];
    const auto node = static_cast<int32_t>(nodes_.size());
    const size_t num_inputs = step.args.size() - static_cast<size_t>(step.num_outputs);
    Array<Value> inputs, outputs;
    for (size_t arg = 0; arg < num_inputs; ++arg) {
      inputs.push_back(tensor_of_entry(entry_of(step, arg)));
      read(entry_of(step, arg), node, static_cast<int32_t>(arg));
    }
    for (size_t arg = num_inputs; arg < step.args.size(); ++arg) {
      outputs.push_back(tensor_of_entry(entry_of(step, arg)));
      write(entry_of(step, arg), node, static_cast<int32_t>(arg - num_inputs));
    }
    const std::string& callee = artifact::callee_of(step.action);
    const std::string kind(artifact::name_of(step.action));
    nodes_.push_back(Value(Report{{"kind", Value(kind)},
                                  {"name", Value(step.op)},
                                  {"op", Value(callee.empty() ? kind : without_hash(callee))},
                                  {"backend", Value(backend_of(step))},
                                  {"callee", Value(callee)},
                                  {"block", number_or_none(block_of(step))},
                                  {"inputs", Value(inputs)},
                                  {"outputs", Value(outputs)},
                                  {"seconds", i < measured_.seconds.size() ? Value(measured_.seconds[i]) : Value()},
                                  {"fallback", fallback_of(step)}}));
  }

  // Returns why the region of a step ran natively when it was timed; none for other steps.
  Value fallback_of(const artifact::Step& step) const {
    const auto* call = std::get_if<artifact::RegionCall>(&step.action);
    const auto found = call == nullptr ? measured_.fallbacks.end() : measured_.fallbacks.find(call->region);
    return found == measured_.fallbacks.end() ? Value() : Value(found->second);
  }

  std::string backend_of(const artifact::Step& step) const {
    if (std::holds_alternative<artifact::ExternalCall>(step.action)) return partition::kExternal;
    const auto* call = std::get_if<artifact::RegionCall>(&step.action);
    const artifact::Region* region = call == nullptr ? nullptr : artifact::find_region(manifest_, call->region);
    return region == nullptr ? partition::kNative : region->backend;
  }

  int32_t block_of(const artifact::Step& step) {
    const auto* call = std::get_if<artifact::RegionCall>(&step.action);
    if (call == nullptr) return -1;
    blocks_.push_back(block_value(call->region, backend_of(step)));
    return static_cast<int32_t>(blocks_.size()) - 1;
  }

  void read(const Entry& entry, int32_t node, int32_t input) {
    const ByteRange span = span_of(entry);
    for (const Write& write : writes_[{entry.place, entry.index}]) {
      if (write.span.begin < span.end && span.begin < write.span.end)
        edges_.push_back(Value(edge_report({.from = write.node, .output = write.output, .to = node, .input = input})));
    }
  }

  void write(const Entry& entry, int32_t node, int32_t output) {
    const ByteRange span = span_of(entry);
    std::vector<Write>& writes = writes_[{entry.place, entry.index}];
    std::erase_if(writes, [&](const Write& old) { return span.begin <= old.span.begin && old.span.end <= span.end; });
    writes.push_back({span, node, output});
  }

  const artifact::Program& program_;
  const artifact::Manifest& manifest_;
  const MeasuredSteps& measured_;
  std::map<Base, std::vector<Write>> writes_;
  Array<Value> nodes_, edges_, blocks_;
};

// ---- times

[[noreturn]] void refuse_times(const std::string& path, const std::string& what) {
  throw_user_error("--times '{}': {}; write the file by: headrace bench MODEL --steps --json", path, what);
}

// The value of a key of an object; fails for one that is not there or of another kind.
template <typename T>
T value_of(const Value& object, const char* key, const std::string& path) {
  const auto* map = object.as_node<MapObj>();
  const Value* found = map == nullptr ? nullptr : map->find(Value(std::string(key)).raw());
  if (found == nullptr || found->is_none() || !found->is<T>())
    refuse_times(path, fmt::format("it has no '{}' where one should be", key));
  return found->as<T>();
}

}  // namespace

Report graph_report(const partition::ProgramGraph& graph, const std::vector<artifact::Placement>& placement) {
  Array<Value> nodes, edges, blocks;
  for (const partition::GraphNode& node : graph.nodes) {
    const bool is_op = node.placement != partition::kNone;
    nodes.push_back(
        Value(Report{{"kind", Value(std::string(partition::name_of(node.kind)))},
                     {"name", Value(node.name)},
                     {"op", node.op.empty() ? Value() : Value(node.op)},
                     {"backend", is_op ? Value(placement[static_cast<size_t>(node.placement)].backend) : Value()},
                     {"placement", number_or_none(node.placement)},
                     {"block", number_or_none(node.block)},
                     {"inputs", Value(tensor_values(node.inputs))},
                     {"outputs", Value(tensor_values(node.outputs))},
                     {"alternatives", Value(alternatives_of(node))}}));
  }
  for (const partition::GraphEdge& edge : graph.edges) {
    Report report = edge_report(edge);
    report.set("border_seconds", Value(edge.border_seconds));
    edges.push_back(Value(report));
  }
  for (const partition::GraphBlock& block : graph.blocks) blocks.push_back(block_value(block.region, block.backend));
  return {{"nodes", Value(nodes)}, {"edges", Value(edges)}, {"blocks", Value(blocks)}};
}

Report graph_report(const artifact::Program& program, const artifact::Manifest& manifest,
                    const MeasuredSteps& measured) {
  return StepGraph(program, manifest, measured).report();
}

MeasuredSteps read_step_times(const std::string& path, const artifact::Program& program) {
  const Value report = from_json(read_text(path, "times of steps"), path);
  const auto results = value_of<Array<Value>>(report, "results", path);
  if (results.size() == 0) refuse_times(path, "it has no results");
  const auto steps = value_of<Array<Value>>(results[0], "steps", path);
  const auto refuse = [&](const std::string& what) {
    throw_user_error("--times '{}': {}; measure the file itself, or compile it with the same options", path, what);
  };
  if (steps.size() != program.graph.steps.size())
    refuse(
        fmt::format("it has the times of {} steps, and the program has {}", steps.size(), program.graph.steps.size()));
  MeasuredSteps measured;
  for (size_t i = 0; i < steps.size(); ++i) {
    const std::string& callee = artifact::callee_of(program.graph.steps[i].action);
    if (const auto called = value_of<std::string>(steps[i], "callee", path); called != callee)
      refuse(fmt::format("its step {} calls '{}', and that of the program '{}'", i, called, callee));
    measured.seconds.push_back(value_of<double>(steps[i], "best_seconds", path));
  }
  for (const Value& one : value_of<Array<Value>>(results[0], "fallbacks", path))
    measured.fallbacks[value_of<std::string>(one, "region", path)] = value_of<std::string>(one, "message", path);
  return measured;
}

}  // namespace headrace::tools
