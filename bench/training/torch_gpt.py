"""torch_gpt.py - the bench's model as a PyTorch user would write it: GPT-2, AdamW, one core or device.

    python3 torch_gpt.py CORE|cuda f32|bf16 eager|compile LAYERS HIDDEN HEADS SEQ VOCAB BATCH

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


class Attention(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.out = nn.Linear(hidden, hidden)

    def forward(self, x):
        batch, seq, hidden = x.shape
        q, k, v = (
            part.view(batch, seq, self.heads, -1).transpose(1, 2)
            for part in self.qkv(x).split(hidden, dim=2)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, seq, hidden))


class Layer(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.attention = Attention(hidden, heads)
        self.fc1, self.fc2 = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, layers, hidden, heads, seq, vocab):
        super().__init__()
        self.tokens = nn.Embedding(vocab, hidden)
        self.positions = nn.Parameter(torch.empty(seq, hidden))
        self.layers = nn.ModuleList(Layer(hidden, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(hidden)
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.positions
        for layer in self.layers:
            x = layer(x)
        logits = self.norm(x) @ self.tokens.weight.T
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


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
    where, element, mode = sys.argv[1:4]
    layers, hidden, heads, seq, vocab, batch = map(int, sys.argv[4:10])
    device = open_device(where)
    torch.manual_seed(1)
    model = Gpt(layers, hidden, heads, seq, vocab).to(device)
    forward = torch.compile(model) if mode == "compile" else model
    steps = make_steps(model, forward, element, seq, vocab, batch)
    steps(3)
    print(f"ready {torch.__version__}", flush=True)
    for line in sys.stdin:
        begin = time.perf_counter()
        steps(int(line))
        print(time.perf_counter() - begin, flush=True)


main()
