import {fresh} from '../facts.ts';
import {describeOwner} from '../probes/owner.ts';
import {identityOf} from '../probes/probe.ts';
import {processOf} from '../probes/process-table.ts';
import {ownLine, protectedReason} from '../probes/protected.ts';
import {FROZEN, isFrozen} from '../probes/stuck.ts';
import {type Operation, refuse, type Situation, type Verdict} from './operation.ts';
import {signalScript} from './signal-script.ts';

export type SignalInput = {readonly processKey: string; readonly signal: string};

/** One signal to one process, by identity. */
export const signalProcess: Operation<SignalInput> = {
	id: 'signal',
	title: 'send a signal to a process',
	tier: 2,
	defaultInput: () => refuse('select a process first'),

	plan({processKey, signal}, {facts, target, own}) {
		const table = fresh(facts.processes);
		if (!table) return refuse('the process table is not known: the last look failed or has not come');
		const process = processOf(table.processes, identityOf(processKey));
		if (!process) return refuse('that process is gone, or its pid is somebody else now');
		const why = protectedReason(process, process.owner, ownLine(own, table));
		if (why) return refuse(`${process.name} is protected: ${why}`);
		if (process.state === 'D' && process.killPending)
			return refuse(
				`SIGKILL is pending already: it ${isFrozen(process) ? `is ${FROZEN}` : 'cannot die until its I/O returns'}`,
			);
		const ends = ['TERM', 'INT', 'HUP', 'KILL'].includes(signal);
		const says = `pid ${process.pid}  ${process.name}  ${process.state}  ${describeOwner(process.owner)}`;
		return {
			operation: 'signal',
			title: `send ${signal} to pid ${process.pid} (${process.name})`,
			tier: 2,
			confirmWord: String(process.pid),
			targets: [{kind: 'process', identity: processKey, says}],
			excluded: [],
			steps: [
				{
					kind: 'run',
					id: 'signal',
					says: `send ${signal}`,
					script: signalScript(signal, table.bootId, [process], target.server?.python ?? null),
					limitMs: 10_000,
					signals: [processKey],
				},
				...(ends
					? [
							{
								kind: 'wait' as const,
								id: 'ended',
								says: 'until it is gone',
								looks: ['processes', 'holders'] as const,
								limitMs: 20_000,
								until: (here: Situation) => gone(processKey, here),
							},
						]
					: []),
			],
			warnings:
				process.owner.kind === 'unit'
					? [`${process.owner.unit} may start it again: on ${target.name} stop the unit instead`]
					: [],
			inverse: signal === 'STOP' ? 'send CONT' : null,
		};
	},
};

export function gone(processKey: string, {facts}: Situation): Verdict {
	const table = fresh(facts.processes);
	if (!table) return {state: 'pending', words: 'waiting for a good look at the processes'};
	const process = processOf(table.processes, identityOf(processKey));
	if (!process || process.state === 'Z') return {state: 'met', words: 'gone'};
	if (isFrozen(process)) return {state: 'pending', words: FROZEN};
	if (process.state === 'D')
		return {state: 'pending', words: `in D (${process.waitChannel ?? 'unknown'}): cannot die until its I/O returns`};
	return {state: 'pending', words: `still there (${process.state})`};
}
