"""The command line on models that others have published, and their tokenizers."""

import json
import math

import pytest
import torch
from commands import output, refused, result
from foreign import MODELS, foreign
from published_tokenizers import TEXT, V, make_tokenizer
from tokenizers import Tokenizer, processors
from transformers import PreTrainedTokenizerFast

from slp_transformer.data import text_files, token_file
from slp_transformer.modern import ModernConfig, load_tokenizer
from slp_transformer.modern.hf_tokenizer import PretrainedTokenizer


@pytest.fixture(params=["gpt2", "llama"])
def published(request, at, monkeypatch):
    """A folder as others publish it, and their model."""
    kind, config, sizes = MODELS[request.param]
    monkeypatch.setitem(MODELS, request.param, (kind, config, sizes | {"vocab_size": V}))
    theirs = foreign(request.param, at / "model")
    (at / "model" / "generation_config.json").unlink()
    make_tokenizer(begin=request.param == "llama").save(str(at / "model" / "tokenizer.json"))
    return theirs


def test_generate_writes_what_they_write(published, capsys):
    tokenizer = PreTrainedTokenizerFast(tokenizer_file="model/tokenizer.json")
    ids = tokenizer("The quick", return_tensors="pt").input_ids
    kind = {"max_new_tokens": 12, "do_sample": False, "pad_token_id": 0}
    written = published.generate(ids, **kind, eos_token_id=[2, 3])[0]
    greedy = ["--prompt", "The quick", "--max-new-tokens", "12", "--temperature", "0"]
    printed = output(capsys, "generate", "model", *greedy)
    assert printed == tokenizer.decode(written, skip_special_tokens=True) + "\n"
    assert printed.startswith("The quick") and len(printed) > 10
    (one,) = result(capsys, "generate", "model", *greedy)
    assert one["text"] + "\n" == printed and one["tokens"] == len(written) - ids.shape[1]


def test_evaluate_measures_what_they_say(published, at, capsys, monkeypatch):
    """The text is read in pieces, and its tokens go to a file: neither is ever held as a whole."""
    (at / "text.txt").write_text(TEXT, encoding="utf-8")
    monkeypatch.setattr(text_files, "BLOCK_BYTES", 37)
    encode, given, written = PretrainedTokenizer.encode, [], []
    monkeypatch.setattr(
        PretrainedTokenizer,
        "encode",
        lambda self, text, **how: given.append(len(text)) or encode(self, text, **how),
    )
    write = token_file.write_tokens
    monkeypatch.setattr(
        token_file, "write_tokens", lambda *a: written.append(write(*a)) or written[-1]
    )
    ids = torch.tensor(Tokenizer.from_file("model/tokenizer.json").encode(TEXT).ids)
    N = published.config.max_position_embeddings
    count = (len(ids) - 1) // N * N
    assert count > 0
    windows, targets = ids[:count].view(-1, N), ids[1 : count + 1]
    with torch.no_grad():
        U = published(windows).logits.flatten(0, 1)
    loss = torch.nn.functional.cross_entropy(U, targets).item()
    samples = ["--samples", "1", "--max-new-tokens", "3"]
    measured = result(capsys, "evaluate", "model", "text.txt", *samples)
    assert max(given) < 74 and sum(given) > len(TEXT) and len(written[0]) == len(ids)
    assert measured["loss"] == pytest.approx(loss, abs=1e-4)
    assert measured["tokens"] == count
    said = Tokenizer.from_file("model/tokenizer.json").decode(targets.tolist())
    size = len(said.encode())
    assert size > len(said), "a text of ASCII alone would not tell bytes from characters"
    assert measured["bits_per_byte"] == pytest.approx(loss * count / size / math.log(2), rel=1e-4)
    assert f"{loss:.3f}"[:4] in output(capsys, "evaluate", "model", "text.txt")


def test_info_tells_what_it_is_made_of(published, capsys):
    told = result(capsys, "info", "model")
    total = sum(W.numel() for W in published.parameters())
    assert told["parameters"]["total"] == total
    assert told["model"]["kind"] == "ModernLM" and told["model"]["vocab_size"] == V
    assert told["tokenizer"] == {"kind": "BPE", "tokens": V - 3}
    assert f"{total:,}" in output(capsys, "info", "model")


def test_what_is_refused_is_refused_in_a_sentence(published, at, capsys):
    assert "SOURCE" in refused(capsys, "evaluate", "model")
    assert "nowhere" in refused(capsys, "evaluate", "model", "nowhere.txt")
    if published.config.model_type == "gpt2":  # the other puts a token in front
        (at / "short.txt").write_text("a", encoding="utf-8")
        assert "too little" in refused(capsys, "evaluate", "model", "short.txt")
    (at / "model" / "tokenizer.json").rename(at / "tokenizer.json")
    assert "no tokenizer.json" in refused(capsys, "generate", "model")
    (at / "model" / "tokenizer.json").write_text("{}", encoding="utf-8")
    for words in (["generate"], ["info"], ["evaluate"]):
        assert "no tokenizer that can be read" in refused(capsys, *words, "model")
    path = at / "model" / "config.json"
    content = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps(content | {"quantization_config": {"bits": 4}}), encoding="utf-8")
    for words in (["generate"], ["info"], ["evaluate"]):
        assert "quantization_config" in refused(capsys, *words, "model")


def test_a_tokenizer_of_another_model_is_refused(published, at):
    config = ModernConfig(V - 4)
    with pytest.raises(ValueError, match=f"has token {V - 4}"):
        load_tokenizer(at / "model", config)


def test_bert_is_no_language_model(at, capsys, monkeypatch):
    kind, config, sizes = MODELS["bert"]
    monkeypatch.setitem(MODELS, "bert", (kind, config, sizes | {"vocab_size": V}))
    foreign("bert", at / "model")
    make_tokenizer().save(str(at / "model" / "tokenizer.json"))
    assert "cannot continue a text" in refused(capsys, "generate", "model")
    assert "Bert" in output(capsys, "info", "model")


def test_ids_come_and_go(published, at):
    tokenizer = load_tokenizer(at / "model", ModernConfig(V, begin_id=1, end_ids=(2, 3)))
    library = Tokenizer.from_file("model/tokenizer.json")
    assert tokenizer.encode(TEXT) == library.encode(TEXT, add_special_tokens=False).ids
    assert tokenizer.encode(TEXT, whole=True) == library.encode(TEXT).ids
    assert tokenizer.decode([1, *tokenizer.encode(TEXT), 2]) == TEXT
    assert tokenizer.decode(torch.tensor(tokenizer.encode("café"))) == "café"
    assert tokenizer.decode([V - 1]) == "", "the model has three rows more than there are tokens"
    assert (tokenizer.vocab_size, tokenizer.end_id) == (V - 3, 2)
    again = at / "again"
    again.mkdir()
    tokenizer.save(again)
    assert load_tokenizer(again, ModernConfig(V)).encode(TEXT) == tokenizer.encode(TEXT)
    assert "BPE" in repr(tokenizer)


def test_a_text_in_pieces_has_the_tokens_of_the_whole(at):
    library = make_tokenizer()
    library.post_processor = processors.TemplateProcessing(
        single="<begin> $A <end>", special_tokens=[("<begin>", 1), ("<end>", 2)]
    )
    tokenizer = PretrainedTokenizer(library)
    pieces = [TEXT[:22], TEXT[22:58], TEXT[58:]]
    assert all(piece[0] == " " for piece in pieces[1:]), "as `iter_file_text` cuts"
    ids = list(tokenizer.iter_whole_ids(pieces))
    assert ids == tokenizer.encode(TEXT, whole=True) and (ids[0], ids[-1]) == (1, 2)
    assert list(tokenizer.iter_whole_ids([])) == [1, 2]


def test_a_stream_says_the_same_piece_by_piece(published, at):
    """A character of several tokens comes when it is whole; one that never is, at the end."""
    tokenizer = load_tokenizer(at / "model", ModernConfig(V))
    ids = tokenizer.encode("très chaud ☕ ça")
    stream = tokenizer.stream_decoder()
    said = [stream.decode_next(i) for i in ids]
    assert "".join(said) == "très chaud ☕ ça" and "�" not in "".join(said) and "" in said
    assert stream.flush() == ""
    cut = tokenizer.encode("☕")[:-1]
    stream = tokenizer.stream_decoder()
    assert [stream.decode_next(i) for i in cut] == [""] * len(cut) and "�" in stream.flush()


TEMPLATE = """{% for message in messages %}
<begin>{{ message.role }}: {{ message.content }}<pad>
{% endfor %}
{% if add_generation_prompt %}assistant:{% endif %}"""


@pytest.mark.slow
@pytest.mark.parametrize("published", ["gpt2"], indirect=True)
def test_chat_answers_as_they_do_and_shows_the_answer_alone(published, at, capsys):
    tokenizer = PreTrainedTokenizerFast(tokenizer_file="model/tokenizer.json")
    command = ["generate", "model"]
    assert "no chat template" in refused(capsys, *command, "--prompt", "The quick", "--chat")
    (at / "model" / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
    asked = [{"role": "user", "content": "The fox?"}]
    text = tokenizer.apply_chat_template(asked, chat_template=TEMPLATE, tokenize=False)
    text += "assistant:"
    ids = tokenizer(text, return_tensors="pt", add_special_tokens=False).input_ids
    assert (ids == 0).sum() == 1 and (ids == 1).sum() == 1  # its special tokens are tokens
    kind = {"max_new_tokens": 9, "do_sample": False, "pad_token_id": 0, "eos_token_id": [2, 3]}
    written = published.generate(ids, **kind)[0, ids.shape[1] :]
    expected = tokenizer.decode(written, skip_special_tokens=True)
    how = ["--chat", "--max-new-tokens", "9", "--temperature", "0"]
    assert output(capsys, "generate", "model", "--prompt", "The fox?", *how) == expected + "\n"
    (one,) = result(capsys, "generate", "model", "--prompt", "The fox?", *how)
    assert one["text"] == expected and one["tokens"] == len(written)
    (at / "asked.jsonl").write_text(json.dumps({"messages": asked, "id": 7}), encoding="utf-8")
    (line,) = output(capsys, *command, "--prompts-file", "asked.jsonl", *how).splitlines()
    answer = json.loads(line)
    assert (answer["id"], answer["text"]) == (7, expected) and answer["messages"] == asked
    stop = ["--stop", expected[2:4]]
    ended = output(capsys, *command, "--prompt", "The fox?", *how, *stop)
    assert ended == expected[: expected.index(expected[2:4])] + "\n"
    unanswered = refused(capsys, *command, "--prompts-file", "asked.jsonl")
    assert "asked.jsonl, line 1: messages are answered with --chat" in unanswered
    assert "give --prompt or --prompts-file" in refused(capsys, *command, "--chat")
    (at / "model" / "chat_template.jinja").write_text("{{ raise_exception('no') }}", "utf-8")
    template = refused(capsys, *command, "--prompt", "The fox?", "--chat")
    assert "The chat template cannot be used: no." in template
