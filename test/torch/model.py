"""A small model with the moving parts that matter: residual pairs, norms that work in place, a wrapper, batches."""
import types

import torch
from torch import nn

BF16 = torch.bfloat16


def rms(state, weight):
    wide = state.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(state.dtype) * weight


class Norm(nn.Module):
    """As the fused kernel: both arguments are overwritten, and what is returned is their memory."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width).add_(0.5).to(BF16), requires_grad=False)

    def forward(self, state, residual=None):
        if residual is None:
            return rms(state, self.weight)
        residual.add_(state)
        state.copy_(rms(residual, self.weight))
        return state, residual


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.input_layernorm = Norm(width)
        self.post_attention_layernorm = Norm(width)
        self.mix = nn.Linear(width, width, bias=False, dtype=BF16)
        self.mlp = nn.Linear(width, width, bias=False, dtype=BF16)

    def forward(self, state, residual, lengths):
        if residual is None:
            residual = state.clone()
            state = self.input_layernorm(state)
        else:
            state, residual = self.input_layernorm(state, residual)
        # Each request attends to itself alone: a mistake in splitting shows.
        parts = [torch.cumsum(self.mix(part).float(), 0).tanh().to(BF16) for part in state.split(lengths)]
        state, residual = self.post_attention_layernorm(torch.cat(parts), residual)
        return self.mlp(state).tanh(), residual


class Model(nn.Module):
    """`own` keeps what a reader of the model's code would call its states, computed beside the in-place kernels."""

    def __init__(self, layers, width, kept):
        super().__init__()
        self.embed_tokens = nn.Embedding(512, width, dtype=BF16)
        self.layers = nn.ModuleList(Layer(width) for _ in range(layers))
        self.norm = Norm(width)
        self.kept = kept
        self.own = []

    def forward(self, input_ids, positions, forward_batch, input_embeds=None):
        state = self.embed_tokens(input_ids) if input_embeds is None else input_embeds
        residual, own = None, []
        for at, layer in enumerate(self.layers):
            if at in self.kept:
                own.append(state + residual)
            state, residual = layer(state, residual, forward_batch.rows)
        own.append(state + residual)
        own.append(rms(own[-1], self.norm.weight))
        self.own = own
        state, _ = self.norm(state, residual)
        return state


class Causal(nn.Module):
    def __init__(self, layers=61, width=16, kept=(2, 30, 58)):
        super().__init__()
        self.model = Model(layers, width, kept)

    def forward(self, input_ids=None, positions=None, forward_batch=None, input_embeds=None):
        return self.model(input_ids, positions, forward_batch, input_embeds).mul_(0)


class Wrapper(nn.Module):
    """The multimodal wrapper embeds by itself and hands no ids on."""

    def __init__(self, **sizes):
        super().__init__()
        self.language_model = Causal(**sizes)

    def forward(self, batch):
        embeds = self.language_model.model.embed_tokens(batch.input_ids)
        return self.language_model(input_ids=None, positions=None, forward_batch=batch, input_embeds=embeds)


class Plain(Causal):
    def forward(self, batch):
        return super().forward(batch.input_ids, None, batch)


def batch_of(requests, prefixes=None, mode='EXTEND', **more):
    """requests: [(rid, ids)]. What SGLang's ForwardBatch says of one pass."""
    lengths = [len(ids) for _, ids in requests]
    facts = {
        'forward_mode': types.SimpleNamespace(name=mode),
        'input_ids': torch.tensor([each for _, ids in requests for each in ids]),
        'rids': [rid for rid, _ in requests],
        'extend_seq_lens_cpu': None if mode in ('DECODE', 'IDLE') else lengths,
        'extend_prefix_lens_cpu': None if mode in ('DECODE', 'IDLE') else prefixes or [0] * len(lengths),
        'rows': lengths,
    }
    return types.SimpleNamespace(**{**facts, **more})


def register(model, specs, resolve):
    """As SGLang does it: one hook per spec, on every module whose name is in the spec."""
    modules = dict(model.named_modules())
    handles = []
    for spec in specs:
        function = resolve(spec['hook_factory'])(spec['config'])
        if function is None:
            continue
        for name in spec['target_modules']:
            handles.append(modules[name].register_forward_hook(function))
    return handles
