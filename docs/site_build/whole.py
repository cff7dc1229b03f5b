"""A whole Transformer in one drawing, from tokens to the next word.

One chain of parts, laid out twice: from left to right for a screen, upwards for a phone, as the
book draws it. What a part embodies are its equations; where a chapter declares one of them, the
part is where the reader is.
"""

from dataclasses import dataclass
from html import escape

from wiring import Drawing, Link


@dataclass(frozen=True)
class Part:
    """A part of the drawing.

    Attributes:
        key: its name in this file.
        lines: what is written in it, from left to right.
        title: its name in a sentence; "" for what needs none.
        slugs: the equations that it embodies; it leads to the first.
        wide: its length along the chain from left to right, in pixels.
    """

    key: str
    lines: tuple[str, ...]
    title: str
    slugs: tuple[str, ...] = ()
    wide: float = 0.0


ATTENTION = ("mh-par-out", "head-par", "mh-concat", "head")
CHAIN = (
    Part("tokens", ("the", "string", "was"), "tokens", wide=46),
    Part("E", ("E",), "token embedding", ("onehot",), 34),
    Part("sum", ("+",), "", ("X",), 20),
    Part("ln1", ("layer", "norm"), "layer norm", ("ln", "t1", "T1"), 48),
    Part("mha", ("multi-head", "attention"), "multi-head attention", ATTENTION, 90),
    Part("add1", ("+",), "adding to the stream", ("O", "t3"), 20),
    Part("ln2", ("layer", "norm"), "", ("t4", "ln", "T4"), 48),
    Part("ffn", ("feed-", "forward"), "feedforward layer", ("ffn",), 62),
    Part("add2", ("+",), "", ("H", "h"), 20),
    Part("lnf", ("layer", "norm"), "final layer norm", ("final-ln",), 48),
    Part("head", ("Eᵀ",), "language-model head", ("logits",), 34),
    Part("softmax", ("softmax",), "softmax", ("probs",), 64),
    Part("choose", ("choose",), "choosing a word", ("top-p", "greedy"), 58),
    Part("next", ("flat",), "the next word", wide=34),
)
BESIDE = (
    Part("P", ("P",), "positions", ("X", "sinusoid", "rope"), 34),
    Part("lora", ("LoRA",), "LoRA", ("lora",), 46),
    Part("cache", ("cache",), "key-value cache", ("kv-attn",), 50),
    Part("encoder", ("encoder",), "cross-attention to an encoder", ("cross-attn",), 64),
    Part("loss", ("loss",), "loss", ("ce",), 44),
)
INSIDE = ("ln1", "mha", "add1", "ln2", "ffn", "add2")
# Chapters that declare no equation of a part, by their number.
ELSEWHERE = {
    9: ("stream", "mha"),
    11: ("encoder", "mha"),
    12: ("tokens", "next"),
    13: ("encoder", "tokens", "next"),
    14: ("P", "ln1", "mha", "ln2", "ffn"),
}
_STREAM = "the residual stream"

TEXT = (
    "A Transformer, from tokens to the next word. Each token becomes a row of the embedding E, and "
    "a row for its position, P, is added. Then L blocks, one after the other: layer norm, "
    "multi-head attention, added to the stream; layer norm, feedforward layer, added to the "
    "stream. Attention may use a cache of keys and values, read an encoder, or be tuned by LoRA. "
    "After the blocks a final layer norm, the language-model head E transposed, and a softmax give "
    "the probabilities of the next word, which is chosen from them; in training, the loss compares "
    "them with the word that came."
)


def here(number: int, declared: set[str]) -> frozenset[str]:
    """The parts that a chapter is about, by its number and the equations that it declares."""
    found = {part.key for part in (*CHAIN, *BESIDE) if declared & set(part.slugs)}
    found |= {"block"} if "stack" in declared else set()
    return frozenset(ELSEWHERE.get(number, found))


def named(parts: frozenset[str]) -> str:
    """The parts in words: "token embedding, positions"."""
    titles = [_STREAM] if "stream" in parts else []
    titles += [p.title for p in (*CHAIN, *BESIDE) if p.key in parts and p.title]
    return ", ".join(dict.fromkeys(titles))


def drawing(link: Link, parts: frozenset[str], upright: bool) -> str:
    """The drawing, from left to right or upright."""
    drawn = _upright(link, parts) if upright else _lying(link, parts)
    return drawn.svg(TEXT, "slp-upright" if upright else "slp-lying")


def _lying(link: Link, parts: frozenset[str]) -> Drawing:
    top, y, low, gap = 20.0, 106.0, 178.0, 10.0
    d = Drawing(800, 200, link, parts)
    at, x = {}, 4.0
    for part in CHAIN:
        x += 8 if part.key in ("ln1", "lnf") else 0  # the frame of the block
        at[part.key] = x + part.wide / 2
        x += part.wide + gap
    left, right = at["ln1"] - 24 - 13, at["add2"] + 10 + 9
    d.frame((left, 34), (right - left, 110), "block")
    d.words((left + 8, 47), "block × L", anchor="start", kind="quiet")
    stream = "here-line" if "stream" in parts else "stream"
    for a, b in zip(CHAIN, CHAIN[1:], strict=False):
        ends = at[a.key] + a.wide / 2, at[b.key] - b.wide / 2 - 1
        d.line((ends[0], y), (ends[1], y), kind=stream if b.key in _STOPS else "line")
    for start, end in (("ln1", "add1"), ("ln2", "add2")):
        from_x = at[start] - 24 - 6
        d.line((from_x, y), (from_x, 68), (at[end], 68), (at[end], y - 11), kind=stream)
    for part in CHAIN:
        _put(d, part, (at[part.key], y), (part.wide, 44))
    beside = {
        "P": (at["sum"], low), "loss": (at["softmax"], top),
        "lora": (at["mha"] - 62, low), "cache": (at["mha"], low), "encoder": (at["mha"] + 70, low),
    }  # fmt: skip
    for part in BESIDE:
        _put(d, part, beside[part.key], (part.wide, 30), "aside" if part.key != "P" else "box")
    d.line((at["sum"], low - 15), (at["sum"], y + 11))
    d.line((at["softmax"], y - 22), (at["softmax"], top + 16), kind="dashed")
    for key, shift in (("lora", -22), ("cache", 0), ("encoder", 22)):
        down = at["mha"] + shift
        d.line((beside[key][0], low - 15), (down, y + 23), kind="dashed")
    d.words((at["softmax"] + 30, top), "the word that came", anchor="start", kind="quiet")
    return d


def _upright(link: Link, parts: frozenset[str]) -> Drawing:
    height, x, aside, gap = 648.0, 118.0, 286.0, 13.0
    d = Drawing(346, height, link, parts)
    at, y = {}, height - 4
    tall = {"+": 20.0}
    for part in CHAIN:
        y -= 14 if part.key in ("ln1", "lnf") else 0
        size = tall.get(part.lines[0], 32.0)
        at[part.key] = y - size / 2
        y -= size + gap
    below, above = at["ln1"] + 16 + 15, at["add2"] - 10 - 9
    d.frame((4, above), (234, below - above), "block")
    d.words((232, above + 16), "block × L", anchor="end", kind="quiet")
    stream = "here-line" if "stream" in parts else "stream"
    for a, b in zip(CHAIN, CHAIN[1:], strict=False):
        half = [tall.get(p.lines[0], 32.0) / 2 for p in (a, b)]
        ends = at[a.key] - half[0], at[b.key] + half[1] + 1
        d.line((x, ends[0]), (x, ends[1]), kind=stream if b.key in _STOPS else "line")
    for start, end in (("ln1", "add1"), ("ln2", "add2")):
        low = at[start] + 16 + 7
        d.line((x, low), (24, low), (24, at[end]), (x - 11, at[end]), kind=stream)
    for part in CHAIN:
        wide = 164.0 if part.key in ("mha", "ffn", "tokens") else 96.0
        flat = Part(part.key, (" ".join(part.lines).replace("- ", ""),), part.title, part.slugs)
        _put(d, part if part.lines == ("+",) else flat, (x, at[part.key]), (wide, 32))
    beside = {
        "P": at["sum"], "loss": at["softmax"],
        "lora": at["mha"] + 44, "cache": at["mha"], "encoder": at["mha"] - 44,
    }  # fmt: skip
    for part in BESIDE:
        size = (max(part.wide, 40) + 12, 32)
        _put(d, part, (aside, beside[part.key]), size, "aside" if part.key != "P" else "box")
    d.line((aside - 26, beside["P"]), (x + 11, at["sum"]))
    d.line((x + 48, at["softmax"]), (aside - 29, beside["loss"]), kind="dashed")
    for key, shift in (("lora", 9), ("cache", 0), ("encoder", -9)):
        wide = next(p.wide for p in BESIDE if p.key == key) + 12
        d.line((aside - wide / 2, beside[key]), (x + 83, at["mha"] + shift), kind="dashed")
    return d


# Where the stream goes on: into a sum, and from the last sum to the final norm.
_STOPS = ("sum", "ln1", "add1", "ln2", "add2", "lnf")


def _put(d: Drawing, part: Part, center: tuple, size: tuple, kind: str = "box") -> None:
    slug = next((slug for slug in part.slugs if d.link(slug)), "")
    if part.lines == ("+",):
        d.plus(center, slug, part.key)
    elif part.slugs:
        d.box(center, size, part.lines, slug, part.key, kind)
    else:
        d.part_words(center, part.lines, part.key)


def parts_list(link: Link, ways: dict[str, str]) -> str:
    """The parts in words, each with its ways on, for those who do not see the drawing.

    Args:
        link: where an equation is found.
        ways: the links to each equation's code and proof.
    """
    items = []
    for part in (*CHAIN, *BESIDE):
        slug = next((slug for slug in part.slugs if link(slug)), "")
        if slug and part.title:
            address, said = link(slug)
            equation = f'<a href="{escape(address)}">{escape(said)}</a>'
            title = part.title[0].upper() + part.title[1:]
            items.append(f"<li><strong>{title}</strong> {equation} {ways.get(slug, '')}</li>")
    return f'<ul class="slp-parts">{"".join(items)}</ul>'
