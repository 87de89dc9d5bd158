"""Numbers as text: the one way in which p-values are shown, on screen, in plots and in reports."""

from __future__ import annotations

# Smaller p-values are shown as "< 1e-12": their approximations are not exact that far out.
FLOOR = 1e-12


def shown_pvalue(p: float) -> str:
    """A p-value or q-value as text.

    Examples
    --------
    >>> from sobolev._numbers import shown_pvalue
    >>> [shown_pvalue(p) for p in (3e-40, 3.21e-5, 0.03125, 1.0, float("nan"))]
    ['<1e-12', '3.2e-05', '0.031', '1', '–']
    """
    if p != p:
        return "–"
    if p < FLOOR:
        return f"<{FLOOR:.0e}"
    if p < 1e-3:
        return f"{p:.1e}"
    return "1" if p == 1 else f"{p:.3f}"


def shown_share(share: float) -> str:
    """A share in per cent, without decimals; a positive one is not zero.

    Examples
    --------
    >>> from sobolev._numbers import shown_share
    >>> [shown_share(share) for share in (0.18, 0.004)]
    ['18 %', '<1 %']
    """
    return "<1 %" if 0 < share < 0.01 else f"{100 * share:.0f} %"


def pvalue_equation(p: float, name: str = "p") -> str:
    """A p-value with its name.

    Examples
    --------
    >>> from sobolev._numbers import pvalue_equation
    >>> pvalue_equation(3e-40), pvalue_equation(0.2)
    ('p < 1e-12', 'p = 0.200')
    """
    shown = shown_pvalue(p)
    return f"{name} < {shown[1:]}" if shown.startswith("<") else f"{name} = {shown}"
