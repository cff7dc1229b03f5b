"""Shapes in the package's signatures are checked while the tests run."""

import pytest
import torch
from jaxtyping import config, install_import_hook

install_import_hook("slp_transformer", "typechecking.checker")

# The tests' tensors are tiny: a second thread would only be waited for.
torch.set_num_threads(1)


@pytest.fixture
def unchecked():
    """Turn the shape checks off, for tests of what the package itself says to bad input."""
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)
