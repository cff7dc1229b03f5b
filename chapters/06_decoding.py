# %% [markdown]
# # 6 · Decoding
#
# Sections 7.4, 8.6 and 8.8 (2025-26 drafts), 7.6 and 7.8 (August 2026 draft)
#
# Turn a model's distribution over the next word into text, and do it fast.
#
# You will be able to choose a word greedily or at random; sharpen, flatten and cut a
# distribution; say what each choice costs, measured on a model trained on this page; and explain
# why a key-value cache changes nothing but the time. Read first:
# [The language model](05_language_model.py). About 30 minutes.

# %% [markdown]
# ## Four words
#
# The book's example: a vocabulary of four words, and the logits that a model gave them. The
# softmax makes them a distribution, y.

# %% alt="Bars of four probabilities: all 0.443, the 0.328, your 0.147, that 0.081."
import torch

from slp_transformer import next_word_probabilities, show

words = ["all", "the", "your", "that"]
u = torch.tensor([1.2, 0.9, 0.1, -0.5])
y = next_word_probabilities(u)
print("  ".join(f"{w} {p:.3f}" for w, p in zip(words, y, strict=True)))
show.bars(y, words, title="y", top=1)

# %% [markdown]
# ## The most probable word
#
# *Greedy* decoding takes the word with the highest probability, always.
#
# <span class="eq" id="eq-greedy">greedy · section 7.4 · 7.49</span>
#
# $$
# \hat w_t=\operatorname*{argmax}_{w\in V}P(w\mid\mathbf w_{<t})
# \tag{7.49}
# $$

# %%
from slp_transformer.sampling import greedy


def most_probable(y):
    best = 0
    for w in range(len(y)):
        if y[w] > y[best]:
            best = w
    return best


assert most_probable(y) == greedy(u) == 0
print("greedy says", words[most_probable(y)])
show.source(greedy)

# %% [markdown]
# The package's version looks at the logits: the softmax keeps their order, so the largest logit is
# the most probable word.
#
# ## A draw
#
# Or choose at random, each word as often as its probability says; then the next, until the
# model says that it is done.
#
# <span class="eq" id="eq-random">random · section 7.4 · section 7.6.2</span>
#
# $$
# w_t\sim P(w\mid\mathbf w_{<t})\quad\text{until the end-of-text token}
# $$
#
# By hand: lay the probabilities end to end from 0 to 1, throw a dart, and see in which word's
# stretch it lands.

# %%
from slp_transformer.sampling import draw


def spin(y, dart):
    end = 0.0
    for w in range(len(y)):
        end += y[w]
        if dart < end:
            return w
    return len(y) - 1  # the sum may have been rounded to less than 1


darts = torch.rand(5000, generator=torch.Generator().manual_seed(6))
by_hand = torch.bincount(torch.tensor([spin(y, dart) for dart in darts]))
show.source(draw)

# %% [markdown]
# <autoref identifier="slp_transformer.sampling.draw">draw</autoref> plays another game with the
# same odds: each word waits for a random time, the shorter the more probable it is, and the first
# to arrive wins. That takes one division and no running total, for all rows of a batch at once.
# The odds are the same:

# %% alt="Heat map of three rows by four words: the probabilities y are 0.44, 0.33, 0.15, 0.08; the shares of 5,000 draws by hand and by the package are within 0.02 of them."
generator = torch.Generator().manual_seed(6)
drawn = torch.bincount(draw(u.expand(5000, 4), generator))
shares = torch.stack([y, by_hand / 5000, drawn / 5000])
assert (shares - y).abs().max() < 0.03
show.heatmap(shares, ["y", "by hand", "draw"], words, top=1)

# %% [markdown]
# ## Temperature
#
# Between always and at random lies a dial. The plain softmax is
#
# <span class="eq" id="eq-temperature">temperature · section 7.4 · 7.50-7.51</span>
#
# $$
# \mathbf y=\mathrm{softmax}(\mathbf u)
# \tag{7.50}
# $$
#
# and with a temperature τ it becomes
#
# $$
# \mathbf y=\mathrm{softmax}(\mathbf u/\tau)
# \tag{7.51}
# $$
#
# Dividing by a τ below 1 pulls the logits apart, so the probable becomes more probable; above 1
# pushes them together.

# %%
from slp_transformer.sampling import temperature


def with_temperature(u, tau):
    e = [torch.exp(u_w / tau) for u_w in u]
    return torch.stack([e_w / sum(e) for e_w in e])


for tau, top in {1: 0.44, 0.5: 0.59, 0.1: 0.95}.items():  # the book's
    y_tau = with_temperature(u, tau)
    assert round(y_tau[0].item(), 2) == top
    theirs = next_word_probabilities(temperature(u, tau))
    torch.testing.assert_close(y_tau, theirs)
show.source(temperature)

# %% alt="Heat map: rows are temperatures 0.1, 0.2, 0.5, 1, 2 and 10, columns the four words. At 0.1 all has 0.95 and the 0.05; at 0.5 all has 0.59; at 1 the four have 0.44, 0.33, 0.15, 0.08; at 10 each is near a quarter."
taus = [0.1, 0.2, 0.5, 1, 2, 10]
Y = torch.stack([with_temperature(u, tau) for tau in taus])
show.heatmap(Y, [f"τ = {tau}" for tau in taus], words, top=1)

# %% [markdown]
# Towards τ = 0 the first word takes all: greedy. Towards infinity all words become equal.
#
# ## Top-k
#
# A real vocabulary has tens of thousands of words. Each of the odd ones is improbable, but
# together they are many, and sooner or later one is drawn. So cut them off before drawing: keep the
# k most probable, and share out their probability anew.
#
# <span class="eq" id="eq-top-k">top-k · section 8.6.1 · section 7.6.4</span>
#
# $$
# y^{(k)}_w=\frac{y_w}{\sum_{v\in V^{(k)}}y_v}\ \text{ for } w\in V^{(k)}
# $$
#
# with $V^{(k)}$ the k most probable words; all others get 0.


# %%
def share_out(y, kept):
    total = sum(y[w] for w in kept)
    cut = torch.zeros_like(y)
    for w in kept:
        cut[w] = y[w] / total
    return cut


in_order = sorted(range(len(y)), key=lambda w: -y[w])

# %%
from slp_transformer.sampling import top_k

for k in (1, 2, 3, 4):
    by_hand = share_out(y, in_order[:k])
    torch.testing.assert_close(next_word_probabilities(top_k(u, k)), by_hand)
show.source(top_k)

# %% [markdown]
# The package cuts logits rather than probabilities: it sets them to −∞, and the softmax that
# follows does the sharing out. So such cuts can be made one after the other.
#
# ## Top-p
#
# How many words make sense depends on what was said before. Top-p asks for the *fewest* words
# that together have the probability p.
#
# <span class="eq" id="eq-top-p">top-p · 8.48 · 7.52</span>
#
# $$
# \sum_{w\in V^{(p)}}P(w\mid\mathbf w_{<t})\ge p
# \tag{8.48}
# $$
#
# Go down from the most probable word, and stop as soon as the sum reaches p. The word that
# reaches it is kept: without it the sum would fall short.


# %%
def smallest_set(y, p):
    kept, total = [], 0.0
    for w in sorted(range(len(y)), key=lambda w: -y[w]):
        kept.append(w)
        total += y[w]
        if total >= p:
            return kept
    return kept


# %%
from slp_transformer.sampling import top_p

for p in (0.4, 0.5, 0.9, 1.0):
    by_hand = share_out(y, smallest_set(y, p))
    torch.testing.assert_close(next_word_probabilities(top_p(u, p)), by_hand)
    print(f"p = {p}:", *(words[w] for w in smallest_set(y, p)))
show.source(top_p)

# %% [markdown]
# Sort, add up, and drop every word *before* which the sum has reached p already.
#
# The same k and the same p, on our distribution and on two others. Where the model is sure, top-p
# keeps one word and top-k three; where it is not, top-p keeps all.

# %% alt="Nine rows by four words. Logits as in the book: y .44 .33 .15 .08, top-k of 3 keeps .48 .36 .16, top-p of 0.8 keeps the same three. Sure: y .95 .05 0 0; top-k keeps three words, top-p one. Unsure: y .28 .26 .24 .22; top-k drops the last, top-p keeps all four."
rows, names = [], []
for name, tau in {"book": 1, "sure": 0.1, "unsure": 7}.items():
    at_tau = u / tau
    rows += [at_tau, top_k(at_tau, 3), top_p(at_tau, 0.8)]
    names += [f"{name}: y", "top-k, k = 3", "top-p, p = 0.8"]
Y = next_word_probabilities(torch.stack(rows))
assert (Y[2::3] > 0).sum(dim=-1).tolist() == [3, 1, 4]
show.heatmap(Y, names, words, top=1)

# %% [markdown]
# <div class="admonition note" markdown="0"><p class="admonition-title">Where the code leaves the book</p><p>The book's prose speaks of the top p percent; in its equation, and here, p is a share from 0 to 1. Of words with equal probability, the package keeps as many as are needed, the ones with the lower ids.</p></div>
#
# All of it in order: what is allowed at all (more on that below), a penalty for repetition
# (likewise), temperature, top-k, and top-p of what top-k has left.

# %%
from slp_transformer.sampling import filtered

seen = torch.tensor([[0]])  # ids so far; nothing here asks for them
cut = filtered(u.unsqueeze(0), seen, tau=0.5, k=3, p=0.9)
one_by_one = top_p(top_k(temperature(u, 0.5), 3), 0.9)
torch.testing.assert_close(cut[0], one_by_one)
show.source(filtered)

# %% [markdown]
# ## A model that writes
#
# Which of these is best? That takes a model, and something to judge by. Guitar tab has both: the
# practice corpus of [chapter 12](12_guitar_tab.py) is made in a second, and its tokens have a
# grammar, so slips can be counted. Some seconds of training on 200 short pieces leave the model
# good but not perfect, which is what we need.

# %%
from slp_transformer import TransformerConfig, TransformerLM
from slp_transformer.guitar import TabTokenizer, practice_corpus, token_stream

torch.set_num_threads(1)  # a model this small is fastest on one core
tokenizer = TabTokenizer()
pieces = practice_corpus(seed=0, pieces=200)
stream = torch.tensor(token_stream(pieces, tokenizer))
held_out, stream = stream[:3000], stream[3000:]
torch.manual_seed(0)
V, N, d, L = len(tokenizer), 96, 96, 2
model = TransformerLM(TransformerConfig(V, N, d, num_blocks=L))
model.embedding.tokens.E.data *= 5  # short rows learn faster from
model.embedding.positions.P.data *= 5  # numbers that are not so small

# %% alt="Two falling curves, learned and held out, of nats per token over 450 steps; both start below 4 and end below 2."
from slp_transformer.training import train

how = {"steps": 450, "batch_size": 12, "learning_rate": 6e-3, "every": 50}
records = train(model, stream, held_out, **how)
model.requires_grad_(False)  # from here on it only writes
final = records[-1].valid_loss
print(f"|V| = {V}; held-out loss {final:.2f} nats a token")
assert final < 2.3
curves = {
    "learned": [(r.step, r.train_loss) for r in records],
    "held out": [(r.step, r.valid_loss) for r in records],
}
show.lines(curves, x="step", y="nats per token")

# %% [markdown]
# Now let it write. <autoref identifier="slp_transformer.decoding.generate">generate</autoref> takes
# a batch of prompts and all that this page is about. Temperature 0 means greedy.

# %%
from slp_transformer import generate
from slp_transformer.guitar import STANDARD, format_tab

prompt = tokenizer.to_ids(["<bos>", *tokenizer.header(STANDARD), "BAR"])
end = tokenizer.eos_id
(greedily,) = generate(model, [prompt], temperature=0, stop=end)
print(format_tab(tokenizer.decode(greedily.ids).tab))

# %% [markdown]
# Not a wrong note, and soon no music: the most probable thing to do after a bar is to play it again.
# Greedy decoding falls into loops, and little leads out of one, since what was just repeated tends
# to be even more probable the next time. Here is a piece drawn at random, each token from the
# fewest that make up nine tenths:

# %%
luck = torch.Generator().manual_seed(4)
(drawn,) = generate(model, [prompt], top_p=0.9, stop=end, generator=luck)
print(format_tab(tokenizer.decode(drawn.ids).tab))

# %% [markdown]
# ## Loops against slips
#
# Two numbers for a batch of forty pieces. *Said before*: of all runs of four tokens, the share that
# had occurred in the same piece already. *Slips*: the share of tokens that stand where their kind
# may not, such as the same string twice in a chord. What people would like is few of the latter,
# and of the former about as many as the corpus has.


# %%
def said_before(ids):
    runs = list(zip(ids, ids[1:], ids[2:], ids[3:], strict=False))
    return 1 - len(set(runs)) / len(runs)


def judge(**options):
    luck = torch.Generator().manual_seed(0)
    options |= {"stop": end, "generator": luck}
    written = [each.ids for each in generate(model, [prompt] * 40, **options)]
    slips = sum(tokenizer.decode(ids).ill_formed for ids in written)
    repeated = sum(said_before(ids) for ids in written) / len(written)
    return repeated, slips / sum(len(ids) - len(prompt) for ids in written)


# %%
corpus = [tokenizer.encode(piece)[:N] for piece in pieces]
usual = sum(said_before(ids) for ids in corpus) / len(corpus)
print(f"in the corpus, {usual:.0%} has been said before")

# %% alt="Two curves over temperature. The share said before starts high at temperature 0, crosses the corpus near 0.5 and is near 0 from 1 on; the share of slips starts near 0 and rises ever faster, to nearly a half at 2. A dashed line marks how much the corpus itself repeats."
taus = [0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 2]
repeated, slips = zip(*(judge(temperature=tau) for tau in taus), strict=True)
assert repeated[0] > usual > repeated[-1] and slips[-1] > slips[0] + 0.05
for tau, again, wrong in zip(taus, repeated, slips, strict=True):
    print(f"τ = {tau:<4}  {again:3.0%} said before, {wrong:5.1%} slips")
curves = {"said before": repeated, "slips": slips}
levels = {"corpus": usual}
show.lines(curves, x="temperature τ", y="share", at=taus, levels=levels)

# %% [markdown]
# Temperature trades one for the other: what makes the model try something new also makes it draw
# from the tail. The other dial is to cut the tail off: fewer slips, and hardly more repetition.

# %%
ways = {
    "greedy": {"temperature": 0},
    "as it is": {},
    "top-k, k = 10": {"top_k": 10},
    "top-p, p = 0.9": {"top_p": 0.9},
    "τ = 1.5": {"temperature": 1.5},
    "τ = 1.5, top-p": {"temperature": 1.5, "top_p": 0.9},
}
judged = {name: judge(**options) for name, options in ways.items()}
for name, (again, wrong) in judged.items():
    print(f"{name:15} {again:4.0%} said before, {wrong:5.1%} slips")
assert judged["top-p, p = 0.9"][1] < judged["as it is"][1]

# %% [markdown]
# Or forbid slips outright. `allowed` is asked before each step what may come next, here by the
# grammar of tab; all other logits become −∞.

# %%
from slp_transformer.sampling import only_allowed

again, wrong = judge(top_p=0.9, allowed=tokenizer.allowed_next)
print(f"with the grammar: {again:.0%} said before, {wrong:.1%} slips")
assert wrong == 0
show.source(only_allowed)

# %% [markdown]
# ## A penalty for repetition
#
# Another way out of loops, which the book does not have, comes from Keskar et al. 2019: make every
# word that has been said less probable, by dividing its logit by θ.

# %%
from slp_transformer.sampling import repetition_penalty

said = torch.tensor([0, 3])  # all and that
penalised = repetition_penalty(u, said, theta=1.5)
assert penalised.tolist()[1:3] == u.tolist()[1:3]
torch.testing.assert_close(penalised[[0, 3]], torch.tensor([0.8, -0.75]))
for theta in (1, 1.1, 1.3):
    again, wrong = judge(temperature=0, repetition_penalty=theta)
    print(f"θ = {theta}: {again:.0%} said before, {wrong:.1%} slips")
show.source(repetition_penalty)

# %% [markdown]
# It works, at a price: it cannot know that a bar line has to come again and again while a phrase
# had better not.
#
# <div class="admonition note" markdown="0"><p class="admonition-title">Where the code leaves the paper</p><p>The paper divides all logits. That makes a negative one less negative, and so its word more probable; like most implementations, this one multiplies those by θ instead.</p></div>

# %% [markdown]
# ## Beam search
#
# Greedy decoding cannot take a step back: the best first word need not begin the best text.
# Beam search goes on with several hypotheses at once. A model small enough to see whole; a full stop
# ends the text.

# %%
follows = {
    "<s>": {"tune": 0.6, "play": 0.4},
    "tune": {"it": 0.4, "up": 0.35, ".": 0.25},
    "play": {".": 0.65, "it": 0.35},
    "it": {".": 0.6, "now": 0.4},
    "up": {"now": 1.0},
    "now": {".": 1.0},
}
text, P = ["<s>"], 1.0
while text[-1] != ".":
    likely = follows[text[-1]]
    word = max(likely, key=likely.get)
    text, P = [*text, word], P * likely[word]
print(f"greedy: {' '.join(text[1:])}  with probability {P:.3f}")

# %% [markdown]
# Each hypothesis is scored by the logarithms of its words' probabilities, so that products become
# sums:
#
# <span class="eq" id="eq-beam-score">beam-score · 13.15 in the Aug 2026 draft</span>
#
# $$
# \mathrm{score}(y)=\log P(y\mid x)=\sum_{t=1}^{T}\log P(y_t\mid y_{<t},x)
# \tag{13.15}
# $$
#
# At every step, try every word after every hypothesis, and keep the best. (In the translation
# chapter x is the source; a language model has its prompt.)

# %%
from math import log


def beam(width):
    growing, complete = [(0.0, ["<s>"])], []
    while growing and len(complete) < width:
        longer = []
        for score, said in growing:
            for w, p in follows[said[-1]].items():
                longer.append((score + log(p), [*said, w]))
        kept = sorted(longer)[::-1][: width - len(complete)]
        complete += [h for h in kept if h[1][-1] == "."]
        growing = [h for h in kept if h[1][-1] != "."]
    return complete


# %%
best = {width: max(beam(width)) for width in (1, 2, 3)}
for width, (score, said) in best.items():
    print(f"width {width}: {score:.2f} for", *said[1:])

# %% [markdown]
# Width 1 is greedy. A wider beam finds what is more probable, and it is short: every further word
# can only lower the sum. So the sum is divided by the length.
#
# <span class="eq" id="eq-beam-norm">beam-norm · 13.16 in the Aug 2026 draft</span>
#
# $$
# \mathrm{score}(y)=\frac1T\sum_{t=1}^{T}\log P(y_t\mid y_{<t},x)
# \tag{13.16}
# $$

# %%
from slp_transformer.beam import Beam, beam_search, normalised

vocab = ["<s>", "tune", "play", "it", "up", "now", "."]
table = torch.full((len(vocab), len(vocab)), -torch.inf)
for word, likely in follows.items():
    for w, p in likely.items():
        table[vocab.index(word), vocab.index(w)] = log(p)

# %%
stop = {vocab.index(".")}
search = (
    lambda ids, rows: table[ids[rows, -1]],
    lambda rows: None,
    [torch.tensor([0])],
    [9],
)
for width in (1, 2, 3):
    (found,) = beam_search(*search, width=width, alpha=1.0, stop=stop)
    by_hand = {tuple(s[1:]): v / (len(s) - 1) for v, s in beam(width)}
    for h in found:
        said = tuple(vocab[w] for w in h.ids[1:])
        assert abs(by_hand[said] - h.score) < 1e-5
print("width 3:", *(vocab[w] for w in found[0].ids[1:]))
show.source(Beam.grow, normalised)

# %% [markdown]
# One step of the loop by hand is `grow`, for all hypotheses at once;
# <autoref identifier="slp_transformer.beam.beam_search">beam_search</autoref> has the beams of all
# prompts grow side by side, so that the model reads them in one batch.
#
# The mean prefers the longer text, whose words are each quite sure. (A beam of two has lost it at
# its second word.) On our model:

# %%
options = {"stop": end, "num_beams": 4}
(beamed,) = generate(model, [prompt], **options)


def score(ids):  # the mean of (13.16), for any text
    ids = torch.tensor(ids)
    y = next_word_probabilities(model(ids[:-1]))
    log_y = y[range(len(y)), ids[1:]].log()
    return log_y[len(prompt) - 1 :].mean().item()


# %%
assert abs(score(beamed.ids) - beamed.score) < 1e-3
found = {"beam": beamed, "greedy": greedily, "top-p": drawn}
for name, text in found.items():
    again = said_before(text.ids)
    print(f"{name:7} score {score(text.ids):.2f}, {again:.0%} said before")

# %% [markdown]
# What is most probable is also dullest. For translation, where the source says what to say, beam
# search serves well; to write freely, draw.
#
# ## The key-value cache
#
# Every step so far has asked for one more word after nearly the same text. Must all of it be read
# again? Attention for the new token i needs its own query, but the keys and values of all tokens
# up to i:
#
# <span class="eq" id="eq-kv-attn">kv-attn · 8.53 · 7.59</span>
#
# $$
# \mathbf A=\mathrm{softmax}\left(\frac{\mathbf Q\mathbf K^\top}{\sqrt{d_k}}\right)\mathbf V
# \tag{8.53}
# $$
#
# Here Q is a single row, $\mathbf q_i$ [1×d_k], K is [i×d_k] and V is [i×d_v]. The rows of K and V
# but for the last were there at the step before, if one had only kept them. One head of our
# model, token after token:

# %%
ids = torch.tensor(drawn.ids[:60])
block = model.stack.blocks[0]
head = block.attention.heads[0]
T1 = block.norm_1(model.embedding(ids))  # what the heads read
K, V, rows = [], [], []
for t_i in T1:
    q_i = t_i @ head.W_Q
    K.append(t_i @ head.W_K)  # one new key, one new value
    V.append(t_i @ head.W_V)
    scores = torch.stack([q_i @ k_j for k_j in K]) / len(q_i) ** 0.5
    alpha = next_word_probabilities(scores)  # a softmax
    rows.append(sum(a * v_j for a, v_j in zip(alpha, V, strict=True)))

# %% [markdown]
# There is no mask. The cache holds nothing of the future, so there is nothing to hide. The rows
# are those of (8.33), all at once and masked:

# %%
from slp_transformer.attention import attention, causal_mask

Q, K, V = T1 @ head.W_Q, T1 @ head.W_K, T1 @ head.W_V
all_at_once, _ = attention(Q, K, V, causal_mask(len(ids)))
torch.testing.assert_close(torch.stack(rows), all_at_once)

# %% [markdown]
# But may the keys be kept? They are made from the stream, and the stream changes from block to
# block. It does so for each token by looking back only. So whatever is written later, the
# earlier rows stay, in every block:

# %%
short, long = [], []
model(ids[:20], trace=short)
model(ids, trace=long)
for at_20, at_60 in zip(short, long, strict=True):
    torch.testing.assert_close(at_60["H"][:20], at_20["H"])

# %% [markdown]
# This is where the causal mask pays off a second time. An encoder, whose tokens look ahead too,
# could keep nothing.
#
# The package sets aside room for all keys and values at the first token, writes each new row in
# its place, and reads the rows so far as a slice: nothing is moved or copied.
# <autoref identifier="slp_transformer.cache.KVCache">KVCache</autoref> serves a whole model.

# %%
from slp_transformer import KVCache, MultiHeadAttention

cache = KVCache(N)
pieces_of_text = [ids[:20], *ids[20:50].split(1), ids[50:]]
U = torch.cat([model(part, cache=cache) for part in pieces_of_text])
furthest = (U - model(ids)).abs().max().item()
assert furthest < 1e-5 * max(1.0, U.abs().max().item())
print(f"no logit differs by more than {furthest:.0e}")
show.source(KVCache.extend, MultiHeadAttention.forward)

# %% [markdown]
# Three things change in the attention of [chapter 3](03_one_matrix.py). The new keys and values are
# put behind those of the cache. A single query needs no mask; several at once, like the 20 and
# the 10 tokens above, need the last rows of the causal mask. And cross-attention reads the source
# only once: from the second time on, nothing of `H_enc` is left to read.
#
# Positions have to go on counting: the next token stands at `cache.length`, not at 0. That is also
# where it ends. This model has learned 96 positions and has no row for a 97th, so
# <autoref identifier="slp_transformer.decoding.generate">generate</autoref> stops and says why:

# %%
(full,) = generate(model, [prompt], temperature=0)
print(f"{len(full.ids)} tokens, ended by the {full.ended}")
assert full.ended == "window" and len(full.ids) == N
for row in generate(model, [prompt], temperature=0, cached=False):
    assert row.ids == full.ids  # the same words without a cache

# %% [markdown]
# ## What it saves
#
# Count multiplications (each with its addition). To read n new tokens when there are T in all, every
# matrix of the model meets n rows, and every head compares n queries with T keys and mixes T
# values.


# %%
def multiplications(n, T, d, L, V):
    matrices = 12 * L * d**2 * n  # chapter 5's count, for each row
    attending = 2 * L * n * T * d  # scores, and the weighted sum
    return matrices + attending + n * d * V  # the head at the top


# %% [markdown]
# PyTorch has a counter of its own. It counts the addition too, hence the 2:

# %%
from torch.utils.flop_counter import FlopCounterMode

cache = KVCache(N)
model(ids[:-1], cache=cache)
for how, text in {"without": ids, "with": ids[-1:]}.items():
    used = cache if how == "with" else None
    with FlopCounterMode(display=False) as counter:
        model(text, cache=used, trace=[])
    count = multiplications(len(text), len(ids), d, L, len(tokenizer))
    assert counter.get_total_flops() == 2 * count
    print(f"{how} a cache, the 60th token takes {count:,}")

# %% [markdown]
# They agree to the last one. The same for a model of the size of GPT-2:

# %% alt="Billions of multiplications for one more token over the tokens so far, up to 1,024. Without a cache the curve rises steeply, to about 146 at 1,024 tokens. With a cache it lies flat on the axis at about 0.14."
gpt2 = {"d": 768, "L": 12, "V": 50257}
lengths = [1, *range(64, 1025, 64)]
without = [multiplications(T, T, **gpt2) / 1e9 for T in lengths]
with_one = [multiplications(1, T, **gpt2) / 1e9 for T in lengths]
print(f"at 1,024 tokens: {without[-1]:.1f} and {with_one[-1]:.3f} billion")
curves = {"without a cache": without, "with": with_one}
show.lines(curves, x="tokens so far", y="billions", at=lengths)

# %% [markdown]
# With a cache the new token still meets every key, so the cost grows with the context, slowly at
# first. Far out, attention outweighs all the matrices:

# %% alt="Billions of multiplications for one more token with a cache, over contexts up to 32,768 tokens. Matrices and head are a flat line at 0.12; attending rises in a straight line from 0, crosses it at about 6,700 tokens and reaches 0.6."
lengths = [1, *range(2048, 32769, 2048)]
rest = multiplications(1, 0, **gpt2) / 1e9
attending = [2 * 12 * T * 768 / 1e9 for T in lengths]
even = rest * 1e9 / (2 * 12 * 768)
print(f"attending costs as much as all else at {even:,.0f} tokens")
curves = {"attending": attending, "all else": [rest] * len(lengths)}
show.lines(curves, x="tokens so far", y="billions", at=lengths)

# %% [markdown]
# The price is memory: two rows of d numbers for each token and block. For one text of GPT-3's full
# window, with two bytes a number:

# %%
numbers = 2 * 96 * 2048 * 12288  # keys and values · L · N · d
print(f"{numbers * 2 / 1e9:.1f} GB")

# %% [markdown]
# And on this machine, in this run. What a single row leaves to do is mostly reading the matrices
# from memory. So on a CPU `generate` lays them out anew before it writes, such that every core reads
# a share of its own: <autoref identifier="slp_transformer.one_token.OneToken">OneToken</autoref>.

# %%
from time import perf_counter

for name, cached in {"without a cache": False, "with a cache": True}.items():
    start = perf_counter()
    generate(model, [prompt] * 4, temperature=0, cached=cached)
    seconds = perf_counter() - start
    print(f"{name}: {seconds:.2f} seconds for four full windows")

# %% [markdown]
# ## All prompts at once
#
# A batch may hold prompts of different lengths, and each must get what it would get alone.
# The package pads nothing: all texts stand at the same position, and where a short one's next
# word is chosen, a longer one's is given. What has ended is read along until half of the batch has
# ended, then dropped. `on_token` hears of every word as it is written.

# %%
prompts = [drawn.ids[:n] for n in (4, 9, 23)]
together = generate(model, prompts, 12, temperature=0)
alone = [generate(model, [p], 12, temperature=0)[0] for p in prompts]
assert together == alone

# %%
from slp_transformer.decoding import write

heard = []


def on_token(row, word):
    heard.append(tokenizer.to_tokens([word])[0])


generate(model, [prompt], 6, temperature=0, on_token=on_token)
print(*heard)
show.source(write)

# %% [markdown]
# ## Try it
#
# - Give every temperature of the curves `top_p=0.9` as well. Slips should fall, most where they
#   were most; repetition should rise by a few points at most temperatures.
# - Draw with top-p of 0.5 and of 0.99 in the list of ways. The first should repeat like a τ well
#   below 1, the second slip nearly as often as no cut at all.
# - Draw a piece with a seed, then the same prompt twice in a batch with the same seed. Neither of
#   the two should be the piece: they share one row of random numbers. Now give `generate` a list of
#   generators, one for each prompt.
# - In the loop over one head, forget what is far: after the appends, set `K` and `V` to their last ten
#   rows. The assertion against (8.33) should fail, with the first ten rows still right.
#
# Next: [Training](07_training.py), where a model learns all this in the first place.
