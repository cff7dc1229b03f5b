"""Windows of a stream of whole pieces, of which half begin where a piece does."""

import torch

from slp_transformer._internal.shape_types import Int, Tensor
from slp_transformer.data.batches import Batch, TokenWindows
from slp_transformer.data.token_file import TokenStore, find_token


class PieceWindows(TokenWindows):
    """Teacher forcing on a stream of pieces.

    Half of the windows of a batch, rounded up, begin where a piece begins, and any piece is as
    likely as any other; the others begin anywhere. A model that has to write pieces from their
    first token so meets whole ones, and their ends, at the positions where it will write them.
    """

    def __init__(self, stream: Int[Tensor, "tokens"] | TokenStore, N: int, begin_id: int):
        """Cut windows of N tokens.

        Args:
            stream: pieces one after the other.
            N: tokens in a window.
            begin_id: the token that every piece begins with.

        Raises:
            ValueError: if the stream is too short for one window.
        """
        super().__init__(stream, N)
        begins = find_token(stream, begin_id)
        self.begins = begins[begins < len(stream) - N]  # others leave no room for a window

    def draw(self, batch_size: int, generator: torch.Generator) -> Batch:
        """Windows from the beginnings of random pieces, then from random places."""
        starts = torch.randint(len(self.stream) - self.N, (batch_size,), generator=generator)
        if len(self.begins):
            half = (batch_size + 1) // 2
            which = torch.randint(len(self.begins), (half,), generator=generator)
            starts[:half] = self.begins[which]
        windows = self.stream[starts.unsqueeze(1) + torch.arange(self.N + 1)]
        return Batch((windows[:, :-1],), windows[:, 1:])
