# %% [markdown]
# ## Exercises
#
# Using only the equation, fill in what is missing. If it is wrong, the check says so, and names the
# mistake where it recognizes it. Words
# and positions count from 0.

# %%
import torch

from slp_transformer import check

# %% [markdown]
# ### Exercise 1 · A look-up is a product
#
# `E` is [|V| × d], and `w` is a word's id. Make the one-hot row [|V|] and multiply it by `E`.


# %% tags=["exercise"]
def my_lookup(w, E):
    # solution
    one_hot = torch.zeros(len(E))
    one_hot[w] = 1
    return one_hot @ E
    # end


check.one_hot_lookup(my_lookup)

# %% [markdown]
# ### Exercise 2 · What and where
#
# Compute $\mathbf X_i=\mathbf E[id(i)]+\mathbf P[i]$ for a sequence of word ids, `ids`. The sequence may begin in the
# middle of a text: its first token has the position `start`, the next one `start + 1`, and so on.
# Return X [N × d].

# %% tags=["exercise"]


def my_input(ids, E, P, start):
    # solution
    return E[ids] + P[start : start + len(ids)]
    # end


check.input_encoding(my_input)

# %% [markdown]
# ### Exercise 3 · Positions that are not learned
#
# Compute $\mathbf P_{pos,2i}=\sin(pos/10000^{2i/d})$ and $\mathbf P_{pos,2i+1}=\cos(pos/10000^{2i/d})$ for
# all positions 0 to N − 1 and pairs of columns 0 to d/2 − 1; d is even. Return P [N × d].

# %% tags=["exercise"]
import math


def my_sinusoid(N, d):
    # solution
    P = torch.zeros(N, d)
    for pos in range(N):
        for i in range(d // 2):
            angle = pos / 10000 ** (2 * i / d)
            P[pos, 2 * i] = math.sin(angle)
            P[pos, 2 * i + 1] = math.cos(angle)
    return P
    # end


check.sinusoid(my_sinusoid)

# %% [markdown]
# ### Exercise 4 · k positions later
#
# You are given one row [d] of the P of exercise 3, but not its position. Return the row k positions
# later. (Each pair of columns is a clock hand: turn it by $k/10000^{2i/d}$. You may need
# $\sin(a+b)=\sin a\cos b+\cos a\sin b$ and $\cos(a+b)=\cos a\cos b-\sin a\sin b$.)

# %% tags=["exercise"]


def my_shift(row, k):
    # solution
    d, shifted = len(row), torch.zeros(len(row))
    for i in range(d // 2):
        sin_a, cos_a = row[2 * i], row[2 * i + 1]
        b = k / 10000 ** (2 * i / d)
        shifted[2 * i] = sin_a * math.cos(b) + cos_a * math.sin(b)
        shifted[2 * i + 1] = cos_a * math.cos(b) - sin_a * math.sin(b)
    return shifted
    # end


check.shift_position(my_shift)
