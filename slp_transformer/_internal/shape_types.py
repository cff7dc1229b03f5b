"""Shapes as types: `Float[Tensor, "N d"]` says what a tensor holds and how its axes are called.

The letters are the book's:

| letter | axis |
|---|---|
| `N` | tokens in the window |
| `M` | tokens that are looked at (the same as `N` in self-attention) |
| `T` | tokens so far, those that a cache holds included (`N` without a cache) |
| `d` | model dimension, `model_dim` |
| `d_k`, `d_v` | key and value dimension of one head, `key_dim` and `value_dim` |
| `A` | heads, `num_heads` |
| `d_ff` | hidden dimension of the feedforward layer, `hidden_dim` |
| `V` | words in the vocabulary, `vocab_size` |
| `*batch` | any number of leading axes, none included |

With [jaxtyping](https://docs.kidger.site/jaxtyping/) installed these are its types, and the tests
check every call against them. Without it they are plain `Tensor`s: the package needs torch alone.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from slp_transformer._internal.docs_sections import see

if TYPE_CHECKING:  # what jaxtyping itself tells type checkers; it need not be installed for them
    from typing import Annotated as Bool
    from typing import Annotated as Float
    from typing import Annotated as Int
else:
    try:
        from jaxtyping import Bool, Float, Int

        Float[Tensor, "N"]  # a NameError in jaxtyping before 0.3.4 where numpy is missing
    except (ImportError, NameError):

        class _Unchecked:
            """Stands in for a jaxtyping type: keeps the tensor type, forgets the shape."""

            def __class_getitem__(cls, item):
                return item[0]

        Bool = Float = Int = _Unchecked

__all__ = ["Bool", "Float", "Int", "ShapedModule", "Tensor", "TokenIds", "format_shape"]
TokenIds = Sequence[int] | Int[Tensor, "_"]


def format_shape(tensor: Tensor | Sequence[int]) -> str:
    """Return a shape, or that of a tensor, as the book writes it: `[2×7×5]`."""
    shape = tensor.shape if isinstance(tensor, Tensor) else tensor
    return "[" + "×".join(str(size) for size in shape) + "]"


class ShapedModule(nn.Module):
    """A module that shows its own matrices and their shapes when it is printed."""

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> Any:
        """Load weights by their names, as every module does.

        Raises:
            ValueError: if they are those of another library, none of whose names is known here.
            RuntimeError: if some are missing, unknown or of another shape, from PyTorch.
        """
        ours = self.state_dict()
        if strict and ours and state_dict and ours.keys().isdisjoint(state_dict):
            raise ValueError(
                f"No weight of a {type(self).__name__} has a name as {next(iter(state_dict))} has: "
                f"here they are called {next(iter(ours))} and so on, and matrices have rows for "
                f"inputs. Published models are loaded by from_pretrained.{see('parameters')}"
            )
        return super().load_state_dict(state_dict, strict, assign)

    def extra_repr(self) -> str:
        """Return their names and shapes: `W_QKV [32×96], W_O [32×32]`."""
        own = [*self.named_parameters(recurse=False), *self.named_buffers(recurse=False)]
        return ", ".join(f"{name} {format_shape(W)}" for name, W in own)
