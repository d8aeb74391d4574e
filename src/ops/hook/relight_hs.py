"""Hidden states out of a running SGLang server, for EAGLE-3 training data.

SGLang loads this file by `--forward-hooks` (`relight_hs:hook`, this directory on PYTHONPATH). A hook is told its module
but not the module's name, so there is one spec per module, and `config.slot` says what that module is:

    aux_0 aux_1 aux_2   model.layers.{2,30,58}.input_layernorm   second output: what enters that layer, un-normed
    final               model.norm                               both outputs: post-norm, and the sum before the norm
    write               model                                    end of the pass: split by request, check, write

`relight hook print-flags` prints the five specs. Nothing here may raise into the server: an exception is counted and kept
in DUMP_DIR/relight_hs.status.json, and the request it cost gets DUMP_DIR/req_<rid>/error.json instead of states.
"""
import collections
import ctypes
import functools
import hashlib
import importlib.metadata
import io
import json
import logging
import os
import pickle
import re
import shutil
import struct
import sys
import time
import zlib

import torch

SLOTS = ('aux_0', 'aux_1', 'aux_2', 'final')
STATES = ('aux_0', 'aux_1', 'aux_2', 'final_pre', 'final_post')
# What the final state of a container is, by layout; None: what `config.final` says.
LAYOUTS = {
    'legacy': None,
    'specforge': 'post',
    'speculators': 'pre',
    'universal': {'hidden_state': 'post', 'hidden_states': 'pre'},
}
PREFILL = ('EXTEND', 'MIXED')
STASH_LIMIT = 8
REMEMBERED_PARTS = 1024
# Larger writes were several times slower on the kernels this was measured on.
WRITE_BYTES = 1 << 20

log = logging.getLogger('relight_hs')
_stashes = []


class Refused(Exception):
    """These states must not be used. The reason is one word for programs; the detail is for people."""

    def __init__(self, reason, **detail):
        super().__init__(reason)
        self.reason = reason
        self.detail = detail


def hook(config):
    """Factory for SGLang. Returns None when the configuration cannot work: SGLang then logs that it registers nothing."""
    try:
        slot = config['slot']
        if slot in SLOTS:
            act = functools.partial(_stash, slot)
        elif slot == 'write':
            act = Writer(config).end_of_pass
        else:
            raise ValueError('slot must be one of %s or write, not %r' % (', '.join(SLOTS), slot))
        _status.facts['slots'] = sorted(set(_status.facts['slots']) | {slot})
        _status.save()
    except Exception as error:
        _status.failed('configuration', error)
        return None

    def forward_hook(module, args, output):
        try:
            act(args, output)
        except Exception as error:
            _status.failed(slot, error)

    return forward_hook


def _stash(slot, args, output):
    """Clones at once: the norm kernels work in place, and the next layer adds into the same residual."""
    if _tp_rank() != 0 or _capturing():
        return
    if not isinstance(output, (tuple, list)) or len(output) < 2:
        raise TypeError('%s: the module returned no residual' % slot)
    if len(_stashes) >= STASH_LIMIT:
        # No pass ever ended: the hook of slot `write` is missing. Memory of the card is not ours to fill.
        del _stashes[:]
        _status.failed(slot, RuntimeError('no end of a pass was seen: is the hook of slot "write" registered?'))
    fused = any(getattr(each, '_sglang_needs_allreduce_fusion', False) for each in (*args, *output))
    kept = output[:2] if slot == 'final' else output[1:2]
    _stashes.append((slot, [each.detach().clone() for each in kept], fused))


def _capturing():
    return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()


def _tp_rank():
    """All ranks hold the same full rows after the all-reduce. SGLang is asked only if it is what loaded us.

    Asked each time: an answer from before the groups were made would be 0 on every rank.
    """
    for module, name in (
        ('sglang.srt.layers.dp_attention', 'get_attention_tp_rank'),
        ('sglang.srt.distributed', 'get_tensor_model_parallel_rank'),
    ):
        try:
            rank = getattr(sys.modules[module], name)()
        except Exception:
            continue
        if isinstance(rank, int):
            return rank
    distributed = torch.distributed
    return distributed.get_rank() if distributed.is_available() and distributed.is_initialized() else 0


Request = collections.namedtuple('Request', 'rid name start rows prefix')


class Writer:
    """What ends a pass: takes the stashes, refuses what is not certain, writes the rest, one request at a time."""

    def __init__(self, config):
        self.dump_dir = config.get('dump_dir') or os.environ['RELIGHT_HS_DUMP_DIR']
        self.layers = [int(layer) for layer in config['layers']]
        self.rid_prefix = config.get('rid_prefix', 'relight-')
        # Before 0.5.10 a batch does not carry its rids: then a request is named by the hash of its ids, if that is wanted.
        self.nameless = config.get('nameless') == 'ids'
        self.staging = config.get('staging')
        self.layout = config.get('layout', 'legacy')
        self.final = 'final_' + config.get('final', 'post')
        if len(self.layers) != 3 or self.final not in STATES or self.layout not in LAYOUTS:
            raise ValueError('layers, final or layout is not one that can be written')
        self._parts = collections.OrderedDict()
        for directory in filter(None, (self.dump_dir, self.staging)):
            os.makedirs(directory, exist_ok=True)
        _status.path = os.path.join(self.dump_dir, 'relight_hs.status.json')

    def end_of_pass(self, args, _output):
        stashes = _stashes[:]
        del _stashes[:]
        if _tp_rank() != 0:
            return
        batch = next((each for each in args if hasattr(each, 'extend_seq_lens_cpu')), None)
        if batch is None:
            raise LookupError('no forward_batch among the positional arguments of the model')
        mode = getattr(batch.forward_mode, 'name', str(batch.forward_mode))
        if mode not in PREFILL:
            _status.count('skipped', mode.lower())
            return
        lengths = _integers(batch.extend_seq_lens_cpu)
        requests = self._ours(batch, lengths)
        if not requests:
            return
        try:
            states, ids = _checked(batch, mode, lengths, stashes)
            self._require_room(sum(each.rows for each in requests), states)
        except Exception as error:
            for request in requests:
                self._refuse(request, error)
        else:
            for request in requests:
                try:
                    self._write(request, states, ids)
                except Exception as error:
                    self._refuse(request, error)
        _status.save()

    def _ours(self, batch, lengths):
        rids = getattr(batch, 'rids', None)
        if rids is None and not self.nameless:
            _status.count('skipped', 'without_rids')
            return []
        prefixes = _integers(batch.extend_prefix_lens_cpu) or [None] * len(lengths)
        ids = None if rids else batch.input_ids.to('cpu', torch.int64)
        requests, start = [], 0
        for at, rows in enumerate(lengths):
            rid = rids[at] if rids else None
            name = rid if rids else 'ids-' + _sha256(ids[start : start + rows])
            if rids and rid.startswith('HEALTH_CHECK'):
                _status.count('skipped', 'health_check')
            elif rids and not rid.startswith(self.rid_prefix):
                _status.count('skipped', 'foreign_rid')
            elif not re.fullmatch(r'[A-Za-z0-9][A-Za-z0-9._-]{0,127}', name):
                _status.count('skipped', 'unusable_rid')
            else:
                requests.append(Request(rid, name, start, rows, prefixes[at]))
            start += rows
        return requests

    def _require_room(self, rows, states):
        needed = 2 * rows * sum(each.shape[1] * each.element_size() for each in states.values())
        place = os.statvfs(self.staging or self.dump_dir)
        free = place.f_bavail * place.f_frsize
        if free < needed:
            raise Refused('no_space', free_bytes=free, needed_bytes=needed)

    def _part(self, request):
        """0 for a prompt from its start; k for the k-th chunk, which goes on where the written rows end."""
        if request.prefix == 0:
            return 0
        rows, parts = self._parts.get(request.rid, (None, 0))
        if self.staging or rows is None or rows != request.prefix:
            raise Refused('prefix_len', prefix_len=request.prefix, rows_written=rows)
        return parts

    def _write(self, request, states, ids):
        part = self._part(request)
        if part == 0 and os.path.exists(self._done_mark(request)):
            _status.count('skipped', 'duplicate')
            return
        span = slice(request.start, request.start + request.rows)
        own = {name: state[span] for name, state in states.items()}
        for name, state in own.items():
            finite = torch.isfinite(state).all(dim=1)
            if not bool(finite.all()):
                raise Refused('not_finite', state=name, row=int((~finite).nonzero()[0]))
        own = {name: state.to('cpu').contiguous() for name, state in own.items()}
        about = self._about(request, own, ids[span], part)
        if self.staging:
            self._write_container(request, own, ids[span], about)
        else:
            self._write_raw(request, own, about)
        if request.rid:
            self._parts[request.rid] = (request.prefix + request.rows, part + 1)
            while len(self._parts) > REMEMBERED_PARTS:
                self._parts.popitem(last=False)
        _status.count('written', 'parts' if part else 'requests')

    def _done_mark(self, request):
        if self.staging:
            return os.path.join(self.staging, request.name + '.ready')
        return os.path.join(self.dump_dir, 'req_' + request.name, 'meta.json')

    def _about(self, request, own, ids, part):
        return dict(
            _common(request),
            H=own['aux_0'].shape[1],
            part=part,
            # Boundaries: the state that enters these layers.
            layers=self.layers,
            dtype='bfloat16',
            ids_sha256=_sha256(ids),
            tp_rank=0,
            versions=_versions(),
        )

    def _write_raw(self, request, own, about):
        final = os.path.join(self.dump_dir, 'req_' + request.name)
        if about['part']:
            final = os.path.join(final, 'part_%d' % about['part'])
        temporary = self._temporary(request)
        files = {}
        for name in STATES:
            size, crc = _write_file(os.path.join(temporary, name + '.bin'), [_memory(own[name])], summed=True)
            files[name + '.bin'] = {'bytes': size, 'crc32': '%08x' % crc}
        norm = {'final_pre.bin': 'pre', 'final_post.bin': 'post'}
        _write_json(os.path.join(temporary, 'meta.json'), dict(about, schema='relight.dump/1', norm=norm, files=files))
        # What is there now can only be an error of an earlier try.
        shutil.rmtree(final, ignore_errors=True)
        os.rename(temporary, final)

    def _write_container(self, request, own, ids, about):
        data, sidecar = (os.path.join(self.staging, request.name + end) for end in ('.tmp', '.json'))
        tree = _tree(self.layout, self.final, own, ids)
        write = _write_safetensors if self.layout == 'speculators' else _write_torch_file
        tensors = write(data, _root(request.rid, self.rid_prefix), tree)
        facts = {
            'schema': 'relight.staged/1',
            'request': request.name,
            'file': request.name + '.ready',
            'bytes': os.path.getsize(data),
            'layout': self.layout,
            'norm': LAYOUTS[self.layout] or self.final[len('final_') :],
            # The server knows no loss mask: all ones, to be overwritten where it stands.
            'placeholders': [each['key'] for each in tensors if each['key'] == 'loss_mask'],
            'tensors': tensors,
        }
        _write_json(sidecar, dict(about, **facts))
        os.rename(data, os.path.join(self.staging, facts['file']))

    def _temporary(self, request):
        temporary = os.path.join(self.dump_dir, '.req_' + request.name + '.tmp')
        shutil.rmtree(temporary, ignore_errors=True)
        os.makedirs(temporary)
        return temporary

    def _refuse(self, request, error):
        if not isinstance(error, Refused):
            _status.failed('write', error)
            error = Refused('exception', error=repr(error))
        _status.refused(request.name, error)
        report = dict(_common(request), schema='relight.dump-error/1', reason=error.reason, detail=error.detail)
        try:
            folder = os.path.join(self.dump_dir, 'req_' + request.name)
            if os.path.isdir(folder):
                _write_json(os.path.join(folder, 'error.json'), report)
            else:
                temporary = self._temporary(request)
                _write_json(os.path.join(temporary, 'error.json'), report)
                os.rename(temporary, folder)
        except Exception as trouble:
            _status.failed('error.json', trouble)


def _common(request):
    return {
        'rid': request.rid,
        'T': request.rows,
        'prefix_len': request.prefix,
        'server': SERVER,
        'module_sha256': MODULE_SHA256,
        'ended_at': _now(),
    }


def _now():
    return int(time.time() * 1000)


def _checked(batch, mode, lengths, stashes):
    """States [rows of the whole batch, H] by name, and the ids on the CPU. Whatever is not certain is refused."""
    if _capturing():
        raise Refused('cuda_graph_capture')
    if mode != 'EXTEND':
        raise Refused('mixed_batch', mode=mode)
    if getattr(batch, 'global_num_tokens_cpu', None) is not None:
        raise Refused('dp_attention')
    found = sorted(slot for slot, _, _ in stashes)
    if found != sorted(SLOTS):
        # A fused all-reduce goes past the hooked module; a replayed graph goes past all of them.
        raise Refused('stash_count', stashed=found, expected=sorted(SLOTS))
    if any(fused for _, _, fused in stashes):
        raise Refused('allreduce_fusion')
    tensors = {slot: kept for slot, kept, _ in stashes}
    post, pre = tensors.pop('final')
    states = dict({slot: kept[0] for slot, kept in tensors.items()}, final_pre=pre, final_post=post)
    shape = (sum(lengths), pre.shape[-1])
    for name in STATES:
        state = states[name]
        if state.dtype != torch.bfloat16:
            raise Refused('dtype', state=name, dtype=str(state.dtype))
        if tuple(state.shape) != shape:
            raise Refused('row_count', state=name, shape=list(state.shape), expected=list(shape))
    ids = batch.input_ids.to('cpu', torch.int64)
    if tuple(ids.shape) != shape[:1]:
        raise Refused('ids_count', shape=list(ids.shape), expected=list(shape[:1]))
    return states, ids


def _integers(values):
    return values.tolist() if hasattr(values, 'tolist') else None if values is None else [int(each) for each in values]


# Containers: what is written here must be what relight's own writer makes of the same tensors, except for the CRCs.

Leaf = collections.namedtuple('Leaf', 'base view')
_STORAGES = {torch.int64: torch.LongStorage, torch.bfloat16: torch.BFloat16Storage}
_SAFE_NAMES = {torch.int64: 'I64', torch.bfloat16: 'BF16'}


def _root(rid, prefix):
    """Name inside the archive. `<prefix><index>-…` gives data_<index>: the same bytes as the sample's own file."""
    found = re.match(r'\d+(?=-|$)', (rid or '')[len(prefix) :])
    return 'data_' + found.group() if found else 'archive'


def _tree(layout, final, own, ids):
    rows, width = own['aux_0'].shape
    whole = lambda tensor: Leaf(tensor, tensor)
    states = [own[name] for name in STATES]
    ids, mask = whole(ids.contiguous()), whole(torch.ones(rows, dtype=torch.int64))
    if layout == 'legacy':
        return {'input_ids': ids, 'hidden_states': [whole(each) for each in states[:3] + [own[final]]], 'loss_mask': mask}
    if layout == 'specforge':
        aux = whole(torch.cat(states[:3], dim=1).unsqueeze(0))
        return {'input_ids': ids, 'loss_mask': mask, 'aux_hidden_state': aux, 'hidden_state': whole(states[4].unsqueeze(0))}
    if layout == 'speculators':
        return {'token_ids': ids, 'hidden_states': whole(torch.stack(states[:4], dim=1))}
    base = torch.stack(states, dim=1)
    flat = base.view(1, rows, 5 * width)
    return {
        'input_ids': ids,
        'loss_mask': mask,
        'aux_hidden_state': Leaf(base, flat[:, :, : 3 * width]),
        'hidden_state': Leaf(base, flat[:, :, 4 * width :]),
        'hidden_states': [Leaf(base, base[:, at]) for at in range(4)],
    }


class _Storage:
    def __init__(self, base):
        self.base = base


class _Tensor:
    """Pickles as torch.save would pickle the view, whatever the version of torch."""

    def __init__(self, leaf):
        self.leaf = leaf

    def __reduce__(self):
        base, view = self.leaf
        place = (view.storage_offset() - base.storage_offset(), tuple(view.shape), tuple(view.stride()))
        return torch._utils._rebuild_tensor_v2, (_Storage(base), *place, False, collections.OrderedDict())


class _Pickler(pickle.Pickler):
    def __init__(self, out):
        super().__init__(out, protocol=2)
        self.bases, self.keys = [], {}

    def persistent_id(self, value):
        if not isinstance(value, _Storage):
            return None
        base = value.base
        if id(base) not in self.keys:
            self.keys[id(base)] = str(len(self.bases))
            self.bases.append(base)
        return ('storage', _STORAGES[base.dtype], self.keys[id(base)], 'cpu', base.numel())


def _walk(tree):
    """(key, leaf) in order; the members of a list are key.0, key.1, …"""
    for key, value in tree.items():
        for at, leaf in enumerate(value) if isinstance(value, list) else [(None, value)]:
            yield (key if at is None else '%s.%d' % (key, at)), leaf


def _write_torch_file(path, root, tree):
    """The zip that torch.save writes, byte for byte, with every CRC field 0. Entries as in torch 1.13: what all read."""
    as_tensors = {k: [_Tensor(e) for e in v] if isinstance(v, list) else _Tensor(v) for k, v in tree.items()}
    out = io.BytesIO()
    pickler = _Pickler(out)
    pickler.dump(as_tensors)
    data = sorted(('data/%d' % at, _memory(base), id(base)) for at, base in enumerate(pickler.bases))
    entries = [('data.pkl', out.getvalue(), None), *data, ('version', b'3\n', None)]
    pieces, directory, offsets, at = [], [], {}, 0
    for name, content, base in entries:
        name = ('%s/%s' % (root, name)).encode()
        padding = -(at + 30 + len(name) + 4) % 64
        extra = b'FB' + struct.pack('<H', padding) + b'Z' * padding
        header = struct.pack('<IHHHHHIIIHH', 0x04034B50, 0, 0x0808, 0, 0, 0, 0, 0, 0, len(name), len(extra)) + name + extra
        size = len(content)
        pieces += [header, content, struct.pack('<IIII', 0x08074B50, 0, size, size)]
        fields = (0x02014B50, 0, 0, 0x0808, 0, 0, 0, 0, size, size, len(name), 0, 0, 0, 0, 0, at)
        directory.append(struct.pack('<IHHHHHHIIIHHHHHII', *fields) + name)
        offsets[base] = at + len(header)
        at += len(header) + size + 16
        if at >= 0xFFFFFFFF:
            raise Refused('too_large', bytes=at)
    size, count = sum(map(len, directory)), len(directory)
    end64 = struct.pack('<IQHHIIQQQQ', 0x06064B50, 44, 0x031E, 0x2D, 0, 0, count, count, size, at)
    locator = struct.pack('<IIQI', 0x07064B50, 0, at + size, 1)
    end = struct.pack('<IHHHHIIH', 0x06054B50, 0, 0, count, count, size, at, 0)
    _write_file(path, [*pieces, *directory, end64, locator, end])
    return [_described(key, leaf, offsets[id(leaf.base)]) for key, leaf in _walk(tree)]


def _write_safetensors(path, _root_name, tree):
    header, at = {}, 0
    for key, leaf in _walk(tree):
        size = leaf.base.numel() * leaf.base.element_size()
        name = _SAFE_NAMES[leaf.base.dtype]
        header[key] = {'dtype': name, 'shape': list(leaf.view.shape), 'data_offsets': [at, at + size]}
        at += size
    text = json.dumps(header, separators=(',', ':')).encode()
    text += b' ' * (-len(text) % 8)
    start = 8 + len(text)
    _write_file(path, [struct.pack('<Q', len(text)), text, *(_memory(leaf.base) for _, leaf in _walk(tree))])
    return [_described(key, leaf, start + header[key]['data_offsets'][0]) for key, leaf in _walk(tree)]


def _described(key, leaf, offset):
    base, view = leaf
    return {
        'key': key,
        'dtype': str(view.dtype).replace('torch.', ''),
        'shape': list(view.shape),
        'stride': list(view.stride()),
        'offset': offset + (view.storage_offset() - base.storage_offset()) * view.element_size(),
        'nbytes': view.numel() * view.element_size(),
    }


def _memory(tensor):
    """The bytes of a contiguous CPU tensor: no copy, and no numpy, which not every torch comes with."""
    return memoryview((ctypes.c_ubyte * (tensor.numel() * tensor.element_size())).from_address(tensor.data_ptr()))


def _sha256(ids):
    return hashlib.sha256(_memory(ids.contiguous())).hexdigest()


def _write_file(path, pieces, summed=False):
    """Bytes written and, if they are summed, which takes twice as long as to write them, their CRC-32. Not synced: that is
    for whoever makes it a stored file."""
    size = crc = 0
    with open(path, 'wb', buffering=0) as file:
        for piece in pieces:
            for start in range(0, len(piece), WRITE_BYTES):
                block = piece[start : start + WRITE_BYTES]
                crc = zlib.crc32(block, crc) if summed else 0
                while len(block):
                    written = file.write(block)
                    block = block[written:]
                    size += written
    return size, crc


def _write_json(path, value):
    temporary = path + '.tmp'
    with open(temporary, 'w') as file:
        json.dump(value, file, separators=(',', ':'))
    os.rename(temporary, path)


class Status:
    """What this module did, for whoever looks from outside. Saving it may fail, and that too must not hurt."""

    def __init__(self):
        self.path = None
        self.saved_at = 0.0
        self.facts = {
            'schema': 'relight.hook-status/1',
            'server': SERVER,
            'module_sha256': MODULE_SHA256,
            'slots': [],
            'written': {},
            'skipped': {},
            'refused': {},
            'exceptions': 0,
            'last_refusal': None,
            'last_error': None,
        }

    def count(self, kind, what):
        self.facts[kind][what] = self.facts[kind].get(what, 0) + 1

    def refused(self, name, refused):
        self.count('refused', refused.reason)
        refusal = {'request': name, 'reason': refused.reason, 'detail': refused.detail, 'at': _now()}
        self.facts['last_refusal'] = refusal

    def failed(self, where, error):
        self.facts['exceptions'] += 1
        self.facts['last_error'] = {'where': where, 'error': repr(error)[:1000], 'at': _now()}
        if time.monotonic() - self.saved_at > 1:
            log.warning('relight_hs: %s: %r', where, error)
            self.save()

    def save(self):
        self.saved_at = time.monotonic()
        try:
            if self.path and _tp_rank() == 0:
                _write_json(self.path, dict(self.facts, versions=_versions(), saved_at=_now()))
        except Exception:
            pass


def _identity(pid):
    """A pid alone names nobody: field 22 of stat is when it started. The name before it may hold blanks and brackets."""
    try:
        with open('/proc/%d/stat' % pid) as file:
            fields = file.read().rpartition(')')[2].split()
        return {'pid': pid, 'start_ticks': int(fields[19])}
    except Exception:
        return {'pid': pid, 'start_ticks': None}


def _server():
    try:
        with open('/proc/sys/kernel/random/boot_id') as file:
            boot_id = file.read().strip()
    except Exception:
        boot_id = None
    return dict(_identity(os.getpid()), boot_id=boot_id, parent=_identity(os.getppid()))


@functools.lru_cache(maxsize=None)
def _versions():
    try:
        sglang = importlib.metadata.version('sglang')
    except Exception:
        sglang = None
    return {'python': '.'.join(map(str, sys.version_info[:3])), 'torch': str(torch.__version__), 'sglang': sglang}


def _own_sha256():
    try:
        with open(__file__, 'rb') as file:
            return hashlib.sha256(file.read()).hexdigest()
    except Exception:
        return None


SERVER = _server()
MODULE_SHA256 = _own_sha256()
_status = Status()
