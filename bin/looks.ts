import type {ProbeId} from '../src/ops/probes/probe.ts';

/** What a command without a screen looks at before it speaks or plans. */
export const LOOKS: readonly ProbeId[] = [
	'gpus',
	'holders',
	'processes',
	'mounts',
	'services',
	'server',
	'extraction',
	'files',
];

/** What a launch or a run is held against, and nothing else: a first look at it reads large files. */
export const CONTENT_LOOKS: readonly ProbeId[] = ['contents'];

/** What a launch is held against beside: asked once the first looks have told the package, and whether the driver answers. */
export const LAUNCH_LOOKS: readonly ProbeId[] = ['topology', 'flags'];
