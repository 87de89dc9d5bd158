"""AnnData in, and the results back into its annotations."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import sobolev
from sobolev import ConvexSIC, HRTSelector, KnockoffSelector
from sobolev.exceptions import DataWarning
from sobolev.tables import annotate

FAST = ConvexSIC(feature_map="landmark", lam=0.03)


class StandIn:
    """What the package uses of AnnData."""

    def __init__(self, X, obs, var):
        self.X, self.obs, self.var, self.uns = X, obs, var, {}

    @property
    def var_names(self):
        return self.var.index


def make(kind, X, obs, names):
    var = pd.DataFrame(index=names)
    if kind == "stand-in":
        return StandIn(X, obs, var)
    return pytest.importorskip("anndata").AnnData(X, obs=obs, var=var)


@pytest.fixture(scope="module")
def cells():
    """200 cells of 50 donors with 12 genes; the first two matter. One gene looks like an id."""
    rng = np.random.default_rng(0)
    X = (rng.negative_binomial(2, 0.4, (200, 12)) * (rng.random((200, 12)) < 0.4)).astype(float)
    score = 2.0 * np.log1p(X[:, 0]) + 1.5 * (X[:, 1] > 0) + rng.standard_normal(200)
    obs = pd.DataFrame(
        {
            "condition": pd.Categorical(np.where(score > np.median(score), "sick", "well")),
            "score": score,
            "donor": [f"d{k // 4}" for k in range(200)],
            "w": np.linspace(1, 2, 200),
            "months": rng.exponential(np.exp(-score / 2)),
            "died": rng.random(200) < 0.7,
        },
        index=[f"cell{k}" for k in range(200)],
    )
    return X, obs, ["ID1", "CD4", *(f"g{j}" for j in range(10))]


@pytest.fixture(params=["stand-in", "anndata"])
def adata(request, cells):
    X, obs, names = cells
    return make(request.param, sp.csr_matrix(X), obs, names)


def test_results_are_those_of_the_matrix(adata, cells):
    X, obs, names = cells
    found = HRTSelector(FAST, random_state=0).fit(adata, "condition")
    plain = HRTSelector(FAST, random_state=0).fit(X, obs["condition"].astype(str).to_numpy())
    np.testing.assert_array_equal(found.pvalues_, plain.pvalues_)
    assert list(found.feature_names_in_) == names
    assert "ID1" in found.get_feature_names_out()  # a gene, not an identifier
    assert found.response_.sentence.startswith("condition was read as 2 classes")


def test_dense_and_sparse_give_the_same(cells):
    X, obs, names = cells
    tables = [make("stand-in", matrix, obs, names) for matrix in (X, sp.csc_array(X))]
    first = HRTSelector(FAST, random_state=0).fit(tables[0], "score")
    second = HRTSelector(FAST, random_state=0).fit(tables[1], obs["score"].to_numpy())
    np.testing.assert_array_equal(first.pvalues_, second.pvalues_)


def test_subjects_weights_and_survival_by_name(adata, cells):
    X, obs, _ = cells
    named = HRTSelector(FAST, random_state=0).fit(adata, "score", groups="donor", sample_weight="w")
    given = HRTSelector(FAST, random_state=0)
    given.fit(X, obs["score"].to_numpy(), groups=obs["donor"].to_numpy(), sample_weight=obs["w"])
    np.testing.assert_allclose(named.pvalues_, given.pvalues_, rtol=1e-10)
    lived = HRTSelector(FAST, response="survival", random_state=0).fit(adata, ("months", "died"))
    assert lived.response_.kind == "survival"
    assert lived.pvalues_.size == 12


def test_rows_without_a_response_are_left_out(cells):
    X, obs, names = cells
    gaps = obs.assign(score=obs["score"].where(np.arange(200) >= 10))
    with pytest.warns(DataWarning, match="10 of 200 rows without a target value"):
        found = HRTSelector(FAST, random_state=0).fit(make("stand-in", X, gaps, names), "score")
    plain = HRTSelector(FAST, random_state=0).fit(X[10:], obs["score"].to_numpy()[10:])
    np.testing.assert_array_equal(found.pvalues_, plain.pvalues_)


def test_results_go_into_the_annotations(adata, cells):
    hrt = HRTSelector(FAST, random_state=0).fit(adata, "condition")
    assert annotate(adata, hrt) is None
    table = hrt.summary().set_index("feature").loc[list(adata.var_names)]
    for name in ("importance", "statistic", "pvalue", "qvalue", "selected", "note"):
        values = adata.var[f"sobolev_{name}"].to_numpy()
        np.testing.assert_array_equal(values, table[name].to_numpy())
    run = adata.uns["sobolev"]
    assert (run["method"], run["fdr"], run["seed"]) == ("HRTSelector", 0.1, 0)
    assert run["version"] == sobolev.__version__
    assert run["response"] == hrt.response_.sentence
    filtered = KnockoffSelector(FAST, fdr=0.3).fit(adata, "score")
    annotate(adata, filtered, prefix="ko_")
    np.testing.assert_array_equal(adata.var["ko_W"].to_numpy(), filtered.statistics_)
    assert adata.uns["ko"]["seed"] == "not a number"
    assert "ko_pvalue" not in adata.var


@pytest.mark.filterwarnings("ignore::sobolev.exceptions.DataWarning")
def test_genes_that_share_a_test_share_its_results(cells):
    X, obs, names = cells
    twice = np.column_stack([X, X[:, 0], np.zeros(200)])
    adata = make("stand-in", twice, obs, [*names, "copy", "off"])
    annotate(adata, HRTSelector(FAST, random_state=0).fit(adata, "score"))
    var = adata.var
    assert var.at["copy", "sobolev_pvalue"] == var.at["ID1", "sobolev_pvalue"] < 0.01
    assert var.at["copy", "sobolev_note"] == "cannot be told apart: copies"
    assert np.isnan(var.at["off", "sobolev_pvalue"])
    assert var.at["off", "sobolev_note"] == "set aside: constant"
    assert var["sobolev_selected"].dtype == bool


def test_results_survive_a_file(cells, tmp_path):
    anndata = pytest.importorskip("anndata")
    X, obs, names = cells
    adata = make("anndata", sp.csr_matrix(X), obs, names)
    annotate(adata, HRTSelector(FAST, random_state=0).fit(adata, "condition"))
    if int(pd.__version__.split(".")[0]) > 2:  # its text is written by anndata on demand only
        anndata.settings.allow_write_nullable_strings = True
    adata.write_h5ad(tmp_path / "cells.h5ad")
    again = anndata.read_h5ad(tmp_path / "cells.h5ad")
    for name in [name for name in adata.var if name != "sobolev_note"]:
        np.testing.assert_array_equal(again.var[name].to_numpy(), adata.var[name].to_numpy())
    assert again.var["sobolev_note"].astype(str).tolist() == adata.var["sobolev_note"].tolist()
    run = again.uns["sobolev"]
    assert {**run, "notes": list(run["notes"])} == adata.uns["sobolev"]
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    with pytest.raises(ValueError, match=r"backed by a file; pass adata.to_memory\(\)"):
        HRTSelector(FAST).fit(backed, "condition")
    backed.file.close()


def test_errors_name_the_column_and_the_remedy(cells):
    X, obs, names = cells
    adata = make("stand-in", X, obs, names)
    with pytest.raises(ValueError, match="there is no column 'conditon'; did you mean 'condition'"):
        HRTSelector(FAST).fit(adata, "conditon")
    with pytest.raises(ValueError, match=r"'g0' several times; call adata\.var_names_make_unique"):
        HRTSelector(FAST).fit(make("stand-in", X, obs, [*names[:-1], "g0"]), "score")
    with pytest.raises(ValueError, match=r"adata.X is empty; set it"):
        HRTSelector(FAST).fit(make("stand-in", None, obs, names), "score")
    with pytest.raises(TypeError, match=r"adata\.X holds object"):
        HRTSelector(FAST).fit(make("stand-in", X.astype(object), obs, names), "score")
    hrt = HRTSelector(FAST, random_state=0).fit(X[:, :5], obs["score"].to_numpy())
    with pytest.raises(ValueError, match=r"fitted to 5 columns, .* adata.var_names \(12\)"):
        annotate(adata, hrt)


def test_anndata_is_never_imported():
    sources = Path(sobolev.__file__).parent.rglob("*.py")
    assert not [path for path in sources if "import anndata" in path.read_text(encoding="utf-8")]
