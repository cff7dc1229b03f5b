"""Attempts by a reader who knew the list of mistakes: those for which it had no name at first."""

import math

import torch
import torch.nn.functional as F
from planted import wrong

from slp_transformer import check


def sol_mask(N):
    return check.causal_mask.solve(N)


def sol_att(Q, K, V, M):
    return check.attention.solve(Q, K, V, M)


def sol_split(X, A):
    return check.split_heads.solve(X, A)


def sol_join(heads):
    return check.join_heads.solve(heads)


@wrong("weighted_sum", "row after", "the loop reuses j shifted by one")
def _(alpha_i, rows):
    total = torch.zeros(rows.shape[1])
    for j in range(len(alpha_i)):
        total = total + alpha_i[j] * rows[min(j + 1, len(rows) - 1)]
    return total


@wrong(
    "weighted_sum",
    "begun with a row",
    "the total starts at rows[0] instead of zero, so that row 0 c",
)
def _(alpha_i, rows):
    total = rows[0].clone()
    for j in range(len(alpha_i)):
        total = total + alpha_i[j] * rows[j]
    return total


@wrong(
    "simple_attention", "weights reversed", "the softmax's weights meet the rows in reverse order"
)
def _(X, i):
    past = X[: i + 1]
    a = torch.softmax(past @ X[i], 0)
    return a.flip(0) @ past


@wrong("simple_attention", "near tokens alone", "a window")
def _(X, i):
    past = X[max(0, i - 1) : i + 1]
    return torch.softmax(past @ X[i], 0) @ past


@wrong("simple_attention", "all ask", "softmax over 'past @ past.T' of all rows, averaged over the")
def _(X, i):
    past = X[: i + 1]
    return (torch.softmax(past @ past.T, -1) @ past).mean(0)


@wrong("simple_attention", "distances", "the scores are −distances instead of products")
def _(X, i):
    past = X[: i + 1]
    return torch.softmax(-((past - X[i]) ** 2).sum(1), 0) @ past


@wrong("simple_attention", "first token left out", "the first token is skipped")
def _(X, i):
    past = X[1 : i + 1] if i > 0 else X[:1]
    return torch.softmax(past @ X[i], 0) @ past


@wrong("ffn", "cut above", "ReLU upside down")
def _(x, W_1, b_1, W_2, b_2):
    return torch.clamp(x @ W_1 + b_1, max=0) @ W_2 + b_2


@wrong("ffn", "squared", "the ReLU is squared, as in Primer")
def _(x, W_1, b_1, W_2, b_2):
    return torch.relu(x @ W_1 + b_1) ** 2 @ W_2 + b_2


@wrong("ffn", "softplus", "softplus in place of ReLU")
def _(x, W_1, b_1, W_2, b_2):
    return F.softplus(x @ W_1 + b_1) @ W_2 + b_2


@wrong("ffn", "+ b_1 twice", "b_1 is added twice")
def _(x, W_1, b_1, W_2, b_2):
    h = x @ W_1 + b_1
    return torch.relu(h + b_1) @ W_2 + b_2


@wrong("layer_norm", "median", "the median is subtracted in place of the mean")
def _(x, gamma, beta):
    m = x.median(-1, keepdim=True).values
    s = x.std(-1, keepdim=True, correction=0)
    return gamma * (x - m) / s + beta


@wrong("swiglu", "b_1 once", "b_1 is forgotten inside the sigmoid only")
def _(x, W_1, b_1, W_2, b_2, W_3, b_3):
    g = (x @ W_1 + b_1) * torch.sigmoid(x @ W_1)
    return (g * (x @ W_2 + b_2)) @ W_3 + b_3


@wrong("swiglu", "minus in the sigmoid", "the sign in the sigmoid is reversed")
def _(x, W_1, b_1, W_2, b_2, W_3, b_3):
    g = x @ W_1 + b_1
    return (g / (1 + torch.exp(g)) * (x @ W_2 + b_2)) @ W_3 + b_3


@wrong("swiglu", "tanh", "tanh gate in place of Swish")
def _(x, W_1, b_1, W_2, b_2, W_3, b_3):
    return (torch.tanh(x @ W_1 + b_1) * (x @ W_2 + b_2)) @ W_3 + b_3


@wrong("swiglu", "b_2 too late", "b_2 is multiplied in after the product")
def _(x, W_1, b_1, W_2, b_2, W_3, b_3):
    return (F.silu(x @ W_1 + b_1) * (x @ W_2) + b_2) @ W_3 + b_3


@wrong("block", "norm_1 twice", "norm_1 is applied twice")
def _(X, attention, ffn, norm_1, norm_2):
    O = X + attention(norm_1(norm_1(X)))
    return O + ffn(norm_2(O))


@wrong("block", "+ ffn(norm_2(O)) twice", "ffn's output is added twice")
def _(X, attention, ffn, norm_1, norm_2):
    O = X + attention(norm_1(X))
    h = ffn(norm_2(O))
    return O + h + h


@wrong("causal_mask", "then mirrored", "anti-diagonal")
def _(N):
    return torch.triu(torch.full((N, N), float("-inf")), diagonal=1).flip(1)


@wrong("causal_mask", "first row left out", "the loop begins at 1")
def _(N):
    M = torch.zeros(N, N)
    for i in range(1, N):
        M[i, i + 1 :] = float("-inf")
    return M


@wrong("attention", "values scaled", "V is scaled by √d_k as well")
def _(Q, K, V, mask):
    d = K.shape[-1]
    return torch.softmax(Q @ K.T / d**0.5 + mask, -1) @ (V / d**0.5)


@wrong("attention", "softmax again", "the softmax is taken twice")
def _(Q, K, V, mask):
    A = torch.softmax(Q @ K.T / K.shape[-1] ** 0.5 + mask, -1)
    return torch.softmax(A, -1) @ V


@wrong("join_heads", "last alone", "the tokens are reversed... only the last head is returned")
def _(heads):
    return heads[-1]


@wrong("join_heads", "largest", "max over heads")
def _(heads):
    return heads.amax(0)


@wrong("multi_head_attention", "last head left out", "one head is missed")
def _(X, W_Q, W_K, W_V, W_O, A):
    Q, K, V = (sol_split(X @ W, A) for W in (W_Q, W_K, W_V))
    M = sol_mask(len(X))
    h = torch.zeros_like(V)
    for c in range(A - 1):
        h[c] = sol_att(Q[c], K[c], V[c], M)
    return sol_join(h) @ W_O


@wrong("multi_head_attention", "keys of the next head", "keys are read from the next head")
def _(X, W_Q, W_K, W_V, W_O, A):
    Q, K, V = (sol_split(X @ W, A) for W in (W_Q, W_K, W_V))
    M = sol_mask(len(X))
    return sol_join(torch.stack([sol_att(Q[c], K[(c + 1) % A], V[c], M) for c in range(A)])) @ W_O


@wrong("multi_head_attention", "values of head 0", "the values are those of head 0 for all heads")
def _(X, W_Q, W_K, W_V, W_O, A):
    Q, K, V = (sol_split(X @ W, A) for W in (W_Q, W_K, W_V))
    M = sol_mask(len(X))
    return sol_join(torch.stack([sol_att(Q[c], K[c], V[0], M) for c in range(A)])) @ W_O


@wrong("one_hot_lookup", "all but w", "zeros and ones swapped")
def _(w, E):
    o = torch.ones(len(E))
    o[w] = 0
    return o @ E


@wrong("input_encoding", "+ P[places] twice", "P is added twice")
def _(ids, E, P, start):
    p = P[start : start + len(ids)]
    return E[ids] + p + p


@wrong("sinusoid", "last pair left out", "the last pair is not filled")
def _(N, d):
    P = torch.zeros(N, d)
    for pos in range(N):
        for i in range(d // 2 - 1):
            a = pos / 10000 ** (2 * i / d)
            P[pos, 2 * i] = math.sin(a)
            P[pos, 2 * i + 1] = math.cos(a)
    return P


@wrong("sinusoid", "last position left out", "the last row is missing")
def _(N, d):
    P = torch.zeros(N, d)
    for pos in range(N - 1):
        for i in range(d // 2):
            a = pos / 10000 ** (2 * i / d)
            P[pos, 2 * i] = math.sin(a)
            P[pos, 2 * i + 1] = math.cos(a)
    return P


@wrong("shift_position", "halves", "halves instead of neighbors")
def _(row, k):
    h = len(row) // 2
    i = torch.arange(h)
    b = k / 10000 ** (2 * i / len(row))
    s, c = row[:h], row[h:]
    return torch.cat([s * b.cos() + c * b.sin(), c * b.cos() - s * b.sin()])


@wrong("shift_position", "exponent with 4", "the exponent uses d/2")
def _(row, k):
    out = row.clone()
    h = len(row) // 2
    for i in range(h):
        b = k / 10000 ** (2 * i / h)
        s, c = row[2 * i], row[2 * i + 1]
        out[2 * i] = s * math.cos(b) + c * math.sin(b)
        out[2 * i + 1] = c * math.cos(b) - s * math.sin(b)
    return out


@wrong("stack", "each twice", "each block is applied twice")
def _(X, blocks, final_norm):
    for b in blocks:
        X = b(b(X))
    return final_norm(X)


@wrong("stack", "norm added", "the final norm is added to the stream")
def _(X, blocks, final_norm):
    for b in blocks:
        X = b(X)
    return X + final_norm(X)


@wrong("parameters", "two for attention", "W_Q, W_K, W_V counted as one matrix")
def _(L, d):
    return L * (2 * d * d + 8 * d * d)


@wrong(
    "parameters",
    "L for attention alone",
    "attention multiplied by L, but not the feedforward layer",
)
def _(L, d):
    return L * 4 * d * d + 8 * d * d


@wrong("temperature", "tau + 1", "divides by 1 + τ against division by zero")
def _(u, tau):
    return torch.softmax(u / (1 + tau), -1)


@wrong("limits_of_temperature", "two words at ∞", "at ∞ the two best words get 1/2 each")
def _():
    return [1, 0, 0, 0], [0.5, 0.5, 0, 0]


@wrong("limits_of_temperature", "equal at 0", "both limits are uniform")
def _():
    return [0.25] * 4, [0.25] * 4


@wrong("limits_of_temperature", "1 at ∞", "at ∞ all are 1")
def _():
    return [1, 0, 0, 0], [1, 1, 1, 1]


@wrong("top_k", "largest sizes", "the largest k by absolute value")
def _(u, k):
    o = u.abs().argsort(descending=True)[:k]
    m = torch.full_like(u, float("-inf"))
    m[o] = u[o]
    return torch.softmax(m, -1)


@wrong("top_k", "shares of the logits", "shares of the logits in place of the softmax")
def _(u, k):
    o = u.argsort(descending=True)[:k]
    m = torch.zeros_like(u)
    m[o] = u[o]
    return m / m.sum()


@wrong("top_p", "divided by p", "renormalized by p rather than by the kept sum")
def _(u, p):
    y = torch.softmax(u, 0)
    o = y.argsort(descending=True)
    n = int((y[o].cumsum(0) < p).sum()) + 1
    k = torch.zeros_like(u)
    k[o[:n]] = y[o[:n]]
    return k / p


@wrong("top_p", "two at least", "always at least two words are kept")
def _(u, p):
    y = torch.softmax(u, 0)
    o = y.argsort(descending=True)
    n = max(2, int((y[o].cumsum(0) < p).sum()) + 1)
    k = torch.zeros_like(u)
    k[o[:n]] = y[o[:n]]
    return k / k.sum()


@wrong("top_p", "share of the words", "p is taken as top-k of round")
def _(u, p):
    y = torch.softmax(u, 0)
    n = max(1, int(p * len(u)))
    o = y.argsort(descending=True)[:n]
    k = torch.zeros_like(u)
    k[o] = y[o]
    return k / k.sum()


@wrong("draw", "−1 for the last", "the last word is never drawn, −1 if the loop ends")
def _(y, dart):
    end = 0.0
    for w in range(len(y) - 1):
        end += y[w]
        if dart < end:
            return w
    return -1


@wrong("beam_step", "+ halved", "log_y is normalized again by length")
def _(scores, log_y, width):
    t = (scores[:, None] + log_y) / 2
    b, p = t.flatten().topk(width)
    return p // log_y.shape[1], p % log_y.shape[1], b


@wrong("beam_step", "words first", "scores are broadcast along the wrong axis")
def _(scores, log_y, width):
    t = (scores[:, None] + log_y).T
    b, p = t.flatten().topk(width)
    return p // log_y.shape[1], p % log_y.shape[1], b


@wrong("beam_step", "twice as many", "the width is doubled")
def _(scores, log_y, width):
    t = scores[:, None] + log_y
    b, p = t.flatten().topk(min(2 * width, t.numel()))
    return p // log_y.shape[1], p % log_y.shape[1], b


@wrong("length_normalized", "smallest of all", "the smallest log probability")
def _(log_probabilities):
    return log_probabilities.min()


@wrong("length_normalized", "median", "the median in place of the mean")
def _(log_probabilities):
    return log_probabilities.median()


@wrong("cached_step", "value in front", "the new value is put in front, the key at the end")
def _(x, W_Q, W_K, W_V, K, V):
    q = x @ W_Q
    K = torch.cat([K, (x @ W_K)[None]])
    V = torch.cat([(x @ W_V)[None], V])
    return torch.softmax(K @ q / len(q) ** 0.5, -1) @ V, K, V


@wrong("cached_step", "oldest dropped", "the oldest token is dropped")
def _(x, W_Q, W_K, W_V, K, V):
    q = x @ W_Q
    K = torch.cat([K, (x @ W_K)[None]])[1:]
    V = torch.cat([V, (x @ W_V)[None]])[1:]
    return torch.softmax(K @ q / len(q) ** 0.5, -1) @ V, K, V


@wrong("cached_step", "appended twice", "the key is appended twice")
def _(x, W_Q, W_K, W_V, K, V):
    q = x @ W_Q
    k = (x @ W_K)[None]
    v = (x @ W_V)[None]
    K = torch.cat([K, k, k])
    V = torch.cat([V, v, v])
    return torch.softmax(K @ q / len(q) ** 0.5, -1) @ V, K, V


@wrong("next_token_loss", "last alone", "only the last prediction counts")
def _(U, ids):
    return F.cross_entropy(U[-2:-1], ids[-1:])


@wrong("perplexity", "fourth root", "the root is always the fourth")
def _(probabilities):
    return torch.exp(-torch.log(probabilities).sum() / 4)


@wrong("perplexity", "first left out", "the first word is left out, as in a text's first token")
def _(probabilities):
    return torch.exp(-torch.log(probabilities[1:]).mean())


@wrong("lora", "· scale twice", "the scale is squared")
def _(x, W, A, B, alpha):
    return x @ W + (alpha / A.shape[1]) ** 2 * (x @ A @ B)


@wrong("merged", "· scale twice", "α/r is applied to A and B both, so it's squared")
def _(W, A, B, alpha):
    s = alpha / A.shape[1]
    return W + (s * A) @ (s * B)


@wrong("merged", "scaled by the root", "scale √r")
def _(W, A, B, alpha):
    return W + alpha / A.shape[1] ** 0.5 * A @ B


@wrong("induced", "two compared", "search ends at 1 and matches two tokens")
def _(ids):
    for j in range(len(ids) - 2, 0, -1):
        if ids[j] == ids[-1] and ids[j - 1] == ids[-2]:
            return ids[j + 1]
    return -1


@wrong("induced", "given up", "the else inside the loop returns −1 at the first mismatch")
def _(ids):
    for j in range(len(ids) - 2, -1, -1):
        if ids[j] == ids[-1]:
            return ids[j + 1]
        else:
            return -1
    return -1


@wrong("induction_score", "first repeated token missed", "range from period + 1")
def _(alpha, period):
    N = len(alpha)
    v = [alpha[i, i - period + 1] for i in range(period + 1, N)]
    return sum(v) / len(v)


@wrong("logit_lens", "gain on the offset", "γ multiplies β as well")
def _(H, gamma, beta, E):
    m = H.mean(1, keepdim=True)
    s = H.std(1, keepdim=True, correction=0)
    return (gamma * ((H - m) / s + beta)) @ E.T


@wrong("without_head", "all up to c", "all heads up to c are removed")
def _(heads, W_O, c):
    k = heads.clone()
    k[: c + 1] = 0
    return k.transpose(0, 1).flatten(1) @ W_O


@wrong("qk_circuit", "elementwise", "elementwise product W_Q * W_K")
def _(W_Q, W_K):
    return W_Q * W_K


@wrong(
    "cross_attention", "scaled by √n", "the scores are divided by √n, the number of source tokens"
)
def _(X, H_enc, W_Q, W_K, W_V):
    Q, K, V = X @ W_Q, H_enc @ W_K, H_enc @ W_V
    return torch.softmax(Q @ K.T / len(H_enc) ** 0.5, -1) @ V


@wrong("padding_mask", "first left out", "the first token is never hidden")
def _(ids, pad_id):
    M = torch.zeros(len(ids))
    for i in range(1, len(ids)):
        if ids[i] == pad_id:
            M[i] = float("-inf")
    return M


@wrong("masked_word_loss", "all pairs", "log_y is indexed by M only in the rows")
def _(U, x, M):
    return -torch.log_softmax(U, -1)[M][:, x[M]].mean()


@wrong("masked_word_loss", "own guess", "the largest probability's log")
def _(U, x, M):
    return -torch.log_softmax(U, -1)[M].amax(-1).mean()


@wrong("masked_word_loss", "divided by |V|", "divided by |V|")
def _(U, x, M):
    return F.cross_entropy(U[M], x[M], reduction="sum") / U.shape[1]


@wrong("teacher_forced", "end read", "the decoder reads end for the last word")
def _(target, begin, end):
    return torch.stack(
        [
            torch.cat([torch.tensor([begin]), target[:-1], torch.tensor([end])]),
            torch.cat([target, torch.tensor([end])]),
        ]
    )


@wrong("smoothed_loss", "divided twice", "the spread part is share / |V| · mean")
def _(u, word, share):
    l = torch.log_softmax(u, -1)
    return -(1 - share) * l[word] - share / len(u) * l.mean()


@wrong("rate_of_2017", "sum of both", "the two parts are added")
def _(step, d, warmup):
    return d**-0.5 * (step**-0.5 + step * warmup**-1.5)


@wrong("scaled_input", "d**1/2", "d**1/2 without brackets")
def _(ids, E, P):
    return E.shape[1] ** 1 / 2 * E[ids] + P[: len(ids)]


@wrong("count_places", "frets not used", "the twelfth fret is the last")
def _(midi, tuning, frets):
    return sum(0 <= midi - o <= 12 for o in tuning)


@wrong("count_places", "lowest string left out", "the first string")
def _(midi, tuning, frets):
    return sum(0 <= midi - o <= frets for o in tuning[1:])


@wrong("count_places", "highest string left out", "the highest string is skipped")
def _(midi, tuning, frets):
    return sum(0 <= midi - o <= frets for o in tuning[:-1])


@wrong("is_playable_grip", "neighboring strings alone", "neighboring strings")
def _(grip, span):
    s = sorted(a for a, _ in grip)
    fr = [b for _, b in grip if b]
    near = all(y - x == 1 for x, y in zip(s, s[1:], strict=False))
    return near and (not fr or max(fr) - min(fr) <= span)


@wrong("is_playable_grip", "strings apart", "the strings' distance is compared with span")
def _(grip, span):
    s = [a for a, _ in grip]
    return len(set(s)) == len(s) and max(s) - min(s) <= span


@wrong("is_playable_grip", "twelve frets", "a fret above 12 is refused")
def _(grip, span):
    s = {a for a, _ in grip}
    fr = [b for _, b in grip if b]
    return len(s) == len(grip) and (not fr or (max(fr) - min(fr) <= span and max(fr) <= 12))


@wrong("path_back", "last row not read", "the last row of came is skipped")
def _(came, last):
    p = [last]
    for t in reversed(range(len(came) - 1)):
        p.append(int(came[t, p[-1]]))
    return p[::-1]


@wrong("takes_turns", "first place missed", "the first place is missing")
def _(notes, places):
    b = torch.stack([notes, places], 1).flatten()
    return torch.cat([b[:1], b[2:]])


@wrong("rms_norm", "ε always the same", "ε is fixed at 1e-6")
def _(x, gamma, eps):
    return gamma * x / ((x * x).mean(-1, keepdim=True) + 1e-6).sqrt()


@wrong("rms_norm", "gain first", "γ is applied before the norm")
def _(x, gamma, eps):
    x = gamma * x
    return x / ((x * x).mean(-1, keepdim=True) + eps).sqrt()


@wrong("rms_norm", "the larger", "max")
def _(x, gamma, eps):
    return gamma * x / (x * x).mean(-1, keepdim=True).clamp(min=eps).sqrt()


@wrong("rotary", "pairs from the last", "pairs counted backwards")
def _(X, start, base):
    (N, d), h = X.shape, X.shape[1] // 2
    a = torch.arange(start, start + N)[:, None] * base ** (-2 * torch.arange(h).flip(0) / d)
    c, s = a.cos(), a.sin()
    x, y = X[:, :h], X[:, h:]
    return torch.cat([x * c - y * s, x * s + y * c], 1)


@wrong("rotary_step", "query twice", "the query is rotated twice")
def _(q, k, K, rotate):
    n = len(K)
    K = torch.cat([K, rotate(k, n)[None]])
    return K @ rotate(rotate(q, n), n) / len(q) ** 0.5


@wrong("shared_keys", "along features", "repeated along features")
def _(K, A):
    G = len(K)
    return K.repeat_interleave(A // G, 2)


@wrong("published_ffn", "sigmoid of the second", "up is bent with sigmoid only")
def _(x, gate_proj, up_proj, down_proj):
    return (F.silu(x @ gate_proj.T) * torch.sigmoid(x @ up_proj.T)) @ down_proj.T


@wrong("published_ffn", "gate squared", "gate squared")
def _(x, gate_proj, up_proj, down_proj):
    g, u = x @ gate_proj.T, x @ up_proj.T
    return (g * g * torch.sigmoid(g) * u) @ down_proj.T


@wrong("published_ffn", "minus in the sigmoid", "σ of −g")
def _(x, gate_proj, up_proj, down_proj):
    g, u = x @ gate_proj.T, x @ up_proj.T
    return (g * torch.sigmoid(-g) * u) @ down_proj.T


@wrong("ffn", "elu for relu", "ELU in place of ReLU")
def _(x, W_1, b_1, W_2, b_2):
    return F.elu(x @ W_1 + b_1) @ W_2 + b_2


@wrong("layer_norm", "normalized twice", "normalized twice")
def _(x, gamma, beta):
    def n(z):
        return (z - z.mean(-1, keepdim=True)) / z.std(-1, keepdim=True, correction=0)

    return gamma * n(gamma * n(x) + beta) + beta


@wrong("attention", "+ halved", "the mask is added twice, with factor 0.5")
def _(Q, K, V, mask):
    return torch.softmax((Q @ K.T / K.shape[-1] ** 0.5) / 2 + mask, -1) @ V


@wrong("multi_head_attention", "first head left out", "the first head is skipped")
def _(X, W_Q, W_K, W_V, W_O, A):
    Q, K, V = (sol_split(X @ W, A) for W in (W_Q, W_K, W_V))
    M = sol_mask(len(X))
    h = torch.zeros_like(V)
    for c in range(1, A):
        h[c] = sol_att(Q[c], K[c], V[c], M)
    return sol_join(h) @ W_O


@wrong("sinusoid", "· doubled", "sines and cosines of every second position")
def _(N, d):
    pos = 2 * torch.arange(N)[:, None]
    a = pos / 10000 ** (2 * torch.arange(d // 2) / d)
    return torch.stack([a.sin(), a.cos()], -1).reshape(N, d)


@wrong("shift_position", "/ halved", "k is divided by N... the angle is k only halved")
def _(row, k):
    out = row.clone()
    for i in range(len(row) // 2):
        b = k / 2 / 10000 ** (2 * i / len(row))
        s, c = row[2 * i], row[2 * i + 1]
        out[2 * i] = s * math.cos(b) + c * math.sin(b)
        out[2 * i + 1] = c * math.cos(b) - s * math.sin(b)
    return out


@wrong("stack", "norm before the last", "the final norm is applied after the second last block")
def _(X, blocks, final_norm):
    for b in blocks[:-1]:
        X = b(X)
    return blocks[-1](final_norm(X))


@wrong("beam_step", "remainder by B", "B for V")
def _(scores, log_y, width):
    b, p = (scores[:, None] + log_y).flatten().topk(width)
    return p // log_y.shape[1], p % len(scores), b


@wrong("length_normalized", "perplexity", "base")
def _(log_probabilities):
    return torch.exp(-log_probabilities.mean())


@wrong("perplexity", "one more in mean", "exp of minus the log of the mean... 2**")
def _(probabilities):
    return torch.exp(-torch.log(probabilities).sum() / (len(probabilities) + 1))
