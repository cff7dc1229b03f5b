"""The picture with which a link to a page is shown elsewhere: its title and what it is about."""

import textwrap
from functools import cache
from io import BytesIO
from pathlib import Path

from fontTools.ttLib import TTFont
from PIL import Image, ImageDraw, ImageFont

SIZE = (1200, 630)
PAPER, INK, QUIET, WARM = "#fdfbf6", "#26231e", "#6b655a", "#b4581a"
SERIF = Path("docs", "assets", "fonts", "source-serif-4-latin-wght-normal.woff2")


@cache
def _font(root: Path, size: int, weight: int) -> ImageFont.FreeTypeFont:
    unpacked = BytesIO()
    font = TTFont(root / SERIF)
    font.flavor = None
    font.save(unpacked)
    unpacked.seek(0)
    loaded = ImageFont.truetype(unpacked, size)
    loaded.set_variation_by_axes([weight])
    return loaded


def draw(root: Path, title: str, about: str, path: Path) -> None:
    """Draws a card, as PNG.

    Args:
        root: the project's folder, which has the font.
        title: the page's title.
        about: its description.
        path: the file to write.
    """
    card = Image.new("RGB", SIZE, PAPER)
    pen = ImageDraw.Draw(card)
    pen.rectangle((0, 0, 24, SIZE[1]), fill=WARM)
    heading = "\n".join(textwrap.wrap(title, 26)[:3])
    text = "\n".join(textwrap.wrap(about, 52, max_lines=4, placeholder=" …"))
    pen.multiline_text((90, 60), heading, INK, _font(root, 76, 600), spacing=14)
    pen.multiline_text((90, 285), text, QUIET, _font(root, 40, 400), spacing=12)
    pen.text((90, 550), "slp_transformer", WARM, _font(root, 34, 600))
    path.parent.mkdir(parents=True, exist_ok=True)
    card.save(path, optimize=True)
