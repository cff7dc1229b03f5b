"""From the answers of a submission to a verdict: right, or which known mistake gives the same.

A check has the right solution and a table of named *mistakes*, each a way to get wrong answers. A
submission that is wrong somewhere is compared with each of them on all cases, and with many pairs;
the mistake that gives the very same answers is the one to name. So every mistake is a program that
runs, and nothing is guessed from how the code looks. A mistake is a line `name: sentence`, and most
have the function that makes it below. One of those that every check knows (`variants` and `slips`)
needs no function, and stands in the table only for a better sentence; if it has another name here,
its own follows in square brackets:

    "one-hot alone [no @ E]: This is the one-hot row; it should be multiplied with E.",
    "not summed: The rows are not added up: multiply with @, not with *.",
    lambda w, E: (torch.arange(len(E)) == w)[:, None] * E,

The function takes, by name, those of the exercise's arguments that it needs, and it may take
`right`, which is the right answer to them, `solve`, the solution, and `mistakes`, the others that
are made. `solve("one-hot alone", w=0)` makes another mistake, and has another w than the case.
`…` stands for the sentence of the same name without brackets. A mistake that several checks share
may be a branch of the solution instead, which then takes `mistakes`, the names of those to make.
"""

import inspect
import warnings
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from itertools import combinations
from typing import Any

import torch
from torch import Tensor

from slp_transformer._internal.bounds import WAITS
from slp_transformer._internal.equations import load_equations
from slp_transformer.check.diagnosing.calling import (
    UnsupportedCall,
    make_caller,
    own_parameter_shapes,
)
from slp_transformer.check.diagnosing.comparing import (
    HAS_NAN,
    NotNumeric,
    answers_agree,
    count_numbers,
    describe_relation,
    describe_shape,
    differing_indices,
    find_traits,
    format_difference,
    format_inputs,
    format_pair,
    has_floats_for_integers,
    has_new_nan,
    is_all_nan,
    rank_difference,
    squeezed_shape,
    to_comparable,
)
from slp_transformer.check.diagnosing.edges import draw_edges
from slp_transformer.check.diagnosing.hints import FLOATS_FOR_INTEGERS, HINTS, LOST_AXIS, OVERFLOW
from slp_transformer.check.diagnosing.random_inputs import RareCase
from slp_transformer.check.diagnosing.slips import Slip, as_solution_with_mistakes, make_slips
from slp_transformer.check.diagnosing.timed_run import RaisedError, TimedOut, run_with_timeout
from slp_transformer.check.diagnosing.variants import Variant, make_variants
from slp_transformer.check.verdict import Verdict, print_verdict

Case = dict[str, Any]
Inputs = tuple[Any, ...]  # of a case, in the order of the arguments
Mistakes = frozenset[str]  # names of the mistakes that a solution makes on purpose
Formula = Callable[..., Any]  # makes a mistake, given arguments by name
# Calls a submission with cases, by their numbers, an argument as a list if it is named; returns its
# answers, and the arguments that it changed in place.
Run = Callable[[Sequence[int], str], tuple[list[Any], set[str]]]
SizesFromModule = Callable[[dict[str, tuple[int, ...]], Any], dict[str, int]]
DEFAULT_TIMEOUT_S = WAITS["a student's function"].seconds
REPEATS = 8  # calls with the same inputs, to see if a submission is random
NOT_ALONE = {"right", "solve"}
GIVEN_TO_FORMULAS = {*NOT_ALONE, "mistakes"}
CHECKS: dict[str, "Check"] = {}


class BrokenCheck(Exception):
    """A check cannot compute its own right answer: that is not the reader's mistake."""


class AttemptEnded(Exception):
    """The process in which a submission runs has ended; the message says how."""


class Check:
    """One exercise's check: `check.attention(my_attention)`.

    Attributes:
        name: how it is called.
        source: its equation, by slug and numbers.
        arguments: what the reader's function is given, in this order.
        mistakes: sentences by the names of its own mistakes; what is in brackets after a
            name distinguishes variants of one mistake.
        formulas: the functions that make them, by name.
        synonyms: the names of variants and slips that have another one among its own.
        variants: the mistakes that every check with such arguments knows, by name.
        accepted: mistakes that are as good as right.
    """

    def __init__(
        self,
        solve: Callable[..., Any],
        source: str,
        cases: Callable[..., Sequence[Inputs | Case]],
        mistakes: Sequence[str | Formula],
        accepted: Sequence[str] = (),
        sizes_from_module: SizesFromModule | None = None,
        may_be_empty: Sequence[str] = (),
    ):
        """Make a check.

        Args:
            solve: the right solution: it takes the arguments, and `mistakes` if it can make some.
            source: the equation, by its slug in backticks.
            cases: makes a tuple of arguments for each case, smallest first; its keyword arguments
                are sizes.
            mistakes: the table of mistakes, with functions for those that neither `solve` nor
                `variants` nor `slips` makes.
            accepted: names of mistakes that count as right.
            sizes_from_module: the sizes to ask `cases` for when the submission is a module with
                parameters of its own, from their shapes and the module.
            may_be_empty: the arguments of which there may be no row.

        Raises:
            ValueError: if a function takes what it cannot be given.
        """
        self._solve, self._with_mistakes = solve, as_solution_with_mistakes(solve)
        self._make_cases, self._may_be_empty = cases, may_be_empty
        self.sizes_from_module: SizesFromModule | None = sizes_from_module
        self.source: str = load_equations().add_numbers_to(source)
        self.formulas: dict[str, Formula] = {}
        self.synonyms: dict[str, str] = {}
        self.mistakes: dict[str, str] = parse_mistake_table(mistakes, self.formulas, self.synonyms)
        self.accepted: tuple[str, ...] = tuple(accepted)
        self.name: str = solve.__name__
        self.__doc__ = solve.__doc__
        given = [p for n, p in inspect.signature(solve).parameters.items() if n != "mistakes"]
        self.arguments: tuple[str, ...] = tuple(one.name for one in given)
        self.variants: dict[str, Variant] = make_variants({n.name: n.annotation for n in given})
        self._taken = {n: tuple(inspect.signature(f).parameters) for n, f in self.formulas.items()}
        for name, taken in self._taken.items():
            if unknown := {*taken} - {*self.arguments, *GIVEN_TO_FORMULAS}:
                raise ValueError(f"{self.name}, {name!r}: nothing is called {', '.join(unknown)}.")
        # In what a function takes from `right` and `solve`, another mistake can be made.
        self._lone_formulas = {n for n, taken in self._taken.items() if not {*taken} & NOT_ALONE}
        CHECKS[self.name] = self

    def cases(self, **sizes: int) -> list[Case]:
        """Return the inputs of all cases by the names of the arguments."""
        return [
            case if isinstance(case, dict) else dict(zip(self.arguments, case, strict=True))
            for case in self._make_cases(**sizes)
        ]

    @cached_property
    def edges(self) -> list[RareCase]:
        """Return the cases at the edges of what the exercise allows."""
        return draw_edges(self.cases(), self._may_be_empty, self.solve)

    @cached_property
    def slips(self) -> dict[str, Slip]:
        """Return the mistakes that are one change of the solution's code, by name."""
        try:
            return {slip.name: slip for slip in make_slips(self._solve)}
        except (OSError, SyntaxError):  # its source is not at hand, or another by now
            return {}

    @property
    def signature_text(self) -> str:
        """Return the call as the exercise writes it: `attention(Q, K, V, mask)`."""
        return f"{self.name}({', '.join(self.arguments)})"

    def __repr__(self) -> str:
        return f"<check of {self.signature_text}: {self.source}>"

    def __call__(
        self, submission: object, *, one_row: bool = False, timeout_s: float = DEFAULT_TIMEOUT_S
    ) -> Verdict:
        """Try a submission on all cases, and say what is wrong with it.

        Args:
            submission: a function, or a module; it may return `(output, weights)` where the output
                is asked for.
            one_row: try single rows only, for a function that is written for one token.
            timeout_s: how long all cases together may take.

        Returns:
            The verdict, true where the submission is right. In a script it is printed, too.
        """
        begin = partial(self.start_attempt, submission, one_row=one_row, timeout_s=timeout_s)
        verdict = self.judge(begin, timeout_s)
        print_verdict(verdict)
        return verdict

    def start_attempt(
        self, submission: object, *, one_row: bool = False, timeout_s: float = DEFAULT_TIMEOUT_S
    ) -> tuple[list[Case], Run]:
        """Return the cases for a submission, and a function that calls it with some of them.

        Raises:
            UnsupportedCall: if it cannot be called as the exercise asks.
        """
        call = make_caller(submission, self.arguments, self.signature_text)
        cases = self._fitting_cases(submission, one_row)

        def run(numbers: Sequence[int], listed: str) -> tuple[list[Any], set[str]]:
            given = [cases[i] for i in numbers]
            given = [c | {listed: c[listed].tolist()} for c in given] if listed else given
            return run_with_timeout(call, given, submission, timeout_s)

        return cases, run

    def judge(self, begin: Callable[[], tuple[list[Case], Run]], timeout_s: float) -> Verdict:
        """Say what is wrong with a submission that is run somewhere.

        Args:
            begin: returns the cases, and what calls the submission with some of them.
            timeout_s: how long all cases together may take.

        Raises:
            AttemptEnded: if the place where it runs is no more.
        """
        try:
            cases, run = begin()
            usual = [case for case in cases if not isinstance(case, RareCase)]  # they come first
            verdict = self._make_verdict(usual, run, timeout_s)
            is_clear = not verdict.is_right and verdict.mistakes != ("edge",)
            return verdict if is_clear else self._make_verdict(cases, run, timeout_s)
        except (BrokenCheck, AttemptEnded):
            raise
        except (UnsupportedCall, NotNumeric) as error:
            return Verdict(False, str(error))
        except Exception as error:  # what a reader's object does when it is looked at
            text = f"It returns what cannot be compared with numbers ({type(error).__name__})."
            return Verdict(False, text)

    def solve(self, *inputs: Any, mistakes: Mistakes = frozenset(), **named: Any) -> Any:
        """Compute what the exercise asks for, or what `mistakes` make of it."""
        given = dict(zip(self.arguments, inputs, strict=False)) | named
        mistakes = frozenset(self.synonyms.get(name, name) for name in mistakes)
        formulas = mistakes & self.formulas.keys()
        for name in sorted(formulas - self._lone_formulas):
            return self._make_mistake(name, given, mistakes - {name})
        for name in sorted((mistakes & self.variants.keys()) - formulas):
            answer = self.solve(**self.variants[name].on_case(given), mistakes=mistakes - {name})
            return self.variants[name].on_answer(answer, given)
        for name in sorted(formulas):
            return self._make_mistake(name, given, mistakes - {name})
        unknown = mistakes - self.mistakes.keys() - set(self.accepted)
        for name in sorted(unknown & self.slips.keys()) if unknown else ():
            return self.slips[name].solve(**given, mistakes=mistakes - {name})
        return self._with_mistakes(**given, mistakes=mistakes)

    def _make_mistake(self, name: str, given: Case, others: Mistakes) -> Any:
        def solve_with(*mistakes: str, **changed: Any) -> Any:
            return self.solve(**given | changed, mistakes=others | {*mistakes})

        known = given | {"solve": solve_with, "mistakes": others}
        if "right" in self._taken[name]:
            known["right"] = solve_with()
        return self.formulas[name](**{n: known[n] for n in self._taken[name]})

    def expected_answer(self, case: Case, *mistakes: str) -> Any:
        """The right answer to a case, or the one that these mistakes give."""
        exact = {n: _to_double(value) for n, value in case.items()}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                answer = self.solve(**exact, mistakes=frozenset(mistakes))
            return to_comparable(answer, answer)
        except Exception as error:
            if not mistakes:
                raise BrokenCheck(f"The check of {self.signature_text} fails itself.") from error
            return RaisedError(type(error).__name__)

    def _make_verdict(self, cases: list[Case], run: Run, seconds: float) -> Verdict:
        found, changed = run(range(len(cases)), "")
        for name in self.arguments:
            is_ids = getattr(cases[0][name], "dtype", None) == torch.long
            if is_ids and any(isinstance(one, RaisedError) for one in found):
                answers, _ = run(range(len(cases)), name)
                if not any(isinstance(one, RaisedError | TimedOut) for one in answers):
                    found = answers  # it takes ids or positions as a list, not as a tensor
        right = [self.expected_answer(case) for case in cases]
        if i := next((j for j, answer in enumerate(found) if answer is None), 0):
            text = "It returns nothing for this input: return a value on every path."
            text += getattr(cases[i], "reason", "")
            return Verdict(False, text, (format_inputs(cases[i]),), ("nothing returned",))
        answers, found = found, [to_comparable(a, r) for a, r in zip(found, right, strict=False)]
        if isinstance(found[-1], TimedOut):
            return self._timeout_verdict(found[-1], cases[len(found) - 1], seconds)
        # Of what may differ without being wrong, go by what explains most.
        for j, (answer, case) in enumerate(zip(found, cases, strict=True)):
            ways = [right[j], *(self.expected_answer(case, way) for way in self.accepted)]
            right[j] = min(ways, key=partial(rank_difference, answer))
        wrong = differing_indices(found, right)
        reasons = [getattr(cases[j], "reason", "") for j in wrong]
        where = find_traits(cases, wrong) or reasons * all(reasons)
        if not wrong and self._has_floats_for_integers(answers, cases):
            shown_case = (format_inputs(cases[0]), *format_pair("integers", "floats"))
            return Verdict(False, FLOATS_FOR_INTEGERS, shown_case, ("floats for integers",))
        if not wrong:
            note = f" (It changes {' and '.join(sorted(changed))} in place.)" if changed else ""
            return Verdict(True, f"It agrees with {self.source}.{note}")
        if all(answers_agree(found[j], right[j]) for j in wrong):
            shapes = [f"{describe_shape(one[wrong[0]])}" for one in (right, found)]
            shown_case = format_inputs(cases[wrong[0]]), *format_pair(*shapes)
            return Verdict(False, LOST_AXIS, shown_case, ("axis lost",))
        answered = [i for i in wrong if not isinstance(found[i], RaisedError)]
        i = min(answered or wrong, key=lambda i: count_numbers(cases[i]))
        again, _ = run([i] * REPEATS, "")
        again = [to_comparable(answer, right[i]) for answer in again]
        if len(again) == REPEATS and not all(answers_agree(again[0], one) for one in again):
            text = "It gives different answers to the same inputs: is something in it random?"
            return Verdict(False, text, (format_inputs(cases[i]),))
        shown = any(not (has_new_nan(right[i], found[i]) or is_all_nan(found[i])) for i in answered)
        general: dict[str, Slip | Variant] = self.slips | self.variants
        sentences = {name: one.sentence for name, one in general.items()} | self.mistakes
        names: list[tuple[str, ...]] = [(name,) for name in self.mistakes]
        if shown:  # an error or NaN alone may come from anywhere
            others = sorted([*self.variants, *self.slips], key=lambda n: general[n].is_of_part)
            names += [(n,) for n in others if n not in self.mistakes]
            lone = self._lone_formulas | {n for n, g in self.synonyms.items() if g in self.slips}
            pairs = [two for two in combinations(self.mistakes, 2) if not lone.issuperset(two)]
            # Two mistakes of one part, such as two divisors of the scores, exclude each other.
            starts = {name: sentence.split()[:4] for name, sentence in self.mistakes.items()}
            pairs = [(one, other) for one, other in pairs if starts[one] != starts[other]]
            names += [two for two in pairs if not all(n.startswith("then ") for n in two)]
        # Where it is wrong and small, most mistakes are told at once.
        order = sorted(range(len(cases)), key=lambda j: (j not in wrong, count_numbers(cases[j])))
        told = [cases[j] for j in order], [found[j] for j in order]
        for mistakes in names:
            if self._mistakes_explain(mistakes, *told):
                text = " And: ".join(sentences[mistake] for mistake in mistakes)
                if same := self._blame_other_arguments(mistakes[0], cases, found):
                    text = f"{text[:-1]} (or {', or '.join(same)}: the answers would be the same)."
                short = tuple(mistake.partition(" (")[0] for mistake in mistakes)
                lines = self._example_lines(cases[i], right[i], found[i])
                return Verdict(False, text, lines, short)
        i = next((j for j in wrong if isinstance(found[j], RaisedError)), i)
        relation = describe_relation(right, found, cases)
        if relation == HAS_NAN:
            i = next(j for j in wrong if has_new_nan(right[j], found[j]))
        lines = self._example_lines(cases[i], right[i], found[i])
        text = self._describe_unknown_mistake(right[i], found[i])
        if relation == HAS_NAN and all(_may_overflow(cases[j]) for j in wrong):
            return Verdict(False, OVERFLOW, lines, ("overflow",))
        if relation:
            text = f"{text.rstrip('.')}: {relation}."
        if where:
            text += "".join([*dict.fromkeys(where)][:3])
            return Verdict(False, f"{text} Elsewhere it is right.", lines, ("edge",))
        return Verdict(False, text, lines)

    def _fitting_cases(self, submission: object, one_row: bool) -> list[Case]:
        sizes: dict[str, int] = {}
        if self.sizes_from_module and (own := own_parameter_shapes(submission, self.arguments)):
            sizes = self.sizes_from_module(own, submission)
        cases = self.cases(**sizes) + ([] if sizes else self.edges)
        return [c for c in cases if not one_row or c[self.arguments[0]].dim() == 1]

    def _mistakes_explain(
        self, mistakes: Sequence[str], cases: list[Case], found: list[Any]
    ) -> bool:
        ways = [tuple(mistakes), *((*mistakes, accepted) for accepted in self.accepted)]
        return all(
            any(answers_agree(answer, self.expected_answer(case, *way)) for way in ways)
            for answer, case in zip(found, cases, strict=True)
        )

    def _blame_other_arguments(self, name: str, cases: list[Case], found: list[Any]) -> list[str]:
        """Return the other arguments of which a general mistake of one would be the same."""
        one = self.variants.get(name)
        if one is None or not one.argument or name in self.mistakes:
            return []
        others = [v for v in self.variants.values() if v.change == one.change and v is not one]
        return [v.argument for v in others if self._mistakes_explain((v.name,), cases, found)]

    def _has_floats_for_integers(self, answers: Sequence[Any], cases: Sequence[Case]) -> bool:
        return any(
            has_floats_for_integers(answer, self.solve(**case))
            for answer, case in zip(answers, cases, strict=True)
        )

    def _example_lines(self, case: Case, right: Any, found: Any) -> tuple[str, ...]:
        given = format_inputs(case, shapes=isinstance(found, RaisedError))
        return (given, *format_difference(right, found), f"see       {self.source}")

    def _describe_unknown_mistake(self, right: Any, found: Any) -> str:
        if isinstance(found, RaisedError):
            where = f" in {found.source_line}" if found.source_line else ""
            hints = (f" {hint}" for words, hint in HINTS.items() if words in found.message)
            words = f", {found.message}".rstrip(" ,")
            return f"It stopped{where}: {found.kind}{words}.{''.join(hints)}"
        if isinstance(found, Tensor) and found.dtype == torch.bool != right.dtype:
            return "It returns booleans, not numbers."
        if isinstance(found, Tensor) and squeezed_shape(found.shape) != squeezed_shape(right.shape):
            return f"It returns {describe_shape(found)}; it should return {describe_shape(right)}."
        return f"It differs from {self.source}."

    def _timeout_verdict(self, found: TimedOut, case: Case, seconds: float) -> Verdict:
        where = f" It was at {found.source_line}." if found.source_line else ""
        text = WAITS["a student's function"].says.format(seconds) + where
        return Verdict(False, text, (format_inputs(case),))


def _may_overflow(case: Case) -> bool:
    """Tell if exp of the numbers of a case, or of their products, may overflow."""
    given = [v for v in case.values() if isinstance(v, Tensor) and v.is_floating_point()]
    return any(one.abs().max() >= 20 for one in given if one.numel())


def parse_mistake_table(
    table: Sequence[str | Formula], formulas: dict[str, Formula], synonyms: dict[str, str]
) -> dict[str, str]:
    """Read a table of mistakes.

    Args:
        table: the table, as at the top of this module.
        formulas: where the functions go, by the names of their mistakes.
        synonyms: where the names in square brackets go, by those before them.

    Returns:
        Sentences by the names of mistakes.
    """
    sentences: dict[str, str] = {}
    name = ""
    for entry in table:
        if not isinstance(entry, str):
            formulas[name] = entry
            continue
        label, sentence = entry.split(": ", 1)
        name, _, general = label.removesuffix("]").partition(" [")
        if name in sentences:
            raise ValueError(f"Two mistakes are called {name!r}.")
        sentences[name] = sentences[name.partition(" (")[0]] if sentence == "…" else sentence
        synonyms |= {name: general} if general else {}
    return sentences


def check(
    source: str,
    cases: Callable[..., Sequence[Inputs | Case]],
    *mistakes: str | Formula,
    accepted: Sequence[str] = (),
    sizes_from_module: SizesFromModule | None = None,
    may_be_empty: Sequence[str] = (),
) -> Callable[[Callable[..., Any]], Check]:
    """Make a check of a function with mistakes; for what they mean, see `Check`."""
    more = accepted, sizes_from_module, may_be_empty
    return lambda solve: Check(solve, source, cases, mistakes, *more)


def option_for_mistake(mistakes: Mistakes, options: dict[str, Any], default: Any) -> Any:
    """Return the option of the first of these mistakes that is made, or else the default."""
    return next((option for name, option in options.items() if name in mistakes), default)


def _to_double(value: Any) -> Any:
    return value.double() if isinstance(value, Tensor) and value.is_floating_point() else value
