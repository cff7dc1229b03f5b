"""What may have become of a part: of an argument, or of a step of the right solution.

Each change is tried on every argument (`variants`) and on every named step (`slips`), so that a
line here is a mistake of all checks.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from slp_transformer.check.diagnosing.row_changes import (
    center,
    divide_by_norm,
    divide_by_sum,
    mark_largest,
    standardize,
)


class PartChange(NamedTuple):
    """A change of a tensor of numbers.

    Attributes:
        sentence: what is wrong; {} is what the part is called.
        change: makes it.
        min_dim: how many axes the part has at least.
    """

    sentence: str
    change: Callable[[Tensor], Tensor]
    min_dim: int = 0

    def __call__(self, part: Tensor) -> Tensor:
        """Change a part.

        Raises:
            ValueError: if it is not of floating-point numbers, or has too few axes.
        """
        if not part.is_floating_point() or part.dim() < self.min_dim:
            raise ValueError("This part cannot have become that.")
        return self.change(part)

    def change_finite(self, part: Tensor) -> Tensor:
        """Change a part without −∞, as a mask has it: many changes of a mask are alike.

        Raises:
            ValueError: if it has some, or as above.
        """
        if not part.isfinite().all():
            raise ValueError("A mask is changed in other ways.")
        return self(part)


PART_CHANGES: dict[str, PartChange] = {
    "{} squared": PartChange("The numbers in {} are squared.", torch.square),
    "{} cubed": PartChange("The numbers in {} are raised to the third power.", lambda x: x**3),
    "root of {}": PartChange("The root is taken of {}.", torch.sqrt),
    "log of {}": PartChange("The logarithm is taken of {}.", torch.log),
    "exp of {}": PartChange("exp is taken of {}.", torch.exp),
    "1 by {}": PartChange("1 is divided by {}.", torch.reciprocal),
    "{} and 1": PartChange("1 is added to {}.", lambda x: x + 1),
    "1 minus {}": PartChange("1 minus {} is taken.", lambda x: 1 - x),
    "{} doubled": PartChange("There is a factor 2 on {}.", lambda x: 2 * x),
    "{} halved": PartChange("There is a factor 1/2 on {}.", lambda x: x / 2),
    "{} cut": PartChange("{} is rounded to whole numbers, toward 0.", torch.trunc),
    "ReLU of {}": PartChange("A ReLU is applied to {}.", torch.relu),
    "sigmoid of {}": PartChange("A sigmoid is applied to {}.", torch.sigmoid),
    "tanh of {}": PartChange("A tanh is applied to {}.", torch.tanh),
    "softmax of {}": PartChange("A softmax is taken of {}.", lambda x: x.softmax(-1), 1),
    "log softmax of {}": PartChange(
        "A log softmax is taken of {}.", lambda x: x.log_softmax(-1), 1
    ),
    "largest of {}": PartChange(
        "In {}, the largest number becomes 1 and all others 0.", mark_largest, 1
    ),
    "shares of {}": PartChange("Each row of {} is divided by its sum.", divide_by_sum, 1),
    "{} of norm 1": PartChange("Each row of {} is divided by its norm.", divide_by_norm, 1),
    "{} centered": PartChange("The mean is subtracted from each row of {}.", center, 1),
    "{} standardized": PartChange(
        "Each row of {} is brought to mean 0 and deviation 1.", standardize, 1
    ),
    "{} · √width": PartChange(
        "Each row of {} is multiplied by the root of its size.",
        lambda x: x * x.shape[-1] ** 0.5,
        1,
    ),
    "{} / √width": PartChange(
        "Each row of {} is divided by the root of its size.",
        lambda x: x / x.shape[-1] ** 0.5,
        1,
    ),
    "{} / width": PartChange(
        "Each row of {} is divided by its size.", lambda x: x / x.shape[-1], 1
    ),
    "{} mirrored": PartChange("The columns of {} are in reverse order.", lambda x: x.flip(-1), 2),
    "{} sorted": PartChange(
        "The numbers in {} are sorted.", lambda x: x.sort(-1, descending=True).values, 1
    ),
    "{} added up": PartChange(
        "The numbers in {} are added up one after the other.", lambda x: x.cumsum(-1), 1
    ),
    "{} moved up": PartChange(
        "The rows of {} are shifted by one: each is taken from the next place.",
        lambda x: x.roll(-1, 0),
        1,
    ),
    "{} moved down": PartChange(
        "The rows of {} are shifted by one: each is taken from the place before.",
        lambda x: x.roll(1, 0),
        1,
    ),
    "first row of {}": PartChange(
        "The first row of {} is used for all rows.",
        lambda x: x[..., :1, :].expand_as(x).contiguous(),
        2,
    ),
    "last row of {}": PartChange(
        "The last row of {} is used for all rows.",
        lambda x: x[..., -1:, :].expand_as(x).contiguous(),
        2,
    ),
    "mean row of {}": PartChange(
        "The mean of all rows of {} is used for each row.",
        lambda x: x.mean(-2, keepdim=True).expand_as(x).contiguous(),
        2,
    ),
    "mean of {}": PartChange(
        "In {}, every number is replaced by their mean, row by row if there are rows.",
        lambda x: x.mean(-1, keepdim=True).expand_as(x).contiguous(),
        1,
    ),
}
# What a reader calls the steps of the solutions, by the names that they have there.
STEPS = {
    "scores": "the scores",
    "alpha": "the attention weights",
    "powers": "the exponentials",
    "total": "the sum of the exponentials",
    "mu": "the mean μ",
    "variance": "the variance",
    "sigma": "σ",
    "hidden": "the hidden layer",
    "first": "the first product",
    "second": "the second product",
    "heads": "the heads' outputs",
    "Q": "Q",
    "K": "K",
    "V": "V",
    "O": "the stream after attention, T³ (O),",
    "Y": "the stream after self-attention",
    "Z": "the stream after cross-attention",
    "log_y": "log y",
    "each": "the losses of the words",
    "angle": "the angle",
    "angles": "the angles",
    "theta": "θ",
    "words": "the product of the matrices",
    "scale": "the scale α/r",
    "y": "the probabilities",
    "used": "the logits",
}
