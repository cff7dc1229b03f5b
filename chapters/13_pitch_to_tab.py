# %% [markdown]
# # 13 · Pitch to tab
#
# Section 12.3 (2025-26 drafts) and chapter 13 (August 2026 draft), between two other languages
#
# Turn notes into tab that a hand can play: with costs written by hand, with learned costs, and by
# translation.
#
# You will be able to say why notes cannot be placed one by one; find the cheapest fingering of a piece
# by dynamic programming; learn its costs from fingered pieces, by cross-entropy over whole fingerings;
# train chapter 10's encoder-decoder on the same task; and compare all of these on held-out pieces. Read
# first: [Encoder and decoder](10_encoder_decoder.py) and [Guitar tablature](12_guitar_tab.py). About
# 45 minutes.

# %% [markdown]
# ## From one note to many fingerings
#
# A MIDI file says what sounds; a guitarist also has to know where to play it. Each note of this melody has
# several places on the neck. Any place of one note goes with any place of the next, so the number of
# fingerings is the product.

# %%
from math import prod

from slp_transformer.guitar import STANDARD

melody = [48, 50, 52, 53, 55, 57, 59, 60]  # C major up to middle C
counts = [len(STANDARD.positions_of(pitch)) for pitch in melody]
print("places of each note:", *counts)
print(f"fingerings of eight notes: {prod(counts):,}")

# %% [markdown]
# The notes that sound together form a *moment*, and they constrain each other: each needs a string of its
# own, and the pressed frets must lie within the hand's span. A way to play all notes of a moment is a
# *grip*. We try every combination of places, and keep those that one hand can hold:

# %%
import itertools

from slp_transformer.guitar import is_playable_grip

d_major = (50, 54, 57, 62)  # as a pianist's right hand takes it
places = [STANDARD.positions_of(pitch) for pitch in d_major]
tried = list(itertools.product(*places))
held = [grip for grip in tried if is_playable_grip(grip, max_span=4)]
print(f"{len(tried):,} ways to place the chord, {len(held)} grips:")
for grip in held:
    print(*(f"{string}/{fret}" for string, fret in grip))

# %% [markdown]
# (`5/5` is the fifth string at its fifth fret.) The package builds grips note by note, and drops a partial
# grip as soon as it cannot be held. A decoder that writes one note after another has to do more: it must
# leave a place for the notes to come. `allowed_next_notes` returns the places that do. The lowest note of
# this chord, D, is an open string, but no grip with that string can be held.

# %%
from slp_transformer import plotting
from slp_transformer.guitar import Note
from slp_transformer.guitar.fingering.grips import (
    allowed_next_notes,
    can_add_note,
    find_grips,
)

assert set(find_grips(d_major, STANDARD)) == set(held)
first = allowed_next_notes((), d_major, STANDARD)
assert set(first) == {grip[0] for grip in held}
assert Note(4, 0) in places[0] and Note(4, 0) not in first
plotting.show_source(can_add_note)

# %% [markdown]
# ## The hand has a position
#
# Grips cannot be chosen independently either, since the hand has to move from each to the next. We say that
# it is at fret $p$ if the index finger is there. Let $e_t(g,p)$ be the cost of grip $g$ at moment $t$ for
# a hand at $p$ (a stretch, say, or a reach behind the index finger), and $m(p',p)$ the cost of moving from
# $p'$ to $p$. We look for the fingering with the lowest total cost. Let $v_t(p)$ be the lowest cost of all
# fingerings up to moment $t$ that end with the hand at $p$:
#
# $$
# v_t(p)=\min_{g}\,e_t(g,p)+\min_{p'}\,\bigl(v_{t-1}(p')+m(p',p)\bigr)
# $$
#
# This is Viterbi's algorithm (1967), and the position of the hand is its hidden state. An open string needs
# no finger, so it costs no move. First we try everything, on three notes:

# %%
from slp_transformer.guitar.fingering.viterbi import HAND_FRETS, HandCosts

costs, short = HandCosts(), [(60,), (64,), (67,)]
choices = [find_grips(moment, STANDARD) for moment in short]


def cost_of(path, hands):
    held = sum(map(costs.grip_cost, path, hands))
    return held + sum(map(costs.move_cost, hands, hands[1:]))


# %%
everything = [
    (cost_of(path, hands), path)
    for path in itertools.product(*choices)
    for hands in itertools.product(HAND_FRETS, repeat=3)
]
least, best = min(everything)
where = " ".join(f"{s}/{fret}" for ((s, fret),) in best)
print(f"{len(everything):,} sums; the lowest is {least:.1f}: {where}")

# %% [markdown]
# The recursion finds the same minimum, and never looks back further than one moment. Its work grows in
# proportion to the number of moments; the number of sums above is multiplied with each.

# %%
v = [0.0] * len(HAND_FRETS)
for t, choice in enumerate(choices):
    e = [min(costs.grip_cost(g, p) for g in choice) for p in HAND_FRETS]
    m = [[costs.move_cost(q, p) for q in HAND_FRETS] for p in HAND_FRETS]
    if t == 0:
        v = e
    else:
        came = [min(a + b for a, b in zip(v, row, strict=True)) for row in m]
        v = [a + b for a, b in zip(e, came, strict=True)]
assert abs(min(v) - least) < 1e-9

# %% [markdown]
# The package's version also remembers which grip and which position gave each minimum, and follows them back
# from the end.

# %%
from slp_transformer.guitar.fingering.viterbi import (
    find_cheapest_fingering,
    find_cheapest_path,
)

assert find_cheapest_path(choices, costs) == list(best)
plotting.show_source(find_cheapest_path)

# %% [markdown]
# `find_cheapest_fingering` lists the grips and finds the path. It puts the melody in first position. If we
# ask for the fifth position and make open strings expensive, it plays the same notes higher up the neck.

# %%
from slp_transformer.guitar import Bar, Event, Tab, format_tab


def tab_of(path):
    events = [Event(2 * i, grip) for i, grip in enumerate(path)]
    return format_tab(Tab("", STANDARD, (Bar(2 * len(path), tuple(events)),)))


moments = [(pitch,) for pitch in melody]
low = find_cheapest_fingering(moments, STANDARD)
costs = HandCosts(preferred_position=5, per_open_string=5.0)
high = find_cheapest_fingering(moments, STANDARD, costs)
assert all(grip[0].fret <= 3 for grip in low)
assert all(grip[0].fret >= 4 for grip in high)
print(tab_of(low), tab_of(high), sep="\n")

# %% [markdown]
# One command turns a MIDI file into tab in this way:
#
# ```
# slp-transformer tab song.mid -o song.gp5 --tuning drop-D --capo 2
# ```
#
# `--position`, `--open-strings` and `--pin` say what you prefer, `--alternatives 3` shows other fingerings,
# and `--review 5` the five closest decisions. Notes that are not on the neck are reported, and transposed or
# left out only if you ask for it.

# %% [markdown]
# ## How good is it?
#
# Costs written by hand are an opinion. What we can measure is how often a fingering agrees with a written
# one. Every piece of chapter 12's practice corpus has both: its pitches, and its tab, which was written by
# rules. We hold out some pieces, and compare the dynamic program with a baseline that many tab editors use:
# each note at its lowest fret.

# %%
from slp_transformer.guitar import prepare_tab_dataset
from slp_transformer.guitar.fingering.grips import finger_lowest_frets
from slp_transformer.guitar.fingering.passages import (
    compare_fingerings,
    passage_from_tab,
    sum_metrics,
)

data = prepare_tab_dataset(val_split=0.1)
training = [passage_from_tab(tab) for tab in data.train_tabs]
held_out = [passage_from_tab(tab) for tab in data.val_tabs]


# %%
def measure(way):
    compared = [compare_fingerings(p.grips, way(p), p.tuning) for p in held_out]
    return sum_metrics(compared).to_shares()


# %%
found = {
    "lowest fret": measure(lambda p: finger_lowest_frets(p.moments, p.tuning)),
    "cheapest for the hand": measure(
        lambda p: find_cheapest_fingering(p.moments, p.tuning)
    ),
}
for name, shares in found.items():
    print(f"{name}: {shares['strings']:.1%} of notes on the right string")
assert all(shares["pitch"] == 1 for shares in found.values())

# %% [markdown]
# The pitch is given, so a note on the right string is at the right fret, too.
#
# ## Learned costs
#
# TODO

# %% [markdown]
# ## Translation, note by note
#
# Translate from pitches into places. It is kinder than translating sentences, since every note of
# the source has its one place in the target. So the decoder is not left to count: it reads a note,
# writes its place, reads the next note, and so on in turn. Nothing can be forgotten, and
# cross-attention is free to look at the notes around. A note's token says how far it lies above the
# lowest open string, so that with a capo the tokens are the same, as the tab is; and whether it
# sounds together with the note before it.

# %%
from slp_transformer.guitar.fingering.seq2seq import (
    encode_source,
    encode_target,
    format_target_ids,
    interleave_notes_and_targets,
)

piece = unseen[0]
source, target = encode_source(piece), encode_target(piece)
assert len(source) == len(target) == sum(map(len, piece.moments))
reads = interleave_notes_and_targets(source, target)
assert reads[::2].equal(source) and reads[1::2].equal(target[:-1])
print("encoder reads: ", *source[:6].tolist())
print("decoder reads: ", *reads[:11].tolist())
print("decoder writes:", *format_target_ids(target[:6].tolist()))

# %% [markdown]
# The model is
# <autoref identifier="slp_transformer.encoder_decoder.EncoderDecoder">EncoderDecoder</autoref>, one
# block on each side, and the loop is that of every chapter. It starts as in 2017, since chapter 11
# has shown what a start is worth to cross-attention. One thing is new. In training the
# decoder reads the right places so far; when it writes, it reads its own, and one odd choice drags
# others behind it. So a tenth of the places that it reads are replaced by another place of the
# same note.

# %%
import torch

from slp_transformer import EncoderDecoder, TransformerConfig
from slp_transformer.guitar.fingering import seq2seq

torch.manual_seed(0)
N = 32  # notes in a window, so 64 tokens for the decoder
sizes = {"model_dim": 48, "num_heads": 4, "num_blocks": 1}
vocabulary = {"source_vocab_size": seq2seq.SOURCE_VOCAB_SIZE}
start = {"initialization": "xavier"}
config = TransformerConfig(
    seq2seq.TARGET_VOCAB_SIZE, 2 * N, **sizes, **vocabulary, **start
)
model = EncoderDecoder(config)
print(f"{sum(W.numel() for W in model.parameters()):,} parameters")

# %%
from slp_transformer.training import train

torch.set_num_threads(1)  # the digits below depend on the order of sums
records = train(
    model,
    seq2seq.FingeringDataset(learned, N, noise_rate=0.1),
    seq2seq.FingeringDataset(unseen, N),
    steps=500,
    batch_size=16,
    learning_rate=3e-3,
    eval_interval=100,
)
for r in records:
    losses = f"{r.train_loss:.2f} in training, {r.val_loss:.2f} held out"
    print(f"step {r.step}: {losses} (nats a note)")

# %% [markdown]
# The held-out loss is measured with the right places before each note (teacher forcing). When the model writes, it
# reads its own choices, and that is the figure to report. `translate_passage` asks for the likeliest place
# among those that `allowed_next_notes` allows. So its pitches are right and its grips can be held, whatever
# the weights say.


# %% alt="Bars: the share of notes on the right string, for the lowest fret, the cheapest fingering for the hand, and the encoder-decoder, on held-out practice pieces." caption="Notes on the right string, on held-out practice pieces"
def translate(p):
    return seq2seq.translate_passage(model, p, N)


found["encoder-decoder"] = measure(translate)
for name, shares in found.items():
    print(f"{name}: strings {shares['strings']:.1%}", end=", ")
    print(f"chords {shares['chords']:.1%}, playable {shares['playable']:.1%}")
ours = found["encoder-decoder"]
assert ours["pitch"] == 1.0 and ours["playable"] > 0.999
assert ours["strings"] > found["cheapest for the hand"]["strings"]
plotting.bars(
    [shares["strings"] for shares in found.values()], list(found), top=1
)

# %% [markdown]
# The decoder may only write places that a hand can reach, so all its grips can be held. Which of them to
# take, it has learned from the pieces alone. On held-out practice pieces it gets more strings right than
# costs written by hand.

# %% [markdown]
# ## What the hand knows about the notes
#
# In the map, each row is a note as its place is written, each column a note that the encoder has
# read: cross-attention, in the head that is least even. There is no causal mask in it. The decoder
# may look at notes that are still to come, as a player reads ahead.

# %%
from slp_transformer import record_activations

with torch.no_grad():
    H_enc = model.encode(source[:N])
    with record_activations(model) as trace:
        model.decode(reads[: 2 * N - 1], H_enc)
heads = trace[0]["alpha_cross"][:, ::2]  # rows that write a place
alpha = heads[heads.amax(dim=2).mean(dim=1).argmax()]
ahead = alpha.triu(diagonal=1).sum() / alpha.sum()
torch.testing.assert_close(alpha.sum(dim=1), torch.ones(len(alpha)))
print(f"{ahead:.1%} of the weight lies on notes that are still to come")
print(f"if it were spread evenly: {(N - 1) / (2 * N):.1%}")

# %% alt="Heat map of cross-attention in one head, twelve notes of the decoder by the notes that the encoder has read, a window of them. Rows of the same pitch look alike." caption="Cross-attention, a row for each note that is placed"
names = format_target_ids(target[:N].tolist())
plotting.heatmap(alpha[:12], names[:12], names, "α", "12 × m", decimals=None)

# %% [markdown]
# The head looks ahead about as much as even weights would, so it neither seeks nor avoids notes that are still to
# come. Rows of one pitch look alike: for each of them the head looks at the same few notes of the
# passage. The map shows where the model looks, not why.

# %% [markdown]
# ## On tab that people have written
#
# The practice pieces obey rules, and rules can be learned. How do these methods do on people's fingerings?
# Of 26 classical pieces from classtab.org, by composers from whom no piece was learned or tried, so much is on
# the string that the player wrote, in percent of notes and of whole chords:
#
# | fingering | notes | chords |
# |---|---|---|
# | lowest fret | 73.7 | 55.9 |
# | cheapest for the hand | 79.8 | 70.7 |
# | an encoder-decoder, learned from 403 other pieces | 76.5 | 65.2 |
# | this chapter's dynamic program, with costs learned from them (one of three seeds) | 83.7 | 74.4 |
#
# The encoder-decoder, best on the practice pieces, falls behind costs written by hand. The last row keeps
# $e_t(g,p)$ and $m(p',p)$, but learns them from written tab: 14,925 numbers, most of them relative, such
# as which finger takes a note rather than which fret. How it was trained, and what else was tried, is in
# `benchmarks/results/pitch_to_tab`.
#
# ## Try it
#
# 1. Let the hand like open strings: `HandCosts(per_open_string=-1.0)` in `find_cheapest_fingering`. Which
#    notes of the melody change? And at `HandCosts(preferred_position=7, per_open_string=-1.0)`?
#
#    <details><summary>What happens</summary>
#
#    None change: its D, G and B are open already. At the seventh fret the hand keeps the three open
#    strings, and takes the notes between them at frets 7 to 10: so they ring into each other.
#
#    </details>
#
# 2. Leave `noise_rate=0.1` out of the training, and train with three seeds. What becomes of the loss, and
#    of the strings that are right when the model writes alone?
#
#    <details><summary>What happens</summary>
#
#    Both losses fall lower, since no odd place is read. But fewer strings are right, with each of the
#    seeds 0, 1 and 2: who has only read right places goes astray after a wrong one.
#
#    </details>
#
# 3. Replace `allowed_next_notes` by all places of the pitch, in a copy of `translate_passage`. What will go wrong
#    that the table would show?
#
#    <details><summary>What happens</summary>
#
#    Two notes of a chord may take the same string, or lie too far apart, so *playable* falls below
#    100 %; and a chord may run out of strings, so that its last note has no place at all.
#
#    </details>

# %% [markdown]
# ## To remember
#
# - A chord's notes bind each other, so grips are chosen, not notes; a decoder that writes note by
#   note has to leave those to come a place.
# - Where a cost depends on the step before alone, the best of all paths is found step by step.
# - What must hold, such as the pitch, is better built in than learned.
# - In training a decoder reads the truth, in use its own words. Report the second.
# - A baseline that knows the hand is hard to beat. Say by how much, on pieces nobody tuned on.

# %% [markdown]
# ## Test yourself
#
# 1. Why does the cheapest fingering keep one best grip for each place of the hand, rather than one
#    best grip?
#
#    <details><summary>Answer</summary>
#
#    What comes next depends on where the hand is. A grip that is dearer now may leave the hand where
#    the next notes are.
#
#    </details>
#
# 2. A model gets 94 % of strings right with the right places before each note, and 82 % when it
#    writes alone. What is lost between the two?
#
#    <details><summary>Answer</summary>
#
#    Its own mistakes: after a note in another position the likeliest next places are in that
#    position too. Whole passages then differ from what was written.
#
#    </details>
#
# 3. Two players finger the same piece, and agree on 80 % of its notes. What does that say of a model
#    that agrees with one of them on 82 %?
#
#    <details><summary>Answer</summary>
#
#    That there is little left to gain by that measure. Where a model differs, it may be right in
#    another way; only players can tell.
#
#    </details>
#
# Next: [From the book's block to today's](14_todays_block.py). The reference goes on from
# <autoref identifier="slp_transformer.guitar.fingering.viterbi.find_cheapest_fingering">find_cheapest_fingering</autoref>
# to the model of the hand, and to pieces and preferences.
