# %% [markdown]
# # 6 · Decoding
#
# Sections 7.4, 8.6 and 8.8 (2025-26 drafts), 7.6 and 7.8 (August 2026 draft)
#
# Turn a model's distribution over the next word into text, and do it fast.
#
# You will be able to choose a word greedily or at random; sharpen, flatten and cut a
# distribution; say what each choice costs, measured on a model trained on this page; search for a
# probable text; and explain why a key-value cache changes nothing but the time. Read first:
# [The language model](05_language_model.py).
#
# The page has three parts, and each can be read alone after the first section: choosing a word
# (about 50 minutes), searching for a text (20), and the cache (40).

# %% [markdown]
# ## Part one: choosing
#
# ### Four words
#
# The book's example: a vocabulary of four words, and the *logits* that a model gave them: one number
# for each word, any number, the larger the more probable. The softmax makes them a distribution, y.

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
# *Greedy* decoding takes the word with the highest probability, always.
#
# <span class="eq" id="eq-greedy">greedy</span>
#
# $$
# \hat w_t=\operatorname*{argmax}_{w\in V}P(w\mid\mathbf w_{<t})
# \tag{greedy}
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
# The package's version looks at the logits: the softmax keeps their order, so the largest logit is
# the most probable word.
#
# ### A draw
#
# Or choose at random, each word as often as its probability says; then the next, until the
# model says that it is done.
#
# <span class="eq" id="eq-random">random</span>
#
# $$
# w_t\sim P(w\mid\mathbf w_{<t})\quad\text{until the end-of-text token}
# $$
#
# By hand: lay the probabilities end to end from 0 to 1, throw a dart, and see in which word's
# stretch it lands.

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
# <autoref identifier="slp_transformer.sampling.sample">sample</autoref> plays another game with the
# same odds: each word waits for a random time, the shorter the more probable it is, and the first
# to arrive wins. That takes one division and no running total, for all rows of a batch at once.
# The odds are the same:

# %% alt="Heat map of three rows by four words: the probabilities y are 0.44, 0.33, 0.15, 0.08; the shares of 5,000 draws by hand and by the package are close to them." caption="Shares of 5,000 draws, and the probabilities"
generator = torch.Generator().manual_seed(6)
drawn = torch.bincount(sample(u.expand(5000, 4), generator))
shares = torch.stack([y, by_hand / 5000, drawn / 5000])
assert (shares - y).abs().max() < 0.03
plotting.heatmap(shares, ["y", "by hand", "sample"], words, top=1)

# %% [markdown]
# ### Temperature
#
# Between always and at random lies a dial. The plain softmax is
#
# <span class="eq" id="eq-temperature">temperature</span>
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
plotting.show_source(temperature)

# %% alt="Heat map: rows are temperatures 0.1, 0.2, 0.5, 1, 2 and 10, columns the four words. At 0.1 all has 0.95 and the 0.05; at 0.5 all has 0.59; at 1 the four have 0.44, 0.33, 0.15, 0.08; at 10 each is near a quarter." caption="One distribution at six temperatures"
taus = [0.1, 0.2, 0.5, 1, 2, 10]
Y = torch.stack([with_temperature(u, tau) for tau in taus])
plotting.heatmap(Y, [f"τ = {tau}" for tau in taus], words, top=1)

# %% [markdown]
# Towards τ = 0 the first word takes all: greedy. Towards infinity all words become equal.
#
# ### Top-k
#
# A real vocabulary has tens of thousands of words. Each of the odd ones is improbable, but
# together they are many, and sooner or later one is drawn. So cut them off before drawing: keep the
# k most probable, and share out their probability anew.
#
# <span class="eq" id="eq-top-k">top-k</span>
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
plotting.show_source(top_k)

# %% [markdown]
# The package cuts logits rather than probabilities: it sets them to −∞, and the softmax that
# follows does the sharing out. So such cuts can be made one after the other.
#
# ### Top-p
#
# How many words make sense depends on the words before. Top-p asks for the *fewest* words
# that together have the probability p.
#
# <span class="eq" id="eq-top-p">top-p</span>
#
# $$
# \sum_{w\in V^{(p)}}P(w\mid\mathbf w_{<t})\ge p
# \tag{top-p}
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
plotting.show_source(top_p)

# %% [markdown]
# Sort, add up, and drop every word *before* which the sum has reached p already.
#
# The same k and the same p, on our distribution and on two others. Where the model is sure, top-p
# keeps one word and top-k three; where it is not, top-p keeps all.

# %% alt="Nine rows by four words. Logits as in the book: y .44 .33 .15 .08, top-k of 3 keeps .48 .36 .16, top-p of 0.8 keeps the same three. Sure: y .95 .05 0 0; top-k keeps three words, top-p one. Unsure: y .28 .27 .24 .22; top-k drops the last, top-p keeps all four." caption="Top-k and top-p on three distributions"
rows, names = [], []
for name, tau in {"book": 1, "sure": 0.1, "unsure": 7}.items():
    at_tau = u / tau
    rows += [at_tau, top_k(at_tau, 3), top_p(at_tau, 0.8)]
    names += [f"{name}: y", "top-k, k = 3", "top-p, p = 0.8"]
Y = next_word_probabilities(torch.stack(rows))
assert (Y[2::3] > 0).sum(dim=-1).tolist() == [3, 1, 4]
plotting.heatmap(Y, names, words, top=1)

# %% [markdown]
# <div class="admonition note" markdown="0"><p class="admonition-title">Where the code leaves the book</p><p>The book's prose speaks of the top p percent; in its equation, and here, p is a share from 0 to 1. Of words with equal probability, the package keeps as many as are needed, the ones with the lower ids.</p></div>
#
# All of it in order: what is allowed at all (more on that below), a penalty for repetition
# (likewise), temperature, top-k, and top-p of what top-k has left.

# %%
from slp_transformer.sampling import filter_logits

seen = torch.tensor([[0]])  # ids so far; nothing here asks for them
cut = filter_logits(u.unsqueeze(0), seen, tau=0.5, k=3, p=0.9)
one_by_one = top_p(top_k(temperature(u, 0.5), 3), 0.9)
torch.testing.assert_close(cut[0], one_by_one)
plotting.show_source(filter_logits)

# %% [markdown]
# All three at once, on the book's four words. On the site [Figure](#fig-dials) has a dial for each.

# %% alt="Bars of four probabilities: all 0.443, the 0.328, your 0.148, that 0.081." caption="Temperature, top-k and top-p on one distribution" figure="dials"
plotting.interactive_sampling(u, words)

# %% [markdown]
# ### A model that writes
#
# Which of these is best? That takes a model, and something to judge by. Guitar tab has both: the
# practice corpus of [chapter 12](12_guitar_tab.py) is made in a second, and its tokens have a
# grammar, so slips can be counted. Some seconds of training on 200 short pieces leave the model
# good but not perfect, which is what we need. The first 3,000 tokens are *held out*: it does not
# learn from them, so they show how well it does on music that it has not met.

# %%
from slp_transformer import TransformerConfig, TransformerLM, guitar

torch.set_num_threads(1)  # a model this small is fastest on one core
tokenizer = guitar.TabTokenizer()
pieces = guitar.make_practice_corpus(seed=0, num_pieces=200)
stream = torch.tensor(guitar.encode_all_tabs(pieces, tokenizer))
held_out, stream = stream[:3000], stream[3000:]
torch.manual_seed(0)
vocab_size, N, d, L = len(tokenizer), 96, 96, 2
model = TransformerLM(TransformerConfig(vocab_size, N, d, num_blocks=L))
model.embedding.tokens.E.data *= 5  # short rows learn faster from
model.embedding.positions.P.data *= 5  # numbers that are not so small

# %% alt="Training loss and held-out loss in nats per token over 450 steps: both fall steeply at first, then more and more slowly." caption="Loss of the model that writes on this page"
from slp_transformer.training import train

how = {"steps": 450, "batch_size": 12, "learning_rate": 6e-3}
records = train(model, stream, held_out, **how, eval_interval=50)
model.requires_grad_(False)  # from here on it only writes
final = records[-1].val_loss
print(f"|V| = {vocab_size}; held-out loss {final:.2f} nats a token")
assert final < 2.3
curves = {
    "training": [(r.step, r.train_loss) for r in records],
    "held out": [(r.step, r.val_loss) for r in records],
}
plotting.lines(curves, x="step", y="nats per token")

# %% [markdown]
# Now let it write. <autoref identifier="slp_transformer.generation.decoding.generate">generate</autoref> takes
# a batch of prompts and all that this page is about. Temperature 0 means greedy.
#
# In a tab the six lines are the strings, the highest on top. A number is the fret at which a string
# is pressed, 0 an open string. Time goes from left to right, and a bar ends at `|`.

# %%
from slp_transformer import generate
from slp_transformer.guitar import STANDARD, format_tab

prompt = tokenizer.to_ids(["<bos>", *tokenizer.tuning_tokens(STANDARD), "BAR"])
end = tokenizer.eos_id
(greedily,) = generate(model, [prompt], temperature=0, stop=end)
print(format_tab(tokenizer.decode(greedily.ids).tab))

# %% [markdown]
# Bars come back nearly as they were: the most probable thing to do after a bar is to play it again.
# Greedy decoding falls into loops, and little leads out of one, since what was just repeated tends
# to be even more probable the next time. Here is a piece drawn at random, each token from the
# fewest that make up nine tenths:

# %%
luck = torch.Generator().manual_seed(4)
(drawn,) = generate(model, [prompt], top_p=0.9, stop=end, generator=luck)
print(format_tab(tokenizer.decode(drawn.ids).tab))

# %% [markdown]
# ### Loops against slips
#
# Two numbers judge a way of writing. *Repeats*: of all runs of four tokens, the share that had
# occurred in the same piece already. *Slips*: the share of tokens of a kind that the grammar does not allow at
# their place, such as the same string twice in a chord. We would like few slips, and about as many repeats
# as the corpus has. Each way writes forty pieces; greedy decoding writes one,
# since its forty would be the same piece forty times.


# %%
def repeated_share(ids):
    runs = list(zip(ids, ids[1:], ids[2:], ids[3:], strict=False))
    return 1 - len(set(runs)) / len(runs)


def judge(count=40, **options):
    luck = torch.Generator().manual_seed(0)
    options |= {"stop": end, "generator": luck}
    rows = generate(model, [prompt] * count, **options)
    written = [each.ids for each in rows]
    slips = sum(tokenizer.decode(ids).num_invalid_tokens for ids in written)
    repeated = sum(repeated_share(ids) for ids in written) / count
    return repeated, slips / sum(len(ids) - len(prompt) for ids in written)


# %%
corpus = [tokenizer.encode(piece)[:N] for piece in pieces]
usual = sum(repeated_share(ids) for ids in corpus) / len(corpus)
print(f"in the corpus, {usual:.0%} are repeats")

# %% alt="Two curves over temperature. The share of repeats starts highest at temperature 0, crosses the dashed line of the corpus and is near 0 from 1 on; the share of slips stays low up to 1 and rises ever faster from there." caption="What temperature costs: repeats and slips"
taus = [0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 2]
found = [judge(1, temperature=0)]
found += [judge(temperature=tau) for tau in taus[1:]]
for tau, (again, wrong) in zip(taus, found, strict=True):
    print(f"τ = {tau:<4}  {again:3.0%} repeats, {wrong:5.1%} slips")
repeated, slips = zip(*found, strict=True)
assert repeated[0] > usual > repeated[-1] and slips[-1] > slips[0] + 0.05
curves = {"repeats": repeated, "slips": slips}
levels = {"corpus": usual}
plotting.lines(curves, x="temperature τ", y="share", at=taus, levels=levels)

# %% [markdown]
# Temperature trades one for the other: what makes the model try something new also makes it draw
# from the tail. The other dial is to cut the tail off.

# %%
ways = {
    "greedy": {"count": 1, "temperature": 0},
    "as it is": {},
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
for name, (again, wrong) in judged.items():
    print(f"{name:16} {again:4.0%} repeats, {wrong:5.1%} slips")
assert judged["τ = 1.5, p = 0.5"][1] < judged["τ = 1.5"][1] / 2

# %% [markdown]
# Which is best? Say first what best means. Here is a rule: take the two ways that repeat themselves
# most nearly as much as the corpus does, and of the two the one that slips less.


# %%
def from_usual(name):
    return abs(judged[name][0] - usual)


two = sorted(judged, key=from_usual)[:2]
best = min(two, key=lambda name: judged[name][1])
print("as repetitive as the corpus:", " and ".join(two))
print(f"fewer slips: {best}, {judged[best][1]:.1%}")

# %% [markdown]
# Both dials do the same job: a low τ makes the tail improbable, a low p removes it, and both give up
# variety. Nothing here says that the same values suit another model. What carries over is the way
# to choose: say what is wanted, measure, compare.

# %% [markdown]
# Or forbid slips outright. `allowed` is asked before each step what may come next, here by the
# grammar of tab; all other logits become −∞.

# %%
from slp_transformer.sampling import mask_disallowed

again, wrong = judge(top_p=0.9, allowed=tokenizer.allowed_next_ids)
print(f"with the grammar: {again:.0%} repeats, {wrong:.1%} slips")
assert wrong == 0
plotting.show_source(mask_disallowed)

# %% [markdown]
# ### A penalty for repetition
#
# Another way out of loops, which the book does not have, comes from Keskar et al. 2019: make every
# word that has already been written less probable, by dividing its logit by θ.

# %%
from slp_transformer.sampling import repetition_penalty

written = torch.tensor([0, 3])  # all and that
penalised = repetition_penalty(u, written, theta=1.5)
assert penalised.tolist()[1:3] == u.tolist()[1:3]
torch.testing.assert_close(penalised[[0, 3]], torch.tensor([0.8, -0.75]))
for theta in (1, 1.1, 1.3):
    again, wrong = judge(1, temperature=0, repetition_penalty=theta)
    print(f"θ = {theta}: {again:.0%} repeats, {wrong:.1%} slips")
plotting.show_source(repetition_penalty)

# %% [markdown]
# A strong penalty breaks the loop. Its price does not show in these two numbers. A piece of the corpus
# keeps to one scale, some five to seven of the twelve notes of an octave. How many does the model use?


# %%
def notes_used(tab):
    pitches = [
        tab.tuning.pitch_of(n) for e in tab.iter_events() for n in e.notes
    ]
    return len({pitch % 12 for pitch in pitches})


used = [notes_used(tokenizer.decode(ids).tab) for ids in corpus]
print(f"the corpus: {sum(used) / len(used):.1f} of 12 notes in a piece")
for theta in (1, 1.1, 1.3):
    options = {"temperature": 0, "repetition_penalty": theta, "stop": end}
    (forced,) = generate(model, [prompt], **options)
    piece = tokenizer.decode(forced.ids).tab
    print(f"θ = {theta}: {notes_used(piece)}")

# %%
assert notes_used(piece) > sum(used) / len(used)
print(format_tab(piece))  # with the last θ

# %% [markdown]
# The penalty counts every token that was written, and a piece needs some of them again and again: bar
# lines, positions, the notes of its scale. Forbidden those, it takes what is left, and leaves the scale.
# The penalty breaks a loop; it does not know what to say instead.
#
# <div class="admonition note" markdown="0"><p class="admonition-title">Where the code leaves the paper</p><p>The paper divides all logits. That makes a negative one less negative, and so its word more probable; like most implementations, this one multiplies those by θ instead.</p></div>

# %% [markdown]
# ## Part two: searching
#
# Greedy decoding cannot take a step back: the best first word need not begin the best text. *Beam
# search* goes on with several beginnings at once; each is called a *hypothesis*. Here is a model
# small enough to search by hand. It has three words, *tune*, *play* and the full stop that ends a
# text, and looks at the last word only.

# %%
follows = {
    "<s>": {"tune": 0.6, "play": 0.4},
    "tune": {"play": 0.5, "tune": 0.3, ".": 0.2},
    "play": {".": 0.8, "tune": 0.2},
}

# %% [markdown]
# Before you read on: what will greedy decoding write, and is there anything more probable? Multiply
# the probabilities along the way.

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
# *Tune* was the better first word, and still the wrong one.
#
# ### Beam search
#
# Each hypothesis is scored by the logarithms of its words' probabilities, so that products become
# sums:
#
# <span class="eq" id="eq-beam-score">beam-score</span>
#
# $$
# \mathrm{score}(y)=\log P(y\mid x)=\sum_{t=1}^{T}\log P(y_t\mid y_{<t},x)
# \tag{beam-score}
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
        for score, words in growing:
            for w, p in follows[words[-1]].items():
                longer.append((score + log(p), [*words, w]))
        kept = sorted(longer)[::-1][: width - len(complete)]
        complete += [h for h in kept if h[1][-1] == "."]
        growing = [h for h in kept if h[1][-1] != "."]
    return complete


# %%
best = {width: max(beam(width)) for width in (1, 2)}
for width, (score, words) in best.items():
    print(f"width {width}: {score:.2f} for", *words[1:])
assert best[1][1] == text and best[2][1] == ["<s>", "play", "."]

# %% [markdown]
# Width 1 is greedy. Two hypotheses are enough to keep *play* until its full stop makes up for the
# first word. What was found is also shorter, and that is no accident: every further word can only
# lower the sum. So the sum is divided by the length.
#
# <span class="eq" id="eq-beam-norm">beam-norm</span>
#
# $$
# \mathrm{score}(y)=\frac1T\sum_{t=1}^{T}\log P(y_t\mid y_{<t},x)
# \tag{beam-norm}
# $$

# %%
from slp_transformer.generation.beam_search import (
    Beam,
    beam_search,
    length_normalized_score,
)

vocab = ["<s>", "tune", "play", "."]
table = torch.full((len(vocab), len(vocab)), -torch.inf)
for word, likely in follows.items():
    for w, p in likely.items():
        table[vocab.index(word), vocab.index(w)] = log(p)

# %% [markdown]
# The package's search, on the same model: with α = 0 the score is the sum [(13.15)](#eq-beam-score), with α = 1 the mean
# [(13.16)](#eq-beam-norm).

# %%
stop = {vocab.index(".")}
search = (
    lambda ids, rows: table[ids[rows, -1]],
    lambda rows: None,
    [torch.tensor([0])],
    [9],
)
for alpha in (0.0, 1.0):
    (found,) = beam_search(*search, width=2, alpha=alpha, stop=stop)
    by_hand = {tuple(s[1:]): v / (len(s) - 1) ** alpha for v, s in beam(2)}
    for h in found:
        words = tuple(vocab[w] for w in h.ids[1:])
        assert abs(by_hand[words] - h.score) < 1e-5
        print(f"α = {alpha:.0f}: {h.score:.2f} for", *words)

# %%
assert found[0].ids[1:] == [vocab.index(w) for w in ("tune", "play", ".")]
plotting.show_source(Beam.advance, length_normalized_score)

# %% [markdown]
# The mean prefers the longer text again: its three words are 0.62 probable on average (the geometric
# mean), the two of the other 0.57. Neither score is the truth. Which one you want depends on whether
# short texts are welcome.
#
# One step of the loop by hand is `advance`, for all hypotheses at once;
# <autoref identifier="slp_transformer.generation.beam_search.beam_search">beam_search</autoref> has the beams of all
# prompts grow side by side, so that the model reads them in one batch. On our model, with the mean:


# %%
def mean_score(ids):  # (13.16), for any text
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
assert beamed.ids != greedily.ids
assert beamed.score > mean_score(drawn.ids)

# %% [markdown]
# The two texts that score highest repeat themselves: about half of their runs of four tokens had occurred
# before, more than twice the corpus's share. For translation, where the source determines what to say, beam
# search serves well; to write freely, draw.

# %% [markdown]
# ## Part three: the key-value cache
#
# Every step so far has asked for one more word after nearly the same text. Must all of it be read
# again? Attention for the new token i needs its own query, but the keys and values of all tokens
# up to i:
#
# <span class="eq" id="eq-kv-attn">kv-attn</span>
#
# $$
# \mathbf A=\mathrm{softmax}\left(\frac{\mathbf Q\mathbf K^\top}{\sqrt{d_k}}\right)\mathbf V
# \tag{kv-attn}
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
# are those of [(8.33)](03_one_matrix.py#eq-head-par), all at once and masked:

# %%
from slp_transformer import causal_mask
from slp_transformer.attention import attention

Q, K, V = T1 @ head.W_Q, T1 @ head.W_K, T1 @ head.W_V
all_at_once, _ = attention(Q, K, V, causal_mask(len(ids)))
torch.testing.assert_close(torch.stack(rows), all_at_once)

# %% [markdown]
# The new token's part of it, for the fifth token (Fig. 8.18 · 7.23): one query meets five keys, and one
# row of weights mixes five values. Here d_k = d_v; four of the columns are shown.

# %% alt="The query of the fifth token, 1 by d_k, times five keys as columns, d_k by 5, gives its five scores, divided by the root of d_k." caption="One query meets the cached keys: the scores of the fifth token" figure="cached-keys"
few = slice(0, 4)
q_5, keys, values = Q[4:5], K[:5], V[:5]
scores = (q_5 @ keys.T / q_5.shape[-1] ** 0.5).detach()
q_panel = plotting.Panel(q_5[:, few], "q₅ …", "1 × dₖ")
k_panel = plotting.Panel(keys.T[few], "Kᵀ …", "dₖ × 5", columns=range(1, 6))
plotting.panels(
    q_panel, "×", k_panel, "→", plotting.Panel(scores, "scores", "1 × 5")
)

# %% alt="The weights of the fifth token, 1 by 5, times five values, 5 by d_v, give its result, 1 by d_v." caption="One row of weights mixes the cached values" figure="cached-values"
alpha = torch.softmax(scores, dim=-1)
a_5 = alpha @ values
torch.testing.assert_close(a_5[0], all_at_once[4])
v_panel = plotting.Panel(values[:, few], "V …", "5 × dᵥ", rows=range(1, 6))
out_panel = plotting.Panel(a_5[:, few], "a₅ …", "1 × dᵥ")
plotting.panels(
    plotting.Panel(alpha, "α₅", "1 × 5", top=1), "×", v_panel, "=", out_panel
)

# %% [markdown]
# But may the keys be kept? They are made from the stream, and the stream changes from block to
# block. It does so for each token by looking back only. So whatever is written later, the
# earlier rows stay, in every block:

# %%
from slp_transformer import record_activations

with record_activations(model) as short:
    model(ids[:20])
with record_activations(model) as long:
    model(ids)
for at_20, at_60 in zip(short, long, strict=True):
    torch.testing.assert_close(at_60["H"][:20], at_20["H"])

# %% [markdown]
# This is where the causal mask pays off a second time. An encoder, whose tokens look ahead too,
# could keep nothing.
#
# The package sets aside room for all keys and values at the first token, writes each new row in
# its place, and reads the rows so far as a slice: nothing is moved or copied.
# <autoref identifier="slp_transformer.cache.KVCache">KVCache</autoref> serves a whole model, with a
# <autoref identifier="slp_transformer.cache.LayerCache">LayerCache</autoref> for each attention layer.

# %%
from slp_transformer import KVCache, MultiHeadAttention
from slp_transformer.cache import LayerCache

cache = KVCache(N)
pieces_of_text = [ids[:20], *ids[20:50].split(1), ids[50:]]
U = torch.cat([model(part, cache=cache) for part in pieces_of_text])
furthest = (U - model(ids)).abs().max().item()
assert furthest < 1e-5 * max(1.0, U.abs().max().item())
print(f"no logit differs by more than {furthest:.0e}")
plotting.show_source(LayerCache.update, MultiHeadAttention.forward)

# %% [markdown]
# Three things change in the attention of [chapter 3](03_one_matrix.py). The new keys and values are
# put behind those of the cache. A single query needs no mask; several at once, like the 20 and
# the 10 tokens above, need the last rows of the causal mask. And cross-attention reads the source
# only once: from the second time on, nothing of `H_enc` is left to read. The rows count from the
# moment the whole stack has written its own, so a pass that breaks off leaves the cache as it was.
#
# Positions have to go on counting: the next token is at `cache.length`, not at 0. That is also
# where it ends. This model has learned 96 positions and has no row for a 97th, so
# <autoref identifier="slp_transformer.generation.decoding.generate">generate</autoref> stops and says why:

# %%
(full,) = generate(model, [prompt], temperature=0)
print(f"{len(full.ids)} tokens, ended by the {full.finish_reason}")
assert full.finish_reason == "window" and len(full.ids) == N
for row in generate(model, [prompt], temperature=0, cached=False):
    assert row.ids == full.ids  # the same words without a cache

# %% [markdown]
# ### What it saves
#
# Count multiplications (each with its addition). To read n new tokens when there are T in all, every
# matrix of the model meets n rows, every head compares n queries with T keys and mixes T values, and
# the head at the top scores all words after as many rows as we ask for.


# %%
def multiplications(n, T, d, L, vocab_size, scored):
    matrices = 12 * L * d**2 * n  # chapter 5's count, for each row
    attending = 2 * L * n * T * d  # scores, and the weighted sum
    return matrices + attending + scored * d * vocab_size


# %% [markdown]
# PyTorch has a counter of its own. It counts the addition too, hence the 2:

# %%
from torch.utils.flop_counter import FlopCounterMode

cache = KVCache(N)
model(ids[:-1], cache=cache)
for how, text in {"without": ids, "with": ids[-1:]}.items():
    used = cache if how == "with" else None
    with FlopCounterMode(display=False) as counter:
        with record_activations(
            model
        ):  # the counter does not know the fused kernel
            model(text, cache=used)
    n = len(text)
    count = multiplications(n, len(ids), d, L, vocab_size, scored=n)
    assert counter.get_total_flops() == 2 * count
    print(f"{how} a cache, the 60th token takes {count:,}")

# %% [markdown]
# They agree to the last one. Here `model(...)` scores the words after every token, as training wants
# it. Who writes needs the scores after the last token alone, with a cache or without. So that the
# comparison is fair, both count one row of scores below, for a model of the size of GPT-2:

# %% alt="Billions of multiplications for one more token over the tokens so far, up to 1,024. Without a cache the curve rises steeply, to a little over 100 at 1,024 tokens. With a cache it lies flat on the axis." caption="Multiplications for one more token, with a cache and without"
gpt2 = {"d": 768, "L": 12, "vocab_size": 50257, "scored": 1}
lengths = [1, *range(64, 1025, 64)]
without = [multiplications(T, T, **gpt2) / 1e9 for T in lengths]
with_one = [multiplications(1, T, **gpt2) / 1e9 for T in lengths]
print(f"at 1,024 tokens: {without[-1]:.1f} and {with_one[-1]:.3f} billion")
unread = 1023 * 768 * 50257 / 1e9
print(f"scores that nobody reads would be {unread:.1f} billion more")
curves = {"without a cache": without, "with": with_one}
plotting.lines(curves, x="tokens so far", y="billions", at=lengths)

# %% [markdown]
# With a cache the new token still meets every key, so the cost grows with the context, slowly at
# first. Far out, attention outweighs all the matrices:

# %% alt="Billions of multiplications for one more token with a cache, over contexts up to 32,768 tokens. Matrices and head are a flat line a little above 0.1; attending rises in a straight line from 0, crosses it between 6,000 and 7,000 tokens and ends near 0.6." caption="Multiplications for one more token with a cache, far out"
lengths = [1, *range(2048, 32769, 2048)]
rest = multiplications(1, 0, **gpt2) / 1e9
attending = [2 * 12 * T * 768 / 1e9 for T in lengths]
even = rest * 1e9 / (2 * 12 * 768)
print(f"attending costs as much as all else at {even:,.0f} tokens")
curves = {"attending": attending, "all else": [rest] * len(lengths)}
plotting.lines(curves, x="tokens so far", y="billions", at=lengths)

# %% [markdown]
# The price is memory: two rows of d numbers for each token and block. For one text of GPT-3's full
# window, with two bytes a number:

# %%
numbers = 2 * 96 * 2048 * 12288  # keys and values · L · N · d
print(f"{numbers * 2 / 1e9:.1f} GB")

# %% [markdown]
# And on this machine, in this run. What a single row leaves to do is mostly reading the matrices
# from memory.

# %%
from time import perf_counter

for name, cached in {"without a cache": False, "with a cache": True}.items():
    start = perf_counter()
    generate(model, [prompt] * 4, temperature=0, cached=cached)
    seconds = perf_counter() - start
    print(f"{name}: {seconds:.2f} seconds for four full windows")

# %% [markdown]
# ### All prompts at once
#
# A batch may hold prompts of different lengths, and each must get what it would get alone.
# The package pads nothing: all texts are at the same position, and where a short one's next
# word is chosen, a longer one's is given. A text that has ended stays in the batch, and its words are
# thrown away, until half of the batch has ended; then the batch is made smaller. `on_token` is called
# with every word as it is written.

# %%
prompts = [drawn.ids[:n] for n in (4, 9, 23)]
together = generate(model, prompts, 12, temperature=0)
alone = [generate(model, [p], 12, temperature=0)[0] for p in prompts]
assert together == alone

# %%
from slp_transformer.generation import decode_loop

heard = []


def on_token(row, word):
    heard.append(tokenizer.to_tokens([word])[0])


generate(model, [prompt], 6, temperature=0, on_token=on_token)
print(*heard)
plotting.show_source(decode_loop)

# %% [markdown]
# ## Try it
#
# 1. Give every temperature of the curves `top_p=0.9` as well. What will it change, and where most?
#
#    <details><summary>What happens</summary>
#
#    Slips fall, most where they were most frequent: at the high temperatures, whose tails are
#    the fattest. Repetition rises by a few points at most temperatures, since what is cut off is
#    also what is new.
#
#    </details>
#
# 2. Put top-p of 0.99 into the list of ways. Is it nearer to 0.9, or to no cut at all?
#
#    <details><summary>What happens</summary>
#
#    To no cut: it repeats as little and slips about as often. The hundredth part that it cuts off
#    is spread over so many tokens that few draws ever met it.
#
#    </details>
#
# 3. Change the 0.4 and 0.6 at `<s>` so that greedy finds the most probable text. Where is the
#    border?
#
#    <details><summary>What happens</summary>
#
#    With a probability p for *tune*, the two texts have $p\cdot0.5\cdot0.8=0.4p$ and $(1-p)\cdot0.8$,
#    which are equal at p = 2/3. Above that, greedy is right; below 1/2 as well, because then it
#    begins with *play*.
#
#    </details>
#
# 4. Draw a piece with a seed, then the same prompt twice in a batch with the same seed. Is one of
#    the two the piece?
#
#    <details><summary>What happens</summary>
#
#    No: the two share one row of random numbers, so the second text takes numbers that the single
#    one would have had. Give `generate` a list of generators, one for each prompt, and each gets
#    what it would get alone.
#
#    </details>
#
# 5. In the loop over one head, forget what is far: after the appends, set `K` and `V` to their last ten
#    rows. Which rows will still be right?
#
#    <details><summary>What happens</summary>
#
#    The first ten, whose keys are all there. The assertion against [(8.33)](03_one_matrix.py#eq-head-par) fails for the rest.
#
#    </details>

# %% [markdown]
# ## To remember
#
# - A model gives a distribution; what is written depends as much on how one chooses from it.
# - Temperature changes the shape of the distribution; top-k and top-p cut its tail, by count or by
#   share. Each trades variety against slips.
# - The most probable text is found neither by the most probable words one by one nor is it always
#   the best one: it repeats, and it is short unless the score is divided by the length.
# - A cache keeps keys and values, since the rows of earlier tokens do not change when the mask is
#   causal. The output stays the same.
# - With a cache, a new token costs one pass of one row, and memory for two rows in each block.

# %% [markdown]
# ## Test yourself
#
# 1. Logits are (2, 1, 0), τ is 0.5 and p is 0.8. Which words can be drawn?
#
#    <details><summary>Answer</summary>
#
#    Divided by τ they are (4, 2, 0), and the softmax gives 0.87, 0.12, 0.02. The first word reaches
#    0.8 alone, so it is always drawn.
#
#    </details>
#
# 2. Why must the word that crosses p be kept?
#
#    <details><summary>Answer</summary>
#
#    [(8.48)](#eq-top-p) asks for a set whose sum is at least p. Without the word that crosses, the sum is too
#    small; and if the first word alone exceeds p, nothing would be left.
#
#    </details>
#
# 3. Why can an encoder, whose tokens look both ways, not use such a cache while a text grows?
#
#    <details><summary>Answer</summary>
#
#    Each new token changes the rows of all earlier ones, in every block but the first, and with
#    them their keys and values. What was kept would be out of date.
#
#    </details>
#
# Next: [Training](07_training.py), where a model learns all this in the first place.
