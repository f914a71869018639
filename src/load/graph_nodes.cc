#include "load/graph_nodes.h"

#include <fmt/format.h>

#include <map>

#include "artifact/tensor_extent.h"
#include "object/array.h"
#include "object/string.h"

namespace headrace::load {

namespace {

using artifact::Entry;
using artifact::Place;
using artifact::Program;
using Dict = Map<std::string, Value>;
using List = Array<Value>;

Value number(size_t value) { return Value(static_cast<int64_t>(value)); }

// One output of a node: an operand of steps.
struct Source {
  size_t node = 0, output = 0;
  auto operator<=>(const Source&) const = default;
};

Value triple(const Source& source) { return Value(List{number(source.node), number(source.output), number(0)}); }

// A step's write of bytes of a base.
struct Write {
  int64_t begin = 0, end = 0;
  Source source;
};

class GraphBuilder {
 public:
  GraphBuilder(const Program& program, size_t num_weights) : program_(program) {
    for (size_t i = 0; i < program.inputs.size(); ++i) {
      const artifact::TensorSpec& spec = program.inputs[i];
      add_argument(spec.name, {Place::kInput, static_cast<int64_t>(i), 0, spec.dtype, spec.shape, {}});
    }
    add_weights(num_weights);
    for (const artifact::Step& step : program.graph.steps) add_step(step);
  }

  Dict finish() {
    row_starts_.push_back(number(shapes_.size()));
    List heads;
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      const auto written = writes_.find({Place::kOutput, static_cast<int64_t>(i)});
      if (written != writes_.end()) heads.push_back(triple(written->second.back().source));
    }
    const auto column = [](const char* kind, List rows) { return Value(List{Value(std::string(kind)), Value(rows)}); };
    Dict attrs, graph;
    attrs.set("dltype", column("list_str", dtypes_));
    attrs.set("shape", column("list_shape", shapes_));
    attrs.set("storage_id", column("list_int", storages_));
    graph.set("nodes", Value(nodes_));
    graph.set("arg_nodes", Value(arguments_));
    graph.set("heads", Value(heads));
    graph.set("node_row_ptr", Value(row_starts_));
    graph.set("attrs", Value(attrs));
    return graph;
  }

 private:
  using Base = std::pair<Place, int64_t>;

  static Base base_of(const Entry& entry) { return {entry.place, entry.index}; }

  // Adds the weights that steps read, in their order; others are of other programs.
  void add_weights(size_t num_weights) {
    std::vector<const Entry*> used(num_weights);
    for (const Entry& entry : program_.graph.entries) {
      if (entry.place != Place::kWeight) continue;
      const Entry*& first = used[static_cast<size_t>(entry.index)];
      if (first == nullptr) first = &entry;
    }
    size_t count = 0;
    for (const Entry* entry : used) {
      if (entry != nullptr) add_argument(fmt::format("p{}", count++), *entry);
    }
  }

  void add_argument(const std::string& name, const Entry& entry) {
    arguments_.push_back(number(nodes_.size()));
    record({entry}, entry.byte_offset);
    add_node("null", name, {}, {});
  }

  void add_step(const artifact::Step& step) {
    const size_t num_outputs = static_cast<size_t>(step.num_outputs), num_inputs = step.args.size() - num_outputs;
    std::vector<Source> sources;
    std::vector<Entry> outputs;
    for (size_t i = 0; i < step.args.size(); ++i) {
      const Entry& entry = program_.graph.entries[static_cast<size_t>(step.args[i])];
      if (i < num_inputs)
        add_sources(entry, sources);
      else
        outputs.push_back(entry);
    }
    const std::string& callee = artifact::callee_of(step.action);
    const std::string function = callee.empty() ? "__copy" : callee;
    Dict attrs;
    attrs.set("func_name", Value(function));
    attrs.set("num_inputs", Value(std::to_string(sources.size())));
    attrs.set("num_outputs", Value(std::to_string(num_outputs)));
    attrs.set("flatten_data", Value(std::string("0")));
    List inputs;
    for (const Source& source : sources) inputs.push_back(triple(source));
    record(outputs, std::nullopt);
    add_node("tvm_op", fmt::format("{}_{}", step.op.empty() ? function : step.op, nodes_.size()), attrs, inputs);
  }

  void add_node(const char* op, const std::string& name, const Dict& attrs, const List& inputs) {
    Dict node;
    node.set("op", Value(std::string(op)));
    node.set("name", Value(name));
    if (attrs.size() > 0) node.set("attrs", Value(attrs));
    node.set("inputs", Value(inputs));
    nodes_.push_back(Value(node));
  }

  // Adds the rows of the node that is added next, and what it writes. Arguments begin before their views do.
  void record(const std::vector<Entry>& outputs, std::optional<int64_t> argument_offset) {
    row_starts_.push_back(number(shapes_.size()));
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Entry& entry = outputs[i];
      List dims;
      for (const int64_t dim : entry.shape) dims.push_back(Value(dim));
      shapes_.push_back(Value(dims));
      dtypes_.push_back(Value(entry.dtype.to_string()));
      storages_.push_back(number(storage_ids_.try_emplace(base_of(entry), storage_ids_.size()).first->second));
      const int64_t nbytes = artifact::view_nbytes(entry.dtype, entry.shape, entry.strides).value_or(0);
      const int64_t begin = argument_offset ? 0 : entry.byte_offset;
      const int64_t end = argument_offset ? artifact::kMaxTensorBytes : entry.byte_offset + nbytes;
      writes_[base_of(entry)].push_back({begin, end, {nodes_.size(), i}});
    }
  }

  // Adds the writers of what a step reads, the last ones first, until one wrote all of it.
  void add_sources(const Entry& entry, std::vector<Source>& sources) const {
    const auto found = writes_.find(base_of(entry));
    if (found == writes_.end()) return;
    const int64_t begin = entry.byte_offset,
                  end = begin + artifact::view_nbytes(entry.dtype, entry.shape, entry.strides).value_or(0);
    for (size_t i = found->second.size(); i-- > 0;) {
      const Write& write = found->second[i];
      if (write.end <= begin || write.begin >= end) continue;
      if (std::find(sources.begin(), sources.end(), write.source) == sources.end()) sources.push_back(write.source);
      if (write.begin <= begin && write.end >= end) return;
    }
  }

  const Program& program_;
  List nodes_, arguments_, row_starts_, shapes_, dtypes_, storages_;
  std::map<Base, std::vector<Write>> writes_;
  std::map<Base, size_t> storage_ids_;
};

}  // namespace

Map<std::string, Value> graph_nodes(const Program& program, size_t num_weights) {
  return GraphBuilder(program, num_weights).finish();
}

}  // namespace headrace::load
