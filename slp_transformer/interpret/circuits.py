"""A head's two circuits: where it looks, and what it writes when it looks there.

A head has four matrices, but they act in two pairs (Elhage et al. 2021). With row vectors, the
score of query token i and key token j is x_i (W_Q W_Kᵀ) x_jᵀ, before it is divided by √d_k; and a
token j that gets weight 1 adds x_j (W_V W_O) to the stream. Both products are [d×d], of rank d_k
and d_v at most.

The paper has column vectors and matrices that multiply from the left: there, a matrix is the
transpose of the book's. Its W_QK, written W_Qᵀ W_K, is the same matrix as here; its W_OV, written
W_O W_V, is the transpose of the one here.
"""

from slp_transformer._internal.shape_types import Float, Tensor
from slp_transformer.multi_head import HeadMatrices


def qk_circuit(mha: HeadMatrices, c: int) -> Float[Tensor, "d d"]:
    """Return head c's W^{Qc} (W^{Kc})ᵀ: rows ask, columns are looked at; not divided by √d_k.

    Args:
        mha: the attention layer.
        c: the head, counted from 0.
    """
    head = mha.heads[c]
    return head.W_Q @ head.W_K.T


def ov_circuit(mha: HeadMatrices, c: int) -> Float[Tensor, "d d"]:
    """Return head c's W^{Vc} W^{Oc}: rows are read, columns written.

    Args:
        mha: the attention layer.
        c: the head, counted from 0.
    """
    head = mha.heads[c]
    return head.W_V @ head.W_O


def circuit_in_vocabulary(
    circuit: Float[Tensor, "d d"], E: Float[Tensor, "V d"]
) -> Float[Tensor, "V V"]:
    """A circuit between words: E circuit Eᵀ, what each word asks of, or writes for, each other.

    Args:
        circuit: as from `qk_circuit` or `ov_circuit`.
        E: the embedding matrix.
    """
    return E @ circuit @ E.T
