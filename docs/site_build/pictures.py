"""The wiring pictures of the chapters, and before which equation each stands.

A picture is placed by an equation's name, so it finds the chapter that declares the equation, and
goes with it. Sizes are in pixels; the drawings grow upwards, as the book's do.
"""

from collections.abc import Callable
from dataclasses import dataclass

from wiring import Drawing, Link


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
    said = "guitarist tuned the string because".split()
    at = [36.0 + 69.5 * k for k in range(5)]
    for k, x in enumerate(at):
        d.words((x, 418), read[k])
        d.line((x, 406), (x, 390))
        d.line((x, 354), (x, 106))
        d.line((x, 66), (x, 34))
        d.words((x, 20), said[k])
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
        "The block, around the residual stream (Figs 8.2 and 8.7 · 7.2 and 7.7)",
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
        "A language model over five tokens (Figs 8.1 and 8.16 · 7.1 and 7.16)",
        "Five columns, one a token, from the, guitarist, tuned, the, string at the bottom to the "
        "words that each is to predict on top: guitarist, tuned, the, string, because. Each token "
        "becomes a row of E plus a row of P, and passes blocks 1 to L, in which it looks at the "
        "columns to its left; then the final layer norm, the head E transposed, and the softmax.",
    ),
    "lora": Wiring(
        _lora,
        "LoRA beside a frozen matrix (Fig. 8.19)",
        "The wiring of LoRA: x goes through the large matrix W, which stays as it is, and beside "
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
