# %% [markdown] tags=["more"]
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
# 55 minutes.

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

d_major = (50, 54, 57, 62)  # as a pianist would voice it
places = [STANDARD.positions_of(pitch) for pitch in d_major]
tried = list(itertools.product(*places))
held = [grip for grip in tried if is_playable_grip(grip, max_span=4)]
print(f"{len(tried):,} ways to place the chord, {len(held)} grips:")
for grip in held:
    print(*(f"{string}/{fret}" for string, fret in grip))

# %% [markdown]
# (`6/10` is the sixth string at its tenth fret.) The lowest note of this chord, D, is also the open fourth
# string, but no grip with that open string can be held. The package builds grips note by note, and drops a
# partial grip as soon as it cannot be held:

# %%
from slp_transformer.guitar.fingering.grips import find_grips

assert set(find_grips(d_major, STANDARD)) == set(held)

# %% [markdown]
# ## The hand has a position
#
# Grips cannot be chosen independently either, since the hand has to move from each to the next. We say that
# it is at fret $p$ if the index finger is there. Let $e_t(g,p)$ be the cost of grip $g$ at moment $t$ for
# a hand at $p$ (a stretch, say, or a reach behind the index finger), and $m(q,p)$ the cost of moving from
# $q$ to $p$. We look for the fingering with the lowest total cost. Let $v_t(p)$ be the lowest cost of all
# fingerings up to moment $t$ that end with the hand at $p$:
#
# $$
# v_t(p)=\min_{g}\,e_t(g,p)+\min_{q}\,\bigl(v_{t-1}(q)+m(q,p)\bigr)
# $$
#
# This is Viterbi's algorithm (1967), and the position of the hand is its hidden state. An open string needs
# no finger, so the hand may stay where it was. First we try everything, on three notes: each grip of each note,
# with the hand at each of 15 frets, `HAND_FRETS`.

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
# proportion to the number of moments, whereas each added moment multiplies the number of sums above.

# %%
m = [[costs.move_cost(q, p) for q in HAND_FRETS] for p in HAND_FRETS]


def cheapest_totals(choices):
    v = []
    for choice in choices:
        e = [min(costs.grip_cost(g, p) for g in choice) for p in HAND_FRETS]
        if v:
            arrive = [min(map(sum, zip(v, to_p, strict=True))) for to_p in m]
            e = [a + b for a, b in zip(e, arrive, strict=True)]
        v = e
    return v


assert abs(min(cheapest_totals(choices)) - least) < 1e-9

# %% [markdown]
# The package's version also remembers which grip and which position gave each minimum, and follows them back
# from the end.

# %%
from slp_transformer import plotting
from slp_transformer.guitar.fingering.viterbi import (
    find_cheapest_fingering,
    find_cheapest_path,
)

assert find_cheapest_path(choices, costs) == list(best)
steps = ["roads", "paid", "for t", "best", "came", "return"]
plotting.show_source(find_cheapest_path, only=steps)

# %% [markdown]
# Three notes that leap show why the path is read from the end. Go on note by note: what is cheapest after
# two notes is not the beginning of what is cheapest after three.

# %% alt="A column of fifteen costs, one for each fret of the hand, after the first of three notes: lowest at fret 1, 0.1." caption="The lowest cost with the hand at each fret, after one, two and three notes"
leap = [find_grips((pitch,), STANDARD) for pitch in (60, 67, 76)]
states, columns = {}, []
for t in range(1, 4):
    v = cheapest_totals(leap[:t])
    columns.append(v)
    path = find_cheapest_path(leap[:t], costs)
    path = " ".join(f"{s}/{fret}" for ((s, fret),) in path)
    hand = HAND_FRETS[v.index(min(v))]
    says = f"Lowest: {min(v):.1f}, with the hand at fret {hand}: {path}."
    table, heads = list(zip(*columns, strict=True)), range(1, t + 1)
    states[t] = plotting.heatmap(table, HAND_FRETS, heads, "v", top=9), says
plotting.interactive_steps("Notes", states)

# %% [markdown]
# `find_cheapest_fingering` lists the grips and finds the path. It puts the melody in first position (the hand
# at fret 1). If we ask for fifth position and make open strings expensive, it plays the same notes higher
# up the neck.

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
# `slp-transformer tab song.mid -o song.gp5 --tuning drop-D --capo 2` turns a MIDI file into tab in this way.
# With `--position`, `--open-strings` and `--pin` you say what you prefer, and `--review 5` shows the five
# closest decisions.

# %% [markdown]
# ## How good is it?
#
# Costs written by hand are an opinion. What we can measure is how often a fingering agrees with a written
# one. Every piece of chapter 12's practice corpus has both: its pitches, and its tab, which was written by
# rules. `passage_from_tab` gives the pitches of each moment (`moments`) and the written grips (`grips`). We hold
# out some pieces, and compare the dynamic program with a baseline that many tab editors use: each note at its
# lowest fret. A note is right if it is on the string that was written; then its fret is right, too. A chord,
# here two notes or more, is right if all of its notes are.

# %%
from slp_transformer.guitar import prepare_tab_dataset
from slp_transformer.guitar.fingering.grips import place_on_lowest_frets
from slp_transformer.guitar.fingering.passages import (
    compare_fingerings,
    passage_from_tab,
    sum_metrics,
)

data = prepare_tab_dataset(val_split=0.1)
training = [passage_from_tab(tab) for tab in data.train_tabs]
held_out = [passage_from_tab(tab) for tab in data.val_tabs]


# %%
def cheapest(costs):
    return lambda piece: find_cheapest_fingering(
        piece.moments, piece.tuning, costs
    )


# %%
found = {}  # the shares by name


def measure(name, way):
    parts = [
        compare_fingerings(piece.grips, way(piece), piece.tuning)
        for piece in held_out
    ]
    found[name] = shares = sum_metrics(parts).to_shares()
    right, chords = shares["strings"], shares["chords"]
    print(f"{name}: {right:.1%} of notes right, {chords:.1%} of chords")


# %%
measure(
    "lowest fret",
    lambda piece: place_on_lowest_frets(piece.moments, piece.tuning),
)
measure("hand-written costs", cheapest(HandCosts()))

# %% [markdown]
# ## Learned costs
#
# Instead of inventing the costs, we can learn them from fingered pieces. A softmax over all fingerings of the
# same notes, each with every position of the hand, turns their costs into probabilities:
#
# $$
# p(\text{fingering})=\frac{e^{-\text{cost of the fingering}}}{\sum_{\text{fingerings}}e^{-\text{cost}}}
# $$
#
# (A conditional random field: Lafferty, McCallum and Pereira 2001.) There are far too many fingerings to sum
# over one by one. But the recursion above does it if each minimum becomes a *soft minimum*, $-\log\sum e^{-x}$:


# %%
import torch

torch.set_num_threads(1)  # the digits below depend on the order of sums


def softmin(costs, dim):
    return -torch.logsumexp(-costs, dim=dim)


def total(e, m):  # e: a matrix [grips × positions] for each moment
    v = softmin(e[0], 0)
    for e_t in e[1:]:
        v = softmin(e_t, 0) + softmin(v[:, None] + m, 0)
    return softmin(v, 0)


# %% [markdown]
# We learn eight weights of `HandCosts`. A note has a cost for each fret up the neck, behind the index
# finger, or beyond the little finger (a stretch). A skipped string in a chord costs something, and so does an
# open string, more so if the hand is above the third fret; by hand, these last two are 0. A move has a cost
# of its own, and one for each fret. Every cost is a sum of weights times counts, so setting one weight to 1
# and all others to 0 gives the counts.

# %%
from dataclasses import astuple, fields
from functools import cache

names = [field.name for field in fields(HandCosts)][:8]
one_weight = [HandCosts(*row) for row in torch.eye(8).tolist()]


def count_by_position(cost):  # cost(hand_costs, position)
    rows = [[cost(one, p) for one in one_weight] for p in HAND_FRETS]
    return torch.tensor(rows)


# %%
@cache
def counts_of(grip):  # [positions × weights]
    return count_by_position(lambda one, p: one.grip_cost(grip, p))


moves = [
    count_by_position(lambda one, p, q=q: one.move_cost(q, p))
    for q in HAND_FRETS
]
moves = torch.stack(moves)  # [from × to × weights]


def costs_of(grips, w):
    e = [torch.stack([counts_of(g) for g in moment]) @ w for moment in grips]
    return e, moves @ w


# %% [markdown]
# With the weights that were written by hand, the recursion gives the soft minimum of all 270,000 sums above:

# %%
by_hand = torch.tensor(astuple(HandCosts())[:8])
sums = torch.tensor([cost for cost, _ in everything])
softest = total(*costs_of(choices, by_hand))
torch.testing.assert_close(softest, softmin(sums, 0), rtol=0, atol=1e-4)

# %% [markdown]
# The loss is the cross-entropy, $-\log p$ of the written fingering. Nobody wrote down where the hand was, so
# the numerator is a sum, too: over all positions of the hand, with the written grips. Starting from zero
# weights, we take one step per piece for 240 pieces, and average the weights over the second half of the steps.


# %%
def learn(seed, steps=240):
    torch.manual_seed(seed)
    w, kept = torch.zeros(8, requires_grad=True), []
    optimizer = torch.optim.Adam([w], lr=0.05)
    for i in torch.randperm(len(training))[:steps].tolist():
        piece = training[i]
        grips = [find_grips(moment, piece.tuning) for moment in piece.moments]
        written = [(grip,) for grip in piece.grips]
        loss = total(*costs_of(written, w)) - total(*costs_of(grips, w))
        optimizer.zero_grad()
        (loss / len(grips)).backward()
        optimizer.step()
        kept.append(w.detach().clone())
    return torch.stack(kept[steps // 2 :]).mean(0)


# %% [markdown]
# The fingering is still the cheapest one, now by the learned costs. Three seeds draw three sets of pieces:

# %%
for seed in range(3):
    w = learn(seed)
    name = f"learned costs, seed {seed}"
    measure(name, cheapest(HandCosts(*w.tolist())))
    assert found[name]["strings"] > found["hand-written costs"]["strings"]

# %% [markdown]
# With each of the three seeds, learned costs put more notes on the right string than costs written by hand. For
# whole chords, all three do worse. And what was learned, here with the last seed?

# %%
for name, ours, weight in zip(names, by_hand, w, strict=True):
    print(f"{name:28} {ours:.2f} by hand {weight:5.2f} learned")

# %% [markdown]
# Moving at all now costs almost nine times as much, and each fret moved two and a half times as much, so the
# hand prefers to stay in one position, as it does in these pieces. An open string is now preferred, but up the
# neck it costs 0.16. We can watch it decide, because the derivative of `total` with respect to a cost is the
# probability of paying that cost (the derivative of a log-sum-exp is a softmax). Here are the first notes of
# two held-out scales, one in fifth position and one, which the figure shows, in eleventh.


# %%
def string_probabilities(piece, w, count=7):
    grips = [find_grips(moment, piece.tuning) for moment in piece.moments]
    e, m = costs_of(grips, w)
    paid = torch.autograd.grad(total([x.requires_grad_() for x in e], m), e)
    strings = torch.zeros(6, count)
    for t in range(count):
        for grip, share in zip(grips[t], paid[t].sum(1), strict=True):
            strings[grip[0].string - 1, t] += share
    return strings


# %%
def compare_strings(name, count=7):
    piece = next(p for p in held_out if p.name.startswith(name))
    written = [grip[0].string - 1 for grip in piece.grips[:count]]
    maps = {"written": torch.eye(6)[written].T}
    maps["by hand"] = string_probabilities(piece, by_hand)
    maps["learned"] = string_probabilities(piece, w)
    return maps


# %% alt="Three maps of six strings by seven notes: the written strings, and the probability of each string by hand-written and by learned costs. In the second map most of the probability is one or two strings above the written one; in the third, on the written one." caption="Which string? As written, by hand-written costs, and by learned costs"
for name in ("E dorian", "Eb blues"):
    maps = compare_strings(name)
    written, *found_maps = maps.values()
    hand, learned = [(one * written).sum() / 7 for one in found_maps]
    print(f"{name}: {hand:.0%} by hand, {learned:.0%} learned")
assert learned > hand
look = {"rows": range(1, 7), "decimals": None, "top": 1}
plotting.panels(*(plotting.Panel(one, n, **look) for n, one in maps.items()))

# %% [markdown]
# Each share is the mean probability of the written string over seven notes. On the scale in eleventh position
# the learned costs find what the hand-written ones do not; on the one in fifth position they do worse.

# %% [markdown]
# ## Translation, note by note
#
# Chapter 10's encoder-decoder needs no costs: it translates pitches into places. This is
# easier than translating sentences, because each note gets exactly one place. So the decoder reads a note,
# writes its place, reads the next note, and so on. It cannot skip a note, and its cross-attention is free to
# look at the notes around it. A note's token gives its height above the lowest open string, so a capo changes
# neither the tokens nor the tab. The token also says whether the note sounds together with the previous one
# (its id is then larger by 64) or after a gap (by 128). In what the decoder reads below, every other id is a
# note, the first one included.

# %%
from slp_transformer.guitar.fingering import seq2seq

source = seq2seq.encode_source(held_out[0])
target = seq2seq.encode_target(held_out[0])
reads = seq2seq.interleave_notes_and_targets(source, target)
assert reads[::2].equal(source) and reads[1::2].equal(target[:-1])
print("decoder reads: ", *reads[:11].tolist())
print("decoder writes:", *seq2seq.format_target_ids(target[:6].tolist()))

# %% [markdown]
# The model is
# <autoref identifier="slp_transformer.encoder_decoder.EncoderDecoder">EncoderDecoder</autoref>, one
# block on each side, with the Xavier initialization of [chapter 11](11_translation.py). One thing is new. In
# training, so far, the decoder has read the correct places. At inference it reads its own choices, and one
# unusual choice leads to others. So in training we replace a tenth of the places that it reads with another
# place of the same note. ("Try it" asks whether that pays.)

# %%
from slp_transformer import EncoderDecoder, TransformerConfig

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
    seq2seq.FingeringDataset(training, N, noise_rate=0.1),
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
# The validation loss is measured by teacher forcing: the decoder reads the correct places. At inference it
# reads its own, so we also measure what it writes. `translate_passage` takes the most probable place that
# leaves places for the other notes of the chord, so all pitches are right and all grips can be held, whatever
# the weights.

# %%
measure(
    "encoder-decoder",
    lambda piece: seq2seq.translate_passage(model, piece, N),
)
ours = found["encoder-decoder"]
assert ours["pitch"] == 1.0 and ours["playable"] > 0.999
assert ours["strings"] > found["hand-written costs"]["strings"]

# %% [markdown]
# On these pieces, the encoder-decoder does better than the learned costs, also with two other seeds (see "Try
# it"). Tab that people wrote is another matter. On 26 classical pieces from
# classtab.org, by composers who are not in the training data, the lowest-fret rule puts 73.7% of the notes
# on the right string, hand-written costs 79.8%, and an encoder-decoder trained on 403 other pieces 76.5%.
# Over three seeds, a larger model of learned costs reached 83.2 to 83.7%. (`benchmarks/results/pitch_to_tab`
# says which code made each row; the code that trained that encoder-decoder on these tabs is no longer in the
# package.)
#
# One difference between the two models leads to the next chapter. The cost of a move depends on the distance
# $p-q$ alone, and so it holds anywhere on the neck. The encoder-decoder adds a learned row of P for each
# absolute position in its window. With [rotary positions](14_todays_block.py#eq-rope),
# positions enter the scores through a distance, too, but one in the text, not on the neck.

# %% [markdown]
# ## Try it
#
# Assertions in the cells describe the settings above. If one stops you, delete it.
#
# 1. Make open strings attractive: give the first `find_cheapest_fingering`, that of `low`, the costs
#    `HandCosts(per_open_string=-1.0)`. Which notes of the melody change? And with `HandCosts(preferred_position=7, per_open_string=-1.0)`?
#
#    <details><summary>What happens</summary>
#
#    None: its D, G and B are open strings already. In seventh position, the hand keeps these three open strings
#    and plays the other notes at frets 7 to 10. Each neighbor of an open string is on another string, so that
#    the two ring into each other.
#
#    </details>
#
# 2. Train the encoder-decoder without `noise_rate=0.1`, with seeds 0, 1 and 2 in the cell that makes it. What
#    happens to the losses, and to the share of right strings when the model reads its own choices?
#
#    <details><summary>What happens</summary>
#
#    The training loss is lower with each of the seeds 0, 1 and 2, since all places that it reads are right,
#    and so is the validation loss. More strings are right as well: 82.6, 82.3 and 83.0% instead of 78.0, 80.3
#    and 82.2%. So on these pieces the noise does not pay, although the model has never learned to continue
#    after a wrong place.
#
#    </details>
#
# 3. Learn the costs from fewer pieces: `learn(seed, steps=20)`, then 60, with three seeds each. How many are
#    needed to beat the costs written by hand?
#
#    <details><summary>What happens</summary>
#
#    60 are nearly enough. With 20, all three seeds put fewer notes on the right string than the hand-written
#    costs. With 60, two of them put more there, and one fewer.
#
#    </details>

# %% [markdown]
# ## To remember
#
# - The notes of a chord constrain each other, so choose grips, not notes. A decoder that writes note by note
#   has to leave places for the notes to come.
# - If a cost depends only on the previous step, dynamic programming finds the best of all paths.
# - With a soft minimum in place of the minimum, the same recursion sums over all paths, and gradients of that
#   sum train the costs.
# - Build in what must hold, such as the pitch, and learn the rest.
# - During training a decoder reads the correct tokens; at inference, its own. Report how well it does at
#   inference.

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
# 3. You multiply all costs by 100, and divide `total` by 100. What is the result close to?
#
#    <details><summary>Answer</summary>
#
#    To the lowest cost. In $-\log\sum e^{-100x}$ the smallest $x$ outweighs all others, so the soft minimum
#    becomes the minimum.
#
#    </details>
#
# Drop a piece of your own on [Finger a piece](../docs/fingering.md), which asks you wherever the costs are
# nearly tied. Next: [From the book's block to today's](14_todays_block.py). The reference of
# <autoref identifier="slp_transformer.guitar.fingering.viterbi.find_cheapest_fingering">find_cheapest_fingering</autoref>
# leads to the larger model of learned costs, and to pieces and preferences.
