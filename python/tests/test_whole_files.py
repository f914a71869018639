"""Files that the package writes are there whole or not at all."""

import os
import resource
import signal
from pathlib import Path

import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from headrace._session_profile import SessionProfile  # noqa: E402

SMALL, LARGE = {"w": [1.5]}, {"w": [0.0] * 5000}


def save(params, path):
    hr.runtime.save_param_dict_to_file({name: hr.nd.array(values) for name, values in params.items()}, path)


def with_file_limit(limit, action):
    """Calls `action` while no file may grow past `limit` bytes, as on a disk that is nearly full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        return action()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_a_full_disk_leaves_the_parameters_of_before(tmp_path):
    path = tmp_path / "p.params"
    save(SMALL, path)
    before = path.read_bytes()
    with pytest.raises(hr.UserError, match=r"path: '.*/p.params': File too large"):
        with_file_limit(4096, lambda: save(LARGE, path))
    assert path.read_bytes() == before
    with pytest.raises(hr.UserError, match=r"path: '.*/q.params': File too large"):
        with_file_limit(4096, lambda: save(LARGE, tmp_path / "q.params"))
    assert [p.name for p in tmp_path.iterdir()] == ["p.params"]


def test_parameters_go_where_a_link_leads_and_into_pipes(tmp_path):
    target, link = tmp_path / "p.params", tmp_path / "link"
    link.symlink_to(target)
    save(SMALL, link)
    assert link.is_symlink()
    assert hr.runtime.load_param_dict_from_file(target)["w"].numpy().tolist() == SMALL["w"]
    read, write = os.pipe()
    save(SMALL, f"/proc/self/fd/{write}")
    assert os.read(read, 1000) == target.read_bytes()
    os.close(read)
    os.close(write)


def test_a_full_disk_leaves_no_part_of_a_profile(tmp_path):
    profile = SessionProfile(str(tmp_path / "p"))
    with profile.span("a", text="b" * 5000):
        pass
    with pytest.raises(OSError, match="File too large"):
        with_file_limit(4096, profile.end)
    assert list(tmp_path.iterdir()) == []


def test_a_profile_is_a_file_of_its_name(tmp_path):
    path = Path(SessionProfile(str(tmp_path / "p")).end())
    assert (path.read_text(encoding="utf-8"), list(tmp_path.iterdir())) == ("[\n\n]\n", [path])
