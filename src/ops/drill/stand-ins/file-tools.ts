import type {BoxPaths} from '../paths.ts';

/** Everything by which a look or an act would touch a file. */
const TOOLS = [
	...['stat', 'find', 'head', 'tail', 'cat', 'ls', 'du', 'df', 'dd', 'touch', 'readlink', 'sha256sum', 'grep'],
	...['mkdir', 'mv', 'cp', 'rm'],
];

export type MountTrouble = {
	/** This mount gives no answer to any call. */
	readonly hung: string | null;
	/** This mount has so much left, whatever the machine's own disk has. */
	readonly full: {readonly path: string; readonly availableBytes: number} | null;
};

const BLOCK_BYTES = 4_096;

/**
 * The file tools of a box with a mount in trouble, by name. A box's mounts are plain directories, so what a kernel would do
 * there has to happen in the programs that go there.
 */
export function fileTools(paths: BoxPaths, {hung, full}: MountTrouble): Readonly<Record<string, string>> {
	const tools: Record<string, string> = {};
	for (const name of hung === null ? ['stat'] : TOOLS) {
		tools[name] = [
			'#!/bin/sh',
			hung === null ? '' : stuck(paths, name, hung),
			full !== null && name === 'stat' ? sized(full) : '',
			`exec /usr/bin/${name} "$@"\n`,
		]
			.filter(Boolean)
			.join('\n');
	}
	return tools;
}

const stuck = (paths: BoxPaths, name: string, hung: string): string =>
	`for word; do case $word in '${hung}'|'${hung}'/*) exec '${paths.libexec}/hang' ${name} folio_wait_bit_common ;; esac; done`;

/** `stat -f -c '%S %b %f %a %c %d'`: block size, blocks, free, free to all, inodes, free inodes. */
function sized({path, availableBytes}: NonNullable<MountTrouble['full']>): string {
	const free = Math.floor(availableBytes / BLOCK_BYTES);
	const figures = `${BLOCK_BYTES} 3662109375 ${free} ${free} 976562500 976000000`;
	return `[ "$1" = -f ] && for word; do case $word in '${path}') echo '${figures}'; exit 0 ;; esac; done`;
}
