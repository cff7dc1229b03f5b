# %% [markdown]
# ## Exercises
#
# Complete each function. If your answer is wrong, the check tries to name the mistake.

# %%
import torch

from slp_transformer import check

# %% [markdown]
# ### Exercise 1 · Teacher forcing
#
# `target` [N] holds the ids of a sentence, without `begin` and `end`. Return a matrix [2 × (N + 1)]: in its first
# row what the decoder reads, in its second what it should predict.


# %% tags=["exercise"]
def my_teacher_forced(target, begin, end):
    # solution
    reads = torch.cat([torch.tensor([begin]), target])
    writes = torch.cat([target, torch.tensor([end])])
    return torch.stack([reads, writes])
    # end


check.teacher_forced(my_teacher_forced)

# %% [markdown]
# ### Exercise 2 · A smoothed loss
#
# `u` [|V|] are the logits of one position and `word` is the id of the right word. A `share` of the target's
# probability is spread evenly over the whole vocabulary, including the word itself. Return the cross-entropy.

# %% tags=["exercise"]


def my_smoothed_loss(u, word, share):
    # solution
    log_y = torch.log_softmax(u, dim=-1)
    return -(1 - share) * log_y[word] - share * log_y.mean()
    # end


check.smoothed_loss(my_smoothed_loss)

# %% [markdown]
# ### Exercise 3 · The learning rate of 2017
#
# Return $\eta=d^{-0.5}\min\left(step^{-0.5},\;step\cdot warmup^{-1.5}\right)$, with steps counted from 1.

# %% tags=["exercise"]


def my_rate(step, d, warmup):
    # solution
    return d**-0.5 * min(step**-0.5, step * warmup**-1.5)
    # end


check.rate_of_2017(my_rate)

# %% [markdown]
# ### Exercise 4 · The input of 2017
#
# `ids` [N] are tokens from position 0 on, `E` is [|V| × d], and `P` has at least N rows. Return X [N × d], with
# the embeddings scaled as in 2017.

# %% tags=["exercise"]


def my_scaled_input(ids, E, P):
    # solution
    d = E.shape[1]
    return d**0.5 * E[ids] + P[: len(ids)]
    # end


check.scaled_input(my_scaled_input)
