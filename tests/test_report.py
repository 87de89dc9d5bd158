import matplotlib.pyplot as plt
import pandas as pd

from sobolev.report import ranking_report

NASTY = "<script>alert(1)</script>"


def test_user_text_is_escaped_and_the_page_needs_no_network():
    table = pd.DataFrame({"feature": [NASTY], "importance": [1.0], "selected": [True]})
    figure = plt.figure()
    page = ranking_report(NASTY, NASTY, table, figure, {NASTY: NASTY})
    plt.close(figure)
    assert "<script>" not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 5
    assert "http://" not in page
    assert "https://" not in page
    assert "data:image/png;base64," in page
