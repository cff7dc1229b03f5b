"""Diagrams in SVG: of parts of the model for the chapters, and of a whole Transformer.

Boxes lead to their equations. The style sheet (`.slp-wiring`) says what things look like, so a
diagram follows the page's color scheme, and paper. A diagram for a phone is at most 350 pixels
wide, with letters of 13 pixels; it grows upwards, as the book's do.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape
from math import hypot

# Find an equation: its address and the link's text; None where it has no place.
Link = Callable[[str], tuple[str, str] | None]
_LINE = 15.0  # from one line of text to the next


@dataclass
class Drawing:
    """A drawing that grows with each call.

    Attributes:
        width: in pixels, at the size in which its letters have 13.
        height: likewise.
        link: where an equation is found.
        here: the names of the parts that stand out.
    """

    width: float
    height: float
    link: Link
    here: frozenset[str] = frozenset()
    _back: list[str] = field(default_factory=list)
    _front: list[str] = field(default_factory=list)

    def box(
        self,
        center: tuple[float, float],
        size: tuple[float, float],
        lines: Sequence[str] | str,
        slug: str = "",
        part: str = "",
        kind: str = "box",
    ) -> None:
        """A named box; it leads to its equation, if it has one."""
        (x, y), (w, h) = center, size
        lines = [lines] if isinstance(lines, str) else list(lines)
        shape = (
            f'<rect class="w-{kind}" x="{x - w / 2:.0f}" y="{y - h / 2:.0f}" '
            f'width="{w:.0f}" height="{h:.0f}" rx="4"/>'
        )
        self._part(shape + self._lines(x, y, lines), " ".join(lines), slug, part)

    def plus(self, center: tuple[float, float], slug: str = "", part: str = "") -> None:
        """A sum; what the pointer has to meet is larger than the circle."""
        x, y = center
        shape = (
            f'<circle class="w-target" cx="{x:.0f}" cy="{y:.0f}" r="13"/>'
            f'<circle class="w-box" cx="{x:.0f}" cy="{y:.0f}" r="10"/>'
            f'<path class="w-line" d="M{x - 5:.0f} {y:.0f}h10M{x:.0f} {y - 5:.0f}v10"/>'
        )
        self._part(shape, "sum", slug, part)

    def words(self, at: tuple[float, float], lines: Sequence[str] | str, **how: str) -> None:
        """Words that lead nowhere; `anchor` is start, middle or end, `kind` quiet or none."""
        lines = [lines] if isinstance(lines, str) else list(lines)
        self._front.append(self._lines(*at, lines, **how))

    def part_words(self, at: tuple[float, float], lines: Sequence[str], part: str) -> None:
        """Words that may stand out, as a part does."""
        mark = ' class="w-here"' if part in self.here else ""
        self._front.append(f"<g{mark}>{self._lines(*at, lines)}</g>")

    def line(self, *points: tuple[float, float], kind: str = "line", arrow: bool = True) -> None:
        """A line through points, with a head at its end."""
        path = "M" + "L".join(f"{x:.0f} {y:.0f}" for x, y in points)
        self._back.append(f'<path class="w-{kind}" d="{path}"/>')
        if arrow:
            (a, b), (x, y) = points[-2:]
            far = hypot(x - a, y - b) or 1.0
            along, up = (x - a) / far, (y - b) / far
            sides = [(x - 6 * along + s * up, y - 6 * up - s * along) for s in (3, -3)]
            corners = "L".join(f"{p:.1f} {q:.1f}" for p, q in [(x, y), *sides])
            self._back.append(f'<path class="w-tip" d="M{corners}z"/>')

    def frame(self, corner: tuple[float, float], size: tuple[float, float], part: str = "") -> None:
        """A frame around what belongs together."""
        (x, y), (w, h) = corner, size
        mark = " w-here" if part and part in self.here else ""
        self._back.insert(
            0,
            f'<rect class="w-frame{mark}" x="{x:.0f}" y="{y:.0f}" width="{w:.0f}" '
            f'height="{h:.0f}" rx="8"/>',
        )

    def svg(self, name: str, kind: str = "") -> str:
        """The drawing, under the name that a screen reader reads out."""
        size = f'viewBox="0 0 {self.width:.0f} {self.height:.0f}"'
        style = f"--w: {self.width:.0f}px"
        return (
            f'<svg class="slp-wiring {kind}" {size} style="{style}" role="group" '
            f'aria-label="{escape(name, quote=True)}">'
            f"{''.join(self._back)}{''.join(self._front)}</svg>"
        )

    def _part(self, shape: str, words: str, slug: str, part: str) -> None:
        mark = ' class="w-here"' if part and part in self.here else ""
        found = self.link(slug) if slug else None
        if found:
            address, text = found
            label = escape(f"{words}: {text}", quote=True)
            shape = f'<a href="{escape(address)}" aria-label="{label}">{shape}</a>'
        self._front.append(f"<g{mark}>{shape}</g>")

    @staticmethod
    def _lines(x, y, lines: Sequence[str], anchor: str = "middle", kind: str = "") -> str:
        top = y - _LINE * (len(lines) - 1) / 2 + 4.5
        mark = f' class="w-{kind}"' if kind else ""
        return " ".join(
            f'<text{mark} x="{x:.0f}" y="{top + _LINE * k:.1f}" text-anchor="{anchor}">'
            f"{escape(line)}</text>"
            for k, line in enumerate(lines)
        )


@dataclass(frozen=True)
class Wiring:
    """A picture of a wiring.

    Attributes:
        draw: draws it, with links to equations.
        caption: what stands below it.
        text: for those who do not see it.
    """

    draw: Callable[[Link], Drawing]
    caption: str
    text: str

    def svg(self, link: Link) -> str:
        """The picture."""
        return self.draw(link).svg(self.text)


def _token(link: Link) -> Drawing:
    d = Drawing(350, 452, link)
    columns = {1: 50.0, 2: 140.0, 3: 230.0}
    for j, x in columns.items():
        d.words((x, 440), f"x{_LOW[j]}")
        for side, letter in ((-20, "k"), (20, "v")):
            d.line((x, 428), (x + side, 402))
            d.box((x + side, 386), (36, 28), f"{letter}{_LOW[j]}", "qkv-final")
        d.line((x - 20, 372), (x - 20, 340))
        d.box((x - 20, 324), (52, 28), f"q₃·k{_LOW[j]}", "scaled-score")
        d.line((x - 20, 310), (x - 20, 288))
        d.line((x - 20, 232), (x - 20, 222), arrow=False)
        d.words((x - 20, 212), f"α₃{_LOW[j]}")
        d.line((x - 20, 202), (x - 1, 180))
        d.line((x + 20, 372), (x + 20, 205), (x + 4, 181))
        d.box((x, 166), (52, 28), f"α₃{_LOW[j]} v{_LOW[j]}", "head")
        d.line((x, 152), (140 + (x - 140) * 0.12, 128))
    d.line((230, 428), (320, 428), (320, 402))
    d.box((320, 386), (36, 28), "q₃", "qkv-final")
    d.line((320, 372), (320, 355), (30, 355), arrow=False)
    d.box((120, 274), (212, 26), "÷ √dₖ", "scaled-score")
    d.box((120, 246), (212, 26), "softmax", "alpha")
    d.plus((140, 117), "head")
    d.words((158, 117), "head₃  [1 × dᵥ]", anchor="start", kind="quiet")
    d.line((140, 106), (140, 88))
    d.box((140, 72), (60, 30), "Wᴼ", "head-out")
    d.line((140, 56), (140, 36))
    d.words((140, 22), "a₃  [1 × d]")
    return d


def _heads(link: Link) -> Drawing:
    d = Drawing(350, 300, link)
    d.words((175, 286), "xᵢ, and the rows before it  [1 × d]")
    for c in range(4):
        x = 46.0 + 86 * c
        d.line((175, 272), (x, 244))
        d.box((x, 226), (74, 34), f"head {c + 1}", "mh-head")
        d.line((x, 208), (x, 176))
        d.words((x + 6, 192), "1 × dᵥ", anchor="start", kind="quiet")
        d.box((x, 160), (86, 30), f"head{'¹²³⁴'[c]}ᵢ", "mh-concat")
    d.words((175, 134), "laid end to end  [1 × A dᵥ]", kind="quiet")
    d.line((175, 122), (175, 102))
    d.box((175, 84), (120, 34), "Wᴼ  [A dᵥ × d]", "mh-concat")
    d.line((175, 66), (175, 38))
    d.words((175, 22), "aᵢ  [1 × d]")
    return d


def _head(link: Link) -> Drawing:
    d = Drawing(350, 508, link)
    d.words((175, 494), "X  [N × d]")
    for x, letter, size in ((60, "Q", "dₖ"), (175, "K", "dₖ"), (290, "V", "dᵥ")):
        d.line((175, 482), (x, 458))
        d.box((x, 440), (66, 34), f"W_{letter}", "QKV")
        d.line((x, 423), (x, 408))
        d.words((x, 396), f"{letter}  [N × {size}]")
    d.line((60, 384), (104, 358))
    d.line((175, 384), (131, 358))
    chain = (
        (340, "QKᵀ", "QK^T"), (292, "÷ √dₖ", "scaled-score"), (244, "+ M", "mask"),
        (196, "softmax", "head-par"),
    )  # fmt: skip
    for y, name, slug in chain:
        d.box((118, y), (110, 34), name, slug)
        d.line((118, y - 17), (118, y - 30))
    d.words((182, 340), "scores  [N × N]", anchor="start", kind="quiet")
    d.words((182, 244), "mask: 0 or −∞", anchor="start", kind="quiet")
    d.words((182, 196), "weights", anchor="start", kind="quiet")
    d.line((290, 384), (290, 148), (175, 148))
    d.box((118, 148), (110, 34), "× V", "head-par")
    d.words((182, 128), "head  [N × dᵥ]", anchor="start", kind="quiet")
    d.line((118, 131), (118, 104))
    d.box((118, 86), (110, 34), "Wᴼ", "A-out")
    d.line((118, 69), (118, 38))
    d.words((118, 22), "A  [N × d]")
    return d


def _block(link: Link) -> Drawing:
    d = Drawing(350, 452, link)
    stream, side = 96.0, 236.0
    d.words((stream, 440), "xᵢ")
    d.line((stream, 428), (stream, 264), kind="stream")
    d.line((stream, 242), (stream, 70), kind="stream")
    d.line((stream, 48), (stream, 32), kind="stream")
    d.words((stream, 18), "hᵢ")
    halves = (
        (404, (("layer norm", "t1"), ("multi-head attention", "t2")), 253, "t3", "t¹ᵢ", "t²ᵢ"),
        (210, (("layer norm", "t4"), ("feedforward layer", "t5")), 59, "h", "t⁴ᵢ", "t⁵ᵢ"),
    )
    for low, ((first, norm), (second, layer)), sum_at, sum_slug, name, written in halves:
        d.line((stream, low), (side, low), (side, low - 16))
        d.box((side, low - 34), (150, 34), first, norm)
        d.line((side, low - 51), (side, low - 78))
        d.words((side + 10, low - 64), name, anchor="start", kind="quiet")
        d.box((side, low - 96), (150, 34), second, layer)
        d.line((side, low - 113), (side, sum_at), (stream + 12, sum_at))
        d.words((side - 60, sum_at - 12), written, kind="quiet")
        d.plus((stream, sum_at), sum_slug)
    d.line((340, 282), (340, 308), (312, 308), kind="dashed")
    d.words((348, 270), "other streams", anchor="end", kind="quiet")
    d.words((stream - 14, 232), "t³ᵢ", anchor="end", kind="quiet")
    d.words((stream - 14, 340), ["the", "residual", "stream"], anchor="end", kind="quiet")
    return d


def _columns(link: Link) -> Drawing:
    d = Drawing(350, 430, link)
    read = "the guitarist tuned the string".split()
    sentence = "guitarist tuned the string because".split()
    at = [36.0 + 69.5 * k for k in range(5)]
    for k, x in enumerate(at):
        d.words((x, 418), read[k])
        d.line((x, 406), (x, 390))
        d.line((x, 354), (x, 106))
        d.line((x, 66), (x, 34))
        d.words((x, 20), sentence[k])
    d.box((175, 372), (342, 34), "E[w] + P[i]", "X")
    for y, name in ((296, "block 1"), (196, "block L")):
        for i, x in enumerate(at):
            for j in range(i):
                d.line((at[j], y + 28), (x, y - 28), kind="look", arrow=False)
        d.frame((4, y - 32), (342, 64))
        d.words((44, y + 45), name, anchor="start", kind="quiet")
    d.words((210, 244), "…")
    d.box((175, 136), (342, 26), "layer norm", "final-ln")
    d.box((175, 86), (342, 34), "softmax(H Eᵀ)", "logits")
    return d


def _lora(link: Link) -> Drawing:
    d = Drawing(350, 290, link)
    d.words((150, 276), "x  [1 × k]")
    d.line((150, 264), (88, 236))
    d.line((150, 264), (250, 236))
    d.box((88, 168), (132, 132), ("W  [k × d]", "stays as it is"), "lora")
    d.box((250, 208), (66, 52), ("A", "[k × r]"), "lora")
    d.line((250, 182), (250, 158))
    d.words((258, 170), "1 × r", anchor="start", kind="quiet")
    d.box((250, 130), (110, 52), ("B", "[r × d]"), "lora")
    d.line((88, 102), (142, 76))
    d.line((250, 104), (160, 74))
    d.plus((150, 66), "lora")
    d.line((150, 55), (150, 36))
    d.words((150, 22), "h  [1 × d]")
    return d


def _two_stacks(link: Link) -> Drawing:
    d = Drawing(350, 340, link)
    left, right = 84.0, 262.0
    for x, name, word in ((left, "source", "n tokens"), (right, "target so far", "m tokens")):
        d.words((x, 328), f"{name}, {word}")
        d.line((x, 316), (x, 296))
        d.box((x, 278), (132, 34), "E + P", "X")
        d.line((x, 261), (x, 240))
    d.frame((8, 90), (152, 152))
    d.words((left, 108), "encoder")
    d.box((left, 206), (132, 40), ("self-attention", "both ways"), "bidirectional")
    d.line((left, 186), (left, 168))
    d.box((left, 150), (132, 34), "feedforward", "ffn")
    d.frame((186, 62), (156, 180))
    d.words((right, 80), "decoder")
    d.box((right, 210), (136, 40), ("self-attention", "left to right"), "causal")
    d.line((right, 190), (right, 178))
    d.box((right, 160), (136, 34), "cross-attention", "cross-attn")
    d.line((right, 143), (right, 130))
    d.box((right, 112), (136, 34), "feedforward", "ffn")
    d.line((left, 90), (left, 58), (173, 58), (173, 160), (194, 160), kind="stream")
    d.words((left, 44), "Hᵉⁿᶜ  [n × d]")
    d.line((right, 62), (right, 46))
    d.words((right, 32), "the next token")
    return d


def _across(link: Link) -> Drawing:
    d = Drawing(350, 620, link)
    stream, side = 60.0, 206.0
    d.words((stream, 608), "target")
    d.line((stream, 596), (stream, 46), kind="stream")
    d.words((stream, 18), "Hᵈᵉᶜ")
    sublayers = (
        (574, "causal self-attention", "causal", False),
        (390, "cross-attention", "cross-attn", True),
        (206, "feedforward layer", "ffn", False),
    )
    for low, name, slug, across in sublayers:
        d.line((stream, low), (side, low), (side, low - 16))
        d.box((side, low - 34), (160, 34), "layer norm", "ln")
        d.line((side, low - 51), (side, low - 80))
        d.box((side, low - 98), (160, 34), name, slug)
        d.line((side, low - 115), (side, low - 146), (stream + 12, low - 146))
        d.plus((stream, low - 146), "T3")
        if across:
            d.words((side + 10, low - 64), "Q", anchor="start", kind="quiet")
            d.line((332, 608), (332, low - 98), (288, low - 98), kind="stream")
            d.words((326, low - 112), "K, V", anchor="end", kind="quiet")
    d.words((322, 608), "Hᵉⁿᶜ", anchor="end")
    return d


_LOW = {1: "₁", 2: "₂", 3: "₃"}

# Before the equation of this name stands this picture.
BEFORE = {
    "head-out": Wiring(
        _token,
        "One head for the third token (Fig. 8.5 · 7.5)",
        "The wiring of a₃. Each of x₁, x₂ and x₃ makes a key and a value, x₃ a query. The query "
        "meets each key; the three scores are divided by the root of d_k and go through a softmax. "
        "Each weight multiplies its value; their sum, times W^O, is a₃.",
    ),
    "mh-concat": Wiring(
        _heads,
        "Several heads (Fig. 8.6 · 7.6, its upper half)",
        "The wiring of multi-head attention: the row x_i and those before it go into four heads "
        "side by side; their results, each 1 by d_v, are laid end to end to 1 by A·d_v; W^O makes "
        "a_i.",
    ),
    "t1": Wiring(
        _block,
        "The block, around the residual stream (Figs 8.1 and 8.7 · 7.1 and 7.7)",
        "The wiring of a block. The residual stream runs upwards from x_i to h_i. A branch leads "
        "through a layer norm and multi-head attention, which also reads other streams, and is "
        "added to the stream; a second through a layer norm and the feedforward layer, likewise.",
    ),
    "head-par": Wiring(
        _head,
        "One head in matrices (Fig. 8.11 · 7.11)",
        "The wiring of a head. X is multiplied by W^Q, W^K and W^V. Q times K transposed gives the "
        "scores, which are divided by the root of d_k, masked by adding M, and go through a "
        "softmax; the weights multiply V, and W^O makes A.",
    ),
    "logits": Wiring(
        _columns,
        "A language model over five tokens (Figs 8.2 and 8.16 · 7.2 and 7.16)",
        "Five columns, one a token, from the, guitarist, tuned, the, string at the bottom to the "
        "words that each is to predict on top: guitarist, tuned, the, string, because. Each token "
        "becomes a row of E plus a row of P, and passes blocks 1 to L, in which it looks at the "
        "columns to its left; then the final layer norm, the head E transposed, and the softmax.",
    ),
    "lora": Wiring(
        _lora,
        "LoRA next to a frozen matrix (Fig. 8.19)",
        "The wiring of LoRA: x goes through the large matrix W, which stays as it is, and next to "
        "it through A, which makes it r numbers, and B, which makes them d; the two "
        "results are added.",
    ),
    "cross-QKV": Wiring(
        _two_stacks,
        "Encoder and decoder (Fig. 13.5)",
        "Two stacks. Left, the encoder: self-attention both ways and feedforward, over the source. "
        "Right, the decoder: self-attention from left to right, cross-attention and feedforward, "
        "over the target so far. The encoder's rows H^enc lead into the decoder's cross-attention.",
    ),
    "cross-attn": Wiring(
        _across,
        "The decoder's block, with cross-attention (Fig. 13.6)",
        "The wiring of a decoder block. Three branches leave the residual stream, each through a "
        "layer norm, and are added to it: causal self-attention, cross-attention, and the "
        "feedforward layer. Cross-attention takes its queries from the stream, its "
        "keys and values from H^enc.",
    ),
}


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
SIDE_PARTS = (
    Part("P", ("P",), "positions", ("X", "sinusoid", "rope"), 34),
    Part("lora", ("LoRA",), "LoRA", ("lora",), 46),
    Part("cache", ("cache",), "key-value cache", ("kv-attn",), 50),
    Part("encoder", ("encoder",), "cross-attention to an encoder", ("cross-attn",), 64),
    Part("loss", ("loss",), "loss", ("ce",), 44),
)
# Chapters that declare no equation of a part, by their number.
ELSEWHERE = {
    "9": ("stream", "mha"),
    "11": ("encoder", "mha"),
    "12": ("tokens", "next"),
    "13": ("encoder", "tokens", "next"),
    "14": ("P", "ln1", "mha", "ln2", "ffn"),
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


def here(number: str, declared: set[str]) -> frozenset[str]:
    """The parts that a chapter is about, by its number and the equations that it declares."""
    found = {part.key for part in (*CHAIN, *SIDE_PARTS) if declared & set(part.slugs)}
    found |= {"block"} if "stack" in declared else set()
    return frozenset(ELSEWHERE.get(number, found))


def named(parts: frozenset[str]) -> str:
    """The parts in words: "token embedding, positions"."""
    titles = [_STREAM] if "stream" in parts else []
    titles += [p.title for p in (*CHAIN, *SIDE_PARTS) if p.key in parts and p.title]
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
    places = {
        "P": (at["sum"], low), "loss": (at["softmax"], top),
        "lora": (at["mha"] - 62, low), "cache": (at["mha"], low), "encoder": (at["mha"] + 70, low),
    }  # fmt: skip
    for part in SIDE_PARTS:
        _put(d, part, places[part.key], (part.wide, 30), "aside" if part.key != "P" else "box")
    d.line((at["sum"], low - 15), (at["sum"], y + 11))
    d.line((at["softmax"], y - 22), (at["softmax"], top + 16), kind="dashed")
    for key, shift in (("lora", -22), ("cache", 0), ("encoder", 22)):
        down = at["mha"] + shift
        d.line((places[key][0], low - 15), (down, y + 23), kind="dashed")
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
    places = {
        "P": at["sum"], "loss": at["softmax"],
        "lora": at["mha"] + 44, "cache": at["mha"], "encoder": at["mha"] - 44,
    }  # fmt: skip
    for part in SIDE_PARTS:
        size = (max(part.wide, 40) + 12, 32)
        _put(d, part, (aside, places[part.key]), size, "aside" if part.key != "P" else "box")
    d.line((aside - 26, places["P"]), (x + 11, at["sum"]))
    d.line((x + 48, at["softmax"]), (aside - 29, places["loss"]), kind="dashed")
    for key, shift in (("lora", 9), ("cache", 0), ("encoder", -9)):
        wide = next(p.wide for p in SIDE_PARTS if p.key == key) + 12
        d.line((aside - wide / 2, places[key]), (x + 83, at["mha"] + shift), kind="dashed")
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
        ways: the links to each equation's code and test.
    """
    items = []
    for part in (*CHAIN, *SIDE_PARTS):
        slug = next((slug for slug in part.slugs if link(slug)), "")
        if slug and part.title:
            address, text = link(slug)
            equation = f'<a href="{escape(address)}">{escape(text)}</a>'
            title = part.title[0].upper() + part.title[1:]
            items.append(f"<li><strong>{title}</strong> {equation} {ways.get(slug, '')}</li>")
    return f'<ul class="slp-parts">{"".join(items)}</ul>'


def progress_drawing() -> str:
    """The drawing for the package's progress page, where a part leads to its first function."""
    from slp_transformer.check.own.progress_page import PART_FUNCTIONS  # imports PyTorch

    def link(slug: str) -> tuple[str, str] | None:
        return (f"#{slug}", ", ".join(PART_FUNCTIONS[slug])) if slug in PART_FUNCTIONS else None

    return "\n".join(drawing(link, frozenset(), upright) for upright in (False, True))


if __name__ == "__main__":
    from slp_transformer.check.own.progress_page import TEMPLATE

    page = TEMPLATE.read_text(encoding="utf-8")
    figure = f"<figure>\n{progress_drawing()}\n</figure>"
    page = re.sub("(?s)<figure>.*</figure>", lambda _: figure, page)
    TEMPLATE.write_text(page, encoding="utf-8", newline="\n")
