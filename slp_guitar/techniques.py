"""The ways to play a note, and the sign that each has in every kind of file.

A technique is one row of one table. Readers and writers look signs up here, so what has no sign in
a kind of file cannot be written there, and `convert` names it as lost.
"""

from typing import NamedTuple

from slp_transformer._internal.choices import Choices


class TechniqueSigns(NamedTuple):
    """What a technique is called, and how it is written.

    Attributes:
        plural: what several are called in messages.
        leads_on: whether it leads to the next note on the string, and so is marked where a note
            ends that is held over beats; else it is marked where the note is struck.
        ascii: the marks right behind a fret of ASCII tab; the first is written.
        alphatex: the effects of a note in alphaTex; the first is written.
        musicxml: the elements of a note in MusicXML, as ElementTree finds them.
        guitar_pro: the attributes of a note that PyGuitarPro has.
        since_guitar_pro: the first version of Guitar Pro that has it for single notes.
        gpif: the elements of a note in a .gp file, or of its beat behind ``Beat/``; ``Accent&4``
            is a bit of a number.
        is_of_beat: whether alphaTex has its effect for all notes of a beat at once.
    """

    plural: str
    leads_on: bool = False
    ascii: str = ""
    alphatex: tuple[str, ...] = ()
    musicxml: tuple[str, ...] = ()
    guitar_pro: tuple[str, ...] = ()
    since_guitar_pro: int = 3
    gpif: tuple[str, ...] = ()
    is_of_beat: bool = False

    @property
    def summary(self) -> str:
        """Return what several are called."""
        return self.plural


TECHNIQUES: Choices[TechniqueSigns] = Choices(
    "technique",
    {
        "hammer": TechniqueSigns(
            "hammer-ons and pull-offs",
            leads_on=True,
            ascii="hH",
            alphatex=("h",),
            musicxml=("notations/technical/hammer-on[@type='start']",),
            guitar_pro=("effect.hammer",),
            gpif=("Properties/Property[@name='HopoOrigin']",),
        ),
        # Most files do not tell it from a hammer-on: `TabBuilder` does, by where it leads.
        "pull": TechniqueSigns(
            "hammer-ons and pull-offs",
            leads_on=True,
            ascii="pP",
            alphatex=("h",),
            musicxml=("notations/technical/pull-off[@type='start']",),
        ),
        "slide": TechniqueSigns(
            "slides",
            leads_on=True,
            ascii="/\\s",
            alphatex=("ss", "sl"),
            musicxml=("notations/slide[@type='start']", "notations/glissando[@type='start']"),
            guitar_pro=("effect.slides",),
            gpif=("Properties/Property[@name='Slide']",),
        ),
        # How far it goes is beside the sign everywhere, so each format has code of its own for it.
        "bend": TechniqueSigns("bends"),
        "harmonic": TechniqueSigns(
            "harmonics",
            alphatex=("nh", "ah"),
            musicxml=("notations/technical/harmonic",),
            guitar_pro=("effect.harmonic",),
            since_guitar_pro=4,
            gpif=(
                "Properties/Property[@name='Harmonic']",
                "Properties/Property[@name='HarmonicType']",
            ),
        ),
        "dead": TechniqueSigns(
            "dead notes",
            alphatex=("x",),
            musicxml=("[notehead='x']",),
            gpif=("Properties/Property[@name='Muted']",),
        ),
        "let ring": TechniqueSigns(
            "notes that ring on",
            alphatex=("lr",),
            musicxml=("notations/tied[@type='let-ring']",),
            guitar_pro=("effect.letRing",),
            gpif=("LetRing",),
        ),
        "vibrato": TechniqueSigns(
            "vibratos",
            ascii="~",
            alphatex=("v", "vw"),
            musicxml=(
                "notations/technical/[other-technical='vibrato']",
                "notations/ornaments/wavy-line[@type='start']",
            ),
            guitar_pro=("effect.vibrato", "beat.effect.vibrato"),
            since_guitar_pro=4,
            gpif=("Vibrato", "Beat/Properties/Property[@name='VibratoWTremBar']"),
        ),
        "palm mute": TechniqueSigns(
            "palm mutes",
            alphatex=("pm",),
            musicxml=("notations/technical/[other-technical='palm mute']", "play/[mute='palm']"),
            guitar_pro=("effect.palmMute",),
            since_guitar_pro=4,
            gpif=("Properties/Property[@name='PalmMuted']",),
        ),
        "accent": TechniqueSigns(
            "accents",
            alphatex=("ac",),
            musicxml=("notations/articulations/accent",),
            guitar_pro=("effect.accentuatedNote",),
            since_guitar_pro=4,
            gpif=("Accent&8",),
        ),
        "strong accent": TechniqueSigns(
            "strong accents",
            alphatex=("hac",),
            musicxml=("notations/articulations/strong-accent",),
            guitar_pro=("effect.heavyAccentuatedNote",),
            since_guitar_pro=5,
            gpif=("Accent&4",),
        ),
        "staccato": TechniqueSigns(
            "staccatos",
            alphatex=("st",),
            musicxml=("notations/articulations/staccato",),
            guitar_pro=("effect.staccato",),
            since_guitar_pro=4,
            gpif=("Accent&1",),
        ),
        "ghost": TechniqueSigns(
            "ghost notes",
            alphatex=("g",),
            musicxml=("notehead[@parentheses='yes']",),
            guitar_pro=("effect.ghostNote",),
            gpif=("AntiAccent",),
        ),
        "tap": TechniqueSigns(
            "taps",
            alphatex=("tt",),
            musicxml=("notations/technical/tap",),
            guitar_pro=("beat.effect.slapEffect=tapping",),
            gpif=("Properties/Property[@name='Tapped']",),
            is_of_beat=True,
        ),
        "slap": TechniqueSigns(
            "slaps",
            alphatex=("s",),
            musicxml=("notations/technical/[other-technical='slap']",),
            guitar_pro=("beat.effect.slapEffect=slapping",),
            gpif=("Beat/Properties/Property[@name='Slapped']",),
            is_of_beat=True,
        ),
        "pop": TechniqueSigns(
            "pops",
            alphatex=("p",),
            musicxml=("notations/technical/[other-technical='pop']",),
            guitar_pro=("beat.effect.slapEffect=popping",),
            gpif=("Beat/Properties/Property[@name='Popped']",),
            is_of_beat=True,
        ),
        **{
            f"finger {n}": TechniqueSigns(
                "fingers of the left hand",
                alphatex=(f"lf {n + 1}",),
                musicxml=(f"notations/technical/[fingering='{n}']",),
                guitar_pro=(f"effect.leftHandFinger={name}",),
                since_guitar_pro=5,
                gpif=(f"[LeftFingering='{letter}']",),
            )
            for n, name, letter in (
                *((1, "index", "I"), (2, "middle", "M")),
                *((3, "annular", "A"), (4, "little", "C")),
            )
        },
    },
)
"""The techniques by name, in the order in which a note has them."""


def find_technique(sign_kind: str, sign: str) -> str | None:
    """Return the technique that has a sign; of two with the same, the first in the table.

    Args:
        sign_kind: an attribute of `TechniqueSigns`.
        sign: the sign.
    """
    named = TECHNIQUES.items()
    return next((kind for kind, signs in named if sign in getattr(signs, sign_kind)), None)
