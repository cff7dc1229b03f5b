"""Generate: the same words cached and uncached, alone and in a batch; ends where it should."""

import math

import pytest
import torch
from sampled import mostly_slow
from writers import PROMPTS, SOURCES, WINDOW, V, make, seeded

from slp_transformer import EncoderDecoder, TransformerConfig, TransformerLM, generate
from slp_transformer.sampling import filter_logits

KINDS = [{"norm": "pre", "positions": "learned"}, {"norm": "post", "positions": "sinusoidal"}]
HOW = {
    "greedy": {"temperature": 0},
    "random": {},
    "everything": {"temperature": 1.5, "top_k": 7, "top_p": 0.9, "repetition_penalty": 1.2},
    "beams": {"num_beams": 3},
}


def each() -> list[torch.Generator]:
    return [seeded(n) for n in range(len(PROMPTS))]


def words(results) -> list[list[int]]:
    return [result.ids for result in results]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("choices", KINDS)
@pytest.mark.parametrize("dtype", mostly_slow([torch.float32, torch.float64], torch.float32))
@pytest.mark.parametrize("kind", [TransformerLM, EncoderDecoder])
def test_the_same_is_written_cached_uncached_and_alone(kind, dtype, choices, how):
    model, options = make(kind, **choices).to(dtype), {"stop": 8, **HOW[how]}
    sources = SOURCES if kind is EncoderDecoder else None
    cached, uncached = (
        generate(model, PROMPTS, sources=sources, generator=each(), cached=cached, **options)
        for cached in (True, False)
    )
    alone = []
    for n, own in enumerate(each()):
        source = sources and sources[n : n + 1]
        alone += generate(model, PROMPTS[n : n + 1], sources=source, generator=[own], **options)
    assert words(cached) == words(uncached) == words(alone)
    assert [r.finish_reason for r in cached] == [r.finish_reason for r in alone]
    if sources is None:
        assert len({tuple(r.new_ids[:4]) for r in cached}) > 1  # not one answer to everything
    elif how == "random":  # is the source heard?
        other = generate(model, PROMPTS, sources=sources[::-1], generator=each(), **options)
        assert words(cached) != words(other)


def test_greedy_is_the_argmax_of_the_whole_model_step_by_step():
    model, ids = make(), [3, 1, 4]
    for _ in range(9):
        ids.append(int(model(torch.tensor(ids))[-1].argmax()))
    assert words(generate(model, [[3, 1, 4]], 9, temperature=0)) == [ids]


def test_a_beam_of_one_is_greedy():
    model = make()
    beam = generate(model, PROMPTS, 9, num_beams=1)
    assert words(beam) == words(generate(model, PROMPTS, 9, temperature=0))


def test_a_beam_wider_than_the_vocabulary_holds_what_there_is():
    (best,) = generate(make(), [[3]], 2, num_beams=1000)
    assert len({tuple(each.new_ids) for each in (best, *best.other_beams)}) == V**2


def test_a_beams_score_is_the_mean_log_probability_of_its_words():
    model = make()
    for alpha in (0.0, 1.0, 0.6):
        (result,) = generate(model, [[3, 1]], 7, num_beams=4, length_penalty=alpha)
        log_y = torch.log_softmax(model(torch.tensor(result.ids)), dim=-1)
        total = sum(log_y[n - 1, result.ids[n]].item() for n in range(2, 9))
        assert result.score == pytest.approx(total / 7**alpha, abs=1e-4)


def test_a_tensor_is_a_batch_too():
    model = make()
    prompts = torch.tensor([[3, 1, 4], [1, 5, 9]])
    assert words(generate(model, prompts, 5, temperature=0)) == words(
        generate(model, prompts.tolist(), 5, temperature=0)
    )
    translator, sources = make(EncoderDecoder), torch.tensor(SOURCES[1:2] * 2)
    of_tensor = generate(translator, prompts, 5, sources=sources, temperature=0)
    assert of_tensor == generate(translator, prompts, 5, sources=sources.tolist(), temperature=0)
    assert generate(model, [], 5) == []


def test_it_ends_with_the_length_the_window_or_a_stop_token():
    model = make()
    short, full = generate(model, [[3, 1], [3] * 17], 4, temperature=0)
    assert (short.finish_reason, len(short.new_ids)) == ("length", 4)
    assert (full.finish_reason, len(full.ids)) == ("window", WINDOW)
    (to_the_end,) = generate(model, [[3, 1]], temperature=0)
    assert (to_the_end.finish_reason, len(to_the_end.ids)) == ("window", WINDOW)
    assert to_the_end.ids[:6] == short.ids and to_the_end.prompt_length == 2
    model(torch.tensor(to_the_end.ids))  # fits the window


@pytest.mark.parametrize("stop", [8, {8}, [8, 2]])
def test_it_stops_after_a_stop_token_even_in_the_last_place(stop):
    model = make()
    stops = {stop} if isinstance(stop, int) else set(stop)
    for seed in range(8):
        for result in generate(model, PROMPTS, 6, generator=seeded(seed), stop=stop):
            assert (result.new_ids[-1] in stops) == (result.finish_reason == "stop")
            assert not stops & set(result.new_ids[:-1])
            assert result.finish_reason == "stop" or len(result.new_ids) == 6


def test_a_stop_token_in_the_prompt_stops_nothing():
    (result,) = generate(make(), [[8, 8, 3]], 4, temperature=0, stop=8, allowed=lambda ids: [2])
    assert result.new_ids == [2] * 4 and result.finish_reason == "length"


def test_the_same_seed_writes_the_same():
    model = make()
    one, same, other = (generate(model, PROMPTS, 12, generator=seeded(s)) for s in (0, 0, 1))
    assert one == same and words(one) != words(other)
    torch.manual_seed(5)
    first = generate(model, PROMPTS, 12)
    torch.manual_seed(5)
    assert generate(model, PROMPTS, 12) == first


def test_words_come_as_often_as_the_filtered_probabilities_say():
    model, prompt = make(), [3, 1]
    options = {"temperature": 2.0, "top_k": 6, "top_p": 0.9}
    results = generate(model, [prompt] * 6000, 1, generator=seeded(), **options)
    shares = torch.bincount(torch.tensor([r.new_ids[0] for r in results]), minlength=V) / 6000
    u = model(torch.tensor([prompt]))[:, -1].detach()
    filtered = filter_logits(u, torch.tensor([prompt]), temperature=2.0, top_k=6, top_p=0.9)
    (expected,) = torch.softmax(filtered, dim=-1)
    torch.testing.assert_close(shares, expected, atol=0.03, rtol=0)
    assert (expected > 0.05).sum() > 2 and (expected == 0).sum() > 2


@pytest.mark.parametrize("how", HOW)
def test_what_is_not_allowed_is_never_written(how):
    def even_after_odd(ids):
        return [w for w in range(V) if (w + ids[-1]) % 2]

    for result in generate(make(), PROMPTS, generator=seeded(), allowed=even_after_odd, **HOW[how]):
        line = result.ids[result.prompt_length - 1 :]
        assert all((a + b) % 2 for a, b in zip(line, line[1:], strict=False))


def test_allowed_sees_every_text_so_far_and_none_that_has_ended_or_not_begun():
    seen = []
    results = generate(
        make(), PROMPTS, 3, temperature=0, allowed=lambda ids: seen.append(ids), stop=8
    )
    asked = [r.ids[:n] for r in results for n in range(r.prompt_length, len(r.ids))]
    assert sorted(seen) == sorted(asked)


def test_tokens_are_handed_out_as_they_are_written():
    heard = [[] for _ in PROMPTS]
    at = []

    def on_token(row, word):
        heard[row].append(word)
        at.append((len(PROMPTS[row]) + len(heard[row]), row))

    results = generate(make(), PROMPTS, 5, generator=seeded(), stop=8, on_token=on_token)
    assert heard == [r.new_ids for r in results]
    assert at == sorted(at)  # position by position


def test_the_model_is_read_without_dropout_and_left_as_it_was():
    model = make(dropout=0.5)
    quiet = generate(model, PROMPTS, 5, temperature=0)
    model.train()
    model.stack.blocks[0].eval()
    modes = [module.training for module in model.modules()]
    assert generate(model, PROMPTS, 5, temperature=0) == quiet
    assert [module.training for module in model.modules()] == modes
    with pytest.raises(ZeroDivisionError):
        generate(model, PROMPTS, 5, temperature=0, on_token=lambda row, word: 1 / 0)
    assert [module.training for module in model.modules()] == modes
    assert all(weights.grad is None for weights in model.parameters())


def test_each_word_is_read_once(monkeypatch):
    read, model = [], make()
    forward = model.forward
    monkeypatch.setattr(
        model, "forward", lambda ids, **how: read.append(ids.shape[1]) or forward(ids, **how)
    )
    generate(model, [[3, 1, 4]], 5, temperature=0)
    assert read == [3, 1, 1, 1, 1]
    read.clear()
    generate(model, [[3, 1, 4], [3] * 9], 1, temperature=0)
    assert read == [3, 6]  # the short one is done, so the long one is read in one go


@pytest.mark.parametrize(
    ("prompts", "options", "message"),
    [
        ([[]], {}, "prompt is empty"),
        ("hello", {}, "prompts are token ids, not text such as 'hello': encode the text with"),
        (["hello"], {}, "prompts are token ids, not text such as 'hello'"),
        ([3, 1], {}, r"for one prompt write \[prompt\]"),
        (torch.tensor([3, 1]), {}, r"for one prompt write \[prompt\]"),
        ([[3, V]], {}, "Token id 11 at position .1. is outside the vocabulary"),
        ([[3] * WINDOW], {}, "19 tokens and the model's window 19, so that there is no room"),
        ([[3]], {"max_new_tokens": 0}, "max_new_tokens must be a whole number of 1 or more, not 0"),
        ([[3]], {"num_beams": 0}, "num_beams must be a whole number from 1 to 1,000, not 0"),
        ([[3]], {"num_beams": 1001}, "num_beams must be a whole number from 1 to 1,000, not 1001"),
        ([[3]], {"num_beams": 2.0}, "num_beams must be a whole number from 1 to 1,000, not 2.0"),
        (
            [[3]],
            {"temperature": -1.0},
            "temperature must be 0, or a number .* not -1.0",
        ),
        (
            [[3]],
            {"temperature": math.nan},
            "temperature must be 0, or a number .* not nan",
        ),
        ([[3]], {"top_k": 0}, "top_k must be a whole number of 1 or more, not 0"),
        ([[3]], {"top_p": 1.5}, "top_p must be a share above 0 and at most 1, not 1.5"),
        ([[3]], {"repetition_penalty": 0.0}, "repetition_penalty must be a number above 0"),
        ([[3]], {"temperature": 1e-45}, "temperature must be 0, or a number .* not 1e-45"),
        ([[3]], {"temperature": 0, "top_p": 0.9}, "top_p has no effect with temperature 0, which"),
        ([[3]], {"temperature": 0, "top_p": 7.0}, "top_p must be a share above 0"),
        ([[3]], {"num_beams": 2, "length_penalty": math.nan}, "length_penalty .* to 10, not nan"),
        ([[3]], {"num_beams": 2, "length_penalty": 1e6}, "length_penalty .* from -10 to 10, not"),
        ([[3]], {"num_beams": 2, "top_k": 3}, "Beam search draws nothing, so .* no use for top_k"),
        ([[3]], {"num_beams": 2, "temperature": 0.5}, "Beam search draws nothing"),
        ([[3]], {"num_beams": 2, "on_token": print}, "leave out on_token, or num_beams"),
        ([[3]], {"allowed": lambda ids: set()}, "After 1 tokens, `allowed` allows no token at all"),
        ([[3]], {"sources": [[1]]}, "A language model reads no sources"),
        ([[3]], {"generator": [seeded()] * 2}, "one for each of the 1 prompts, but there are 2"),
        ([[3]], {"generator": 0}, "generator must be a torch.Generator, or a list of them, not 0"),
        ([[3]], {"stop": "x"}, "stop must be a token id, or several of them, not 'x'"),
        ([[3]], {"stop": None}, "stop must be a token id, or several of them, not None"),
    ],
)
def test_bad_input_is_named(prompts, options, message, unchecked):
    with pytest.raises(ValueError, match=message):
        generate(make(), prompts, **options)


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        (None, "one source for each of the 2 prompts, but there are none"),
        ([[1]], "one source for each of the 2 prompts, but there are 1"),
        ([[1], []], "A source is empty"),
        ([[1], [2] * 20], "20 tokens, but there are positions for 19"),
    ],
)
def test_an_encoder_decoder_needs_its_sources(sources, message, unchecked):
    with pytest.raises(ValueError, match=message):
        generate(make(EncoderDecoder), [[1], [1]], sources=sources)


def test_a_generator_of_another_device_is_named(unchecked):
    model = make().to("meta")
    with pytest.raises(ValueError, match=r'lives on cpu.*torch.Generator\("meta"\)'):
        generate(model, [[3]], generator=seeded())


@pytest.mark.parametrize("how", [{}, {"temperature": 0}, {"num_beams": 2}, {"top_p": 0.5}])
def test_logits_that_are_no_numbers_are_refused(how):
    """NaN counts as the largest number, and would be picked, or drawn, without a word."""
    model = TransformerLM(TransformerConfig(11, 17, 10, 2, 1))
    with torch.no_grad():
        model.embedding.tokens.E[3] = torch.nan
    with pytest.raises(ValueError, match="not numbers"):
        generate(model, [[1, 2]], 4, **how)
