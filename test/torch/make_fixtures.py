"""Writes test/fixtures/hook: what the hook leaves of one pass, for a test that needs no torch.

    python3 test/torch/make_fixtures.py

Two requests of 3 and 5 tokens, 8 values a row, in every form. What differs from run to run (time, process, versions, the
module's own sum) is fixed here and in test/ops/drill/hook-writer.test.ts.
"""
import importlib.util
import json
import os
import shutil
import sys
import types

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, '../fixtures/hook')
REQUESTS = [('relight-41-0-ab', [5, 6, 7]), ('relight-42-0-cd', [9, 163839, 1, 2, 3])]
WIDTH = 8
BF16 = torch.bfloat16


def module():
    spec = importlib.util.spec_from_file_location('relight_hs', os.path.join(HERE, '../../src/ops/hook/relight_hs.py'))
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    made._now = lambda: 1790000000000
    server = {'pid': 7, 'start_ticks': 8, 'boot_id': 'b', 'parent': {'pid': 1, 'start_ticks': 2}}
    made.SERVER, made.MODULE_SHA256 = server, 'c0de'
    made._versions = lambda: {'python': '3.11.2', 'torch': '1.13.1', 'sglang': '0.5.12'}
    made._status.facts.update(server=server, module_sha256='c0de')
    return made


def run_pass(writer):
    """One pass through the hooks themselves; the states are the same every time."""
    hs = module()
    hooks = {slot: hs.hook({'slot': slot}) for slot in hs.SLOTS}
    write = hs.hook({'slot': 'write', 'layers': [2, 30, 58], **writer})
    torch.manual_seed(11)
    rows = [len(ids) for _, ids in REQUESTS]
    for slot in ('aux_0', 'aux_1', 'aux_2'):
        hooks[slot](None, (), (torch.zeros(sum(rows), WIDTH), torch.randn(sum(rows), WIDTH).to(BF16)))
    hooks['final'](None, (), (torch.randn(sum(rows), WIDTH).to(BF16), torch.randn(sum(rows), WIDTH).to(BF16)))
    batch = types.SimpleNamespace(
        forward_mode=types.SimpleNamespace(name='EXTEND'),
        input_ids=torch.tensor([each for _, ids in REQUESTS for each in ids]),
        rids=[rid for rid, _ in REQUESTS],
        extend_seq_lens_cpu=rows,
        extend_prefix_lens_cpu=[0] * len(rows),
    )
    write(None, (batch,), None)


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    os.makedirs(OUT)
    with open(OUT + '/requests.json', 'w') as file:
        json.dump([{'rid': rid, 'ids': ids} for rid, ids in REQUESTS], file)
    run_pass({'dump_dir': OUT + '/raw'})
    for layout in ('legacy', 'specforge', 'universal', 'speculators'):
        run_pass({'dump_dir': OUT + '/staged-status', 'staging': '%s/%s' % (OUT, layout), 'layout': layout})
    shutil.rmtree(OUT + '/staged-status')


sys.exit(main())
