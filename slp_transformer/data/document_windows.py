"""Windows of a stream of documents, half of which begin where a document does."""

import torch

from slp_transformer._internal.shape_types import Int, Tensor
from slp_transformer.data.batches import Batch, TokenWindows
from slp_transformer.data.token_file import TokenStore, find_token


class DocumentWindows(TokenWindows):
    """Teacher forcing on a stream of documents.

    Half of the windows of a batch, rounded up, begin where a document begins, each document with
    the same probability; the others begin anywhere. So a model that is to generate documents from
    their first token sees whole ones, and their ends, at the positions where it generates them.
    """

    def __init__(self, stream: Int[Tensor, "tokens"] | TokenStore, N: int, begin_id: int):
        """Cut windows of N tokens.

        Args:
            stream: documents one after the other.
            N: tokens in a window.
            begin_id: the token that every document begins with.

        Raises:
            ValueError: if the stream is too short for one window.
        """
        super().__init__(stream, N)
        begins = find_token(stream, begin_id)
        self.document_starts = begins[begins < len(stream) - N]  # from the others no window fits

    def draw(self, batch_size: int, generator: torch.Generator) -> Batch:
        """Return windows from the beginnings of random documents, then from random positions."""
        starts = torch.randint(len(self.stream) - self.N, (batch_size,), generator=generator)
        if len(self.document_starts):
            half = (batch_size + 1) // 2
            which = torch.randint(len(self.document_starts), (half,), generator=generator)
            starts[:half] = self.document_starts[which]
        windows = self.stream[starts.unsqueeze(1) + torch.arange(self.N + 1)]
        return Batch((windows[:, :-1],), windows[:, 1:])
