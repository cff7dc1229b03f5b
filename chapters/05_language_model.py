# %% [markdown] tags=["path"]
# # 5 · The language model
#
# Sections 8.5 and 8.8 (2025-26 drafts), 7.5 (August 2026 draft)
#
# Stack the blocks, put the language model head on top, and look at what a small model predicts.
#
# What can a model learn from eight sentences: the words, the grammar, why a string is tightened? You will be able to
# follow token ids through a whole model to a distribution over the next word, and compare it with the text. In the
# whole chapter you also count any model's parameters. Read first: [The block](02_block.py), [One matrix
# X](03_one_matrix.py), [The input](04_input.py). About 45 minutes.

# %% [markdown]
# ## Eight sentences
#
# This is all the text that the model on this page will ever see. Whoever tightens something does so because it
# was flat or low, whoever loosens something, because it was sharp or high; after *tuned*, either may follow.

# %%
text = """the guitarist tightened the string because it was flat .
the guitarist loosened the string because it was sharp .
the guitarist tuned the string because it was flat .
the guitarist tuned the string because it was sharp .
the drummer tightened the drum because it was low .
the drummer loosened the drum because it was high .
the drummer tuned the drum because it was low .
the drummer tuned the drum because it was high ."""

sentences = [line.split() for line in text.splitlines()]
vocabulary = sorted({word for s in sentences for word in s})
print(f"|V| = {len(vocabulary)} words, {len(sentences[0])} in each sentence")

# %% [markdown]
# A model is made from one
# <autoref identifier="slp_transformer.config.TransformerConfig">configuration</autoref>. This one has rows of d
# = 32 and L = 3 blocks. Embeddings start with a standard deviation of 0.02, which GPT-2 uses for tokens' rows of 768; a
# model as narrow as ours learns faster from larger values.

# %%
import torch

from slp_transformer import TransformerConfig, TransformerLM

torch.manual_seed(2)
torch.set_num_threads(1)  # a model this small is fastest on one core
vocab_size, N, d, L = len(vocabulary), 10, 32, 3
config = TransformerConfig(
    vocab_size, N, model_dim=d, num_heads=2, num_blocks=L
)
model = TransformerLM(config)
E, P = model.embedding.tokens.E, model.embedding.positions.P
E.data *= 5
P.data *= 5

# %% [markdown]
# ## The stack
#
# Here is the model of Figs. 8.2, 8.16 (7.2, 7.16) from its ids to the top: blocks stacked as in [chapter
# 3](03_one_matrix.py#eq-stack), and the final layer norm.


# %%
def top_of_stack(ids, model):
    N = len(ids)
    X = torch.stack([E[ids[i]] + P[i] for i in range(N)])
    assert X.shape == (N, d)
    for block in model.stack.blocks:
        H = block(X, causal=True)
        assert H.shape == (N, d)
        X = H  # the input of the next block
    H = model.stack.final_norm(H)
    assert H.shape == (N, d)
    return H


# %% [markdown]
# The package's embedding and stack give the same result.


# %%
def to_ids(words):
    return torch.tensor([vocabulary.index(word) for word in words.split()])


ids = to_ids("the guitarist tightened the string because it was")
H = top_of_stack(ids, model)
torch.testing.assert_close(H, model.stack(model.embedding(ids), causal=True))

# %% [markdown]
# ## The head
#
# The last row at the top, $\mathbf h^L_N$, has to predict the next word. Its dot product with each word's embedding is
# the word's score, or *logit*. At the bottom, the matrix E turns words into rows; at the top, its transpose, the
# *unembedding*, turns a row into scores of words. So the weights are *tied*. That saves |V|·d numbers: GPT-2 small has
# 124 million instead of 163. And each word's row learns twice: from being read, and at every position from being
# predicted. The price: one row has to serve both purposes.
#
# <span class="eq" id="eq-logits">logits · 8.46 · 7.47</span>
#
# $$
# \mathbf u=\mathbf h^L_N\,\mathbf E^\top
# \tag{8.46 · 7.47}
# $$

# %%
from slp_transformer import lm_head, plotting


def logits(h, E):
    u = torch.zeros(len(E))
    for w in range(len(E)):  # one score for each word
        u[w] = h @ E[w]
    return u


u = logits(H[-1], E)
assert u.shape == (vocab_size,)
torch.testing.assert_close(lm_head(H[-1], E), u)
torch.testing.assert_close(model(ids)[-1], u)
plotting.show_source(lm_head, TransformerLM.forward)

# %% [markdown]
# The package computes logits at *every* position, [N×|V|]: training needs a prediction after each word, and
# thanks to the causal mask one pass gives all. Generation needs only the last row.

# %% [markdown]
# <div class="admonition note" markdown="0"><p class="admonition-title">Where the code leaves the book</p><p>Taken literally, <a href="#eq-logits">(8.46)</a> reads the output of the last block. The final layer norm between the two is in the book's prose and figure, and here in <code>top_of_stack</code>. The 2025 draft mentions only the last token; the August 2026 draft also says that training uses all positions.</p></div>

# %% [markdown]
# A softmax turns the logits into probabilities.
#
# <span class="eq" id="eq-probs">probs · 8.47 · 7.48</span>
#
# $$
# \mathbf y=\mathrm{softmax}(\mathbf u)
# \tag{8.47 · 7.48}
# $$

# %%
from slp_transformer import next_word_probabilities


def softmax(u):
    e = torch.exp(u - u.max())  # the largest exponent is 0: nothing overflows
    return e / e.sum()


y = softmax(u)
assert y.shape == (vocab_size,) and (y > 0).all()
torch.testing.assert_close(y.sum(), torch.tensor(1.0))
torch.testing.assert_close(next_word_probabilities(model(ids))[-1], y)
plotting.show_source(next_word_probabilities)

# %% [markdown]
# ## A few seconds of training
#
# So far the weights are random, and so are the predictions. A training loop raises the probability of the word
# that came next, at each position. How the loss changes with a weight is the weight's *gradient*; `AdamW` moves
# each weight a little against it, so that the loss falls ([chapter 7](07_training.py) has the details).

# %%
from torch.nn.functional import cross_entropy

batch = torch.stack([to_ids(" ".join(s)) for s in sentences])
read, target = batch[:, :-1], batch[:, 1:]  # the target is the next word
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
losses, tuned = [], []
for _ in range(350):
    U = model(read)
    loss = cross_entropy(U.flatten(0, 1), target.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    third = U[2, :8]  # for a figure: the third sentence, up to “was”
    tuned.append(third.detach())

# %% [markdown]
# The loss is the mean of $-\ln$ of the probability of each word that came next; its unit is the *nat*. How low
# can it go? No model can know whether the guitarist or the drummer comes after the first *the*: each is in half
# of the sentences. Counting how often each word follows each beginning gives the best possible predictions, and
# with them the lowest possible loss.

# %%
from collections import Counter
from math import log

seen = Counter(" ".join(s[:i]) for s in sentences for i in range(N + 1))


def share(beginning, word):
    longer = " ".join([*beginning, word])
    return seen[longer] / seen[" ".join(beginning)]


# %% alt="The loss over 350 steps: it starts near the dashed line of a uniform guess, falls steeply at first, and ends just above the dotted line of the best possible loss." caption="Training loss on the eight sentences"
pairs = [(s[:i], s[i]) for s in sentences for i in range(1, N)]
best = -sum(log(share(*pair)) for pair in pairs) / len(pairs)
print(f"loss {losses[0]:.2f} at first, {losses[-1]:.3f} at the end")
print(f"uniform guess {log(vocab_size):.2f}, best possible {best:.3f}")
levels = {"uniform guess": log(vocab_size), "best possible": best}
plotting.lines({"loss": losses}, x="step", y="nats per word", levels=levels)

# %% [markdown]
# ## What it predicts
#
# *The guitarist tightened the string because it was* … Which word would you bet on, and how much? Here is
# Fig. 8.15 (7.15) with real numbers: the logits, of which only the differences matter, and their softmax.

# %% alt="Bars of the sixteen logits u. Flat has by far the largest; sharp and low follow, and most other words are slightly negative." caption="The logits of the next word (Fig. 8.15 · 7.15, its lower half)"
model.requires_grad_(False)
ids = to_ids("the guitarist tightened the string because it was")
u = model(ids)[-1]
plotting.bars(u, vocabulary, title="u", decimals=1)

# %% alt="Bars of the sixteen probabilities y. Flat has nearly all of the probability; every other word is close to zero." caption="The probabilities of the next word (Fig. 8.15 · 7.15, its upper half)"
y = next_word_probabilities(u)
print(f"P(flat) = {y[vocabulary.index('flat')]:.2f}")
plotting.bars(y, vocabulary, title="y", top=1)

# %% [markdown]
# After *tuned* the text has both *flat* and *sharp*. And the model? In `Y`, row i is the distribution after the words
# up to i.

# %%
words = "the guitarist tuned the string because it was".split()
tuned.append(model(to_ids(" ".join(words))))
Y = next_word_probabilities(tuned[-1])
assert Y.shape == (len(words), vocab_size)
for word in ("flat", "sharp"):
    model_says = Y[-1, vocabulary.index(word)]
    print(f"{word}: {model_says:.2f}, in the text {share(words, word):.2f}")

# %% [markdown]
# How did the model get there? Slide the figure back to step 0: each word predicts itself, since E is tied and the
# untrained blocks add little. By step 20 each word predicts what usually follows it, but after the second *the* and
# after *was* the words of both instruments have a share. To rule out the other instrument's, the model has to look
# back. Move to step 30: *drum* is nearly gone, *low* and *high* are not. Why might these take longer? (*Drum* stands
# in four sentences, each ending in two.)

# %% alt="Heat map of eight positions by sixteen words. After “the”, “guitarist” and “drummer” have one half each. After “guitarist”, “tuned” has one half, “loosened” and “tightened” one quarter each. Then follow single words with probability near 1: the, string, because, it, was. After “was”, “flat” and “sharp” have one half each." caption="The prediction after each word, while the model learns"
states, ends = {}, ("flat", "sharp", "low", "high")
for step in (0, 10, 20, 30, 40, 350):
    Y = next_word_probabilities(tuned[step])
    says = [f"{w} {Y[-1, vocabulary.index(w)]:.2f}" for w in ends]
    states[step] = (
        plotting.heatmap(Y, words, vocabulary, "Y", "N × |V|", top=1),
        f"After {step} steps, “was” predicts {', '.join(says)}.",
    )
plotting.interactive_steps("Training steps", states, start=5)

# %% [markdown] tags=["more"] gist="The same for every beginning of every sentence: no prediction is far from the text’s frequencies"
# The loss asks only for the word that came next. Yet the predictions match the frequencies in the text, after
# every beginning of every sentence:

# %%
Y = next_word_probabilities(model(read))
counted = torch.zeros_like(Y)
for row, s in zip(counted, sentences, strict=True):
    for i in range(1, N):
        row[i - 1] = torch.tensor([share(s[:i], w) for w in vocabulary])
furthest = (Y - counted).abs().max().item()
print(f"no probability is off by more than {furthest:.2f}")
assert furthest < 0.15  # with other seeds too

# %% [markdown] tags=["more"] gist="Replace a word, and see that no logit before it changes"
# ## It cannot see ahead
#
# All predictions come from one pass over the text, so can a prediction use the word that it predicts?
# Change word j and see which logits change: those at j and later may change, those before must not.

# %% alt="Heat map of eight positions by eight changed words. On and below the diagonal the logits changed; above it every cell is 0." caption="Which logits change when one word is replaced"
ids = to_ids(" ".join(words))
moved = torch.zeros(len(ids), len(ids))
for j in range(len(ids)):
    changed = ids.clone()
    changed[j] = (ids[j] + 1) % vocab_size  # some other word
    moved[:, j] = (model(changed) - model(ids)).abs().amax(dim=-1)

torch.testing.assert_close(moved.triu(diagonal=1), torch.zeros_like(moved))
assert (moved.diagonal() > 0).all()
plotting.heatmap(moved, words, words, "Largest change of a logit", decimals=1)

# %% [markdown]
# In the last row, each column says how much the prediction after *was* changes when the word of that column is
# replaced. Which five words matter most? Guess before the next cell.

# %%
depends = sorted(zip(moved[-1].tolist(), words, strict=True), reverse=True)
print(", ".join(f"{word} {by:.1f}" for by, word in depends[:5]))

# %% [markdown]
# *Was* is the word just read. *Guitarist* says which instrument, and so which two endings are possible; the verb
# decides between these. (*The* became *tightened*: such a sentence the model has never read.)

# %% [markdown] tags=["more"] gist="How much each sublayer of the trained model adds at each word"
# ## What each sublayer writes
#
# Here are the norms of what each sublayer of the trained model adds to the residual stream (Fig. 8.7 · 7.7), as in
# [chapter 2](02_block.py).

# %% alt="Heat map: rows are X and the attention and feedforward writes of the three blocks, columns the eight words read. Every sublayer writes at every word, some more and some less." caption="How much each sublayer of the trained model writes"
phrase = "the guitarist tightened the string because it was"
ids = to_ids(phrase)
from slp_transformer import record_activations

with record_activations(model) as trace:
    model(ids)
streams = [model.embedding(ids)] + [steps["H"] for steps in trace]
writes, names = [streams[0]], ["X"]
for block, steps in enumerate(trace, start=1):
    writes += [steps["T2"], steps["T5"]]
    names += [f"attention {block}", f"feedforward {block}"]
torch.testing.assert_close(sum(writes), streams[-1])  # nothing is overwritten
lengths = torch.stack(writes).norm(dim=-1)
title, columns = "Norm of each write", phrase.split()
plotting.heatmap(lengths, names, columns, title, decimals=1)

# %% [markdown]
# At which words does attention write most? [Nearly always](../benchmarks/results/chapter_seeds/README.md) at the
# second *the* (3) and at *was* (7), where the next word depends on words further back, or at the first two words,
# which have little to read but themselves. Here are the top two of each block, counted from 0:

# %%
for number, steps in enumerate(trace, start=1):
    most = steps["T2"].norm(dim=-1).topk(2).indices.tolist()
    places = [f"{columns[i]} ({i})" for i in most]
    print(f"block {number}: at", " and ".join(places))

# %% [markdown] tags=["more"] gist="Counting parameters, up to GPT-3’s 175 billion"
# ## How large is it?
#
# A block has four attention matrices with $d\cdot d_{attn}$ numbers each (all heads side by side, $d_{attn}=Ad_k$)
# and two feedforward matrices with $d\cdot d_{ff}$. For all blocks together that makes
#
# <span class="eq" id="eq-param-count">param-count · 8.52 · exercise 7.1c</span>
#
# $$
# N\approx 2\,d\,n_{layer}(2\,d_{attn}+d_{ff})\approx 12\,n_{layer}\,d^2
# \tag{8.52}
# $$
#
# when $d_{attn}=d$ and $d_{ff}=4d$. (Here N is the number of parameters, not of tokens.) The formula
# leaves out the biases of the feedforward layers, γ and β of each layer norm, and the embeddings, which can be
# counted just as easily.

# %%
from slp_transformer.scaling_laws import count_parameters

matrices = 2 * d * L * (2 * d + 4 * d)
biases = L * (4 * d + d)
norms = (2 * L + 1) * 2 * d  # two a block, and the final one
embeddings = vocab_size * d + N * d  # E once, since the head is tied, and P
total = matrices + biases + norms + embeddings
assert matrices == 12 * L * d**2
assert total == sum(W.numel() for W in model.parameters())
count = count_parameters(config)
assert (count.matrices, count.total) == (matrices, total)
print(f"{matrices:,} in matrices, {total:,} in all")

# %% [markdown]
# <autoref identifier="slp_transformer.scaling_laws.count_parameters">count_parameters</autoref> needs only a
# configuration, so it can count models that do not fit on one computer. GPT-2 small has 124,439,808 parameters as
# published, with biases in attention, which the book's model does not have. For GPT-3 we expect 175 billion. Where
# are most of them?

# %% alt="Bars of GPT-3's parameters in billions: attention 58.0, feedforward 116.0, biases and norms near 0, embeddings 0.6." caption="Where GPT-3's parameters are"
from slp_transformer.scaling_laws import approximate_parameters

gpt2 = count_parameters(TransformerConfig(50257, 1024, 768, 12, 12)).total
assert gpt2 + 12 * 4 * 768 == 124_439_808  # four biases of d in each block
gpt3 = count_parameters(TransformerConfig(50257, 2048, 12288, 96, 96))
assert gpt3.matrices == approximate_parameters(num_blocks=96, model_dim=12288)
print(f"GPT-2 small: {gpt2:,}")
print(f"GPT-3: {gpt3.total:,},")
missed = 1 - gpt3.matrices / gpt3.total
print(f"  of which {gpt3.matrices:,} by 12 L d² ({missed:.2%} missed)")
parts = ["attention", "feedforward", "biases", "norms", "embeddings"]
billions = [getattr(gpt3, part) / 1e9 for part in parts]
plotting.bars(
    billions, parts, title="GPT-3, billions of parameters", decimals=2
)

# %% [markdown]
# Two thirds of GPT-3's parameters are in feedforward layers, and the rule of thumb misses less than 0.5% of the
# total. In our model it misses more: the smaller d is, the less accurate a formula in d² becomes.

# %% [markdown] tags=["more"] gist="Changes to try, each with its outcome folded"
# ## Try it
#
# On the page [Break it](../docs/break-it.md) this model is trained with one line wrong, for example
# with [no positions](../docs/break-it.md#mistake-positions-left-out), [no final
# norm](../docs/break-it.md#mistake-no-final-norm) or [a head that is
# reshaped](../docs/break-it.md#mistake-head-reshaped-not-transposed). Which of these would you
# notice?
#
# 1. Give the model a sentence that it has never seen: *the drummer tightened the string because it was*.
#    Will it follow the drummer or the string? Try other seeds as well.
#
#    <details><summary>What happens</summary>
#
#    The text does not say: in it, the drummer only ever has a drum. The models of seeds 2 and 4 disagree.
#
#    </details>
#
# 2. Remove the sentence in which the guitarist tuned a string that was sharp. What should y become
#    after *the guitarist tuned the string because it was*, and after the first *the*? Does the best possible loss rise or fall?
#
#    <details><summary>What happens</summary>
#
#    After *was*, only *flat* is left, with probability 1. After the first *the*, four of seven sentences
#    have the drummer. The best possible loss falls, since there is less left to guess.
#
#    </details>
#
# 3. Take `causal=True` out of `top_of_stack`. Which assertion fails first, and why?
#
#    <details><summary>What happens</summary>
#
#    The first comparison with the package, in the next cell: without the mask the rows depend on later
#    words, so they differ.
#
#    </details>

# %% [markdown]
# ## To remember
#
# - A language model is an input encoding, a stack of blocks, a final layer norm and a head.
# - The head compares the last row with every word's embedding; the softmax of these logits is the distribution
#   over the next word.
# - Every position predicts its next word in one pass, and the causal mask keeps it from looking ahead.
# - Trained only to predict the next word, the model learns the frequencies of this small text.
# - The matrices of L blocks have about $12Ld^2$ numbers *(whole chapter)*.

# %% [markdown]
# ## Test yourself
#
# 1. Add 5 to all logits. What happens to the probabilities?
#
#    <details><summary>Answer</summary>
#
#    Nothing: $e^5$ cancels in the softmax. Only differences of logits matter.
#
#    </details>
#
# 2. E is tied. A word never occurs in the training text. Does its row of E change in training?
#
#    <details><summary>Answer</summary>
#
#    Yes. It is never looked up, but it gets a logit at every position, and each gradient pushes that logit
#    down.
#
#    </details>
#
# 3. How many parameters do the matrices of 12 blocks with d = 768 have *(whole chapter)*?
#
#    <details><summary>Answer</summary>
#
#    By the formula $12\cdot12\cdot768^2$, which is about 85 million.
#
#    </details>
#
# On the page [One sentence](../docs/model.md) this model runs in your browser, number by number.
#
# **Your own Transformer.** With [the package](../docs/reuse.md#install) installed,
# `python -m slp_transformer.check --new mine.py` writes a file with stubs for the parts of chapters 1 to 7, into which
# your solutions fit as they are. `python -m slp_transformer.check mine.py` checks them, trains this chapter's model
# with them, and lets it write: sentences, a text like yours with `--text FILE`, or a piece for guitar with `--tabs`.
#
# Next: [Decoding](06_decoding.py), where the model writes.
