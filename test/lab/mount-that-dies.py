"""mount-that-dies.py DIRECTORY FLAG PROGRAM…: runs PROGRAM in a mount namespace of its own (call it through `unshare --mount`)
in which DIRECTORY is a FUSE mount that answers until the file FLAG is there, and then never again. Nobody outside sees it, and
its end frees all that hung on it. Source: linux/fuse.h, protocol 7.19."""

import ctypes, os, select, struct, subprocess, sys

LOOKUP, GETATTR, STATFS, INIT, FORGET = 1, 3, 17, 26, 2
NO_SUCH_FILE, NOT_SPOKEN = 2, 38


def mount(source, target, kind, flags, data):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(source.encode(), target.encode(), kind and kind.encode(), flags, data and data.encode()) != 0:
        sys.exit("mount %s: %s" % (target, os.strerror(ctypes.get_errno())))


def answer(opcode):
    """Error and body: an empty directory on a file system of 1000 blocks, 250 of them free."""
    if opcode == INIT:
        return 0, struct.pack("=IIIIHHI", 7, 19, 65536, 0, 12, 9, 65536)
    if opcode == GETATTR:
        attributes = struct.pack("=6Q10I", 1, 0, 0, 0, 0, 0, 0, 0, 0, 0o40755, 2, 0, 0, 0, 4096, 0)
        return 0, struct.pack("=QII", 0, 0, 0) + attributes
    if opcode == STATFS:
        return 0, struct.pack("=5Q4I24x", 1000, 250, 250, 1000, 900, 4096, 255, 4096, 0)
    return (NO_SUCH_FILE if opcode == LOOKUP else NOT_SPOKEN), b""


def serve(device, flag, child):
    while child.poll() is None:
        ready, _, _ = select.select([device], [], [], 0.05)
        if os.path.exists(flag):
            return
        if not ready:
            continue
        _, opcode, unique = struct.unpack_from("=IIQ", os.read(device, 135168))
        if opcode != FORGET:
            error, body = answer(opcode)
            os.write(device, struct.pack("=IiQ", 16 + len(body), -error, unique) + body)


directory, flag, argv = sys.argv[1], sys.argv[2], sys.argv[3:]
mount("none", "/", None, 0x4000 | 0x40000, None)
device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
mount("relight-lab", directory, "fuse.lab", 0, "fd=%d,rootmode=40000,user_id=0,group_id=0" % device)
child = subprocess.Popen(argv)
serve(device, flag, child)
sys.exit(child.wait())
