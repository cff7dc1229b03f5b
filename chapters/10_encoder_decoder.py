# %% [markdown] tags=["more"]
# # 10 · Encoder and decoder
#
# Chapter 9 and section 12.3 (2025-26 drafts), chapters 9 and 13 (August 2026 draft)
#
# Connect an encoder to a decoder, and watch the decoder learn where to look in the source.
#
# A model is to play a phrase of notes backwards, and nobody tells it how. Where will it look to write its first note?
# You will be able to say which tokens may attend to which in each of the three attentions; write cross-attention with
# loops and with matrices; batch sources of different lengths; and train an encoder-decoder whose attention you can
# predict. Read first: [The block](02_block.py) and [The input](04_input.py). About 70 minutes.

# %% [markdown]
# ## Left to right, or both ways
#
# A language model must not look ahead, since the next word is what it has to predict.
#
# <span class="eq" id="eq-causal">causal · 9.1 in the Aug 2026 draft</span>
#
# $$
# \mathbf{head}=\mathrm{softmax}\!\left(\mathrm{mask}\!\left(
# \frac{\mathbf Q\mathbf K^\top}{\sqrt{d_k}}\right)\right)\mathbf V
# \tag{9.1}
# $$
#
# A model that only reads does not need this restriction. In a sentence to be translated, or a lick (a short run
# of notes) to be played backwards, the whole source is known from the start. So the encoder drops the mask, and
# nothing else changes.
#
# <span class="eq" id="eq-bidirectional">bidirectional · chapter 9 · 9.2</span>
#
# $$
# \mathbf{head}=\mathrm{softmax}\!\left(
# \frac{\mathbf Q\mathbf K^\top}{\sqrt{d_k}}\right)\mathbf V
# \tag{9.2}
# $$
#
# With loops, the difference is in what a token may attend to: the tokens up to its own, or all of them.
# (Python counts from 0, so the tokens up to number $i$ are `[: i + 1]`.)

# %%
import copy
import math

import torch


def look(q_i, K, V):
    """One query's weights, and what it gathers with them."""
    scores = torch.stack([q_i @ k_j / math.sqrt(len(k_j)) for k_j in K])
    alpha_i = torch.softmax(scores, dim=0)
    return sum(a * v_j for a, v_j in zip(alpha_i, V, strict=True)), alpha_i


# %%
torch.manual_seed(10)
N, d_k, d_v = 5, 3, 2
Q, K, V = torch.randn(N, d_k), torch.randn(N, d_k), torch.randn(N, d_v)
causal = [look(Q[i], K[: i + 1], V[: i + 1])[0] for i in range(N)]
bidirectional = [look(Q[i], K, V)[0] for i in range(N)]

# %%
from slp_transformer import causal_mask, plotting
from slp_transformer.attention import attention

M = causal_mask(N)
torch.testing.assert_close(attention(Q, K, V, M)[0], torch.stack(causal))
both_ways, alpha = attention(Q, K, V)  # no mask
torch.testing.assert_close(both_ways, torch.stack(bidirectional))

F = torch.nn.functional
theirs = F.scaled_dot_product_attention(Q, K, V)
torch.testing.assert_close(both_ways, theirs)
plotting.show_source(attention)

# %% [markdown]
# Figs 9.2 and 9.3 of the August 2026 draft, drawn from these masks: first what is added to the scores,
# then which tokens may attend to which. Drop the mask, and the third output reads all five.

# %% alt="Two 5 by 5 masks side by side. The causal one is 0 on and below the diagonal and minus infinity above it; the bidirectional one is 0 everywhere." caption="A causal mask, and no mask"
plotting.panels(
    plotting.Panel(M, "causal", "N × N"),
    "→",
    plotting.Panel(torch.zeros(N, N), "bidirectional", "N × N"),
)

# %% alt="Causal flow: five inputs below, five outputs above; each output has lines to its own input and to those on its left. The third output, standing out, has three." caption="Which tokens may attend to which, with a causal mask and without a mask"
states = {}
for name, open_to in {"causal": M == 0, "none": torch.ones(N, N)}.items():
    says = f"Output 3 attends to {open_to[2].sum():.0f} of {N} inputs."
    states[name] = plotting.flow(open_to, row=2), says
plotting.interactive_steps("Mask", states)

# %% [markdown]
# The gradient confirms the arrows: does the first output change when the last value does?

# %%
V.requires_grad_(True)
for name, mask in [("causal", M), ("bidirectional", None)]:
    first = attention(Q, K, V, mask)[0][0]
    reach = torch.autograd.grad(first.sum(), V)[0][-1]
    print(
        f"{name}: the last value moves the first output at a rate of {reach[0]:.3f}"
    )
    assert bool(reach.any()) == (mask is None)

# %% [markdown]
# ## The loss of an encoder
#
# A model that sees the next word cannot be trained to predict it. So BERT (Devlin et al. 2019) masks some words, and
# predicts those. Here $M$ is the set of masked positions, not the mask, and $\mathbf h^L_i$ the last block's output
# at position $i$; the head is that of a language model.
#
# <span class="eq" id="eq-mlm-loss">mlm-loss · chapter 9 of both drafts</span>
#
# $$
# L_{MLM}=-\frac1{|M|}\sum_{i\in M}\log P(x_i\mid\mathbf h^L_i)
# $$
#
# Of ten words we replace two with an extra id, [MASK]. (BERT selects 15% of the words, leaves a few of these as they
# are, and replaces a few with other words.) Only the masked positions count: `next_token_loss`, like PyTorch, ignores
# those whose target is −100.

# %%
from slp_transformer import (
    TransformerStack,
    next_token_loss,
    sinusoidal_positions,
)

vocab_size, d = 12, 8
mask_id = vocab_size  # one more id
x = torch.randint(vocab_size, (10,))
M = [2, 7]
shown = x.clone()
shown[M] = mask_id

# %%
E = 0.1 * torch.randn(vocab_size + 1, d)
encoder = TransformerStack(1, d, num_heads=2)
U = encoder(E[shown] + sinusoidal_positions(10, d)) @ E.T  # no mask: both ways
by_hand = -sum(torch.log_softmax(U[i], dim=-1)[x[i]] for i in M) / len(M)

targets = torch.full_like(x, -100)
targets[M] = x[M]
torch.testing.assert_close(next_token_loss(U, targets), by_hand)
torch.testing.assert_close(F.cross_entropy(U, targets), by_hand)
print(f"untrained: {by_hand:.2f}; a uniform guess: {math.log(13):.2f}")

# %% [markdown]
# ## Cross-attention, a bridge between two stacks
#
# An encoder-decoder (Fig. 13.5) is two stacks. The encoder reads the source in both directions and
# returns one row for each of its $n$ tokens: $\mathbf H^{enc}$, $[n\times d]$. The decoder is a
# left-to-right language model of the target, of $m$ tokens so far; in every block it also attends to
# $\mathbf H^{enc}$. The queries come from the target, the keys and values from the source.
#
# <span class="eq" id="eq-cross-QKV">cross-QKV · section 12.3 · 13.11</span>
#
# $$
# \begin{aligned}
# \mathbf Q&=\mathbf H^{dec[\ell-1]}\mathbf W^Q\\
# \mathbf K&=\mathbf H^{enc}\mathbf W^K\\
# \mathbf V&=\mathbf H^{enc}\mathbf W^V
# \end{aligned}
# \tag{13.11}
# $$
#
# <span class="eq" id="eq-cross-attn">cross-attn · section 12.3 · 13.12</span>
#
# $$
# \mathrm{CrossAttention}(\mathbf Q,\mathbf K,\mathbf V)=
# \mathrm{softmax}\!\left(\frac{\mathbf Q\mathbf K^\top}{\sqrt{d_k}}\right)\mathbf V
# \tag{13.12}
# $$
#
# The weights are $[m\times n]$, a row for each target token. There is no causal mask: nothing in the source is the
# future.

# %% [markdown]
# ### By hand: a lick played backwards
#
# Our source is a lick of five notes, each named by its string and fret: `A7` is the A string at fret 7.
# The target is the same lick in reverse; we stop after its first three notes. Let an encoder row say
# at which position its note is (five columns) and which note it is (five more); let a decoder row say
# which position it wants next: the last, then the one before it, and so on.

# %%
lick = ["A5", "A7", "D5", "D7", "G5"]
m, n, d = 3, 5, 10
places, notes = torch.eye(n), torch.eye(n)
H_enc = torch.cat([places, notes], dim=1)
wanted = [4, 3, 2]  # places, counted from 0
H_dec = torch.cat([places[wanted], torch.zeros(m, 5)], dim=1)

W_Q = 9 * torch.eye(d)[:, :5]  # ask for the place wanted, loudly
W_K = torch.eye(d)[:, :5]  # be found by one's place
W_V = torch.eye(d)[:, 5:]  # pass on one's note
assert H_enc.shape == (n, d) and H_dec.shape == (m, d)

# %% [markdown]
# One target token at a time, with the same `look` as above, but with other keys and values.

# %%
heads, weights = [], []
for h_i in H_dec:  # each target token
    q_i = h_i @ W_Q
    K = [h_j @ W_K for h_j in H_enc]  # each source token
    V = [h_j @ W_V for h_j in H_enc]
    head_i, alpha_i = look(q_i, K, V)
    heads.append(head_i)
    weights.append(alpha_i)
    print(f"finds {lick[head_i.argmax()]} with weight {alpha_i.max():.2f}")

alpha = torch.stack(weights)
assert alpha.shape == (m, n)
assert alpha.argmax(dim=1).tolist() == wanted

# %% alt="Heat map of the weights, 3 target tokens by 5 source notes: 0.93 on the last source note, then on the fourth, then on the third, and 0.02 elsewhere; the dark cells run down from right to left." caption="Cross-attention by hand: each step finds the note that it wants"
Q, K, V = H_dec @ W_Q, H_enc @ W_K, H_enc @ W_V
head, alpha_all = attention(Q, K, V)
torch.testing.assert_close(head, torch.stack(heads))
torch.testing.assert_close(alpha_all, alpha)
torch.testing.assert_close(F.scaled_dot_product_attention(Q, K, V), head)
plotting.heatmap(alpha, ["G5", "D7", "D5"], lick, "α", "m × n", top=1)

# %% [markdown]
# Below, a model has to learn this diagonal by itself.

# %% [markdown]
# ## Many heads
#
# One function serves all three attentions of an encoder-decoder: it computes one token's attention over a *context*,
# which is the whole source (encoder), the target so far (decoder), or the encoder's output (across).


# %%
def gather(x_i, context, mha):
    heads = []
    for head in mha.heads:
        K = [c_j @ head.W_K for c_j in context]
        V = [c_j @ head.W_V for c_j in context]
        heads.append(look(x_i @ head.W_Q, K, V)[0])
    return torch.cat(heads) @ mha.W_O


# %%
from slp_transformer import MultiHeadAttention

torch.manual_seed(11)
m, n, d = 3, 5, 7
X, H_enc = torch.randn(m, d), torch.randn(n, d)
mha = MultiHeadAttention(d, num_heads=2, key_dim=3, value_dim=5)

loop = torch.stack([gather(x_i, H_enc, mha) for x_i in X])
out, alpha = mha(X, H_enc=H_enc, return_weights=True)
assert out.shape == (m, d) and alpha.shape == (2, m, n)
torch.testing.assert_close(out, loop)
torch.testing.assert_close(mha(X, H_enc=H_enc), loop)  # PyTorch's kernel
loop = [gather(X[i], X[: i + 1], mha) for i in range(m)]
torch.testing.assert_close(mha(X, causal=True), torch.stack(loop))

# %% [markdown]
# In the package, `project` computes keys and values from X, all in one product, or from `H_enc`.

# %%
plotting.show_source(MultiHeadAttention.project)

# %% [markdown]
# ## The decoder block
#
# The decoder's block (Fig. 13.6) is [chapter 2](02_block.py)'s with one sublayer more. It works like the others:
# normalize, compute, add.
#
# $$
# \begin{aligned}
# \mathbf T^1&=\mathrm{LayerNorm}(\mathbf X)&
# \mathbf T^2&=\mathrm{MHA}(\mathbf T^1)&
# \mathbf T^3&=\mathbf T^2+\mathbf X\\
# \mathbf C^1&=\mathrm{LayerNorm}(\mathbf T^3)&
# \mathbf C^2&=\mathrm{CrossAttention}(\mathbf C^1,\mathbf H^{enc})&
# \mathbf C^3&=\mathbf C^2+\mathbf T^3\\
# \mathbf T^4&=\mathrm{LayerNorm}(\mathbf C^3)&
# \mathbf T^5&=\mathrm{FFN}(\mathbf T^4)&
# \mathbf H&=\mathbf T^5+\mathbf C^3
# \end{aligned}
# $$
#
# The top and bottom rows are [(8.40, 7.41)](03_one_matrix.py#eq-T1) to [(8.45, 7.46)](03_one_matrix.py#eq-T-H), with
# $\mathbf C^3$ for $\mathbf T^3$. The middle row is new, and unnumbered in the book; for each head it makes the **Q**,
# **K** and **V** of [(13.11)](#eq-cross-QKV), and it ends with $\mathbf W^O$.


# %%
def decoder_block(block, X, H_enc):
    T1, H = block.norm_1(X), []
    for i in range(len(X)):  # one target token at a time
        t3 = X[i] + gather(T1[i], T1[: i + 1], block.attention)
        c1 = block.norm_cross(t3)
        c3 = t3 + gather(c1, H_enc, block.cross_attention)
        H.append(c3 + block.ffn(block.norm_2(c3)))
    return torch.stack(H)


# %%
from slp_transformer import TransformerBlock
from slp_transformer.block import forward_pre_norm

torch.manual_seed(12)
m, n, d, num_heads = 3, 5, 14, 2
X, H_enc = torch.randn(m, d), torch.randn(n, d)
block = TransformerBlock(d, num_heads, hidden_dim=11, cross_attention=True)
for W in block.parameters():
    torch.nn.init.normal_(W, std=0.5)  # norms and biases too

H = block(X, causal=True, H_enc=H_enc)
torch.testing.assert_close(H, decoder_block(block, X, H_enc))
plotting.show_source(forward_pre_norm)

# %% [markdown]
# <div class="admonition note" markdown="0"><p class="admonition-title">Where the code leaves the book</p><p>Equation <a href="#eq-cross-QKV">(13.11)</a> takes the queries from $\mathbf H^{dec[\ell-1]}$, which names the output of the block below. In the book's own figure of the block, the query is what the self-attention sublayer of the <em>same</em> block has left in the stream, $\mathbf T^3$ above. The code follows the figure, and normalizes it first, as each sublayer does. The original Transformer has the same three sublayers but normalizes after each addition: <code>norm="post"</code>.</p></div>

# %% [markdown]
# It matters: taking the queries from the block's input gives a different result.


# %%
def to_the_letter(block, X, H_enc):
    T3 = X + block.attention(block.norm_1(X), causal=True)
    C1 = block.norm_cross(X)  # the block below, as (13.11) writes it
    C3 = T3 + block.cross_attention(C1, H_enc=H_enc)
    return C3 + block.ffn(block.norm_2(C3))


apart = (to_the_letter(block, X, H_enc) - H).abs().max()
assert apart > 0.1
print(f"equation and figure differ by up to {apart:.1f} here")

# %% [markdown]
# PyTorch's decoder layer agrees. It is post-norm unless `norm_first=True`, stores each matrix transposed, the three
# of attention in one, and its attention has biases, which we set to 0.


# %%
@torch.no_grad()
def copy_attention(theirs, ours):
    W = torch.cat([ours.W_Q, ours.W_K, ours.W_V], dim=1)
    theirs.in_proj_weight.copy_(W.T)
    theirs.out_proj.weight.copy_(ours.W_O.T)
    theirs.in_proj_bias.zero_()
    theirs.out_proj.bias.zero_()


@torch.no_grad()
def copy_layer(theirs, weight, bias):
    theirs.weight.copy_(weight.T if weight.dim() == 2 else weight)
    theirs.bias.copy_(bias)


# %%
how = {"dim_feedforward": 11, "dropout": 0.0, "norm_first": True}
Layer = torch.nn.TransformerDecoderLayer
theirs = Layer(d, num_heads, batch_first=True, **how)
copy_attention(theirs.self_attn, block.attention)
copy_attention(theirs.multihead_attn, block.cross_attention)
copy_layer(theirs.linear1, block.ffn.W_1, block.ffn.b_1)
copy_layer(theirs.linear2, block.ffn.W_2, block.ffn.b_2)
copy_layer(theirs.norm1, block.norm_1.gamma, block.norm_1.beta)
copy_layer(theirs.norm2, block.norm_cross.gamma, block.norm_cross.beta)
copy_layer(theirs.norm3, block.norm_2.gamma, block.norm_2.beta)

torch.testing.assert_close(theirs(X, H_enc, tgt_mask=causal_mask(m)), H)

# %% [markdown]
# ## The whole model
#
# Stack the blocks, put the input of [chapter 4](04_input.py) below each stack and the tied head above the
# decoder. All decoder blocks attend to the same $\mathbf H^{enc}$, the *final* output of the encoder;
# encoder block 1 is not connected to decoder block 1.


# %%
def encoder_block(block, X):
    T1, H = block.norm_1(X), []
    for i in range(len(X)):
        t3 = X[i] + gather(T1[i], T1, block.attention)  # all of T1
        H.append(t3 + block.ffn(block.norm_2(t3)))
    return torch.stack(H)


def encoder_decoder(model, source, target):
    X = model.source_embedding(source)
    for block in model.encoder.blocks:
        X = encoder_block(block, X)
    H_enc = model.encoder.final_norm(X)
    return decode(model, H_enc, target)


# %%
def decode(model, H_enc, target):
    X = model.target_embedding(target)
    for block in model.decoder.blocks:
        X = decoder_block(block, X, H_enc)
    H = model.decoder.final_norm(X)
    return H @ model.target_embedding.tokens.E.T


# %% [markdown]
# In the package it is <autoref identifier="slp_transformer.encoder_decoder.EncoderDecoder">EncoderDecoder</autoref>,
# made from the same configuration as the language model.

# %%
from slp_transformer import EncoderDecoder, TransformerConfig

torch.manual_seed(13)
sizes = {"model_dim": 12, "num_heads": 3, "num_blocks": 2}
config = TransformerConfig(vocab_size=15, context_length=8, **sizes)
model = EncoderDecoder(config)
for W in model.parameters():
    torch.nn.init.normal_(W, std=0.5)

source, target = torch.tensor([3, 7, 4, 9, 5]), torch.tensor([1, 5, 9])
U = model(source, target)
assert U.shape == (3, 15)  # a score for each word after each target token
torch.testing.assert_close(U, encoder_decoder(model, source, target))
plotting.show_source(EncoderDecoder.encode, EncoderDecoder.decode)

# %% [markdown]
# ## Sources of different lengths
#
# A batch is one tensor, so short sources are padded with an id that means nothing, here `PAD`, 0. No token may
# attend to it, in the encoder or in cross-attention, so a mask hides it in both.

# %% alt="Mask of three sources in a batch of width 5: the row of the five-note source is all 0, that of the three-note source has minus infinity in its last two places, that of the two-note source in its last three." caption="The padding mask of three sources"
from torch.nn.utils.rnn import pad_sequence

from slp_transformer import padding_mask

PAD = 0
sources = [torch.tensor(ids) for ids in ([3, 7, 4, 9, 5], [8, 6, 3], [5, 4])]
batch = pad_sequence(sources, batch_first=True, padding_value=PAD)
mask = padding_mask(batch, PAD)
assert mask.shape == (3, 1, 5)  # the same for each query, hence the 1
rows = ["5 notes", "3 notes", "2 notes"]
plotting.heatmap(mask[:, 0], rows, range(1, 6), "padding mask", "batch × n")

# %% [markdown]
# Now the three attentions have all their masks. Here they are for the second source of this batch, three
# notes and two positions of padding, and for a target of two tokens and one position of padding. Rows are
# queries, columns are keys; a dot stands for padding.

# %% alt="Three masks side by side. Encoder, 5 by 5: the last two columns, the padding, are minus infinity in every row, the other columns 0. Decoder, 3 by 3: 0 on and below the diagonal but for the last column, which is padding and minus infinity throughout. Across, 3 by 5: again the last two columns are minus infinity in every row." caption="The masks of the three attentions, for a source and a target with padding"
hidden = padding_mask(batch[1], PAD)
target = torch.tensor([1, 3, PAD])
read, written = ["1", "2", "3", "·", "·"], ["1", "2", "·"]
in_encoder = hidden.expand(5, 5)
in_decoder = causal_mask(3) + padding_mask(target, PAD)
across = hidden.expand(3, 5)
plotting.panels(
    plotting.Panel(in_encoder, "encoder", "n × n", read, read),
    plotting.Panel(in_decoder, "decoder", "m × m", written, written),
    plotting.Panel(across, "across", "m × n", written, read),
)

# %% [markdown]
# For real tokens, the decoder's mask is the causal one: padding comes last, so it is in the future anyway. What a row of
# padding sees does not matter, since it does not count in the loss. So the target needs no padding mask.

# %%
assert torch.equal(in_decoder[:2], causal_mask(3)[:2])

# %% [markdown]
# A batch must give the same results as its sources one by one. Without the mask it does not, and there is no error
# message. Which of the three sources is unharmed?

# %%
targets = torch.tensor([[1, 5, 9], [1, 3, 6], [1, 4, 5]])
U = model(batch, targets, source_mask=mask)
for k in range(3):
    torch.testing.assert_close(U[k], model(sources[k], targets[k]))

forgotten = (model(batch, targets) - U).abs().amax(dim=(1, 2))
assert forgotten[0] < 1e-4 and forgotten[1:].min() > 0.01
for row, change in zip(rows, forgotten, strict=True):
    print(f"{row}: forgetting the mask moves logits by up to {change:.2f}")

# %% [markdown]
# ## Learning to play backwards
#
# Now we train a model on licks of three to seven notes, drawn from twelve (the A minor pentatonic box at the fifth
# fret), each to be written in reverse. Sketch the map of its cross-attention before you go on.

# %%
BEGIN, END = 1, 2
box = "E5 E8 A5 A7 D5 D7 G5 G7 B5 B8 e5 e8".split()  # E is low, e high
names = ["·", "begin", "end", *box]
chance = torch.Generator().manual_seed(14)


def random_lick():
    length = int(torch.randint(3, 8, (), generator=chance))
    return torch.randint(3, len(names), (length,), generator=chance)


# %%
def target_of(lick):
    return lick.flip(0)  # backwards


def spell(ids):
    return " ".join(names[i] for i in ids)


# %% [markdown]
# As in [chapter 7](07_training.py#teacher-forcing), the decoder reads the correct target, shifted by one.


# %%
def pad(rows):
    return pad_sequence(rows, batch_first=True, padding_value=PAD)


def make_batch(licks):
    begin, end = torch.tensor([BEGIN]), torch.tensor([END])
    reads = [torch.cat([begin, target_of(lick)]) for lick in licks]
    writes = [torch.cat([target_of(lick), end]) for lick in licks]
    return pad(licks), pad(reads), pad(writes)


source, reads, writes = make_batch([random_lick()])
print("encoder reads: ", spell(source[0]))
print("decoder reads: ", spell(reads[0]))
print("decoder writes:", spell(writes[0]))

# %% [markdown]
# One block in each stack and one head are enough.

# %%
torch.manual_seed(15)
torch.set_num_threads(1)  # the digits below depend on the order of sums
sizes = {"model_dim": 32, "num_heads": 1, "num_blocks": 1}
config = TransformerConfig(len(names), context_length=8, **sizes)
model = EncoderDecoder(config)
size = sum(W.numel() for W in model.parameters())
print(f"{size:,} parameters")

# %%
steps, losses, seen, models = 400, [], set(), {}
optimizer = torch.optim.Adam(model.parameters(), lr=0.006)
for step in range(steps):
    if step in (0, 50, 100, 200):
        models[step] = copy.deepcopy(model)  # to look at later
    licks = [random_lick() for _ in range(64)]
    seen.update(tuple(lick.tolist()) for lick in licks)
    source, reads, writes = make_batch(licks)
    U = model(source, reads, padding_mask(source, PAD))
    loss = F.cross_entropy(U.flatten(0, 1), writes.flatten(), ignore_index=PAD)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    optimizer.param_groups[0]["lr"] = 0.006 * (1 - (step + 1) / steps)
print(f"loss: {losses[0]:.2f} at first, {losses[-1]:.2f} at the end")

# %% alt="Training loss over 400 steps: from about 2.7 nats, which is a uniform guess among 15 tokens, down steeply and then slowly to almost 0." caption="The loss while the model learns to play backwards"
plotting.lines(
    {"training": losses},
    x="step",
    y="loss in nats per token",
    levels={"uniform guess": math.log(len(names))},
)

# %% [markdown]
# ## Writing an unseen lick
#
# When it generates, the model reads its own output, one token longer at each step. *Greedy* decoding
# always takes the most probable token. The encoder runs once.


# %%
@torch.no_grad()
def write(source):
    H_enc = model.encode(source)
    target = torch.tensor([BEGIN])
    while target[-1] != END and len(target) <= config.context_length:
        u = model.decode(target, H_enc)[-1]
        target = torch.cat([target, u.argmax().view(1)])
    return target[1:]


lick = torch.tensor([names.index(x) for x in "G7 A5 e8 D5 B5 E8 D7".split()])
assert tuple(lick.tolist()) not in seen
print(f"{spell(lick)}  →  {spell(write(lick))}")
assert write(lick).tolist() == [*target_of(lick).tolist(), END]

# %%
fresh = [random_lick() for _ in range(150)]
fresh = [other for other in fresh if tuple(other.tolist()) not in seen]
right = 0
for other in fresh:
    right += write(other).tolist() == [*target_of(other).tolist(), END]
share = right / len(fresh)
print(f"{share:.0%} of {len(fresh)} licks not met in training come out right")
assert share > 0.9

# %% [markdown]
# ## The alignment
#
# Where did it attend? Each row of the map is a step of the decoder, labeled with the token that it writes; each
# column is a note of the source. Step $i$ of a lick of $n$ notes should attend to note $n+1-i$, so the dark cells
# should run from the upper right to the lower left. On the site, go back in [Figure](#fig-alignment) and watch the
# line appear.

# %%
from slp_transformer import record_activations


@torch.no_grad()
def alignment(model, lick):
    reads = torch.cat([torch.tensor([BEGIN]), target_of(lick)])
    with record_activations(model) as trace:
        model.decode(reads, model.encode(lick))
    return trace[-1]["alpha_cross"][0]  # the only block, its only head


# %% alt="Heat map of cross-attention, 8 steps of the decoder by 7 notes of the source. The dark cells form the anti-diagonal: the first step looks at the last note, and so on down to the first note." caption="Where the decoder looks in the source at each step" figure="alignment"
rows = [f"writes {names[i]}" for i in [*target_of(lick).tolist(), END]]
columns, n, states = [names[i] for i in lick], len(lick), {}
for step, one in {**models, steps: model}.items():
    alpha = alignment(one, lick)
    right = (alpha[:n].argmax(dim=1) == torch.arange(n - 1, -1, -1)).sum()
    says = f"After {step} steps {right} of {n} notes look at their own."
    picture = plotting.heatmap(alpha, rows, columns, "α", "m × n", top=1)
    states[step] = picture, says
plotting.interactive_steps("Step of training", states, start=4)

# %%
assert alpha.shape == (n + 1, n)
assert alpha[:n].argmax(dim=1).tolist() == list(range(n - 1, -1, -1))

# %% [markdown]
# The model has positions to work with, but nothing in its training says which position of the source a
# step should attend to: it finds this diagonal by lowering the loss. (The last row writes
# `end`; its weights can be anything.)
#
# It is tempting to read such a map as an explanation. Be careful. With [other initial
# weights](../benchmarks/results/chapter_seeds/README.md) the model is almost as good, and its map shows no diagonal. How
# can that be? In the encoder each row has attended to its neighbors, so a neighbor's row may tell the note as well. A
# map says where a model attends, not why it is right.

# %% [markdown]
# ## Try it
#
# Assertions in the cells describe the settings above. If one stops you, delete it. After a change, run all
# cells from *Learning to play backwards* on, so that the model is new, too.
#
# 1. Change the learning rate from 0.006 to 0.003, in both places. Will licks still come out right? Will
#    the map still show the diagonal?
#
#    <details><summary>What happens</summary>
#
#    With the chapter's seed all 106 unseen licks still come out right, but the assertion about the diagonal fails,
#    and the map shows why.
#
#    </details>
#
# 2. Leave out `padding_mask(source, PAD)` in the training loop. What will happen to single licks?
#
#    <details><summary>What happens</summary>
#
#    It learns far less: with this seed the loss ends at 1.1, not 0.02, and none of 106 unseen licks comes out right,
#    padded or not. (With seed 1, 61 do if they are padded to seven notes, and 11 if not.)
#
#    </details>
#
# 3. Teach it something else: let `target_of` return `lick` (a copy), or `lick.sort().values`. What will the two maps look like?
#
#    <details><summary>What happens</summary>
#
#    For a copy the diagonal goes the other way, with this seed. For sorting expect no diagonal: the note
#    that a row writes may be anywhere in the lick.
#
#    </details>

# %% [markdown]
# ## To remember
#
# - An encoder drops the causal mask: its whole text is known, so every token may attend to every other.
# - Cross-attention takes queries from the target, keys and values from the source; its weights are
#   [m × n], and no causal mask is needed.
# - A decoder block has three sublayers; all decoder blocks read the final output of the encoder.
# - Padding must be masked, or a batch gives different results from its sources one by one.
# - An attention map shows where a model attends. It does not prove why it gives its output.

# %% [markdown]
# ## Test yourself
#
# 1. Which of the three attentions has a causal mask, and why only that one?
#
#    <details><summary>Answer</summary>
#
#    The decoder's self-attention. The target's next tokens are what it has to predict, while the whole
#    source is known from the start.
#
#    </details>
#
# 2. A source has 20 tokens, and 7 of the target are written. What is the shape of the cross-attention
#    weights of one head?
#
#    <details><summary>Answer</summary>
#
#    [7 × 20], and each row sums to 1.
#
#    </details>
#
# 3. While a translation is written token by token, which parts of cross-attention are computed at every
#    step, and which only once?
#
#    <details><summary>Answer</summary>
#
#    The query of the new token at every step; the keys and values of the source only once, since
#    $\mathbf H^{enc}$ does not change.
#
#    </details>
#
# Next: [Translation](11_translation.py), from one language to another.
