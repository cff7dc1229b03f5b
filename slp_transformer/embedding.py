"""The input: a row of X for each token, from what it is and where it stands."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from slp_transformer._internal.argument_checks import (
    check_ids,
    check_position_ids,
    check_positions,
    check_token_axis,
)
from slp_transformer._internal.choices import check_in_choices
from slp_transformer._internal.config_checks import check_positive_sizes
from slp_transformer._internal.explained_refusals import explain_refusals, refuse_unfit_ids
from slp_transformer._internal.meta_device import ComputedTable, compute_missing_tables
from slp_transformer._internal.parts import (
    BOOK_POSITION_NAMES,
    INITIALIZATION_NAMES,
    BookPositions,
    Initialization,
)
from slp_transformer._internal.shape_types import Float, Int, ShapedModule, Tensor
from slp_transformer.dropout import Dropout


def one_hot_lookup(
    ids: Int[Tensor, "*batch"], E: Float[Tensor, "V d"]
) -> Float[Tensor, "*batch d"]:
    """Select rows of E by multiplying with one-hot rows, as the book draws it.

    Source: `onehot`. `TokenEmbedding` gives the same without making
    the one-hot rows.

    Raises:
        ValueError: if an id is outside the vocabulary.
    """
    check_ids(ids, len(E))
    return F.one_hot(ids.long(), len(E)).to(E.dtype) @ E


class TokenEmbedding(ShapedModule):
    """The embedding matrix: row w is what the model knows of word w before any context.

    It looks up what `one_hot_lookup` multiplies. No √d factor, as in the book.

    Attributes:
        E: the embedding matrix [|V|×d].
    """

    def __init__(self, vocab_size: int, model_dim: int):
        """Make an embedding matrix of small normal numbers (deviation 0.02, as GPT-2).

        Raises:
            ValueError: if a size is not a positive whole number.
        """
        super().__init__()
        check_positive_sizes(vocab_size=vocab_size, model_dim=model_dim)
        self.E = nn.Parameter(torch.randn(vocab_size, model_dim) * 0.02)

    @explain_refusals(refuse_unfit_ids)  # PyTorch's words for an unknown id do not name it
    def forward(self, ids: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch d"]:
        """Return the row of E for each id.

        Raises:
            ValueError: if an id is outside the vocabulary, or the ids are on another device.
        """
        return F.embedding(ids, self.E)


class ScaledEmbedding(TokenEmbedding):
    r"""The row of a token times √d, as in 2017: $\sqrt d\,\mathbf E[id(i)]$.

    The matrix serves the head too, for which its numbers have to be small (deviation 1/√d); scaled
    up they are of the size of the sines and cosines that are added to them. Smaller ones leave it
    at first to these to tell tokens apart. Not in the book.

    Source: Vaswani et al. 2017, section 3.4.
    """

    def __init__(self, vocab_size: int, model_dim: int, std: float | None = None):
        """Make an embedding matrix of normal numbers.

        Args:
            vocab_size: |V|.
            model_dim: d.
            std: of the numbers; 1/√d if None.

        Raises:
            ValueError: if a size is not a positive whole number.
        """
        super().__init__(vocab_size, model_dim)
        nn.init.normal_(self.E, std=model_dim**-0.5 if std is None else std)

    def forward(self, ids: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch d"]:
        """Return √d times the row of E for each id.

        Raises:
            ValueError: if an id is outside the vocabulary.
        """
        return math.sqrt(self.E.shape[1]) * super().forward(ids)


class PositionTable(ShapedModule):
    """Positions that are the rows of a matrix P [N×d]."""

    P: Tensor

    def forward(self, N: int, start: int = 0) -> Float[Tensor, "N d"]:
        """Return the rows of positions `start` to `start` + N − 1.

        Raises:
            ValueError: if there are no such positions.
        """
        check_positions(start, N, len(self.P))
        return self.P[start : start + N]


class LearnedPositions(PositionTable):
    """A learned row for each absolute position, the book's choice.

    Attributes:
        P: the position matrix [N×d], N being the longest sequence.
    """

    def __init__(self, context_length: int, model_dim: int):
        """Make a position matrix of small normal numbers (deviation 0.02, as GPT-2).

        Raises:
            ValueError: if a size is not a positive whole number.
        """
        super().__init__()
        check_positive_sizes(context_length=context_length, model_dim=model_dim)
        self.P: nn.Parameter = nn.Parameter(torch.randn(context_length, model_dim) * 0.02)


def sinusoidal_positions(N: int, model_dim: int) -> Float[Tensor, "N d"]:
    r"""Fixed positions: sines and cosines of ever slower frequency.

    $$\mathbf P_{pos,2i}=\sin\frac{pos}{10000^{2i/d}},\quad
    \mathbf P_{pos,2i+1}=\cos\frac{pos}{10000^{2i/d}}$$

    Source: `sinusoid`, Vaswani et al. 2017, section 3.5; the book names it but has no equation.

    Args:
        N: number of positions.
        model_dim: d; if odd, the last column is a sine without its cosine.

    Returns:
        The position matrix [N×d].

    Raises:
        ValueError: if a size is not a positive whole number.
    """
    check_positive_sizes(N=N, model_dim=model_dim)
    # In double precision: single has four decimals at most of an angle of thousands of radians.
    pos = torch.arange(N, dtype=torch.float64).unsqueeze(1)
    frequency = torch.exp(
        torch.arange(0, model_dim, 2, dtype=torch.float64) * (-math.log(10000.0) / model_dim)
    )
    P = torch.empty(N, model_dim, dtype=torch.float64)
    P[:, 0::2] = torch.sin(pos * frequency)
    P[:, 1::2] = torch.cos(pos * frequency[: model_dim // 2])
    return P.to(torch.get_default_dtype())


class SinusoidalPositions(ComputedTable, PositionTable):
    """`sinusoidal_positions` in the place of `LearnedPositions`; nothing is learned.

    Attributes:
        P: the position matrix [N×d], a buffer that is made again rather than saved.
    """

    compute = staticmethod(sinusoidal_positions)

    def __init__(self, context_length: int, model_dim: int):
        """Compute the positions once.

        Raises:
            ValueError: if a size is not a positive whole number.
        """
        super().__init__()
        check_positive_sizes(context_length=context_length)
        P = self.compute(context_length, model_dim)
        self.register_buffer("P", P, persistent=False)  # it moves with the model, but is not saved


POSITIONS = {"learned": LearnedPositions, "sinusoidal": SinusoidalPositions}


class InputEncoding(nn.Module):
    r"""The input to the first block: what each token is plus where it stands.

    $$\mathbf X_i=\mathbf E[id(i)]+\mathbf P[i]$$

    Source: `X`.

    Attributes:
        tokens: the token embedding, with its matrix E.
        positions: the positions, with their matrix P.
    """

    def __init__(
        self,
        vocab_size: int,
        context_length: int,
        model_dim: int,
        positions: BookPositions = "learned",
        dropout: float = 0.0,
        scaled_embeddings: bool = False,
        initialization: Initialization = "gpt2",
    ):
        """Make both parts.

        Args:
            vocab_size: |V|.
            context_length: N, the longest sequence.
            model_dim: d.
            positions: "learned" (the book's) or "sinusoidal".
            dropout: share of X dropped in training; not in the book.
            scaled_embeddings: multiply the tokens' rows by √d (Vaswani et al. 2017); not in the
                book.
            initialization: "bert" lets scaled rows too begin with a deviation of 0.02.

        Raises:
            ValueError: if a size or the choice is not one of these.
        """
        super().__init__()
        check_in_choices(BOOK_POSITION_NAMES, positions=positions)
        check_in_choices(INITIALIZATION_NAMES, initialization=initialization)
        self.tokens: TokenEmbedding
        if scaled_embeddings:
            std = 0.02 if initialization == "bert" else None
            self.tokens = ScaledEmbedding(vocab_size, model_dim, std)
        else:
            self.tokens = TokenEmbedding(vocab_size, model_dim)
        self.positions: PositionTable = POSITIONS[positions](context_length, model_dim)
        self.drop: Dropout = Dropout(dropout)
        self.register_load_state_dict_post_hook(compute_missing_tables)

    def forward(
        self,
        ids: Int[Tensor, "*batch N"],
        start: int = 0,
        position_ids: Int[Tensor, "... N"] | None = None,
    ) -> Float[Tensor, "*batch N d"]:
        """Return the rows of X for a sequence of ids.

        Args:
            ids: token ids, left to right.
            start: position of the first of them.
            position_ids: the position of each, where they do not follow one another.

        Raises:
            ValueError: if an id is outside the vocabulary, a position is not in the table, or the
                sequence is too long.
        """
        check_token_axis(ids)
        N = ids.shape[-1]
        if position_ids is None:
            P = self.positions(N, start)
        else:
            check_position_ids(position_ids, start, N, len(self.positions.P))
            P = self.positions.P[position_ids]
        return self.drop(self.tokens(ids) + P)
