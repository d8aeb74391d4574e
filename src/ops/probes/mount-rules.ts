import type {MountLine} from '../formats/mountinfo.ts';

/** File systems without a disk or server behind them, and autofs, where a look may trigger a mount. */
const PSEUDO = new Set([
	'autofs',
	'binfmt_misc',
	'bpf',
	'cgroup',
	'cgroup2',
	'configfs',
	'debugfs',
	'devpts',
	'devtmpfs',
	'efivarfs',
	'fuse.gvfsd-fuse',
	'fuse.lxcfs',
	'fuse.portal',
	'fuse.snapfuse',
	'fusectl',
	'hugetlbfs',
	'mqueue',
	'nsfs',
	'proc',
	'pstore',
	'rpc_pipefs',
	'securityfs',
	'selinuxfs',
	'squashfs',
	'sysfs',
	'tracefs',
]);

/** Memory file systems of the system itself; `/dev/shm` is where dumps go and stays. */
const SYSTEM_MEMORY = /^\/(tmp|run|dev|sys|proc)(\/|$)/;

export function isListed(line: Pick<MountLine, 'type' | 'path'>, expected: boolean): boolean {
	if (PSEUDO.has(line.type)) return false;
	if (line.type !== 'tmpfs' && line.type !== 'ramfs') return true;
	if (expected || line.path === '/dev/shm') return true;
	return line.path !== '/tmp' && (!SYSTEM_MEMORY.test(line.path) || line.path.startsWith('/tmp/'));
}

/** Containers' own layers are listed, but a size of each would only repeat that of the disk below. */
export function isSized(line: Pick<MountLine, 'type' | 'path'>, expected: boolean): boolean {
	return expected || line.path === '/' || !['overlay', 'fuse-overlayfs', 'nullfs'].includes(line.type);
}

/** Shell patterns over the rest of a mountinfo line: types worth a size before anything is known. */
export const NEVER_BLOCKS_FIRST = [
	'ext4',
	'ext3',
	'xfs',
	'btrfs',
	'zfs',
	'f2fs',
	'vfat',
	'ceph',
	'nfs',
	'nfs4',
	'cifs',
	'9p',
	'virtiofs',
	'fuse.*',
	'lustre',
	'overlay /',
]
	.map(type => (type.includes(' ') ? `*" - overlay overlay "*` : `*" - ${type} "*`))
	.map(pattern => pattern.replace('fuse.* "', 'fuse."*" "'))
	.join('|');

/** Options of both lists as whole words: `errors=remount-ro` is an option, not a state. */
export function writableOf({
	options,
	superOptions,
}: Pick<MountLine, 'options' | 'superOptions'>):
	| 'yes'
	| 'read-only mount'
	| 'read-only superblock'
	| 'emergency read-only' {
	if (superOptions.includes('emergency_ro')) return 'emergency read-only';
	if (options.includes('ro')) return 'read-only mount';
	if (superOptions.includes('ro')) return 'read-only superblock';
	return 'yes';
}
