# %% [markdown]
# ## Exercises
#
# Write what is missing, from the equation alone; the check names the mistake if there is one. `u` are
# the logits of one step, a vector with one number for each word.

# %% [markdown]
# ### Exercise 1 · Temperature
#
# (`temperature`) Return the probabilities, for any τ above 0.

# %% tags=["exercise"]
import torch

from slp_transformer import check


def my_temperature(u, tau):
    # solution
    return torch.softmax(u / tau, dim=-1)
    # end


check.temperature(my_temperature)

# %% [markdown]
# ### Exercise 2 · Colder and warmer (exercise 7.5 in the Aug 2026 draft)
#
# The book's logits are 1.2, 0.9, 0.1 and −0.5. First guess, then let your function say what τ = 0.2 and
# τ = 2 make of them, and what happens as τ goes to 0 and to ∞. Write down the limits.

# %% tags=["exercise"]
u = torch.tensor([1.2, 0.9, 0.1, -0.5])
for tau in (0.2, 2.0, 0.001, 1000.0):
    print(f"τ = {tau}:", my_temperature(u, tau))
towards_0 = [None, None, None, None]
towards_infinity = [None, None, None, None]
# solution
towards_0 = [1, 0, 0, 0]  # the most probable word takes all: greedy
towards_infinity = [1 / 4, 1 / 4, 1 / 4, 1 / 4]  # every word alike
# end
check.limits_of_temperature(lambda: (towards_0, towards_infinity))

# %% [markdown]
# ### Exercise 3 · Top-k
#
# Return probabilities that sum to 1 and are 0 for all but the k words with the largest logits.

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
# (`top-p`) Keep the fewest words that together have at least the share p, and renormalise. Each
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
# ### Exercise 5 · A step with a cache
#
# (`kv-attn`) `x` [d] is a new token's row; `K` and `V` are the keys and values of all tokens before
# it, one a row. Return three things: the new token's head, K with the new key, V with the new value.

# %% tags=["exercise"]


def my_cached_step(x, W_Q, W_K, W_V, K, V):
    # solution
    q = x @ W_Q
    K = torch.cat([K, (x @ W_K)[None]])
    V = torch.cat([V, (x @ W_V)[None]])
    alpha = torch.softmax(K @ q / len(q) ** 0.5, dim=-1)
    return alpha @ V, K, V
    # end


check.cached_step(my_cached_step)

# %% [markdown]
# ### Exercise 6 · The mask of a prompt's second half
#
# A cache holds `held` tokens, and N more come at once. Return their mask, [N × (held + N)]: 0 where a new
# token may look, −∞ where not.

# %% tags=["exercise"]


def my_mask_after(N, held):
    # solution
    M = torch.zeros(N, held + N)
    for i in range(N):
        M[i, held + i + 1 :] = float("-inf")
    return M
    # end


check.mask_after(my_mask_after)
