"""Make the picture of the report: ``python docs/report_picture.py`` writes docs/report.png.

The page is that of ``sobolev demo --real``, or a file that is named. Needs Chromium or Chrome.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image, ImageOps

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
WIDTH, HEIGHT, SCALE, COLOURS = 1000, 1350, 1.5, 64
FRAME = "#C3C8CF"


def photograph(page, picture, *, width=WIDTH, height=HEIGHT):
    """Draw the top of a page as a browser shows it, in few colours, which keeps the file small."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.exit(f"no browser found; install one of {', '.join(BROWSERS)}.")
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder) / "raw.png"
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        options += [f"--user-data-dir={folder}/profile", f"--window-size={width},{height}"]
        options += [f"--force-device-scale-factor={SCALE}", f"--screenshot={raw}"]
        subprocess.run(
            [browser, *options, Path(page).resolve().as_uri()], check=True, capture_output=True
        )
        framed = ImageOps.expand(Image.open(raw).convert("RGB"), 2, FRAME)
        framed.quantize(COLOURS, dither=Image.Dither.NONE).save(picture, optimize=True)


def main():
    picture = Path(__file__).with_name("report.png")
    if len(sys.argv) > 1:
        photograph(sys.argv[1], picture)
        return
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "demo"
        command = [sys.executable, "-m", "sobolev", "demo", "--real", "--out", str(out)]
        subprocess.run(command, check=True)
        photograph(out / "report.html", picture)


if __name__ == "__main__":
    main()
