# %% [markdown] tags=["more"]
# # 14 · From the book's block to today's
#
# Beyond the book, but for the gate [(7.22)](02_block.py#eq-swiglu) and a sentence on RoPE in its August 2026 draft
#
# Replace four parts of the block, one at a time, and load models in the form in which others publish them.
#
# What separates the block that you know from Llama's? Four parts of the block, and a head of its own where E is not
# tied: once they are replaced, both give the same logits. You will be able to say what RMSNorm, rotary positions,
# shared keys and the gate change, and what they leave unchanged; load a Llama, Qwen3, GPT-2 or BERT; and say what
# today's parts gain in the same training time. Read first: [The block](02_block.py), [One matrix X](03_one_matrix.py)
# and [The input](04_input.py). About 55 minutes.

# %% [markdown]
# ## The norm without its mean
#
# Layer norm gives a row mean 0 and standard deviation 1 [(8.25, 7.26)](02_block.py#eq-ln). RMSNorm does
# not subtract the mean, and divides by the *root mean square* alone; it drops the offset β, too.
#
# $$
# \mathrm{RMSNorm}(\mathbf x)=\gamma\,\frac{\mathbf x}{\mathrm{RMS}(\mathbf x)},\qquad
# \mathrm{RMS}(\mathbf x)=\sqrt{\frac1d\sum_{k=1}^{d}x_k^2}
# $$
#
# (Zhang and Sennrich 2019, equation 4.) For a row whose mean is 0 already, the root mean square *is* the standard
# deviation, so the two norms agree. Of the row (5, 5, 5, 5), layer norm with an ε makes zeros. What does RMSNorm make
# of it, and of (−5, −5, −5, −5)?

# %%
import math

import torch


def rms_norm(x, gamma):
    mean_square = sum(x_k**2 for x_k in x) / len(x)
    return torch.stack([x_k / math.sqrt(mean_square) for x_k in x]) * gamma


# %%
ones = torch.ones(4)
print(rms_norm(torch.tensor([3.0, -1.0, -3.0, 1.0]), ones))  # mean 0
print(rms_norm(torch.tensor([5.0, 5.0, 5.0, 5.0]), ones))
print(rms_norm(torch.tensor([-5.0, -5.0, -5.0, -5.0]), ones))

# %%
from slp_transformer import LayerNorm, plotting
from slp_transformer.modern import RMSNorm

torch.manual_seed(14)
torch.set_num_threads(1)  # the last digits below depend on the order of sums
X = torch.randn(3, 4)
norm = RMSNorm(4, eps=0.0)
loop = torch.stack([rms_norm(x, ones) for x in X])
torch.testing.assert_close(norm(X), loop)
torch.testing.assert_close(norm(X), torch.nn.RMSNorm(4, eps=0.0)(X))
centered = X - X.mean(dim=1, keepdim=True)
torch.testing.assert_close(norm(centered), LayerNorm(4, eps=0.0)(centered))
plotting.show_source(RMSNorm.forward)

# %% [markdown]
# ## Positions as rotations
#
# Two clocks that differ by three hours at noon differ by three hours all day. Rotary positions use just this. Unlike
# the rows of P (section 8.4, 7.4), they add nothing at the bottom; in every head of every block they *turn* the
# queries and the keys, like hands of clocks. Take the columns of a query in pairs, $a$ and $b$. Pair $i$ (from 0) of
# a token at position $pos$ turns by $pos\cdot\theta_i$, the first pairs fast, the last ones slowly:
#
# <span class="eq" id="eq-rope">rope · Su et al. 2021, named in the Aug 2026 draft</span>
#
# $$
# \begin{pmatrix}x'_a\\x'_b\end{pmatrix}=
# \begin{pmatrix}\cos pos\,\theta_i&-\sin pos\,\theta_i\\\sin pos\,\theta_i&\cos pos\,\theta_i
# \end{pmatrix}\begin{pmatrix}x_a\\x_b\end{pmatrix},\qquad\theta_i=10000^{-2i/d_k}
# $$
#
# Why rotate? The dot product of two vectors depends on the angle *between* them. If a query at position $m$ has been
# turned by $m\theta$ and a key at $n$ by $n\theta$, that angle has changed by $(m-n)\theta$: the score knows how far
# apart the two tokens are, not where in the text they are.


# %%
def turn(x, pos, base=10000.0):
    half, turned = len(x) // 2, x.clone()
    for i in range(half):  # a pair: column i, and the one half a row further
        angle = pos * base ** (-2 * i / len(x))
        a, b = x[i], x[i + half]
        turned[i] = a * math.cos(angle) - b * math.sin(angle)
        turned[i + half] = a * math.sin(angle) + b * math.cos(angle)
    return turned


# %% [markdown]
# A quarter turn of one pair, by hand: with $d_k=2$ there is one pair, and $\theta_0=1$, so position
# $\pi/2$ (no token has it, but the formula allows it) turns east into north.

# %%
east = torch.tensor([1.0, 0.0])
print([round(x, 3) for x in turn(east, math.pi / 2).tolist()])

# %%
from slp_transformer.modern import RotaryPositions, apply_rotary

N, d_k = 6, 8
Q, K = torch.randn(N, d_k), torch.randn(N, d_k)
rotary = RotaryPositions(d_k)
loop = torch.stack([turn(Q[pos], pos) for pos in range(N)])
torch.testing.assert_close(rotary(Q, 0), loop)
torch.testing.assert_close(rotary(Q[4:], 4), loop[4:])  # from position 4 on
plotting.show_source(apply_rotary)

# %% [markdown]
# Now give every token the *same* query and the *same* key, so that only the position distinguishes them. Where in the
# matrix of scores will equal numbers stand? And with learned positions (here drawn at random and added to both)?

# %% alt="Two 6 by 6 matrices of scores. In the left one, with rotary positions, every diagonal from upper left to lower right holds one value throughout. In the right one, with learned positions, no diagonal does." caption="Scores by rotary and by learned positions"
same_q, same_k = Q[:1].expand(N, d_k), K[:1].expand(N, d_k)
scores = rotary(same_q, 0) @ rotary(same_k, 0).T
P = torch.randn(N, d_k)
absolute = (same_q + P) @ (same_k + P).T
for distance in range(-N + 1, N):
    diagonal = scores.diagonal(distance)
    torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal))
plotting.panels(
    plotting.Panel(scores, "rotary", "N × N"),
    plotting.Panel(absolute, "learned", "N × N"),
)

# %% [markdown]
# With rotations each diagonal has one value: scores depend on $m-n$ alone. Shift both tokens by a thousand positions,
# and no score changes, up to rounding. Shift them step by step: query and key turn, the first pairs faster, and their
# score stays.

# %%
moved = rotary(same_q, 1000) @ rotary(same_k, 1000).T
torch.testing.assert_close(moved, scores, rtol=0, atol=1e-3)
print(f"moved by 1000: at most {(moved - scores).abs().max():.0e} apart")

# %% alt="A query at position 3 and a key at position 1, each a row of eight numbers, in columns that are paired: 1 to 4 and 1 to 4 again." caption="A query and a key, rotated by their positions"
states, q, k = {}, Q[0], K[0]
for shift in (0, 1, 2, 3, 10, 100, 1000):
    both = torch.stack([turn(q, 3 + shift), turn(k, 1 + shift)])
    score = both[0] @ both[1]
    torch.testing.assert_close(score, scores[3, 1], rtol=0, atol=1e-3)
    says = f"Query at {3 + shift}, key at {1 + shift}: score {score:.2f}."
    rows, pairs = ["query", "key"], ["1", "2", "3", "4"] * 2
    states[shift] = plotting.heatmap(both, rows, pairs, top=2), says
plotting.interactive_steps("Positions shifted by", states)

# %% [markdown]
# <div class="admonition note" markdown="0"><p class="admonition-title">Where the code leaves the paper</p><p>The paper pairs neighboring columns, 0 with 1, 2 with 3. The code pairs column i with column $i+d_k/2$, as the weights of Llama and Qwen3 do in Hugging Face's format. This makes no difference to what a model can compute: it is another order of the columns of $\mathbf W^Q$ and $\mathbf W^K$.</p></div>
#
# Values are not rotated: they say *what* is passed on, not where it is found. And there is no last position, since
# there is no table of rows. Whether a model reads well past the length that it was trained on is another matter;
# Llama 3.1 slows the slowest pairs down for it
# (<autoref identifier="slp_transformer.modern.config.RopeScaling">RopeScaling</autoref>).

# %% [markdown]
# ## Keys and values that heads share
#
# The cache keeps a key and a value for every token, head and block [(8.53, 7.59)](06b_cache.py#eq-kv-attn), and in a
# long text that can take more memory than the weights ([chapter 8](08_scale.py)). So in today's models several heads
# share one key and one value: there are $A$ query heads and $G$ key-value heads.
#
# $$
# \mathbf{head}_c=\mathrm{softmax}\!\left(\mathrm{mask}\!\left(
# \frac{\mathbf Q^c\mathbf K^{g\top}}{\sqrt{d_k}}\right)\right)\mathbf V^g,\qquad
# g=\lfloor c\,G/A\rfloor
# $$
#
# (Ainslie et al. 2023; heads and groups counted from 0.) With $G=A$ it is the book's
# [(8.36)](03_one_matrix.py#eq-mh-par-head).

# %%
A, G, d = 6, 2, 12


def grouped(X, W_Q, W_K, W_V, W_O):
    heads = []
    for c in range(A):
        g = c * G // A
        Q, K, V = X @ W_Q[c], X @ W_K[g], X @ W_V[g]
        scores = Q @ K.T / math.sqrt(K.shape[1])
        scores = scores.masked_fill(torch.ones(N, N).triu(1) > 0, -math.inf)
        heads.append(torch.softmax(scores, dim=1) @ V)
    return torch.cat(heads, dim=1) @ W_O


# %%
from slp_transformer.modern import GroupedQueryAttention, repeat_kv

torch.manual_seed(15)
X, gqa = torch.randn(N, d), GroupedQueryAttention(d, A, num_kv_heads=G)
W_K, W_V = (W.split(gqa.key_dim, dim=1) for W in (gqa.W_K, gqa.W_V))
assert len(W_K) == len(W_V) == G
loop = grouped(X, gqa.W_Q.split(gqa.key_dim, dim=1), W_K, W_V, gqa.W_O)
torch.testing.assert_close(gqa(X, causal=True), loop)
plotting.show_source(repeat_kv, GroupedQueryAttention._attend)

# %% [markdown]
# PyTorch's kernel gives the same with `enable_gqa`. So does the book's attention, if all heads of a group have the
# same matrices: sharing takes something away, and adds nothing.

# %%
from slp_transformer import MultiHeadAttention

F = torch.nn.functional
Q, K, V = gqa.project(X)
how = {"is_causal": True, "enable_gqa": True}
theirs = F.scaled_dot_product_attention(Q[None], K[None], V[None], **how)[0]
torch.testing.assert_close(theirs.transpose(0, 1).flatten(1) @ gqa.W_O, loop)

book = MultiHeadAttention(d, A)
for ours, head in zip(book.heads, gqa.heads, strict=True):
    ours.W_Q, ours.W_K = head.W_Q, head.W_K
    ours.W_V, ours.W_O = head.W_V, head.W_O
torch.testing.assert_close(book(X, causal=True), loop)

# %% [markdown]
# Llama 3.1 405B has 128 query heads and 8 key-value heads. How much smaller does that make its cache? Here is that of
# one text of 8,192 tokens in bfloat16, for models of the book's Fig. 7.24:

# %%
from dataclasses import replace

from slp_transformer.model_sizes import PUBLISHED_MODELS

for name in ("Qwen3-0.6B", "Qwen3-32B", "Llama 3.1 8B", "Llama 3.1 405B"):
    model = PUBLISHED_MODELS[name]
    alone = replace(model, num_kv_heads=model.num_heads)
    now, then = (m.kv_cache_bytes(8192) / 2**30 for m in (model, alone))
    print(f"{name}: {now:.2f} GiB, not {then:.2f}")

# %% [markdown]
# ## The gate, once more
#
# The feedforward layer of these models is [chapter 2](02_block.py#eq-swiglu)'s SwiGLU
# [(7.22)](02_block.py#eq-swiglu), without its three biases. GPT-2 and BERT keep the book's layer [(8.21)](02_block.py#eq-ffn), with GELU for ReLU.
#
# ## The block
#
# The block's forward pass is that of [chapter 2](02_block.py). Only the modules that it calls are different.

# %%
from slp_transformer.modern import ModernBlock

plotting.show_source(ModernBlock.__init__, only=["attention", "ffn"])

# %% [markdown]
# With the published sizes, and a head that is tied to E or not (`tied`), there are exactly as many parameters as
# published. Counting them takes no memory: tensors on PyTorch's *meta* device have only shapes.

# %%
from slp_transformer.modern import ModernConfig, ModernLM


def from_table(model, **more):
    sizes = ("num_heads", "num_kv_heads", "key_dim", "num_blocks")
    sizes = {name: getattr(model, name) for name in sizes} | more
    sizes |= {"model_dim": model.model_dim, "hidden_dim": model.hidden_dim}
    sizes |= {"value_dim": model.key_dim, "tied": model.tied}
    return ModernConfig(model.vocab_size, **sizes)


# %%
with torch.device("meta"):
    llama = ModernLM(from_table(PUBLISHED_MODELS["Llama 3.1 8B"]))
    qwen = ModernLM(from_table(PUBLISHED_MODELS["Qwen3-0.6B"], qk_norm=True))
for name, model in (("Llama 3.1 8B", llama), ("Qwen3-0.6B", qwen)):
    count = sum(W.numel() for W in model.parameters())
    assert count == PUBLISHED_MODELS[name].total
    print(f"{name}: {count:,} parameters")

# %% [markdown]
# (Qwen3 has one small addition, the `qk_norm`: each head's queries and keys go through an RMSNorm before
# they are rotated.)
#
# ## The same as everybody's
#
# Is our block really Llama's? Let Hugging Face's `transformers` make a small Llama with random weights, and save it
# as Llamas are published: `config.json`, and the weights in `safetensors`, a format that cannot run code.

# %%
import tempfile
import warnings
from pathlib import Path

with warnings.catch_warnings():
    # Its bars miss a widget that nobody needs here.
    warnings.simplefilter("ignore")
    import transformers

    transformers.utils.logging.disable_progress_bar()

# %%
folder = Path(tempfile.mkdtemp())
sizes = {"num_hidden_layers": 2, "num_attention_heads": 6, "hidden_size": 24}
sizes |= {"num_key_value_heads": 2, "intermediate_size": 40, "vocab_size": 53}
torch.manual_seed(16)
config = transformers.LlamaConfig(**sizes)
theirs = transformers.LlamaForCausalLM(config).eval()
theirs.save_pretrained(folder / "llama")
print(*sorted(path.name for path in (folder / "llama").iterdir()), sep="\n")

# %% [markdown]
# One call loads it into our modules. Every tensor in the file must have a place here, and every tensor here must be
# in the file, or the model is refused: a Llama with a missing part would still generate text, and no error would tell
# us. How far apart will the logits be?

# %%
from slp_transformer.modern import from_pretrained

ours = from_pretrained(folder / "llama")
ids = torch.randint(53, (3, 11))
with torch.no_grad():
    U, theirs_U = ours(ids), theirs(ids).logits
torch.testing.assert_close(U, theirs_U, rtol=0, atol=1e-4)
apart = (U - theirs_U).abs().max()
print(f"{type(ours).__name__}: logits at most {apart:.0e} apart")

# %% [markdown]
# And token by token, with the cache of [chapter 6b](06b_cache.py) on both sides:

# %%
from slp_transformer import generate

written = generate(ours, ids, max_new_tokens=20, temperature=0)
expected = theirs.generate(
    ids, max_new_tokens=20, do_sample=False, eos_token_id=None, pad_token_id=0
)
assert [one.ids for one in written] == expected.tolist()
print(written[0].new_ids)

# %% [markdown]
# The tools of [chapter 9](09_inside.py) work on it, too: the logit lens reads each layer, and heads can be ablated.

# %%
from slp_transformer import interpret

stream = interpret.residual_stream(ours, ids)
read = interpret.logit_lens(ours, stream["1.H"])
torch.testing.assert_close(read, U)
changes = {"0.head": interpret.zero_ablate(5)}
with torch.no_grad(), interpret.patch_activations(ours, patches=changes):
    apart = (ours(ids) - U).abs().max()
assert apart > 0 and torch.equal(ours(ids), U)
print(f"without head 5 of block 0: logits up to {apart:.0e} apart")

# %% [markdown]
# Other models load in the same way: here a Qwen3, a GPT-2 and a BERT. GPT-2 is the book's block with GELU
# and biases in all linear layers. BERT is post-norm and bidirectional (9.2 in the Aug 2026 draft); its
# logits predict the word *at* a position, so it fills gaps and does not generate text.

# %%
small = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 6}
small |= {"vocab_size": 53, "max_position_embeddings": 40}
small |= {"bos_token_id": 1, "eos_token_id": 2}
gated = {"intermediate_size": 40, "num_key_value_heads": 2, "head_dim": 8}
kinds = {"Qwen3ForCausalLM": ("Qwen3Config", small | gated),
         "GPT2LMHeadModel": ("GPT2Config", small),
         "BertForMaskedLM": ("BertConfig", small)}  # fmt: skip

# %%
for name, (config, sizes) in kinds.items():
    config = getattr(transformers, config)(**sizes)
    theirs = getattr(transformers, name)(config).eval()
    theirs.save_pretrained(folder / name)
    ours = from_pretrained(folder / name)
    with torch.no_grad():
        apart = (ours(ids) - theirs(ids).logits).abs().max()
    assert apart < 1e-4
    print(f"{name} → {type(ours).__name__}: at most {apart:.0e} apart")

# %% [markdown]
# ## And back
#
# Others can load what you train here. The book's own model is a GPT-2 with ReLU whose attention biases are 0, and is
# saved as one.

# %%
from slp_transformer import TransformerConfig, TransformerLM
from slp_transformer.modern import save_pretrained

sizes = {"model_dim": 24, "num_heads": 6, "num_blocks": 2}
config = TransformerConfig(53, context_length=40, **sizes)
book = TransformerLM(config).eval()
save_pretrained(book, folder / "book")
theirs = transformers.GPT2LMHeadModel.from_pretrained(folder / "book")
with torch.no_grad():
    U, theirs_U = book(ids), theirs.eval()(ids).logits
torch.testing.assert_close(U, theirs_U, rtol=0, atol=1e-4)
print("transformers loads the book's model and gives the same logits")

# %%
import shutil

shutil.rmtree(folder)
assert not folder.exists()

# %% [markdown]
# ## With real weights
#
# If you are online, fetch a published model, such as SmolLM2 (a Llama of 135 million parameters), and use it like a
# run of your own:
#
# ```sh
# python -m pip install huggingface_hub
# hf download HuggingFaceTB/SmolLM2-135M --local-dir models/smollm2
# slp-transformer info models/smollm2
# slp-transformer generate models/smollm2 --prompt "The guitar is" --max-new-tokens 40
# slp-transformer evaluate models/smollm2 my_text.txt
# ```
#
# Of GPT-2's folder, name the files that are read here:
#
# ```sh
# hf download openai-community/gpt2 config.json tokenizer.json \
#     model.safetensors --local-dir models/gpt2
# ```
#
# In Python, load the model and its tokenizer:
#
# ```python
# from slp_transformer import generate
# from slp_transformer.modern import from_pretrained, load_tokenizer
#
# model = from_pretrained("models/gpt2")
# tokenizer = load_tokenizer("models/gpt2", model.config)
# ids = torch.tensor(tokenizer.encode("The guitar is"))
# (written,) = generate(model, ids[None], max_new_tokens=20)
# print(tokenizer.decode(written.ids))
# ```

# %% [markdown]
# ## A loss in fewer seconds
#
# How much training time do today's parts save? Our recipe of today has the rotary positions and the normalized queries
# and keys from above, and four parts more. In place of the gate, the feedforward layer has squared ReLU,
# $\mathrm{ReLU}(x)^2$ (So et al. 2021). The matrices that write to the stream start at zero, so that every block begins
# as $\mathbf H=\mathbf X$. The head has a matrix of its own. And *Muon*, explained below, trains the matrices inside
# blocks.
#
# A part can be [taken out of this recipe](../benchmarks/results/parts/README.md), or put alone into the book's block.
# Which would you miss most? Rotary positions count both ways; the norm of queries and keys counts only in company.
# Choose curves in the figure. And a caution: a better [learning rate
# alone](../benchmarks/results/time_to_loss/README.md) saves more than a third of the time. Tune it before you change
# the model.

# %% alt="Loss against seconds of one CPU thread for today's recipe and the book's block. Both curves fall; today's is below the book's from the first measurement on." caption="Loss against seconds, part by part"
import json

import slp_transformer

results = Path(slp_transformer.__file__).parents[1] / "benchmarks" / "results"
file, curves = results / "parts" / "curves-seed-0.json", {}
runs = json.loads(file.read_text("utf-8"))["runs"] if file.exists() else {}
for name, points in runs.items():  # of steps, seconds and the loss
    curves[name.replace(",", ":")] = [point[1:] for point in points]
axes = {"x": "CPU seconds", "y": "nats a character"}
plotting.interactive_lines(
    curves, ["today", "book"], **axes
) if curves else None

# %% [markdown]
# ### Muon
#
# AdamW treats every number of a matrix by itself, Muon (Jordan et al. 2024) the matrix as a whole. The running mean of
# the gradients usually has a few large singular values and many small ones. Muon brings all of them to about 1: the
# directions stay, and none is too small to matter.

# %%
torch.manual_seed(17)
gradient = torch.randn(6, 8) * torch.logspace(0, -1.5, 6)[:, None]
U, S, V = torch.linalg.svd(gradient, full_matrices=False)
S = S / S.norm()

W = torch.nn.Parameter(torch.zeros(6, 8))
W.grad = gradient
how = {"momentum": 0.0, "weight_decay": 0.0, "adjust_lr_fn": "match_rms_adamw"}
torch.optim.Muon([W], lr=1.0, **how).step()
scale = 0.2 * math.sqrt(8)  # explained below
print("before:", *(f"{s:.2f}" for s in S))
after = torch.linalg.svdvals(W.detach() / scale)
print("after: ", *(f"{s:.2f}" for s in after))

# %% [markdown]
# No singular values have to be computed for that. Divide the mean by the root of its sum of squares and call the result
# **Z**. Five *Newton-Schulz* iterations,
#
# $$
# \begin{aligned}
# \mathbf Z&\leftarrow a\mathbf Z+b\,\mathbf Z\mathbf Z^\top\mathbf Z+c\,(\mathbf Z\mathbf Z^\top)^2\mathbf Z\\
# (a,b,c)&=(3.4445,\,-4.775,\,2.0315)
# \end{aligned}
# $$
#
# turn each singular value $s$ into $as+bs^3+cs^5$ each time. They soon come near 1, though not to 1 exactly. PyTorch
# does this with matrix products alone, in bfloat16:


# %%
def towards_one(s):
    for _ in range(5):
        s = 3.4445 * s - 4.775 * s**3 + 2.0315 * s**5
    return s


by_hand = -scale * U @ torch.diag(towards_one(S)) @ V
torch.testing.assert_close(W.detach(), by_hand, rtol=0, atol=0.03)
print(f"root mean square of the step: {W.square().mean().sqrt():.2f}")

# %% [markdown]
# Why `scale`? A matrix [6×8] whose singular values are all 1 has a root mean square of $1/\sqrt8$. Times 0.2 and the
# root of the longer side, here 8, it is about 0.2; AdamW's is usually 0.2 to 0.4 (Liu et al. 2025), and one learning
# rate works for both. Embeddings, the head, gains and biases are trained by AdamW.

# %%
from slp_transformer.training.optimizers import make_muon

plotting.show_source(make_muon, only=["muon", "return"])

# %% [markdown]
# Does this carry over to large models? In part: one study finds about half of AdamW's compute
# enough (Liu et al. 2025, arXiv 2502.16982), another 1.4 times the speed at 0.1 billion parameters, but only 1.1 times at 1.2
# billion (Wen et al. 2025, arXiv 2509.02046).

# %% [markdown]
# ## Try it
#
# 1. Make `rotary = RotaryPositions(d_k, base=2.0)`, and let `turn` have the same base. Are the scores
#    still the same along each diagonal? How fast does the last of the four pairs turn now?
#
#    <details><summary>What happens</summary>
#
#    They are, for any angles. The last pair now turns by $2^{-6/8}\approx0.59$ per position, more than half as
#    fast as the first; before, it was 0.001. Every pair goes full circle within eleven positions: beyond that no pair
#    alone tells a longer distance from a shorter one.
#
#    </details>
#
# 2. Rotate the values too. There is no V here, so let K stand in for it: in the cell that makes `absolute`, multiply the softmax of `scores`
#    by `rotary(K, 0)`. Then rotate all three from position 10 on. Do the weights change? Does the result?
#
#    <details><summary>What happens</summary>
#
#    The weights do not change, since positions enter them only through distances. The result does: it is a sum of
#    rows that have each been rotated by ten more positions.
#
#    </details>
#
# 3. Before the folder is removed, edit the Llama's `config.json`: one more head, another `hidden_act`, or
#    `"rope_type": "yarn"` in its `rope_parameters`. What will `from_pretrained` say?
#
#    <details><summary>What happens</summary>
#
#    It refuses, and says what does not fit. A model that is almost the published one would still generate
#    text, and no error would tell us.
#
#    </details>
#
# 4. Set G = 1 in the cell on shared keys, then G = 4. What will happen?
#
#    <details><summary>What happens</summary>
#
#    With 1, all heads share one key and one value per token, each with its own query, and the assertion
#    holds. With 4, the package refuses: six heads cannot be divided evenly among four groups.
#
#    </details>

# %% [markdown]
# ## To remember
#
# - RMSNorm divides by the root mean square and does not subtract the mean.
# - Rotary positions rotate queries and keys in every head; the positions enter the scores only
#   through their distance.
# - Heads that share keys and values make the cache smaller by a factor of A/G; with G = A they are the book's.
# - Muon brings the singular values of a matrix's update to about 1; AdamW treats each number by itself.
# - Two models are the same when the same weights give the same numbers: that can be asserted.

# %% [markdown]
# ## Test yourself
#
# 1. Which rows does layer norm treat exactly as RMSNorm does, if γ is 1 and β is 0?
#
#    <details><summary>Answer</summary>
#
#    Those whose mean is 0: for them the standard deviation is the root mean square.
#
#    </details>
#
# 2. A model has 32 query heads and 8 key-value heads. How much smaller is its cache than if each query head
#    had its own keys and values?
#
#    <details><summary>Answer</summary>
#
#    It is a quarter of the size. (Queries are never cached.)
#
#    </details>
#
# 3. The cache of a rotary model holds keys that are already rotated. Why do they not have to be rotated again
#    as the text grows?
#
#    <details><summary>Answer</summary>
#
#    A key is rotated by its own position, which does not change. Only the new token's query and key have to
#    be rotated.
#
#    </details>
#
# ## What to read next
#
# This is the last chapter. From here,
#
# - read [Attention Is All You Need](https://arxiv.org/abs/1706.03762) (Vaswani et al. 2017): no equation of it is new to you;
# - read a model that people use, such as `modeling_llama.py` of Hugging Face's `transformers`, or
#   [nanoGPT](https://github.com/karpathy/nanoGPT), which trains GPT-2;
# - look further inside with
#   [A Mathematical Framework for Transformer Circuits](https://transformer-circuits.pub/2021/framework/index.html) (Elhage et al. 2021);
# - go on in the book with post-training, which makes an assistant of a language model;
# - or train on something of your own: [a task of your own](../docs/own-task.md) is one file.
