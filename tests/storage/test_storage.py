"""Saved estimators: what comes back, what is refused, and stored files of every format version."""

import importlib.util
import json
import re
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor

from sobolev import ConvexSIC, HRTSelector, KnockoffSelector, load, save
from sobolev.convex import Alternating, BlockCoordinateDescent, FourierMap
from sobolev.convex.choosing import NAMED_MAPS
from sobolev.exceptions import SobolevWarning
from sobolev.inference import MonteCarlo, Split
from sobolev.storage import records
from sobolev.streaming import partial_fit
from sobolev.targets import TargetEncoder

ROOT = Path(__file__).resolve().parents[2]
STORED = sorted((ROOT / "tests" / "data" / "models").glob("*.npz"))
RNG = np.random.default_rng(0)
X = RNG.standard_normal((80, 6))
Y = X[:, 1] + X[:, 0] ** 2 + 0.1 * RNG.standard_normal(80)
LABELS = np.array(["low", "mid", "high"])[np.digitize(Y, [0.0, 1.5])]
TABLE = pd.DataFrame(X, columns=[f"x{j}" for j in range(6)]).assign(
    site=np.where(X[:, 5] > 0, "lung", "skin"), same=1.0
)


def sic(**parameters):
    return ConvexSIC(**({"lam": 0.03, "random_state": 0} | parameters))


CRITICS = {
    **{name: (sic(feature_map=name), Y) for name in NAMED_MAPS},
    "labels": (sic(), LABELS),
    "several": (sic(target=TargetEncoder(select=True)), np.column_stack([Y, X[:, 2]])),
    "chosen lam": (sic(lam="auto", cv=3), Y),
    "bcd": (sic(solver=BlockCoordinateDescent(max_iter=500)), Y),
    "groups": (sic(feature_groups={"a": [0, 1], "b": [2, 3, 4, 5]}), Y),
    "covariates": (sic(adjust=[3]), Y),
    "screened": (sic(solver=Alternating(screen=3)), Y),
    "single": (sic(feature_map=FourierMap(20), solver=Alternating(precision="single")), Y),
    "scores": (sic(feature_map="auto").for_testing(), np.exp(3 * Y)),
}


@pytest.mark.filterwarnings("ignore::sobolev.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("case", CRITICS.values(), ids=CRITICS)
def test_a_convex_critic_comes_back_to_the_last_bit(case, tmp_path):
    estimator, y = case
    fitted = estimator.fit(X, y)
    loaded = load(save(fitted, tmp_path / "model.npz"))
    assert type(loaded) is ConvexSIC
    assert repr(loaded) == repr(fitted)
    np.testing.assert_array_equal(loaded.witness(X, y), fitted.witness(X, y))
    np.testing.assert_array_equal(loaded.explain(X, y).features, fitted.explain(X, y).features)
    np.testing.assert_array_equal(loaded.transform(X), fitted.transform(X))
    assert loaded.score(X, y) == fitted.score(X, y)
    assert loaded.decomposition_.sic == fitted.decomposition_.sic
    assert vars(loaded).keys() == vars(fitted).keys()
    pd.testing.assert_frame_equal(loaded.summary(), fitted.summary())
    again = loaded.fit(X, y)  # parameters are complete
    np.testing.assert_array_equal(again.feature_importances_, fitted.feature_importances_)


def test_every_map_of_the_package_is_known():
    """A new feature map and its bound map are named in storage/records.py."""
    maps = importlib.import_module("sobolev.convex.feature_maps")
    others = "sobolev.convex.parts", "sobolev.convex.choosing"
    modules = [maps, *map(importlib.import_module, others)]
    bases = {"MapSpec", "SizedMap", "BoundMap", "DenseBoundMap"}
    own = {"CustomMap", "BoundCustomMap"}  # code of the user, which a file cannot hold
    found = {
        name
        for module in modules
        for name, cls in vars(module).items()
        if isinstance(cls, type) and issubclass(cls, (maps.MapSpec, maps.BoundMap))
    }
    assert found - bases - own <= records.KNOWN.keys()


SELECTORS = {
    "hrt": (HRTSelector(sic(), random_state=0), TABLE),
    "hrt, arrays": (HRTSelector(sic(), n_repeats=1, random_state=0), X),
    "hrt, parts": (
        HRTSelector(sic(), pvalue=MonteCarlo(50), scheme=Split(0.4), fdr=0.5, random_state=0),
        X,
    ),
    "hrt, gaps": (
        HRTSelector(sic(), adjust=["x2"], n_repeats=1, random_state=0),
        TABLE.assign(x1=TABLE.x1.mask(X[:, 0] > 1)),
    ),
    "knockoffs": (KnockoffSelector(sic(), fdr=0.5, random_state=0), TABLE),
    "knockoffs, draws": (KnockoffSelector(sic(), n_draws=2, fdr=0.6, random_state=0), X),
    "lasso path": (KnockoffSelector(statistic="lasso_path", fdr=0.5, random_state=0), X),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", SELECTORS.values(), ids=SELECTORS)
def test_results_of_selectors_come_back(case, tmp_path):
    selector, table = case
    fitted = selector.fit(table, Y)
    path = save(fitted, tmp_path / "result.npz")
    loaded = load(path)
    pd.testing.assert_frame_equal(loaded.summary(), fitted.summary())
    assert loaded.get_feature_names_out().tolist() == fitted.get_feature_names_out().tolist()
    assert loaded.response_.sentence == fitted.response_.sentence
    if isinstance(fitted, HRTSelector):
        tested = int(fitted.shortlist_[0]) if hasattr(fitted, "shortlist_") else 0
        assert loaded.result(tested) == fitted.result(tested)
        np.testing.assert_array_equal(
            loaded.estimator_.feature_importances_, fitted.estimator_.feature_importances_
        )
    repeated = loaded.fit(table, Y)
    np.testing.assert_array_equal(repeated.support_, fitted.support_)


@pytest.mark.filterwarnings("ignore::sobolev.exceptions.DataWarning")
def test_the_rows_of_the_table_are_not_in_the_file(tmp_path):
    """The response and a column that is not in the critic leave no trace."""
    secret = TABLE.assign(salary=1234567.0 + np.arange(80.0))
    response = 7654321.0 + Y
    selector = KnockoffSelector(statistic="lasso_path", fdr=0.5, diagnose=False, random_state=0)
    path = save(selector.fit(secret, response), tmp_path / "result.npz")
    with np.load(path) as stored:
        floats = [stored[name] for name in stored.files if stored[name].dtype.kind == "f"]
    largest = max(np.abs(array).max() for array in floats if array.size)
    assert largest < 1e6
    loaded = load(path)
    assert len(loaded.table_.X) == 0
    with pytest.raises(ValueError, match="loaded from a file has results only"):
        loaded.table_.filled()


@pytest.mark.filterwarnings("ignore::sobolev.exceptions.ConditionalModelWarning")
def test_a_predictor_of_another_package_is_named_and_left_out(tmp_path):
    forest = RandomForestRegressor(10, random_state=0)
    fitted = HRTSelector(forest, n_repeats=1, random_state=0).fit(X, Y)
    with pytest.warns(SobolevWarning, match=r"not saved: estimator \(RandomForestRegressor\), est"):
        path = save(fitted, tmp_path / "result.npz")
    loaded = load(path)
    assert loaded.estimator is None
    pd.testing.assert_frame_equal(loaded.summary(), fitted.summary())


# What is refused


class OwnMap:
    def values(self, X):
        return X**2

    def derivative(self, X, j):
        out = np.zeros_like(X)
        out[:, j] = 2 * X[:, j]
        return out


def test_code_of_the_user_cannot_be_saved(tmp_path):
    with pytest.raises(TypeError, match="critic_ holds a BoundCustomMap, and a file holds no code"):
        save(sic(feature_map=OwnMap()).fit(X, Y), tmp_path / "model.npz")
    with pytest.raises(TypeError, match="RandomForestRegressor cannot be saved; the estimators"):
        save(RandomForestRegressor().fit(X, Y), tmp_path / "model.npz")
    assert not list(tmp_path.iterdir())


def test_a_file_is_not_replaced_unless_asked(tmp_path):
    fitted = sic().fit(X, Y)
    path = save(fitted, tmp_path / "model.npz")
    before = path.read_bytes()
    with pytest.raises(FileExistsError, match="overwrite=True"):
        save(sic(lam=0.1).fit(X, Y), path)
    assert path.read_bytes() == before
    save(sic(lam=0.1).fit(X, Y), path, overwrite=True)
    assert load(path).lam == 0.1


def test_the_state_of_partial_fit_is_named(tmp_path):
    fitted = partial_fit(sic(solver=Alternating(rounds=1)), X, Y)
    with pytest.warns(SobolevWarning, match="partial_moments_"):
        save(fitted, tmp_path / "model.npz")


def rewrite(path, change):
    with np.load(path) as stored:
        arrays = dict(stored)
    content = json.loads(str(arrays.pop("content")))
    change(content)
    np.savez(path, content=np.array(json.dumps(content)), **arrays)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.update(version=4, written_by="sobolev 9.9"), "version 4, .*9.9.*newer one"),
        (lambda c: c.update(version=1), "version 1, .*fit the estimator again"),
        (lambda c: c.update({"class": "Popen"}), "holds a Popen, which is not known"),
        (lambda c: c["parameters"].update(own=1), "not a file written by"),
        (lambda c: c["parameters"].update(solver={"$": "os.system", "fields": {}}), "os.system"),
        (lambda c: c.update(fitted={"$": "array", "name": "no"}), "not a file written by"),
        (lambda c: c.update(fitted=3), "not a file written by"),
    ],
    ids=["later", "earlier", "class", "parameter", "record", "no array", "no attributes"],
)
def test_files_that_cannot_be_read_say_why(change, message, tmp_path):
    path = save(sic().fit(X, Y), tmp_path / "model.npz")
    rewrite(path, change)
    with pytest.raises(ValueError, match=message) as error:
        load(path)
    assert "\n" not in str(error.value)
    assert "model.npz" in str(error.value)


def test_a_compressed_archive_is_refused(tmp_path):
    """Sizes are what they say: a small file cannot fill the memory."""
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("content.npy", b"0" * 10**7)
    with pytest.raises(ValueError, match=r"bomb\.npz is not a file"):
        load(path)


# Stored files


def test_there_are_stored_files_of_every_version_and_class():
    from sobolev.storage import files

    found = {tuple(re.match(r"(\w+).*-format-(\d+)", p.stem).groups()) for p in STORED}
    assert {int(version) for _, version in found} == {*range(files.OLDEST, files.VERSION + 1)}
    newest = {name for name, version in found if int(version) == files.VERSION}
    assert newest == {cls.__name__ for cls in records.ESTIMATORS}


@pytest.mark.parametrize("path", STORED, ids=[path.stem for path in STORED])
def test_stored_files_give_the_same_numbers(path):
    spec = importlib.util.spec_from_file_location("stored", ROOT / "tools" / "stored_models.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    expected = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    found = tool.numbers(load(path))
    assert found.keys() >= expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("path", STORED, ids=[path.stem for path in STORED])
def test_stored_files_can_be_asked_as_before(path):
    estimator = load(path)
    if hasattr(estimator, "summary"):
        assert 0 < len(estimator.summary()) <= estimator.n_features_in_
    if hasattr(estimator, "warn"):
        estimator.warn()
