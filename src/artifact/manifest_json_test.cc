#include "artifact/manifest_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
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
  manifest.programs[1].graph.entries[3].strides = {5, 1};
  manifest.programs[0].graph.entries.push_back(
      {.place = Place::kStorage, .dtype = DataType::int_(64), .shape = {1}, .strides = {}});
  manifest.programs[0].bounded_outputs = {{.output = 1, .axis = 0, .extent = 7}};
  manifest.programs[0].bound_params = {
      {.spec = {.name = "w", .dtype = DataType::float_(32), .shape = {5, 8}}, .hash = std::string(32, 'b')}};
  manifest.programs[1].placement[0] = {
      .op = "fc1 \"quoted\" \xC3\xA9", .backend = "native", .reason = HR_REASON_OP_UNSUPPORTED, .message = "no"};
  manifest.modules = {{.loader = "toy", .section = ".headrace.blob.0", .imports = {1}},
                      {.loader = "toy", .section = ".headrace.blob.1", .imports = {}}};
  manifest.side_file = SideFile{.name = "weights.safetensors", .nbytes = 4096, .hash = std::string(32, '0')};
  manifest.default_threads = 2;
  return manifest;
}

TEST(Manifest, RoundTrip) {
  const std::string text = write_manifest(full_manifest());
  const Manifest read = read_manifest(text + "   \n ");
  EXPECT_EQ(write_manifest(read), text);
  EXPECT_EQ(read.programs[1].name, "small");
  EXPECT_EQ(read.programs[1].graph.entries[3].strides, (std::vector<int64_t>{5, 1}));
  EXPECT_EQ(read.programs[1].graph.steps[2].kind, StepKind::kCopy);
  EXPECT_EQ(read.programs[0].bounded_outputs.at(0).output, 1);
  EXPECT_EQ(read.programs[0].bounded_outputs.at(0).extent, 7);
  EXPECT_TRUE(read.programs[1].bounded_outputs.empty());
  EXPECT_EQ(read.programs[0].bound_params.at(0).spec.name, "w");
  EXPECT_EQ(read.programs[0].bound_params.at(0).spec.shape, (std::vector<int64_t>{5, 8}));
  EXPECT_EQ(read.programs[0].bound_params.at(0).hash, std::string(32, 'b'));
  EXPECT_EQ(read.programs[1].placement[0].reason, HR_REASON_OP_UNSUPPORTED);
  EXPECT_EQ(read.modules[0].imports, std::vector<int32_t>{1});
  EXPECT_EQ(read.side_file->nbytes, 4096);
  EXPECT_EQ(find_program(read, "small"), &read.programs[1]);
  EXPECT_EQ(find_program(read, "large"), nullptr);
}

// Version 2 had no bounded outputs, and versions 2 and 3 no bound parameters; their other fields are read.
TEST(Manifest, ReadsTheVersionsBefore) {
  Manifest manifest = full_manifest();
  manifest.programs[0].bounded_outputs.clear();
  manifest.programs[0].bound_params.clear();
  std::string text = write_manifest(manifest);
  const std::string now = text;
  const auto step_back = [&](const std::string& field, char from, char to) {
    const std::string line = "   \"" + field + "\": [],\n";
    for (size_t at = 0; (at = text.find(line)) != std::string::npos;) text.erase(at, line.size());
    const std::string version = "\"version\": ";
    EXPECT_THAT(kit::user_error_of([&] { (void)read_manifest(text); }),
                HasSubstr("programs[0] has no field '" + field + "'"));
    text.replace(text.find(version + from), version.size() + 1, version + to);
    EXPECT_EQ(write_manifest(read_manifest(text)), now);
  };
  step_back("bound_params", '4', '3');
  step_back("bounded_outputs", '3', '2');
  EXPECT_EQ(text.find("bound"), std::string::npos);
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
      {"", "{", "[", "the manifest is no JSON text"},
      {"", "\"default_threads\": 2", "\"default_threads\": 1e999", "the manifest is no JSON text"},
      {"", "headrace-manifest", "elf", "field 'format'"},
      {"", "\"version\": 4", "\"version\": 5", "has version 5, this runtime reads 2 to 4"},
      {"", "\"version\": 4", "\"version\": 1", "has version 1, this runtime reads 2 to 4; use the runtime"},
      {"", "\"version\": 4", "\"version\": \"4\"", "version is not an integer"},
      {"", "\"version\": 4", "\"other\": 4", "no field 'version'"},
      {"", "\"modules\"", "\"more\": 1, \"modules\"", "the top has an unknown field 'more'"},
      {"", "\"modules\"", "\"mod\"", "the top has an unknown field 'mod'"},
      {"", "\"default_threads\": 2", "\"default_threads\": 2, \"default_threads\": 3",
       "'default_threads' is there twice"},
      {"", "\"default_threads\": 2", "\"default_threads\": 2.5", "default_threads is not an integer"},
      {"", "\"default_threads\": 2", "\"default_threads\": 3000000000", "default_threads is 3000000000, outside"},
      {"", "\"default_threads\": 2", "\"default_threads\": 18446744073709551615", "default_threads is 184467"},
      {"", "\"default_threads\": 2", "\"default_threads\": -1", "default_threads is -1"},
      {"inputs", "\"float32\"", "\"float31\"", "programs[0].inputs[0].dtype is no dtype"},
      {"inputs", "\"float32\"", "\"void\"", "programs[0].inputs[0] has an impossible shape"},
      {"inputs", "\"float32\"", "7", "programs[0].inputs[0].dtype is not a string"},
      {"inputs", "\"shape\": [", "\"shape\": [-1,", "programs[0].inputs[0] has an impossible shape"},
      {"inputs", "\"shape\": [", "\"shape\": [9000000000000,9000000000000,", "impossible shape"},
      {"inputs", "\"name\": \"x\"", "\"name\": \"\"", "programs[0].inputs[0] has no name"},
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
      {"", "\"arena_bytes\": 128", "\"arena_bytes\": 64", "programs[0].memory.storages[0] covers 120 bytes at 0"},
      {"", "\"arena_bytes\": 128", "\"arena_bytes\": -1", "programs[0].memory.arena_bytes is -1"},
      {"", "\"workspace_bytes\": 64", "\"workspace_bytes\": 63", "memory.workspace_bytes is 63, which is no multiple"},
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
      {"steps", "\"kind\": \"kernel\"", "\"kind\": \"copy\"", "steps[0] is a copy without exactly two arguments"},
      {"\"weights\": [", "\"offset\": 0", "\"offset\": 8", "weights[0].offset is 8, which is no multiple of 64"},
      {"\"weights\": [", "\"nbytes\": 160", "\"nbytes\": 161",
       "weights[0].nbytes is 161, its dtype and shape need 160"},
      {"\"weights\": [", "\"hash\": \"aa", "\"hash\": \"zz", "weights[0].hash is"},
      {"side_file", "weights.safetensors", "../secret", "side_file.name is '../secret', not a plain file name"},
      {"side_file", "\"nbytes\": 4096", "\"nbytes\": 100", "weights[0] covers 160 bytes at 0, outside the 100 bytes"},
      {"modules", ".headrace.blob.0", ".text", "modules[0].section is '.text', which does not start with"},
      {"\"modules\"", "\"imports\": [\n    1", "\"imports\": [\n    0",
       "modules[0].imports[0] is 0, which is no later module"},
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
  manifest = full_manifest();
  manifest.programs[0].outputs[1].dtype = DataType::int_(4);
  manifest.programs[0].outputs[1].shape = {6, 128};
  EXPECT_THAT(kit::user_error_of([&] { check_manifest(manifest); }),
              HasSubstr("bounded_outputs[0] bounds an output of int4, whose elements are no bytes"));
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
  EXPECT_THAT(kit::user_error_of([&] { (void)read_manifest(deep); }), HasSubstr("no JSON text"));
}

TEST(TensorExtent, SizesAndOverflow) {
  const std::vector<int64_t> shape = {2, 3, 4};
  EXPECT_EQ(tensor_nbytes(DataType::float_(32), shape), 96);
  EXPECT_EQ(tensor_nbytes(DataType::int_(4), std::vector<int64_t>{3}), 2);
  EXPECT_EQ(tensor_nbytes(DataType::float_(32), std::vector<int64_t>{}), 4);
  EXPECT_EQ(tensor_nbytes(DataType::float_(32), std::vector<int64_t>{0, int64_t{1} << 62}), 0);
  EXPECT_EQ(tensor_nbytes(DataType::float_(32), std::vector<int64_t>(33, 1)), std::nullopt);
  EXPECT_EQ(tensor_nbytes(DataType::float_(32), std::vector<int64_t>{int64_t{1} << 45}), std::nullopt);
  EXPECT_EQ(view_nbytes(DataType::float_(32), shape, std::vector<int64_t>{0, 8, 1}), (2 * 8 + 3 + 1) * 4);
}

}  // namespace
}  // namespace headrace::artifact
