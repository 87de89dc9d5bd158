"""The texts of the report: what was done, what to cite, when not to trust it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sobolev.report.result import SelectionResult
from sobolev.tables.suspects import IF_TOGETHER
from sobolev.validation import list_some

if TYPE_CHECKING:
    from sobolev.inference import AuditResult

AUDIT_COLUMNS = ("response", "runs", "FDR", "power", "selected", "runs with false finds")
REFERENCES = {
    "sic": "Mroueh, Y., Sercu, T., Rigotti, M., Padhi, I., Nogueira dos Santos, C. (2019). Sobolev "
    "Independence Criterion. Advances in Neural Information Processing Systems 32.",
    "hrt": "Tansey, W., Veitch, V., Zhang, H., Rabadan, R., Blei, D. M. (2022). The holdout "
    "randomization test for feature selection in black box models. Journal of Computational and "
    "Graphical Statistics 31, 151–162.",
    "knockoffs": "Candès, E., Fan, Y., Janson, L., Lv, J. (2018). Panning for gold: “model-X” "
    "knockoffs for high dimensional controlled variable selection. Journal of the Royal "
    "Statistical Society B 80, 551–577.",
    "draws": "Ren, Z., Barber, R. F. (2024). Derandomised knockoffs: leveraging e-values for false "
    "discovery rate control. Journal of the Royal Statistical Society B 86, 122–154.",
    "bh": "Benjamini, Y., Hochberg, Y. (1995). Controlling the false discovery rate: a practical "
    "and powerful approach to multiple testing. Journal of the Royal Statistical Society B 57, "
    "289–300.",
    "orders": "Liu, Y., Xie, J. (2020). Cauchy combination test: a powerful test with analytic "
    "p-value calculation under arbitrary dependency structures. Journal of the American "
    "Statistical Association 115, 393–402.",
    "by": "Benjamini, Y., Yekutieli, D. (2001). The control of the false discovery rate in "
    "multiple testing under dependency. Annals of Statistics 29, 1165–1188.",
    "storey": "Storey, J. D. (2002). A direct approach to false discovery rates. Journal of the "
    "Royal Statistical Society B 64, 479–498.",
}
_SIC = "the Sobolev Independence Criterion (Mroueh et al. 2019)"
_CRITICS = {
    "convex": "a convex critic (ConvexSIC)",
    "neural": "a neural network as critic (NeuralSIC)",
}
_BEST_MAP = (
    "This critic is a weighted sum of a linear critic, one of functions of single columns and of "
    "pairs, and a kernel of all columns, without those that predict held-out rows clearly worse."
)
_CONDITIONALS = {
    "auto": "logistic or ridge regression with resampled residuals where these fit, the leaf "
    "weights of a random forest where they do not",
    "forest": "the leaf weights of a random forest",
    "mixed": "class probabilities for columns with at most ten values, ridge regression with "
    "resampled residuals for the others",
    "gaussian": "a joint normal distribution",
    "residual": "ridge regression with resampled residuals",
    "categorical": "class probabilities",
    "neural": "a neural network",
}
_PVALUES = {
    "saddlepoint": "by a saddlepoint approximation",
    "montecarlo": "by simulation",
    "studentised": "from the differences between the statistic and its conditional mean, divided "
    "by the spread seen in the data",
    "robust": "by a saddlepoint approximation; the p-value reported is the larger of this and of "
    "the studentised sum of the differences between the statistic and its conditional mean, which "
    "is valid if either the distribution or the conditional mean of the statistic is right",
}
_SAMPLERS = {
    "auto": "chosen by planted responses",
    "gaussian": "Gaussian",
    "matched": "observed values of rows with similar predictions (predictive mean matching)",
    "copula": "Gaussian copula",
    "sequential": "sequential conditional",
    "lowrank": "low-rank factor model",
    "fixed": "fixed-X",
    "fixedx": "fixed-X",
}
_PROCEDURES = {
    "bh": "the procedure of Benjamini and Hochberg (1995)",
    "by": "the procedure of Benjamini and Yekutieli (2001)",
    "storey": "the procedure of Benjamini and Hochberg (1995) with Storey's (2002) estimate of the "
    "proportion of true null hypotheses",
}

# What each method relies on.
_ASSUMPTIONS = {
    "hrt": {
        "A wrong model of the features.": "The p-values are valid if the model of each feature "
        "given the others is right, at least in its mean. An audit (sobolev audit) measures the "
        "level on the columns of this table."
    },
    "knockoffs": {
        "A wrong model of the features.": "The level holds if the knockoffs imitate the features "
        "well. Take any warning above about columns that do not fit seriously."
    },
    "rank": {
        "Any cut in the list.": "Importances compare features with each other. They do not say "
        "which ones differ from chance; use the method hrt or knockoffs for that."
    },
}


def percent(level: float) -> str:
    """A level as the page writes it: 0.1 is "10 %"."""
    return f"{100 * level:g} %"


def methods(result: SelectionResult) -> str:
    """A paragraph for the methods section of a paper.

    It reads these entries of ``result.settings``, where given: critic, scheme, test_size,
    conditional, pvalue, procedure, n_repeats (HRT); sampler, offset, n_draws (knockoffs); adjust,
    groups, missing, seed.

    Parameters
    ----------
    result : SelectionResult

    Returns
    -------
    str
    """
    text = {"hrt": _hrt, "knockoffs": _knockoffs, "rank": _rank}[result.method](result)
    if result.data.get("response"):
        text.append(str(result.data["response"]))
    joint = "ranked" if result.method == "rank" else "tested"
    if (result.table["kind"] == "categorical").any():
        text.append(f"Categorical columns were one-hot coded and {joint} as a whole.")
    if result.settings.get("groups"):
        text.append(f"The columns of a group were {joint} together.")
    if any("Missing cells were drawn" in said for said in result.warnings):
        bounded = ", five times, and p-values are no smaller than by Rubin's rules"
        often = bounded if result.method == "hrt" else ""
        text.append(
            "Missing cells were drawn from regressions on the other columns and the response"
            f"{often}."
        )
    if result.settings.get("missing") == "drop" and result.data.get("rows_dropped"):
        text.append(f"{result.data['rows_dropped']:,} rows with missing values were removed.")
    version, seed = result.versions.get("sobolev"), result.settings.get("seed")
    made = "We used the Python package sobolev"
    made += f" {version}" if version else ""
    text.append(f"{made} (random seed {seed})." if seed is not None else f"{made}.")
    return " ".join(text)


def references(result: SelectionResult) -> list[str]:
    """What the methods paragraph cites."""
    keys = ["sic"] if _uses_sic(result.settings) else []
    if result.method == "hrt":
        procedure = result.settings.get("procedure", "bh")
        keys += ["hrt", "bh", "storey"] if procedure == "storey" else ["hrt", procedure]
        keys += ["orders"] * (_repeats(result.settings) > 1)
    if result.method == "knockoffs":
        keys += ["knockoffs"] + ["draws"] * (_draws(result.settings) > 1)
    return sorted(REFERENCES[key] for key in keys)


def _repeats(settings: Mapping[str, Any]) -> int:
    return int(settings.get("n_repeats") or 1)


def _hrt(result: SelectionResult) -> list[str]:
    settings, m = result.settings, int(result.table["pvalue"].notna().sum())
    statistic = f"the loss of {_critic(settings)} as test statistic"
    if _uses_sic(settings):
        statistic = f"{_SIC} as test statistic, computed with {_critic(settings)}"
    text = [
        f"We tested which of {_features(result)} are associated with {_targets(result)} given all "
        f"other features{_covariates(result)}, by the holdout randomization test (Tansey et al. "
        f"2022) with {statistic}.",
    ]
    if settings.get("critic", "convex") == "convex":
        text.append(_BEST_MAP)
    share = settings.get("test_size")
    if settings.get("scheme", "forward") == "forward":
        first = percent(1 - float(0.7 if share is None else share))
        text.append(
            f"The critic was fitted to a random {first} of {_rows(result)}; the other rows were "
            "tested in blocks, each with a critic refitted to all rows before it, and the p-values "
            "of the blocks were combined by Stouffer's method, weighted by size."
        )
    else:
        last = percent(float(0.5 if share is None else share))
        text.append(f"Of {_rows(result)}, a random {last} was held out for the test.")
    if m < len(result.table):
        text.append(f"Only the {m} features most important on the training rows were tested.")
    conditional = str(settings.get("conditional", "auto"))
    how = _PVALUES[str(settings.get("pvalue", "robust"))]
    text.append(
        "On the held-out rows each feature in turn was replaced by draws from a model of its "
        f"distribution given all others ({_CONDITIONALS.get(conditional, conditional)}). Its "
        "p-value is the probability that the statistic with draws is at least as large as with the "
        f"observed values, {how}."
    )
    if _repeats(settings) > 1:
        text.append(
            f"The test was repeated with {_repeats(settings)} orders of the rows; the p-values "
            "of a feature were merged by Cauchy's rule (Liu and Xie 2020)."
        )
    procedure = _PROCEDURES[settings.get("procedure", "bh")]
    level = percent(result.fdr or 0)
    text.append(f"The p-values were adjusted by {procedure} at a false discovery rate of {level}.")
    if settings.get("pvalue", "robust") == "robust":
        text.append(
            "What was selected was tested again with a model of the columns corrected by held-out "
            "predictions (trees, products and kernels of the other columns); a p-value above 0.05 "
            "took the place of the first, and the adjustment was repeated."
        )
    return text


def _knockoffs(result: SelectionResult) -> list[str]:
    settings, draws = result.settings, _draws(result.settings)
    sampler = str(settings.get("sampler", "auto"))
    importances = f"the importances of {_critic(settings)}"
    if _uses_sic(settings):
        importances = f"the importances of {_SIC}, computed with {_critic(settings)}"
    text = [
        f"We selected the features, among {_features(result)}, that are associated with "
        f"{_targets(result)} given all other features{_covariates(result)}, by the knockoff filter "
        f"(Candès et al. 2018) on {_rows(result)}, with {importances} for features and knockoffs "
        "together.",
        *([_BEST_MAP] if settings.get("critic", "convex") == "convex" else []),
        f"Knockoffs: {_SAMPLERS.get(sampler, sampler)}.",
    ]
    offset = int(settings.get("offset", 1))
    level = percent(result.fdr or 0)
    if draws == 1:
        kind = "offset 1 (knockoff+)" if offset else "offset 0, which controls a modified rate only"
        text.append(
            f"Features were selected at a false discovery rate of {level} with {kind}, from one "
            "draw of the knockoffs."
        )
    else:
        half = percent((result.fdr or 0) / 2)
        text.append(
            f"To depend less on the random draw, we averaged the e-values of {draws} draws of the "
            f"knockoffs, with thresholds at level {half} and offset {offset}, and selected "
            f"features by e-BH at a false discovery rate of {level} (Ren and Barber 2024)."
        )
    return text


def _rank(result: SelectionResult) -> list[str]:
    return [
        f"We ranked {_features(result)} by their share in {_SIC} with "
        f"{_targets(result)}{_covariates(result)}, computed on {_rows(result)} with "
        f"{_critic(result.settings)}.",
        "The ranking controls no error rate.",
    ]


def meaning(result: SelectionResult) -> str:
    """What the answer means, in plain words."""
    skill = [] if result.skill is None else [result.skill.sentence]
    y, n = _targets(result), len(result.selected)
    if result.fdr is None:
        said = [
            f"The features are ordered by how much a model of {y} uses them. A ranking has no "
            "error guarantee: some feature always comes first."
        ]
        if result.skill is None:
            said.append("Whether the model predicts rows that it has not seen was not measured.")
        return " ".join([*skill, *said] if _no_skill(result) else [*said, *skill])
    level = percent(result.fdr)
    if not n:
        said = [
            f"For no feature is there enough evidence that it tells something about {y} that the "
            "other columns of this table do not."
        ]
        return " ".join([*said, *skill])
    them = "The selected feature tells" if n == 1 else f"Each of the {n:,} selected features tells"
    said = [f"{them} something about {y} that the other columns of this table do not."]
    if result.audit is not None and not result.audit.passed:
        said.append(
            f"But the level of {level} is not assured on this table: the audit below measured a "
            f"false discovery rate of {percent(round(result.audit.fdr, 2))}. Read the selection as "
            "a ranking, or use another model of the columns."
        )
    else:
        said.append(
            f"On average over repeated studies at most {level} of the features that are selected "
            "in this way are false."
        )
        if result.audit is not None and result.audit.fdr > result.audit.level:
            said.append(_unsettled(result.audit, result.settings.get("command")))
    if rows_in_question(result):
        said.append(
            "But rows seem to belong together (see the note below). If they do, the evidence is "
            "overstated and the level does not hold."
        )
    if result.method == "knockoffs" and _draws(result.settings) == 1 and not _offset(result):
        said.append("With offset 0 and one draw this holds only approximately.")
    return " ".join([*said, *skill])


def rows_in_question(result: SelectionResult) -> bool:
    """Whether features were selected from rows that seem to belong together."""
    asked = any(text.endswith(IF_TOGETHER) for text in result.warnings)
    return asked and result.fdr is not None and bool(result.selected)


def _unsettled(found: AuditResult, command: str | None) -> str:
    """What to make of an audit above the level, but not beyond chance."""
    n = len(found.runs)
    return (
        f"The audit below does not settle it: {percent(round(found.fdr, 2))} is above the level, "
        f"and {n:,} responses are too few to tell whether by chance. Audit again with more, such "
        f"as {3 * n:,} ({_longer_audit(command, 3 * n)}), before you rely on the level."
    )


def _longer_audit(command: str | None, repeats: int) -> str:
    """How to audit again, from the command of a run."""
    begin = "sobolev select "
    if command is None or not command.startswith(begin):
        return f"audit(selector, X, y, n_repeats={repeats})"
    asked = command.removeprefix(begin).replace(" --audit", "")
    return f"sobolev audit {asked} --repeats {repeats}"


def no_meaning(result: SelectionResult) -> str:
    """What the answer does not mean, in plain words."""
    cause = (
        "A selected feature need not be a cause: something that was not measured may stand behind "
        "it."
    )
    if result.fdr is None:
        return (
            "Importances are not p-values: they do not say which features differ from chance. "
            f"{cause}"
        )
    missed = (
        f"A feature that is not selected may still matter: its effect may be too small for "
        f"{_rows(result)}, or shared with other columns{_near_copies(result)}."
    )
    return f"{cause} {missed}" if result.selected else missed


def _near_copies(result: SelectionResult) -> str:
    """The largest clusters of near copies, to follow a sentence; empty if there are none."""
    found = [list_some(list(names), 4) for names, _ in result.data.get("clusters") or ()]
    return f" (near copies: {list_some(found, 2, '; ')})" if found else ""


def exploring(result: SelectionResult) -> str:
    """What moving the level afterwards costs."""
    text = (
        f"The level of the run, {percent(result.fdr or 0)}, was set before the result was seen. "
        "The slider is for exploration: a level chosen because of what it selects does not keep "
        "its promise."
    )
    if result.method == "knockoffs" and _draws(result.settings) > 1:
        text += " At other levels, the threshold of each draw stays that of the run."
    return text


def _no_skill(result: SelectionResult) -> bool:
    return result.skill is not None and not result.skill.is_clear


def _offset(result: SelectionResult) -> int:
    return int(result.settings.get("offset", 1))


def doubts(result: SelectionResult) -> list[tuple[str, str]]:
    """When not to trust the result: a short name and a sentence each."""
    found = _ASSUMPTIONS[result.method] | {
        "Rows that belong together.": "Repeated measurements, families, batches or time series "
        "break the assumption that rows are independent; then the level does not hold.",
        "Unmeasured variables.": "A selected feature is associated with the response given the "
        "other columns of this table. It need not be a cause.",
        "Features that are nearly copies.": "Given its copy, a feature adds little: both can be "
        "missed. Exact and near copies are tested as one feature, more distant ones are not.",
    }
    if result.method == "rank":
        found["Features that are nearly copies."] = (
            "They share one importance, so each of them can look unimportant."
        )
    if result.method == "knockoffs" and _draws(result.settings) == 1:
        found["One random draw."] = (
            "Another seed gives other knockoffs and may select different features; with several "
            "draws the selection depends less on the seed."
        )
    return list(found.items())


def audit(found: AuditResult) -> list[str]:
    """What the audit measured, in sentences."""
    low, high = found.band
    said = [
        found.verdict,
        f"95 % interval: {low:.2f} to {high:.2f}. Signal-to-noise ratio of the planted responses: "
        f"{found.signal_to_noise:g}.",
    ]
    if found.null_shares:
        shares = [
            f"{100 * s:.1f} % are at most {level:g}" for level, s in found.null_shares.items()
        ]
        said.append(f"Of the p-values of features without effect, {' and '.join(shares)}.")
    most = list(found.most_false.items())
    if most:
        named = list_some([f"{name} ({count})" for name, count in most])
        said.append(f"Selected falsely most often, with the number of responses: {named}.")
    return said


def audit_rows(found: AuditResult) -> list[list[str]]:
    """The table of the audit as text, one row for each kind of response, and one for all."""
    rows = [
        [
            str(row["response"]),
            str(row["runs"]),
            f"{row['fdr']:.2f}",
            _or_dash(row["power"]),
            f"{row['selected']:.1f}",
            str(row["false_finds"]),
        ]
        for _, row in found.table().iterrows()
    ]
    mean = sum(run.n_selected for run in found.runs) / len(found.runs)
    false = str(sum(bool(run.false) for run in found.runs))
    total = [str(len(found.runs)), f"{found.fdr:.2f}", _or_dash(found.power), f"{mean:.1f}", false]
    return [*rows, ["all responses", *total]]


def _or_dash(value: float) -> str:
    return "–" if value != value else f"{value:.2f}"


def _critic(settings: Mapping[str, Any]) -> str:
    critic = str(settings.get("critic", "convex"))
    return _CRITICS.get(critic, critic)


def _uses_sic(settings: Mapping[str, Any]) -> bool:
    """Whether the critic is one of the package, not a predictor."""
    return str(settings.get("critic", "convex")) in _CRITICS


def _draws(settings: Mapping[str, Any]) -> int:
    return int(settings.get("n_draws") or 1)


def _features(result: SelectionResult) -> str:
    return f"{len(result.table):,} features"


def _covariates(result: SelectionResult) -> str:
    """The covariates, to follow what a feature is tested given; empty without any."""
    names = [str(name) for name in result.settings.get("adjust") or ()]
    if not names:
        return ""
    given = "given " if result.method == "rank" else "and given "
    were = "was" if len(names) == 1 else "were"
    done = "ranked" if result.method == "rank" else "tested"
    role = f"always in the model and not penalised or {done}"
    if not _uses_sic(result.settings):  # a predictor may leave them out
        role = f"among the columns of the model and not {done}"
    return f" {given}{_and(names)}, which {were} {role}"


def _rows(result: SelectionResult) -> str:
    rows = result.data.get("rows")
    return "the rows" if rows is None else f"{rows:,} rows"


def _targets(result: SelectionResult) -> str:
    names = [f"“{name}”" for name in result.targets]
    if len(names) == 2 and list(result.data.get("classes", ())) == ["event", "censored"]:
        return f"{names[0]} until {names[1]}"
    if not names:
        return "the response"
    if len(names) <= 3:
        return _and(names)
    return f"{len(names)} responses jointly"


def _and(names: Sequence[str]) -> str:
    """Names as in a sentence: a, b and c."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)
