# %% [markdown]
# ## Exercises
#
# Complete each function. If your answer is wrong, the check tries to name the mistake. String 1 is the highest,
# and fret 0 is the open string.

# %%
import torch

from slp_transformer import check

# %% [markdown]
# ### Exercise 1 · Can one hand hold it?
#
# `grip` is a list of at least one place, each `(string, fret)`. Return whether one hand can hold them all:
# each is on a string of its own, and the pressed frets are at most `span` apart.


# %% tags=["exercise"]
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
# `v[q]` is the lowest cost of all fingerings so far that end with the hand at $q$, `m[q, p]` the cost of moving
# from $q$ to $p$, and `e[p]` the cost of the best grip of this moment for a hand at $p$; all three are tensors.
# Return the new `v`:
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
# ### Exercise 3 · Reading off the path
#
# `came[t, p]` is the position of the hand at moment $t$ on the best path that has it at $p$ at moment $t+1$. At
# the end the hand is at `last`. Return its position at every moment, in order: one more than `came` has rows.

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
# `notes` and `places` are vectors of token ids, equally long. Return what the decoder reads in training:
# each note before its place, but not the last place, since nothing is predicted after it.

# %% tags=["exercise"]


def my_turns(notes, places):
    # solution
    both = torch.stack([notes, places], dim=1)
    return both.flatten()[:-1]
    # end


check.takes_turns(my_turns)
