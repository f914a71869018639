#include "driver/region_calls.h"

#include <algorithm>

#include "driver/compile_regions.h"
#include "load/run.h"
#include "object/shape_tuple.h"
#include "object/structural_equal.h"
#include "partition/backend.h"
#include "relay/bind.h"
#include "relay/function_attrs.h"

namespace headrace::driver {

namespace {

using relay::Function;
using relay::FunctionNode;
using relay::Var;

bool is_same(const Type& a, const Type& b) { return structural_equal(Value(a), Value(b)); }

// Tuples nest as deep as the program's text says.
Type type_of_value(const Value& value) {
  const auto* tuple = value.as_node<ADTObj>();
  if (tuple == nullptr) {
    const NDArray tensor = value.as<NDArray>();
    return make_tensor_type(tensor.shape(), tensor.dtype());
  }
  Array<Type> items;
  for (const Value& item : tuple->items) items.push_back(type_of_value(item));
  return make_tuple_type(items);
}

void flatten(const Value& value, std::vector<NDArray>& tensors) {
  const auto* tuple = value.as_node<ADTObj>();
  if (tuple == nullptr) return tensors.push_back(value.as<NDArray>());
  for (const Value& item : tuple->items) flatten(item, tensors);
}

// Puts a value of `type` together from its tensors, taken from `next` on.
Value assemble(const Type& type, const std::vector<NDArray>& tensors, size_t& next) {
  const auto* tuple = type.as<TupleTypeNode>();
  if (tuple == nullptr) return Value(tensors.at(next++));
  std::vector<Value> items;
  for (const Type& item : tuple->items) items.push_back(assemble(item, tensors, next));
  return Value(make_adt(0, std::move(items)));
}

// Returns an expression of `type`, made of new parameters: one for each tensor.
Expr make_argument(const Type& type, Array<Var>& params) {
  const auto* tuple = type.as<TupleTypeNode>();
  if (tuple == nullptr) {
    params.push_back(relay::make_var(fmt::format("x{}", params.size()), type));
    return params.back();
  }
  Array<Expr> items;
  for (const Type& item : tuple->items) items.push_back(make_argument(item, params));
  return relay::make_tuple(items);
}

// Returns the region with parameters of these types; the region itself if it has them.
Function with_types(const Function& region, const std::vector<Type>& types) {
  const auto has_type = [](const Var& param, const Type& type) {
    return param->type_annotation && is_same(param->type_annotation, type);
  };
  if (std::equal(region->params.begin(), region->params.end(), types.begin(), types.end(), has_type)) return region;
  Array<Var> params;
  Map<Var, Expr> values;
  for (size_t i = 0; i < types.size(); ++i) {
    params.push_back(relay::make_var(region->params[i]->name_hint, types[i]));
    values.set(region->params[i], params.back());
  }
  return relay::make_function(params, relay::bind(region->body, values), {}, {}, region->attrs, region->span);
}

Function with_name(const Function& region, const std::string& name) {
  if (name.empty() || relay::symbol_of(*region)) return region;
  return copy_with(*region, [&](FunctionNode& copy) { copy.attrs.set(relay::kGlobalSymbol, Value(name)); });
}

}  // namespace

RegionCalls::RegionCalls(IRModule program, CompileOptions options, executors::Fallback fallback)
    : program_(std::move(program)), options_(std::move(options)), fallback_(fallback) {}

std::optional<Value> RegionCalls::call(const Function& region, std::span<const Value> args) {
  std::vector<Type> types;
  std::vector<NDArray> inputs;
  for (const Value& arg : args) {
    types.push_back(type_of_value(arg));
    flatten(arg, inputs);
  }
  std::shared_ptr<const Code> code = find(region, types);
  if (!code) code = add(make_code(region, types));  // two threads may both compile it; one result is kept
  if (!code->executor) return std::nullopt;
  size_t next = 0;
  return assemble(code->result, load::run(*code->executor, inputs), next);
}

std::vector<executors::FallbackEvent> RegionCalls::fallbacks() const {
  const std::scoped_lock lock(mutex_);
  std::vector<executors::FallbackEvent> events;
  for (const auto& code : codes_) {
    if (code->executor) {
      const std::vector<executors::FallbackEvent> its = code->executor->fallbacks();
      events.insert(events.end(), its.begin(), its.end());
    } else {
      events.push_back(code->event);
    }
  }
  return events;
}

// A literal without a global_symbol has no name.
std::string RegionCalls::name_of(const Function& region) const {
  if (const auto symbol = relay::symbol_of(*region)) return *symbol;
  for (const auto& [var, function] : program_->functions()) {
    if (function.object() == region.object()) return var->name_hint;
  }
  return "";
}

// The interpreter may make a literal anew for each run: such functions are equal, but not the same object.
std::shared_ptr<const RegionCalls::Code> RegionCalls::find(const Function& region,
                                                           const std::vector<Type>& args) const {
  const std::scoped_lock lock(mutex_);
  return find_locked(region, args);
}

std::shared_ptr<const RegionCalls::Code> RegionCalls::find_locked(const Function& region,
                                                                  const std::vector<Type>& args) const {
  const auto is_it = [&](const auto& code) {
    return std::equal(code->args.begin(), code->args.end(), args.begin(), args.end(), is_same) &&
           (code->region == region || structural_equal(Value(code->region), Value(region)));
  };
  const auto found = std::find_if(codes_.begin(), codes_.end(), is_it);
  return found == codes_.end() ? nullptr : *found;
}

std::shared_ptr<const RegionCalls::Code> RegionCalls::add(Code code) {
  const std::scoped_lock lock(mutex_);
  if (auto known = find_locked(code.region, code.args)) return known;
  codes_.push_back(std::make_shared<const Code>(std::move(code)));
  return codes_.back();
}

RegionCalls::Code RegionCalls::make_code(const Function& region, const std::vector<Type>& args) const {
  const std::string name = name_of(region), backend = *relay::compiler_of(*region);
  Code code{.region = region, .args = args};
  try {
    compile(name, code);
  } catch (const UserError& error) {
    // One that is registered may lack its library.
    const bool is_missing = dynamic_cast<const MissingError*>(&error) != nullptr || !partition::find_backend(backend);
    if (fallback_ == executors::Fallback::none || !is_missing) throw;
    code.event = {.region = name, .backend = backend, .reason = HR_REASON_BACKEND_MISSING, .message = error.message()};
  }
  return code;
}

// Compiles a program that only calls the region.
void RegionCalls::compile(const std::string& name, Code& code) const {
  Array<Var> params;
  Array<Expr> args;
  for (const Type& type : code.args) args.push_back(make_argument(type, params));
  const Function region = with_name(with_types(code.region, code.args), name);
  const Function main = relay::make_function(params, relay::make_call(region, args), {}, {}, {}, code.region->span);
  Model model = make_model(closed_module("main", main, program_));
  code.result = model.module->lookup("main").cast<FunctionNode>()->body->checked_type();
  const auto artifact = open_compiled(compile_to_memory(std::move(model), options_), "the region '" + name + "'");
  code.executor = load::make_executor(artifact, "default", {.fallback = fallback_});
}

}  // namespace headrace::driver
