# %% [markdown]
# ## Exercises
#
# Write what is missing, from the equation alone; the check names the mistake if there is one.

# %% [markdown]
# ### Exercise 1 · The stack
#
# `blocks` is a list of functions, the lowest block first; each takes a matrix [N × d] and returns one.
# So does `final_norm`. Return what goes into the head.

# %% tags=["exercise"]
from slp_transformer import check


def my_stack(X, blocks, final_norm):
    # solution
    for block in blocks:
        X = block(X)
    return final_norm(X)
    # end


check.stack(my_stack)

# %% [markdown]
# ### Exercise 2 · The head
#
# (`logits`) For every position: `H` is [N × d], `E` is the embedding matrix [|V| × d]. Return the
# logits U [N × |V|].

# %% tags=["exercise"]


def my_lm_head(H, E):
    # solution
    return H @ E.T
    # end


check.lm_head(my_lm_head)

# %% [markdown]
# ### Exercise 3 · How many numbers? (exercise 7.1 in the Aug 2026 draft)
#
# Count those of $\mathbf W^Q$, $\mathbf W^K$, $\mathbf W^V$ and $\mathbf W^O$ of all heads, and of
# $\mathbf W_1$ and $\mathbf W_2$, in `L` blocks of width `d`, with $d_{ff}=4d$ and $d_k=d_v=d/A$. Biases
# and layer norms do not count. Does it matter how many heads there are?

# %% tags=["exercise"]


def my_parameters(L, d):
    # solution
    attention = 4 * d * d  # A heads of d × d/A each: A cancels
    feedforward = 2 * d * (4 * d)
    return L * (attention + feedforward)
    # end


check.parameters(my_parameters)

# %% [markdown]
# ### Exercise 4 · Train it
#
# Twelve sentences of the same kind as the chapter's, and a model too small for them: it stops at 0.66
# nats a word. Change its settings and the rate so that it gets to 0.29 in 300 steps. No model can go
# below 0.276: who acts, and whether tuning was up or down, cannot be known. (d is `model_dim`, L is
# `num_blocks`, and d must be a multiple of `num_heads`.)

# %%
import torch
from torch.nn.functional import cross_entropy

from slp_transformer import TransformerConfig, TransformerLM

ways = {
    "tightened": ["flat"],
    "loosened": ["sharp"],
    "tuned": ["flat", "sharp"],
}

# %%
pairs = {"guitarist": "string", "drummer": "drum", "violinist": "bow"}
sentences = [
    f"the {who} {verb} the {what} because it was {how} .".split()
    for who, what in pairs.items()
    for verb, reasons in ways.items()
    for how in reasons
]
words = sorted({word for sentence in sentences for word in sentence})
ids = torch.tensor([[words.index(w) for w in s] for s in sentences])

# %% tags=["exercise"]
settings = {"model_dim": 4, "num_heads": 1, "num_blocks": 1}
rate = 3e-3
# solution
settings = {"model_dim": 32, "num_heads": 2, "num_blocks": 2}
rate = 1e-2
# end
torch.manual_seed(0)
model = TransformerLM(TransformerConfig(len(words), 10, **settings))
optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
for _ in range(300):
    U = model(ids[:, :-1])
    loss = cross_entropy(U.flatten(0, 1), ids[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
check.at_most(loss, 0.29, floor=0.276)
