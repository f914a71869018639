// Modules and attributes.
#include "tir/parse.h"

#include <bit>

#include "tir/parser.h"

namespace headrace::tir {

void Parser::version() {
  if (!at("#[") || !peek(1).is("tir_version"))
    fail(peek(), fmt::format("the text must start with #[tir_version = \"{}\"]", kTextVersion));
  take();
  take();
  expect("=", "after tir_version");
  const Token number = take();
  if (number.kind != TokenKind::string || unquote(number.text) != kTextVersion)
    report(number, fmt::format("version {} is not known; this reads \"{}\"", number.text, kTextVersion));
  expect("]", "after the version");
}

void Parser::params(Array<Buffer>& out) {
  expect("(", "before parameters");
  comma_separated(")", "after parameters", [&] { out.push_back(declared_buffer(true)); });
}

// Parses prim_func @name(inputs) -> (outputs) attrs {...} { body }
void Parser::function() {
  const Token first = expect("prim_func", "before a function");
  const Token token = peek();
  if (token.kind != TokenKind::global) fail_expected("a function's name such as @main after prim_func");
  take();
  const std::string name = local_name(token);
  names_ = {};
  vars_.clear();
  buffers_.clear();
  PrimFunc made = make_object<PrimFuncNode>();
  in_params_ = true;
  params(made->params);
  expect("->", "before the outputs");
  const size_t inputs = made->params.size();
  params(made->params);
  in_params_ = false;
  made->num_outputs = static_cast<int64_t>(made->params.size() - inputs);
  made->attrs = function_attrs(name);
  made->body = braces("before a function's body");
  made->span = span_from(first);
  if (module_->find_global_var(name)) return report(token, fmt::format("the function '@{}' is defined twice", name));
  module_->add_function(make_global_var(name), made);
}

// Parses attrs {"key" = value, ...}; the function's name is its symbol unless they contain one.
DictAttrs Parser::function_attrs(const std::string& name) {
  DictAttrs attrs;
  attrs.set("global_symbol", Value(name));
  if (!accept("attrs")) return attrs;
  expect("{", "after attrs");
  std::unordered_map<std::string, bool> given;
  comma_separated("}", "after attributes", [&] {
    const Token key = take();
    if (key.kind != TokenKind::string)
      fail(key, fmt::format("expected an attribute's name in quotes, found '{}'", key.text));
    const std::string text = unquote(key.text);
    expect("=", "after an attribute's name");
    const Value read = value(0);
    if (std::exchange(given[text], true)) report(key, fmt::format("the attribute '{}' is given twice", text));
    if (text == "global_symbol" && read.is_none()) {
      attrs.erase(text);
    } else {
      attrs.set(text, read);
    }
  });
  return attrs;
}

Value Parser::value(int depth) {
  if (depth > 100) fail(peek(), "attributes nest at most 100 levels deep");
  check_stack();
  const Token first = peek();
  if (first.kind == TokenKind::string) return take(), Value(unquote(first.text));
  if (first.kind == TokenKind::integer || first.kind == TokenKind::real || first.is("-")) return number_value();
  if (accept("None")) return {};
  if (accept("True")) return Value(true);
  if (accept("False")) return Value(false);
  const auto inside = [&] { return value(depth + 1); };
  if (accept("{")) return map_of(inside);
  if (accept("dtype")) {
    expect("(", "after dtype");
    const DataType read = dtype();
    expect(")", "after a dtype");
    return Value(read);
  }
  if (!accept("[")) fail_expected("an attribute's value");
  return list_of(inside);
}

Value Parser::number_value() {
  const bool negative = accept("-");
  const Token token = take();
  if (token.kind == TokenKind::real) return Value(real_of(token, negative));
  return Value(integer_of(token, negative, kIndexType));
}

void Parser::skip_to_function() {
  while (peek().kind != TokenKind::end && !at("prim_func")) take();
}

IRModule Parser::module() {
  try {
    version();
  } catch (const SyntaxError&) {  // reported
    skip_to_function();
  }
  while (peek().kind != TokenKind::end) {
    const size_t before = at_;
    try {
      if (accept("attributes")) {
        expect("{", "before a map");
        const Value attrs = map_of([this] { return value(1); });
        if (!ValueTraits<DictAttrs>::matches(attrs.raw())) fail(peek(), "the module's attributes have names in quotes");
        module_->attrs = attrs.as<DictAttrs>();
      } else {
        function();
      }
      continue;
    } catch (const TooDeep&) {
      break;
    } catch (const SyntaxError&) {  // reported
    } catch (const UserError& error) {
      report(peek(), error.message());
    }
    if (at_ == before) take();
    skip_to_function();
  }
  errors_.throw_if_any();
  return module_;
}

IRModule parse_module(std::string_view text, const std::string& source_name) {
  return Parser(text, source_name).module();
}

PrimFunc parse_function(std::string_view text, const std::string& source_name) {
  const IRModule module = parse_module(text, source_name);
  if (module->functions().size() != 1)
    throw_user_error("{}: expected one function, found {}", source_name, module->functions().size());
  return (*module->functions().begin()).second.cast<PrimFuncNode>();
}

bool is_tir_text(std::string_view text) {
  TextErrors errors(text, "");
  // The tokens of the first lines are enough.
  const std::vector<Token> tokens = lex(text.substr(0, 4096), errors);
  return tokens.size() > 1 && tokens[0].is("#[") && tokens[1].is("tir_version");
}

}  // namespace headrace::tir
