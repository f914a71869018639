// Reads op_cases.txt: calls of ops with their results from outside (make_op_cases.py). Included by tests only.
#pragma once

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "base/error.h"
#include "relay/expr.h"
#include "relay/text/parse.h"
#include "relay/visit.h"
#include "tensor/ndarray.h"

namespace headrace::ops::testing {

struct OpCase {
  std::string name, program;
  double tolerance = 0;
  std::vector<NDArray> inputs, outputs;
  std::string message;  // part of the error; empty: none

  bool fails() const { return !message.empty(); }
  // Returns whether the error comes when the call runs.
  bool fails_late() const { return fails() && (!inputs.empty()); }
};

// Reads a tensor, "float32 2 2 3 1.5 ...": dtype, rank, shape, elements.
inline NDArray read_tensor(std::istringstream& line) {
  std::string dtype, item;
  size_t rank = 0;
  line >> dtype >> rank;
  Shape shape(rank);
  for (int64_t& dim : shape) line >> dim;
  const NDArray array = NDArray::empty(shape, DataType::parse(dtype));
  for (int64_t i = 0; i < array.num_elements(); ++i) {
    HEADRACE_CHECK(static_cast<bool>(line >> item), "element {} of a tensor is missing", i);
    if (array.dtype().is_float()) {
      set_element(array.tensor(), i, std::strtod(item.c_str(), nullptr));
    } else {
      set_element_int(array.tensor(), i, item[0] == '-' ? std::stoll(item) : static_cast<int64_t>(std::stoull(item)));
    }
  }
  return array;
}

inline std::string rest_of(std::istringstream& line) {
  std::string rest;
  std::getline(line >> std::ws, rest);
  return rest;
}

inline std::vector<OpCase> read_op_cases() {
  std::ifstream file(HEADRACE_SOURCE_DIR "/src/ops/tests/op_cases.txt");
  HEADRACE_CHECK(file.good(), "op_cases.txt cannot be read");
  std::vector<OpCase> cases;
  for (std::string text; std::getline(file, text);) {
    std::istringstream line(text);
    std::string word;
    line >> word;
    if (word == "case" || word == "error") {
      cases.emplace_back();
      cases.back().name = rest_of(line);
    }
    if (word == "program") cases.back().program = rest_of(line);
    if (word == "message") cases.back().message = rest_of(line);
    if (word == "tolerance") line >> cases.back().tolerance;
    if (word == "in") cases.back().inputs.push_back(read_tensor(line));
    if (word == "out") cases.back().outputs.push_back(read_tensor(line));
  }
  return cases;
}

// Returns the ops that a case calls.
inline std::set<std::string> ops_of(const OpCase& c) {
  std::set<std::string> names;
  relay::post_order(relay::parse_expr(c.program), [&](const Expr& expr) {
    if (const auto* op = expr.as<OpNode>()) names.insert(op->name);
  });
  return names;
}

// How many cases call an op.
struct OpProof {
  size_t results = 0, errors = 0;
};

inline std::map<std::string, OpProof> op_proofs() {
  std::map<std::string, OpProof> proofs;
  for (const OpCase& c : read_op_cases()) {
    for (const std::string& op : ops_of(c)) ++(c.fails() ? proofs[op].errors : proofs[op].results);
  }
  return proofs;
}

}  // namespace headrace::ops::testing
