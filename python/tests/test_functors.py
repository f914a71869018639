"""Visitors and mutators of expressions and of types, of programs that nest deep too."""

import sys

import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from headrace import relay  # noqa: E402
from size_kit import IS_FEW  # noqa: E402


class Counter(relay.ExprVisitor):
    def __init__(self):
        super().__init__()
        self.calls = 0
        self.ops = set()

    def visit_call(self, call):
        self.calls += 1
        super().visit_call(call)

    def visit_op(self, op):
        self.ops.add(op.name)


class AddToSubtract(relay.ExprMutator):
    def visit_call(self, call):
        call = super().visit_call(call)
        if call.op == relay.op.get("add"):
            return relay.subtract(*call.args)
        return call


def test_visitors_and_mutators():
    x = relay.var("x", shape=(2,))
    shared = relay.add(x, x)
    f = relay.Function([x], relay.multiply(shared, shared))
    counter = Counter()
    counter.visit(f)
    assert counter.calls == 2
    changed = AddToSubtract().visit(f)
    assert changed.body.args[0].op.name == "subtract"
    assert changed.body.args[0].same_as(changed.body.args[1])
    assert relay.ExprMutator().visit(f).same_as(f)


def test_a_mutator_keeps_the_effects_of_other_fields():
    class OneToSeven(relay.ExprMutator):
        def visit_constant(self, constant):
            return relay.const(7.0) if constant.data.numpy() == 1 else constant

    r = relay.var("r")
    field = relay.TupleGetItem(relay.Tuple([relay.RefWrite(r, relay.const(2.0)), relay.const(1.0)]), 1)
    body = relay.Let(r, relay.RefCreate(relay.const(0.0)), relay.Tuple([field, relay.RefRead(r)]))
    changed = OneToSeven().visit(relay.Function([], body))
    assert [x.numpy() for x in relay.create_executor().evaluate(changed)()] == [7, 2]


@pytest.mark.parametrize("depth", [10_000])
def test_visitors_of_deep_programs(depth):
    x = relay.var("x", shape=(2,))
    chain = x
    for _ in range(depth):
        chain = relay.add(chain, x)
    counter = Counter()
    counter.visit(chain)
    assert counter.calls == depth
    assert AddToSubtract().visit(chain).args[0].op.name == "subtract"
    body = x
    for i in range(1000):
        body = relay.Let(relay.var(f"v{i}", shape=(2,)), x, body)
    assert relay.ExprMutator().visit(body).same_as(body)


def nested(kind, depth):
    """Functions, branches or matches within each other, with a call of relu in each, and the innermost variable."""
    x = relay.var("x", shape=(2,))
    body = relay.nn.relu(x)
    cond = relay.var("c", shape=(), dtype="bool")
    for _ in range(depth):
        if kind == "function":
            body = relay.nn.relu(relay.Call(relay.Function([], body), []))
        elif kind == "branch":
            body = relay.nn.relu(relay.If(cond, body, x))
        else:
            body = relay.nn.relu(relay.Match(body, [relay.Clause(relay.PatternWildcard(), x)]))
    return body


@pytest.mark.parametrize(
    ("kind", "depth"), [("function", 1000 if IS_FEW else 10_000), ("branch", 2000), ("match", 2000)]
)
def test_visitors_of_what_nests_deep(kind, depth):
    program = nested(kind, depth)
    counter = Counter()
    counter.visit(program)
    inner = depth if kind == "function" else 0
    assert counter.calls == depth + 1 + inner
    assert counter.ops == {"nn.relu"}
    assert relay.ExprMutator().visit(program).same_as(program)

    class ReluToTanh(relay.ExprMutator):
        def visit_call(self, call):
            call = super().visit_call(call)
            return relay.tanh(*call.args) if call.op == relay.op.get("nn.relu") else call

    counter = Counter()
    counter.visit(ReluToTanh().visit(program))
    assert counter.calls == depth + 1 + inner
    assert counter.ops == {"tanh"}


def test_visitors_that_override_what_nests():
    class Scopes(relay.ExprVisitor):
        """Which function each variable is in: what is inside must be visited within the function."""

        def __init__(self):
            super().__init__()
            self.open, self.deepest = 0, 0

        def visit_function(self, fn):
            self.open += 1
            super().visit_function(fn)
            self.open -= 1

        def visit_var(self, var):
            self.deepest = max(self.deepest, self.open)

    scopes = Scopes()
    scopes.visit(nested("function", 100))
    assert scopes.deepest == 100
    limit = sys.getrecursionlimit()
    program = nested("function", 2000)
    scopes = Scopes()
    with pytest.raises(hr.UserError, match=f"Scopes: the program nests past Python's recursion limit of {limit} calls"):
        scopes.visit(program)
    try:
        sys.setrecursionlimit(20_000)
        scopes = Scopes()
        scopes.visit(program)
    finally:
        sys.setrecursionlimit(limit)
    assert scopes.deepest == 2000


def test_visitors_keep_their_order_where_it_is_deep():
    class Names(relay.ExprVisitor):
        def __init__(self):
            super().__init__()
            self.names = []

        def visit_var(self, var):
            self.names.append(var.name_hint)

    def program(depth):
        x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
        data = relay.var("data", shape=(2,))
        clauses = [relay.Clause(relay.PatternVar(relay.var("unused")), x), relay.Clause(relay.PatternWildcard(), y)]
        body = relay.Let(relay.var("v", shape=(2,)), relay.Match(data, clauses), y)
        for _ in range(depth):
            body = relay.Call(relay.Function([], body), [])
        return body

    seen = []
    for depth in (0, 400):
        names = Names()
        names.visit(program(depth))
        seen.append(names.names)
    assert seen == [["v", "data", "x", "y"]] * 2


def test_type_functors():
    class Widen(relay.TypeMutator):
        def visit_tensor_type(self, tt):
            return tt.copy_with(dtype="float64")

    t = relay.TensorType((2,))
    typ = relay.FuncType([relay.TupleType([t, t])], t)
    wide = Widen().visit(typ)
    assert wide.ret_type.dtype == "float64"
    assert wide.arg_types[0].fields[1].dtype == "float64"
    assert relay.TypeMutator().visit(typ).same_as(typ)


F32 = relay.TensorType((2,))
NESTS = {
    "tuple": lambda inner: relay.TupleType([F32, inner]),
    "argument": lambda inner: relay.FuncType([inner], F32),
    "result": lambda inner: relay.FuncType([], inner),
    "reference": relay.RefType,
    "call": lambda inner: relay.TypeCall(relay.GlobalTypeVar("List"), [inner]),
}


def nested_type(kind, depth, innermost=F32):
    typ = innermost
    for _ in range(depth):
        typ = NESTS[kind](typ)
    return typ


class Leaves(relay.TypeVisitor):
    """The dtypes of all tensors, in order."""

    def __init__(self):
        self.dtypes = []

    def visit_tensor_type(self, tt):
        self.dtypes.append(tt.dtype)


class Widen(relay.TypeMutator):
    def visit_tensor_type(self, tt):
        return tt.copy_with(dtype="float64")


@pytest.mark.parametrize("kind", NESTS)
def test_type_functors_of_what_nests_deep(kind):
    typ = nested_type(kind, 3000, relay.TensorType((2,), "int8"))
    leaves, wide = Leaves(), Leaves()
    leaves.visit(typ)
    outer = {"tuple": 3000, "argument": 3000}.get(kind, 0)
    assert sorted(leaves.dtypes) == ["float32"] * outer + ["int8"]
    wide.visit(Widen().visit(typ))
    assert wide.dtypes == ["float64"] * (outer + 1)
    assert relay.TypeMutator().visit(typ).same_as(typ)


def test_type_functors_keep_their_order_where_types_nest_deep():
    def leaves_of(typ):
        leaves = Leaves()
        leaves.visit(typ)
        return leaves.dtypes

    one, two = relay.TensorType((1,), "int8"), relay.TensorType((1,), "int16")
    inner = relay.TupleType([one, relay.FuncType([two, two], relay.RefType(one)), one])
    # In two places: a leaf counts once for each.
    shared = relay.TupleType([inner, relay.RefType(inner)])
    expected = ["int8", "int16", "int16", "int8", "int8"] * 2
    assert leaves_of(shared) == expected
    assert leaves_of(nested_type("reference", 400, shared)) == expected


@pytest.mark.parametrize("kind", ["tuple", "reference", "call"])
def test_a_type_functor_that_overrides_what_nests(kind):
    class Depths(relay.TypeVisitor):
        count = 0

        def visit_tuple_type(self, tup):
            self.count += 1
            super().visit_tuple_type(tup)

        def visit_ref_type(self, ref):
            self.count += 1
            super().visit_ref_type(ref)

        def visit_type_call(self, call):
            self.count += 1
            super().visit_type_call(call)

    depths = Depths()
    depths.visit(nested_type(kind, 3000))
    assert depths.count == 3000


def test_a_type_functor_that_overrides_function_types():
    class Scopes(relay.TypeVisitor):
        """Tracks how deep function types are nested: `open` counts those being visited, `deepest` is its maximum."""

        open = deepest = 0

        def visit_func_type(self, func):
            self.open += 1
            super().visit_func_type(func)
            self.open -= 1

        def visit_tensor_type(self, tt):
            self.deepest = max(self.deepest, self.open)

    scopes = Scopes()
    scopes.visit(nested_type("result", 100))
    assert scopes.deepest == 100
    limit = sys.getrecursionlimit()
    told = f"Scopes: the type nests past Python's recursion limit of {limit} calls in function types"
    with pytest.raises(hr.UserError, match=told):
        Scopes().visit(nested_type("result", 3000))


@pytest.mark.parametrize("kind", NESTS)
def test_questions_about_types_that_nest_deep(kind):
    a, b = relay.TypeVar("a"), relay.TypeVar("b")
    typ = nested_type(kind, 3000, relay.FuncType([a], relay.TupleType([b, relay.TensorType((1,), "int8")]), [a]))
    assert relay.analysis.all_type_vars(typ) == [a, b]
    assert relay.analysis.bound_type_vars(typ) == [a]
    assert relay.analysis.free_type_vars(typ) == [b]
    x = relay.Var("x", typ)
    assert relay.analysis.free_type_vars(relay.Function([x], x)) == [b]
    assert "int8" in relay.analysis.all_dtypes(relay.Function([x], x))
    with pytest.raises(hr.UserError, match="nests deeper than 200"):
        relay.analysis.check_kind(typ)
