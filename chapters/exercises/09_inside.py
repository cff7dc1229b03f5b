# %% [markdown]
# ## Exercises
#
# Complete each function. If your answer is wrong, the check tries to name the mistake.

# %%
import torch

from slp_transformer import check

# %% [markdown]
# ### Exercise 1 · The rule of induction
#
# A B … A → B. `ids` [N] are the tokens so far. Find the most recent earlier occurrence of the last token, and
# return the token that followed it, or −1 if there is none.


# %% tags=["exercise"]
def my_induced(ids):
    # solution
    for j in range(len(ids) - 2, -1, -1):
        if ids[j] == ids[-1]:
            return ids[j + 1]
    return -1
    # end


check.induced(my_induced)

# %% [markdown]
# ### Exercise 2 · The induction score
#
# `alpha` [N × N] are one head's weights on tokens that repeat with period `period`, 2 or more. For each repeated
# token, take the weight on the token that followed its previous occurrence. Return the mean of these weights.

# %% tags=["exercise"]


def my_induction_score(alpha, period):
    # solution
    N = len(alpha)
    found = [alpha[i, i - period + 1] for i in range(period, N)]
    return sum(found) / len(found)
    # end


check.induction_score(my_induction_score)

# %% [markdown]
# ### Exercise 3 · The logit lens
#
# `H` [N × d] is the residual stream at some layer, `gamma` and `beta` are those of the final norm, and `E`
# [|V| × d] holds the tied embeddings. Return the logits [N × |V|] that the model would give if the stream ended
# there. The norm may have an ε or not.

# %% tags=["exercise"]


def my_logit_lens(H, gamma, beta, E):
    # solution
    mu = H.mean(dim=1, keepdim=True)
    sigma = H.std(dim=1, keepdim=True, correction=0)
    return (gamma * (H - mu) / sigma + beta) @ E.T
    # end


check.logit_lens(my_logit_lens)

# %% [markdown]
# ### Exercise 4 · Ablating a head
#
# (`mh-par-head` and `mh-par-out`) `heads` [A × N × d_v] are the outputs of a layer's heads, two or more, and
# `W_O` is [A·d_v × d]. Return what the layer adds to the stream if the output of head `c`, counted from 0, is set to 0.

# %% tags=["exercise"]


def my_output_without_head(heads, W_O, c):
    # solution
    kept = heads.clone()
    kept[c] = 0
    return kept.transpose(0, 1).flatten(1) @ W_O
    # end


check.without_head(my_output_without_head)

# %% [markdown]
# ### Exercise 5 · Where a head looks
#
# `W_Q` and `W_K` are [d × d_k]. Return the matrix $\mathbf W_{QK}$ [d × d] for which
# $\mathbf x_i\mathbf W_{QK}\mathbf x_j^\top$ is the score of token i for token j, before the division by the root.

# %% tags=["exercise"]


def my_qk_circuit(W_Q, W_K):
    # solution
    return W_Q @ W_K.T
    # end


check.qk_circuit(my_qk_circuit)

# %% [markdown]
# ### Exercise 6 · Does it copy?
#
# `E` is [|V| × d], `W_V` [d × d_v], and `W_O` [d_v × d]. In $\mathbf E\,\mathbf W_V\mathbf W_O\,\mathbf E^\top$,
# row w says how much attending to token w raises the logit of each token. Return the share of tokens that
# raise their own logit most.

# %% tags=["exercise"]


def my_copied(E, W_V, W_O):
    # solution
    words = E @ W_V @ W_O @ E.T
    most = words.argmax(dim=1)
    return (most == torch.arange(len(E))).float().mean()
    # end


check.copied(my_copied)
