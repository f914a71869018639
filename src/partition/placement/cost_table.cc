#include "partition/placement/cost_table.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/json_fault.h"
#include "object/array.h"
#include "ir/type.h"
#include "partition/place.h"
#include "relay/text/print.h"

namespace headrace::partition {

namespace {

using Json = nlohmann::ordered_json;
using relay::Var;

constexpr const char* kFormat = "headrace_costs";
constexpr int64_t kFormatVersion = 3;
constexpr int64_t kFirstVersion = 1;  // without plans

// Replaces the arguments of a call by parameters.
class CallProgram {
 public:
  CallProgram(const relay::CallNode& call, bool keeps_constants) : keeps_constants_(keeps_constants) {
    for (const Expr& arg : call.args) args_.push_back(replaced(arg));
    call_ = relay::make_call(call.op, args_, call.attrs);
  }
  relay::Function function() const { return relay::make_function(params_, call_); }

 private:
  Expr replaced(const Expr& arg) {
    const bool is_constant = arg.is<relay::ConstantNode>();
    if (is_constant && keeps_constants_) return arg;
    return parameter(arg->checked_type(), is_constant ? "c" : "x");
  }

  // A tuple becomes a tuple of parameters. Types of arguments nest a few levels at most, since programs are checked.
  Expr parameter(const Type& type, const char* prefix) {
    if (const auto* tuple = type.as<TupleTypeNode>()) {
      Array<Expr> items;
      for (const Type& field : tuple->items) items.push_back(parameter(field, prefix));
      return relay::make_tuple(items);
    }
    params_.push_back(relay::make_var(fmt::format("{}{}", prefix, params_.size()), type));
    return params_[params_.size() - 1];
  }

  bool keeps_constants_;
  Array<Var> params_;
  Array<Expr> args_;
  Expr call_;
};

// Returns whether text is "native" or a list of different backends, "onednn,ccompiler", maybe with a plan by cost.
bool is_plan_name(std::string_view text) {
  if (text == kNative) return true;
  if (const size_t by_cost = text.find(kByCost); by_cost != std::string_view::npos) {
    if (by_cost + kByCost.size() == text.size()) return false;
    text = text.substr(0, by_cost);
  }
  std::set<std::string_view> names;
  for (;;) {
    const size_t comma = text.find(',');
    const std::string_view name = text.substr(0, comma);
    if (name.empty() || name == kNative || !names.insert(name).second) return false;
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
  }
}

// Reads the members of one table, and says where a fault is.
class TableReader {
 public:
  explicit TableReader(const std::string& source) : source_(source) {}

  CostTable read(const Json& json) {
    if (!json.is_object() || !json.contains(kFormat)) fail("it is not a table of costs", "");
    const Json& version = json[kFormat];
    if (!version.is_number_integer() || version < kFirstVersion || version > kFormatVersion)
      fail(fmt::format("\"{}\" is {}, this program reads {} to {}", kFormat, version.dump(), kFirstVersion,
                       kFormatVersion),
           "");
    CostTable table{.source = source_, .cpu = text(json, "cpu", ""), .costs = {}};
    const Json& threads = member(json, "threads", "");
    if (!threads.is_number_integer() || threads.get<int64_t>() < 1) fail("\"threads\" is not a number from 1 on", "");
    table.threads = threads.get<int64_t>();
    for_each_row(json, "costs", [&](const Json& row, const std::string& where) { add_cost(table, row, where); });
    if (version != kFirstVersion)
      for_each_row(json, "plans", [&](const Json& row, const std::string& where) { add_plan(table, row, where); });
    return table;
  }

 private:
  [[noreturn]] void fail(const std::string& what, const std::string& where) const {
    throw_user_error("{}: {}{}; make it again with headrace profile", source_, where, what);
  }

  const Json& member(const Json& json, const char* name, const std::string& where) const {
    if (!json.is_object() || !json.contains(name)) fail(fmt::format("there is no \"{}\"", name), where);
    return json[name];
  }

  std::string text(const Json& json, const char* name, const std::string& where) const {
    const Json& value = member(json, name, where);
    if (!value.is_string()) fail(fmt::format("\"{}\" is not text", name), where);
    return value.get<std::string>();
  }

  template <typename Add>
  void for_each_row(const Json& json, const char* name, Add&& add) const {
    const Json& rows = member(json, name, "");
    if (!rows.is_array()) fail(fmt::format("\"{}\" is not a list", name), "");
    for (size_t i = 0; i < rows.size(); ++i) add(rows[i], fmt::format("{}[{}]: ", name, i));
  }

  MeasuredCost measured(const Json& json, const std::string& where) const {
    const Json& seconds = member(json, "seconds", where);
    const double value = seconds.is_number() ? seconds.get<double>() : -1;
    if (!std::isfinite(value) || value < 0 || value > 1000) fail("\"seconds\" is not a number from 0 to 1000", where);
    return {text(json, "version", where), value + 0.0};  // without the sign of -0
  }

  void add_cost(CostTable& table, const Json& json, const std::string& where) const {
    MeasuredCost cost = measured(json, where);
    const std::pair key(text(json, "call", where), text(json, "backend", where));
    if (!table.costs.emplace(key, std::move(cost)).second) fail("the call and the backend are there twice", where);
  }

  void add_plan(CostTable& table, const Json& json, const std::string& where) const {
    MeasuredCost cost = measured(json, where);
    const std::pair key(text(json, "model", where), text(json, "plan", where));
    if (!is_plan_name(key.second))
      fail(fmt::format("'{}' names no plan; a plan is 'native' or a list of different backends, as 'onednn,ccompiler', "
                       "and one by cost has its hash behind, as 'onednn by cost 1f0c'",
                       key.second),
           where);
    if (!table.plans.emplace(key, std::move(cost)).second) fail("the model and the plan are there twice", where);
  }

  const std::string& source_;
};

}  // namespace

std::string cost_key(const relay::CallNode& call) {
  return relay::print_expr(CallProgram(call, false).function(), {.show_meta_data = false});
}

relay::Function program_of_call(const relay::CallNode& call) { return CallProgram(call, true).function(); }

std::optional<double> CostTable::find(const std::string& key, const std::string& backend) const {
  const auto found = costs.find({key, backend});
  return found == costs.end() ? std::nullopt : std::optional(found->second.seconds);
}

const MeasuredCost* CostTable::find_plan(const std::string& model, const std::string& plan) const {
  const auto found = plans.find({model, plan});
  return found == plans.end() ? nullptr : &found->second;
}

std::string to_json(const CostTable& table) {
  const auto rows_of = [](const auto& measured, const char* first, const char* second) {
    Json rows = Json::array();
    for (const auto& [key, cost] : measured)
      rows.push_back({{first, key.first}, {second, key.second}, {"version", cost.version}, {"seconds", cost.seconds}});
    return rows;
  };
  const Json json{{kFormat, kFormatVersion},
                  {"cpu", table.cpu},
                  {"threads", table.threads},
                  {"costs", rows_of(table.costs, "call", "backend")},
                  {"plans", rows_of(table.plans, "model", "plan")}};
  return json.dump(1) + "\n";
}

CostTable parse_cost_table(const NamedText& text) {
  static_cast<void>(parse_json_text(text));  // shows the place of wrong syntax, and refuses a key that is there twice
  try {
    return TableReader(text.name).read(Json::parse(text.text));
  } catch (const Json::exception& error) {
    throw_user_error("{}: {}", text.name, json_fault(error));
  }
}

}  // namespace headrace::partition
