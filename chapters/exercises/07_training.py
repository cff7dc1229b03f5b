# %% [markdown]
# ## Exercises
#
# Using only the equation, fill in what is missing. If it is wrong, the check says so, and names the
# mistake where it recognizes it.

# %%
import torch

from slp_transformer import check

# %% [markdown]
# ### Exercise 1 · The loss
#
# (`ce-mean`) A text has the word ids `ids` [N], and `U` [N × |V|] holds the logits of the word after
# each of them. Return the mean loss of the words that came next, in nats. Logits may be as large as 10,000:
# `torch.log_softmax(u, dim=-1)` is the logarithm of the softmax and does not overflow.


# %% tags=["exercise"]
def my_loss(U, ids):
    # solution
    T, total = len(ids) - 1, 0.0
    for t in range(T):
        log_y = torch.log_softmax(U[t], dim=-1)
        total = total - log_y[ids[t + 1]]
    return total / T
    # end


check.next_token_loss(my_loss)

# %% [markdown]
# ### Exercise 2 · Perplexity (exercise 7.3 in the Aug 2026 draft)
#
# (`perplexity`) Four words had the probabilities 0.0001, 0.0002, 0.000005 and 0.0000001. What is the text's
# perplexity? Write a function of a vector of such probabilities, however long.

# %% tags=["exercise"]


def my_perplexity(probabilities):
    # solution
    return torch.exp(-torch.log(probabilities).mean())
    # end


four = torch.tensor([1e-4, 2e-4, 5e-6, 1e-7], dtype=torch.float64)
print("perplexity of the four:", my_perplexity(four))
check.perplexity(my_perplexity)

# %% [markdown]
# ### Exercise 3 · One is the other's exponential (exercise 7.4 in the Aug 2026 draft)
#
# Prove on paper that $P(w_{1:T})^{-1/T}=\exp(L_{CE})$. Then write the perplexity as a function of the mean
# loss.
#
# <details><summary>The proof, step by step</summary>
#
# $$
# \begin{aligned}
# &P(w_{1:T})^{-\frac1T}\\
# &\quad=\exp\left(-\tfrac1T\log P(w_{1:T})\right)\\
# &\quad=\exp\left(-\tfrac1T\log\prod_{t}P(w_t\mid w_{<t})\right)\\
# &\quad=\exp\left(\tfrac1T\sum_{t}-\log P(w_t\mid w_{<t})\right)\\
# &\quad=\exp(L_{CE})
# \end{aligned}
# $$
#
# The first step is $x=e^{\log x}$ with $\log x^a=a\log x$, and the second the chain rule. The log of a product is
# a sum, and the last exponent is the mean loss.
#
# </details>

# %% tags=["exercise"]


def my_perplexity_of(loss):
    # solution
    return torch.exp(loss)
    # end


check.perplexity_of_loss(my_perplexity_of)

# %% [markdown]
# ### Exercise 4 · A batch with padding
#
# Texts of different lengths are padded with `pad_id`: `ids` is [B × N], `U` is [B × N × |V|]. Return the
# mean loss over all words that came next, without the padding. Padding may be anywhere: a position counts if
# what came next is a word.

# %% tags=["exercise"]


def my_padded_loss(U, ids, pad_id):
    # solution
    log_y, targets = torch.log_softmax(U[:, :-1], dim=-1), ids[:, 1:]
    each = -log_y.gather(-1, targets[:, :, None])[:, :, 0]
    return each[targets != pad_id].mean()
    # end


check.padded_loss(my_padded_loss)

# %% [markdown]
# ### Exercise 5 · Train it
#
# A table of character pairs, counted in the first 60,000 characters of *Moby-Dick*, has a loss of 2.43 nats per
# character on the next 6,000. Train a model whose loss is at most 2.3, in no more than 400 steps. The
# settings below are too small; deeper models need a lower learning rate.

# %%
from slp_transformer import TransformerConfig, TransformerLM
from slp_transformer.data import iter_documents, train_tokenizer
from slp_transformer.training import train

text = "\n\n".join(iter_documents("moby-dick"))[:66_000]
tokenizer = train_tokenizer([text], token_type="characters")
stream = torch.tensor(tokenizer.encode(text))
learned, unseen, V = stream[:60_000], stream[60_000:], tokenizer.vocab_size
pairs = torch.ones(V, V)  # every pair counts as seen once more
pairs.index_put_((learned[:-1], learned[1:]), torch.ones(59_999), True)
table = (pairs / pairs.sum(dim=1, keepdim=True)).log()
print(f"table of pairs: {-table[unseen[:-1], unseen[1:]].mean():.2f} nats")

# %% tags=["exercise"]
sizes = {"model_dim": 16, "num_heads": 2, "num_blocks": 1}
how = {"steps": 100, "batch_size": 16, "learning_rate": 1e-3}
# solution
sizes = {"model_dim": 64, "num_heads": 4, "num_blocks": 1}
how = {"steps": 400, "batch_size": 32, "learning_rate": 1e-2}
# end
how["steps"] = min(how["steps"], 400)
torch.manual_seed(0)
model = TransformerLM(TransformerConfig(V, 32, **sizes))
last = train(model, learned, unseen, eval_interval=how["steps"], **how)[-1]
check.at_most(last.val_loss, 2.3)
