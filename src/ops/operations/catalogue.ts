import {RECOVER} from '../runbook/recover.ts';
import {planRecovery} from '../runbook/run-recovery.ts';
import {clearDumps} from './clear-dumps.ts';
import {freeGpus} from './free-gpus.ts';
import {launchServer} from './launch-server.ts';
import {isRefusal, type OperationId, type Plan, type Refusal, refuse, type Situation, type Tier} from './operation.ts';
import {restoreFiles} from './restore-files.ts';
import {runExtractor} from './run-extractor.ts';
import {type SignalInput, signalProcess} from './signal.ts';
import {stopExtractor} from './stop-extractor.ts';
import {stopServer} from './stop-server.ts';
import {stopService} from './stop-service.ts';
import {undo} from './undo.ts';

/** What is known of an operation before it is planned: for menus, help and `relight run`. */
export type OperationEntry = {
	readonly id: OperationId;
	readonly title: string;
	readonly tier: Tier;
	/** Plans with the default input, or with `argument` where the operation takes one (a unit, `pid@start:SIGNAL`). */
	plan(situation: Situation, argument: string | null): Plan | Refusal;
};

export const OPERATIONS: readonly OperationEntry[] = [
	{
		...meta(stopService),
		plan(situation, argument) {
			const input = argument ? {unit: argument} : stopService.defaultInput(situation);
			return isRefusal(input) ? input : stopService.plan(input, situation);
		},
	},
	simple(freeGpus),
	simple(restoreFiles),
	simple(clearDumps),
	simple(launchServer),
	simple(runExtractor),
	simple(stopExtractor),
	simple(stopServer),
	{
		id: 'recover',
		title: 'the whole recovery, check by check',
		tier: 3,
		plan(situation) {
			const recovery = planRecovery(RECOVER, situation);
			return 'refused' in recovery ? recovery : recovery.plan;
		},
	},
	{
		...meta(undo),
		plan(situation) {
			const work = undo.defaultInput(situation);
			return isRefusal(work) ? work : undo.plan(work, situation);
		},
	},
	{
		...meta(signalProcess),
		plan(situation, argument) {
			const [processKey, signal] = argument?.split(':') ?? [];
			const input: SignalInput | null = processKey && signal ? {processKey, signal} : null;
			return input ? signalProcess.plan(input, situation) : refuse('say which process and signal: PID@START:TERM');
		},
	},
];

export const operationEntry = (id: string): OperationEntry | undefined => OPERATIONS.find(each => each.id === id);

type Meta = {readonly id: OperationId; readonly title: string; readonly tier: Tier};

function meta({id, title, tier}: Meta): Meta {
	return {id, title, tier};
}

function simple(
	operation: Meta & {plan(input: Record<string, never>, situation: Situation): Plan | Refusal},
): OperationEntry {
	return {...meta(operation), plan: situation => operation.plan({}, situation)};
}
