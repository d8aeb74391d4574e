"""mount-that-waits.py DIRECTORY: mounts a FUSE server there that takes every request for a file and never answers it, so
that whoever asks ends in D once he is signalled and outlives SIGKILL. Its own end frees him. Source: linux/fuse.h, 7.19."""

import ctypes, os, struct, sys

GETATTR, INIT = 3, 26

directory = sys.argv[1]
device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
data = "fd=%d,rootmode=40000,user_id=0,group_id=0" % device
libc = ctypes.CDLL(None, use_errno=True)
if libc.mount(b"relight-lab", directory.encode(), b"fuse.lab", 0, data.encode()) != 0:
    sys.exit("mount %s: %s" % (directory, os.strerror(ctypes.get_errno())))
while True:
    _, opcode, unique = struct.unpack_from("=IIQ", os.read(device, 135168))
    if opcode == INIT:
        body = struct.pack("=IIIIHHI", 7, 19, 65536, 0, 12, 9, 65536)
    elif opcode == GETATTR:
        body = struct.pack("=QII", 60, 0, 0) + struct.pack("=6Q10I", 1, 0, 0, 0, 0, 0, 0, 0, 0, 0o40755, 2, 0, 0, 0, 4096, 0)
    else:
        continue
    os.write(device, struct.pack("=IiQ", 16 + len(body), 0, unique) + body)
