// Functions of C: parameters and variables, and the bodies of parallel loops.
#include <algorithm>
#include <utility>

#include "codegen/c_kernel.h"
#include "tir/post_order.h"

namespace headrace::codegen {

namespace {

// The signature of an hr_parallel_body.
constexpr const char* kPartSignature = "const hr_kernel_env* env, void* closure, int64_t begin, int64_t end";

void add_stored(const tir::Stmt& stmt, std::unordered_set<const Object*>& stored) {
  std::vector<tir::Stmt> open{stmt};
  while (!open.empty()) {
    const tir::Stmt at = open.back();
    open.pop_back();
    if (const auto* store = at.as<tir::BufferStoreNode>()) stored.insert(store->buffer.get());
    for (const tir::Stmt& inside : tir::statements_of(at)) open.push_back(inside);
  }
}

std::string tensor_text(const BufferNode& buffer) {
  std::vector<std::string> dims;
  for (const PrimExpr& dim : buffer.shape) dims.push_back(to_string(dim));
  std::string text = fmt::format("{}[{}]", buffer.dtype, fmt::join(dims, ", "));
  // Names of symbols are the user's: none ends the comment.
  std::replace(text.begin(), text.end(), '/', '_');
  return text;
}

}  // namespace

void CKernel::bind(const Object* key, std::string_view hint, const std::string& type) {
  frame_->variables[key] = {frame_->names.add(hint), type, false};
}

const std::string& CKernel::use(const Object* key, std::string_view what) {
  if (const auto found = frame_->variables.find(key); found != frame_->variables.end()) {
    found->second.is_used = true;
    return found->second.name;
  }
  Frame* outer = frame_->outer;
  HEADRACE_CHECK(outer != nullptr && outer->variables.contains(key), "'{}' of '{}' is not in scope", what, symbol_);
  outer->variables.at(key).is_used = true;
  frame_->captured.push_back(key);
  return (frame_->variables[key] = outer->variables.at(key)).name;
}

std::string CKernel::pointer_to(const BufferNode& buffer) const {
  return fmt::format("{}{}*", stored_.contains(&buffer) ? "" : "const ", c_memory_type(buffer.dtype));
}

std::string CKernel::declaration(const Variable& variable) const {
  const bool is_pointer = variable.type.ends_with('*');
  const char* qualifier = is_pointer ? (no_alias_ ? " restrict" : "") : "";
  return fmt::format("{}{}{} {}", is_pointer ? "" : "const ", variable.type, qualifier, variable.name);
}

// Buffers get their data pointers; a symbol gets its value from the first place that it alone fills.
void CKernel::bind_arguments(const tir::PrimFuncNode& function) {
  for (const Buffer& buffer : function.params) bind(buffer.get(), buffer->name, pointer_to(*buffer));
  for (const Buffer& buffer : function.params) {
    for (const Array<PrimExpr>& dims : {buffer->shape, buffer->strides}) {
      for (const PrimExpr& dim : dims) {
        const auto* symbol = dim.as<PrimVarNode>();
        if (symbol != nullptr && !frame_->variables.contains(symbol))
          bind(symbol, symbol->name_hint, c_type(symbol->dtype));
      }
    }
  }
}

std::string CKernel::arguments_text(const tir::PrimFuncNode& function) const {
  std::string out;
  std::unordered_set<const Object*> written;
  const auto add = [&](const Object* key, const std::string& value) {
    const Variable& variable = frame_->variables.at(key);
    if (variable.is_used && written.insert(key).second)
      out += fmt::format("  {} = {};\n", declaration(variable), value);
  };
  for (size_t i = 0; i < function.params.size(); ++i) {
    const Buffer& buffer = function.params[i];
    add(buffer.get(), fmt::format("args[{}]->data", i));
    for (const char* field : {"shape", "strides"}) {
      const Array<PrimExpr>& dims = field[1] == 'h' ? buffer->shape : buffer->strides;
      for (size_t k = 0; k < dims.size(); ++k) {
        if (dims[k].is<PrimVarNode>()) add(dims[k].get(), fmt::format("args[{}]->{}[{}]", i, field, k));
      }
    }
  }
  return out.empty() ? "  (void)args;\n" : out;
}

// Describes the kernel's inputs and outputs.
std::string CKernel::signature_comment(const tir::PrimFuncNode& function) const {
  std::string out = "/*";
  const size_t inputs = function.params.size() - static_cast<size_t>(function.num_outputs);
  for (size_t i = 0; i < function.params.size(); ++i) {
    const Buffer& buffer = function.params[i];
    if (i != 0 && i != inputs) out += ",";
    if (i == inputs) out += " ->";
    out += fmt::format(" {} {}", frame_->variables.at(buffer.get()).name, tensor_text(*buffer));
  }
  return out + " */\n";
}

std::string CKernel::write(const tir::PrimFuncNode& function) {
  symbol_ = tir::symbol_of(function);
  workspace_ = tir::workspace_of(function);
  const auto no_alias = function.attrs.get("tir.noalias");
  no_alias_ = no_alias.has_value() && no_alias->as<bool>();
  add_stored(function.body, stored_);
  Frame frame;
  frame_ = &frame;
  indent_ = 2;
  bind_arguments(function);
  const std::string body = captured([&] { write_block(function.body); });
  return fmt::format("{}{}int32_t {}(const hr_kernel_env* env, DLTensor* const* args) {{\n{}{}{}  return 0;\n}}\n",
                     functions_, signature_comment(function), symbol_, frame.uses_env ? "" : "  (void)env;\n",
                     arguments_text(function), body);
}

std::string CKernel::write_function(const std::string& name, const PrimVar& argument, const PrimExpr& e) {
  symbol_ = name;
  Frame frame;
  frame_ = &frame;
  indent_ = 2;
  bind(argument.get(), argument->name_hint, c_type(argument->dtype));
  open_statement({e});
  std::string value;
  const std::string body = captured([&] { value = emit(e).text; });
  return fmt::format("static inline {} {}({} {}) {{\n{}  return {};\n}}\n", c_type(e->dtype), name,
                     c_type(argument->dtype), use(argument.get(), name), body, value);
}

// Writes env->parallel_for(env, part, closure, extent), where the closure holds the variables that the loop's body
// captures.
void CKernel::write_parallel(const tir::ForNode& loop) {
  const std::string name = fmt::format("hr_{}_part{}", symbol_, parts_++);
  const std::string first = is_int(loop.begin, 0) ? "" : named(emit(loop.begin), loop.begin->dtype, "first").text;
  const CCode extent = index(loop.extent);
  Frame frame;
  frame.outer = frame_;
  frame.names = frame_->names;
  functions_ += parallel_part(loop, name, first, frame);
  const std::string run = captured([&] {
    indent_ += 2;
    write_parallel_call(name, first, extent.text, frame);
    indent_ -= 2;
  });
  line(as_int(loop.extent) ? "{" : fmt::format("if ({} > 0) {{", at_least(extent, CLevel::sum)));
  out_ += run;
  line("}");
}

// Writes a part of the loop's iterations, from `first` (empty: 0) and `begin` behind it.
std::string CKernel::parallel_body(const tir::ForNode& loop, const std::string& first, Frame& frame) {
  Frame* outer = std::exchange(frame_, &frame);
  const size_t outer_indent = std::exchange(indent_, 2);
  const auto memo = memo_;
  const std::string type = c_type(loop.var->dtype);
  const std::string body = captured([&] {
    if (first.empty() && loop.var->dtype == kIndexType) return write_range(loop, "begin", "end");
    const std::string step = frame.names.add("step");
    block(fmt::format("for (int64_t {} = begin; {} < end; ++{}) {{", step, step, step), [&] {
      bind_loop(loop);
      const std::string& name_of_loop = frame.variables.at(loop.var.get()).name;
      const std::string base = first.empty() ? "" : fmt::format("(uint64_t){} + ", first);
      line(fmt::format("const {} {} = ({})({}(uint64_t){});", type, name_of_loop, type, base, step));
      declared(loop.var.get(), [&] { write_block(loop.body); });
    });
  });
  frame_ = outer;
  indent_ = outer_indent;
  memo_ = memo;
  return body;
}

// Writes the loop's body as a function of C; `frame` then lists the captured variables.
std::string CKernel::parallel_part(const tir::ForNode& loop, const std::string& name, const std::string& first,
                                   Frame& frame) {
  const std::string taken = frame.names.add("taken"), type = c_type(loop.begin->dtype);
  const std::string body = parallel_body(loop, first, frame);
  const bool takes = !first.empty() || !frame.captured.empty();
  std::string out;
  if (takes) out += fmt::format("struct {}_taken {{\n", name);
  if (!first.empty()) out += fmt::format("  {} {};\n", type, first);
  for (const Object* key : frame.captured)
    out += fmt::format("  {} {};\n", frame.variables.at(key).type, frame.variables.at(key).name);
  if (takes) out += "};\n\n";
  out += fmt::format("static int32_t {}({}) {{\n", name, kPartSignature);
  if (!frame.uses_env) out += "  (void)env;\n";
  out += takes ? fmt::format("  const struct {}_taken* {} = closure;\n", name, taken) : "  (void)closure;\n";
  if (!first.empty()) out += fmt::format("  const {} {} = {}->{};\n", type, first, taken, first);
  for (const Object* key : frame.captured) {
    const Variable& variable = frame.variables.at(key);
    out += fmt::format("  {} = {}->{};\n", declaration(variable), taken, variable.name);
  }
  return out + body + "  return 0;\n}\n\n";
}

void CKernel::write_parallel_call(const std::string& name, const std::string& first, const std::string& extent,
                                  const Frame& body) {
  frame_->uses_env = true;
  std::vector<std::string> values;
  if (!first.empty()) values.push_back(first);
  for (const Object* key : body.captured) values.push_back(use(key, name));
  const size_t names = frame_->names.count();
  const std::string taken = frame_->names.add("taken"), status = frame_->names.add("status");
  if (!values.empty()) line(fmt::format("struct {}_taken {} = {{{}}};", name, taken, fmt::join(values, ", ")));
  line(fmt::format("const int32_t {} = env->parallel_for(env, {}, {}, {});", status, name,
                   values.empty() ? "NULL" : "&" + taken, extent));
  line(fmt::format("if ({} != 0) return {};", status, status));
  frame_->names.release_to(names);
}

}  // namespace headrace::codegen
