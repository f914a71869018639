#include "passes/functions/function_values.h"

#include "ir/type_parts.h"
#include "passes/rewrite/renewed.h"
#include "relay/infer/type_match.h"

namespace headrace::passes {

using relay::make_clause;
using relay::make_pattern_constructor;
using relay::make_pattern_var;

namespace {

std::string name_of(const Expr& callee) {
  if (const auto* global = callee.as<GlobalVarNode>()) return global->name_hint;
  const auto* constructor = callee.as<ConstructorNode>();
  return constructor != nullptr ? constructor->name_hint : "unit";
}

// Returns a part of a type's or a constructor's name.
std::string as_word(const std::string& name) {
  std::string word;
  for (const char c : name) word.push_back(std::isalnum(static_cast<unsigned char>(c)) ? c : '_');
  return word;
}

// Calls `visit` with the name of each data type that is written in the type, functions' types aside.
void visit_data_types(const Type& type, const std::function<void(const std::string&)>& visit) {
  if (const auto* data = type.as<GlobalTypeVarNode>()) visit(data->name_hint);
  if (type.is<FuncTypeNode>()) return;
  for (const Type& part : type_children(type)) visit_data_types(part, visit);
}

}  // namespace

FunctionHolders::FunctionHolders(const IRModule& module) {
  std::unordered_map<std::string, std::vector<std::string>> users;  // the data types with a field of the type
  std::vector<std::string> pending;
  for (const auto& [var, data] : module->type_definitions()) {
    for (const Constructor& constructor : data->constructors) {
      for (const Type& field : constructor->inputs) {
        if (contains_function(field)) pending.push_back(var->name_hint);
        visit_data_types(field, [&](const std::string& held) { users[held].push_back(var->name_hint); });
      }
    }
  }
  while (!pending.empty()) {
    const std::string name = pending.back();
    pending.pop_back();
    if (!names_.insert(name).second) continue;
    pending.insert(pending.end(), users[name].begin(), users[name].end());
  }
}

std::string FunctionHolders::find_in(const Type& type) const {
  std::string found;
  visit_data_types(type, [&](const std::string& name) {
    if (found.empty() && names_.contains(name)) found = name;
  });
  return found;
}

bool contains_function(const Type& type) {
  return any_type(type, [](const Type& part) { return part.is<FuncTypeNode>(); });
}

Type FunctionValues::encoded(const Type& type, const Span& span) {
  if (!contains_function(type)) return type;
  if (const auto* function = type.as<FuncTypeNode>()) return encoding_of(*function, span).name;
  return map_type_children(type, [&](const Type& part) { return encoded(part, span); });
}

FunctionValues::Encoding& FunctionValues::encoding_of(const FuncTypeNode& type, const Span& span) {
  const std::string key = to_string(ref(&type).cast<TypeNode>());
  Encoding*& known = by_type_[key];
  if (known != nullptr) return *known;
  if (!type.type_params.empty())
    throw_at(span, "",
             fmt::format(
                 "a function with type parameters, {}, is used as a value; no data type holds it; make it a function "
                 "of the module, or write one for each of its types",
                 key));
  relay::visit_symbols(ref(&type).cast<TypeNode>(), [&](const PrimVarNode* symbol) {
    throw_at(span, "",
             fmt::format("a function of type {} is used as a value; no data type holds one whose dimension "
                         "'{}' is a symbol",
                         key, symbol->name_hint));
  });
  const std::string name = fresh_type_name(fmt::format("Fn{}", encodings_.size()));
  encodings_.push_back(std::make_unique<Encoding>());
  known = encodings_.back().get();
  known->type = ref(&type);
  known->name = make_global_type_var(name);
  std::string apply = "apply_" + name;
  while (module_->find_global_var(apply)) apply += "_";
  known->apply = make_global_var(apply);
  return *known;
}

std::string FunctionValues::fresh_type_name(const std::string& wanted) {
  if (names_.empty()) {
    for (const auto& [var, data] : module_->type_definitions()) {
      names_.insert(var->name_hint);
      for (const Constructor& constructor : data->constructors) names_.insert(constructor->name_hint);
    }
  }
  std::string name = wanted;
  int& last = numbers_[wanted];
  while (!names_.insert(name).second) name = fmt::format("{}_{}", wanted, ++last);
  return name;
}

Constructor FunctionValues::constructor_of(Encoding& encoding, const Expr& callee, const std::vector<Type>& captured,
                                           const Span& span) {
  // Functions of the module are the same by name, all else by identity.
  const bool is_global = callee.is<GlobalVarNode>();
  Constructor& known = encoding.constructors[{is_global ? nullptr : callee.object(),
                                              is_global ? name_of(callee) : std::string(), captured.size()}];
  if (known) return known;
  const Constructor made = make_object<ConstructorNode>();
  made->name_hint = fresh_type_name(fmt::format("{}_{}", encoding.name->name_hint, as_word(name_of(callee))));
  made->belong_to = encoding.name;
  Array<Type> inputs;
  for (const Type& type : captured) inputs.push_back(encoded(type, span));
  made->inputs = inputs;
  encoding.cases.push_back({made, callee});
  return known = made;
}

Expr FunctionValues::value(const FuncTypeNode& type, const Expr& callee, const Array<Expr>& captured,
                           const std::vector<Type>& captured_types, const Span& span) {
  for (const Type& held : captured_types) {
    relay::visit_symbols(held, [&](const PrimVarNode* symbol) {
      throw_at(span, "",
               fmt::format("a function that is a value captures a {}; no data type holds one whose dimension "
                           "'{}' is a symbol",
                           to_string(held), symbol->name_hint));
    });
  }
  const Constructor constructor = constructor_of(encoding_of(type, span), callee, captured_types, span);
  return relay::make_call(constructor, captured, Attrs(), {}, span);
}

Expr FunctionValues::apply(const FuncTypeNode& type, const Expr& function, const Array<Expr>& args, const Span& span) {
  Array<Expr> all{function};
  for (const Expr& arg : args) all.push_back(arg);
  return relay::make_call(Expr(encoding_of(type, span).apply), all, Attrs(), {}, span);
}

// Makes the apply function of a type. Where no function ever becomes a value of the type, it has no function to call
// and calls itself; it is then never called.
relay::Function FunctionValues::apply_function(const Encoding& encoding) {
  const relay::Var function = relay::make_var("f", encoding.name);
  Array<relay::Var> params{function};
  Array<Expr> args;
  for (const Type& type : encoding.type->arg_types) {
    params.push_back(relay::make_var(fmt::format("x{}", args.size()), encoded(type, {})));
    args.push_back(params.back());
  }
  Array<relay::Clause> clauses;
  for (const Case& one : encoding.cases) {
    Array<relay::Pattern> patterns;
    Array<Expr> all;
    for (const Type& type : one.constructor->inputs) {
      const relay::Var held = relay::make_var(fmt::format("c{}", all.size()), type);
      patterns.push_back(make_pattern_var(held));
      all.push_back(held);
    }
    for (const Expr& arg : args) all.push_back(arg);
    clauses.push_back(
        make_clause(make_pattern_constructor(one.constructor, patterns), relay::make_call(renewed(one.callee), all)));
  }
  const Type result = encoded(encoding.type->ret_type, {});
  if (clauses.empty()) {
    Array<Expr> all{function};
    for (const Expr& arg : args) all.push_back(arg);
    return relay::make_function(params, relay::make_call(Expr(encoding.apply), all), result);
  }
  return relay::make_function(params, relay::make_match(function, clauses), result);
}

void FunctionValues::define(const IRModule& result) {
  for (size_t i = 0; i < encodings_.size(); ++i)  // a function that calls values may need another type
    result->add_function(encodings_[i]->apply, apply_function(*encodings_[i]));
  for (const auto& encoding : encodings_) {
    TypeData data = make_object<TypeDataNode>();
    data->header = encoding->name;
    Array<Constructor> constructors;
    for (const Case& one : encoding->cases) constructors.push_back(one.constructor);
    if (constructors.empty()) {
      const Constructor none = make_object<ConstructorNode>();
      none->name_hint = fresh_type_name(encoding->name->name_hint + "_none");
      none->belong_to = encoding->name;
      constructors.push_back(none);
    }
    data->constructors = constructors;
    result->add_type_def(data);
  }
}

}  // namespace headrace::passes
