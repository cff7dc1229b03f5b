"""Checks for the exercises about the guitar; `slp_transformer.check` has them with all others."""

from slp_guitar.checks import fingering_checks, guitar_checks  # noqa: F401
