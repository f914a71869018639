// TargetKind: a kind of thing that code is made for, as data: its devices, keys and options.
//
// Built in are those of built_in_kinds() in target_kind.cc. A backend adds its own with register_target_kind; code for
// it is its own to make.
#pragma once

#include <functional>
#include <limits>

#include "object/array.h"
#include "object/function.h"
#include "object/map.h"
#include "object/string.h"

namespace headrace {

enum class TargetOptionType : uint8_t { text, whole, truth, texts };  // str, int, bool, Array[str]

// Convert between a type and its name: "int", "Array[str]". UserError that lists the names.
std::string_view name_of(TargetOptionType type);
TargetOptionType parse_target_option_type(std::string_view name);

struct TargetOption {
  std::string name;
  TargetOptionType type;
  std::string doc;
  Value default_value = {};  // None: no default; the option is then absent
  int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();  // range of an int
};

// An option that users may know from other compilers and that has no meaning here.
struct RefusedTargetOption {
  std::string name;
  std::string reason;
};

// There is one object a kind; saved by name. It does not change once it is registered.
struct TargetKindNode : Object {
  using Parent = Object;
  static constexpr std::string_view type_key = "TargetKind";
  static constexpr bool is_final = true;
  static constexpr StructuralKind structural_kind = StructuralKind::unique;
  static void fields(FieldList<TargetKindNode>& f);
  static NamedValues save_content(const TargetKindNode& kind);
  static Ref<TargetKindNode> load_content(const NamedValues& saved);

  std::string name;
  int64_t default_device_type = 0;    // a DLDeviceType
  Array<std::string> default_keys;    // keys that code for it may use, the most special first
  std::vector<TargetOption> options;  // in the order of the text form; `keys`, `host` and `tag` every kind has
  std::vector<RefusedTargetOption> refused;
  // Gets "keys" and the checked options of each target that is made, and returns them as the target keeps them; may
  // throw. It must accept its own results unchanged, since a target is made again from its parts. Empty: the options
  // stay.
  std::function<Map<std::string, Value>(const Map<std::string, Value>&)> parse;

  bool is_backend = false;  // code for it comes from a backend of that name beside the native code generator

  const TargetOption* find_option(std::string_view option) const;  // null when there is none
};
using TargetKind = Ref<TargetKindNode>;

// The prefix of the global functions that compile parts of a program for a backend: relay.ext.NAME.
inline constexpr const char* kRegionCompilerPrefix = "relay.ext.";

// The most that the option num-cores of a kind of processor says: threads that an artifact runs with.
inline constexpr int64_t kMaxTargetCores = 512;

// Registers a kind. UserError for a name that another kind has or that no target's text could hold; for a device type
// below 1; for an option that occurs twice or that every kind has, or whose name no text could hold; and for a default
// that is not a value of its option.
void register_target_kind(TargetKind kind);

// Registers a kind without options for the backend of that name, unless there is a kind of that name already.
void register_backend_kind(const std::string& name);

// find_target_kind returns null for an unknown kind. get_target_kind makes the kind of a backend that is only a
// function relay.ext.NAME at its first use, and throws a UserError that lists the kinds for any other name; it suggests
// tags for a name that is a tag without its group.
TargetKind find_target_kind(std::string_view name);
TargetKind get_target_kind(std::string_view name);
std::vector<std::string> target_kind_names();

// The hooks by which a backend compiles whole modules. They belong to a kind, whose name functions have as Compiler.
//   RelayToTIR    (IRModule) -> IRModule: takes all functions of a program for that Compiler, and may replace any by a
//                 PrimFunc of the same name, over the buffers of its parameters, then of its results
//   TIRToRuntime  (IRModule of PrimFuncs, Target of the kind) -> runtime::Module with a function for each
inline constexpr std::string_view kRelayToTir = "RelayToTIR", kTirToRuntime = "TIRToRuntime";

// Sets a hook of a kind, in place of an earlier one; null removes it. UserError for an unknown kind and for another
// hook, with the list of hooks.
void set_kind_hook(std::string_view kind, std::string_view hook, PackedFunc function);
// Returns the hook of the kind of that name; null when there is none, or no such kind. UserError for another hook.
PackedFunc find_kind_hook(std::string_view kind, std::string_view hook);

// Returns the kind's options for other languages and reports: a map each of "name", "type", "default" and "doc".
Array<Value> describe_options(const TargetKind& kind);

// Returns a value as the option stores it; a list may be given as one text with commas. UserError: a value of another
// type or out of bounds, a text that is empty or has quotes, a list item that is not a single word.
Value check_option_value(const TargetOption& option, const Value& value);

// Checks the name of a kind, an option or a part of a tag: letters, digits, '-', '_', '.', '+'. UserError that calls
// the name by `what`.
void check_target_name(std::string_view name, std::string_view what);

}  // namespace headrace
