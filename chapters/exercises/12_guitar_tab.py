# %% [markdown]
# ## Exercises
#
# Complete each function. If your answer is wrong, the check tries to name the mistake. `tuning` holds the
# pitches of the open strings as MIDI numbers, starting with the lowest string. String 1 is the highest.

# %%
import torch

from slp_transformer import check

# %% [markdown]
# ### Exercise 1 · From place to pitch
#
# Return the MIDI number of the note. Each fret raises the pitch by 1.


# %% tags=["exercise"]
def my_pitch(string, fret, tuning):
    # solution
    return tuning[len(tuning) - string] + fret
    # end


check.pitch(my_pitch)

# %% [markdown]
# ### Exercise 2 · From pitch to places
#
# On how many strings can the pitch `midi` be played, on a neck with frets 0 (open) to `frets`?

# %% tags=["exercise"]


def my_count(midi, tuning, frets):
    # solution
    return sum(0 <= midi - opened <= frets for opened in tuning)
    # end


check.count_places(my_count)

# %% [markdown]
# ### Exercise 3 · How far a hand reaches
#
# `frets` has one entry for each string: a fret, 0 for an open string, None for a string that is not played.
# Return the difference between the highest and the lowest pressed fret, 0 if none is pressed.

# %% tags=["exercise"]


def my_span(frets):
    # solution
    pressed = [fret for fret in frets if fret]  # neither None nor 0
    return max(pressed) - min(pressed) if pressed else 0
    # end


check.span(my_span)

# %% [markdown]
# ### Exercise 4 · A grammar as a mask
#
# `u` are logits, and `allowed` is True for each token that the grammar allows next. Return probabilities that
# are 0 for all other tokens and sum to 1. Mask before the softmax, so that it also works when the forbidden
# tokens have nearly all the probability.

# %% tags=["exercise"]


def my_allowed(u, allowed):
    # solution
    u = torch.where(allowed, u, float("-inf"))
    return torch.softmax(u, dim=-1)
    # end


check.only_allowed(my_allowed)

# %% [markdown]
# ### Exercise 5 · Train it
#
# A bigram table, which counts the tokens that follow each token in the practice pieces, has a loss of 3.34 nats
# per token on held-out pieces. Train a model to a validation loss of at most 3.2, in no more than 200 steps.
# With the settings below it ends at 5.21.

# %%
from slp_guitar import TabTokenizer, prepare_tab_dataset
from slp_transformer import TransformerConfig, TransformerLM
from slp_transformer.training import train

data, V = prepare_tab_dataset(val_split=0.1), len(TabTokenizer())
learned, unseen = data.train_data, data.val_data
pairs = torch.full((V, V), 0.1)
ones = torch.ones(len(learned) - 1)
pairs.index_put_((learned[:-1], learned[1:]), ones, accumulate=True)
table = (pairs / pairs.sum(dim=1, keepdim=True)).log()
print(f"bigram table: {-table[unseen[:-1], unseen[1:]].mean():.2f} nats")

# %% tags=["exercise"]
sizes = {"model_dim": 16, "num_heads": 2, "num_blocks": 1}
how = {"steps": 150, "batch_size": 4, "learning_rate": 1e-3}
# solution
sizes = {"model_dim": 64, "num_heads": 4, "num_blocks": 1}
how = {"steps": 200, "batch_size": 8, "learning_rate": 1.4e-2}
# end
how["steps"] = min(how["steps"], 200)
torch.manual_seed(0)
model = TransformerLM(TransformerConfig(V, 128, **sizes))
last = train(model, learned, unseen, eval_interval=how["steps"], **how)[-1]
check.at_most(last.val_loss, 3.2)
