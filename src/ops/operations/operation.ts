import type {Facts} from '../facts.ts';
import type {Identity, ProbeId} from '../probes/probe.ts';
import type {Target} from '../target.ts';
import type {DoneWork} from './undo.ts';

/**
 * An *operation* is wished for by a key or a command. `plan` is pure: facts → steps, or a refusal in words. The plan is
 * shown, confirmed and then run as it stands: a `run` step's script is sent byte for byte, a `wait` step looks again and
 * asks `until` whether the host shows what was wanted. Exit status 0 proves nothing; only a `wait` step ends an operation
 * well. Tier (how hard it is to confirm) is data.
 */
export type Operation<Input> = {
	readonly id: OperationId;
	readonly title: string;
	readonly tier: Tier;
	/** What it would act on if nothing is said: the obvious target, or why there is none. */
	defaultInput(situation: Situation): Input | Refusal;
	plan(input: Input, situation: Situation): Plan | Refusal;
};

export type OperationId =
	| 'stop-service'
	| 'free-gpus'
	| 'restore-files'
	| 'clear-dumps'
	| 'launch-server'
	| 'run-extractor'
	| 'stop-server'
	| 'stop-extractor'
	| 'signal'
	| 'undo'
	| 'recover';

/** 1 reversible, 2 destructive with a named target, 3 wide. */
export type Tier = 1 | 2 | 3;

export type Situation = {
	readonly target: Target;
	readonly facts: Facts;
	readonly nowMs: number;
	/** This console: where the host's table shows it, it and its ancestors are never ended. */
	readonly own?: Identity | null;
	/** What was done here and ended well, oldest first, as far as the journal was read. */
	readonly done?: readonly DoneWork[];
	/** Preflight checks that a person said to go on without. */
	readonly overrides?: readonly string[];
};

export type Refusal = {readonly refused: string};
export const refuse = (why: string): Refusal => ({refused: why});
export const isRefusal = (value: object): value is Refusal => 'refused' in value;

export type Plan = {
	readonly operation: OperationId;
	readonly title: string;
	readonly tier: Tier;
	/** What must be typed to confirm at tier 2 and up: the last word of the target's name. */
	readonly confirmWord: string;
	readonly targets: readonly PlanTarget[];
	/** Looked at and left alone, with the reason. */
	readonly excluded: readonly PlanTarget[];
	readonly steps: readonly Step[];
	readonly warnings: readonly string[];
	/** How to undo it, as a command, where that exists. */
	readonly inverse: string | null;
};

/** What tells one plan's commands from another's. */
export const commandsOf = ({steps}: Plan): string =>
	steps.map(step => (step.kind === 'wait' ? step.id : step.script)).join('\n');

/** One frozen line of the confirm dialog. `identity` is what is checked again right before the act. */
export type PlanTarget = {
	readonly kind: 'process' | 'unit' | 'path' | 'host';
	readonly identity: string;
	readonly says: string;
};

export type Step =
	| {
			readonly kind: 'run';
			readonly id: string;
			readonly says: string;
			/** POSIX sh for the act lane, sent as it stands. */
			readonly script: string;
			readonly limitMs: number;
			/** A program that the script reads on standard input; the script names it by its sum. */
			readonly program?: string;
			/** Signals it may send, for the score: identities. */
			readonly signals?: readonly string[];
	  }
	| {
			readonly kind: 'send';
			readonly id: string;
			readonly says: string;
			/** File on the operator's machine that goes to the host by stdin of `script`. */
			readonly source: string;
			/** What the good copy must be; null: whatever the source is, compared on arrival all the same. */
			readonly sha256: string | null;
			/** The script takes it in pieces and says so for each: for what is large. */
			readonly pieceBytes?: number;
			readonly script: string;
			readonly limitMs: number;
	  }
	| {
			readonly kind: 'wait';
			readonly id: string;
			readonly says: string;
			readonly looks: readonly ProbeId[];
			readonly limitMs: number;
			/** The next step follows also when the limit passes: a grace period, not a proof. */
			readonly grace?: boolean;
			/** Asked after each fresh look; `sinceMs` is when the wait began. */
			until(situation: Situation, sinceMs: number): Verdict;
	  };

export type Verdict =
	| {readonly state: 'met'; readonly words: string}
	| {readonly state: 'pending'; readonly words: string}
	| {readonly state: 'failed'; readonly words: string};

export type StepState = 'pending' | 'running' | 'done' | 'failed' | 'unknown' | 'skipped';

/** What the runner tells while it works; the journal keeps all of it. */
export type RunEvent =
	| {
			readonly type: 'step';
			readonly index: number;
			readonly state: StepState;
			readonly words: string;
			readonly at: number;
	  }
	/** Stands before this operation until a person has chosen; `index` is the check that it mends. */
	| {readonly type: 'held'; readonly index: number; readonly next: Plan; readonly at: number}
	| {readonly type: 'let-go'; readonly index: number; readonly at: number}
	| {readonly type: 'output'; readonly index: number; readonly text: string; readonly at: number}
	| {readonly type: 'ended'; readonly outcome: RunOutcome; readonly words: string; readonly at: number};

export type RunOutcome = 'done' | 'failed' | 'unknown' | 'refused' | 'cancelled';
