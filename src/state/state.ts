import type {Facts} from '../ops/facts.ts';
import type {OperationId, Plan, RunOutcome, StepState} from '../ops/operations/operation.ts';
import type {Identity, ProbeId} from '../ops/probes/probe.ts';
import type {Target} from '../ops/target.ts';
import type {Question} from '../ops/transports/question.ts';
import type {Summary} from './summary.ts';

/** The only memory of the console. Plain data; changed by pure updates in the slices, in one place (store.ts). */
export type ConsoleState = {
	readonly target: Target;
	/** Wall clock at the newest tick, epoch ms. Ages on screen are against this, so one tick is one commit. */
	readonly nowMs: number;
	readonly session: Session;
	readonly route: RouteStatus;
	readonly facts: Facts;
	readonly history: History;
	readonly alerts: readonly Alert[];
	readonly journal: readonly JournalEntry[];
	readonly operation: OperationState;
	readonly view: ViewState;
	/** Work in flight (looks and acts): journeys wait for it. */
	readonly work: number;
	/** Set once the console is to end: the exit code. The terminal is restored and the process leaves. */
	readonly leaving?: number;
};

export type Session = {
	readonly mode: 'live' | 'drill';
	readonly readOnly: boolean;
	readonly dryRun: boolean;
	readonly startedAt: number;
	readonly operator: string;
	/** The machine that the operator sits at. */
	readonly from: string;
	/** Of this run of the console: its action lock is told from others by it. */
	readonly token: string;
	/** This process on the operator's machine; null where that does not tell. */
	readonly own: Identity | null;
	/** Epoch ms of the last key: after 30 min without one the console disarms itself. */
	readonly lastKeyAt: number;
	/** Words of a configuration that failed to reload; the old one stays in force. */
	readonly configTrouble: string | null;
	readonly recording: 'ok' | 'off' | 'failing';
};

export type RouteStatus = {
	readonly state: 'connecting' | 'up' | 'down';
	/** Label of the working route, or of the one being tried. */
	readonly label: string;
	readonly since: number;
	/** Why an earlier route is not used: `ssh root@gpu: no answer in 5 s`. */
	readonly passedOver: readonly {readonly label: string; readonly reason: string; readonly at: number}[];
};

/** Ring buffers for graphs, newest last, one value a look; null where the host gave none. */
export type History = {
	readonly at: readonly number[];
	readonly gpus: ReadonlyMap<
		string,
		{readonly busyPercent: readonly (number | null)[]; readonly usedFraction: readonly (number | null)[]}
	>;
};

export type Alert = {
	readonly id: string;
	readonly level: 'critical' | 'warning' | 'info';
	/** What is wrong, in words, without its age. */
	readonly words: string;
	readonly remedy: string;
	readonly since: number;
	readonly acknowledged: boolean;
	readonly pane: PaneId;
};

export type JournalEntry = {
	readonly at: number;
	readonly kind: 'intent' | 'step' | 'outcome' | 'alert' | 'route' | 'mark' | 'session';
	readonly level: 'ok' | 'warning' | 'critical' | 'info';
	readonly words: string;
	/** The literal command beneath the words, redacted. */
	readonly command: string | null;
	/** With the intent that opens an operation: what was confirmed. With its last outcome: only which operation. */
	readonly plan?: PlannedWork;
	readonly outcome?: RunOutcome;
	/** The host as it was then, for the report. */
	readonly summary?: Summary;
};

export type PlannedWork = {
	readonly operation: OperationId;
	readonly title: string;
	readonly targets: readonly string[];
	/** Identities of the targets. */
	readonly on: readonly string[];
	readonly excluded: readonly string[];
	/** Overridden checks are among them. */
	readonly warnings: readonly string[];
	readonly inverse: string | null;
};

export type OperationState =
	| {
			readonly phase: 'idle';
			readonly last: {
				readonly operation: OperationId;
				readonly outcome: RunOutcome;
				readonly words: string;
				readonly at: number;
			} | null;
	  }
	| {
			readonly phase: 'running';
			readonly plan: Plan;
			readonly steps: readonly {
				readonly state: StepState;
				readonly words: string;
				readonly startedAt: number | null;
				readonly endedAt: number | null;
			}[];
			readonly startedAt: number;
			readonly output: readonly string[];
			/** Set while it stands before its next operation and waits for a person. */
			readonly held?: Held;
	  };

export type Held = {
	readonly next: Plan;
	/** The check that it mends. */
	readonly check: string;
	readonly since: number;
};

export type PaneId = 'gpu' | 'processes' | 'mounts' | 'extraction' | 'log' | 'operations';

export const PANES: readonly PaneId[] = ['gpu', 'processes', 'mounts', 'extraction', 'log', 'operations'];

export type ViewState = {
	readonly focus: PaneId;
	readonly zoomed: boolean;
	/** Identity of the selected row per pane (gpu uuid, identityKey, mount path, …), never a position. */
	readonly selected: Readonly<Record<PaneId, string | null>>;
	readonly filter: Readonly<Record<PaneId, string>>;
	readonly sort: {readonly processes: ProcessSort; readonly inverted: boolean};
	readonly tree: boolean;
	/** Scroll of the log pane in lines from its end; 0 follows. */
	readonly logScroll: number;
	readonly logWrap: boolean;
	readonly logSource: 'server' | 'extraction' | 'kernel';
	/** Top of the stack last. Every key goes to the top layer first. */
	readonly overlays: readonly Overlay[];
	/** Display frozen since; probes and alerts go on. */
	readonly frozenAt: number | null;
	/** What is shown while frozen: set with `frozenAt`, left out otherwise. */
	readonly frozen?: Frozen;
	/** One-line answer to the last key: a refusal, an unknown key, "copied". */
	readonly hint: {readonly words: string; readonly until: number} | null;
};

export type Frozen = Pick<ConsoleState, 'facts' | 'history' | 'nowMs'>;

export type ProcessSort = 'holders' | 'cpu' | 'memory' | 'pid' | 'name';

export type Overlay =
	| {readonly type: 'help'; readonly scroll: number}
	| {readonly type: 'alerts'; readonly index: number}
	| {readonly type: 'command-log'; readonly scroll: number}
	| {readonly type: 'palette'; readonly text: string; readonly index: number}
	| {readonly type: 'filter'; readonly pane: PaneId; readonly text: string}
	| {readonly type: 'operations'; readonly index: number}
	| {readonly type: 'signals'; readonly processKey: string; readonly index: number}
	| {readonly type: 'details'; readonly pane: PaneId; readonly scroll: number}
	| {readonly type: 'unlock'; readonly openedAt: number}
	| {readonly type: 'quit'; readonly openedAt: number}
	| {readonly type: 'held'; readonly openedAt: number; readonly scroll: number}
	| ConfirmOverlay
	| AskOverlay;

export type ConfirmOverlay = {
	readonly type: 'confirm';
	/** Frozen when the dialog opened; made again and compared before it runs. */
	readonly plan: Plan;
	/** What the operation was asked to act on, where it was not the obvious target. */
	readonly argument?: string;
	/** A recovery that is to wait before each further operation. */
	readonly stepwise?: boolean;
	readonly typed: string;
	readonly button: 'cancel' | 'go';
	readonly openedAt: number;
	readonly scroll: number;
	/** Why confirming did nothing: `type "service" to confirm`, `the targets changed`. */
	readonly complaint: string | null;
};

/** A question of a route. What is typed is not in here, except where it may be seen. */
export type AskOverlay = {
	readonly type: 'ask';
	readonly question: Question;
	/** Which of its prompts is being answered. */
	readonly at: number;
	readonly shown: string;
	readonly filled: boolean;
	readonly openedAt: number;
	readonly complaint: string | null;
};

export const SIGNALS = ['TERM', 'INT', 'HUP', 'USR1', 'USR2', 'CONT', 'STOP', 'KILL'] as const;
export type SignalName = (typeof SIGNALS)[number];

export type LookNow = 'all' | readonly ProbeId[];
