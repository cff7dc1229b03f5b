"""The type checker that reads the package's signatures while the tests run."""

from beartype import BeartypeConf, beartype

# As PEP 484 has it, a whole number will do where a float is asked for: `eps=0`.
checker = beartype(conf=BeartypeConf(is_pep484_tower=True))
