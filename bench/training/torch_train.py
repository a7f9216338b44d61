"""torch_train.py - a bench's model as a PyTorch user would train it: AdamW, on one core or device.

    python3 torch_train.py CORE|cuda f32|bf16 eager|compile \\
        gpt|llama LAYERS HIDDEN HEADS FFN SEQ VOCAB BATCH

bf16 is automatic mixed precision: parameters and the optimizer stay in f32. TF32 is not used.
For every line with a number on stdin it trains so many steps, and answers with the seconds that they
took. The first line that it prints is "ready" and the release of PyTorch.
"""
import math
import os
import sys
import time

try:
    import torch
    import torch.nn.functional as F
    from torch import nn
except ImportError as error:
    sys.exit(f"no PyTorch: {error}")


def attend(q, k, v):
    """Causal attention of (batch, seq, heads, width)."""
    q, k, v = (part.transpose(1, 2) for part in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)


class GptLayer(nn.Module):
    def __init__(self, hidden, heads, ffn):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv, self.out = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.fc1, self.fc2 = nn.Linear(hidden, ffn), nn.Linear(ffn, hidden)

    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).unflatten(2, (3, self.heads, -1)).unbind(2)
        x = x + self.out(attend(q, k, v))
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, layers, hidden, heads, ffn, seq, vocab):
        super().__init__()
        self.tokens = nn.Embedding(vocab, hidden)
        self.positions = nn.Parameter(torch.empty(seq, hidden))
        self.layers = nn.ModuleList(GptLayer(hidden, heads, ffn) for _ in range(layers))
        self.norm = nn.LayerNorm(hidden)

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.positions
        for layer in self.layers:
            x = layer(x)
        logits = self.norm(x) @ self.tokens.weight.T
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


class LlamaLayer(nn.Module):
    def __init__(self, hidden, heads, ffn):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.RMSNorm(hidden), nn.RMSNorm(hidden)
        self.qkv = nn.Linear(hidden, 3 * hidden, bias=False)
        self.out = nn.Linear(hidden, hidden, bias=False)
        self.gate, self.up = (nn.Linear(hidden, ffn, bias=False) for _ in range(2))
        self.down = nn.Linear(ffn, hidden, bias=False)

    def forward(self, x, cosine, sine):
        def turn(part):
            left, right = part.chunk(2, dim=-1)
            return part * cosine + torch.cat((-right, left), dim=-1) * sine

        q, k, v = self.qkv(self.norm1(x)).unflatten(2, (3, self.heads, -1)).unbind(2)
        x = x + self.out(attend(turn(q), turn(k), v))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self, layers, hidden, heads, ffn, seq, vocab):
        super().__init__()
        self.tokens = nn.Embedding(vocab, hidden)
        self.layers = nn.ModuleList(LlamaLayer(hidden, heads, ffn) for _ in range(layers))
        self.norm = nn.RMSNorm(hidden)
        self.head = nn.Linear(hidden, vocab, bias=False)
        width = hidden // heads
        angles = torch.outer(torch.arange(seq), 1e4 ** (-torch.arange(0, width, 2) / width))
        angles = torch.cat((angles, angles), dim=-1)[:, None, :]
        self.register_buffer("cosine", angles.cos())
        self.register_buffer("sine", angles.sin())

    def forward(self, tokens, targets):
        x = self.tokens(tokens)
        cosine, sine = self.cosine, self.sine
        if torch.is_autocast_enabled(x.device.type):  # else q and k would be f32
            cosine, sine = cosine.bfloat16(), sine.bfloat16()
        for layer in self.layers:
            x = layer(x, cosine, sine)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


def make_model(family, *sizes):
    model = {"gpt": Gpt, "llama": Llama}[family](*sizes)
    for parameter in model.parameters():
        if parameter.dim() == 2:
            nn.init.normal_(parameter, std=0.02)
    return model


def make_steps(model, forward, element, seq, vocab, batch):
    device = next(model.parameters()).device
    matrices = [p for p in model.parameters() if p.dim() == 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95), eps=1e-8, fused=True)

    def step():
        tokens = torch.randint(vocab, (batch, seq + 1), device=device)
        with torch.autocast(device.type, torch.bfloat16, enabled=element == "bf16"):
            loss = forward(tokens[:, :-1], tokens[:, 1:])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    def steps(count):
        for _ in range(count):
            loss = step()
        if not math.isfinite(loss.item()):  # a device is waited for here
            sys.exit("the loss is not finite")

    return steps


def open_device(where):
    """The device to train on; a core's thread stays there."""
    if where == "cuda":
        if not torch.cuda.is_available():
            sys.exit("PyTorch finds no NVIDIA device")
        return torch.device("cuda")
    os.sched_setaffinity(0, {int(where)})
    torch.set_num_threads(1)
    return torch.device("cpu")


def main():
    where, element, mode, family = sys.argv[1:5]
    layers, hidden, heads, ffn, seq, vocab, batch = map(int, sys.argv[5:12])
    device = open_device(where)
    torch.manual_seed(1)
    model = make_model(family, layers, hidden, heads, ffn, seq, vocab).to(device)
    forward = torch.compile(model) if mode == "compile" else model
    steps = make_steps(model, forward, element, seq, vocab, batch)
    steps(3)
    print(f"ready {torch.__version__}", flush=True)
    for line in sys.stdin:
        begin = time.perf_counter()
        steps(int(line))
        print(time.perf_counter() - begin, flush=True)


main()
