"""Modules: formats, loaders of users, export with a compiler, functions of the process."""

import ctypes
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

np = pytest.importorskip("numpy")
hr = pytest.importorskip("headrace")
relay = hr.relay

DATA = np.arange(6, dtype="float32").reshape(2, 3)
WEIGHT = np.linspace(-1, 1, 12, dtype="float32").reshape(4, 3)
EXPECTED = np.tanh(DATA @ WEIGHT.T)
CC = next((name for name in ("gcc", "g++-12", "cc") if shutil.which(name)), None)
needs_cc = pytest.mark.skipif(CC is None, reason="no C compiler is here")


def build():
    x = relay.var("x", shape=(2, 3), dtype="float32")
    w = relay.var("w", shape=(4, 3), dtype="float32")
    mod = hr.IRModule.from_expr(relay.Function([x, w], relay.tanh(relay.nn.dense(x, w))))
    return relay.build(mod, target="llvm", params={"w": WEIGHT})


@pytest.fixture(scope="module")
def lib():
    return build()


def run(module):
    m = hr.graph_executor.GraphModule(module["default"](hr.cpu(0)))
    m.run(x=DATA)
    return m.get_output(0).numpy().copy()


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def check(module):
    np.testing.assert_allclose(run(module), EXPECTED, rtol=1e-5)


# ---- formats


@pytest.mark.parametrize("name", ["model.so", "model", "model.o"])
def test_written_and_read_back(lib, tmp_path, name):
    path = tmp_path / name
    assert lib.export_library(path) == str(path)
    check(hr.runtime.load_module(path))
    assert names_in(tmp_path) == [name]


def test_save_takes_the_format(lib, tmp_path):
    lib.save(tmp_path / "a", "o")
    assert (tmp_path / "a").read_bytes()[:4] == b"\x7fELF"
    check(hr.runtime.load_module(tmp_path / "a", "o"))
    lib.module.save(str(tmp_path / "a.ll"))
    assert " i32 @nn_dense_tanh_" in (tmp_path / "a.ll").read_text()
    assert lib.get_source("ll") == lib.get_source() == (tmp_path / "a.ll").read_text()
    assert ".globl" in lib.module.get_source("s")
    with pytest.raises(
        hr.UserError, match="there is no format 'cu'; a compiled module is saved as one of so, o, ll, s, asm, c"
    ):
        lib.module.save(str(tmp_path / "a.cu"))
    with pytest.raises(hr.UserError, match="there is no source in format 'cu'; there are ll, s, asm, c"):
        lib.get_source("cu")


@needs_cc
def test_kernels_as_c(lib, tmp_path):
    lib.save(tmp_path / "m.c")
    text = (tmp_path / "m.c").read_text()
    assert text == lib.get_source("c")
    lib.export_library(tmp_path / "again.c")
    assert (tmp_path / "again.c").read_text() == text
    symbol = re.search(r"^int32_t (nn_dense_tanh_\w+)\(", text, re.MULTILINE).group(1)
    command = [CC, "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "m.c", "-o", "m.so", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert hasattr(ctypes.CDLL(str(tmp_path / "m.so")), symbol)


def test_bytes(lib):
    data = lib.module.save_to_binary()
    assert isinstance(data, bytes)
    loaded = hr.runtime.load_binary(lib.module.type_key, data)
    check(loaded)
    assert loaded.save_to_binary() == data
    for bad in (b"", b"hello", data[:-1], data[:3000]):
        with pytest.raises(hr.UserError, match=r"the module's bytes|0 bytes"):
            hr.runtime.load_binary("graph_executor_factory", bad)
    with pytest.raises(hr.UserError, match=r"modules of the kind 'nobody'; there are .*graph_executor_factory"):
        hr.runtime.load_binary("nobody", data)
    with pytest.raises(hr.UserError, match="data: expected bytes, got str"):
        hr.runtime.load_binary("nobody", "text")


def test_bad_files(lib, tmp_path):
    lib.export_library(tmp_path / "good.o")
    lib.export_library(tmp_path / "good.so")
    good = (tmp_path / "good.o").read_bytes()
    for bad in (b"", b"x", good[:100], good[: len(good) // 2], (tmp_path / "good.so").read_bytes()):
        (tmp_path / "bad.o").write_bytes(bad)
        with pytest.raises(hr.UserError, match=r"bad.o"):
            hr.runtime.load_module(tmp_path / "bad.o")
        with pytest.raises(hr.UserError, match=r"good.o"):
            hr.runtime.load_module(tmp_path / "good.o", "so")
    for name, says in (("good.dat", "the format 'dat'; there are so, .*o"), ("none.o", "none.o"), ("none.so", "none")):
        with pytest.raises(hr.UserError, match=says):
            hr.runtime.load_module(tmp_path / name)
    with pytest.raises(hr.UserError, match="fmt: expected a str"):
        hr.runtime.load_module(tmp_path / "good.so", 3)


# ---- a compiler


@needs_cc
def test_a_compiler_by_name(lib, tmp_path):
    lib.export_library(tmp_path / "model.so", fcompile=CC)
    check(hr.runtime.load_module(tmp_path / "model.so"))
    assert hr.load(tmp_path / "model.so").inputs[0].shape == (2, 3)
    lib.export_library(tmp_path / "again.so", cc=CC, options=["-Wl,--build-id=none"])
    check(hr.runtime.load_module(tmp_path / "again.so"))
    # Relay's programs write fcompile=False for the compiler that is the default.
    lib.export_library(tmp_path / "third.so", fcompile=False, options=["-O1"])
    check(hr.runtime.load_module(tmp_path / "third.so"))
    assert names_in(tmp_path) == ["again.so", "model.so", "third.so"]


@needs_cc
def test_a_function_and_addons(lib, tmp_path):
    calls = []

    def link(output, objects, extra=None):
        calls.append((objects, extra))
        hr.cc.create_shared(output, objects, cc=CC)

    (tmp_path / "mine.c").write_text('__attribute__((visibility("default"))) int mine(void) { return 7; }\n')
    mine = tmp_path / "mine.o"
    subprocess.run([CC, "-fPIC", "-c", tmp_path / "mine.c", "-o", mine], check=True)
    path = tmp_path / "model.so"
    lib.export_library(path, fcompile=link, addons=[mine], workspace_dir=tmp_path, extra=3)
    ((objects, extra),) = calls
    assert (len(objects), objects[1], extra) == (2, str(mine), 3)
    assert Path(objects[0]).parent.parent == tmp_path
    assert not Path(objects[0]).exists()
    check(hr.runtime.load_module(path))
    assert ctypes.CDLL(str(path)).mine() == 7


@needs_cc
def test_linked_by_hand_and_sealed(lib, tmp_path):
    lib.save(tmp_path / "model.o")
    path = tmp_path / "model.so"
    subprocess.run([CC, "-shared", tmp_path / "model.o", "-o", path, "-lm"], check=True)
    with pytest.raises(hr.UserError, match="trailer"):
        hr.runtime.load_module(path)
    hr.runtime.seal_library(path, tmp_path / "sealed.so")
    check(hr.runtime.load_module(tmp_path / "sealed.so"))
    hr.runtime.seal_library(path)
    check(hr.runtime.load_module(path))
    (tmp_path / "not.so").write_bytes(b"hello")
    with pytest.raises(hr.UserError, match=r"not.so' is not an artifact"):
        hr.runtime.seal_library(tmp_path / "not.so")


@needs_cc
def test_a_compiler_that_fails_is_heard_and_leaves_nothing(lib, tmp_path):
    def nothing(output, objects):
        pass

    def text(output, objects):
        Path(output).write_text("hello")

    def fail(output, objects):
        raise ZeroDivisionError("mine")

    space = tmp_path / "space"
    space.mkdir()
    path = tmp_path / "model.so"
    for fcompile, options, says in (
        (CC, {"options": ["-Wl,--no-such-option"]}, "ended with .* and said: .*no-such-option"),
        ("no-such-compiler", {}, "'no-such-compiler' cannot be started: No such file"),
        (nothing, {}, "it returned and there is no file"),
        (text, {}, "is not an artifact of Headrace: it is not an ELF file"),
        (3, {}, "fcompile: expected a compiler's name or a function, got int"),
        (None, {"optoins": []}, "there is no argument optoins; without fcompile there are cc and options"),
    ):
        with pytest.raises(hr.UserError, match=says):
            lib.export_library(path, fcompile=fcompile, workspace_dir=space, **options)
        assert not path.exists()
        assert names_in(space) == []
    with pytest.raises(ZeroDivisionError, match="mine"):
        lib.export_library(path, fcompile=fail, workspace_dir=space)
    assert names_in(space) == []
    with pytest.raises(hr.UserError, match=r"ends in .so"):
        lib.export_library(tmp_path / "model.tar", fcompile=CC)
    with pytest.raises(hr.UserError, match=r"workspace_dir: '.*none' takes no files"):
        lib.export_library(path, fcompile=CC, workspace_dir=tmp_path / "none")
    with pytest.raises(hr.UserError, match="there is no format 'tar'"):
        lib.export_library(tmp_path / "model.tar")
    with pytest.raises(hr.UserError, match="file_name: expected a path"):
        lib.export_library(None)


def test_no_compiler_at_all(monkeypatch):
    monkeypatch.setenv("PATH", "/none")
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.delenv("CXX", raising=False)
    assert hr.cc.get_cc() is None
    with pytest.raises(hr.UserError, match="there is no C compiler here"):
        hr.cc.create_shared("a.so", [])
    monkeypatch.setenv("CC", "mycc")
    assert hr.cc.get_cc() == "mycc"


# ---- loaders of users


def counter(start):
    return hr.runtime.create_module("test_counter", {"next": lambda x: x + start}, str(start).encode())


@pytest.fixture(scope="module", autouse=True)
def loaders():
    hr.register_func("runtime.module.loadbinary_test_counter", lambda data: counter(int(data.decode())))
    hr.register_func("runtime.module.loadfile_count", lambda path, fmt: counter(int(Path(path).read_text())))
    hr.register_func("runtime.module.loadfile_test_none", lambda path, fmt: None)
    hr.register_func("runtime.module.loadfile_test_fails", lambda path, fmt: 1 // 0)
    hr.register_func("runtime.module.loadbinary_test_none", lambda data: 3)


def test_a_format_of_the_users(tmp_path):
    (tmp_path / "a.count").write_text("41")
    module = hr.runtime.load_module(tmp_path / "a.count")
    assert module["next"](1) == 42
    assert module.type_key == "test_counter"
    assert hr.runtime.load_module(tmp_path / "a.count", "count")["next"](2) == 43
    with pytest.raises(hr.UserError, match=r"'runtime.module.loadfile_test_none' gave no module"):
        hr.runtime.load_module("a.test_none")
    with pytest.raises(ZeroDivisionError):
        hr.runtime.load_module("a.test_fails")
    with pytest.raises(hr.UserError, match=r"there are so, .*count.*Say which it is"):
        hr.runtime.load_module("a.nobody")


def test_a_loader_that_loads_its_own_file(tmp_path):
    hr.register_func("runtime.module.loadfile_test_again", lambda path, fmt: hr.runtime.load_module(path))
    hr.register_func("runtime.module.loadbinary_test_again", lambda data: hr.runtime.load_binary("test_again", data))
    (tmp_path / "a.test_again").write_text("")
    for load in (
        lambda: hr.runtime.load_module(tmp_path / "a.test_again"),
        lambda: hr.runtime.load_binary("test_again", b"abc"),
    ):
        with pytest.raises(hr.UserError, match="asks for what it was called to load, which would never end"):
            load()


def test_users_modules_in_an_import_tree(tmp_path):
    lib = build()
    outer, inner = counter(10), counter(20)
    outer.import_module(inner)
    lib.module.import_module(outer)
    lib.module.import_module(hr.runtime.load_binary("graph_executor_factory", build().module.save_to_binary()))
    paths = [tmp_path / "a.so", tmp_path / "a.o"]
    if CC:
        lib.export_library(tmp_path / "c.so", fcompile=CC)
        paths.append(tmp_path / "c.so")
    for path in paths[:2]:
        lib.export_library(path)
    data = lib.module.save_to_binary()
    for loaded in [*map(hr.runtime.load_module, paths), hr.runtime.load_binary("graph_executor_factory", data)]:
        check(loaded)
        kept, nested = loaded.imported_modules
        assert [kept["next"](1), kept.imported_modules[0]["next"](1), loaded["next"](1)] == [11, 21, 11]
        check(nested)
    with pytest.raises(hr.UserError, match="does not have the modules that it imports now"):
        loaded.import_module(inner)
        loaded.save_to_binary()


def test_a_loaded_module_is_saved_again(lib, tmp_path):
    first = tmp_path / "first.so"
    lib.export_library(first)
    data = first.read_bytes()
    loaded = hr.runtime.load_module(first)
    in_memory = hr.runtime.load_binary("graph_executor_factory", data)
    loaded.save(str(tmp_path / "a.so"))
    loaded.save(str(tmp_path / "b.bin"), "so")
    loaded.save(str(tmp_path / "c.so.1"))
    loaded.export_library(tmp_path / "d")
    in_memory.export_library(tmp_path / "e.so")
    loaded.save(str(first))  # the file that this process has mapped
    names = ["a.so", "b.bin", "c.so.1", "d", "e.so", "first.so"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    for name in names:
        assert (tmp_path / name).read_bytes() == data
        assert os.access(tmp_path / name, os.X_OK)
        check(hr.runtime.load_module(tmp_path / name, "so"))
    check(loaded)
    for name, fmt in (("x.o", ""), ("x.c", ""), ("x.so", "ll")):
        with pytest.raises(hr.UserError, match=r"first\.so' was loaded, and is saved as \.so only; build the model"):
            loaded.save(str(tmp_path / name), fmt)
    for name in ("nowhere/x.so", "folder.so"):
        (tmp_path / "folder.so").mkdir(exist_ok=True)
        with pytest.raises(hr.UserError, match=rf"cannot write '.*{name}'"):
            loaded.save(str(tmp_path / name))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*names, "folder.so"])


def test_what_cannot_be_saved_or_loaded(tmp_path):
    lib = build()
    lib.module.import_module(hr.runtime.create_module("test_unsaved", {}))
    with pytest.raises(hr.UserError, match="kind 'test_unsaved' is not saved"):
        lib.export_library(tmp_path / "a.so")
    lib = build()
    lib.module.import_module(hr.runtime.create_module("test_unloaded", {}, b""))
    lib.export_library(tmp_path / "a.so")
    with pytest.raises(hr.MissingError, match=r"a module of the kind 'test_unloaded', .*register_func in Python"):
        hr.runtime.load_module(tmp_path / "a.so")
    lib = build()
    lib.module.import_module(hr.runtime.create_module("test_none", {}, b"ab"))
    lib.export_library(tmp_path / "b.so")
    with pytest.raises(hr.UserError, match="loadbinary_test_none' gave no module for the 2 bytes"):
        hr.runtime.load_module(tmp_path / "b.so")


def test_modules_of_functions():
    module = hr.runtime.create_module("test_kind", {"f": lambda: 1})
    assert module["f"]() == 1
    with pytest.raises(AttributeError, match="no function 'g'"):
        module["g"]
    for arguments, says in (
        (("k", {"f": 3}), "functions: expected a function for 'f', got int"),
        (("k", [len]), "functions: expected a dict"),
        (("k", {}, "text"), "binary: expected bytes, got str"),
        (("", {}), "a module's kind is empty"),
        (("graph_executor", {}), "a module's kind is 'graph_executor', which is that of a module that Headrace makes"),
        ((3, {}), "type_key: expected a str"),
    ):
        with pytest.raises(hr.UserError, match=says):
            hr.runtime.create_module(*arguments)


def test_what_headrace_loads_is_loaded_by_nobody_else():
    for name, says in (
        ("runtime.module.loadfile_so", "Headrace opens the format so itself"),
        ("runtime.module.loadbinary_graph_executor_factory", "modules of this kind are Headrace's own"),
    ):
        with pytest.raises(hr.UserError, match=f"'{name}' is not for registering: {says}"):
            hr.register_func(name, lambda *_: None, override=True)


# ---- functions of the process


def test_system_lib():
    path = os.environ.get("HEADRACE_SYSTEM_SYMBOLS")
    if not path:
        pytest.skip("HEADRACE_SYSTEM_SYMBOLS is not set: the library of tests/porting was not built")
    ctypes.CDLL(path)
    lib = hr.runtime.system_lib()
    assert lib["test_twice"](21) == 42
    assert hr.runtime.system_lib("test_")["sum"](np.array([1, 2, 4], np.float32)) == 7
    with pytest.raises(hr.UserError, match="twice: expected an int"):
        lib["test_twice"]("x")
    with pytest.raises(AttributeError, match="nobody"):
        lib["nobody"]
    with pytest.raises(hr.UserError, match="symbol_prefix: expected a str"):
        hr.runtime.system_lib(3)


def test_ported_library():
    path = os.environ.get("HEADRACE_PORTED")
    if not path:
        pytest.skip("HEADRACE_PORTED is not set: the library of tests/porting was not built")
    ctypes.CDLL(path)
    pair = hr.get_global_func("mine.Pair")(3, 4)
    assert (pair.first, pair.second) == (3, 4)
    assert hr.get_global_func("mine.sum")(pair) == 7
    assert hr.get_global_func("mine.describe")(5, "apples") == "5 apples of 2"
    with pytest.raises(hr.UserError, match="argument 0"):
        hr.get_global_func("mine.sum")(3)
