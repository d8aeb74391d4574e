import {spawnSync} from 'node:child_process';

/**
 * Runs a program in a mount namespace of its own in which DIRECTORY is a FUSE mount whose server never answers: whoever
 * touches it hangs. Nobody outside sees the mount, and closing the device when the program ends frees all that hung.
 */
const SCRIPT = `
import ctypes, os, subprocess, sys
directory, argv = sys.argv[1], sys.argv[2:]
libc = ctypes.CDLL(None, use_errno=True)
def mount(source, target, kind, flags, data):
    if libc.mount(source.encode(), target.encode(), kind and kind.encode(), flags, data and data.encode()) != 0:
        sys.exit("mount %s: %s" % (target, os.strerror(ctypes.get_errno())))
mount("none", "/", None, 0x4000 | 0x40000, None)
device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
mount("relight-dead", directory, "fuse.dead", 0, "fd=%d,rootmode=40000,user_id=0,group_id=0" % device)
sys.exit(subprocess.Popen(argv).wait())
`;

export const withDeadMount = (directory: string, argv: readonly string[]): readonly string[] => [
	'unshare',
	'--mount',
	'python3',
	'-c',
	SCRIPT,
	directory,
	...argv,
];

/** Why there can be no dead mount here, or null. */
export function noDeadMount(): string | null {
	if (process.getuid?.() !== 0) return 'it needs root';
	const tried = spawnSync('unshare', ['--mount', 'python3', '-c', 'open("/dev/fuse", "r+b", 0)'], {encoding: 'utf8'});
	return tried.status === 0 ? null : (tried.stderr || String(tried.error)).trim().split('\n').at(-1) || 'no answer';
}
