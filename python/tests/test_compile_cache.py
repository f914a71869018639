"""The cache of compiled models: what hits, what does not, and that nothing gives a wrong result."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from headrace import _compile_cache, _core, cache, relay  # noqa: E402

DIGITS = Path(__file__).parents[2] / "models" / "digits.onnx"
SHAPES = {"x": (2, 1, 8, 8)}
TEXT = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), float32]) {{ add(%x, {0}f) }}\n'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.delenv("HEADRACE_CACHE", raising=False)
    # This process may have registered ops for other tests, and caches nothing then.
    monkeypatch.delitem(sys.modules, "headrace.relay._op_registration", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def compiles(monkeypatch):
    """The files that the compiler wrote ("" for memory), one for each compile."""
    done = []
    real = _core.compile

    def counted(path, **arguments):
        done.append(arguments.get("output") or "")
        return real(path, **arguments)

    monkeypatch.setattr(_core, "compile", counted)
    return done


def plus(tmp_path, number):
    path = tmp_path / "m.relay"
    path.write_text(TEXT.format(number))
    return path


def run(path, folder, **options):
    return hr.compile(path, cache=folder, **options)(np.zeros(2, np.float32)).numpy().tolist()


def entries(folder):
    return sorted(path.name for path in folder.glob("*.so"))


def test_a_second_compile_loads_the_first_ones_result(folder, compiles, images):
    results = [hr.compile(DIGITS, shapes=SHAPES, cache=folder)(images[:2]).numpy() for _ in range(3)]
    assert len(compiles) == 1
    plain = hr.compile(DIGITS, shapes=SHAPES)
    for result in results:
        np.testing.assert_array_equal(result, plain(images[:2]).numpy())
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()] == [0o600] * len(list(folder.iterdir()))
    cached = hr.compile(DIGITS, shapes=SHAPES, cache=folder)
    assert (cached.path, cached.threads, repr(cached)) == (None, plain.threads, repr(plain))


def test_bytes_and_their_file_are_one_model(folder, compiles):
    hr.compile(DIGITS, shapes=SHAPES, cache=folder)
    hr.compile(DIGITS.read_bytes(), shapes=SHAPES, cache=folder)
    assert len(compiles) == 1


def test_a_session_takes_a_cache(folder, compiles, images):
    for _ in range(2):
        session = hr.InferenceSession(DIGITS, cache=folder)
        assert session.run(None, {"x": images[:2]})[0].shape == (2, 10)
    assert len(compiles) == 1


def test_another_process_compiles_nothing(folder, images):
    script = """
import sys
import numpy as np
import headrace as hr
from headrace import _core

def refuse(*given, **named):
    raise AssertionError("a compile")

if sys.argv[3] == "second":
    _core.compile = refuse
f = hr.compile(sys.argv[1], shapes={"x": (2, 1, 8, 8)})
np.save(sys.argv[2], f(np.load(sys.argv[4])[:2]).numpy())
"""
    data = DIGITS.with_name("digits_images.npy")
    results = []
    for turn in ("first", "second"):
        out = folder.with_name(f"{turn}.npy")
        subprocess.run(
            [sys.executable, "-c", script, DIGITS, out, turn, data],
            env={**os.environ, "HEADRACE_CACHE": str(folder)},
            check=True,
        )
        results.append(np.load(out))
    np.testing.assert_array_equal(*results)


def scaled(number, dtype="float32", **attrs):
    """A module that adds a constant of 1024 elements, the last of which is the number."""
    elements = np.zeros(1024, dtype)
    elements[-1] = number
    x = relay.var("x", shape=(1024,), dtype=dtype)
    function = relay.Function([x], x + relay.const(elements, dtype))
    for name, value in attrs.items():
        function = function.with_attr(name, value)
    return hr.IRModule.from_expr(function)


def last_of(module, folder, **options):
    f = hr.compile(module, cache=folder, **options)
    return float(f(np.zeros(1024, "float32")).numpy()[-1])


def test_a_module_is_kept_by_its_content(folder, compiles):
    for number in (1, 2, 1, 2):
        assert last_of(scaled(number), folder) == number
    assert len(compiles) == len(entries(folder)) == 2
    assert last_of(hr.ir.load_json(hr.ir.save_json(scaled(1))), folder) == 1
    assert len(compiles) == 2
    f = hr.compile(scaled(1, "int32"), cache=folder)
    assert f(np.zeros(1024, np.int32)).numpy()[-1] == 1
    assert len(compiles) == 3


def test_constants_of_narrow_floats_are_part_of_the_key(folder, compiles):
    for number in (1.0, 2.0, 1.0):
        x = relay.var("x", shape=(2,))
        module = hr.IRModule.from_expr(relay.Function([x], x + relay.cast(relay.const(number, "bfloat16"), "float32")))
        f = hr.compile(module, cache=folder)
        assert f(np.zeros(2, np.float32)).numpy().tolist() == [number] * 2
    assert len(compiles) == 2


@pytest.mark.parametrize("options", [{"opt_level": 0}, {"threads": 1}, {"cpu": "x86-64-v3"}], ids=str)
def test_options_are_part_of_a_modules_key(folder, compiles, options):
    for more in ({}, options, {}, options):
        last_of(scaled(1), folder, **more)
    assert len(compiles) == len(entries(folder)) == 2


def test_another_process_compiles_no_module(folder):
    script = """
import sys
import numpy as np
import headrace as hr
from headrace import _core, relay

def refuse(*given, **named):
    raise AssertionError("a compile")

if sys.argv[2] == "second":
    _core.compile = refuse
elements = np.arange(6, dtype="float32").reshape(2, 3)
elements[1, 2] = float(sys.argv[1])
x = relay.var("x", shape=(2, 3))
y = relay.nn.relu(relay.add(x, relay.const(elements)))
f = hr.compile(hr.IRModule.from_expr(relay.Function([x], y)))
print(f(np.ones((2, 3), "float32")).numpy().sum())
"""

    def runs(*arguments):
        command = [sys.executable, "-c", script, *arguments]
        environment = {**os.environ, "HEADRACE_CACHE": str(folder)}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    first, second = runs("5", "first"), runs("5", "second")
    assert (first.returncode, second.returncode, second.stderr) == (0, 0, "")
    assert first.stdout == second.stdout == "21.0\n"  # 0 + 1 + 2 + 3 + 4 + 5, and 1 for each element
    assert len(entries(folder)) == 1
    changed = runs("6", "second")
    assert changed.returncode == 1
    assert "AssertionError: a compile" in changed.stderr
    assert runs("6", "first").stdout == "22.0\n"


@pytest.mark.backends("ccompiler")
def test_modules_of_other_compilers_are_not_kept(folder, compiles):
    text = '#[version = "0.0.5"]\ndef @f(%a: Tensor[(2), float32], Compiler="ccompiler", Primitive=1) { exp(%a) }\n'
    module = relay.fromtext(text + "def @main(%x: Tensor[(2), float32]) { @f(%x) }\n")
    assert hr.compile(module, cache=folder)(np.zeros(2, np.float32)).numpy().tolist() == [1, 1]
    assert compiles == [""]


def test_modules_that_are_not_kept(folder, monkeypatch):
    monkeypatch.setattr(_compile_cache, "_MOST_BYTES_OF_A_MODEL", 4095)
    assert last_of(scaled(1), folder) == 1
    monkeypatch.setattr(_compile_cache, "_MOST_BYTES_OF_A_MODEL", 4096)
    monkeypatch.setitem(sys.modules, "headrace.relay._op_registration", object())
    assert last_of(scaled(1), folder) == 1
    assert entries(folder) == []


def test_a_module_with_a_function_of_python_is_not_kept(folder, compiles):
    hr.compile(scaled(1, hint=hr.convert(lambda: 3)), cache=folder)
    assert entries(folder) == []
    assert compiles == [""]


def test_processes_share_a_folder(folder):
    script = """
import sys
import numpy as np
import headrace as hr
f = hr.compile(sys.argv[1], shapes={"x": (1, 1, 8, 8)}, cache=sys.argv[2])
print(int(f(np.load(sys.argv[3])[:1]).numpy().argmax()))
"""
    data = DIGITS.with_name("digits_images.npy")
    command = [sys.executable, "-c", script, DIGITS, folder, data]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(8)]
    label = int(np.load(DIGITS.with_name("digits_labels.npy"))[0])
    assert [int(process.communicate(timeout=100)[0]) for process in running] == [label] * 8
    assert len(entries(folder)) == 1
    assert list(folder.glob("headrace-part-*")) == []


@pytest.mark.parametrize(
    "options",
    [
        {"opt_level": 0},
        {"threads": 1},
        {"disabled_passes": ["FoldConstant"]},
        {"cpu": "x86-64-v3"},
        {"target": "llvm -mcpu=x86-64-v3"},
        {"features": "-avx512f"},
    ],
    ids=lambda options: next(iter(options)),
)
def test_options_are_part_of_the_key(folder, compiles, tmp_path, options):
    path = plus(tmp_path, 1)
    hr.compile(path, cache=folder)
    hr.compile(path, cache=folder, **options)
    assert len(compiles) == len(entries(folder)) == 2


def test_values_of_bound_inputs_are_part_of_the_key(folder, tmp_path):
    onnx = pytest.importorskip("onnx")
    ports = [onnx.helper.make_tensor_value_info(name, 1, [2]) for name in "xwy"]
    graph = onnx.helper.make_graph([onnx.helper.make_node("Add", ["x", "w"], ["y"])], "g", ports[:2], ports[2:])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)]), tmp_path / "m.onnx")
    for value in (1, 2, 1):
        f = hr.compile(tmp_path / "m.onnx", cache=folder, bound={"w": np.full(2, value, np.float32)})
        assert f(np.zeros(2, np.float32)).numpy().tolist() == [value] * 2
    assert len(entries(folder)) == 2


def test_shapes_are_part_of_the_key(folder, images):
    for count in (1, 2, 1):
        f = hr.compile(DIGITS, cache=folder, shapes={"x": (count, 1, 8, 8)})
        assert f(images[:count]).shape == (count, 10)
    assert len(entries(folder)) == 2


def test_the_model_is_part_of_the_key(folder, tmp_path):
    for number in (1, 2, 1):
        assert run(plus(tmp_path, number), folder) == [number] * 2
    assert len(entries(folder)) == 2


def test_files_beside_the_model_are_part_of_the_key(folder, tmp_path):
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", 1, [2])],
        [helper.make_tensor_value_info("y", 1, [2])],
        [onnx.numpy_helper.from_array(np.array([1, 2], np.float32), "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save_model(model, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    assert run(tmp_path / "m.onnx", folder) == [1, 2]
    (tmp_path / "w.bin").write_bytes(np.array([3, 4], np.float32).tobytes())
    assert run(tmp_path / "m.onnx", folder) == [3, 4]


@pytest.mark.parametrize("part", ["_images", "_machine", "_environment"])
def test_compiler_machine_and_environment_are_part_of_the_key(folder, compiles, tmp_path, monkeypatch, part):
    path = plus(tmp_path, 1)
    hr.compile(path, cache=folder)
    monkeypatch.setattr(_compile_cache, part, lambda: ["another"])
    hr.compile(path, cache=folder)
    assert len(compiles) == 2


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: b"",
        lambda data: b"not an artifact",
        lambda data: data[:3000] + bytes([data[3000] ^ 1]) + data[3001:],
        lambda data: data[:-70] + bytes([data[-70] ^ 255]) + data[-69:],
        lambda data: data + b"more",
    ],
    ids=["half", "empty", "text", "bit", "end", "longer"],
)
def test_damaged_entries_are_compiled_again(folder, compiles, tmp_path, damage):
    path = plus(tmp_path, 1)
    run(path, folder)
    (entry,) = folder.glob("*.so")
    entry.write_bytes(damage(entry.read_bytes()))
    assert run(path, folder) == [1, 1]
    assert len(compiles) == 2
    assert run(path, folder) == [1, 1]
    assert len(compiles) == 2


def test_entries_that_are_no_files_of_ours_are_not_loaded(folder, compiles, tmp_path):
    path = plus(tmp_path, 1)
    run(path, folder)
    (entry,) = folder.glob("*.so")
    entry.chmod(0o666)
    assert run(path, folder) == [1, 1]
    assert len(compiles) == 2
    entry.rename(tmp_path / "elsewhere.so")
    entry.symlink_to(tmp_path / "elsewhere.so")
    assert run(path, folder) == [1, 1]
    assert len(compiles) == 3


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_folders_that_others_write_to(folder, mode):
    folder.mkdir()
    folder.chmod(mode)
    for call in (hr.compile, hr.InferenceSession):
        with pytest.raises(hr.UserError, match=r"cache: others may write to the folder .*loaded as code.*chmod 700"):
            call(DIGITS, shapes=SHAPES, cache=folder)


def test_a_folder_that_others_may_read_is_closed(folder, compiles, tmp_path):
    path = plus(tmp_path, 1)
    for mode in (0o755, 0o711, 0o750):
        folder.mkdir(exist_ok=True)
        folder.chmod(mode)
        assert run(path, folder) == [1, 1]
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert len(compiles) == 1


def test_a_folder_of_other_things_that_others_may_read(folder, compiles, tmp_path, recwarn):
    folder.mkdir()
    folder.chmod(0o755)
    (folder / "page.html").touch()
    for _ in range(2):
        assert run(plus(tmp_path, 1), folder) == [1, 1]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755
    assert [stat.S_IMODE(path.stat().st_mode) for path in folder.glob("*.so")] == [0o600]
    told = [str(one.message) for one in recwarn if one.category is RuntimeWarning]
    says = (
        f"cache: the folder '{folder}' has other files, too, so others may still look into it; name one for the cache"
    )
    assert told == [says + " alone"]
    assert Path(next(one for one in recwarn if one.category is RuntimeWarning).filename) == Path(__file__)
    assert len(compiles) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to others")
def test_folders_of_other_users(folder):
    folder.mkdir(mode=0o700)
    os.chown(folder, 12345, -1)
    with pytest.raises(hr.UserError, match=r"cache: another user owns the folder .*loaded as code"):
        hr.compile(DIGITS, shapes=SHAPES, cache=folder)


def test_a_file_in_the_folders_place(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(hr.UserError, match=r"cache: '.*file' is not a folder"):
        hr.compile(DIGITS, shapes=SHAPES, cache=tmp_path / "file")


def test_a_folder_that_cannot_be_made(folder, compiles, tmp_path, recwarn):
    (tmp_path / "file").touch()
    for _ in range(2):
        assert run(plus(tmp_path, 1), tmp_path / "file" / "cache") == [1, 1]
    assert compiles == ["", ""]
    (told,) = [str(one.message) for one in recwarn if one.category is RuntimeWarning]
    assert "file/cache' cannot be made (Not a directory), so every process compiles its models again" in told


@pytest.mark.parametrize(("where", "name"), [(tempfile, "mkdtemp"), (Path, "replace"), (Path, "chmod")])
def test_full_and_read_only_folders(folder, compiles, tmp_path, monkeypatch, where, name):
    def fail(*given, **named):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(where, name, fail)
        assert run(plus(tmp_path, 1), folder) == [1, 1]
    assert compiles[-1] == ""
    assert entries(folder) == list(folder.glob("headrace-part-*")) == []


def test_a_read_only_folder_has_its_entries(folder, compiles, tmp_path):
    path = plus(tmp_path, 1)
    run(path, folder)
    folder.chmod(0o500)
    assert run(path, folder) == [1, 1]
    assert len(compiles) == 1
    folder.chmod(0o700)


def test_a_compile_that_cannot_write_runs_in_memory(folder, tmp_path, monkeypatch):
    real = _core.compile

    def full(path, **arguments):
        if arguments.get("output"):
            raise hr.UserError("cannot write: No space left on device")
        return real(path, **arguments)

    monkeypatch.setattr(_core, "compile", full)
    assert run(plus(tmp_path, 1), folder) == [1, 1]
    assert entries(folder) == list(folder.glob("headrace-part-*")) == []


def test_a_model_that_is_written_to_while_it_is_compiled(folder, tmp_path, monkeypatch):
    path = plus(tmp_path, 1)
    real = _core.compile

    def changed(given, **arguments):
        path.write_text(TEXT.format(2))
        return real(given, **arguments)

    monkeypatch.setattr(_core, "compile", changed)
    assert run(path, folder) == [2, 2]
    assert entries(folder) == []


def test_files_are_read_again_only_where_they_were_written_to(folder, tmp_path, monkeypatch):
    read = []
    real = _compile_cache._digest
    monkeypatch.setattr(_compile_cache, "_digest", lambda path: read.append(path) or real(path))
    path = plus(tmp_path, 1)
    assert run(path, folder) == run(path, folder) == [1, 1]
    assert len(read) == 3  # a file that was just written is read each time: before and after the compile, and again
    monkeypatch.setattr(_compile_cache, "_RECENT_NS", -(10**18))
    assert run(path, folder) == [1, 1]
    read.clear()
    assert run(path, folder) == [1, 1]
    assert read == []
    stamp = path.stat()
    path.write_text(TEXT.format(2))  # the size stays
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert run(path, folder) == [2, 2]
    assert read != []


@pytest.mark.parametrize(
    "text", ["", "{", "[" * 200_000, "[]", '{"files": []}', '{"files": [[1]]}', '{"files": [["/no", [], "x"]]}', "\x00"]
)
def test_damaged_notes_are_not_used(folder, tmp_path, monkeypatch, text):
    monkeypatch.setattr(_compile_cache, "_RECENT_NS", -(10**18))
    path = plus(tmp_path, 1)
    run(path, folder)
    (note,) = folder.glob("*.json")
    note.write_text(text)
    assert run(path, folder) == [1, 1]
    assert run(plus(tmp_path, 2), folder) == [2, 2]


def test_a_note_of_weights_is_none_of_the_model_in_that_file(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(_compile_cache, "_RECENT_NS", -(10**18))
    onnx = pytest.importorskip("onnx")
    helper, float32 = onnx.helper, onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "s"], ["y"])],
        "scaled",
        [helper.make_tensor_value_info("x", float32, [2])],
        [helper.make_tensor_value_info("y", float32, [2])],
        [onnx.numpy_helper.from_array(np.array([2, 3], np.float32), "s")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = tmp_path / "model.onnx"
    onnx.save_model(model, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    with pytest.raises(hr.UserError):
        hr.compile(plus(tmp_path, 1), weights=path, cache=folder)
    x = np.ones(2, np.float32)
    assert hr.compile(path, cache=folder)(x).numpy().tolist() == [2, 3]
    (tmp_path / "w.bin").write_bytes(np.array([5, 7], np.float32).tobytes())
    assert hr.compile(path, cache=folder)(x).numpy().tolist() == [5, 7]


def test_a_folder_without_a_name(tmp_path):
    with pytest.raises(hr.UserError, match="cache: the name of a folder is empty"):
        hr.compile(plus(tmp_path, 1), cache="")


def test_errors_of_the_model_are_those_without_a_cache(folder):
    told = []
    for where in (False, folder):
        with pytest.raises(hr.UserError) as raised:
            hr.compile(DIGITS, cache=where)
        told.append(str(raised.value))
    assert told[0] == told[1]
    assert entries(folder) == list(folder.glob("headrace-part-*")) == []


def test_the_least_recently_used_go_first(folder, tmp_path, monkeypatch):
    for number in (1, 2):
        run(plus(tmp_path, number), folder)
    kept = {path.name: path for path in folder.glob("*.so")}
    for seconds, path in enumerate(sorted(kept.values())):
        os.utime(path, (1000 + seconds, 1000 + seconds))
    before = {path.name: path.stat().st_mtime for path in kept.values()}
    run(plus(tmp_path, 1), folder)  # is used again
    used = {path.name for path in kept.values() if path.stat().st_mtime != before[path.name]}
    assert len(used) == 1
    monkeypatch.setattr(_compile_cache, "_limit", lambda: 2 * max(path.stat().st_size for path in kept.values()) + 100)
    run(plus(tmp_path, 3), folder)
    left = set(entries(folder))
    assert len(left) == 2
    assert used <= left


def test_the_limit_is_a_variable(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("HEADRACE_CACHE_BYTES", "1")
    assert run(plus(tmp_path, 1), folder) == [1, 1]
    assert entries(folder) == []


def test_folders_of_compiles_that_were_killed_go(folder, tmp_path):
    folder.mkdir(mode=0o700)
    old, new, other = "headrace-part-01234567", "headrace-part-abcdefg_", "headrace-part-of-mine"
    for name, time in ((old, 1000), (new, None), (other, 1000)):
        (folder / name).mkdir()
        (folder / name / "model.so").touch()
        if time:
            os.utime(folder / name, (time, time))
    run(plus(tmp_path, 1), folder)
    assert sorted(path.name for path in folder.glob("headrace-part-*")) == [new, other]


def test_files_of_the_user_stay(folder, tmp_path, monkeypatch):
    run(plus(tmp_path, 1), folder)
    (folder / "costs").mkdir()
    mine = [
        "model.so",
        "libmine.so",
        "mine.json",
        "costs/mine.json",
        "costs/cpu-2.json",
        "part-1",
        f"{'0' * 48}.so.bak",
    ]
    for name in mine:
        (folder / name).write_text("{}")
        os.utime(folder / name, (1000, 1000))
    assert len(cache.entries(folder)) == 1
    monkeypatch.setenv("HEADRACE_CACHE_BYTES", "1")
    run(plus(tmp_path, 2), folder)
    (folder / "costs" / "znver4-2.json").write_text('{"headrace_costs": 2}')
    assert cache.clear(folder) == 1
    assert sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()) == sorted(mine)


def test_the_variable_and_the_argument(folder, tmp_path, monkeypatch):
    path = plus(tmp_path, 1)
    run(path, None)
    assert not folder.exists()
    monkeypatch.setenv("HEADRACE_CACHE", str(folder))
    run(path, False)
    assert not folder.exists()
    run(path, None)
    assert len(entries(folder)) == 1
    run(path, True)
    assert len(entries(folder)) == 1
    monkeypatch.delenv("HEADRACE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    run(path, True)
    assert len(entries(tmp_path / "xdg" / "headrace")) == 1


@pytest.mark.parametrize("given", [3, b"folder", ["folder"]])
def test_other_types(given):
    with pytest.raises(hr.UserError, match="cache: expected True, False or a folder"):
        hr.compile(DIGITS, shapes=SHAPES, cache=given)


def test_what_is_not_cached(folder, tmp_path, monkeypatch):
    path = plus(tmp_path, 1)
    assert run(path, folder, output=tmp_path / "m.so") == [1, 1]
    assert run(path, folder, backends=["null"]) == [1, 1]
    (tmp_path / "more.relay").write_text(
        '#[version = "0.0.5"]\nimport "prelude.rly"\n' + TEXT.format(1).split("\n", 1)[1]
    )
    assert run(tmp_path / "more.relay", folder) == [1, 1]
    monkeypatch.setitem(sys.modules, "headrace.relay._op_registration", object())
    assert run(path, folder) == [1, 1]
    assert entries(folder) == []


def test_the_program(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HEADRACE_CACHE", str(folder))

    def told(*arguments):
        assert cache._main(arguments) == 0
        return capsys.readouterr().out

    assert told("path") == f"{folder}\n"
    assert told("list") == "0 entries, 0 bytes\n"
    assert told("clear") == "0 entries removed\n"
    run(plus(tmp_path, 1), True)
    (entry,) = folder.glob("*.so")
    first, last = told("list").splitlines()
    assert first.split()[0] == str(entry.stat().st_size)
    assert first.split()[-1] == entry.name
    assert last == f"1 entry, {entry.stat().st_size} bytes"
    assert cache.entries() == cache.entries(folder) == [entry]
    assert cache.path() == folder
    assert cache.clear() == 1
    assert cache.entries() == []
    run(plus(tmp_path, 1), True)
    assert told("clear") == "1 entry removed\n"
    assert entries(folder) == list(folder.glob("headrace-part-*")) == []
    folder.chmod(0o777)
    assert cache._main(["clear"]) == 3
    assert "others may write to the folder" in capsys.readouterr().err
    shutil.rmtree(folder)


def test_the_program_runs():
    done = subprocess.run(
        [sys.executable, "-m", "headrace.cache", "path", "--folder", "here"], capture_output=True, text=True, check=True
    )
    assert done.stdout == "here\n"
