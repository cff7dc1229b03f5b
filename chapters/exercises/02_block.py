# %% [markdown]
# ## Exercises
#
# Using only the equation, fill in what is missing. If it is wrong, the check says so, and names the
# mistake where it recognizes it. Your functions
# should work both for one row `x` [d] and for a matrix of rows [N × d].

# %%
import torch

from slp_transformer import check

# %% [markdown]
# ### Exercise 1 · The feedforward layer
#
# (`ffn`) One or two lines are enough. `W_1` is [d × d_ff], `b_1` [d_ff], `W_2` [d_ff × d], `b_2` [d].


# %% tags=["exercise"]
def my_ffn(x, W_1, b_1, W_2, b_2):
    # solution
    hidden = torch.relu(x @ W_1 + b_1)
    return hidden @ W_2 + b_2
    # end


check.ffn(my_ffn)

# %% [markdown]
# ### Exercise 2 · Layer norm
#
# (`ln-mean` to `ln`) `gamma` and `beta` are vectors [d]. For a matrix [N × d], each row has its own mean
# and standard deviation. (`mean(dim=-1, keepdim=True)` takes the mean of each row and keeps the axis.)

# %% tags=["exercise"]


def my_layer_norm(x, gamma, beta):
    # solution
    mu = x.mean(dim=-1, keepdim=True)
    variance = ((x - mu) ** 2).mean(dim=-1, keepdim=True)
    x_hat = (x - mu) / torch.sqrt(variance)
    return gamma * x_hat + beta
    # end


check.layer_norm(my_layer_norm)

# %% [markdown]
# ### Exercise 3 · The gated layer
#
# (`swish` and `swiglu`) `W_1` and `W_2` are [d × d_ff], `W_3` is [d_ff × d], and β = 1.

# %% tags=["exercise"]


def my_swiglu(x, W_1, b_1, W_2, b_2, W_3, b_3):
    # solution
    gate = x @ W_1 + b_1
    gate = gate * torch.sigmoid(gate)
    return (gate * (x @ W_2 + b_2)) @ W_3 + b_3
    # end


check.swiglu(my_swiglu)

# %% [markdown]
# ### Exercise 4 · The block
#
# (`t1` to `h`, for all tokens at once) Here `attention`, `ffn`, `norm_1` and `norm_2` are
# functions that take a matrix [N × d] and return one: call them as `attention(Z)`. Combine them
# in the book's order.

# %% tags=["exercise"]


def my_block(X, attention, ffn, norm_1, norm_2):
    # solution
    O = X + attention(norm_1(X))
    return O + ffn(norm_2(O))
    # end


check.block(my_block)

# %% [markdown]
# ### Exercise 5 · Half a block, switched off
#
# Set two numbers, `times_W_2` and `times_b_2`. The layer of exercise 1 adds rows of $\mathbf W_2$ to the residual
# stream. By what must `W_2` and `b_2` be multiplied so that this half of the block leaves the stream unchanged?

# %% tags=["exercise"]


def my_silent_half(X, W_1, b_1, W_2, b_2):
    # solution
    times_W_2, times_b_2 = 0.0, 0.0
    # end
    return X + my_ffn(X, W_1, b_1, times_W_2 * W_2, times_b_2 * b_2)


check.unchanged(my_silent_half)
