#include "artifact/manifest_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <random>

#include "artifact/check_manifest.h"
#include "artifact/tensor_extent.h"
#include "kit/artifact_kit.h"
#include "kit/errors.h"

namespace headrace::artifact {
namespace {

using ::testing::HasSubstr;

Manifest full_manifest() {
  Manifest manifest = headrace::testing::toy_manifest();
  manifest.programs.push_back(headrace::testing::toy_program("small"));
  manifest.programs[1].target.features = {"avx2", "fma"};
  manifest.programs[0].graph.steps[0].operations = 80;
  manifest.programs[0].inputs[0].dims = {"rows", ""};
  manifest.programs[1].graph.entries[3].strides = {5, 1};
  manifest.programs[0].graph.entries.push_back(
      {.place = Place::kStorage, .dtype = DataType::int_(64), .shape = {1}, .strides = {}});
  manifest.programs[0].bounded_outputs = {{.output = 1, .axis = 0, .extent = 7}};
  manifest.programs[0].bound_params = {
      {.spec = {.name = "w", .dtype = DataType::float_(32), .shape = {5, 8}}, .hash = std::string(32, 'b')}};
  manifest.programs[1].placement[0] = {
      .op = "fc1 \"quoted\" \xC3\xA9", .backend = "native", .reason = HR_REASON_OP_UNSUPPORTED, .message = "no"};
  manifest.modules = {{.loader = "toy", .section = ".headrace.blob.0", .imports = {1}, .constants = {0}},
                      {.loader = "toy", .section = ".headrace.blob.1", .imports = {}}};
  manifest.side_file = SideFile{.name = "weights.safetensors", .nbytes = 4096, .hash = std::string(32, '0')};
  manifest.default_threads = 2;
  const Location pinned{.device = {kDLCUDA, 1}, .memory_kind = "pinned"};
  manifest.programs[1].inputs[0].location = manifest.programs[1].graph.entries[0].location = pinned;
  manifest.programs[1].memory.arenas.push_back({.location = pinned, .nbytes = 64});
  manifest.programs[1].notes = {
      {.pass = "FoldConstant", .op = "fc1", .reason = HR_REASON_FOLD_LIMIT, .message = "too much"}};
  manifest.programs[1].placement[0].region = "theirs";
  manifest.backends = {{.name = "toy", .version = "1.2"}};
  manifest.programs[1].region = "theirs";
  manifest.regions = {{.name = "theirs",
                       .backend = "toy",
                       .symbol = "",
                       .module = 1,
                       .fallback = "small",
                       .body = "def @theirs() { () }",
                       .body_weights = {1}}};
  using Kind = PipelineSource::Kind;
  const PipelinePort image{.spec = {.name = "image", .dtype = DataType::float_(32), .shape = {6, 8}}};
  const PipelinePort any{.spec = {.name = "found", .dtype = {}, .shape = {}}, .is_any = true};
  const PipelinePort scale{
      .spec = {.name = "scale", .dtype = manifest.weights[0].dtype, .shape = manifest.weights[0].shape}};
  manifest.pipeline = PipelinePlan{.models = {{.name = "detect", .section = ".headrace.blob.model.0"}},
                                   .groups = {{.name = "all", .cpus = {0, 1}}},
                                   .inputs = {image},
                                   .stages = {{.name = "first",
                                               .backend = "native",
                                               .model = 0,
                                               .program = "main",
                                               .inputs = {image, scale},
                                               .outputs = {image},
                                               .sources = {{.kind = Kind::input}, {.kind = Kind::param}},
                                               .threads = 3,
                                               .time_limit_seconds = 0.5,
                                               .batch = PipelineBatch{.max_batch = 8,
                                                                      .max_delay_seconds = 0.25,
                                                                      .retry_alone = true,
                                                                      .any_rows = true,
                                                                      .others = {{.model = 0, .program = "small"}}}},
                                              {.name = "second",
                                               .function = "post",
                                               .inputs = {any},
                                               .outputs = {any},
                                               .sources = {{.kind = Kind::stage}},
                                               .replicas = 2,
                                               .isolation = PipelineIsolation::process,
                                               .is_pure = true}},
                                   .outputs = {{.name = "found", .source = {.kind = Kind::stage, .index = 1}}},
                                   .params = {{.group = "scales", .port = scale, .weight = 0}},
                                   .max_inflight = 12};
  return manifest;
}

TEST(Manifest, RoundTrip) {
  const std::string text = write_manifest(full_manifest());
  const Manifest read = read_manifest(text + "   \n ");
  EXPECT_EQ(write_manifest(read), text);
  EXPECT_EQ(read.programs[1].name, "small");
  EXPECT_EQ(read.programs[0].graph.steps[0].operations, 80);
  EXPECT_EQ(read.programs[0].inputs[0].dims, (std::vector<std::string>{"rows", ""}));
  EXPECT_TRUE(read.programs[0].outputs[0].dims.empty());
  EXPECT_EQ(read.programs[1].graph.entries[3].strides, (std::vector<int64_t>{5, 1}));
  EXPECT_TRUE(std::holds_alternative<CopyStep>(read.programs[1].graph.steps[2].action));
  EXPECT_EQ(read.programs[0].bounded_outputs.at(0).output, 1);
  EXPECT_EQ(read.programs[0].bounded_outputs.at(0).extent, 7);
  EXPECT_TRUE(read.programs[1].bounded_outputs.empty());
  EXPECT_EQ(read.programs[0].bound_params.at(0).spec.name, "w");
  EXPECT_EQ(read.programs[0].bound_params.at(0).spec.shape, (std::vector<int64_t>{5, 8}));
  EXPECT_EQ(read.programs[0].bound_params.at(0).hash, std::string(32, 'b'));
  EXPECT_EQ(read.programs[1].placement[0].reason, HR_REASON_OP_UNSUPPORTED);
  EXPECT_EQ(read.modules[0].imports, std::vector<int32_t>{1});
  EXPECT_EQ(read.modules[0].constants, std::vector<int64_t>{0});
  EXPECT_EQ(read.side_file->nbytes, 4096);
  EXPECT_EQ(find_program(read, "small"), &read.programs[1]);
  EXPECT_EQ(find_program(read, "large"), nullptr);
  EXPECT_EQ(to_string(read.programs[1].inputs[0].location), "cuda:1/pinned");
  EXPECT_EQ(read.programs[1].memory.arenas[1].location, read.programs[1].graph.entries[0].location);
  EXPECT_EQ(read.programs[1].notes.at(0).reason, HR_REASON_FOLD_LIMIT);
  EXPECT_EQ(read.programs[1].placement.at(0).region, "theirs");
  EXPECT_EQ(read.backends.at(0).version, "1.2");
  EXPECT_EQ(read.regions.at(0).fallback, "small");
  EXPECT_EQ(read.regions.at(0).module, 1);
  EXPECT_EQ(find_program(read, "small")->region, "theirs");
  EXPECT_EQ(read.regions.at(0).body_weights, std::vector<int64_t>{1});
  const PipelinePlan& plan = *read.pipeline;
  EXPECT_EQ(plan.models.at(0).section, ".headrace.blob.model.0");
  EXPECT_EQ(plan.groups.at(0).cpus, (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(plan.stages.at(0).program, "main");
  EXPECT_EQ(plan.stages.at(0).sources.at(1).kind, PipelineSource::Kind::param);
  EXPECT_EQ(plan.stages.at(0).time_limit_seconds, 0.5);
  EXPECT_EQ(plan.stages.at(0).threads, 3);
  EXPECT_EQ(plan.stages.at(0).batch->max_batch, 8);
  EXPECT_EQ(plan.stages.at(0).batch->max_delay_seconds, 0.25);
  EXPECT_TRUE(plan.stages.at(0).batch->retry_alone);
  EXPECT_TRUE(plan.stages.at(0).batch->any_rows);
  EXPECT_EQ(plan.stages.at(0).batch->others.at(0).program, "small");
  EXPECT_FALSE(plan.stages.at(1).batch.has_value());
  EXPECT_EQ(plan.stages.at(0).isolation, PipelineIsolation::thread);
  EXPECT_EQ(plan.stages.at(1).isolation, PipelineIsolation::process);
  EXPECT_TRUE(plan.stages.at(1).is_pure);
  EXPECT_EQ(plan.stages.at(1).function, "post");
  EXPECT_TRUE(plan.stages.at(1).inputs.at(0).is_any);
  EXPECT_EQ(plan.params.at(0).weight, 0);
  EXPECT_EQ(plan.outputs.at(0).source.index, 1U);
  EXPECT_EQ(plan.max_inflight, 12);
}

void erase_operations(nlohmann::ordered_json& json) {
  for (nlohmann::ordered_json& program : json["programs"]) {
    for (nlohmann::ordered_json& step : program["graph"]["steps"]) step.erase("operations");
  }
}

void erase_dims(nlohmann::ordered_json& json) {
  for (nlohmann::ordered_json& program : json["programs"]) {
    for (const char* field : {"inputs", "outputs"}) {
      for (nlohmann::ordered_json& spec : program[field]) spec.erase("dims");
    }
  }
}

// Makes the text of version 4 of a manifest on the CPU, without regions and pipeline.
nlohmann::ordered_json as_version_4(const std::string& text) {
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(text);
  json["version"] = 4;
  erase_operations(json);
  erase_dims(json);
  for (nlohmann::ordered_json& module : json["modules"]) module.erase("constants");
  for (const char* field : {"backends", "regions", "pipeline"}) json.erase(field);
  for (nlohmann::ordered_json& program : json["programs"]) {
    for (const char* field : {"inputs", "outputs"}) {
      for (nlohmann::ordered_json& spec : program[field]) spec.erase("location");
    }
    for (nlohmann::ordered_json& entry : program["graph"]["entries"]) entry.erase("location");
    for (nlohmann::ordered_json& placement : program["placement"]) {
      placement.erase("kind");
      placement.erase("region");
    }
    program.erase("notes");
    program.erase("region");
    nlohmann::ordered_json& memory = program["memory"];
    memory["arena_bytes"] = memory["arenas"][0]["nbytes"];
    memory.erase("arenas");
    for (nlohmann::ordered_json& storage : memory["storages"]) storage.erase("arena");
  }
  return json;
}

TEST(Manifest, VersionsBefore11HadNoNamesOfDimensions) {
  Manifest manifest = full_manifest();
  manifest.programs[0].inputs[0].dims.clear();
  const std::string now = write_manifest(manifest);
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(now);
  erase_dims(json);
  EXPECT_THAT(kit::user_error_of([&] { (void)read_manifest(json.dump()); }),
              HasSubstr("programs[0].inputs[0] has no field 'dims'"));
  json["version"] = 10;
  EXPECT_EQ(write_manifest(read_manifest(json.dump())), now);
}

TEST(Manifest, VersionsBefore10HadNoProcessesOfStages) {
  Manifest manifest = full_manifest();
  manifest.programs[0].inputs[0].dims.clear();
  manifest.pipeline->stages[1].isolation = PipelineIsolation::thread;
  manifest.pipeline->stages[1].is_pure = false;
  const std::string now = write_manifest(manifest);
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(now);
  for (nlohmann::ordered_json& stage : json["pipeline"]["stages"]) {
    stage.erase("isolation");
    stage.erase("pure");
  }
  EXPECT_THAT(kit::user_error_of([&] { (void)read_manifest(json.dump()); }),
              HasSubstr("pipeline.stages[0] has no field 'isolation'"));
  erase_dims(json);
  json["version"] = 9;
  EXPECT_EQ(write_manifest(read_manifest(json.dump())), now);
}

TEST(Manifest, VersionsBefore9HadNoBatchesOfStages) {
  Manifest manifest = full_manifest();
  manifest.programs[0].inputs[0].dims.clear();
  manifest.pipeline->stages[1].isolation = PipelineIsolation::thread;
  manifest.pipeline->stages[1].is_pure = false;
  manifest.pipeline->stages[0].batch.reset();
  const std::string now = write_manifest(manifest);
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(now);
  for (nlohmann::ordered_json& stage : json["pipeline"]["stages"]) {
    for (const char* field : {"batch", "isolation", "pure"}) stage.erase(field);
  }
  EXPECT_THAT(kit::user_error_of([&] { (void)read_manifest(json.dump()); }),
              HasSubstr("pipeline.stages[0] has no field 'batch'"));
  erase_dims(json);
  json["version"] = 8;
  EXPECT_EQ(write_manifest(read_manifest(json.dump())), now);
}

// Version 2 had no bounded outputs, versions 2 and 3 no bound parameters, versions 2 to 4 one device and one backend,
// versions 2 to 5 no constants of modules, versions 2 to 7 no operations, versions 2 to 10 no names of dimensions.
TEST(Manifest, ReadsTheVersionsBefore) {
  Manifest manifest = headrace::testing::toy_manifest();
  manifest.programs.push_back(headrace::testing::toy_program("small"));
  manifest.modules = {{.loader = "toy", .section = ".headrace.blob.0", .imports = {}}};
  const std::string now = write_manifest(manifest);
  nlohmann::ordered_json version_7 = nlohmann::ordered_json::parse(now);
  version_7["version"] = 7;
  erase_operations(version_7);
  erase_dims(version_7);
  EXPECT_EQ(write_manifest(read_manifest(version_7.dump())), now);
  version_7["version"] = 8;
  EXPECT_THAT(kit::user_error_of([&] { (void)read_manifest(version_7.dump()); }),
              HasSubstr("steps[0] has no field 'operations'"));
  nlohmann::ordered_json version_5 = version_7;
  version_5["version"] = 5;
  version_5["modules"][0].erase("constants");
  EXPECT_EQ(write_manifest(read_manifest(version_5.dump())), now);
  nlohmann::ordered_json json = as_version_4(now);
  EXPECT_EQ(write_manifest(read_manifest(json.dump(1))), now);
  const auto step_back = [&](const char* field, int version) {
    for (nlohmann::ordered_json& program : json["programs"]) program.erase(field);
    EXPECT_THAT(kit::user_error_of([&] { (void)read_manifest(json.dump()); }),
                HasSubstr(fmt::format("programs[0] has no field '{}'", field)));
    json["version"] = version;
    EXPECT_EQ(write_manifest(read_manifest(json.dump())), now);
  };
  step_back("bound_params", 3);
  step_back("bounded_outputs", 2);
}

// Old texts whose parts have another form than the upgrade looks for are refused as new ones are.
TEST(Manifest, MalformedOldTextIsNamed) {
  const nlohmann::ordered_json good = as_version_4(write_manifest(headrace::testing::toy_manifest()));
  const auto error = [&](const std::function<void(nlohmann::ordered_json&)>& damage) {
    nlohmann::ordered_json json = good;
    damage(json);
    return kit::user_error_of([&] { (void)read_manifest(json.dump()); });
  };
  using Json = nlohmann::ordered_json;
  EXPECT_THAT(error([](Json& json) { json["programs"] = 7; }), HasSubstr("programs is not a list"));
  EXPECT_THAT(error([](Json& json) { json["programs"][0] = 7; }), HasSubstr("programs[0] is not an object"));
  EXPECT_THAT(error([](Json& json) { json["programs"][0]["graph"] = 7; }), HasSubstr("graph is not an object"));
  EXPECT_THAT(error([](Json& json) { json["programs"][0]["memory"] = 7; }), HasSubstr("memory is not an object"));
  EXPECT_THAT(error([](Json& json) { json["programs"][0]["memory"].erase("arena_bytes"); }),
              HasSubstr("memory has no field 'arenas'"));
  EXPECT_THAT(error([](Json& json) { json["programs"][0]["memory"]["storages"] = Json(); }),
              HasSubstr("memory.storages is not a list"));
  EXPECT_THAT(error([](Json& json) { json["programs"][0]["inputs"][0] = "x"; }),
              HasSubstr("inputs[0] is not an object"));
}

// Replaces the first `from` after the first `after` in the text of a good manifest, and expects that sentence.
struct TextCase {
  const char* after;
  const char* from;
  const char* to;
  const char* message;
};

TEST(Manifest, MalformedTextIsNamed) {
  const TextCase cases[] = {
      {"", "{", "[", "the manifest is not JSON text"},
      {"", "\"default_threads\": 2", "\"default_threads\": 1e999", "the manifest is not JSON text"},
      {"", "headrace-manifest", "elf", "field 'format'"},
      {"", "\"version\": 11", "\"version\": 12", "has version 12, this runtime reads 2 to 11"},
      {"", "\"version\": 11", "\"version\": 1", "has version 1, this runtime reads 2 to 11; use the runtime"},
      {"", "\"version\": 11", "\"version\": \"7\"", "version is not an integer"},
      {"", "\"version\": 11", "\"other\": 7", "no field 'version'"},
      {"", "\"modules\"", "\"more\": 1, \"modules\"", "the top has an unknown field 'more'"},
      {"", "\"modules\"", "\"mod\"", "the top has an unknown field 'mod'"},
      {"", "\"default_threads\": 2", "\"default_threads\": 2, \"default_threads\": 3",
       "'default_threads' is there twice"},
      {"", "\"default_threads\": 2", "\"default_threads\": 2.5", "default_threads is not an integer"},
      {"", "\"default_threads\": 2", "\"default_threads\": 3000000000", "default_threads is 3000000000, outside"},
      {"", "\"default_threads\": 2", "\"default_threads\": 18446744073709551615", "default_threads is 184467"},
      {"", "\"default_threads\": 2", "\"default_threads\": -1", "default_threads is -1"},
      {"inputs", "\"float32\"", "\"float31\"", "programs[0].inputs[0].dtype is not a dtype"},
      {"inputs", "\"float32\"", "\"void\"", "programs[0].inputs[0] has an impossible shape"},
      {"inputs", "\"float32\"", "7", "programs[0].inputs[0].dtype is not a string"},
      {"inputs", "\"shape\": [", "\"shape\": [-1,", "programs[0].inputs[0] has an impossible shape"},
      {"inputs", "\"shape\": [", "\"shape\": [9000000000000,9000000000000,", "impossible shape"},
      {"inputs", "\"name\": \"x\"", "\"name\": \"\"", "programs[0].inputs[0] has no name"},
      {"inputs", "\"rows\",", "", "programs[0].inputs[0].dims has 1 names, the shape has 2 dimensions"},
      {"inputs", "\"rows\"", "7", "programs[0].inputs[0].dims[0] is not a string"},
      {"outputs", "\"name\": \"same\"", "\"name\": \"y\"", "programs[0].outputs[1] has the name 'y' of an earlier one"},
      {"bounded_outputs", "\"output\": 1", "\"output\": 2", "bounded_outputs[0].output is 2, there are 2 outputs"},
      {"bounded_outputs", "\"output\": 1", "\"output\": -1", "programs[0].bounded_outputs[0].output is -1"},
      {"bounded_outputs", "\"axis\": 0", "\"axis\": 2", "bounded_outputs[0].axis is 2, the output has 2 dimensions"},
      {"bounded_outputs", "\"axis\": 0", "\"axis\": -1", "bounded_outputs[0].axis is -1"},
      {"bounded_outputs", "\"axis\": 0", "\"more\": 0", "bounded_outputs[0] has an unknown field 'more'"},
      {"bounded_outputs", "\"extent\": 7", "\"extent\": 8", "bounded_outputs[0].extent is 8, there are 8 entries"},
      {"bounded_outputs", "\"extent\": 7", "\"extent\": -1", "bounded_outputs[0].extent is -1"},
      {"bounded_outputs", "\"extent\": 7", "\"extent\": 2",
       "bounded_outputs[0].extent is a float32 of shape [5], not an int64 of one element"},
      {"bound_params", "\"name\": \"w\"", "\"name\": \"x\"",
       "programs[0].bound_params[0] has the name 'x' of an input or of an earlier one"},
      {"bound_params", "\"shape\": [", "\"shape\": [-1,", "bound_params[0] has an impossible shape"},
      {"bound_params", "\"hash\": \"bb", "\"hash\": \"zz", "bound_params[0].hash is 'zzbb"},
      {"bound_params", "\"hash\": \"bb", "\"more\": \"bb", "bound_params[0] has an unknown field 'more'"},
      {"", "\"features\": []", "\"features\": [1]", "programs[0].target.features[0] is not a string"},
      {"", "\"features\": []", "\"features\": {}", "programs[0].target.features is not a list"},
      {"", "\"kernel_abi\": 1", "\"kernel_abi\": 99", "version 99 of the kernel ABI, this runtime has 1 to 1"},
      {"arenas", "\"nbytes\": 128", "\"nbytes\": 64", "programs[0].memory.storages[0] covers 120 bytes at 0"},
      {"arenas", "\"nbytes\": 128", "\"nbytes\": -1", "programs[0].memory.arenas[0].nbytes is -1"},
      {"arenas", "\"cpu:0\"", "\"moon:0\"", "programs[0].memory.arenas[0].location is 'moon:0', which names no device"},
      {"cuda:1/pinned", "cuda:1/pinned", "cuda:1",
       "programs[1].graph.entries[0].location is cuda:1/pinned, and its base"},
      {"", "cuda:1/pinned\",\n      \"nbytes\"", "cpu:0\",\n      \"nbytes\"",
       "programs[1].memory.arenas[1].location is cpu:0, as is an earlier one's"},
      {"storages", "\"arena\": 0", "\"arena\": 1", "programs[0].memory.storages[0].arena is 1, there are 1 arenas"},
      {"\"copy\"", "\"callee\": \"\"", "\"callee\": \"f\"", "steps[2].callee is set, and a copy calls nothing"},
      {"\"backends\"", "\"toy\"", "\"\"", "backends[0].name is empty"},
      {"\"regions\"", "\"toy\"", "\"tot\"", "regions[0].backend is 'tot', which is not one of the backends"},
      {"\"regions\"", "\"small\"", "\"tall\"", "regions[0].fallback is 'tall', which is not a program of the file"},
      {"\"regions\"", "\"theirs\"", "\"\"", "regions[0].name is empty"},
      {"\"body_weights\"", "1", "2", "regions[0].body_weights[0] is 2, there are 2 weights"},
      {"\"regions\"", "\"module\": 1", "\"module\": 2", "regions[0].module is 2, there are 2 modules"},
      {"\"regions\"", "\"symbol\": \"\"", "\"symbol\": \"f\"", "regions[0].module is set, and so is the symbol"},
      {"\"regions\"", "\"small\"", "\"default\"", "regions[0].fallback is 'default', which is not the native form of"},
      {"\"small\"", "\"theirs\"", "\"others\"", "regions[0].fallback is 'small', which is not the native form of"},
      {"steps", "\"kind\": \"kernel\"", "\"kind\": \"region\"",
       "steps[0].callee is 'toy_dense_relu', which is not a region"},
      {"\"pipeline\"", "\"program\": \"main\"", "\"program\": \"\"", "pipeline.stages[0] must have a model with a"},
      {"\"pipeline\"", "\"function\": \"post\"", "\"function\": \"\"", "pipeline.stages[1] must have a model with a"},
      {"\"pipeline\"", "\"model\": 0", "\"model\": 1", "pipeline.stages[0].model is 1, there are 1 models"},
      {"\"pipeline\"", "\"model\": 0", "\"model\": -2", "pipeline.stages[0].model is -2, there are 1 models"},
      {"\"pipeline\"", "\".headrace.blob.model.0\"", "\".text\"",
       "pipeline.models[0].section is '.text', which does not begin with '.headrace.blob.'"},
      {"\"pipeline\"", "\"name\": \"second\"", "\"name\": \"first\"", "pipeline.stages[1].name is 'first', as is"},
      {"\"pipeline\"", "\"group\": 0", "\"group\": 1", "pipeline.stages[0].group is 1, there are 1 groups"},
      {"\"pipeline\"", "\"replicas\": 1", "\"replicas\": 0", "pipeline.stages[0].replicas is 0, outside 1 .. 1024"},
      {"\"pipeline\"", "\"threads\": 3", "\"threads\": -3", "pipeline.stages[0].threads is -3"},
      {"\"pipeline\"", "\"time_limit_seconds\": 0.5", "\"time_limit_seconds\": -0.5",
       "pipeline.stages[0].time_limit is -0.5"},
      {"\"pipeline\"", "\"time_limit_seconds\": 0.5", "\"time_limit_seconds\": \"long\"",
       "pipeline.stages[0].time_limit_seconds is not a number"},
      {"\"pipeline\"", "\"max_batch\": 8", "\"max_batch\": 0", "stages[0].batch.max_batch is 0, outside 1 .. 65536"},
      {"\"pipeline\"", "\"max_delay_seconds\": 0.25", "\"max_delay_seconds\": -1", "stages[0].batch.max_delay is -1"},
      {"\"pipeline\"", "\"retry_alone\": true", "\"retry_alone\": 1",
       "stages[0].batch.retry_alone is neither true nor false"},
      {"\"others\"", "\"model\": 0", "\"model\": 1", "stages[0].batch.others[0].model is 1, there are 1 models"},
      {"\"others\"", "\"program\": \"small\"", "\"program\": \"\"", "stages[0].batch.others[0].program is empty"},
      {"\"pipeline\"", "\"isolation\": \"process\"", "\"isolation\": \"machine\"",
       "pipeline.stages[1].isolation is 'machine', which this version does not know"},
      {"\"pipeline\"", "\"isolation\": \"process\"", "\"isolation\": \"thread\"",
       "pipeline.stages[1].pure is true, and the stage does not run in a process of its own"},
      {"\"pipeline\"", "\"kind\": \"input\"", "\"kind\": \"moon\"",
       "pipeline.stages[0].sources[0].kind is 'moon', which this version does not know"},
      {"\"kind\": \"param\"", "\"index\": 0", "\"index\": 1", "pipeline.stages[0].sources[1].index is 1, there are 1"},
      {"\"kind\": \"param\"", "\"index\": 0", "\"index\": -1", "pipeline.stages[0].sources[1].index is -1, outside"},
      {"\"kind\": \"stage\"", "\"port\": 0", "\"port\": 1",
       "pipeline.stages[1].sources[0].port is 1, the stage has 1 outputs"},
      {"\"scales\"", "\"weight\": 0", "\"weight\": 9", "pipeline.params[0].weight is 9, there are 2 weights"},
      {"\"scales\"", "\"weight\": 0", "\"weight\": 1", "pipeline.params[0].weight is 1, which has another type"},
      {"\"max_inflight\"", "12", "0", "pipeline.max_inflight is 0, outside 1 .. 1048576"},
      {"", "\"workspace_bytes\": 64", "\"workspace_bytes\": 63",
       "memory.workspace_bytes is 63, which is not a multiple"},
      {"entries", "\"place\": \"input\"", "\"place\": \"disk\"",
       "entries[0].place is 'disk', which this version does not"},
      {"entries", "\"index\": 0", "\"index\": 1", "programs[0].graph.entries[0].index is 1, there are 1 inputs"},
      {"entries", "\"index\": 0", "\"index\": -1", "entries[0].index is -1"},
      {"entries", "\"byte_offset\": 0", "\"byte_offset\": 4",
       "entries[0] covers 192 bytes at 4, outside the 192 bytes"},
      {"entries", "\"byte_offset\": 0", "\"byte_offset\": -4", "entries[0] covers 192 bytes at -4"},
      {"entries", "\"strides\": []", "\"strides\": [1]", "entries[0] has impossible extents"},
      {"entries", "\"strides\": []", "\"strides\": [-8,1]", "entries[0] has impossible extents"},
      {"entries", "\"strides\": []", "\"strides\": [9223372036854775807,1]", "entries[0] has impossible extents"},
      {"steps", "\"kind\": \"kernel\"", "\"kind\": \"jump\"", "steps[0].kind is 'jump'"},
      {"steps", "\"toy_dense_relu\"", "\"\"", "programs[0].graph.steps[0].callee is empty"},
      {"steps", "\"num_outputs\": 1", "\"num_outputs\": 0", "steps[0].num_outputs is 0, outside 1 .. 4"},
      {"steps", "\"num_outputs\": 1", "\"num_outputs\": 2", "steps[0].args[2] writes to a weight or an input"},
      {"steps", "\"args\": [", "\"args\": [8,", "programs[0].graph.steps[0].args[0] is 8, there are 8 entries"},
      {"steps", "\"kind\": \"kernel\"", "\"kind\": \"copy\"", "steps[0].callee is set, and a copy calls nothing"},
      {"\"weights\": [", "\"offset\": 0", "\"offset\": 8", "weights[0].offset is 8, which is not a multiple of 64"},
      {"\"weights\": [", "\"nbytes\": 160", "\"nbytes\": 161",
       "weights[0].nbytes is 161, its dtype and shape need 160"},
      {"\"weights\": [", "\"hash\": \"aa", "\"hash\": \"zz", "weights[0].hash is"},
      {"side_file", "weights.safetensors", "../secret", "side_file.name is '../secret', not a plain file name"},
      {"side_file", "\"nbytes\": 4096", "\"nbytes\": 100", "weights[0] covers 160 bytes at 0, outside the 100 bytes"},
      {"modules", ".headrace.blob.0", ".text", "modules[0].section is '.text', which does not start with"},
      {"\"modules\"", "\"imports\": [\n    1", "\"imports\": [\n    0",
       "modules[0].imports[0] is 0, which is not a later module"},
      {"\"modules\"", "\"constants\": [\n    0", "\"constants\": [\n    9", "modules[0].constants[0] is 9, there are"},
      {"", "\"name\": \"small\"", "\"name\": \"default\"", "programs[1].name is 'default', as is an earlier one's"},
      {"", "\"name\": \"small\"", "\"name\": null", "programs[1].name is not a string"},
  };
  const std::string good = write_manifest(full_manifest());
  for (const TextCase& test : cases) {
    std::string text = good;
    const size_t at = text.find(test.from, text.find(test.after));
    ASSERT_NE(at, std::string::npos) << test.from;
    text.replace(at, std::string_view(test.from).size(), test.to);
    EXPECT_THAT(kit::user_error_of([&] { (void)read_manifest(text); }), HasSubstr(test.message))
        << test.from << " " << test.to;
  }
}

// Rules that single words of the text don't reach.
TEST(Manifest, BrokenRulesAreNamed) {
  Manifest manifest = full_manifest();
  manifest.programs.clear();
  manifest.pipeline.reset();
  EXPECT_THAT(kit::user_error_of([&] { check_manifest(manifest); }), HasSubstr("programs is empty"));
  manifest = full_manifest();
  manifest.programs[0].graph.steps.pop_back();
  EXPECT_THAT(kit::user_error_of([&] { check_manifest(manifest); }),
              HasSubstr("programs[0].outputs[1] is written by no step"));
  manifest = full_manifest();
  manifest.programs[0].graph.steps[2].args = {1, 6};
  EXPECT_THAT(kit::user_error_of([&] { check_manifest(manifest); }),
              HasSubstr("steps[2] copies between entries of different"));
  manifest = full_manifest();
  manifest.programs[0].graph.entries[0].shape = {6, 4};
  manifest.programs[0].graph.entries[0].strides = {8, 2};
  manifest.programs[0].graph.entries[6].shape = {6, 4};
  EXPECT_THAT(kit::user_error_of([&] { check_manifest(manifest); }),
              HasSubstr("steps[2] copies an entry that is not contiguous"));
  manifest = full_manifest();
  manifest.programs[0].graph.entries[3].shape = {1};
  manifest.programs[0].graph.entries[3].byte_offset = 2;
  EXPECT_THAT(kit::user_error_of([&] { check_manifest(manifest); }),
              HasSubstr("byte_offset is 2, not aligned to its element"));
  manifest = full_manifest();
  manifest.programs[0].bounded_outputs.push_back({.output = 1, .axis = 1, .extent = 7});
  EXPECT_THAT(kit::user_error_of([&] { check_manifest(manifest); }),
              HasSubstr("bounded_outputs[1].output is 1, as is an earlier one's"));
  manifest = full_manifest();
  manifest.programs[0].graph.entries[7].shape = {2};
  EXPECT_THAT(kit::user_error_of([&] { check_manifest(manifest); }),
              HasSubstr("extent is a int64 of shape [2], not an int64 of one element"));
}

TEST(Manifest, BrokenRulesOfRegionsAreNamed) {
  Manifest manifest = full_manifest();
  manifest.programs[0].graph.steps[0].action = RegionCall{"theirs"};
  EXPECT_THAT(kit::user_error_of([&] { check_manifest(manifest); }),
              HasSubstr("steps[0].args has 3 inputs and 1 outputs, the native form 'small' has 1 and 2"));
  manifest.programs[0].graph.steps[0] = {.action = RegionCall{"theirs"}, .args = {1, 4, 6}, .num_outputs = 2};
  EXPECT_THAT(kit::user_error_of([&] { check_manifest(manifest); }), HasSubstr("steps[0].args[0] is a float32 of"));
  manifest = full_manifest();
  manifest.programs[1].graph.steps[0].action = RegionCall{"theirs"};
  EXPECT_THAT(kit::user_error_of([&] { check_manifest(manifest); }),
              HasSubstr("programs[1].graph.steps[0] runs a region within the native form of one"));
}

TEST(Manifest, NoTextCrashes) {
  const std::string good = write_manifest(full_manifest());
  std::mt19937 random(20240904);
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string text = good;
    for (int j = 0; j < 1 + i % 3; ++j) text[random() % text.size()] = static_cast<char>(32 + random() % 95);
    try {
      (void)read_manifest(text);
    } catch (const UserError& error) {
      ++refused;
      ASSERT_FALSE(error.message().empty());
    }
  }
  EXPECT_GT(refused, 500);
  const std::string deep(1000000, '[');
  EXPECT_THAT(kit::user_error_of([&] { (void)read_manifest(deep); }), HasSubstr("not JSON text"));
}

TEST(TensorExtent, SizesAndOverflow) {
  const std::vector<int64_t> shape = {2, 3, 4};
  EXPECT_EQ(tensor_nbytes(DataType::float_(32), shape), 96);
  EXPECT_EQ(tensor_nbytes(DataType::int_(4), std::vector<int64_t>{3}), 3);
  EXPECT_EQ(tensor_nbytes(DataType::float_(32), std::vector<int64_t>{}), 4);
  EXPECT_EQ(tensor_nbytes(DataType::float_(32), std::vector<int64_t>{0, int64_t{1} << 62}), 0);
  EXPECT_EQ(tensor_nbytes(DataType::float_(32), std::vector<int64_t>(33, 1)), std::nullopt);
  EXPECT_EQ(tensor_nbytes(DataType::float_(32), std::vector<int64_t>{int64_t{1} << 45}), std::nullopt);
  EXPECT_EQ(view_nbytes(DataType::float_(32), shape, std::vector<int64_t>{0, 8, 1}), (2 * 8 + 3 + 1) * 4);
}

}  // namespace
}  // namespace headrace::artifact
