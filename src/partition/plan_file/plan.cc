#include "partition/plan_file/plan.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/json_string.h"
#include "partition/backend.h"
#include "partition/place.h"

namespace headrace::partition {

namespace {

constexpr const char* kPlanFormat = "plan";
constexpr int64_t kOldestVersion = 1;  // that is read

std::string_view word_of(JsonKind kind) {
  switch (kind) {
    case JsonKind::kObject:
      return "an object";
    case JsonKind::kArray:
      return "a list";
    case JsonKind::kString:
      return "a string";
    case JsonKind::kInteger:
      return "an integer";
    case JsonKind::kOther:
      break;
  }
  return "something else";
}

class PlanReader {
 public:
  explicit PlanReader(std::shared_ptr<const NamedText> source) : source_(std::move(source)) {}

  Plan read() {
    const JsonText root = parse_json_text(*source_);
    check_header(root);
    check_keys(root, {"headrace", "version", "model", "backends", "ops"}, {"cost", "costs"});
    if (find(root, "cost") != nullptr) check_cost(member(root, "cost", JsonKind::kObject));
    Plan plan;
    plan.source = source_;
    read_model(member(root, "model", JsonKind::kObject), plan);
    if (find(root, "costs") != nullptr) {
      const JsonText& costs = member(root, "costs", JsonKind::kString);
      plan.costs_hash = read_hash(costs, "the costs'");
      plan.costs_at = {costs.begin, costs.end};
    }
    for (const JsonText& row : member(root, "backends", JsonKind::kArray).items) read_backend(row, plan);
    const JsonText& ops = member(root, "ops", JsonKind::kArray);
    plan.ops_at = {ops.begin, ops.end};
    std::set<std::pair<std::string, std::string>> known;
    for (const JsonText& row : ops.items) {
      read_op(row, plan);
      if (!known.emplace(plan.ops.back().name, plan.ops.back().kind).second)
        fail(member(row, "name", JsonKind::kString),
             fmt::format("the op '{}' of kind {} is there twice; remove one of the two", plan.ops.back().name,
                         plan.ops.back().kind));
    }
    return plan;
  }

 private:
  [[noreturn]] void fail(const JsonText& at, const std::string& message) const {
    source_->fail(at.begin, at.end, message);
  }

  void expect(const JsonText& value, JsonKind kind, const std::string& what) const {
    if (value.kind != kind) fail(value, fmt::format("{} must be {}", what, word_of(kind)));
  }

  static const JsonText* find(const JsonText& object, std::string_view key) {
    for (size_t i = 0; i < object.keys.size(); ++i) {
      if (object.keys[i].text == key) return &object.items[i];
    }
    return nullptr;
  }

  const JsonText& member(const JsonText& object, const char* key, JsonKind kind) const {
    const JsonText* found = find(object, key);
    if (found == nullptr) fail_missing(object, key);
    expect(*found, kind, fmt::format("\"{}\"", key));
    return *found;
  }

  [[noreturn]] void fail_missing(const JsonText& object, const std::string& key) const {
    source_->fail(object.begin, object.begin + 1, fmt::format("the key \"{}\" is missing", key));
  }

  // They have no effect, and are checked so that a slip does not look as if it had one.
  void check_cost(const JsonText& cost) const {
    check_keys(cost, {}, {"seconds", "lower_bound", "gap", "source"});
    for (size_t i = 0; i < cost.keys.size(); ++i) {
      const bool is_text = cost.keys[i].text == "source";
      const JsonText& value = cost.items[i];
      const bool is_number = value.kind == JsonKind::kInteger || value.kind == JsonKind::kOther;
      if (is_text ? value.kind != JsonKind::kString : !is_number)
        fail(value, fmt::format("the {} of a plan's cost is {}", cost.keys[i].text, is_text ? "a text" : "a number"));
    }
  }

  void check_header(const JsonText& root) const {
    expect(root, JsonKind::kObject, "a plan");
    if (find(root, "headrace") == nullptr)
      source_->fail(root.begin, root.begin + 1, "this is not a plan; headrace explain --save-plan writes one");
    const JsonText& format = member(root, "headrace", JsonKind::kString);
    if (format.text != kPlanFormat)
      fail(format, fmt::format("this file of Headrace is of the format '{}', expected '{}'", format.text, kPlanFormat));
    const JsonText& version = member(root, "version", JsonKind::kInteger);
    if (version.integer < kOldestVersion || version.integer > kPlanVersion)
      fail(version, fmt::format("this is a plan of version {}, and this Headrace reads versions {} to {}; make the "
                                "plan again",
                                version.integer, kOldestVersion, kPlanVersion));
  }

  void check_keys(const JsonText& object, const std::vector<std::string>& required,
                  const std::vector<std::string>& optional) const {
    const auto has = [](const std::vector<std::string>& keys, const std::string& key) {
      return std::find(keys.begin(), keys.end(), key) != keys.end();
    };
    for (const JsonKey& key : object.keys) {
      if (!has(required, key.text) && !has(optional, key.text))
        source_->fail(key.begin, key.end,
                      fmt::format("the key \"{}\" is not a key of a plan; the keys here are {}{}{}", key.text,
                                  fmt::join(required, ", "), required.empty() || optional.empty() ? "" : ", ",
                                  fmt::join(optional, ", ")));
    }
    for (const std::string& key : required) {
      if (find(object, key) == nullptr) fail_missing(object, key);
    }
  }

  std::string read_hash(const JsonText& hash, const char* whose) const {
    const bool is_hash = hash.text.size() == 32 && hash.text.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (!is_hash) fail(hash, fmt::format("{} hash has 32 hexadecimal digits", whose));
    return hash.text;
  }

  void read_model(const JsonText& model, Plan& plan) const {
    check_keys(model, {"hash", "inputs"}, {});
    const JsonText& hash = member(model, "hash", JsonKind::kString);
    plan.model_hash = read_hash(hash, "a model's");
    plan.hash_at = {hash.begin, hash.end};
    for (const JsonText& input : member(model, "inputs", JsonKind::kArray).items) {
      expect(input, JsonKind::kString, "an input");
      plan.inputs.push_back(input.text);
    }
  }

  void read_backend(const JsonText& row, Plan& plan) const {
    expect(row, JsonKind::kObject, "a backend");
    check_keys(row, {"name", "version"}, {});
    const JsonText& name = member(row, "name", JsonKind::kString);
    if (name.text == kNative || name.text == kExternal)
      fail(name, fmt::format("'{}' is there without being listed; remove it from the backends", name.text));
    const std::string own = own_name(name.text);
    if (is_listed(plan, own)) fail(name, fmt::format("the backend '{}' is there twice; remove one", name.text));
    plan.backends.push_back(
        {.name = own, .version = member(row, "version", JsonKind::kString).text, .at = {row.begin, row.end}});
  }

  static bool is_listed(const Plan& plan, const std::string& name) {
    return std::any_of(plan.backends.begin(), plan.backends.end(),
                       [&](const PlannedBackend& backend) { return backend.name == name; });
  }

  void read_op(const JsonText& row, Plan& plan) const {
    expect(row, JsonKind::kObject, "an op");
    check_keys(row, {"name", "kind", "backend"}, {"parts", "reason", "message"});
    const JsonText& backend = member(row, "backend", JsonKind::kString);
    const std::string own = own_name(backend.text);
    if (own != kNative && own != kExternal && !is_listed(plan, own)) {
      std::vector<std::string> names;
      for (const PlannedBackend& one : plan.backends) names.push_back(one.name);
      names.emplace_back(kNative);
      const auto known = find_backend(own);
      fail(backend, fmt::format("there is no backend '{0}' in this plan, which has {1}; to use another, list it under "
                                "\"backends\" as {{\"name\": \"{0}\", \"version\": \"{2}\"}}",
                                backend.text, fmt::join(names, ", "), known ? known->version() : "..."));
    }
    PlannedOp op{.name = member(row, "name", JsonKind::kString).text,
                 .kind = member(row, "kind", JsonKind::kString).text,
                 .backend = own,
                 .reason = HR_REASON_PLACE_BY_PLAN,
                 .message = kByPlan,
                 .at = {row.begin, row.end},
                 .backend_at = {backend.begin, backend.end}};
    if (find(row, "parts") != nullptr) op.parts = read_parts(member(row, "parts", JsonKind::kArray));
    if (find(row, "reason") != nullptr) op.reason = read_reason(member(row, "reason", JsonKind::kInteger));
    if (find(row, "message") != nullptr) op.message = member(row, "message", JsonKind::kString).text;
    plan.ops.push_back(std::move(op));
  }

  std::vector<PlannedPart> read_parts(const JsonText& list) const {
    std::vector<PlannedPart> parts;
    std::set<std::pair<std::string, std::string>> known;
    for (const JsonText& part : list.items) {
      expect(part, JsonKind::kObject, "a part");
      check_keys(part, {"name", "kind"}, {});
      parts.push_back({.name = member(part, "name", JsonKind::kString).text,
                       .kind = member(part, "kind", JsonKind::kString).text,
                       .at = {part.begin, part.end}});
      if (!known.emplace(parts.back().name, parts.back().kind).second)
        fail(part, fmt::format("the part '{}' of kind {} is there twice; remove one of the two", parts.back().name,
                               parts.back().kind));
    }
    if (parts.empty()) fail(list, "a pattern has one part at least; leave \"parts\" out for an op");
    return parts;
  }

  hr_reason read_reason(const JsonText& reason) const {
    constexpr int64_t kMost = 999;
    if (reason.integer < 0 || reason.integer > kMost)
      fail(reason, fmt::format("a reason is a number from 0 to {} (headrace/reason.h)", kMost));
    return static_cast<hr_reason>(reason.integer);
  }

  std::shared_ptr<const NamedText> source_;
};

// Returns "parts": [...], with a comma behind it; nothing for an op.
std::string parts_of(const PlannedOp& op) {
  std::vector<std::string> parts;
  for (const PlannedPart& part : op.parts)
    parts.push_back(fmt::format("{{\"name\": {}, \"kind\": {}}}", json_string(part.name), json_string(part.kind)));
  return parts.empty() ? "" : fmt::format("\"parts\": [{}], ", fmt::join(parts, ", "));
}

// "[", rows on lines of their own, "]".
std::string list_of(const std::vector<std::string>& rows) {
  return rows.empty() ? "[]" : fmt::format("[\n    {}\n  ]", fmt::join(rows, ",\n    "));
}

}  // namespace

Plan parse_plan(std::string text, const std::string& name) {
  return PlanReader(std::make_shared<const NamedText>(NamedText{std::move(text), name})).read();
}

std::string print_plan(const Plan& plan) {
  std::vector<std::string> inputs, backends, ops;
  for (const std::string& input : plan.inputs) inputs.push_back(json_string(input));
  for (const PlannedBackend& backend : plan.backends)
    backends.push_back(
        fmt::format("{{\"name\": {}, \"version\": {}}}", json_string(backend.name), json_string(backend.version)));
  for (const PlannedOp& op : plan.ops)
    ops.push_back(fmt::format("{{\"name\": {}, \"kind\": {}, \"backend\": {}, {}\"reason\": {}, \"message\": {}}}",
                              json_string(op.name), json_string(op.kind), json_string(op.backend), parts_of(op),
                              static_cast<int>(op.reason), json_string(op.message)));
  std::string cost;
  if (plan.cost)
    cost =
        fmt::format(",\n  \"cost\": {{\"seconds\": {:.6g}, \"lower_bound\": {:.6g}, \"gap\": {:.6g}, \"source\": {}}}",
                    plan.cost->seconds, plan.cost->lower_bound, plan.cost->seconds - plan.cost->lower_bound,
                    json_string(plan.cost->source));
  const std::string costs =
      plan.costs_hash.empty() ? "" : fmt::format("  \"costs\": {},\n", json_string(plan.costs_hash));
  return fmt::format(
      "{{\n  \"headrace\": \"{}\",\n  \"version\": {},\n  \"model\": {{\n    \"hash\": {},\n    \"inputs\": [{}]\n  "
      "}},\n"
      "{}  \"backends\": {},\n  \"ops\": {}{}\n}}\n",
      kPlanFormat, kPlanVersion, json_string(plan.model_hash), fmt::join(inputs, ", "), costs, list_of(backends),
      list_of(ops), cost);
}

std::vector<PlanChange> compare_plans(const Plan& before, const Plan& after) {
  using Names = std::set<std::pair<std::string, std::string>>;
  const auto key = [](const PlannedOp& op) {
    Names parts;
    for (const PlannedPart& part : op.parts) parts.emplace(part.name, part.kind);
    return std::tuple(op.name, op.kind, std::move(parts));
  };
  std::map<std::tuple<std::string, std::string, Names>, std::string> known;
  for (const PlannedOp& op : after.ops) known.emplace(key(op), op.backend);
  std::vector<PlanChange> changes;
  std::set<std::tuple<std::string, std::string, Names>> seen;
  for (const PlannedOp& op : before.ops) {
    const auto now = known.find(*seen.insert(key(op)).first);
    const std::string backend = now == known.end() ? "" : now->second;
    if (backend != op.backend)
      changes.push_back({.name = op.name, .kind = op.kind, .before = op.backend, .after = backend});
  }
  for (const PlannedOp& op : after.ops) {
    if (!seen.contains(key(op)))
      changes.push_back({.name = op.name, .kind = op.kind, .before = "", .after = op.backend});
  }
  return changes;
}

}  // namespace headrace::partition
