# %% [markdown] tags=["more"]
# # 9 · Looking inside
#
# Section 8.9 (2025-26 drafts); of the August 2026 draft 10.3 and 10.6
#
# Read the activations of a trained model, change them, and find heads with a specific function.
#
# A made-up name comes for the second time, and after its first letters a Transformer completes it. Which part of it
# knows how? You will be able to read and replace any tensor of a forward pass; follow the residual stream with the
# logit lens; and train a model in which induction heads arise, find them by a score, and show what breaks without
# them. Read first: [One matrix X](03_one_matrix.py) and [Training](07_training.py). About 55 minutes.

# %% [markdown]
# ## A model to look into
#
# A model of three blocks is trained to predict the next character, on the beginning of *Moby-Dick*.

# %%
import torch

from slp_transformer import TransformerConfig, TransformerLM, plotting
from slp_transformer.data import load_moby_dick, train_tokenizer
from slp_transformer.training import train

torch.set_num_threads(1)  # models this small are fastest on one core
text = load_moby_dick()
tokenizer = train_tokenizer([text], token_type="characters")
stream = torch.tensor(tokenizer.encode(text))
learned, held_out = stream[: len(stream) * 9 // 10], stream[-13_000:]

# %%
torch.manual_seed(0)
model = TransformerLM(TransformerConfig(tokenizer.vocab_size, 64, 64, 4, 3))
for W in model.embedding.parameters():
    W.data *= 5  # as in chapter 5
how = {
    "steps": 700,
    "eval_interval": 700,
    "batch_size": 12,
    "learning_rate": 5e-3,
}
record = train(model, learned, held_out, **how)[-1]
print(f"{record.val_loss:.2f} nats a character")

# %% [markdown]
# ## Points
#
# The book gives each step of a block a letter: T¹ to T⁵, and H. Here each is a *point* of the forward pass at which you
# can look in (a hook point, in other libraries): `1.T2` is T² of block 1; on this page, blocks and heads are counted
# from 0. Each head has points of its own: Q, K, V, its scores (scaled, before the mask), its weights α and its output.
# A point does nothing until you ask. Inside `patch_activations` all of them can be read:

# %%
from slp_transformer.interpret import patch_activations

line = "the harpooneer and the whale, "
ids = torch.tensor(tokenizer.encode(line))
with torch.no_grad(), patch_activations(model) as seen:
    U = model(ids)
T3 = seen["1.T2"] + seen["1.X"]  # (8.42)
torch.testing.assert_close(seen["1.T3"], T3)
for name in seen:
    if name.startswith("1."):
        print(f"{name:8} {list(seen[name].shape)}")

# %%
from slp_transformer.hooks import HookedModule

plotting.show_source(HookedModule.hook_point)

# %% [markdown]
# Activations can be changed, too: a function takes an activation and returns the one to use instead. Here the attention
# of block 0 adds nothing to the stream, then that of block 1; then its second head outputs zeros. This is called
# *ablation*. Which will hurt?

# %%
from slp_transformer.interpret import zero_ablate
from slp_transformer.training.evaluation import mean_loss

before, without = mean_loss(model, held_out, 64), []
for l in (0, 1):
    with patch_activations(model, patches={f"{l}.T2": lambda T2: 0 * T2}):
        without.append(mean_loss(model, held_out, 64))
with patch_activations(model, patches={"1.head": zero_ablate(1)}):
    no_head = mean_loss(model, held_out, 64)
assert mean_loss(model, held_out, 64) == before  # nothing is left
assert without[0] > without[1] + 0.1
print(f"{before:.3f} nats; without block 0's attention {without[0]:.3f},")
print(f"without block 1's {without[1]:.3f}, its second head {no_head:.3f}")

# %% [markdown]
# Block 0's attention matters, block 1's hardly. Afterwards the model is as before, bit for bit.

# %% [markdown]
# ## What heads look at
#
# Chapters 1 to 4 drew attention for vectors made by hand. These weights were learned. A simple pattern is to attend
# to the previous token; a head's score is its mean weight there, over 100 windows of the validation text. In which
# block would you look for such a head?

# %%
from slp_transformer.interpret import previous_token_score

windows = held_out[: 64 * 100].view(100, 64)
with torch.no_grad(), patch_activations(model) as seen:
    model(windows)
scores = [previous_token_score(seen[f"{l}.alpha"]) for l in range(3)]
for l in range(3):
    print(f"block {l}:", *(f"{score:.2f}" for score in scores[l].tolist()))
even = sum(1 / (i + 1) for i in range(1, 64)) / 63
print(f"uniform weights: {even:.2f}")
plotting.show_source(previous_token_score)

# %% alt="Two heat maps of attention weights over the characters of 'the harpooneer'. Left, the head with the highest score, whose weights lie mostly one place below the diagonal, on the character before. Right, the head with the lowest, whose weights lie elsewhere." caption="Two heads on real text"
table = torch.stack(scores)
best, least = table.argmax().item(), table.argmin().item()
with torch.no_grad(), patch_activations(model) as seen:
    model(ids[:14])
panels = []
for place in (best, least):
    l, c = divmod(place, 4)
    labels = {"rows": line[:14], "columns": line[:14], "decimals": None}
    alpha, name = seen[f"{l}.alpha"][c], f"block {l}, head {c}"
    panels.append(plotting.Panel(alpha, name, top=1, **labels))
plotting.panels(*panels)

# %% [markdown]
# The pattern is in block 0, above all in one head; which one depends on the seed. The blocks above score about what
# uniform weights do.
#
# ## The residual stream, sublayer by sublayer
#
# The stream begins as X and each sublayer adds to it: T² by attention, T⁵ by the feedforward layer. Which of the six
# writes most? Here is the mean norm of what each adds, and of the stream that it is added to:

# %%
with torch.no_grad(), patch_activations(model) as seen:
    model(windows)
for l in range(3):
    for name, to, wrote in (("attention", "X", "T2"), ("FFN", "T3", "T5")):
        length = seen[f"{l}.{to}"].norm(dim=-1).mean()
        added = seen[f"{l}.{wrote}"].norm(dim=-1).mean()
        print(f"block {l} {name:9}: {added:5.2f} added to {length:5.2f}")

# %% [markdown]
# The *logit lens* asks what the model would say if the stream ended here. It multiplies an inner row by
# $\mathbf E^\top$, as [(8.46)](05_language_model.py#eq-logits) does the last one. What would it say of X itself,
# which no block has read?
#
# <span class="eq" id="eq-logit-lens">logit-lens · prose of 8.9.2 · prose of 10.3</span>
#
# $$
# \mathbf u=\mathbf h^\ell_i\,\mathbf E^\top
# $$

# %%
from slp_transformer.interpret import logit_lens, residual_stream

by_sublayer = residual_stream(model, windows[:, :-1])
top = logit_lens(model, by_sublayer["2.H"])
torch.testing.assert_close(top, model(windows[:, :-1]))
plotting.show_source(logit_lens)

# %% [markdown]
# <div class="admonition note" markdown="0"><p class="admonition-title">Where the code leaves the book</p><p>The book's text does not mention the final layer norm here. The last layer's stream is read through it, though, so many who use the lens apply it at every layer; without it the rows have norms unlike those that the head met in training. Below are both.</p></div>

# %% alt="Loss of the logit lens over the sublayers passed, with and without the final norm, and a dashed line for a uniform guess at 4.3. Both fall steeply where block 0's feedforward layer has written, and little after it; the curve without the norm stays above the other there." caption="The loss of the logit lens, sublayer by sublayer"
from slp_transformer.loss import next_token_loss

curves = {}
for name, norm in (("with the final norm", True), ("without", False)):
    curves[name] = []
    for H in by_sublayer.values():
        U = logit_lens(model, H, final_norm=norm)
        curves[name].append(next_token_loss(U, windows[:, 1:]).item())
for name, values in curves.items():
    print(f"{name}:", *(f"{value:.2f}" for value in values))
levels = {"uniform guess": torch.tensor(tokenizer.vocab_size).log().item()}
print(f"uniform guess: {levels['uniform guess']:.2f}")
axes = {"x": "sublayers passed", "y": "nats per character"}
plotting.lines(curves, levels=levels, **axes)

# %% [markdown]
# At the bottom the lens with the norm is far worse than a uniform guess. Since E is tied, a row of X resembles the
# row of its own character in E, so the lens predicts the token that was just read. The loss falls mainly at the
# feedforward layer of block 0, which also writes the longest rows; the four sublayers after it change it little.
#
# One line, character by character: the probability that each inner row gives to the character that
# actually follows.

# %% alt="Heat map of seven places in the stream by the characters of a line: the probability of the character that follows. The two rows before block 0's feedforward layer are nearly empty. From there on, the h and e of the, the d of and, and the spaces after them get much of it, and rows differ little." caption="The probability of the next character, layer by layer"
line = "the harpooneer and the whale, "
ids = torch.tensor(tokenizer.encode(line))
places, rows = residual_stream(model, ids[:-1]), []
for H in places.values():
    y = torch.softmax(logit_lens(model, H), dim=-1)
    rows.append(y.gather(-1, ids[1:, None]).squeeze(-1).detach())
names = ["X"] + [place.replace("T3", "T³") for place in list(places)[1:]]
follows = [c.replace(" ", "␣") for c in line[1:]]
plotting.heatmap(torch.stack(rows), names, follows, top=1, decimals=None)

# %%
for name, H in zip(names, places.values(), strict=True):
    guess = tokenizer.decode(logit_lens(model, H).argmax(dim=-1).tolist())
    print(f"{name:4} {guess.translate({10: '⏎', 32: '␣'})}")
print(f"true {''.join(follows)}")

# %% [markdown]
# ## Induction heads
#
# <span class="eq" id="eq-induction">induction · prose of 8.9.1 · prose of 10.6</span>
#
# *Mrs. Fezziwig … Mrs. Fez*: anyone who has read the name once can complete it. The rule is A B … A → B: find where
# this token occurred before, and predict what came after it. (In the book's softer form, `A* B* … A → B`, the earlier
# pair need only be similar.) A head that does so is an *induction head*. It needs a partner in a block below: a head
# that attends to the previous token and writes what it read, so that each token's row also says which token came
# before it.
#
# To see them form, we make sequences that only the rule can predict. Each has a secret order: a random permutation that
# says which token follows which. Seven times in ten the next token obeys it, else it is random. No order comes twice,
# so nothing can be memorized. The loss counts only pairs that the sequence has already shown once.

# %%
V, N = 24, 32


def follow(after, generator):
    size = (len(after), N + 1)
    jumps = torch.rand(size, generator=generator) < 0.3
    chance = torch.randint(V, size, generator=generator)
    ids = chance[:, :1]
    for i in range(1, N + 1):
        next_ids = after.gather(1, ids[:, -1:])
        where = slice(i, i + 1)
        next_ids = torch.where(jumps[:, where], chance[:, where], next_ids)
        ids = torch.cat([ids, next_ids], dim=1)
    return ids


# %%
from slp_transformer.loss import IGNORE_INDEX


def rule_targets(ids, after):
    # Is token i + 1 the one that follows token i in this order?
    kept = after.gather(1, ids[:, :-1]) == ids[:, 1:]
    # Are tokens i and j the same?
    same = ids[:, :-1, None] == ids[:, None, :-1]
    # Did an earlier token like this one already have its follower after it?
    before = (same & kept[:, None]).tril(-1).any(dim=-1)
    return ids[:, 1:].masked_fill(~(kept & before), IGNORE_INDEX)


# %%
from slp_transformer.data.batches import Batch


class Orders:  # the three methods that `train` needs of any data
    def draw(self, batch_size, generator):
        after = torch.rand(batch_size, V, generator=generator).argsort(-1)
        ids = follow(after, generator)
        return Batch((ids[:, :-1],), rule_targets(ids, after))

    def iter_eval(self, batch_size):
        yield self.draw(200, torch.Generator().manual_seed(99))

    def fingerprint(self):
        return {"orders": V}


# %% [markdown]
# Two blocks of two heads, with matrices that start larger than GPT-2's, and embeddings even more so. Will the rule be
# learned little by little, or all at once?

# %% alt="Loss over 1,400 steps, with a dashed line for a uniform guess at 3.18. It falls slowly at first, then steeply, and slowly again." caption="The loss while induction arises"
torch.manual_seed(0)
finder = TransformerLM(TransformerConfig(V, N, 64, 2, 2))
for W in finder.stack.parameters():
    W.data *= 6 if W.dim() == 2 else 1
for W in finder.embedding.parameters():
    W.data *= 25
how = {"steps": 1400, "eval_interval": 100, "learning_rate": 3e-3}
records = train(finder, Orders(), Orders(), **how)
points = [(r.step, r.val_loss) for r in records]
print(*(f"{loss:.2f}" for _, loss in points))
levels = {"uniform guess": torch.tensor(24.0).log().item()}
plotting.lines({"loss": points}, x="step", y="nats", levels=levels)

# %% [markdown]
# For several hundred steps little happens. Then, within [two hundred](../benchmarks/results/chapter_seeds/README.md),
# the loss falls steeply. What has formed?
#
# ### Found by their score
#
# Now we use sequences of another kind than in training: 16 different tokens in random order, and the same 16
# again. In the first half each token that has not been used yet is as likely as the others; in the second,
# the rule gives every token but the first.

# %%
import torch.nn.functional as F

from slp_transformer.interpret import induction_score, repeated_tokens

luck = torch.Generator().manual_seed(1)
ids = repeated_tokens(V, 16, batch_size=200, generator=luck)


@torch.no_grad()
def loss_by_position():
    U = finder(ids)
    each = F.cross_entropy(U[:, :-1].mT, ids[:, 1:], reduction="none")
    return each.mean(dim=0)


# %% alt="The loss over the positions of a sequence in which the second 16 tokens repeat the first. The first time it is far above a uniform guess, the second time almost 0." caption="The loss at each position of a sequence that repeats"
by_position = loss_by_position()
first, second = by_position[:15].mean(), by_position[16:].mean()
print(f"first time {first:.3f}, second {second:.3f}")
print(f"uniform guess: {levels['uniform guess']:.3f}")
axes = {"x": "position", "y": "nats"}
plotting.lines({"loss": by_position}, levels=levels, **axes)

# %% [markdown]
# The model has the rule. (The first time it does worse than a uniform guess: in training such tokens did not
# count in the loss, so nothing asked it to be unsure about them.)

# %%
with torch.no_grad(), patch_activations(finder) as seen:
    finder(ids)
for l in range(2):
    alpha = seen[f"{l}.alpha"]
    back, found = previous_token_score(alpha), induction_score(alpha, 16)
    for c in range(2):
        scores = f"one back {back[c]:.2f}, induction {found[c]:.2f}"
        print(f"block {l}, head {c}: {scores}")
even = torch.ones(1, 32, 32).tril() / torch.arange(1, 33)[:, None]
back, found = previous_token_score(even), induction_score(even, 16)
print(f"uniform weights: one back {back[0]:.2f}, induction {found[0]:.2f}")
plotting.show_source(induction_score)

# %% alt="Two heat maps of attention weights over 32 tokens, the second 16 repeating the first. In block 0 the weights lie one place below the diagonal. In block 1, in the second half, they lie on a line 15 places below it: on the token that came after this one the first time." caption="The two kinds of heads, on a sequence that repeats (Fig. 8.20)"
one = ids[0].tolist()
panels = []
for l in range(2):
    alpha = seen[f"{l}.alpha"][0].mean(dim=0)
    labels = {"rows": one, "columns": one, "decimals": None}
    name = f"block {l}, mean of its heads"
    panels.append(plotting.Panel(alpha, name, top=1, **labels))
plotting.panels(*panels)

# %% [markdown]
# Both heads of block 0 attend to the previous token, both of block 1 to what came after this token the first time,
# [with other seeds](../benchmarks/results/chapter_seeds/README.md), too. That is the pair that the book draws in
# Fig. 8.20. Now for one token. Those at positions 2 and 3 come again at 18 and 19. Where does the one at 19 attend?
# On the site, choose those at 18 and at 5 in [Figure](#fig-induction) as well: the one at 5 is met for the first
# time, and finds nothing to copy.

# %% alt="Four tokens of the first time, at places 2 to 5, and two of the second, at places 18 and 19. From the token at place 19 the strongest line leads to place 4: to what came after the same token the first time." caption="An induction head: the token that came again looks at what came after it the first time" figure="induction"
picked = [2, 3, 4, 5, 18, 19]
alpha = seen["1.alpha"][0].mean(dim=0)[picked][:, picked]
names = [f"{one[place]} at {place}" for place in picked]
flows = {}
for i in (3, 4, 5):
    j = alpha[i].argmax()
    says = f"{names[i]} attends to {names[j]}: {alpha[i, j]:.2f}."
    flows[names[i]] = plotting.flow(alpha, names, names, row=i), says
print(says)
plotting.interactive_steps("Token", flows, start=2)

# %% [markdown]
# ### Ablated
#
# A score says what a head attends to, not that it matters. So we ablate heads, one at a time and both of
# a block, and measure the loss on the second half. Watch where the repeat begins, at position 16: does the loss
# still drop there?


# %%
def without(changes):
    with patch_activations(finder, patches=changes):
        return loss_by_position()


lost = {"nothing": without({})}
for l in range(2):
    for c in range(2):
        lost[f"block {l}, head {c}"] = without({f"{l}.head": zero_ablate(c)})
    lost[f"block {l}, both"] = without({f"{l}.head": zero_ablate()})
for name, each in lost.items():
    print(f"{name:15} {each[16:].mean():.2f}")

# %% alt="The loss at each position without both heads of block 0 and, for comparison, with all heads. The first time both are far above a uniform guess. The second time, the loss is almost 0 with all heads, and about 6 without these two, below the first time but far above a uniform guess." caption="The loss at each position when heads are ablated"
states = {}
for name, each in lost.items():
    says = f"Ablated: {name}. {each[16:].mean():.2f} nats on the repeat."
    both = {"all heads": lost["nothing"], "ablated": each}
    states[name] = plotting.lines(both, levels=levels, **axes), says
plotting.interactive_steps("Ablated", states, start=3)

# %% [markdown]
# Without one head the loss still drops at the repeat: the block's other head [can do much of the
# work](../benchmarks/results/chapter_seeds/README.md). Without both heads of a block it stays above a uniform guess.
# Induction takes a pair, and each block holds one half of it.
#
# ### Two circuits
#
# A head has four matrices, but they act in pairs (Elhage et al. 2021). One pair decides where a head
# attends, and the other what it writes when it does:
#
# $$
# \mathbf W_{QK}=\mathbf W^{Qc}\,(\mathbf W^{Kc})^\top
# \qquad
# \mathbf W_{OV}=\mathbf W^{Vc}\,\mathbf W^{Oc}
# $$
#
# Both are [d×d]; $\mathbf W^{Oc}$ is the head's own rows of $\mathbf W^O$ (in chapter 3, $\mathbf W^O_c$). With the
# book's row vectors, tokens multiply from the left: token i scores token j by
# $\mathbf x_i\mathbf W_{QK}\mathbf x_j^\top$ (before the division by $\sqrt{d_k}$), and a token with weight 1 adds
# $\mathbf x_j\mathbf W_{OV}$ to the stream. (The paper writes columns, so its $W_OW_V$ is the transpose.)

# %%
from slp_transformer.interpret import (
    circuit_in_vocabulary,
    ov_circuit,
    qk_circuit,
)

mha, T1 = finder.stack.blocks[1].attention, seen["1.T1"][0]
by_circuit = T1 @ qk_circuit(mha, 0) @ T1.T / mha.key_dim**0.5
by_head = seen["1.Q"][0, 0] @ seen["1.K"][0, 0].T / mha.key_dim**0.5
torch.testing.assert_close(by_circuit, by_head, rtol=1e-4, atol=1e-4)
plotting.show_source(qk_circuit, ov_circuit, circuit_in_vocabulary)

# %% [markdown]
# An induction head copies: what it writes for a token should raise the logit of that token. From token to
# token, its OV circuit is $\mathbf E\,\mathbf W_{OV}\,\mathbf E^\top$, [|V|×|V|], and copying shows on the
# diagonal. (The code first puts E through the block's layer norm, since that norm is what the head reads through.)

# %% alt="Heat map of the first 16 of 24 tokens: what the two heads of block 1 write for each token. The diagonal stands out: most tokens raise themselves more than any other." caption="What the heads of block 1 write for each token"
E = finder.embedding.tokens.E.detach()
reads = finder.stack.blocks[1].norm_1(E).detach()
both = sum(ov_circuit(mha, c) for c in range(2)).detach()
words = reads @ both @ E.T  # through the layer norm
right = (words.argmax(dim=-1) == torch.arange(V)).float().mean()
print(f"{right:.0%} of the tokens raise themselves more than any other,")
print(f"{1 / V:.0%} by chance")
title = "E W_OV Eᵀ, both heads, the first 16 tokens"
plotting.heatmap(words[:16, :16], title=title, decimals=None)

# %% [markdown]
# ## Try it
#
# 1. Replace block 0's attention weights on one line by those on another line of the same length:
#
#    ```python
#    lines = "the harpooneer and the whale, ", "and the old captain said to me"
#    ids, other = (torch.tensor(tokenizer.encode(line)) for line in lines)
#    with patch_activations(model) as seen:
#        model(other)
#    with patch_activations(model, patches={"0.alpha": seen["0.alpha"]}):
#        print(next_token_loss(model(ids)[:-1], ids[1:]))
#    ```
#
#    What changes? And in block 1, or block 2?
#
#    <details><summary>What happens</summary>
#
#    Each token now reads from the positions that mattered in the other line, and the loss on this line rises,
#    over seeds 0 to 2 by 0.14 to 0.31 nats. With the same change in block 1 or 2 it rises by at most 0.03.
#
#    </details>
#
# 2. Train `finder` with one block (`num_blocks`). Does the loss fall as before? (Later cells look into block 1, so
#    they stop.)
#
#    <details><summary>What happens</summary>
#
#    No. With a single block, no lower block can record which token came before.
#
#    </details>
#
# 3. Draw the 16 tokens with replacement: `first = torch.randint(V, (200, 16), generator=luck)` and
#    `ids = first.repeat(1, 2)`. What happens to the loss on the repeats, and at which tokens?
#
#    <details><summary>What happens</summary>
#
#    It rises, in one run from 0.003 to 1.00 nats. Hardly a sequence has 16 different tokens now. At 46% of the
#    positions, the current token has already been followed by two or more different tokens, so the rule has no
#    single answer: there the loss is 2.19. At the others it is 0.003, as before.
#
#    </details>

# %% [markdown]
# ## To remember
#
# - Every step has a letter, by which its activation can be read or replaced; afterwards the model is unchanged.
# - The logit lens reads an inner row as if it were the last one, usually through the final norm.
# - An induction head finds an earlier occurrence of the current token and copies what came after it; it needs a
#   head in a lower block that attends to the previous token.
# - A score says where a head attends; only an ablation says whether it matters.
# - A head is two matrices: $\mathbf W_{QK}$ says where it looks, $\mathbf W_{OV}$ what it writes.

# %% [markdown]
# ## Test yourself
#
# 1. On a sequence of period 16, where does an induction head attend at position 20?
#
#    <details><summary>Answer</summary>
#
#    To position 5: the same token was at 4, and 5 comes after it.
#
#    </details>
#
# 2. Why does the lens, applied to X, predict the character that was just read?
#
#    <details><summary>Answer</summary>
#
#    E is tied, so each logit is the product of the character's row with a row of E. With itself this is a sum of
#    squares, with any other random row about 0. (The position in X is only a small addition.)
#
#    </details>
#
# 3. A head puts most of its weight on the token before. Does the model need it?
#
#    <details><summary>Answer</summary>
#
#    The attention pattern cannot say. Ablate the head and see by how much the loss rises.
#
#    </details>
#
# Next: [Encoder and decoder](10_encoder_decoder.py), where a second stack reads another text, and attention
# connects the two.
