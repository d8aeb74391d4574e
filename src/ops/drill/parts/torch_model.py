"""A model server's rank on a small torch model with relight_hs's real hooks in it: what a drill runs where there is a torch.

Standard input: one JSON line {"specs", "norm" (base64 of bf16), "layers", "boundaries", "rids"}, then for each pass one JSON line
{"requests": [{"rid", "ids"}]} and behind it, request by request, four states [T, H] as raw bf16: three that enter the hooked
layers and the last one before the norm. The model's residual stream is made to be exactly these; everything else is as in
SGLang: pairs of state and residual, norms that work in place, a wrapper that hands on no ids, the batch as a positional
argument. Standard output: one JSON line once the hooks are registered, one after each pass.
"""
import base64
import fnmatch
import importlib
import json
import sys
import types

import torch
from torch import nn

BF16 = torch.bfloat16


class Norm(nn.Module):
    """As the fused kernel: both arguments are overwritten, and what is returned is their memory."""

    def __init__(self, weight):
        super().__init__()
        self.weight = nn.Parameter(weight, requires_grad=False)

    def forward(self, state, residual):
        residual.add_(state)
        wide = residual.float()
        normed = (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(BF16) * self.weight
        state.copy_(normed)
        return state, residual


class Layer(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.input_layernorm = Norm(weight)

    def forward(self, state, residual, leaves):
        """`leaves`: the stream behind this layer where it is known, else None."""
        state, residual = self.input_layernorm(state, residual)
        if leaves is None:
            return torch.tanh(state), residual
        # What the next layer's norm adds up must be exactly this.
        return torch.zeros_like(state), leaves.clone()


class Model(nn.Module):
    def __init__(self, weight, layers):
        super().__init__()
        self.layers = nn.ModuleList(Layer(torch.ones_like(weight)) for _ in range(layers))
        self.norm = Norm(weight)

    def forward(self, input_ids, positions, forward_batch, input_embeds):
        state, residual = torch.zeros_like(input_embeds), input_embeds
        for at, layer in enumerate(self.layers):
            state, residual = layer(state, residual, forward_batch.stream.get(at + 1))
        state, _ = self.norm(state, residual)
        return state


class Causal(nn.Module):
    def __init__(self, weight, layers):
        super().__init__()
        self.model = Model(weight, layers)

    def forward(self, input_ids=None, positions=None, forward_batch=None, input_embeds=None):
        return self.model(input_ids, positions, forward_batch, input_embeds)


class Wrapper(nn.Module):
    """The multimodal wrapper embeds by itself and hands no ids on."""

    def __init__(self, weight, layers):
        super().__init__()
        self.language_model = Causal(weight, layers)

    def forward(self, batch):
        embeds = torch.ones(batch.input_ids.shape[0], self.language_model.model.norm.weight.shape[0], dtype=BF16)
        return self.language_model(input_ids=None, positions=None, forward_batch=batch, input_embeds=embeds)


def register(model, specs):
    """As SGLang's hook manager does it. (name, module) of each hook; the module is None where it registered none."""
    modules = dict(model.named_modules())
    done = []
    for spec in specs:
        place, name = spec["hook_factory"].split(":")
        hook = getattr(importlib.import_module(place), name)(spec.get("config") or {})
        found = [each for each in modules if any(fnmatch.fnmatch(each, want) for want in spec["target_modules"])]
        for each in found if hook else ():
            modules[each].register_forward_hook(hook)
        done += [(spec["name"], each if hook else None) for each in found] or [(spec["name"], None)]
    return done


def main():
    stdin = sys.stdin.buffer
    ask = json.loads(stdin.readline())
    weight = torch.frombuffer(bytearray(base64.b64decode(ask["norm"])), dtype=BF16)
    width = weight.shape[0]
    model = Wrapper(weight, ask["layers"])
    hooks = register(model, ask["specs"])
    places = [int(each) for each in ask["boundaries"]] + [ask["layers"]]
    say({"torch": str(torch.__version__), "hooks": hooks})
    for line in iter(stdin.readline, b""):
        requests = json.loads(line)["requests"]
        rows = [len(each["ids"]) for each in requests]
        states = [read_states(stdin, count, width) for count in rows]
        batch = types.SimpleNamespace(
            forward_mode=types.SimpleNamespace(name="EXTEND"),
            input_ids=torch.tensor([each for request in requests for each in request["ids"]]),
            rids=[each["rid"] for each in requests] if ask["rids"] else None,
            extend_seq_lens_cpu=rows,
            extend_prefix_lens_cpu=[0] * len(rows),
            stream={place: torch.cat([each[at] for each in states]) for at, place in enumerate(places)},
        )
        with torch.no_grad():
            model(batch)
        say({"rows": sum(rows)})


def read_states(stdin, rows, width):
    size = rows * width * 2
    return [torch.frombuffer(bytearray(stdin.read(size)), dtype=BF16).view(rows, width) for _ in range(4)]


def say(facts):
    print(json.dumps(facts), flush=True)


main()
