"""The hook on a real model in a real torch, and relight's files in torch's own reader."""
import glob
import hashlib
import importlib.util
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import types
import unittest
import warnings
import zlib
from unittest import mock

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from model import BF16, Plain, Wrapper, batch_of, register  # noqa: E402

warnings.filterwarnings('ignore', message='.*TypedStorage is deprecated.*')
SOURCE = os.path.join(HERE, '../../src/ops/hook/relight_hs.py')
KIMI = {'architecture': 'KimiK25ForConditionalGeneration', 'layers': 61, 'hiddenSize': 16}
DEEPSEEK = {'architecture': 'DeepseekV3ForCausalLM', 'layers': 61, 'hiddenSize': 16}
STATES = ['aux_0', 'aux_1', 'aux_2', 'final_pre', 'final_post']
TORCH_2 = int(torch.__version__.split('.')[0]) >= 2


def relight(task, **facts):
    """relight's own code, as a program."""
    text = json.dumps(dict(facts, task=task))
    return subprocess.run(['node', os.environ['RELIGHT_WRITER']], input=text, text=True, check=True, stdout=subprocess.PIPE).stdout


def load(path):
    return torch.load(path, weights_only=True)


def raw(path, rows, width=16):
    with open(path, 'rb') as file:
        content = file.read()
    return torch.frombuffer(bytearray(content), dtype=BF16).view(rows, width)


def read_json(path):
    with open(path) as file:
        return json.load(file)


def ids(count, seed):
    return torch.randint(0, 512, (count,), generator=torch.Generator().manual_seed(seed)).tolist()


def packed_sha256(values):
    return hashlib.sha256(struct.pack('<%dq' % len(values), *values)).hexdigest()


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='relight-torch-')
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.dumps = os.path.join(self.folder, 'dumps')
        torch.manual_seed(7)

    def serve(self, model=None, shape=KIMI, dump_dir=True, **writer):
        """A fresh module, as in a fresh server, hooked into a model by the specs that relight prints."""
        spec = importlib.util.spec_from_file_location('relight_hs', SOURCE)
        self.hs = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.hs)
        self.hs.log.disabled = True
        self.model = model or Wrapper()
        if dump_dir:
            writer['dump_dir'] = self.dumps
        specs = json.loads(relight('specs', model=shape, writer=writer))
        self.handles = register(self.model, specs, lambda name: getattr(self.hs, name.split(':')[1]))
        return self.model

    def run_pass(self, requests, **facts):
        batch = batch_of(requests, **facts)
        with torch.no_grad():
            self.model(batch)
        inner = self.model.language_model if isinstance(self.model, Wrapper) else self.model
        return [state.split(batch.rows) for state in inner.model.own]

    def dumped(self):
        return sorted(os.path.basename(each) for each in glob.glob(self.dumps + '/*req_*'))

    def status(self):
        return read_json(self.dumps + '/relight_hs.status.json')

    def error(self, rid):
        return read_json('%s/req_%s/error.json' % (self.dumps, rid))

    def same(self, folder, own, at):
        rows = own[0][at].shape[0]
        for name, state in zip(STATES, own):
            self.assertTrue(torch.equal(raw('%s/%s.bin' % (folder, name), rows), state[at]), name)


class Raw(Case):
    def test_batch_of_different_lengths_gives_each_request_its_own_rows(self):
        self.serve()
        self.assertEqual(len(self.handles), 5)
        requests = [('relight-7-0-a', ids(5, 1)), ('relight-8-0-b', ids(1, 2)), ('relight-9-0-c', ids(33, 3))]
        own = self.run_pass(requests)
        self.assertEqual(self.dumped(), ['req_relight-7-0-a', 'req_relight-8-0-b', 'req_relight-9-0-c'])
        for at, (rid, own_ids) in enumerate(requests):
            folder = '%s/req_%s' % (self.dumps, rid)
            self.same(folder, own, at)
            meta = read_json(folder + '/meta.json')
            self.assertEqual(sorted(os.listdir(folder)), sorted([each + '.bin' for each in STATES] + ['meta.json']))
            self.assertEqual((meta['schema'], meta['rid'], meta['T'], meta['H']), ('relight.dump/1', rid, len(own_ids), 16))
            self.assertEqual((meta['layers'], meta['part'], meta['prefix_len']), ([2, 30, 58], 0, 0))
            self.assertEqual(meta['ids_sha256'], packed_sha256(own_ids))
            for name, facts in meta['files'].items():
                with open('%s/%s' % (folder, name), 'rb') as file:
                    content = file.read()
                self.assertEqual(facts, {'bytes': len(content), 'crc32': '%08x' % zlib.crc32(content)})

    def test_meta_names_the_server_by_more_than_its_pid(self):
        self.serve()
        self.run_pass([('relight-1', ids(3, 1))])
        meta = read_json(self.dumps + '/req_relight-1/meta.json')
        with open('/proc/self/stat') as file:
            ticks = int(file.read().rpartition(')')[2].split()[19])
        with open('/proc/sys/kernel/random/boot_id') as file:
            boot = file.read().strip()
        self.assertEqual((meta['server']['pid'], meta['server']['start_ticks']), (os.getpid(), ticks))
        self.assertEqual(meta['server']['boot_id'], boot)
        self.assertEqual(meta['server']['parent']['pid'], os.getppid())
        with open(SOURCE, 'rb') as file:
            self.assertEqual(meta['module_sha256'], hashlib.sha256(file.read()).hexdigest())
        self.assertEqual(meta['versions']['torch'], str(torch.__version__))
        self.assertEqual(self.status()['written'], {'requests': 1})

    def test_plain_deepseek_has_no_wrapper(self):
        self.serve(Plain(), DEEPSEEK)
        own = self.run_pass([('relight-1', ids(9, 1))])
        self.same(self.dumps + '/req_relight-1', own, 0)

    def test_chunks_become_parts_that_join_to_the_whole(self):
        self.serve()
        first = self.run_pass([('relight-1', ids(8, 1)), ('relight-2', ids(3, 2))])
        second = self.run_pass([('relight-1', ids(8, 3))], prefixes=[8])
        third = self.run_pass([('relight-3', ids(2, 4)), ('relight-1', ids(5, 5))], prefixes=[0, 16])
        folder = self.dumps + '/req_relight-1'
        self.same(folder, first, 0)
        self.same(folder + '/part_1', second, 0)
        self.same(folder + '/part_2', third, 1)
        metas = [read_json(folder + place + '/meta.json') for place in ('', '/part_1', '/part_2')]
        self.assertEqual([(m['part'], m['prefix_len'], m['T']) for m in metas], [(0, 0, 8), (1, 8, 8), (2, 16, 5)])
        self.assertEqual(self.status()['written'], {'requests': 3, 'parts': 2})

    def test_a_prefix_that_nobody_wrote_is_a_cache_hit_and_refused(self):
        self.serve()
        own = self.run_pass([('relight-1', ids(4, 1)), ('relight-2', ids(4, 2))], prefixes=[64, 0])
        self.assertEqual(self.error('relight-1')['reason'], 'prefix_len')
        self.assertEqual(self.error('relight-1')['detail'], {'prefix_len': 64, 'rows_written': None})
        self.assertEqual(os.listdir(self.dumps + '/req_relight-1'), ['error.json'])
        self.same(self.dumps + '/req_relight-2', own, 1)

    def test_a_gap_between_chunks_marks_the_whole_request(self):
        self.serve()
        self.run_pass([('relight-1', ids(4, 1))])
        self.run_pass([('relight-1', ids(4, 2))], prefixes=[9])
        self.assertEqual(self.error('relight-1')['detail'], {'prefix_len': 9, 'rows_written': 4})

    def test_what_happens_to_the_tensors_later_does_not_reach_what_was_stored(self):
        self.serve()
        inner = self.model.language_model.model
        # After the hooks, as the next kernel would: the outputs themselves are overwritten.
        for module in (inner.layers[2].input_layernorm, inner.layers[58].input_layernorm, inner.norm):
            module.register_forward_hook(lambda module, args, output: [each.fill_(3) for each in output] and None)
        clean = Wrapper()
        clean.load_state_dict(self.model.state_dict())
        wanted = ids(6, 1)
        with torch.no_grad():
            clean(batch_of([('x', wanted)]))
        self.run_pass([('relight-1', wanted)])
        # Only the first state is that of the clean model: behind it the overwriting changed the pass itself.
        stored = raw(self.dumps + '/req_relight-1/aux_0.bin', 6)
        self.assertTrue(torch.equal(stored, clean.language_model.model.own[0]))
        own = inner.own
        self.assertTrue(torch.equal(raw(self.dumps + '/req_relight-1/final_pre.bin', 6), own[3]))
        self.assertTrue(torch.equal(raw(self.dumps + '/req_relight-1/final_post.bin', 6), own[4]))
        self.assertFalse(bool((own[3] == 3).all()))

    def test_the_same_request_twice_keeps_the_first(self):
        self.serve()
        own = self.run_pass([('relight-1', ids(4, 1))])
        self.run_pass([('relight-1', ids(4, 2))])
        self.same(self.dumps + '/req_relight-1', own, 0)
        self.assertEqual(self.status()['skipped'], {'duplicate': 1})

    def test_good_states_replace_the_error_of_an_earlier_try(self):
        self.serve()
        self.run_pass([('relight-1', ids(4, 1))], prefixes=[64])
        own = self.run_pass([('relight-1', ids(4, 1))])
        self.same(self.dumps + '/req_relight-1', own, 0)
        self.assertFalse(os.path.exists(self.dumps + '/req_relight-1/error.json'))

    def test_meta_is_written_last_and_the_folder_appears_whole(self):
        self.serve()
        steps = []
        open_, rename = open, os.rename
        self.hs.open = lambda path, *rest, **more: steps.append(os.path.basename(path)) or open_(path, *rest, **more)
        with mock.patch.object(self.hs.os, 'rename', lambda a, b: steps.append('-> ' + os.path.basename(b)) or rename(a, b)):
            self.run_pass([('relight-1', ids(4, 1))])
        wanted = [each + '.bin' for each in STATES] + ['meta.json.tmp', '-> meta.json', '-> req_relight-1']
        self.assertEqual(steps[: len(wanted)], wanted)


class WhoIsSkipped(Case):
    def test_other_ranks_write_nothing_and_copy_nothing(self):
        name = 'sglang.srt.distributed'
        fake = types.SimpleNamespace(get_tensor_model_parallel_rank=lambda: 1)
        with mock.patch.dict(sys.modules, {name: fake}):
            self.serve()
            with mock.patch.object(torch.Tensor, 'clone', side_effect=AssertionError('copied')) as clone:
                self.model.language_model.model.layers[2].input_layernorm(*(torch.ones(2, 16, dtype=BF16) for _ in range(2)))
                self.assertEqual(clone.call_count, 0)
            self.run_pass([('relight-1', ids(4, 1))])
        self.assertEqual(os.listdir(self.dumps), [])
        self.assertEqual(self.hs._stashes, [])

    def test_a_rank_that_is_known_only_later(self):
        answers = [None, None, 3]
        fake = types.SimpleNamespace(get_tensor_model_parallel_rank=lambda: answers.pop(0) if len(answers) > 1 else answers[0])
        with mock.patch.dict(sys.modules, {'sglang.srt.distributed': fake}):
            self.serve()
            del answers[:-1]
            self.run_pass([('relight-1', ids(4, 1))])
        self.assertEqual(self.dumped(), [])

    def test_rank_0_as_sglang_says_it(self):
        fake = types.SimpleNamespace(get_attention_tp_rank=lambda: 0)
        with mock.patch.dict(sys.modules, {'sglang.srt.layers.dp_attention': fake}):
            self.serve()
            self.run_pass([('relight-1', ids(4, 1))])
        self.assertEqual(self.dumped(), ['req_relight-1'])

    def test_decode_and_idle_passes(self):
        self.serve()
        self.run_pass([('relight-1', [5]), ('relight-2', [6])], mode='DECODE')
        self.run_pass([('relight-1', [5])], mode='IDLE')
        self.assertEqual(self.dumped(), [])
        own = self.run_pass([('relight-3', ids(4, 1))])
        self.same(self.dumps + '/req_relight-3', own, 0)
        self.assertEqual(self.status()['skipped'], {'decode': 1, 'idle': 1})

    def test_health_probes_and_strangers_in_a_batch_with_ours(self):
        self.serve()
        requests = [('HEALTH_CHECK_12', [0]), ('relight-1', ids(4, 1)), ('b7c1', ids(6, 2)), ('relight-../x', ids(2, 3))]
        own = self.run_pass(requests)
        self.assertEqual(self.dumped(), ['req_relight-1'])
        self.same(self.dumps + '/req_relight-1', own, 1)
        self.assertEqual(self.status()['skipped'], {'health_check': 1, 'foreign_rid': 1, 'unusable_rid': 1})

    def test_a_batch_without_rids_is_named_by_its_ids_only_if_that_is_wanted(self):
        self.serve()
        self.run_pass([('x', ids(4, 1))], rids=None)
        self.assertEqual(self.dumped(), [])
        self.serve(nameless='ids')
        own = self.run_pass([('x', ids(4, 1)), ('y', ids(7, 2))], rids=None)
        names = ['ids-' + packed_sha256(ids(4, 1)), 'ids-' + packed_sha256(ids(7, 2))]
        self.assertEqual(self.dumped(), sorted('req_' + each for each in names))
        self.same('%s/req_%s' % (self.dumps, names[1]), own, 1)


class Refusals(Case):
    def refused(self, reason, rid='relight-1'):
        error = self.error(rid)
        self.assertEqual((error['reason'], error['rid']), (reason, rid))
        self.assertEqual(self.status()['refused'][reason], 1)
        self.assertEqual(self.hs._stashes, [])
        return error['detail']

    def test_nan_costs_its_own_request_alone(self):
        self.serve()
        weight = self.model.language_model.model.embed_tokens.weight
        with torch.no_grad():
            weight[511] = float('nan')
        own = self.run_pass([('relight-1', [3, 4, 511, 5]), ('relight-2', [7, 8])])
        self.assertEqual(self.refused('not_finite'), {'state': 'aux_0', 'row': 2})
        self.same(self.dumps + '/req_relight-2', own, 1)

    def test_infinity_in_a_late_state_is_named(self):
        self.serve()
        layer = self.model.language_model.model.layers[57]
        layer.register_forward_hook(lambda module, args, output: (output[0].index_fill(0, torch.tensor([1]), float('inf')), output[1]))
        self.run_pass([('relight-1', ids(3, 1))])
        self.assertEqual(self.refused('not_finite'), {'state': 'aux_2', 'row': 1})

    def test_a_fused_all_reduce_goes_past_the_norm(self):
        self.serve()
        self.handles[1].remove()
        self.run_pass([('relight-1', ids(3, 1))])
        self.assertEqual(self.refused('stash_count')['stashed'], ['aux_0', 'aux_2', 'final'])

    def test_the_mark_of_a_pending_all_reduce(self):
        self.serve()
        layer = self.model.language_model.model.layers[29]
        layer.register_forward_hook(lambda module, args, output: setattr(output[0], '_sglang_needs_allreduce_fusion', True))
        self.run_pass([('relight-1', ids(3, 1))])
        self.refused('allreduce_fusion')

    def test_padded_rows(self):
        self.serve()
        batch_lengths = {'extend_seq_lens_cpu': [3], 'rows': [5]}
        self.run_pass([('relight-1', ids(5, 1))], **batch_lengths)
        self.assertEqual(self.refused('row_count'), {'state': 'aux_0', 'shape': [5, 16], 'expected': [3, 16]})

    def test_ids_that_are_not_as_many_as_the_rows(self):
        self.serve(Plain(), DEEPSEEK)
        batch = batch_of([('relight-1', ids(5, 1))])
        with torch.no_grad():
            self.model.model(batch.input_ids, None, types.SimpleNamespace(**{**vars(batch), 'input_ids': torch.tensor([1, 2])}))
        self.refused('ids_count')

    def test_mixed_batches_data_parallel_attention_other_dtypes(self):
        self.serve()
        self.run_pass([('relight-1', ids(3, 1))], mode='MIXED')
        self.refused('mixed_batch')
        self.run_pass([('relight-2', ids(3, 1))], global_num_tokens_cpu=[3])
        self.refused('dp_attention', 'relight-2')
        self.serve(Wrapper().float())
        with mock.patch('model.BF16', torch.float32):
            self.run_pass([('relight-3', ids(3, 1))])
        self.assertEqual(self.error('relight-3')['detail'], {'state': 'aux_0', 'dtype': 'torch.float32'})

    def test_graph_capture(self):
        self.serve()
        with mock.patch.object(torch.cuda, 'is_initialized', lambda: True):
            with mock.patch.object(torch.cuda, 'is_current_stream_capturing', lambda: True):
                self.run_pass([('relight-1', ids(3, 1))])
        self.refused('cuda_graph_capture')

    def test_no_space_before_a_byte_is_written(self):
        self.serve()
        needed = 2 * (4 + 6) * 16 * 2 * 5
        for free, reason in ((needed - 1, 'no_space'), (needed, None)):
            rids = ['relight-%d-%s' % (at, reason) for at in (1, 2)]
            with mock.patch.object(os, 'statvfs', lambda path: types.SimpleNamespace(f_bavail=free, f_frsize=1)):
                self.run_pass([(rids[0], ids(4, 1)), (rids[1], ids(6, 2))])
            for rid in rids:
                folder = '%s/req_%s' % (self.dumps, rid)
                if reason:
                    self.assertEqual(os.listdir(folder), ['error.json'])
                    self.assertEqual(self.error(rid)['detail'], {'free_bytes': free, 'needed_bytes': needed})
                else:
                    self.assertTrue(os.path.exists(folder + '/meta.json'))


class NeverRaises(Case):
    def test_a_full_disk_in_the_middle_of_a_file(self):
        self.serve()
        with mock.patch.object(self.hs, '_write_file', side_effect=OSError(28, 'No space left on device')):
            self.run_pass([('relight-1', ids(3, 1))])
        error = self.error('relight-1')
        self.assertEqual(error['reason'], 'exception')
        self.assertIn('No space left', error['detail']['error'])
        self.assertEqual(self.status()['exceptions'], 1)
        self.assertIn('No space left', self.status()['last_error']['error'])
        self.assertEqual(glob.glob(self.dumps + '/.req_*'), [])

    def test_a_dump_directory_that_is_gone(self):
        self.serve()
        shutil.rmtree(self.dumps)
        self.run_pass([('relight-1', ids(3, 1))])
        self.run_pass([('relight-2', ids(3, 1))])

    def test_arguments_and_outputs_of_no_known_kind(self):
        self.serve()
        hooks = [self.hs.hook({'slot': slot}) for slot in ('aux_0', 'final')]
        hooks.append(self.hs.hook({'slot': 'write', 'layers': [2, 30, 58], 'dump_dir': self.dumps}))
        for function in hooks:
            for output in (None, 3, (), (None, None), torch.ones(2)):
                for args in ((), (None,), (types.SimpleNamespace(extend_seq_lens_cpu=[1]),)):
                    self.assertIsNone(function(None, args, output))
        self.assertGreater(self.hs._status.facts['exceptions'], 0)

    def test_a_configuration_that_cannot_work_is_none_and_not_an_exception(self):
        self.serve()
        for config in ({}, None, {'slot': 'aux_9'}, {'slot': 'write'}, {'slot': 'write', 'dump_dir': self.dumps, 'layers': [1]}):
            with mock.patch.dict(os.environ):
                os.environ.pop('RELIGHT_HS_DUMP_DIR', None)
                self.assertIsNone(self.hs.hook(config), config)

    def test_the_dump_directory_from_the_environment(self):
        with mock.patch.dict(os.environ, {'RELIGHT_HS_DUMP_DIR': self.dumps}):
            self.serve(dump_dir=False)
        self.run_pass([('relight-1', ids(3, 1))])
        self.assertEqual(self.dumped(), ['req_relight-1'])
        self.assertEqual(self.status()['slots'], ['aux_0', 'aux_1', 'aux_2', 'final', 'write'])

    def test_without_an_end_of_pass_the_stashes_do_not_grow(self):
        self.serve()
        self.handles[-1].remove()
        for turn in range(10):
            self.run_pass([('relight-%d' % turn, ids(3, 1))])
            self.assertLessEqual(len(self.hs._stashes), self.hs.STASH_LIMIT)
        self.assertIn('"write"', self.hs._status.facts['last_error']['error'])

    def test_a_pass_that_fails_half_way_does_not_lend_its_states_to_the_next(self):
        self.serve()
        blow = self.model.language_model.model.layers[40].register_forward_hook(lambda *_: 1 / 0)
        with self.assertRaises(ZeroDivisionError):
            self.run_pass([('relight-1', ids(3, 1))])
        blow.remove()
        self.run_pass([('relight-2', ids(3, 1))])
        self.assertEqual(self.error('relight-2')['reason'], 'stash_count')
        own = self.run_pass([('relight-3', ids(3, 1))])
        self.same(self.dumps + '/req_relight-3', own, 0)


LAYOUTS = ('legacy', 'specforge', 'universal')


def tensors_of(layout, own, at, own_ids):
    """What a reader has to find, from the model's own states."""
    aux, pre, post = [each[at] for each in own[:3]], own[3][at], own[4][at]
    facts = {'input_ids': torch.tensor(own_ids), 'loss_mask': torch.ones(len(own_ids), dtype=torch.int64)}
    if layout != 'legacy':
        facts['aux_hidden_state'] = torch.cat(aux, 1)[None]
        facts['hidden_state'] = post[None]
    if layout != 'specforge':
        facts['hidden_states'] = aux + [pre if layout == 'universal' else post]
    return facts


def shape_tree(value):
    """relight's description of a tree whose tensors lie each in a storage of their own."""
    if isinstance(value, dict):
        return {'kind': 'dict', 'entries': [[key, shape_tree(each)] for key, each in value.items()]}
    if isinstance(value, list):
        return {'kind': 'list', 'items': [shape_tree(each) for each in value]}
    return {'kind': 'tensor', 'dtype': 'I64' if value.dtype == torch.int64 else 'BF16', 'shape': list(value.shape)}


def leaves(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [leaf for each in (value.values() if isinstance(value, dict) else value) for leaf in leaves(each)]


def fill_crcs(path):
    """Without relight: CRCs by walking the archive's own directory."""
    with open(path, 'rb') as file:
        content = bytearray(file.read())
    at, = struct.unpack_from('<I', content, len(content) - 6)
    while content[at : at + 4] == b'PK\x01\x02':
        size, = struct.unpack_from('<I', content, at + 20)
        name, = struct.unpack_from('<H', content, at + 28)
        header, = struct.unpack_from('<I', content, at + 42)
        start = header + 30 + sum(struct.unpack_from('<HH', content, header + 26))
        crc = struct.pack('<I', zlib.crc32(content[start : start + size]))
        content[at + 16 : at + 20] = content[start + size + 4 : start + size + 8] = crc
        at += 46 + name
    with open(path, 'wb') as file:
        file.write(content)


class Staged(Case):
    def setUp(self):
        super().setUp()
        self.staging = self.folder + '/out/.staging'

    def stage(self, layout, count=9):
        self.serve(staging=self.staging, layout=layout)
        requests = [('relight-41-0-ab', ids(count, 1)), ('relight-42-0-cd', ids(count + 4, 2))]
        return requests, self.run_pass(requests)

    def equal(self, found, wanted):
        self.assertEqual(list(found), list(wanted) if set(found) == set(wanted) else sorted(wanted))
        for one, other in zip(leaves(found), leaves({key: wanted[key] for key in found})):
            self.assertEqual(one.dtype, other.dtype)
            self.assertTrue(torch.equal(one, other))

    def check_layout(self, layout):
        requests, own = self.stage(layout)
        self.assertEqual(sorted(os.listdir(self.staging)), sorted(r + end for r, _ in requests for end in ('.json', '.ready')))
        for at, (rid, own_ids) in enumerate(requests):
            path = '%s/%s.ready' % (self.staging, rid)
            wanted = tensors_of(layout, own, at, own_ids)
            found = load(path)
            self.equal({key: found[key] for key in wanted}, wanted)
            self.assertEqual(set(found), set(wanted))
            if TORCH_2:
                # How trainers open it: lazily, which takes the zip container and its alignment.
                lazy = torch.load(path, mmap=True, weights_only=True)
                self.equal({key: lazy[key] for key in wanted}, wanted)
            self.check_sidecar(rid, found)
            sidecar = read_json('%s/%s.json' % (self.staging, rid))
            self.assertEqual(sidecar['placeholders'], ['loss_mask'])
            self.assertEqual((sidecar['T'], sidecar['ids_sha256']), (len(own_ids), packed_sha256(own_ids)))

    def check_sidecar(self, rid, found):
        sidecar = read_json('%s/%s.json' % (self.staging, rid))
        path = '%s/%s' % (self.staging, sidecar['file'])
        self.assertEqual(sidecar['bytes'], os.path.getsize(path))
        with open(path, 'rb') as file:
            content = bytearray(file.read())
        flat = {}
        for key, value in found.items():
            flat.update({'%s.%d' % (key, at): each for at, each in enumerate(value)} if isinstance(value, list) else {key: value})
        self.assertEqual({each['key'] for each in sidecar['tensors']}, set(flat))
        for each in sidecar['tensors']:
            dtype = getattr(torch, each['dtype'])
            whole = torch.frombuffer(content, dtype=dtype, offset=each['offset'], count=(len(content) - each['offset']) // flat[each['key']].element_size())
            self.assertTrue(torch.equal(whole.as_strided(each['shape'], each['stride']), flat[each['key']]), each['key'])

    def test_legacy(self):
        self.check_layout('legacy')

    def test_specforge(self):
        self.check_layout('specforge')

    def test_universal_is_one_storage_with_views(self):
        self.check_layout('universal')
        found = load(self.staging + '/relight-41-0-ab.ready')
        place = found['hidden_state'].storage().data_ptr()
        self.assertTrue(all(each.storage().data_ptr() == place for each in found['hidden_states']))
        self.assertLess(os.path.getsize(self.staging + '/relight-42-0-cd.ready'), 13 * (16 + 5 * 16 * 2) + 6 * 1024)

    def test_speculators_is_a_safetensors_file(self):
        requests, own = self.stage('speculators')
        with open(self.staging + '/relight-41-0-ab.ready', 'rb') as file:
            content = file.read()
        size, = struct.unpack_from('<Q', content)
        header = json.loads(content[8 : 8 + size])
        spans = sorted(each['data_offsets'] for each in header.values())
        self.assertEqual([spans[0][0], spans[0][1], 8 + size + spans[-1][1]], [0, spans[1][0], len(content)])
        found = {}
        for key, each in header.items():
            data = bytearray(content[8 + size + each['data_offsets'][0] : 8 + size + each['data_offsets'][1]])
            found[key] = torch.frombuffer(data, dtype={'I64': torch.int64, 'BF16': BF16}[each['dtype']]).view(each['shape'])
        self.assertTrue(torch.equal(found['token_ids'], torch.tensor(requests[0][1])))
        self.assertTrue(torch.equal(found['hidden_states'], torch.stack([each[0] for each in own[:4]], 1)))
        self.check_sidecar('relight-41-0-ab', found)

    def test_the_sidecar_is_there_before_the_file_is_ready(self):
        self.serve(staging=self.staging)
        names, rename = [], os.rename
        with mock.patch.object(self.hs.os, 'rename', lambda a, b: names.append(os.path.basename(b)) or rename(a, b)):
            self.run_pass([('relight-1', ids(3, 1))])
        self.assertEqual(names[:2], ['relight-1.json', 'relight-1.ready'])

    def test_a_refusal_leaves_its_error_in_the_dump_directory_and_nothing_staged(self):
        self.serve(staging=self.staging)
        self.run_pass([('relight-1', ids(3, 1))], prefixes=[5])
        self.assertEqual(self.error('relight-1')['reason'], 'prefix_len')
        self.assertEqual(os.listdir(self.staging), [])

    def test_with_crcs_filled_in_it_is_what_relight_writes(self):
        for layout in ('legacy', 'specforge'):
            requests, own = self.stage(layout, count=50)
            for at, (rid, own_ids) in enumerate(requests):
                root = 'data_%d' % (41 + at)
                tensors = tensors_of(layout, own, at, own_ids)
                found = load('%s/%s.ready' % (self.staging, rid))
                tree = shape_tree({key: tensors[key] for key in found})
                relight('fill-crcs', root=root, tree=tree, file='%s/%s.ready' % (self.staging, rid))
                self.write_by_relight(root, tree, leaves({key: tensors[key] for key in found}))
                with open('%s/%s.ready' % (self.staging, rid), 'rb') as one, open(self.folder + '/relight.pt', 'rb') as other:
                    self.assertEqual(one.read(), other.read(), layout)
            shutil.rmtree(self.staging)

    def write_by_relight(self, root, tree, tensors):
        data = []
        for at, tensor in enumerate(tensors):
            data.append('%s/%d.raw' % (self.folder, at))
            with open(data[-1], 'wb') as file:
                file.write(bytes(tensor.contiguous().view(-1).view(torch.uint8).tolist()))
        relight('write', root=root, tree=tree, data=data, out=self.folder + '/relight.pt')

    @unittest.skipIf(TORCH_2, 'torch 2 adds entries of its own to the archive; the bytes are those of 1.13')
    def test_with_crcs_filled_in_it_is_what_torch_saves(self):
        for layout in LAYOUTS:
            requests, own = self.stage(layout, count=70)
            path = self.staging + '/relight-41-0-ab.ready'
            fill_crcs(path)
            found = load(path)
            own_path = self.folder + '/data_41.pt'
            if layout == 'universal':
                base = torch.stack([each[0] for each in own], 1)
                flat = base.view(1, 70, 80)
                saved = {
                    'input_ids': found['input_ids'],
                    'loss_mask': found['loss_mask'],
                    'aux_hidden_state': flat[:, :, :48],
                    'hidden_state': flat[:, :, 64:],
                    'hidden_states': [base[:, each] for each in range(4)],
                }
            else:
                # Cloned: a slice would drag the storage of the whole batch into the file.
                own_rows = [[each[0].clone()] for each in own]
                saved = {key: tensors_of(layout, own_rows, 0, requests[0][1])[key] for key in found}
            torch.save(saved, own_path)
            with open(path, 'rb') as one, open(own_path, 'rb') as other:
                self.assertEqual(one.read(), other.read(), layout)
            shutil.rmtree(self.staging)


class DrillWrites(Case):
    """The drill's writer, for machines without a torch, beside the hook on the same states."""

    def both(self, **writer):
        self.serve(**writer)
        requests = [('relight-41-0-ab', ids(9, 1)), ('relight-42-0-cd', ids(1, 2)), ('HEALTH_CHECK_7', ids(4, 3))]
        with mock.patch.object(self.hs, '_now', lambda: 1790000000000):
            own = self.run_pass(requests)
            self.hs._status.save()
        told = []
        for at, (rid, own_ids) in enumerate(requests):
            paths = ['%s/%s-%d.raw' % (self.folder, rid, layer) for layer in range(5)]
            for path, state in zip(paths, own):
                with open(path, 'wb') as file:
                    file.write(bytes(state[at].contiguous().view(-1).view(torch.uint8).tolist()))
            told.append({'rid': rid, 'ids': own_ids, 'states': paths})
        staging = writer.get('staging')
        config = {
            'dumpDir': self.folder + '/drill-dumps',
            'staging': staging and self.folder + '/drill-staging',
            'layout': writer.get('layout', 'legacy'),
            'layers': [2, 30, 58],
            'ridPrefix': 'relight-',
            'nameless': False,
            'final': writer.get('final', 'post'),
            'hiddenSize': 16,
        }
        facts = {'server': self.hs.SERVER, 'moduleSha256': self.hs.MODULE_SHA256, 'versions': self.hs._versions()}
        relight('hook-pass', config=config, facts=dict(facts, now=1790000000000), requests=told)
        self.same_files(self.dumps, config['dumpDir'])
        return staging and self.same_files(staging, config['staging'])

    def same_files(self, one, other):
        names = [sorted(os.path.relpath(each, place) for each in glob.glob(place + '/**', recursive=True)) for place in (one, other)]
        self.assertEqual(names[0], names[1])
        for name in names[0]:
            if os.path.isfile(one + '/' + name):
                with open(one + '/' + name, 'rb') as a, open(other + '/' + name, 'rb') as b:
                    self.assertEqual(a.read(), b.read(), name)
        return len(names[0])

    def test_raw(self):
        self.both()

    def test_staged(self):
        for layout in (*LAYOUTS, 'speculators'):
            for final in ('pre', 'post'):
                staging = '%s/%s-%s' % (self.folder, layout, final)
                self.assertEqual(self.both(staging=staging, layout=layout, final=final), 5)
                for place in (self.dumps, self.folder + '/drill-dumps', self.folder + '/drill-staging'):
                    shutil.rmtree(place, ignore_errors=True)


class RelightWrites(Staged):
    """Files of relight's own writer in torch's own reader."""

    def check(self, tensors):
        self.write_by_relight('data_3', shape_tree(tensors), leaves(tensors))
        self.equal(load(self.folder + '/relight.pt'), tensors)

    def test_a_sample(self):
        states = [torch.randn(300, 24).to(BF16) for _ in range(4)]
        mask = (torch.rand(300) > 0.5).long()
        self.check({'input_ids': torch.arange(300), 'hidden_states': states, 'loss_mask': mask})

    def test_twelve_storages_and_odd_shapes(self):
        self.check({'t%d' % at: torch.randn(at + 1, 3, 2).to(BF16) for at in range(12)})
        self.check({'input_ids': torch.tensor([2**40, -5])})

    def test_one_tensor_alone_is_refused_by_nothing(self):
        self.check({'only': torch.randn(70000).to(BF16)})


class Samples(Staged):
    """Whole samples as the extractor stores them from raw states, read as trainers read them."""

    def sample(self, layout, count=40):
        """Path of relight's file, and what the model itself says of the same request."""
        shutil.rmtree(self.dumps, ignore_errors=True)
        torch.manual_seed(7)
        self.serve()
        own_ids = ids(count, 1)
        own = [each[0] for each in self.run_pass([('relight-41-0-ab', own_ids)])]
        mask = [at % 3 != 0 for at in range(count)]
        folder = self.dumps + '/req_relight-41-0-ab'
        path = self.folder + '/relight.' + layout
        states = {name: '%s/%s.bin' % (folder, name) for name in STATES}
        sample = {'index': 41, 'inputIds': own_ids, 'lossMask': [int(each) for each in mask]}
        relight('sample', layout=layout, sample=sample, hiddenSize=16, states=states, out=path)
        return path, own, torch.tensor(own_ids), torch.tensor(mask).long()

    def test_specforge_reads_it(self):
        for layout in ('universal', 'specforge'):
            path, own, own_ids, mask = self.sample(layout)
            data = torch.load(path, weights_only=True)
            for max_len in (2048, 17):
                # As its dataset class does: batch of one taken off, cut, the last position of the mask zeroed.
                hidden = data['aux_hidden_state'].squeeze(0)[:max_len][None, :]
                target = data['hidden_state'].squeeze(0)[:max_len][None, :]
                self.assertTrue(torch.equal(hidden[0], torch.cat(own[:3], 1)[:max_len]), layout)
                self.assertTrue(torch.equal(target[0], own[4][:max_len]), layout)
                self.assertTrue(torch.equal(data['input_ids'][:max_len][None, :][0], own_ids[:max_len]))
                loss_mask = data['loss_mask'][:max_len][None, :]
                self.assertTrue(torch.equal(loss_mask[0], mask[:max_len]))
                loss_mask[0, -1] = 0
            self.assertEqual((data['aux_hidden_state'].dtype, data['aux_hidden_state'].shape), (BF16, (1, 40, 48)))

    def test_speculators_reads_the_list(self):
        for layout in ('universal', 'legacy'):
            path, own, own_ids, mask = self.sample(layout)
            data = torch.load(path, weights_only=True)
            states = data['hidden_states']
            self.assertTrue(torch.equal(torch.cat(states[:-1], dim=-1), torch.cat(own[:3], 1)), layout)
            self.assertTrue(torch.equal(states[-1], own[3]), layout)
            self.assertTrue(torch.equal(data['input_ids'], own_ids))
            self.assertTrue(torch.equal(data['loss_mask'], mask))

    def test_speculators_reads_the_safetensors_file(self):
        path, own, own_ids, _ = self.sample('speculators')
        with open(path, 'rb') as file:
            content = bytearray(file.read())
        size, = struct.unpack_from('<Q', content)
        header = json.loads(content[8 : 8 + size])
        at = {name: 8 + size + each['data_offsets'][0] for name, each in header.items()}
        shape = header['hidden_states']['shape']
        self.assertEqual(shape, [40, 4, 16])
        found = torch.frombuffer(content, dtype=BF16, offset=at['hidden_states'], count=40 * 4 * 16).view(shape)
        self.assertTrue(torch.equal(found[:, :-1].flatten(1), torch.cat(own[:3], 1)))
        self.assertTrue(torch.equal(found[:, -1], own[3]))
        self.assertTrue(torch.equal(torch.frombuffer(content, dtype=torch.int64, offset=at['token_ids'], count=40), own_ids))

    @unittest.skipIf(TORCH_2, 'torch 2 adds entries of its own to the archive; the bytes are those of 1.13')
    def test_it_is_what_torch_saves_byte_for_byte(self):
        for layout in LAYOUTS:
            # Counts on both sides of what one and two bytes of a pickled number hold.
            for count in (1, 7, 60, 300, 5000):
                path, own, own_ids, mask = self.sample(layout, count)
                base = torch.stack(own, 1)
                flat = base.view(1, count, 80)
                saved = {
                    'legacy': lambda: {'input_ids': own_ids, 'hidden_states': own[:4], 'loss_mask': mask},
                    'specforge': lambda: {
                        'input_ids': own_ids,
                        'loss_mask': mask,
                        'aux_hidden_state': torch.cat(own[:3], 1)[None],
                        'hidden_state': own[4][None],
                    },
                    'universal': lambda: {
                        'input_ids': own_ids,
                        'loss_mask': mask,
                        'aux_hidden_state': flat[:, :, :48],
                        'hidden_state': flat[:, :, 64:],
                        'hidden_states': [base[:, each] for each in range(4)],
                    },
                }[layout]()
                saved = {key: [each.clone() for each in value] if layout == 'legacy' and isinstance(value, list) else value for key, value in saved.items()}
                torch.save(saved, self.folder + '/data_41.pt')
                self.same_bytes(path, self.folder + '/data_41.pt', (layout, count))

    def test_it_is_what_the_hook_stages_with_mask_and_crcs_filled_in(self):
        for layout in LAYOUTS + ('speculators',):
            path, _, own_ids, mask = self.sample(layout)
            final = {'final': 'pre'} if layout == 'legacy' else {}
            torch.manual_seed(7)
            self.serve(staging=self.staging, layout=layout, **final)
            self.run_pass([('relight-41-0-ab', own_ids.tolist())])
            staged = self.staging + '/relight-41-0-ab.ready'
            sidecar = read_json(self.staging + '/relight-41-0-ab.json')
            for each in sidecar['tensors']:
                if each['key'] in sidecar['placeholders']:
                    with open(staged, 'r+b') as file:
                        file.seek(each['offset'])
                        file.write(struct.pack('<%dq' % len(mask), *mask.tolist()))
            if layout != 'speculators':
                fill_crcs(staged)
            self.same_bytes(path, staged, layout)
            shutil.rmtree(self.staging)

    def test_what_the_hook_staged_is_adopted_as_what_would_have_been_written(self):
        for layout in LAYOUTS + ('speculators',):
            for count in (40, 300):
                path, _, own_ids, mask = self.sample(layout, count)
                final = {'final': 'pre'} if layout == 'legacy' else {}
                torch.manual_seed(7)
                self.serve(staging=self.staging, layout=layout, **final)
                self.run_pass([('relight-41-0-ab', own_ids.tolist())])
                sample = {'index': 41, 'inputIds': own_ids.tolist(), 'lossMask': mask.tolist()}
                facts = {'output': self.folder + '/out', 'dumps': self.dumps, 'rid': 'relight-41-0-ab'}
                adopted = relight('adopt', layout=layout, sample=sample, hiddenSize=16, **facts)
                self.same_bytes(path, adopted, (layout, count))
                self.assertEqual(os.listdir(self.staging), ['relight-41-0-ab.json'])
                shutil.rmtree(self.folder + '/out')

    def same_bytes(self, one, other, words):
        with open(one, 'rb') as first, open(other, 'rb') as second:
            self.assertEqual(first.read() == second.read(), True, words)


def package(name):
    """A trainer's own module, or the reason why it is not here."""
    try:
        return importlib.import_module(name), None
    except Exception as error:
        return None, '%s is not here: %s' % (name.split('.')[0], str(error).split('\n')[0])


READER, NO_READER = package('specforge.runtime.data_plane.offline_reader')
SPECFORGE, NO_SPECFORGE = package('specforge.data.preprocessing')
SPECULATORS, NO_SPECULATORS = package('speculators.train.data')
DATASETS, NO_DATASETS = package('datasets')
SAFETENSORS, NO_SAFETENSORS = package('safetensors.torch')


class Trainers(Samples):
    """The same samples in the trainers' own loaders, where those are installed."""

    def placed(self, layout, name):
        path, *own = self.sample(layout)
        place = os.path.join(self.folder, 'tree', name)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        shutil.copy(path, place)
        return place, *own

    @unittest.skipIf(READER is None, NO_READER)
    def test_specforge_lists_and_checks_every_file(self):
        for layout in ('universal', 'specforge'):
            place, *_ = self.placed(layout, 'rows_0-2000/data_41.ckpt')
            refs = READER.OfflineManifestReader(os.path.join(self.folder, 'tree'), validate_files=True).read()
            self.assertEqual([each.feature_store_uri for each in refs], ['file://' + place], layout)
            self.assertEqual(refs[0].num_tokens, 40)
            raw = READER.load_feature_file(place)
            self.assertEqual(raw['aux_hidden_state'].shape, (1, 40, 48))

    @unittest.skipIf(SPECFORGE is None, NO_SPECFORGE)
    def test_specforge_trains_on_the_states_of_the_model(self):
        for layout in ('universal', 'specforge'):
            place, own, own_ids, mask = self.placed(layout, 'rows_0-2000/data_41.ckpt')
            sample = SPECFORGE.OfflineEagle3Dataset([place], max_len=17)[0]
            self.assertTrue(torch.equal(sample['hidden_state'][0], torch.cat(own[:3], 1)[:17]), layout)
            self.assertTrue(torch.equal(sample['target'][0], own[4][:17]), layout)
            self.assertTrue(torch.equal(sample['input_ids'][0], own_ids[:17]), layout)
            self.assertTrue(torch.equal(sample['loss_mask'][0, :-1], mask[:16]), layout)

    @unittest.skipIf(SPECULATORS is None or DATASETS is None, NO_SPECULATORS or NO_DATASETS)
    def test_speculators_trains_on_the_states_of_the_model(self):
        _, own, own_ids, mask = self.placed('speculators', 'hidden_states/hs_0.safetensors')
        rows = {'input_ids': [own_ids.tolist()], 'loss_mask': [mask.tolist()], 'seq_len': [40]}
        data = DATASETS.Dataset.from_dict(rows).with_format('torch')
        data.save_to_disk(os.path.join(self.folder, 'tree'))
        sample = SPECULATORS.ArrowDataset(2048, os.path.join(self.folder, 'tree'), on_missing='raise')[0]
        self.assertTrue(torch.equal(sample['hidden_states'], torch.cat(own[:3], 1)))
        self.assertTrue(torch.equal(sample['verifier_last_hidden_states'], own[3]))
        self.assertTrue(torch.equal(sample['input_ids'], own_ids))

    @unittest.skipIf(SAFETENSORS is None, NO_SAFETENSORS)
    def test_safetensors_loads_it(self):
        place, own, own_ids, _ = self.placed('speculators', 'hs_0.safetensors')
        found = SAFETENSORS.load_file(place)
        self.assertTrue(torch.equal(found['token_ids'], own_ids))
        self.assertTrue(torch.equal(found['hidden_states'], torch.stack(own[:4], 1)))


class Speed(Case):
    def test_100_megabytes(self):
        """A figure, not a limit."""
        self.serve()
        rows, width = 1400, 7168
        states = {name: torch.randn(rows, width).to(BF16) for name in STATES}
        for mode, more in (('raw', {}), ('staged', {'staging': self.folder + '/staging', 'layout': 'universal'})):
            writer = self.hs.Writer({'layers': [2, 30, 58], 'dump_dir': self.dumps, **more})
            request = self.hs.Request('relight-1', 'relight-1', 0, rows, 0)
            best = None
            for turn in range(3):
                begun = time.monotonic()
                writer._write(request._replace(name='relight-%d' % turn, rid='relight-%d' % turn), states, torch.arange(rows))
                took = time.monotonic() - begun
                best = took if best is None else min(best, took)
            print('%s: %d MB in %.0f ms' % (mode, rows * width * 10 / 1e6, best * 1000), file=sys.stderr)


class Counting(unittest.TextTestResult):
    def startTestRun(self):
        self.passed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1


def load_tests(loader, tests, pattern):
    """Three inherit helpers, not the tests beside them."""
    own = {case.__name__: [each for each in vars(case) if each.startswith('test_')] for case in (RelightWrites, Samples, Trainers)}
    suite = unittest.TestSuite()
    for case in (Raw, WhoIsSkipped, Refusals, NeverRaises, Staged, DrillWrites, RelightWrites, Samples, Trainers, Speed):
        names = own.get(case.__name__) or loader.getTestCaseNames(case)
        suite.addTests(case(name) for name in names)
    return suite


if __name__ == '__main__':
    runner = unittest.TextTestRunner(resultclass=Counting, verbosity=2)
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules['__main__'])
    if len(sys.argv) > 1:
        suite = unittest.TestSuite(each for each in suite if any(word in each.id() for word in sys.argv[1:]))
    result = runner.run(suite)
    failed = len(result.failures) + len(result.errors)
    print('%d passed, %d failed, %d skipped' % (result.passed, failed, len(result.skipped)))
    sys.exit(1 if failed else 0)
