# %% [markdown] tags=["path"]
# # 12 · Guitar tablature
#
# Sections 8.5 (2025-26 drafts) and 7.5 (August 2026 draft), on another language
#
# Train a language model on guitar tablature, and let it write only what its grammar allows.
#
# Can a hand play what the model writes, though nobody told it that a hand has four fingers? You will be able to say
# why tablature is more than notes, and turn a tab into tokens and back and a grammar into a mask. In the whole
# chapter you also count the chords that can be held. Read first: [The language model](05_language_model.py).
# About 50 minutes.

# %% [markdown]
# ## One note, many places
#
# A pitch says what sounds; a guitarist also has to know where to play it. The E above middle C is the open first
# string, but also the fifth fret of the second. In how many places is it? Tablature records the place, string and
# fret, which a score need not show.

# %%
import torch

from slp_guitar import STANDARD, Note
from slp_transformer import plotting

places = STANDARD.positions_of(64)  # 64 is the MIDI number of this E
for note in places:
    assert STANDARD.pitch_of(note) == 64
    print(f"string {note.string}, fret {note.fret}")

# %% alt="The neck of a guitar, six strings by twenty frets. One pitch, E4, is marked in five places: string 1 open, string 2 at fret 5, string 3 at fret 9, string 4 at fret 14 and string 5 at fret 19." caption="One pitch in five places on the neck"
strings, frets = range(1, 7), range(20)
pitches = [[STANDARD.pitch_of(Note(s, f)) for f in frets] for s in strings]
neck = torch.tensor(pitches) == 64
assert neck.sum() == len(places) == 5
plotting.heatmap(neck.float(), rows=strings, columns=frets, decimals=None)

# %% [markdown]
# ## The corpus
#
# The package generates practice pieces: scales in positions (places of the hand), arpeggios, chords with picking
# patterns, twelve-bar blues, in several keys and tunings.
#
# One hand can play every *event*, a note or a chord: no two notes share a string, and the fretted notes are at most
# four frets apart.
#
# In a tab, the six lines are the strings, with the highest on top. A number is a fret, and 0 is an open string.
# Time runs from left to right, and numbers in the same column sound together. The first `|` opens the line;
# every later one closes a bar.

# %%
from slp_guitar import (
    compute_playable_share,
    format_tab,
    make_practice_corpus,
)

corpus = make_practice_corpus(seed=0)
events = [event for tab in corpus for event in tab.iter_events()]
assert compute_playable_share(events) == 1.0
print(f"{len(corpus)} pieces, {len(events):,} events, all playable")
print(format_tab(corpus[0]))

# %% [markdown] tags=["more"] gist="Two commands do the same with a folder of your own"
# ## Your own tabs
#
# Two commands do what this chapter does step by step, with a folder of ASCII tabs like those on the web:
#
# ```sh
# slp-transformer train tabs path/to/your/tabs --out-dir runs/tabs
# slp-transformer generate runs/tabs
# ```
#
# With `--prompt-file my_riff.txt` the model continues a tab of yours. `--output piece.gp5` (or `.mid`, `.musicxml`)
# writes a file that other programs can open and play; you can [listen to some pieces](../docs/hear.md) on this site.

# %% [markdown]
# ## From tab to tokens
#
# The last bar above has two moments: a note, then a chord of five. What could its tokens be?

# %%
from slp_guitar import TabTokenizer

tokenizer, first = TabTokenizer(), corpus[0]
ids = tokenizer.encode(first)
back = tokenizer.decode(ids)
assert back.tab.bars == first.bars and back.num_invalid_tokens == 0
print(f"|V| = {len(tokenizer)}; the first piece has {len(ids)} tokens,")
print("its last bar:", *tokenizer.to_tokens(ids)[-9:-1])

# %% [markdown]
# `BAR<k>` begins a bar of k steps. `TAB<string,fret>` is a note at this place on the neck, and `WITH<string,fret>`
# another one that sounds with it. `POS<k>` says that what follows starts k steps after the bar line; without it, it
# starts on the bar line. Decoding gives the same bars back.

# %% [markdown] tags=["more"] gist="Bars that come again, and what the header says"
# A bar that has occurred before is a single token: `SAME<1>` repeats the bar before, `SAME<2>` the one before that. A
# header names the tuning and the capo (a clamp that raises all strings), the steps per quarter note, the time signature
# and the key. (Details: <autoref identifier="slp_guitar.tab_tokenizer">slp_guitar.tab_tokenizer</autoref>.)

# %%
print(*tokenizer.to_tokens(ids[:7]), "…")

# %% [markdown] tags=["path"]
# One piece in ten is *held out*: we never train on it, only measure the loss. The others, joined end to end, are the
# training data, and from here on, `corpus`.

# %%
from slp_guitar import prepare_tab_dataset

data = prepare_tab_dataset(val_split=0.1)
stream, unseen, corpus = data.train_data, data.val_data, data.train_tabs
ids = tokenizer.encode(corpus[0])
assert stream[: len(ids)].tolist() == ids
print(f"{len(stream):,} tokens to train on, {len(unseen):,} held out")

# %% [markdown]
# ## Training
#
# Model and task are chapter 5's. Two baselines put the loss in perspective. A uniform model gives each token the
# probability $1/|V|$, so its loss is $\ln|V|$ nats per token. A unigram model knows how often each token occurs but
# ignores the context; its loss is the mean of $-\ln$ of those frequencies over the held-out tokens.

# %%
from math import log

from slp_transformer import TransformerConfig, TransformerLM

torch.manual_seed(0)
torch.set_num_threads(1)  # the digits below depend on the order of sums
config = TransformerConfig(
    len(tokenizer), context_length=192, model_dim=96, num_blocks=2
)
model = TransformerLM(config)
print(f"{sum(p.numel() for p in model.parameters()):,} parameters")

# %%
counts = torch.bincount(stream, minlength=len(tokenizer)) + 1.0
frequencies = counts / counts.sum()
unigram = -frequencies[unseen].log().mean().item()
print(f"uniform: {log(len(tokenizer)):.2f} nats per token")
print(f"unigram: {unigram:.2f}")

# %%
from slp_transformer.training import train

how = {"steps": 400, "batch_size": 8, "learning_rate": 6e-3}
records = train(model, stream, unseen, **how, eval_interval=50)
for record in records:
    line = f"step {record.step:5d} | train loss {record.train_loss:.3f}"
    print(f"{line} | val loss {record.val_loss:.3f}")
assert records[-1].val_loss < unigram / 2

# %% [markdown]
# Every 50 steps we measure the loss on the held-out pieces, the validation loss. The training loss is the mean since
# the last measurement.

# %%
gap = records[-1].val_loss - records[-1].train_loss
print(f"at the end the validation loss is {gap:.2f} above the training loss")
assert gap > 0.1

# %% alt="Loss in nats per token over 400 training steps. Training and validation loss fall steeply at first, far below the dashed line of the unigram model. In the last third they separate, and the validation loss ends higher and flatter." caption="Training and validation loss on tabs"
curves = {
    "training": [(r.step, r.train_loss) for r in records],
    "validation": [(r.step, r.val_loss) for r in records],
}
plotting.lines(
    curves, x="step", y="nats per token", levels={"unigram": unigram}
)

# %% [markdown]
# Both end far below the unigram loss, so the model uses the context. But the curves part: some of what the model
# learns holds for its training pieces only. So report the validation loss.

# %% [markdown]
# ## Sampling pieces
#
# From the beginning of a piece, `<bos>`, a tuning and no capo (a clamp), we sample one token after another until the
# model produces `<eos>` or its context window is full. How many of 5,000 tokens will break the rules of tab?

# %%
from slp_transformer.generation import generate


def write(seed, count=40, **options):
    header = ["<bos>", *tokenizer.tuning_tokens(STANDARD)]
    written = generate(
        model,
        [tokenizer.to_ids(header)] * count,  # all at once
        temperature=0.8,
        stop=tokenizer.eos_id,
        generator=torch.Generator().manual_seed(seed),
        **options,
    )
    pieces = [tokenizer.decode(each.ids) for each in written]
    return pieces, [each.finish_reason for each in written]


# %%
free, _ = write(seed=0)
ill_formed = sum(piece.num_invalid_tokens for piece in free)
length = sum(piece.num_tokens for piece in free)
print(f"{ill_formed} of {length:,} tokens break the grammar of tab")

# %% [markdown]
# ## A grammar rules out tokens
#
# The tokens follow a grammar: notes that sound together are written from the low strings to the high ones, and the
# times within a bar (`POS<k>`) only increase. The model sometimes gets it wrong, which we can rule out. Take a guitar
# with two strings, LOW and HIGH, and bars with two positions. This function returns the tokens that may come next:

# %%
names = ["BAR", "POS<1>", "POS<2>", "LOW", "HIGH", "END"]


def allowed(tokens):
    last = tokens[-1]
    if last == "BAR":
        return {"POS<1>", "POS<2>"}
    if last.startswith("POS"):
        return {"LOW", "HIGH"}
    position = [t for t in tokens if t.startswith("POS")][-1]
    later = {"POS<2>"} if position == "POS<1>" else set()
    together = {"HIGH"} if last == "LOW" else set()
    return later | together | {"BAR", "END"}


# %% [markdown]
# As in the mask of [attention](03_one_matrix.py#eq-mask), add −∞ to the logits of all other tokens. The softmax
# gives them probability 0, and the allowed tokens keep their ratios.


# %% alt="Heat map of two rows, the next token after BAR POS of 1 and LOW without the mask and with it. With the mask, POS of 1 and LOW have probability 0 and the four others more than before." caption="The next token after BAR POS<1> LOW, without the mask and with it"
def masked(u, tokens):
    may = allowed(tokens)
    return u + torch.tensor([0.0 if n in may else -torch.inf for n in names])


torch.manual_seed(12)
u = torch.randn(len(names))
tokens = ["BAR", "POS<1>", "LOW"]
y, y_masked = u.softmax(0), masked(u, tokens).softmax(0)
may = torch.tensor([name in allowed(tokens) for name in names])
torch.testing.assert_close(y_masked[may], y[may] / y[may].sum())
rows = ["free", "masked"]
plotting.heatmap(torch.stack([y, y_masked]), rows=rows, columns=names)

# %% [markdown] tags=["more"] gist="200 random texts against a regular expression: with the mask all are well-formed"
# Now generate 200 texts from random logits, and compare each with the grammar, written as a regular
# expression:

# %%
import re

NOTES = "(LOW HIGH|LOW|HIGH)"
BAR = f"BAR (POS<1> {NOTES}( POS<2> {NOTES})?|POS<2> {NOTES}) "


def write_tiny(mask):
    tokens = ["BAR"]
    while tokens[-1] != "END" and len(tokens) < 500:
        u = torch.randn(len(names))
        y = (masked(u, tokens) if mask else u).softmax(0)
        tokens.append(names[y.multinomial(1)])
    return " ".join(tokens)


# %%
for mask in (False, True):
    texts = [write_tiny(mask) for _ in range(200)]
    good = sum(bool(re.fullmatch(f"({BAR})+END", text)) for text in texts)
    print(
        f"{'with' if mask else 'without'} the mask: {good} of 200 well-formed"
    )
assert good == 200

# %% [markdown] tags=["path"]
# For the full grammar of tab, `allowed_next_ids` returns the tokens that may come next, and
# <autoref identifier="slp_transformer.generation.decoding.generate">generate</autoref> masks the others. It must
# allow real pieces. How many of the 811 tokens may come next, on average?

# %%
ids = tokenizer.encode(corpus[0])
choices = [tokenizer.allowed_next_ids(ids[:i]) for i in range(1, len(ids))]
assert all(i in some for i, some in zip(ids[1:], choices, strict=True))
mean = sum(map(len, choices)) / len(choices)
print(f"{mean:.0f} of {len(tokenizer)} tokens are allowed, on average")

# %% [markdown] tags=["more"] gist="The mask on the neck, while a chord grows note by note"
# On the neck, the mask looks like this. Take a chord of a training piece, note by note, from its low strings to
# its high ones. Ruled-out places are hatched, and the others show how probable the model finds them as the next
# note. The rest of the probability is for higher frets and for other tokens, such as those that end the chord.
# Add a note: which strings close, and where does the model expect the next finger?

# %%
is_chord = (tab for tab in corpus if len(next(tab.iter_events()).notes) == 5)
ids = tokenizer.encode(next(is_chord))
tokens = tokenizer.to_tokens(ids)
begin = next(i for i, t in enumerate(tokens) if t.startswith("TAB"))


@torch.no_grad()
def next_token(ids):
    may = sorted(tokenizer.allowed_next_ids(ids))
    u = torch.full((len(tokenizer),), -torch.inf)
    u[may] = model(torch.tensor(ids))[-1, may]
    y = u.softmax(dim=0)
    return torch.where(u.isinf(), u, y)  # hatched where ruled out


# %% alt="The neck of a guitar, six strings by thirteen frets, after two notes of a chord, on strings 5 and 4. These strings and the sixth are hatched, as they are ruled out; of the places on the three higher strings, one on string 3 has the most probability." caption="The next note of a chord, with the grammar's mask"
states, frets = {}, range(13)
for i in range(begin, begin + 5):
    y, kind = next_token(ids[:i]), "TAB" if i == begin else "WITH"
    places = [f"{kind}<{s},{f}>" for s in strings for f in frets]
    notes = y[tokenizer.to_ids(places)]
    says = (
        f"After {tokens[i - 1]}: {notes.clamp(min=0).sum():.2f} on the neck; "
        f"most likely there: {places[notes.argmax()]}, {notes.max():.2f}."
    )
    neck = notes.view(6, 13)
    neck = plotting.heatmap(neck, strings, frets, top=1, decimals=None)
    states[i - begin] = neck, says
plotting.interactive_steps("Notes of the chord", states, start=2)

# %% [markdown] tags=["path"]
# The model writes forty pieces with this mask. Here is the first that ends with `<eos>`:

# %%
pieces, ended = write(seed=0, allowed=tokenizer.allowed_next_ids)
assert all(piece.num_invalid_tokens == 0 for piece in pieces)
number = ended.index("stop") if "stop" in ended else 0
print(f"{ended.count('stop')} of {len(pieces)} ended with <eos>;", end=" ")
print(f"the rest filled the window. Piece {number + 1}:")
print(format_tab(pieces[number].tab))

# %% [markdown] tags=["more"] gist="How many chords one hand can hold: the corpus’s, the model’s, and two baselines’"
# ## Can it be played?
#
# One hand can play a chord if each note has a string of its own, each fret is on the neck, four fingers reach the
# frets (the index may lie across the strings), and the *span*, from the lowest pressed fret to the highest, is at
# most four frets. The grammar guarantees only the first: the strings of a chord come in order, so none is used twice.
# It knows nothing of fingers. That, the model has to learn.
#
# A single note on the neck always fits, and two often do by chance, so we count only chords of three or more notes.
# For comparison, we draw as many chords as the corpus has, of the same sizes, in two ways. *By chance*: each note is
# drawn by its frequency in the corpus, and drawn again if its string is taken. *Bigram*: each note is drawn from
# those that follow the previous note in some chord of the corpus. What share of each will a hand hold?

# %%
import random

from slp_guitar import Event

luck = random.Random(0)
notes = [n for tab in corpus for e in tab.iter_events() for n in e.notes]


def drawn_chord(size):
    chord = []
    while len(chord) < size:
        note = luck.choice(notes)
        if note.string not in [other.string for other in chord]:
            chord.append(note)
    return Event(0, tuple(chord))


# %%
following = {}
for tab in corpus:
    for event in tab.iter_events():
        first = (None, *event.notes)
        for before, note in zip(first, event.notes, strict=False):
            following.setdefault(before, []).append(note)


def bigram_chord(size):
    chord = [None]
    while len(chord) <= size:
        after = following.get(chord[-1])
        chord = [*chord, luck.choice(after)] if after else [None]
    return Event(0, tuple(chord[1:]))


# %%
def chords(tabs):
    events = [event for tab in tabs for event in tab.iter_events()]
    return [event for event in events if len(event.notes) >= 3]


written = [piece.tab for piece in pieces]
drawn = [drawn_chord(len(chord.notes)) for chord in chords(corpus)]
groups = {"the corpus": chords(corpus), "the model": chords(written)}
groups["a bigram"] = [
    bigram_chord(len(chord.notes)) for chord in chords(corpus)
]
groups["by chance"] = drawn

# %% alt="Bars: the share of chords that a hand can hold. The corpus is at 1, the model just below, the bigram lower; chords of independently drawn notes are below one half." caption="Chords that a hand can hold"
shares = {
    name: compute_playable_share(group) for name, group in groups.items()
}
for name, group in groups.items():
    print(f"{name}: {shares[name]:.1%} of {len(group):,} chords can be held;")
    threes = sum(len(chord.notes) == 3 for chord in group) / len(group)
    print(f"    {threes:.0%} of them have three notes")
assert shares["the corpus"] == 1 and shares["the model"] > 0.85
assert shares["by chance"] < 0.6
assert 0.8 < shares["a bigram"] < shares["the model"]
plotting.bars(list(shares.values()), list(shares), top=1)

# %% [markdown]
# More than half of the chords drawn by chance cannot be held; of a
# [model's](../benchmarks/results/chapter_seeds/README.md), at least 94% can. Before you praise it, look at the bigram:
# one note of context comes close to nine in ten. So playable chords are no proof that a model has understood hands.
# What would tell the two apart? Whole phrases, and the loss, in which every token counts.

# %% [markdown] tags=["more"] gist="A model of 403 real tabs, against a 5-gram"
# ## From real tabs
#
# Tabs on the web were fingered by people and are less regular. A model of 403 classical ones needs [about a quarter
# fewer bits per note](../benchmarks/results/guitar_lm/README.md) than a 5-gram, on tabs by other composers. (Bits per
# note: the loss in nats, summed over all tokens and divided by ln 2 and by the number of notes.)

# %% [markdown] tags=["more"] gist="Changes to try, each with its outcome folded"
# ## Try it
#
# Assertions in the cells describe the settings above. If one stops you, delete it.
#
# 1. Change `temperature=0.8` in `write` to 0.3, then to 1.5. What will happen to the pieces,
#    and to the tokens that break the grammar?
#
#    <details><summary>What happens</summary>
#
#    At 0.3 the model keeps to its most probable tokens, which follow the grammar more often, and repeats
#    itself; at 1.5 it samples from the tail, where the mistakes are.
#
#    </details>
#
# 2. Give it another header: that of `DROP_D` (from `slp_guitar.fretboard`) instead of
#    `STANDARD`: `tokenizer.tuning_tokens(DROP_D)` in `write`. Its sixth string is tuned down to D. How
#    can you tell whether the model uses it?
#
#    <details><summary>What happens</summary>
#
#    It can use it: the tuning is a token like any other, and the corpus has pieces in drop D. Count the chords
#    that have the open sixth string, which now sounds a D, under each header, and in the corpus.
#
#    </details>
#
# 3. Train on ten pieces only: `stream = torch.tensor(encode_all_tabs(corpus[:10], tokenizer))` before
#    the cell that makes the model; run on from there (`encode_all_tabs` is in `slp_guitar`). What
#    will the two curves do?
#
#    <details><summary>What happens</summary>
#
#    The model memorizes its ten pieces, so its training loss falls further than with all of them, and the
#    validation loss does not follow: it is confidently wrong about others.
#
#    </details>
#
# 4. Make the hand smaller: `compute_playable_share(group, max_span=3)`. Which group loses least?
#
#    <details><summary>What happens</summary>
#
#    The corpus: at 3 it loses nothing, since its shapes span at most three frets. The bigram's group
#    loses 9 percentage points, that by chance 6. At 2, the corpus loses 3 as well.
#
#    </details>

# %% [markdown]
# ## To remember
#
# - A pitch has several places on the neck. Tablature says which one, so it records the fingering.
# - Places, positions and bar lines become tokens, and the model stays the same.
# - A loss alone says little. Compare it with a uniform and a unigram model, on held-out pieces.
# - A mask makes it impossible to break the grammar, so measure what the grammar leaves open *(whole chapter)*.
# - Report a share with its count, and with a baseline that obeys the same rules *(whole chapter)*.

# %% [markdown]
# ## Test yourself
#
# 1. No token of this model means *E4*. Why not, and is anything lost?
#
#    <details><summary>Answer</summary>
#
#    Its tokens are places, such as `TAB<string,fret>`, and several of them sound an E4. Nothing is lost, since
#    the tuning gives the pitch of each place.
#
#    </details>
#
# 2. A model's validation loss is 0 nats. What do you suspect?
#
#    <details><summary>Answer</summary>
#
#    That it was trained on the held-out pieces, or sees the token that it has to predict. Music leaves choices
#    open, and no honest model is certain of them all.
#
#    </details>
#
# 3. One model's events are all playable, another's only in 98% of cases. Why may the second model be
#    better *(whole chapter)*?
#
#    <details><summary>Answer</summary>
#
#    The first may write only single notes, which are always playable. Compare chords of the same sizes,
#    with their counts, and the validation loss.
#
#    </details>
#
# **Your own Transformer plays.** Once the parts of `mine.py` are right ([chapter 5](05_language_model.py) says how),
# `python -m slp_transformer.check mine.py --tabs` trains them on this corpus, draws each token by your `draw` under
# the grammar's mask, and writes `my_tab.mid`. Open it in a music player, or drop it on
# [Finger a piece](../docs/fingering.md) and press Play.
#
# Next: [Pitch to tab](13_pitch_to_tab.py). To read and write tab files, see the reference of
# <autoref identifier="slp_guitar">slp_guitar</autoref>.
