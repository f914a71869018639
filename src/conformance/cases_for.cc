#include <fmt/ranges.h>
#include <fnmatch.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <random>

#include "base/descriptor.h"
#include "base/memory_file.h"
#include "conformance/ask_in_child.h"
#include "conformance/cases.h"
#include "conformance/values.h"
#include "driver/all_backends.h"
#include "driver/explain.h"
#include "driver/register_all.h"
#include "ir/near_names.h"
#include "object/foreign_error.h"
#include "partition/rules.h"
#include "relay/bind.h"
#include "relay/function_attrs.h"
#include "relay/infer/infer_type.h"
#include "relay/visit.h"

namespace headrace::conformance {

namespace {

constexpr double kMostSeconds = 5;  // for a question

// A question about what a backend takes, and a way to ask it.
using Question = std::function<bool()>;
using Ask = std::function<bool(const Question&)>;

// Returns the answer of a question; no where it ends in an exception, which the check of a case reports.
bool answers_yes(const Question& question) {
  try {
    return question();
  } catch (const ForeignError& error) {
    if (error.is_interrupt()) throw;
    return false;
  } catch (const std::exception&) {
    return false;
  }
}

// Returns the text of a program of one op at (3, 4); `mark` has the attributes of a region that the op is alone in.
std::string text_of_op(const std::string& op, int num_inputs, const std::string& dtype, const std::string& mark = "") {
  const std::string type = fmt::format("Tensor[(3, 4), {}]", dtype), args = num_inputs == 1 ? "%x" : "%x, %y";
  const std::string params = num_inputs == 1 ? "%x: " + type : fmt::format("%x: {0}, %y: {0}", type);
  if (mark.empty()) return fmt::format("def @main({}) {{ {}({}) }}\n", params, op, args);
  return fmt::format("def @marked({0}, {1}) {{ {2}({3}) }}\ndef @main({0}) {{ @marked({3}) }}\n", params, mark, op,
                     args);
}

// Returns those of the ops that the backend takes in float32 at (3, 4).
std::vector<std::string> taken_of(const std::vector<std::string>& ops, const partition::Backend& backend,
                                  int num_inputs, const Ask& ask) {
  std::vector<std::string> taken;
  for (const std::string& op : ops) {
    const Case one{.name = op, .text = text_of_op(op, num_inputs, "float32")};
    if (ask([&] { return is_taken(backend, module_of(one)); })) taken.push_back(op);
  }
  return taken;
}

// Returns cases of regions that are marked by hand: of these ops, in dtypes in which the backend does not take them.
std::vector<Case> marked_cases(const std::vector<std::string>& ops, const partition::Backend& backend, int num_inputs,
                               const Ask& ask) {
  const std::string mark = fmt::format("Compiler=\"{}\", Primitive=1, global_symbol=\"marked\"", backend.name());
  std::vector<Case> cases;
  for (const std::string& op : ops) {
    for (const char* dtype : {"int32", "float64"}) {
      const Case plain{.name = op, .text = text_of_op(op, num_inputs, dtype)};
      if (!has_type(plain) || ask([&] { return is_taken(backend, module_of(plain)); })) continue;
      cases.push_back({.name = fmt::format("marked/{}/{}", op, dtype),
                       .text = text_of_op(op, num_inputs, dtype, mark),
                       .is_marked = true});
    }
  }
  return cases;
}

}  // namespace

std::vector<std::pair<const relay::CallNode*, partition::Verdict>> verdicts_on(const partition::Backend& backend,
                                                                               const IRModule& module) {
  std::vector<std::pair<const relay::CallNode*, partition::Verdict>> verdicts;
  relay::post_order(module->lookup("main"), [&](const Expr& expr) {
    const auto* call = expr.as<relay::CallNode>();
    if (call != nullptr && call->as_op() != nullptr) verdicts.emplace_back(call, partition::verdict_of(backend, *call));
  });
  return verdicts;
}

bool is_taken(const partition::Backend& backend, const IRModule& module) {
  const auto verdicts = verdicts_on(backend, module);
  return std::all_of(verdicts.begin(), verdicts.end(), [](const auto& one) { return one.second.ok(); });
}

bool is_chosen(const std::string& name, const std::vector<std::string>& patterns) {
  return patterns.empty() || std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
           return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
         });
}

namespace {

// Returns whether the pattern matches a case as it stands, and the backend accepts the match.
bool is_matched(const partition::CompositePattern& pattern, const Case& one) {
  const IRModule module = snapshot(module_of(one));
  const auto main = module->lookup("main").cast<relay::FunctionNode>();
  std::mt19937 random(17);
  Map<std::string, NDArray> constants;
  for (const relay::Var& param : main->params) {
    const NDArray made = random_tensor(*param->checked_type().as<TensorTypeNode>(), param->name_hint, random);
    if (std::count(one.constants.begin(), one.constants.end(), param->name_hint) > 0)
      constants.set(param->name_hint, made);
  }
  module->add_function(module->get_global_var("main"), relay::bind_params_by_name(main, constants), true);
  bool is_found = false;
  const IRModule merged = partition::merge_composite(relay::infer_type(module), {&pattern, 1});
  relay::post_order(merged->lookup("main"), [&](const Expr& expr) {
    const auto* function = expr.as<relay::FunctionNode>();
    is_found |= function != nullptr && function->attrs.contains(relay::kComposite);
  });
  return is_found;
}

// Returns the cases of the backend's patterns. Several patterns may have one name: forms of one thing.
std::vector<Case> cases_of_patterns(const partition::Backend& backend, const Ask& ask) {
  std::vector<Case> cases;
  std::map<std::string, int> forms;
  for (const partition::CompositePattern& pattern : backend.patterns()) {
    const int form = ++forms[pattern.name];
    const auto is_taken = [&](const Case& one) { return ask([&] { return is_matched(pattern, one); }); };
    for (Case& one : pattern_cases(form == 1 ? pattern.name : fmt::format("{}/form_{}", pattern.name, form),
                                   pattern.pattern, is_taken))
      cases.push_back(std::move(one));
  }
  return cases;
}

std::string tail_of(const std::string& name) { return name.substr(name.rfind('.') + 1); }

// Returns the ops and patterns whose names are similar to what stands before the slash in `wanted`, the shortest first.
std::vector<std::string> similar_subjects(const std::string& wanted, const partition::Backend& backend) {
  constexpr size_t kMost = 4;
  const std::string head = wanted.substr(0, wanted.find('/')), tail = tail_of(head);
  std::vector<std::string> known = op_names(), similar;
  known.insert(known.end(), {"structure", "marked"});
  for (const partition::CompositePattern& pattern : backend.patterns()) known.push_back(pattern.name);
  for (const std::string& name : known) {
    if (!tail.empty() && (name == head || tail_of(name).starts_with(tail))) similar.push_back(name);
  }
  if (similar.empty()) {
    std::vector<std::string> tails;
    std::transform(known.begin(), known.end(), std::back_inserter(tails), tail_of);
    const std::vector<std::string> nearest = near_names(tail, tails, '.');
    for (const std::string& name : known) {
      if (std::count(nearest.begin(), nearest.end(), tail_of(name)) > 0) similar.push_back(name);
    }
  }
  const auto is_shorter = [](const std::string& a, const std::string& b) {
    return std::pair(tail_of(a).size(), a) < std::pair(tail_of(b).size(), b);
  };
  std::sort(similar.begin(), similar.end(), is_shorter);
  similar.erase(std::unique(similar.begin(), similar.end()), similar.end());
  if (similar.size() > kMost) similar.resize(kMost);
  return similar;
}

[[noreturn]] void refuse_patterns(const std::vector<std::string>& patterns, const partition::Backend& backend) {
  const std::vector<std::string> similar = similar_subjects(patterns.front(), backend);
  const std::string advice = similar.empty() ? "names are OP/CASE, such as 'nn.conv2d/strides'"
                                             : fmt::format("did you mean '{}/*'?", fmt::join(similar, "/*' or '"));
  throw_user_error("no case has a name like '{}'; {}", fmt::join(patterns, "', '"), advice);
}

}  // namespace

namespace {

std::vector<Case> make_cases(const partition::Backend& backend, const std::vector<std::string>& patterns,
                             const Ask& ask) {
  std::vector<Case> cases = op_cases(patterns);
  const auto add = [&](std::vector<Case> more) {
    std::copy_if(std::move_iterator(more.begin()), std::move_iterator(more.end()), std::back_inserter(cases),
                 [&](const Case& one) { return is_chosen(one.name, patterns); });
  };
  const std::vector<std::string> unary = taken_of(plain_ops(1), backend, 1, ask);
  const std::vector<std::string> binary = taken_of(plain_ops(2), backend, 2, ask);
  add(structure_cases(unary, binary));
  add(marked_cases(unary, backend, 1, ask));
  add(marked_cases(binary, backend, 2, ask));
  add(cases_of_patterns(backend, ask));
  return cases;
}

// Answers that a child leaves to this process, also where it then crashes.
class KeptAnswers {
 public:
  bool add(bool answer) {
    const char byte = answer ? 1 : 0;
    const ssize_t written = ::write(file_.number(), &byte, 1);
    static_cast<void>(written);  // the question is asked again then
    return answer;
  }
  // Returns the answers in their order; none after the last.
  std::optional<bool> next() {
    char byte = 0;
    if (::pread(file_.number(), &byte, 1, num_read_) != 1) return std::nullopt;
    ++num_read_;
    return byte != 0;
  }

 private:
  Descriptor file_ = make_memory_file("answers").value_or_throw();
  off_t num_read_ = 0;
};

// A backend in Python raises exceptions; any other may crash or hang, also when it is asked what it takes.
bool may_crash(const std::string& backend) {
  const std::vector<std::string> in_python = driver::source_backends();
  return std::find(in_python.begin(), in_python.end(), backend) == in_python.end();
}

}  // namespace

std::vector<Case> cases_for(const std::string& name, const std::vector<std::string>& patterns, double timeout) {
  driver::register_all();
  const auto backend = driver::require_backend(name);
  // A child of the checks makes the cases, too, before it begins with one.
  const double seconds = std::min(timeout / 4, kMostSeconds);
  bool is_late = false;  // nothing more is asked then: the next question may hang as well
  const Ask in_child = [&](const Question& question) {
    if (is_late) return false;
    const Answer answer = ask_in_child([&] { return answers_yes(question); }, seconds);
    is_late = answer == Answer::late;
    return answer == Answer::yes;
  };
  KeptAnswers kept;
  const auto ask_all = [&] {
    make_cases(*backend, patterns, [&](const Question& question) { return kept.add(answers_yes(question)); });
    return true;
  };
  if (may_crash(name)) ask_in_child(ask_all, seconds);
  // The questions are the same ones as long as the answers are: those that the child did not come to are asked now.
  const Ask kept_or_asked = [&](const Question& question) {
    const std::optional<bool> answer = kept.next();
    return answer ? *answer : in_child(question);
  };
  std::vector<Case> cases = make_cases(*backend, patterns, may_crash(name) ? kept_or_asked : Ask(answers_yes));
  if (cases.empty() && !patterns.empty()) refuse_patterns(patterns, *backend);
  return cases;
}

}  // namespace headrace::conformance
