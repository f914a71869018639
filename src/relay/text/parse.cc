// Modules, and the two entries.
#include "relay/text/parse.h"

#include "relay/text/parser.h"
#include "relay/text/print_names.h"

namespace headrace::relay {

void Parser::version(bool required) {
  const bool present = at("#[") && peek(1).is("version");
  if (!present) {
    if (required) fail(peek(), "the text must start with #[version = \"0.0.5\"]");
    return;
  }
  take();
  take();
  expect("=", "after version");
  const Token number = take();
  if (number.kind != TokenKind::string || unquote(number.text) != "0.0.5")
    report(number, fmt::format("version {} is not known; this reads \"0.0.5\"", number.text));
  expect("]", "after the version");
}

// Returns the place of the first definition, for the message "is defined twice"; empty for one without a place.
static std::string first_at(const Span& span) {
  return span ? fmt::format("; the first is at {}", to_string(span)) : "";
}

void Parser::declare_type(const Token& name) {
  const std::string text(name.text);
  if (!can_name_type(text)) return report(name, fmt::format("'{}' cannot name a type", text));
  GlobalTypeVar& var = global_types_[text];
  if (var) {
    // So far only the names of this text's own definitions are known.
    const auto imported = module_->type_definitions().get(var);
    return report(name,
                  fmt::format("the type '{}' is defined twice{}", text, imported ? first_at((*imported)->span) : ""));
  }
  if (imports_->into) var = imports_->into->find_global_type_var(text);
  if (!var) var = make_global_type_var(text);
}

// Names that may be used before their definition: types, functions, constants.
void Parser::declare_items() {
  size_t metadata_at = 0;
  for (size_t i = 0; i + 1 < tokens_.size(); ++i) {
    const Token& token = tokens_[i];
    const Token& next = tokens_[i + 1];
    if (token.is("def") && next.kind == TokenKind::global) {
      GlobalVar& var = globals_[local_name(next)];
      if (var) {
        const auto imported = module_->functions().get(var);
        report(next, fmt::format("the function '@{}' is defined twice{}", next.text,
                                 imported ? first_at((*imported)->span) : ""));
      }
      if (!var && imports_->into) var = imports_->into->find_global_var(local_name(next));
      if (!var) var = make_global_var(local_name(next));
    } else if (token.is("type") && next.kind == TokenKind::word) {
      declare_type(next);
    } else if (token.is("#[") && next.is("metadata")) {
      if (metadata_at != 0) report(token, "there are two metadata blocks");
      metadata_at = i;
      metadata_begin_ = token.offset;
    }
  }
  const size_t back = at_;
  try {
    if (metadata_at != 0) metadata(metadata_at);
    for (size_t i = 0; i + 1 < tokens_.size(); ++i) {
      if (!tokens_[i].is("type") || tokens_[i + 1].kind != TokenKind::word) continue;
      at_ = i > 0 && tokens_[i - 1].is("extern") ? i - 1 : i;
      type_definition();
    }
  } catch (const SyntaxError&) {  // reported
  }
  at_ = back;
}

void Parser::constructor(const GlobalTypeVar& type_var, Array<Constructor>& out) {
  const Token name = take();
  const std::string text(name.text);
  if (name.kind != TokenKind::word || !can_name_type(text))
    fail(name, fmt::format("expected a constructor's name, found '{}'", name.text));
  Constructor made = make_object<ConstructorNode>();
  made->name_hint = text;
  made->belong_to = type_var;
  if (accept("(")) {
    comma_separated(")", "after a constructor's fields", [&] { made->inputs.push_back(type().run()); });
  }
  made->span = span_from(name);
  for (const Constructor& other : out) {
    if (other->name_hint == text)
      report(name, fmt::format("the constructor '{}' is defined twice{}", text, first_at(other->span)));
  }
  out.push_back(made);
}

// type List[A] { Cons(A, List[A]), Nil, }
// extern type Storage[A]
void Parser::type_definition() {
  const bool is_extern = accept("extern");
  const Token first = take();
  const Token name = take();
  TypeData data = make_object<TypeDataNode>();
  data->header = global_types_[std::string(name.text)];
  if (!data->header) data->header = make_global_type_var(std::string(name.text));  // reported as a bad name
  const size_t mark = type_vars_.mark();
  symbols_.clear();
  data->type_vars = type_params();
  if (is_extern && at("{")) fail(peek(), "an extern type has no constructors; leave out 'extern' or the braces");
  if (!is_extern) {
    expect("{", "before constructors");
    comma_separated("}", "after constructors", [&] { constructor(data->header, data->constructors); });
  }
  type_vars_.leave(mark);
  data->span = span_from(first);
  if (const TypeData present = present_type(data)) data = present;
  for (const Constructor& made : data->constructors) constructors_[made->name_hint].push_back(made);
  if (module_->find_global_type_var(data->header->name_hint)) return;  // reported as defined twice
  module_->add_type_def(data);
}

void Parser::definition() {
  const Token first = take();
  const Token name = take();
  if (name.kind != TokenKind::global) fail(name, "expected a function's name such as @main after def");
  symbols_.clear();
  const Function made = function(first).run();
  const GlobalVar& var = globals_[local_name(name)];
  if (!module_->find_global_var(var->name_hint)) module_->add_function(var, made);
}

// Parses attributes { "key" = value; }
void Parser::module_attributes() {
  take();
  expect("{", "after attributes");
  while (!at("}")) {
    const Token token = peek();
    if (!at_attribute()) fail_expected("an attribute such as \"key\" = 1");
    const NamedValue field = attribute();
    if (module_->attrs.contains(field.first))
      report(token, fmt::format("the attribute '{}' is given twice", field.first));
    module_->attrs.set(field.first, field.second);
    expect(";", "after an attribute of the module");
  }
  expect("}", "after the attributes of the module");
}

// Skips a definition that declare_items has read.
void Parser::skip_type_definition() {
  const auto skip_to = [&](std::string_view close) {
    while (peek().kind != TokenKind::end && !at(close) && !at("def")) take();
    accept(close);
  };
  if (!accept("extern")) return skip_to("}");
  if (!at("type") || peek(1).kind != TokenKind::word) fail_expected("type and its name after extern");
  take();
  take();
  if (at("[")) skip_to("]");
  accept(";");
}

void Parser::item() {
  if (at("def")) return definition();
  if (at("attributes")) return module_attributes();
  if (at("import") && peek(1).kind == TokenKind::string) {
    take();  // read by declare_items
    take();
    accept(";");
    return;
  }
  if (at("type") || at("extern")) return skip_type_definition();
  if (at("#[") && peek(1).is("metadata")) {
    at_ = tokens_.size() - 1;
    return;
  }
  fail_expected("def, type, import, attributes or #[metadata]");
}

IRModule Parser::module() {
  take_init_module();
  import_texts();
  try {
    version(true);
  } catch (const SyntaxError&) {  // reported
  }
  declare_items();
  while (peek().kind != TokenKind::end) {
    const size_t before = at_;
    try {
      item();
      continue;
    } catch (const SyntaxError&) {  // reported
    } catch (const UserError& error) {
      report(peek(), error.message());
    }
    if (at_ == before) take();
    skip_to_item();
  }
  report_constants_without_data();
  errors_.throw_if_any();
  module_->add_source(make_source(source_name_, std::string(text_.substr(0, metadata_begin_))));
  return module_;
}

Expr Parser::expression() {
  open_globals_ = true;
  Expr result;
  try {
    version(false);
    declare_items();
    while (accept("free_var")) {
      const Var var = declared_var().run();
      expect(";", fmt::format("after the free variable %{}", var->name_hint));
    }
    result = block().run();
    const bool at_end = peek().kind == TokenKind::end || (at("#[") && peek(1).is("metadata"));
    if (!at_end) fail_expected("the end of the text after the expression");
  } catch (const SyntaxError&) {  // reported
  } catch (const UserError& error) {
    report(peek(), error.message());
  }
  report_constants_without_data();
  errors_.throw_if_any();
  return result;
}

IRModule parse_module(std::string_view text, const std::string& source_name, const ParseOptions& options) {
  return Parser(text, source_name, options).module();
}

Expr parse_expr(std::string_view text, const std::string& source_name, const ParseOptions& options) {
  return Parser(text, source_name, options).expression();
}

}  // namespace headrace::relay
