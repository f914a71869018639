#include "relay/bind.h"

#include <algorithm>
#include <map>

#include "relay/unique_binders.h"
#include "relay/visit.h"

namespace headrace::relay {

namespace {

// Puts in the values, after renaming inner binders of variables in `free` and of variables in values.
Expr put_in(const Expr& root, std::vector<Expr> free, const Map<Var, Expr>& values) {
  for (const auto& [var, value] : values) {
    free.push_back(var);
    free.push_back(value);
  }
  free.push_back(root);
  const Expr unique = unique_binders(make_tuple(Array<Expr>(free)));
  return rewrite_post_order(unique.as<TupleNode>()->items.back(), [&](const Expr& before, const Expr& after) {
    const Var var = before.cast<VarNode>();
    return var && values.contains(var) ? values.at(var) : after;
  });
}

Function bind_arguments(const Function& function, const Map<Var, Expr>& values) {
  Array<Var> params;
  std::vector<Expr> free;
  for (const Var& param : function->params) {
    free.push_back(param);
    if (!values.contains(param)) params.push_back(param);
  }
  const Expr body = put_in(function->body, std::move(free), values);
  const auto with_params = [&](const Array<Var>& own) {
    return copy_with(*function, [&](FunctionNode& f) {
      f.params = own;
      f.body = body;
    });
  };
  const std::vector<Var> known = free_vars(function);
  for (const Var& var : free_vars(with_params(params))) {
    if (std::find(known.begin(), known.end(), var) == known.end()) params.push_back(var);
  }
  return with_params(params);
}

// Checks a tensor against the annotation of its parameter.
void check_param(const Var& param, const NDArray& data) {
  const auto* type = param->type_annotation.as<TensorTypeNode>();
  if (type == nullptr) return;
  const TensorType given = make_tensor_type(data.shape(), data.dtype());
  bool fits = type->dtype == data.dtype() && type->shape.size() == data.shape().size();
  for (size_t i = 0; fits && i < data.shape().size(); ++i)
    fits = as_int(type->shape[i]).value_or(data.shape()[i]) == data.shape()[i];
  if (!fits) {
    throw_user_error("parameter '{}' is {}; the tensor given for it is {}", param->name_hint,
                     to_string(param->type_annotation), to_string(Type(given)));
  }
}

}  // namespace

Expr bind(const Expr& expr, const Map<Var, Expr>& values) {
  if (const Function function = expr.cast<FunctionNode>()) return bind_arguments(function, values);
  return put_in(expr, {}, values);
}

Function bind_params_by_name(const Function& function, const Map<std::string, NDArray>& params) {
  Map<Var, Expr> values;
  std::map<std::string, int> count;
  for (const Var& param : function->params) {
    ++count[param->name_hint];
    const std::optional<NDArray> data = params.get(param->name_hint);
    if (!data) continue;
    if (count[param->name_hint] > 1)
      throw_user_error("two parameters are named '{}', so that the tensor may be for either; rename one of them",
                       param->name_hint);
    check_param(param, *data);
    values.set(param, make_constant(*data));
  }
  return values.empty() ? function : bind_arguments(function, values);
}

}  // namespace headrace::relay
