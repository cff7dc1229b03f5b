# %% [markdown] tags=["path"]
# # 4 · The input: what and where
#
# Sections 8.4 (2025-26 drafts) and 7.4 (August 2026 draft)
#
# Turn words into the rows of X: one row for what a token is, plus one for where it is.
#
# *The guitarist tuned the string*, *the string tuned the guitarist*: can attention tell the two apart? You will be
# able to look up embeddings with and without one-hot rows; show what attention alone makes of word order; and add
# positions. In the whole chapter you also see what limits the length of a sequence. Read first:
# [Attention](01_attention.py) and [One matrix X](03_one_matrix.py). About 45 minutes.

# %% [markdown]
# ## Words become numbers
#
# A vocabulary gives every word a number, its id. Ours has the eight words of one sentence; `the` occurs twice
# but has one id.

# %%
import torch

words = "the guitarist tuned the string because it was flat".split()
vocabulary = list(dict.fromkeys(words))  # each word once
ids = torch.tensor([vocabulary.index(word) for word in words])

N, V = len(words), len(vocabulary)
print(f"{N} tokens, {V} words in the vocabulary")
print("ids:", ids.tolist())

# %% [markdown]
# Tokens need not be words. Characters need few ids, but make long texts; words make short ones, but each form of each
# word needs an id, and a new word has none. So most models use pieces of words. Byte-pair encoding starts from
# characters and joins the most frequent neighboring pair, again and again, up to tens of thousands of pieces. Here it
# learns from one sentence and five more words, such as *guitars*. How will *guitarist* be cut? (`Ġ` is a space.)

# %%
from slp_transformer.data import train_tokenizer

line = " ".join(words)
more = "guitar guitars tune tuning flatter"
for kind, size in (("characters", None), ("words", None), ("bpe", 275)):
    tokenizer = train_tokenizer([line, more], token_type=kind, vocab_size=size)
    found = tokenizer.encode(line)
    assert tokenizer.decode(found) == line
    names = [tokenizer.vocabulary[w] for w in found]
    print(f"{len(found)} {kind}:", "|".join(names))

# %% [markdown]
# ## One row of E for each word
#
# The embedding matrix $\mathbf E$ has one row for each word of the vocabulary. Its numbers are learned; ours are set
# by hand, so that you can read them. Five columns say what kind of word it is. The last two are 0 for now.

# %%
features = ["noun", "verb", "music", "alive", "function", "early", "late"]
E = torch.tensor(
    [
        [0.0, 0, 0, 0, 1, 0, 0],  # the
        [1, 0, 1, 1, 0, 0, 0],  # guitarist
        [0, 1, 1, 0, 0, 0, 0],  # tuned
        [1, 0, 1, 0, 0, 0, 0],  # string
        [0, 0, 0, 0, 1, 0, 0],  # because
        [1, 0, 0, 0, 1, 0, 0],  # it
        [0, 1, 0, 0, 1, 0, 0],  # was
        [0, 0, 1, 0, 0, 0, 0],  # flat
    ]
)
d = E.shape[1]

# %% [markdown]
# To select row $w$ of $\mathbf E$, multiply by a one-hot row: zeros, and a single 1 at position $w$. The 1
# keeps one row, and the zeros remove the others. So a look-up is a matrix product, and gradients pass through
# it.
#
# <span class="eq" id="eq-onehot">onehot · Figs 8.12-8.13 · Figs 7.12-7.13</span>
#
# $$
# \underbrace{\mathrm{onehot}(w)}_{[1\times|V|]}\;
# \underbrace{\mathbf E}_{[|V|\times d]}=\underbrace{\mathbf E[w]}_{[1\times d]}
# $$
#
# The book counts positions and words from 1, Python from 0: word 3 is the fourth row.


# %%
def one_hot(w, V):
    row = torch.zeros(V)
    row[w] = 1
    return row


def look_up(w, E):
    row = one_hot(w, len(E))
    return sum(row[v] * E[v] for v in range(len(E)))


w = vocabulary.index("string")
assert look_up(w, E).equal(E[w])
assert (one_hot(w, V) @ E).equal(E[w])

# %% alt="Three matrices: a one-hot row of 8 cells with a 1 at string, times E with 8 rows and 7 columns, equals the row of E for string, which has a 1 at noun and at music." caption="One token as a one-hot row times E (Fig. 8.12 · 7.12)"
from slp_transformer import plotting

plotting.panels(
    plotting.Panel(
        one_hot(w, V), "one-hot", "1 × |V|", ["string"], vocabulary
    ),
    "×",
    plotting.Panel(E, "E", "|V| × d", vocabulary, features, decimals=None),
    "=",
    plotting.Panel(E[w], "E[string]", "1 × d", columns=features),
)

# %% [markdown] tags=["more"] gist="All tokens in one product; both forms in the package, and the gradient of a look-up"
# A whole sentence is a matrix of $N$ one-hot rows, and the product gives all embeddings at once,
# as in Fig. 8.13 (7.13). Both rows for `the` select the same row of $\mathbf E$.

# %% alt="Three matrices: 9 one-hot rows, one per token, times E equals 9 rows of 7 features. The first and the fourth row, both for the word “the”, are the same." caption="All tokens as one-hot rows times E (Fig. 8.13 · 7.13)"
hots = torch.stack([one_hot(w, V) for w in ids])
assert hots.shape == (N, V)
assert (hots @ E).equal(E[ids])
plotting.panels(
    plotting.Panel(
        hots, "one-hots", "N × |V|", words, vocabulary, decimals=None
    ),
    "×",
    plotting.Panel(E, "E", "|V| × d", columns=features, decimals=None),
    "=",
    plotting.Panel(E[ids], "E[ids]", "N × d", words, features, decimals=None),
)

# %% [markdown]
# `one_hot_lookup` multiplies as in the figure;
# <autoref identifier="slp_transformer.embedding.TokenEmbedding">TokenEmbedding</autoref> reads
# the rows directly, as models do in practice.

# %%
from slp_transformer.embedding import TokenEmbedding, one_hot_lookup

plotting.show_source(one_hot_lookup, TokenEmbedding.forward)

# %%
embedding = TokenEmbedding(V, d)
embedding.E.data.copy_(E)
loop = torch.stack([look_up(w, E) for w in ids])

assert loop.shape == (N, d)
torch.testing.assert_close(one_hot_lookup(ids, E), loop)
torch.testing.assert_close(embedding(ids), loop)
torch.testing.assert_close(torch.nn.functional.embedding(ids, E), loop)

size = 1024 * 50_000 * 4 / 1e6  # 4 bytes a number
print(f"one-hot rows of 1,024 tokens, 50,000 words: {size:.0f} MB")

# %% [markdown]
# The gradient is still that of the product: each row of $\mathbf E$ gets one contribution for each time its word
# occurs. How many does `the` get in *the guitarist tuned the string*, and `flat`? (In [chapter
# 5](05_language_model.py) the same matrix also scores the words at the top, so that every row gets a gradient at
# every step.)

# %%
first_five = ids[:5]  # the guitarist tuned the string
embedding(first_five).sum().backward()
gradient = embedding.E.grad[:, 0]
for word, times in zip(vocabulary, gradient, strict=True):
    print(f"{word:<10}{times:.0f}")
assert gradient.tolist() == [2, 1, 1, 1, 0, 0, 0, 0]

# %% [markdown]
# ## Why this is not enough
#
# A head's output is a weighted sum, and a sum does not depend on the order of its terms. Without a mask, shuffling
# the tokens only shuffles the outputs. So it is with a whole block, whose other parts work on each row separately. It
# is *permutation equivariant*: each token sees the others as a bag of words.

# %%
from slp_transformer import TransformerBlock

torch.manual_seed(4)
block = TransformerBlock(d, num_heads=3, key_dim=2, value_dim=5)
X = E[ids]
shuffled = torch.randperm(N)
torch.testing.assert_close(block(X[shuffled]), block(X)[shuffled])

# %% [markdown]
# Now the two sentences from above: in one the string is tuned, in the other it tunes. How far apart are the two
# outputs of `string`?


# %%
def output_of(word, sentence, P=None):
    sentence = sentence.split()
    X = E[[vocabulary.index(w) for w in sentence]]
    X = X if P is None else X + P[: len(X)]
    return block(X)[sentence.index(word)]


tuned = output_of("string", "the guitarist tuned the string")
tunes = output_of("string", "the string tuned the guitarist")
torch.testing.assert_close(tuned, tunes)
print(f"without positions, they differ by {(tuned - tunes).abs().max():.1e}")

# %% [markdown] tags=["more"] gist="With a causal mask: order counts from the second block on"
# A causal mask helps a little: each token sees another part of the sentence. But a single block ignores the order
# within that part. Shuffle all words before the last one, and the output for the last word does not change.

# %%
before = torch.randperm(N - 1)
X_mixed = torch.cat([X[before], X[-1:]])  # the last word stays last
last = block(X, causal=True)[-1]
torch.testing.assert_close(block(X_mixed, causal=True)[-1], last)

# %% [markdown]
# From the second block on it does change, because each row that the block reads already reflects what its token could
# see. Causal language models without positions have in fact been trained (Haviv et al. 2022). But there is a more
# direct way.

# %%
second = TransformerBlock(d, num_heads=3, key_dim=2, value_dim=5)
plain = second(block(X, causal=True), causal=True)[-1]
mixed = second(block(X_mixed, causal=True), causal=True)[-1]
assert not torch.allclose(plain, mixed, atol=1e-3)

# %% [markdown]
# ## One row of P for each position
#
# So we add to each token's row a second row that depends only on its position. The position matrix $\mathbf P$
# (in the August 2026 draft, $\mathbf E_{pos}$) has one row for each position, and is learned like $\mathbf E$;
# $id(i)$ is the id of token i.
#
# <span class="eq" id="eq-X">X · prose of 8.4 and Fig. 8.14 · prose of 7.4 and Fig. 7.14</span>
#
# $$
# \mathbf X_i=\mathbf E[id(i)]+\mathbf P[i]
# $$
#
# By hand again: the first position is *early*, the last *late*, and those between are some of both.

# %%
P = torch.zeros(N, d)
for i in range(N):
    P[i, features.index("early")] = 1 - i / (N - 1)
    P[i, features.index("late")] = i / (N - 1)

X = torch.zeros(N, d)
for i in range(N):
    X[i] = E[ids[i]] + P[i]
assert not X[0].equal(X[3])  # the rows of “the” are different now

# %% alt="Three matrices of 9 rows: the token rows E[ids], in which both rows for the are equal, plus P, whose early column fades from top to bottom while its late column grows, equals X, where every row is different." caption="Tokens plus positions make X (Fig. 8.14 · 7.14)"
plotting.panels(
    plotting.Panel(E[ids], "E[ids]", "N × d", words, features, decimals=None),
    "+",
    plotting.Panel(P, "P", "N × d", range(1, N + 1), features, decimals=None),
    "=",
    plotting.Panel(X, "X", "N × d", words, features, decimals=None),
)

# %% [markdown]
# Why add, and not concatenate? In ours, the token uses five columns and the position two others, so adding *is*
# concatenating. And a matrix that reads a concatenated row multiplies the token's part by its upper rows, the
# position's by its lower ones, and adds the two. With P, is *string* still the same in both sentences?

# %%
W = torch.randn(2 * d, d)
joined = torch.cat([E[ids], P], dim=1) @ W
torch.testing.assert_close(joined, E[ids] @ W[:d] + P @ W[d:])

X_other = E[ids[shuffled]] + P  # other words at the same positions
assert not torch.allclose(block(X_other), block(X)[shuffled], atol=1e-3)
tuned = output_of("string", "the guitarist tuned the string", P)
tunes = output_of("string", "the string tuned the guitarist", P)
assert not torch.allclose(tuned, tunes, atol=1e-3)
print(f"with positions, they differ by {(tuned - tunes).abs().max():.2f}")

# %% [markdown] tags=["more"] gist="The package’s input, for a sentence or a batch; where the code leaves the book"
# In the package the input is <autoref identifier="slp_transformer.embedding.InputEncoding">InputEncoding</autoref>,
# for one sentence or a batch. (`start` is for generation, where a model reads one new token at a time; `position_ids`
# are for texts that were filled up on the left.)

# %%
from slp_transformer import InputEncoding

plotting.show_source(InputEncoding.forward)

# %%
encoding = InputEncoding(V, context_length=N, model_dim=d)
encoding.tokens.E.data.copy_(E)
encoding.positions.P.data.copy_(P)

torch.testing.assert_close(encoding(ids), X)
torch.testing.assert_close(encoding(ids[:5]), X[:5])
torch.testing.assert_close(encoding(ids[5:], start=5), X[5:])
batch = torch.stack([ids, ids.flip(0)])
assert encoding(batch).shape == (2, N, d)

# %% [markdown]
# <div class="admonition note" markdown="0"><p class="admonition-title">Where the code leaves the book</p><p>In the book <em>P</em> has as many rows as the window has tokens. The package gives it <code>context_length</code> rows and uses the first N of them, so that shorter sequences fit too. The original Transformer multiplies the token's row by √d before adding the position; the book does not, and the code does so only as an option (chapter 11). The February 2024 draft prints the shape of the position matrix as [1×N]; it is [N×d]. The book does not discuss initialization and dropout: both matrices start as small normally distributed numbers, as in GPT-2, and dropout is off by default.</p></div>

# %% [markdown] tags=["more"] gist="What happens to a tenth token, and to an id outside the vocabulary"
# ## Tokens without a row
#
# What happens to a tenth token? Learned positions end where the matrix ends. And an id outside the vocabulary has no
# row in $\mathbf E$:


# %%
import textwrap


def show_error(call, *inputs):
    try:
        call(*inputs)
    except ValueError as error:
        print(textwrap.fill(str(error), 72))
    else:
        raise AssertionError("there should have been an error")


ten_tokens = torch.cat([ids, ids[:1]])
show_error(encoding, ten_tokens)
show_error(encoding, torch.tensor([0, 1, 8]))  # ids are 0 to 7

# %% [markdown]
# Even within the matrix, a row of $\mathbf P$ learns only from texts long enough to reach it:

# %%
encoding(ids[:5]).sum().backward()
reached = (encoding.positions.P.grad != 0).any(dim=1)
assert reached.tolist() == [True] * 5 + [False] * 4
print("a text of 5 tokens trains", reached.sum().item(), "of 9 positions")

# %% [markdown] tags=["more"] gist="Sines and cosines in place of a learned P: their dot products depend on distance alone"
# ## Positions that are not learned
#
# The original Transformer computes its positions with a formula. Each pair of columns is like a clock hand, given by
# its sine and cosine: the first goes round once every $2\pi\approx6$ positions, each later one more slowly, and in
# models of the usual width the last one takes tens of thousands. Together they identify every position, as the hands of
# a clock identify the time.
#
# <span class="eq" id="eq-sinusoid">sinusoid · paper, not book: Vaswani et al. 2017, section 3.5</span>
#
# $$
# \begin{aligned}
# \mathbf P_{pos,2i}&=\sin\bigl(pos/10000^{2i/d}\bigr)\\
# \mathbf P_{pos,2i+1}&=\cos\bigl(pos/10000^{2i/d}\bigr)
# \end{aligned}
# $$
#
# Here $i$ counts pairs of columns, and both $i$ and $pos$ start at 0, as in the paper.

# %%
import math


def sinusoid(N, d):
    P = torch.zeros(N, d)
    for pos in range(N):
        for i in range(d // 2):
            angle = pos / 10000 ** (2 * i / d)
            P[pos, 2 * i] = math.sin(angle)
            P[pos, 2 * i + 1] = math.cos(angle)
    return P


# %%
from slp_transformer import sinusoidal_positions

S = sinusoidal_positions(48, 32)
torch.testing.assert_close(S, sinusoid(48, 32))
plotting.show_source(sinusoidal_positions)

# %% alt="Heat map of sinusoidal positions, 32 columns of S from top to bottom against 48 positions from left to right. The top rows change sign every few positions, the rows below more and more slowly; the lowest hardly change at all." caption="Sinusoidal positions"
plotting.heatmap(S.T, title="Sᵀ", shape="d × N", decimals=None)

# %% [markdown]
# ### The dot product of two positions
#
# Each pair of columns gives $\sin a\sin b+\cos a\cos b=\cos(a-b)$. So the dot product of two rows depends on how far
# apart the positions are, not on where they are:
#
# $$
# \mathbf S[p]\cdot\mathbf S[q]=\sum_{i=0}^{d/2-1}\cos\frac{p-q}{10000^{2i/d}}
# $$
#
# Move p: the curve moves with it, and keeps its shape.

# %% alt="Curve of the dot product of position 20 with all positions from 0 to 47. It is highest, 16, at position 20, falls to 12 within four positions on both sides, and then goes up and down between about 7 and 12." caption="The dot products of one sinusoidal position with all others"
G = S @ S.T
assert S.shape == (48, 32) and G.shape == (48, 48)
for k in range(48):  # a diagonal holds all pairs at distance k
    diagonal = G.diagonal(k)
    torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal))
axes = {"x": "position q", "y": "S[p] · S[q]", "levels": {"": G.min()}}
states = {}
for p in range(0, 48, 5):
    says = f"p = {p}: {G[p, p]:.0f} at q = p, and {G[p, p + 2]:.1f} two away."
    states[p] = plotting.lines(G[p], **axes), says
plotting.interactive_steps("p", states, start=4)

# %% [markdown]
# A head's score is the dot product of a query and a key, not of two positions, so attention need not follow this
# pattern; but $\mathbf W^Q$ and $\mathbf W^K$ can make use of it. Learned positions have none at the start.
#
# The formula goes on to any length. Whether a model can use positions that it never saw in training is another
# question.

# %%
fixed = InputEncoding(V, 48, model_dim=32, positions="sinusoidal")
names = [name for name, _ in fixed.named_parameters()]
assert names == ["tokens.E"]
torch.testing.assert_close(fixed(ids) - fixed.tokens(ids), S[:N])

# %% [markdown]
# Most current models, though not the block in the book, rotate queries and keys by an angle that grows with their
# position (RoPE, Su et al. 2021; the August 2026 draft names it without an equation). Every
# score then depends on the positions only through their distance, as [chapter 14](14_todays_block.py) shows.

# %% [markdown] tags=["more"] gist="Changes to try, each with its outcome folded"
# ## Try it
#
# 1. Give `output_of` any other order of the same words, such as `string the the tuned guitarist`,
#    without `P` and with it. When will the output of `string` change?
#
#    <details><summary>What happens</summary>
#
#    Only with `P`. Without it, the block sees a bag of words.
#
#    </details>
#
# 2. Set `P` to the same row at every position. Which assertion fails first?
#
#    <details><summary>What happens</summary>
#
#    The one that compares the two rows of `the`: a constant carries no information about the position.
#
#    </details>
#
# 3. Call `encoding(ids + 1)`. What will the error message say?
#
#    <details><summary>What happens</summary>
#
#    It names the id that is outside the vocabulary, and its position.
#
#    </details>
#
# 4. Change 10000 to 1 in `sinusoid`, and replace the assertion below it by `S = sinusoid(48, 32)`.
#    Which positions can no longer be distinguished? (The chapter's last assertion, which compares S with the
#    package, then fails.)
#
#    <details><summary>What happens</summary>
#
#    Now all hands turn at the same speed, once in $2\pi$ positions. Seven turns are almost exactly 44
#    positions, so positions 44 apart have almost the same row.
#
#    </details>

# %% [markdown]
# ## To remember
#
# - An embedding is a row of E; as a product, it is a one-hot row times E.
# - Without positions and without a mask, attention sees a bag of words: shuffled rows give shuffled outputs.
# - X is the sum of the token's row and the position's row, without a factor.
# - Learned positions end with their matrix *(whole chapter)*.
# - Sinusoidal positions come from a formula; the product of two depends on their distance alone *(whole chapter)*.

# %% [markdown]
# ## Test yourself
#
# 1. A vocabulary has 50,000 words and d is 768. How many parameters does E have, and how many of them does one
#    token use?
#
#    <details><summary>Answer</summary>
#
#    38.4 million, and 768.
#
#    </details>
#
# 2. With a causal mask and no positions, can one block tell *dog bites man* from *man bites
#    dog* by its last row? By the row of *bites* *(whole chapter)*?
#
#    <details><summary>Answer</summary>
#
#    The last rows belong to different words, so they differ; but neither depends on the order of the words
#    before it. The row of *bites* differs too: it sees *dog* in one sentence, *man* in the other.
#
#    </details>
#
# 3. The model has learned 1,024 positions. What happens with a text of 1,025 tokens, and what would
#    happen with sinusoidal positions *(whole chapter)*?
#
#    <details><summary>Answer</summary>
#
#    There is no row for the last token, so the package raises an error. Sinusoidal positions can be computed
#    for any position (set a larger `context_length`), but the model was not trained on that one.
#
#    </details>
#
# Next: [The language model](05_language_model.py), which puts all the parts together.
