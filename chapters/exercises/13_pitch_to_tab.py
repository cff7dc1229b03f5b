# %% [markdown]
# ## Exercises
#
# Write what is missing; the check names the mistake if there is one. Strings are numbered from 1, the
# highest; fret 0 is the open string.

# %% [markdown]
# ### Exercise 1 · What one hand holds
#
# `grip` is a list of places, each `(string, fret)`. Return whether one hand can take them together: each
# on a string of its own, the frets that are pressed at most `span` apart.

# %% tags=["exercise"]
from slp_transformer import check


def my_is_playable_grip(grip, span):
    # solution
    strings = {string for string, _ in grip}
    frets = [fret for _, fret in grip if fret]
    reach = max(frets) - min(frets) if frets else 0
    return len(strings) == len(grip) and reach <= span
    # end


check.is_playable_grip(my_is_playable_grip)

# %% [markdown]
# ### Exercise 2 · One step of the cheapest path
#
# `v[q]` is what the best beginning costs that ends with the hand at $q$, `m[q, p]` what it costs to move
# from $q$ to $p$, `e[p]` what the best grip of this moment costs a hand at $p$. Return the new `v`:
#
# $$
# v_t(p)=e_t(p)+\min_{q}\,\bigl(v_{t-1}(q)+m(q,p)\bigr)
# $$

# %% tags=["exercise"]


def my_step(v, e, m):
    # solution
    roads = v.unsqueeze(1) + m
    return e + roads.amin(dim=0)
    # end


check.cheapest_step(my_step)

# %% [markdown]
# ### Exercise 3 · The path, read off
#
# `came[t, p]` says where the hand was at moment $t$ if the best way has it at $p$ at moment $t+1$. At
# the end the hand is at `last`. Return where it was at each moment, the first moment first: one place
# more than `came` has rows.

# %% tags=["exercise"]


def my_path(came, last):
    # solution
    path = [last]
    for t in reversed(range(len(came))):
        path.append(int(came[t, path[-1]]))
    return path[::-1]
    # end


check.path_back(my_path)

# %% [markdown]
# ### Exercise 4 · Note, place, note, place
#
# `notes` and `places` are token ids, equally many. Return what the decoder reads when it learns to write
# the places: each note before its place, and no place that it does not need.

# %% tags=["exercise"]
import torch


def my_turns(notes, places):
    # solution
    both = torch.stack([notes, places], dim=1)
    return both.flatten()[:-1]
    # end


check.takes_turns(my_turns)
