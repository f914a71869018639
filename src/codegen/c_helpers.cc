#include "codegen/c_helpers.h"

#include "base/error.h"
#include "codegen/c_syntax.h"
#include "tensor/narrow_float.h"

namespace headrace::codegen {

namespace {

enum class Of : uint8_t { kSigned, kUnsigned, kWhole, kReal, kWideReal, kFloat64, kFloat16, kBfloat16 };

struct Helper {
  std::string_view family;
  Of of;
  // {name}, {T} the type, {U} the unsigned integer of its size, {W} the one that sums and products are computed in,
  // {bits}, {last} = bits - 1, {f} the suffix of floats.
  std::string_view text;
};

// C computes numbers of 8 or 16 bits as int: results that may overflow are cast back, and products of 16 bits are
// computed in {W}.
constexpr Helper kHelpers[] = {
    {"min", Of::kWhole, "static inline {T} {name}({T} a, {T} b) {{ return b < a ? b : a; }}\n"},
    {"max", Of::kWhole, "static inline {T} {name}({T} a, {T} b) {{ return b > a ? b : a; }}\n"},
    {"min", Of::kReal, "static inline {T} {name}({T} a, {T} b) {{ return b != b || b < a ? b : a; }}\n"},
    {"max", Of::kReal, "static inline {T} {name}({T} a, {T} b) {{ return b != b || b > a ? b : a; }}\n"},
    {"abs", Of::kSigned, "static inline {T} {name}({T} a) {{ return a < 0 ? ({T})(0 - ({U})a) : a; }}\n"},
    {"div", Of::kSigned,
     "static inline {T} {name}({T} a, {T} b) {{\n"
     "  if (b == 0) return 0;\n"
     "  return b == -1 ? ({T})(0 - ({U})a) : ({T})(a / b);\n"
     "}}\n"},
    {"mod", Of::kSigned, "static inline {T} {name}({T} a, {T} b) {{ return b == 0 || b == -1 ? 0 : ({T})(a % b); }}\n"},
    {"floor_div", Of::kSigned,
     "static inline {T} {name}({T} a, {T} b) {{\n"
     "  if (b == 0) return 0;\n"
     "  if (b == -1) return ({T})(0 - ({U})a);\n"
     "  return ({T})(a / b - (a % b != 0 && (a % b < 0) != (b < 0)));\n"
     "}}\n"},
    {"floor_mod", Of::kSigned,
     "static inline {T} {name}({T} a, {T} b) {{\n"
     "  if (b == 0 || b == -1) return 0;\n"
     "  const {T} rest = ({T})(a % b);\n"
     "  return rest != 0 && (rest < 0) != (b < 0) ? ({T})(rest + b) : rest;\n"
     "}}\n"},
    {"div", Of::kUnsigned, "static inline {T} {name}({T} a, {T} b) {{ return b == 0 ? 0 : ({T})(a / b); }}\n"},
    {"mod", Of::kUnsigned, "static inline {T} {name}({T} a, {T} b) {{ return b == 0 ? 0 : ({T})(a % b); }}\n"},
    {"floor_mod", Of::kReal,
     "static inline {T} {name}({T} a, {T} b) {{\n"
     "  const {T} rest = fmod{f}(a, b);\n"
     "  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;\n"
     "}}\n"},
    {"shift_left", Of::kSigned,
     "static inline {T} {name}({T} a, {T} by) {{ return ({U})by > {last} ? 0 : ({T})(({W})a << ({U})by); }}\n"},
    {"shift_left", Of::kUnsigned,
     "static inline {T} {name}({T} a, {T} by) {{ return by > {last} ? 0 : ({T})(({W})a << by); }}\n"},
    {"shift_right", Of::kSigned,
     "static inline {T} {name}({T} a, {T} by) {{ return ({T})(a >> (({U})by > {last} ? {last} : by)); }}\n"},
    {"shift_right", Of::kUnsigned,
     "static inline {T} {name}({T} a, {T} by) {{ return by > {last} ? 0 : ({T})(a >> by); }}\n"},
    {"power", Of::kSigned,
     "static inline {T} {name}({T} base, {T} exponent) {{\n"
     "  if (exponent < 0) {{\n"
     "    if (base == 1) return 1;\n"
     "    return base != -1 ? 0 : (exponent & 1) != 0 ? -1 : 1;\n"
     "  }}\n"
     "  {W} result = 1, square = ({W})base;\n"
     "  for ({U} rest = ({U})exponent; rest != 0; rest >>= 1, square *= square) {{\n"
     "    if ((rest & 1) != 0) result *= square;\n"
     "  }}\n"
     "  return ({T})result;\n"
     "}}\n"},
    {"power", Of::kUnsigned,
     "static inline {T} {name}({T} base, {T} exponent) {{\n"
     "  {W} result = 1, square = base;\n"
     "  for ({T} rest = exponent; rest != 0; rest >>= 1, square *= square) {{\n"
     "    if ((rest & 1) != 0) result *= square;\n"
     "  }}\n"
     "  return ({T})result;\n"
     "}}\n"},
    {"bits", Of::kWideReal,
     "static inline {U} {name}({T} x) {{\n"
     "  {U} bits;\n"
     "  memcpy(&bits, &x, sizeof(bits));\n"
     "  return bits;\n"
     "}}\n"},
    {"from_bits", Of::kWideReal,
     "static inline {T} {name}({U} bits) {{\n"
     "  {T} x;\n"
     "  memcpy(&x, &bits, sizeof(x));\n"
     "  return x;\n"
     "}}\n"},
    {"bits", Of::kFloat16,
     "/* To the nearest float16, ties to even: the exponent is rebiased by 15 - 127, 13 bits are rounded off; "
     "subnormal\n"
     " * ones are aligned by adding 0.5. */\n"
     "static inline uint16_t {name}(float x) {{\n"
     "  const uint32_t bits = hr_bits_f32(x), sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;\n"
     "  if (size > 0x7f800000u) return (uint16_t)(sign | 0x7e00u);\n"
     "  if (size >= 143u << 23) return (uint16_t)(sign | 0x7c00u);\n"
     "  if (size < 113u << 23) return (uint16_t)(sign | (hr_bits_f32(hr_from_bits_f32(size) + 0.5f) - (126u << 23)));\n"
     "  return (uint16_t)(sign | ((size - (112u << 23) + 0xfffu + (size >> 13 & 1u)) >> 13));\n"
     "}}\n"},
    {"from_bits", Of::kFloat16,
     "static inline float {name}(uint16_t bits) {{\n"
     "  const uint32_t sign = (uint32_t)(bits & 0x8000u) << 16, size = (uint32_t)(bits & 0x7fffu) << 13;\n"
     "  if (size >= 0x7c00u << 13) return hr_from_bits_f32(sign | size | 0x7f800000u);\n"
     "  return hr_from_bits_f32(sign | hr_bits_f32(hr_from_bits_f32(size) * 0x1p112f));\n"
     "}}\n"},
    {"bits", Of::kBfloat16,
     "/* To the nearest bfloat16, ties to even. */\n"
     "static inline uint16_t {name}(float x) {{\n"
     "  const uint32_t bits = hr_bits_f32(x);\n"
     "  if (x != x) return (uint16_t)((bits | 0x400000u) >> 16);\n"
     "  return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);\n"
     "}}\n"},
    {"from_bits", Of::kBfloat16,
     "static inline float {name}(uint16_t bits) {{ return hr_from_bits_f32((uint32_t)bits << 16); }}\n"},
    {"round", Of::kFloat16, "static inline float {name}(float x) {{ return hr_from_bits_f16(hr_bits_f16(x)); }}\n"},
    {"round", Of::kBfloat16, "static inline float {name}(float x) {{ return hr_from_bits_bf16(hr_bits_bf16(x)); }}\n"},
    {"fold", Of::kSigned,
     "/* To double, what it does not hold as one bit that it does: rounding that further gives what rounding once "
     "gives. */\n"
     "static inline double {name}({T} x) {{\n"
     "  if (x >= -0x20000000000000 && x <= 0x20000000000000) return (double)x;\n"
     "  return (double)((x & ~({T})0xfff) | ((x & 0xfff) != 0 ? 0x800 : 0));\n"
     "}}\n"},
    {"fold", Of::kUnsigned,
     "/* To double, what it does not hold as one bit that it does: rounding that further gives what rounding once "
     "gives. */\n"
     "static inline double {name}({T} x) {{\n"
     "  if (x <= 0x20000000000000u) return (double)x;\n"
     "  return (double)((x & ~({T})0xfff) | ((x & 0xfff) != 0 ? 0x800u : 0u));\n"
     "}}\n"},
    {"odd", Of::kFloat64,
     "/* To float, rounded to odd: rounding that once more to 16 bits gives what rounding the double gives. */\n"
     "static inline float {name}(double x) {{\n"
     "  const float nearest = (float)x;\n"
     "  if (x != x || (double)nearest == x) return nearest;\n"
     "  return hr_from_bits_f32((hr_bits_f32(nearest) - (fabs((double)nearest) > fabs(x))) | 1u);\n"
     "}}\n"},
};

constexpr std::string_view kFail =
    "static int32_t hr_fail(const hr_kernel_env* env, const char* message) {\n"
    "  if (env->message != NULL && env->message_size > 0) {\n"
    "    uint64_t size = strlen(message);\n"
    "    if (size > env->message_size - 1) size = env->message_size - 1;\n"
    "    memcpy(env->message, message, size);\n"
    "    env->message[size] = 0;\n"
    "  }\n"
    "  return 1;\n"
    "}\n";

constexpr std::string_view kPrefetch =
    "#ifdef __GNUC__\n"
    "#define HR_PREFETCH(place) __builtin_prefetch(place)\n"
    "#else\n"
    "#define HR_PREFETCH(place) ((void)(place))\n"
    "#endif\n";

bool fits(Of of, DataType dtype) {
  switch (of) {
    case Of::kSigned:
      return dtype.is_int();
    case Of::kUnsigned:
      return dtype.is_uint();
    case Of::kWhole:
      return dtype.is_int() || dtype.is_uint();
    case Of::kReal:
      return dtype.is_float();
    case Of::kWideReal:
      return dtype.is_float() && !is_c_half(dtype);
    case Of::kFloat64:
      return dtype.is_float() && dtype.bits() == 64;
    case Of::kFloat16:
      return is_c_half(dtype) && !dtype.is_bfloat16();
    case Of::kBfloat16:
      return dtype.is_bfloat16();
  }
  return false;
}

// Returns float32 for dtypes that share one function because they are computed in float; other dtypes stay.
DataType computed(DataType dtype, Of of) {
  return of == Of::kReal && is_c_half(dtype) ? DataType::float_(32) : dtype.element();
}

std::string helper_text(const Helper& helper, const std::string& name, DataType dtype) {
  const int bits = dtype.bits();
  return fmt::format(fmt::runtime(helper.text), fmt::arg("name", name), fmt::arg("T", c_type(dtype)),
                     fmt::arg("U", fmt::format("uint{}_t", bits)), fmt::arg("W", bits == 64 ? "uint64_t" : "uint32_t"),
                     fmt::arg("last", bits - 1), fmt::arg("f", c_suffix(dtype)));
}

}  // namespace

std::string CHelpers::use(std::string_view family, DataType dtype) {
  for (const Helper& helper : kHelpers) {
    if (helper.family != family || !fits(helper.of, dtype)) continue;
    const DataType type = computed(dtype, helper.of);
    const std::string name = fmt::format("hr_{}_{}", family, c_tag(type));
    if (names_.contains(name)) return name;
    if (is_c_half(type) || family == "odd") {
      for (const char* needed : {"bits", "from_bits"}) use(needed, DataType::float_(32));
    }
    if (family == "round") {
      for (const char* needed : {"bits", "from_bits"}) use(needed, type);
    }
    add(name, helper_text(helper, name, type));
    return name;
  }
  throw InternalError(fmt::format("no function of C is {} of {}", family, dtype));
}

std::string CHelpers::use_saturating(DataType from, DataType to) {
  const DataType real = computed(from, Of::kReal);
  const std::string name = fmt::format("hr_{}_of_{}", c_tag(to), c_tag(real)), type = c_type(to), f = c_suffix(real);
  const int64_t past = int64_t{1} << (to.is_narrow_int() ? to.bits() - (to.is_int() ? 1 : 0) : 0);
  const std::string limit = fmt::format("{}INT{}", to.is_int() ? "" : "U", to.bits());
  const std::string least = to.is_narrow_int() ? fmt::format("{}", -past) : limit + "_MIN";
  const std::string most = to.is_narrow_int() ? fmt::format("{}", past - 1) : limit + "_MAX";
  std::string text = fmt::format("static inline {} {}({} x) {{\n", type, name, c_type(real));
  if (to.is_int()) {
    text += fmt::format("  if (!(x >= -0x1p{}{})) return x != x ? 0 : {};\n", to.bits() - 1, f, least);
  } else {
    text += "  if (!(x > -1)) return 0;\n";
  }
  text += fmt::format("  return x < 0x1p{}{} ? ({})x : {};\n}}\n", to.bits() - (to.is_int() ? 1 : 0), f, type, most);
  add(name, text);
  return name;
}

std::string CHelpers::use_cut(DataType dtype) {
  const std::string name = fmt::format("hr_cut_{}", c_tag(dtype)), type = c_type(dtype);
  const uint32_t mask = (1u << dtype.bits()) - 1, half = (mask + 1) / 2;
  add(name, dtype.is_int()
                ? fmt::format("static inline {} {}(uint32_t x) {{\n"
                              "  return ({})((int32_t)((x & {}u) ^ {}u) - {});\n}}\n",
                              type, name, type, mask, half, half)
                : fmt::format("static inline {} {}(uint32_t x) {{ return ({})(x & {}u); }}\n", type, name, type, mask));
  return name;
}

std::string CHelpers::use_narrow_code(DataType dtype) {
  for (const char* needed : {"bits", "from_bits"}) use(needed, DataType::float_(32));
  const NarrowFloat row = narrow_float(dtype);
  const uint32_t shift = 23u - row.mantissa_bits;
  const std::string name = fmt::format("hr_code_{}", c_tag(dtype));
  std::string text = fmt::format(
      "/* To the nearest {}, ties to even, saturating; subnormal ones are aligned by adding a power of two. */\n"
      "static inline uint8_t {}(float x) {{\n"
      "  const uint32_t bits = hr_bits_f32(x), size = bits & 0x7fffffffu, sign = bits != size ? 0x{:x}u : 0u;\n"
      "  uint32_t code;\n"
      "  if (size > 0x7f800000u) return (uint8_t)(sign {} 0x{:x}u);\n",
      dtype.element(), name, row.sign, row.has_nan() ? "|" : "^", row.nan);
  text += fmt::format(
      "  if (size < 0x{:x}u) {{\n"
      "    code = hr_bits_f32(hr_from_bits_f32(size) + hr_from_bits_f32(0x{:x}u)) - 0x{:x}u;\n"
      "  }} else {{\n"
      "    code = (size - 0x{:x}u + 0x{:x}u + (size >> {} & 1u)) >> {};\n"
      "  }}\n",
      (128u - row.bias) << 23, (151u - row.bias - row.mantissa_bits) << 23, (151u - row.bias - row.mantissa_bits) << 23,
      (127u - row.bias) << 23, (1u << (shift - 1)) - 1, shift, shift);
  text += fmt::format("  if (code > 0x{:x}u) code = 0x{:x}u;\n  return (uint8_t)({}code | sign);\n}}\n", row.greatest,
                      row.greatest, row.is_unsigned_zero ? "code == 0 ? 0u : " : "");
  add(name, text);
  return name;
}

std::string CHelpers::use_narrow_value(DataType dtype) {
  for (const char* needed : {"bits", "from_bits"}) use(needed, DataType::float_(32));
  const NarrowFloat row = narrow_float(dtype);
  const std::string name = fmt::format("hr_value_{}", c_tag(dtype));
  std::string text = fmt::format(
      "static inline float {}(uint8_t code) {{\n"
      "  const uint32_t size = code & 0x{:x}u, sign = (uint32_t)(code & 0x{:x}u) << {};\n",
      name, row.sign - 1u, row.sign, row.sign == 0x80 ? 24 : 28);
  if (row.is_unsigned_zero) {
    text += fmt::format("  if (code == 0x{:x}u) return hr_from_bits_f32(sign | 0x7fc00000u);\n", row.nan);
  } else if (row.has_nan()) {
    text += fmt::format("  if (size > 0x{:x}u) return hr_from_bits_f32(sign | 0x7fc00000u);\n", row.last_number());
  }
  if (row.infinity != 0)
    text += fmt::format("  if (size == 0x{:x}u) return hr_from_bits_f32(sign | 0x7f800000u);\n", row.infinity);
  text += fmt::format(
      "  if (size < {}u) return hr_from_bits_f32(sign | hr_bits_f32((float)size * 0x1p{}f));\n"
      "  return hr_from_bits_f32(sign | ((size << {}) + 0x{:x}u));\n}}\n",
      1u << row.mantissa_bits, 1 - row.bias - row.mantissa_bits, 23 - row.mantissa_bits, (127u - row.bias) << 23);
  add(name, text);
  return name;
}

std::string CHelpers::use_fail() {
  add("hr_fail", std::string(kFail));
  return "hr_fail";
}

std::string CHelpers::use_prefetch() {
  add("HR_PREFETCH", std::string(kPrefetch));
  return "HR_PREFETCH";
}

void CHelpers::add(const std::string& name, const std::string& text) {
  if (names_.insert(name).second) text_ += text + "\n";
}

}  // namespace headrace::codegen
