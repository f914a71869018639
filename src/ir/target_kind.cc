#include "ir/target_kind.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "ir/near_names.h"
#include "ir/target_tag.h"
#include "tensor/device.h"

namespace headrace {

namespace {

using OptionType = TargetOptionType;

constexpr std::pair<OptionType, std::string_view> kTypeNames[] = {{OptionType::text, "str"},
                                                                  {OptionType::whole, "int"},
                                                                  {OptionType::truth, "bool"},
                                                                  {OptionType::texts, "Array[str]"}};

// Options of Relay's kind `llvm` that would change nothing here.
const std::vector<RefusedTargetOption>& refused_by_llvm() {
  static const auto& rows = *new std::vector<RefusedTargetOption>{
      {"device", "it chose schedules by the name of a device; here -mcpu= and -mattr= do"},
      {"model", "it named a machine for tuning logs, and there are none"},
      {"libs", "it sent ops to libraries, and kernels call none"},
      {"label", "it named a target for logs, and nothing reads it"},
      {"mfloat-abi", "code has the calling convention of Linux on the machine"},
      {"mabi", "code has the calling convention of Linux on the machine"},
      {"opt-level", "give opt_level to the PassContext or the compile"},
      {"fast-math", "results keep their rounding; the pass FastMath replaces functions by faster ones"},
      {"vector-width", "it follows from -mcpu= and -mattr=; -mattr=-avx512f gives shorter vectors"},
      {"runtime", "every artifact runs in this runtime, in C and by itself"},
      {"system-lib", "every artifact is a file of its own"},
      {"link-params", "the weights are always in the artifact, or in the file beside it"},
  };
  return rows;
}

// Processors, by LLVM.
TargetKind llvm_kind() {
  const TargetKind kind = make_object<TargetKindNode>();
  kind->name = "llvm";
  kind->default_device_type = kDLCPU;
  kind->default_keys = {"cpu"};
  kind->options = {
      {.name = "mtriple", .type = OptionType::text, .doc = "the machine; without it this one's"},
      {.name = "mcpu",
       .type = OptionType::text,
       .doc = "the processor, by LLVM's name; without it, or native: this one's"},
      {.name = "mattr",
       .type = OptionType::texts,
       .doc = "features of the processor to add or leave out: +NAME, -NAME"},
      {.name = "num-cores",
       .type = OptionType::whole,
       .doc = "threads that an artifact runs with unless told otherwise; without it one a processor",
       .least = 1,
       .most = kMaxTargetCores},
      {.name = "extern",
       .type = OptionType::texts,
       .doc = "backends beside the native one, in the order of their priority"},
  };
  kind->refused = refused_by_llvm();
  return kind;
}

// The kinds that every program has.
std::vector<TargetKind> built_in_kinds() { return {llvm_kind()}; }

// Entries are never removed.
struct KindTable {
  std::mutex mutex;
  std::map<std::string, TargetKind, std::less<>> kinds;
  std::map<std::pair<std::string, std::string>, PackedFunc> hooks;  // by kind and name

  KindTable() {
    for (const TargetKind& kind : built_in_kinds()) kinds.emplace(kind->name, kind);
  }
};

KindTable& kind_table() {
  static KindTable& instance = *new KindTable;
  return instance;
}

void check_hook(std::string_view hook) {
  if (hook != kRelayToTir && hook != kTirToRuntime)
    throw_user_error("a kind of target has no attribute '{}' to set; it has {} and {}", hook, kRelayToTir,
                     kTirToRuntime);
}

bool is_name(std::string_view name) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_.+").find(c) != std::string_view::npos;
  };
  return !name.empty() && name[0] != '-' && std::all_of(name.begin(), name.end(), is_letter);
}

void check_options_of(const TargetKindNode& kind) {
  std::set<std::string_view> seen{"kind", "keys", "host", "tag"};
  for (const TargetOption& option : kind.options) {
    check_target_name(option.name, "an option of a target");
    if (!seen.insert(option.name).second)
      throw_user_error("the target kind '{}' cannot have the option '{}': every kind has it, or it is there twice",
                       kind.name, option.name);
    if (!option.default_value.is_none()) check_option_value(option, option.default_value);
  }
}

Array<std::string> split_list(std::string_view text) {
  Array<std::string> words;
  while (true) {
    const size_t comma = text.find(',');
    words.push_back(std::string(text.substr(0, comma)));
    if (comma == std::string_view::npos) return words;
    text.remove_prefix(comma + 1);
  }
}

void check_word(const TargetOption& option, const std::string& word) {
  if (word.empty() || word.find_first_of(" \t\n,'\"") != std::string::npos)
    throw_user_error("the target's option {} has '{}', which must be a single word", option.name, word);
}

Value check_text(const TargetOption& option, const Value& value) {
  const auto text = value.as<std::string>();
  if (text.empty()) throw_user_error("the target's option {} is an empty text; leave it out", option.name);
  if (text.find_first_of("'\"\n") != std::string::npos)
    throw_user_error("the target's option {} has a quote or a line break: {}", option.name, repr(value));
  return value;
}

Value check_whole(const TargetOption& option, const Value& value) {
  const auto number = value.as<int64_t>();
  if (number >= option.least && number <= option.most) return value;
  throw_user_error("the target's option {} is {}; it goes from {} to {}", option.name, number, option.least,
                   option.most);
}

Value check_texts(const TargetOption& option, const Value& value) {
  const auto words = value.is<std::string>() ? split_list(value.as<std::string>()) : value.as<Array<std::string>>();
  for (const std::string& word : words) check_word(option, word);
  return Value(words);
}

// Returns whether Relay has a kind of this name for GPUs.
bool is_gpu(std::string_view name) {
  constexpr std::string_view kKinds[] = {"cuda", "hip", "metal", "nvptx", "opencl", "rocm", "vulkan", "webgpu"};
  return std::find(std::begin(kKinds), std::end(kKinds), name) != std::end(kKinds);
}

}  // namespace

std::string_view name_of(TargetOptionType type) {
  for (const auto& [known, name] : kTypeNames) {
    if (known == type) return name;
  }
  throw InternalError("a type of options has no name");
}

TargetOptionType parse_target_option_type(std::string_view name) {
  std::vector<std::string_view> names;
  for (const auto& [type, known] : kTypeNames) {
    if (known == name) return type;
    names.push_back(known);
  }
  throw_user_error("there is no type '{}' of a target's options; the types are {}", name, fmt::join(names, ", "));
}

void TargetKindNode::fields(FieldList<TargetKindNode>& f) {
  f.field<&TargetKindNode::name>("name")
      .field<&TargetKindNode::default_device_type>("default_device_type",
                                                   {.doc = "as DLPack numbers them: 1 is the CPU, 2 CUDA"})
      .field<&TargetKindNode::default_keys>("default_keys",
                                            {.doc = "what code for it may use, the most special first"});
}

NamedValues TargetKindNode::save_content(const TargetKindNode& kind) { return {{"name", Value(kind.name)}}; }

Ref<TargetKindNode> TargetKindNode::load_content(const NamedValues& saved) {
  if (saved.size() != 1 || saved[0].first != "name")
    throw_user_error("a kind of target must be saved as its name alone");
  return get_target_kind(saved[0].second.as<std::string>());
}

const TargetOption* TargetKindNode::find_option(std::string_view option) const {
  for (const TargetOption& known : options) {
    if (known.name == option) return &known;
  }
  return nullptr;
}

void register_target_kind(TargetKind kind) {
  check_target_name(kind->name, "a kind of target");
  if (kind->default_device_type < 1 || kind->default_device_type > std::numeric_limits<int32_t>::max())
    throw_user_error("the target kind '{}' has the device type {}; DLPack's start at 1, the CPU", kind->name,
                     kind->default_device_type);
  for (const std::string& key : kind->default_keys) check_target_name(key, "a key of a target");
  check_options_of(*kind);
  std::lock_guard lock(kind_table().mutex);
  if (!kind_table().kinds.emplace(kind->name, kind).second)
    throw_user_error("the target kind '{}' is registered already", kind->name);
}

void register_backend_kind(const std::string& name) {
  check_target_name(name, "a kind of target");
  const TargetKind kind = make_object<TargetKindNode>();
  kind->name = name;
  kind->default_device_type = kDLCPU;
  kind->default_keys = {name};
  kind->is_backend = true;
  std::lock_guard lock(kind_table().mutex);
  kind_table().kinds.try_emplace(name, kind);
}

TargetKind find_target_kind(std::string_view name) {
  std::lock_guard lock(kind_table().mutex);
  const auto found = kind_table().kinds.find(name);
  return found == kind_table().kinds.end() ? TargetKind() : found->second;
}

TargetKind get_target_kind(std::string_view name) {
  if (TargetKind kind = find_target_kind(name)) return kind;
  if (is_name(name) && find_global(kRegionCompilerPrefix + std::string(name))) {
    register_backend_kind(std::string(name));
    return find_target_kind(name);
  }
  const std::vector<std::string> tags = near_names(name, target_tags(), '/');
  throw_user_error("there is no kind of target '{}'{}; the kinds are {}, as in: llvm -mcpu=x86-64-v3{}", name,
                   is_gpu(name) ? ", and GPUs are not supported yet" : "", fmt::join(target_kind_names(), ", "),
                   tags.empty() ? "" : fmt::format("; did you mean the tag {}?", fmt::join(tags, " or ")));
}

void set_kind_hook(std::string_view kind, std::string_view hook, PackedFunc function) {
  check_hook(hook);
  const std::string name = get_target_kind(kind)->name;
  std::lock_guard lock(kind_table().mutex);
  kind_table().hooks[{name, std::string(hook)}] = std::move(function);
}

PackedFunc find_kind_hook(std::string_view kind, std::string_view hook) {
  check_hook(hook);
  std::lock_guard lock(kind_table().mutex);
  const auto found = kind_table().hooks.find({std::string(kind), std::string(hook)});
  return found == kind_table().hooks.end() ? PackedFunc() : found->second;
}

std::vector<std::string> target_kind_names() {
  std::lock_guard lock(kind_table().mutex);
  std::vector<std::string> names;
  for (const auto& [name, kind] : kind_table().kinds) names.push_back(name);
  return names;
}

Array<Value> describe_options(const TargetKind& kind) {
  Array<Value> rows;
  for (const TargetOption& option : kind->options) {
    rows.push_back(Value(Map<std::string, Value>{{"name", Value(option.name)},
                                                 {"type", Value(std::string(name_of(option.type)))},
                                                 {"default", option.default_value},
                                                 {"doc", Value(option.doc)}}));
  }
  return rows;
}

Value check_option_value(const TargetOption& option, const Value& value) {
  switch (option.type) {
    case OptionType::text:
      if (value.is<std::string>()) return check_text(option, value);
      break;
    case OptionType::whole:
      if (value.type_index() == type_index::kInt) return check_whole(option, value);
      break;
    case OptionType::truth:
      if (value.type_index() == type_index::kBool) return value;
      break;
    case OptionType::texts:
      if (value.is<std::string>() || (!value.is_none() && value.is<Array<std::string>>()))
        return check_texts(option, value);
      break;
  }
  throw_user_error("the target's option {} is of type {}, got {}", option.name, name_of(option.type), repr(value));
}

void check_target_name(std::string_view name, std::string_view what) {
  if (!is_name(name))
    throw_user_error("'{}' is not a name of {}: letters, digits and -_.+ make one, and it begins with no dash", name,
                     what);
}

}  // namespace headrace
