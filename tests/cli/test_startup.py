"""What is answered before PyTorch is loaded, and what importing the package offers all the same."""

import json
import pickle
import re

import numpy as np
import own_process
import pytest

import slp_transformer
from slp_guitar import TabTokenizer
from slp_transformer import TransformerConfig, TransformerLM
from slp_transformer._internal.json_files import load_validated, read_json
from slp_transformer.data import TextTokenizer
from slp_transformer.data.text_tokenizer import byte_by_character
from slp_transformer.training.train_config import TrainConfig

pytest.importorskip("pydantic", reason="files are checked with the text extra")

LIGHT = """
import json, sys

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "numpy", "jaxtyping"):
            raise AssertionError(f"{name} was imported")

sys.meta_path.insert(0, NoTorch())
from slp_transformer.cli import main
sys.stderr = sys.stdout
for words in json.loads(sys.argv[1]):
    print(main(words), end="\\0")
"""
ANSWERS = [  # to words: the exit code, and something that is said
    ([], 2, "Train small language models"),
    (["--help"], 0, "Train small language models"),
    (["--version"], 0, slp_transformer.__version__),
    (["train", "--help"], 0, "--learning-rate"),
    (["generate", "--help"], 0, "generate runs/mine --prompt-file beginning.txt"),
    (["generate", "--help"], 0, "sample from the k most probable tokens alone"),
    (["train", "text", "--stpes", "3"], 2, "did you mean --steps?"),
    (["train", "tabs", "nowhere", "--out-dir", "a"], 2, "nowhere: name one with .txt"),
    (["train", "text", "moby-dick", "--out-dir", "a", "--dropout", "2"], 2, "share to drop"),
    (["evaluate", "."], 2, "There is no checkpoint in ."),
]


def test_what_needs_no_model_is_answered_without_pytorch(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = json.dumps([words for words, _, _ in ANSWERS])
    answers = own_process.printed(LIGHT, words).split("\0")[:-1]
    for answer, (_, code, said) in zip(answers, ANSWERS, strict=True):
        assert said in answer and answer.endswith(str(code))


@pytest.mark.usefixtures("unchecked")
def test_numpys_whole_numbers_are_sizes_and_come_out_as_pythons():
    config = TransformerConfig(np.int64(23), np.int32(11), np.int64(14), np.int64(2), np.int8(1))
    assert config == TransformerConfig(23, 11, 14, 2, 1)
    assert all(type(size) is int for size in (config.vocab_size, config.num_blocks))
    assert pickle.loads(pickle.dumps(config)) == config
    assert TransformerLM(config).config.model_dim == 14
    settings = TrainConfig(steps=np.int64(7), seed=np.int64(3))
    assert type(settings.to_dict()["steps"]) is int and type(settings.seed) is int


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("size", [True, np.bool_(True), 2.0, np.float64(2), "2", None, [2]])
def test_what_is_no_whole_number_is_no_size(size):
    with pytest.raises(ValueError, match="vocab_size must be a whole number of 1 or more"):
        TransformerConfig(size)


TEXT = TextTokenizer("bpe", [*sorted(byte_by_character()), "ab"], [("a", "b")])
TAB = TabTokenizer()


@pytest.mark.parametrize(
    ("tokenizer", "change", "sentence"),
    [
        (TEXT, {"vocabulary": None}, "vocabulary: Input should be a valid"),
        (TEXT, {"vocabulary": [1, 2]}, "vocabulary.0: Input should be a valid string"),
        (TEXT, {"vocabulary": []}, "empty"),
        (
            TEXT,
            {"token_type": "cuneiform"},
            "token_type: Input should be 'characters', 'words' or 'bpe'",
        ),
        (TEXT, {"token_type": "words"}, "lacks <unk>"),
        (TEXT, {"token_type": "characters"}, "no single character"),
        (TEXT, {"merges": [["a"]]}, "merges.0.1: Field required"),
        (TEXT, {"merges": [["a", "c"]]}, "merge of 'a' and 'c' has no token"),
        (TEXT, {"vocabulary": ["a", "☃"], "merges": []}, "no row of bytes"),
        (TEXT, {"token_type": "characters", "vocabulary": ["\ud800"], "merges": []}, "damaged"),
        (
            TEXT,
            {"vocabulary": [*"ab", 1]},
            r"^This text tokenizer is damaged: vocabulary\.2: Input should be a valid string "
            r"\(found 1\)\.$",
        ),
        (TEXT, {"extra": 1}, "extra: Unexpected keyword argument"),
        (TAB, {"max_fret": 10**12}, "max_fret must be a whole number from 0 to 65536"),
        (TAB, {"max_position": 1.5}, "max_position: Input should be a valid integer"),
        (TAB, {"kind": "tabs"}, "kind: Input should be 'tab tokens'"),
        (
            TAB,
            {"steps_per_quarter_options": [0]},
            "steps_per_quarter must be a whole number from 1",
        ),
        (TAB, {"steps_per_quarter_options": 4}, "_options: Input should be a valid array"),
        (TAB, {"styles": ["Jazz", "a<b"]}, "'a<b' will not do"),
        (TAB, {"styles": [1]}, "styles.0: Input should be a valid string"),
    ],
)
def test_a_damaged_tokenizer_is_refused_in_a_sentence(tokenizer, change, sentence):
    with pytest.raises(ValueError, match=sentence):
        type(tokenizer).from_json(tokenizer.to_json() | change)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a": ' * 100_000, "1" * 5_000, "\xff", "{"])
def test_json_of_any_kind_is_read_or_refused_in_a_sentence(text, tmp_path):
    path = tmp_path / "some.json"
    path.write_text(text, encoding="latin-1")
    for read in (read_json, lambda path: load_validated(dict, path)):
        with pytest.raises(ValueError, match=re.escape(str(path))):
            read(path)
