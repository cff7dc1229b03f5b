"""Sentences about what is wrong whatever the exercise: in what form, and in which error."""

FLOATS_FOR_INTEGERS = (
    "The numbers are right, but they are floats, which cannot be an index: torch.zeros and "
    "torch.empty need dtype=torch.long."
)
LOST_AXIS = (
    "The numbers are right, but an axis is lost where its size is 1: squeeze() takes every such "
    "axis away; name the one that you mean, or leave it out."
)
OVERFLOW = (
    "With large numbers it has NaN: exp of them is ∞, or 0 everywhere, and neither ∞/∞ nor 0/0 is "
    "a number. Subtract the largest first, or use torch.softmax, torch.sigmoid or F.silu."
)
HINTS = {
    "must match the size of tensor": (
        "Is a keepdim=True missing, or a .T? Or has a slice the wrong length?"
    ),
    "negative power": "Is a product of small numbers rounded to 0? Then add logarithms instead.",
    "torch.return_types": "min, max, sort and topk return values and indices: take `.values`.",
    "out of bounds": "Indices go from 0 to the size − 1: here one is outside.",
    "index out of range": "Indices go from 0 to the length − 1: here one is outside.",
    "Dimension out of range": "This input has fewer axes, as a single row has: dim=-1 is the last.",
    "division by zero": "Nothing was counted for this input, so there is nothing to divide by.",
    "same dtype": "Whole numbers and floats cannot be multiplied as matrices: use .float().",
    "is not in list": "index() stops where there is nothing to find: look with `in` first.",
    "and 'NoneType'": "One of them is None: leave it out before.",
    "'NoneType' and": "One of them is None: leave it out before.",
    "expects each tensor to be equal size": "The parts differ in size: is the right axis cut?",
    "empty sequence": "Nothing is left here: say what the result is then.",
    "'tuple' object": "The input is a tuple, which cannot be changed: make a list of it.",
    "is not defined": "Is a name misspelled, or used before it has a value?",
    "shapes cannot be multiplied": "The inner sizes differ: is a .T missing, or a slice too long?",
}
