#include "tir/verify_compute.h"

#include <unordered_set>

#include "tir/plain_loops.h"
#include "tir/post_order.h"
#include "tir/print.h"
#include "tir/verify.h"

namespace headrace::tir {

namespace {

struct Breach {
  std::string rule;
};

template <typename... Args>
[[noreturn]] void breach(fmt::format_string<Args...> text, Args&&... args) {
  throw Breach{fmt::format(text, std::forward<Args>(args)...)};
}

class FormVerifier {
 public:
  explicit FormVerifier(const Compute& compute) : compute_(compute) {}

  void run() {
    for (const Buffer& input : compute_.inputs) {
      check_buffer(input, "an input");
      if (!readable_.insert(input.get()).second) breach("the buffer '{}' is two inputs", input->name);
    }
    for (const ComputeStage& stage : compute_.stages) check_stage(stage);
    std::unordered_set<const BufferNode*> outputs;
    for (const Buffer& output : compute_.outputs) {
      check_buffer(output, "an output");
      if (!written_.contains(output.get())) breach("no stage computes the output '{}'", output->name);
      if (!outputs.insert(output.get()).second) breach("the buffer '{}' is two outputs", output->name);
    }
    check_symbols();
    check_loops();
  }

 private:
  static void check_buffer(const Buffer& buffer, std::string_view what) {
    if (!buffer) breach("{} is null", what);
    if (!buffer->strides.empty()) breach("the buffer '{}' has strides; all are dense here", buffer->name);
    for (const PrimExpr& dim : buffer->shape) {
      if (!dim) breach("a dimension of the buffer '{}' is null", buffer->name);
    }
  }

  static std::string name_of(const ComputeStage& stage) {
    return stage.is_check() ? fmt::format("the check \"{}\"", stage.message) : fmt::format("'{}'", stage.output->name);
  }

  static void check_axes(const std::string& name, const std::vector<PrimVar>& axes,
                         const std::vector<PrimExpr>& extents) {
    if (axes.size() != extents.size()) breach("{} has {} axes and {} extents", name, axes.size(), extents.size());
    for (size_t i = 0; i < axes.size(); ++i) {
      if (!axes[i] || !extents[i]) breach("an axis of {} is null", name);
      if (axes[i]->dtype != kIndexType)
        breach("the axis '{}' of {} is {}; axes are int64", axes[i]->name_hint, name, axes[i]->dtype);
      if (extents[i]->dtype != kIndexType)
        breach("the extent of '{}' in {} is {}; extents are int64", axes[i]->name_hint, name, extents[i]->dtype);
    }
  }

  void check_stage(const ComputeStage& stage) {
    if (!stage.is_check()) check_buffer(stage.output, "the output of a stage");
    const std::string name = name_of(stage);
    if (!stage.value) breach("{} has no value", name);
    if (stage.is_check() && (stage.output || stage.is_partial() || stage.value->dtype != DataType::bool_()))
      breach("{} has an output, or a value that is not a bool", name);
    check_axes(name, stage.axes, stage.axis_extents());
    if (!stage.is_check()) check_written(name, stage);
    check_reduction(name, stage);
    check_reads(name, stage);
    if (!stage.is_check()) add_written(name, stage);
  }

  static void check_written(const std::string& name, const ComputeStage& stage) {
    const size_t rank = stage.output->shape.size();
    const size_t given = stage.is_partial() ? stage.place.size() : stage.axes.size();
    if (given != rank) breach("{} has {} dimensions and is written at {} indices", name, rank, given);
    for (const PrimExpr& index : stage.place) {
      if (!index || index->dtype != kIndexType) breach("an index that {} is written at is not int64", name);
    }
    const PrimExpr& last = stage.epilogue ? stage.epilogue : stage.value;
    if (last->dtype != stage.output->dtype)
      breach("{} holds {} and gets a value of {}; write .astype", name, stage.output->dtype, last->dtype);
  }

  static void check_reduction(const std::string& name, const ComputeStage& stage) {
    if (stage.combiner > Combiner::min) breach("{} has an unknown combiner", name);
    if (stage.combiner == Combiner::none) {
      if (!stage.reduce_axes.empty() || !stage.reduce_extents.empty() || stage.init || stage.epilogue || stage.reduced)
        breach("{} has parts of a reduction and no combiner", name);
      return;
    }
    if (stage.is_check()) breach("{} is reduced", name);
    check_axes(name, stage.reduce_axes, stage.reduce_extents);
    if (stage.value->dtype.is_handle() || stage.value->dtype.is_void()) breach("{} combines no numbers", name);
    const auto start = stage.init ? number_of(stage.init) : std::nullopt;
    if (!start || stage.init->dtype != stage.value->dtype)
      breach("the reduction of {} does not start from a constant of {}", name, stage.value->dtype);
    if ((stage.combiner == Combiner::sum && *start != 0) || (stage.combiner == Combiner::prod && *start != 1))
      breach("the reduction of {} starts from {}; a sum starts from 0 and a product from 1", name, *start);
    if ((stage.epilogue && !stage.reduced) || (stage.reduced && stage.reduced->dtype != stage.value->dtype))
      breach("the epilogue of {} has no variable of {} for what is combined", name, stage.value->dtype);
  }

  static std::optional<double> number_of(const PrimExpr& e) {
    if (const auto* real = e.as<FloatImmNode>()) return real->value;
    if (const auto value = as_int(e)) return static_cast<double>(*value);
    return std::nullopt;
  }

  void check_reads(const std::string& name, const ComputeStage& stage) const {
    for (const PrimExpr& e : post_order({stage.value, stage.epilogue})) {
      if (!e->dtype.is_scalar() || e->dtype.is_handle())
        breach("{} computes with `{}`, which is {}; values are scalars", name, summary(e), e->dtype);
      const auto* load = e.as<BufferLoadNode>();
      if (load == nullptr) continue;
      if (!load->buffer) breach("{} reads a null buffer", name);
      if (load->buffer == stage.output) breach("{} reads itself", name);
      if (!readable_.contains(load->buffer.get()))
        breach("{} reads '{}', which is not input and which no earlier stage computes", name, load->buffer->name);
    }
  }

  void add_written(const std::string& name, const ComputeStage& stage) {
    const bool is_new = written_.insert(stage.output.get()).second;
    if (is_new && readable_.contains(stage.output.get())) breach("{} is an input, which a stage writes", name);
    if (!is_new && (!stage.is_partial() || whole_.contains(stage.output.get()))) breach("{} is computed twice", name);
    if (!stage.is_partial()) whole_.insert(stage.output.get());
    readable_.insert(stage.output.get());
  }

  // Checks symbols: only the inputs and outputs of a call determine them, buffers in between do not.
  void check_symbols() const {
    std::unordered_set<const PrimExprNode*> known;
    for (const auto* buffers : {&compute_.inputs, &compute_.outputs}) {
      for (const Buffer& buffer : *buffers) {
        for (const PrimExpr& dim : buffer->shape) known.insert(dim.get());
      }
    }
    for (const ComputeStage& stage : compute_.stages) {
      std::vector<PrimExpr> dims = stage.axis_extents();
      dims.insert(dims.end(), stage.reduce_extents.begin(), stage.reduce_extents.end());
      if (!stage.is_check()) dims.insert(dims.end(), stage.output->shape.begin(), stage.output->shape.end());
      for (const PrimExpr& e : post_order(dims)) {
        if (e.is<PrimVarNode>() && !known.contains(e.get()))
          breach("'{}' is in the shape or the extents of {}, and is a dimension of no input and no output", summary(e),
                 name_of(stage));
      }
    }
  }

  void check_loops() const {
    Array<Buffer> params(compute_.inputs);
    std::unordered_set<const BufferNode*> outputs;
    std::vector<Stmt> nests;
    for (const ComputeStage& stage : compute_.stages) {
      nests.push_back(plain_loops(stage));
      if (!stage.is_check() && outputs.insert(stage.output.get()).second) params.push_back(stage.output);
    }
    const auto breaches =
        find_breaches(make_prim_func("compute", params, static_cast<int64_t>(outputs.size()), make_seq(nests)));
    if (!breaches.empty()) breach("{}", breaches.front());
  }

  const Compute& compute_;
  std::unordered_set<const BufferNode*> readable_, written_, whole_;
};

}  // namespace

std::optional<std::string> find_breach(const Compute& compute) {
  try {
    FormVerifier(compute).run();
  } catch (const Breach& found) {
    return found.rule;
  }
  return std::nullopt;
}

void verify(const Compute& compute) {
  if (const auto breach = find_breach(compute)) throw_user_error("the compute form is not well-formed: {}", *breach);
}

}  // namespace headrace::tir
