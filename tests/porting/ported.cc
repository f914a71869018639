// A user's library, written in the forms of Relay's time.
#include "object/porting.h"

namespace mine {

using namespace headrace;

struct PairNode : Object {
  int64_t first = 0;
  int64_t second = 0;
  static void fields(FieldList<PairNode>& f) {
    f.field<&PairNode::first>("first");
    f.field<&PairNode::second>("second");
  }
  static constexpr const char* _type_key = "mine.Pair";
  TVM_DECLARE_FINAL_OBJECT_INFO(PairNode, Object);
};
using Pair = Ref<PairNode>;
TVM_REGISTER_NODE_TYPE(PairNode);

struct PlainNode : Object {
  static constexpr const char* _type_key = "mine.Plain";
  TVM_DECLARE_BASE_OBJECT_INFO(PlainNode, Object);
};
TVM_REGISTER_OBJECT_TYPE(PlainNode);

Pair make_pair(int64_t first, int64_t second) {
  Pair pair = make_object<PairNode>();
  pair->first = first;
  pair->second = second;
  return pair;
}

TVM_REGISTER_GLOBAL("mine.Pair").set_body_typed(make_pair);
TVM_REGISTER_GLOBAL("mine.sum").set_body_typed([](const Pair& pair) { return pair->first + pair->second; });
TVM_REGISTER_GLOBAL("mine.describe").set_body([](TVMArgs args, TVMRetValue* rv) {
  const int64_t number = args[0];
  const std::string unit = args[1];
  *rv = std::to_string(number) + " " + unit + " of " + std::to_string(args.size());
});
TVM_REGISTER_GLOBAL("mine.nothing").set_body([](TVMArgs, TVMRetValue*) {});
TVM_REGISTER_GLOBAL("mine.packed").set_body(make_packed([](int64_t x) { return -x; }));
// The name is taken, which stderr reports.
TVM_REGISTER_GLOBAL("mine.packed").set_body_typed([](int64_t x) { return x; });

}  // namespace mine
