"""The options of `translate`."""

from dataclasses import dataclass
from pathlib import Path

from slp_transformer.cli.run_options import RunOptions, check_run
from slp_transformer.tasks.data_settings import Positional


@dataclass(frozen=True)
class TranslateOptions(RunOptions):
    """Translate sentences with a model trained on pairs.

    Examples:
      slp-transformer translate runs/en-de "A man rides a bicycle."
      slp-transformer translate runs/en-de --input captions.en --output captions.de
      cat captions.en | slp-transformer translate runs/en-de > captions.de
      slp-transformer translate runs/en-de "A man rides." --attention heads.html
      slp-transformer translate runs/en-de                     reads sentences, a line each

    Each line is a sentence, and an empty line is translated by an empty line.

    Attributes:
        sentences: what to translate.
        input: a file with a sentence in each line.
        output: a file to write to.
        num_beams: beam width; 1 takes the most probable token at each step.
        length_penalty: the power of its length that a log probability is divided by.
        n_best: translations of each sentence.
        scores: print each translation's log probability per token before it.
        json: print each sentence's translations as JSON.
        attention: draw the attention of every layer and head for one sentence, as .html or .svg.
    """

    sentences: Positional[tuple[str, ...]] = ()
    input: Path | None = None
    output: Path | None = None
    num_beams: int = 4
    length_penalty: float = 1.0
    n_best: int = 1
    scores: bool = False
    json: bool = False
    attention: Path | None = None

    def check(self) -> None:
        """Refuse impossible values, and a folder without a trained model.

        Raises:
            ValueError: naming the flag, or the folder.
        """
        super().check()
        check_run(self.run, self.checkpoint, trained=True)
        if self.n_best > self.num_beams:
            raise ValueError(
                f"{self.num_beams} beams find at most as many translations, and not the "
                f"{self.n_best} of --n-best: give --num-beams {self.n_best}."
            )
        if self.attention is None:
            return
        if len(self.sentences) != 1 or self.input or not self.sentences[0].strip():
            raise ValueError("--attention draws one sentence: give it as the only SENTENCE.")
        if self.attention.suffix.lower() not in (".html", ".svg"):
            raise ValueError(
                f"Attention is drawn as .html or .svg, and {self.attention.name} is neither."
            )
