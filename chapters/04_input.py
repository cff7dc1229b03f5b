# %% [markdown]
# # 4 · The input: what and where
#
# Sections 8.4 (2025-26 drafts) and 7.4 (August 2026 draft)
#
# Turn words into the rows of X: one row for what a token is, plus one for where it is.
#
# You will be able to look up embeddings with and without one-hot rows; show by experiment that
# attention alone cannot tell one word order from another; add learned or sinusoidal positions;
# and say what limits the length of a sequence. Read first: [Attention](01_attention.py) and
# [One matrix X](03_one_matrix.py). About 45 minutes.

# %% [markdown]
# ## Words become numbers
#
# A vocabulary gives every word a number, its id. Ours has the eight words of one sentence;
# `the` is in it twice and has one id. A real vocabulary has tens of thousands, and many of
# its entries are pieces of words.

# %%
import torch

words = "the guitarist tuned the string because it was flat".split()
vocabulary = list(dict.fromkeys(words))  # each word once
ids = torch.tensor([vocabulary.index(word) for word in words])

N, V = len(words), len(vocabulary)
print(f"{N} tokens, {V} words in the vocabulary")
print("ids:", ids.tolist())

# %% [markdown]
# ## One row of E for each word
#
# The embedding matrix $\mathbf E$ has one row for each word of the vocabulary. Training finds
# its numbers; here they are set by hand, so that you can read them. Five columns say what a word
# is. The last two are left empty; they will be needed below.

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

# %% [markdown]
# To take row $w$ out of $\mathbf E$, one may multiply with a one-hot row: zeros, and a single 1
# in place $w$. The 1 lets one row through and the zeros stop the others. So a look-up is a
# product of matrices like all else in the model, and gradients pass through it.
#
# <span class="eq" id="eq-onehot">onehot</span>
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

# %% [markdown]
# A whole sentence is $N$ one-hot rows, one below the other, and the product is the whole input,
# as in Fig. 8.13 (7.13). Both rows for `the` select the same row of $\mathbf E$.

# %% alt="Three matrices: 9 one-hot rows, one a token, times E equals 9 rows of 7 features. The first and the fourth row, both for the word the, are the same." caption="All tokens as one-hot rows times E (Fig. 8.13 · 7.13)"
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
# The package has both forms. `one_hot_lookup` is the figure;
# <autoref identifier="slp_transformer.embedding.TokenEmbedding">TokenEmbedding</autoref> reads
# the rows directly, which is what every model does.

# %%
from slp_transformer.embedding import TokenEmbedding, one_hot_lookup

plotting.show_source(one_hot_lookup, TokenEmbedding.forward)

# %%
d = E.shape[1]
embedding = TokenEmbedding(V, d)
embedding.E.data.copy_(E)
loop = torch.stack([look_up(w, E) for w in ids])

assert loop.shape == (N, d)
torch.testing.assert_close(one_hot_lookup(ids, E), loop)
torch.testing.assert_close(embedding(ids), loop)
torch.testing.assert_close(torch.nn.functional.embedding(ids, E), loop)

size = 1024 * 50_000 * 4 / 1e6  # 4 bytes a number
print(f"one-hots of 1,024 tokens from 50,000 words: {size:.0f} MB")

# %% [markdown]
# The gradient shows that it is a product all the same: in a look-up, a row of $\mathbf E$ learns as
# often as its word occurs. Here `the` learns twice, and a word that is not in the text does not learn.
# (That is the look-up alone. In [chapter 5](05_language_model.py) the same matrix also scores the
# words at the top of the model, and there every row learns at every step.)

# %%
first_five = ids[:5]  # the guitarist tuned the string
embedding(first_five).sum().backward()
learned = embedding.E.grad[:, 0]
for word, times in zip(vocabulary, learned, strict=True):
    print(f"{word:<10}{times:.0f}")
assert learned.tolist() == [2, 1, 1, 1, 0, 0, 0, 0]

# %% [markdown]
# ## Why this is not enough
#
# A head's output is a weighted sum, and a sum does not care for the order of its terms. Without
# a mask, shuffling the tokens shuffles the outputs, and nothing else happens. The same holds for
# a whole block, since its other parts work on each row alone. Mathematicians say that the block
# is *permutation equivariant*; for a reader it means that it sees a bag of words.

# %%
from slp_transformer import TransformerBlock

torch.manual_seed(4)
block = TransformerBlock(d, num_heads=3, key_dim=2, value_dim=5)
X = E[ids]
shuffled = torch.randperm(N)
torch.testing.assert_close(block(X[shuffled]), block(X)[shuffled])

# %% [markdown]
# So the two sentences below, which tell different stories, give `string` the very same output,
# although in one it is tuned and in the other it tunes. The weights are random: it holds for any.


# %%
def output_of(word, sentence, P=None):
    sentence = sentence.split()
    X = E[[vocabulary.index(w) for w in sentence]]
    X = X if P is None else X + P[: len(X)]
    return block(X)[sentence.index(word)]


tuned = output_of("string", "the guitarist tuned the string")
tunes = output_of("string", "the string tuned the guitarist")
torch.testing.assert_close(tuned, tunes)
print(f"without positions they differ by {(tuned - tunes).abs().max():.1e}")

# %% [markdown]
# A causal mask helps a little, since it lets each token see another part of the sentence. Yet
# within what a token sees, one block is as blind as before: shuffle all that comes before the
# last word, and the last word does not notice.

# %%
before = torch.randperm(N - 1)
X_mixed = torch.cat([X[before], X[-1:]])  # the last word stays in place
last = block(X, causal=True)[-1]
torch.testing.assert_close(block(X_mixed, causal=True)[-1], last)

# %% [markdown]
# From the second block on it can notice, because the rows it reads now differ by how much each
# one saw. Causal language models without any positions have indeed been trained (Haviv et al.
# 2022), but nobody would call that a direct way to say where a word is.

# %%
second = TransformerBlock(d, num_heads=3, key_dim=2, value_dim=5)
plain = second(block(X, causal=True), causal=True)[-1]
mixed = second(block(X_mixed, causal=True), causal=True)[-1]
assert not torch.allclose(plain, mixed, atol=1e-3)

# %% [markdown]
# ## One row of P for each place
#
# The direct way is to add to each token's row a second one that depends on its place alone.
# The position matrix $\mathbf P$ has a row for each place, and is learned like $\mathbf E$. (The
# August 2026 draft writes $\mathbf E_{pos}$ for it.)
#
# <span class="eq" id="eq-X">X</span>
#
# $$
# \mathbf X_i=\mathbf E[id(i)]+\mathbf P[i]
# $$
#
# By hand again: let the first place say *early*, the last one *late*, and those between them
# something of both.

# %%
P = torch.zeros(N, d)
for i in range(N):
    P[i, features.index("early")] = 1 - i / (N - 1)
    P[i, features.index("late")] = i / (N - 1)

X = torch.zeros(N, d)
for i in range(N):
    X[i] = E[ids[i]] + P[i]
assert not X[0].equal(X[3])  # the two the's are different now

# %% alt="Three matrices of 9 rows: the token rows E[ids], in which both rows for the are equal, plus P, whose early column fades from top to bottom while its late column grows, equals X, where every row is different." caption="Tokens plus positions make X (Fig. 8.14 · 7.14)"
plotting.panels(
    plotting.Panel(E[ids], "E[ids]", "N × d", words, features, decimals=None),
    "+",
    plotting.Panel(P, "P", "N × d", range(1, N + 1), features, decimals=None),
    "=",
    plotting.Panel(X, "X", "N × d", words, features, decimals=None),
)

# %% [markdown]
# Both parts share one row, yet they can be separated: we put them into columns of their own,
# and training is free to do the same with directions. Now order matters.

# %%
X_other = E[ids[shuffled]] + P  # other words in the same places
assert not torch.allclose(block(X_other), block(X)[shuffled], atol=1e-3)
tuned = output_of("string", "the guitarist tuned the string", P)
tunes = output_of("string", "the string tuned the guitarist", P)
assert not torch.allclose(tuned, tunes, atol=1e-3)
print(f"with positions they differ by {(tuned - tunes).abs().max():.2f}")

# %% [markdown]
# In the package the input is
# <autoref identifier="slp_transformer.embedding.InputEncoding">InputEncoding</autoref>, for one
# sentence or a batch. (`start` is for later: a model that writes one token at a time has to know
# that its next token is number 17, say, though it is the only one given.)

# %%
from slp_transformer import InputEncoding, LearnedPositions

plotting.show_source(InputEncoding.forward, LearnedPositions.forward)

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
# <div class="admonition note" markdown="0"><p class="admonition-title">Where the code leaves the book</p><p>The book gives <em>P</em> as many rows as the window has tokens. The package gives it <code>context_length</code> rows and uses the first N of them, so that shorter sequences fit too. The original Transformer multiplies the token's row by √d before it adds the position; the book does not, and neither does the code unless it is asked to (chapter 11). The February 2024 draft prints the shape of the position matrix as [1×N]; it is [N×d]. First weights and dropout are not in the book: both matrices begin as small normal numbers, as GPT-2's do, and dropout is an option that is off.</p></div>

# %% [markdown]
# ## What does not fit
#
# Learned positions end where the matrix ends: for a tenth token no row was learned. And an
# id beyond the vocabulary has no row in $\mathbf E$. The package says so, rather than fail deep
# inside.


# %%
import textwrap


def show_error(call, *inputs):
    try:
        call(*inputs)
    except ValueError as error:
        print(textwrap.fill(str(error), 72))
    else:
        raise AssertionError("this should have been refused")


ten_tokens = torch.cat([ids, ids[:1]])
show_error(encoding, ten_tokens)
show_error(encoding, torch.tensor([0, 1, 8]))  # ids are 0 to 7

# %% [markdown]
# Being within the matrix is not all: a row learns only from texts that reach it.

# %%
encoding(ids[:5]).sum().backward()
reached = (encoding.positions.P.grad != 0).any(dim=1)
assert reached.tolist() == [True] * 5 + [False] * 4
print("after a text of 5 tokens,", reached.sum().item(), "of 9 places learned")

# %% [markdown]
# ## Positions that are not learned
#
# The original Transformer computes its positions. Each pair of columns is a clock hand, given by
# its sine and cosine: the first goes round every $2\pi\approx6$ places, each later one more
# slowly, the last one in tens of thousands. Together they name every place, as the hands of a clock name
# every moment. The book mentions the idea in its prose; the formula is from the paper.
#
# <span class="eq" id="eq-sinusoid">sinusoid</span>
#
# $$
# \begin{aligned}
# \mathbf P_{pos,2i}&=\sin\bigl(pos/10000^{2i/d}\bigr)\\
# \mathbf P_{pos,2i+1}&=\cos\bigl(pos/10000^{2i/d}\bigr)
# \end{aligned}
# $$
#
# Here $i$ counts pairs of columns, and both it and $pos$ begin at 0, in the paper too.

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

P = sinusoidal_positions(48, 32)
torch.testing.assert_close(P, sinusoid(48, 32))
plotting.show_source(sinusoidal_positions)

# %% alt="Heat map of sinusoidal positions, 32 columns of P from top to bottom against 48 places from left to right. The top rows change sign every few places, the rows below ever more slowly; the lowest hardly change at all." caption="Sinusoidal positions"
plotting.heatmap(P.T, title="Pᵀ", shape="d × N", decimals=None)

# %% [markdown]
# ### What two places have in common
#
# Multiply two rows. Each pair of columns gives $\sin a\sin b+\cos a\cos b=\cos(a-b)$, and in
# $a-b$ the places occur only as their difference. So the dot product of two positions depends on
# how far apart they are, not on where they are:
#
# $$
# \mathbf P[p]\cdot\mathbf P[q]=\sum_{i=0}^{d/2-1}\cos\frac{p-q}{10000^{2i/d}}
# $$

# %% alt="Curve of the dot product of two positions against their distance from 0 to 47. It is highest, 16, at distance 0, falls to 12 within four places, and then goes up and down between about 6 and 12; the curves from place 0 and from place 20 lie on one another." caption="How alike two sinusoidal positions are, by their distance"
G = P @ P.T
assert P.shape == (48, 32) and G.shape == (48, 48)
for k in range(48):  # a diagonal holds all pairs at distance k
    diagonal = G.diagonal(k)
    torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal))
plotting.lines(
    {"from place 0": G[0], "from place 20": G[20, 20:]},
    x="distance",
    y="dot product",
)

# %% [markdown]
# The score of a head multiplies queries with keys, not positions with positions, so this is a
# hint rather than a law of attention: the matrices $\mathbf W^Q$ and $\mathbf W^K$ can make use
# of it. Learned positions have no such pattern until they learn one.
#
# In the package, the choice is an option. Nothing is learned, and a longer matrix costs nothing;
# whether the model makes sense of places it never met is another question.

# %%
fixed = InputEncoding(V, 48, model_dim=32, positions="sinusoidal")
names = [name for name, _ in fixed.named_parameters()]
assert names == ["tokens.E"]
torch.testing.assert_close(fixed(ids) - fixed.tokens(ids), P[:N])

# %% [markdown]
# Beyond the book: most current models rotate queries and keys by an angle that grows with their
# place (RoPE, Su et al. 2021; the August 2026 draft names it without an equation), and by the
# identity above every score then depends on the distance of the two tokens.

# %% [markdown]
# ## Try it
#
# 1. Give `output_of` any other order of the same words, such as `string the the tuned guitarist`,
#    without `P` and with it. When will the output of `string` move?
#
#    <details><summary>What happens</summary>
#
#    With `P` only. Without it, the block sees a bag of words.
#
#    </details>
#
# 2. Set `P` to the same row at every place. Which assertion fails first?
#
#    <details><summary>What happens</summary>
#
#    The one that tells the two `the` apart: a constant says nothing about where.
#
#    </details>
#
# 3. Call `encoding(ids + 1)`. What will the message have to say?
#
#    <details><summary>What happens</summary>
#
#    It names the id that does not fit, and where it is.
#
#    </details>
#
# 4. Change 10000 to 1 in `sinusoid`, and let `P = sinusoid(48, 32)` instead of asserting. Which places
#    can no longer be distinguished?
#
#    <details><summary>What happens</summary>
#
#    All hands turn alike now, once in $2\pi$ places. Seven turns are very nearly 44 places, so
#    places 44 apart have almost the same row.
#
#    </details>

# %% [markdown]
# ## To remember
#
# - An embedding takes a row out of E; as a product, it is a one-hot row times E.
# - Without positions, attention sees a bag of words: shuffled rows give shuffled outputs.
# - X is the token's row plus the place's row, one sum, no factor.
# - Learned positions end with their matrix, and a row learns only from texts that reach it.
# - Sinusoidal positions are computed; the dot product of two of them depends on their distance.

# %% [markdown]
# ## Test yourself
#
# 1. A vocabulary has 50,000 words and d is 768. How many numbers has E, and how many of them does one
#    token use?
#
#    <details><summary>Answer</summary>
#
#    38.4 million, and 768.
#
#    </details>
#
# 2. A causal mask is on and there are no positions. Can one block tell *dog bites man* from *man bites
#    dog* by its last row? By the row of *bites*?
#
#    <details><summary>Answer</summary>
#
#    The last rows belong to different words, so they differ; but each is what any order of the two words
#    before it would give. The row of *bites* differs too: it sees *dog* in one and *man* in the other.
#
#    </details>
#
# 3. The model has learned 1,024 positions. What happens with a text of 1,025 tokens, and what would
#    happen with sinusoidal positions?
#
#    <details><summary>Answer</summary>
#
#    There is no row for the last token, and the package refuses. Sinusoidal positions can be computed
#    for any place, but the model has not learned from that one.
#
#    </details>
#
# Next: [The language model](05_language_model.py).
