#include "driver/cut_stages.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/error.h"
#include "ir/text_names.h"
#include "partition/extract.h"
#include "relay/infer/infer_type.h"
#include "relay/leaves.h"

namespace headrace::driver {

namespace {

using Kind = ProgramTensor::Kind;
using SourceKind = artifact::PipelineSource::Kind;

// A parameter or a tensor of a call, by its kind, owner and index.
using TensorKey = std::tuple<Kind, size_t, size_t>;
TensorKey key_of(const ProgramTensor& tensor) { return {tensor.kind, tensor.owner, tensor.index}; }

// The program of one stage in the making.
class StageBuilder {
 public:
  StageBuilder(const Model& model, const StraightLine& line) : model_(model), line_(line) {}

  void add_call(size_t number) {
    const relay::Call& call = line_.calls[number];
    Array<Expr> args;
    for (size_t i = 0; i < call->args.size(); ++i) {
      std::vector<Expr> leaves;
      for (const ProgramTensor& tensor : line_.args[number][i]) leaves.push_back(value_of(tensor));
      size_t next = 0;
      args.push_back(relay::assembled(call->args[i]->checked_type(), leaves, next));
    }
    made_.emplace(number, relay::make_call(call->op, args, call->attrs, call->type_args, call->span));
  }

  // Adds an output, once for each tensor.
  void add_output(const ProgramTensor& tensor) {
    if (std::find(outputs_.begin(), outputs_.end(), tensor) == outputs_.end()) outputs_.push_back(tensor);
  }

  const std::vector<ProgramTensor>& inputs() const { return inputs_; }
  size_t place_of_output(const ProgramTensor& tensor) const {
    const auto found = std::find(outputs_.begin(), outputs_.end(), tensor);
    HEADRACE_CHECK(found != outputs_.end(), "a stage does not give what another one reads");
    return static_cast<size_t>(found - outputs_.begin());
  }

  Model finish() {
    HEADRACE_CHECK(!outputs_.empty(), "a stage without outputs");
    Array<Expr> results;
    for (const ProgramTensor& tensor : outputs_) results.push_back(value_of(tensor));
    const Expr body = results.size() == 1 ? results[0] : Expr(relay::make_tuple(results));
    Model stage{.module = relay::infer_type(make_module(relay::make_function(params_, body))),
                .inputs = {},
                .outputs = {},
                .files = model_.files,
                .modules = model_.modules};
    for (const ProgramTensor& tensor : inputs_) stage.inputs.push_back(name_of(tensor));
    for (const ProgramTensor& tensor : outputs_) stage.outputs.push_back(name_of(tensor));
    return stage;
  }

 private:
  std::string name_of(const ProgramTensor& tensor) const {
    if (tensor.kind == Kind::param) return model_.inputs.at(tensor.owner);
    if (tensor.kind == Kind::constant) return fmt::format("constant_{}", tensor.owner);
    const std::string op = partition::sanitized(line_.calls[tensor.owner]->as_op()->name);
    std::string name = tensor.index == 0 ? fmt::format("{}_{}", op, tensor.owner)
                                         : fmt::format("{}_{}_{}", op, tensor.owner, tensor.index);
    while (std::find(model_.inputs.begin(), model_.inputs.end(), name) != model_.inputs.end()) name += '_';
    return name;
  }

  // Returns what computes a tensor within the stage: its own call, a constant, or a parameter, which is
  // added when it is new.
  Expr value_of(const ProgramTensor& tensor) {
    if (tensor.kind == Kind::constant) return line_.constants[tensor.owner];
    if (const auto made = made_.find(tensor.owner); tensor.kind == Kind::call && made != made_.end())
      return part_of(made->second, tensor);
    const auto [known, is_new] = params_by_tensor_.try_emplace(key_of(tensor));
    if (is_new) {
      known->second = relay::make_var(name_of(tensor), tensor.type);
      params_.push_back(known->second);
      inputs_.push_back(tensor);
    }
    return known->second;
  }

  Expr part_of(const Expr& made, const ProgramTensor& tensor) const {
    const relay::Call& call = line_.calls[tensor.owner];
    const auto* tuple = call->checked_type().as<TupleTypeNode>();
    if (tuple == nullptr) return made;
    if (tuple->items.size() != leaves_of(call->checked_type()).size())
      throw_at(call->span, "split into stages",
               "the value of the call is a tuple of tuples, which stages cannot take apart");
    return relay::make_tuple_get_item(made, static_cast<int64_t>(tensor.index));
  }

  const Model& model_;
  const StraightLine& line_;
  Array<relay::Var> params_;
  std::vector<ProgramTensor> inputs_, outputs_;
  std::map<TensorKey, relay::Var> params_by_tensor_;
  std::unordered_map<size_t, Expr> made_;
};

class Cutter {
 public:
  Cutter(const Model& model, const StraightLine& line, std::span<const int32_t> stage_of_call)
      : model_(model), line_(line), stage_of_call_(stage_of_call) {
    const int32_t last = stage_of_call.empty() ? 0 : *std::max_element(stage_of_call.begin(), stage_of_call.end());
    for (int32_t i = 0; i <= last; ++i) builders_.emplace_back(model, line);
  }

  CutProgram cut() {
    for (size_t i = 0; i < line_.calls.size(); ++i) builders_[stage_of(i)].add_call(i);
    for (const ProgramTensor& result : line_.results) builders_[home_of(result)].add_output(result);
    for (const StageBuilder& reader : builders_) {
      for (const ProgramTensor& tensor : reader.inputs()) {
        if (tensor.kind == Kind::call) builders_[home_of(tensor)].add_output(tensor);
      }
    }
    CutProgram program;
    for (StageBuilder& builder : builders_) program.stages.push_back({.model = builder.finish(), .sources = {}});
    connect(program);
    return program;
  }

 private:
  size_t stage_of(size_t call) const { return static_cast<size_t>(stage_of_call_[call]); }
  size_t home_of(const ProgramTensor& tensor) const {
    return tensor.kind == Kind::call ? stage_of(tensor.owner) : builders_.size() - 1;
  }

  void connect(CutProgram& program) const {
    std::map<size_t, size_t> inputs;  // numbers of the pipeline's inputs, by parameter
    for (size_t i = 0; i < line_.main->params.size(); ++i) {
      if (const auto spec = spec_if_read(i)) {
        inputs.emplace(i, program.inputs.size());
        program.inputs.push_back({.spec = *spec});
      }
    }
    for (size_t s = 0; s < builders_.size(); ++s) {
      for (const ProgramTensor& tensor : builders_[s].inputs())
        program.stages[s].sources.push_back(
            tensor.kind == Kind::param
                ? artifact::PipelineSource{.kind = SourceKind::input, .index = inputs.at(tensor.owner)}
                : source_of(tensor));
    }
    for (size_t i = 0; i < line_.results.size(); ++i)
      program.outputs.push_back({.name = model_.outputs.at(i), .source = source_of(line_.results[i])});
  }

  artifact::PipelineSource source_of(const ProgramTensor& tensor) const {
    const size_t stage = home_of(tensor);
    return {.kind = SourceKind::stage, .index = stage, .port = builders_[stage].place_of_output(tensor)};
  }

  // The type of a parameter that a stage reads.
  std::optional<artifact::TensorSpec> spec_if_read(size_t param) const {
    for (const StageBuilder& builder : builders_) {
      for (const ProgramTensor& tensor : builder.inputs()) {
        if (tensor.kind != Kind::param || tensor.owner != param) continue;
        size_bytes_of(tensor.type, line_.main->params[param]->span);
        const auto* type = tensor.type.as<TensorTypeNode>();
        return artifact::TensorSpec{
            .name = model_.inputs.at(param), .dtype = type->dtype, .shape = *as_shape(type->shape)};
      }
    }
    return std::nullopt;
  }

  const Model& model_;
  const StraightLine& line_;
  std::span<const int32_t> stage_of_call_;
  std::vector<StageBuilder> builders_;
};

}  // namespace

CutProgram cut_stages(const Model& model, const StraightLine& line, std::span<const int32_t> stage_of_call) {
  return Cutter(model, line, stage_of_call).cut();
}

}  // namespace headrace::driver
