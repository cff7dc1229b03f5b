"""Twenty-one mistakes that people make, each as the lines that are changed, and why it is one."""

MISTAKES = [
    {
        "name": "no √d_k",
        "lines": [("Q @ K.mT / d_k**0.5", "Q @ K.mT")],
        "why": "The scores are larger by a factor of four, so every softmax is sharper.",
    },
    {
        "name": "√d in place of √d_k",
        "lines": [("/ d_k**0.5", "/ (2 * d_k)**0.5")],
        "why": "With two heads d is 2d_k. The scores are too small, so every softmax is flatter.",
    },
    {
        "name": "no mask",
        "lines": [("(scores + mask).softmax(dim=-1)", "scores.softmax(dim=-1)")],
        "why": "Each position sees the very word that it should predict.",
    },
    {
        "name": "mask after the softmax",
        "lines": [("(scores + mask).softmax(dim=-1)", "scores.softmax(dim=-1) * (mask == 0)")],
        "why": "The weights no longer sum to 1, and what is missing tells of what comes.",
    },
    {
        "name": "mask turned round",
        "lines": [(".triu(M - N + 1)", ".tril(M - N - 1)")],
        "why": "Each position sees itself and what comes after it, and nothing before.",
    },
    {
        "name": "mask one too late",
        "lines": [(".triu(M - N + 1)", ".triu(M - N + 2)")],
        "why": "Each position sees one word ahead, which is the one that it should predict.",
    },
    {
        "name": "mask one too early",
        "lines": [(".triu(M - N + 1)", ".triu(M - N)")],
        "why": "No position sees itself. The first sees nothing: its softmax is 0 by 0.",
    },
    {
        "name": "softmax over the wrong axis",
        "lines": [("(scores + mask).softmax(dim=-1)", "(scores + mask).softmax(dim=-2)")],
        "why": "Each column sums to 1 over the words that look, later ones included.",
    },
    {
        "name": "queries and keys swapped",
        "lines": [("Q @ K.mT / d_k**0.5", "K @ Q.mT / d_k**0.5")],
        "why": "It is the same model with other names until a cache holds more keys than queries.",
    },
    {
        "name": "keys used as values",
        "lines": [("return alpha @ V, alpha", "return alpha @ K, alpha")],
        "why": "W_V is never used, and what a word is found by is also what it passes on.",
    },
    {
        "name": "heads joined by view",
        "lines": [("heads.transpose(-3, -2).flatten(-2)", "heads.reshape(X.shape)")],
        "why": "Without the transpose a row gets parts of other positions, later ones included.",
    },
    {
        "name": "n − 1 in the norm",
        "lines": [("correction=0", "correction=1")],
        "why": "The rows are shorter by one part in sixty.",
    },
    {
        "name": "norm over the tokens",
        "lines": [
            ("x.mean(dim=-1, keepdim=True)", "x.mean(dim=-2, keepdim=True)"),
            ("x.var(dim=-1, keepdim=True", "x.var(dim=-2, keepdim=True"),
        ],
        "why": "Mean and variance are taken over all positions, later ones included.",
    },
    {
        "name": "residual left out",
        "lines": [("T3 = X + T2", "T3 = T2")],
        "why": "A word passes only what attention gathers; its own row is lost.",
    },
    {
        "name": "positions left out",
        "lines": [("X = E[ids] + P[start : start + ids.shape[-1]]", "X = E[ids]")],
        "why": "Only the mask tells one position from another.",
    },
    {
        "name": "positions from 0 with a cache",
        "lines": [("P[start : start + ids.shape[-1]]", "P[: ids.shape[-1]]")],
        "why": "Training uses no cache. With one, each word is taken for the first.",
    },
    {
        "name": "no ReLU",
        "lines": [("relu(X @ W_1 + b_1)", "X @ W_1 + b_1")],
        "why": "Two linear layers in a row are one linear layer.",
    },
    {
        "name": "no final norm",
        "lines": [('H = layer_norm(X, *w["final_norm"])', "H = X")],
        "why": "The head reads rows of any length.",
    },
    {
        "name": "head reshaped, not transposed",
        "lines": [("U = H @ E.T", "U = H @ E.reshape(E.shape[1], -1)")],
        "why": "The shape is right, and the words' rows are cut up and mixed.",
    },
    {
        "name": "dropout that stays on",
        "lines": [("return joined @ W_O", "return dropout(joined @ W_O, 0.1)")],
        "why": "A tenth of what attention writes is missing, when it writes text as well.",
    },
    {
        "name": "targets not shifted",
        "lines": [("batch[:, :-1], batch[:, 1:]", "batch[:, :-1], batch[:, :-1]")],
        "why": "The model learns to repeat the word that it has just read.",
    },
]
