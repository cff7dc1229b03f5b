"""Pages that open from the file system."""

import classroom
import pytest


@pytest.mark.parametrize(
    ("link", "to"),
    [
        ("../02_block/", "../02_block/index.html"),
        ("../../api/a/#s.b", "../../api/a/index.html#s.b"),
        ("../x/?a=1#b", "../x/index.html?a=1#b"),
        ("..", "../index.html"),
        (".", "./index.html"),
    ],
)
def test_a_link_to_a_folder_leads_to_its_page(link, to):
    assert classroom.with_files(f'<a href="{link}">') == f'<a href="{to}">'


@pytest.mark.parametrize(
    "link", ["#there", "https://a.org/b/", "mailto:a@b.org", "../assets/site.css", "x.ipynb", "/"]
)
def test_other_links_stay(link):
    assert classroom.with_files(f'<a href="{link}">') == f'<a href="{link}">'


def test_a_folder_that_is_there_is_left_alone(tmp_path):
    with pytest.raises(SystemExit, match="is there already"):
        classroom.main(tmp_path)
