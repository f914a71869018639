// Writes a backend in C++17: a class with a few virtual functions over the tables of headrace/backend_abi.h.
//
//   class Mine : public headrace::plugin::Backend {
//     std::string name() const override { return "mine"; }
//     Verdict supports(const Node& call) const override { ... }
//     void compile(const Graph& region, const Request& request, Writer& out) const override { ... }
//     std::unique_ptr<Kernel> load(Reader& in) const override { ... }
//   };
//   HEADRACE_BACKEND(Mine)
//
// backend_steps.hpp beside this header saves more work where a region can run one op after another.
//
// The macro defines the entry of the library. Needs the C++ standard library, backend_abi.h and DLPack alone; all code
// is in this header, so that a plugin depends on no library of Headrace. Exceptions never leave the plugin: each
// function of the C interface catches them and passes their text on as the message.
//
// Graphs, nodes, types, attributes and constants are views of memory of the host: they are valid until the function
// that was given the graph returns. Threads may call every function of a backend and of a loaded region at once.
#ifndef HEADRACE_BACKEND_HPP_
#define HEADRACE_BACKEND_HPP_

#include <headrace/backend_abi.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace headrace {
namespace plugin {

// Refuses a region when `Backend::compile` throws it: the host then compiles the region natively, and shows the reason.
// Any other exception there ends the compile: throw such for mistakes of the user. In `supports` and `accepts` it is a
// no; any other exception there is a no with the reason HR_REASON_BACKEND_FAILED, which the conformance kit reports.
struct Refusal : std::runtime_error {
  explicit Refusal(const std::string& message, hr_reason code = HR_REASON_OP_UNSUPPORTED)
      : std::runtime_error(message), reason(code) {}
  hr_reason reason;
};

// Says whether a backend takes something; make it by `yes` or `no`.
struct Verdict {
  hr_reason reason = HR_REASON_NONE;
  std::string message;
};

inline Verdict yes() { return {}; }

// `message` is a sentence that is read after "NAME: ", the backend's name; "it" in it is the op: "its data is not
// float32".
inline Verdict no(std::string message, hr_reason reason = HR_REASON_OP_UNSUPPORTED) {
  return {reason, std::move(message)};
}

// Borrows `size` elements of an array.
template <typename T>
class Span {
 public:
  Span() = default;
  Span(const T* data, size_t size) : data_(data), size_(size) {}
  const T* data() const { return data_; }
  size_t size() const { return size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  // `index` must be below size().
  const T& operator[](size_t index) const { return data_[index]; }

 private:
  const T* data_ = nullptr;
  size_t size_ = 0;
};

template <typename T>
bool operator==(const Span<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < b.size(); ++i) {
    if (a[i] != b[i]) return false;
  }
  return true;
}

template <typename T>
bool operator!=(const Span<T>& a, const std::vector<T>& b) {
  return !(a == b);
}

// Returns whether elements of `dtype` are those of the C++ type T: bool, a number of 8 to 64 bits.
template <typename T>
bool is_dtype(const DLDataType& dtype) {
  static_assert(std::is_arithmetic<T>::value, "tensors hold numbers");
  const int code = std::is_same<T, bool>::value       ? int{kDLBool}
                   : std::is_floating_point<T>::value ? int{kDLFloat}
                   : std::is_signed<T>::value         ? int{kDLInt}
                                                      : int{kDLUInt};
  return dtype.code == code && dtype.bits == 8 * sizeof(T) && dtype.lanes == 1;
}

// The type of a tensor in a graph.
struct TensorType {
  DLDataType dtype{};
  Span<int64_t> shape;  // -1: only a run knows the size

  template <typename T>
  bool is() const {
    return is_dtype<T>(dtype);
  }
  size_t rank() const { return shape.size(); }
  bool is_static() const {
    for (const int64_t size : shape) {
      if (size < 0) return false;
    }
    return true;
  }
  // Counts the elements of a static shape; throws std::runtime_error for another.
  int64_t num_elements() const {
    int64_t count = 1;
    if (!is_static()) throw std::runtime_error("a tensor whose size only a run knows has no number of elements");
    for (const int64_t size : shape) count *= size;
    return count;
  }
};

// An attribute of a call, an item of one that is a list, or an option of the user. The getters throw std::runtime_error
// when it is of another kind. An option may be given as a text or as a number: integer(), boolean() and real() also read
// texts that are numbers, or "true" and "false", and text() gives the text of a number. An earlier host shows an option
// only as the user gave it.
class Attr {
 public:
  explicit Attr(const hr_attr& attr) : attr_(attr) {}
  static Attr of_option(const hr_attr& option) {
    Attr made(option);
    made.is_option_ = true;
    return made;
  }
  // The attribute of a node, or the item of it at `path`.
  Attr(const hr_attr& attr, const hr_graph_api* api, const hr_graph* graph, uint32_t node,
       std::vector<uint64_t> path = {})
      : attr_(attr), api_(api), graph_(graph), node_(node), path_(std::move(path)) {}
  std::string name() const { return attr_.name; }
  bool has_value() const { return attr_.kind != HR_ATTR_NONE; }
  int64_t integer() const {
    if (is_option_ && attr_.integers != nullptr && attr_.kind == HR_ATTR_TEXT) return attr_.integers[0];
    return need(HR_ATTR_INTEGER, "an integer"), attr_.integers[0];
  }
  bool boolean() const { return integer() != 0; }
  // Returns a real number; integers are such, too.
  double real() const {
    if (attr_.kind == HR_ATTR_INTEGER) return static_cast<double>(attr_.integers[0]);
    if (is_option_ && attr_.reals != nullptr && attr_.kind == HR_ATTR_TEXT) return attr_.reals[0];
    return need(HR_ATTR_REAL, "a number"), attr_.reals[0];
  }
  std::string text() const {
    const bool is_number = attr_.kind == HR_ATTR_INTEGER || attr_.kind == HR_ATTR_REAL;
    if (is_option_ && attr_.texts != nullptr && is_number) return attr_.texts[0];
    return need(HR_ATTR_TEXT, "a text"), attr_.texts[0];
  }
  Span<int64_t> integers() const { return need(HR_ATTR_INTEGERS, "a list of integers"), list(attr_.integers); }
  Span<double> reals() const { return need(HR_ATTR_REALS, "a list of numbers"), list(attr_.reals); }
  std::vector<std::string> texts() const {
    need(HR_ATTR_TEXTS, "a list of texts");
    return {attr_.texts, attr_.texts + attr_.count};
  }
  // Returns the items of a list of any kind, which may be lists themselves: attr("pad_width").items()[0].integers().
  // Throws std::runtime_error also where the host is too old to show them.
  std::vector<Attr> items() const {
    if (api_ == nullptr || !HR_HAS_FIELD(hr_graph_api, api_, item))
      throw std::runtime_error("this Headrace is too old to show the items of '" + name() + "'");
    std::vector<uint64_t> path = path_;
    const auto depth = static_cast<uint32_t>(path.size());
    const uint64_t count = api_->num_items(graph_, node_, attr_.name, path.data(), depth);
    const bool is_list = attr_.kind == HR_ATTR_INTEGERS || attr_.kind == HR_ATTR_REALS || attr_.kind == HR_ATTR_TEXTS;
    if (count == 0 && !is_list) throw std::runtime_error("'" + name() + "' is not a list");
    std::vector<Attr> items;
    path.push_back(0);
    for (; path.back() < count; ++path.back())
      items.emplace_back(api_->item(graph_, node_, attr_.name, path.data(), depth + 1), api_, graph_, node_, path);
    return items;
  }

 private:
  void need(int32_t kind, const char* words) const {
    if (attr_.kind == kind) return;
    const bool has_text = is_option_ && attr_.texts != nullptr && attr_.count == 1;
    throw std::runtime_error("'" + name() + "' is not " + words + (has_text ? ": " + std::string(attr_.texts[0]) : ""));
  }
  template <typename T>
  Span<T> list(const T* items) const {
    return {items, static_cast<size_t>(attr_.count)};
  }

  hr_attr attr_;
  bool is_option_ = false;
  const hr_graph_api* api_ = nullptr;  // null for an option
  const hr_graph* graph_ = nullptr;
  uint32_t node_ = 0;
  std::vector<uint64_t> path_ = {};
};

class Graph;

// A node of a graph.
class Node {
 public:
  Node(const hr_graph_api* api, const hr_graph* graph, uint32_t number) : api_(api), graph_(graph), number_(number) {}

  uint32_t number() const { return number_; }  // in topological order, from 0
  hr_node_kind kind() const { return static_cast<hr_node_kind>(api_->kind(graph_, number_)); }
  bool is_input() const { return kind() == HR_NODE_INPUT; }
  bool is_const() const { return kind() == HR_NODE_CONST; }
  // Returns the op of a call, or the pattern of a composite; empty for nodes of other kinds.
  std::string op() const {
    const char* name = api_->op(graph_, number_);
    return name == nullptr ? "" : name;
  }
  uint32_t op_version() const { return api_->op_version(graph_, number_); }
  bool is_call(std::string_view name) const { return kind() == HR_NODE_CALL && op() == name; }
  bool is_composite(std::string_view pattern) const { return kind() == HR_NODE_COMPOSITE && op() == pattern; }

  uint32_t num_operands() const { return api_->num_operands(graph_, number_); }
  // Throws std::runtime_error when the node has fewer operands.
  Node operand(uint32_t index) const {
    if (index >= num_operands()) throw std::runtime_error(op() + " has no operand " + std::to_string(index));
    return {api_, graph_, api_->operand(graph_, number_, index)};
  }
  uint32_t num_results() const { return api_->num_results(graph_, number_); }
  TensorType type(uint32_t result = 0) const {
    const hr_tensor_type type = api_->result_type(graph_, number_, result);
    return {type.dtype, {type.shape, static_cast<size_t>(type.ndim)}};
  }
  uint32_t item_index() const { return api_->index(graph_, number_); }  // for a node of kind HR_NODE_ITEM

  // Returns the attribute of a call. Throws std::runtime_error when the op has none of that name.
  Attr attr(const char* name) const {
    const hr_attr attr = api_->find_attr(graph_, number_, name);
    if (attr.name == nullptr) throw std::runtime_error(op() + " has no attribute '" + name + "'");
    return {attr, api_, graph_, number_};
  }
  // Returns the elements of a constant. Throws std::runtime_error for another node, and for elements of another type.
  template <typename T>
  Span<T> constant() const {
    if (!is_dtype<T>(constant_tensor().dtype))
      throw std::runtime_error("a constant is read as another type than it has");
    return {reinterpret_cast<const T*>(constant_data()), static_cast<size_t>(type().num_elements())};
  }
  // Returns the first `size` bytes of a constant of any type; it must have as many.
  Span<char> constant_bytes(size_t size) const { return {constant_data(), size}; }
  // Returns letters and digits that are equal for constants of equal bytes; empty for a node that is not a constant.
  std::string content_id() const {
    const char* id = api_->constant(graph_, number_).content_id;
    return id == nullptr ? "" : id;
  }
  // Returns the graph of a composite, whose inputs are the operands. Throws std::runtime_error for another node.
  inline Graph body() const;
  // Returns where the model has the node, for messages; may be empty.
  std::string place() const { return api_->place(graph_, number_); }

 private:
  const DLTensor& constant_tensor() const {
    const DLTensor* tensor = api_->constant(graph_, number_).tensor;
    if (tensor == nullptr) throw std::runtime_error("a value that is not known when the model is compiled is read");
    return *tensor;
  }
  const char* constant_data() const {
    return static_cast<const char*>(constant_tensor().data) + constant_tensor().byte_offset;
  }

  const hr_graph_api* api_;
  const hr_graph* graph_;
  uint32_t number_;
};

// Result `result` of node `node`.
struct GraphOutput {
  Node node;
  uint32_t result;
};

// A region, a match of a pattern, or the body of a composite. `for (const Node node : graph)` visits operands first.
class Graph {
 public:
  Graph(const hr_graph_api* api, const hr_graph* graph) : api_(api), graph_(graph) {}

  std::string name() const { return api_->name(graph_); }
  uint32_t num_nodes() const { return api_->num_nodes(graph_); }
  // `number` must be below num_nodes().
  Node node(uint32_t number) const { return {api_, graph_, number}; }
  std::vector<GraphOutput> outputs() const {
    std::vector<GraphOutput> outputs;
    for (uint32_t i = 0; i < api_->num_outputs(graph_); ++i) {
      uint32_t result = 0;
      const uint32_t number = api_->output(graph_, i, &result);
      outputs.push_back({node(number), result});
    }
    return outputs;
  }
  bool has_call(std::string_view op) const { return find(op) < num_nodes(); }
  // Returns the first call of an op. Throws std::runtime_error when there is none.
  Node call(std::string_view op) const {
    const uint32_t number = find(op);
    if (number == num_nodes()) throw std::runtime_error("there is no call of " + std::string(op));
    return node(number);
  }

  class Iterator {
   public:
    Iterator(const Graph* graph, uint32_t number) : graph_(graph), number_(number) {}
    Node operator*() const { return graph_->node(number_); }
    Iterator& operator++() { return ++number_, *this; }
    bool operator!=(const Iterator& other) const { return number_ != other.number_; }

   private:
    const Graph* graph_;
    uint32_t number_;
  };
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, num_nodes()}; }

 private:
  uint32_t find(std::string_view op) const {
    uint32_t number = 0;
    while (number < num_nodes() && !node(number).is_call(op)) ++number;
    return number;
  }

  const hr_graph_api* api_;
  const hr_graph* graph_;
};

inline Graph Node::body() const {
  const hr_graph* body = api_->body(graph_, number_);
  if (body == nullptr) throw Refusal("the region has a call that none of the patterns matched");
  return {api_, body};
}

// The target and the options of a compile.
class Request {
 public:
  explicit Request(const hr_compile_request& request) : request_(request) {}
  std::string triple() const { return request_.triple; }  // the machine's: "x86_64-unknown-linux-gnu"
  std::string cpu() const { return request_.cpu; }        // "znver4"
  bool has_option(std::string_view name) const { return find(name) != nullptr; }
  // Returns an option that the user gave. Throws std::runtime_error when there is none of that name.
  Attr option(std::string_view name) const {
    const hr_attr* found = find(name);
    if (found == nullptr) throw std::runtime_error("it needs the option '" + std::string(name) + "'");
    return Attr::of_option(*found);
  }

 private:
  const hr_attr* find(std::string_view name) const {
    for (uint64_t i = 0; i < request_.options.count; ++i) {
      if (request_.options.items[i].name == name) return &request_.options.items[i];
    }
    return nullptr;
  }

  const hr_compile_request& request_;
};

namespace detail {

// Counts the elements of a tensor of the host, whose sizes are known.
inline int64_t num_elements(const DLTensor& tensor) {
  int64_t count = 1;
  for (int32_t i = 0; i < tensor.ndim; ++i) count *= tensor.shape[i];
  return count;
}

}  // namespace detail

// Appends values to the bytes of a region.
class Writer {
 public:
  Writer() : constants_(std::make_shared<std::vector<std::string>>()) {}
  // Makes a writer of bytes that become a part of these: both leave constants to the host in one list.
  Writer part() const { return Writer(constants_); }
  // Appends a number, or a struct of numbers. A struct must have no padding, or equal models give different bytes.
  template <typename T>
  void put(const T& value) {
    static_assert(std::is_trivially_copyable<T>::value && !std::is_pointer<T>::value, "only plain values can be saved");
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  // Appends the number of elements, and then the elements.
  template <typename T>
  void put_all(const Span<T>& items) {
    put(static_cast<uint64_t>(items.size()));
    for (const T& item : items) put(item);
  }
  template <typename T>
  void put_all(const std::vector<T>& items) {
    put_all(Span<T>(items.data(), items.size()));
  }
  void put_text(std::string_view text) { put_all(Span<char>(text.data(), text.size())); }
  // Leaves a constant to the host, which stores each content once in a file, for its own code too. A Reader gets it
  // back by get_constant. Throws std::runtime_error for a node that is not a constant.
  void put_constant(const Node& node) {
    const std::string id = node.content_id();
    if (id.empty()) throw std::runtime_error("a value that is not known when the model is compiled is saved");
    const auto known = std::find(constants_->begin(), constants_->end(), id);
    put(static_cast<uint32_t>(known - constants_->begin()));
    if (known == constants_->end()) constants_->push_back(id);
  }
  const std::string& bytes() const { return bytes_; }
  // Returns the identities of the constants that were left to the host.
  const std::vector<std::string>& constants() const { return *constants_; }

 private:
  explicit Writer(std::shared_ptr<std::vector<std::string>> constants) : constants_(std::move(constants)) {}

  std::string bytes_;
  std::shared_ptr<std::vector<std::string>> constants_;
};

// Reads what a Writer wrote, in the same order. Throws std::runtime_error where the bytes end too early.
class Reader {
 public:
  explicit Reader(std::string_view bytes, Span<const DLTensor*> constants = {})
      : bytes_(bytes), constants_(constants) {}
  // Makes a reader of bytes that were written by a part() of the writer.
  Reader part(std::string_view bytes) const { return Reader(bytes, constants_); }
  template <typename T>
  T get() {
    static_assert(std::is_trivially_copyable<T>::value && !std::is_pointer<T>::value, "only plain values can be saved");
    T value;
    std::memcpy(&value, take(1, sizeof value).data(), sizeof value);
    return value;
  }
  template <typename T>
  std::vector<T> get_all() {
    const auto count = get<uint64_t>();
    const std::string_view bytes = take(count, sizeof(T));
    std::vector<T> items(static_cast<size_t>(count));
    if (!items.empty()) std::memcpy(items.data(), bytes.data(), bytes.size());
    return items;
  }
  std::string get_text() { return std::string(take(get<uint64_t>(), 1)); }
  // Returns the `count` elements of a constant that was left to the host. They stay as long as what is loaded; threads
  // read them at once, and nobody writes to them. Throws std::runtime_error for another number or type of elements.
  template <typename T>
  Span<T> get_constant(int64_t count) {
    const DLTensor& tensor = constant_tensor(get<uint32_t>());
    if (!is_dtype<T>(tensor.dtype) || detail::num_elements(tensor) != count)
      throw std::runtime_error("a constant is of another type or size than when the model was compiled");
    return {reinterpret_cast<const T*>(static_cast<const char*>(tensor.data) + tensor.byte_offset),
            static_cast<size_t>(count)};
  }
  // Returns the tensor of such a constant, which may be of any type and size.
  const DLTensor& get_constant() { return constant_tensor(get<uint32_t>()); }
  bool is_at_end() const { return bytes_.empty(); }
  std::string_view rest() const { return bytes_; }

 private:
  std::string_view take(uint64_t count, size_t size) {
    if (count > bytes_.size() / size) throw std::runtime_error("the bytes end too early");
    const std::string_view taken = bytes_.substr(0, static_cast<size_t>(count) * size);
    bytes_.remove_prefix(taken.size());
    return taken;
  }
  const DLTensor& constant_tensor(uint32_t index) const {
    if (index >= constants_.size()) throw std::runtime_error("a constant is missing");
    return *constants_[index];
  }

  std::string_view bytes_;
  Span<const DLTensor*> constants_;
};

// The arguments of a kernel call: the tensors of its inputs, then of its outputs, and the threads to work on.
class Call {
 public:
  Call(const hr_kernel_env* env, DLTensor* const* args, int32_t num_args)
      : env_(env), args_(args), num_args_(static_cast<size_t>(num_args)) {}
  size_t num_tensors() const { return num_args_; }
  // Throws std::runtime_error when the region is called with fewer tensors.
  const DLTensor& tensor(size_t index) const {
    if (index >= num_args_) throw std::runtime_error("it was called with too few tensors");
    return *args_[index];
  }
  // Returns the elements of a tensor, in row-major order. Write to outputs only. Throws std::runtime_error when the
  // elements are of another type.
  template <typename T>
  T* data(size_t index) const {
    const DLTensor& one = tensor(index);
    if (!is_dtype<T>(one.dtype)) throw std::runtime_error("a tensor is read as another type than it has");
    return reinterpret_cast<T*>(static_cast<char*>(one.data) + one.byte_offset);
  }
  Span<int64_t> shape(size_t index) const { return {tensor(index).shape, static_cast<size_t>(tensor(index).ndim)}; }
  const hr_kernel_env& env() const { return *env_; }
  // Calls `body(begin, end)` for parts of 0 .. count-1 on the threads of the call, and returns when all have ended. An
  // exception of a part is thrown again here, as std::runtime_error with its text.
  template <typename Body>
  void parallel_for(int64_t count, Body&& body) const;

 private:
  const hr_kernel_env* env_;
  DLTensor* const* args_;
  size_t num_args_;
};

namespace detail {
struct Loaded;
}

// Lists the types of a region's tensors, inputs and outputs in order, as its code has them.
class EntryTypes {
 public:
  // A size of -1: the code takes any.
  void add_input(DLDataType dtype, std::vector<int64_t> shape) { inputs_.push_back({dtype, std::move(shape)}); }
  void add_output(DLDataType dtype, std::vector<int64_t> shape) { outputs_.push_back({dtype, std::move(shape)}); }

 private:
  friend struct detail::Loaded;
  struct Type {
    DLDataType dtype;
    std::vector<int64_t> shape;
  };
  static std::vector<hr_tensor_type> views_of(const std::vector<Type>& types) {
    std::vector<hr_tensor_type> views;
    for (const Type& type : types)
      views.push_back({type.dtype, static_cast<int32_t>(type.shape.size()), type.shape.data()});
    return views;
  }

  std::vector<Type> inputs_, outputs_;
};

// Code that is ready to run. Threads call `run` at once, so it changes nothing of the object without a lock.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void run(const Call& call) const = 0;
  // Returns the types that the code has by what was loaded; without outputs, nothing is said. The host compares them
  // with those of the model when a file is opened.
  virtual EntryTypes types() const { return {}; }
};

// Says for which run the host asks about costs.
struct CostQuery {
  int num_threads = 1;
  double native_seconds = 0;            // the host's estimate for its own code; 0 where it asks about a border
  const hr_machine* machine = nullptr;  // the processor; null where the host is too old to say
};

class Backend {
 public:
  virtual ~Backend() = default;
  // Returns a word of letters, digits, '_' and '-': what users write after --backends.
  virtual std::string name() const = 0;
  // Returns the version of what `compile` writes. Bytes of a version that the backend does not accept are refused, and
  // the region runs natively.
  virtual std::string version() const { return "1"; }
  // Returns whether `load` reads what another version of the backend, the recorded one, wrote.
  virtual bool accepts_version(const std::string& /*recorded*/) const { return false; }
  // Returns patterns as backend_abi.h describes them; empty for none.
  virtual std::string patterns() const { return ""; }
  // Returns the names of the options that `compile` asks for; others that a user gives are errors.
  virtual std::vector<std::string> options() const { return {}; }
  // Returns whether the backend computes a call of an op, whose operands are inputs, constants and tuples of them.
  virtual Verdict supports(const Node&) const { return no("the backend computes only what its patterns match"); }
  // Returns whether the backend computes what one of its patterns matched.
  virtual Verdict accepts(const std::string&, const Graph&) const { return yes(); }
  // Returns the seconds that the backend takes for a call of an op, or a match of a pattern, that it takes; below 0
  // where it does not know, as after an exception. `native_seconds` is what the host estimates for its own code.
  virtual double cost(const Node&, int /*num_threads*/, double /*native_seconds*/) const { return -1; }
  // As cost(), which it calls by default; for a backend that asks what the machine can do.
  virtual double cost_on(const Node& call, const CostQuery& query) const {
    return cost(call, query.num_threads, query.native_seconds);
  }
  // Returns the seconds that `call` costs less than cost_on() says where its region also computes the calls that its
  // operands come from, whose values nothing else uses; 0 after an exception. Other operands are inputs and constants.
  virtual double saved(const Node& /*call*/, const CostQuery&) const { return 0; }
  // Returns the seconds that a tensor takes to enter or to leave a region, beside the call of the region, such as those
  // of a change of layout; 0 after an exception.
  virtual double border(const TensorType&, const CostQuery&) const { return 0; }
  // Returns whether each call, or match of a pattern, must be a region of its own.
  virtual bool one_call_per_region() const { return false; }
  // Writes what `load` needs to run the region. Throws Refusal for a region that the backend does not take as a whole.
  virtual void compile(const Graph& region, const Request& request, Writer& out) const = 0;
  // Reads what `compile` wrote, to the end. The bytes are whole: they carry their size and a checksum.
  virtual std::unique_ptr<Kernel> load(Reader& in) const = 0;
};

// Connects a Backend with the tables of the C interface. Nothing here is for authors of backends.
namespace detail {

// Runs `body`; writes the text of what it throws into the message, and returns -1 then.
template <typename Body>
int32_t guard(const hr_message* message, Body&& body) noexcept {
  try {
    body();
    return 0;
  } catch (const std::exception& error) {
    hr_write_message(message, error.what());
  } catch (...) {
    hr_write_message(message, "an exception of an unknown type");
  }
  return -1;
}

struct Adapter {
  const hr_host* host;
  std::unique_ptr<Backend> backend;
  std::string name, version, patterns;
};

struct Loaded {
  std::string name;
  std::unique_ptr<Kernel> kernel;
  EntryTypes types;
  std::vector<hr_tensor_type> inputs, outputs;  // views of `types`

  Loaded(std::string region, std::unique_ptr<Kernel> code) : name(std::move(region)), kernel(std::move(code)) {
    if (kernel) types = kernel->types();
    inputs = EntryTypes::views_of(types.inputs_);
    outputs = EntryTypes::views_of(types.outputs_);
  }
};

// Hashes bytes (FNV-1a), so that damaged ones are recognized.
inline uint64_t hash_of(std::string_view bytes) {
  uint64_t hash = 14695981039346656037ULL;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211ULL;
  return hash;
}

inline const Adapter& adapter_of(void* self) { return *static_cast<const Adapter*>(self); }

template <typename Judge>
void judge(hr_verdict* verdict, Judge&& judge_it) {
  verdict->reason = HR_REASON_BACKEND_FAILED;  // the reason if `judge_it` throws
  guard(&verdict->message, [&] {
    Verdict found;
    try {
      found = judge_it();
    } catch (const Refusal& refusal) {
      found = no(refusal.what(), refusal.reason);
    }
    if (found.reason != HR_REASON_NONE) hr_write_message(&verdict->message, found.message.c_str());
    verdict->reason = found.reason;
  });
}

inline void supports(void* self, const hr_graph* graph, uint32_t node, hr_verdict* verdict) {
  const Adapter& adapter = adapter_of(self);
  judge(verdict, [&] { return adapter.backend->supports(Node(adapter.host->graph, graph, node)); });
}

inline void accepts(void* self, const char* pattern, const hr_graph* match, hr_verdict* verdict) {
  const Adapter& adapter = adapter_of(self);
  judge(verdict, [&] { return adapter.backend->accepts(pattern, Graph(adapter.host->graph, match)); });
}

using CostOfCall = double (Backend::*)(const Node&, const CostQuery&) const;

// Asks about a call; returns `unknown` after an exception.
inline double ask_cost(void* self, const hr_cost_query* query, CostOfCall function, double unknown) {
  const Adapter& adapter = adapter_of(self);
  double seconds = unknown;
  guard(nullptr, [&] {
    const Node node(adapter.host->graph, query->graph, query->node);
    const hr_machine* machine = HR_HAS_FIELD(hr_cost_query, query, machine) ? query->machine : nullptr;
    seconds = (adapter.backend.get()->*function)(node, {query->num_threads, query->native_seconds, machine});
  });
  return seconds;
}

inline double cost(void* self, const hr_cost_query* query) { return ask_cost(self, query, &Backend::cost_on, -1); }
inline double saved(void* self, const hr_cost_query* query) { return ask_cost(self, query, &Backend::saved, 0); }

inline double border(void* self, const hr_border_query* query) {
  double seconds = 0;
  guard(nullptr, [&] {
    const hr_tensor_type& type = query->tensor;
    const TensorType tensor{type.dtype, {type.shape, static_cast<size_t>(type.ndim)}};
    seconds = adapter_of(self).backend->border(tensor, {query->num_threads, 0, query->machine});
  });
  return seconds;
}

inline void check_options(const Backend& backend, const hr_options& options) {
  const std::vector<std::string> known = backend.options();
  for (uint64_t i = 0; i < options.count; ++i) {
    const std::string name = options.items[i].name;
    std::string names;
    bool is_known = false;
    for (const std::string& one : known) is_known = is_known || one == name;
    if (is_known) continue;
    for (const std::string& one : known) names += (names.empty() ? "" : ", ") + one;
    throw std::runtime_error("there is no option '" + name + "'; " +
                             (known.empty() ? "there are none" : "there is " + names));
  }
}

inline int32_t emit(const hr_compile_request& request, uint64_t graph, const std::string& blob,
                    const std::vector<std::string>& constants) {
  if (constants.empty()) return request.emit(request.sink, blob.data(), blob.size(), &graph, 1);
  if (!HR_HAS_FIELD(hr_compile_request, &request, emit_with_constants))
    throw std::runtime_error("this Headrace is older than the backend, and stores no constants for it");
  std::vector<const char*> ids;
  for (const std::string& id : constants) ids.push_back(id.c_str());
  return request.emit_with_constants(request.sink, blob.data(), blob.size(), &graph, 1, ids.data(), ids.size());
}

inline int32_t compile(void* self, const hr_compile_request* request, const hr_message* message) {
  const Adapter& adapter = adapter_of(self);
  return guard(message, [&] {
    check_options(*adapter.backend, request->options);
    for (uint64_t i = 0; i < request->num_graphs; ++i) {
      const Graph graph(adapter.host->graph, request->graphs[i]);
      Writer content, blob;
      try {
        adapter.backend->compile(graph, Request(*request), content);
      } catch (const Refusal& refusal) {
        request->refuse(request->sink, i, refusal.reason, refusal.what());
        continue;
      }
      blob.put_text(adapter.version);
      blob.put_text(graph.name());
      blob.put_text(content.bytes());
      blob.put(hash_of(blob.bytes()));
      if (emit(*request, i, blob.bytes(), content.constants()) != 0)
        throw std::runtime_error("the host does not take the bytes of the region '" + graph.name() + "'");
    }
  });
}

inline std::unique_ptr<Loaded> read_blob(const Adapter& adapter, std::string_view blob,
                                         Span<const DLTensor*> constants) {
  Reader in(blob);
  const std::string version = in.get_text(), name = in.get_text(), content = in.get_text();
  const std::string_view hashed = blob.substr(0, blob.size() - in.rest().size());
  if (in.get<uint64_t>() != hash_of(hashed) || !in.is_at_end())
    throw std::runtime_error("its bytes are damaged; compile the model again");
  if (version != adapter.version && !adapter.backend->accepts_version(version))
    throw std::runtime_error("the region was compiled by version " + version + " of the backend, and this is version " +
                             adapter.version + "; compile the model again");
  Reader reader(content, constants);
  auto loaded = std::make_unique<Loaded>(name, adapter.backend->load(reader));
  if (!loaded->kernel || !reader.is_at_end())
    throw std::runtime_error("the backend does not load all that it wrote when it compiled the region");
  return loaded;
}

inline int32_t load_with_constants(void* self, const void* blob, uint64_t size, const DLTensor* const* constants,
                                   uint64_t num_constants, void** loaded, const hr_message* message) {
  return guard(message, [&] {
    const std::string_view bytes(static_cast<const char*>(blob), static_cast<size_t>(size));
    *loaded = read_blob(adapter_of(self), bytes, {constants, static_cast<size_t>(num_constants)}).release();
  });
}

inline int32_t load(void* self, const void* blob, uint64_t size, void** loaded, const hr_message* message) {
  return load_with_constants(self, blob, size, nullptr, 0, loaded, message);
}

inline void unload(void*, void* loaded) { delete static_cast<Loaded*>(loaded); }

inline int32_t find(void*, void* loaded, const char* region, int32_t, void** found, const hr_message* message) {
  return guard(message, [&] {
    const Loaded& one = *static_cast<const Loaded*>(loaded);
    *found = one.name == region ? loaded : nullptr;
  });
}

inline int32_t run(void*, void* region, const hr_kernel_env* env, DLTensor* const* args, int32_t num_args) {
  const hr_message message{env->message, env->message_size};
  return guard(&message, [&] { static_cast<const Loaded*>(region)->kernel->run(Call(env, args, num_args)); });
}

inline int32_t entry_types(void*, void* region, hr_entry_types* types, const hr_message*) {
  const Loaded& one = *static_cast<const Loaded*>(region);
  *types = {static_cast<uint32_t>(one.inputs.size()), static_cast<uint32_t>(one.outputs.size()), one.inputs.data(),
            one.outputs.data()};
  return 0;
}

inline int32_t accepts_version(void* self, const char* recorded, const hr_message* message) {
  bool accepts = false;
  const int32_t code = guard(message, [&] { accepts = adapter_of(self).backend->accepts_version(recorded); });
  return code == 0 && !accepts ? 1 : code;
}

// Fills in the host's table for a backend of the type T.
template <typename T>
int32_t enter(const hr_host* host, hr_backend* table, const hr_message* message) {
  return guard(message, [&] {
    std::unique_ptr<Backend> backend(new T);
    std::string name = backend->name(), version = backend->version(), patterns = backend->patterns();
    // Never freed: modules of static objects of the host outlive static objects of the library.
    static Adapter& adapter =
        *new Adapter{host, std::move(backend), std::move(name), std::move(version), std::move(patterns)};
    HR_FILL_ABI(hr_backend, table);
    table->name = adapter.name.c_str();
    table->version = adapter.version.c_str();
    table->patterns = adapter.patterns.empty() ? nullptr : adapter.patterns.c_str();
    table->self = &adapter;
    table->supports = &supports;
    table->accepts = &accepts;
    table->compile = &compile;
    table->load = &load;
    table->unload = &unload;
    table->find = &find;
    table->run = &run;
    if (HR_HAS_FIELD(hr_backend, table, load_with_constants)) table->load_with_constants = &load_with_constants;
    if (HR_HAS_FIELD(hr_backend, table, entry_types)) table->entry_types = &entry_types;
    if (HR_HAS_FIELD(hr_backend, table, cost)) table->cost = &cost;
    if (HR_HAS_FIELD(hr_backend, table, saved)) table->saved = &saved;
    if (HR_HAS_FIELD(hr_backend, table, border)) table->border = &border;
    if (HR_HAS_FIELD(hr_backend, table, accepts_version)) table->accepts_version = &accepts_version;
    if (HR_HAS_FIELD(hr_backend, table, one_call_per_region))
      table->one_call_per_region = adapter.backend->one_call_per_region() ? 1 : 0;
  });
}

}  // namespace detail

template <typename Body>
void Call::parallel_for(int64_t count, Body&& body) const {
  using Callable = typename std::remove_reference<Body>::type;
  const hr_parallel_body part = [](const hr_kernel_env* env, void* closure, int64_t begin, int64_t end) -> int32_t {
    const hr_message message{env->message, env->message_size};
    return detail::guard(&message, [&] { (*static_cast<Callable*>(closure))(begin, end); });
  };
  void* closure = const_cast<void*>(static_cast<const void*>(&body));
  if (env_->parallel_for(env_, part, closure, count) == 0) return;
  throw std::runtime_error(env_->message == nullptr ? "a part of a parallel loop failed" : env_->message);
}

}  // namespace plugin
}  // namespace headrace

// Defines the entry of the library, for a class that is derived from headrace::plugin::Backend and is made without
// arguments. Once in a library, outside of namespaces.
#define HEADRACE_BACKEND(Type)                                                             \
  HR_BACKEND_EXPORT int32_t headrace_backend_entry(const hr_host* host, hr_backend* table, \
                                                   const hr_message* message) {            \
    return ::headrace::plugin::detail::enter<Type>(host, table, message);                  \
  }

#endif  // HEADRACE_BACKEND_HPP_
