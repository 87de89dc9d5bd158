"""Progress is written to standard error, or not at all."""

from sobolev._progress import Progress, listening


def run(verbose):
    with Progress(verbose) as progress:
        progress.stage("training at lam=0.1", 100)
        progress.step("update 50, SIC [0.1]", 50)
        progress.step("update 100, SIC [0.2]", 100)


def test_silent_without_verbose(capsys):
    run(0)
    assert capsys.readouterr() == ("", "")


def test_a_bar_ends_with_the_last_step(capsys):
    run(1)
    out, err = capsys.readouterr()
    assert out == ""
    assert "training at lam=0.1 · update 100, SIC [0.2]" in err
    assert "update 50" not in err


def test_lines_tell_every_step(capsys):
    run(2)
    out, err = capsys.readouterr()
    assert out == ""
    for step in ("update 50, SIC [0.1]", "update 100, SIC [0.2]"):
        assert f"training at lam=0.1 · {step}" in err


def test_the_bar_stops_when_training_fails(capsys):
    try:
        with Progress(1) as progress:
            progress.stage("training", 10)
            raise ArithmeticError
    except ArithmeticError:
        assert not progress.shown.bar.live.is_started
    capsys.readouterr()


class Listener:
    def __init__(self):
        self.heard = []

    def stage(self, text, total=None):
        self.heard.append((text, total))

    def step(self, text, completed=None):
        self.heard.append((text, completed))


def test_a_listener_hears_the_outer_fit_alone(capsys):
    listener = Listener()
    with listening(listener), Progress(0) as outer:
        outer.stage("testing", 2)
        run(0)  # a fit within the fit
        outer.step("block 1", 1)
    run(0)
    assert listener.heard == [("testing", 2), ("testing · block 1", 1)]
    assert capsys.readouterr() == ("", "")
