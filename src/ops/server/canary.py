# relight-canary 1
"""Two real requests with fixed token ids, and everything that can be known of the dumps they leave. Standard library only.

Read on standard input by the server's Python; argv[1] is one JSON object (see canary.ts). The last line printed is for
people. Exit 0: both dumps are whole and right; 1: one is not, or none came. The dumps are moved aside, never removed.
"""
import array
import functools
import glob
import hashlib
import http.client
import json
import os
import struct
import sys
import time
import urllib.error
import urllib.request
import zipfile
import zlib

ASK = json.loads(sys.argv[1])
DUMPS, WIDTH, KIND = ASK["dumps"], ASK["hiddenSize"], ASK["kind"]
STAGING = ASK["staging"]
ASIDE = os.path.join(DUMPS, ".quarantine", "canary-" + ASK["id"])
# Beside the place, not in it: what lies there when an extraction begins is moved. And no quarantine: these are no samples.
STAGED_ASIDE = os.path.join(os.path.dirname(STAGING or DUMPS), ".canary", ASK["id"])
STATES = ("aux_0", "aux_1", "aux_2", "final_pre", "final_post")
PATCH_STATES = ("aux_0", "aux_1", "aux_2", "final")
BLOCK = 1 << 18
LOOKED_AT = 16


class Wrong(Exception):
    """What is wrong with one request: a word that the cause follows from, and words for people."""

    def __init__(self, kind, words):
        super().__init__(words)
        self.kind = kind


class State:
    """Rows of bf16 in a file: where the first one starts, and how many bytes on the next one does."""

    def __init__(self, name, path, offset=0, step=None, crc=None):
        self.name, self.path, self.offset, self.step, self.crc = name, path, offset, step or WIDTH * 2, crc

    def rows(self, which):
        with open(self.path, "rb") as file:
            for row in which:
                file.seek(self.offset + row * self.step)
                yield file.read(WIDTH * 2)


def ids_of(seed, count):
    state, found = seed, []
    for _ in range(count):
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        found.append(1000 + (state >> 8) % 28000)
    return found


def generate(rid, ids):
    body = {"input_ids": ids, "sampling_params": {"max_new_tokens": 1, "temperature": 0}, "rid": rid, "stream": False}
    url = "http://127.0.0.1:%d/generate" % ASK["port"]
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=ASK["answerSeconds"]) as answer:
            about = json.loads(answer.read(1 << 24))["meta_info"]
    except urllib.error.HTTPError as error:
        raise Wrong("http", "refused with HTTP %d %s" % (error.code, error.read(300).decode("utf-8", "replace")))
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError) as error:
        raise Wrong("http", "no usable answer: %s" % (getattr(error, "reason", None) or error))
    if about.get("id") != rid:
        raise Wrong("rid", "the answer is for request %s" % about.get("id"))
    if about.get("prompt_tokens") != len(ids):
        raise Wrong("prompt", "%s prompt tokens" % about.get("prompt_tokens"))
    if about.get("cached_tokens") != 0:
        raise Wrong("cached", "%s tokens came from a cache" % about.get("cached_tokens"))


def appears(look):
    until = time.monotonic() + ASK["dumpSeconds"]
    while True:
        found = look()
        if found is not None or time.monotonic() > until:
            return found
        time.sleep(0.05)


def read_json(path):
    with open(path) as file:
        return json.load(file)


def about_request(about, rid, ids):
    """What the hook wrote about a request, whichever way it keeps the states."""
    packed = hashlib.sha256(struct.pack("<%dq" % len(ids), *ids)).hexdigest()
    if about.get("rid") not in (rid, None if KIND == "nameless" else rid):
        raise Wrong("rid", "the dump is of request %s" % about.get("rid"))
    if about.get("H") != WIDTH:
        raise Wrong("width", "rows have %s values where %d belong" % (about.get("H"), WIDTH))
    if about.get("T") == len(ids) and about.get("ids_sha256") != packed:
        raise Wrong("ids", "the hash of the token ids is not that of the ids sent")
    if ASK["layers"] and about.get("layers") != ASK["layers"]:
        raise Wrong("layers", "layers %s where %s are asked for" % (about.get("layers"), ASK["layers"]))


def refused(folder):
    if not os.path.exists(folder + "/error.json"):
        return
    error = read_json(folder + "/error.json")
    detail = json.dumps(error.get("detail") or {}, sort_keys=True)[:200]
    raise Wrong("refused:%s" % error.get("reason"), "the hook refused: %s %s" % (error.get("reason"), detail))


def wait_for(mark, folder):
    if not appears(lambda: os.path.exists(mark) or os.path.exists(folder + "/error.json") or None):
        raise Wrong("none", "it was answered, and no %s appeared" % mark)
    refused(folder)


def raw_dump(rid, ids):
    folder = "%s/req_%s" % (DUMPS, name_of(rid, ids))
    wait_for(folder + "/meta.json", folder)
    pieces, rows = [], 0
    for place in [folder] + sorted(glob.glob(glob.escape(folder) + "/part_*"), key=lambda each: int(each.split("_")[-1])):
        about = read_json(place + "/meta.json")
        if about.get("prefix_len") not in (None, rows):
            break
        about_request(about, rid, ids[rows : rows + about["T"]])
        pieces.append((piece_states(place, about), about["T"]))
        rows += about["T"]
    if rows != len(ids):
        raise Wrong("rows", "%d of %d rows in %d piece(s)" % (rows, len(ids), len(pieces)))
    return pieces


def piece_states(folder, about):
    states, wanted = [], about["T"] * WIDTH * 2
    for name in STATES:
        facts, path = about["files"].get(name + ".bin") or {}, "%s/%s.bin" % (folder, name)
        size = os.path.getsize(path) if os.path.exists(path) else -1
        if size != wanted:
            raise Wrong("bytes", "%s.bin has %d bytes where %d belong" % (name, size, wanted))
        if facts.get("bytes") != size:
            raise Wrong("bytes", "meta.json says %s bytes of %s.bin, which has %d" % (facts.get("bytes"), name, size))
        states.append(State(name, path, crc=int(facts["crc32"], 16)))
    return states


def name_of(rid, ids):
    if KIND != "nameless":
        return rid
    return "ids-" + hashlib.sha256(struct.pack("<%dq" % len(ids), *ids)).hexdigest()


def staged_dump(rid, ids):
    base = "%s/%s" % (STAGING, rid)
    wait_for(base + ".ready", "%s/req_%s" % (DUMPS, rid))
    about = read_json(base + ".json")
    about_request(about, rid, ids)
    if about["T"] != len(ids):
        raise Wrong("rows", "%d of %d rows" % (about["T"], len(ids)))
    size = os.path.getsize(base + ".ready")
    if size != about.get("bytes"):
        raise Wrong("bytes", "the container has %d bytes where its sidecar says %s" % (size, about.get("bytes")))
    states = []
    for each in about["tensors"]:
        if each["dtype"] == "bfloat16":
            states += states_of(each, base + ".ready", len(ids), about.get("norm"))
    if any(each.offset + (len(ids) - 1) * each.step + WIDTH * 2 > size for each in states) or len(states) < 4:
        raise Wrong("bytes", "the sidecar names rows that the container has not")
    return [(states, len(ids))]


def states_of(tensor, path, rows, norm):
    """A tensor of the container as states: [T, H], [1, T, k*H] or [T, k, H], whatever its strides. Order as in the hook."""
    key, shape, stride = tensor["key"], tensor["shape"], tensor["stride"]
    at = shape.index(rows)
    count = tensor["nbytes"] // 2 // rows // WIDTH
    if count < 1 or shape[-1] % WIDTH:
        raise Wrong("width", "%s is %s where rows have %d values" % (key, shape, WIDTH))
    final = "final_" + (norm if isinstance(norm, str) else norm.get(key.split(".")[0], "post"))
    list_names = {"hidden_states.%d" % each: name for each, name in enumerate(STATES[:3] + (final,))}
    names = (list_names[key],) if key in list_names else (final,) if count == 1 else STATES[:3] + (final,) * (count - 3)
    return [
        State(name, path, tensor["offset"] + each * WIDTH * 2, stride[at] * 2) for each, name in enumerate(names[:count])
    ]


def patch_dump(rid, ids):
    """The patch counts its requests: ours is new since all others were moved aside, and has as many rows as was asked."""
    seen = {}

    def look():
        for folder in sorted(glob.glob(glob.escape(DUMPS) + "/req_*")):
            if os.path.exists(folder + "/done") and folder not in seen:
                seen[folder] = patch_states(folder)
        right = [each for each in seen.values() if each and each[1] == len(ids)]
        return right[:1] or None

    found = appears(look)
    if found is not None:
        return found
    whole = [each for each in seen.values() if each]
    if whole:
        raise Wrong("rows", "%d of %d rows" % (max(rows for _, rows in whole), len(ids)))
    raise Wrong("none", "it was answered, and no complete dump appeared in " + DUMPS)


def patch_states(folder):
    """The states and how many rows they have; None when this is not a whole dump."""
    try:
        found = [torch_state(name, "%s/%s.pt" % (folder, name)) for name in PATCH_STATES]
    except (OSError, zipfile.BadZipFile, StopIteration):
        return None
    sizes = set(size for _, size in found)
    return ([state for state, _ in found], sizes.pop() // (WIDTH * 2)) if len(sizes) == 1 else None


def torch_state(name, path):
    with zipfile.ZipFile(path) as archive, open(path, "rb") as file:
        entry = next(each for each in archive.infolist() if each.filename.endswith("/data/0"))
        file.seek(entry.header_offset + 26)
        start = entry.header_offset + 30 + sum(struct.unpack("<HH", file.read(4)))
    return State(name, path, start, crc=entry.CRC), entry.file_size


@functools.lru_cache(maxsize=None)
def lanes(size):
    return [int.from_bytes(each * (size // 2), "little") for each in (b"\x80\x7f", b"\x80\x00", b"\x00\x80")]


def check_bytes(state, rows):
    """Every value of the rows, many at once as one long integer: an exponent of all ones carries into the sign's place."""
    crc = 0
    with open(state.path, "rb") as file:
        for start, size in stretches(state, rows):
            file.seek(start)
            for at in range(0, size, BLOCK):
                block = file.read(min(BLOCK, size - at))
                crc = zlib.crc32(block, crc)
                exponent, one, over = lanes(len(block))
                bad = ((int.from_bytes(block, "little") & exponent) + one) & over
                if bad:
                    place = start + at + ((bad & -bad).bit_length() - 1) // 16 * 2 - state.offset
                    raise Wrong("finite", "%s has a NaN or an infinity in row %d" % (state.name, place // state.step))
    if state.crc is not None and crc != state.crc:
        raise Wrong("sum", "the checksum of %s is wrong" % state.name)


def stretches(state, rows):
    """(offset, bytes) of what belongs to the state."""
    if state.step == WIDTH * 2:
        return [(state.offset, rows * state.step)]
    return [(state.offset + row * state.step, WIDTH * 2) for row in range(rows)]


def check_different(states, rows):
    some = spread(rows, LOOKED_AT)
    found = {}
    for state in states:
        content = b"".join(state.rows(some))
        other = found.setdefault(content, state.name)
        if other != state.name:
            raise Wrong("same", "%s and %s have the same rows" % (other, state.name))


def spread(rows, most):
    many = min(rows, most)
    return sorted(set(each * (rows - 1) // max(1, many - 1) for each in range(many)))


def floats(content):
    wide = array.array("I", (each << 16 for each in array.array("H", content)))
    return array.array("f", wide.tobytes())


def norm_weight():
    """model.norm.weight of the checkpoint, or None where it cannot be read."""
    try:
        model, key = ASK["model"], None
        path = model + "/model.safetensors"
        if os.path.exists(model + "/model.safetensors.index.json"):
            places = read_json(model + "/model.safetensors.index.json")["weight_map"]
            key = next(each for each in places if ("." + each).endswith(".model.norm.weight"))
            path = "%s/%s" % (model, places[key])
        with open(path, "rb") as file:
            header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
            key = key or next(each for each in header if ("." + each).endswith(".model.norm.weight"))
            start, end = header[key]["data_offsets"]
            if header[key]["shape"] != [WIDTH] or header[key]["dtype"] not in ("BF16", "F32"):
                return None
            file.seek(start, os.SEEK_CUR)
            content = file.read(end - start)
        return floats(content) if header[key]["dtype"] == "BF16" else array.array("f", content)
    except (OSError, ValueError, KeyError, StopIteration, struct.error):
        return None


def check_norms(states, rows):
    """A row after the norm has mean((h/w)^2) of 1, one before it does not. What was found, in words."""
    some = spread(rows, LOOKED_AT)
    weight = norm_weight()
    finals = {state.name: [floats(each) for each in state.rows(some)] for state in states if "final" in state.name}
    said = []
    for name, vectors in sorted(finals.items()):
        means = [mean_square(each, weight) for each in vectors]
        text = "%.3f-%.3f" % (min(means), max(means))
        after = all(abs(each - 1) < 0.05 for each in means)
        if weight is None:
            said.append("mean square of %s %s" % (name, text))
        elif name == "final":
            said.append("final is %s-norm (%s)" % ("post" if after else "pre", text))
        elif after != (name == "final_post"):
            raise Wrong("norm", "%s has mean((h/w)^2) %s: it is %s-norm" % (name, text, "post" if after else "not post"))
        else:
            said.append("%s %s" % (name, text))
    return ("norm: " if weight is not None else "no readable model.norm.weight, so RMS alone: ") + ", ".join(said)


def mean_square(row, weight):
    if weight is None:
        return sum(each * each for each in row) / len(row)
    some = [(each / by) ** 2 for each, by in zip(row, weight) if by]
    return sum(some) / max(1, len(some))


def move_aside(rid, ids):
    """Only what is ours; the patch's dumps carry no names, and nobody else's request can be under way at a launch."""
    if KIND == "counted":
        ours = glob.glob(glob.escape(DUMPS) + "/req_*")
    else:
        ours = ["%s/req_%s" % (DUMPS, name_of(rid, ids))]
    for path in ours:
        put_into(ASIDE, path)
    for end in (".ready", ".json") if STAGING else ():
        put_into(STAGED_ASIDE, STAGING + "/" + rid + end)


def put_into(folder, path):
    """A counter that began anew may have made the same name again."""
    if not os.path.exists(path):
        return
    os.makedirs(folder, exist_ok=True)
    place, turn = os.path.join(folder, os.path.basename(path)), 1
    while os.path.exists(place):
        place, turn = "%s/%s-%d" % (folder, os.path.basename(path), turn), turn + 1
    os.rename(path, place)


def try_one(name, seed, count):
    """What was found, in words. Raises Wrong."""
    rid, ids = "relight-canary-%s-%s" % (ASK["id"], name), ids_of(seed, count)
    if KIND == "counted":
        move_aside(rid, ids)
    try:
        generate(rid, ids)
        pieces = {"counted": patch_dump, "staged": staged_dump}.get(KIND, raw_dump)(rid, ids)
        for states, rows in pieces:
            for state in states:
                check_bytes(state, rows)
            check_different(states, rows)
        norms = [check_norms(states, rows) for states, rows in pieces]
        chunks = "" if len(pieces) == 1 else " in %d chunks" % len(pieces)
        return "%d of %d rows of %d states read%s" % (count, count, len(pieces[0][0]), chunks), norms[0]
    finally:
        move_aside(rid, ids)


CHUNKS = "chunked prefill: --chunked-prefill-size -1, and --max-prefill-tokens not below the longest sample"
CACHE = "a prefix cache: --disable-radix-cache"
FUSION = "all-reduce fusion, which works on short prefills alone: --enforce-disable-flashinfer-allreduce-fusion"
LAYERS = "a fused all-reduce that goes past the hooked modules, a graph that is replayed, or hooks on the wrong layers"
CAUSES = {
    "cached": CACHE,
    "refused:prefix_len": CHUNKS + "; or " + CACHE,
    "refused:no_space": "too little room: the hook wants twice what it writes",
    "refused:cuda_graph_capture": "graphs: --disable-cuda-graph",
    "finite": "broken kernels, links or weights: look for an Xid, and try without the NCCL settings",
    "sum": "memory or a disk that changes what was written",
    "bytes": "a full disk or a writer that died in between",
    "norm": "a state from another place in the model, or the weights of another model",
    "none": "nothing dumps in this server: "
    + (
        "is the patch active in the package that was imported?"
        if KIND == "counted"
        else "are there five lines \"Registered forward hook\" in its log?"
    ),
}


def cause(kind, which):
    if kind in ("same", "norm", "refused:stash_count", "refused:allreduce_fusion") and which == "short":
        return FUSION
    if kind in ("same", "refused:stash_count", "refused:allreduce_fusion"):
        return LAYERS
    if kind == "rows":
        return CHUNKS if which == "long" else CHUNKS + "; or " + CACHE
    return CAUSES.get(kind)


def main():
    os.makedirs(ASIDE, exist_ok=True)
    wrong, found = {}, {}
    for name, seed, count in ASK["lists"]:
        try:
            found[name] = try_one(name, seed, count)
        except Wrong as error:
            wrong[name] = error
        except (OSError, ValueError, KeyError, TypeError) as error:
            wrong[name] = Wrong("unreadable", "the dump cannot be read: %r" % error)
    sizes = {name: count for name, _, count in ASK["lists"]}
    for name, words in found.items():
        print("canary of %d tokens: %s; finite, all different; %s" % (sizes[name], *words))
    if not wrong:
        print("canary: both dumps are complete and right, and moved to %s" % (STAGED_ASIDE if STAGING else ASIDE))
        return 0
    which = next(iter(wrong)) if len(wrong) == 1 else "both"
    first = next(iter(wrong.values()))
    for name, error in wrong.items():
        print("canary of %d tokens: %s" % (sizes[name], error))
    others = " (the other one is right)" if found else " (both)"
    likely = cause(first.kind, which)
    told = ", ".join("%d" % sizes[name] for name in wrong) if len(wrong) > 1 else "%d" % sizes[which]
    print("canary of %s tokens%s: %s%s" % (told, others, first, "; likely %s" % likely if likely else ""))
    return 1


sys.exit(main())
