#include "ir/target.h"

#include <gtest/gtest.h>

#include <random>

#include "ir/target_tag.h"
#include "kit/errors.h"
#include "object/json.h"
#include "object/structural_equal.h"
#include "object/structural_hash.h"
#include "tensor/device.h"

namespace headrace {
namespace {

using Config = Map<std::string, Value>;

bool equal(const Target& a, const Target& b) { return structural_equal(Value(a), Value(b)); }

// A kind with an option of each type, whose parser is `parse`.
TargetKind register_kind(const std::string& name, std::function<Config(const Config&)> parse = {}) {
  TargetKind kind = make_object<TargetKindNode>();
  kind->name = name;
  kind->default_device_type = kDLExtDev;
  kind->default_keys = {"npu"};
  kind->options = {{.name = "part", .type = TargetOptionType::text, .doc = ""},
                   {.name = "lanes", .type = TargetOptionType::whole, .doc = "", .default_value = Value(8)},
                   {.name = "fast", .type = TargetOptionType::truth, .doc = ""},
                   {.name = "units", .type = TargetOptionType::texts, .doc = ""}};
  kind->parse = std::move(parse);
  register_target_kind(kind);
  return kind;
}

TEST(Target, ReadsWhatUsersType) {
  const Target target = parse_target("llvm -mcpu=znver4  --mattr=+avx2,-avx512f -num-cores=4");
  EXPECT_EQ(target->kind->name, "llvm");
  EXPECT_EQ(target->kind->default_device_type, kDLCPU);
  EXPECT_EQ(target->text("mcpu"), "znver4");
  EXPECT_EQ(target->text("mtriple"), "");
  EXPECT_EQ(target->list("mattr").size(), 2U);
  EXPECT_EQ(target->list("mattr")[1], "-avx512f");
  EXPECT_EQ(target->count("num-cores"), 4);
  EXPECT_EQ(target->keys.to_vector(), std::vector<std::string>{"cpu"});
  EXPECT_FALSE(target->host);
  EXPECT_EQ(target->tag, "");
  EXPECT_EQ(parse_target("llvm")->count("num-cores"), 0);
}

TEST(Target, TextIsCanonical) {
  const char* text = "llvm -keys=arm,cpu -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3 -mattr=+f16c,-fma -num-cores=2";
  EXPECT_EQ(to_string(parse_target(text)), text);
  const Target other_order =
      parse_target("llvm -num-cores=2 -mattr=+f16c,-fma -mcpu=x86-64-v3 -keys=arm -mtriple=x86_64-linux-gnu");
  EXPECT_EQ(to_string(other_order), text);
  EXPECT_TRUE(equal(other_order, parse_target(text)));
  EXPECT_FALSE(equal(other_order, parse_target("llvm")));
  EXPECT_EQ(to_string(make_target("llvm")), "llvm -keys=cpu");
}

TEST(Target, KeysAreTheGivenOnesThenTheKindsEachOnce) {
  EXPECT_EQ(to_string(parse_target("llvm -keys=cpu,fast,cpu")), "llvm -keys=cpu,fast");
  EXPECT_EQ(to_string(parse_target("llvm -keys=fast")), "llvm -keys=fast,cpu");
}

TEST(Target, JsonMapAndTextAreOneTarget) {
  const Target target = parse_target("llvm -mcpu=znver4 -mattr=+avx2,-fma -num-cores=3");
  const Config config{{"kind", Value("llvm")},
                      {"mcpu", Value("znver4")},
                      {"mattr", Value(Array<std::string>{"+avx2", "-fma"})},
                      {"num-cores", Value(3)},
                      {"mtriple", Value()}};
  EXPECT_TRUE(equal(make_target_from_config(config), target));
  EXPECT_TRUE(equal(parse_target(R"( {"num-cores": 3, "mattr": ["+avx2", "-fma"],
                                      "kind": "llvm", "mcpu": "znver4"})"),
                    target));
  EXPECT_TRUE(equal(make_target_from_config(export_target(target)), target));
  EXPECT_TRUE(equal(to_target(Value(config)), target));
  EXPECT_TRUE(equal(to_target(Value(to_string(target))), target));
  EXPECT_EQ(to_target(Value(target)), target);
}

TEST(Target, HostIsATargetToo) {
  const Target target = parse_target("llvm -host='llvm -mcpu=znver4' -mcpu=znver2");
  ASSERT_TRUE(target->host);
  EXPECT_EQ(target->host->text("mcpu"), "znver4");
  EXPECT_EQ(to_string(target), "llvm -keys=cpu -mcpu=znver2 -host='llvm -keys=cpu -mcpu=znver4'");
  EXPECT_TRUE(equal(parse_target(to_string(target)), target));
  EXPECT_TRUE(equal(make_target_from_config(export_target(target)), target));
  EXPECT_TRUE(
      equal(parse_target(R"({"kind": "llvm", "mcpu": "znver2", "host": {"kind": "llvm", "mcpu": "znver4"}})"), target));
  const Target bare = parse_target("llvm -mcpu=znver2");
  EXPECT_TRUE(equal(with_host(bare, target->host), target));
  EXPECT_TRUE(equal(with_host(target, {}), bare));
  EXPECT_FALSE(equal(bare, target));
}

TEST(Target, IsSavedByNameOfItsKind) {
  const Target target = parse_target("llvm -mcpu=znver2 -host=llvm");
  const std::string json = save_json(Value(target));
  const auto loaded = load_json(json).as<Target>();
  EXPECT_TRUE(equal(loaded, target));
  EXPECT_EQ(loaded->kind, target->kind);
  EXPECT_EQ(structural_hash(Value(loaded)), structural_hash(Value(target)));
  std::string foreign = json;
  ASSERT_NE(foreign.find("\"llvm\""), std::string::npos);
  foreign.replace(foreign.find("\"llvm\""), 6, "\"nosu\"");
  EXPECT_NE(kit::user_error_of([&] { load_json(foreign); }).find("no kind of target 'nosu'"), std::string::npos);
}

TEST(Target, TargetsMadeByHandAreChecked) {
  const Target target = parse_target("llvm -mcpu=znver2");
  EXPECT_TRUE(equal(checked_target(target), target));
  const Target foreign = copy_with(*target, [](TargetNode& copy) { copy.attrs.set("frob", Value(1)); });
  EXPECT_NE(kit::user_error_of([&] { checked_target(foreign); }).find("no option 'frob'"), std::string::npos);
  const Target wrong = copy_with(*target, [](TargetNode& copy) { copy.attrs.set("mcpu", Value(1.5)); });
  EXPECT_NE(kit::user_error_of([&] { checked_target(wrong); }).find("mcpu is of type str, got 1.5"), std::string::npos);
  EXPECT_EQ(to_string(wrong), "llvm -keys=cpu -mcpu=1.5");
  Target nested = target;
  for (int i = 0; i < 100'000; ++i) {
    nested = copy_with(*target, [&](TargetNode& copy) { copy.host = nested; });
  }
  for (const auto& use : std::initializer_list<std::function<void()>>{
           [&] { to_string(nested); }, [&] { export_target(nested); }, [&] { checked_target(nested); }})
    EXPECT_EQ(kit::user_error_of(use), "a target's host has no host of its own; leave the inner one out");
}

TEST(Target, TagsNameTargets) {
  const Target tagged = parse_target("cpu/znver4");
  EXPECT_EQ(tagged->tag, "cpu/znver4");
  EXPECT_TRUE(equal(tagged, parse_target("llvm -mcpu=znver4")));
  EXPECT_EQ(make_target_from_config(export_target(tagged))->tag, "cpu/znver4");
  EXPECT_EQ(export_target(parse_target("llvm")).at("tag").as<std::string>(), "");

  register_target_tag("lab/box-1", {{"kind", Value("llvm")}, {"num-cores", Value(3)}});
  EXPECT_EQ(to_string(parse_target("lab/box-1")), "llvm -keys=cpu -num-cores=3");
  register_target_tag("lab/box-1", {{"kind", Value("llvm")}, {"num-cores", Value(5)}}, true);
  EXPECT_EQ(parse_target("lab/box-1")->count("num-cores"), 5);
  EXPECT_EQ(parse_target("llvm -host=lab/box-1")->host->count("num-cores"), 5);
  const std::vector<std::string> tags = target_tags();
  EXPECT_TRUE(std::is_sorted(tags.begin(), tags.end()));
  EXPECT_NE(std::find(tags.begin(), tags.end(), "lab/box-1"), tags.end());
}

TEST(Target, KindsOfUsers) {
  const TargetKind kind = register_kind("test-npu");
  EXPECT_EQ(get_target_kind("test-npu"), kind);
  const Target target = parse_target("test-npu -part='rev b' -fast=true -units=a,b");
  EXPECT_EQ(target->text("part"), "rev b");
  EXPECT_EQ(target->count("lanes"), 8);
  EXPECT_TRUE(target->attrs.at("fast").as<bool>());
  EXPECT_EQ(to_string(target), "test-npu -keys=npu -part='rev b' -lanes=8 -fast=true -units=a,b");
  EXPECT_TRUE(equal(parse_target(to_string(target)), target));
  EXPECT_TRUE(equal(load_json(save_json(Value(target))).as<Target>(), target));
  EXPECT_EQ(to_string(parse_target("test-npu -fast=0 -lanes=-1")), "test-npu -keys=npu -lanes=-1 -fast=false");
  EXPECT_EQ(kit::user_error_of([] { parse_target("test-npu -fast=maybe"); }),
            "the target's option -fast=maybe is neither true nor false");
  const Target outer = parse_target("llvm -host=\"test-npu -part='rev b'\"");
  EXPECT_EQ(to_string(outer), "llvm -keys=cpu -host=\"test-npu -keys=npu -part='rev b' -lanes=8\"");
  EXPECT_TRUE(equal(parse_target(to_string(outer)), outer));
  const Array<Value> rows = describe_options(kind);
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows[1].as<Config>().at("type").as<std::string>(), "int");
  EXPECT_EQ(rows[1].as<Config>().at("default").as<int64_t>(), 8);
  EXPECT_TRUE(rows[0].as<Config>().at("default").is_none());
}

TEST(Target, AKindsParserHasTheLastWord) {
  register_kind("test-parsed", [](const Config& config) {
    Config parsed = config;
    if (config.at("lanes").as<int64_t>() > 16) throw_user_error("at most 16 lanes");
    parsed.set("fast", Value(config.at("lanes").as<int64_t>() > 4));
    return parsed;
  });
  EXPECT_TRUE(parse_target("test-parsed")->attrs.at("fast").as<bool>());
  EXPECT_FALSE(parse_target("test-parsed -lanes=2")->attrs.at("fast").as<bool>());
  EXPECT_EQ(kit::user_error_of([] { parse_target("test-parsed -lanes=17"); }), "at most 16 lanes");
  register_kind("test-lost", [](const Config&) { return Config{{"nonsense", Value(1)}}; });
  EXPECT_NE(kit::user_error_of([] { parse_target("test-lost"); }).find("no option 'nonsense'"), std::string::npos);
  register_kind("test-bold", [](const Config&) { return Config{{"host", Value("llvm")}}; });
  EXPECT_EQ(kit::user_error_of([] { parse_target("test-bold"); }),
            "the parser of the target kind 'test-bold' returned 'host', which only the target itself may set");
}

TEST(Target, ErrorsSayWhatThereIs) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "the target is empty; write its kind first"},
      {"  ", "the target is empty"},
      {"''", "the target is empty"},
      {"lvm -mcpu=x", "no kind of target 'lvm'; the kinds are llvm"},
      {"c", "no kind of target 'c'; the kinds are llvm"},
      {"cuda", "no kind of target 'cuda', and GPUs are not supported yet; the kinds are llvm"},
      {"vulkan -max_num_threads=2", "no kind of target 'vulkan', and GPUs are not supported yet"},
      {"znver4", "no kind of target 'znver4'.*did you mean the tag cpu/znver4"},
      {"cpu/znver9", "no tag 'cpu/znver9' of a target; near are .*cpu/znver4"},
      {"gpu/x", "no tag 'gpu/x' of a target; the tags are cpu/haswell"},
      {"cpu/znver4 -num-cores=2", "the tag cpu/znver4 takes no options; leave -num-cores=2 out"},
      {"llvm mcpu=x", "'mcpu=x' is not an option of a target; write -NAME=VALUE"},
      {"llvm -mcpu", "'-mcpu' is not an option of a target"},
      {"llvm -", "'-' is not an option of a target"},
      {"llvm --=x", "'--=x' is not an option of a target"},
      {"llvm ''", "'' is not an option of a target"},
      {"llvm -cpu=x",
       "no option 'cpu'; its options are -mtriple=, -mcpu=, -mattr=, -num-cores=, -extern=, -keys=, -host=, -tag="},
      {"llvm -kind=x", "no option 'kind'"},
      {"llvm -mcpu=", "the target's option -mcpu= has no value"},
      {"llvm -mcpu=a -mcpu=b", "-mcpu= is given twice"},
      {"llvm -mcpu='a", "a quote (') without its partner"},
      {"llvm -num-cores=two", "-num-cores=two is not a whole number"},
      {"llvm -num-cores=0", "num-cores is 0; it goes from 1 to 512"},
      {"llvm -num-cores=513", "num-cores is 513; it goes from 1 to 512"},
      {"llvm -mattr=+a,,+b", "mattr has '', which must be a single word"},
      {"llvm -keys=a,", "keys has '', which must be a single word"},
      {"llvm -host=lvm", "no kind of target 'lvm'"},
      {"llvm -host='llvm -host=llvm'", "a target's host has no host of its own"},
      {"{", "begins with '{' and is not JSON"},
      {R"({"mcpu": "x"})", "needs a \"kind\""},
      {R"({"kind": 3})", "needs a \"kind\""},
      {R"({"kind": "llvm", "mcpu": 1.5})", "\"mcpu\" is 1.5; values are"},
      {R"({"kind": "llvm", "keys": null})", "\"keys\" is null; values are.*what is not given is left out"},
      {R"({"kind": "llvm", "host": {"kind": "llvm", "mcpu": null}})", "\"mcpu\" is null; values are"},
      {R"({"kind": "llvm", "mattr": [null]})", "\"mattr\" is null; values are"},
      {R"({"kind": "llvm", "num-cores": 18446744073709551615})", "\"num-cores\" is 18446744073709551615"},
      {R"({"kind": "llvm", "num-cores": true})", "num-cores is of type int, got"},
      {R"({"kind": "llvm", "mcpu": "a", "mcpu": "b"})", "the target's JSON has \"mcpu\" twice"},
      {R"({"kind": "llvm", "mattr": [["+fma"]]})", "mattr is of type Array[str], got"},
      {R"({"kind": "llvm", "mattr": [[["+fma"]]]})", "nests deeper than a target with a host"},
      {R"({"kind": "llvm", "host": 3})", "host: expected a str, a dict or a Target, got int"},
      {R"({"kind": "llvm", "mcpu": ""})", "mcpu is an empty text"},
      {R"({"kind": "llvm", "mcpu": "it's"})", "mcpu has a quote or a line break"},
  };
  for (const auto& [text, message] : cases) {
    std::string error = kit::user_error_of([&] { parse_target(text); });
    for (std::string_view rest = message; !rest.empty();) {  // parts with anything between
      const size_t dots = rest.find(".*");
      const size_t found = error.find(rest.substr(0, dots));
      EXPECT_NE(found, std::string::npos) << text << ": " << error;
      error = found == std::string::npos ? "" : error.substr(found);
      rest = dots == std::string_view::npos ? "" : rest.substr(dots + 2);
    }
  }
  const std::string error = kit::user_error_of([] { make_target("llvm", {{"mcpu", Value(int64_t{3})}}); });
  EXPECT_EQ(error, "the target's option mcpu is of type str, got 3");
  const std::string spaced = kit::user_error_of([] { make_target("llvm", {{"mattr", Value("+avx2, -fma")}}); });
  EXPECT_NE(spaced.find("mattr has ' -fma', which must be a single word"), std::string::npos) << spaced;
  EXPECT_NE(kit::user_error_of([] { to_target(Value(Map<int64_t, Value>{{1, Value(2)}})); }).find("not all str"),
            std::string::npos);
  EXPECT_EQ(kit::user_error_of([] { to_target(Value()); }), "target: expected a str, a dict or a Target, got None");
}

// Random texts made of pieces either give a UserError, or a target that writes and reads back.
TEST(Target, AnyTextIsATargetOrAUserError) {
  const std::vector<std::string> pieces{
      "llvm",       " ",    "-",       "=",   "'",        "\"",         ",",
      "{",          "}",    ":",       "[",   "]",        "/",          "\"kind\"",
      "\"llvm\"",   "null", "-mcpu=a", "1e9", " -keys=k", "-host=llvm", " -num-cores=7",
      "cpu/znver4", "\xff"};
  std::mt19937 random(7);
  int read = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text = i % 3 == 0 ? "" : i % 3 == 1 ? "llvm" : "{\"kind\": \"llvm\"";
    for (size_t n = random() % 6; n > 0; --n) text += pieces[random() % pieces.size()];
    if (i % 3 == 2 && random() % 2 == 0) text += "}";
    Target target;
    if (!kit::user_error_of([&] { target = parse_target(text); }).empty()) continue;
    ++read;
    EXPECT_TRUE(equal(parse_target(to_string(target)), target)) << text;
    EXPECT_TRUE(equal(make_target_from_config(export_target(target)), target)) << text;
  }
  EXPECT_GT(read, 500);
}

TEST(Target, OptionsThatWouldMeanNothingAreRefusedWithAReason) {
  const TargetKind llvm = get_target_kind("llvm");
  ASSERT_GT(llvm->refused.size(), 5U);
  for (const auto& [name, reason] : llvm->refused) {
    EXPECT_EQ(llvm->find_option(name), nullptr);
    EXPECT_EQ(kit::user_error_of([&, option = name] { make_target("llvm", {{option, Value("x")}}); }),
              fmt::format("a target of kind llvm takes no option '{}': {}", name, reason));
  }
}

TEST(Target, ErrorsOfRegistration) {
  const auto message = [](auto&& change) {
    const TargetKind kind = make_object<TargetKindNode>();
    kind->name = "test-bad";
    kind->default_device_type = kDLCPU;
    change(*kind);
    return kit::user_error_of([&] { register_target_kind(kind); });
  };
  using Kind = TargetKindNode;
  EXPECT_EQ(message([](Kind& kind) { kind.name = "llvm"; }), "the target kind 'llvm' is registered already");
  EXPECT_NE(message([](Kind& kind) { kind.name = "a/b"; }).find("'a/b' is not a name of a kind of target"),
            std::string::npos);
  EXPECT_NE(message([](Kind& kind) { kind.name = ""; }).find("'' is not a name"), std::string::npos);
  EXPECT_NE(message([](Kind& kind) { kind.default_device_type = 0; }).find("device type 0; DLPack's start at 1"),
            std::string::npos);
  EXPECT_NE(message([](Kind& kind) { kind.default_keys = {"a b"}; }).find("not a name of a key"), std::string::npos);
  for (const char* name : {"keys", "host", "tag", "kind"}) {
    EXPECT_NE(message([&](Kind& kind) { kind.options = {{name, TargetOptionType::text, ""}}; }).find("cannot have"),
              std::string::npos);
  }
  EXPECT_NE(
      message([](Kind& kind) { kind.options = {{"-x", TargetOptionType::text, ""}}; }).find("not a name of an opti"),
      std::string::npos);
  EXPECT_NE(message([](Kind& kind) {
              kind.options = {{"n", TargetOptionType::whole, ""}, {"n", TargetOptionType::text, ""}};
            }).find("there twice"),
            std::string::npos);
  EXPECT_NE(message([](Kind& kind) {
              kind.options = {{"n", TargetOptionType::whole, "", Value("x")}};
            }).find("n is of type int, got"),
            std::string::npos);
  EXPECT_EQ(find_target_kind("test-bad"), TargetKind());
  EXPECT_NE(kit::user_error_of([] { parse_target_option_type("float"); }).find("types are str, int, bool, Array[str]"),
            std::string::npos);
  EXPECT_NE(kit::user_error_of([] { register_target_tag("box", {}); }).find("written GROUP/NAME"), std::string::npos);
  EXPECT_NE(kit::user_error_of([] { register_target_tag("a/b/c", {}); }).find("'b/c' is not a name of a tag"),
            std::string::npos);
  EXPECT_NE(kit::user_error_of([] { register_target_tag("/b", {}); }).find("not a name of a tag's group"),
            std::string::npos);
  EXPECT_NE(kit::user_error_of([] { register_target_tag("lab/x", {{"kind", Value("lvm")}}); }).find("'lvm'"),
            std::string::npos);
  EXPECT_NE(kit::user_error_of([] {
              register_target_tag("cpu/znver4", {{"kind", Value("llvm")}});
            }).find("registered already; give override"),
            std::string::npos);
}

}  // namespace
}  // namespace headrace
