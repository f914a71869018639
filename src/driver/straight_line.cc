#include "driver/straight_line.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "artifact/tensor_extent.h"
#include "relay/leaves.h"
#include "relay/visit.h"

namespace headrace::driver {

namespace {

using relay::CallNode;
using relay::ConstantNode;
using relay::TupleGetItemNode;
using relay::TupleNode;
using Kind = ProgramTensor::Kind;

class Reader {
 public:
  explicit Reader(const IRModule& module) {
    line_.main = module->lookup("main").cast<relay::FunctionNode>();
    if (!line_.main)
      throw_user_error("the module's @main is not a Relay function, and only a Relay program can be split");
  }

  StraightLine read() {
    for (size_t i = 0; i < line_.main->params.size(); ++i) {
      const relay::Var& param = line_.main->params[i];
      if (param->checked_type().is<TupleTypeNode>())
        throw_at(
            param->span, "split into stages",
            fmt::format("parameter %{} is a tuple, and stages take tensors; give the fields of a tuple as parameters "
                        "of their own",
                        param->name_hint));
      add_owner(param, Kind::param, i);
    }
    const auto enter = [](const Expr& node) { return !node.is<relay::FunctionNode>(); };
    relay::post_order(line_.main->body, enter, [&](const Expr& node) { visit(node); });
    line_.results = tensors_.at(line_.main->body.object());
    keep_what_is_read();
    return std::move(line_);
  }

 private:
  void add_owner(const Expr& node, Kind kind, size_t number) {
    std::vector<ProgramTensor> tensors;
    for (const Type& leaf : leaves_of(node->checked_type()))
      tensors.push_back({.kind = kind, .owner = number, .index = tensors.size(), .type = leaf});
    tensors_.emplace(node.object(), std::move(tensors));
  }

  void visit(const Expr& node) {
    if (tensors_.contains(node.object()) || node.is<OpNode>()) return;
    if (const auto* tuple = node.as<TupleNode>()) return add_tuple(*tuple);
    if (const auto* item = node.as<TupleGetItemNode>()) {
      tensors_.emplace(item, relay::leaves_of_item(*item, tensors_.at(item->tuple.object())));
    } else if (const auto* call = node.as<CallNode>(); call != nullptr && call->as_op() != nullptr) {
      add_call(node.cast<CallNode>());
    } else if (node.is<ConstantNode>()) {
      line_.constants.push_back(node.cast<ConstantNode>());
      tensors_.emplace(node.object(), std::vector{ProgramTensor{.kind = Kind::constant,
                                                                .owner = line_.constants.size() - 1,
                                                                .type = line_.constants.back()->tensor_type()}});
    } else {
      throw_at(node->span, "split into stages",
               fmt::format("a program with {} cannot be split into stages; only calls of ops, tuples and constants can",
                           node.object()->type_info().key));
    }
  }

  // Drops calls and constants that no result depends on, and numbers the others anew.
  void keep_what_is_read() {
    std::map<Kind, std::vector<bool>> is_read{{Kind::call, std::vector<bool>(line_.calls.size())},
                                              {Kind::constant, std::vector<bool>(line_.constants.size())},
                                              {Kind::param, std::vector<bool>(line_.main->params.size())}};
    const auto mark = [&](const ProgramTensor& tensor) { is_read[tensor.kind][tensor.owner] = true; };
    for (const ProgramTensor& result : line_.results) mark(result);
    for (size_t i = line_.calls.size(); i-- > 0;) {  // a call comes after those that it reads
      if (!is_read[Kind::call][i]) continue;
      for (const auto& arg : line_.args[i]) std::for_each(arg.begin(), arg.end(), mark);
    }
    StraightLine kept{
        .main = line_.main, .constants = {}, .calls = {}, .args = {}, .results = std::move(line_.results)};
    std::map<Kind, std::vector<size_t>> numbers{{Kind::call, std::vector<size_t>(line_.calls.size())},
                                                {Kind::constant, std::vector<size_t>(line_.constants.size())}};
    for (size_t i = 0; i < line_.constants.size(); ++i) {
      if (!is_read[Kind::constant][i]) continue;
      numbers[Kind::constant][i] = kept.constants.size();
      kept.constants.push_back(std::move(line_.constants[i]));
    }
    const auto renumber = [&](ProgramTensor& tensor) {
      if (tensor.kind != Kind::param) tensor.owner = numbers[tensor.kind][tensor.owner];
    };
    for (size_t i = 0; i < line_.calls.size(); ++i) {
      if (!is_read[Kind::call][i]) continue;
      numbers[Kind::call][i] = kept.calls.size();
      kept.calls.push_back(std::move(line_.calls[i]));
      kept.args.push_back(std::move(line_.args[i]));
      for (auto& arg : kept.args.back()) std::for_each(arg.begin(), arg.end(), renumber);
    }
    std::for_each(kept.results.begin(), kept.results.end(), renumber);
    line_ = std::move(kept);
  }

  void add_tuple(const TupleNode& tuple) {
    std::vector<ProgramTensor> all;
    for (const Expr& item : tuple.items) {
      const std::vector<ProgramTensor>& some = tensors_.at(item.object());
      all.insert(all.end(), some.begin(), some.end());
    }
    tensors_.emplace(&tuple, std::move(all));
  }

  void add_call(relay::Call call) {
    std::vector<std::vector<ProgramTensor>> args;
    for (const Expr& arg : call->args) args.push_back(tensors_.at(arg.object()));
    add_owner(call, Kind::call, line_.calls.size());
    line_.args.push_back(std::move(args));
    line_.calls.push_back(std::move(call));
  }

  StraightLine line_;
  std::unordered_map<const Object*, std::vector<ProgramTensor>> tensors_;
};

}  // namespace

StraightLine read_straight_line(const IRModule& module) { return Reader(module).read(); }

int64_t size_bytes_of(const Type& type, const Span& span) {
  const auto* tensor = type.as<TensorTypeNode>();
  const std::optional<Shape> shape = tensor == nullptr ? std::nullopt : as_shape(tensor->shape);
  if (!shape)
    throw_at(span, "split into stages",
             fmt::format("a value of the type {} has no known size, so stages cannot hand it on", to_string(type)));
  const std::optional<int64_t> bytes = artifact::tensor_nbytes(tensor->dtype, *shape);
  if (!bytes) throw_at(span, "split into stages", fmt::format("a tensor of the type {} is too large", to_string(type)));
  return *bytes;
}

}  // namespace headrace::driver
