# relight-hook-look 1
"""Where the dump of hidden states would come from if the server were launched now. Standard library only.

Read on standard input by the server's Python, with the server's environment: argv is DUMP_DIR, TREE, MODEL and HOOK_DIR,
each possibly empty. Prints one JSON object. SGLang is never imported: find_spec on a top-level name only locates it.
"""
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import re
import sys

FLAG = re.compile(rb'["\'](--[a-z0-9][a-z0-9-]*)["\']')
MARKERS = (b'_hs_dump_dir', b'SGLANG_HS_DUMP_DIR')
PATCHED = 'srt/models/deepseek_v2.py'
LARGEST = 16 << 20


def read(path, limit=LARGEST):
    try:
        with open(path, 'rb') as file:
            return file.read(limit)
    except OSError:
        return None


def marked(content):
    return None if content is None else any(marker in content for marker in MARKERS)


def source(path):
    content = read(path)
    if content is None:
        return None
    return {'path': path, 'sha256': hashlib.sha256(content).hexdigest(), 'marked': marked(content)}


def bytecode(path):
    """What the interpreter would run instead of the source: it trusts time and size in the header, not the content."""
    cache = importlib.util.cache_from_source(path)
    content = read(cache)
    if content is None or len(content) < 16:
        return None
    flags, when, size = (int.from_bytes(content[at : at + 4], 'little') for at in (4, 8, 12))
    if content[:4] != importlib.util.MAGIC_NUMBER:
        state = 'other interpreter'
    elif flags & 1:
        state = 'checked by hash' if flags & 2 else 'never checked'
    else:
        stat = os.stat(path)
        fits = when == int(stat.st_mtime) & 0xFFFFFFFF and size == stat.st_size & 0xFFFFFFFF
        state = 'fits' if fits else 'outdated'
    return {'path': cache, 'state': state, 'marked': marked(content)}


def package(name):
    try:
        return importlib.util.find_spec(name)
    except Exception:
        return None


def flags(path):
    """What launch_server takes, by the words of its source: asking it would load all of SGLang.

    Releases that make their flags out of classes in many files have few words there: then nothing is said.
    """
    found = {each.decode() for each in FLAG.findall(read(path) or b'')}
    return sorted(found) if '--model-path' in found else None


def imported_sglang():
    spec = package('sglang')
    if spec is None:
        return None
    places = list(spec.submodule_search_locations or [])
    directory = places[0] if places else os.path.dirname(spec.origin or '')
    try:
        version = importlib.metadata.version('sglang')
    except Exception:
        version = None
    patched = os.path.join(directory, PATCHED)
    return {
        'directory': directory,
        'version': version,
        'source': source(patched),
        'bytecode': bytecode(patched) if os.path.exists(patched) else None,
        'flags': flags(os.path.join(directory, 'srt/server_args.py')),
        'hooks': os.path.exists(os.path.join(directory, 'srt/model_executor/hook_manager.py')),
    }


def found_hook(directory):
    """The module a launch would load with the environment it has now, and the file in the place meant for it."""
    spec = package('relight_hs')
    return {
        'importable': source(spec.origin) if spec is not None and spec.origin else None,
        'placed': source(os.path.join(directory, 'relight_hs.py')) if directory else None,
    }


def model_shape(directory):
    content = read(os.path.join(directory, 'config.json'), 1 << 20) if directory else None
    if content is None:
        return None
    try:
        config = json.loads(content)
        text = config.get('text_config') or config
        return {
            'architecture': (config.get('architectures') or [None])[0],
            'layers': text.get('num_hidden_layers'),
            'hiddenSize': text.get('hidden_size'),
        }
    except Exception:
        return None


def status(directory):
    content = read(os.path.join(directory, 'relight_hs.status.json'), 1 << 18) if directory else None
    try:
        return None if content is None else json.loads(content)
    except Exception:
        return None


def main():
    dump, tree, model, hook = (sys.argv[1:] + [''] * 4)[:4]
    copy = os.path.join(tree, 'python/sglang', PATCHED) if tree else None
    answer = {
        'python': '.'.join(map(str, sys.version_info[:3])),
        'sglang': imported_sglang(),
        'tree': source(copy) if copy else None,
        'hook': found_hook(hook),
        'model': model_shape(model),
        'status': status(dump),
    }
    print('relight-hook-look ' + json.dumps(answer))


main()
