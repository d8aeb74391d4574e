import type {ProbeId} from '../src/ops/probes/probe.ts';

/** What a command without a screen looks at before it speaks or plans. */
export const LOOKS: readonly ProbeId[] = [
	'gpus',
	'topology',
	'holders',
	'processes',
	'mounts',
	'services',
	'server',
	'extraction',
	'files',
];
