# %% [markdown]
# ## Exercises
#
# Using only the equation, fill in what is missing. If it is wrong, the check says so, and names the
# mistake where it recognizes it. `u` holds the
# logits of one step, one number for each word.

# %%
import torch

from slp_transformer import check

# %% [markdown]
# ### Exercise 1 · Temperature
#
# (`temperature`) Return the probabilities, for any τ above 0.


# %% tags=["exercise"]
def my_temperature(u, tau):
    # solution
    return torch.softmax(u / tau, dim=-1)
    # end


check.temperature(my_temperature)

# %% [markdown]
# ### Exercise 2 · Colder and warmer (exercise 7.5 in the Aug 2026 draft)
#
# The book's logits are 1.2, 0.9, 0.1 and −0.5. First guess, then use your function to see the
# probabilities for τ = 0.2 and τ = 2, and for τ close to 0 and very large. Write down the two limits.

# %% tags=["exercise"]
u = torch.tensor([1.2, 0.9, 0.1, -0.5])
for tau in (0.2, 2.0, 0.001, 1000.0):
    print(f"τ = {tau}:", my_temperature(u, tau))
towards_0 = [None, None, None, None]
towards_infinity = [None, None, None, None]
# solution
towards_0 = [1, 0, 0, 0]  # the most probable word takes all: greedy
towards_infinity = [1 / 4, 1 / 4, 1 / 4, 1 / 4]  # all words equal
# end
check.limits_of_temperature(lambda: (towards_0, towards_infinity))

# %% [markdown]
# ### Exercise 3 · Top-k
#
# Return probabilities that sum to 1 and are 0 for all words except the k with the largest logits.

# %% tags=["exercise"]


def my_top_k(u, k):
    # solution
    kept = torch.full_like(u, float("-inf"))
    largest = u.argsort(descending=True)[:k]
    kept[largest] = u[largest]
    return torch.softmax(kept, dim=-1)
    # end


check.top_k(my_top_k)

# %% [markdown]
# ### Exercise 4 · Top-p
#
# (`top-p`) Keep the fewest words whose probabilities sum to at least p, and renormalize. Each
# probability stays in its word's place.

# %% tags=["exercise"]


def my_top_p(u, p):
    # solution
    y, total = torch.softmax(u, dim=-1), 0.0
    kept = torch.zeros_like(y)
    for w in y.argsort(descending=True):
        kept[w] = y[w]
        total += y[w]
        if total >= p:
            break
    return kept / kept.sum()
    # end


check.top_p(my_top_p)

# %% [markdown]
# ### Exercise 5 · A draw
#
# (`random`) The probabilities `y` are laid end to end from 0 to 1, in the order of the words. Return the
# number of the word on whose stretch the dart lands; `dart` is at least 0 and below 1.

# %% tags=["exercise"]


def my_draw(y, dart):
    # solution
    end = 0.0
    for w in range(len(y) - 1):
        end += y[w]
        if dart < end:
            return w
    return len(y) - 1
    # end


check.draw(my_draw)

# %% [markdown]
# ### Exercise 6 · One step of a beam search
#
# (`beam-score`) `scores` [B] holds the scores of B hypotheses, and row b of `log_y` [B × V] the log
# probabilities of the words after hypothesis b. Keep the `width` best extensions. Return three tensors,
# with the best extension first: the hypotheses that are extended, the words, and the new scores.

# %% tags=["exercise"]


def my_beam_step(scores, log_y, width):
    # solution
    totals = scores[:, None] + log_y
    best, places = totals.flatten().topk(width)
    V = log_y.shape[1]
    return places // V, places % V, best
    # end


check.beam_step(my_beam_step)

# %% [markdown]
# ### Exercise 7 · The score in beam search
#
# (`beam-norm`) `log_probabilities` holds one log probability for each word of a sentence. Return the score by
# which sentences of different lengths are compared.

# %% tags=["exercise"]


def my_score(log_probabilities):
    # solution
    return log_probabilities.sum() / len(log_probabilities)
    # end


check.length_normalized(my_score)
