# %% [markdown]
# # 7 · Training
#
# Sections 8.7 (2025-26 drafts) and 7.7 (August 2026 draft)
#
# Teach a model to predict the next token: one number to lower, one step, one loop, and five models.
#
# You will be able to compute cross-entropy and perplexity by hand; say why one pass scores every
# position; do a whole training step yourself, the optimizer included; and see what each part of
# the Transformer is worth, on a ladder from a table of pairs to a language model. Read first:
# [The language model](05_language_model.py). About two hours; the ladder can wait for another day.

# %% [markdown]
# ## One word
#
# A model has read *the guitarist tuned the*, and gives four words these probabilities. The text goes
# on with *guitar*. How wrong was the model?
#
# Put the truth in the same form: a distribution too, with all of its probability on the word that came.
# That is a one-hot row y, and ŷ is the model's. Cross-entropy compares them, word by word:
#
# <span class="eq" id="eq-ce-full">ce-full</span>
#
# $$
# L_{CE}(\hat{\mathbf y}_t,\mathbf y_t)=-\sum_{w\in V}\mathbf y_t[w]\,\log\hat{\mathbf y}_t[w]
# \tag{ce-full}
# $$

# %% alt="Three rows over the words string, guitar, drum, moon. The model's ŷ: 0.5, 0.25, 0.125, 0.125. The truth y: 0, 1, 0, 0. The surprise, minus log ŷ: 0.693, 1.386, 2.079, 2.079." caption="A prediction, the truth, and the surprise at each word"
import torch

from slp_transformer import plotting

words = ["string", "guitar", "drum", "moon"]
y_hat = torch.tensor([1 / 2, 1 / 4, 1 / 8, 1 / 8])
y = torch.tensor([0.0, 1.0, 0.0, 0.0])
rows = torch.stack([y_hat, y, -y_hat.log()])
plotting.heatmap(rows, ["ŷ", "y", "−log ŷ"], words, top=2, decimals=3)


# %%
def cross_entropy_full(y_hat, y):
    return -sum(y[w] * torch.log(y_hat[w]) for w in range(len(y)))


L = cross_entropy_full(y_hat, y)
print(f"loss {L:.3f} nats")

# %% [markdown]
# Three of the four terms are multiplied by 0. What remains is the surprise at the word that did
# come, and since we number words from 0, `following` is its place in the row:
#
# <span class="eq" id="eq-ce">ce</span>
#
# $$
# L_{CE}(\hat{\mathbf y}_t,\mathbf y_t)=-\log\hat{\mathbf y}_t[w_{t+1}]
# \tag{ce}
# $$


# %%
def cross_entropy(y_hat, following):
    return -torch.log(y_hat[following])


for following in range(4):
    one_hot = torch.zeros(4)
    one_hot[following] = 1
    full = cross_entropy_full(y_hat, one_hot)
    torch.testing.assert_close(cross_entropy(y_hat, following), full)

# %% [markdown]
# The logarithm is the natural one, so the unit is the *nat*. A probability of 1 costs nothing,
# every halving costs another $\ln 2\approx 0.69$, and 0 costs infinitely much:

# %% alt="A falling curve: minus log of ŷ, from 4.6 nats at a probability of 0.01, through 0.69 at one half, to 0 at 1." caption="The surprise at a word, by its probability"
chances = [i / 100 for i in range(1, 101)]
surprise = [-torch.tensor(p).log() for p in chances]
plotting.lines(
    {"−log ŷ": surprise}, x="ŷ of the word that came", y="nats", at=chances
)

# %% [markdown]
# ## A mean over positions
#
# A text of T words to predict gives T such numbers. The loss is their mean.
#
# <span class="eq" id="eq-ce-mean">ce-mean</span>
#
# $$
# L=\frac1T\sum_{t=1}^{T}-\log\hat{\mathbf y}_t[w_{t+1}]
# \tag{ce-mean}
# $$
#
# From logits to loss, in a loop:

# %%
import torch.nn.functional as F

from slp_transformer.loss import next_token_loss


def loss_by_hand(U, targets):
    total = 0
    for u, following in zip(U, targets, strict=True):
        y_hat = torch.exp(u) / torch.exp(u).sum()  # softmax
        total += cross_entropy(y_hat, following)
    return total / len(targets)


# %%
U = torch.randn(5, 4, generator=torch.Generator().manual_seed(7))
targets = torch.tensor([1, 0, 3, 3, 2])
by_hand = loss_by_hand(U, targets)
torch.testing.assert_close(next_token_loss(U, targets), by_hand)
torch.testing.assert_close(F.cross_entropy(U, targets), by_hand)
plotting.show_source(next_token_loss)

# %% [markdown]
# PyTorch's `cross_entropy` agrees with the loop, and the package calls it (but for large
# vocabularies on a CPU, where `try_fast_cross_entropy_sum` has the same loss sooner). It takes logits, not
# probabilities, and for a reason:

# %%
u, first = torch.tensor([[0.0, 200.0]]), torch.tensor([0])
print("by hand:", loss_by_hand(u, first).item())
print("from the logits:", next_token_loss(u, first).item())

# %% [markdown]
# <div class="admonition note" markdown="0"><p class="admonition-title">Where the code leaves the book</p><p>Taken literally, the softmax comes first and the logarithm second. In between, $e^{200}$ overflows and a small probability becomes 0. The logarithm of a softmax needs neither: it is $u_w-\log\sum_v e^{u_v}$, with the largest logit subtracted first. Positions whose target is <code>IGNORED</code> (padding) do not count in the mean; the book's texts have none.</p></div>
#
# ## What the loss asks for
#
# Training will change the logits in the direction that lowers the loss. For one position that
# direction is as simple as can be: it is the truth minus the prediction, $\mathbf y-\hat{\mathbf y}$.

# %% alt="Bars of y minus ŷ for the four words: guitar +0.75, string minus 0.5, drum and moon minus 0.125." caption="The direction in which the logits should move"
u = y_hat.log().requires_grad_()  # logits that give ŷ
next_token_loss(u[None], torch.tensor([1])).backward()
torch.testing.assert_close(-u.grad, y - y_hat)
plotting.bars(-u.grad, words, title="y − ŷ")

# %% [markdown]
# Up with the word that came, down with the others, each by as much as it was believed in. A
# model that is right has nothing to change.
#
# ## Teacher forcing
#
# A text is its own answer key. At every position the model reads the words so far, the *true* ones
# even where it would have guessed something else, and has to name the next. So what it should say
# is what it reads, one place further on:

# %%
from slp_transformer.data.batches import TokenWindows

text = "the guitarist tuned the string because it was flat".split()
vocabulary = sorted(set(text))
stream = torch.tensor([vocabulary.index(word) for word in text])
N = len(text) - 1
batch = next(TokenWindows(stream, N).iter_eval(batch_size=1))
reads, says = batch.inputs[0][0], batch.targets[0]
assert reads.tolist() == stream[:-1].tolist()
assert says.tolist() == stream[1:].tolist()

# %% [markdown]
# Which of the words below may a prediction above be made from? The causal mask has the answer:
# all that come before it in the text.

# %% alt="Eight words that are read are in the lower row, eight words to predict in the upper row, shifted by one: guitarist is above the, tuned above guitarist, and so on to flat above was. Lines lead to each word from the word below it and from all to the left of that; those to string, four of them, stand out." caption="Each word is predicted from those before it"
from slp_transformer import causal_mask

allowed = causal_mask(N) == 0
read_words = [vocabulary[w] for w in reads]
said_words = [vocabulary[w] for w in says]
plotting.flow(allowed, rows=said_words, columns=read_words, row=3)

# %% [markdown]
# That is why training is fast. Eight predictions from eight different beginnings take one pass, not
# eight: each row sees its own beginning and nothing else.

# %%
from slp_transformer import TransformerConfig, TransformerLM

torch.manual_seed(0)
torch.set_num_threads(1)  # models this small are fastest on one core
model = TransformerLM(TransformerConfig(len(vocabulary), N, 32, 4, 2))
U = model(reads)  # all at once
for i in range(N):
    one_more = model(reads[: i + 1])  # word after word
    torch.testing.assert_close(one_more[-1], U[i])

# %% [markdown]
# Each position has a loss of its own, and the loss of the text is their mean (Fig. 8.17 · 7.22). This
# model has learned nothing yet, so each lies near $\ln 8\approx2.08$, an even guess among eight words:

# %% alt="Bars of the loss at each of eight positions, minus the logarithm of the probability of the word to predict there. The model is untrained, and all of them are near 2.1 nats." caption="The loss at each position, whose mean is the loss" figure="loss-by-position"
each = F.cross_entropy(U, says, reduction="none").detach()
torch.testing.assert_close(each.mean(), next_token_loss(U, says).detach())
print(f"mean {each.mean():.3f} nats")
plotting.bars(
    each, said_words, title="−log ŷ of the word that came", decimals=2
)

# %% [markdown]
# Nor can it cheat. Exchange one word that is read, and see which positions' losses move: its own and
# later ones, never earlier ones, which would have had to look ahead. They move exactly where there
# is a line in the figure.


# %%
@torch.no_grad()
def losses(read):
    return F.cross_entropy(model(read), says, reduction="none")


moved = torch.zeros(N, N)
for j in range(N):
    changed = reads.clone()
    changed[j] = (reads[j] + 1) % len(vocabulary)  # some other word
    moved[:, j] = (losses(changed) - losses(reads)).abs()
assert torch.equal(moved > 1e-6, allowed)

# %% [markdown]
# A corpus is one long row of tokens. A batch is cut from it at random places, each window with the
# same window one token later.

# %%
from slp_transformer.data.batches import random_windows

luck = torch.Generator().manual_seed(7)
x, targets = random_windows(stream, 4, 2, luck)
for row, shifted in zip(x, targets, strict=True):
    print("reads:", *(vocabulary[w] for w in row))
    print(" says:", *(vocabulary[w] for w in shifted))
plotting.show_source(random_windows)

# %% [markdown]
# ## Perplexity
#
# The chain rule makes the probability of a text the product of what the model gave to each word.
# We take its logarithm, since a product of many probabilities soon gets too small for any float:
#
# <span class="eq" id="eq-likelihood">likelihood</span>
#
# $$
# \log P(w_{1:T})=\log\prod_{t=1}^{T}P(w_t\mid w_{<t})=\sum_{t=1}^{T}\log P(w_t\mid w_{<t})
# \tag{likelihood}
# $$

# %%
from math import exp, log, prod

chances = [1e-4, 2e-4, 5e-6, 1e-7]  # of four words, one after the other
likelihood = prod(chances)
print(f"P = {likelihood:.0e}, log P = {sum(map(log, chances)):.2f}")
assert prod(chances * 20) == 0 > sum(map(log, chances * 20))

# %% [markdown]
# A long text is less probable than a short one whatever the model. Perplexity takes the length
# out: the inverse probability, by the geometric mean over words.
#
# <span class="eq" id="eq-perplexity">perplexity</span>
#
# $$
# \mathrm{PPL}(w_{1:T})=P(w_{1:T})^{-\frac1T}
# \tag{perplexity}
# $$
#
# It is nothing new: pull the exponent into the logarithm, and it is e to the power of the loss.

# %%
from slp_transformer.loss import perplexity

T = len(chances)
loss = sum(-log(p) for p in chances) / T  # (7.55)
ppl = likelihood ** (-1 / T)
assert abs(ppl - exp(loss)) < 1e-6 * ppl
assert abs(ppl - perplexity(loss)) < 1e-6 * ppl
print(f"loss {loss:.2f}, perplexity {ppl:,.0f}")
plotting.show_source(perplexity)

# %% [markdown]
# Lower is better, and 1 the best. It reads as a number of choices: who guesses evenly among 65
# characters has a perplexity of 65.

# %%
even = next_token_loss(torch.zeros(10, 65), torch.arange(10)).item()
print(f"an even guess: {even:.2f} nats, perplexity {perplexity(even):.1f}")

# %% [markdown]
# Models of characters are mostly judged in *bits per character*: the loss in logarithms to base 2.
# Unlike a perplexity it compares across vocabularies, if the sum is divided by the text's
# characters whatever the tokens were. The four words above, were they 23 characters with
# their spaces:

# %%
bits = -log(likelihood) / log(2)
print(f"{bits:.1f} bits: {bits / 4:.1f} a word, {bits / 23:.2f} a character")
by_character = perplexity(-log(likelihood) / 23)
print(f"perplexity {ppl:,.0f} a word, {by_character:.1f} a character")

# %% [markdown]
# <div class="admonition note" markdown="0"><p class="admonition-title">Where the code leaves the book</p><p>In <a href="#eq-likelihood">(7.56)</a> the first word has a probability too. A model that reads a stream has nothing to predict its first token from, so <code>mean_loss</code> scores all but that one. It also cuts the stream into windows that do not overlap: the first token of each window is predicted from one token only, and so the loss is a little higher than with the longest possible context everywhere.</p></div>

# %% [markdown]
# ## One step, spelled out
#
# Training repeats one step: read a batch, compute the loss, ask each weight which way and how
# steeply the loss rises with it (the gradient), and move all weights a little the other way.
#
# How far? Plain descent goes the same multiple of the gradient everywhere. AdamW (Loshchilov and
# Hutter 2019, not in the book) keeps two averages for each weight, of its gradients g and of their
# squares:
#
# $$
# \begin{aligned}
# m&\leftarrow\beta_1 m+(1-\beta_1)\,g\\
# v&\leftarrow\beta_2 v+(1-\beta_2)\,g^2
# \end{aligned}
# $$
#
# Both begin at 0, so in step t they are too small, by the factors $1-\beta_1^t$ and $1-\beta_2^t$.
# Dividing by those gives $\hat m$ and $\hat v$, and the weight moves by
#
# $$
# W\leftarrow W-\eta\left(\frac{\hat m}{\sqrt{\hat v}+\epsilon}+\lambda W\right)
# $$
#
# A weight whose gradients agree goes a full η, the learning rate; one whose gradients cancel hardly
# moves. The last term lets it decay towards 0, matrices only. One weight, three steps:

# %%
beta_1, beta_2, eps = 0.9, 0.95, 1e-8


def adamw(W, g, m, v, t, eta, decay):
    m = beta_1 * m + (1 - beta_1) * g
    v = beta_2 * v + (1 - beta_2) * g**2
    m_hat, v_hat = m / (1 - beta_1**t), v / (1 - beta_2**t)
    return W - eta * (m_hat / (v_hat**0.5 + eps) + decay * W), m, v


# %%
theirs = torch.tensor([2.0], requires_grad=True)
options = {"lr": 0.1, "weight_decay": 0.1, "betas": (beta_1, beta_2)}
optimizer = torch.optim.AdamW([theirs], **options)
W, m, v = 2.0, 0.0, 0.0
for t, g in enumerate([3.0, 5.0, -4.0], start=1):
    W, m, v = adamw(W, g, m, v, t, eta=0.1, decay=0.1)
    theirs.grad = torch.tensor([g])
    optimizer.step()
    print(f"gradient {g:+.0f}: the weight is now {W:.4f}")
    assert abs(W - theirs.item()) < 1e-5

# %% [markdown]
# The first step is 0.1, and a bit of decay, though the gradient was 3. The third gradient points the
# other way, and the weight still rolls on.
#
# Two precautions. A batch with an odd text in it can have a huge gradient, so one that is longer
# than 1, all weights taken together, is shortened to 1. And the learning rate is not the same all
# the time: it warms up while the averages mean little, and falls when the rest is fine tuning.

# %% alt="The learning rate over 1,000 steps: a straight rise to 0.003 in the first 50, then half a cosine down to 0.0003." caption="The learning rate over a run"
from slp_transformer.training.train_config import (
    TrainConfig,
    cosine_schedule,
)

thousand = TrainConfig(steps=1000, learning_rate=3e-3)
places = [0, *range(49, 1000, 19)]
rates = {"η": [thousand.learning_rate_at(step) for step in places]}
plotting.lines(rates, x="step", y="learning rate", at=places)

# %%
plotting.show_source(cosine_schedule)

# %% [markdown]
# All of it together: a whole step for a whole model.


# %%
def step_by_hand(model, batch, memory, step, settings):
    loss = next_token_loss(model(*batch.inputs), batch.targets)
    gradients = torch.autograd.grad(loss, list(model.parameters()))
    length = sum(g.square().sum() for g in gradients).sqrt()
    shorter = min(1.0, settings.max_grad_norm / length)
    eta = settings.learning_rate_at(step)
    for i, W in enumerate(model.parameters()):
        g, (m, v) = gradients[i] * shorter, memory[i]
        decay = settings.weight_decay if W.dim() == 2 else 0.0
        W_new, m, v = adamw(W.data, g, m, v, step + 1, eta, decay)
        W.data = W_new
        memory[i] = m, v
    return loss.detach(), length


# %% [markdown]
# Five such steps on the little model, and five of the package's on a twin:

# %%
from copy import deepcopy

from slp_transformer.training import training_step
from slp_transformer.training.optimizers import make_optimizer

twin = deepcopy(model)
settings = TrainConfig(steps=60, batch_size=1, learning_rate=0.01)
memory = [(0.0, 0.0) for _ in model.parameters()]
optimizer = make_optimizer(twin, settings)
for step in range(5):
    mine, length = step_by_hand(model, batch, memory, step, settings)
    cpu = torch.device("cpu")
    theirs = training_step(twin, batch, optimizer, step, settings, cpu)
    print(f"step {step}: loss {mine:.4f}, gradient {length:.2f} long")
    torch.testing.assert_close(mine, theirs)

# %%
for W, theirs in zip(model.parameters(), twin.parameters(), strict=True):
    torch.testing.assert_close(W, theirs)
plotting.show_source(training_step)

# %% [markdown]
# The package's step can do more: it adds up gradients of several parts when a batch is too large
# for the memory, and computes in bfloat16 if asked to. The steps are the same.
#
# ## The loop
#
# Draw a batch, make a step, and again.

# %%
from slp_transformer.training import train


def train_by_hand(model, source, settings):
    luck = torch.Generator().manual_seed(settings.seed)
    optimizer = make_optimizer(model, settings)
    for step in range(settings.steps):
        batch = source.draw(settings.batch_size, luck)
        training_step(model, batch, optimizer, step, settings, cpu)


# %%
model, twin = twin, deepcopy(twin)
train_by_hand(twin, TokenWindows(stream, N), settings)
(record,) = train(model, stream, stream, settings)  # and it measures
for W, theirs in zip(model.parameters(), twin.parameters(), strict=True):
    torch.testing.assert_close(W, theirs)
said = [vocabulary[w] for w in model(reads).argmax(dim=-1)]
assert said == said_words
print(f"loss {record.val_loss:.3f}; it says:", *said)

# %% [markdown]
# The model knows its one sentence by heart. Beyond that,
# <autoref identifier="slp_transformer.training.trainer.train">train</autoref> measures the loss on text that
# is held out, keeps checkpoints, resumes, stops early, and picks the device.
#
# ## The ladder
#
# What is each part of the Transformer worth? We build the model up from nearly nothing, train each version on
# the same text, and look at the loss on the text that was held out. The first four versions read the same
# number of characters at the same rate; the last reads twice as many at half the rate. The text is the
# beginning of *Moby-Dick*, which comes with the package; a token is a character. The script climbs on any
# other text as well, which
# <autoref identifier="slp_transformer.data.text_files.read_documents">read_documents</autoref> finds:
#
# ```
# python chapters/07_training.py --corpus my_text.txt --steps 4800
# ```

# <autoref identifier="slp_transformer.cli.ladder_options">A module of its own</autoref> reads the
# command line. On this page and in a notebook there is none, so the sizes are the defaults, which the
# text names.

# %%
from slp_transformer.cli import ladder_options
from slp_transformer.data import read_documents, train_tokenizer

arguments = ladder_options.settings()
with ladder_options.one_sentence():  # bad input ends the script with one
    text = "\n\n".join(read_documents(arguments.corpus))
    tokenizer = train_tokenizer([text], token_type="characters")
stream = torch.tensor(tokenizer.encode(text))
start = torch.tensor(tokenizer.encode(" "))
cut = len(stream) * 9 // 10
learned, held_out = stream[:cut], stream[cut:]
vocab_size, N, d = tokenizer.vocab_size, 8, 32
print(f"{len(learned):,} characters to learn from, {len(held_out):,} held out")
print(f"|V| = {vocab_size}, an even guess costs {log(vocab_size):.2f} nats")

# %% [markdown]
# Every rung but the last reads windows of 8 characters, 32 at a time, for 1,200 steps, all at the
# same rate. Then it writes: from a space on, each character is drawn from its distribution after the
# last 8. All rungs draw with the same random numbers, so where they write differently, the models
# differ.

# %%
from textwrap import fill

from slp_transformer.sampling import sample


@torch.no_grad()
def write(model, window, length=200):
    luck = torch.Generator().manual_seed(7)
    ids = start
    for _ in range(length):
        u = model(ids[-window:])[-1:]
        ids = torch.cat([ids, sample(u, luck)])
    lines = tokenizer.decode(ids).strip().splitlines()
    return "\n".join(fill(line, 72) for line in lines)


# %%
curves, texts, final = {}, {}, {}
same = {"steps": arguments.steps, "batch_size": 32, "learning_rate": 1e-2}
last = {"steps": arguments.last_steps, "batch_size": 12, "learning_rate": 5e-3}
size = {"model_dim": arguments.last_width, "num_blocks": arguments.last_blocks}
with ladder_options.one_sentence():  # better now than in the middle
    for how in (same, last):
        TrainConfig(**how)
    config = TransformerConfig(vocab_size, 64, num_heads=4, **size)
    large = TransformerLM(config)
    TokenWindows(held_out, config.context_length)


# %%
def climb(name, model, window=N, how=same):
    every = max(1, how["steps"] // 20)  # steps between measurements
    lengths = {"sequence_length": window, "eval_interval": every}
    records = train(model, learned, held_out, **how, **lengths)
    read = how["batch_size"] * window / 1000  # thousands a step
    curves[name] = [(r.step * read, r.val_loss) for r in records]
    final[name] = records[-1].val_loss
    texts[name] = write(model, window)
    print(f"{name}: {final[name]:.3f} nats")
    print(texts[name])


# %% [markdown]
# ### A table of pairs
#
# The first rung looks at one character, the last, and nothing else. A row of logits for each
# character is a matrix [|V|×|V|], so an embedding whose rows are as long as the vocabulary is the
# whole model. Models of this kind are called *bigram* models.

# %%
from slp_transformer.embedding import TokenEmbedding

torch.manual_seed(0)
bigram = TokenEmbedding(vocab_size, vocab_size)
climb("bigram", bigram)

# %% [markdown]
# Such a model can also be had without training: count how often each character follows each other
# one. Training moves towards the same numbers, since on the text it learns from they have the lowest
# loss.

# %%
pairs = torch.zeros(vocab_size, vocab_size)
for a, b in zip(learned.tolist(), learned[1:].tolist(), strict=False):
    pairs[a, b] += 1
counted = (pairs + 0.1) / (pairs + 0.1).sum(dim=-1, keepdim=True)
by_counting = -counted[held_out[:-1], held_out[1:]].log().mean()
print(f"trained {final['bigram']:.3f} nats, counted {by_counting:.3f}")
often = pairs.sum(dim=-1) > len(learned) / 50
off = (torch.softmax(bigram.E, dim=-1) - counted)[often].abs().max()
print(f"after frequent characters, no probability is {off:.2f} away")

# %% alt="Heat map of five characters by twelve that may follow, as the bigram model has learned. After q u is far ahead of all others; after t mostly h or a space; after h e; after n a space, d or g; after a comma nearly always a space." caption="What the bigram model has learned"
lefts = [c for c in "qthn," if c in tokenizer.ids]
rights = [c for c in " adeghinortu" if c in tokenizer.ids]
table = torch.softmax(bigram.E.detach(), dim=-1)
chosen = table[tokenizer.encode(lefts)][:, tokenizer.encode(rights)]
plotting.heatmap(chosen, lefts, [c.replace(" ", "␣") for c in rights], top=1)

# %%
if "q" in lefts and "u" in rights:
    q, u = tokenizer.encode("qu")
    share = (pairs[q, u] / pairs[q].sum()).item()
    print(f"q is followed by u: {share:.2f} of the time in the text,")
    print(f"with {table[q, u]:.2f} in the trained table; q occurs")
    print(
        f"{pairs[q].sum().int().item()} times in {len(learned):,} characters"
    )

# %% [markdown]
# A batch changes only the rows of characters that occur in it, and *q* is rare. So its row has come
# only part of the way.

# %% [markdown]
# ### One head
#
# To look further back takes attention. The second rung has rows of d = 32, each a character and its
# position; one head that looks back; and the head from [chapter 5](05_language_model.py) that turns
# rows into logits. Nothing else: no residual stream, no norm, no feedforward layer. One head is
# multi-head attention with A = 1.

# %%
from torch import nn

from slp_transformer import InputEncoding, MultiHeadAttention, lm_head


class Attends(nn.Module):
    def __init__(self, num_heads):
        super().__init__()
        self.input = InputEncoding(vocab_size, N, d)
        self.attention = MultiHeadAttention(d, num_heads)

    def forward(self, ids):
        A = self.attention(self.input(ids), causal=True)
        return lm_head(A, self.input.tokens.E)


# %% [markdown]
# As in chapter 5, short rows learn faster from numbers larger than GPT-2's 0.02.


# %%
def louder(model, embedding):
    for W in embedding.parameters():
        W.data *= 5
    return model


torch.manual_seed(0)
one = Attends(num_heads=1)
climb("one head", louder(one, one.input))

# %% [markdown]
# ### Four heads
#
# The same matrices, cut into four heads with queries of 8 instead of one with 32. Not a parameter
# more, but now a position can look at several places at once, and keep apart what it found there.

# %%
torch.manual_seed(0)
four = Attends(num_heads=4)
climb("four heads", louder(four, four.input))

# %% [markdown]
# What do they look at? Here are the weights of the last position of a window, averaged over all
# windows of the held-out text.

# %% alt="Heat map of five heads by the eight characters of a window. All look mostly at the character itself. Nearly all of the rest goes to the character before it, and a little to the one before that; further back it is next to nothing." caption="How far back each head looks"
windows = next(TokenWindows(held_out, N).iter_eval(len(held_out))).inputs[0]
rows = []
for model in (one, four):
    X = model.input(windows)
    _, alpha = model.attention(X, causal=True, return_weights=True)
    rows.append(alpha[:, :, -1].mean(dim=0))
places = [f"{back} back" for back in range(N - 1, 0, -1)] + ["itself"]
names = ["one head", *(f"head {c} of four" for c in range(1, 5))]
plotting.heatmap(torch.cat(rows), names, places, top=1)

# %% [markdown]
# All of them spend most on the character itself. With no residual stream, a head is the only
# way for it to reach the top. One head has to blend the others into it. Four can differ: here one of
# the four looks back more than the single head does, two look back less, and one about as much.

# %% [markdown]
# ### Blocks
#
# Now the feedforward layer, the layer norms and the residual stream, and three such blocks one above
# the other: that is a `TransformerLM`.

# %%
torch.manual_seed(0)
small = TransformerLM(
    TransformerConfig(vocab_size, N, d, num_heads=4, num_blocks=3)
)
climb("blocks", louder(small, small.embedding))

# %% [markdown]
# ### The model that leaves it behind
#
# Eight characters are hardly more than a word. The last rung is the same model with more room: a
# window of 64, and rows twice as long. It makes 800 steps of 12 windows, which is twice as many
# characters as the others read, at half their learning rate; so not all that it gains is due to room.

# %%
torch.manual_seed(0)
large = TransformerLM(config)
climb("more room", louder(large, large.embedding), window=64, how=last)

# %%
models = dict(zip(final, [bigram, one, four, small, large], strict=True))
for name, loss in final.items():
    size = sum(W.numel() for W in models[name].parameters())
    costs = f"{loss:.2f} nats, {loss / log(2):.2f} bits a character"
    ppl = f"perplexity {perplexity(loss):4.1f}"
    print(f"{name:10} {size:7,} parameters: {costs}, {ppl}")
if arguments == ladder_options.settings([]):  # as the page shows it
    assert list(final.values()) == sorted(final.values(), reverse=True)

# %% alt="Held-out loss in nats per character over thousands of characters read, five curves that fall steeply and then slowly. From the highest at the end to the lowest: bigram, one head, four heads, blocks, more room." caption="The ladder: held-out loss of five models"
axes = {"x": "thousands of characters read", "y": "nats per character"}
ladder = plotting.lines(curves, **axes)
ladder

# %% [markdown]
# Each rung has a lower loss than the one before. What one head hands on is a single blend of the characters
# so far; four heads make four and keep them apart. The blocks add what they find to the stream, and
# work on it position by position in the feedforward layer. The last model's loss is measured in
# windows of 64, where most characters have more before them than in windows of 8. That, too, is
# what room is for. And it has read twice as many characters: where the curves end for the others, it
# is half way.
#
# ## On Tiny Shakespeare
#
# The same script climbed the same ladder on a million characters of Shakespeare's plays, the corpus
# that ladders like this one are usually climbed on. The first four rungs had 4,800 steps each, and
# the last 2,000, with four blocks and rows of 128. The losses are means over the whole last tenth of
# the text, cut into windows:
#
# | rung | nats | bits a character | perplexity |
# |---|---|---|---|
# | bigram | 2.492 | 3.60 | 12.1 |
# | one head | 2.392 | 3.45 | 10.9 |
# | four heads | 2.222 | 3.21 | 9.2 |
# | blocks | 2.049 | 2.96 | 7.8 |
# | more room | 1.766 | 2.55 | 5.8 |
#
# Command, machine and date are in `benchmarks/results/ladder`, with the curves and what each rung wrote. If
# that folder is there, the curves are drawn here.

# %% alt="The same five curves for Tiny Shakespeare, over up to 1.5 million characters read. The four small models flatten early, at 2.49, 2.39, 2.22 and 2.05; the last one starts slower, crosses them all and ends at 1.77, still falling." caption="The same ladder on Tiny Shakespeare"
import csv
from pathlib import Path

import slp_transformer

root = Path(slp_transformer.__file__).parents[1]
file, recorded = root / "benchmarks" / "results" / "ladder" / "losses.csv", {}
rows = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
for row in csv.DictReader(rows):
    point = float(row["thousands read"]), float(row["nats"])
    recorded.setdefault(row["rung"], []).append(point)
plotting.lines(recorded, **axes) if recorded else None

# %% [markdown]
# The last rung begins to write like this:
#
# ```
# lead, my look: lord, letter;
# That sterm an
# Reave my stamen storm born to week, and incaus,
# He with that a chearl, Hath hearl king the 'twell
# Tarms goody lords your soon that vrisk?
#
# ESCALER:
# What they
# ```
#
# Names in capitals, a colon, lines of verse, and mostly words: all of it from having been asked,
# again and again, for the next character.

# %% [markdown]
# ## Try it
#
# 1. Take `causal=True` out of `Attends`. What will the loss of the one head do, and its text?
#
#    <details><summary>What happens</summary>
#
#    It falls far below all the others: the head reads the answer, which is in its window. Its
#    text shows what that is worth.
#
#    </details>
#
# 2. In `Attends`, read `self.input.tokens(ids)` alone, without positions. What can four heads still
#    find?
#
#    <details><summary>What happens</summary>
#
#    They know what was there, but not where. They end near the one head.
#
#    </details>
#
# 3. Make it 8 heads, then 16, with the same number of parameters. Does it go on getting better?
#
#    <details><summary>What happens</summary>
#
#    Yes, but by less each time.
#
#    </details>
#
# 4. Let the text be short: `learned = stream[:20_000]`, and run with `--last-steps 1200`. What will
#    the last rung's two losses do?
#
#    <details><summary>What happens</summary>
#
#    On what it learns from, the loss goes on falling; on the held-out text it turns, and gets worse.
#    Let `climb` pass `early_stopping_patience=3` on to `train`, and it stops after three
#    evaluations without improvement.
#
#    </details>
#
# 5. Leave the two corrections out of `adamw`. What will the first step be?
#
#    <details><summary>What happens</summary>
#
#    Less than half as long: it is multiplied by $(1-\beta_1)/\sqrt{1-\beta_2}$, which is 0.45. The
#    assertion after the first step fails.
#
#    </details>

# %% [markdown]
# ## To remember
#
# - The loss of a word is $-\ln$ of the probability that the model gave it, and the loss of a text is
#   their mean, in nats.
# - The target is the next token: what is read, shifted by one. One pass scores all positions.
# - Perplexity is e to the power of the loss; it compares only models with the same tokens.
# - A step: loss, gradients, shorten them if they are long, move each weight a little against its
#   gradient.
# - Judge on text that was held out. On the ladder, attention, more heads, blocks, and more room and
#   reading each lowered that loss.

# %% [markdown]
# ## Test yourself
#
# 1. A model gives the words that came 1/2, 1/4 and 1/8. What are its loss and its perplexity?
#
#    <details><summary>Answer</summary>
#
#    The mean of 1, 2 and 3 times $\ln 2$: 1.39 nats. The perplexity is 4.
#
#    </details>
#
# 2. The loss of a model on its very first step is 9, and the vocabulary has 100 words. What is wrong?
#
#    <details><summary>Answer</summary>
#
#    An even guess costs $\ln 100\approx4.6$. Weights that are too large at the start make it sure of
#    wrong words.
#
#    </details>
#
# 3. Forget to shift the targets, so that each position has to name the word it reads. What will the
#    loss do?
#
#    <details><summary>Answer</summary>
#
#    Fall to nearly 0, since the answer is in the input. What it has learned is to copy.
#
#    </details>
#
# Next: [Dealing with scale](08_scale.py), on what a larger model costs and gains. A
# run that is saved, and continues after a power cut, is in the reference of
# <autoref identifier="slp_transformer.training.trainer.train">train</autoref>; guitar tab is learned in
# [chapter 12](12_guitar_tab.py).
