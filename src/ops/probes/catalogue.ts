import type {FactValues} from '../facts.ts';
import {acting} from './acting.ts';
import {autostart} from './autostart.ts';
import {commandLines} from './command-lines.ts';
import {contents} from './contents.ts';
import {extraction} from './extraction.ts';
import {files} from './files.ts';
import {flags} from './flags.ts';
import {gpus} from './gpus.ts';
import {guest} from './guest.ts';
import {holders} from './holders.ts';
import {kernelLog} from './kernel-log.ts';
import {log} from './log.ts';
import {mounts} from './mounts.ts';
import type {Probe, ProbeId} from './probe.ts';
import {processes} from './processes.ts';
import {server} from './server.ts';
import {services} from './services.ts';
import {topology} from './topology.ts';

/** All that can be asked of a host. */
export const PROBES: {readonly [K in ProbeId]: Probe<FactValues[K]>} = {
	gpus,
	topology,
	holders,
	processes,
	'command-lines': commandLines,
	mounts,
	services,
	autostart,
	acting,
	'kernel-log': kernelLog,
	server,
	extraction,
	log,
	files,
	contents,
	flags,
	guest,
};
