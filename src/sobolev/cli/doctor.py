"""``sobolev doctor`` and ``show_versions``: versions, hardware and optional packages."""

from __future__ import annotations

import json as json_module
import platform
from typing import Any

import joblib
import typer
from threadpoolctl import threadpool_info

from sobolev.report.versions import version_of, versions

OPTIONAL = {
    "torch": "networks of your own, GPUs",
    "pyarrow": "Parquet and Feather files",
    "zstandard": ".zst files",
    "dask": "clusters",
}


def run_doctor(*, json: bool) -> None:
    """Print what :func:`examine` finds."""
    if json:
        typer.echo(json_module.dumps(examine(), indent=1))
    else:
        show_versions()


def show_versions() -> None:
    """Print versions, processor, BLAS, threads and optional packages, for a report of a problem.

    ``sobolev doctor`` prints the same in a shell.

    Examples
    --------
    >>> import sobolev
    >>> sobolev.show_versions()
    sobolev ...
    """
    found = examine()
    for name, number in found["versions"].items():
        typer.echo(f"{name:14} {number}")
    typer.echo(f"{'system':14} {found['system']}")
    typer.echo(f"{'cores':14} {found['cores']}")
    for pool in found["threads"]:
        typer.echo(f"{pool['kind']:14} {pool['library']}, {pool['threads']} threads")
    for name, part in found["optional"].items():
        state = part["version"] or f"not installed ({part['for']}): pip install {name}"
        typer.echo(f"{name:14} {state}")
    if found["device"] is not None:
        typer.echo(f"{'device':14} {found['device']}")


def examine() -> dict[str, Any]:
    """Versions, processor, thread pools and optional packages."""
    import scipy.linalg  # noqa: F401  (its BLAS is one of the pools)
    import sklearn.utils  # noqa: F401  (brings OpenMP)

    optional = {
        name: {"version": version_of(name), "for": purpose} for name, purpose in OPTIONAL.items()
    }
    # Before the versions: it loads torch, which is listed only if it is loaded.
    device = _device() if optional["torch"]["version"] else None
    return {
        "versions": versions("joblib", "matplotlib", "typer", "rich"),
        "system": platform.platform(),
        "cores": joblib.cpu_count(),
        "threads": _pools(),
        "optional": optional,
        "device": device,
    }


def _pools() -> list[dict[str, Any]]:
    found = {}
    for pool in threadpool_info():
        library = f"{pool['internal_api']} {pool['version'] or ''}".strip()
        entry = {"kind": pool["user_api"], "library": library, "threads": pool["num_threads"]}
        found[tuple(entry.values())] = entry
    return list(found.values())


def _device() -> str:
    try:
        import torch
    except Exception as error:  # a broken installation is what the doctor is for
        return f"torch is installed but fails to load: {error}"
    if torch.cuda.is_available():
        return f"CUDA, {torch.cuda.get_device_name(0)}"
    if torch.backends.mps.is_available():
        return "MPS"
    return "CPU"
