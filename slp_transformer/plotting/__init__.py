"""Displays for chapters: the package's source, and figures drawn from tensors.

Nothing here is needed to use a model. Matplotlib is imported when the first figure is drawn.

Usage, each as the last expression of a cell (a figure's cell names its alt text: `# %% alt="..."`):

    plotting.show_source(causal_mask, attention)  # one or more functions, classes, methods
    plotting.heatmap(alpha, rows=words, columns=words, title="α", top=1)
    plotting.panels(plotting.Panel(Q, "Q", "N × dₖ"), "×", plotting.Panel(K.T, "Kᵀ", "dₖ × N"),
                "=", plotting.Panel(Q @ K.T, "QKᵀ", "N × N"))
    plotting.bars(probabilities, words, title="y")           # a distribution
    plotting.flow(causal_mask(5) == 0, columns=inputs, rows=outputs)    # who may look at whom
    plotting.lines({"training": losses, "validation": others}, x="step", y="loss in nats")

and, for the site, figures that a reader can change: `interactive_weights`, `interactive_sampling`,
`interactive_scores`, `interactive_lines` and `interactive_steps`. In a plain script these lines
draw nothing and print nothing. Titles and labels are plain Unicode (Kᵀ, √dₖ, x₁), not TeX: the
figures take the font and the color of the page they stand on.
"""

from typing import TYPE_CHECKING

from slp_transformer._internal.lazy import attach

if TYPE_CHECKING:
    from slp_transformer.plotting.figures import Figure as Figure
    from slp_transformer.plotting.figures import Panel as Panel
    from slp_transformer.plotting.figures import bars as bars
    from slp_transformer.plotting.figures import flow as flow
    from slp_transformer.plotting.figures import heatmap as heatmap
    from slp_transformer.plotting.figures import lines as lines
    from slp_transformer.plotting.figures import panels as panels
    from slp_transformer.plotting.interactive import InteractiveFigure as InteractiveFigure
    from slp_transformer.plotting.interactive import interactive_lines as interactive_lines
    from slp_transformer.plotting.interactive import interactive_sampling as interactive_sampling
    from slp_transformer.plotting.interactive import interactive_scores as interactive_scores
    from slp_transformer.plotting.interactive import interactive_steps as interactive_steps
    from slp_transformer.plotting.interactive import interactive_weights as interactive_weights
    from slp_transformer.plotting.source_code import CodeBlock as CodeBlock
    from slp_transformer.plotting.source_code import show_source as show_source

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = attach(__name__)
