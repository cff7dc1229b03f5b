# %% [markdown] tags=["path"]
# # 7 · Training
#
# Sections 8.7 (2025-26 drafts) and 7.7 (August 2026 draft)
#
# Train a model to predict the next token: the loss, one step, the loop, and five models to compare.
#
# A head that looks back, more heads, whole blocks, more room: how far down does each take the loss? You will be able to
# compute cross-entropy by hand; say why one pass gives a loss at every position; and compare five models, from a table
# of bigrams to a Transformer. In the whole chapter you also compute perplexity, and do a training step yourself. Read
# first: [The language model](05_language_model.py). About 70 minutes; the comparison can wait for another day.

# %% [markdown]
# ## One word
#
# A model has read *the guitarist tuned the*, and gives four words the probabilities below. The next word is
# *guitar*. How wrong was the model?
#
# The truth is a distribution too, with all probability on the word that came next: a one-hot row y. The
# prediction, which chapters 5 and 6 called y, is ŷ. Cross-entropy compares the two:
#
# <span class="eq" id="eq-ce-full">ce-full · 7.53 in the Aug 2026 draft</span>
#
# $$
# L_{CE}(\hat{\mathbf y}_t,\mathbf y_t)=-\sum_{w\in V}\mathbf y_t[w]\,\log\hat{\mathbf y}_t[w]
# \tag{7.53}
# $$

# %% alt="Three rows over the words string, guitar, drum, moon. The model's ŷ: 0.5, 0.25, 0.125, 0.125. The truth y: 0, 1, 0, 0. The loss, minus log ŷ: 0.693, 1.386, 2.079, 2.079." caption="A prediction, the truth, and the loss that each word would cost"
from math import exp, log, prod

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
# Three of the four terms are 0. What remains is the negative log probability of the word that came next. (Why the
# logarithm? A text's probability is a product over its words; the logarithm makes it a sum, a loss for each word.)
#
# <span class="eq" id="eq-ce">ce · prose of 8.7 · 7.54</span>
#
# $$
# L_{CE}(\hat{\mathbf y}_t,\mathbf y_t)=-\log\hat{\mathbf y}_t[w_{t+1}]
# \tag{7.54}
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
# The logarithm is the natural one, so the unit is the *nat*. A probability of 1 costs nothing, and each time
# that the probability is halved, the loss grows by $\ln 2\approx 0.69$:

# %% alt="A falling curve: minus log of ŷ, from 4.6 nats at a probability of 0.01, through 0.69 at one half, to 0 at 1." caption="The loss at a word, by its probability"
chances = [i / 100 for i in range(1, 101)]
costs = [-torch.tensor(p).log() for p in chances]
plotting.lines({"−log ŷ": costs}, x="ŷ of the next word", y="nats", at=chances)

# %% [markdown]
# ## A mean over positions
#
# A sum grows with the text. So the loss of a text with T words to predict is the *mean* of theirs.
#
# <span class="eq" id="eq-ce-mean">ce-mean · section 8.7 · 7.55</span>
#
# $$
# L=\frac1T\sum_{t=1}^{T}-\log\hat{\mathbf y}_t[w_{t+1}]
# \tag{7.55}
# $$
#
# A loop from logits to loss:

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

# %% [markdown] tags=["more"] gist="Why a loss takes logits: with a softmax first, it overflows"
# Why does `cross_entropy` take logits, and not probabilities? What should a word cost whose logit is 200 below the
# other's?

# %%
u, first = torch.tensor([[0.0, 200.0]]), torch.tensor([0])
print("by hand:", loss_by_hand(u, first).item())
print("from the logits:", next_token_loss(u, first).item())

# %% [markdown]
# <div class="admonition note" markdown="0"><p class="admonition-title">Where the code leaves the book</p><p>Taken literally, the softmax comes first and the logarithm second. In between, $e^{200}$ overflows and a small probability becomes 0. The logarithm of a softmax needs neither: it is $u_w-\log\sum_v e^{u_v}$, with the largest logit subtracted first. Positions whose target is <code>IGNORE_INDEX</code> (padding) do not count in the mean; the book's texts have none.</p></div>

# %% [markdown] tags=["more"] gist="The truth minus the prediction: watch it lower the loss step by step"
# ## The gradient of the loss
#
# In which direction should the logits move to lower the loss? For a single position it is the truth minus the
# prediction, $\mathbf y-\hat{\mathbf y}$.

# %%
u = y_hat.log().requires_grad_()  # logits that give ŷ
next_token_loss(u[None], torch.tensor([1])).backward()
torch.testing.assert_close(-u.grad, y - y_hat)

# %% [markdown]
# Take a few steps, each of which adds y − ŷ to the logits. How does ŷ change, and how much does each step still
# lower the loss?

# %% alt="Two rows over the words string, guitar, drum, moon. The model's ŷ: 0.5, 0.25, 0.125, 0.125. The truth minus ŷ: −0.5, 0.75, −0.125, −0.125." caption="The prediction, and the direction in which its logits should move"
states, u = {}, y_hat.log()
for step in range(9):
    y_now = torch.softmax(u, dim=0)
    p, loss = y_now[1], -y_now[1].log()
    says = f"Steps: {step}. ŷ of guitar is {p:.2f}: {loss:.2f} nats."
    rows = torch.stack([y_now, y - y_now])
    picture = plotting.heatmap(rows, ["ŷ", "y − ŷ"], words, top=1, decimals=3)
    states[step] = picture, says
    u = u + (y - y_now)
plotting.interactive_steps("Steps", states)

# %% [markdown]
# The logit of the word that came next goes up, and each of the others goes down by the probability that it
# was given. The better the prediction, the smaller the next step; once it is right, nothing changes.

# %% [markdown]
# ## Teacher forcing
#
# At every position the model reads the *true* words so far, whatever it would have guessed, and predicts the
# next one. So the targets are the inputs, shifted by one place:

# %%
from slp_transformer.data.batches import TokenWindowSource

text = "the guitarist tuned the string because it was flat".split()
vocabulary = sorted(set(text))
stream = torch.tensor([vocabulary.index(word) for word in text])
N = len(text) - 1
batch = next(TokenWindowSource(stream, N).iter_eval(batch_size=1))
# inputs[0] is the ids [1 × N], the model's only input; its row is what the model reads
reads, targets = batch.inputs[0][0], batch.targets[0]
assert reads.tolist() == stream[:-1].tolist()
assert targets.tolist() == stream[1:].tolist()

# %% [markdown]
# Under the causal mask, a prediction in the upper row may use the words of the lower row that come before it in
# the text.

# %% alt="Eight words that are read are in the lower row, eight words to predict in the upper row, shifted by one: “guitarist” is above “the”, “tuned” above “guitarist”, and so on to “flat” above “was”. Lines lead to each word from the word below it and from all words to its left; the four lines to “string” stand out." caption="Each word is predicted from those before it"
from slp_transformer import causal_mask

allowed = causal_mask(N) == 0
read_words = [vocabulary[w] for w in reads]
target_words = [vocabulary[w] for w in targets]
plotting.flow(allowed, rows=target_words, columns=read_words, row=3)

# %% [markdown]
# This is why training is fast: eight predictions take one pass, since each row sees only its own context.

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
# Each position has its own loss (Fig. 8.17 · 7.22). This model is untrained, so each is near
# $\ln 8\approx2.08$, that of a uniform guess among eight words:

# %% alt="Bars of the loss at each of eight positions, minus the logarithm of the probability of the word to predict there. The model is untrained, and all of them are near 2.1 nats." caption="The loss at each position, whose mean is the loss" figure="loss-by-position"
each = F.cross_entropy(U, targets, reduction="none").detach()
mean = next_token_loss(U, targets).detach()
torch.testing.assert_close(each.mean(), mean)
print(f"mean {mean:.3f} nats; uniform guess {log(8):.3f}")
plotting.bars(each, target_words, title="−log ŷ of the next word", decimals=2)

# %% [markdown]
# A corpus is one long sequence of tokens. A batch is windows cut from it at random; the targets are the same
# windows, one token later.

# %%
from slp_transformer.data.batches import draw_random_windows

luck = torch.Generator().manual_seed(7)
x, shifted = draw_random_windows(stream, 4, 2, luck)
for row, following in zip(x, shifted, strict=True):
    print("reads:   ", *(vocabulary[w] for w in row))
    print("predicts:", *(vocabulary[w] for w in following))
plotting.show_source(draw_random_windows)

# %% [markdown] tags=["more"] gist="The probability of a text, perplexity, and bits per character"
# ## Perplexity
#
# By the chain rule, the probability of a text is the product of the probabilities that the model gave to its words.
# That soon gets too small for any float, so we work with its logarithm:
#
# <span class="eq" id="eq-likelihood">likelihood · 7.56 in the Aug 2026 draft</span>
#
# $$
# \log P(w_{1:T})=\log\prod_{t=1}^{T}P(w_t\mid w_{<t})=\sum_{t=1}^{T}\log P(w_t\mid w_{<t})
# \tag{7.56}
# $$

# %%
chances = [1e-4, 2e-4, 5e-6, 1e-7]  # of four words, one after the other
likelihood = prod(chances)
print(f"P = {likelihood:.0e}, log P = {sum(map(log, chances)):.2f}")
assert prod(chances * 20) == 0 > sum(map(log, chances * 20))

# %% [markdown]
# Each further word makes a text less probable, whatever the model. Perplexity removes the effect of length:
# it is the inverse of the geometric mean of the words' probabilities.
#
# <span class="eq" id="eq-perplexity">perplexity · 7.57 in the Aug 2026 draft</span>
#
# $$
# \mathrm{PPL}(w_{1:T})=P(w_{1:T})^{-\frac1T}
# \tag{7.57}
# $$
#
# It is also e to the power of the loss, since $P^{-1/T}=\exp\bigl(-\tfrac1T\log P\bigr)$ and $-\tfrac1T\log P$ is the
# mean of [(7.55)](#eq-ce-mean).

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
# Lower is better, and 1 is the best possible. Perplexity can be read as a number of choices: a uniform guess
# among 65 characters has a perplexity of 65.

# %%
even = next_token_loss(torch.zeros(10, 65), torch.arange(10)).item()
print(f"a uniform guess: {even:.2f} nats, perplexity {perplexity(even):.1f}")

# %% [markdown]
# Character models are usually compared in *bits per character*: the loss in logarithms to base 2.
# Unlike perplexity per token, it can be compared between vocabularies, as long as the sum is divided by the
# number of characters, whatever the tokens were. Suppose the four words above have 23 characters, spaces
# included:

# %%
bits = -log(likelihood) / log(2)
print(f"{bits:.1f} bits: {bits / 4:.1f} a word, {bits / 23:.2f} a character")
by_character = perplexity(-log(likelihood) / 23)
print(f"perplexity {ppl:,.0f} a word, {by_character:.1f} a character")

# %% [markdown]
# <div class="admonition note" markdown="0"><p class="admonition-title">Where the code leaves the book</p><p>In <a href="#eq-likelihood">(7.56)</a> the first word has a probability too. A model that reads a stream has nothing to predict its first token from, so the package's <code>mean_loss</code> scores all the others. It also cuts the stream into windows that do not overlap. The first token predicted in each window has a context of one token, so the loss is a little higher than it would be with the longest possible context everywhere.</p></div>

# %% [markdown] tags=["more"] gist="AdamW, clipping and the learning rate by hand: a step that equals the package’s"
# ## One step, spelled out
#
# Training repeats one step: read a batch, compute the loss, compute the gradient of the loss with
# respect to each weight, and move all weights a little in the opposite direction.
#
# How far? Plain gradient descent moves each weight by the same multiple of its gradient. AdamW (Loshchilov and
# Hutter 2019, not in the book) keeps two running averages for each weight, of its gradients g and of their
# squares:
#
# $$
# \begin{aligned}
# m&\leftarrow\beta_1 m+(1-\beta_1)\,g\\
# v&\leftarrow\beta_2 v+(1-\beta_2)\,g^2
# \end{aligned}
# $$
#
# Both start at 0, so in step t they are too small, by the factors $1-\beta_1^t$ and $1-\beta_2^t$.
# Dividing by these factors gives $\hat m$ and $\hat v$, and the update is
#
# $$
# W\leftarrow W-\eta\left(\frac{\hat m}{\sqrt{\hat v}+\epsilon}+\lambda W\right)
# $$
#
# So $\hat m$ is where the gradients point on average, and $\sqrt{\hat v}$ how large they are. A weight whose
# gradients agree moves by about η, the learning rate, whatever their scale; one whose gradients cancel hardly moves. The small ε avoids a division by 0. The last term is the weight decay, which pulls weights toward 0;
# it is applied to matrices only. One weight, three steps:

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
# The first step is 0.1, plus the decay, although the gradient was 3. The third gradient has the opposite sign,
# but the averages keep the weight moving in the old direction.
#
# Two more precautions. An unusual batch can have a huge gradient, so a gradient whose norm over all weights
# is above 1 is scaled down to norm 1. And the learning rate changes during the run: it warms up while the
# averages are still unreliable, and then decays to a tenth.

# %% alt="The learning rate over 1,000 steps: a straight rise to 0.003 in the first 50, then half a cosine down to 0.0003." caption="The learning rate over a run"
from slp_transformer.training.schedules import cosine_schedule
from slp_transformer.training.train_config import TrainConfig

thousand = TrainConfig(steps=1000, learning_rate=3e-3)
places = [0, *range(49, 1000, 19)]
rates = {"η": [thousand.learning_rate_at(step) for step in places]}
plotting.lines(rates, x="step", y="learning rate", at=places)

# %%
plotting.show_source(cosine_schedule)

# %% [markdown]
# All of this together is one training step for a whole model.


# %%
def step_by_hand(model, batch, memory, step, settings):
    loss = next_token_loss(model(*batch.inputs), batch.targets)
    gradients = torch.autograd.grad(loss, list(model.parameters()))
    norm = sum(g.square().sum() for g in gradients).sqrt()
    scale = min(1.0, settings.max_grad_norm / norm)
    eta = settings.learning_rate_at(step)
    for i, W in enumerate(model.parameters()):
        g, (m, v) = gradients[i] * scale, memory[i]
        decay = settings.weight_decay if W.dim() == 2 else 0.0
        W_new, m, v = adamw(W.data, g, m, v, step + 1, eta, decay)
        W.data = W_new
        memory[i] = m, v
    return loss.detach(), norm


# %% [markdown]
# Five such steps on the small model, and five of the package's on a copy of it:

# %%
from copy import deepcopy

from slp_transformer.training import training_step
from slp_transformer.training.optimizers import make_optimizer

twin = deepcopy(model)
settings = TrainConfig(steps=60, batch_size=1, learning_rate=0.01)
memory = [(0.0, 0.0) for _ in model.parameters()]
optimizer = make_optimizer(twin, settings)
for step in range(5):
    mine, norm = step_by_hand(model, batch, memory, step, settings)
    cpu = torch.device("cpu")
    theirs = training_step(twin, batch, optimizer, step, settings, cpu)
    print(f"step {step}: loss {mine:.4f}, gradient norm {norm:.2f}")
    torch.testing.assert_close(mine, theirs)

# %%
for W, theirs in zip(model.parameters(), twin.parameters(), strict=True):
    torch.testing.assert_close(W, theirs)
lines = ["summed", "(share", "nn.utils", "group[", "optimizer.step"]
plotting.show_source(training_step, only=lines)

# %% [markdown]
# (`share` is the loss of a part, where a batch is read in parts, and `world_size` the number of processes: here the
# whole, and one.)

# %% [markdown]
# ## The loop
#
# The training loop draws a batch, makes a step, and repeats. A step computes the loss and its gradient, and AdamW
# moves each weight a little against it.

# %%
from copy import deepcopy

from slp_transformer.training import train, training_step
from slp_transformer.training.optimizers import make_optimizer
from slp_transformer.training.train_config import TrainConfig

cpu = torch.device("cpu")
settings = TrainConfig(steps=60, batch_size=1, learning_rate=0.01)


def train_by_hand(model, source, settings):
    luck = torch.Generator().manual_seed(settings.seed)
    optimizer = make_optimizer(model, settings)
    for step in range(settings.steps):
        batch = source.draw(settings.batch_size, luck)
        training_step(model, batch, optimizer, step, settings, cpu)


# %%
twin = deepcopy(model)
train_by_hand(twin, TokenWindowSource(stream, N), settings)
(record,) = train(model, stream, stream, settings)  # also measures losses
for W, theirs in zip(model.parameters(), twin.parameters(), strict=True):
    torch.testing.assert_close(W, theirs)
predicted = [vocabulary[w] for w in model(reads).argmax(dim=-1)]
assert predicted == target_words
print(f"loss {record.val_loss:.3f}; it predicts:", *predicted)

# %% [markdown]
# The model has memorized its one sentence.
# (<autoref identifier="slp_transformer.training.trainer.train">train</autoref> also measures the validation loss,
# saves checkpoints, resumes and stops early.)

# %% [markdown]
# ## Five models, step by step
#
# We build the model up from almost nothing, in the order of Andrej Karpathy's lecture *Let's build GPT* (2023), and
# compare the validation losses of five versions. All read the same number of characters of *Moby-Dick* at the same
# learning rate. (Put the path of a text of your own into `corpus`.) Which step will gain most?

# %%
from slp_transformer.data import iter_documents, train_tokenizer

corpus, budget = "moby-dick", 614_400  # characters that each model reads
text = "\n\n".join(iter_documents(corpus))
tokenizer = train_tokenizer([text], token_type="characters")
stream = torch.tensor(tokenizer.encode(text))
cut = len(stream) * 9 // 10
learned, held_out = stream[:cut], stream[cut:]
vocab_size, N, d = tokenizer.vocab_size, 8, 32
print(f"{len(learned):,} characters to train on, {len(held_out):,} held out")
print(f"a uniform guess among {vocab_size}: {log(vocab_size):.2f} nats")

# %% [markdown]
# The first four models read windows of 8 characters, 64 at a time. After training, each writes 200 characters, all
# with the same random numbers: where the texts differ, the models differ.

# %%
from textwrap import fill

from slp_transformer.sampling import sample


@torch.no_grad()
def write(model, window, length=200):
    luck = torch.Generator().manual_seed(7)
    ids = torch.tensor(tokenizer.encode(" "))
    for _ in range(length):
        u = model(ids[-window:])[-1:]
        ids = torch.cat([ids, sample(u, luck)])
    lines = tokenizer.decode(ids).strip().splitlines()
    return "\n".join(fill(line, 72) for line in lines)


# %%
curves, final = {}, {}


def compare(name, model, window=N, batch_size=64):
    read = batch_size * window  # characters in a step
    how = {"steps": budget // read, "batch_size": batch_size}
    how |= {"learning_rate": 1e-2, "eval_interval": budget // read // 10}
    records = train(model, learned, held_out, **how, sequence_length=window)
    curves[name] = [(r.step * read / 1000, r.val_loss) for r in records]
    final[name] = records[-1].val_loss
    print(f"{name}: {final[name]:.3f} nats")
    print(write(model, window))


# %% [markdown]
# ### A bigram model
#
# A *bigram* model sees only the last character. It has a row of logits for each, a matrix [|V|×|V|]: an
# embedding with rows as long as the vocabulary.

# %%
from slp_transformer.embedding import TokenEmbedding

torch.manual_seed(0)
bigram = TokenEmbedding(vocab_size, vocab_size)
compare("bigram", bigram)

# %% [markdown] tags=["more"] gist="The same table by counting; what may follow q, t, h or n"
# Such a model needs no training: simply count how often each character follows each. Training moves toward the
# same probabilities, since they have the lowest loss on the training text.

# %%
pairs = torch.zeros(vocab_size, vocab_size)
for a, b in zip(learned.tolist(), learned[1:].tolist(), strict=False):
    pairs[a, b] += 1
counted = (pairs + 0.1) / (pairs + 0.1).sum(dim=-1, keepdim=True)
by_counting = -counted[held_out[:-1], held_out[1:]].log().mean()
print(f"trained {final['bigram']:.3f} nats, counted {by_counting:.3f}")
often = pairs.sum(dim=-1) > len(learned) / 50
off = (torch.softmax(bigram.E, dim=-1) - counted)[often].abs().max()
print(f"after frequent characters, they differ by at most {off:.2f}")

# %% alt="Heat map of five characters by twelve that may follow, as learned by the bigram model. After q mostly u; after t mostly h or a space; after h most often e; after n a space, d or g; after a comma nearly always a space." caption="What the bigram model has learned"
lefts = [c for c in "qthn," if c in tokenizer.ids]
rights = [c for c in " adeghinortu" if c in tokenizer.ids]
table = torch.softmax(bigram.E.detach(), dim=-1)
chosen = table[tokenizer.encode(lefts)][:, tokenizer.encode(rights)]
plotting.heatmap(chosen, lefts, [c.replace(" ", "␣") for c in rights], top=1)

# %% [markdown]
# ### One head
#
# To look further back, a model needs attention. Here each character is a row of d = 32, with its position added; one
# head (A = 1) looks back; and [chapter 5](05_language_model.py)'s head turns rows into logits. There is no residual
# stream, no norm and no feedforward layer.

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
# As in [chapter 5](05_language_model.py), the embeddings of a narrow model start five times as large.


# %%
def scale_up(model, embedding):
    for W in embedding.parameters():
        W.data *= 5
    return model


torch.manual_seed(0)
one = Attends(num_heads=1)
compare("one head", scale_up(one, one.input))

# %% [markdown]
# ### Four heads
#
# Now the same matrices are split into four heads, with queries of size 8 instead of 32: as many parameters, but a
# position can look at several places at once.

# %%
torch.manual_seed(0)
four = Attends(num_heads=4)
compare("four heads", scale_up(four, four.input))

# %% [markdown] tags=["more"] gist="How far back each head looks"
# How far back will the heads look: one character, four, eight? Here are the attention weights of the last position of
# a window, averaged over the held-out text.

# %% alt="Heat map of five heads by the eight characters of a window. All look mostly at the character itself. Most of the rest goes to the character before it, and a little to the one before that; further back there is almost nothing." caption="How far back each head looks"
(batch,) = TokenWindowSource(held_out, N).iter_eval(len(held_out))
windows = batch.inputs[0]
rows = []
for model in (one, four):
    X = model.input(windows)
    _, alpha = model.attention(X, causal=True, return_weights=True)
    rows.append(alpha[:, :, -1].mean(dim=0))
places = [f"{back} back" for back in range(N - 1, 0, -1)] + ["itself"]
names = ["one head", *(f"head {c} of four" for c in range(1, 5))]
weights = torch.cat(rows)
print("on itself:", *(f"{w:.2f}" for w in weights[:, -1]))
plotting.heatmap(weights, names, places, top=1)

# %% [markdown]
# All of them look mainly at the character itself: without a residual stream, a head is the only way for it to reach
# the output.

# %% [markdown]
# ### Blocks
#
# The fourth model adds the feedforward layer, layer norms and the residual stream, in three blocks: it is a
# `TransformerLM`.

# %%
torch.manual_seed(0)
small = TransformerLM(
    TransformerConfig(vocab_size, N, d, num_heads=4, num_blocks=3)
)
compare("blocks", scale_up(small, small.embedding))

# %% [markdown]
# ### More room
#
# Eight characters are little more than a word. The last model has rows twice as wide and reads windows of 64, 8 in
# each step instead of 64 of 8.

# %%
torch.manual_seed(0)
large = TransformerLM(
    TransformerConfig(vocab_size, 64, 2 * d, num_heads=4, num_blocks=3)
)
large = scale_up(large, large.embedding)
compare("more room", large, window=64, batch_size=8)

# %%
models = dict(zip(final, [bigram, one, four, small, large], strict=True))
for name, loss in final.items():
    size = sum(W.numel() for W in models[name].parameters())
    costs = f"{loss:.2f} nats, {loss / log(2):.2f} bits a character"
    ppl = f"perplexity {exp(loss):4.1f}"
    print(f"{name:10} {size:7,} parameters: {costs}, {ppl}")
assert list(final.values()) == sorted(final.values(), reverse=True)

# %% alt="Validation loss in nats per character over thousands of characters read, five curves that fall steeply and then slowly. From the highest at the end to the lowest: bigram, one head, four heads, blocks, more room." caption="Validation loss of five models that read the same number of characters"
axes = {"x": "thousands of characters read", "y": "nats per character"}
plotting.lines(curves, **axes)

# %% [markdown]
# [Each model](../benchmarks/results/chapter_seeds/README.md) has a lower loss than the one before; the blocks gain
# most. One head passes on a single mixture of the characters so far; four heads pass on four. The three blocks bring
# the residual stream, the norms and the feedforward layers, and six times as many parameters. Where two things
# changed at once, these runs cannot say which of them helped.

# %% [markdown]
# ## What dropout is for
#
# A model that reads a short text again and again learns it by heart: the training loss goes on falling, the validation
# loss rises. *Dropout* sets numbers to 0 in each training step, each with probability p: in X, among the weights of
# attention, and in what each sublayer adds. So no prediction can rest on a few numbers that happen to fit together. The others are divided by 1 − p, which keeps the mean; after training nothing is dropped. [On a short
# text](../benchmarks/results/reasons/README.md) it helped about as much as stopping early; on a long one it only slowed
# learning.

# %% [markdown] tags=["more"] gist="Five models on a million characters of Shakespeare, and what the last one writes"
# ## On Tiny Shakespeare
#
# Here are the first four models and a larger fifth (four blocks, rows of 128, a quarter more text read) on [a million
# characters](../benchmarks/results/ladder/README.md) of Shakespeare's plays. The order is the same, and more room gains
# more. A uniform guess among its 65 characters costs 4.17 nats.

# %% alt="The same five curves for Tiny Shakespeare, over up to 1.5 million characters read. The four small models flatten early, at 2.49, 2.39, 2.22 and 2.05; the last one starts more slowly, crosses them all and ends at 1.77, still falling." caption="Validation loss of the five models on Tiny Shakespeare"
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
# The sample of the last model begins like this:
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
# Names in capitals, a colon, lines of verse and many real words: all of it learned by predicting the next
# character.

# %% [markdown] tags=["more"] gist="Changes to try, each with its outcome folded"
# ## Try it
#
# On the page [Break it](../docs/break-it.md) chapter 5's model is trained with one line wrong, for example
# with [targets that are not shifted](../docs/break-it.md#mistake-targets-not-shifted) or [dropout
# that stays on](../docs/break-it.md#mistake-dropout-that-stays-on). Which of these would you
# notice?
#
# 1. Remove `causal=True` from `Attends`. What will happen to the loss of the one head, and to its text?
#
#    <details><summary>What happens</summary>
#
#    The head can read the answer, which is in its window at all positions but the last: over seeds 0 to 2 the loss
#    falls to 0.37 or 0.38. When it writes, there is no answer to read: the same few letters over and over.
#
#    </details>
#
# 2. In `Attends`, read `self.input.tokens(ids)` alone, without positions. What can four heads still
#    find?
#
#    <details><summary>What happens</summary>
#
#    Which characters came before the current one, but not in which order.
#
#    </details>
#
# 3. Try 8 heads, then 16, with the same number of parameters. Does the loss keep falling?
#
#    <details><summary>What happens</summary>
#
#    It does, a little: over seeds 0 to 2 it is 2.20 or 2.21 with 4 heads, 2.18 with 8, and 2.15 or 2.16 with 16,
#    whose queries have 2 numbers.
#
#    </details>
#
# 4. Shorten the training text with `learned = stream[:5_000]`, and let `compare` print `r.train_loss` of each
#    record `r`, too. What will happen to the training loss and to the validation loss of the last model?
#
#    <details><summary>What happens</summary>
#
#    What the model memorizes of so short a text lowers its training loss alone: watch where the two part. If
#    `compare` passes `early_stopping_patience=3` on to `train`, training stops after three evaluations without
#    improvement.
#
#    </details>
#
# 5. Leave the two corrections out of `adamw`. What will the first step be?
#
#    <details><summary>What happens</summary>
#
#    Shorter: all but the decay is multiplied by $(1-\beta_1)/\sqrt{1-\beta_2}$, which is 0.45. The
#    assertion after the first step fails.
#
#    </details>

# %% [markdown]
# ## To remember
#
# - The loss of a word is $-\ln$ of its probability, and the loss of a text is the mean over its words, in nats.
# - The target is the next token: the input, shifted by one. One pass gives the loss at every position.
# - Perplexity is e to the power of the loss; compare models by it only if their tokens are the same *(whole chapter)*.
# - A step computes the loss and its gradient, and moves each weight a little against it.
# - Judge a model on held-out text.

# %% [markdown]
# ## Test yourself
#
# 1. A model gives the words that came next the probabilities 1/2, 1/4 and 1/8. What are its loss and its
#    perplexity *(whole chapter)*?
#
#    <details><summary>Answer</summary>
#
#    The mean of 1, 2 and 3 times $\ln 2$: 1.39 nats. The perplexity is 4.
#
#    </details>
#
# 2. The loss of a model at its very first step is 9, and the vocabulary has 100 words. What is wrong?
#
#    <details><summary>Answer</summary>
#
#    A uniform guess costs $\ln 100\approx4.6$. Too large initial weights make the model sure of wrong words.
#
#    </details>
#
# 3. You forget to shift the targets, so that each position predicts the word it reads. What will the
#    loss do?
#
#    <details><summary>Answer</summary>
#
#    It falls to nearly 0, since the answer is in the input. The model has learned to copy.
#
#    </details>
#
# Next: [Dealing with scale](08_scale.py), on what a larger model costs and gains; on the short path,
# [guitar tablature](12_guitar_tab.py). To save a run and continue it
# after an interruption, see the reference of
# <autoref identifier="slp_transformer.training.trainer.train">train</autoref>.
