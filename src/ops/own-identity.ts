import {readFileSync} from 'node:fs';
import {parseStat} from './formats/proc-stat.ts';
import type {Identity} from './probes/probe.ts';

/** This process, as others on this machine see it under `proc`. Throws where there is no such thing. */
export function ownIdentity(proc = '/proc'): Identity {
	const {pid, startTicks} = parseStat(readFileSync('/proc/self/stat', 'latin1').trimEnd());
	return {bootId: readFileSync(`${proc}/sys/kernel/random/boot_id`, 'utf8').trim(), pid, startTicks};
}
