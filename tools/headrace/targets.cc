// headrace targets: what --target takes.
#include <iostream>

#include "driver/register_all.h"
#include "ir/target_tag.h"
#include "tensor/device_kind.h"
#include "tools/headrace/output.h"

namespace headrace::tools {

namespace {

// Returns the name of a DLPack device type; a target has no other types.
std::string device_name(int64_t type) {
  for (const DeviceKind& kind : device_kinds()) {
    if (kind.type == type) return std::string(kind.name);
  }
  return "";
}

Report report_of(const TargetKind& kind) {
  return {{"name", Value(kind->name)},
          {"device_type", Value(kind->default_device_type)},
          {"device", Value(device_name(kind->default_device_type))},
          {"keys", Value(kind->default_keys)},
          {"options", Value(describe_options(kind))}};
}

// Returns the kinds that native code is made for. Those that only name a backend are chosen by --backends.
std::vector<TargetKind> native_kinds() {
  std::vector<TargetKind> kinds;
  for (const std::string& name : target_kind_names()) {
    if (const TargetKind kind = get_target_kind(name); !kind->is_backend) kinds.push_back(kind);
  }
  return kinds;
}

int print_json() {
  Array<Value> kinds, tags;
  for (const TargetKind& kind : native_kinds()) kinds.push_back(Value(report_of(kind)));
  for (const std::string& tag : target_tags()) {
    tags.push_back(Value(Report{{"name", Value(tag)}, {"target", Value(to_string(get_tagged_target(tag)))}}));
  }
  std::cout << to_json({{"kinds", Value(kinds)}, {"tags", Value(tags)}});
  return HR_OK;
}

int print_tables() {
  for (const TargetKind& kind : native_kinds()) {
    std::vector<std::vector<std::string>> rows{{"kind " + kind->name, "type", "what"}};
    for (const TargetOption& option : kind->options)
      rows.push_back({fmt::format("  -{}=", option.name), std::string(name_of(option.type)), option.doc});
    rows.push_back({"  -keys=", "Array[str]", "what code may ask for, before the kind's own"});
    rows.push_back({"  -host=", "target", "of the code that calls it; only the target itself"});
    std::cout << to_table(rows) << '\n';
  }
  std::vector<std::vector<std::string>> rows{{"tag", "target"}};
  for (const std::string& tag : target_tags()) rows.push_back({tag, to_string(get_tagged_target(tag))});
  std::cout << to_table(rows);
  return HR_OK;
}

}  // namespace

Verb add_targets(CLI::App& app, const Common& common) {
  CLI::App* verb = app.add_subcommand("targets", "List what --target takes: kinds with their options, and tags");
  verb->footer("Example: headrace targets --json");
  return [&common] {
    driver::register_all();
    return common.json ? print_json() : print_tables();
  };
}

}  // namespace headrace::tools
