#include "partition/cost_table.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_fault.h"
#include "object/array.h"
#include "ir/type.h"
#include "relay/text/print.h"

namespace headrace::partition {

namespace {

using Json = nlohmann::ordered_json;
using relay::Var;

constexpr const char* kFormat = "headrace_costs";
constexpr int64_t kFormatVersion = 1;

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

// Reads the members of one table, and says where a fault is.
class TableReader {
 public:
  explicit TableReader(const std::string& source) : source_(source) {}

  CostTable read(const Json& json) {
    if (!json.is_object() || !json.contains(kFormat)) fail("it is not a table of costs", "");
    if (json[kFormat] != kFormatVersion)
      fail(fmt::format("\"{}\" is {}, this program reads {}", kFormat, json[kFormat].dump(), kFormatVersion), "");
    CostTable table{.source = source_, .cpu = text(json, "cpu", ""), .costs = {}};
    const Json& threads = member(json, "threads", "");
    if (!threads.is_number_integer() || threads.get<int64_t>() < 1) fail("\"threads\" is not a number from 1 on", "");
    table.threads = threads.get<int64_t>();
    const Json& costs = member(json, "costs", "");
    if (!costs.is_array()) fail("\"costs\" is not a list", "");
    for (size_t i = 0; i < costs.size(); ++i) add(table, costs[i], fmt::format("costs[{}]: ", i));
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

  void add(CostTable& table, const Json& json, const std::string& where) const {
    const Json& seconds = member(json, "seconds", where);
    const double value = seconds.is_number() ? seconds.get<double>() : -1;
    if (!std::isfinite(value) || value < 0 || value > 1000) fail("\"seconds\" is not a number from 0 to 1000", where);
    const std::pair key(text(json, "call", where), text(json, "backend", where));
    if (!table.costs.emplace(key, MeasuredCost{text(json, "version", where), value}).second)
      fail("the call and the backend are there twice", where);
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

std::string to_json(const CostTable& table) {
  Json costs = Json::array();
  for (const auto& [key, cost] : table.costs) {
    costs.push_back(
        {{"call", key.first}, {"backend", key.second}, {"version", cost.version}, {"seconds", cost.seconds}});
  }
  const Json json{{kFormat, kFormatVersion}, {"cpu", table.cpu}, {"threads", table.threads}, {"costs", costs}};
  return json.dump(1) + "\n";
}

CostTable parse_cost_table(std::string_view text, const std::string& source) {
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::exception& error) {
    throw_user_error("{}: {}", source, json_fault(error));
  }
  return TableReader(source).read(json);
}

}  // namespace headrace::partition
