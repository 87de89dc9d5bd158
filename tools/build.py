"""Build sdist and wheel, twice, and check them: ``make dist``.

The two builds must be equal to the last byte. The wheel is built from the sdist, as an index or a
distribution would do. The description must render, and the wheel must hold the package only.
"""

import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def run(*command: str) -> None:
    """Run a module of this environment; a failure ends the build."""
    subprocess.run([sys.executable, "-m", *command], check=True, cwd=ROOT)


def build(folder: str) -> dict[str, str]:
    """Build into a folder; SHA-256 of each file."""
    run("build", "--outdir", folder)
    files = sorted(Path(folder).glob("sobolev-*"))
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def main() -> None:
    """Build, compare, check, and copy to dist/."""
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        hashes = build(first)
        if build(second) != hashes:
            sys.exit("two builds differ; look for a time, a path or an order in the files.")
        files = [str(Path(first) / name) for name in hashes]
        run("twine", "check", "--strict", *files)
        run("check_wheel_contents", *[file for file in files if file.endswith(".whl")])
        shutil.rmtree(ROOT / "dist", ignore_errors=True)
        shutil.copytree(first, ROOT / "dist")
    for name, digest in hashes.items():
        print(f"{digest}  dist/{name}")


if __name__ == "__main__":
    main()
