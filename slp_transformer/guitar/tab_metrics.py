"""Metrics of generated tablature.

How many of the events can be played is the first question players ask of such tab, and published
systems that generate it have not reported it; people who write tab by hand are above 99.9 percent.
Distinct strings and a reach of four frets are the usual conditions. TART (arXiv 2510.02597) masks
reused strings and reaches over five frets; how far the hand moves belongs to the costs that
fingering search has minimized since Sayegh (1989).
"""

from collections.abc import Iterable

from slp_transformer.guitar.fretboard import MAX_FRET, MAX_SPAN, is_playable_grip
from slp_transformer.guitar.tab import Event

NUM_STRINGS = 6


def is_playable_event(event: Event, max_span: int = MAX_SPAN, max_fret: int = MAX_FRET) -> bool:
    """Return whether one hand can play an event on a six-string guitar.

    True when every note has a string of its own, every fret is from 0 to `max_fret`, and the
    fretted notes lie at most `max_span` frets apart.
    """
    on_the_neck = all(
        1 <= note.string <= NUM_STRINGS and 0 <= note.fret <= max_fret for note in event.notes
    )
    return on_the_neck and is_playable_grip(event.notes, max_span)


def compute_playable_share(
    events: Iterable[Event], max_span: int = MAX_SPAN, max_fret: int = MAX_FRET
) -> float:
    """Share of the events that one hand can play, from 0 to 1.

    Args:
        events: for instance `tab.iter_events()`.
        max_span: most frets between the lowest and the highest fretted note.
        max_fret: last fret that counts as on the neck; pass ``MAX_FRET - capo`` where there is a
            capo.

    Returns:
        The share; 0.0 if there are no events, since nothing written is nothing to play.
    """
    verdicts = [is_playable_event(event, max_span, max_fret) for event in events]
    return sum(verdicts) / len(verdicts) if verdicts else 0.0


def compute_hand_shifts(events: Iterable[Event]) -> list[int]:
    """Return the frets that the hand moves from one event to the next, never negative.

    The hand is where its lowest fretted note is. Events of open strings alone need no hand and
    leave it where it was, so there is one number less than there are events with a fretted note.
    """
    fretted = ([note.fret for note in event.notes if note.fret > 0] for event in events)
    places = [min(frets) for frets in fretted if frets]
    return [abs(after - before) for before, after in zip(places, places[1:], strict=False)]


def compute_mean_hand_shift(events: Iterable[Event]) -> float:
    """Mean of `compute_hand_shifts`, in frets; 0.0 if the hand never has to move."""
    shifts = compute_hand_shifts(events)
    return sum(shifts) / len(shifts) if shifts else 0.0


def valid_sequence_share(invalid_token_counts: Iterable[int]) -> float:
    """Share of sampled token sequences without any ill-formed token; 0.0 if there are none.

    Args:
        invalid_token_counts: for every sample, the number of its invalid tokens
            (`slp_transformer.guitar.tab_tokenizer.DecodedTab.num_invalid_tokens`).
    """
    clean = [count == 0 for count in invalid_token_counts]
    return sum(clean) / len(clean) if clean else 0.0
