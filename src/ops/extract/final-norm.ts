import {DamagedFile} from '../tensor/damage.ts';
import {sideOfNorm} from '../verify/norm.ts';
import {type Form, keysOf, leavesOf} from './forms.ts';
import {samplePath} from './inventory.ts';
import {type Extraction, type Layout, layoutOf} from './layouts.ts';
import {Refusal} from './manifest.ts';
import type {StateName, States} from './states.ts';
import {readStates} from './stored-states.ts';

/** Which side of the model's last norm a final state lies on. */
export type Side = 'pre' | 'post';

const WORDS: Readonly<Record<Side, string>> = {pre: 'before the norm', post: 'behind the norm'};
const STORED_LOOKED_AT = 3;
const ROWS = 8;

/**
 * On which side of the norm the final states of a tree lie, and so which state of a dump goes into it. Layouts with readers
 * of their own say it themselves. A legacy tree does not: the norm's weight tells from its values, else the comparison
 * with states that are extracted again, and a new one takes what the server gives.
 */
export class FinalNorm {
	private side: Side | null = null;
	/** Of dumps that do not say it themselves. */
	private dumped: Side | null = null;

	constructor(
		private readonly tree: Extraction,
		/** Weight of the model's last norm, [H]; null when it cannot be had. */
		private readonly weight: Float32Array | null,
	) {}

	/** The tree in the form that is known so far. */
	get extraction(): Extraction {
		return this.side === null ? this.tree : {...this.tree, mirrored: sided(layoutOf(this.tree), this.side)};
	}

	/** For the manifest: `pre`, `post`, `pre post` or `unknown`. */
	get norm(): string {
		const finals = finalsOf(layoutOf(this.extraction));
		if (finals.has('final')) return 'unknown';
		return (['pre', 'post'] as const).filter(side => finals.has(`final_${side}`)).join(' ');
	}

	get open(): boolean {
		return this.norm === 'unknown';
	}

	/** Whether the tree has this form, on whichever side its finals lie. */
	isOf(form: Form): boolean {
		return keysOf(layoutOf(this.tree).form) === keysOf(form);
	}

	settle(side: Side): void {
		if (this.open) this.side = side;
	}

	settleDumps(side: Side): void {
		this.dumped = side;
	}

	/** What an earlier run found out; anything else than a side says nothing. */
	recall(norm: unknown): void {
		if (norm === 'pre' || norm === 'post') this.settle(norm);
	}

	/** Looks at some stored samples. Throws Refusal when they are not all on one side, or not on the one that was known. */
	lookAt(stored: readonly number[]): void {
		if (!this.weight || !finalsOf(layoutOf(this.tree)).has('final')) return;
		let first: {readonly path: string; readonly side: Side} | null = null;
		for (const index of spread(stored, STORED_LOOKED_AT)) {
			const path = samplePath(this.tree, index);
			const side = this.sideIn(path);
			if (side === null) continue;
			if (first && side !== first.side)
				throw new Refusal(
					`${this.tree.output} mixes final states: ${first.path} holds the one ${WORDS[first.side]}, ${path} the one ${WORDS[side]}`,
				);
			if (this.side !== null && side !== this.side)
				throw new Refusal(`the manifest says ${this.side}, and ${path} holds the final state ${WORDS[side]}`);
			first ??= {path, side};
		}
		if (first) this.settle(first.side);
	}

	/** States under their right names. Throws when a final lies on the other side of the norm than its dump says. */
	named(states: States): States {
		for (const side of ['pre', 'post'] as const) {
			const found = this.sideOf(states[`final_${side}`]);
			if (found !== null && found !== side)
				throw new Error(`the final state ${WORDS[side]} of the dump is the one ${WORDS[found]}`);
		}
		const found = states.final ? (this.sideOf(states.final) ?? this.dumped) : null;
		if (found === null) return states;
		const {final, ...others} = states;
		return final ? {...others, [`final_${found}`]: final} : others;
	}

	/** Takes a side from the first states that are stored; `empty`: nothing is stored yet. Throws Refusal when it cannot. */
	decide(held: readonly StateName[], empty: boolean): void {
		if (!this.open || held.includes('final')) return;
		if (!empty)
			throw new Refusal(
				'whether the stored final states lie before or behind the norm is not known: compare stored samples (extraction.continuity) or make the norm weight of the model readable',
			);
		this.settle(held.includes('final_pre') ? 'pre' : 'post');
	}

	private sideIn(path: string): Side | null {
		try {
			return this.sideOf(readStates(path, layoutOf(this.tree).form, this.tree.hiddenSize).final);
		} catch (error) {
			if (error instanceof DamagedFile) return null;
			throw error;
		}
	}

	private sideOf(state: Buffer | undefined): Side | null {
		const {hiddenSize} = this.tree;
		if (!state || this.weight?.length !== hiddenSize) return null;
		const rows = state.length / (hiddenSize * 2);
		const looked = spread(
			Array.from({length: rows}, (_, row) => row),
			ROWS,
		).map(row => state.subarray(row * hiddenSize * 2, (row + 1) * hiddenSize * 2));
		const found = sideOfNorm(looked, 'BF16', this.weight);
		return found === null ? null : found === 'pre-norm' ? 'pre' : 'post';
	}
}

const finalsOf = ({form}: Layout): Set<StateName> =>
	new Set(leavesOf(form).flatMap(({part}) => (part.kind === 'states' ? part.columns : [])));

/** The layout with its final of unknown side put on a side. */
function sided(layout: Layout, side: Side): Layout {
	const put = (name: StateName): StateName => (name === 'final' ? `final_${side}` : name);
	const fields = layout.form.fields.map(([key, part]) => {
		if (part.kind === 'states') return [key, {...part, columns: part.columns.map(put)}] as const;
		if (part.kind !== 'list') return [key, part] as const;
		return [key, {...part, items: part.items.map(item => ({...item, columns: item.columns.map(put)}))}] as const;
	});
	return {...layout, form: {...layout.form, fields}};
}

/** So many of them, spread from the first to the last. */
export function spread<T>(all: readonly T[], count: number): T[] {
	const many = Math.min(count, all.length);
	const places = Array.from({length: many}, (_, at) =>
		many === 1 ? all.length - 1 : Math.round((at * (all.length - 1)) / (many - 1)),
	);
	return places.flatMap(place => all.slice(place, place + 1));
}
