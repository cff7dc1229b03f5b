# %% [markdown]
# ## Exercises
#
# Using only the equation, fill in what is missing. If it is wrong, the check says so, and names the
# mistake where it recognizes it.

# %%
import torch

from slp_transformer import check

# %% [markdown]
# ### Exercise 1 · The stack
#
# `blocks` is a list of functions, the lowest block first; each takes a matrix [N × d] and returns one, as does
# `final_norm`. Return the input of the language model head.


# %% tags=["exercise"]
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
# (`logits`) `H` is [N × d] and `E` is the embedding matrix [|V| × d]. Return the logits U [N × |V|] at all
# positions.

# %% tags=["exercise"]


def my_lm_head(H, E):
    # solution
    return H @ E.T
    # end


check.lm_head(my_lm_head)

# %% [markdown]
# ### Exercise 3 · How many parameters? (exercise 7.1 in the Aug 2026 draft)
#
# Count the parameters of $\mathbf W^Q$, $\mathbf W^K$, $\mathbf W^V$ and $\mathbf W^O$ of all heads, and of
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
# Here are twelve sentences like those of the chapter, and a model that is too small for them: it ends at 0.66
# nats per word. Change its settings and the learning rate so that it reaches 0.29 in 300 steps. No model can go
# below 0.276, since nothing in the text tells who acts, what they do, or whether something was tuned up or down.
# (d is `model_dim`, L is `num_blocks`, and d must be a multiple of `num_heads`.)

# %%
from torch.nn.functional import cross_entropy

from slp_transformer import TransformerConfig, TransformerLM

torch.set_num_threads(1)  # models this small are fastest on one core
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

# %% [markdown]
# ### Exercise 5 · A deep stack of your own
#
# The model below has 24 blocks, and uses each of their sublayers through your function. `sublayer` and `norm` are
# functions of a matrix [N × d]. As it is given, the model learns nothing. Let it learn the twelve sentences: 0.6 nats
# in 75 steps. Then try what chapter 2 warns of, the norm after the addition, or no addition: where does the loss
# stay, and why there?

# %%
from functools import partial

from slp_transformer import InputEncoding, LayerNorm, TransformerBlock


class Deep(torch.nn.Module):
    def __init__(self, d=16):
        super().__init__()
        self.input, self.norm = InputEncoding(len(words), 10, d), LayerNorm(d)
        blocks = [TransformerBlock(d, num_heads=2) for _ in range(24)]
        self.blocks = torch.nn.ModuleList(blocks)
        for W in self.input.parameters():
            W.data *= 5  # as in the chapter


# %%
def logits(deep, ids, through):
    X = deep.input(ids)
    for block in deep.blocks:
        X = through(X, partial(block.attention, causal=True), block.norm_1)
        X = through(X, block.ffn, block.norm_2)
    return deep.norm(X) @ deep.input.tokens.E.T


# %%
def train(through):
    torch.manual_seed(0)
    deep = Deep()
    optimizer = torch.optim.AdamW(deep.parameters(), lr=3e-3)
    for _ in range(75):
        U = logits(deep, ids[:, :-1], through)
        loss = cross_entropy(U.flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss


# %% tags=["exercise"]
def my_sublayer(X, sublayer, norm):
    out = sublayer(X)
    # solution
    out = X + sublayer(norm(X))
    # end
    return out


check.at_most(train(my_sublayer), 0.6, floor=0.276)
