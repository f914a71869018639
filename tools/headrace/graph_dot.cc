#include "tools/headrace/graph_dot.h"

#include <map>

#include "object/array.h"
#include "object/shape_tuple.h"

namespace headrace::tools {

namespace {

// A quoted string. In labels a backslash begins an escape, so one of a name is written twice.
std::string dot_quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return quoted + "\"";
}

std::string text_of(const Report& report, const char* key) {
  const Value& value = report.at(key);
  return value.is_none() ? "" : value.as<std::string>();
}

// "float32 1x3x224x224"
std::string type_of(const Report& tensor) {
  const std::string dtype = text_of(tensor, "dtype");
  if (tensor.at("shape").is_none()) return dtype;
  const auto shape = tensor.at("shape").as<Shape>();
  return shape.empty() ? dtype : fmt::format("{} {}", dtype, fmt::join(shape, "x"));
}

std::vector<Report> reports_of(const Report& report, const char* key) {
  std::vector<Report> list;
  for (const Value& value : report.at(key).as<Array<Value>>()) list.push_back(value.as<Report>());
  return list;
}

// The label's lines: what it is, its name, and the types of its results.
std::string label_of(const Report& node) {
  const std::string op = text_of(node, "op"), name = text_of(node, "name");
  std::vector<std::string> lines;
  for (const std::string& line : {op, name == op ? std::string() : name}) {
    if (!line.empty()) lines.push_back(line);
  }
  const bool is_output = text_of(node, "kind") == "output";
  for (const Report& tensor : reports_of(node, is_output ? "inputs" : "outputs")) lines.push_back(type_of(tensor));
  std::string label;
  for (const std::string& line : lines) {
    const std::string one = dot_quoted(line);
    label += (label.empty() ? "" : "\\n") + one.substr(1, one.size() - 2);
  }
  return "\"" + label + "\"";
}

std::string node_line(size_t number, const Report& node) {
  const std::string kind = text_of(node, "kind");
  const bool is_end = kind == "input" || kind == "output";
  return fmt::format("n{} [label={}, shape={}];\n", number, label_of(node), is_end ? "ellipse" : "box");
}

}  // namespace

std::string to_dot(const Report& graph, const std::string& title) {
  std::string text = fmt::format("digraph {} {{\n  node [fontsize=10];\n", dot_quoted(title));
  const std::vector<Report> nodes = reports_of(graph, "nodes"), blocks = reports_of(graph, "blocks");
  std::map<int64_t, std::string> inside;  // by block
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Value& block = nodes[i].at("block");
    if (block.is_none()) {
      text += "  " + node_line(i, nodes[i]);
    } else {
      inside[block.as<int64_t>()] += "    " + node_line(i, nodes[i]);
    }
  }
  for (const auto& [block, lines] : inside) {
    const Report& region = blocks[static_cast<size_t>(block)];
    text +=
        fmt::format("  subgraph cluster_{} {{\n    label={};\n{}  }}\n", block,
                    dot_quoted(fmt::format("{} ({})", text_of(region, "region"), text_of(region, "backend"))), lines);
  }
  for (const Report& edge : reports_of(graph, "edges"))
    text += fmt::format("  n{} -> n{};\n", edge.at("from").as<int64_t>(), edge.at("to").as<int64_t>());
  return text + "}\n";
}

}  // namespace headrace::tools
