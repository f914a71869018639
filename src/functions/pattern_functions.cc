// Dataflow patterns: matching, rewriting, splitting, and their text form.
#include "functions/register_functions.h"
#include "object/function.h"
#include "partition/verdict.h"
#include "relay/patterns/matcher.h"
#include "relay/patterns/partition.h"
#include "relay/patterns/pattern_text.h"
#include "relay/patterns/rewrite.h"

namespace headrace::functions {

namespace {

using relay::DFPattern;
using relay::WildcardPattern;

// Makes one callback of a user's [name, pattern, function, require_type, rewrite_once].
relay::PatternCallback callback_of(const Array<Value>& row) {
  relay::PatternCallback callback;
  callback.name = row.at(0).as<std::string>();
  callback.pattern = row.at(1).as<DFPattern>();
  callback.require_type = row.at(3).as<bool>();
  callback.rewrite_once = row.at(4).as<bool>();
  callback.replace = [function = row.at(2).as<PackedFunc>(), name = callback.name](
                         const Expr& before, const Expr& after, const relay::PatternMatches& matches) {
    const Value made = function(before, after, matches);
    if (made.as_node<ExprNode>() == nullptr)
      throw_user_error("the callback {} gave {} for a match, expected an expression", name, kind_name(made.raw()));
    return made.as<Expr>();
  };
  return callback;
}

Expr rewrite(const Array<Array<Value>>& rows, const Expr& expr, const IRModule& module) {
  std::vector<relay::PatternCallback> callbacks;
  for (const Array<Value>& row : rows) callbacks.push_back(callback_of(row));
  return relay::rewrite_patterns(callbacks, expr, module);
}

Expr partition(const DFPattern& pattern, const Expr& expr, const DictAttrs& attrs,
               const std::optional<PackedFunc>& check) {
  relay::GroupOptions options;
  if (check) {
    options.accepts = [check](const relay::PatternGroup&, const Expr& shown) {
      return partition::read_answer((*check)(shown), "partition: check").ok();
    };
  }
  return relay::partition_pattern(pattern, expr, attrs, options);
}

}  // namespace

void register_pattern_functions() {
  register_global("relay.dataflow_pattern.match", make_packed(&relay::match_pattern));
  register_global("relay.dataflow_pattern.rewrite", make_packed(&rewrite));
  register_global("relay.dataflow_pattern.partition", make_packed(&partition));
  register_global("relay.dataflow_pattern.Redirect",
                  make_packed([](const WildcardPattern& wildcard, const std::optional<DFPattern>& target) {
                    relay::patterns::redirect(*wildcard, target.value_or(DFPattern()));
                  }));
  register_global("relay.dataflow_pattern.RedirectedTo", make_packed([](const WildcardPattern& wildcard) {
                    return wildcard->redirect ? Value(wildcard->redirect->pattern) : Value();
                  }));
  register_global("relay.dataflow_pattern.AsText", make_packed(&relay::print_pattern));
  register_global("relay.dataflow_pattern.FromText",
                  make_packed([](const std::string& text) { return relay::parse_pattern(text); }));
}

}  // namespace headrace::functions
