// Forms of C++ registration that Relay users know, for their own libraries: thin names for register_global and type_of.
// The libraries of Headrace itself register through explicit lists and include this nowhere. The macros keep the names
// that ported code has, and so are exempt from the rule that macros are HEADRACE_*.
//
//   TVM_REGISTER_GLOBAL("mine.add").set_body_typed([](int64_t a, int64_t b) { return a + b; });
//   TVM_REGISTER_GLOBAL("mine.count").set_body([](TVMArgs args, TVMRetValue* rv) { *rv = args.size(); });
//
//   struct PairNode : Object {
//     int64_t first = 0;
//     static void fields(FieldList<PairNode>& f) { f.field<&PairNode::first>("first"); }  // was VisitAttrs
//     static constexpr const char* _type_key = "mine.Pair";
//     TVM_DECLARE_FINAL_OBJECT_INFO(PairNode, Object);
//   };
//   using Pair = Ref<PairNode>;  // was a class with TVM_DEFINE_OBJECT_REF_METHODS
//   TVM_REGISTER_NODE_TYPE(PairNode);
//
// The macros register when the library is loaded, where no exception may be thrown: an error goes to stderr, and the
// function or type that had the name keeps it. The library must stay loaded from then on. Another version of Headrace
// refuses to load it (object/same_version.h).
#pragma once

#include <cstdio>
#include <exception>
#include <string>
#include <type_traits>
#include <utility>

#include "object/function.h"
#include "object/same_version.h"

namespace headrace {

namespace porting {

// Runs `register_it` in a library's static initialisation.
template <typename F>
bool at_load(const F& register_it) noexcept {
  try {
    register_it();
    return true;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "headrace: not registered: %s\n", error.what());
    return false;
  }
}

}  // namespace porting

// One argument, which converts to the type that it is assigned to. UserError that names the argument when it has
// another kind.
class TVMArgValue {
 public:
  TVMArgValue(Args args, int32_t index) : args_(args), index_(index) {}
  template <typename T>
    requires requires { ValueTraits<T>::name(); }
  operator T() const {
    return args_.at<T>(index_);
  }

 private:
  Args args_;
  int32_t index_;
};

class TVMArgs {
 public:
  explicit TVMArgs(Args args) : num_args(args.size()), args_(args) {}
  int size() const { return num_args; }
  TVMArgValue operator[](int index) const { return {args_, index}; }

  const int num_args;

 private:
  Args args_;
};

class TVMRetValue {
 public:
  template <typename T>
  TVMRetValue& operator=(T&& value) {
    value_ = Value(std::forward<T>(value));
    return *this;
  }
  Value take() { return std::move(value_); }

 private:
  Value value_;
};

// Registers one global function; the macro below makes it.
class Registry {
 public:
  static Registry Register(std::string name, bool can_override = false) {
    return Registry(std::move(name), can_override);
  }

  // Sets the function from a body that receives all arguments: f(TVMArgs args, TVMRetValue* rv).
  template <typename F>
  Registry& set_body(F body) {
    if constexpr (std::is_convertible_v<F, PackedFunc>) {
      return finish(std::move(body));
    } else {
      return finish(PackedFunc([body = std::move(body)](Args args) {
        TVMRetValue result;
        body(TVMArgs(args), &result);
        return result.take();
      }));
    }
  }
  // Sets the function from a body with typed parameters.
  template <typename F>
  Registry& set_body_typed(F body) {
    return finish(make_packed(std::move(body)));
  }

 private:
  Registry(std::string name, bool can_override) : name_(std::move(name)), can_override_(can_override) {}
  Registry& finish(const PackedFunc& function) {
    porting::at_load([&] { register_global(name_, function, can_override_); });
    return *this;
  }

  std::string name_;
  bool can_override_;
};

}  // namespace headrace

#define TVM_PORTING_JOIN_(a, b) a##b
#define TVM_PORTING_NAME_(counter) TVM_PORTING_JOIN_(tvm_registered_, counter)

#define TVM_REGISTER_GLOBAL(NAME)                                                     \
  [[maybe_unused]] static const ::headrace::Registry TVM_PORTING_NAME_(__COUNTER__) = \
      ::headrace::Registry::Register(NAME)

// Declares a node type; stands in the node's struct after its _type_key.
#define TVM_DECLARE_BASE_OBJECT_INFO(TYPE, PARENT) \
  using Parent = PARENT;                           \
  static constexpr std::string_view type_key = TYPE::_type_key
#define TVM_DECLARE_FINAL_OBJECT_INFO(TYPE, PARENT) \
  static constexpr bool is_final = true;            \
  TVM_DECLARE_BASE_OBJECT_INFO(TYPE, PARENT)

// Makes a node type known by its key; one that lists its fields is made by name, from Python and JSON.
#define TVM_REGISTER_OBJECT_TYPE(TYPE)                                \
  [[maybe_unused]] static const bool TVM_PORTING_NAME_(__COUNTER__) = \
      ::headrace::porting::at_load([] { ::headrace::type_of<TYPE>(); })
#define TVM_REGISTER_NODE_TYPE(TYPE) TVM_REGISTER_OBJECT_TYPE(TYPE)
