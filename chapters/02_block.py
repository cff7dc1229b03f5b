# %% [markdown] tags=["path"]
# # 2 · The block
#
# Sections 8.2 (2025-26 drafts) and 7.2 (August 2026 draft)
#
# Build a Transformer block from its parts, and follow one token through it, from x to h.
#
# A block never overwrites a token's row: it only ever adds to it. What would go wrong otherwise? You will be able to
# write the feedforward layer, layer norm and the six steps of a block, and say what each step adds to a token's row,
# and why it is added. Read first: [Attention](01_attention.py). About 70 minutes.

# %% [markdown]
# ## The feedforward layer
#
# Attention moves information between tokens. The feedforward layer then processes each row on its own, with the
# same network at every position. Each hidden unit takes the dot product of the row with a column of
# $\mathbf W_1$ and adds its bias; if the sum is positive, it adds that multiple of a row of $\mathbf W_2$.
#
# <span class="eq" id="eq-ffn">ffn · 8.21 in the Jan 2026 draft</span>
#
# $$
# \mathrm{FFN}(\mathbf x_i)=\mathrm{ReLU}(\mathbf x_i\mathbf W_1+b_1)\,\mathbf W_2+b_2
# \tag{8.21}
# $$

# %%
import torch

from slp_transformer import plotting


def ffn(x_i, W_1, b_1, W_2, b_2):
    out = b_2.clone()
    for u in range(len(b_1)):  # one hidden unit after another
        found = torch.relu(x_i @ W_1[:, u] + b_1[u])
        out = out + found * W_2[u]
    return out


# %% [markdown]
# Here is a network to run in your head. The row has three features: *pronoun*, *string*, and *found*, which
# says that the pronoun refers to the string. One hidden unit adds the first two and subtracts 1, so it is above
# 0 only when both are present: a logical *and*. It writes the third feature.

# %%
W_1 = torch.tensor([[1.0], [1.0], [0.0]])  # reads pronoun and string
b_1 = torch.tensor([-1.0])  # one of them is not enough
W_2 = torch.tensor([[0.0, 0.0, 1.0]])  # writes found
b_2 = torch.zeros(3)

for pronoun, string in [(0, 0), (0, 1), (1, 0), (1, 1)]:
    x_i = torch.tensor([pronoun, string, 0.0])
    found = ffn(x_i, W_1, b_1, W_2, b_2)[2].item()
    assert found == (pronoun and string)
    print(f"pronoun {pronoun}, string {string}: found {found:.0f}")

# %% [markdown] tags=["more"] gist="All rows at once, in the package and in PyTorch"
# The package processes all rows at once: the loop over units becomes a matrix product.
# <autoref identifier="slp_transformer.feedforward.FeedForward">FeedForward</autoref> uses the book's $d_{ff}=4d$ by
# default (512 and 2048 in the original Transformer).
# <autoref identifier="slp_transformer._internal.weight_matrices.affine">affine</autoref> is $\mathbf X\mathbf W+b$.

# %%
from slp_transformer import FeedForward
from slp_transformer._internal.weight_matrices import affine

plotting.show_source(FeedForward.forward, affine)

# %% [markdown]
# The loop, the package and PyTorch agree, on random numbers. And if the tokens are shuffled? The network is the same
# at every position, so the outputs are shuffled alike.

# %%
torch.manual_seed(2)
N, d, d_ff = 5, 7, 28
X = torch.randn(N, d)
layer = FeedForward(d)
W_1, b_1, W_2, b_2 = layer.parameters()
assert W_1.shape == (d, d_ff) and W_2.shape == (d_ff, d)
loop = torch.stack([ffn(x_i, W_1, b_1, W_2, b_2) for x_i in X])
torch.testing.assert_close(layer(X), loop)

F = torch.nn.functional  # its matrices are [out × in], hence .T
theirs = F.linear(F.relu(F.linear(X, W_1.T, b_1)), W_2.T, b_2)
torch.testing.assert_close(layer(X), theirs)
shuffled = torch.randperm(N)
torch.testing.assert_close(layer(X[shuffled]), layer(X)[shuffled])

# %% [markdown] tags=["more"] gist="Swish and SwiGLU, the layer of the August 2026 draft"
# ### The gated form
#
# The August 2026 draft has a different layer here, which many current models use. Its activation function is smoother
# than ReLU: Swish multiplies x by σ(βx). (Here σ is the sigmoid and β a number, not the next section's deviation and
# offset.) The larger β is, the closer Swish comes to ReLU.
#
# <span class="eq" id="eq-swish">swish · 7.21 in the Aug 2026 draft</span>
#
# $$
# \mathrm{Swish}_\beta(\mathbf x)=\mathbf x\,\sigma(\beta\mathbf x)
# \tag{7.21}
# $$


# %% alt="Curves of ReLU and Swish from −4 to 4. Swish with beta 1 dips a little below zero and then rises; with beta 4 it lies almost on ReLU, which is flat at zero and then a straight line." caption="ReLU and Swish" figure="swish"
def swish(x, beta=1.0):
    return x * torch.sigmoid(beta * x)


x = torch.linspace(-4, 4, 81)
torch.testing.assert_close(swish(x), F.silu(x))  # PyTorch's name for β = 1
print(f"Swish goes as low as {swish(x).min().item():.2f}, ReLU never below 0")
curves = {"ReLU": F.relu(x)}
curves |= {f"Swish, β = {b}": swish(x, b) for b in (0, 0.5, 1, 2, 4)}
points = {n: torch.stack([x, y], dim=1)[::2] for n, y in curves.items()}
shown = ["ReLU", "Swish, β = 1", "Swish, β = 4"]
plotting.interactive_lines(points, shown, x="x", y="activation")

# %% [markdown]
# What is left of Swish at β = 0? Show all curves of [Figure](#fig-swish): it is the straight line x/2, and bends
# toward ReLU as β grows. For every β above 0 it dips below zero, and the larger β, the less deeply.
#
# The layer multiplies the row by two matrices. The first product goes through Swish and becomes a gate, which
# decides, unit by unit, how much of the second passes ($\otimes$ multiplies elementwise).
#
# <span class="eq" id="eq-swiglu">swiglu · 7.22 in the Aug 2026 draft</span>
#
# $$
# \begin{aligned}
# \mathrm{FFN}_{SwiGLU}(\mathbf x)=\bigl(&\mathrm{Swish}_\beta(\mathbf x\mathbf W_1+b_1)\\
# &\otimes(\mathbf x\mathbf W_2+b_2)\bigr)\,\mathbf W_3+b_3
# \end{aligned}
# \tag{7.22}
# $$

# %%
from slp_transformer import SwiGLU


def swiglu(x_i, W_1, b_1, W_2, b_2, W_3, b_3):
    out = b_3.clone()
    for u in range(len(b_1)):
        gate = swish(x_i @ W_1[:, u] + b_1[u])
        out = out + gate * (x_i @ W_2[:, u] + b_2[u]) * W_3[u]
    return out


gated = SwiGLU(d)
loop = torch.stack([swiglu(x_i, *gated.parameters()) for x_i in X])
torch.testing.assert_close(gated(X), loop)
plotting.show_source(SwiGLU.forward)

# %% [markdown]
# Three matrices instead of two would make the layer larger by half, so $d_{ff}$ is reduced:
# with $\tfrac{8}{3}d$ both layers have the same number of weights (the biases differ a little).

# %%
plain, gated = FeedForward(768), SwiGLU(768)
for layer in (plain, gated):
    matrices = [W for W in layer.parameters() if W.dim() == 2]
    numbers = sum(W.numel() for W in matrices)
    assert numbers == 8 * 768**2
    d_ff = len(layer.b_1)
    print(f"{len(matrices)} matrices, d_ff = {d_ff}: {numbers:,} weights")

# %% [markdown]
# <div class="admonition note" markdown="0"><p class="admonition-title">Where the code leaves the book</p><p>The book leaves β open; <code>SwiGLU</code> fixes it at 1, as Llama and Qwen do. <code>FeedForward</code> also offers GELU, which GPT-2 uses and the book's chapter does not mention.</p></div>

# %% [markdown]
# ## Layer norm
#
# Attention and the feedforward layer are the two *sublayers* of a block. Their inputs can grow from block to
# block. Layer norm brings them to the same scale, each token on its own: it shifts the d numbers of a row to
# mean 0 and scales them to standard deviation 1.
#
# <span class="eq" id="eq-ln-mean">ln-mean · 8.22 · 7.23</span>
#
# $$
# \mu=\frac1d\sum_{i=1}^d x_i
# \tag{8.22 · 7.23}
# $$
#
# <span class="eq" id="eq-ln-std">ln-std · 8.23 · 7.24</span>
#
# $$
# \sigma=\sqrt{\frac1d\sum_{i=1}^d(x_i-\mu)^2}
# \tag{8.23 · 7.24}
# $$
#
# (Here i counts features, not tokens.) For these eight numbers you can do it in your head:

# %%
x = torch.tensor([2.0, 4, 4, 4, 5, 5, 7, 9])


def mean_and_deviation(x):
    d = len(x)
    mu = sum(x) / d
    sigma = torch.sqrt(sum((x_i - mu) ** 2 for x_i in x) / d)
    return mu, sigma


mu, sigma = mean_and_deviation(x)
assert (mu, sigma) == (5, 2)
print(f"mean {mu:.0f}, standard deviation {sigma:.0f}")

# %% [markdown]
# <span class="eq" id="eq-ln-hat">ln-hat · 8.24 · 7.25</span>
#
# $$
# \hat{\mathbf x}=\frac{\mathbf x-\mu}{\sigma}
# \tag{8.24 · 7.25}
# $$


# %%
def normalize(x):
    mu, sigma = mean_and_deviation(x)
    return (x - mu) / sigma


x_hat = normalize(x)
assert x_hat.tolist() == [-1.5, -0.5, -0.5, -0.5, 0, 0, 1, 2]
assert mean_and_deviation(x_hat) == (0, 1)

# %% [markdown] tags=["more"] gist="Shift, stretch or turn the row over, and see what layer norm makes of it"
# For −x every sign changes.

# %% alt="Two rows of eight numbers. Above: 2, 4, 4, 4, 5, 5, 7, 9. After layer norm: −1.5, −0.5, −0.5, −0.5, 0, 0, 1, 2. Numbers below the mean of 5 became negative." caption="A row before and after normalizing: mean 0, standard deviation 1"
rows = {"x": x, "x + 7": x + 7, "3x": 3 * x, "3x + 7": 3 * x + 7, "−x": -x}
states = {}
for name, row in rows.items():
    mu, sigma = mean_and_deviation(row)
    says = f"{name} has mean {mu:.0f} and standard deviation {sigma:.0f}. "
    same = normalize(row).equal(x_hat)
    says = says.replace("-", "−")
    says += "Layer norm gives the same row." if same else "Every sign changes."
    both = torch.stack([row, normalize(row)])
    picture = plotting.heatmap(both, ["row", "x̂"], decimals=1, top=9)
    states[name] = picture, says
torch.testing.assert_close(normalize(-x), -x_hat)
plotting.interactive_steps("Row", states)

# %% [markdown] tags=["path"]
# Add a number to all, or multiply all by a positive one, and layer norm gives the same row: the sublayer cannot see
# the row's own scale and offset. Two learned vectors, a gain γ and an offset β for each feature, the same for all
# rows, set useful ones.
#
# <span class="eq" id="eq-ln">ln · 8.25 · 7.26</span>
#
# $$
# \mathrm{LayerNorm}(\mathbf x)=\gamma\,\frac{\mathbf x-\mu}{\sigma}+\beta
# \tag{8.25 · 7.26}
# $$

# %%
from slp_transformer import LayerNorm


def layer_norm(x, gamma, beta):
    return gamma * normalize(x) + beta


torch.testing.assert_close(normalize(3 * x + 7), normalize(x))

norm = LayerNorm(8, eps=0)  # exactly the book's
norm.gamma.data, norm.beta.data = torch.arange(1.0, 9), torch.full((8,), 0.5)
loop = layer_norm(x, norm.gamma, norm.beta)
torch.testing.assert_close(norm(x), loop)
print("LayerNorm(x) =", ", ".join(f"{v:g}" for v in loop.tolist()))

# %% [markdown]
# <autoref identifier="slp_transformer.layer_norm.LayerNorm">LayerNorm</autoref> does the same to all rows at
# once, or leaves it to PyTorch.

# %%
plotting.show_source(LayerNorm.forward)

# %% [markdown] tags=["more"] gist="Two mistakes that raise no error: d − 1 for d, and an ε in the wrong place"
# ### Two traps
#
# **d, not d − 1.** [(8.23)](#eq-ln-std) divides by d. `Tensor.std()` divides by d − 1 by default, which makes σ too
# large, so that every row is $\sqrt{(d-1)/d}$ times as large as it should be. In a large model this factor is close
# to 1, but results still differ from those of the model whose weights they are.

# %%
from math import sqrt

wrong = (x - x.mean()) / x.std()
right = (x - x.mean()) / x.std(correction=0)
torch.testing.assert_close(right, x_hat)
print(f"σ of our row: {sigma:.3f}, by std(): {x.std():.3f}")
print(f"its last number: {right[-1]:.3f}, by std(): {wrong[-1]:.3f}")
for size in (8, 768):
    shrunk = sqrt((size - 1) / size)
    print(f"d = {size}: rows are {shrunk:.4f} times as large")

# %% [markdown]
# **Where epsilon goes.** A row whose numbers are all equal has σ = 0, and [(8.24)](#eq-ln-hat) divides by it.
# Libraries therefore add a small ε, and it matters where. PyTorch uses $\sqrt{\sigma^2+\varepsilon}$; a common
# variant is $\sigma+\varepsilon$. What will σ be after the norm, for our row at a standard deviation of 0.001?

# %%
small = 0.001 * x_hat  # mean 0, standard deviation 0.001
book = LayerNorm(8, eps=0)(small)
pytorch = LayerNorm(8, eps=1e-5)(small)
variant = small / (small.std(correction=0) + 1e-5)
torch.testing.assert_close(pytorch, torch.nn.LayerNorm(8)(small))
for name, row in [("book", book), ("PyTorch", pytorch), ("σ + ε", variant)]:
    print(f"{name}: σ = {mean_and_deviation(row)[1]:.3f} after the norm")

flat = torch.ones(8)
assert LayerNorm(8, eps=0)(flat).isnan().all()
assert (LayerNorm(8)(flat) == 0).all()

# %% [markdown]
# <div class="admonition note" markdown="0"><p class="admonition-title">Where the code leaves the book</p><p>The book has no ε. The package's default is PyTorch's, <code>eps=1e-5</code> under the root, so that weights can be exchanged with other libraries and a constant row stays finite; <code>eps=0</code> is the book's. Nor does the book give shapes for γ and β: they are vectors [d], applied elementwise, and each layer norm has its own pair.</p></div>

# %% [markdown]
# ## The residual stream
#
# Each token's row runs up through the model as its *residual stream* (Fig. 8.1 · 7.1). Each sublayer reads a
# normalized copy of it (*pre-norm*) and *adds* its output to it. Nothing is ever overwritten.
#
# To see this, we make nine rows whose features have names. Each word has a 1 for its kind. The last feature,
# *found*, is 0 everywhere: the block will fill it in.

# %%
words = "the guitarist tuned the string because it was flat".split()
features = "article person string verb link pronoun pitch found".split()
kinds = "article person verb article string link pronoun verb pitch".split()
ARTICLE, PERSON, STRING, VERB, LINK, PRONOUN, PITCH, FOUND = range(8)

N, d = len(words), len(features)
X = torch.zeros(N, d)
for i in range(N):  # the book's x_1 is X[0]
    X[i, features.index(kinds[i])] = 1

# %% [markdown]
# We set the weights of a block by hand. It has one attention head, with $d_k=d_v=1$, and one hidden unit.
#
# - The query of a *pronoun* asks for a *string*. The head copies what it finds into the feature *string*.
# - The unit is the *and* from above: pronoun and string together write *found*.
#
# Only the numbers differ from those above, since both read normalized rows. Layer norm leaves a single 1 among eight
# features $8/\sqrt7\approx3.02$ above the zeros, and each of two 1s $\sqrt{16/3}\approx2.31$. So the unit's sum is
# 3.02 with one feature and 4.62 with both; the threshold stands between, at 3.6. What the head copies is divided by 3,
# so that it is about 1 again. And since the norm moves the zeros below 0, all is measured from *found*, which is one
# of them: hence the subtractions.

# %%
from slp_transformer import TransformerBlock
from slp_transformer.block import forward_post_norm, forward_pre_norm

block = TransformerBlock(d, 1, key_dim=1, value_dim=1, hidden_dim=1, eps=0)
for W in (block.attention.W_O, *block.ffn.parameters()):
    torch.nn.init.zeros_(W)
eye = torch.eye(d)
head = block.attention.heads[0]
head.W_Q = (eye[PRONOUN] - eye[FOUND])[:, None]
head.W_K = head.W_V = (eye[STRING] - eye[FOUND])[:, None]
head.W_O = eye[STRING][None] / 3  # after layer norm, 1 and 0 are about 3 apart
reads = eye[PRONOUN] + eye[STRING] - 2 * eye[FOUND]
block.ffn.W_1.data, block.ffn.b_1.data[:] = reads[:, None], -3.6
block.ffn.W_2.data = eye[FOUND][None]

# %% [markdown]
# ## Six steps for one token
#
# First the attention half: normalize, attend, add. Only the second step reads other tokens' rows.
#
# <span class="eq" id="eq-t1">t1 · 8.26 · 7.27</span>
#
# $$
# \mathbf t^1_i=\mathrm{LayerNorm}(\mathbf x_i)
# \tag{8.26 · 7.27}
# $$
#
# <span class="eq" id="eq-t2">t2 · 8.27 · 7.28</span>
#
# $$
# \mathbf t^2_i=\mathrm{MultiHeadAttention}(\mathbf t^1_i,[\mathbf t^1_1,\dots,\mathbf t^1_N])
# \tag{8.27 · 7.28}
# $$
#
# <span class="eq" id="eq-t3">t3 · 8.28 · 7.29</span>
#
# $$
# \mathbf t^3_i=\mathbf t^2_i+\mathbf x_i
# \tag{8.28 · 7.29}
# $$
#
# The code passes only the tokens up to i, so there is no future to mask.


# %%
def attention_half(i, X, block):
    gamma, beta = block.norm_1.gamma, block.norm_1.beta
    t1 = torch.stack([layer_norm(x_j, gamma, beta) for x_j in X[: i + 1]])
    t2_i = block.attention(t1)[i]
    t3_i = t2_i + X[i]
    return t1[i], t2_i, t3_i


it = words.index("it")
t1, t2, t3 = attention_half(it, X, block)
assert t1.shape == t2.shape == t3.shape == (d,)
print(f"“it” before: pronoun {X[it, PRONOUN]:.2f}, string {X[it, STRING]:.2f}")
print(f"“it” after:  pronoun {t3[PRONOUN]:.2f}, string {t3[STRING]:.2f}")

# %% [markdown]
# <div class="admonition note" markdown="0"><p class="admonition-title">Where the code leaves the book</p><p>For the second step <a href="#eq-t2">(8.27)</a> lists all N tokens, <a href="#eq-t2">(7.28)</a> those up to i − 1. The sums behind both run over j ≤ i, so the code takes $\mathbf t^1_1$ to $\mathbf t^1_i$: <code>X[: i + 1]</code>.</p></div>

# %% [markdown]
# Then the feedforward half, in the same pattern: normalize, compute, add.
#
# <span class="eq" id="eq-t4">t4 · 8.29 · 7.30</span>
#
# $$
# \mathbf t^4_i=\mathrm{LayerNorm}(\mathbf t^3_i)
# \tag{8.29 · 7.30}
# $$
#
# <span class="eq" id="eq-t5">t5 · 8.30 · 7.31</span>
#
# $$
# \mathbf t^5_i=\mathrm{FFN}(\mathbf t^4_i)
# \tag{8.30 · 7.31}
# $$
#
# <span class="eq" id="eq-h">h · 8.31 · 7.32</span>
#
# $$
# \mathbf h_i=\mathbf t^5_i+\mathbf t^3_i
# \tag{8.31 · 7.32}
# $$


# %%
def feedforward_half(t3_i, block):
    t4_i = layer_norm(t3_i, block.norm_2.gamma, block.norm_2.beta)
    t5_i = ffn(t4_i, *block.ffn.parameters())
    h_i = t5_i + t3_i
    return t4_i, t5_i, h_i


t4, t5, h = feedforward_half(t3, block)
assert t4.shape == t5.shape == h.shape == (d,)
print(f"“it” after the block: found {h[FOUND].item():.2f}")

for word in ("string", "it"):
    *_, t3 = attention_half(words.index(word), X, block)
    t4, *_ = feedforward_half(t3, block)
    print(f"the hidden unit's input at “{word}” is {t4 @ reads:.2f}")

# %% [markdown]
# ### All tokens, and the package
#
# The package does the same six steps for all rows at once. (`mha` is the block's attention; `point` returns its input,
# and lets other code record it; `drop` does [nothing here](07_training.py#what-dropout-is-for).)

# %%
steps = ["T1", "T2", 'T3 = point("T3', "T4", "T5", "return"]
plotting.show_source(forward_pre_norm, only=steps)

# %% [markdown]
# <autoref identifier="slp_transformer.hooks.record_activations">record_activations</autoref> keeps T1 to T5, H
# and the weights α of each block. Each row must equal that of the loop.

# %%
from slp_transformer import record_activations

with record_activations(block) as passes:
    H = block(X, causal=True)
trace = passes[0]
names = ["T1", "T2", "T3", "T4", "T5", "H"]
for i in range(N):
    t1, t2, t3 = attention_half(i, X, block)
    steps = (t1, t2, t3, *feedforward_half(t3, block))
    for name, step in zip(names, steps, strict=True):
        torch.testing.assert_close(trace[name][i], step)
assert H is trace["H"] and H.shape == (N, d)

# %% [markdown]
# ### What each sublayer writes
#
# A head carries information from one residual stream to another (Fig. 8.8 · 7.8): in ours, *it* reads *string*. The
# other words ask for nothing: their scores are 0, so each takes the mean over the tokens up to itself.

# %% alt="Lines from nine input words to nine output words. From the output it, one strong line leads to the input string; every other output has equal lines to itself and all earlier words, fainter the more there are." caption="A head carries information from one stream to another (Fig. 8.8 · 7.8)"
alpha = trace["alpha"][0]
string, because = words.index("string"), words.index("because")
print(f"“it” gives “string” {alpha[it, string].item():.3f} of its attention,")
print(f"“because” gives “string” {alpha[because, string]:.3f}, one sixth")
plotting.flow(alpha.detach(), rows=words, columns=words, row=it)

# %% [markdown]
# Here is the block as a sum (Fig. 8.7 · 7.7): the input, what attention added, what the feedforward layer added, and
# the output. Attention wrote into the column *string*: strongly at *it*, weakly at the other words from *string* on.
# At how many words did the feedforward layer write? Think of its threshold.

# %% alt="Four matrices of nine words by eight features: X plus T2 plus T5 equals H. X has a single one per word. T2 has one strong cell, in row “it” and column string, and faint ones in the same column for other words from “string” on. T5 has one cell, in row “it” and column found. In H the row of “it” has pronoun, string and found." caption="The block as a sum: what each sublayer adds (Fig. 8.7 · 7.7)"
torch.testing.assert_close(X + trace["T2"] + trace["T5"], H)
look = {"shape": "N × d", "columns": features, "top": 1, "decimals": None}
plotting.panels(
    plotting.Panel(X, "X", rows=words, **look),
    "+",
    plotting.Panel(trace["T2"], "T²", **look),
    "+",
    plotting.Panel(trace["T5"], "T⁵", **look),
    "=",
    plotting.Panel(H, "H", **look),
)

# %% [markdown] tags=["more"] gist="How much each sublayer adds at each word"
# The norm of what a sublayer adds says how much it changed a row. In a trained model, where features have no names,
# look at this first ([chapter 5](05_language_model.py)).

# %% alt="Table of norms, one row per word. X is 1 everywhere. Attention wrote 1.01 at “it”, 0.20 at “string”, 0.17 at “because”, 0.13 at “was”, 0.11 at “flat” and nothing before “string”. The feedforward layer wrote 1.02 at “it” and nothing elsewhere." caption="The norm of what each sublayer adds, word by word"
lengths = torch.stack([X, trace["T2"], trace["T5"], H]).norm(dim=-1).T.detach()
first = kinds.index("string")
assert (lengths[:first, 1] == 0).all()  # there is no string to read yet
assert lengths[:, 2].count_nonzero() == 1
plotting.heatmap(lengths, words, ["x", "t²", "t⁵", "h"], "Norms", top=1)

# %% [markdown] tags=["more"] gist="The same output from PyTorch’s own layer"
# ### PyTorch agrees
#
# PyTorch's own layer gives the same output with our matrices. It stores them transposed ([out × in]) and has biases
# in its attention, which start at 0; both layer norms start with γ = 1 and β = 0.

# %%
torch.manual_seed(3)
ours = TransformerBlock(d, 2)
a, f = ours.attention, ours.ffn
Layer = torch.nn.TransformerEncoderLayer
theirs = Layer(d, 2, dim_feedforward=4 * d, dropout=0, norm_first=True)
pairs = [
    (theirs.self_attn.in_proj_weight, torch.cat([a.W_Q, a.W_K, a.W_V], dim=1)),
    (theirs.self_attn.out_proj.weight, a.W_O),
    (theirs.linear1.weight, f.W_1),
    (theirs.linear2.weight, f.W_2),
    (theirs.linear1.bias, f.b_1),
    (theirs.linear2.bias, f.b_2),
]
for W, M in pairs:
    W.data = M.detach().T if M.dim() == 2 else M.detach()

# %%
from slp_transformer import causal_mask

future = causal_mask(N)
torch.testing.assert_close(ours(X, future), theirs(X, src_mask=future))

# %% [markdown]
# ## Why blocks add, and why the norm comes first
#
# A sublayer could hand on what it computes, instead of adding it. What would be lost? Attention averages rows, and
# block after block they become more alike; in $\mathbf x+f(\mathbf x)$ each row keeps what is its own beside that
# average. And the derivative is $1+f'(\mathbf x)$. Over many blocks, one term of the product is just $1\cdot1\cdots1$:
# a direct path for the gradient, from the top to each row.
#
# And why normalize before? The Transformer of 2017 normalized after each addition (*post-norm*). Each such norm
# multiplies that path by $1/\sigma$, usually less than 1. In pre-norm nothing stands in it.


# %%
def untrained(norm, add=True):
    torch.manual_seed(4)
    streams = [torch.randn(N, 64, requires_grad=True)]
    for _ in range(24):
        block, X = TransformerBlock(64, 4, norm=norm), streams[-1]
        T2 = block.attention(block.norm_1(X), causal=True)
        bare = block.ffn(block.norm_2(T2))  # nothing is added
        streams.append(block(X, causal=True) if add else bare)
        streams[-1].retain_grad()
    return streams


# %% [markdown]
# Stack 24 untrained blocks, take what tells the last two words apart at the top, and let its gradient come down. How
# much of it reaches the first block: all, a tenth, a millionth?

# %% alt="The gradient of the difference of two words at the input of each of 24 blocks, as log 10, three curves. Pre-norm is near 0.2 at the top, on the right, and rises slowly to 0.7 at the first block. Post-norm begins at 1 and falls to near −0.5. Where nothing is added the curve begins at 1 and falls steadily to below −5." caption="Gradient of the difference of two words" figure="gradient-below"
ways = {"pre-norm": untrained("pre"), "post-norm": untrained("post")}
ways["nothing added"] = untrained("pre", add=False)
curves = {}
for name, streams in ways.items():
    top = torch.nn.functional.layer_norm(streams[-1], (64,))
    apart = top[-1] - top[-2]
    (apart @ torch.randn(64)).backward()
    curves[name] = [H.grad.norm().log10().item() for H in streams]
    print(f"{name}: the two rows at the top are {apart.norm():.1g} apart")
plotting.lines(curves, x="blocks below", y="log₁₀ of the gradient")

# %% [markdown]
# Read [Figure](#fig-gradient-below) from right to left, as the gradient comes down. In pre-norm all of it arrives, and
# more, since each block adds to the direct path; in post-norm [a few per
# cent](../benchmarks/results/reasons/README.md); where nothing is added, less than a hundred-thousandth. There, 24
# averagings have also made the two rows almost equal, and what is alike cannot be told apart.
#
# The next figure trains all of them on the eight sentences of [chapter 5](05_language_model.py). Plain post-norm and
# *nothing added* learn only how frequent each word is. Post-norm can be trained, too, with weights that begin as small
# as GPT-2's, or a rate that warms up (Xiong et al. 2020). Pre-norm asks for less care.

# %% alt="Loss over 200 steps, four curves. Pre-norm falls to near 0.3, post-norm with a small start to near 0.4. Post-norm and nothing added fall from 2.8 to 2.62 in the first steps and stay there." caption="Loss of 24 blocks, the median of three seeds; post-norm lies below nothing added" figure="deep-stacks"
import json
from pathlib import Path

import slp_transformer

results = Path(slp_transformer.__file__).parents[1] / "benchmarks" / "results"
file = results / "reasons" / "depth.json"
runs = json.loads(file.read_text("utf-8"))["medians"] if file.exists() else {}
plotting.lines(runs, x="step", y="nats per word") if runs else None

# %% [markdown] tags=["more"] gist="Step by step, and why the norm before needs one more at the top"
# ## The order of 2017
#
# The February 2024 draft of the book has the equations of post-norm, (10.32) to (10.37), with MHA for
# MultiHeadAttention:
#
# <span class="eq" id="eq-postnorm-t">postnorm-t · footnote in 8.2 · footnote in 7.2</span>
#
# $$
# \begin{aligned}
# \mathbf t^1_i&=\mathrm{MHA}(\mathbf x_i,[\mathbf x_1,\dots,\mathbf x_i])\\
# \mathbf t^2_i&=\mathbf t^1_i+\mathbf x_i\\
# \mathbf t^3_i&=\mathrm{LayerNorm}(\mathbf t^2_i)\\
# \mathbf t^4_i&=\mathrm{FFN}(\mathbf t^3_i)\\
# \mathbf t^5_i&=\mathbf t^4_i+\mathbf t^3_i\\
# \mathbf h_i&=\mathrm{LayerNorm}(\mathbf t^5_i)
# \end{aligned}
# $$
#
# (Here $\mathbf t^1$ is the attention's output, and $\mathbf h$ is normalized.)


# %%
def post_norm(i, X, block):
    t1 = block.attention(X[: i + 1])[i]
    t2 = t1 + X[i]
    t3 = layer_norm(t2, block.norm_1.gamma, block.norm_1.beta)
    t4 = ffn(t3, *block.ffn.parameters())
    t5 = t4 + t3
    return layer_norm(t5, block.norm_2.gamma, block.norm_2.beta)


post = TransformerBlock(d, 2, norm="post", eps=0)
loop = torch.stack([post_norm(i, X, post) for i in range(N)])
torch.testing.assert_close(post(X, causal=True), loop)

# %%
plotting.show_source(forward_post_norm)

# %% [markdown]
# In post-norm each row leaves a block with mean 0 and standard deviation 1. With rows of 64 numbers, as here, its norm
# is $\sqrt{64}=8$. In pre-norm nothing normalizes the stream itself: with random weights, what a sublayer adds is
# unrelated to what is there already, and the norm grows.

# %%
torch.manual_seed(4)
size, depth = 64, 24  # d is 64 here
for norm in ("pre", "post"):
    H = torch.randn(N, size)
    before = H.norm(dim=-1).mean()
    for _ in range(depth):
        random_block = TransformerBlock(size, 4, norm=norm)
        H = random_block(H, causal=True).detach()
    print(f"{norm}-norm: {before:.1f} first, {H.norm(dim=-1).mean():.1f} last")

# %% [markdown]
# ### One more norm at the top
#
# So the rows at the top of a pre-norm stack can have any norm, and one more layer norm normalizes them before the
# language model head reads them. Post-norm needs none: its last step is a layer norm.
#
# <span class="eq" id="eq-final-ln">final-ln · prose after 8.31 · prose after 7.32</span>
#
# $$
# \mathrm{LayerNorm}(\mathbf h^L_i)
# $$

# %%
from slp_transformer import TransformerStack

torch.manual_seed(5)
stack = TransformerStack(num_blocks=3, model_dim=size, num_heads=4)
X = torch.randn(N, size)
with record_activations(stack) as trace:
    top = stack(X, causal=True)
torch.testing.assert_close(top, stack.final_norm(trace[-1]["H"]))
assert len(trace) == 3
assert TransformerStack(3, size, 4, norm="post").final_norm is None
assert (top.var(dim=-1, correction=0) - 1).abs().max() < 1e-4
plotting.show_source(TransformerStack.forward, only=["for", "return"])

# %% [markdown]
# <div class="admonition note" markdown="0"><p class="admonition-title">Where the code leaves the book</p><p>The final layer norm is in the book's prose and in Fig. 8.16 (7.16), but in no equation: taken literally, <a href="05_language_model.py#eq-logits">(8.46)</a> skips it. The package has it, in <autoref identifier="slp_transformer.block.TransformerStack">TransformerStack</autoref>. Dropout, an option of <autoref identifier="slp_transformer.block.TransformerBlock">TransformerBlock</autoref>, is not in the book's chapter, nor is any initialization of the weights; the stack uses GPT-2's.</p></div>

# %% [markdown] tags=["more"] gist="Changes to try, each with its outcome folded"
# ## Try it
#
# On the page [Break it](../docs/break-it.md) chapter 5's model is trained with one line wrong, for example
# with [n − 1 in the norm](../docs/break-it.md#mistake-n-1-in-the-norm), [a norm over the
# tokens](../docs/break-it.md#mistake-norm-over-the-tokens), [no
# residual](../docs/break-it.md#mistake-residual-left-out) or [no
# ReLU](../docs/break-it.md#mistake-no-relu). Which of these would you notice?
#
# 1. Lower the hidden unit's threshold: set `block.ffn.b_1` to −2 instead of −3.6. Where else will
#    *found* become active?
#
#    <details><summary>What happens</summary>
#
#    At *string*, which is not a pronoun: 3.02 is above 2, too. The *and* has become an *or*, and the
#    assertion that the feedforward layer writes at one word only fails.
#
#    </details>
#
# 2. Make the guitarist a second string: write *string* for *person* in `kinds`. What does *it* read?
#    Undo this, and make the last word a string: write *string* for *pitch*. What does *it* read now?
#
#    <details><summary>What happens</summary>
#
#    With two strings before it, *it* gives half of its attention to each. It does not see the last
#    word, so in the second case it reads only the first string.
#
#    </details>
#
# 3. Let `mean_and_deviation` divide by `d - 1` under the root. Which assertion fails first?
#
#    <details><summary>What happens</summary>
#
#    `assert (mu, sigma) == (5, 2)`, in the same cell: the deviation is now 2.14.
#
#    </details>
#
# 4. Set `depth = 96`. With four times as many blocks, is the norm of the rows of the pre-norm stack four times
#    as large, or closer to twice?
#
#    <details><summary>What happens</summary>
#
#    Closer to twice: over seeds 0 to 4 it is 41 to 50 with 24 blocks, and 85 to 94 with 96, 1.7 to 2.2 times as
#    large. The sublayers add vectors in nearly random directions, so the squares of the norms add up, and the
#    norm grows roughly like the square root of the number of blocks.
#
#    </details>

# %% [markdown]
# ## To remember
#
# - A block has two sublayers: attention moves information between tokens, the feedforward layer works on each
#   row.
# - Each reads a normalized copy of the residual stream and adds its output to it. Nothing is overwritten.
# - Layer norm gives a row mean 0 and standard deviation 1 (dividing by d); γ and β then scale and
#   shift each feature.
# - Attention makes rows alike. Adding keeps what is each row's own, and a norm before the sublayer leaves the
#   stream alone. Pre-norm needs one more norm at the top *(whole chapter)*.
# - Recorded activations show what each sublayer added, and how large it is *(whole chapter)*.

# %% [markdown]
# ## Test yourself
#
# 1. All weights of both sublayers are 0. What does a pre-norm block return, and a post-norm block *(whole chapter)*?
#
#    <details><summary>Answer</summary>
#
#    Pre-norm returns its input, since nothing is added. Post-norm normalizes it, since its norms are in the
#    residual stream.
#
#    </details>
#
# 2. A row is multiplied by 10. What changes in the output of its layer norm?
#
#    <details><summary>Answer</summary>
#
#    Nothing, as long as ε is negligible: mean and standard deviation grow tenfold as well.
#
#    </details>
#
# 3. A block has d = 768 and $d_{ff}=4d$. Which half has more weights, attention or the feedforward
#    layer?
#
#    <details><summary>Answer</summary>
#
#    The feedforward layer: its two matrices have $8d^2$ weights, the four of attention $4d^2$.
#
#    </details>
#
# Next: [One matrix X](03_one_matrix.py), which replaces the loops with matrix products.
