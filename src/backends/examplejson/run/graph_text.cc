#include "backends/examplejson/run/graph_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <utility>

#include "base/error.h"

namespace headrace::backends::examplejson {

namespace {

constexpr std::array<std::pair<std::string_view, GraphOp>, 3> kOps = {
    {{"add", GraphOp::add}, {"sub", GraphOp::sub}, {"mul", GraphOp::mul}}};
// The elements of one tensor: memory for them can be had, and their number of bytes is an int64.
constexpr int64_t kMostElements = int64_t{1} << 40;

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  constexpr std::string_view kBlanks = " \t\r";
  for (size_t at = line.find_first_not_of(kBlanks); at != std::string_view::npos;) {
    const size_t end = std::min(line.find_first_of(kBlanks, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(kBlanks, end);
  }
  return words;
}

}  // namespace

bool is_subgraph_name(std::string_view word) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  const bool is_name = !word.empty() && std::all_of(word.begin(), word.end(), fits);
  return is_name && !(word[0] >= '0' && word[0] <= '9') && word != "input";
}

namespace {

class Reader {
 public:
  std::vector<Subgraph> read(std::string_view text) {
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      ++line_;
      read_line(words_of(text.substr(0, end)));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    finish();
    if (graphs_.empty()) throw_user_error("the text of examplejson graphs has no subgraph");
    return std::move(graphs_);
  }

 private:
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw_user_error("line {} of the examplejson graphs: {}", line_, fmt::format(format, std::forward<Args>(args)...));
  }

  void read_line(const std::vector<std::string_view>& words) {
    if (words.empty()) return;
    if (words.size() == 1 && is_subgraph_name(words[0])) return begin(std::string(words[0]));
    if (graphs_.empty()) fail("'{}' stands before the name of a subgraph", words[0]);
    if (words[0] == "input") return read_input(words);
    const auto op = std::find_if(kOps.begin(), kOps.end(), [&](const auto& one) { return one.first == words[0]; });
    if (op == kOps.end()) fail("'{}' is not an op; there are input, add, sub and mul", words[0]);
    read_op(words, op->second);
  }

  void begin(std::string name) {
    finish();
    const auto has_name = [&](const Subgraph& graph) { return graph.name == name; };
    if (std::any_of(graphs_.begin(), graphs_.end(), has_name)) fail("there are two subgraphs '{}'", name);
    graphs_.push_back({.name = std::move(name), .nodes = {}, .shape = {}});
    ids_.clear();
  }

  void finish() const {
    if (graphs_.empty()) return;
    const Subgraph& graph = graphs_.back();
    if (graph.nodes.empty() || graph.nodes.back().op == GraphOp::input)
      fail("the subgraph '{}' ends without a node that computes its output", graph.name);
  }

  int64_t number(std::string_view word) const {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size()) fail("'{}' is not a number", word);
    if (value < 0 || value > kMostElements) fail("{} is out of range", word);
    return value;
  }

  void define(std::string_view word, GraphNode node) {
    if (!ids_.emplace(number(word), graphs_.back().nodes.size()).second) fail("the id {} is defined twice", word);
    graphs_.back().nodes.push_back(node);
  }

  size_t position_of(std::string_view word) const {
    const auto found = ids_.find(number(word));
    if (found == ids_.end()) fail("the id {} is not defined", word);
    return found->second;
  }

  void check_shape(const std::vector<std::string_view>& words, size_t first) {
    std::vector<int64_t> shape;
    int64_t count = 1;
    for (size_t i = first; i < words.size(); ++i) {
      shape.push_back(number(words[i]));
      if (shape.back() > 0 && count > kMostElements / shape.back()) fail("the tensor has too many elements");
      count *= shape.back();
    }
    Subgraph& graph = graphs_.back();
    if (graph.nodes.empty()) {
      graph.shape = std::move(shape);
    } else if (shape != graph.shape) {
      fail("the shape is ({}), and that of the tensors before ({}); all have one shape", fmt::join(shape, ", "),
           fmt::join(graph.shape, ", "));
    }
  }

  void read_input(const std::vector<std::string_view>& words) {
    if (words.size() < 2) fail("an input has an id and a shape: input 0 10 10");
    check_shape(words, 2);
    define(words[1], {});
    ++graphs_.back().num_inputs;
  }

  void read_op(const std::vector<std::string_view>& words, GraphOp op) {
    if (words.size() < 6 || words[2] != "inputs:" || words[5] != "shape:")
      fail("the line of a node is: {} ID inputs: ID ID shape: DIMS", words[0]);
    const GraphNode node{.op = op, .a = position_of(words[3]), .b = position_of(words[4])};
    check_shape(words, 6);
    define(words[1], node);
  }

  std::vector<Subgraph> graphs_;
  std::map<int64_t, size_t> ids_;  // nodes by id, in the subgraph that is being read
  int line_ = 0;
};

}  // namespace

std::vector<Subgraph> read_graph_text(std::string_view text) { return Reader().read(text); }

}  // namespace headrace::backends::examplejson
