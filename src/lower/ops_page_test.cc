// Writes and checks docs/ops.md: all ops with arguments, attributes, fusion kinds and rules, and ops that are left out.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "base/error.h"
#include "kit/golden.h"
#include "lower/kernel_rule.h"
#include "object/reflect.h"
#include "object/repr.h"
#include "ops/call_fusion.h"
#include "ops/op_facts.h"
#include "ops/tests/op_cases.h"
#include "passes/gradient/gradient_rules.h"

namespace headrace::lower {
namespace {

struct Family {
  std::string name;
  std::vector<std::string> ops;
};

struct RelayOps {
  std::vector<Family> families;
  std::vector<std::pair<std::vector<std::string>, std::string>> left;  // ops, reason

  std::set<std::string> left_names() const {
    std::set<std::string> names;
    for (const auto& [ops, reason] : left) names.insert(ops.begin(), ops.end());
    return names;
  }
};

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

RelayOps read_relay_ops() {
  std::ifstream file(HEADRACE_SOURCE_DIR "/src/ops/tests/relay_ops.txt");
  HEADRACE_CHECK(file.good(), "relay_ops.txt cannot be read");
  RelayOps result;
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.rfind(": ");
    if (line.starts_with("family ")) {
      const std::string name = line.substr(7, colon - 7);
      if (result.families.empty() || result.families.back().name != name) result.families.push_back({name, {}});
      for (std::string& op : words_of(line.substr(colon + 2))) result.families.back().ops.push_back(std::move(op));
    } else if (line.starts_with("left ")) {
      const size_t reason = line.find(": ");
      result.left.emplace_back(words_of(line.substr(5, reason - 5)), line.substr(reason + 2));
    }
  }
  return result;
}

std::string_view name_of_kind(const OpNode& op) {
  const ops::FusionKind* kind = op.find(ops::kFusionKind);
  return kind == nullptr ? "-" : ops::name_of(*kind);
}

std::string_view name_of_rule(const OpNode& op) {
  if (op.find(kComputeRule) != nullptr) return "compute";
  if (op.find(ops::kPlainForm) != nullptr) return "plain ops";
  return op.find(kKernelRule) != nullptr ? "kernel" : "-";
}

std::string_view gradient_of(const OpNode& op) { return passes::has_gradient_rule(op.name) ? "yes" : "-"; }

std::string arguments_of(const OpNode& op) {
  std::vector<std::string> told;
  for (const OpArgument& argument : op.arguments) {
    const std::string kind = argument.kind == "Tensor" ? "" : fmt::format(" ({})", argument.kind);
    told.push_back(fmt::format("`{}`{} {}", argument.name, kind, argument.doc));
  }
  return fmt::format("{}{}", op.num_inputs < 0 && !told.empty() ? "any: " : "", fmt::join(told, "; "));
}

std::string attributes_of(const OpNode& op) {
  const TypeInfo* type = op.attrs_type_key.empty() ? nullptr : find_type(op.attrs_type_key);
  if (type == nullptr) return "";
  std::vector<std::string> lines;
  for (const FieldInfo& field : type->fields) {
    const std::string value = field.options.has_default ? " = " + repr(field.options.default_value) : "";
    lines.push_back(fmt::format("`{}: {}{}`", field.name, field.kind, value));
  }
  return fmt::format("{}", fmt::join(lines, "; "));
}

using Proofs = std::map<std::string, ops::testing::OpProof>;

std::string row_of(const std::string& name, Proofs& proofs) {
  const Op op = get_op(name);
  const auto [results, errors] = proofs[name];
  return fmt::format("| `{}` | {} | {} | {} | {} | {} | {} result{}, {} error{} |\n", name, arguments_of(*op),
                     attributes_of(*op), name_of_kind(*op), name_of_rule(*op), gradient_of(*op), results,
                     results == 1 ? "" : "s", errors, errors == 1 ? "" : "s");
}

std::string family_part(const std::string& title, const std::vector<std::string>& ops, Proofs& proofs) {
  if (ops.empty()) return fmt::format("\n## {}\n\nThe last table names the replacements.\n", title);
  std::string text =
      fmt::format("\n## {}\n\n| op | arguments | attributes | fusion | rule | gradient | proved by |\n", title);
  text += "| --- | --- | --- | --- | --- | --- | --- |\n";
  for (const std::string& name : ops) text += row_of(name, proofs);
  return text;
}

constexpr std::string_view kIntroduction = R"(# Ops

`lower_test --bless` writes this page, and the test OpsPage fails if it is out of date. Headrace has {} of the {} ops of
Relay v0.18. Each op has a type relation and an evaluation that defines it. The column `rule` says how it is compiled:

- `compute`: a formula for one element of the result. Such ops fuse.
- `kernel`: loops that are written by hand.
- `plain ops`: the pass QnnCanonicalize replaces the op by others.

The column `arguments` gives shape and dtype, then the meaning. `T` is any dtype, the same one throughout a row; `f` is
a float dtype and `int` an integer dtype; `[...]` is any shape. `any` before the arguments: optional arguments may be
omitted; the attribute of the same name, if there is one, then gives the value.

FirstOrderGradient differentiates ops with a gradient. `relay.op.register_gradient` gives a gradient to another op.

The last column counts the op's cases in `src/ops/tests/op_cases.txt`. A *result* comes from numpy, scipy or
onnxruntime; the test compares it with the evaluation and, if the op has a rule, with compiled code. An *error* is a
call that must be refused. A test fails if an op that can be evaluated has no result, or any op has no error.

Where the data decide the size, the op returns a buffer of the largest size and the count of valid elements (`unique`,
`argwhere_bounded`, `vision.all_class_non_max_suppression`). Every executor runs such ops. `argwhere` returns only its
rows, so its size is `?`: the interpreter runs it and the ops that read it. In a compiled program such a tensor, or a
slice to a computed end, can only become a result of the program; `passes/forms/bound_outputs.h` lists the ops that may
stand between.
)";

std::string page() {
  const RelayOps relay = read_relay_ops();
  Proofs proofs = ops::testing::op_proofs();
  const std::vector<std::string> all = op_names();
  std::set<std::string> own(all.begin(), all.end());
  size_t total = 0, here = 0;
  std::string parts;
  for (const Family& family : relay.families) {
    std::vector<std::string> ops;
    for (const std::string& name : family.ops) {
      if (own.erase(name) > 0) ops.push_back(name);
    }
    std::sort(ops.begin(), ops.end());
    total += family.ops.size();
    here += ops.size();
    parts += family_part(fmt::format("{} ({} of {})", family.name, ops.size(), family.ops.size()), ops, proofs);
  }
  parts += family_part("ops that Relay does not have", {own.begin(), own.end()}, proofs);
  parts += "\n## Ops of Relay that Headrace does not have\n\n";
  parts += "| ops of Relay | reason, and what to use instead |\n| --- | --- |\n";
  for (const auto& [ops, reason] : relay.left)
    parts += fmt::format("| {} | {} |\n", fmt::format("`{}`", fmt::join(ops, "` `")), reason);
  return fmt::format(kIntroduction, here, total) + parts;
}

TEST(OpsPage, IsUpToDate) {
  register_all_rules();
  EXPECT_TRUE(kit::matches_golden(HEADRACE_SOURCE_DIR "/docs/ops.md", page()));
}

TEST(OpsPage, EveryOpOfRelayIsHereOrLeftWithAReason) {
  register_all_rules();
  const RelayOps relay = read_relay_ops();
  const std::vector<std::string> all = op_names();
  const std::set<std::string> here(all.begin(), all.end()), left = relay.left_names();
  std::set<std::string> known;
  for (const Family& family : relay.families) {
    for (const std::string& name : family.ops) {
      EXPECT_TRUE(known.insert(name).second) << name << " is listed twice";
      EXPECT_TRUE(here.contains(name) != left.contains(name))
          << name << (here.contains(name) ? " is here and left" : " is neither here nor left with a reason");
    }
  }
  for (const std::string& name : left) EXPECT_TRUE(known.contains(name)) << name << " is not an op of Relay";
}

TEST(OpsPage, EveryOpHasADocAndEveryArgumentAndAttributeToo) {
  register_all_rules();
  for (const std::string& name : op_names()) {
    const Op op = get_op(name);
    EXPECT_FALSE(op->doc.empty()) << name;
    for (const OpArgument& argument : op->arguments) {
      // The text before the colon is shape and dtype, the text behind it the meaning.
      const size_t colon = argument.doc.find(": ");
      const bool has_shape = colon != std::string::npos && argument.doc.substr(0, colon).find('[') != std::string::npos;
      EXPECT_TRUE(has_shape || argument.kind != "Tensor") << name << ", argument " << argument.name;
      EXPECT_FALSE(argument.doc.empty()) << name << ", argument " << argument.name;
    }
    const TypeInfo* type = op->attrs_type_key.empty() ? nullptr : find_type(op->attrs_type_key);
    EXPECT_TRUE(type != nullptr || op->attrs_type_key.empty()) << name << ": " << op->attrs_type_key;
    if (type == nullptr) continue;
    for (const FieldInfo& field : type->fields) {
      EXPECT_FALSE(std::string_view(field.options.doc).empty()) << name << ", attribute " << field.name;
    }
  }
}

}  // namespace
}  // namespace headrace::lower
