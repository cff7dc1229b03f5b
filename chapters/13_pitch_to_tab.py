# %% [markdown] tags=["more"]
# # 13 · Pitch to tab
#
# Section 12.3 (2025-26 drafts) and chapter 13 (August 2026 draft), between two other languages
#
# Turn notes into tab that a hand can play: a translation, by chapter 10's encoder-decoder.
#
# Who fingers a piece better, a Transformer that has learned from hundreds of pieces, or a search whose costs somebody
# wrote by hand? Place your bet; the chapter ends with the score. You will be able to find the cheapest fingering by
# dynamic programming; train an encoder-decoder on the same task; and decode it under a mask that keeps each chord
# playable. Read first: [Encoder and decoder](10_encoder_decoder.py) and [Guitar tablature](12_guitar_tab.py).
# About 40 minutes.

# %% [markdown]
# ## From one note to many fingerings
#
# A MIDI file says what sounds, but not where to play it. Middle C alone has four places on our neck of nineteen frets.
# In how many ways can these eight notes be fingered? Any place of one note goes with any place of the next, so the
# numbers multiply.

# %%
from math import prod

from slp_guitar import STANDARD

melody = [48, 50, 52, 53, 55, 57, 59, 60]  # C major up to middle C
counts = [len(STANDARD.positions_of(pitch)) for pitch in melody]
print("places of each note:", *counts)
print(f"fingerings of eight notes: {prod(counts):,}")

# %% [markdown]
# The notes that sound together form a *moment*. They constrain each other: each needs a string of its own, and four
# fingers must reach the pressed frets. A way to play a moment is a *grip*. Of all combinations of places for a chord
# of four notes, how many can one hand hold?

# %%
import itertools

from slp_guitar import is_playable_grip

d_major = (50, 54, 57, 62)  # as a pianist would voice it
places = [STANDARD.positions_of(pitch) for pitch in d_major]
tried = list(itertools.product(*places))
held = [grip for grip in tried if is_playable_grip(grip, max_span=4)]
print(f"{len(tried):,} ways to place the chord, {len(held)} grips:")
for grip in held:
    print(*(f"{string}/{fret}" for string, fret in grip))

# %% [markdown]
# (`6/10` is the sixth string at its tenth fret.) The lowest note, D, is also the open fourth string, but no grip with
# that open string can be held. The package builds grips note by note, and drops one as soon as it cannot be held:

# %%
from slp_guitar.fingering.grips import find_grips

assert set(find_grips(d_major, STANDARD)) == set(held)

# %% [markdown]
# ## The hand has a position
#
# No grip can be chosen by itself, since the hand has to come from the one before. The hand is *at* fret $p$ if its
# index finger is there. Two costs are written by hand: $e_t(g,p)$, for a hand at $p$ to take grip $g$ at moment $t$
# (it is high for a stretch), and $m(q,p)$, for the hand to move from $q$ to $p$. From them we compute $v_t(p)$, the
# cost of the cheapest fingering up to moment $t$ that ends at $p$:
#
# $$
# v_t(p)=\min_{g}\,e_t(g,p)+\min_{q}\,\bigl(v_{t-1}(q)+m(q,p)\bigr)
# $$
#
# The first minimum chooses the grip, the second where the hand comes from. This is Viterbi's algorithm (1967), with
# the hand's position as the hidden state. It finds the cheapest of all 17,280 fingerings without listing them: at each
# moment it keeps one cost for each position of the hand, and looks back one moment only.

# %%
from slp_guitar.fingering.costs import HandCosts

costs = HandCosts()
m = costs.move_costs("usual", was_open=False)  # a row for each p


def lowest_cost(moments):
    v = [0.0] * len(m)
    for t, moment in enumerate(moments):
        grips = find_grips(moment, STANDARD)
        at_hands = map(costs.price_at_each_fret, grips)
        e = [min(prices) for prices in zip(*at_hands, strict=True)]
        come = [
            min(map(sum, zip(v, row, strict=True))) if t else 0 for row in m
        ]
        v = [a + b for a, b in zip(e, come, strict=True)]
    return min(v)


# %% [markdown]
# The package's version also remembers what gave each minimum, and follows it back from the end. (It counts the notes
# that still ring, too, since a string that is struck again ends them. All costs are in
# <autoref identifier="slp_guitar.fingering.costs.HandCosts">HandCosts</autoref>.)

# %%
from slp_guitar import Bar, Event, Tab, format_tab
from slp_guitar.fingering.lattice import find_cheapest_fingering
from slp_guitar.fingering.passages import Passage


def tab_of(path):
    events = [Event(2 * i, grip) for i, grip in enumerate(path)]
    return format_tab(Tab("", STANDARD, (Bar(2 * len(path), tuple(events)),)))


moments = [(pitch,) for pitch in melody]
path = find_cheapest_fingering(Passage(STANDARD, tuple(moments)), costs)
print(f"cost {lowest_cost(moments):.1f}")
print(tab_of(path))

# %% [markdown]
# Costs written by hand are an opinion. What we can measure is how often a fingering agrees with a written one.
# Chapter 12's practice corpus has pitches and tab, which was written by rules; we hold out some pieces. A note is
# right if it is on the string that was written, a chord if all of its notes are. Some tab editors put each note at
# its lowest fret: that is the baseline to beat.

# %%
from slp_guitar import prepare_tab_dataset
from slp_guitar.fingering.grips import place_on_lowest_frets
from slp_guitar.fingering.passages import (
    compare_fingerings,
    passage_from_tab,
    sum_metrics,
)

data = prepare_tab_dataset(val_split=0.1)
training = [passage_from_tab(tab) for tab in data.train_tabs]
held_out = [passage_from_tab(tab) for tab in data.val_tabs]
found = {}  # the shares by name


# %%
def measure(name, way):
    parts = [
        compare_fingerings(piece.grips, way(piece), piece.tuning)
        for piece in held_out
    ]
    found[name] = shares = sum_metrics(parts).to_shares()
    right, chords = shares["strings"], shares["chords"]
    print(f"{name}: {right:.1%} of notes right, {chords:.1%} of chords")


measure(
    "lowest fret",
    lambda piece: place_on_lowest_frets(piece.moments, piece.tuning),
)
measure("hand-written costs", find_cheapest_fingering)

# %% [markdown]
# ## Notes in, tab out
#
# Chapter 10's encoder-decoder needs no costs: it translates pitches into places, one for each note. The decoder
# alternates: it reads a note, writes its place, reads the next. So it can skip none, and its cross-attention is free
# for the notes around it.

# %%
from slp_guitar.fingering import seq2seq

# semitones above the lowest open string, plus 1; with the note before 64 more,
# after a gap 128
source = seq2seq.encode_source(held_out[0])
target = seq2seq.encode_target(held_out[0])
reads = seq2seq.interleave_notes_and_targets(source, target)
assert reads[::2].equal(source) and reads[1::2].equal(target[:-1])
print("decoder reads: ", *reads[:11].tolist())
print("decoder writes:", *seq2seq.format_target_ids(target[:6].tolist()))

# %% [markdown]
# The model is
# <autoref identifier="slp_transformer.encoder_decoder.EncoderDecoder">EncoderDecoder</autoref>, one
# block on each side, with the Xavier initialization of [chapter 11](11_translation.py). In training the decoder
# reads the correct places.

# %%
import torch

from slp_transformer import EncoderDecoder, TransformerConfig, plotting

torch.set_num_threads(1)  # the digits below depend on the order of sums
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

records = train(
    model,
    seq2seq.FingeringDataset(training, N),
    seq2seq.FingeringDataset(held_out, N),
    steps=500,
    batch_size=16,
    learning_rate=3e-3,
    eval_interval=100,
)
for r in records:
    losses = f"train loss {r.train_loss:.2f} | val loss {r.val_loss:.2f}"
    print(f"step {r.step} | {losses} nats per note")

# %% [markdown]
# ## Where does it look?
#
# Here is the cross-attention of each head on the first notes of a held-out scale. A row is a place that is being
# written, a column a note of the source. Right of the diagonal are notes still to come, which only the encoder has
# read. In chapter 10 a diagonal was dark. Will it be here? Go from head to head.


# %% alt="Four maps of 10 places by 10 notes, one at a time: the cross-attention of the first head. No dark diagonal; the same few columns are darker in many rows, on both sides of the diagonal." caption="Cross-attention on a scale, head by head"
from slp_transformer import record_activations

piece, count = next(p for p in held_out if p.name.startswith("E dorian")), 10
notes = seq2seq.encode_source(piece)[:count]
there = seq2seq.encode_target(piece)[:count]
reads = seq2seq.interleave_notes_and_targets(notes, there)
with torch.no_grad(), record_activations(model) as trace:
    model(notes, reads)
alpha = trace[-1]["alpha_cross"][:, ::2]  # [heads × places × notes]
rows = seq2seq.format_target_ids(there.tolist())
pitches, states = [moment[0] for moment in piece.moments[:count]], {}
for head, weights in enumerate(alpha, start=1):
    ahead = weights.triu(1).sum() / count
    says = f"Head {head}: {ahead:.0%} of the weight is on notes to come."
    drawn = plotting.heatmap(weights, rows, pitches, top=1, decimals=None)
    states[head] = drawn, says
torch.testing.assert_close(alpha.sum(-1), torch.ones(4, count))
plotting.interactive_steps("Head", states)

# %% [markdown]
# There is no diagonal: the decoder reads the note that it places, so no head need look it up. Each looks around it,
# ahead as well. Hide the notes to come, and the validation loss rises by [0.045 to 0.084 nats per
# note](../benchmarks/results/pitch_to_tab/README.md), most at the first of a window: where nothing is written yet,
# the notes to come tell where the hand will be.

# %% [markdown]
# ## The hand's mask
#
# Nothing has told the model which pitch a place has, or that a hand has four fingers. Chapter 12's cure is a mask:
# the place of a note must have its pitch, and leave a place for each other note of the chord. For the chord above,
# with the lowest note on one of its strings, this is what remains:

# %%
from slp_guitar.fingering.grips import allowed_next_notes

for grip in held[:1], held[-1:]:
    grip = grip[0]
    for n in range(len(grip)):
        may = allowed_next_notes(grip[:n], d_major, STANDARD)
        shown = " ".join(f"{string}/{fret}" for string, fret in may)
        print(f"{n + 1}. {shown}")

# %% [markdown]
# And without the mask, even when it reads the correct places: how many of 1,899 notes would sound wrong?


# %%
@torch.no_grad()
def count_wrong_pitches(piece):
    source = seq2seq.encode_source(piece)[:N]
    target = seq2seq.encode_target(piece)[:N]
    reads = seq2seq.interleave_notes_and_targets(source, target)
    best = model(source, reads)[::2].argmax(dim=-1).tolist()
    pitches = [pitch for moment in piece.moments for pitch in moment][:N]
    wrong = 0
    for place, pitch in zip(best, pitches, strict=True):
        there = map(
            seq2seq.note_to_target_id, piece.tuning.positions_of(pitch)
        )
        wrong += place not in there
    return wrong, len(pitches)


wrong, total = map(sum, zip(*map(count_wrong_pitches, held_out), strict=True))
print(f"{wrong} of {total:,} notes, although it reads the correct places")

# %% [markdown]
# At inference the decoder reads the places that it has written, not the correct ones. `translate_passage` takes the
# most probable place that the mask leaves. So every pitch is right whatever the weights, and every chord that can be
# held at all gets a grip that can.

# %%
measure(
    "encoder-decoder",
    lambda piece: seq2seq.translate_passage(model, piece, N),
)
ours = found["encoder-decoder"]
assert ours["pitch"] == 1.0 and ours["playable"] > 0.999
assert ours["strings"] > found["lowest fret"]["strings"]

# %% [markdown]
# ## A search over its scores
#
# The most probable place now need not begin the most probable fingering. Dynamic programming cannot find that one: a
# cost there depends on one move, the decoder's probabilities on everything written so far. So we use [beam
# search](06_decoding.py) with four hypotheses. Will it place more notes right?

# %%
measure(
    "four beams",
    lambda piece: seq2seq.translate_passage(model, piece, N, num_beams=4),
)

# %% [markdown]
# A more probable fingering is not always a better one: [with two of three
# seeds](../benchmarks/results/pitch_to_tab/README.md) four beams found the right string less often.
#
# ## Tab that people wrote
#
# The practice corpus was written by rules, which the model has learned: there, it does better than the costs written by
# hand. On [26 classical pieces](../benchmarks/results/pitch_to_tab/README.md) by other composers than those of the 403
# that it learned from, it is the other way round:
#
# | how the strings are chosen | notes on the right string |
# |---|---|
# | lowest fret | 73.7% |
# | an encoder-decoder writes place by place | 76.5% |
# | search, hand-written costs | 79.8% |
#
# Why? One likely reason: the Transformer goes on reading its own early mistake, and stays in the wrong position, while
# the search compares whole fingerings. Another is that its costs are distances, which hold for any composer. (Costs
# that a network has learned do better still.)
#
# One difference leads to the next chapter. The cost of a move depends on the distance $p-q$ alone, so it holds
# anywhere on the neck; the model learns a row of P for each absolute position in its window. With [rotary
# positions](14_todays_block.py#eq-rope), a Transformer's scores depend on distances, too, but in the text, not on the
# neck.

# %% [markdown]
# ## Try it
#
# Assertions in the cells describe the settings above. If one stops you, delete it.
#
# 1. Make open strings attractive: `costs = HandCosts(open_string_cost=-3.0)`. Which notes of the melody change?
#    And with `HandCosts(preferred_position=7, open_string_cost=-3.0)`?
#
#    <details><summary>What happens</summary>
#
#    None: its D, G and B are open strings already. In seventh position, the hand keeps these three open strings
#    and plays the other notes at frets 7 to 10. Each neighbor of an open string is on another string, so that
#    the two ring into each other.
#
#    </details>
#
# 2. In training, let a tenth of the places that the decoder reads be wrong, `FingeringDataset(training, N,
#    noise_rate=0.1)`, so that it learns to continue after a mistake. Does it pay?
#
#    <details><summary>What happens</summary>
#
#    Not here: over three seeds, 78 to 82% of the strings are right, one place at a time, instead of [81 to
#    83%](../benchmarks/results/pitch_to_tab/README.md).
#
#    </details>
#
# 3. Search with a single beam: `num_beams=1`. Which row of numbers comes back?
#
#    <details><summary>What happens</summary>
#
#    That of the encoder-decoder: a beam of one keeps the most probable place at each note, and nothing else.
#
#    </details>

# %% [markdown]
# ## To remember
#
# - The notes of a chord constrain each other. A decoder that writes note by note has to leave places for the notes
#   to come: a mask can guarantee it.
# - Cross-attention lets the decoder use notes that are still to come.
# - If a cost depends only on the previous step, dynamic programming finds the best of all paths. If it depends on
#   everything before, a beam has to do.
# - A more probable output is not always a better one: measure.
# - During training a decoder reads the correct tokens; at inference, its own. Report how well it does at
#   inference, next to a plain baseline.

# %% [markdown]
# ## Test yourself
#
# 1. Why does the dynamic program keep the best fingering for each position of the hand, and not only the
#    best one of all?
#
#    <details><summary>Answer</summary>
#
#    The cost of what comes next depends on where the hand is. A fingering that costs more so far may leave
#    the hand closer to the next notes.
#
#    </details>
#
# 2. A model gets 94% of strings right with teacher forcing, and 82% when it reads its own choices. What
#    explains the difference?
#
#    <details><summary>Answer</summary>
#
#    Its own mistakes: after a note in another position, the most probable next places are in that
#    position, too. So whole passages differ from the written ones.
#
#    </details>
#
# 3. Why does the mask look at the rest of the chord, and not only at the strings that are taken?
#
#    <details><summary>Answer</summary>
#
#    A place may be free and have the right pitch, and yet leave no string, or no finger, for a note of the chord that
#    comes later. Then the decoder would be stuck.
#
#    </details>
#
# Drop a piece of your own on [Finger a piece](../docs/fingering.md), which asks you wherever the costs are
# nearly tied. Next: [From the book's block to today's](14_todays_block.py). The reference of
# <autoref identifier="slp_guitar.fingering.lattice.find_cheapest_fingering">find_cheapest_fingering</autoref>
# leads to the larger model of learned costs, and to pieces and preferences.
