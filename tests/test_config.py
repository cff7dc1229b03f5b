"""The one configuration that every model is made from."""

import dataclasses
import json

import pytest
import torch
from comparing import some_ids

from slp_transformer import TransformerConfig, TransformerLM, TransformerStack


def test_settings_survive_json():
    config = TransformerConfig(23, key_dim=5, activation="gelu", dropout=0.25, norm="post")
    assert TransformerConfig(**json.loads(json.dumps(config.to_dict()))) == config


def test_settings_cannot_be_changed_behind_a_models_back():
    with pytest.raises(dataclasses.FrozenInstanceError):
        TransformerConfig(23).model_dim = 7


def test_only_the_vocabulary_has_no_default_and_the_defaults_are_the_books():
    config = TransformerConfig(23)
    assert (config.activation, config.norm, config.positions) == ("relu", "pre", "learned")
    assert config.dropout == 0.0
    model = TransformerLM(config)
    assert model(some_ids(config.context_length)).shape == (config.context_length, 23)
    with pytest.raises(TypeError):
        TransformerConfig()


def test_block_options_are_what_a_stack_takes():
    config = TransformerConfig(23, key_dim=5, value_dim=7, hidden_dim=19, eps=0.5, dropout=0.25)
    stack = TransformerStack(config.num_blocks, **config.block_kwargs())
    block = stack.blocks[0]
    assert (block.attention.key_dim, block.attention.value_dim) == (5, 7)
    assert block.ffn.W_1.shape == (128, 19)
    assert (block.norm_1.eps, block.drop.p, block.attention.dropout) == (0.5, 0.25, 0.25)


def test_same_seed_same_model():
    models = []
    for _ in range(2):
        torch.manual_seed(5)
        models.append(TransformerLM(TransformerConfig(23, 11, 15, 3, 2)))
    first, second = (model.state_dict() for model in models)
    assert all(torch.equal(first[name], second[name]) for name in first)
