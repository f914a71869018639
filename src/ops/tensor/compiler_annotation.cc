#include "ops/tensor/compiler_annotation.h"

#include "ops/families.h"

namespace headrace::ops {

void CompilerAttrs::fields(FieldList<CompilerAttrs>& f) {
  f.field<&CompilerAttrs::compiler>("compiler", {.doc = "the name of the compiler, such as dnnl"});
}

namespace {

// The interpreter gives the operand itself, also one that is not a tensor.
void register_border(const char* name, const char* doc) {
  OpBuilder(name, doc)
      .arg("data", "Any", "T[...]: x")
      .attrs<CompilerAttrs>()
      .relation([](const RelationInput& input) -> Type {
        if (input.call.attrs_as<CompilerAttrs>().compiler.empty())
          input.fail("the compiler has no name; give the attribute compiler a name such as \"dnnl\"");
        const Type& type = input.arg_types[0];
        return type.is<IncompleteTypeNode>() ? Type() : type;
      })
      .value([](const RelationInput& input) { return input.arg_value(0); })
      .fusion(FusionKind::opaque)
      .fact(kKeepsElements, KeepsElements::note)
      .eval([](const EvalInput& input) { return input.args; });
}

}  // namespace

void register_compiler_annotation_ops() {
  register_border("annotation.compiler_begin",
                  "x, which here enters a part of the program that `compiler` computes: x[...] -> the same type. "
                  "PartitionGraph reads it; by itself it does nothing.");
  register_border("annotation.compiler_end",
                  "x, which here leaves a part of the program that `compiler` computes: x[...] -> the same type. "
                  "PartitionGraph reads it; by itself it does nothing.");
}

Attrs compiler_attrs(std::string compiler) {
  auto attrs = make_object<CompilerAttrs>();
  attrs->compiler = std::move(compiler);
  return attrs;
}

Expr compiler_begin(Expr data, std::string compiler, Span span) {
  return call_with<CompilerAttrs>("annotation.compiler_begin", {std::move(data)}, std::move(span),
                                  [&](auto& a) { a.compiler = std::move(compiler); });
}

Expr compiler_end(Expr data, std::string compiler, Span span) {
  return call_with<CompilerAttrs>("annotation.compiler_end", {std::move(data)}, std::move(span),
                                  [&](auto& a) { a.compiler = std::move(compiler); });
}

}  // namespace headrace::ops
