"""Errors of the package without the compiler, and the folders for C projects; tests/wheel tests wheels."""

import headrace as hr
import pytest
from headrace import __main__, _config, _native


def test_with_the_compiler_the_package_stands_on_core():
    assert _native.module.__name__ == "headrace._core"
    assert not _native.is_runtime_alone


def test_a_name_of_the_compiler_says_what_to_install():
    with pytest.raises(hr.MissingError) as raised:
        _native._refuse("compile")
    assert str(raised.value) == (
        "'compile': this is the runtime alone, which loads and runs compiled models; the compiler comes with "
        f"pip install headrace=={hr.__version__}"
    )


def test_the_program_in_python_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr(_native, "is_runtime_alone", True)
    assert __main__._main(["compile", "model.onnx"]) == 4
    assert f"pip install headrace=={hr.__version__}" in capsys.readouterr().err


def test_python_may_ask_for_names_of_its_own():
    with pytest.raises(AttributeError, match="__wrapped__"):
        _native._refuse("__wrapped__")


def test_the_version_is_printed(capsys):
    assert _config.main(["--version"]) == 0
    assert capsys.readouterr().out == f"{hr.__version__}\n"


@pytest.mark.parametrize(
    ("option", "folder"), [("--cmakedir", "lib/cmake/headrace"), ("--includedir", "include"), ("--libdir", "lib")]
)
def test_folders_are_printed_where_the_wheel_has_them(option, folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(_config, "_PREFIX", tmp_path)
    assert _config.main([option]) == 4
    assert f"this installation has no {tmp_path / folder}: it was not made from the wheel" in capsys.readouterr().err
    (tmp_path / folder).mkdir(parents=True)
    assert _config.main([option]) == 0
    assert capsys.readouterr().out == f"{tmp_path / folder}\n"


def test_one_option_is_needed():
    with pytest.raises(SystemExit) as stopped:
        _config.main([])
    assert stopped.value.code == 2
