# %% [markdown] tags=["path"]
# # 6 · Decoding
#
# Sections 7.4 and 8.6 (2025-26 drafts), 7.6 and chapter 13 (August 2026 draft)
#
# Turn a model's distribution over the next word into text.
#
# A model says how probable each next word is. Why not always take the most probable one? You will be able to choose a
# word greedily or at random, and reshape a distribution with temperature, top-k and top-p. In the whole chapter you
# also hear what a greedy model plays, measure what each way costs, and search for a probable text with beams. Read
# first: [The language model](05_language_model.py). About 65 minutes.

# %% [markdown]
# ## Choosing a word
#
# ### Four words
#
# The book's example: a vocabulary of four words, and the *logits* that a model gives them. The softmax turns logits
# into a distribution, y: the larger a word's logit, the more probable it is.

# %% alt="Bars of four probabilities: all 0.443, the 0.328, your 0.148, that 0.081." caption="The book's four words"
import torch

from slp_transformer import next_word_probabilities, plotting

words = ["all", "the", "your", "that"]
u = torch.tensor([1.2, 0.9, 0.1, -0.5])
y = next_word_probabilities(u)
print("  ".join(f"{w} {p:.3f}" for w, p in zip(words, y, strict=True)))
plotting.bars(y, words, title="y", top=1)

# %% [markdown]
# ### The most probable word
#
# *Greedy* decoding always takes the word with the highest probability. Here $\mathbf w_{<t}$ are the
# words before position t, and $\hat w_t$ is the word chosen there.
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
plotting.show_source(greedy)

# %% [markdown]
# The package's version needs no softmax: the largest logit belongs to the most probable word.

# %% [markdown]
# ### A random draw
#
# Greedy decoding writes the same text each time, and may repeat itself without end. The alternative is to choose at
# random, each word as often as its probability says, until the end-of-text token comes.
#
# <span class="eq" id="eq-random">random · section 7.4 · section 7.6.2</span>
#
# $$
# w_t\sim P(w\mid\mathbf w_{<t})\quad\text{until the end-of-text token}
# $$
#
# Lay the probabilities end to end from 0 to 1, throw a dart, and see whose stretch it hits.

# %%
from slp_transformer.sampling import sample


def spin(y, dart):
    end = 0.0
    for w in range(len(y)):
        end += y[w]
        if dart < end:
            return w
    return len(y) - 1  # the sum may have been rounded to less than 1


darts = torch.rand(5000, generator=torch.Generator().manual_seed(6))
by_hand = torch.bincount(torch.tensor([spin(y, dart) for dart in darts]))
plotting.show_source(sample)

# %% [markdown]
# <autoref identifier="slp_transformer.sampling.sample">sample</autoref> gets the same odds by a race: each probability
# is divided by a random number from an exponential distribution, and the largest quotient wins. That works for all
# rows of a batch at once.

# %% alt="Heat map of three rows by four words: the probabilities y are 0.44, 0.33, 0.15, 0.08; the shares of 5,000 draws by hand and by the package are close to them." caption="Shares of 5,000 draws, and the probabilities"
generator = torch.Generator().manual_seed(6)
drawn = torch.bincount(sample(u.expand(5000, 4), generator))
shares = torch.stack([y, by_hand / 5000, drawn / 5000])
assert (shares - y).abs().max() < 0.03
plotting.heatmap(shares, ["y", "by hand", "sample"], words, top=1)

# %% [markdown]
# ### Temperature
#
# Temperature is a dial between greedy decoding and a plain draw, and beyond. The plain softmax
#
# <span class="eq" id="eq-temperature">temperature · section 7.4 · 7.50-7.51</span>
#
# $$
# \mathbf y=\mathrm{softmax}(\mathbf u)
# \tag{7.50}
# $$
#
# becomes, with a temperature τ,
#
# $$
# \mathbf y=\mathrm{softmax}(\mathbf u/\tau)
# \tag{7.51}
# $$
#
# A τ below 1 spreads the logits further apart, so the most probable word becomes even more probable; a τ above 1
# moves them closer together. What is left of the differences at τ = 10? Guess the last row of the map.

# %%
from slp_transformer.sampling import temperature


def with_temperature(u, tau):
    e = [torch.exp((u_w - max(u)) / tau) for u_w in u]  # never above 1
    return torch.stack([e_w / sum(e) for e_w in e])


for tau, top in {1: 0.44, 0.5: 0.59, 0.1: 0.95}.items():  # the book's
    y_tau = with_temperature(u, tau)
    assert round(y_tau[0].item(), 2) == top
    theirs = next_word_probabilities(temperature(u, tau))
    torch.testing.assert_close(y_tau, theirs)
plotting.show_source(temperature)

# %% alt="Heat map: rows are temperatures 0.1, 0.2, 0.5, 1, 2 and 10, columns the four words. At 0.1 “all” has 0.95 and “the” 0.05; at 0.5 “all” has 0.59; at 1 the four have 0.44, 0.33, 0.15, 0.08; at 10 each is near a quarter." caption="One distribution at six temperatures"
taus = [0.1, 0.2, 0.5, 1, 2, 10]
Y = torch.stack([with_temperature(u, tau) for tau in taus])
plotting.heatmap(Y, [f"τ = {tau}" for tau in taus], words, top=1)

# %% [markdown]
# As τ goes to 0, the most probable word takes all the probability, as in greedy decoding; as τ grows, all words
# become equally probable.

# %% [markdown]
# ### Top-k
#
# In a real vocabulary, tens of thousands of unlikely words add up, and sooner or later one of them is drawn. Top-k
# keeps the k most probable words and renormalizes their probabilities.
#
# <span class="eq" id="eq-top-k">top-k · section 8.6.1 · section 7.6.4</span>
#
# $$
# y^{(k)}_w=\frac{y_w}{\sum_{v\in V^{(k)}}y_v}\ \text{ for } w\in V^{(k)}
# $$
#
# where $V^{(k)}$ are the k most probable words; all others get 0.


# %%
def renormalize(y, kept):
    total = sum(y[w] for w in kept)
    cut = torch.zeros_like(y)
    for w in kept:
        cut[w] = y[w] / total
    return cut


in_order = sorted(range(len(y)), key=lambda w: -y[w])

# %%
from slp_transformer.sampling import top_k

for k in (1, 2, 3, 4):
    by_hand = renormalize(y, in_order[:k])
    torch.testing.assert_close(next_word_probabilities(top_k(u, k)), by_hand)
plotting.show_source(top_k)

# %% [markdown]
# The package sets logits to −∞, and the softmax that follows renormalizes. So several cuts can follow each
# other.

# %% [markdown]
# ### Top-p
#
# How many words make sense depends on the context. Top-p keeps the *fewest* words whose probabilities
# sum to at least p.
#
# <span class="eq" id="eq-top-p">top-p · 8.48 · 7.52</span>
#
# $$
# \sum_{w\in V^{(p)}}P(w\mid\mathbf w_{<t})\ge p
# \tag{8.48 · 7.52}
# $$
#
# Start at the most probable word, and stop as soon as the sum reaches p. The word that reaches it is
# kept: without it the sum would fall short.


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
    by_hand = renormalize(y, smallest_set(y, p))
    torch.testing.assert_close(next_word_probabilities(top_p(u, p)), by_hand)
    print(f"p = {p}:", *(words[w] for w in smallest_set(y, p)))
plotting.show_source(top_p)

# %% [markdown]
# The package drops every word *before* which the sum has already reached p.
#
# Now the same k and p for our distribution, a surer one and a less sure one. Where the model is sure, top-p keeps one
# word and top-k three, of which the third is rounded to 0.00; where it is unsure, top-p keeps all four.

# %% alt="Nine rows by four words. Logits as in the book: y .44 .33 .15 .08, top-k of 3 keeps .48 .36 .16, top-p of 0.8 keeps the same three. Sure: y .95 .05 0 0; top-k keeps three words, top-p one. Unsure: y .28 .27 .24 .22; top-k drops the last, top-p keeps all four." caption="Top-k and top-p on three distributions"
rows, names = [], []
for name, tau in {"book": 1, "sure": 0.1, "unsure": 7}.items():
    at_tau = u / tau
    rows += [at_tau, top_k(at_tau, 3), top_p(at_tau, 0.8)]
    names += [f"{name}: y", "top-k, k = 3", "top-p, p = 0.8"]
Y = next_word_probabilities(torch.stack(rows))
assert (Y[2::3] > 0).sum(dim=-1).tolist() == [3, 1, 4]
plotting.heatmap(Y, names, words, top=1)

# %% [markdown] tags=["more"] gist="Where the code leaves the book; all of these in one order"
# <div class="admonition note" markdown="0"><p class="admonition-title">Where the code leaves the book</p><p>The book's prose speaks of the top p percent; in its equation, and here, p is a share from 0 to 1. Where words are equally probable, top-p keeps as many as it needs, those with the lowest ids first; top-k keeps any k of them.</p></div>
#
# The package applies everything in the order of one table: the words that are allowed at all and the
# penalty for repetition (both explained below), temperature, top-k, then top-p on what top-k has left.

# %%
from slp_transformer.sampling import filter_logits

seen = torch.tensor([[0]])  # ids so far; not used here
cut = filter_logits(u.unsqueeze(0), seen, temperature=0.5, top_k=3, top_p=0.9)
one_by_one = top_p(top_k(temperature(u, 0.5), 3), 0.9)
torch.testing.assert_close(cut[0], one_by_one)
plotting.show_source(filter_logits, only=["if", "u =", "for"])

# %% [markdown] tags=["path"]
# On the site [Figure](#fig-dials) has dials for temperature, top-k, top-p and min-p. (Min-p, not in the book, keeps
# words with at least a given share of the largest probability.)

# %% alt="Bars of four probabilities: all 0.443, the 0.328, your 0.148, that 0.081." caption="Temperature, top-k, top-p and min-p on one distribution" figure="dials"
plotting.interactive_sampling(u, words)

# %% [markdown] tags=["more"] gist="A model of guitar tab, trained in seconds, writes greedily and by draws"
# ### A model that writes
#
# Which of these is best? That takes a model, and mistakes that can be counted. Guitar tab has both: the tokens of
# [chapter 12](12_guitar_tab.py)'s practice corpus follow a grammar, and some seconds of training on 200 short pieces
# give a model that is good but not perfect.

# %%
import slp_guitar
from slp_transformer import TransformerConfig, TransformerLM

torch.set_num_threads(1)  # a model this small is fastest on one core
tokenizer = slp_guitar.TabTokenizer()
pieces = slp_guitar.make_practice_corpus(seed=0, num_pieces=200)
stream = torch.tensor(slp_guitar.encode_all_tabs(pieces, tokenizer))
held_out, stream = stream[:3000], stream[3000:]
torch.manual_seed(0)
vocab_size, N, d, L = len(tokenizer), 96, 96, 2
model = TransformerLM(TransformerConfig(vocab_size, N, d, num_blocks=L))
for W in model.embedding.parameters():
    W.data *= 5  # as in chapter 5

# %% alt="Training loss and validation loss in nats per token over 450 steps: both fall steeply at first, then more and more slowly." caption="Loss of the model that writes on this page"
from slp_transformer.training import train

how = {"steps": 450, "batch_size": 12, "learning_rate": 6e-3}
records = train(model, stream, held_out, **how, eval_interval=50)
model.requires_grad_(False)  # it is trained; now it only writes
final = records[-1].val_loss
uniform = torch.tensor(vocab_size).log()
print(f"validation loss {final:.2f} nats per token")
print(f"a uniform guess among {vocab_size} tokens: {uniform:.2f}")
assert final < 1.8
curves = {
    "training": [(r.step, r.train_loss) for r in records],
    "validation": [(r.step, r.val_loss) for r in records],
}
plotting.lines(curves, x="step", y="nats per token")

# %% [markdown]
# In a tab the six lines are the strings, with the highest on top. A number is the fret at which a string is pressed,
# 0 an open string; time runs from left to right, and a bar ends at `|`. (A token is a note, such as `TAB<2,3>` for
# string 2, fret 3, or a place in the bar.) Here is a piece that the model has learned from:

# %%
from slp_guitar import format_tab

print(format_tab(pieces[-1]))

# %% [markdown]
# Now it goes on with the beginnings of forty pieces that it has not seen.
# <autoref identifier="slp_transformer.generation.decoding.generate">generate</autoref> takes a batch of prompts, and
# temperature 0 means greedy. What will the most probable music sound like?

# %%
from slp_transformer import generate

unseen = slp_guitar.make_practice_corpus(seed=1, num_pieces=40)
prompts = [tokenizer.encode(piece)[:12] for piece in unseen]
end = tokenizer.eos_id
texts = generate(model, prompts, temperature=0, stop=end)

# %% [markdown]
# *Repeats* are the share of runs of four tokens that have occurred earlier in the same piece. Here is the piece with
# most of them:


# %%
def repeated_share(ids):
    runs = list(zip(ids, ids[1:], ids[2:], ids[3:], strict=False))
    return 1 - len(set(runs)) / len(runs)


greedily = max(texts, key=lambda each: repeated_share(each.ids))
print(format_tab(tokenizer.decode(greedily.ids).tab))
print(f"{repeated_share(greedily.ids):.0%} repeats")

# %% [markdown]
# Greedy decoding has fallen into a loop: what came before makes the same continuation the most probable again, and
# nothing random leads out. Here the same prompt goes on at random, with top-p, p = 0.9:

# %%
luck = torch.Generator().manual_seed(4)
prompt = greedily.ids[:12]
(drawn,) = generate(model, [prompt], top_p=0.9, stop=end, generator=luck)
print(format_tab(tokenizer.decode(drawn.ids).tab))
print(f"{repeated_share(drawn.ids):.0%} repeats")

# %% [markdown] tags=["more"] gist="What each choice costs, counted: how often a text repeats itself, how often it breaks its grammar"
# ### Repeats and slips
#
# Two numbers measure a way of decoding: the repeats, and the *slips*, the share of tokens that the grammar does not
# allow where they stand, such as the same string twice in a chord. We want few slips, and about as many repeats as
# the corpus has. Which temperature would you choose?


# %%
from functools import cache


@cache  # greedy and three temperatures come twice
def judge(**options):
    luck = torch.Generator().manual_seed(0)
    rows = generate(model, prompts, stop=end, generator=luck, **options)
    slips = sum(tokenizer.decode(each.ids).num_invalid_tokens for each in rows)
    repeated = sum(repeated_share(each.ids) for each in rows) / len(rows)
    tokens = sum(len(each.new_ids) for each in rows)
    return repeated, slips / tokens, tokens


# %%
corpus = [tokenizer.encode(piece)[:N] for piece in pieces]
usual = sum(repeated_share(ids) for ids in corpus) / len(corpus)
assert not any(tokenizer.decode(ids).num_invalid_tokens for ids in corpus)
print(f"the corpus, cut to {N} tokens: {usual:.0%} repeats, no slips")

# %% alt="Two curves over temperature. The share of repeats is highest at temperature 0, falls, crosses the dashed line of the corpus and ends at 0; the share of slips stays low up to 1 and then rises steeply." caption="Repeats and slips at eight temperatures"
taus = [0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 2]
found = [judge(temperature=tau) for tau in taus]
for tau, (again, wrong, tokens) in zip(taus, found, strict=True):
    print(f"τ = {tau:<4}  {again:3.0%} repeats,", end=" ")
    print(f"{wrong:5.1%} slips in {tokens:,} tokens")
repeated, slips, _ = zip(*found, strict=True)
assert repeated[0] > usual > repeated[-1] and slips[-1] > slips[0] + 0.05
curves = {"repeats": repeated, "slips": slips}
levels = {"corpus": usual}
plotting.lines(curves, x="temperature τ", y="share", at=taus, levels=levels)

# %% [markdown]
# Temperature trades one for the other: what lets the model try something new also lets it draw from the tail. So cut
# off the tail:

# %%
ways = {
    "greedy": {"temperature": 0},
    "plain draws": {"temperature": 1},
    "τ = 0.5": {"temperature": 0.5},
    "top-k, k = 3": {"top_k": 3},
    "top-k, k = 10": {"top_k": 10},
    "top-p, p = 0.5": {"top_p": 0.5},
    "top-p, p = 0.9": {"top_p": 0.9},
    "τ = 1.5": {"temperature": 1.5},
    "τ = 1.5, p = 0.5": {"temperature": 1.5, "top_p": 0.5},
}

# %%
judged = {name: judge(**options) for name, options in ways.items()}
for name, (again, wrong, tokens) in judged.items():
    print(f"{name:16} {again:4.0%} repeats,", end=" ")
    print(f"{wrong:5.1%} slips in {tokens:,} tokens")
assert judged["τ = 1.5, p = 0.5"][1] < judged["τ = 1.5"][1] / 2

# %% [markdown]
# A low τ makes the tail improbable, a low p removes it; both cost variety. Which is best? Say first what you want: few
# slips (here greedy decoding has the fewest, and loops), or as many repeats as the corpus (here the wider top-p). Ways
# whose numbers are close [change places](../benchmarks/results/decoding/README.md) with another seed.
#
# Slips can also be ruled out: a function, `allowed`, says before each step which tokens may come next. All other
# logits become −∞.

# %%
from slp_transformer.sampling import mask_disallowed

again, wrong, _ = judge(top_p=0.9, allowed=tokenizer.allowed_next_ids)
print(f"with the grammar: {again:.0%} repeats, {wrong:.1%} slips")
assert wrong == 0
plotting.show_source(mask_disallowed)

# %% [markdown] tags=["more"] gist="A penalty for words already written: what it mends and what it harms"
# ### A penalty for repetition
#
# Another way out of loops, not in the book (Keskar et al. 2019): divide the logit of every word that has already been
# written by θ, if it is positive.

# %%
from slp_transformer.sampling import repetition_penalty

written = torch.tensor([0, 3])  # all and that
penalized = repetition_penalty(u, written, theta=1.5)
assert penalized.tolist()[1:3] == u.tolist()[1:3]
torch.testing.assert_close(penalized[[0, 3]], torch.tensor([0.8, -0.75]))
for theta in (1, 1.1, 1.3):
    again, wrong, _ = judge(temperature=0, repetition_penalty=theta)
    print(f"θ = {theta}: {again:.0%} repeats, {wrong:.1%} slips")
assert again < usual
plotting.show_source(repetition_penalty)

# %% [markdown]
# Here θ = 1.3 leaves fewer repeats than the corpus has. But the penalty also hits what a piece needs again and again:
# bar lines, places in the bar, the notes of its scale.
#
# <div class="admonition note" markdown="0"><p class="admonition-title">Where the code leaves the paper</p><p>The paper divides all logits, which makes a negative one less negative and so its word more probable. Like most implementations, this one multiplies negative logits by θ instead.</p></div>

# %% [markdown] tags=["more"] gist="A cut that compares with the most probable word"
# ### Min-p
#
# Top-p counts from the top; min-p (Nguyen et al. 2024, not in the book) compares with the top. A word stays if its
# probability is at least a share p of the largest. So the tail is cut even where no word has much.

# %%
from slp_transformer.sampling import min_p

for tau, stay in {1: 2, 0.1: 1, 7: 4}.items():
    y = next_word_probabilities(u / tau)
    by_hand = torch.where(y >= 0.5 * max(y), y, 0)
    torch.testing.assert_close(
        next_word_probabilities(min_p(u / tau, 0.5)), by_hand / sum(by_hand)
    )
    assert (by_hand > 0).sum() == stay
plotting.show_source(min_p)

# %% [markdown] tags=["more"] gist="Beam search: the most probable words one by one need not make the most probable text"
# ## Searching for a text
#
# Greedy decoding cannot undo a choice. *Beam search* extends several beginnings at once; each is called a
# *hypothesis*. Here is a model small enough to search by hand. It knows three words, *tune*, *play* and the period
# that ends a text, and it looks only at the last word.

# %%
follows = {
    "<s>": {"tune": 0.6, "play": 0.4},
    "tune": {"play": 0.5, "tune": 0.3, ".": 0.2},
    "play": {".": 0.8, "tune": 0.2},
}

# %% [markdown]
# Before you read on: what will greedy decoding write, and is there a more probable text? Multiply along the way.

# %%
text, probability = ["<s>"], 1.0
while text[-1] != ".":
    likely = follows[text[-1]]
    word = max(likely, key=likely.get)
    probability *= likely[word]
    text.append(word)
print(f"greedy: {' '.join(text[1:])}  with probability {probability:.2f}")
assert text[1:] == ["tune", "play", "."]  # 0.6 · 0.5 · 0.8
print(f"but:    play .  with probability {0.4 * 0.8:.2f}")

# %% [markdown]
# *Tune* was the better first word, and still the wrong choice.
#
# ### Beam search
#
# The score of a hypothesis is the sum of the log probabilities of its words:
#
# <span class="eq" id="eq-beam-score">beam-score · 13.15 in the Aug 2026 draft</span>
#
# $$
# \mathrm{score}(y)=\log P(y\mid x)=\sum_{t=1}^{T}\log P(y_t\mid y_{<t},x)
# \tag{13.15}
# $$
#
# At every step, extend every hypothesis by every word, and keep the best; how many is the beam's *width*. One
# that ends in a period keeps its place. (Here y is a text, not a distribution. In translation x is the source
# sentence; for a language model, the prompt.)

# %%
from math import log


def beam(width, watch=lambda step: None):
    growing, complete = [(0.0, ["<s>"])], []
    while growing and len(complete) < width:
        longer = []
        for score, words in growing:
            for w, p in follows[words[-1]].items():
                longer.append((score + log(p), [*words, w]))
        kept = sorted(longer)[::-1][: width - len(complete)]
        watch((sorted(longer)[::-1], kept))
        complete += [h for h in kept if h[1][-1] == "."]
        growing = [h for h in kept if h[1][-1] != "."]
    return complete


# %%
best = {width: max(beam(width)) for width in (1, 2)}
for width, (score, words) in best.items():
    print(f"width {width}: {score:.2f} for", *words[1:])
assert best[1][1] == text and best[2][1] == ["<s>", "play", "."]

# %% [markdown]
# Watch the search: with width 1 *play* is dropped at once; with width 2 it wins.

# %% alt="Bars of the two hypotheses after the first step with width 1: tune 0.60, which is kept, and play 0.40, which is dropped." caption="Beam search, step by step, with one hypothesis and with two"
from math import exp

states = {}
for width in (1, 2):
    steps = []
    beam(width, steps.append)
    for t, (longer, kept) in enumerate(steps):
        names = [" ".join(words[1:]) for _, words in longer]
        marks = ["✓ " if h in kept else "✗ " for h in longer]
        labels = [mark + name for mark, name in zip(marks, names, strict=True)]
        says = "Kept: " + ", ".join(names[: len(kept)])
        bars = plotting.bars([exp(s) for s, _ in longer], labels, top=0.6)
        states[f"width {width}, step {t + 1}"] = bars, says
plotting.interactive_steps("Beam", states)

# %% [markdown]
# Width 1 is greedy decoding. With two, *play* is kept until its period makes up for the less probable first word. The
# text found is also shorter, and that is no accident: every further word can only lower the sum. So the sum is
# divided by the length.
#
# <span class="eq" id="eq-beam-norm">beam-norm · 13.16 in the Aug 2026 draft</span>
#
# $$
# \mathrm{score}(y)=\frac1T\sum_{t=1}^{T}\log P(y_t\mid y_{<t},x)
# \tag{13.16}
# $$

# %%
from slp_transformer.generation.beam_search import (
    BeamSearchState,
    length_normalized_score,
)

for score, text in beam(2):
    T = len(text) - 1  # without the <s>
    mean = length_normalized_score(score, T)
    assert mean == score / T
    print(f"sum {score:.2f}, mean {mean:.2f} for", *text[1:])
lines = ["totals", "best,", "parents,", "ids", "return"]
plotting.show_source(
    BeamSearchState.advance, length_normalized_score, only=lines
)

# %% [markdown]
# The mean prefers the longer text again. Which score is better depends on whether short texts are welcome.
#
# The package's `advance` is one step of our loop, for all hypotheses at once.
# <autoref identifier="slp_transformer.generation.beam_search.beam_search">beam_search</autoref> reads the hypotheses
# of all prompts in one batch. On the tab model, with the mean:


# %%
def mean_score(ids):  # beam-norm, for any text
    ids = torch.tensor(ids)
    y = next_word_probabilities(model(ids[:-1]))
    log_y = y[range(len(y)), ids[1:]].log()
    return log_y[len(prompt) - 1 :].mean().item()


# %%
(beamed,) = generate(model, [prompt], stop=end, num_beams=4)
assert abs(mean_score(beamed.ids) - beamed.score) < 1e-3
found = {"beam": beamed, "greedy": greedily, "top-p": drawn}
for name, text in found.items():
    again = repeated_share(text.ids)
    score = mean_score(text.ids)
    print(f"{name:7} score {score:.2f}, {again:.0%} repeats")
assert beamed.score > mean_score(drawn.ids)

# %% [markdown]
# The highest score need not be the best text: here it repeats itself nearly as often as the greedy one. Where a
# source determines what to say, as in translation, search; for free writing, draw.

# %% [markdown] tags=["more"] gist="Changes to try, each with its outcome folded"
# ## Try it
#
# 1. Add `top_p=0.9` to every temperature of the curves but 0, where nothing is drawn. What will it
#    change, where the temperature is low and where it is high?
#
#    <details><summary>What happens</summary>
#
#    It cuts off the tail, and with it slips, but also what is new. At 0.25 there is little to cut; the higher
#    the temperature, the fatter the tail, and the more of it stays. Draw with several seeds before you trust a small difference.
#
#    </details>
#
# 2. Add top-p with p = 0.99 to the list of methods. Is it closer to 0.9, or to no cut at all?
#
#    <details><summary>What happens</summary>
#
#    To no cut: what is beyond 0.99 is drawn less than once in a hundred steps. (In one run chance can hide it.)
#
#    </details>
#
# 3. Change the 0.4 and 0.6 after `<s>` so that greedy decoding finds the most probable text. Where is
#    the border?
#
#    <details><summary>What happens</summary>
#
#    If *tune* has the probability p, the two texts have $p\cdot0.5\cdot0.8=0.4p$ and $(1-p)\cdot0.8$,
#    which are equal at p = 2/3. Above that, greedy decoding is right; below 1/2 it is right as well,
#    because then it begins with *play*.
#
#    </details>
#
# 4. Draw a piece with a seed, then draw from the same prompt twice in one batch with the same seed. Is
#    one of the two the same piece?
#
#    <details><summary>What happens</summary>
#
#    No: the two share one stream of random numbers, so the second text uses numbers that the single
#    piece would have used. Give `generate` a list of generators, one for each prompt, and each text
#    comes out as it would alone.
#
#    </details>

# %% [markdown]
# ## To remember
#
# - A model gives a distribution; the text also depends on how you choose from it.
# - Temperature reshapes the distribution. Top-k and top-p cut off its tail, by count or by probability.
# - Each trades variety against slips. Measure both *(whole chapter)*.
# - The most probable words one by one need not make the most probable text. Beam search keeps
#   several hypotheses to find a more probable one *(whole chapter)*.
# - The most probable text need not be the best: it may repeat itself, and the sum favors short ones unless
#   it is divided by the length *(whole chapter)*.

# %% [markdown]
# ## Test yourself
#
# 1. The logits are (2, 1, 0), τ is 0.5 and p is 0.8. Which words can be drawn?
#
#    <details><summary>Answer</summary>
#
#    Divided by τ they are (4, 2, 0), and the softmax gives 0.87, 0.12, 0.02. The first word reaches
#    0.8 on its own, so it is always drawn.
#
#    </details>
#
# 2. Why must the word that crosses p be kept?
#
#    <details><summary>Answer</summary>
#
#    [(8.48)](#eq-top-p) asks for a set whose sum is at least p. Without the word that crosses it, the sum is
#    too small; and if the first word alone exceeds p, none is left.
#
#    </details>
#
# 3. Is a text found by a beam search of width 4 always at least as probable as the greedy one *(whole chapter)*?
#
#    <details><summary>Answer</summary>
#
#    No. Only four hypotheses are kept at each step, and the greedy text can be dropped although it would catch
#    up later. Only a beam that keeps all is sure to find the best text.
#
#    </details>
#
# Next: [The key-value cache](06b_cache.py), which makes all of this fast; on the short path,
# [Training](07_training.py).
