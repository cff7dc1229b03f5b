# %% [markdown] tags=["more"]
# # 8 · Dealing with scale
#
# Section 8.8 (2025-26 drafts); of the August 2026 draft 7.8 and the section on LoRA in chapter 8
#
# See what a larger model gains, what it costs in memory, and how to fine-tune it without training all its
# weights.
#
# How many times as many parameters would halve a model's loss: four, a hundred, a thousand? Write down a guess; the
# second cell answers. You will be able to fit a scaling law and say how far to trust it; count the parameters and the
# cache of the models people use; and fine-tune a model by LoRA. Read first: [Training](07_training.py).
# About 55 minutes.

# %% [markdown]
# ## Three laws
#
# A larger model has a lower loss. By how much? Kaplan and others (2020) found one kind of law for three quantities:
# the number of parameters N (the embeddings not counted), the tokens D of the corpus, and the compute C of training.
# The loss L falls as a power of each, as long as neither of the other two is the bottleneck.
#
# <span class="eq" id="eq-L(N)">L(N) · 8.49 in the Jan 2026 draft</span>
# <span class="eq" id="eq-L(D)">L(D) · 8.50 in the Jan 2026 draft</span>
# <span class="eq" id="eq-L(C)">L(C) · 8.51 in the Jan 2026 draft</span>
#
# $$
# L(N)=\left(\frac{N_c}{N}\right)^{\alpha_N}\tag{8.49}
# $$
#
# $$
# L(D)=\left(\frac{D_c}{D}\right)^{\alpha_D}\tag{8.50}
# $$
#
# $$
# L(C)=\left(\frac{C_c}{C}\right)^{\alpha_C}\tag{8.51}
# $$
#
# (Here N is a number of parameters, not of tokens, and L a loss, not the number of blocks.) The book gives:


# %%
def loss_of(x, x_c, alpha):
    return (x_c / x) ** alpha


book = {
    "parameters": (8.8e13, 0.076),
    "tokens": (5.4e13, 0.095),
    "compute": (3.1e8, 0.050),  # in PF-days, which are explained below
}
for name, (_, alpha) in book.items():
    print(f"twice the {name}: {2**-alpha:.3f} times the loss")

# %% [markdown]
# The exponents are small: doubling the parameters takes 5% off the loss, whatever the size. To halve it takes
# $2^{1/\alpha}$ times as many. Now for your guess:

# %%
for name, (_, alpha) in book.items():
    print(f"half the loss takes {2 ** (1 / alpha):,.0f} times the {name}")

# %%
from slp_transformer import plotting
from slp_transformer.scaling_laws import KAPLAN, PowerLaw

for name, constants in book.items():
    assert KAPLAN[name](1e9) == loss_of(1e9, *constants)
plotting.show_source(PowerLaw.__call__)

# %% [markdown]
# On plain axes this looks as if progress had stopped. On logarithmic axes it is a straight line,
# $\log L=\alpha\log x_c-\alpha\log x$:

# %%
from math import log10

sizes = [10 ** (k / 4) for k in range(24, 45)]
predicted = [KAPLAN["parameters"](N) for N in sizes]
log_sizes, log_losses = (list(map(log10, Z)) for Z in (sizes, predicted))
slope = (log_losses[-1] - log_losses[0]) / (log_sizes[-1] - log_sizes[0])
assert abs(slope + 0.076) < 1e-9

# %% alt="The loss by the law of parameters, from a million to a hundred billion, on plain axes: it falls from 4.02 almost at once, and then ever more slowly, to 1.67." caption="L(N) on plain and on logarithmic axes"
axes = {
    "plain": ([N / 1e9 for N in sizes], predicted, "billions of N", "L"),
    "logarithmic": (log_sizes, log_losses, "log₁₀ N", "log₁₀ L"),
}
ends = f"{predicted[0]:.2f} nats at 10⁶ parameters, {predicted[-1]:.2f}"
states = {}
for name, (N, L, x, y) in axes.items():
    says = f"{ends} at 10¹¹, on {name} axes."
    states[name] = plotting.lines(L, x, y, at=N), says
plotting.interactive_steps("Axes", states)

# %% [markdown]
# So we fit a line by least squares. Given points that lie exactly on a law, the fit recovers its constants:

# %%
sizes = [1e3, 1e5, 1e6, 1e9]
fitted = PowerLaw.fit(sizes, [KAPLAN["parameters"](N) for N in sizes])
print(f"N_c = {fitted.scale:.2g}, α = {fitted.exponent:.3f}")
terms = ["x, y", "x_mean", "covariance", "slope", "return"]
plotting.show_source(PowerLaw.fit, only=terms)

# %% [markdown]
# ## Compute
#
# Each weight costs a multiplication and an addition in the forward pass, and twice that in the backward pass. So
# training takes about 6 operations for each parameter and each token (Kaplan et al. 2020). The rule leaves out the
# scores, which cost little while the text is short compared with d, and the logits, while |V| is small compared with
# $12Ld$.

# %%
import torch
from torch.utils.flop_counter import FlopCounterMode

from slp_transformer import TransformerConfig, TransformerLM
from slp_transformer.scaling_laws import count_parameters, total_training_flops

torch.set_num_threads(1)  # models this small are fastest on one core
config = TransformerConfig(65, 64, model_dim=256, num_heads=16, num_blocks=2)
model, ids = TransformerLM(config), torch.zeros(8, 64, dtype=torch.long)
with FlopCounterMode(display=False) as counted:
    model(ids).sum().backward()
N, D = count_parameters(config).matrices, ids.numel()
ratio = counted.get_total_flops() / total_training_flops(N, D)
print(f"PyTorch counts {ratio:.3f} times 6ND")

# %% [markdown]
# The rest are the logits. (On a CPU, PyTorch does not count the inside of its fused attention.)
#
# The unit of C in [(8.51)](#eq-L(C)) is a *PF-day*, 10¹⁵ operations a second for a day. GPT-3 read 300 billion
# tokens:

# %%
from slp_transformer.scaling_laws import FLOPS_PER_PF_DAY

C = total_training_flops(175e9, 300e9)
print(f"GPT-3: {C:.2e} operations, {C / FLOPS_PER_PF_DAY:,.0f} PF-days")
for name, x in (("parameters", 175e9), ("compute", C / FLOPS_PER_PF_DAY)):
    print(f"from its {name} the law predicts {KAPLAN[name](x):.2f} nats")

# %% [markdown]
# The two differ because each law has a different bottleneck: L(N) is the loss of a model of this size with as
# much data and compute as it can use, L(C) that of the best model for this compute. GPT-3 may be neither.
#
# ## A study of our own
#
# The constants hold for one corpus, its tokenization and one kind of model; the form of the law can be tested on a
# desktop computer. Nine character-level models are trained on *Moby-Dick*: three widths, and three numbers of tokens.
# D counts the characters read, those read again too. Guess first: which width wins with the fewest characters, and
# which with the most?

# %%
from slp_transformer.data import load_moby_dick, train_tokenizer

text = load_moby_dick()
tokenizer = train_tokenizer([text], token_type="characters")
stream = torch.tensor(tokenizer.encode(text))
cut = len(stream) * 9 // 10
learned, held_out = stream[:cut], stream[cut:]
print(f"{len(learned):,} characters to learn from, {len(held_out):,} held out")
print(f"the longest runs read the text {2**19 / len(learned):.1f} times")

# %%
from slp_transformer.training import train


def measure(width, tokens):
    heads, V = max(1, width // 16), tokenizer.vocab_size
    config = TransformerConfig(V, 64, width, heads, num_blocks=2)
    torch.manual_seed(0)
    # Each step reads 8 texts of 64; narrow models can take a larger rate.
    steps, rate = tokens // 512, 0.12 * width**-0.75
    how = {"steps": steps, "eval_interval": steps, "batch_size": 8}
    model = TransformerLM(config)
    record = train(model, learned, held_out, learning_rate=rate, **how)[-1]
    return count_parameters(config).matrices, record.val_loss


# %%
study = {}
for width in (8, 16, 32):
    for tokens in (2**15, 2**17, 2**19):
        N, loss = measure(width, tokens)
        study[N, tokens] = loss
        print(f"N = {N:6,}  D = {tokens:7,}  loss {loss:.3f}")

# %% alt="Loss against the logarithm of compute to base 10, one falling curve for each of three model sizes. At the least compute the smallest model is lowest; each larger one starts higher and falls further." caption="Loss against compute, for three sizes"
curves = {}
for (N, D), loss in study.items():
    point = log10(total_training_flops(N, D)), loss
    curves.setdefault(f"N = {N:,}", []).append(point)
plotting.lines(curves, x="log₁₀ of operations", y="nats per character")

# %% [markdown]
# With the fewest tokens the small model is ahead; with the most, each larger one has a lower loss, though not with
# every seed. So should more compute go into a larger model or into more tokens? Kaplan and others put most of it into
# the model. Hoffmann et al. (2022) found that both should grow alike, with about 20 tokens for each parameter. And
# here?

# %%
compute = {}
for (N, D), loss in study.items():
    compute.setdefault(total_training_flops(N, D), []).append((loss, N))
for C, found in sorted(compute.items()):
    (loss, N), among = min(found), len(found)
    print(f"C = {C:.1e}: best of {among} is N = {N:,} with {loss:.3f}")

# %% [markdown]
# Where two or three cost about the same, [a small one that read more](../benchmarks/results/chapter_seeds/README.md)
# is best. The law [(8.51)](#eq-L(C)) describes the best model at each cost.
#
# Now a prediction: fit L(N) to the three models that read the most, predict the loss of one four times as large as
# the largest, and train it. Will it lie on the line?

# %%
most = {N: loss for (N, D), loss in study.items() if D == 2**19}
law = PowerLaw.fit(list(most), list(most.values()))
print(f"N_c = {law.scale:.2g}, α = {law.exponent:.3f}")
for N, loss in most.items():
    print(f"N = {N:6,}: found {loss:.3f}, on the line {law(N):.3f}")
N, loss = measure(64, 2**19)
print(f"N = {N:6,}: predicted {law(N):.3f}, found {loss:.3f}")

# %% [markdown]
# Three points lie close to a line; the fourth [misses it, below or
# above](../benchmarks/results/chapter_seeds/README.md), depending on the seed. A good fit does not say how far a law
# reaches.
#
# ## A million characters
#
# Here are [29 models](../benchmarks/results/scaling/README.md) on Tiny Shakespeare: five widths, up to four million
# characters read. Follow one curve until the next crosses it: from there on, the larger model pays.

# %% alt="Loss against the logarithm of compute for 29 runs: five falling curves, one for each model size from 1,536 to 393,216 parameters. Each begins further right than the one before, and above it there; the second and third cross the one before, the two largest do not yet." caption="Loss against compute, for 29 runs of five sizes"
import csv
from pathlib import Path

import slp_transformer

root = Path(slp_transformer.__file__).parents[1]
file, recorded = root / "benchmarks" / "results" / "scaling" / "runs.csv", {}
rows = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
for row in csv.DictReader(rows):
    name = f"N = {int(row['parameters']):,}"
    point = log10(float(row["compute"])), float(row["loss"])
    recorded.setdefault(name, []).append(point)
axes = {"x": "log₁₀ of operations", "y": "nats per character"}
plotting.lines(recorded, **axes) if recorded else None

# %% [markdown]
# How far ahead may you trust such a fit? Leave out the last point (for L(C), two), fit a law to the rest, and predict
# it: you [miss by 0.04 to 0.07 nats](../benchmarks/results/scaling/README.md), about what twice the parameters gain. So
# a law says roughly where the next step leads, but not whether it pays. And none can hold forever: every power law goes
# to 0, but no model's loss can fall below the entropy of the text.

# %% [markdown]
# ## How many parameters?
#
# [Chapter 5](05_language_model.py) counted the parameters of a model: about $12\,n_{layer}\,d^2$ in its matrices
# [(8.52)](05_language_model.py#eq-param-count). Here is that rule for the six models in the book's table (Fig. 7.24),
# next to a count of their matrices and the published total. For which is the rule exact?

# %%
from slp_transformer.model_sizes import PUBLISHED_MODELS
from slp_transformer.scaling_laws import approximate_parameters

print(f"{'billions':15} {'12Ld²':>8} {'matrices':>8} {'total':>8}")
for name, model in PUBLISHED_MODELS.items():
    rule = approximate_parameters(model.num_blocks, model.model_dim)
    row = [x / 1e9 for x in (rule, model.matrices, model.total)]
    print(f"{name:15}", *(f"{x:8.3f}" for x in row))

# %% [markdown]
# For the two that are built like the book's block. The other four have a feedforward layer with three matrices
# [(7.22)](02_block.py#eq-swiglu), and G key-value heads that the A query heads share ([chapter
# 14](14_todays_block.py)); in some, heads have another size than d/A:

# %%
from slp_transformer.model_sizes import PublishedModel

plotting.show_source(PublishedModel.matrices)

# %% [markdown]
# The rest of the total is the embeddings (with the head's own matrix where it is not tied), and the norms and
# biases that the rule leaves out. In a small model with a large vocabulary the embeddings are a large share:

# %% alt="Bars: the share of the embeddings in all parameters. GPT-2 XL 0.053, GPT-3 0.004, Qwen3-0.6B 0.261, Qwen3-32B 0.047, Llama 3.1 8B 0.131, Llama 3.1 405B 0.010." caption="The share of the embeddings in all parameters"
shares = {n: m.embeddings / m.total for n, m in PUBLISHED_MODELS.items()}
plotting.bars(list(shares.values()), list(shares), title="embeddings", top=1)

# %% [markdown]
# ## What the cache costs
#
# While a model generates text, it keeps a key and a value of each token for each key-value head, in every block
# ([chapter 6b](06b_cache.py)): $2\,n_{layer}\,A\,d_k$ numbers for each token, and fewer if heads share keys and values.
# Can one text's cache be larger than the model's weights? In 16-bit numbers:

# %%
for name, model in PUBLISHED_MODELS.items():
    tokens = model.num_positions or 128 * 1024
    cache, weights = model.kv_cache_bytes(tokens) / 1e9, 2 * model.total / 1e9
    line = f"{cache:6.1f} GB for {tokens:7,} tokens"
    print(f"{name:15} {line}, {weights:7.1f} GB of weights")

# %% [markdown]
# It can. At 131,072 tokens, further than Qwen3-0.6B was made for, its cache would take more than twelve times the
# memory of its weights. GPT-3, whose 96 heads all have keys and values, needs 9.7 GB for 2,048 tokens. Llama 3.1 405B
# keeps 64 times as many tokens in 7 times the memory: its 128 heads share 8 keys and values.
#
# The formula gives the size of our own cache:

# %%
from slp_transformer import KVCache

config = TransformerConfig(256, 2048, model_dim=256, num_heads=8)
model, cache = TransformerLM(config).eval(), KVCache(2048)
ids = torch.zeros(4, 2048, dtype=torch.long)
with torch.no_grad():
    model(ids[:, :100], cache=cache)
layers = [cache[l].self_attention for l in range(config.num_blocks)]
weighs = sum(Z.nbytes for layer in layers for Z in (layer.K, layer.V))
by_formula = 4 * 2048 * 2 * config.num_blocks * 256 * 4  # 4 texts, 4 bytes
assert weighs == by_formula
print(f"{weighs / 1e6:.1f} MB, set aside for 4 texts of 2,048 tokens")

# %% [markdown]
# For every new token, the model reads all its weights, once for the whole batch, and for each text the rows of
# the cache that are filled so far.
#
# ## LoRA
#
# To teach a model something new, we can train it further. Then every weight changes, and each new skill is a model as
# large as the first. LoRA (low-rank adaptation, Hu et al. 2022) freezes W and learns an update to add to it, as a
# product of two thin matrices (Fig. 8.19; in the August 2026 draft Fig. 8.8). For W [k×d], A (not the heads) is [k×r]
# and B [r×d], with r much smaller than both.
#
# <span class="eq" id="eq-lora">lora · 8.54 · 8.1</span>
#
# $$
# \mathbf h=\mathbf x\mathbf W+\mathbf x\mathbf A\mathbf B\tag{8.54 · 8.1}
# $$


# %%
def lora_by_hand(x, W, A, B):
    (k, d), r = W.shape, A.shape[1]
    h = [sum(x[i] * W[i, j] for i in range(k)) for j in range(d)]
    narrow = [sum(x[i] * A[i, m] for i in range(k)) for m in range(r)]
    for j in range(d):
        h[j] = h[j] + sum(narrow[m] * B[m, j] for m in range(r))
    return torch.stack(h)


# %% alt="W, 6 by 5, plus A, 6 by 1, times B, 1 by 5. A has a 1 in its second row alone, and B is 0, 0, 2, 0, -1: so AB is 0 except in its second row, which is B." caption="W plus A times B, in numbers"
from slp_transformer.lora import lora

torch.manual_seed(0)
W, x = torch.randn(6, 5).round(), torch.randn(6)
A = torch.tensor([[0.0], [1], [0], [0], [0], [0]])
B = torch.tensor([[0.0, 0, 2, 0, -1]])
h = lora_by_hand(x, W, A, B)
torch.testing.assert_close(lora(x, W, A, B), h)
torch.testing.assert_close(x @ (W + A @ B), h)  # what merging relies on
panels = (
    plotting.Panel(Z, name) for Z, name in ((W, "W"), (A, "A"), (B, "B"))
)
W_panel, A_panel, B_panel = panels
plotting.panels(W_panel, "+", A_panel, "×", B_panel)

# %% [markdown]
# This A reads one feature, the second, and B says what to do with it. With r = 1 that is all that can be
# learned: one direction to read, and one to write. A larger r comes closer to an update, here a random one,
# but saves less; from r = 3 on, A and B together are larger than the update.

# %% alt="An update of 6 by 5, and AB with r = 1, which has rank 1 and so is far from it." caption="The closest AB to an update, for each rank r"
update = torch.randn(6, 5).round()
U, S, V = torch.linalg.svd(update, full_matrices=False)
states = {}
for r in range(1, 6):
    A, B = U[:, :r] * S[:r], V[:r]
    off = (update - A @ B).norm() / update.norm()
    says = f"r = {r}: {A.numel() + B.numel()} numbers instead of 30. "
    says += f"The error is {off:.0%} of the update's norm."
    close = plotting.Panel(A @ B, "AB", top=2)
    whole = plotting.Panel(update, "update", top=2)
    states[r] = plotting.panels(whole, "≈", close), says
torch.testing.assert_close(A @ B, update)
plotting.interactive_steps("Rank r", states)

# %% [markdown]
# In the package:

# %%
plotting.show_source(lora)

# %% [markdown]
# <div class="admonition note" markdown="0"><p class="admonition-title">Where the code leaves the book</p><p>The book does not say how A and B are initialized. As in the paper, A is random and B is 0, so the model starts unchanged. The paper writes column vectors, so its W + BA is our W + AB, and it multiplies AB by α/r (another α than the exponents), which we leave to B. In the package a layer multiplies by W + AB once; the assertion above shows that this is the same.</p></div>
#
# The module that takes W's place:

# %%
from slp_transformer.lora import LoRA

plotting.show_source(LoRA.forward)

# %% [markdown]
# ## Another style of guitar
#
# The practice corpus of [chapter 12](12_guitar_tab.py) has studies of eight kinds. A small model learns five of them:
# scales, arpeggios, picking and so on. Then it is fine-tuned on blues: shuffles, walking basses and solos, three
# kinds of piece which it has never seen.

# %%
from slp_guitar.practice import make_practice_studies
from slp_guitar.tab_tokenizer import TabTokenizer, encode_all_tabs

tab_tokenizer, blues = TabTokenizer(), {"shuffle", "walking bass", "solo"}
styles = {"first": [], "blues": []}
for piece in make_practice_studies(seed=0):
    style = "blues" if piece.kind in blues else "first"
    styles[style].append(piece.tab)
corpora = {}
for style, tabs in styles.items():
    tokens = torch.tensor(encode_all_tabs(tabs, tab_tokenizer))
    cut = len(tokens) * 9 // 10
    corpora[style] = tokens[:cut], tokens[cut:]
    print(f"{style}: {len(tabs)} pieces, {cut:,} tokens to learn from")

# %%
from slp_transformer.training.evaluation import mean_loss

config = TransformerConfig(len(tab_tokenizer), 128, 64, 4, num_blocks=2)
torch.manual_seed(0)
base = TransformerLM(config)
how = {"batch_size": 8, "learning_rate": 6e-3, "steps": 400}
train(base, *corpora["first"], **how, eval_interval=400)


def losses(model):
    return [mean_loss(model, corpora[s][1], 128) for s in ("first", "blues")]


known, unknown = losses(base)
print(f"on the first styles {known:.3f} nats a token, on blues {unknown:.3f}")

# %% [markdown]
# Now five copies are fine-tuned on blues: four by LoRA, and one with all of its weights. With r = 1, LoRA trains
# 1,024 numbers instead of 159,680. What share of the gain will it reach? Each line gives the loss on the first styles
# and on blues, and that share.

# %%
from copy import deepcopy

from slp_transformer import lora
from slp_transformer.lora import ATTENTION_MATRICES, add_lora


def learn_blues(rank=None, targets=ATTENTION_MATRICES, rate=1e-2):
    model = deepcopy(base)
    torch.manual_seed(0)
    if rank is not None:
        add_lora(model, rank, targets)
    how = {"steps": 120, "eval_interval": 120, "batch_size": 8}
    train(model, *corpora["blues"], **how, learning_rate=rate)
    return model


# %%
def learning(model):
    return sum(W.numel() for W in model.parameters() if W.requires_grad)


everywhere = (*ATTENTION_MATRICES, "W_1", "W_2")
tuned = {
    "LoRA, r = 1": learn_blues(1, rate=2e-2),
    "LoRA, r = 4": learn_blues(4),
    "LoRA, r = 8": learn_blues(8),
    "LoRA, r = 8, feedforward too": learn_blues(8, everywhere),
    "all weights": learn_blues(rate=3e-3),
}

# %%
results, full = {}, tuned["all weights"]
for name, model in tuned.items():
    share = learning(model) / learning(base)
    results[name] = losses(model)
    shown = " and ".join(f"{loss:.3f}" for loss in results[name])
    done = (unknown - results[name][1]) / (unknown - losses(full)[1])
    print(f"{name:28} {share:6.1%} of the weights: {shown}, {done:.0%}")

# %% alt="Bars: held-out loss on blues in nats per token. It is highest before any tuning; with LoRA it falls as more numbers are trained, and it is lowest where all weights are trained." caption="Loss on blues, by which weights are trained"
blue = {"before": unknown} | {name: b for name, (_, b) in results.items()}
plotting.bars(list(blue.values()), list(blue), title="nats a token on blues")

# %% [markdown]
# With r = 1, one number is trained for every 156 of the model, and yet it makes [almost
# half](../benchmarks/results/chapter_seeds/README.md) of the gain of all weights (each way has a learning rate of its
# own). A larger r makes more of it, and most where LoRA is in the feedforward layers, too. All pay the same price: each
# copy gets worse on the first styles. But with LoRA the base is still there underneath.
#
# Merging adds AB to W: the same outputs up to rounding, from an ordinary model, as fast as before. Or remove A and B,
# and the base is back, bit for bit.

# %%
student = tuned["LoRA, r = 8"]
ids = corpora["blues"][1][:100]
before, merged = student(ids), deepcopy(student)
lora.merge_lora(merged)
torch.testing.assert_close(merged(ids), before)
assert set(merged.state_dict()) == set(base.state_dict())
lora.remove_lora(student)
assert torch.equal(student(ids), base(ids))

# %% [markdown]
# ## Try it
#
# 1. Fit L(N) to the models that read 2¹⁵ tokens instead of 2¹⁹. What does `PowerLaw.fit` say?
#
#    <details><summary>What happens</summary>
#
#    It refuses: with so few tokens the loss of these runs does not fall as N grows, it rises (with seed 1 it falls).
#
#    </details>
#
# 2. How large a cache would Llama 3.1 8B need if each of its 32 heads had its own keys and values?
#
#    <details><summary>What happens</summary>
#
#    Four times as large, since it has 8 key-value heads.
#
#    </details>
#
# 3. Suppose `LoRA` initialized both A and B to 0. Would it learn?
#
#    <details><summary>What happens</summary>
#
#    No. The gradient of A is a product with B, and that of B a product with A: both are 0, and stay 0.
#
#    </details>
#
# 4. Fine-tune with `learn_blues(64)`. How many numbers are trained, and what is odd about that?
#
#    <details><summary>What happens</summary>
#
#    41% as many as the whole model has: A and B together have twice as many numbers as the matrices
#    that they are added to. With r = 64, AB can be any [64×64] matrix, so nothing is saved.
#
#    </details>

# %% [markdown]
# ## To remember
#
# - On logarithmic axes a scaling law is a straight line; its slope α is small.
# - A law holds where it was fitted, and a little beyond; ours missed one or two steps ahead.
# - $12\,n_{layer}\,d^2$ counts the book's block; gated layers and shared heads change it.
# - A cache grows with tokens, blocks and key-value heads, and each new token reads what is filled of it.
# - LoRA learns W + AB with W frozen; once merged, it costs nothing.

# %% [markdown]
# ## Test yourself
#
# 1. By the book's α, how much lower is the loss of a model with ten times the parameters?
#
#    <details><summary>Answer</summary>
#
#    $10^{-0.076}=0.84$: 16% lower, if nothing else is the bottleneck.
#
#    </details>
#
# 2. A matrix is [4096×4096]. How many numbers does LoRA with r = 8 learn for it, and what share is that?
#
#    <details><summary>Answer</summary>
#
#    $8\,(4096+4096)=65{,}536$, one in 256.
#
#    </details>
#
# 3. Why does `add_lora` leave the model's outputs unchanged until it is trained?
#
#    <details><summary>Answer</summary>
#
#    B is 0, so AB is 0, and W + AB is W.
#
#    </details>
#
# Next: [Looking inside](09_inside.py).
