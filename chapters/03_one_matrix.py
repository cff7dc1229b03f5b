# %% [markdown] tags=["path"]
# # 3 · One matrix X
#
# Sections 8.3 (2025-26 drafts) and 7.3 (August 2026 draft)
#
# Turn the loops over tokens and heads into matrix products, and check that the results stay the same.
#
# On the way there is a line that raises no error, gives the right shape, and lets a model read the words that it
# should predict. Will you see it coming? You will be able to write attention and the block for all tokens at once;
# build masks; and split a matrix into heads and join it again. In the whole chapter you also see how masks differ
# from PyTorch's. Read first: [Attention](01_attention.py) and [The block](02_block.py). About 75 minutes.

# %% [markdown]
# ## Queries, keys and values of all tokens
#
# Stack the tokens' rows into a matrix $\mathbf X$ of size $[N\times d]$. Then one product gives all queries: its row
# i is row i of $\mathbf X$ times the matrix.
#
# <span class="eq" id="eq-QKV">QKV · 8.32 · 7.33</span>
#
# $$
# \mathbf Q=\mathbf X\mathbf W^Q;\qquad
# \mathbf K=\mathbf X\mathbf W^K;\qquad
# \mathbf V=\mathbf X\mathbf W^V
# \tag{8.32 · 7.33}
# $$
#
# Here are four words with chapter 1's features: person, thing, action, quality, glue. An action asks for a
# person *and* a thing, *the* for the thing it belongs to, and a thing for a person. The key of glue is
# negative, so that these queries avoid it.

# %%
import torch

words = ["guitarist", "tuned", "the", "string"]
person, thing, action, quality, glue = torch.eye(5)
X = torch.stack([2 * person, 2 * action, glue, 2 * thing])
W_Q = torch.tensor([[0.0, 0], [1, 0], [1, 1], [0, 0], [0, 1]])
W_K = torch.tensor([[2.0, 0], [0, 2], [0, 0], [0, 0], [-1, -1]])
W_V = torch.eye(5)[:, :3]  # passes on person, thing and action
(N, d), d_k, d_v = X.shape, 2, 3

Q, K, V = X @ W_Q, X @ W_K, X @ W_V
assert Q.shape == K.shape == (N, d_k) and V.shape == (N, d_v)
for i in range(N):  # chapter 1's form, one token at a time
    assert torch.equal(Q[i], X[i] @ W_Q)
    assert torch.equal(K[i], X[i] @ W_K) and torch.equal(V[i], X[i] @ W_V)

# %% [markdown]
# ## All scores in one product
#
# The score of tokens i and j is the dot product of row i of $\mathbf Q$ and row j of $\mathbf K$. A product
# with the transpose computes this for every pair.
#
# <span class="eq" id="eq-QK^T">QK^T · Fig. 8.9 · Fig. 7.9</span>
#
# $$
# (\mathbf Q\mathbf K^\top)_{ij}=\mathbf q_i\cdot\mathbf k_j
# $$

# %% alt="The matrix QKᵀ for the words guitarist, tuned, the, string. The row of “tuned” has 8 for “guitarist” and 8 for “string”, which comes later; the row of “the” has 4 for “string”; the row of “string” has 8 for “guitarist”." caption="All scores in one product (Fig. 8.9 · 7.9)"
S = torch.zeros(N, N)
for i in range(N):
    for j in range(N):
        S[i, j] = Q[i] @ K[j]

assert torch.equal(S, Q @ K.T)
from slp_transformer import plotting

plotting.heatmap(S, rows=words, columns=words, title="QKᵀ", shape="N × N")

# %% [markdown]
# *Tuned* finds its person and its thing, and *the* finds its thing. But the thing comes later!
# A model that learns to predict the next word must not be able to see it.

# %% [markdown]
# ## The mask
#
# In chapter 1 the sums stopped at i. A matrix product computes all scores, so those above the diagonal are set
# to −∞, for which $\exp$ gives 0, by adding a matrix.
#
# <span class="eq" id="eq-mask">mask · Fig. 8.10 · Fig. 7.10</span>
#
# $$
# \mathrm{mask}(\mathbf S)=\mathbf S+\mathbf M,\qquad
# M_{ij}=\begin{cases}-\infty & j>i\\ 0 & \text{otherwise}\end{cases}
# $$

# %% alt="QKᵀ plus M, which is 0 on and below the diagonal and −∞ above it, gives the masked scores: below the diagonal the numbers of QKᵀ, above it −∞, hatched. Of the two 8s in the row of “tuned” only the one for “guitarist” is left." caption="The mask is added to the scores (Fig. 8.10 · 7.10)"
from slp_transformer import causal_mask

M = torch.zeros(N, N)
for i in range(N):
    for j in range(i + 1, N):
        M[i, j] = -torch.inf

assert torch.equal(M, causal_mask(N))
parts = [(S, "QKᵀ"), (M, "M"), (S + M, "mask(QKᵀ)")]
left, added, masked = [plotting.Panel(*part, "N × N") for part in parts]
plotting.panels(left, "+", added, "=", masked)

# %% [markdown]
# The package builds the same mask without loops:

# %%
plotting.show_source(causal_mask)

# %% [markdown]
# Softmax of M alone, so of scores that are all 0, gives each word up to i the same weight: the product with
# $\mathbf X$ is the running mean.

# %%
means = X.cumsum(dim=0) / torch.arange(1, N + 1)[:, None]
torch.testing.assert_close(torch.softmax(M, dim=-1) @ X, means)

# %% [markdown]
# Could the mask wait until after the softmax? Set the future's weights to 0, and divide each row by the sum of those
# left: mathematically the same weights. But if a future score is much the largest, the others have already been
# rounded to 0, and the row becomes 0/0.

# %%
left = torch.softmax(S, dim=-1).tril()
renormalized = left / left.sum(dim=-1, keepdim=True)
torch.testing.assert_close(renormalized, torch.softmax(S + M, dim=-1))
assert torch.softmax(100 * S, dim=-1).tril()[2].sum() == 0  # 0/0 for “the”

# %% [markdown] tags=["more"] gist="Why −∞? With 0 or −10 instead, the future keeps some weight"
# Why −∞ and not 0? A score of 0 is not *no score*: $\exp(0)=1$, so a masked token would still get some
# weight. And why not a large negative number? Then its size matters, and so does whether the mask is added
# before or after the scaling. How much weight does *the* still give to *string*, which it should not see?


# %%
def weight(filler, before_scaling=False):
    fill = torch.where(M == 0, 0.0, filler)
    if before_scaling:
        scores = (S + fill) / d_k**0.5
    else:
        scores = S / d_k**0.5 + fill
    return torch.softmax(scores, dim=-1)[2, 3].item()


instead = torch.softmax(torch.where(M == 0, S, 0) / d_k**0.5, dim=-1)
print(f"score replaced by 0:      {instead[2, 3]:.4f}")
print(f"−10 added before scaling: {weight(-10, before_scaling=True):.4f}")
print(f"−10 added after scaling:  {weight(-10):.4f}")
print(f"−∞ added before scaling:  {weight(-torch.inf, before_scaling=True)}")
print(f"−∞ added after scaling:   {weight(-torch.inf)}")

# %% [markdown]
# ## One head for all tokens
#
# Scale, mask, take the softmax of each row, and multiply the weights by the values. The shapes match:
# $[N\times d_k][d_k\times N]$ gives $[N\times N]$, and
# $[N\times N][N\times d_v]$ gives $[N\times d_v]$.
#
# <span class="eq" id="eq-head-par">head-par · 8.33 · 7.34</span>
#
# $$
# \mathbf{head}=\mathrm{softmax}\!\left(\mathrm{mask}\!\left(
# \frac{\mathbf Q\mathbf K^\top}{\sqrt{d_k}}\right)\right)\mathbf V
# \tag{8.33 · 7.34}
# $$


# %%
def head_row(i, Q, K, V):
    scores = [Q[i] @ K[j] / d_k**0.5 for j in range(i + 1)]
    alpha_i = torch.softmax(torch.stack(scores), dim=-1)
    return sum(alpha_i[j] * V[j] for j in range(i + 1))


loop = torch.stack([head_row(i, Q, K, V) for i in range(N)])
alpha = torch.softmax(Q @ K.T / d_k**0.5 + M, dim=-1)
head = alpha @ V
assert alpha.shape == (N, N) and head.shape == (N, d_v)
torch.testing.assert_close(head, loop)

free = torch.softmax(Q @ K.T / d_k**0.5, dim=-1)
for name, row in [("unmasked", free[1]), ("masked", alpha[1])]:
    print(f"tuned, {name}: {row[0]:.3f} guitarist, {row[3]:.3f} string")

# %% [markdown] tags=["more"] gist="The package’s function, which takes batches too, and PyTorch’s"
# <autoref identifier="slp_transformer.attention.attention">attention</autoref> is this equation in the package, with
# any number of leading axes for batches and heads.

# %%
from slp_transformer.attention import attention

plotting.show_source(attention)

# %%
sdpa = torch.nn.functional.scaled_dot_product_attention

ours, weights = attention(Q, K, V, causal_mask(N))
torch.testing.assert_close(ours, loop)
torch.testing.assert_close(weights, alpha)
torch.testing.assert_close(sdpa(Q, K, V, is_causal=True), loop)
torch.testing.assert_close(sdpa(Q, K, V, attn_mask=causal_mask(N)), loop)

batch = torch.stack([X, X.flip(0)])  # two sentences at once
both, _ = attention(batch @ W_Q, batch @ W_K, batch @ W_V, causal_mask(N))
torch.testing.assert_close(both[0], loop)

# %% [markdown] tags=["path"]
# The last step is the output matrix.
#
# <span class="eq" id="eq-A-out">A-out · 8.34 · 7.35</span>
#
# $$
# \mathbf A=\mathbf{head}\,\mathbf W^O
# \tag{8.34 · 7.35}
# $$

# %%
from slp_transformer import AttentionHead

W_O = torch.eye(5)[:3]  # puts person, thing and action back in place
module = AttentionHead(d, d_k, d_v)
for name, W in dict(W_Q=W_Q, W_K=W_K, W_V=W_V, W_O=W_O).items():
    getattr(module, name).data = W

A = head @ W_O
assert A.shape == (N, d)
loop = torch.stack([head_row(i, Q, K, V) @ W_O for i in range(N)])
torch.testing.assert_close(A, loop)
torch.testing.assert_close(module(X, causal_mask(N))[0], loop)

# %% [markdown] tags=["more"] gist="The whole head in three figures, with our numbers"
# The whole head in matrix form (Fig. 8.11 · 7.11), with our numbers: first the scores,

# %% alt="Q, four rows by two columns, times K transposed, two by four, gives QKᵀ, four by four." caption="The scores of all tokens (Fig. 8.11 · 7.11, first part)"
plotting.panels(
    plotting.Panel(Q, "Q = X W_Q", "N × dₖ", rows=words),
    "×",
    plotting.Panel(K.T, "Kᵀ", "dₖ × N", columns=words),
    "=",
    plotting.Panel(Q @ K.T, "QKᵀ", "N × N", columns=words),
)

# %% [markdown]
# then the weights and the values,

# %% alt="The weights, four by four with zeros above the diagonal, times V, four by three, give head, four by three. In the row of “tuned” the weight 1.00 is on “guitarist”, so head has 1.99 in its person column." caption="Weights times values (Fig. 8.11 · 7.11, second part)"
plotting.panels(
    plotting.Panel(
        alpha, "softmax(mask(QKᵀ/√dₖ))", "N × N", rows=words, top=1
    ),
    "×",
    plotting.Panel(V, "V = X W_V", "N × dᵥ"),
    "=",
    plotting.Panel(head, "head", "N × dᵥ"),
)

# %% [markdown]
# and finally the product with $\mathbf W^O$, which is back at the model's size.

# %% alt="Head, four by three, times W^O, three by five, gives A, four by five: the columns person, thing and action of head, and two empty columns." caption="Back to the model's size (Fig. 8.11 · 7.11, last part)"
plotting.panels(
    plotting.Panel(head, "head", "N × dᵥ", rows=words),
    "×",
    plotting.Panel(W_O, "Wᴼ", "dᵥ × d"),
    "=",
    plotting.Panel(A, "A", "N × d"),
)

# %% [markdown] tags=["more"] gist="For a text twice as long, attention takes four times the operations: counted"
# ### What it costs
#
# How much longer does a text take that is twice as long? $\mathbf Q\mathbf K^\top$ has one number for every pair of
# tokens: four times the work for this step and, if the scores are kept, four times the memory, $O(N^2)$. PyTorch can
# count the operations:

# %%
from torch.utils.flop_counter import FlopCounterMode

counts = {}
for length in (128, 256, 512):
    rows = torch.randn(length, 64, generator=torch.Generator().manual_seed(3))
    with FlopCounterMode(display=False) as counter:
        attention(rows, rows, rows)
    counts[length] = counter.get_total_flops()
    # a product of [a×b] and [b×c] takes 2abc operations, and there are two
    assert counts[length] == 2 * (2 * length * length * 64)
    print(f"N = {length}: {length**2:7,} scores,", end=" ")
    print(f"{counts[length] / 1e6:4.1f} million operations")

assert counts[512] == 4 * counts[256] == 16 * counts[128]

# %% [markdown]
# <div class="admonition note" markdown="0"><p class="admonition-title">Where the code leaves the book</p><p>The 2025-26 drafts once say that the mask is in <a href="#eq-A-out">(8.34)</a>; it is in <a href="#eq-head-par">(8.33)</a>. The August 2026 draft corrects the first mention to <a href="#eq-head-par">(7.34)</a>, while others still say <a href="#eq-A-out">(7.35)</a>. <code>causal=True</code> of <code>MultiHeadAttention</code> tells PyTorch with a flag to use a causal mask. Where PyTorch has a fused kernel (one routine for all the steps) for the device and the sizes, and without dropout, it never stores an N×N matrix: the work is still O(N²), the memory is not.</p></div>

# %% [markdown] tags=["more"] gist="Two conventions for boolean masks that are opposites, and a token that may see nothing"
# ## Masks in PyTorch
#
# Three conventions are in use, and two of them are opposites.
#
# | where | kind | hides a token with |
# |---|---|---|
# | the book, this package | additive | −∞ (and allows with 0) |
# | `scaled_dot_product_attention` | boolean | False: True means *may attend* |
# | `nn.MultiheadAttention` | boolean | True: True means *may not attend* |
#
# Both PyTorch functions take additive masks, too. A causal boolean mask of the wrong convention raises no
# error: it shows a token only what comes later, and the last token nothing at all (zeros or NaN).

# %%
allowed = causal_mask(N) == 0
torch.testing.assert_close(sdpa(Q, K, V, attn_mask=allowed), head)
assert not torch.allclose(sdpa(Q, K, V, attn_mask=~allowed), head)

torch.manual_seed(3)
theirs = torch.nn.MultiheadAttention(d, 1, bias=False)
expected, _ = theirs(X, X, X, attn_mask=causal_mask(N))
hidden, _ = theirs(X, X, X, attn_mask=~allowed)
torch.testing.assert_close(hidden, expected)
mistaken, _ = theirs(X, X, X, attn_mask=allowed)
assert not torch.allclose(mistaken, expected)

# %% [markdown]
# The package takes only additive masks, since a boolean mask does not show which convention it
# follows:

# %%
try:
    attention(Q, K, V, allowed)
except ValueError as error:
    print(str(error).split(":")[0])

converted = torch.zeros(N, N).masked_fill(~allowed, -torch.inf)
assert torch.equal(converted, causal_mask(N))

# %% [markdown]
# Additive masks are combined with `+`, and that has a trap. Sentences of a batch are padded to the same length; if
# the padding is on the left, the first token may see only padding. Then all its scores are −∞, the softmax is 0/0,
# and in the backward pass this makes the whole gradient of $\mathbf W^Q$ NaN. In the package, the output for such a
# token is zero.

# %%
from slp_transformer import padding_mask

ids = torch.tensor([0, 5, 8, 2])  # 0 stands for padding
mask = padding_mask(ids, pad_id=0) + causal_mask(N)
assert torch.softmax(mask, dim=-1)[0].isnan().all()
W = W_Q.clone().requires_grad_()
(torch.softmax(X @ W @ K.T + mask, dim=-1) @ V).sum().backward()
assert W.grad.isnan().all()

# %% alt="The padding mask, one row with −∞ in its first place, plus the causal mask gives a mask whose first row is −∞ everywhere." caption="A padding mask and the causal mask, added"
queries = Q.clone().requires_grad_()
output, weights = attention(queries, K, V, mask)
output.sum().backward()
assert (output[0] == 0).all() and (weights[0] == 0).all()
assert queries.grad.isfinite().all()
padding = plotting.Panel(padding_mask(ids, pad_id=0), "padding", "1 × N")
causal = plotting.Panel(causal_mask(N), "causal", "N × N")
both = plotting.Panel(mask, "both", "N × N")
plotting.panels(padding, "+", causal, "=", both)

# %% [markdown]
# ## Several heads in parallel
#
# Each head does the same with its own matrices. In the first two equations i counts **heads**, not tokens.
#
# <span class="eq" id="eq-mh-par-qkv">mh-par-qkv · 8.35 · 7.36</span>
#
# $$
# \mathbf Q^i=\mathbf X\mathbf W^{Qi};\qquad
# \mathbf K^i=\mathbf X\mathbf W^{Ki};\qquad
# \mathbf V^i=\mathbf X\mathbf W^{Vi}
# \tag{8.35 · 7.36}
# $$
#
# <span class="eq" id="eq-mh-par-head">mh-par-head · 8.36 · 7.37</span>
#
# $$
# \mathbf{head}_i=\mathrm{softmax}\!\left(\mathrm{mask}\!\left(
# \frac{\mathbf Q^i\mathbf K^{i\top}}{\sqrt{d_k}}\right)\right)\mathbf V^i
# \tag{8.36 · 7.37}
# $$
#
# <span class="eq" id="eq-mh-par-out">mh-par-out · 8.37 · 7.38</span>
#
# $$
# \mathrm{MHA}(\mathbf X)=(\mathbf{head}_1\oplus\mathbf{head}_2\oplus\dots\oplus\mathbf{head}_A)\,
# \mathbf W^O
# \tag{8.37 · 7.38}
# $$
#
# Here the heads are blocks of columns of one matrix $[N\times Ad_v]$. We test with random weights, and with sizes
# that all differ.


# %%
def mha_by_heads(X, mha):
    M = causal_mask(len(X))
    heads = []
    for W in mha.heads:  # the book's i; its W^{Qi} is W.W_Q
        Q, K, V = X @ W.W_Q, X @ W.W_K, X @ W.W_V
        alpha = torch.softmax(Q @ K.T / Q.shape[-1] ** 0.5 + M, dim=-1)
        heads.append(alpha @ V)
    return torch.cat(heads, dim=-1) @ mha.W_O


# %%
from slp_transformer import MultiHeadAttention

torch.manual_seed(3)
mha = MultiHeadAttention(model_dim=7, num_heads=3, key_dim=2, value_dim=5)
X = torch.randn(11, 7)
assert mha_by_heads(X, mha).shape == X.shape
torch.testing.assert_close(mha(X, causal=True), mha_by_heads(X, mha))

# %% [markdown] tags=["more"] gist="All heads in one product; PyTorch’s module with the same weights"
# The package has no loop over heads. Their matrices are side by side in one `W_Q` of size $[d\times Ad_k]$, so one
# product gives the queries of all heads. PyTorch's module stores $\mathbf W^Q$, $\mathbf W^K$ and $\mathbf W^V$ in a
# single matrix, transposed to [outputs × inputs]. With the same weights, it gives the same output.

# %%
by_heads = torch.cat([X @ W.W_Q for W in mha.heads], dim=-1)
torch.testing.assert_close(X @ mha.W_Q, by_heads)

d, num_heads = 6, 3  # PyTorch's module requires d_k = d_v = d/A
mha = MultiHeadAttention(d, num_heads)
X = torch.randn(11, d)
theirs = torch.nn.MultiheadAttention(d, num_heads, bias=False)
W_QKV = torch.cat([mha.W_Q.T, mha.W_K.T, mha.W_V.T])
assert theirs.in_proj_weight.shape == W_QKV.shape == (3 * d, d)
theirs.in_proj_weight.data = W_QKV.detach()
theirs.out_proj.weight.data = mha.W_O.T.detach()
expected, _ = theirs(X, X, X, attn_mask=causal_mask(11))
torch.testing.assert_close(mha(X, causal=True), expected)
torch.testing.assert_close(mha_by_heads(X, mha), expected)

# %% [markdown]
# ## Splitting and joining heads
#
# Computing all heads at once needs a step that is easy to get wrong: giving each head its own columns, and putting
# the outputs side by side again. Many mistakes here give the right shape. So we choose numbers that show where they
# come from.
#
# The rows of $\mathbf X$ sum to 1, 2, 3, 4, 5, and `A` is the number of heads again. All entries of a head's
# $\mathbf W^Q$ are equal: 1 for head 1, 10 for head 2, 100 for head 3. So a query of 40 can only be that of
# token 4 in head 2.

# %% alt="X is a staircase of ones: row 1 has one, row 5 has five. Times W_Q, whose three column pairs are all 1, all 10 and all 100, it gives Q: row i reads i, i, 10i, 10i, 100i, 100i." caption="Numbers that show where they come from"
N, A, d, d_k = 5, 3, 7, 2
X = torch.ones(N, d).tril()
mha = MultiHeadAttention(d, A, key_dim=d_k, value_dim=d_k)
for c in range(A):
    mha.heads[c].W_Q = torch.full((d, d_k), 10.0**c)

Q = (X @ mha.W_Q).detach()
assert Q.shape == (N, A * d_k) and Q[4 - 1, 2] == 40
plotting.panels(
    plotting.Panel(X, "X", "N × d", decimals=None),
    "×",
    plotting.Panel(mha.W_Q, "W_Q", "d × Adₖ", top=100),
    "=",
    plotting.Panel(Q, "Q", "N × Adₖ", top=500),
)

# %% [markdown]
# ### Two steps to split
#
# A *view* divides each row of six numbers into three groups of two: $[N\times A\times d_k]$. Then a
# *transpose* moves the head axis to the front, $[A\times N\times d_k]$, so that `split[c]` is the
# book's $\mathbf Q^c$.

# %%
viewed = Q.view(N, A, d_k)
split = viewed.transpose(0, 1)
assert split.shape == (A, N, d_k)
for c in range(A):
    torch.testing.assert_close(split[c], (X @ mha.heads[c].W_Q).detach())

# %% [markdown]
# Follow the 40 from Q to head 2 in [Figure](#fig-heads-step-by-step):

# %% alt="Q of head 1 has the columns 1 to 5, head 2 the columns 10 to 50, head 3 the columns 100 to 500, each five rows by two columns: every head has all tokens in order, and nothing from another head." caption="From one matrix to heads" figure="heads-step-by-step"
steps = {}
for name, (Z, each, shape, says) in {
    "Q": (Q[None], "", "N × Adₖ", "A row is a token, all heads side by side."),
    "view": (viewed, "token", "A × dₖ", "Each token: a row for each head."),
    "transpose": (split, "head", "N × dₖ", "Each head: a row for each token."),
}.items():
    named = [(Z[k], f"{each} {k + 1}" if each else "Q") for k in range(len(Z))]
    boxes = [plotting.Panel(*one, shape, top=500) for one in named]
    steps[name] = plotting.panels(*boxes), says
plotting.interactive_steps("Step", steps, start=2)

# %% [markdown] tags=["more"] gist="Neither step moves a number: one piece of memory, read in three ways"
# Neither step moved any number. A tensor is a sequence of numbers in memory, with *strides* that say how far to go
# for the next index of each axis: in Q the next token is 6 numbers on and the next column 1, in `viewed` the next
# head is 2 on. View and transpose change only these. So all three share the same memory: write to one, and all
# change.

# %%
for name, tensor in dict(Q=Q, viewed=viewed, split=split).items():
    assert tensor.data_ptr() == Q.data_ptr()
    shape, strides = tuple(tensor.shape), tensor.stride()
    print(f"{name:6} shape {shape!s:9}  strides {strides!s:10}", end=" ")
    print("in order" if tensor.is_contiguous() else "not in order")

split[1, 3, 0] = -40  # head 2, token 4
assert Q[3, 2] == -40
split[1, 3, 0] = 40

# %% [markdown]
# Reading `split` index by index jumps back and forth in memory (PyTorch calls this *not contiguous*). Matrix products
# still work. The package splits and joins in one line each:

# %%
from slp_transformer.multi_head import join_heads, split_heads

assert torch.equal(split_heads(Q, A), split)
assert split_heads(Q, A).data_ptr() == Q.data_ptr()  # a view, no copy
assert torch.equal(join_heads(split), Q)
plotting.show_source(split_heads, join_heads)

# %% [markdown]
# ### With a batch
#
# Most code that you will read has one more axis in front, for a batch: [batch × heads × N × $d_k$]. The two steps
# stay the same, on the last three axes, and no sentence mixes with another:

# %%
first = torch.stack([person, action, glue, thing])  # guitarist tuned the …
batch = torch.stack([first, first[[3, 1, 2, 0]]])  # string tuned the …
three = MultiHeadAttention(5, 3, key_dim=2, value_dim=2)
of_batch = (batch @ three.W_Q).view(2, 4, 3, 2).transpose(1, 2)
assert of_batch.shape == (2, 3, 4, 2)  # [batch × heads × N × d_k]
alone = (first @ three.W_Q).view(4, 3, 2).transpose(0, 1)
torch.testing.assert_close(of_batch[0], alone)
torch.testing.assert_close(of_batch[1, :, 3], alone[:, 0])  # “guitarist”

# %% [markdown]
# ### Right ways to join
#
# `alpha @ V` gives a new tensor $[A\times N\times d_v]$, one head after another in memory. To see where numbers go, let
# the heads' outputs be the numbers of `split`, stored in that order.
#
# The first right way undoes the two steps: transpose back, then merge the last two axes. Now the numbers have to
# move: `view` raises an error, `reshape` and `flatten` make a copy.

# %%
heads = split.clone(memory_format=torch.contiguous_format)
turned = heads.transpose(0, 1)  # [N×A×d_v], still the same memory
assert turned.data_ptr() == heads.data_ptr()
joined = turned.reshape(N, A * d_k)
assert joined.data_ptr() != heads.data_ptr() and torch.equal(joined, Q)
try:
    turned.view(N, A * d_k)
except RuntimeError:
    print("view cannot: the parts of a row are far apart in memory")

# %% [markdown] tags=["more"] gist="When reshape copies, and two more right ways to join"
# `reshape` copies only when it must. Where the parts are side by side in memory, as in `split`, it returns a view. So
# never rely on either.
#
# The second right way concatenates the heads, as the equation says. The third does not join at all: each head is
# multiplied by its own $d_v$ rows of $\mathbf W^O$, and the products are added:
#
# $$
# (\mathbf{head}_1\oplus\dots\oplus\mathbf{head}_A)\,\mathbf W^O
# =\sum_{c=1}^A\mathbf{head}_c\,\mathbf W^{O}_c
# $$

# %%
assert split.transpose(0, 1).reshape(N, A * d_k).data_ptr() == Q.data_ptr()

concatenated = torch.cat([heads[c] for c in range(A)], dim=-1)
assert torch.equal(concatenated, joined)
assert torch.equal(join_heads(heads), joined)  # transpose, flatten

added = sum(heads[c] @ mha.heads[c].W_O for c in range(A))
assert mha.heads[0].W_O.shape == (d_k, d)
torch.testing.assert_close(added, joined @ mha.W_O)

# %% [markdown]
# ### The tempting wrong way
#
# Why not view `heads` in the new shape directly? Write down the first row that you expect.

# %% alt="Left, joined correctly: row i reads i, i, 10i, 10i, 100i, 100i. Right, a view without the transpose: row 1 reads 1, 1, 2, 2, 3, 3, row 2 reads 4, 4, 5, 5, 10, 10. A row mixes several tokens, where it should hold one token of all heads." caption="Joined correctly, and by a view alone"
wrong = heads.view(N, A * d_k)  # no error, no warning
assert wrong.shape == joined.shape
assert not torch.equal(wrong, joined)
assert wrong[0].tolist() == [1, 1, 2, 2, 3, 3]
assert joined[0].tolist() == [1, 1, 10, 10, 100, 100]
right_panel = plotting.Panel(
    joined, "transpose, then reshape", "N × Adᵥ", top=500
)
wrong_panel = plotting.Panel(wrong, "view alone", "N × Adᵥ", top=500)
plotting.panels(right_panel, "≠", wrong_panel)

# %% [markdown]
# This is the line announced at the top of the chapter: no error, the right shape, and a model that reads ahead. The
# first row should hold token 1 of every head, and holds tokens 1, 2 and 3 of head 1. In [chapter 5's
# model](../docs/break-it.md), the training loss falls to [0.002](../benchmarks/results/mistakes/README.md), below the
# 0.231 that no honest model can beat; given only the words before, it is far worse: 1.1.

# %% [markdown] tags=["more"] gist="The same mistake in splitting: made twice it cancels, and gradients find it"
# The same mistake can be made in splitting, by a view straight to $[A\times N\times d_k]$. Make both, and they cancel
# in a round trip: a test of splitting and joining alone finds nothing. With attention in between, gradients show
# which inputs affect which outputs.


# %%
def reach(split, join):
    def forward(X):
        Q, K, V = (split(X @ W) for W in (mha.W_Q, mha.W_K, mha.W_V))
        heads, _ = attention(Q, K, V, causal_mask(N))
        return join(heads) @ mha.W_O

    inputs = torch.randn(N, d, generator=torch.Generator().manual_seed(3))
    J = torch.autograd.functional.jacobian(forward, inputs)
    return J.abs().sum(dim=(1, 3)) > 0  # [outputs × inputs]


torch.manual_seed(3)
mha = MultiHeadAttention(d, A, key_dim=d_k, value_dim=d_k)


# %% alt="Three maps of which output is reached by which input, five by five. Right: the lower triangle. View alone when joining: the first output is reached by tokens 1 to 3, so there are marks above the diagonal. View alone both ways: nothing above the diagonal, but the last token is not reached by tokens 1 to 3." caption="Which inputs affect which outputs when a transpose is missing"
def wrong_split(Q):
    return Q.view(A, N, d_k)


def wrong_join(heads):
    return heads.reshape(N, A * d_k)


assert torch.equal(wrong_join(wrong_split(Q)), Q)  # a round trip
right = reach(lambda Q: split_heads(Q, A), join_heads)
one = reach(lambda Q: split_heads(Q, A), wrong_join)
both = reach(wrong_split, wrong_join)
maps = {"right": right, "join wrong": one, "both wrong": both}
a, b, c = [plotting.Panel(maps[t], t, "N × N", decimals=None) for t in maps]
plotting.panels(a, "  ", b, "  ", c)

# %%
assert torch.equal(right, torch.ones(N, N).tril() > 0)
assert (one & ~right).any()  # reads the future
assert not (both & ~right).any() and (right & ~both).any()
for name, m in maps.items():
    more, less = (m & ~right).sum(), (right & ~m).sum()
    print(f"{name}: {more} too many, {less} missing")

# %% [markdown]
# With both mistakes, no token sees the future, so even a test of causality passes; but some tokens that should be
# visible are missing. A comparison with the loop over heads, with sizes that all differ, finds all of these mistakes.

# %% [markdown]
# ## The block in two lines
#
# Layer norm and the feedforward layer work on each row of $\mathbf X$, so a whole block is two lines:
#
# <span class="eq" id="eq-O">O · 8.38 · 7.39</span>
#
# $$
# \mathbf O=\mathbf X+\mathrm{MHA}(\mathrm{LayerNorm}(\mathbf X))
# \tag{8.38 · 7.39}
# $$
#
# <span class="eq" id="eq-H">H · 8.39 · 7.40</span>
#
# $$
# \mathbf H=\mathbf O+\mathrm{FFN}(\mathrm{LayerNorm}(\mathbf O))
# \tag{8.39 · 7.40}
# $$


# %%
def block_loop(X, block):
    T1 = torch.stack([block.norm_1(x_i) for x_i in X])
    T2 = mha_by_heads(T1, block.attention)  # reads other rows
    O = torch.stack([x_i + t2_i for x_i, t2_i in zip(X, T2, strict=True)])
    return torch.stack([o_i + block.ffn(block.norm_2(o_i)) for o_i in O])


# %%
from slp_transformer import TransformerBlock

torch.manual_seed(3)
block = TransformerBlock(model_dim=6, num_heads=3)
X = torch.randn(11, 6)
O = X + block.attention(block.norm_1(X), causal=True)
H = O + block.ffn(block.norm_2(O))
torch.testing.assert_close(H, block_loop(X, block))
torch.testing.assert_close(block(X, causal=True), H)

# %% [markdown] tags=["more"] gist="The six steps of chapter 2 with capital letters; where the code leaves the book"
# These are the six steps of chapter 2, with capital letters for all tokens at once:
#
# <span class="eq" id="eq-T1">T1 · 8.40 · 7.41</span>
# <span class="eq" id="eq-T2">T2 · 8.41 · 7.42</span>
# <span class="eq" id="eq-T3">T3 · 8.42 · 7.43</span>
#
# $$
# \begin{aligned}
# \mathbf T^1&=\mathrm{LayerNorm}(\mathbf X)&&(8.40)\\
# \mathbf T^2&=\mathrm{MHA}(\mathbf T^1)&&(8.41)\\
# \mathbf T^3&=\mathbf T^2+\mathbf X&&(8.42)
# \end{aligned}
# $$
#
# <span class="eq" id="eq-T4">T4 · 8.43 · 7.44</span>
# <span class="eq" id="eq-T5">T5 · 8.44 · 7.45</span>
# <span class="eq" id="eq-T-H">T-H · 8.45 · 7.46</span>
#
# $$
# \begin{aligned}
# \mathbf T^4&=\mathrm{LayerNorm}(\mathbf T^3)&&(8.43)\\
# \mathbf T^5&=\mathrm{FFN}(\mathbf T^4)&&(8.44)\\
# \mathbf H&=\mathbf T^5+\mathbf T^3&&(8.45)
# \end{aligned}
# $$
#
# The package's block does these six steps, as [chapter 2](02_block.py) showed.

# %%
T1 = block.norm_1(X)
T2 = mha_by_heads(T1, block.attention)
T3 = T2 + X
T4 = block.norm_2(T3)
T5 = block.ffn(T4)
H = T5 + T3

from slp_transformer import record_activations

with record_activations(block) as passes:
    block(X, causal=True)
for name, T in dict(T1=T1, T2=T2, T3=T3, T4=T4, T5=T5, H=H).items():
    assert T.shape == X.shape
    torch.testing.assert_close(passes[0][name], T)
torch.testing.assert_close(T3, O)

# %% [markdown] tags=["more"] gist="Where the code leaves the book"
# <div class="admonition note" markdown="0"><p class="admonition-title">Where the code leaves the book</p><p>Next to <a href="#eq-T5">(8.44)</a> the text once has the feedforward layer read $\mathbf T^3$; the equation, and the code, have it read $\mathbf T^4$. The index i counts tokens in section 8.1 and heads in <a href="#eq-mh-par-qkv">(8.35)</a> and <a href="#eq-mh-par-head">(8.36)</a>; the code says <code>c</code> for a head everywhere else. The letter A stands both for the number of heads and for the output of attention. The Feb 2024 draft gives the same steps in post-norm order: <code>TransformerBlock(..., norm="post")</code>.</p></div>

# %% [markdown]
# ## Stacking blocks
#
# The output of one block is the input of the next. Both have the same shape, so blocks can be stacked.
#
# <span class="eq" id="eq-stack">stack · prose of 8.3 · prose of 7.3</span>
#
# $$
# \mathbf X^{\ell}=\mathbf H^{\ell-1}
# $$
#
# At the top there is one more layer norm (the book has it in prose): no block follows that would normalize this sum.

# %%
from slp_transformer import TransformerStack

plotting.show_source(TransformerStack.forward, only=["for", "return"])

# %%
torch.manual_seed(3)
stack = TransformerStack(num_blocks=4, model_dim=6, num_heads=3)

X_l = X
for block in stack.blocks:
    X_l = block_loop(X_l, block)  # H of one is X of the next
loop = torch.stack([stack.final_norm(h_i) for h_i in X_l])

assert loop.shape == X.shape
torch.testing.assert_close(stack(X, causal=True), loop)

# %% [markdown] tags=["more"] gist="Changes to try, each with its outcome folded"
# ## Try it
#
# On the page [Break it](../docs/break-it.md) chapter 5's model is trained with one line wrong, for example
# with [no mask](../docs/break-it.md#mistake-no-mask), [a mask after the
# softmax](../docs/break-it.md#mistake-mask-after-the-softmax), [a mask turned
# round](../docs/break-it.md#mistake-mask-turned-round) or [heads joined by a
# view](../docs/break-it.md#mistake-heads-joined-by-view). Which of these would you notice?
#
# 1. Put the rows of `X` and the `words` in the order *guitarist, the, string, tuned*. What will
#    *tuned* read now?
#
#    <details><summary>What happens</summary>
#
#    It comes last and sees both: in the figure of the weights, *guitarist* and *string* get half each. (Later
#    cells take rows by their index, so their printed labels are now wrong.)
#
#    </details>
#
# 2. Replace `-torch.inf` in the loop for `M` by −1000, and take out the comparison with `causal_mask`.
#    Do the weights change? And with −1?
#
#    <details><summary>What happens</summary>
#
#    With −1000 the weights stay the same, since $e^{-1000}$ rounds to 0. With −1 the future leaks:
#    the comparison with the running mean is the first to fail.
#
#    </details>
#
# 3. In the tempting wrong way, write `turned.contiguous().view(N, A * d_k)`. Is it still wrong?
#
#    <details><summary>What happens</summary>
#
#    No, and the assertion that it is wrong fails: `contiguous` makes a copy, and then the view is right.
#
#    </details>
#
# 4. In `mha_by_heads`, join with `torch.stack(heads).reshape(len(X), -1)` instead of `torch.cat`. Which
#    test fails first?
#
#    <details><summary>What happens</summary>
#
#    The comparison with the package. Only the shape is right.
#
#    </details>

# %% [markdown]
# ## To remember
#
# - One product gives the queries of all tokens, and another gives the scores of all pairs.
# - A mask is added before the softmax: 0 where attention is allowed, −∞ where it is not. PyTorch's two boolean
#   conventions are opposites *(whole chapter)*.
# - All heads are one tensor with a head axis: a view and a transpose split it, a transpose and a reshape
#   join it.
# - A wrong reshape still has the right shape. Compare with the loop, using sizes that all differ.
# - A block is two lines, O = X + MHA(LayerNorm(X)) and H = O + FFN(LayerNorm(O)), and blocks stack.

# %% [markdown]
# ## Test yourself
#
# 1. Why does a score of 0 not hide a token *(whole chapter)*?
#
#    <details><summary>Answer</summary>
#
#    Because exp(0) = 1: the token keeps some weight, and much if the other scores are negative.
#
#    </details>
#
# 2. A text becomes three times as long. By what factor does the number of scores grow, and the number of
#    queries *(whole chapter)*?
#
#    <details><summary>Answer</summary>
#
#    Nine times as many scores, three times as many queries.
#
#    </details>
#
# 3. What are the shapes of `Q`, `split_heads(Q, A)` and the scores of all heads, for N tokens?
#
#    <details><summary>Answer</summary>
#
#    $[N\times Ad_k]$, $[A\times N\times d_k]$ and $[A\times N\times N]$.
#
#    </details>
#
# Next: [The input](04_input.py), which explains where X comes from.
