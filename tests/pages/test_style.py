"""Style of figures: text that fits, and colours that everybody can distinguish."""

from itertools import combinations

import numpy as np
import pytest

from propensitybench.pages.style import COLOURS, clean, shorten, text_width

LONG = "a-provider/a-model-with-a-very-long-name-and-a-date-2026-05-01-preview"


def test_shortened_text_keeps_both_ends() -> None:
    assert shorten("short", 1.0) == "short"
    cut = shorten(LONG, 1.0)
    assert text_width(cut) <= 1.0
    assert cut.startswith("a-prov")
    assert cut.endswith("preview")
    assert clean("a\nb\u4e2d") == "a\ufffdb\ufffd"


# Machado, Oliveira and Fernandes 2009, full severity, on linear RGB.
VISIONS = {
    "usual": np.eye(3),
    "no red": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "no green": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "no blue": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}  # fmt: skip
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


@pytest.mark.parametrize("vision", VISIONS)
def test_colours_differ_for_every_type_of_colour_vision(vision: str) -> None:
    srgb = np.array([[int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)] for colour in COLOURS])
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ np.asarray(VISIONS[vision]).T, 0, 1)
    xyz = seen @ TO_XYZ.T / TO_XYZ.sum(axis=1)
    cube = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    lab = np.stack(
        [116 * cube[:, 1] - 16, 500 * (cube[:, 0] - cube[:, 1]), 200 * (cube[:, 1] - cube[:, 2])], axis=1
    )
    assert min(float(np.linalg.norm(a - b)) for a, b in combinations(lab, 2)) >= 15
