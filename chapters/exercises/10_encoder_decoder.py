# %% [markdown]
# ## Exercises
#
# Complete each function from its equation. If your answer is wrong, the check tries to name the mistake.

# %%
import torch

from slp_transformer import check

# %% [markdown]
# ### Exercise 1 · Cross-attention
#
# (`cross-QKV` and `cross-attn`) Compute one head. `X` [m × d] is the decoder's stream, `H_enc` [n × d] the
# encoder's output; `W_Q` and `W_K` are [d × d_k], `W_V` is [d × d_v]. Return [m × d_v].


# %% tags=["exercise"]
def my_cross_attention(X, H_enc, W_Q, W_K, W_V):
    # solution
    Q, K, V = X @ W_Q, H_enc @ W_K, H_enc @ W_V
    scores = Q @ K.T / K.shape[-1] ** 0.5
    return torch.softmax(scores, dim=-1) @ V
    # end


check.cross_attention(my_cross_attention)

# %% [markdown]
# ### Exercise 2 · The padding mask
#
# `ids` [n] is a source that was padded with `pad_id`. Return the additive mask, [1 × n] or [n], that hides
# the padding wherever it is.

# %% tags=["exercise"]


def my_padding_mask(ids, pad_id):
    # solution
    M = torch.zeros(len(ids))
    M[ids == pad_id] = float("-inf")
    return M
    # end


check.padding_mask(my_padding_mask)

# %% [markdown]
# ### Exercise 3 · The decoder's block
#
# `attention(Z)`, `ffn(Z)` and `norm(Z)` are functions of a matrix; `cross_attention(Z, H_enc)` takes its queries
# from the first and its keys and values from the second. The same `norm` is used for all three. Combine them
# in the book's order, pre-norm.

# %% tags=["exercise"]


def my_decoder_block(X, H_enc, attention, cross_attention, ffn, norm):
    # solution
    X = X + attention(norm(X))
    X = X + cross_attention(norm(X), H_enc)
    return X + ffn(norm(X))
    # end


check.decoder_block(my_decoder_block)

# %% [markdown]
# ### Exercise 4 · The loss of masked words
#
# (`mlm-loss`) An encoder without a causal mask has read a text in which the words at the positions in the tensor `M`
# were replaced by [MASK]. `U` [N × |V|] are its logits, and `x` [N] the words of the text. Return the loss.

# %% tags=["exercise"]


def my_masked_loss(U, x, M):
    # solution
    log_y = torch.log_softmax(U, dim=-1)
    return -log_y[M, x[M]].mean()
    # end


check.masked_word_loss(my_masked_loss)
