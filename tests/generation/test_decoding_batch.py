"""A batch is searched and written as one: the results of one by one, from fewer rows and calls."""

import pytest
import torch
from sampled import mostly_slow
from writers import PROMPTS, SOURCES, V, make

from slp_transformer import EncoderDecoder, TransformerLM, generate
from slp_transformer.generation.decoding import DecoderSession


def rows_read(monkeypatch, model, method: str) -> list[int]:
    """How many rows the model is called with, filled in as it is called."""
    read, call = [], getattr(model, method)
    monkeypatch.setattr(
        model, method, lambda ids, *more, **how: read.append(len(ids)) or call(ids, *more, **how)
    )
    return read


BEAMS = {
    "plain": {},
    "sum": {"length_penalty": 0.0, "stop": [6, 2]},
    "between": {"length_penalty": 0.6, "stop": 6, "max_new_tokens": 5},
    "penalised": {"repetition_penalty": 1.3, "stop": 6},
    "hooked": {"allowed": lambda ids: {(ids[-1] + n) % V for n in (1, 3, 4)}, "stop": {6}},
}


@pytest.mark.parametrize("how", BEAMS)
@pytest.mark.parametrize("cached", mostly_slow([True, False], True))
@pytest.mark.parametrize("kind", [TransformerLM, EncoderDecoder])
def test_beams_of_several_prompts_are_those_of_each_alone(kind, cached, how):
    model, options = make(kind, seed=2).double(), {"num_beams": 4, "cached": cached, **BEAMS[how]}
    translated = kind is EncoderDecoder
    together = generate(model, PROMPTS, sources=SOURCES if translated else None, **options)
    for prompt, source, result in zip(PROMPTS, SOURCES, together, strict=True):
        of = [source] if translated else None
        (alone,) = generate(model, [prompt], sources=of, **options)
        assert (result.ids, result.finish_reason) == (alone.ids, alone.finish_reason)
        assert result.score == pytest.approx(alone.score, abs=1e-9)
    assert (
        len({len(r.new_ids) for r in together}) > 1
        and len({tuple(r.new_ids[:2]) for r in together}) > 1
    )


def test_the_beams_of_all_prompts_are_read_in_one_call_a_step(monkeypatch):
    model = make()
    read = rows_read(monkeypatch, model, "forward")
    generate(model, [[3, 1], [5, 9], [2, 7]], 5, num_beams=4)
    assert read == [3, 12, 12, 12, 12]


@torch.no_grad()
def test_rows_read_their_source_wherever_they_go():
    """Uneven beams, in any order; then two of five rows are left."""
    model, sources = make(EncoderDecoder, seed=2).double(), [[3, 1, 4], [2], [5, 6], [1, 1], [4, 2]]
    rows, ids = list(range(5)), torch.tensor([[n] for n in range(5)])
    reader, new = DecoderSession(model, sources, 9), [[2], [7], [3], [1], [5], [6], [4]]
    many = [4, 0, 0, 2, 1, 3, 4], [6, 1, 1, 2, 4, 0], [3, 4, 5, 0], [0, 1, 2, 3]
    for kept in (*many, [3, 0], [1, 0], [0, 1]):
        u, alone = reader(ids), DecoderSession(model, [sources[row] for row in rows], None)(ids)
        torch.testing.assert_close(u, alone)
        reader.reorder(kept)
        rows = [rows[row] for row in kept]
        ids = torch.cat([ids[kept], torch.tensor(new[: len(kept)])], dim=1)
    assert len(reader.H_enc) == len(reader.cache[0].cross_attention.K) == 2


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("kind", [TransformerLM, EncoderDecoder])
def test_what_has_ended_is_dropped_when_it_is_half_of_what_is_read(kind, cached, monkeypatch):
    """Text n ends after the words that `until` names: the hook allows nothing but the stop then."""
    until = [3, 9, 2, 6, 4, 9, 2, 11]
    prompts = [[n] for n in range(8)]
    options = {
        "temperature": 0,
        "stop": 8,
        "allowed": lambda ids: [8] if len(ids) == until[ids[0]] else {*range(V)} - {8},
        "cached": cached,
    }
    sources = [SOURCES[n % 4] for n in range(8)] if kind is EncoderDecoder else None
    model = make(kind).double()
    alone = [
        generate(model, [p], sources=sources and [sources[n]], **options)[0]
        for n, p in enumerate(prompts)
    ]
    read = rows_read(monkeypatch, model, "forward" if sources is None else "decode")
    assert generate(model, prompts, sources=sources, **options) == alone
    assert [len(r.new_ids) for r in alone] == until
    #     words so far: 0  1  2  3  4  5  6  7  8  9 10
    #     still growing: 8  8  6  5  4  4  3  3  3  1  1
    assert read == [8, 8, 8, 8, 4, 4, 4, 4, 4, 1, 1]
