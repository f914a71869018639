// Types and dimensions.
#include "base/count_of.h"
#include "ir/max_dim.h"
#include "ir/type_text.h"
#include "relay/text/parser.h"

namespace headrace::relay {

static bool is_dtype_word(std::string_view word) {
  for (const std::string_view prefix : {"int", "uint", "float", "bfloat", "bool", "handle"}) {
    if (!word.starts_with(prefix)) continue;
    const std::string_view tail = word.substr(prefix.size());
    if (tail.empty() ? prefix != "bfloat" : (tail[0] >= '0' && tail[0] <= '9') || tail[0] == 'x') return true;
  }
  return false;
}

DataType Parser::dtype_word() {
  const Token token = peek();
  if (token.kind != TokenKind::word && token.kind != TokenKind::string) fail_expected("a dtype such as float32");
  take();
  try {
    return DataType::parse(token.kind == TokenKind::string ? unquote(token.text) : std::string(token.text));
  } catch (const UserError& error) {
    fail(token, error.message());
  }
}

Nested<Type> Parser::type() {
  const Token first = peek();
  if (first.is("Tensor")) {
    Type tensor = co_await tensor_type(first);
    co_return tensor;
  }
  if (first.is("fn")) {
    Type function = co_await function_type(first);
    co_return function;
  }
  if (first.is("(")) {
    Type tuple = co_await tuple_type(first);
    co_return tuple;
  }
  if (first.kind != TokenKind::word) fail_expected("a type");
  Type named = co_await named_type(first);
  co_return named;
}

Nested<Type> Parser::tensor_type(Token first) {
  take();
  expect("[", "after Tensor");
  expect("(", "before a tensor's dimensions");
  Array<PrimExpr> shape;
  while (!at(")")) {
    PrimExpr extent = co_await dim(0);
    const auto* imm = extent.as<IntImmNode>();
    if (imm != nullptr && imm->value < 0) report(peek(), fmt::format("the dimension {} is negative", imm->value));
    if (imm != nullptr && imm->value > kMaxDim) {
      report(peek(), fmt::format("the dimension {} is more than any machine holds", imm->value));
      extent = make_int(kMaxDim);
    }
    shape.push_back(extent);
    if (!accept(",")) break;
  }
  expect(")", "after a tensor's dimensions");
  expect(",", "before a tensor's dtype");
  const DataType dtype = dtype_word();
  expect("]", "after a tensor's dtype");
  TensorType result = make_tensor_type(shape, dtype);
  result->span = span_from(first);
  co_return Type(result);
}

Nested<Type> Parser::function_type(Token first) {
  take();
  const size_t mark = type_vars_.mark();
  const Array<TypeVar> params = type_params();
  expect("(", "before a function type's arguments");
  Array<Type> args;
  while (!at(")")) {
    Type arg = co_await type();
    args.push_back(arg);
    if (!accept(",")) break;
  }
  expect(")", "after a function type's arguments");
  expect("->", "before a function type's result");
  Type result = co_await type();
  Array<Type> relations = co_await constraints();
  type_vars_.leave(mark);
  FuncType made = make_func_type(args, result, params, relations);
  made->span = span_from(first);
  co_return Type(made);
}

Nested<Array<Type>> Parser::constraints() {
  Array<Type> relations;
  if (!accept("where")) co_return relations;
  expect("[", "after where");
  while (!at("]")) {
    Type relation = co_await constraint(peek());
    relations.push_back(relation);
    if (!accept(",")) break;
  }
  expect("]", "after constraints");
  co_return relations;
}

// Parses add(A, B) -> C: the types as a call's arguments, then the op's result.
Nested<Type> Parser::constraint(Token first) {
  if (first.kind != TokenKind::word && first.kind != TokenKind::string) fail_expected("an op's name");
  take();
  auto relation = make_object<TypeRelationNode>();
  relation->name = first.kind == TokenKind::string ? unquote(first.text) : std::string(first.text);
  CallAttrs attrs;
  expect("(", "after the op of a constraint");
  while (!at(")")) {
    if (at_attribute()) {
      const Token name = peek();
      attrs.add(name, attribute());
    } else {
      if (!attrs.fields.empty()) fail(peek(), "types come before attributes");
      Type input = co_await type();
      relation->args.push_back(input);
    }
    if (!accept(",")) break;
  }
  expect(")", "after the types of a constraint");
  expect("->", "before what the op of a constraint gives");
  relation->num_inputs = static_cast<int64_t>(relation->args.size());
  Type result = co_await type();
  relation->args.push_back(result);
  relation->attrs = call_attrs(known_op(relation->name, first), std::move(attrs), first);
  relation->span = span_from(first);
  co_return Type(relation);
}

Nested<Type> Parser::tuple_type(Token first) {
  take();
  Array<Type> items;
  bool is_tuple = at(")");
  while (!at(")")) {
    Type item = co_await type();
    items.push_back(item);
    if (!accept(",")) break;
    is_tuple = true;
  }
  expect(")", "after a tuple type");
  if (!is_tuple) co_return items[0];
  TupleType made = make_tuple_type(items);
  made->span = span_from(first);
  co_return Type(made);
}

Nested<Type> Parser::named_type(Token first) {
  take();
  const std::string name(first.text);
  Type result;
  if (name == "ref" || name == "prim") {
    expect(name == "ref" ? "(" : "[", "after " + name);
    if (name == "prim") {
      result = make_prim_type(dtype_word());
    } else {
      Type cell = co_await type();
      result = make_ref_type(cell);
    }
    expect(name == "ref" ? ")" : "]", "to close the type");
    result->span = span_from(first);
    co_return result;
  }
  if (name == "_") co_return make_incomplete_type();
  if (const TypeVar var = type_vars_.find(name)) {
    result = var;
  } else if (auto it = global_types_.find(name); it != global_types_.end()) {
    result = it->second;
  } else if (is_dtype_word(name)) {
    --at_;
    co_return Type(make_scalar_type(dtype_word()));
  } else {
    report(first, fmt::format("there is no type '{}'", name));
    result = make_incomplete_type();
  }
  if (!accept("[")) co_return result;
  Array<Type> args;
  while (!at("]")) {
    Type arg = co_await type();
    args.push_back(arg);
    if (!accept(",")) break;
  }
  expect("]", "after type arguments");
  Type made = make_type_call(result, args);
  made->span = span_from(first);
  co_return made;
}

Array<TypeVar> Parser::type_params() {
  Array<TypeVar> params;
  if (!accept("[")) return params;
  comma_separated("]", "after type variables", [&] {
    const Token token = peek();
    if (token.kind != TokenKind::word) fail_expected("a type variable");
    take();
    TypeKind kind = TypeKind::type;
    if (accept(":")) {
      const Token word = take();
      int found = -1;
      for (int i = 0; i <= static_cast<int>(TypeKind::type_data); ++i) {
        if (word.text == name_of(static_cast<TypeKind>(i))) found = i;
      }
      if (found < 0) fail(word, fmt::format("'{}' is not a kind of type variable", word.text));
      kind = static_cast<TypeKind>(found);
    }
    const TypeVar var = make_type_var(std::string(token.text), kind);
    if (std::any_of(params.begin(), params.end(), [&](const TypeVar& p) { return p->name_hint == var->name_hint; }))
      report(token, fmt::format("the type variable {} is declared twice", token.text));
    var->span = span_from(token);
    type_vars_.bind(var->name_hint, var);
    params.push_back(var);
  });
  return params;
}

namespace {

struct DimOperator {
  std::string_view sign;
  BinaryOp op;
  int precedence;
};
constexpr DimOperator kDimOperators[] = {
    {"||", BinaryOp::logical_or, 1}, {"&&", BinaryOp::logical_and, 2}, {"==", BinaryOp::eq, 3}, {"!=", BinaryOp::ne, 3},
    {"<", BinaryOp::lt, 3},          {"<=", BinaryOp::le, 3},          {">", BinaryOp::gt, 3},  {">=", BinaryOp::ge, 3},
    {"+", BinaryOp::add, 4},         {"-", BinaryOp::sub, 4},          {"*", BinaryOp::mul, 5}, {"/", BinaryOp::div, 5},
    {"%", BinaryOp::mod, 5}};

const DimOperator* dim_operator(const Token& token) {
  if (token.kind != TokenKind::sign) return nullptr;
  for (const DimOperator& candidate : kDimOperators) {
    if (candidate.sign == token.text) return &candidate;
  }
  return nullptr;
}

}  // namespace

PrimExpr Parser::dim_binary(const Token& sign, BinaryOp op, PrimExpr a, PrimExpr b) {
  // A plain integer takes the dtype of the other operand.
  if (a->dtype != b->dtype && a->dtype == kIndexType && a.is<IntImmNode>()) a = make_int(*as_int(a), b->dtype);
  if (a->dtype != b->dtype && b->dtype == kIndexType && b.is<IntImmNode>()) b = make_int(*as_int(b), a->dtype);
  if (a->dtype != b->dtype) {
    fail(sign, fmt::format("'{}' of dtypes {} and {}; cast one, as in int64(n)", sign.text, a->dtype, b->dtype));
  }
  const bool divides =
      op == BinaryOp::div || op == BinaryOp::mod || op == BinaryOp::floor_div || op == BinaryOp::floor_mod;
  if (divides && is_int(b, 0)) fail(sign, "a dimension is divided by zero");
  if (is_logical(op) && !a->dtype.is_bool()) fail(sign, fmt::format("'{}' needs conditions", sign.text));
  return make_binary(op, std::move(a), std::move(b));
}

Nested<PrimExpr> Parser::dim(int min_precedence) {
  PrimExpr left = co_await dim_primary();
  while (const DimOperator* op = dim_operator(peek())) {
    if (op->precedence < min_precedence) break;
    const Token sign = take();
    PrimExpr right = co_await dim(op->precedence + 1);
    left = dim_binary(sign, op->op, left, right);
  }
  co_return left;
}

Nested<PrimExpr> Parser::dim_primary() {
  const Token first = peek();
  if (accept("?")) co_return make_any();
  if (accept("(")) {
    PrimExpr inner = co_await dim(0);
    expect(")", "after a dimension");
    co_return inner;
  }
  if (first.is("-") && peek(1).kind == TokenKind::integer) {
    take();
    co_return dim_integer(true);
  }
  if (first.kind == TokenKind::integer) co_return dim_integer(false);
  if (first.is("True") || first.is("False")) {
    take();
    co_return make_bool(first.text == "True");
  }
  if (first.kind == TokenKind::word && peek(1).is("(")) {
    PrimExpr called = co_await dim_function(first);
    co_return called;
  }
  if (first.is("meta") && peek(1).is("[")) {
    const PrimExpr dim = meta_node(first).cast<PrimExprNode>();
    if (!dim) fail(first, "the node is not a dimension");
    co_return to_dimension(dim);
  }
  if (first.kind != TokenKind::word && first.kind != TokenKind::string) fail_expected("a dimension");
  co_return symbol(first);
}

PrimExpr Parser::dim_integer(bool negative) {
  const Token token = take();
  DataType dtype = kIndexType;
  if (!token.suffix.empty()) {
    const auto named = dtype_of_suffix(token.suffix, false);
    if (!named || named->is_float()) fail(token, fmt::format("'{}' is not a suffix of an integer", token.suffix));
    dtype = *named;
  }
  const NDArray data = NDArray::empty({}, dtype);
  set_integer(data, 0, token, negative);
  if (dtype.bits() < 8) return make_int(static_cast<int64_t>(*data.data<int8_t>()), dtype);
  return make_int(element_as_int(data.tensor(), 0), dtype);
}

Nested<PrimExpr> Parser::dim_function(Token name) {
  take();
  take();
  std::vector<PrimExpr> args;
  while (!at(")")) {
    PrimExpr arg = co_await dim(0);
    args.push_back(arg);
    if (!accept(",")) break;
  }
  expect(")", "after a function's arguments");
  const std::string_view word = name.text;
  const auto want = [&](size_t n) {
    if (args.size() != n) fail(name, fmt::format("'{}' takes {}, not {}", word, count_of(n, "argument"), args.size()));
  };
  if (word == "logical_not") {
    want(1);
    if (!args[0]->dtype.is_bool()) fail(name, "logical_not needs a condition");
    co_return make_not(args[0]);
  }
  if (word == "select") {
    want(3);
    if (!args[0]->dtype.is_bool() || args[1]->dtype != args[2]->dtype)
      fail(name, "select needs a condition and two values of one dtype");
    co_return make_select(args[0], args[1], args[2]);
  }
  if (is_dtype_word(word)) {
    want(1);
    const DataType dtype = DataType::parse(word);
    if (dtype.lanes() != 1 || dtype.is_handle()) fail(name, "a dimension is cast to a scalar number only");
    co_return make_cast(dtype, args[0]);
  }
  const BinaryOp op = word == "min"        ? BinaryOp::min
                      : word == "max"      ? BinaryOp::max
                      : word == "floordiv" ? BinaryOp::floor_div
                                           : BinaryOp::floor_mod;
  if (op == BinaryOp::floor_mod && word != "floormod")
    fail(name, fmt::format("a dimension has no function '{}'; it has min, max, floordiv, floormod, select", word));
  want(2);
  co_return dim_binary(name, op, args[0], args[1]);
}

PrimExpr Parser::symbol(const Token& token) {
  take();
  const std::string name = token.kind == TokenKind::string ? unquote(token.text) : std::string(token.text);
  std::optional<DataType> dtype;
  if (at(":") && peek(1).kind == TokenKind::word && is_dtype_word(peek(1).text)) {
    take();
    dtype = dtype_word();
  }
  PrimVar& var = symbols_[name];
  if (!var) {
    var = make_prim_var(name, dtype.value_or(kIndexType));
    var->span = span_from(token);
  }
  if (var->dtype != dtype.value_or(kIndexType))
    report(token, fmt::format("the symbol {} has dtype {} where it was named first", name, var->dtype));
  return var;
}

}  // namespace headrace::relay
