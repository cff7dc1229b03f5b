# %% [markdown] tags=["path"]
# # 1 · Attention
#
# Sections 8.1 (2025-26 drafts) and 7.1 (August 2026 draft)
#
# Compute attention one token at a time, from a weighted sum to several heads. *The guitarist tuned the string because
# it was flat*: how can a sum of products know that *it* is the string?
#
# You will be able to write each equation as a short loop, give the shape of every vector, and say why scores are
# scaled. You need to know what a dot product is; if PyTorch is new to you, read [ten minutes of
# PyTorch](../docs/pytorch.md) first. Letters and shapes are on the [notation](../docs/notation.md) page.
# About 55 minutes.

# %% [markdown]
# ## Looking back in a sentence
#
# To know what *it* means in that sentence, you look back at *string*. Attention is how a Transformer does that. Each
# token is a row of numbers; attention mixes this row with the rows before it, and gives the most useful ones the
# largest weights.
#
# In a real model the rows are learned, and their numbers have no names. Ours are set by hand, so that you can predict
# the results. Five features say whether a word is a person, a thing, an action, a quality, or glue that holds a
# sentence together. *It* is only weakly a thing, and glue as well.

# %%
import torch

features = {  # person, thing, action, quality, glue
    "the": [0, 0, 0, 0, 1],
    "guitarist": [3, 0, 0, 0, 0],
    "tuned": [0, 0, 3, 0, 0],
    "string": [0, 3, 0, 0, 0],
    "because": [0, 0, 0, 0, 1],
    "it": [0, 1, 0, 0, 1],
    "was": [0, 0, 0, 0, 1],
    "flat": [0, 0, 0, 2, 0],
}
words = "the guitarist tuned the string because it was flat".split()
X = torch.tensor([features[word] for word in words]).float()
N, d = X.shape

# %% [markdown]
# Before any formula, try it: on the site, change the rows in [Figure](#fig-rows-to-change) and watch how much *it*
# reads of each word. Make *it* more of a person, or *guitarist* a thing.

# %% alt="The matrix X, nine words by five features: person, thing, action, quality, glue. “guitarist” has 3 for person, “tuned” 3 for action, “string” 3 for thing, “flat” 2 for quality; “it” has 1 for thing and 1 for glue; “the”, “because” and “was” have 1 for glue." caption="The rows of X: change a number and watch the weights" figure="rows-to-change"
from slp_transformer import plotting

names = ["person", "thing", "action", "quality", "glue"]
plotting.interactive_scores(X, words, names, start=words.index("it"))

# %% [markdown]
# The book counts from 1, Python from 0: the book's $\mathbf x_1$ is `X[0]`, and the tokens up to and including
# i are `X[:i + 1]`. A row $[1\times d]$ of the book is a vector of d numbers here.

# %% [markdown]
# ## The simplest attention
#
# The output for token i is a sum of the rows up to i, each multiplied by a weight $\alpha_{ij}$, which says
# how much i reads from j.
#
# <span class="eq" id="eq-simple-sum">simple-sum · 8.6 · 7.6</span>
#
# $$
# \mathbf a_i=\sum_{j\le i}\alpha_{ij}\,\mathbf x_j
# \tag{8.6 · 7.6}
# $$


# %%
def weighted_sum(alpha_i, rows):
    total = torch.zeros(rows.shape[-1])
    for j in range(len(alpha_i)):  # one weight for each j ≤ i
        total = total + alpha_i[j] * rows[j]
    return total


IT, STRING = words.index("it"), words.index("string")
alpha_it = torch.zeros(IT + 1)
alpha_it[STRING], alpha_it[IT] = 0.75, 0.25  # weights chosen by hand
a_it = weighted_sum(alpha_it, X)
assert a_it.shape == (d,)
print("¾ string + ¼ it =", a_it.tolist())

# %% [markdown]
# *It* has become much more of a thing. But we chose the weights. They have to come from the rows themselves, and the
# simplest measure of similarity is the dot product of two rows. Which word scores highest with *it*? (PyTorch writes
# [`@`](../docs/pytorch.md#the-product) for it, and for products of matrices.)
#
# <span class="eq" id="eq-simple-score">simple-score · 8.7 · 7.7</span>
#
# $$
# \mathrm{score}(\mathbf x_i,\mathbf x_j)=\mathbf x_i\cdot\mathbf x_j
# \tag{8.7 · 7.7}
# $$


# %%
def score(x_i, x_j):
    return sum(x_i[f] * x_j[f] for f in range(len(x_i)))


scores_it = torch.stack([score(X[IT], X[j]) for j in range(IT + 1)])
assert torch.equal(scores_it, X[: IT + 1] @ X[IT])
for j in range(IT + 1):
    print(f"it · {words[j]:9} = {scores_it[j]:.0f}")

# %% [markdown]
# Softmax turns the scores of one token into weights, which sum to 1: exp makes each positive, and a difference of
# scores a ratio of weights. Only the tokens up to i take part, in the denominator too. (PyTorch's softmax needs to know along which
# [axis](../docs/pytorch.md#axes-dim); −1 is the last.)
#
# <span class="eq" id="eq-simple-softmax">simple-softmax · 8.8 · 7.8</span>
#
# $$
# \begin{aligned}
# \alpha_{ij}&=\mathrm{softmax}(\mathrm{score}(\mathbf x_i,\mathbf x_j))\quad\forall j\le i\\
# &=\frac{\exp(\mathrm{score}(\mathbf x_i,\mathbf x_j))}
# {\sum_{k=1}^{i}\exp(\mathrm{score}(\mathbf x_i,\mathbf x_k))}
# \end{aligned}
# \tag{8.8 · 7.8}
# $$
#
# In 32-bit floats, exp overflows for scores above about 88.7. Subtracting the largest score from all leaves the
# weights unchanged, because its exponential cancels in the fraction, and no exponential is above 1.


# %%
def softmax(scores):
    powers = torch.exp(scores - scores.max())
    return powers / powers.sum()


large = torch.tensor([100.0, 99.0])
assert (large.exp() / large.exp().sum()).isnan().all()  # ∞ / ∞
torch.testing.assert_close(softmax(large), softmax(large - 99))

alpha_it = softmax(scores_it)
torch.testing.assert_close(alpha_it, torch.softmax(scores_it, dim=-1))
torch.testing.assert_close(alpha_it.sum(), torch.tensor(1.0))
print(f"it reads {alpha_it[STRING]:.2f} string, {alpha_it[IT]:.2f} itself")

# %% [markdown]
# The three equations together, and the weights of *it* as a heat map (Fig. 8.3 · 7.3):


# %% alt="Heat strip of the weights of “it” over the seven words up to itself. “string” has 0.53, “it” itself 0.20, each “the” and “because” 0.07, “guitarist” and “tuned” 0.03." caption="The weights of “it” in the simplest attention (Fig. 8.3 · 7.3)"
def simple_attention(X, i):
    scores = [score(X[i], X[j]) for j in range(i + 1)]
    alpha_i = softmax(torch.stack(scores))
    return weighted_sum(alpha_i, X), alpha_i


a_it, alpha_it = simple_attention(X, IT)
A_simple = torch.stack([simple_attention(X, i)[0] for i in range(N)])
assert A_simple.shape == (N, d)

plotting.heatmap(alpha_it, rows=["it"], columns=words[: IT + 1], top=1)

# %% [markdown]
# ### No looking ahead
#
# Every sum stops at i. So a row affects the outputs at its own position and later ones, never earlier ones.
# This is *causal* attention: information flows from left to right (Fig. 8.4 · 7.4).

# %% [markdown] tags=["more"] gist="Derivatives check it: which output reads which input, with sums up to i and over all j"
# PyTorch's `jacobian` says how much each number of the outputs changes with each number of the inputs; where all of
# these are 0, the output does not read the input. And if the sums run over all j: what does the third output read?


# %%
def five_outputs(X):
    return torch.stack([simple_attention(X, i)[0] for i in range(5)])


def five_over_all_j(X):
    return torch.softmax(X @ X.T, dim=-1) @ X


def reach(outputs):
    J = torch.autograd.functional.jacobian(outputs, X[:5])
    return J.abs().sum(dim=(1, 3)) > 0  # J is [outputs × d × inputs × d]


# %% alt="Five words as inputs below and five outputs a₁ to a₅ above. A line goes from each input to the output at its own position and to all later ones; none goes back to the left. The lines into a₃ stand out: they come from the first three words." caption="Information flows from left to right (Fig. 8.4 · 7.4)"
causal, both_ways = reach(five_outputs), reach(five_over_all_j)
assert torch.equal(causal, torch.ones(5, 5).tril() > 0) and both_ways.all()
says = "a₃ reads the first three words; no line leads back to the left."
flow = plotting.flow(causal, columns=words[:5], row=2)
sums = {"j ≤ i": (flow, says)}
says = "a₃ reads all five words, including the two after its own."
flow = plotting.flow(both_ways, columns=words[:5], row=2)
sums["all j"] = flow, says
plotting.interactive_steps("The sums run over", sums)

# %% [markdown]
# ## Query, key and value
#
# The simplest attention has two flaws. First, *tuned* has nothing in common with the words before it, so it
# reads almost only itself. A verb needs to know *who did it*, but a person does not resemble a verb. Second,
# the score is symmetric: *guitarist* gets the same score with *tuned* as *tuned* with *guitarist*.

# %%
TUNED, GUITARIST = words.index("tuned"), words.index("guitarist")
_, alpha_tuned = simple_attention(X, TUNED)
print(f"tuned reads {alpha_tuned[TUNED]:.3f} itself,", end=" ")
print(f"{alpha_tuned[GUITARIST]:.3f} guitarist")
assert score(X[TUNED], X[GUITARIST]) == score(X[GUITARIST], X[TUNED])

# %% [markdown]
# So each row plays three roles, each through its own matrix: a *query*, what it looks
# for; a *key*, what it can be found by; and a *value*, what it passes on when found. Attention with one set
# of these three matrices is called a *head*.
#
# <span class="eq" id="eq-qkv">qkv · 8.9 · 7.9</span>
#
# $$
# \mathbf q_i=\mathbf x_i\mathbf W^Q;\qquad
# \mathbf k_i=\mathbf x_i\mathbf W^K;\qquad
# \mathbf v_i=\mathbf x_i\mathbf W^V
# \tag{8.9 · 7.9}
# $$
#
# Weights multiply on the right, in the book and in our code. Queries and keys must have the same size $d_k$,
# since their dot product is taken; values may have another size $d_v$. Here is a head with $d_k=2$ and $d_v=3$.
# The first number of a key says *I am a person*, the second *I am a thing*. An action asks for a person; things
# and qualities ask for a thing.

# %%
d_k, d_v = 2, 3
# a thing asks with 2, since “it” is only weakly a thing
W_Q = torch.tensor([[0.0, 0], [0, 2], [1, 0], [0, 1], [0, 0]])
W_K = torch.tensor([[1.0, 0], [0, 1], [0, 0], [0, 0], [0, 0]])
W_V = torch.eye(d)[:, :d_v]  # passes on person, thing and action
assert W_Q.shape == W_K.shape == (d, d_k) and W_V.shape == (d, d_v)

x_i = X[TUNED]
q_i, k_i, v_i = x_i @ W_Q, x_i @ W_K, x_i @ W_V
assert q_i.shape == k_i.shape == (d_k,) and v_i.shape == (d_v,)
print("tuned asks      ", q_i.tolist(), " (person, thing)")
print("tuned offers    ", k_i.tolist())
print("tuned passes on ", v_i.tolist(), " (person, thing, action)")

# %% [markdown]
# In the final form the indices distinguish the roles: i asks, and j runs over the tokens that may answer,
# including i.
#
# <span class="eq" id="eq-qkv-final">qkv-final · 8.10 · 7.10</span>
#
# $$
# \mathbf q_i=\mathbf x_i\mathbf W^Q;\qquad
# \mathbf k_j=\mathbf x_j\mathbf W^K;\qquad
# \mathbf v_j=\mathbf x_j\mathbf W^V
# \tag{8.10 · 7.10}
# $$
#
# The score is now the dot product of query and key, divided by $\sqrt{d_k}$. Why? If their numbers are independent,
# with mean 0 and variance 1, each product has variance 1 too, and a sum of $d_k$ products has variance $d_k$: a typical
# score is about $\sqrt{d_k}$ from 0. In a large head softmax then gives one token nearly all the weight; a small change
# of a score changes hardly any weight, and queries and keys get hardly any gradient. Divided, scores are about 1.
#
# <span class="eq" id="eq-scaled-score">scaled-score · 8.11 · 7.11</span>
#
# $$
# \mathrm{score}(\mathbf x_i,\mathbf x_j)=\frac{\mathbf q_i\cdot\mathbf k_j}{\sqrt{d_k}}
# \tag{8.11 · 7.11}
# $$


# %%
def scaled_score(x_i, x_j, W_Q, W_K):
    q_i = x_i @ W_Q
    k_j = x_j @ W_K
    return q_i @ k_j / len(k_j) ** 0.5


for i, j in [(IT, STRING), (TUNED, GUITARIST), (GUITARIST, TUNED)]:
    found = scaled_score(X[i], X[j], W_Q, W_K)
    print(f"{words[i]} asks {words[j]}: {found:.2f}")

# %% [markdown] tags=["more"] gist="The division measured: how much weight one token gets, and how much gradient is left, up to d_k = 1024"
# The Feb 2024 draft first gave the score without the division:
#
# <span class="eq" id="eq-score-unscaled">score-unscaled · 10.9 in the Feb 2024 draft</span>
#
# $$
# \mathrm{score}(\mathbf x_i,\mathbf x_j)=\mathbf q_i\cdot\mathbf k_j
# $$
#
# How small does the slope get? The derivative of a weight with respect to its own score is $\alpha(1-\alpha)$. We
# measure it for a thousand queries with eight keys each; all numbers are random, with variance 1. (A query [1 × d_k]
# is multiplied by eight keys [8 × d_k] by [broadcasting](../docs/pytorch.md#broadcasting).) Let $d_k$ grow: at 256,
# the first query reads a single key without the division.

# %% alt="Weights of one query for eight keys at d_k = 4, in two rows. Without the division by the root of d_k the weights differ more than with it." caption="Weights of one query with and without the division by √d_k"
torch.manual_seed(1)
states, slopes = {}, {}
for size in (4, 16, 64, 256, 1024):
    q, k = torch.randn(1000, 1, size), torch.randn(1000, 8, size)
    raw = (q * k).sum(dim=-1)
    alphas = torch.softmax(torch.stack([raw, raw / size**0.5]), dim=-1)
    first = slopes[size] = (alphas * (1 - alphas)).mean(dim=(1, 2)).tolist()
    says = f"Mean α(1−α) {first[0]:.4f} without √dₖ, {first[1]:.4f} with it."
    print(f"d_k = {size}: standard deviation {raw.std():.1f}. {says}")
    rows = ["without √dₖ", "with √dₖ"]
    picture = plotting.heatmap(alphas[:, 0], rows, range(1, 9), top=1)
    states[size] = picture, says
assert slopes[1024][0] < slopes[4][0] / 5 and slopes[1024][1] > 0.09
plotting.interactive_steps("dₖ", states)

# %% [markdown]
# ## One head
#
# The scores go through softmax as before,
#
# <span class="eq" id="eq-alpha">alpha · 8.12 · 7.12</span>
#
# $$
# \alpha_{ij}=\mathrm{softmax}(\mathrm{score}(\mathbf x_i,\mathbf x_j))\quad\forall j\le i
# \tag{8.12 · 7.12}
# $$
#
# and the weights are now applied to the values.
#
# <span class="eq" id="eq-head">head · 8.13 · 7.13</span>
#
# $$
# \mathbf{head}_i=\sum_{j\le i}\alpha_{ij}\,\mathbf v_j
# \tag{8.13 · 7.13}
# $$
#
# In numbers, *it* asks with (0, 2), *string* offers (0, 3) and *it* itself (0, 1). So their scores are 6/√2 = 4.24
# and 2/√2 = 1.41, and the other five are 0. The exponentials, 69.6, 4.11 and five times 1, sum to 78.7: *string*
# weighs 69.6/78.7 = 0.884, *it* 4.11/78.7 = 0.052. In the head, thing is 0.884 · 3 + 0.052 · 1 = 2.70.


# %%
def one_head(X, i, W_Q, W_K, W_V):
    scores = [scaled_score(X[i], X[j], W_Q, W_K) for j in range(i + 1)]
    alpha_i = softmax(torch.stack(scores))
    values = torch.stack([X[j] @ W_V for j in range(i + 1)])
    return weighted_sum(alpha_i, values), alpha_i


for word in ("tuned", "it", "flat"):
    head_i, alpha_i = one_head(X, words.index(word), W_Q, W_K, W_V)
    assert head_i.shape == (d_v,)
    j = alpha_i.argmax()
    print(f"{word} reads {alpha_i[j]:.2f} {words[j]}")

# %% [markdown]
# A head's output has size $d_v$. One more matrix maps it back to the model's size d, so that
# [chapter 2](02_block.py) can add it to the token's row.
#
# <span class="eq" id="eq-head-out">head-out · 8.14 · 7.14</span>
#
# $$
# \mathbf a_i=\mathbf{head}_i\,\mathbf W^O
# \tag{8.14 · 7.14}
# $$

# %%
W_O = torch.eye(d)[:d_v]  # puts person, thing and action back in their places
assert W_O.shape == (d_v, d)

head_it, alpha_it = one_head(X, IT, W_Q, W_K, W_V)
a_it = head_it @ W_O
assert a_it.shape == (d,)
print("a_it =", ", ".join(f"{value:.2f}" for value in a_it))

# %% [markdown] tags=["more"] gist="Where the code leaves the book"
# <div class="admonition note" markdown="0"><p class="admonition-title">Where the code leaves the book</p><p>The text around <a href="#eq-head-out">(8.14)</a> speaks of multiplying on the left; the equation and the code multiply on the right. The Feb 2024 draft had no $\mathbf W^O$ for a single head. And the book's matrices are [inputs × outputs] without a bias, while PyTorch's <code>nn.Linear</code> keeps the transpose and adds a bias by default: that is why the package has plain matrices.</p></div>

# %% [markdown] tags=["more"] gist="Each step for one token, with its shape and its numbers"
# ### Eight steps for one token
#
# Here is every step of computing $\mathbf a_3$, the output for *tuned* (Fig. 8.5 · 7.5). To show
# the book's shapes, the rows keep their leading 1 here: `X[2:3]` is $[1\times d]$. Steps 1 to 4
# determine *where* to read,

# %%
from slp_transformer._internal.shape_types import format_shape

x_1, x_2, x_3 = X[0:1], X[1:2], X[2:3]
q_3 = x_3 @ W_Q
k_1, k_2, k_3 = (x_j @ W_K for x_j in (x_1, x_2, x_3))
v_1, v_2, v_3 = (x_j @ W_V for x_j in (x_1, x_2, x_3))
shapes = [format_shape(Z) for Z in (q_3, k_3, v_3)]
print("1 make    q₃", shapes[0], "kⱼ", shapes[1], "vⱼ", shapes[2])

dots = torch.cat([q_3 @ k_j.T for k_j in (k_1, k_2, k_3)], dim=-1)
print("2 compare q₃·kⱼ =", dots[0].tolist())
scaled = dots / d_k**0.5
print("3 scale   by √2: ", [round(s.item(), 3) for s in scaled[0]])
alpha = torch.softmax(scaled, dim=-1)
print("4 softmax α₃ =", [round(a.item(), 3) for a in alpha[0]])

# %% [markdown]
# and steps 5 to 8 compute *what* is read.

# %%
parts = [alpha[0, 0] * v_1, alpha[0, 1] * v_2, alpha[0, 2] * v_3]
print("5 weigh   α₃ⱼvⱼ", format_shape(parts[0]), "three times")
head_3 = sum(parts)
numbers = [round(h.item(), 3) for h in head_3[0]]
print("6 add     head₃", format_shape(head_3), numbers)
a_3 = head_3 @ W_O
print("7 map     head₃", format_shape(head_3), "× Wᴼ", format_shape(W_O))
numbers = [round(a.item(), 3) for a in a_3[0]]
print("8 out     a₃", format_shape(a_3), numbers)

torch.testing.assert_close(a_3[0], one_head(X, 2, W_Q, W_K, W_V)[0] @ W_O)

# %% [markdown] tags=["more"] gist="The package and PyTorch compute the same; all weights of the head in one figure"
# ### All tokens in the package
#
# The package computes the rows of all tokens at once. Its mask, which [chapter 3](03_one_matrix.py) explains,
# replaces our `range(i + 1)`.

# %%
from slp_transformer.attention import attention

plotting.show_source(attention)

# %% [markdown]
# <autoref identifier="slp_transformer.multi_head.AttentionHead">AttentionHead</autoref> supplies the four
# matrices.

# %%
from slp_transformer import AttentionHead, causal_mask

plotting.show_source(AttentionHead.forward)

# %% [markdown]
# With our matrices it gives the same as the loops, and so does PyTorch's own attention. The simplest attention is the
# same function, with every row as its own query, key and value. (Multiplying the queries by $\sqrt d$ undoes the
# division.)

# %%
head = AttentionHead(d, d_k, d_v)
for name, W in dict(W_Q=W_Q, W_K=W_K, W_V=W_V, W_O=W_O).items():
    getattr(head, name).data = W
outputs, alpha = head(X, causal_mask(N))

loop = [one_head(X, i, W_Q, W_K, W_V)[0] for i in range(N)]
torch.testing.assert_close(outputs, torch.stack(loop) @ W_O)

sdpa = torch.nn.functional.scaled_dot_product_attention
theirs = sdpa(X @ W_Q, X @ W_K, X @ W_V, is_causal=True)
torch.testing.assert_close(theirs, torch.stack(loop))

simple, _ = attention(X * d**0.5, X, X, causal_mask(N))
torch.testing.assert_close(simple, A_simple)

# %% [markdown]
# Here are all weights of the head, a row for each token that reads. *Tuned* finds its guitarist; *it* and *flat* find
# the string. And a word that asks for nothing, such as *because*?

# %% alt="Heat map of the head's weights, nine rows by nine columns, zero above the diagonal. “tuned” puts 1.00 on “guitarist”, “string” 1.00 on itself, “it” 0.88 on “string”, “flat” 0.86 on “string”. “the”, “because”, “was” and “guitarist” spread their weight evenly over the words so far." caption="The weights of one head, a row for each token that reads"
plotting.heatmap(alpha, rows=words, columns=words, top=1)

# %% [markdown]
# ## Several heads
#
# One head has one set of weights for each token, so it answers one question at a time. *It* might need to know
# both *which thing am I?* and *what happened to it?* So there are A heads, each with its own matrices. The
# superscript c is the head's number, not a power.
#
# <span class="eq" id="eq-mh-qkv">mh-qkv · 8.15 · 7.15</span>
#
# $$
# \mathbf q_i^c=\mathbf x_i\mathbf W^{Qc};\quad
# \mathbf k_j^c=\mathbf x_j\mathbf W^{Kc};\quad
# \mathbf v_j^c=\mathbf x_j\mathbf W^{Vc}\qquad 1\le c\le A
# \tag{8.15 · 7.15}
# $$
#
# <autoref identifier="slp_transformer.multi_head.MultiHeadAttention">MultiHeadAttention</autoref> lets us set
# each head's matrices. Ours has four heads:
#
# | head | who asks | for what |
# |---|---|---|
# | 1 | an action | a person |
# | 2 | a thing, a quality | a thing |
# | 3 | glue | an action |
# | 4 | no word | nothing (so it averages all words so far) |

# %%
from slp_transformer import MultiHeadAttention

A = 4
person, thing, action, quality, glue = torch.eye(d)
asks = [action, thing + quality, glue, 0 * glue]
offers = [person, thing, action, 0 * glue]

mha = MultiHeadAttention(d, A, key_dim=d_k, value_dim=d_v)
for c in range(A):  # the book's head 1 is heads[0]
    head = mha.heads[c]  # one of the two columns of W_Q and W_K is enough
    head.W_Q = torch.stack([2 * asks[c], 0 * glue], dim=1)
    head.W_K = torch.stack([offers[c], 0 * glue], dim=1)
    head.W_V = W_V
    head.W_O = W_O  # the d_v rows that are head c's in the book's W^O, below
    assert head.W_Q.shape == head.W_K.shape == (d, d_k)

# %% [markdown]
# Each head then computes scores, weights and a weighted sum as before.
#
# <span class="eq" id="eq-mh-score">mh-score · 8.16 · 7.16</span>
#
# $$
# \mathrm{score}^c(\mathbf x_i,\mathbf x_j)=\frac{\mathbf q_i^c\cdot\mathbf k_j^c}{\sqrt{d_k}}
# \tag{8.16 · 7.16}
# $$
#
# <span class="eq" id="eq-mh-alpha">mh-alpha · 8.17 · 7.17</span>
#
# $$
# \alpha^c_{ij}=\mathrm{softmax}(\mathrm{score}^c(\mathbf x_i,\mathbf x_j))\quad\forall j\le i
# \tag{8.17 · 7.17}
# $$
#
# <span class="eq" id="eq-mh-head">mh-head · 8.18 · 7.18</span>
#
# $$
# \mathbf{head}^c_i=\sum_{j\le i}\alpha^c_{ij}\,\mathbf v^c_j
# \tag{8.18 · 7.18}
# $$
#
# What will *it* read through each of the four? (Nothing is learned here, so [`no_grad`](../docs/pytorch.md#gradients)
# tells PyTorch not to record how each number was computed.)


# %% alt="Heat map of the weights of “it”, one row for each of four heads. Head 1 and head 4 are even at 0.14. Head 2 puts 0.88 on string. Head 3 puts 0.92 on tuned." caption="What “it” reads through each of four heads"
@torch.no_grad()
def all_heads(X, i):
    heads, alphas = [], []
    for W in mha.heads:
        head_i, alpha_i = one_head(X, i, W.W_Q, W.W_K, W.W_V)
        heads.append(head_i)
        alphas.append(alpha_i)
    return heads, alphas


heads_it, alphas_it = all_heads(X, IT)
names = [f"head {c + 1}" for c in range(A)]
plotting.heatmap(torch.stack(alphas_it), names, words[: IT + 1], top=1)

# %% [markdown]
# *It* reads *string* with its second head and *tuned* with its third. To make one vector of the four, concatenate them
# ($\oplus$) and multiply by $\mathbf W^O$, now $[Ad_v\times d]$. (The book writes $\mathbf{head}^c$; we add the i of
# the token.)
#
# <span class="eq" id="eq-mh-concat">mh-concat · 8.19 · 7.19</span>
#
# $$
# \mathbf a_i=(\mathbf{head}^1_i\oplus\mathbf{head}^2_i\oplus\dots\oplus\mathbf{head}^A_i)\,
# \mathbf W^O
# \tag{8.19 · 7.19}
# $$

# %% alt="Four rows of three cells, head¹ to head⁴ of “it”, each 1 by d_v, are concatenated into one row of twelve cells, 1 by 4d_v. Head 2 is strong in its second cell, head 3 in its third." caption="The outputs of four heads, concatenated (Fig. 8.6 · 7.6: the heads)"
joined = torch.cat(heads_it)
assert joined.shape == (A * d_v,) and mha.W_O.shape == (A * d_v, d)

look = dict(decimals=None, top=3)  # 3 gets the full color
figure = []
for c in range(A):
    name = "head" + "¹²³⁴"[c]
    figure += [plotting.Panel(heads_it[c], name, "1 × dᵥ", **look), "⊕"]
figure[-1] = "="
figure += [plotting.Panel(joined, "joined", "1 × 4dᵥ", **look)]
plotting.panels(*figure)

# %% [markdown]
# These are the heads of Fig. 8.6 · 7.6, for A = 4. One matrix product with $\mathbf W^O$ does the rest:

# %% alt="The joined row, 1 by 4d_v, times W^O, 4d_v by d, twelve rows of five cells in which each head's three rows put person, thing and action back in their places, gives a_i, 1 by d, strong in thing and action." caption="Wᴼ turns them into one row (Fig. 8.6 · 7.6: Wᴼ)"
a_it = (joined @ mha.W_O).detach()
assert a_it.shape == (d,)
print("a_it =", ", ".join(f"{value:.2f}" for value in a_it))

plotting.panels(
    plotting.Panel(joined, "joined", "1 × 4dᵥ", **look),
    "×",
    plotting.Panel(mha.W_O, "Wᴼ", "4dᵥ × d", decimals=None),
    "=",
    plotting.Panel(a_it, "aᵢ", "1 × d", **look),
)

# %% [markdown] tags=["more"] gist="One function of a token and those before it; a figure in which you choose both; where the code leaves the book"
# From the outside, all this is one function of the current token and the tokens before it.
#
# <span class="eq" id="eq-mh-def">mh-def · 8.20 · 7.20</span>
#
# $$
# \mathrm{MultiHeadAttention}(\mathbf x_i,[\mathbf x_1,\dots,\mathbf x_{i-1}])=\mathbf a_i
# \tag{8.20 · 7.20}
# $$


# %%
@torch.no_grad()
def multi_head_attention(x_i, earlier):
    X = torch.stack([*earlier, x_i])  # a token also reads itself
    heads, _ = all_heads(X, len(earlier))
    return torch.cat(heads) @ mha.W_O


loop = torch.stack([multi_head_attention(X[i], X[:i]) for i in range(N)])
torch.testing.assert_close(mha(X, causal=True), loop)
torch.testing.assert_close(loop[IT], a_it)

# %% [markdown]
# The package also returns the weights of all four heads. On the site you can choose in
# [Figure](#fig-weights-to-choose) which token reads, and through which head.

# %% alt="Heat map of the weights of “it”, one row for each of four heads. Head 1 and head 4 are even at 0.14. Head 2 puts 0.88 on “string”. Head 3 puts 0.92 on “tuned”." caption="What a token reads through each of four heads" figure="weights-to-choose"
_, alphas = mha(X, causal=True, return_weights=True)
assert alphas.shape == (A, N, N)
torch.testing.assert_close(alphas[:, IT, : IT + 1], torch.stack(alphas_it))
plotting.interactive_weights(alphas, words, start=IT)

# %% [markdown]
# The package's version has no loops over tokens and heads:
# <autoref identifier="slp_transformer.multi_head.split_heads">split_heads</autoref> (inside `project`) and
# <autoref identifier="slp_transformer.multi_head.join_heads">join_heads</autoref> turn them into axes of one tensor,
# as [chapter 3](03_one_matrix.py) explains. (`H_enc` is for [another text](10_encoder_decoder.py) as context, `cache`
# for [generation](06b_cache.py).)

# %%
plotting.show_source(MultiHeadAttention.forward)

# %% [markdown]
# <div class="admonition note" markdown="0"><p class="admonition-title">Where the code leaves the book</p><p><a href="#eq-mh-def">(8.20)</a> lists $\mathbf x_1$ to $\mathbf x_{i-1}$ as context, while all sums run over j ≤ i: the current token reads itself too, so our function includes it. Usually $d_v=d/A$, which makes $\mathbf W^O$ [d × d] (512 = 8 · 64 in the original Transformer). That is a convention, not a requirement: here d = 5, A = 4, $d_k=2$ and $d_v=3$.</p></div>

# %% [markdown] tags=["more"] gist="Changes to try, each with its outcome folded"
# ## Try it
#
# Four lines are easy to get wrong here: [no √d_k](../docs/break-it.md#mistake-no-d_k), [√d in place of
# √d_k](../docs/break-it.md#mistake-d-in-place-of-d_k), [keys used as
# values](../docs/break-it.md#mistake-keys-used-as-values) and [the softmax over the wrong
# axis](../docs/break-it.md#mistake-softmax-over-the-wrong-axis). Which of them would a falling loss hide? After chapter
# 5, the page [Break it](../docs/break-it.md) tells.
#
# 1. Make *it* weakly a person as well: `[1, 1, 0, 0, 1]`. How will its weights in the simplest
#    attention change? Then let things ask for persons too, in the single head, by setting the first
#    number in the second row of `W_Q` to 2. What does *it* read now?
#
#    <details><summary>What happens</summary>
#
#    *Guitarist*, *string* and *it* get equal weights: each has a score of 3. In the head the weights change
#    only after the second step: *guitarist* and *string*
#    then get 0.43 each, *it* itself 0.11.
#
#    </details>
#
# 2. Double `W_Q`, then divide it by ten instead. What will happen to the weight of *string* in the row of
#    *it*, which is 0.88?
#
#    <details><summary>What happens</summary>
#
#    It rises to nearly 1: larger scores make a sharper softmax. With a tenth of `W_Q`, it is 0.20; most
#    other words have 0.13.
#
#    </details>
#
# 3. Set `W_V` to zeros in head 3 of the four. Do its weights change? Does $\mathbf a_{it}$?
#
#    <details><summary>What happens</summary>
#
#    The weights stay the same, and the action in $\mathbf a_{it}$ falls from 3.66 to 0.90. What
#    is left comes from the averages of heads 1 and 4, with a little from head 2. Where a head looks and
#    what it passes on are separate.
#
#    </details>
#
# 4. Leave out `/ len(k_j) ** 0.5` in `scaled_score`. Which assertion fails first?
#
#    <details><summary>What happens</summary>
#
#    The one below the eight steps, which divide by $\sqrt 2$ themselves.
#
#    </details>

# %% [markdown]
# ## To remember
#
# - Attention gives each token a weighted sum of rows, its own and earlier ones; the weights of one
#   token are positive and sum to 1.
# - Queries and keys decide where to look; values are what is read there.
# - Scores are divided by $\sqrt{d_k}$, so that their spread does not grow with $d_k$ and the softmax
#   keeps a gradient.
# - No sum goes beyond i, so no token affects earlier outputs.
# - Each head has its own matrices; their outputs are concatenated, and $\mathbf W^O$ maps them back to size d.

# %% [markdown]
# ## Test yourself
#
# 1. All scores of a token are equal. What does the head return?
#
#    <details><summary>Answer</summary>
#
#    The mean of the values so far, whatever the scores are.
#
#    </details>
#
# 2. Let d = 512, $d_k=d_v=64$ and A = 8. What are the shapes of $\mathbf W^{Q1}$, of the concatenated
#    heads of one token, and of $\mathbf W^O$?
#
#    <details><summary>Answer</summary>
#
#    [512 × 64], [1 × 512] and [512 × 512].
#
#    </details>
#
# 3. Why may $d_v$ differ from $d_k$, while queries and keys must have the same size?
#
#    <details><summary>Answer</summary>
#
#    The score is a dot product of a query and a key. Values are only scaled and added up, and $\mathbf W^O$ can
#    have any number of rows.
#
#    </details>
#
# Next: [The block](02_block.py), which combines attention with the feedforward layer.
