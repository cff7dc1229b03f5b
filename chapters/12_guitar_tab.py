# %% [markdown]
# # 12 · Guitar tablature
#
# Sections 8.5 (2025-26 drafts) and 7.5 (August 2026 draft), on another language
#
# Train a language model on guitar tablature and print a piece that it wrote.
#
# You will be able to say why tablature is more than notes, turn a tab into tokens and back, train
# `TransformerLM` on a corpus, and judge what it writes by a question that a guitarist would ask: can
# it be played? Read first: [The language-model head](05_language_model.py). About 20 minutes.

# %% [markdown]
# ## One note, many places
#
# A pitch says what sounds; a guitarist also has to know where. The E above middle C is the open
# first string, and also the fifth fret of the second, the ninth of the third, and so on down the neck. Tablature
# writes the place, string and fret, so it holds something that a score leaves out: fingering.

# %%
import torch

from slp_transformer import show
from slp_transformer.guitar import STANDARD, Note

places = STANDARD.positions(64)  # 64 is the MIDI number of this E
for note in places:
    assert STANDARD.pitch(note) == 64
    print(f"string {note.string}, fret {note.fret}")

# %% alt="The neck of a guitar, six strings by twenty frets. One pitch, E4, is marked in five places: string 1 open, string 2 at fret 5, string 3 at fret 9, string 4 at fret 14 and string 5 at fret 19."
strings, frets = range(1, 7), range(20)
pitches = [[STANDARD.pitch(Note(s, f)) for f in frets] for s in strings]
neck = torch.tensor(pitches) == 64
assert neck.sum() == len(places) == 5
show.heatmap(neck.float(), rows=strings, columns=frets, decimals=None)

# %% [markdown]
# ## The corpus
#
# The package generates practice pieces from music theory: scales in positions, arpeggios, chord
# progressions with picking patterns, twelve-bar blues, in several keys and tunings. So the first
# run downloads nothing. Everything in it can be played by one hand: no two notes on a string, and
# the fretted notes of one moment at most four frets apart.

# %%
from slp_transformer.guitar import format_tab, playable_share, practice_corpus

corpus = practice_corpus(seed=0)
events = [event for tab in corpus for event in tab.events()]
assert playable_share(events) == 1.0
print(f"{len(corpus)} pieces, {len(events):,} events, all playable")
print(format_tab(corpus[0]))

# %% [markdown]
# Six lines are the six strings, the highest on top; a number is a fret, 0 an open string; time goes
# from left to right.
#
# ## Your own tabs
#
# What this chapter does step by step, two commands do with a folder of ASCII tablature files, as they
# are found on the web:
#
# ```
# slp-transformer train path/to/your/tabs --guitar --run runs/tabs
# slp-transformer generate runs/tabs
# ```
#
# What the reader of such files cannot make out, it reports by file and line, and skips.

# %% [markdown]
# ## From tab to tokens
#
# A language model reads a row of tokens. A place on the neck becomes one token, `TAB<string,fret>`;
# `POS<k>` says that what follows stands k steps after the bar line; `BAR` begins a bar. A header
# names the tuning and the capo. Nothing is lost: the ids give the same tab back.

# %%
from slp_transformer.guitar import TabTokenizer

tokenizer, first = TabTokenizer(), corpus[0]
ids = tokenizer.encode(first)
back = tokenizer.decode(ids)
assert back.tab.bars == first.bars and back.ill_formed == 0
print(f"{len(tokenizer)} kinds of token; the first piece has {len(ids)}:")
print(*tokenizer.to_tokens(ids[:16]), "…")

# %% [markdown]
# One piece in ten is held out, to measure on music that the model has not seen. The rest becomes
# one long row. (A folder's name as the first argument would read your tabs.)

# %%
from slp_transformer.guitar import prepare_tabs

data = prepare_tabs(held_out=0.1)
stream, unseen, corpus = data.learned, data.held_out, data.learned_tabs
assert stream[: len(ids := tokenizer.encode(corpus[0]))].tolist() == ids
print(f"{len(stream):,} tokens to learn from, {len(unseen):,} held out")

# %% [markdown]
# ## Training
#
# The model is chapter 5's, and so is its task: at every position, predict the next token. Two
# numbers tell what there is to gain. A model that knows nothing pays $\ln|V|$ nats a token. One that
# knows how often each token occurs, but looks at no context, pays the entropy of those frequencies.

# %%
from math import log

from slp_transformer import TransformerConfig, TransformerLM

torch.manual_seed(0)
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
    learned, held_out = record.train_loss, record.valid_loss
    line = f"step {record.step:5d}  learned {learned:.3f}"
    print(f"{line}  held out {held_out:.3f}", flush=True)


# %%
records = train(
    model,
    stream,
    unseen,
    steps=700,
    batch_size=8,
    learning_rate=6e-3,
    every=70,
    report=report,
)
assert records[-1].valid_loss < no_context / 2

# %% [markdown]
# Each step the model sees eight windows from random places of the row. Its loss on the held-out
# pieces falls well below what frequencies alone can reach: what comes next depends on what came
# before, and the model has found some of how.

# %% alt="Loss in nats per token over the training steps. The curve of the learned pieces and that of the held-out pieces fall together, steeply at first, far below the dashed line of a model without context."
curves = {
    "learned": [(r.step, r.train_loss) for r in records],
    "held out": [(r.step, r.valid_loss) for r in records],
}
show.lines(
    curves, x="step", y="nats per token", levels={"no context": no_context}
)

# %% [markdown]
# ## It writes
#
# We give the model the beginning of a piece, `<bos>` and a header, and draw one token after another
# from its distribution until it says `<eos>`, or its window of tokens is full.

# %%
from slp_transformer.decoding import generate


def write(seed, count=8, **options):
    header = ["<bos>", *tokenizer.header(STANDARD), "BAR"]
    written = generate(
        model,
        [tokenizer.to_ids(header)] * count,  # all at once
        temperature=0.8,
        stop=tokenizer.eos_id,
        generator=torch.Generator().manual_seed(seed),
        **options,
    )
    return [tokenizer.decode(each.ids) for each in written]


# %%
free = write(seed=12)
ill_formed = sum(piece.ill_formed for piece in free)
length = sum(piece.length for piece in free)
print(f"{ill_formed} of {length} tokens stand where their kind may not")

# %% [markdown]
# Tokens have a grammar: notes that sound together go from the low string to the high one, and
# positions in a bar only grow. The model had to learn it like everything else, and slips at times.
# It need not be left to chance. `allowed_next` says what may follow, and
# <autoref identifier="slp_transformer.decoding.generate">generate</autoref> draws from nothing else.
# Here is the longest of the eight pieces.

# %%
pieces = write(seed=12, allowed=tokenizer.allowed_next)
assert all(piece.ill_formed == 0 for piece in pieces)
longest = max(pieces, key=lambda piece: len(piece.tab.bars))
print(format_tab(longest.tab))

# %% [markdown]
# ## Can it be played?
#
# Nobody told the model about hands, and the grammar knows nothing of them. Yet what it writes fits
# one hand, because what it learned from did: no string twice, at most four frets from the lowest
# fretted note to the highest. A single note always fits, so the chords are the test. For comparison,
# chords of as many notes, drawn by how often each occurs in the corpus.

# %%
from slp_transformer.guitar import Event


def chords(tabs):
    events = [event for tab in tabs for event in tab.events()]
    return [event for event in events if len(event.notes) > 1]


# %%
import random

luck = random.Random(0)
notes = [n for tab in corpus for event in tab.events() for n in event.notes]
drawn = [
    Event(0, tuple(luck.choices(notes, k=len(event.notes))))
    for event in chords(corpus)
]


# %% alt="Bars: the share of chords that one hand can play. The corpus and the model are close to 1, chords of notes drawn one by one far below."
written = [piece.tab for piece in pieces]
everything = playable_share(e for tab in written for e in tab.events())
shares = {
    "the corpus": playable_share(chords(corpus)),
    "the model": playable_share(chords(written)),
    "drawn note by note": playable_share(drawn),
}
print(f"of all that the model wrote, {everything:.1%} can be played")
for name, share in shares.items():
    print(f"chords of {name}: {share:.1%}")
show.bars(list(shares.values()), list(shares), top=1)

# %% [markdown]
# ## From real tabs
#
# The same code has learned from 409 classical tabs out of classtab.org, fingered by people, and
# was measured on 54 by other composers. With three blocks of width 128 and 4,000 steps, in about 22
# minutes on one core, the held-out loss fell from 4.31 nats without context to 1.88. Of eight pieces
# that it then wrote, every event could be played. Here is how the first of them begins (the run, with its
# command and its whole curve, stands in `results/guitar_lm`):
#
# ```
# e|------------------------------------------------------------------|
# B|--------------1---2---------------1---------------1---------------|
# G|----------0-------0---0-------0-------0-------0-------0-------0---|
# D|------2-----------------------------------2---------------2-------|
# A|--3-----------------------3---------------------------------------|
# E|------------------------------------------------------------------|
# ```
#
# It circles around a broken chord of C. Nobody told it of harmony either.
#
# ## Try it
#
# - Change `temperature=0.8` in `write` to 0.3, then to 1.5. Low, the model repeats the safest bar;
#   high, it wanders off the neck's logic, and the share of chords that can be played falls.
# - Give it another beginning: the header of `DROP_D` (from `slp_transformer.guitar.fretboard`)
#   instead of `STANDARD`. What it writes should use the low D.
# - Train it on ten pieces, `corpus[:10]`. The loss on what it learned falls further than before,
#   and the held-out loss turns and rises: it knows its pieces by heart.
# - Ask for smaller hands: `max_span=3` in `playable_share`. Some chords of the corpus are out of
#   reach now, and the model's with them.
