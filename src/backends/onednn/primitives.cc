#include "backends/onednn/primitives.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <stdexcept>
#include <string_view>

#include "backends/onednn/arena_plan.h"

// The runtime of OpenMP that oneDNN is linked to.
extern "C" void omp_set_num_threads(int);
extern "C" int omp_get_max_threads(void);

namespace headrace_onednn {

using dnnl::algorithm;
using dnnl::memory;
using dnnl::prop_kind;

namespace {

constexpr size_t kAlignment = 64;
constexpr auto kFloat = memory::data_type::f32;

// The number of threads that oneDNN plans and runs with is the calling thread's.
class ThreadCount {
 public:
  explicit ThreadCount(int count) : before_(omp_get_max_threads()) { omp_set_num_threads(count); }
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;
  ~ThreadCount() { omp_set_num_threads(before_); }

 private:
  int before_;
};

// Row-major, of at least one axis.
memory::desc plain(Dims dims) {
  if (dims.empty()) dims = {1};
  memory::dims strides(dims.size(), 1);
  for (size_t i = dims.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * dims[i];
  return {dims, kFloat, strides};
}

memory::desc any(const Dims& dims) { return {dims, kFloat, memory::format_tag::any}; }

algorithm to_dnnl(Algorithm one) {
  switch (one) {
    case Algorithm::pool_max:
      return algorithm::pooling_max;
    case Algorithm::pool_average:
      return algorithm::pooling_avg_exclude_padding;
    case Algorithm::pool_average_padded:
      return algorithm::pooling_avg_include_padding;
    case Algorithm::relu:
      return algorithm::eltwise_relu;
    case Algorithm::logistic:
      return algorithm::eltwise_logistic;
    case Algorithm::tanh:
      return algorithm::eltwise_tanh;
    case Algorithm::exp:
      return algorithm::eltwise_exp;
    case Algorithm::sqrt:
      return algorithm::eltwise_sqrt;
    case Algorithm::log:
      return algorithm::eltwise_log;
    case Algorithm::abs:
      return algorithm::eltwise_abs;
    case Algorithm::clip:
      return algorithm::eltwise_clip;
    case Algorithm::gelu:
      return algorithm::eltwise_gelu_erf;
    case Algorithm::swish:
      return algorithm::eltwise_swish;
    case Algorithm::linear:
      return algorithm::eltwise_linear;
    case Algorithm::add:
      return algorithm::binary_add;
    case Algorithm::subtract:
      return algorithm::binary_sub;
    case Algorithm::multiply:
      return algorithm::binary_mul;
    case Algorithm::divide:
      return algorithm::binary_div;
    case Algorithm::maximum:
      return algorithm::binary_max;
    case Algorithm::minimum:
      return algorithm::binary_min;
    case Algorithm::none:
    case Algorithm::softmax:
    case Algorithm::log_softmax:
      break;
  }
  throw std::runtime_error("its bytes are damaged: an op has an algorithm of another kind; compile the model again");
}

// Copies of an attribute object are the same object.
dnnl::primitive_attr plain_attr() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

memory::dims part(const Dims& sizes, size_t from, size_t count) {
  const auto begin = sizes.begin() + static_cast<int64_t>(from);
  return {begin, begin + static_cast<int64_t>(count)};
}

// Dilations of oneDNN are 0 where there is none.
memory::dims dilations(const Dims& sizes, size_t from, size_t count) {
  memory::dims all = part(sizes, from, count);
  for (int64_t& dilation : all) --dilation;
  return all;
}

// Whether a primitive is code that oneDNN generates for its sizes. Pools that it compiles ahead of time take up to
// twenty times as long, and broadcasts several hundred times (a product by channels of 1x64x56x56 in blocks of 8: 30 ms
// and 0.04).
bool is_fast(const dnnl::primitive_desc_base& pd) { return std::string_view(pd.impl_info_str()).starts_with("jit"); }

// Layouts in blocks of channels for tensors of a rank, with the number of channels in a block.
std::vector<std::pair<memory::format_tag, int64_t>> blocked_tags(size_t rank) {
  using Tag = memory::format_tag;
  switch (rank) {
    case 3:
      return {{Tag::aBc16b, 16}, {Tag::aBc8b, 8}};
    case 4:
      return {{Tag::aBcd16b, 16}, {Tag::aBcd8b, 8}};
    case 5:
      return {{Tag::aBcde16b, 16}, {Tag::aBcde8b, 8}};
    default:
      return {};
  }
}

// The layouts in which a concat is made, row-major order first.
std::vector<memory::format_tag> concat_tags(size_t rank) {
  using Tag = memory::format_tag;
  constexpr Tag kPlain[] = {Tag::a, Tag::ab, Tag::abc, Tag::abcd, Tag::abcde, Tag::abcdef};
  std::vector<Tag> tags{kPlain[std::clamp<size_t>(rank, 1, std::size(kPlain)) - 1]};
  for (const auto& [tag, block] : blocked_tags(rank)) tags.push_back(tag);
  if (rank == 4) tags.push_back(Tag::acdb);
  if (rank == 5) tags.push_back(Tag::acdeb);
  return tags;
}

// Whether a tensor with the layout `dense`, which has no gaps, may also lie where the part of another tensor does: the
// elements of the part follow each other in the same order, and it begins where a vector may.
bool has_form_of(const memory::desc& part, const memory::desc& dense) {
  constexpr size_t kVectorBytes = 32;
  const auto &part_blocks = part.data.format_desc.blocking, &dense_blocks = dense.data.format_desc.blocking;
  for (int i = 0; i < part.data.ndims; ++i) {
    int64_t outer = part.data.padded_dims[i];
    for (int k = 0; k < part_blocks.inner_nblks; ++k) {
      if (part_blocks.inner_idxs[k] == i) outer /= part_blocks.inner_blks[k];
    }
    if (outer > 1 && part_blocks.strides[i] != dense_blocks.strides[i]) return false;
  }
  return static_cast<size_t>(part.data.offset0) * sizeof(float) % kVectorBytes == 0;
}

// Whether a pool in blocks of channels, the conversions included, takes less time than one in row-major order. Measured
// with AVX2: the conversion costs less than the pool saves where blocks pad channels to at most three times their
// number (3x3 by steps of 2 over 3 channels of 224x224: 2.4 ms and 0.7), but a pool over all positions, which reads
// each element once, saves less (average over 3 channels of 224x224: 0.14 ms and 0.20; over 4 channels 0.19 and 0.15).
bool pays_to_block(const Dims& input, const Dims& output, int64_t block) {
  const int64_t channels = input[1], padded = (channels + block - 1) / block * block;
  const bool is_global = num_elements(output) == input[0] * channels;
  return padded <= (is_global ? 2 : 3) * channels;
}

}  // namespace

std::byte* Arenas::Arena::begin() const {
  const auto address = reinterpret_cast<uintptr_t>(bytes.get());
  return reinterpret_cast<std::byte*>((address + kAlignment - 1) / kAlignment * kAlignment);
}

void Arenas::reserve(size_t nbytes) {
  const std::scoped_lock lock(mutex_);
  nbytes_ = std::max(nbytes_, nbytes);
}

Arenas::Arena Arenas::take() {
  size_t nbytes = 0;
  {
    const std::scoped_lock lock(mutex_);
    nbytes = nbytes_;
    if (!free_.empty()) {
      Arena arena = std::move(free_.back());
      free_.pop_back();
      if (arena.nbytes >= nbytes) return arena;  // one that was made before a larger network came is let go
    }
  }
  return {.bytes = std::unique_ptr<std::byte[]>(new std::byte[nbytes + kAlignment]), .nbytes = nbytes};
}

void Arenas::give_back(Arena arena) {
  const std::scoped_lock lock(mutex_);
  free_.push_back(std::move(arena));
}

struct Primitives::Context {
  dnnl::stream stream;
  std::vector<std::unordered_map<int, memory>> args;  // arguments per step
  struct Result {
    memory data;
    size_t index, offset;  // number of the output, and the place in it in bytes
  };
  std::vector<std::pair<memory, size_t>> inputs;  // whose data each run sets
  std::vector<Result> outputs;                    // likewise
  std::vector<std::pair<memory, size_t>> placed;  // in the arena, at an offset
  const std::byte* arena = nullptr;               // in which they lie
};

// Makes the primitives of one network, op by op.
class Builder {
 public:
  explicit Builder(Primitives& made)
      : made_(made), network_(*made.network_), slot_of_(network_.tensors.size(), SIZE_MAX) {
    count_uses();
  }

  void build() {
    for (size_t i = 0; i < network_.inputs.size(); ++i)
      set_slot(network_.inputs[i], new_slot(dims_of(network_.inputs[i]), Place::input, i));
    for (const Op& op : network_.ops) {
      add(op);
      for (const int32_t input : op.inputs) use(input);
      for (const PostOp& post : op.post) {
        if (post.tensor >= 0) use(post.tensor);
      }
    }
    for (size_t i = 0; i < network_.outputs.size(); ++i) add_output(network_.outputs[i], i);
    lay_out();
  }

 private:
  using Place = Primitives::Place;
  using Slot = Primitives::Slot;
  using Step = Primitives::Step;
  using Storage = Primitives::Storage;

  static size_t at(int32_t index) { return static_cast<size_t>(index); }
  const Dims& dims_of(int32_t tensor) const { return network_.tensors[at(tensor)].dims; }
  bool is_constant(int32_t tensor) const { return network_.tensors[at(tensor)].constant >= 0; }

  void count_uses() {
    uses_.resize(network_.tensors.size(), 0);
    for (const Op& op : network_.ops) {
      for (const int32_t input : op.inputs) ++uses_[at(input)];
      for (const PostOp& post : op.post) {
        if (post.tensor >= 0) ++uses_[at(post.tensor)];
      }
    }
    for (const int32_t output : network_.outputs) ++uses_[at(output)];
  }

  size_t new_storage(Place place, size_t nbytes, size_t index = 0) {
    made_.storages_.push_back({.place = place, .index = index, .nbytes = nbytes});
    groups_.push_back(groups_.size());
    live_.push_back(0);
    return made_.storages_.size() - 1;
  }
  size_t add_slot(memory::desc desc, size_t storage) {
    made_.slots_.push_back({std::move(desc), storage});
    return made_.slots_.size() - 1;
  }
  size_t new_slot(const memory::desc& desc, Place place, size_t index = 0) {
    return add_slot(desc, new_storage(place, desc.get_size(), index));
  }
  size_t new_slot(const Dims& dims, Place place, size_t index) { return new_slot(plain(dims), place, index); }
  size_t new_slot(const memory::desc& desc) { return new_slot(desc, Place::arena); }

  void set_slot(int32_t tensor, size_t slot) {
    slot_of_[at(tensor)] = slot;
    if (uses_[at(tensor)] > 0) ++live_[group_of(slot)];
  }

  // Returns the storage that holds a slot's and all that are joined with it.
  size_t group_of(size_t slot) {
    size_t storage = made_.slots_[slot].storage;
    while (groups_[storage] != storage) storage = groups_[storage] = groups_[groups_[storage]];
    return storage;
  }

  void use(int32_t tensor) {
    if (--uses_[at(tensor)] > 0 || is_constant(tensor)) return;
    --live_[group_of(slot_of(tensor))];
    const auto copies = copies_.find(tensor);
    if (copies == copies_.end()) return;
    for (const size_t copy : copies->second) --live_[group_of(copy)];
  }

  const memory::desc& desc_of(size_t slot) const { return made_.slots_[slot].desc; }

  // Returns the slot of a tensor in the layout that it has; that of a constant is row-major.
  size_t slot_of(int32_t tensor) {
    size_t& slot = slot_of_[at(tensor)];
    if (slot == SIZE_MAX && is_constant(tensor)) {
      const float* data = network_.constants[at(network_.tensors[at(tensor)].constant)].data;
      const memory::desc desc = plain(dims_of(tensor));
      slot = new_slot(desc, Place::constant);
      made_.storages_[made_.slots_[slot].storage].constant = memory(desc, made_.engine_, const_cast<float*>(data));
    }
    return slot;
  }

  // Returns the slot of a tensor in a layout: what it has, a constant that is converted now, or a new conversion.
  size_t in_layout(int32_t tensor, const memory::desc& desc) { return in_layout(tensor, slot_of(tensor), desc); }

  size_t in_layout(int32_t tensor, size_t from, const memory::desc& desc) {
    if (desc_of(from) == desc) return from;
    for (const size_t slot : copies_[tensor]) {
      if (desc_of(slot) == desc) return slot;
    }
    const bool is_now = made_.storages_[made_.slots_[from].storage].place == Place::constant;
    const size_t slot = new_slot(desc, is_now ? Place::constant : Place::arena);
    if (is_now) {
      memory& source = made_.storages_[made_.slots_[from].storage].constant;
      memory converted(desc, made_.engine_);
      const memory view(desc_of(from), made_.engine_, source.get_data_handle());
      dnnl::stream stream(made_.engine_);
      dnnl::reorder(view, converted).execute(stream, const_cast<memory&>(view), converted);
      stream.wait();
      made_.storages_[made_.slots_[slot].storage].constant = converted;
    } else {
      add_reorder(from, slot);
    }
    copies_[tensor].push_back(slot);
    ++live_[group_of(slot)];
    return slot;
  }

  void add_reorder(size_t from, size_t to) {
    const dnnl::reorder::primitive_desc pd(made_.engine_, desc_of(from), made_.engine_, desc_of(to), attr_);
    add_step(dnnl::reorder(pd), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}, pd.scratchpad_desc());
  }

  void add_step(dnnl::primitive primitive, std::vector<std::pair<int, size_t>> args, const memory::desc& scratchpad) {
    const size_t step = made_.steps_.size();
    for (const auto& [arg, slot] : args) {
      Storage& storage = made_.storages_[made_.slots_[slot].storage];
      storage.first = std::min(storage.first, step);
      storage.last = step;
    }
    made_.scratchpad_nbytes_ = std::max(made_.scratchpad_nbytes_, scratchpad.get_size());
    made_.steps_.push_back({std::move(primitive), std::move(args), scratchpad});
  }

  void add(const Op& op) {
    switch (op.kind) {
      case OpKind::convolution:
        return add_convolution(op);
      case OpKind::dense:
        return add_dense(op);
      case OpKind::matmul:
        return add_matmul(op);
      case OpKind::pool:
        return add_pool(op);
      case OpKind::eltwise:
        return add_eltwise(op);
      case OpKind::binary:
        return add_binary(op);
      case OpKind::softmax:
        return add_softmax(op);
      case OpKind::concat:
        return add_concat(op);
      case OpKind::view:
        return add_view(op);
      case OpKind::transpose:
        return add_transpose(op);
      case OpKind::layer_norm:
        return add_layer_norm(op);
    }
  }

  // The attributes of an op with what is done on its result, and the arguments that this takes.
  dnnl::primitive_attr attr_of(const Op& op, std::vector<std::pair<int, size_t>>& args) {
    dnnl::post_ops all;
    for (const PostOp& post : op.post) {
      if (post.kind == PostKind::eltwise) {
        all.append_eltwise(1.0F, to_dnnl(post.algorithm), post.alpha, post.beta);
      } else if (post.kind == PostKind::sum) {
        all.append_sum();
      } else {
        args.emplace_back(DNNL_ARG_ATTR_MULTIPLE_POST_OP(all.len()) | DNNL_ARG_SRC_1,
                          in_layout(post.tensor, plain(dims_of(post.tensor))));
        all.append_binary(to_dnnl(post.algorithm), plain(dims_of(post.tensor)));
      }
    }
    dnnl::primitive_attr attr = plain_attr();
    attr.set_post_ops(all);
    return attr;
  }

  // Returns the slot that an op with a sum writes to, which holds the other summand.
  size_t summand(int32_t tensor, const memory::desc& desc) {
    const size_t from = in_layout(tensor, desc);
    const bool is_last_use = uses_[at(tensor)] == 1 && live_[group_of(from)] == 1;
    if (is_last_use && made_.storages_[made_.slots_[from].storage].place == Place::arena) return from;
    const size_t copy = new_slot(desc);
    add_reorder(from, copy);
    return copy;
  }

  size_t result_slot(const Op& op, const memory::desc& desc) {
    for (const PostOp& post : op.post) {
      if (post.kind == PostKind::sum) return summand(post.tensor, desc);
    }
    return new_slot(desc);
  }

  void add_convolution(const Op& op) {
    const int64_t groups = op.sizes[0];
    const size_t axes = dims_of(op.inputs[0]).size() - 2;
    Dims weights = dims_of(op.inputs[1]);
    size_t weights_slot = slot_of(op.inputs[1]);
    if (groups > 1) {
      weights[0] /= groups;
      weights.insert(weights.begin(), groups);
      weights_slot = grouped(op.inputs[1], weights);
    }
    std::vector<std::pair<int, size_t>> args;
    const dnnl::primitive_attr attr = attr_of(op, args);
    const auto strides = part(op.sizes, 1, axes), dilation = dilations(op.sizes, 1 + axes, axes),
               before = part(op.sizes, 1 + 2 * axes, axes), after = part(op.sizes, 1 + 3 * axes, axes);
    const memory::desc bias = op.inputs.size() == 3 ? plain(dims_of(op.inputs[2])) : memory::desc();
    const dnnl::convolution_forward::primitive_desc pd(
        {prop_kind::forward_inference, algorithm::convolution_direct, any(dims_of(op.inputs[0])), any(weights), bias,
         any(dims_of(op.output)), strides, dilation, before, after},
        attr, made_.engine_);
    args.emplace_back(DNNL_ARG_SRC, in_layout(op.inputs[0], pd.src_desc()));
    args.emplace_back(DNNL_ARG_WEIGHTS, in_layout(op.inputs[1], weights_slot, pd.weights_desc()));
    finish(op, dnnl::convolution_forward(pd), pd.dst_desc(), pd.scratchpad_desc(), std::move(args));
  }

  // A view of weights with an axis of groups, in row-major order.
  size_t grouped(int32_t tensor, const Dims& dims) {
    const size_t from = in_layout(tensor, plain(dims_of(tensor)));
    return add_slot(plain(dims), made_.slots_[from].storage);
  }

  void add_dense(const Op& op) {
    std::vector<std::pair<int, size_t>> args;
    const dnnl::primitive_attr attr = attr_of(op, args);
    const memory::desc bias = op.inputs.size() == 3 ? plain(dims_of(op.inputs[2])) : memory::desc();
    const dnnl::inner_product_forward::primitive_desc pd({prop_kind::forward_inference, any(dims_of(op.inputs[0])),
                                                          any(dims_of(op.inputs[1])), bias, any(dims_of(op.output))},
                                                         attr, made_.engine_);
    args.emplace_back(DNNL_ARG_SRC, in_layout(op.inputs[0], pd.src_desc()));
    args.emplace_back(DNNL_ARG_WEIGHTS, in_layout(op.inputs[1], pd.weights_desc()));
    finish(op, dnnl::inner_product_forward(pd), pd.dst_desc(), pd.scratchpad_desc(), std::move(args));
  }

  void finish(const Op& op, dnnl::primitive primitive, const memory::desc& result, const memory::desc& scratchpad,
              std::vector<std::pair<int, size_t>> args) {
    if (op.inputs.size() == 3) args.emplace_back(DNNL_ARG_BIAS, in_layout(op.inputs[2], plain(dims_of(op.inputs[2]))));
    const size_t slot = result_slot(op, result);
    args.emplace_back(DNNL_ARG_DST, slot);
    add_step(std::move(primitive), std::move(args), scratchpad);
    set_slot(op.output, slot);
  }

  // An operand of a matrix product, with its last two axes swapped if it is transposed.
  size_t matrix(int32_t tensor, bool is_transposed) {
    const size_t slot = in_layout(tensor, plain(dims_of(tensor)));
    if (!is_transposed) return slot;
    const auto rank = static_cast<int>(dims_of(tensor).size());
    std::vector<int> axes(static_cast<size_t>(rank));
    for (int i = 0; i < rank; ++i) axes[static_cast<size_t>(i)] = i < rank - 2 ? i : 2 * rank - 3 - i;
    return add_slot(desc_of(slot).permute_axes(axes), made_.slots_[slot].storage);
  }

  void add_matmul(const Op& op) {
    const size_t a = matrix(op.inputs[0], op.sizes[0] != 0), b = matrix(op.inputs[1], op.sizes[1] != 0);
    const dnnl::matmul::primitive_desc pd({desc_of(a), desc_of(b), plain(dims_of(op.output))}, attr_, made_.engine_);
    const size_t slot = new_slot(pd.dst_desc());
    add_step(dnnl::matmul(pd), {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, slot}}, pd.scratchpad_desc());
    set_slot(op.output, slot);
  }

  using Pool = dnnl::pooling_v2_forward::primitive_desc;

  // Returns an empty description if oneDNN has no pool for this layout of the input.
  Pool find_pool(const Op& op, const memory::desc& source) const {
    const size_t axes = dims_of(op.inputs[0]).size() - 2;
    return Pool({prop_kind::forward_inference, to_dnnl(op.algorithm), source, any(dims_of(op.output)),
                 part(op.sizes, axes, axes), part(op.sizes, 0, axes), dilations(op.sizes, 2 * axes, axes),
                 part(op.sizes, 3 * axes, axes), part(op.sizes, 4 * axes, axes)},
                attr_, made_.engine_, true);
  }

  void add_pool(const Op& op) {
    size_t from = slot_of(op.inputs[0]);
    Pool pd = find_pool(op, desc_of(from));
    if (!pd) throw std::runtime_error("oneDNN has no primitive for a pool");
    if (!is_fast(pd) && desc_of(from) == plain(dims_of(op.inputs[0]))) {
      if (Pool blocked = find_blocked_pool(op)) {
        pd = blocked;
        from = in_layout(op.inputs[0], pd.src_desc());
      }
    }
    add_unary(op, dnnl::pooling_v2_forward(pd), from, pd.dst_desc(), pd.scratchpad_desc());
  }

  // Returns a fast pool over an input in blocks of channels, for an input in row-major order that has none; an empty
  // description if there is none either whose conversion takes less time than it saves.
  Pool find_blocked_pool(const Op& op) const {
    const Dims& dims = dims_of(op.inputs[0]);
    for (const auto& [tag, block] : blocked_tags(dims.size())) {
      Pool pd = find_pool(op, {dims, kFloat, tag});
      if (pd && is_fast(pd) && pays_to_block(dims, dims_of(op.output), block)) return pd;
    }
    return {};
  }

  void add_unary(const Op& op, dnnl::primitive primitive, size_t from, const memory::desc& result,
                 const memory::desc& scratchpad) {
    const size_t slot = new_slot(result);
    add_step(std::move(primitive), {{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, slot}}, scratchpad);
    set_slot(op.output, slot);
  }

  void add_eltwise(const Op& op) {
    const size_t from = slot_of(op.inputs[0]);
    const dnnl::eltwise_forward::primitive_desc pd(
        {prop_kind::forward_inference, to_dnnl(op.algorithm), desc_of(from), op.numbers[0], op.numbers[1]}, attr_,
        made_.engine_);
    add_unary(op, dnnl::eltwise_forward(pd), from, pd.dst_desc(), pd.scratchpad_desc());
  }

  using Binary = dnnl::binary::primitive_desc;

  // The second operand has the layout of the first, or is broadcast. Takes the first of these layouts for which oneDNN
  // generates code: those that the operands have, blocks for both, row-major order for both.
  void add_binary(const Op& op) {
    const Dims &dims = dims_of(op.inputs[0]), &other = dims_of(op.inputs[1]);
    const memory::desc own = desc_of(slot_of(op.inputs[0]));
    const auto find = [&](const memory::desc& a, const memory::desc& b) {
      return Binary({to_dnnl(op.algorithm), a, b, a}, attr_, made_.engine_, true);
    };
    Binary pd = find(own, dims == other ? own : plain(other));
    for (const auto& [tag, block] : blocked_tags(dims.size())) {
      const memory::desc blocked(dims, kFloat, tag);
      if (own == blocked && dims != other && !(pd && is_fast(pd))) pd = find(own, {other, kFloat, tag});
    }
    if (const Binary rows = find(plain(dims), plain(other)); !pd || (!is_fast(pd) && rows && is_fast(rows))) pd = rows;
    if (!pd) throw std::runtime_error("oneDNN has no primitive for a binary op");
    const size_t a = in_layout(op.inputs[0], pd.src0_desc()), b = in_layout(op.inputs[1], pd.src1_desc());
    const size_t slot = new_slot(pd.dst_desc());
    add_step(dnnl::binary(pd), {{DNNL_ARG_SRC_0, a}, {DNNL_ARG_SRC_1, b}, {DNNL_ARG_DST, slot}}, pd.scratchpad_desc());
    set_slot(op.output, slot);
  }

  void add_softmax(const Op& op) {
    const size_t from = in_layout(op.inputs[0], plain(dims_of(op.inputs[0])));
    const auto kind = op.algorithm == Algorithm::log_softmax ? algorithm::softmax_log : algorithm::softmax_accurate;
    const dnnl::softmax_v2_forward::primitive_desc pd(
        {prop_kind::forward_inference, kind, desc_of(from), desc_of(from), static_cast<int>(op.sizes[0])}, attr_,
        made_.engine_);
    add_unary(op, dnnl::softmax_v2_forward(pd), from, pd.dst_desc(), pd.scratchpad_desc());
  }

  // Operands that lie one after another in the result are made in its memory; others are copied there.
  void add_concat(const Op& op) {
    const memory::format_tag tag = concat_tag(op);
    std::vector<size_t> parts;
    for (const int32_t input : op.inputs) parts.push_back(in_layout(input, {dims_of(input), kFloat, tag}));
    const memory::desc whole(dims_of(op.output), kFloat, tag);
    const size_t slot = new_slot(whole);
    memory::dims begin(whole.data.ndims, 0);
    for (size_t i = 0; i < parts.size(); ++i) {
      const Dims& dims = dims_of(op.inputs[i]);
      join(parts[i], whole.submemory_desc(dims, begin), made_.slots_[slot].storage);
      begin[static_cast<size_t>(op.sizes[0])] += dims[static_cast<size_t>(op.sizes[0])];
    }
    set_slot(op.output, slot);
  }

  // Returns the layout of most elements among the operands of a concat, of those that have no padding.
  memory::format_tag concat_tag(const Op& op) {
    const std::vector<memory::format_tag> tags = concat_tags(dims_of(op.output).size());
    std::vector<int64_t> elements(tags.size(), 0);
    for (size_t i = 0; i < tags.size(); ++i) {
      bool has_padding = false;
      for (const int32_t input : op.inputs) {
        const memory::desc desc(dims_of(input), kFloat, tags[i]);
        has_padding |= desc.data.padded_dims[1] != desc.data.dims[1] && desc.data.ndims > 1;
        if (desc_of(slot_of(input)) == desc) elements[i] += num_elements(dims_of(input));
      }
      if (has_padding) elements[i] = 0;
    }
    return tags[static_cast<size_t>(std::max_element(elements.begin(), elements.end()) - elements.begin())];
  }

  // Gives what a slot holds its place in the storage of a concat. Two things stay where they are and are copied: memory
  // that is not of the arena, and memory that is part of another storage, as that of an operand of two concats is.
  void join(size_t slot, const memory::desc& part, size_t whole) {
    const size_t own = made_.slots_[slot].storage;
    Storage& storage = made_.storages_[own];
    const bool is_free = storage.place == Place::arena && storage.parent == SIZE_MAX;
    if (!is_free || storage.nbytes != desc_of(slot).get_size() || !has_form_of(part, desc_of(slot)))
      return add_reorder(slot, add_slot(part, whole));
    storage.parent = whole;
    storage.offset = static_cast<size_t>(part.data.offset0) * sizeof(float);
    groups_[own] = whole;
    live_[whole] += live_[own];
  }

  void add_view(const Op& op) {
    const size_t from = in_layout(op.inputs[0], plain(dims_of(op.inputs[0])));
    set_slot(op.output, add_slot(plain(dims_of(op.output)), made_.slots_[from].storage));
  }

  void add_transpose(const Op& op) {
    const size_t from = in_layout(op.inputs[0], plain(dims_of(op.inputs[0])));
    std::vector<int> axes(op.sizes.size(), 0);
    for (size_t i = 0; i < op.sizes.size(); ++i) axes[static_cast<size_t>(op.sizes[i])] = static_cast<int>(i);
    const size_t turned = add_slot(desc_of(from).permute_axes(axes), made_.slots_[from].storage);
    const size_t slot = new_slot(plain(dims_of(op.output)));
    add_reorder(turned, slot);
    set_slot(op.output, slot);
  }

  void add_layer_norm(const Op& op) {
    const size_t from = in_layout(op.inputs[0], plain(dims_of(op.inputs[0])));
    const dnnl::layer_normalization_forward::primitive_desc pd(
        {prop_kind::forward_inference, desc_of(from), op.numbers[0],
         dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift},
        attr_, made_.engine_);
    const size_t slot = new_slot(pd.dst_desc());
    add_step(dnnl::layer_normalization_forward(pd),
             {{DNNL_ARG_SRC, from},
              {DNNL_ARG_SCALE, in_layout(op.inputs[1], plain(dims_of(op.inputs[1])))},
              {DNNL_ARG_SHIFT, in_layout(op.inputs[2], plain(dims_of(op.inputs[2])))},
              {DNNL_ARG_DST, slot}},
             pd.scratchpad_desc());
    set_slot(op.output, slot);
  }

  // A result that lies in row-major order in memory of its own is written where the caller wants it, with its parts.
  void add_output(int32_t tensor, size_t index) {
    const size_t from = slot_of(tensor);
    Storage& storage = made_.storages_[made_.slots_[from].storage];
    if (storage.place == Place::arena && storage.parent == SIZE_MAX && desc_of(from) == plain(dims_of(tensor))) {
      storage.place = Place::output;
      storage.index = index;
      return;
    }
    add_reorder(from, new_slot(dims_of(tensor), Place::output, index));
  }

  // Gives each storage the first place in the arena that is free while it holds something, and then its parts theirs. A
  // storage was made after its parts.
  void lay_out() {
    for (const Storage& part : made_.storages_) {
      if (part.parent == SIZE_MAX || part.first == SIZE_MAX) continue;
      Storage& whole = made_.storages_[part.parent];
      whole.first = std::min(whole.first, part.first);
      whole.last = std::max(whole.last, part.last);
    }
    place_whole();
    for (size_t i = made_.storages_.size(); i-- > 0;) {
      Storage& part = made_.storages_[i];
      if (part.parent == SIZE_MAX) continue;
      const Storage& whole = made_.storages_[part.parent];
      part.place = whole.place;
      part.index = whole.index;
      part.offset += whole.offset;
    }
  }

  void place_whole() {
    std::vector<Storage*> whole;
    std::vector<Lifetime> lifetimes;
    for (Storage& storage : made_.storages_) {
      if (storage.place != Place::arena || storage.parent != SIZE_MAX || storage.first == SIZE_MAX) continue;
      whole.push_back(&storage);
      lifetimes.push_back({.first = storage.first, .last = storage.last, .nbytes = storage.nbytes});
    }
    made_.arena_nbytes_ = plan_arena(lifetimes, kAlignment).nbytes;
    for (size_t i = 0; i < whole.size(); ++i) whole[i]->offset = lifetimes[i].offset;
  }

  Primitives& made_;
  const Network& network_;
  const dnnl::primitive_attr attr_ = plain_attr();
  std::vector<size_t> slot_of_;                    // slot per tensor, in the layout that its op gave it
  std::map<int32_t, std::vector<size_t>> copies_;  // slots per tensor, in other layouts
  std::vector<size_t> groups_;                     // per storage itself, or one that holds it (group_of)
  std::vector<int32_t> live_;                      // tensors with uses in each storage and its parts; 0 for a part
  std::vector<int32_t> uses_;                      // readers per tensor: ops that are still to come, and outputs
};

int32_t usable_threads(int32_t count) {
  static std::atomic<pid_t> owner = 0;  // the process whose threads they are
  if (count <= 1) return 1;
  pid_t known = 0;
  return owner.compare_exchange_strong(known, ::getpid()) || known == ::getpid() ? count : 1;
}

Primitives::Primitives(std::shared_ptr<const Network> network, int num_threads, Arenas& arenas)
    : arenas_(arenas), network_(std::move(network)), num_threads_(num_threads), engine_(dnnl::engine::kind::cpu, 0) {
  const ThreadCount threads(num_threads);
  Builder(*this).build();
  arenas_.reserve(arena_nbytes_ + scratchpad_nbytes_);
}

Primitives::~Primitives() = default;

std::unique_ptr<Primitives::Context> Primitives::make_context() const {
  auto context = std::make_unique<Context>();
  context->stream = dnnl::stream(engine_);
  std::vector<memory> memories;
  for (const Slot& slot : slots_) {
    const Storage& storage = storages_[slot.storage];
    void* data = storage.place == Place::constant ? storage.constant.get_data_handle() : nullptr;
    memories.emplace_back(slot.desc, engine_, data);
    if (storage.place == Place::input) context->inputs.emplace_back(memories.back(), storage.index);
    if (storage.place == Place::output) context->outputs.push_back({memories.back(), storage.index, storage.offset});
    if (storage.place == Place::arena) context->placed.emplace_back(memories.back(), storage.offset);
  }
  for (const Step& step : steps_) {
    auto& args = context->args.emplace_back();
    for (const auto& [arg, slot] : step.args) args.emplace(arg, memories[slot]);
    context->placed.emplace_back(memory(step.scratchpad, engine_, nullptr), arena_nbytes_);
    args.emplace(DNNL_ARG_SCRATCHPAD, context->placed.back().first);
  }
  return context;
}

std::unique_ptr<Primitives::Context> Primitives::take_context() {
  {
    const std::scoped_lock lock(mutex_);
    if (!free_.empty()) {
      std::unique_ptr<Context> context = std::move(free_.back());
      free_.pop_back();
      return context;
    }
  }
  return make_context();
}

std::vector<Primitives::StepInfo> Primitives::steps() const {
  std::vector<StepInfo> infos;
  for (const Step& step : steps_) {
    const char* implementation = nullptr;
    dnnl_primitive_desc_query(step.primitive.get_primitive_desc(), dnnl_query_impl_info_str, 0, &implementation);
    infos.push_back({step.primitive.get_kind(), implementation});
  }
  return infos;
}

void Primitives::run(DLTensor* const* args) {
  const ThreadCount threads(num_threads_);
  std::unique_ptr<Context> context = take_context();
  Arenas::Arena arena = arenas_.take();
  for (auto& [memory, index] : context->inputs) memory.set_data_handle(args[index]->data);
  for (auto& [memory, index, offset] : context->outputs)
    memory.set_data_handle(static_cast<std::byte*>(args[network_->inputs.size() + index]->data) + offset);
  if (context->arena != arena.begin()) {
    context->arena = arena.begin();
    for (auto& [memory, offset] : context->placed) memory.set_data_handle(arena.begin() + offset);
  }
  for (size_t i = 0; i < steps_.size(); ++i) steps_[i].primitive.execute(context->stream, context->args[i]);
  context->stream.wait();
  arenas_.give_back(std::move(arena));
  const std::scoped_lock lock(mutex_);
  free_.push_back(std::move(context));
}

}  // namespace headrace_onednn
