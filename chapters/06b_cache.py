# %% [markdown] tags=["more"]
# # 6b · The key-value cache
#
# Sections 8.8 (2025-26 drafts) and 7.8 (August 2026 draft)
#
# Compute each key and each value once, and get the same text faster.
#
# To read its 60th character, the model of this page makes 6,958,080 multiplications. How many of them does it need? You
# will be able to compute one head token by token with a cache; explain why a cache leaves the output unchanged; count
# what it saves and the memory it takes; and let a small model draft for a large one. Read first:
# [Decoding](06_decoding.py). About 40 minutes.

# %% [markdown]
# ## One head, token by token
#
# Each step of decoding reads nearly the same text as the step before. Do we have to compute all of it
# again? For the new token i, attention needs the query of this token only, but the keys and values of
# all tokens up to i:
#
# <span class="eq" id="eq-kv-attn">kv-attn · 8.53 · 7.59</span>
#
# $$
# \mathbf A=\mathrm{softmax}\left(\frac{\mathbf Q\mathbf K^\top}{\sqrt{d_k}}\right)\mathbf V
# \tag{8.53 · 7.59}
# $$
#
# Here Q is a single row, $\mathbf q_i$ [1×d_k], while K is [i×d_k] and V is [i×d_v]. All rows of K and V except the
# last were computed at earlier steps, so we keep them. Below, one head of a model does this; the model learns a
# thousand characters of *Moby-Dick* by heart, in some seconds.

# %%
import torch

from slp_transformer import TransformerConfig, TransformerLM, plotting
from slp_transformer.data import load_moby_dick, train_tokenizer
from slp_transformer.training import train

torch.set_num_threads(1)  # a model this small is fastest on one core
text, N = load_moby_dick(), 96
text = text[text.index("Call me") :][:1000]
tokenizer = train_tokenizer([text], token_type="characters")
stream, vocab_size = torch.tensor(tokenizer.encode(text)), tokenizer.vocab_size


# %%
def trained(d, L, steps):
    torch.manual_seed(6)
    model = TransformerLM(TransformerConfig(vocab_size, N, d, num_blocks=L))
    how = {"steps": steps, "eval_interval": steps, "batch_size": 8}
    record = train(model, stream, stream, learning_rate=5e-3, **how)[-1]
    print(f"d = {d}, L = {L}: {record.val_loss:.2f} nats per character")
    return model.requires_grad_(False)


d, L = 64, 2
model, ids = trained(d, L, 500), stream[400:460]

# %%
from slp_transformer import next_word_probabilities

block = model.stack.blocks[0]
head = block.attention.heads[0]
T1 = block.norm_1(model.embedding(ids))  # the head's input
K, V, rows = [], [], []
for t_i in T1:
    q_i = t_i @ head.W_Q
    K.append(t_i @ head.W_K)  # one new key, one new value
    V.append(t_i @ head.W_V)
    scores = torch.stack([q_i @ k_j for k_j in K]) / len(q_i) ** 0.5
    alpha = next_word_probabilities(scores)  # a softmax
    rows.append(sum(a * v_j for a, v_j in zip(alpha, V, strict=True)))

# %% [markdown]
# Where is the mask? The cache contains no future tokens, so there is nothing to hide. The rows agree with
# [(8.33)](03_one_matrix.py#eq-head-par), which computes all of them at once with a mask:

# %%
from slp_transformer import causal_mask
from slp_transformer.attention import attention

Q, K, V = T1 @ head.W_Q, T1 @ head.W_K, T1 @ head.W_V
all_at_once, _ = attention(Q, K, V, causal_mask(len(ids)))
torch.testing.assert_close(torch.stack(rows), all_at_once)

# %% [markdown]
# This is the step for the fifth token (Fig. 8.18 · 7.23): one query meets five keys, and one row of
# weights mixes five values. Here d_k = d_v, and the figures show three of the columns. Go back to the
# first token and forward again: the cache grows by one key a token, and the others stay as they are.

# %% alt="The query of the fifth token, 1 by d_k, times five keys as columns, d_k by 5, gives its five scores, divided by the root of d_k." caption="One query meets the cached keys: the scores of the fifth token" figure="cached-keys"
few, states = slice(0, 3), {}
for i in range(1, 6):
    q_i, keys, places = Q[i - 1 : i], K[:i], range(1, i + 1)
    scores = q_i @ keys.T / len(q_i[0]) ** 0.5
    parts = (
        plotting.Panel(q_i[:, few], "q …", "1 × dₖ", top=2),
        "×",
        plotting.Panel(keys.T[few], "Kᵀ …", f"dₖ × {i}", None, places, 2),
        "→",
        plotting.Panel(scores, "scores", f"1 × {i}", top=9),
    )
    says = f"Token {i} computes one key; the cache has the other {i - 1}."
    states[i] = plotting.panels(*parts), says
plotting.interactive_steps("Token", states, start=4)

# %% alt="The weights of the fifth token, 1 by 5, times five values, 5 by d_v, give its result, 1 by d_v." caption="One row of weights mixes the cached values" figure="cached-values"
keys, values = K[:5], V[:5]
alpha = torch.softmax(Q[4:5] @ keys.T / keys.shape[1] ** 0.5, dim=-1)
a_5 = alpha @ values
torch.testing.assert_close(a_5[0], all_at_once[4])
v_panel = plotting.Panel(values[:, few], "V …", "5 × dᵥ", rows=range(1, 6))
out_panel = plotting.Panel(a_5[:, few], "a₅ …", "1 × dᵥ")
plotting.panels(
    plotting.Panel(alpha, "α₅", "1 × 5", top=1), "×", v_panel, "=", out_panel
)

# %% [markdown]
# ## Why the old rows stay valid
#
# With a causal mask each token's row depends only on itself and earlier tokens. So whatever is written later, the
# earlier rows, and their keys and values, stay the same in every block:

# %%
from slp_transformer import record_activations

with record_activations(model) as short:
    model(ids[:20])
with record_activations(model) as long:
    model(ids)
for at_20, at_60 in zip(short, long, strict=True):
    torch.testing.assert_close(at_60["H"][:20], at_20["H"])

# %% [markdown]
# In an encoder, whose tokens also look ahead, every new token changes the rows of all others, and only the
# keys and values of the first block could be kept.
#
# ## A cache for the whole model
#
# A whole model needs such a cache in each attention layer: a
# <autoref identifier="slp_transformer.cache.KVCache">KVCache</autoref>. Room for all keys and values is set aside at
# the first token; each new row is written in its place, and the rows so far are read as a slice, so none is copied.

# %%
from slp_transformer import KVCache
from slp_transformer.cache import LayerCache

cache = KVCache(N)
parts = [ids[:20], *ids[20:50].split(1), ids[50:]]
U = torch.cat([model(part, cache=cache) for part in parts])
largest = (U - model(ids)).abs().max().item()
assert largest < 1e-5 * max(1.0, U.abs().max().item())
print(f"no logit differs by more than {largest:.0e}")
plotting.show_source(LayerCache.update)

# %% [markdown]
# A single query needs no mask. Several at once, like the 20 and the 10 tokens above, need the last rows of the causal
# mask. These are the rows of three new tokens, with nine in the cache:

# %% alt="A matrix of three rows, tokens 10 to 12, by twelve columns, tokens 1 to 12. All entries are 0 but three: minus infinity in the last two columns of the first row, and in the last column of the second." caption="The mask of three new tokens, with nine in the cache"
M = causal_mask(12)[9:]
plotting.heatmap(M, range(10, 13), range(1, 13), "M", "3 × 12", decimals=0)

# %% [markdown]
# The next token's position is `cache.length`, not 0. This model has 96 positions and no row for a 97th,
# so <autoref identifier="slp_transformer.generation.decoding.generate">generate</autoref> stops there and says why:

# %%
from slp_transformer import generate

prompt = ids[:16].tolist()
(full,) = generate(model, [prompt], temperature=0)
print(f"{len(full.ids)} tokens, ended by the {full.finish_reason}:")
print(tokenizer.decode(full.ids))
assert full.finish_reason == "window" and len(full.ids) == N
for row in generate(model, [prompt], temperature=0, cached=False):
    assert row.ids == full.ids  # the same characters without a cache

# %% [markdown]
# Give each new token the position 0 instead. That raises no error. What will it write?

# %%
embed = model.embedding.forward
model.embedding.forward = lambda ids, start=0: embed(ids, 0)
(broken,) = generate(model, [prompt], temperature=0)
model.embedding.forward = embed
print(tokenizer.decode(broken.ids))
assert broken.ids != full.ids

# %% [markdown]
# Prompts of a batch may have different lengths, and each text is the same as it would be alone:

# %%
prompts = [ids[:n].tolist() for n in (4, 9, 23)]
together = generate(model, prompts, 12, temperature=0)
alone = [generate(model, [p], 12, temperature=0)[0] for p in prompts]
assert together == alone

# %% [markdown]
# ## What it saves
#
# Count the multiplications. When n of T tokens are new, every matrix of the model multiplies n rows; every head
# compares n queries with T keys and mixes T values; and the language model head scores all words for as many rows as
# we ask for.


# %%
def multiplications(n, T, d, L, vocab_size, scored):
    matrices = 12 * L * d**2 * n  # chapter 5's count, for each row
    attending = 2 * L * n * T * d  # scores, and the weighted sum
    return matrices + attending + scored * d * vocab_size


# %% [markdown]
# PyTorch's own counter agrees to the last multiplication. (It counts the additions as well, hence the 2.) Now for the
# 60th token:

# %%
from torch.utils.flop_counter import FlopCounterMode

cache = KVCache(N)
model(ids[:-1], cache=cache)
for how, text in {"without": ids, "with": ids[-1:]}.items():
    used = cache if how == "with" else None
    with FlopCounterMode(display=False) as counter:
        with record_activations(model):  # so that all products are counted
            model(text, cache=used)
    n = len(text)
    count = multiplications(n, len(ids), d, L, vocab_size, scored=n)
    assert counter.get_total_flops() == 2 * count
    print(f"{how} a cache, the 60th token takes {count:,}")

# %% [markdown]
# One sixtieth is left. The rest had been computed before, or was masked. For a model of the size of GPT-2 (with or
# without a cache, only the last token is scored here):

# %% alt="Billions of multiplications for one more token over the tokens so far, up to 1,024. Without a cache the curve rises steeply, to a little over 100 at 1,024 tokens. With a cache it lies flat on the axis." caption="Multiplications for one more token, with a cache and without"
gpt2 = {"d": 768, "L": 12, "vocab_size": 50257, "scored": 1}
lengths = [1, *range(64, 1025, 64)]
without = [multiplications(T, T, **gpt2) / 1e9 for T in lengths]
with_one = [multiplications(1, T, **gpt2) / 1e9 for T in lengths]
print(f"at 1,024 tokens: {without[-1]:.1f} and {with_one[-1]:.3f} billion")
curves = {"without a cache": without, "with": with_one}
plotting.lines(curves, x="tokens so far", y="billions", at=lengths)

# %% [markdown]
# With a cache the new token still meets every key, so the cost of attention grows in proportion to the context. After
# how many tokens does it cost more than all the matrices together?

# %% alt="Billions of multiplications for one more token with a cache, over contexts up to 32,768 tokens. Matrices and head are a flat line a little above 0.1; attention rises in a straight line from 0, crosses it between 6,000 and 7,000 tokens and ends near 0.6." caption="Multiplications for one more token with a cache, in long contexts"
lengths = [1, *range(2048, 32769, 2048)]
rest = multiplications(1, 0, **gpt2) / 1e9
attending = [2 * 12 * T * 768 / 1e9 for T in lengths]
even = rest * 1e9 / (2 * 12 * 768)
print(f"attention costs as much as all else at {even:,.0f} tokens")
curves = {"attention": attending, "all else": [rest] * len(lengths)}
plotting.lines(curves, x="tokens so far", y="billions", at=lengths)

# %% [markdown]
# The price is memory: two rows of d numbers for each token and block. [Chapter 8](08_scale.py#what-the-cache-costs)
# counts it for published models.
#
# Multiplications are not seconds: in a model this small, each call has a fixed cost that no cache saves. What share of
# the time will be left? On the machine that ran this page:

# %%
from time import perf_counter

for name, cached in {"without a cache": False, "with a cache": True}.items():
    start = perf_counter()
    generate(model, [prompt] * 4, temperature=0, cached=cached)
    seconds = perf_counter() - start
    print(f"{name}: {seconds:.2f} seconds for four texts of {N} tokens")

# %% [markdown]
# ## A small model drafts, the large one checks
#
# With a cache, the model is still called once for each token. Speculative decoding (Leviathan et al. 2023; not in the
# book) calls it less often. A small model, the draft, proposes a few tokens; the large one reads them all in one call
# and checks them from left to right. If p is the large model's distribution and q the draft's, it accepts token x with
# probability min(1, p(x)/q(x)). The first rejected token is replaced by a draw from max(0, p − q), renormalized, and
# the tokens after it are discarded.
#
# The result has exactly the large model's distribution. Token x is drawn and accepted with probability q · min(1, p/q)
# = min(p, q). What is missing is p − min(p, q) = max(0, p − q): just what the replacement draws from. In numbers:

# %%
p = torch.tensor([0.5, 0.3, 0.2, 0.0])
q = torch.tensor([0.2, 0.6, 0.1, 0.1])
accepted = [q_x * min(1, p_x / q_x) for p_x, q_x in zip(p, q, strict=True)]
rest = (p - q).clamp(min=0)
replaced = (1 - sum(accepted)) * rest / rest.sum()
torch.testing.assert_close(torch.stack(accepted) + replaced, p)
print(f"{sum(accepted):.0%} of such a draft's tokens are accepted")

# %% [markdown]
# Our draft has one block of half the width, trained on the same text. At temperature 0 a token is accepted if it is
# the large model's own choice, so the text is the same. The draft proposes four tokens at a time; if all are right,
# the same call gives a fifth. So for 80 tokens 16 calls would be the fewest. How many does our draft need, and an
# untrained one?

# %%
draft = trained(32, 1, 500)
torch.manual_seed(6)
untrained = TransformerLM(draft.config).requires_grad_(False)
calls, counts = [], {}
model.register_forward_pre_hook(lambda *_: calls.append(1))
drafts = {"alone": None, "draft": draft, "untrained draft": untrained}
for name, one in drafts.items():
    calls.clear()
    (row,) = generate(model, [prompt], temperature=0, draft_model=one)
    assert row.ids == full.ids
    counts[name] = len(calls)
    print(f"{name}: {len(calls)} calls for {N - len(prompt)} tokens")
assert counts["draft"] < counts["untrained draft"]

# %% [markdown]
# ## Try it
#
# 1. In the loop over one head, forget the distant past: after the appends, cut `K` and `V` to their last
#    ten rows. Which rows will still be right?
#
#    <details><summary>What happens</summary>
#
#    The first ten, whose keys are all there. The assertion against [(8.33)](03_one_matrix.py#eq-head-par) fails for the rest.
#
#    </details>
#
# 2. Read the 60 tokens twice with the same cache. What happens at the second reading?
#
#    <details><summary>What happens</summary>
#
#    It takes them for tokens 61 to 120, and raises a `ValueError`, since there are only 96 positions. A
#    cache belongs to one text.
#
#    </details>
#
# 3. Right above the cell that measures times put `model = trained(256, L, 1)`, a model four times as wide;
#    one training step is enough. Does the cache save a larger or a smaller share of the time?
#
#    <details><summary>What happens</summary>
#
#    A larger one: the matrices, most of whose work the cache saves, now outweigh the fixed cost of each step,
#    which it does not save. (Single runs vary: about six tenths at width 64, and eight tenths at 256.)
#
#    </details>

# %% [markdown]
# ## To remember
#
# - A new token needs its own query, and the keys and values of all tokens so far.
# - With a causal mask, the rows of earlier tokens never change, so a cache of their keys and values leaves
#   the output unchanged, up to rounding.
# - With a cache a new token costs one row through the matrices, plus attention to all cached keys.
# - The price is memory: two rows of d numbers for each token and block.
# - A small model can draft tokens for the large one to check, several in one call.

# %% [markdown]
# ## Test yourself
#
# 1. Why is there no cache of queries?
#
#    <details><summary>Answer</summary>
#
#    A query is used once, for its own token's row. Later tokens read only keys and values.
#
#    </details>
#
# 2. Why can an encoder, whose tokens look both ways, not use such a cache while a text grows?
#
#    <details><summary>Answer</summary>
#
#    Each new token changes the rows of all earlier ones, in every block but the first, and with
#    them their keys and values. The cached ones would be out of date.
#
#    </details>
#
# 3. Twenty tokens are in the cache and five more come at once. What shape is their mask, and how many of
#    its entries are −∞?
#
#    <details><summary>Answer</summary>
#
#    [5 × 25]. The first of the five must not see the four after it, the second three, and so on:
#    4 + 3 + 2 + 1 = 10.
#
#    </details>
#
# Next: [Training](07_training.py), where a model learns all this in the first place.
