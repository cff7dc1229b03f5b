# %% [markdown]
# # 12 · Guitar tablature
#
# Sections 8.5 (2025-26 drafts) and 7.5 (August 2026 draft), on another language
#
# Train a language model on guitar tablature, and let it write only what its grammar allows.
#
# You will be able to say why tablature is more than notes, turn a tab into tokens and back, turn a
# grammar into a mask over the next token, and judge what a model writes by a question that a guitarist
# would ask: can it be played? Read first: [The language-model head](05_language_model.py).
# About 40 minutes.

# %% [markdown]
# ## One note, many places
#
# A pitch says what sounds; a guitarist also has to know where. The E above middle C is the open
# first string, and also the fifth fret of the second, the ninth of the third, and so on down the neck. Tablature
# writes the place, string and fret, so it holds something that a score leaves out: fingering.

# %%
import torch

from slp_transformer import plotting
from slp_transformer.guitar import STANDARD, Note

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
# The package generates practice pieces from music theory: scales in positions, arpeggios, chord
# progressions with picking patterns, twelve-bar blues, in several keys and tunings. So the first
# run downloads nothing.
#
# What sounds at one moment, a note or a chord, is an *event*. All of these can be played by one
# hand: no two notes on a string, and the fretted notes at most four frets apart.
#
# A tab reads like this. Six lines are the six strings, the highest on top; a number is a fret, 0 an
# open string; time goes from left to right, and numbers below each other sound together. A bar
# ends at `|`.

# %%
from slp_transformer.guitar import (
    compute_playable_share,
    format_tab,
    make_practice_corpus,
)

corpus = make_practice_corpus(seed=0)
events = [event for tab in corpus for event in tab.iter_events()]
assert compute_playable_share(events) == 1.0
print(f"{len(corpus)} pieces, {len(events):,} events, all playable")
print(format_tab(corpus[0]))

# %% [markdown]
# ## Your own tabs
#
# What this chapter does step by step, two commands do with a folder of ASCII tablature files, as they
# are found on the web:
#
# ```
# slp-transformer train tabs path/to/your/tabs --out-dir runs/tabs
# slp-transformer generate runs/tabs
# ```
#
# They use another code of tokens than this chapter, in which a repeated bar is a single token
# (see <autoref identifier="slp_transformer.guitar.tab_tokenizer">slp_transformer.guitar.tab_tokenizer</autoref>).
# What the reader cannot understand is reported by file and line, and skipped. With
# `--prompt-file my_riff.txt` the model continues a tab of yours. With `--output piece.gp5` (or `.mid`,
# `.musicxml`) other programs open and play what was written; some pieces can be
# [heard](../docs/hear.md) on this site.

# %% [markdown]
# ## From tab to tokens
#
# A language model reads a row of tokens. A place on the neck becomes one token, `TAB<string,fret>`;
# `POS<k>` says that what follows comes k steps after the bar line; `BAR` begins a bar. A header
# names the tuning and the capo. Nothing is lost: the ids give the same tab back.

# %%
from slp_transformer.guitar import TabTokenizer

tokenizer, first = TabTokenizer(), corpus[0]
ids = tokenizer.encode(first)
back = tokenizer.decode(ids)
assert back.tab.bars == first.bars and back.num_invalid_tokens == 0
print(f"{len(tokenizer)} kinds of token; the first piece has {len(ids)}:")
print(*tokenizer.to_tokens(ids[:16]), "…")

# %% [markdown]
# One piece in ten is *held out*: the model never learns from it, and is measured on it. The rest
# becomes one long row. (`prepare_tab_dataset` reads a folder of your own tabs if you name one first.)

# %%
from slp_transformer.guitar import prepare_tab_dataset

data = prepare_tab_dataset(val_split=0.1)
stream, unseen, corpus = data.train_data, data.val_data, data.train_tabs
ids = tokenizer.encode(corpus[0])
assert stream[: len(ids)].tolist() == ids
print(f"{len(stream):,} tokens to learn from, {len(unseen):,} held out")

# %% [markdown]
# ## Training
#
# The model is chapter 5's, and so is its task: at every position, predict the next token. Two
# numbers say how much there is to gain. A model that knows nothing gives each token the probability
# $1/|V|$, which costs $\ln|V|$ nats a token (a nat is the unit of the natural logarithm). One that
# knows how often each token occurs, but looks at no context, pays less: the mean of $-\ln$ of those
# frequencies.

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
no_context = -frequencies[unseen].log().mean().item()
print(f"no knowledge: {log(len(tokenizer)):.2f} nats a token")
print(f"no context:   {no_context:.2f}")

# %%
from slp_transformer.training import train


def report(record):
    training, held_out = record.train_loss, record.val_loss
    line = f"step {record.step:5d}  training {training:.3f}"
    print(f"{line}  held out {held_out:.3f}", flush=True)


# %%
records = train(
    model,
    stream,
    unseen,
    steps=700,
    batch_size=8,
    learning_rate=6e-3,
    eval_interval=70,
    report=report,
)
assert records[-1].val_loss < no_context / 2

# %% [markdown]
# At each step the model reads eight windows from random places of the row. Every 70 steps the loss on
# the held-out pieces is measured. The first column is the mean training loss since the last measurement.

# %%
last = records[-1]
gap = last.val_loss - last.train_loss
print(f"in the end {last.train_loss:.2f} nats a token in training,")
print(f"{last.val_loss:.2f} held out, {gap:.2f} more")
assert gap > 0.1

# %% alt="Loss in nats per token over 700 training steps. The training loss and the held-out loss fall steeply at first, far below the dashed line of a model without context. In the second half they part, and the held-out curve ends above the other and flatter." caption="Training loss and held-out loss on tabs"
curves = {
    "training": [(r.step, r.train_loss) for r in records],
    "held out": [(r.step, r.val_loss) for r in records],
}
plotting.lines(
    curves, x="step", y="nats per token", levels={"no context": no_context}
)

# %% [markdown]
# Both end far below what frequencies alone can reach, so the model uses the context. But the curves part:
# some of what it gains is knowledge of these pieces, and only the rest carries over to pieces that it has not
# seen. The held-out loss is the one to report.

# %% [markdown]
# ## It writes
#
# We give the model the beginning of a piece, `<bos>` and a header, and draw one token after another
# from its distribution until it says `<eos>`, or its window of tokens is full.

# %%
from slp_transformer.generation import generate


def write(seed, count=40, **options):
    header = ["<bos>", *tokenizer.tuning_tokens(STANDARD), "BAR"]
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
print(f"{ill_formed} of {length:,} tokens are of a kind not allowed there")

# %% [markdown]
# ## A grammar rules out tokens
#
# Tokens have a grammar: notes that sound together go from the low string to the high one, and
# positions in a bar only grow. The model had to learn it like everything else, and slips at times.
# We can rule the slips out. Take a tiny grammar: a guitar of two strings, LOW and HIGH, and bars with two
# positions. This function says what may follow:

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
# The rest is what [attention](01_attention.py) does with the future: add −∞ to the logits of what may not
# follow. The softmax makes their probability 0, and the others keep their ratios.


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

# %% [markdown]
# Now write 200 texts with random logits at each step, and compare with the grammar written as a
# pattern:

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

# %% [markdown]
# For the whole grammar of tab, `allowed_next_ids` says what may follow, and
# <autoref identifier="slp_transformer.generation.decoding.generate">generate</autoref> masks the rest. The
# grammar must allow everything in the corpus:

# %%
ids = tokenizer.encode(corpus[0])
choices = [tokenizer.allowed_next_ids(ids[:i]) for i in range(1, len(ids))]
assert all(i in some for i, some in zip(ids[1:], choices, strict=True))
mean = sum(map(len, choices)) / len(choices)
print(f"{mean:.0f} of {len(tokenizer)} tokens are allowed, on average")

# %% [markdown]
# Of forty pieces that the model writes with this mask, we show the first that ended by itself.

# %%
pieces, ended = write(seed=0, allowed=tokenizer.allowed_next_ids)
assert all(piece.num_invalid_tokens == 0 for piece in pieces)
number = ended.index("stop") if "stop" in ended else 0
print(f"{ended.count('stop')} of {len(pieces)} came to an end;", end=" ")
print(f"the others filled their window. Piece {number + 1}:")
print(format_tab(pieces[number].tab))

# %% [markdown]
# ## Can it be played?
#
# One hand can play a chord if each note has a string of its own, each fret is on the neck, and the
# *span*, from the lowest fretted note to the highest, is at most four frets. The grammar guarantees the
# first two: strings only go up within a chord, so none comes twice, and there is no token for a
# fret beyond the neck. It says nothing about spans: if the model's chords fit a hand, the model has
# learned that.
#
# A single note always fits, and two often do by chance. So we count the chords of three notes and
# more. As baselines, we draw as many chords as the corpus has, of the same sizes and on distinct strings, in two
# ways. *By chance*, each note is drawn by itself, as often as it occurs in the corpus. A *bigram* draws each note
# from those that follow the note before it in a chord of the corpus, so it knows only the last note. The model's
# own chords are fewer, and it chooses their sizes.

# %%
import random

from slp_transformer.guitar import Event

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

# %% alt="Bars: the share of chords whose span is at most four frets. The corpus, the model and the bigram are at or close to 1, chords of notes drawn one by one below one half." caption="Chords that a hand can hold"
shares = {
    name: compute_playable_share(group) for name, group in groups.items()
}
for name, group in groups.items():
    print(f"{len(group):5,} chords, {name}: {shares[name]:.1%} within a span,")
    threes = sum(len(chord.notes) == 3 for chord in group) / len(group)
    print(f"      {threes:.0%} of them of three notes")
assert shares["the corpus"] == 1 and shares["the model"] > 0.85
assert shares["by chance"] < 0.6
assert shares["a bigram"] > 0.9
plotting.bars(list(shares.values()), list(shares), top=1)

# %% [markdown]
# Chords drawn by chance fail, but a bigram succeeds: knowing the note before is enough for a chord that
# fits a hand. So playable chords alone show little of what the model has learned.

# %% [markdown]
# ## From real tabs
#
# Tabs of the web are fingered by people, and less regular. One command trains a model of this kind on
# a folder of them:
#
# ```
# slp-transformer train tabs DATA/train --val-data DATA/valid --out-dir runs/classical
# slp-transformer evaluate runs/classical --samples 24 --max-new-tokens 2000 --temperature 1
# ```
#
# With 403 files of classical tabs from classtab.org to learn from, and 54 by other composers held out,
# 2,500 steps, eleven minutes of one core, brought it to 4.30 bits a note, where a 5-gram of the same
# tokens needs 6.05. How its pieces differ from people's, and one of them, is in
# `benchmarks/results/guitar_lm`.
#
# ## Try it
#
# 1. Change `temperature=0.8` in `write` to 0.3, then to 1.5. What will happen to the pieces, to
#    the slips, and to the share of chords within a span?
#
#    <details><summary>What happens</summary>
#
#    At 0.3 the bars repeat themselves, there are fewer slips, and nearly every chord fits; but a
#    model that always does the most probable thing hardly ever says `<eos>`. At 1.5 it draws from
#    the tail: slips become several times as frequent, pieces end early, and about three chords in
#    ten are out of reach.
#
#    </details>
#
# 2. Give it another beginning: the header of `DROP_D` (from `slp_transformer.guitar.fretboard`)
#    instead of `STANDARD`. Its sixth string is a D. Will the model use it?
#
#    <details><summary>What happens</summary>
#
#    Yes: its chords of D use the open sixth string, which now sounds D. The header is a token like
#    any other, and the corpus has pieces in drop D to learn from.
#
#    </details>
#
# 3. Train it on ten pieces: make the row from `corpus[:10]` with `encode_all_tabs`. What will
#    the two curves do?
#
#    <details><summary>What happens</summary>
#
#    Within a hundred steps the training loss is far below where it was with all the pieces, and the
#    held-out curve has turned and risen, in the end above that of a model that knows nothing. It
#    knows its ten pieces by heart, and is sure of them where something else comes.
#
#    </details>
#
# 4. Ask for smaller hands: `max_span=3` in `compute_playable_share`. Which of the groups loses least?
#
#    <details><summary>What happens</summary>
#
#    The corpus and the model lose nothing at 3: practice chords are shapes within one position. The
#    chords drawn by chance lose most. At 2 all lose something.
#
#    </details>

# %% [markdown]
# ## To remember
#
# - A pitch has several places on the neck; tablature says which, so it holds the fingering.
# - Any row of symbols can be a language: places, positions and bar lines become tokens, and nothing
#   of the model changes.
# - A loss says little alone. Compare it with that of a model that knows nothing and of one without
#   context, and report it on pieces that were held out.
# - What a grammar forbids, the model cannot get wrong; so measure what the grammar leaves open.
# - A measure needs its count, and a baseline that is held to the same rules.

# %% [markdown]
# ## Test yourself
#
# 1. Why is no single token of this model able to say *E4*, and is that a loss?
#
#    <details><summary>Answer</summary>
#
#    Its tokens are places, `TAB<string,fret>`, and five of them are E4. Nothing is lost, since the
#    tuning gives the pitch of each place; the other way round, from pitch to place, something
#    would be missing.
#
#    </details>
#
# 2. A model's held-out loss is 0 nats. What do you suspect?
#
#    <details><summary>Answer</summary>
#
#    That the held-out pieces were learned from, or that the model sees the token that it has to
#    predict. Music has choices; no honest model is certain of all of them.
#
#    </details>
#
# 3. Of two models, one writes 100 % of events that can be played, the other 98 %. Why may the second
#    be the better one?
#
#    <details><summary>Answer</summary>
#
#    The first may write single notes only, which always fit. Compare chords of the same sizes, with
#    their counts, and the held-out loss.
#
#    </details>
#
# Next: [Pitch to tab](13_pitch_to_tab.py). The reference of
# <autoref identifier="slp_transformer.guitar">slp_transformer.guitar</autoref> goes on with reading and
# writing tab files.
