"""examples/ocr reads rendered pages as onnxruntime does, and its parts do what they say."""

from __future__ import annotations

import re
import sys
from itertools import pairwise
from pathlib import Path

import pytest

np = pytest.importorskip("numpy")
hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
HINT = "is not in .venv (./dev setup --peers installs it)"
cv2 = pytest.importorskip("cv2", reason=f"opencv-python-headless {HINT}")
pytest.importorskip("pyclipper", reason=f"pyclipper {HINT}")
pytest.importorskip("onnx")

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "examples" / "ocr"))
import boxes  # noqa: E402
import codes  # noqa: E402
import compare  # noqa: E402
import ctc  # noqa: E402
import ocr  # noqa: E402
import pictures  # noqa: E402
import reader  # noqa: E402

LINES = ("The channel", "brings water", "to the wheel", "of 25 mills", "Sluice 1784")
WIDTHS = (160, 320)  # few, so that little is compiled
OPTIONS = {"threads": 1, "max_batch": 2}


# ---- pages that are rendered here


def font_file():
    """DejaVu Sans, as Debian or matplotlib has it."""
    found = Path("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf")
    if found.is_file():
        return found
    matplotlib = pytest.importorskip("matplotlib", reason="no DejaVu Sans: neither fonts-dejavu-core nor matplotlib")
    return Path(matplotlib.get_data_path()) / "fonts/ttf/DejaVuSans.ttf"


@pytest.fixture(scope="module")
def page():
    """A page u8[h,w,3], blue first, with LINES in 32 pixels."""
    image = pytest.importorskip("PIL.Image", reason="Pillow is not in .venv")
    from PIL import ImageDraw, ImageFont

    sheet = image.new("RGB", (320, 384), "white")
    font = ImageFont.truetype(str(font_file()), 32)
    for number, line in enumerate(LINES):
        ImageDraw.Draw(sheet).text((40, 32 + 68 * number), line, font=font, fill="black")
    return np.asarray(sheet)[:, :, ::-1].copy()


@pytest.fixture(scope="module")
def models():
    """The files of the three models."""
    try:
        return ocr.fetch.fetch(codes.MODELS)
    except ocr.fetch.UnreachableError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the tests of this file keep artifacts."""
    return tmp_path_factory.mktemp("artifacts")


@pytest.fixture(scope="module")
def artifacts(models, folder):
    """The models compiled for the rendered page."""
    return codes.compiled(models, folder, (384, 320), widths=WIDTHS, max_batch=OPTIONS["max_batch"])


@pytest.fixture(scope="module")
def steps(models):
    """The steps between the models, for small pages."""
    return reader.Steps((384, 320), WIDTHS, ctc.read_characters(models[codes.RECOGNISER]))


def read(pages, steps, of):
    with reader.build(steps, of, **OPTIONS) as pipe:
        return [reader.text_of(lines) for lines in pipe.map(pages)]


def distance(a, b):
    """How many characters to insert, drop or replace to make b of a."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a):
        last, row = row, [i + 1]
        for j, y in enumerate(b):
            row.append(min(last[j] + (x != y), last[j + 1] + 1, row[j] + 1))
    return row[-1]


def without_spaces(text):
    return "".join(text.split())


def test_distance():
    assert distance("kitten", "sitting") == 3
    assert distance("", "ab") == distance("ab", "") == 2


# ---- whole pages


def test_a_page_is_read(page, steps, artifacts):
    (text,) = read([page], steps, artifacts)
    assert len(text.splitlines()) == len(LINES)
    wanted = without_spaces("".join(LINES))
    assert distance(without_spaces(text), wanted) <= 0.05 * len(wanted)


def test_the_text_is_that_of_onnxruntime(page, steps, artifacts, models):
    pytest.importorskip("onnxruntime")
    pages = [page, np.full_like(page, 255), page[:200], cv2.rotate(page, cv2.ROTATE_180)]
    found = read(pages, steps, artifacts)
    assert found == read(pages, steps, codes.sessions(models, 1, widths=WIDTHS, max_batch=2))
    functions = codes.callables(artifacts, 1)
    assert found == [reader.text_of(reader.read_page(steps, functions, one)) for one in pages]


def test_lines_upside_down_are_turned(page, steps, artifacts):
    (text,) = read([cv2.rotate(page, cv2.ROTATE_180)], steps, artifacts)
    wanted = without_spaces("".join(reversed(LINES)))
    assert distance(without_spaces(text), wanted) <= 0.05 * len(wanted)


def test_a_page_turned_by_a_quarter(page, steps, artifacts):
    turned = cv2.resize(cv2.rotate(page, cv2.ROTATE_90_CLOCKWISE), None, fx=320 / 384, fy=320 / 384)
    (text,) = read([turned], steps, artifacts)
    # Upright again, the lines go from right to left, and all of them lie in one line of the page.
    wanted = without_spaces("".join(reversed(LINES)))
    assert distance(without_spaces(text), wanted) <= 0.05 * len(wanted)


def test_a_page_without_text(page, steps, artifacts):
    assert read([np.full_like(page, 255), page[:32, :32]], steps, artifacts) == ["", ""]


def test_damaged_artifacts_are_compiled_again(models, folder, artifacts):
    path = artifacts.angle[1]
    path.write_bytes(b"no artifact")
    said = []
    again = codes.compiled(models, folder, (384, 320), widths=WIDTHS, max_batch=2, say=said.append)
    assert again == artifacts
    assert said == [f"compiling {codes.CLASSIFIER} for 1x3x48x192"]
    assert hr.load(path).inputs[0].shape == (1, 3, 48, 192)
    assert not [entry for entry in folder.iterdir() if entry.suffix != ".so"]


# ---- the command line


@pytest.fixture
def command(models, folder, monkeypatch, capsys):
    """Runs the program; returns its exit code, what it printed and what it said but for its progress."""
    del models  # skips where they cannot be had
    monkeypatch.setattr(codes, "WIDTHS", WIDTHS)
    monkeypatch.setattr(compare, "LEAST_PAGES", 1)

    def run(*arguments):
        code = ocr.main([*map(str, arguments), "--cache", str(folder)])
        out, err = capsys.readouterr()
        return code, out, re.sub(r"^ocr: compiling \S+ for [\dx]+\n", "", err, flags=re.M)

    return run


def test_the_command_prints_text_and_stages(command, page, tmp_path):
    cv2.imwrite(str(tmp_path / "page.png"), page)
    cv2.imwrite(str(tmp_path / "blank.png"), np.full_like(page, 255))
    code, out, err = command(tmp_path / "page.png", tmp_path / "blank.png")
    assert (code, err) == (0, f"ocr: no text was found in '{tmp_path / 'blank.png'}'\n")
    assert out.startswith(f"== {tmp_path / 'page.png'}\n")
    assert "wheel" in out
    stages = re.findall(r"^(\w+|read \d+) +2 +0 ", out, re.M)
    assert stages == ["prepare", "detect", "crop", "angle", "turn", "read 160", "read 320", "write"]
    assert "2 of 2 requests succeeded" in out


def test_the_comparison(command, page, tmp_path):
    pytest.importorskip("onnxruntime")
    cv2.imwrite(str(tmp_path / "page.png"), page[:120])
    code, out, err = command(tmp_path / "page.png", "--compare", "--rounds", "6")
    assert (code, err) == (0, "")
    table = out[out.index("pages/s") :].splitlines()
    ways = [
        "pipeline, headrace",
        "pipeline, onnxruntime",
        *(f"one page at a time, {of}, threads {n}" for n in (1, 2) for of in ("headrace", "onnxruntime")),
    ]
    assert [re.split(r"  +", row)[0] for row in table[1:7]] == ways
    assert all(re.search(r"\d+\.\d\d +\d+\.\d\d  \d+\.\d\d to \d+\.\d\d$", row) for row in table[2:7])
    assert "6 rounds of 1 pages" in table[7]
    assert "another text" not in out


def test_a_picture_that_is_not_there(command, tmp_path):
    code, out, err = command(tmp_path / "none.png")
    assert (code, out) == (3, "")
    assert err == f"ocr: cannot read the picture '{tmp_path / 'none.png'}': No such file or directory\n"


@pytest.mark.parametrize("data", [b"", b"this is text"])
def test_a_file_that_is_no_picture(command, tmp_path, data):
    (tmp_path / "letter.txt").write_bytes(data)
    code, out, err = command(tmp_path / "letter.txt")
    assert (code, out) == (3, "")
    assert "letter.txt' is not a picture that OpenCV reads; give it a PNG" in err


def test_a_folder_that_cannot_be_written(command, page, tmp_path):
    cv2.imwrite(str(tmp_path / "page.png"), page)
    (tmp_path / "file").touch()
    code = ocr.main([str(tmp_path / "page.png"), "--cache", str(tmp_path / "file" / "artifacts")])
    assert code == 3
    with pytest.raises(codes.CacheError, match=r"cannot write artifacts to .*file/artifacts.*--cache names another"):
        codes.compiled({}, tmp_path / "file" / "artifacts", (32, 32), widths=WIDTHS, max_batch=1)


def test_models_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("HEADRACE_MODELS", str(tmp_path / "file" / "models"))
    with pytest.raises(ocr.UnusableError, match=r"cannot write models to .*HEADRACE_MODELS may name another folder"):
        ocr.fetched(codes.MODELS)


@pytest.mark.parametrize(
    ("module", "name", "arguments"),
    [
        ("cv2", "opencv-python-headless", ()),
        ("pyclipper", "pyclipper", ()),
        ("onnxruntime", "onnxruntime", ["--compare"]),
    ],
)
def test_a_missing_package(monkeypatch, capsys, module, name, arguments):
    monkeypatch.setitem(sys.modules, module, None)
    assert ocr.main(["page.png", *arguments]) == 4
    err = capsys.readouterr().err
    assert err == f"ocr: not installed: {name}; pip install {name}, or ./dev setup --peers\n"


def test_headrace_is_missing(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "headrace", None)
    assert ocr.main(["page.png"]) == 4
    assert "start this as ./dev python examples/ocr/ocr.py" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ocr.fetch.UnreachableError("no network"), 4),
        (ocr.fetch.FetchError("another file"), 3),
        (hr.UserError("the model has no input 'x'"), 3),
    ],
)
def test_models_that_cannot_be_had_or_used(page, tmp_path, monkeypatch, capsys, error, expected):
    def refuse(names):
        raise error

    cv2.imwrite(str(tmp_path / "page.png"), page)
    monkeypatch.setattr(ocr.fetch, "fetch", refuse)
    assert ocr.main([str(tmp_path / "page.png")]) == expected
    assert capsys.readouterr().err == f"ocr: {error}\n"


@pytest.mark.parametrize("arguments", [["--threads", "0"], ["--max-batch", "65"], ["--rounds", "5"], []])
def test_wrong_usage(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        ocr.main([*(["page.png"] if arguments else []), *arguments])
    assert stop.value.code == 2
    assert re.search(r"is not from \d+ to \d+|required: PICTURE", capsys.readouterr().err)


# ---- text of labels


def test_best_path_drops_repeats_and_then_blanks():
    characters = ["", "a", "b", " "]
    path = [0, 1, 1, 0, 1, 3, 2, 2, 0]
    probabilities = np.full((len(path), 4), 0.1, np.float32)
    probabilities[np.arange(len(path)), path] = [0.7, 0.5, 0.6, 0.7, 0.7, 0.7, 0.9, 0.5, 0.7]
    text, score = ctc.decode(probabilities, characters)
    assert text == "aa b"
    assert score == pytest.approx((0.5 + 0.7 + 0.7 + 0.9) / 4)


def test_only_blanks_are_no_text():
    assert ctc.decode(np.array([[0.9, 0.1], [0.8, 0.2]], np.float32), ["", "a"]) == ("", 0.0)


def test_the_characters_of_the_recogniser(models):
    characters = ctc.read_characters(models[codes.RECOGNISER])
    assert len(characters) == 6625
    assert (characters[0], characters[-1]) == ("", " ")
    assert all(len(character) == 1 for character in characters[1:])


# ---- boxes


def box(left, top, right, bottom):
    return np.array([(left, top), (right, top), (right, bottom), (left, bottom)], np.float32)


def test_a_square_is_grown():
    # Area 400, perimeter 80: 1.6 * 400 / 80 = 8 pixels to all sides, with round corners.
    outline = boxes.unclip(box(10, 10, 30, 30), 1.6)
    assert outline.min(axis=0) == pytest.approx([2, 2], abs=0.01)
    assert outline.max(axis=0) == pytest.approx([38, 38], abs=0.01)
    assert cv2.contourArea(outline) == pytest.approx(20 * 20 + 4 * 20 * 8 + np.pi * 8**2, rel=2e-3)


def test_corners_go_clockwise_from_the_upper_left_one():
    points = np.array([(40, 30), (10, 10), (40, 10), (10, 30), (20, 20)])
    corners, short = boxes.corners_of(points)
    assert corners == pytest.approx(box(10, 10, 40, 30), abs=1e-3)
    assert short == pytest.approx(20, abs=1e-3)


def test_boxes_of_a_map():
    marks = np.zeros((200, 300), np.float32)
    marks[40:60, 50:150] = 0.9
    marks[120:122, 50:52] = 0.9  # a speck
    marks[150:170, 50:150] = 0.4  # marked, but not sure enough
    (found,) = boxes.find_boxes(marks)
    # The 2 x 2 dilation makes it 100 x 20 between pixels' middles; 1.6 * 2000 / 240 = 13.33 to all sides.
    assert found == pytest.approx(box(36.67, 26.67, 163.33, 73.33), abs=0.1)
    assert boxes.find_boxes(np.zeros((32, 32), np.float32)).shape == (0, 4, 2)


def test_boxes_are_moved_into_the_page():
    found = boxes.inside(np.array([box(-5, 10, 40, 30), box(90, 10, 130, 30), box(120, 10, 130, 30)]), 25, 100)
    assert found == pytest.approx(np.array([box(0, 10, 40, 25), box(90, 10, 100, 25)]))
    assert boxes.inside(np.zeros((0, 4, 2)), 25, 100).shape == (0, 4, 2)


def test_reading_order():
    placed = [
        box(200, 12, 300, 32),  # first line, second piece, a little lower
        box(10, 60, 100, 80),  # second line
        box(10, 10, 100, 30),
        box(120, 55, 190, 75),  # second line, a little higher
        box(10, 71, 100, 91),  # more than half a line below
    ]
    assert boxes.reading_lines(np.array(placed)) == [[2, 0], [1, 3], [4]]
    assert boxes.reading_lines(np.zeros((0, 4, 2))) == []


def test_a_crop_of_a_box():
    page = np.zeros((60, 80, 3), np.uint8)
    page[20:30, 10:30] = (1, 2, 3)
    page[20:30, 30:50] = (200, 100, 50)
    crop = boxes.cut(page, box(10, 20, 50, 30))
    assert crop.shape == (10, 40, 3)
    assert (crop[5, 5].tolist(), crop[5, 35].tolist()) == ([1, 2, 3], [200, 100, 50])


def test_a_tall_crop_is_turned_to_the_left():
    page = np.zeros((80, 60, 3), np.uint8)
    page[10:30, 20:30] = 40
    page[30:50, 20:30] = 200
    crop = boxes.cut(page, box(20, 10, 30, 50))
    assert crop.shape == (10, 40, 3)
    assert (crop[5, 5, 0], crop[5, 35, 0]) == (40, 200)  # the top is now on the left
    assert boxes.cut(page, box(20, 10, 30, 24)).shape == (14, 10, 3)  # not tall enough


def test_crops_upside_down():
    crop = np.arange(6, dtype=np.uint8).reshape(1, 2, 3)
    same, turned = boxes.turned([crop, crop], [False, True])
    assert same.tolist() == [[[0, 1, 2], [3, 4, 5]]]
    assert turned.tolist() == [[[3, 4, 5], [0, 1, 2]]]


# ---- pictures


@pytest.mark.parametrize(
    ("shape", "expected"),
    [((48, 160), 0), ((48, 161), 1), ((24, 80), 0), ((96, 640), 1), ((48, 641), 3), ((10, 900), 3)],
)
def test_width_classes(shape, expected):
    assert pictures.width_class(np.zeros((*shape, 3), np.uint8), (160, 320, 640, 1280)) == expected


def test_a_line_keeps_its_aspect_and_is_padded():
    line = pictures.line_tensor(np.full((24, 40, 3), 255, np.uint8), 160)
    assert line.shape == (3, 48, 160)
    assert (line[:, :, :80] == 1).all()
    assert (line[:, :, 80:] == 0).all()
    squeezed = pictures.line_tensor(np.zeros((24, 400, 3), np.uint8), 160)
    assert (squeezed == -1).all()


def test_pages_share_a_canvas():
    small, large = np.zeros((100, 200, 3), np.uint8), np.zeros((1920, 960, 3), np.uint8)
    assert pictures.canvas_for([small]) == (128, 224)
    assert pictures.canvas_for([large]) == (960, 480)
    assert pictures.canvas_for([small, large]) == (960, 480)
    assert pictures.canvas_for([np.zeros((1, 5000, 3), np.uint8)]) == (32, 960)


def test_a_page_on_its_canvas():
    page = np.full((100, 200, 3), (0, 255, 255), np.uint8)
    tensor, scale = pictures.page_tensor(page, (64, 128))
    assert (tensor.shape, scale) == ((1, 3, 64, 128), 0.64)
    assert tensor[0, :, 0, 0] == pytest.approx([-0.485 / 0.229, 0.544 / 0.224, 0.594 / 0.225], abs=1e-5)
    assert (tensor[0, :, :, :] != 0).all()
    assert (pictures.page_tensor(page, (128, 224))[0][:, :, 100:] == 0).all()


# ---- batches and times


def test_batches_are_at_most_doubled():
    assert codes.batch_sizes(1) == [1]
    assert codes.batch_sizes(2) == [1, 2]
    assert codes.batch_sizes(6) == [1, 2, 4, 6]
    assert all(after <= 2 * before for before, after in pairwise(codes.batch_sizes(23)))


def test_the_interval_of_a_median():
    # The ranks of the sign test's interval at 95 %, as tables have them: n = 6: 1 and 6; n = 15: 4 and 12.
    assert compare.median_interval([6, 1, 5, 2, 4, 3]) == (1, 6)
    assert compare.median_interval(list(range(1, 16))) == (4, 12)
    with pytest.raises(ValueError, match="needs 6 values, got 5"):
        compare.median_interval([1] * 5)


def test_ways_take_turns():
    order = []
    ways = {name: lambda name=name: order.append(name) for name in "abc"}
    seconds = compare.time_in_turns(ways, 4)
    assert "".join(order) == "abc" + "bca" + "cab" + "abc"
    assert {name: len(taken) for name, taken in seconds.items()} == {"a": 4, "b": 4, "c": 4}
