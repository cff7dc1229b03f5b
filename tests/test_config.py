"""The one configuration that every model is made from."""

import json

import pytest
from comparing import some_ids

from slp_transformer import TransformerConfig, TransformerLM


def test_settings_survive_json():
    config = TransformerConfig(23, key_dim=5, activation="gelu", dropout=0.25, norm="post")
    assert TransformerConfig(**json.loads(json.dumps(config.to_dict()))) == config


def test_only_the_vocabulary_has_no_default_and_the_defaults_are_the_books():
    config = TransformerConfig(23)
    assert (config.activation, config.norm, config.positions) == ("relu", "pre", "learned")
    assert config.dropout == 0.0
    model = TransformerLM(config)
    assert model(some_ids(config.context_length)).shape == (config.context_length, 23)
    with pytest.raises(TypeError):
        TransformerConfig()
