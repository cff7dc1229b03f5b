"""The book's equations: slug, and the numbers of each draft.

S8 are the Aug 2025 and Jan 2026 drafts, S7 is that of Aug 2026. A range names its two ends; an
empty string says that the equation has no number in that draft.
"""

# What the chapters go through, and the tests prove.
NUMBERED = {
    "simple-sum": ("8.6", "7.6"),
    "simple-score": ("8.7", "7.7"),
    "simple-softmax": ("8.8", "7.8"),
    "qkv": ("8.9", "7.9"),
    "qkv-final": ("8.10", "7.10"),
    "scaled-score": ("8.11", "7.11"),
    "alpha": ("8.12", "7.12"),
    "head": ("8.13", "7.13"),
    "head-out": ("8.14", "7.14"),
    "mh-qkv": ("8.15", "7.15"),
    "mh-score": ("8.16", "7.16"),
    "mh-alpha": ("8.17", "7.17"),
    "mh-head": ("8.18", "7.18"),
    "mh-concat": ("8.19", "7.19"),
    "mh-def": ("8.20", "7.20"),
    "ffn": ("8.21", ""),
    "swish": ("", "7.21"),
    "swiglu": ("", "7.22"),
    "ln-mean": ("8.22", "7.23"),
    "ln-std": ("8.23", "7.24"),
    "ln-hat": ("8.24", "7.25"),
    "ln": ("8.25", "7.26"),
    "t1": ("8.26", "7.27"),
    "t2": ("8.27", "7.28"),
    "t3": ("8.28", "7.29"),
    "t4": ("8.29", "7.30"),
    "t5": ("8.30", "7.31"),
    "h": ("8.31", "7.32"),
    "QKV": ("8.32", "7.33"),
    "head-par": ("8.33", "7.34"),
    "A-out": ("8.34", "7.35"),
    "mh-par-qkv": ("8.35", "7.36"),
    "mh-par-head": ("8.36", "7.37"),
    "mh-par-out": ("8.37", "7.38"),
    "O": ("8.38", "7.39"),
    "H": ("8.39", "7.40"),
    "T1": ("8.40", "7.41"),
    "T2": ("8.41", "7.42"),
    "T3": ("8.42", "7.43"),
    "T4": ("8.43", "7.44"),
    "T5": ("8.44", "7.45"),
    "T-H": ("8.45", "7.46"),
    "logits": ("8.46", "7.47"),
    "probs": ("8.47", "7.48"),
    "greedy": ("", "7.49"),
    "temperature": ("", "7.50-7.51"),
    "top-p": ("8.48", "7.52"),
    "ce-full": ("", "7.53"),
    "ce": ("", "7.54"),
    "ce-mean": ("", "7.55"),
    "likelihood": ("", "7.56"),
    "perplexity": ("", "7.57"),
    "L(N)": ("8.49", ""),
    "L(D)": ("8.50", ""),
    "L(C)": ("8.51", ""),
    "param-count": ("8.52", ""),
    "kv-attn": ("8.53", "7.59"),
    "lora": ("8.54", "8.1"),
    "beam-score": ("", "13.15"),
    "beam-norm": ("", "13.16"),
    "cross-QKV": ("", "13.11"),
    "cross-attn": ("", "13.12"),
}

# Equations of other sections, some of which the package or a chapter names.
ELSEWHERE = {
    "causal": ("", "9.1"),
    "bidirectional": ("", "9.2"),
}

# What the book says in prose or in a figure alone: the sections, figures and neighbours to name.
UNNUMBERED = {
    "score-unscaled": {"10.9"},
    "final-ln": {"8.2", "7.2", "8.31", "7.32", "8.16", "7.16"},
    "postnorm-t": {"8.2", "7.2", "10.32", "10.37"},
    "QK^T": {"8.9", "7.9"},
    "mask": {"8.33", "7.34", "8.10", "7.10", "8.3", "7.3"},
    "stack": {"8.3", "7.3", "8.16", "7.16"},
    "onehot": {"8.12", "8.13", "7.12", "7.13", "8.4", "7.4"},
    "X": {"8.4", "7.4", "8.14", "7.14"},
    "sinusoid": {"3.5", "8.4", "7.4"},
    "logit-lens": {"8.9", "8.9.2", "10.3"},
    "induction": {"8.9", "8.9.1", "10.6"},
    "random": {"7.4"},
    "top-k": set(),
    "rope": set(),
}

ALL = {**ELSEWHERE, **NUMBERED, **dict.fromkeys(UNNUMBERED, ("", ""))}


def numbers(slug: str) -> set[str]:
    """The numbers of an equation in both drafts; of a range, its two ends."""
    return {end for number in ALL[slug] for end in number.split("-") if end}


def may_be_named(slug: str) -> set[str]:
    """The numbers that may stand next to a slug: its own, and those of where the prose is."""
    return numbers(slug) | UNNUMBERED.get(slug, set())
