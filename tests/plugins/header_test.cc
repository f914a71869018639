// headrace/backend.hpp and backend_steps.hpp by themselves, without a host: bytes of regions that were changed with
// care, so that their checksum is right, views of values of the wrong kind, and a run over hand-made tensors.
#include <gtest/gtest.h>
#include <headrace/backend_steps.hpp>

#include <array>
#include <functional>

namespace {

using namespace headrace::plugin;

struct Add : Kernel {
  void run(const Call& call) const override {
    const float *a = call.data<float>(0), *b = call.data<float>(1);
    for (int64_t i = 0; i < call.shape(0)[0]; ++i) call.data<float>(2)[i] = a[i] + b[i];
  }
};

class Adder : public StepBackend {
  std::string name() const override { return "adder"; }
  void compile_step(const Node&, const Request&, Writer&) const override {}
  std::unique_ptr<Kernel> load_step(Reader&) const override { return std::make_unique<Add>(); }
};

// A value as backend_steps.hpp saves it: a float32 tensor.
void put_value(Writer& out, int64_t size, detail::Source source) {
  out.put(uint8_t{kDLFloat});
  out.put(uint8_t{32});
  out.put(uint16_t{1});
  out.put_all(std::vector<int64_t>{size});
  out.put(source);
}

// The region y = x + constant of three elements, with what a test changes.
struct Region {
  int64_t size = 3;
  uint32_t constant = 0;  // its index among those of the host
  std::vector<uint32_t> tensors{0, 1, 2}, outputs{2};
  std::string step, version = "1";
  bool has_rest = false;

  std::string bytes() const {
    Writer values, steps, content, blob;
    put_value(values, 3, detail::Source::argument);
    put_value(values, 3, detail::Source::constant);
    values.put(constant);
    put_value(values, size, detail::Source::arena);
    steps.put_all(tensors);
    steps.put_text(step);
    content.put(uint32_t{3});
    content.put(uint32_t{1});
    content.put_all(outputs);
    content.put_text(values.bytes());
    content.put_text(steps.bytes());
    if (has_rest) content.put(1);
    blob.put_text(version);
    blob.put_text("f");
    blob.put_text(content.bytes());
    blob.put(detail::hash_of(blob.bytes()));
    return blob.bytes();
  }
};

hr_backend table() {
  static const hr_host host{{sizeof(hr_host), HR_BACKEND_ABI_MAJOR, HR_BACKEND_ABI_MINOR}, "test", nullptr};
  hr_backend backend{};
  backend.abi.size = sizeof backend;
  EXPECT_EQ(detail::enter<Adder>(&host, &backend, nullptr), 0);
  return backend;
}

// A constant of the region, which the host keeps.
struct HostConstant {
  std::array<float, 3> values{10, 20, 30};
  int64_t size = 3;
  DLTensor tensor{values.data(), {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &size, nullptr, 0};
  const DLTensor* all = &tensor;
};

// Loads bytes and returns the error; "" when there is none.
std::string load_error(const std::string& bytes, const HostConstant& constant = {}) {
  const hr_backend backend = table();
  std::array<char, 200> text{};
  const hr_message message{text.data(), text.size()};
  void* loaded = nullptr;
  const DLTensor* all = &constant.tensor;
  const int32_t status =
      backend.load_with_constants(backend.self, bytes.data(), bytes.size(), &all, 1, &loaded, &message);
  EXPECT_EQ(status != 0, text[0] != 0);
  if (loaded != nullptr) backend.unload(backend.self, loaded);
  return text.data();
}

TEST(BackendHeader, LoadsAndRuns) {
  const hr_backend backend = table();
  EXPECT_STREQ(backend.name, "adder");
  const std::string bytes = Region().bytes();
  void *loaded = nullptr, *found = nullptr;
  EXPECT_NE(backend.load(backend.self, bytes.data(), bytes.size(), &loaded, nullptr), 0);  // without its constant
  const HostConstant constant;
  ASSERT_EQ(backend.load_with_constants(backend.self, bytes.data(), bytes.size(), &constant.all, 1, &loaded, nullptr),
            0);
  ASSERT_EQ(backend.find(backend.self, loaded, "g", 1, &found, nullptr), 0);
  EXPECT_EQ(found, nullptr);
  ASSERT_EQ(backend.find(backend.self, loaded, "f", 1, &found, nullptr), 0);
  hr_entry_types types{};
  ASSERT_EQ(backend.entry_types(backend.self, found, &types, nullptr), 0);
  ASSERT_EQ(types.num_inputs, 1u);
  ASSERT_EQ(types.num_outputs, 1u);
  for (const hr_tensor_type& type : {types.inputs[0], types.outputs[0]}) {
    EXPECT_TRUE(is_dtype<float>(type.dtype));
    ASSERT_EQ(type.ndim, 1);
    EXPECT_EQ(type.shape[0], 3);
  }
  std::array<float, 3> x{1, 2, 3}, y{};
  int64_t shape = 3;
  DLTensor in{x.data(), {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, &shape, nullptr, 0}, out = in;
  out.data = y.data();
  std::array<DLTensor*, 2> args{&in, &out};
  std::array<char, 200> text{};
  hr_kernel_env env{};
  env.message = text.data();
  env.message_size = text.size();
  EXPECT_EQ(backend.run(backend.self, found, &env, args.data(), 2), 0) << text.data();
  EXPECT_EQ(y, (std::array<float, 3>{11, 22, 33}));
  EXPECT_NE(backend.run(backend.self, found, &env, args.data(), 1), 0);
  EXPECT_STREQ(text.data(), "it was called with another number of tensors than it has inputs and outputs");
  backend.unload(backend.self, loaded);
}

TEST(BackendHeader, BytesThatAreWrongAreRefused) {
  const std::vector<std::pair<std::function<void(Region&)>, std::string>> cases{
      {[](Region&) {}, ""},
      {[](Region& r) { r.size = -3; }, "a tensor has a size that is negative or too large"},
      {[](Region& r) { r.size = int64_t{1} << 50; }, "a tensor has a size that is negative or too large"},
      {[](Region& r) { r.constant = 1; }, "a constant is missing"},
      {[](Region& r) { r.tensors[1] = 3; }, "a step names a tensor that the region does not have"},
      {[](Region& r) { r.outputs[0] = 3; }, "a step names a tensor that the region does not have"},
      {[](Region& r) { r.step = "x"; }, "the backend does not load all that it wrote when it compiled a step"},
      {[](Region& r) { r.has_rest = true; }, "the backend does not load all that it wrote when it compiled the region"},
      {[](Region& r) { r.version = "0"; },
       "the region was compiled by version 0 of the backend, and this is version 1; compile the model again"},
  };
  for (const auto& [change, error] : cases) {
    Region region;
    change(region);
    EXPECT_EQ(load_error(region.bytes()), error);
  }
}

TEST(BackendHeader, ConstantsOfOtherTypesAreRefused) {
  const std::string sentence = "a constant is of another type or size than when the model was compiled";
  HostConstant constant;
  constant.size = 2;
  EXPECT_EQ(load_error(Region().bytes(), constant), sentence);
  constant.size = 3;
  constant.tensor.dtype.code = kDLInt;
  EXPECT_EQ(load_error(Region().bytes(), constant), sentence);
}

TEST(BackendHeader, DamagedBytesAreRefused) {
  const std::string bytes = Region().bytes();
  for (size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_NE(load_error(bytes.substr(0, i)), "") << i;
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    EXPECT_NE(load_error(damaged), "") << i;
  }
  EXPECT_EQ(load_error(bytes + "x"), "its bytes are damaged; compile the model again");
}

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(BackendHeader, AttributesOfAnotherKind) {
  const int64_t two[] = {1, 2};
  const Attr list(hr_attr{"pads", HR_ATTR_INTEGERS, 2, two, nullptr, nullptr});
  EXPECT_EQ(list.integers(), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(error_of([&] { list.integer(); }), "'pads' is not an integer");
  EXPECT_EQ(error_of([&] { list.real(); }), "'pads' is not a number");
  EXPECT_EQ(error_of([&] { list.text(); }), "'pads' is not a text");
  EXPECT_EQ(error_of([&] { list.reals(); }), "'pads' is not a list of numbers");
  EXPECT_EQ(error_of([&] { list.texts(); }), "'pads' is not a list of texts");
  const Attr one(hr_attr{"axis", HR_ATTR_INTEGER, 1, two, nullptr, nullptr});
  EXPECT_EQ(one.real(), 1.0);
  EXPECT_EQ(error_of([&] { one.integers(); }), "'axis' is not a list of integers");
}

TEST(BackendHeader, OptionsAreTextsOrNumbers) {
  const int64_t three = 3;
  const double real = 3;
  const char *text = "3", *word = "fast";
  const Attr given = Attr::of_option({"level", HR_ATTR_TEXT, 1, &three, &real, &text});
  EXPECT_EQ(given.integer(), 3);
  EXPECT_TRUE(given.boolean());
  EXPECT_EQ(given.real(), 3.0);
  EXPECT_EQ(given.text(), "3");
  EXPECT_EQ(Attr::of_option({"level", HR_ATTR_INTEGER, 1, &three, &real, &text}).text(), "3");
  EXPECT_EQ(Attr::of_option({"level", HR_ATTR_REAL, 1, nullptr, &real, &text}).text(), "3");
  const Attr wrong = Attr::of_option({"level", HR_ATTR_TEXT, 1, nullptr, nullptr, &word});
  EXPECT_EQ(error_of([&] { wrong.integer(); }), "'level' is not an integer: fast");
  EXPECT_EQ(error_of([&] { wrong.boolean(); }), "'level' is not an integer: fast");
  EXPECT_EQ(error_of([&] { wrong.real(); }), "'level' is not a number: fast");
  // An attribute has one form, and an earlier host gives an option only the form of its kind.
  EXPECT_EQ(error_of([&] { Attr({"axis", HR_ATTR_TEXT, 1, &three, &real, &text}).integer(); }),
            "'axis' is not an integer");
  EXPECT_EQ(error_of([&] { Attr({"axis", HR_ATTR_INTEGER, 1, &three, &real, &text}).text(); }), "'axis' is not a text");
  EXPECT_EQ(error_of([&] { Attr::of_option({"level", HR_ATTR_TEXT, 1, nullptr, nullptr, &text}).integer(); }),
            "'level' is not an integer: 3");
  EXPECT_EQ(error_of([&] { Attr::of_option({"level", HR_ATTR_INTEGER, 1, &three, nullptr, nullptr}).text(); }),
            "'level' is not a text");
}

TEST(BackendHeader, TensorsOfAnotherType) {
  EXPECT_TRUE(is_dtype<double>({kDLFloat, 64, 1}));
  EXPECT_FALSE(is_dtype<double>({kDLFloat, 64, 4}));
  EXPECT_TRUE(is_dtype<bool>({kDLBool, 8, 1}));
  EXPECT_TRUE(is_dtype<uint16_t>({kDLUInt, 16, 1}));
  EXPECT_FALSE(is_dtype<int16_t>({kDLUInt, 16, 1}));
  const Call call(nullptr, nullptr, 0);
  EXPECT_EQ(error_of([&] { call.data<float>(0); }), "it was called with too few tensors");
}

}  // namespace
