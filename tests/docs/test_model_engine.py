"""The engine that computes models in a page gives PyTorch's numbers, for every form of model."""

import contextlib
import json
import re
import struct
import unicodedata
from copy import deepcopy
from functools import cache

import pytest
import torch
from js_engines import Chromium, Racer, constants
from sampled import mostly_slow

from slp_guitar.tab_tokenizer import TabTokenizer
from slp_transformer import TransformerConfig, TransformerLM, record_activations
from slp_transformer._internal.parts import ACTIVATION_NAMES as ACTIVATIONS
from slp_transformer.data.text_tokenizer import TextTokenizer, byte_by_character
from slp_transformer.generation import generate
from slp_transformer.hooks import HookedModule
from slp_transformer.modern import RopeScaling
from slp_transformer.modern.config import ModernConfig
from slp_transformer.modern.language_model import ModernLM
from slp_transformer.sampling import SAMPLING, filter_logits
from slp_transformer.training.checkpoints import save_checkpoint

pytest.importorskip("py_mini_racer", reason="the engine runs in V8")
pytest.importorskip("safetensors")

V, N = 23, 19
ODD = {"model_dim": 13, "num_heads": 3, "key_dim": 5, "value_dim": 7, "hidden_dim": 17}
EVEN = ODD | {"key_dim": 10}
SMALL = {"num_blocks": 2}
FORMS = {
    "the book's": TransformerConfig(V, N, **ODD, **SMALL),
    "sizes by default": TransformerConfig(V, N, model_dim=14, num_heads=2, **SMALL),
    "of 2017": TransformerConfig.of_2017(V, N, **ODD, **SMALL),
    "gelu, post-norm": TransformerConfig(V, N, activation="gelu", norm="post", **ODD, **SMALL),
    "swiglu": TransformerConfig(
        V, N, model_dim=13, num_heads=1, activation="swiglu", positions="sinusoidal", eps=0.0
    ),
    "gpt-2": ModernConfig(
        V, N, **ODD, **SMALL, activation="gelu_tanh", positions="learned", normalization="layer",
        attention_bias=True, ffn_bias=True,
    ),
    "llama": ModernConfig(V, N, **EVEN, **SMALL, num_kv_heads=1, tied=False),
    "llama 3": ModernConfig(
        V, N, model_dim=20, num_heads=10, num_kv_heads=5, **SMALL,
        rope_scaling=RopeScaling("llama3", 8.0, original_context_length=7),
    ),
    "qwen 2": ModernConfig(
        V, N, **EVEN, **SMALL, attention_bias="qkv", rope_scaling=RopeScaling("linear", 2.5),
        rope_base=5e5,
    ),
    "squared relu": ModernConfig(V, N, **EVEN, **SMALL, activation="relu2"),
    "qwen 3": ModernConfig(V, N, **EVEN, **SMALL, qk_norm=True),
    "rms, post-norm": ModernConfig(
        V, N, **ODD, **SMALL, norm="post", activation="relu", positions="sinusoidal", ffn_bias=True
    ),
}  # fmt: skip
FORWARD = "(M, {ids}) => [...kept.model.forward(ids).data]"


@cache
def model_of(form, dtype=torch.float32):
    """Return a model of a form with random weights, biases and gains, rounded to a type."""
    return random_model(FORMS[form], dtype)


def random_model(config, dtype=torch.float32):
    """Return a model of a configuration with random weights, biases and gains."""
    torch.manual_seed(7)
    model = (ModernLM if isinstance(config, ModernConfig) else TransformerLM)(config)
    with torch.no_grad():
        for name, W in model.named_parameters():
            scale = 0.3 if W.dim() == 1 else W.shape[0] ** -0.5
            W.copy_(torch.randn(W.shape) * scale + name.endswith("gamma"))
            W.copy_(W.to(dtype))
    return model.eval().requires_grad_(False)


@cache
def letters():
    return TextTokenizer("characters", [chr(ord("a") + k) for k in range(V)])


@pytest.fixture(scope="session")
def run_files(tmp_path_factory):
    """Return the files that a run keeps, as lists of bytes."""

    @cache
    def files(form, dtype=torch.float32):
        model = model_of(form, dtype)
        model = type(model)(model.config).to(dtype)
        model.load_state_dict(model_of(form, dtype).state_dict())
        return saved(tmp_path_factory.mktemp("run"), model)

    return files


@pytest.fixture(scope="module", params=mostly_slow(["v8", "chromium"], "v8"))
def engine(request):
    made = Racer() if request.param == "v8" else Chromium(request.getfixturevalue("browser"))
    made.run("() => { globalThis.kept = {} }")
    yield made
    made.close()


@pytest.fixture(scope="module")
def v8():
    """V8 alone, for what does not depend on the browser around it."""
    made = Racer()
    yield made
    made.close()


@pytest.fixture
def load(engine, run_files):
    """Let the engine read a run; its model is then `kept.model`."""

    def read(form, dtype=torch.float32):
        engine.run(
            """(M, files) => {
              const bytes = Object.entries(files).map(([n, b]) => [n, Uint8Array.from(b)]);
              kept = M.readRun(Object.fromEntries(bytes));
            }""",
            run_files(form, dtype),
        )
        return model_of(form, dtype)

    return read


def saved(folder, model):
    """Return the files that a run of a model keeps, as lists of bytes."""
    path = save_checkpoint(folder, 0, model, tokenizer=letters().to_json())
    names = "config.json", "tokenizer.json", "model.safetensors"
    return {name: list((path / name).read_bytes()) for name in names}


def ids_of(length):
    return torch.randint(V, (length,), generator=torch.Generator().manual_seed(length)).tolist()


def close(theirs, ours, within=1e-4):
    ours = torch.as_tensor(ours)
    torch.testing.assert_close(
        torch.tensor(theirs).view(ours.shape), ours, rtol=0, atol=within, equal_nan=False
    )


@pytest.mark.parametrize("form", FORMS)
def test_logits_are_pytorch_s(form, engine, load):
    model = load(form)
    for length in (1, 2, 7, N):
        ids = ids_of(length)
        close(engine.run(FORWARD, {"ids": ids}), model(torch.tensor(ids)))


def choices():
    """Yield settings with each choice of the package, for each kind of model, where one has it."""
    for kind, some in constants.constants()["SETTINGS"].value.items():
        make = {"TransformerLM": TransformerConfig, "ModernLM": ModernConfig}[kind]
        for name, setting in some.items():
            for choice in setting.get("choices", []):
                with contextlib.suppress(ValueError):  # a bias that GPT-2's blocks do not have
                    config = make(V, N, **EVEN, **SMALL, **{name: choice})
                    yield pytest.param(config, name, choice, id=f"{kind}-{name}-{choice}")


@pytest.mark.parametrize(("config", "name", "choice"), list(choices()))
def test_each_choice_of_the_package_is_computed_or_refused(config, name, choice, v8, tmp_path):
    model = random_model(config)
    script = """(M, { files, ids }) => {
      const bytes = Object.entries(files).map(([n, b]) => [n, Uint8Array.from(b)]);
      try { return { logits: [...M.readRun(Object.fromEntries(bytes)).model.forward(ids).data] } }
      catch (error) { return { said: error.message } }
    }"""
    found = v8.run(script, {"files": saved(tmp_path, model), "ids": ids_of(7)})
    if "said" in found:
        assert_sentence(found["said"], f"{name} = .*which cannot be used: this page knows")
    else:
        close(found["logits"], model(torch.tensor(ids_of(7))))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_rounded_weights_are_read_to_the_bit(dtype, engine, load):
    model = load("gpt-2", dtype)
    read = "() => [...kept.model.weights.stack.blocks[1].ffn.W_2.data]"
    close(engine.run(read), model.stack.blocks[1].ffn.W_2, within=0)
    close(engine.run(FORWARD, {"ids": ids_of(11)}), model(torch.tensor(ids_of(11))))


def safetensors_file(header, content):
    """Return the bytes of a file of weights, as a list."""
    said = json.dumps(header).encode()
    return [*struct.pack("<Q", len(said)), *said, *content]


def file_of(W):
    """Return a file with one tensor."""
    content = bytes(W.view(torch.uint8))
    kind = {torch.float16: "F16", torch.bfloat16: "BF16", torch.float32: "F32"}[W.dtype]
    entry = {"dtype": kind, "shape": list(W.shape), "data_offsets": [0, len(content)]}
    return safetensors_file({"W": entry}, content)


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan")])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_numbers_that_are_not_finite_are_refused(number, dtype, v8):
    said = v8.run(
        """(M, bytes) => {
          try { M.readSafetensors(Uint8Array.from(bytes)); } catch (error) { return error.message; }
        }""",
        file_of(torch.tensor([number], dtype=dtype)),
    )
    assert_sentence(said, "W has NaN or infinite weights")


def test_small_and_subnormal_half_numbers(engine):
    numbers = torch.tensor([0.0, -0.0, 6e-8, -3e-6, 6.1e-5, 1.0, -65504.0, 0.333]).half()
    read = "(M, b) => [...M.readSafetensors(Uint8Array.from(b)).W.data].map(String)"
    found = engine.run(read, file_of(numbers))
    assert [float(x) for x in found] == numbers.tolist()


@pytest.mark.parametrize("form", mostly_slow(FORMS, "of 2017", "llama 3"))
def test_with_the_cache_nothing_changes(form, engine, load):
    load(form)
    cached = """(M, {ids, cuts}) => {
      const cache = new M.KVCache(), rows = [];
      cuts.slice(1).forEach((end, k) => {
        rows.push(...kept.model.forward(ids.slice(cuts[k], end), {cache}).data);
      });
      return rows;
    }"""
    ids = ids_of(N)
    one_by_one = engine.run(cached, {"ids": ids, "cuts": list(range(N + 1))})
    in_pieces = engine.run(cached, {"ids": ids, "cuts": [0, 5, 6, 13, N]})
    at_once = engine.run(FORWARD, {"ids": ids})
    close(one_by_one, at_once, within=2e-6)
    close(in_pieces, at_once, within=2e-6)


@pytest.mark.parametrize("form", ["the book's", "of 2017", "llama 3", "qwen 3"])
def test_hooks_see_what_the_package_s_see(form, engine, load):
    model = load(form)
    seen = engine.run(
        """(M, {ids}) => {
          const seen = {};
          const hook = (name, X, l) => {
            seen[`${l} ${name}`] = [X.shape, [...X.data].map(String)];
          };
          kept.model.forward(ids, {hook});
          return seen;
        }""",
        {"ids": ids_of(7)},
    )
    with record_activations(model) as trace:
        U = model(torch.tensor(ids_of(7)))
    named = {f"{l} {name}": X for l, steps in enumerate(trace) for name, X in steps.items()}
    extra = {f"{l} {name}" for l in range(2) for name in ("scores", "hidden")}
    outside = {"null E", "null final", "null U"}
    outside |= {"null P"} if "ll" not in form and "q" not in form else set()
    assert seen.keys() == named.keys() | extra | outside
    for name, X in (named | {"null U": U}).items():
        assert seen[name][0] == list(X.shape), name
        close([float(x) for x in seen[name][1]], X)


@pytest.mark.parametrize(
    "point",
    mostly_slow(["Q", "K", "V", "alpha", "head", "X", "T1", "T3", "T5", "H"], "alpha", "T3"),
)
def test_hooks_replace_what_passes(point, engine, load, monkeypatch):
    model = load("qwen 3")
    ids = ids_of(7)
    found = engine.run(
        """(M, {ids, point}) => [...kept.model.forward(ids, {hook: (name, X, l) =>
          name === point && l === 1 ? X.map((x, k) => k % 3 ? x / 2 : 0) : undefined}).data]""",
        {"ids": ids, "point": point},
    )

    def change(name, X):
        keep = (torch.arange(X.numel()) % 3 > 0).view(X.shape)
        return X / 2 * keep if name == point else X

    for part in model.stack.blocks[1].modules():
        if isinstance(part, HookedModule):
            monkeypatch.setattr(part, "hook", change)
    close(found, model(torch.tensor(ids)))


def test_a_head_that_is_off_writes_nothing(engine, load):
    model = load("the book's")
    found = engine.run(
        """(M, {ids}) => {
          const hook = M.headsOff([{block: 0, head: 2}]);
          return [...kept.model.forward(ids, {hook}).data];
        }""",
        {"ids": ids_of(5)},
    )
    changed = deepcopy(model)
    with torch.no_grad():
        changed.stack.blocks[0].attention.heads[2].W_O = torch.zeros(7, 13)
        close(found, changed(torch.tensor(ids_of(5))))


def test_the_mask_the_root_and_the_final_norm_can_be_left_out(engine, load):
    model = load("the book's")
    ids = torch.tensor(ids_of(7))
    off = "(M, {ids, off}) => [...kept.model.forward(ids, {[off]: false}).data]"

    def without(name):
        return engine.run(off, {"ids": ids.tolist(), "off": name})

    X = model.embedding(ids)
    E = model.unembedding
    close(without("causal"), model.stack(X) @ E.T)
    H = X
    for block in model.stack.blocks:
        H = block(H, causal=True)
    close(without("finalNorm"), H @ E.T)
    scaled = deepcopy(model)
    with torch.no_grad():
        for block in scaled.stack.blocks:
            block.attention.W_Q.mul_(5**0.5)
        close(without("scaled"), scaled(ids))


@pytest.mark.parametrize("form", mostly_slow(FORMS, "the book's", "qwen 3"))
def test_greedy_text_is_the_package_s(form, engine, load):
    model = load(form)
    prompt = ids_of(3)
    (written,) = generate(model, [prompt], temperature=0)
    given = {"ids": prompt, "options": {"temperature": 0}}
    theirs = engine.run("(M, {ids, options}) => [...M.generate(kept.model, ids, {options})]", given)
    assert theirs == written.new_ids
    assert len(theirs) == N - 3
    stop = theirs[5]
    short = engine.run(
        """(M, {ids, stop, options}) =>
          [...M.generate(kept.model, ids, {options, stop: [stop], count: 9})]""",
        given | {"stop": stop},
    )
    assert short == theirs[: theirs.index(stop) + 1]


FILTERS = {name: option.example for name, option in SAMPLING.items()}


def test_the_page_has_every_sampling_option_in_the_tables_order(v8):
    assert v8.run("(M) => Object.keys(M.SAMPLING)", {}) == list(SAMPLING)


@pytest.mark.parametrize(
    "options", [*({name: value} for name, value in FILTERS.items()), FILTERS, {"top_k": 99}]
)
def test_logits_are_filtered_as_the_package_filters_them(options, v8):
    u, ids = torch.randn(V, generator=torch.Generator().manual_seed(3)) * 2, [2, 5, 2]
    theirs = v8.run(
        """(M, {u, options, ids}) =>
          [...M.filterLogits(Float32Array.from(u), options, ids)].map(String)""",
        {"u": u.tolist(), "options": options, "ids": ids},
    )
    ours = filter_logits(u[None], torch.tensor([ids]), **options)[0]
    assert torch.equal(ours, u) == (options == {"top_k": 99})
    found = torch.tensor([float(x.replace("Infinity", "inf")) for x in theirs])
    torch.testing.assert_close(found, ours, rtol=1e-6, atol=1e-6)


def test_words_are_drawn_as_often_as_their_probability_says(v8):
    u = [0.0, float(torch.tensor(3.0).log()), -1e9, 0.0]
    drawn = v8.run(
        """(M, {u}) => {
          const random = M.seeded(5), seen = [0, 0, 0, 0];
          for (let k = 0; k < 5000; k++) seen[M.sample(Float32Array.from(u), random)]++;
          return seen;
        }""",
        {"u": u},
    )
    assert drawn[2] == 0 and sum(drawn) == 5000
    assert all(abs(n / 5000 - y) < 0.03 for n, y in zip(drawn, (0.2, 0.6, 0, 0.2), strict=True))


TEXT = "The  whale's 3 fins, don't—stop! Ça va? ﬁ 日本 ½ ²\u00a0x\u0085y\ufeffz\t\n_a\u0301 'll"
STRANGE = TEXT + " 'S👩\u200d👩 ก็ తెలుగు Ⅷ ⓐ ͅ ‿ ٣ \u2028 a''b ' 'x rock'n'roll's"


@cache
def tokenizers():
    pytest.importorskip("tokenizers")
    from slp_transformer.data import train_tokenizer

    text = (TEXT + " " + STRANGE + "\n") * 3 + "the whale and the whale and the sea " * 20
    return {
        "characters": train_tokenizer([text]),
        "characters, unknown": train_tokenizer(["abc x"], special_tokens=["[UNK]"]),
        "words": train_tokenizer([text[:70]], "words", end_token=True),
        "bpe": train_tokenizer([text], "bpe", 341, end_token=True),
    }


TOKENIZE = """(M, {content, texts}) => {
  const tokenizer = M.readTokenizer(content);
  return texts.map((text) => [tokenizer.encode(text), tokenizer.decode(tokenizer.encode(text))]);
}"""


@pytest.mark.parametrize("kind", ["characters", "characters, unknown", "words", "bpe"])
def test_texts_become_the_package_s_ids_and_come_back(kind, engine):
    tokenizer = tokenizers()[kind]
    texts = [TEXT, STRANGE, "", "the whale", "  the   sea \n\n", "a<|end|>b"[: 9 * ("bpe" in kind)]]
    found = engine.run(TOKENIZE, {"content": tokenizer.to_json(), "texts": texts})
    for text, (ids, back) in zip(texts, found, strict=True):
        assert ids == tokenizer.encode(text), text
        assert back == tokenizer.decode(ids)


def test_of_equal_pairs_the_first_is_merged(v8):
    pytest.importorskip("tokenizers")
    vocabulary = [*byte_by_character(), "aa", "aaa"]
    tokenizer = TextTokenizer("bpe", vocabulary, [("a", "a"), ("aa", "a")])
    content = {"content": tokenizer.to_json(), "texts": ["aaa", "aaaaa aaaaaaa"]}
    for text, (ids, _) in zip(content["texts"], v8.run(TOKENIZE, content), strict=True):
        assert ids == tokenizer.encode(text)


def test_every_character_is_cut_as_the_package_cuts_it(engine):
    """One text with each character of the first planes between letters, as words and as bytes."""
    kinds = tokenizers()
    known = [c for c in range(1, 0x1F800) if unicodedata.category(chr(c)) not in ("Cn", "Cs")]
    text = "".join(f"a{chr(c)} b'{chr(c)}\n" for c in known[::7])  # a browser knows newer ones
    alphabet = {byte: sign for sign, byte in byte_by_character().items()}
    for kind in ("words", "bpe"):
        pieces = [piece for piece, _ in kinds[kind].backend.pre_tokenizer.pre_tokenize_str(text)]
        found = engine.run(
            "(M, {content, text}) => text.match(M.readTokenizer(content).pattern)",
            {"content": kinds[kind].to_json(), "text": text},
        )
        if kind != "words":
            found = ["".join(alphabet[byte] for byte in piece.encode()) for piece in found]
        assert found == pieces, kind


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"steps_per_quarter_options": (2, 4), "max_fret": 13, "max_position": 17},
        {"styles": ("Jazz", "Rock ’n’ Roll"), "steps_per_quarter_options": (1,)},
    ],
)
def test_tab_tokens_have_the_package_s_ids(settings, v8):
    tokenizer = TabTokenizer(**settings)
    content = json.loads(json.dumps(tokenizer.to_json()))
    vocabulary = v8.run("(M, c) => M.readTokenizer(c).vocabulary", content)
    assert vocabulary == list(tokenizer.vocabulary)
    names = "<bos> TUNING<drop-D> CAPO<3> BAR<5> TAB<6,0>"
    ((ids, back),) = v8.run(TOKENIZE, {"content": content, "texts": [names]})
    assert ids == tokenizer.to_ids(names.split()) and back == names


def refusal(engine, files):
    """Return what the engine says of a run's files."""
    return engine.run(
        """(M, files) => {
          const bytes = Object.entries(files).map(([n, b]) => [n, Uint8Array.from(b)]);
          try { M.readRun(Object.fromEntries(bytes)); } catch (error) {
            if (!(error instanceof M.Refusal)) return `NOT IN A SENTENCE: ${error}`;
            return error.message;
          }
        }""",
        files,
    )


def edited(files, name, change):
    """Return files of which one JSON file is changed in place."""
    content = json.loads(bytes(files[name]))
    return files | {name: list(json.dumps(change(content) or content).encode())}


def tensors_edited(files, change):
    """Return files of which the header of the weights is changed."""
    old = bytes(files["model.safetensors"])
    (length,) = struct.unpack("<Q", old[:8])
    header = json.loads(old[8 : 8 + length])
    change(header)
    return files | {"model.safetensors": safetensors_file(header, old[8 + length :])}


CONFIGS = {
    "mish": ({"activation": "mish"}, f'activation = "mish".* {", ".join(ACTIVATIONS)}'),
    "alibi": ({"positions": "alibi"}, 'positions = "alibi"'),
    "unknown": ({"sliding_window": 4096}, "sliding_window, which this page does not know"),
    "no size": ({"model_dim": None}, "model_dim = null"),
    "negative": ({"num_blocks": -1}, "num_blocks = -1"),
    "fraction": ({"num_heads": 2.5}, "num_heads = 2.5"),
    "larger": ({"hidden_dim": 10**15}, "W_1 is 13 × 17, not 13 × 1000000000000000"),
    "many blocks": ({"num_blocks": 10**12}, "a larger model than"),
    "many words": ({"vocab_size": 10**12}, "a larger model than"),
    "odd": ({"key_dim": 9}, "key_dim = 9 is odd"),
    "groups": ({"num_kv_heads": 2}, "num_kv_heads = 2 does not divide num_heads = 3"),
    "scaling": ({"rope_scaling": {"rope_type": "yarn"}}, "rope_scaling"),
    "norm": ({"normalization": "batch"}, "normalization"),
    "untied": ({"tied": True}, "E_out is 23 × 13, not no such tensor"),
}


@pytest.mark.parametrize("case", CONFIGS)
def test_a_configuration_that_is_not_known_is_refused_by_name(case, v8, run_files):
    changes, said = CONFIGS[case]
    files = edited(run_files("llama"), "config.json", lambda c: c["config"].update(changes))
    assert_sentence(refusal(v8, files), said)


def test_a_setting_of_a_later_version_is_read_at_its_default_alone(v8, run_files):
    def with_window(window):
        def change(content):
            content["config"]["sliding_window"] = window
            content["defaults"] = {"sliding_window": None, "rope_base": 500.0}
            del content["config"]["rope_base"]

        return edited(run_files("llama"), "config.json", change)

    assert_sentence(refusal(v8, with_window(4096)), "sliding_window, which this page does not know")
    assert refusal(v8, with_window(None)) is None
    script = """(M, files) => {
      const bytes = Object.entries(files).map(([n, b]) => [n, Uint8Array.from(b)]);
      return M.readRun(Object.fromEntries(bytes)).model.config.rope_base;
    }"""
    assert v8.run(script, with_window(None)) == 500.0  # as that version has it


def assert_sentence(message, pattern, case=""):
    assert message is not None and re.search(pattern, message), (case, message)
    assert message.endswith(".") and "\n" not in message and len(message) < 250, (case, message)


def test_other_models_and_missing_files_are_refused(v8, run_files):
    files = run_files("the book's")
    for name in ("EncoderDecoder", "constructor"):
        other = edited(files, "config.json", lambda c, name=name: c.update(model=name))
        assert_sentence(refusal(v8, other), f'names "{name}"')
    foreign = edited(files, "config.json", lambda c: {"model_type": "llama"})
    assert_sentence(refusal(v8, foreign), "not from a run of slp_transformer")
    assert_sentence(refusal(v8, files | {"config.json": [123, 34]}), "is no JSON")
    assert_sentence(refusal(v8, files | {"config.json": list(b"[1]")}), "not from a run")
    assert_sentence(refusal(v8, files | {"lora.safetensors": [0]}), "LoRA")
    for name in files:
        assert_sentence(refusal(v8, {n: b for n, b in files.items() if n != name}), name)


def weights_cases(files):
    raw = files["model.safetensors"]
    name = "stack.blocks.0.ffn.W_1"

    def with_weights(new):
        return files | {"model.safetensors": new}

    def entry(**changes):
        return tensors_edited(files, lambda header: header[name].update(changes))

    yield "no file", with_weights([]), "has 0 bytes"
    yield "cut in the header", with_weights(raw[:100]), "header claims"
    yield "truncated", with_weights(raw[:-9]), "is truncated: .* ends at byte"
    huge = list(struct.pack("<Q", 10 * 2**30)) + raw[8:]
    yield "10 GB", with_weights(huge), "its header claims 10737418240 bytes"
    yield "all ones", with_weights([255] * 8 + raw[8:]), "its header claims 18446744073709551615"
    yield "no JSON", with_weights([*raw[:8], 120, *raw[9:]]), "is no JSON"
    nan = list(struct.pack("<f", float("nan")))
    yield "NaN", with_weights(raw[:-4] + nan), "NaN or infinite weights"
    yield "integers", entry(dtype="I32"), f"{name} in I32; this page reads F32, F16, BF16"
    yield "shape", entry(shape=[17, 13]), f"{name} is 17 × 13, not 13 × 17"
    yield "too many", entry(shape=[13, 2**52]), "as many numbers as its shape"
    yield "negative", entry(data_offsets=[-4, 880]), "as many numbers as its shape"
    yield "far away", entry(data_offsets=[10**12, 10**12 + 884]), "is truncated"
    yield "no entry", tensors_edited(files, lambda h: h.update(W=3)), "W in undefined"
    yield "missing", tensors_edited(files, lambda h: h.pop(name)), f"{name} is no such tensor"
    yield "one more", tensors_edited(files, lambda h: h.update(W=h[name])), "W is 13 × 17, not no"


@pytest.mark.slow
def test_damaged_weights_end_in_one_sentence(engine, run_files):
    for case, files, said in weights_cases(run_files("the book's")):
        assert_sentence(refusal(engine, files), said, case)


TOKENIZERS = {
    "hole": (lambda c: c["vocabulary"].__setitem__(3, None), "a hole: id 3 is no token"),
    "twice": (lambda c: c["vocabulary"].__setitem__(3, "a"), '"a" twice'),
    "short": (lambda c: c | {"vocabulary": c["vocabulary"][:-1]}, "22 tokens, but the model 23"),
    "none": (lambda c: c.update(vocabulary={}), "no vocabulary"),
    "long": (lambda c: c["vocabulary"].__setitem__(3, "xy"), "no single character"),
    "type": (lambda c: c.update(token_type="unigram"), 'token_type = "unigram"'),
    "pairs": (lambda c: {"source": c, "target": c}, "of no text and of no tabs"),
    "no object": (lambda c: [1], "no object"),
    "no <unk>": (lambda c: c.update(token_type="words"), "lacks <unk>"),
    "merges": (lambda c: c.update(token_type="bpe", merges=[["a", "b"]]), "has no token"),
    "no pair": (lambda c: c.update(token_type="bpe", merges=[5]), "has no token"),
    "tabs": (lambda c: {"kind": "tab tokens", "max_fret": 10**9}, "cannot be used"),
}


@pytest.mark.parametrize("case", TOKENIZERS)
def test_a_tokenizer_with_holes_is_refused(case, v8, run_files):
    change, said = TOKENIZERS[case]
    files = edited(run_files("the book's"), "tokenizer.json", change)
    assert_sentence(refusal(v8, files), said)


def test_what_a_reader_types_is_refused_in_a_sentence(engine, load):
    load("the book's")
    ask = """(M, {script}) => {
      try { eval(script); } catch (error) { return [error instanceof M.Refusal, error.message]; }
    }"""
    for script, said in (
        ("kept.tokenizer.encode('Zebra')", 'not trained on the character "Z"'),
        ("kept.model.forward([23])", "Ids go from 0 to 22, not 23"),
        ("kept.model.forward(Array(20).fill(1))", "19 positions, and 20 tokens do not fit"),
        ("[...M.generate(kept.model, [])]", "one token at least"),
        ("kept.model.forward([1], {hook: () => new M.Tensor([1, 2])})", "hook at E returned 1 × 2"),
    ):
        known, message = engine.run(ask, {"script": script})
        assert known, script
        assert_sentence(message, said)
