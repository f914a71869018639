// A property of random programs whose nodes are shared, with references: no pass moves an effect, nor what sees one.
// Operands stand where passes drop them, double them, or put lets around them.
#include "passes/simplify/legalize.h"
#include "passes/tests/random_programs.h"

namespace headrace::passes {
namespace {

// Every value is an int32, and any other order of effects gives another number.
constexpr const char* kHelpers = R"(
def @tick(%r: ref(int32)) -> int32 {
  let %v = ref_read(%r);
  let %u = ref_write(%r, add(multiply(%v, 3), 1));
  %v
}
def @first(%a: int32, %b: int32, Inline=1) -> int32 { %a }
def @second(%a: int32, %b: int32, Inline=1) -> int32 { %b }
def @twice(%a: int32, Inline=1) -> int32 { subtract(multiply(%a, 5), negative(%a)) }
def @later(%a: int32, Inline=1) -> int32 { let %f = fn () -> int32 { %a }; %f() }
)";

struct EffectProgram {
  uint64_t seed = 0;
  int size = 0;  // how many expressions it makes, about
};

class EffectText {
 public:
  explicit EffectText(const EffectProgram& program) : random_(program.seed), left_(program.size) {}

  std::string run() {
    Block main;
    main.values = {"%x"};
    main.refs = {"%r"};
    main.text = "  let %r = ref(%x);\n";
    std::vector<std::string> results;
    for (int i = 0; i < 3; ++i) results.push_back(value(main));
    return fmt::format("{}def @main(%x: int32) {{\n{}  ({}, ref_read(%r))\n}}\n", kHelpers, main.text,
                       fmt::join(results, ", "));
  }

 private:
  // The statements before a block's result, and the names in scope there.
  struct Block {
    std::string text;
    std::vector<std::string> values, refs, functions;
  };

  std::string new_name(const char* prefix) { return fmt::format("%{}{}", prefix, num_names_++); }

  const std::string& pick(const std::vector<std::string>& names) {
    const size_t recent = std::min<size_t>(names.size(), 6);
    return names[names.size() - 1 - random_.index(recent)];
  }

  // Statements inside of braces see those around them.
  std::string braces(const Block& outer, const std::vector<std::string>& params = {}) {
    Block inner = outer;
    inner.text.clear();
    inner.values.insert(inner.values.end(), params.begin(), params.end());
    const std::string result = value(inner);
    return fmt::format("{{ {} {} }}", inner.text, result);
  }

  std::string value(Block& block) {
    if (--left_ <= 0 || random_.chance(0.3F)) return pick(block.values);
    if (random_.chance(0.25F)) statement(block);
    const std::string made = operation(block);
    if (random_.chance(0.3F)) return made;
    return named(block, made, random_.chance(0.3F));
  }

  // A node by its number may be used any number of times, as a let's variable may.
  std::string named(Block& block, const std::string& made, bool by_let) {
    const std::string name = by_let ? new_name("v") : fmt::format("%{}", num_nodes_++);
    block.text += fmt::format("  {}{} = {};\n", by_let ? "let " : "", name, made);
    block.values.push_back(name);
    return name;
  }

  void statement(Block& block) {
    switch (random_.integer(0, 3)) {
      case 0:
      case 1: {
        const std::string write = filled("ref_write($r, $a)", block);
        block.text += fmt::format("  let {} = {};\n", new_name("u"), write);
        break;
      }
      case 2: {
        const std::string content = value(block), name = new_name("r");
        block.text += fmt::format("  let {} = ref({});\n", name, content);
        block.refs.push_back(name);
        break;
      }
      default: {
        const std::string param = new_name("p"), body = braces(block, {param}), name = new_name("f");
        block.text += fmt::format("  let {} = fn ({}: int32) -> int32 {};\n", name, param, body);
        block.functions.push_back(name);
      }
    }
  }

  std::string operation(Block& block) {
    switch (random_.integer(0, 7)) {
      case 0:
      case 1:
        return sees_effects(block);
      case 2:
      case 3:
        return in_braces(block);
      case 4:
        return called(block);
      case 5:
        return over_floats(block);
      default:
        return of_operands(block);
    }
  }

  std::string sees_effects(Block& block) {
    static constexpr const char* kForms[] = {"@tick($r)", "(ref_write($r, $a), $b).1", "ref_read($r)"};
    return filled(kForms[std::min<size_t>(random_.index(5), 2)], block);
  }

  std::string in_braces(Block& block) {
    switch (random_.integer(0, 3)) {
      case 0: {
        static constexpr const char* kConditions[] = {"less($a, $b)", "less($a, $b)", "True", "False"};
        const std::string condition = filled(kConditions[random_.index(4)], block);
        const std::string yes = braces(block), no = braces(block);
        return fmt::format("if ({}) {} else {}", condition, yes, no);
      }
      case 1: {
        const std::string data = filled("($a, $b)", block), a = new_name("a"), b = new_name("b");
        return fmt::format("match ({}) {{ ({}, {}) => {} }}", data, a, b, braces(block, {a, b}));
      }
      case 2: {
        Block inner = block;
        inner.text.clear();
        statement(inner);
        const std::string result = value(inner);
        return fmt::format("{{ {} {} }}", inner.text, result);
      }
      default: {
        const std::string dead = value(block);
        return fmt::format("{{ let {} = {}; {} }}", new_name("d"), dead, value(block));
      }
    }
  }

  std::string called(Block& block) {
    static constexpr const char* kForms[] = {"@first($a, $b)", "@second($a, $b)", "@twice($a)", "@later($a)"};
    const size_t form = random_.index(6);
    if (form < std::size(kForms)) return filled(kForms[form], block);
    if (form == 4 && !block.functions.empty()) return filled(pick(block.functions) + "($a)", block);
    const std::string a = new_name("a"), b = new_name("b"), body = braces(block, {a, b});
    return filled(fmt::format("(fn ({}: int32, {}: int32) -> int32 {})($a, $b)", a, b, body), block);
  }

  // Makes an operation of one operand or of two, `$a` and `$b`; some forms use only a part of their values.
  std::string of_operands(Block& block) {
    static constexpr const char* kForms[] = {
        "add($a, $b)",
        "subtract($a, $b)",
        "maximum($a, $b)",
        "negative($a)",
        "multiply($a, 0)",
        "multiply($a, 1)",
        "subtract($a, $a)",
        "where(True, $a, $b)",
        "where(less($a, $b), $b, $a)",
        "zeros_like($a)",
        "ones_like($a)",
        "full_like($a, $b)",
        "broadcast_to_like($a, $b)",
        "reshape_like($a, $b)",
        "cast(ndarray_size($a), dtype=\"int32\")",
        "cast($a, dtype=\"int32\")",
        "($a, $b).0",
        "($a, $b).1",
        "ref_read(ref($a))",
        "max(concatenate((full($a, shape=[1], dtype=\"int32\"), full($b, shape=[1], dtype=\"int32\"))))",
        "max(split(full($a, shape=[2], dtype=\"int32\"), indices_or_sections=1).0)",
        ("max(reshape(full($a, shape=[4], dtype=\"int32\"), (cast($b, dtype=\"int64\"), const(Tensor[(2), int64], [2, "
         "2])).1))")};
    return filled(kForms[random_.index(std::size(kForms))], block);
  }

  // Small enough to be exact.
  std::string over_floats(Block& block) {
    static constexpr const char* kForms[] = {
        ("max(nn.batch_norm(full($a, shape=[1, 2]), full($b, shape=[2]), full($c, shape=[2]), full(0f, shape=[2]), "
         "full(1f, shape=[2]), scale=False, epsilon=0f).0)"),
        "max(nn.layer_norm(full(0f, shape=[1, 2]), full($a, shape=[2]), full($b, shape=[2]), scale=False))",
        "max(nn.dropout(full($a, shape=[2])).0)", "max(nn.bias_add(full($a, shape=[1, 2]), full($b, shape=[2])))",
        "divide($a, 2f)"};
    static constexpr const char* kSmall = "cast(bitwise_and({}, 63), dtype=\"float32\")";
    if (random_.chance(0.7F)) return to_int(filled(kForms[random_.index(std::size(kForms))], block, kSmall));
    const std::string data = named(block, filled("full($a, shape=[1, 1])", block, kSmall), false);
    block.values.pop_back();  // no int32
    const auto product = [&](const char* operand) {
      return fmt::format("nn.dense({}, full({}, shape=[1, 1]))", data, operand);
    };
    return to_int(
        filled(fmt::format("max(add(add({}, {}), {}))", product("$a"), product("$b"), product("$c")), block, kSmall));
  }

  static std::string to_int(const std::string& value) { return "cast(" + value + ", dtype=\"int32\")"; }

  // `form` with values for $a, $b and $c, each put into `around`, and with a reference for $r.
  std::string filled(std::string form, Block& block, const char* around = "{}") {
    for (const char* name : {"$r", "$a", "$b", "$c"}) {
      const size_t first = form.find(name);
      if (first == std::string::npos) continue;
      std::string operand = name[1] == 'r' ? pick(block.refs) : value(block);
      const bool is_shared = form.find(name, first + 1) != std::string::npos;
      if (is_shared && operand[0] != '%') operand = named(block, operand, false);
      operand = fmt::format(fmt::runtime(around), operand);
      for (size_t at; (at = form.find(name)) != std::string::npos;) form.replace(at, 2, operand);
    }
    return form;
  }

  kit::Random random_;
  int left_;
  int num_names_ = 0, num_nodes_ = 0;
};

std::vector<int64_t> numbers_of(const IRModule& module) {
  std::vector<int64_t> numbers;
  for (const int x : {0, 5}) {
    for (const NDArray& result : interp::run_main(module, {NDArray::from_vector<int32_t>({}, DataType::int_(32), {x})}))
      numbers.push_back(static_cast<int64_t>(element_as_double(result.tensor(), 0)));
  }
  return numbers;
}

// `maximum` takes its operands twice, `subtract` the other way round, for as long as this lives.
class EffectRules {
 public:
  EffectRules() {
    ops::register_all_ops();
    set_legalize(get_op("maximum"), [](const relay::CallNode& call, const Array<Type>&) -> Expr {
      const auto &a = call.args[0], &b = call.args[1];
      return relay::make_call("where", {relay::make_call("less", {a, b}), b, a});
    });
    set_legalize(get_op("subtract"), [](const relay::CallNode& call, const Array<Type>&) -> Expr {
      return relay::make_call("add", {relay::make_call("negative", {call.args[1]}), call.args[0]});
    });
  }
  ~EffectRules() {
    clear_legalize(get_op("maximum"));
    clear_legalize(get_op("subtract"));
  }
  EffectRules(const EffectRules&) = delete;
};

std::optional<std::string> moved_effect(const EffectProgram& program) {
  const IRModule before = read(EffectText(program).run());
  const std::vector<int64_t> wanted = numbers_of(before);
  IRModule module = before;
  for (const auto& list : {by_name(), canonical(), native({})}) {
    for (const pass::Pass& pass : list) {
      // FirstOrderGradient changes the result and refuses references; ToMixedPrecision rounds.
      if (pass.info.name == "FirstOrderGradient" || pass.info.name == "ToMixedPrecision") continue;
      const IRModule after = run_pass(pass.info.name, module);
      const std::vector<int64_t> got = numbers_of(after);
      if (got != wanted)
        return fmt::format("{}: {} became {}\nof {}\nafter:\n{}", pass.info.name, fmt::join(wanted, " "),
                           fmt::join(got, " "), relay::print_module(module), relay::print_module(after));
      // Half of the programs meet each pass as the ones before it left them.
      if (program.seed % 2 == 0) module = after;
    }
  }
  return std::nullopt;
}

TEST(RandomEffects, NoPassMovesAnEffect) {
  const EffectRules rules;
  kit::Property<EffectProgram> property;
  property.runs_ci = 60;
  property.runs_full = 20000;
  property.generate = [](kit::Random& random) {
    return EffectProgram{random.next(), static_cast<int>(random.integer(3, 40))};
  };
  property.shrink = [](const EffectProgram& p) {
    std::vector<EffectProgram> smaller;
    for (const int size : {p.size / 2, p.size - 2, p.size - 1}) {
      if (size > 0 && size < p.size) smaller.push_back({p.seed, size});
    }
    return smaller;
  };
  property.show = [](const EffectProgram& p) { return EffectText(p).run(); };
  property.check = moved_effect;
  EXPECT_TRUE(kit::holds(property));
}

}  // namespace
}  // namespace headrace::passes
