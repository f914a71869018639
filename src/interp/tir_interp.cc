#include "interp/tir_interp.h"

#include <unordered_set>

#include "base/interrupt.h"
#include "interp/tir_program.h"
#include "tensor/strides.h"
#include "tir/print.h"
#include "tir/verify.h"

namespace headrace::interp {

namespace {

// A buffer while the program runs.
struct Memory {
  std::vector<int64_t> dims, strides;
  NDArray array;  // keeps the elements
  std::byte* data = nullptr;
  int64_t count = 0;  // elements from the first to the last one
  // Whether an element has a value: it was written, and not with what depends on one that had none. Empty for an
  // input: all have.
  std::vector<bool> is_known;
};

class Machine {
 public:
  Machine(const tir::PrimFunc& function, const std::vector<NDArray>& inputs, const TirOptions& options)
      : function_(function),
        options_(options),
        program_(compile_program(function)),
        cells_(program_.cells),
        is_unknown_(cells_.size()) {
    const auto wanted = function->params.size() - static_cast<size_t>(function->num_outputs);
    if (inputs.size() != wanted)
      throw_user_error("'{}' takes {} inputs, got {}", tir::symbol_of(*function), wanted, inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) bind_symbols(function->params[i], inputs[i]);
    check_symbols();
    run_steps(0, program_.begin);
    memory_.resize(program_.buffers.size());
    for (size_t i = 0; i < memory_.size(); ++i) bind_buffer(i, i < inputs.size() ? inputs[i] : NDArray());
  }

  std::vector<NDArray> run() {
    run_steps(program_.begin, program_.steps.size());
    std::vector<NDArray> outputs;
    for (size_t i = 0; i < memory_.size(); ++i) {
      if (program_.buffers[i].role != ProgramBuffer::Role::output) continue;
      const auto hole = std::find(memory_[i].is_known.begin(), memory_[i].is_known.end(), false);
      if (hole != memory_[i].is_known.end())
        throw_user_error(
            "'{}' leaves element {} of '{}' without a value: it was never written, or with what depends on "
            "an element that was not",
            tir::symbol_of(*function_), hole - memory_[i].is_known.begin(), program_.buffers[i].buffer->name);
      outputs.push_back(memory_[i].array);
    }
    return outputs;
  }

 private:
  Cell* at(int slot) { return cells_.data() + slot; }
  int64_t number(int slot) const { return static_cast<int64_t>(cells_[static_cast<size_t>(slot)]); }

  // --- arguments

  static Shape strides_of(const NDArray& array) {
    return array.object()->strides.empty() ? dense_strides(array.shape()) : array.object()->strides;
  }

  void bind_symbols(const Buffer& param, const NDArray& input) {
    if (input.dtype() != param->dtype || input.shape().size() != param->shape.size())
      throw_user_error("the input '{}' is {} of {} dimensions, got {} of {}", param->name, param->dtype,
                       param->shape.size(), input.dtype(), input.shape().size());
    const auto bind = [&](const Array<PrimExpr>& list, const Shape& values) {
      for (size_t i = 0; i < list.size(); ++i) {
        const auto* symbol = list[i].as<PrimVarNode>();
        if (symbol == nullptr || !bound_.insert(symbol).second) continue;
        *at(program_.symbols.at(symbol)) = static_cast<Cell>(values[i]);
      }
    };
    bind(param->shape, input.shape());
    bind(param->strides, strides_of(input));
  }

  void check_symbols() const {
    for (const auto& [symbol, slot] : program_.symbols) {
      if (!bound_.contains(symbol))
        throw_user_error("the inputs of '{}' do not tell the symbol '{}'", tir::symbol_of(*function_),
                         symbol->name_hint);
    }
  }

  void bind_buffer(size_t i, const NDArray& input) {
    const ProgramBuffer& buffer = program_.buffers[i];
    Memory& memory = memory_[i];
    for (const int dim : buffer.dims) memory.dims.push_back(number(dim));
    for (const int stride : buffer.strides) memory.strides.push_back(number(stride));
    if (buffer.role == ProgramBuffer::Role::input) {
      const bool same_strides = memory.strides.empty() || memory.strides == std::vector<int64_t>(strides_of(input));
      if (input.shape() != Shape(memory.dims) || !same_strides)
        throw_user_error("the input '{}' of shape ({}) does not fit {}", buffer.buffer->name,
                         fmt::join(input.shape(), ", "), fmt::join(memory.dims, ", "));
      memory.array = memory.strides.empty() ? input.to_dense() : input;
    } else {
      if (!memory.strides.empty())
        throw_user_error("the interpreter does not write to a buffer with strides, such as '{}'", buffer.buffer->name);
      memory.array = NDArray::zeros(memory.dims, buffer.buffer->dtype);
      memory.is_known.assign(static_cast<size_t>(memory.array.num_elements()), false);
    }
    if (memory.strides.empty()) memory.strides = strides_of(memory.array);
    memory.data = memory.array.data<std::byte>();
    memory.count = memory.array.num_elements() == 0 ? 0 : 1;
    for (size_t d = 0; memory.count > 0 && d < memory.dims.size(); ++d)
      memory.count += (memory.dims[d] - 1) * memory.strides[d];
  }

  // --- steps

  void run_steps(size_t from, size_t to) {
    for (size_t pc = from; pc < to;) {
      const Step& step = program_.steps[pc++];
      switch (step.kind) {
        case StepKind::jump:
          // Loops jump back. A step takes some 10 ns, less than to look at the clock.
          if ((++num_jumps_ & 0xfff) == 0) poll_interrupt();
          pc = step.target;
          break;
        case StepKind::jump_unless:
          if (known(step, step.a) == 0) pc = step.target;
          break;
        case StepKind::check:
          if (known(step, step.a) == 0) throw_user_error("{}", step.message);
          break;
        case StepKind::loop_value:
          *at(step.dst) = loop_value(step);
          break;
        case StepKind::allocate: {
          Memory& memory = memory_[static_cast<size_t>(step.buffer)];
          memory.is_known.assign(memory.is_known.size(), false);
          break;
        }
        case StepKind::load:
        case StepKind::vector_load:
          load(step);
          break;
        case StepKind::store:
          store(step);
          break;
        case StepKind::reduce_add:
          reduce_add(step);
          break;
        default:
          for (int lane = 0; lane < step.lanes; ++lane) {
            at(step.dst)[lane] = lane_of(step, lane);
            is_unknown_[static_cast<size_t>(step.dst + lane)] = depends_on_unknown(step, lane);
          }
      }
    }
  }

  // One lane of a step whose lanes do not depend on each other.
  Cell lane_of(const Step& step, int lane) {
    const auto own = [&](int slot) { return at(slot)[lane]; };
    switch (step.kind) {
      case StepKind::binary:
        return binary(step.op, own(step.a), own(step.b), step.dtype);
      case StepKind::negation:
        return own(step.a) == 0;
      case StepKind::select:
        return at(step.c)[step.a_lanes == 1 ? 0 : lane] != 0 ? own(step.a) : own(step.b);
      case StepKind::cast:
        return cast(own(step.a), step.dtype, step.to);
      case StepKind::reinterpret:
        return reinterpret(own(step.a), step.dtype, step.to);
      case StepKind::ramp:
        return wrap(*at(step.a) + *at(step.b) * static_cast<uint64_t>(lane), step.dtype);
      case StepKind::broadcast:
        return *at(step.a);
      case StepKind::copy:
        return own(step.a);
      case StepKind::mask_and: {
        const bool outer = step.a < 0 || own(step.a) != 0;
        return outer && (own(step.b) != 0) != step.flag;
      }
      case StepKind::intrinsic: {
        const Cell args[3] = {own(step.a), step.b < 0 ? 0 : own(step.b), step.c < 0 ? 0 : own(step.c)};
        return intrinsic(step.which, args, step.dtype);
      }
      default:
        throw InternalError("a step that is not one of lanes");
    }
  }

  Cell loop_value(const Step& step) const {
    const int64_t done = number(step.b), last = number(step.c) - 1;
    const int64_t place = step.flag && options_.reverse_parallel ? last - done : done;
    return wrap(static_cast<uint64_t>(number(step.a)) + static_cast<uint64_t>(place), step.dtype);
  }

  bool is_unknown(int slot) const { return is_unknown_[static_cast<size_t>(slot)]; }

  // The cell, on which what happens depends.
  Cell known(const Step& step, int slot) {
    if (is_unknown(slot)) fail(step, "what is done depends on an element that was never written");
    return *at(slot);
  }

  bool depends_on_unknown(const Step& step, int lane) const {
    const bool is_broadcast = step.kind == StepKind::broadcast || step.kind == StepKind::ramp;
    const int own = is_broadcast ? 0 : lane;
    if (step.kind == StepKind::select) {
      const int condition = step.c + (step.a_lanes == 1 ? 0 : lane);
      const bool takes_a = cells_[static_cast<size_t>(condition)] != 0;
      return is_unknown(condition) || is_unknown((takes_a ? step.a : step.b) + lane);
    }
    for (const int slot : {step.a, step.b, step.c}) {
      if (slot >= 0 && is_unknown(slot + own)) return true;
    }
    return false;
  }

  // Lowest lane first.
  void reduce_add(const Step& step) {
    Cell sum = *at(step.a);
    for (int lane = 1; lane < step.a_lanes; ++lane)
      sum = binary(BinaryOp::add, sum, at(step.a)[lane], step.dtype.element());
    *at(step.dst) = sum;
    bool unknown = false;
    for (int lane = 0; lane < step.a_lanes; ++lane) unknown = unknown || is_unknown(step.a + lane);
    is_unknown_[static_cast<size_t>(step.dst)] = unknown;
  }

  // --- memory

  [[noreturn]] void fail(const Step& step, std::string what) const {
    const tir::Stmt& s = program_.statements[static_cast<size_t>(step.statement)];
    const std::string place = s->span ? to_string(s->span) + ": " : "";
    throw_user_error("{}{}: {}, in `{}`", place, tir::symbol_of(*function_), what, tir::summary(s));
  }

  // The element that lane `lane` of an access means, counted from the first.
  int64_t offset_of(const Step& step, const Memory& memory, int lane) {
    int64_t offset = 0;
    for (size_t d = 0; d < step.indices.size(); ++d) {
      const auto [slot, lanes] = step.indices[d];
      const auto index = static_cast<int64_t>(known(step, slot + (lanes == 1 ? 0 : lane)));
      if (index < 0 || index >= memory.dims[d])
        fail(step, fmt::format("index {} is out of bounds for dimension {} of '{}', which is {}", index, d,
                               name_of(step), memory.dims[d]));
      offset += index * memory.strides[d];
    }
    return offset;
  }
  const std::string& name_of(const Step& step) const {
    return program_.buffers[static_cast<size_t>(step.buffer)].buffer->name;
  }

  bool is_wanted(const Step& step, int lane) {
    if (step.mask < 0) return true;
    if (step.lanes > 1) return known(step, step.mask + lane) != 0;
    // One element for all lanes is read when any lane wants it.
    bool wanted = false;
    for (int i = 0; i < step.mask_lanes; ++i) wanted = wanted || known(step, step.mask + i) != 0;
    return wanted;
  }

  void load(const Step& step) {
    const Memory& memory = memory_[static_cast<size_t>(step.buffer)];
    const bool is_consecutive = step.kind == StepKind::vector_load;
    for (int lane = 0; lane < step.lanes; ++lane) {
      at(step.dst)[lane] = 0;
      is_unknown_[static_cast<size_t>(step.dst + lane)] = false;
      if (!is_wanted(step, lane)) continue;
      int64_t offset = offset_of(step, memory, lane);
      if (is_consecutive) offset += static_cast<int64_t>(known(step, step.b)) + lane;
      if (offset < 0 || offset >= memory.count)
        fail(step,
             fmt::format("element {} is out of bounds for '{}', which has {}", offset, name_of(step), memory.count));
      is_unknown_[static_cast<size_t>(step.dst + lane)] =
          !memory.is_known.empty() && !memory.is_known[static_cast<size_t>(offset)];
      const auto size = static_cast<int64_t>(step.dtype.bytes());
      at(step.dst)[lane] = read_element(memory.data + offset * size, step.dtype);
    }
  }

  void store(const Step& step) {
    Memory& memory = memory_[static_cast<size_t>(step.buffer)];
    for (int lane = 0; lane < step.lanes; ++lane) {
      const int64_t offset = offset_of(step, memory, lane);
      memory.is_known[static_cast<size_t>(offset)] = !is_unknown(step.a + lane);
      write_element(memory.data + offset * static_cast<int64_t>(step.dtype.bytes()), at(step.a)[lane], step.dtype);
    }
  }

  const tir::PrimFunc& function_;
  const TirOptions& options_;
  Program program_;
  std::vector<Cell> cells_;
  std::vector<bool> is_unknown_;  // per cell: whether it depends on an element that was never written
  std::vector<Memory> memory_;
  uint64_t num_jumps_ = 0;
  std::unordered_set<const PrimVarNode*> bound_;
};

}  // namespace

std::vector<NDArray> run_prim_func(const tir::PrimFunc& function, const std::vector<NDArray>& inputs,
                                   const TirOptions& options) {
  tir::verify(function);
  return Machine(function, inputs, options).run();
}

}  // namespace headrace::interp
