"""What contributors run by name, in an environment that nox makes: `nox -s lint`, `nox -l`."""

import nox

nox.options.sessions = ["lint", "types", "tests"]
nox.options.reuse_existing_virtualenvs = True


@nox.session
def lint(session: nox.Session) -> None:
    """Lint rules, layout and the layers of the package."""
    session.install("-e", ".[test]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("lint-imports")


@nox.session
def types(session: nox.Session) -> None:
    """mypy over packages and benchmarks, and whether users know the types of all that is public."""
    session.install(".[test]", "basedpyright")
    session.run("mypy", *session.posargs)
    session.chdir(session.create_tmp())
    for package in ("slp_transformer", "slp_guitar"):
        session.run("basedpyright", "--verifytypes", package, "--ignoreexternal")


@nox.session
def tests(session: nox.Session) -> None:
    """The test suite, or what is named after --."""
    session.install("-e", ".[test]")
    session.run("python", "-m", "pytest", *session.posargs)


@nox.session
def stress(session: nox.Session) -> None:
    """The slow tests, and the numerical ones on a stand-in for a second device."""
    session.install("-e", ".[test]")
    session.run("python", "-m", "pytest", "-m", "slow")
    session.run("python", "-m", "pytest", "--device", "standin")


@nox.session
def docs(session: nox.Session) -> None:
    """The site, in site/."""
    session.install("-e", ".[docs]")
    session.run("python", "-m", "mkdocs", "build", "--strict")
