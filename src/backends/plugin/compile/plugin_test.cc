// Plugins from their library to an artifact and back; what is said to those that are wrong; the view of a graph.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <thread>

#include "backends/plugin/compile/attr_view.h"
#include "backends/plugin/compile/graph_view.h"
#include "cost/machine.h"
#include "driver/compile.h"
#include "driver/explain.h"
#include "driver/plugins.h"
#include "driver/register_all.h"
#include "interp/interp.h"
#include "kit/backends.h"
#include "kit/errors.h"
#include "kit/files.h"
#include "load/run.h"
#include "partition/placement/by_cost.h"
#include "relay/function_attrs.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"

namespace headrace::backends::plugin {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

std::string path_of(const std::string& plugin) { return fmt::format("{}/{}.so", HEADRACE_TEST_PLUGINS, plugin); }

std::string load(const std::string& plugin) { return driver::load_plugin(path_of(plugin)); }

IRModule typed(const std::string& text, const std::vector<NDArray>& constants = {}) {
  driver::register_all();
  return relay::infer_type(
      relay::parse_module("#[version = \"0.0.5\"]\n" + text, "<program>", {.weights = &constants}));
}

NDArray row(std::vector<float> values) {
  const auto size = static_cast<int64_t>(values.size());
  return NDArray::from_vector({1, size}, DataType::float_(32), values);
}

std::vector<float> floats(const NDArray& array) {
  return {array.data<float>(), array.data<float>() + array.num_elements()};
}

// A program with each op of the chip, a pattern, an op that it does not have, and two results.
constexpr const char* kProgram =
    "def @main(%x: Tensor[(1, 4), float32], %y: Tensor[(1, 4), float32]) {\n"
    "  let %a = subtract(multiply(%x, %y), add(%x, %x));\n"
    "  let %b = nn.relu(multiply(%a, meta[relay.Constant][0]));\n"
    "  let %c = tanh(clip(%b, a_min=-1.5f, a_max=2f));\n"
    "  (nn.dense(nn.relu(%c), meta[relay.Constant][1]), %b)\n}\n";

IRModule chip_program() {
  driver::register_all();
  const std::vector<NDArray> constants{
      row({1, -2, 3, 0.5F}),
      NDArray::from_vector({2, 4}, DataType::float_(32), std::vector<float>{1, 2, 3, 4, -1, 0.5F, 0.25F, 8})};
  return typed(kProgram, constants);
}

// A plugin may make ready what it runs in `find`, and nothing gives that back before it is unloaded.
TEST(Plugin, ARegionIsFoundOnceForANumberOfWorkers) {
  load("chip");
  const auto artifact = driver::open_compiled(
      driver::compile_to_memory(driver::make_model(chip_program()), {.backends = {"chip"}}), "chip");
  void* library = ::dlopen(path_of("chip").c_str(), RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(library, nullptr);
  const int& finds = *static_cast<const int*>(::dlsym(library, "chip_num_finds"));
  const int before = finds;
  for (int i = 0; i < 10; ++i) {
    for (const int32_t threads : {1, 2}) {
      const auto executor = load::make_executor(artifact, "default", {.threads = threads});
      load::run(*executor, std::vector<NDArray>{row({1, 2, 3, 4}), row({1, 2, 3, 4})});
    }
  }
  EXPECT_EQ(finds - before, 2 * 2);  // two regions
  ::dlclose(library);
}

TEST(Plugin, FromALibraryToAnArtifactAndBack) {
  EXPECT_EQ(load("chip"), "chip");
  EXPECT_EQ(load("chip"), "chip");  // a second time changes nothing
  const IRModule module = chip_program();
  const std::string file = ::testing::TempDir() + "plugin_test.so";
  const artifact::Manifest manifest =
      driver::compile_to_file(driver::make_model(module), file, {.backends = {"chip"}}).manifest;
  ASSERT_THAT(manifest.regions, SizeIs(2));
  ASSERT_THAT(manifest.modules, SizeIs(1));
  EXPECT_EQ(manifest.modules[0].loader, "backend.chip");
  EXPECT_EQ(manifest.backends.at(0).version, "1");
  std::vector<std::string> rows;
  for (const artifact::Placement& one : manifest.programs[0].placement)
    rows.push_back(fmt::format("{} {}", one.kind, one.backend));
  EXPECT_THAT(rows, ElementsAre("multiply chip", "add chip", "subtract chip", "multiply chip", "clip chip",
                                "nn.relu chip", "tanh native", "nn.relu chip", "nn.dense chip"));
  const NDArray x = row({1, -2, 0.5F, 3}), y = row({2, 1, -4, 3});
  const std::vector<NDArray> want = interp::run_main(module, {x, y});
  const auto artifact = load::open_artifact(file).value_or_throw();
  for (const int32_t threads : {1, 2}) {
    const auto executor =
        load::make_executor(artifact, "default", {.threads = threads, .fallback = executors::Fallback::none});
    const std::vector<NDArray> got = load::run(*executor, std::vector<NDArray>{x, y});
    for (size_t i = 0; i < 2; ++i) {
      for (int64_t k = 0; k < want[i].num_elements(); ++k)
        EXPECT_NEAR(got[i].data<float>()[k], want[i].data<float>()[k], 1e-5);
    }
  }
}

// Libraries that were built with the headers of earlier minor versions.
TEST(Plugin, EarlierVersionsOfTheInterfaceAreTaken) {
  const IRModule module = chip_program();
  const NDArray x = row({1, -2, 0.5F, 3}), y = row({2, 1, -4, 3});
  const std::vector<NDArray> want = interp::run_main(module, {x, y});
  for (const std::string plugin : {"chip_1_0", "chip_1_1", "chip_1_2", "chip_1_3"}) {
    EXPECT_EQ(load(plugin), plugin);
    auto compiled = driver::compile_to_memory(driver::make_model(module), {.backends = {plugin}});
    ASSERT_THAT(compiled.report.manifest.regions, SizeIs(2)) << plugin;
    const auto executor = load::make_executor(driver::open_compiled(std::move(compiled), "a"), "default",
                                              {.threads = 1, .fallback = executors::Fallback::none});
    const std::vector<NDArray> got = load::run(*executor, std::vector<NDArray>{x, y});
    for (int64_t k = 0; k < 4; ++k) EXPECT_NEAR(got[1].data<float>()[k], want[1].data<float>()[k], 1e-5) << plugin;
    // Only libraries of version 1.3 or later are asked about options without a graph.
    driver::CompileOptions options{.backends = {plugin}};
    options.backend_options[plugin].set("volume", Value(int64_t{3}));
    const std::string told = kit::user_error_of([&] { driver::explain(driver::make_model(module), options); });
    EXPECT_EQ(told.find("its only option is speed") != std::string::npos, plugin == "chip_1_3") << plugin << told;
    EXPECT_THROW(driver::compile_to_memory(driver::make_model(module), options), UserError) << plugin;
  }
}

// A library in C, and one in C++: it reads the machine's row and the calls of a region before a call, and says what a
// border costs.
TEST(Plugin, CostsOfRegionsAreThePlugins) {
  const driver::Model model = driver::make_model(
      typed("def @main(%x: Tensor[(512, 512), float32]) { tanh(subtract(multiply(%x, %x), %x)) }\n", {}));
  const std::vector<std::string> features{"avx", "avx2", "fma", "sse2"};
  const cost::Machine machine = cost::machine_for("znver4", features);
  const double one = 512 * 512 / (cost::peak_gigaops(machine, DataType::float_(32)) * 1e9);
  for (const std::string plugin : {"joining_chip", "joining_cpp"}) {
    SCOPED_TRACE(plugin);
    load(plugin);
    const driver::Explanation explained = driver::explain(
        model,
        {.target = parse_target("llvm -mcpu=znver4"), .backends = {plugin}, .placement = driver::Placement::cost});
    ASSERT_THAT(explained.costs, SizeIs(3));
    ASSERT_THAT(explained.costs[1], SizeIs(2));
    EXPECT_NEAR(explained.costs[0][1].seconds, one, 1e-3 * one);
    EXPECT_NEAR(explained.costs[1][1].seconds, one / 2, 1e-3 * one) << "after a multiply";
    const double native = explained.costs[2][0].seconds;
    EXPECT_NEAR(explained.plan_cost->seconds, 1.5 * one + native + partition::kBorderSeconds + 2 * one, 1e-3 * one);
  }
}

// By headrace/backend_abi.h, NaN and -1 count as 0. So does an infinite saving, and an infinite border as 1000 s.
TEST(Plugin, OddAnswersAboutCostsCountAsTheNearest) {
  const driver::Model model =
      driver::make_model(typed("def @main(%x: Tensor[(512, 512), float32]) { subtract(multiply(%x, %x), %x) }\n", {}));
  for (const auto& [plugin, border] :
       std::vector<std::pair<std::string, double>>{{"nan_chip", 0}, {"minus_chip", 0}, {"infinite_chip", 1000}}) {
    load(plugin);
    const driver::Explanation explained =
        driver::explain(model, {.backends = {plugin}, .placement = driver::Placement::cost});
    ASSERT_THAT(explained.costs, SizeIs(2)) << plugin;
    const double one = explained.costs[0][1].seconds;
    EXPECT_GT(one, 0) << plugin;
    EXPECT_EQ(explained.costs[1][1].seconds, one) << plugin << " saves nothing";
    const auto of_plugin = std::find_if(explained.plan_cost->others.begin(), explained.plan_cost->others.end(),
                                        [&](const partition::LabelSeconds& other) { return other.label == plugin; });
    ASSERT_NE(of_plugin, explained.plan_cost->others.end());
    EXPECT_NEAR(of_plugin->seconds, 2 * one + partition::kBorderSeconds + 2 * border, 1e-9) << plugin;
  }
}

// A plan of least cost asks the library: an add is too dear there, and of clip it knows nothing.
TEST(Plugin, CostsAreThePlugins) {
  load("pricey_chip");
  const driver::Model model = driver::make_model(
      typed("def @main(%x: Tensor[(512, 512), float32]) {\n"
            "  add(clip(subtract(%x, %x), a_min=0f, a_max=1f), nn.relu(multiply(%x, meta[relay.Constant][0]))) }\n",
            {NDArray::from_vector({512, 512}, DataType::float_(32), std::vector<float>(512 * 512, 2))}));
  const driver::Explanation explained =
      driver::explain(model, {.backends = {"pricey_chip"}, .placement = driver::Placement::cost});
  std::map<std::string, double> ratio;  // the chip's cost divided by the native one, by the op whose row has the former
  std::vector<std::string> rows;
  for (size_t i = 0; i < explained.placement.size(); ++i) {
    rows.push_back(fmt::format("{} {}", explained.placement[i].kind, explained.placement[i].backend));
    const auto& costs = explained.costs[i];
    if (costs.size() == 2) ratio[explained.placement[i].kind] = costs[1].seconds / costs[0].seconds;
  }
  EXPECT_THAT(rows, ElementsAre("subtract pricey_chip", "clip native", "multiply pricey_chip", "nn.relu pricey_chip",
                                "add native"));
  EXPECT_NEAR(ratio["subtract"], 0.1, 1e-6);
  EXPECT_NEAR(ratio["clip"], 1, 1e-6);
  EXPECT_NEAR(ratio["add"], 4000, 1e-2) << "natively it costs a quarter in the kernel of clip";
  EXPECT_LT(ratio["nn.relu"], 1);  // the pattern's: a tenth of both its ops
}

TEST(Plugin, ABackendOfOneCallHasARegionForEach) {
  load("lone_chip");
  const IRModule module = chip_program();
  auto compiled = driver::compile_to_memory(driver::make_model(module), {.backends = {"lone_chip"}});
  EXPECT_THAT(compiled.report.manifest.regions, SizeIs(8));  // one for each op but tanh
  const auto executor = load::make_executor(driver::open_compiled(std::move(compiled), "a"), "default",
                                            {.threads = 1, .fallback = executors::Fallback::none});
  const NDArray x = row({1, -2, 0.5F, 3}), y = row({2, 1, -4, 3});
  const std::vector<NDArray> want = interp::run_main(module, {x, y});
  const std::vector<NDArray> got = load::run(*executor, std::vector<NDArray>{x, y});
  for (int64_t k = 0; k < 4; ++k) EXPECT_NEAR(got[1].data<float>()[k], want[1].data<float>()[k], 1e-5);
}

TEST(Plugin, AModulesFunctionsTakeArrays) {
  load("chip");
  const IRModule module =
      typed("def @main(%x: Tensor[(1, 2), float32], %y: Tensor[(1, 2), float32]) { subtract(%x, %y) }\n");
  const auto artifact =
      driver::open_compiled(driver::compile_to_memory(driver::make_model(module), {.backends = {"chip"}}), "a");
  const std::string name = artifact->library->manifest().regions.at(0).name;
  const runtime::Module made = artifact->modules.at(0).value();
  EXPECT_FALSE(made.GetFunction("other"));
  const PackedFunc function = made.GetFunction(name);
  const NDArray x = row({5, 7}), y = row({1, 9}), z = row({0, 0});
  const Value result = function(x, y, z);
  EXPECT_THAT(floats(z), ElementsAre(4, -2));
  EXPECT_THAT(floats(result.as<NDArray>()), ElementsAre(4, -2));
  EXPECT_THAT(kit::user_error_of([&] { function(x, y); }), HasSubstr("another number of tensors"));
  EXPECT_THAT(kit::user_error_of([&] { function(x, 3, z); }), HasSubstr("argument 1 is not a tensor"));
  // A module that is saved and loaded is the same.
  const runtime::Module again = runtime::load_from_binary("backend.chip", made.SaveToBinary());
  again.GetFunction(name)(y, x, z);
  EXPECT_THAT(floats(z), ElementsAre(-4, 2));
  const std::string cut = made.SaveToBinary().substr(0, 40);
  EXPECT_THAT(kit::user_error_of([&] { runtime::load_from_binary("backend.chip", cut); }),
              HasSubstr("the backend 'chip' does not load its part: its program breaks off"));
}

// The file holds the constants once, for the backend and for the native form.
TEST(Plugin, ConstantsThatAreLeftToTheHost) {
  load("chip");
  load("apart_chip");
  const IRModule module = chip_program();
  const std::vector<NDArray> arguments{row({1, -2, 0.5F, 3}), row({2, 1, -4, 3})};
  const auto compiled = [&](const std::string& backend) {
    return driver::open_compiled(driver::compile_to_memory(driver::make_model(module), {.backends = {backend}}), "a");
  };
  const auto run = [&](const auto& artifact) {
    const auto executor =
        load::make_executor(artifact, "default", {.threads = 1, .fallback = executors::Fallback::none});
    return floats(load::run(*executor, arguments).at(0));
  };
  const auto whole = compiled("chip"), apart = compiled("apart_chip");
  EXPECT_EQ(run(apart), run(whole));
  EXPECT_THAT(whole->manifest().modules.at(0).constants, IsEmpty());
  EXPECT_THAT(apart->manifest().modules.at(0).constants, SizeIs(2));
  EXPECT_EQ(apart->manifest().weights.size(), whole->manifest().weights.size());
  // The module by itself has its constants within.
  const runtime::Module module_of_regions = apart->modules.at(0).value();
  const std::string bytes = module_of_regions.SaveToBinary();
  const runtime::Module again = runtime::load_from_binary("backend.apart_chip", bytes);
  EXPECT_EQ(again.SaveToBinary(), bytes);
  EXPECT_EQ(again.save_apart().bytes, module_of_regions.save_apart().bytes);
  EXPECT_THAT(kit::user_error_of([&] { runtime::load_from_binary("backend.apart_chip", again.save_apart().bytes); }),
              HasSubstr("does not load its part: its program breaks off"));
  EXPECT_THAT(kit::user_error_of([&] { runtime::load_from_binary("backend.apart_chip", bytes.substr(0, 60)); }),
              HasSubstr("<json>: parse error"));
  EXPECT_THAT(kit::user_error_of([&] { runtime::load_from_binary("backend.chip", again.save_apart()); }),
              HasSubstr("an older one, which takes no constants"));
}

// Two constants of one size change places: no type tells, the checksum of the file does.
TEST(Plugin, ConstantsThatWereSwappedAreNotLoaded) {
  load("apart_chip");
  const std::vector<NDArray> rows{row({1, 2, 3, 4}), row({5, 6, 7, 8})};
  const IRModule module = relay::infer_type(
      relay::parse_module("#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(1, 4), float32]) {\n"
                          "  add(multiply(%x, meta[relay.Constant][0]), meta[relay.Constant][1])\n}\n",
                          "<program>", {.weights = &rows}));
  const std::string file = ::testing::TempDir() + "plugin_swapped.so";
  driver::compile_to_file(driver::make_model(module), file, {.backends = {"apart_chip"}});
  std::string bytes = kit::read_file(file);
  const std::string key = "\"constants\":[";
  const size_t at = bytes.find(key) + key.size();
  const size_t comma = bytes.find(',', at), end = bytes.find(']', at);
  ASSERT_LT(comma, end) << "two constants";
  const std::string first = bytes.substr(at, comma - at), second = bytes.substr(comma + 1, end - comma - 1);
  bytes.replace(at, end - at, second + "," + first);
  kit::write_file(file, bytes);
  EXPECT_EQ(load::open_artifact(file).refusal().code, HR_REASON_BAD_CHECKSUM);
}

TEST(Plugin, OptionsReachIt) {
  load("chip");
  const driver::Model model = driver::make_model(typed("def @main(%x: Tensor[(2), float32]) { add(%x, %x) }\n"));
  driver::CompileOptions options{.backends = {"chip"}};
  options.backend_options["chip"].set("speed", Value(int64_t{3}));
  EXPECT_THAT(driver::compile_to_memory(model, options).report.manifest.regions, SizeIs(1));
  options.backend_options["chip"].set("volume", Value(int64_t{3}));
  EXPECT_THAT(kit::user_error_of([&] { driver::compile_to_memory(model, options); }),
              HasSubstr("the backend 'chip' cannot compile: its only option is speed"));
  EXPECT_THAT(kit::user_error_of([&] { driver::explain(model, options); }),
              HasSubstr("the backend 'chip' cannot compile: its only option is speed"));
}

// The command line gives texts, and Python gives numbers and booleans.
TEST(Plugin, OptionsAreTextsOrNumbers) {
  for (const char* plugin : {"chip", "chip_1_0", "chip_1_3"}) {
    load(plugin);
    const driver::Model model = driver::make_model(typed("def @main(%x: Tensor[(2), float32]) { add(%x, %x) }\n"));
    driver::CompileOptions options{.backends = {plugin}};
    const Value good[] = {Value(int64_t{3}), Value(2.5), Value(true), Value(std::string("3")),
                          Value(std::string("2.5"))};
    for (const Value& value : good) {
      options.backend_options[plugin].set("speed", value);
      EXPECT_THAT(driver::compile_to_memory(model, options).report.manifest.regions, SizeIs(1)) << plugin;
    }
    for (const char* text : {"fast", "", "3 m/s", "inf", "nan", " 3"}) {
      options.backend_options[plugin].set("speed", Value(std::string(text)));
      EXPECT_THAT(kit::user_error_of([&] { driver::compile_to_memory(model, options); }),
                  HasSubstr("its speed is not a number"))
          << text;
    }
    for (const Value& other : {Value(), Value(Array<Value>{Value(int64_t{3})}), Value(Map<std::string, Value>())}) {
      options.backend_options[plugin].set("speed", other);
      EXPECT_THAT(
          kit::user_error_of([&] { driver::compile_to_memory(model, options); }),
          HasSubstr(fmt::format("the option 'speed' of the backend '{}' is neither a text, a number nor", plugin)));
    }
  }
}

TEST(Plugin, OptionsHaveEachFormOfTheirValue) {
  const auto check = [](const Value& value, hr_attr_kind kind, std::optional<int64_t> integer,
                        std::optional<double> real, const std::string& text) {
    Map<std::string, Value> options;
    options.set("k", value);
    const AttrList list(options);
    const hr_attr& one = list.all().at(0);
    EXPECT_EQ(one.kind, kind) << text;
    EXPECT_EQ(one.count, 1u) << text;
    EXPECT_EQ(one.integers != nullptr ? std::optional(one.integers[0]) : std::nullopt, integer) << text;
    EXPECT_EQ(one.reals != nullptr ? std::optional(one.reals[0]) : std::nullopt, real) << text;
    ASSERT_NE(one.texts, nullptr) << text;
    EXPECT_EQ(one.texts[0], text);
  };
  check(Value(int64_t{-3}), HR_ATTR_INTEGER, -3, -3.0, "-3");
  check(Value(true), HR_ATTR_INTEGER, 1, 1.0, "true");
  check(Value(0.25), HR_ATTR_REAL, {}, 0.25, "0.25");
  check(Value(std::string("-3")), HR_ATTR_TEXT, -3, -3.0, "-3");
  check(Value(std::string("1e-3")), HR_ATTR_TEXT, {}, 1e-3, "1e-3");
  check(Value(std::string("false")), HR_ATTR_TEXT, 0, {}, "false");
  check(Value(std::string("9223372036854775808")), HR_ATTR_TEXT, {}, 9223372036854775808.0, "9223372036854775808");
  check(Value(std::string("NCHW")), HR_ATTR_TEXT, {}, {}, "NCHW");
}

TEST(Plugin, ReasonsAreThePlugins) {
  load("chip");
  const driver::Explanation explained = driver::explain(
      driver::make_model(typed("def @main(%x: Tensor[(2), float32], %i: Tensor[(2), int32], %s: Tensor[(1), float32]) "
                               "{ (add(%i, %i), add(%x, %s), tanh(%x)) }\n")),
      {.backends = {"chip"}});
  std::vector<std::string> rows;
  for (const artifact::Placement& one : explained.placement)
    rows.push_back(fmt::format("{} {}", static_cast<int>(one.reason), one.message));
  EXPECT_THAT(rows, ElementsAre("22 chip: the chip knows float32 alone", "23 chip: the chip does not broadcast",
                                "20 chip: the chip does not compute this op"));
}

TEST(Plugin, ManyThreadsRunOneModule) {
  load("chip");
  const IRModule module = chip_program();
  const auto artifact =
      driver::open_compiled(driver::compile_to_memory(driver::make_model(module), {.backends = {"chip"}}), "a");
  std::vector<std::thread> threads;
  std::atomic<int> num_wrong = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const auto executor = load::make_executor(artifact, "default", {.threads = 1});
      const NDArray x = row({static_cast<float>(t), 1, 2, 3}), y = row({1, 2, static_cast<float>(t), 4});
      const std::vector<NDArray> want = interp::run_main(module, {x, y});
      for (int run = 0; run < 20; ++run) {
        const std::vector<NDArray> got = load::run(*executor, std::vector<NDArray>{x, y});
        for (int64_t k = 0; k < 4; ++k)
          num_wrong += std::abs(got[1].data<float>()[k] - want[1].data<float>()[k]) > 1e-5F ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_wrong, 0);
}

TEST(Plugin, WrongOnesAreRefusedWithAReason) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"wrong1", "is not a backend of Headrace: it lacks the function headrace_backend_entry"},
      {"wrong2", "was built for version 99 of the backend interface, and this Headrace has 1 to 1"},
      {"wrong3", "has no name; its headrace_backend_entry must fill that in"},
      {"wrong4", "has no function run; its headrace_backend_entry must fill that in"},
      {"wrong5", "cannot work here: the driver of the chip is not installed"},
      {"wrong6", "the patterns of the backend 'wrong6' of"},
      {"wrong7", "has a pattern 'other.sum'; names of its patterns must begin with 'wrong7.'"},
      {"wrong27",
       "has a pattern 'wrong27.relu', number 2 of 2, with a part that matches nothing: nn.relu takes 1 argument and "
       "has "
       "2 in nn.relu(_, _)"},
      {"wrong28", "sqrt has no attribute 'foo'; it has none in sqrt(_)[attrs foo=1]"},
      {"wrong29", "nn.softmax has no attribute 'axes'; it has axis in nn.softmax(_)[dtype float32][attrs axes=1]"},
      {"wrong30", "has the pattern 'wrong30.two' twice: numbers 1 and 3 of 3 are equal"},
      {"wrong8", "runs what was compiled elsewhere, and cannot compile"},
      {"wrong15", "xxx' is not a name of a backend; it must be of letters, digits, '_' and '-', at most 64 of them"},
      {"wrong16", "': 'two words' is not a name of a backend"},
      {"wrong17", "': 'native' is a word of the compiler's own; give the backend another name"},
      {"wrong18", "has no version"},
      {"wrong19", "has a function compile and no supports"},
      {"wrong37", "has a version of more than 256 bytes"},
      {"wrong33", "says that its table has 20 bytes, and the oldest has"},
      {"other_chip", "are both named 'chip'; load one of them"},
      {"named_null", "there is a backend 'null' already, which this program has; leave out that of the library '"},
      {"nothing", "there is no file"},
  };
  load("chip");
  for (const auto& [plugin, message] : cases)
    EXPECT_THAT(kit::user_error_of([&] { load(plugin); }), HasSubstr(message)) << plugin;
  const std::string text = ::testing::TempDir() + "no_plugin.so";
  kit::write_file(text, "no library");
  EXPECT_THAT(kit::user_error_of([&] { driver::load_plugin(text); }), HasSubstr("' is not a shared library; give"));
  const std::string python = ::testing::TempDir() + "no_plugin.py";
  kit::write_file(python, "import headrace");
  EXPECT_THAT(kit::user_error_of([&] { driver::load_plugin(python); }),
              HasSubstr("give it by `python -m headrace ... --plugin "));
  EXPECT_THAT(kit::user_error_of([&] { driver::load_plugin("/"); }), HasSubstr("is not a file"));
}

// Runs after the test before it: the name is free for a library that is right.
TEST(Plugin, ALibraryWithWrongPatternsKeepsNoName) {
  EXPECT_THAT(kit::user_error_of([] { load("wrong27"); }), HasSubstr("wrong27"));
  EXPECT_EQ(load("mended27"), "wrong27");
  EXPECT_EQ(load("mended27"), "wrong27");
}

// By another path it is the same library; a copy of its file is another one.
TEST(Plugin, ALibraryUnderTwoPaths) {
  const std::string link = ::testing::TempDir() + "chip_link.so", copy = ::testing::TempDir() + "chip_copy.so";
  std::filesystem::remove(link);
  std::filesystem::create_symlink(path_of("chip"), link);
  std::filesystem::copy_file(path_of("chip"), copy, std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(load("chip"), "chip");
  EXPECT_EQ(driver::load_plugin(link), "chip");
  EXPECT_EQ(kit::user_error_of([&] { driver::load_plugin(copy); }),
            fmt::format("the backends '{}' and '{}' are both named 'chip'; load one of them", path_of("chip"), copy));
}

// The backend that has the name stays as it is, with its loader; the library may be tried again.
TEST(Plugin, ANameOfThisProgramStaysItsOwn) {
  if (const std::string why = kit::why_without("null"); !why.empty()) GTEST_SKIP() << why;
  const auto before = partition::find_backend("null");
  for (int i = 0; i < 2; ++i)
    EXPECT_THAT(kit::user_error_of([&] { load("named_null"); }), HasSubstr("there is a backend 'null' already, which"));
  EXPECT_EQ(partition::find_backend("null"), before);
  EXPECT_FALSE(find_global(std::string(runtime::kLoadBinaryPrefix) + "backend.null"));
}

TEST(Plugin, ACompileThatFails) {
  const driver::Model model = driver::make_model(typed("def @main(%x: Tensor[(1, 2), float32]) { tanh(%x) }\n"));
  const auto regions_of = [&](const std::string& plugin) {
    load(plugin);
    return driver::compile_to_memory(model, {.backends = {plugin}}).report.manifest;
  };
  const artifact::Manifest silent = regions_of("wrong9");
  EXPECT_THAT(silent.regions, IsEmpty());
  EXPECT_THAT(silent.programs[0].placement[0].message,
              HasSubstr("wrong9 refused its region: the backend neither compiled the region nor refused it"));
  // A graph that is not there; constants without a function that loads them; a constant that no graph has.
  for (const auto& [plugin, why] : std::vector<std::pair<std::string, std::string>>{
           {"wrong10", "graph 1, and the request has 1"},
           {"wrong21", "a blob with constants was emitted by a library without load_with_constants"},
           {"wrong22", "constant 0 of an emitted blob is in no graph"}})
    EXPECT_THAT(kit::user_error_of([&] { regions_of(plugin); }),
                AllOf(HasSubstr("the host refused the blob"), HasSubstr(why)))
        << plugin;
  // The target is named whole, whatever the user wrote of it.
  const codegen::NativeTarget host = codegen::NativeCompiler::load().host_target();
  EXPECT_THAT(kit::user_error_of([&] { regions_of("wrong12"); }),
              HasSubstr(fmt::format("the chip is asleep beside {} of {}; wake it", host.cpu, host.triple)));
}

TEST(Plugin, AnswersThatTheHostDoesNotTake) {
  const driver::Model model = driver::make_model(typed("def @main(%x: Tensor[(1, 2), float32]) { tanh(%x) }\n"));
  const auto made_by = [&](const std::string& plugin) {
    load(plugin);
    return driver::compile_to_memory(model, {.backends = {plugin}}).report.manifest;
  };
  EXPECT_THAT(made_by("wrong34").programs[0].placement[0].message,
              HasSubstr("nor refused it (a blob of 18446744073709551615 bytes was emitted)"));
  EXPECT_EQ(made_by("wrong35").regions.size(), 1u);  // by the first blob
  const artifact::Manifest refused = made_by("wrong36");
  EXPECT_THAT(refused.regions, IsEmpty());
  EXPECT_THAT(refused.programs[0].placement[0].message,
              AllOf(EndsWith("refused its region: " + std::string(1023, 'x')), Not(HasSubstr(std::string(1024, 'x')))));
}

// Regions that fail where they run.
TEST(Plugin, ARegionThatFailsFallsBack) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"wrong11", "the chip is full"},
      {"wrong13", "no core of the chip is free"},
      {"wrong14", "has no function 'tvmgen_default_wrong14"},
      {"wrong20", "the chip is too hot"},
      {"wrong23",
       "the backend 'wrong23' says that its region 'tvmgen_default_wrong23_main_0' has result 0 of the type float32 "
       "?x3, and the model was compiled for float32 1x2; install the version of the backend that compiled it"},
      {"wrong24", "takes 0 tensors and gives 1, and the model was compiled for a region that takes 1 and gives 1"},
      {"wrong25", "says types of its region 'tvmgen_default_wrong25_main_0' that are none: one has no shape"},
      {"wrong26",
       "does not say the types of its region 'tvmgen_default_wrong26_main_0': the table of the chip is worn"},
      {"wrong31", "region 'tvmgen_default_wrong31_main_0' that are none: 4000000000 tensors are above"},
      {"wrong32", "one has 2000000000 dimensions, more than 32"}};
  const IRModule module = typed("def @main(%x: Tensor[(1, 2), float32]) { tanh(%x) }\n");
  for (const auto& [plugin, message] : cases) {
    load(plugin);
    const auto artifact =
        driver::open_compiled(driver::compile_to_memory(driver::make_model(module), {.backends = {plugin}}), "a");
    const auto run = [&](executors::Fallback fallback) {
      auto executor = load::make_executor(artifact, "default", {.threads = 1, .fallback = fallback});
      EXPECT_THAT(floats(load::run(*executor, std::vector<NDArray>{row({0, 0})}).at(0)), ElementsAre(0, 0));
      return executor;
    };
    const auto executor = run(executors::Fallback::native);
    ASSERT_THAT(executor->fallbacks(), SizeIs(1)) << plugin;
    EXPECT_THAT(executor->fallbacks()[0].message, HasSubstr(message));
    EXPECT_EQ(executor->fallbacks()[0].reason, HR_REASON_BACKEND_FAILED);
    EXPECT_THAT(kit::user_error_of([&] { run(executors::Fallback::none); }), HasSubstr(message)) << plugin;
  }
}

// ---- the view of a graph

Graph view(const std::string& text) {
  const IRModule module = typed(text);
  return std::move(make_graph(*module->lookup("main").as<relay::FunctionNode>(), "the graph")).value_or_throw();
}

TEST(GraphView, NodesAndTypes) {
  const hr_graph_api& api = *graph_api();
  const Graph graph = view(
      "def @main(%p: (Tensor[(2, 3), float32], Tensor[(2, 3), float32])) {\n"
      "  let %s = split(%p.0, indices_or_sections=3, axis=1);\n"
      "  (%s.1, concatenate(%p, axis=0), %p.0)\n}\n");
  const hr_graph* g = graph.get();
  EXPECT_STREQ(api.name(g), "the graph");
  std::vector<int> kinds;
  for (uint32_t i = 0; i < api.num_nodes(g); ++i) kinds.push_back(api.kind(g, i));
  EXPECT_THAT(kinds, ElementsAre(HR_NODE_INPUT, HR_NODE_INPUT, HR_NODE_TUPLE, HR_NODE_CALL, HR_NODE_ITEM, HR_NODE_CALL,
                                 HR_NODE_TUPLE));
  EXPECT_EQ(api.operand(g, 3, 0), 0U);
  EXPECT_EQ(api.num_results(g, 3), 3U);
  EXPECT_EQ(api.result_type(g, 3, 2).shape[1], 1);
  EXPECT_EQ(api.operand(g, 4, 0), 3U);
  EXPECT_EQ(api.index(g, 4), 1U);
  EXPECT_EQ(api.operand(g, 5, 0), 2U);
  ASSERT_EQ(api.num_outputs(g), 3U);
  uint32_t result = 9;
  EXPECT_EQ(api.output(g, 1, &result), 5U);
  EXPECT_EQ(result, 0U);
  EXPECT_EQ(api.op_version(g, 5), 1U);
}

// Items are found behind all tuples, so that a backend sees items of calls alone.
TEST(GraphView, ItemsOfNestedTuples) {
  const hr_graph_api& api = *graph_api();
  const Graph graph = view(
      "def @main(%p: ((Tensor[(4), float32], Tensor[(4), float32]), Tensor[(4), float32])) {\n"
      "  %0 = split(%p.1, indices_or_sections=2);\n"
      "  %1 = ((nn.relu(%p.0.1), %p.0), (%0, exp(%p.0.0)));\n"
      "  (%1.0.1.1, %1.1.0.1, %1.1.1, %1.0, %1.1.0)\n}\n");
  const hr_graph* g = graph.get();
  std::vector<std::pair<int, uint32_t>> found;  // kinds, and indices of items
  for (uint32_t i = 0; i < api.num_outputs(g); ++i) {
    const uint32_t node = api.output(g, i, nullptr);
    found.emplace_back(api.kind(g, node), api.kind(g, node) == HR_NODE_INPUT ? node : api.index(g, node));
    if (api.kind(g, node) == HR_NODE_ITEM) {
      EXPECT_STREQ(api.op(g, api.operand(g, node, 0)), "split");
    }
  }
  const std::pair<int, uint32_t> first{HR_NODE_ITEM, 0}, second{HR_NODE_ITEM, 1}, call{HR_NODE_CALL, 0};
  const std::pair<int, uint32_t> a{HR_NODE_INPUT, 0}, b{HR_NODE_INPUT, 1};
  EXPECT_THAT(found, ElementsAre(b, second, call, call, a, b, first, second));
  EXPECT_STREQ(api.op(g, api.output(g, 2, nullptr)), "exp");
  EXPECT_STREQ(api.op(g, api.output(g, 3, nullptr)), "nn.relu");
  EXPECT_EQ(api.operand(g, api.output(g, 3, nullptr), 0), 1U);
}

TEST(GraphView, Attributes) {
  const hr_graph_api& api = *graph_api();
  const Graph graph = view(
      "def @main(%x: Tensor[(1, 3, 8, 8), float32]) {\n"
      "  clip(nn.max_pool2d(%x, pool_size=[2, 3], layout=\"NCHW\", ceil_mode=True), a_min=-0.5f, a_max=2f)\n}\n");
  const hr_graph* g = graph.get();
  const hr_attr pool = api.find_attr(g, 1, "pool_size"), layout = api.find_attr(g, 1, "layout"),
                ceil = api.find_attr(g, 1, "ceil_mode"), low = api.find_attr(g, 2, "a_min");
  ASSERT_EQ(pool.kind, HR_ATTR_INTEGERS);
  EXPECT_THAT(std::vector<int64_t>(pool.integers, pool.integers + pool.count), ElementsAre(2, 3));
  ASSERT_EQ(layout.kind, HR_ATTR_TEXT);
  EXPECT_STREQ(layout.texts[0], "NCHW");
  ASSERT_EQ(ceil.kind, HR_ATTR_INTEGER);
  EXPECT_EQ(ceil.integers[0], 1);
  ASSERT_EQ(low.kind, HR_ATTR_REAL);
  EXPECT_EQ(low.reals[0], -0.5);
  EXPECT_EQ(api.find_attr(g, 1, "color").name, nullptr);
  EXPECT_EQ(api.find_attr(g, 1, nullptr).name, nullptr);
}

// Lists of lists, and of several kinds, down to their numbers.
TEST(GraphView, ItemsOfLists) {
  const hr_graph_api& api = *graph_api();
  const Graph graph = view("def @main(%x: Tensor[(2, 3), float32]) { nn.pad(%x, 5f, pad_width=[[1, 0], [4, 2]]) }\n");
  const hr_graph* g = graph.get();
  const uint32_t pad = api.num_nodes(g) - 1;
  const char* name = "pad_width";
  EXPECT_EQ(api.find_attr(g, pad, name).kind, HR_ATTR_OTHER);
  EXPECT_EQ(api.num_items(g, pad, name, nullptr, 0), 2u);
  const std::vector<uint64_t> second{1}, first_of_second{1, 0};
  EXPECT_EQ(api.num_items(g, pad, name, second.data(), 1), 2u);
  const hr_attr list = api.item(g, pad, name, second.data(), 1);
  EXPECT_STREQ(list.name, name);
  ASSERT_EQ(list.kind, HR_ATTR_INTEGERS);
  EXPECT_THAT(std::vector<int64_t>(list.integers, list.integers + list.count), ElementsAre(4, 2));
  const hr_attr number = api.item(g, pad, name, first_of_second.data(), 2);
  ASSERT_EQ(number.kind, HR_ATTR_INTEGER);
  EXPECT_EQ(number.integers[0], 4);
  EXPECT_EQ(api.num_items(g, pad, name, first_of_second.data(), 2), 0u);
  for (const std::vector<uint64_t>& beyond : {std::vector<uint64_t>{2}, {1, 2}, {1, 0, 0}}) {
    const auto depth = static_cast<uint32_t>(beyond.size());
    EXPECT_EQ(api.item(g, pad, name, beyond.data(), depth).name, nullptr);
    EXPECT_EQ(api.num_items(g, pad, name, beyond.data(), depth), 0u);
  }
  EXPECT_EQ(api.num_items(g, pad, "color", nullptr, 0), 0u);
  EXPECT_EQ(api.item(g, pad, nullptr, nullptr, 0).name, nullptr);
  EXPECT_EQ(api.item(g, 99, name, nullptr, 0).name, nullptr);
}

TEST(GraphView, MissingPartsAreEmpty) {
  const hr_graph_api& api = *graph_api();
  const Graph graph = view("def @main(%x: Tensor[(2), float32]) { tanh(%x) }\n");
  const hr_graph* g = graph.get();
  uint32_t result = 7;
  EXPECT_EQ(api.output(g, 5, &result), 0U);
  EXPECT_EQ(result, 0U);
  EXPECT_EQ(api.kind(g, 99), 0);
  EXPECT_EQ(api.num_operands(g, 99) + api.operand(g, 1, 9) + api.num_results(g, 99) + api.num_attrs(g, 99), 0U);
  EXPECT_EQ(api.result_type(g, 1, 3).shape, nullptr);
  EXPECT_EQ(api.op(g, 0), nullptr);
  EXPECT_EQ(api.body(g, 1), nullptr);
  EXPECT_EQ(api.constant(g, 1).tensor, nullptr);
  EXPECT_EQ(api.attr(g, 1, 4).name, nullptr);
  EXPECT_STREQ(api.place(g, 99), "");
  EXPECT_EQ(api.num_nodes(nullptr), 0U);
}

TEST(GraphView, RegionsThatItCannotShowAreRefused) {
  const IRModule module =
      typed("def @main(%x: Tensor[(2), float32], %c: Tensor[(), bool]) { if (%c) { tanh(%x) } else { %x } }\n");
  const Expected<Graph> graph = make_graph(*module->lookup("main").as<relay::FunctionNode>(), "g");
  ASSERT_FALSE(graph);
  EXPECT_THAT(graph.refusal().message, HasSubstr("it holds a relay.If"));
}

}  // namespace
}  // namespace headrace::backends::plugin
