import type {ExtractionConfig} from '../target.ts';
import type {Tree} from '../tensor/pickle.ts';
import {type Form, type Part, type StatesPart, treeOf} from './forms.ts';
import type {StateName} from './states.ts';

export type LayoutName = ExtractionConfig['layout'];

/** What files of a layout hold and how they are called. */
export type Layout = {
	readonly form: Form;
	/** `data_7.ckpt`: what stands around the index. */
	readonly prefix: 'data_' | 'hs_';
	readonly ending: '.ckpt' | '.pt' | '.safetensors';
	/** All in one directory, not in groups `rows_A-B`. */
	readonly flat: boolean;
};

/** Where samples go; `mirrored` takes the place of the layout's own entry in a tree that has a form already. */
export type Extraction = ExtractionConfig & {readonly mirrored?: Layout};

const ids: Part = {kind: 'ids', dtype: 'I64', batch: false};
const mask: Part = {kind: 'mask', dtype: 'I64', batch: false};
const AUXILIARY = ['aux_0', 'aux_1', 'aux_2'] as const;
const ALL = [...AUXILIARY, 'final_pre', 'final_post'] as const;

const states = (columns: readonly StateName[], as: StatesPart['as']): StatesPart => ({kind: 'states', columns, as});
const list = (items: readonly StatesPart[]): Part => ({kind: 'list', items});
const shared = (columns: readonly StateName[], as: StatesPart['as']): StatesPart => ({
	...states(columns, as),
	within: ALL,
});

/**
 * What readers of each layout expect. Auxiliary states are those that enter the configured layers. SpecForge trains on the
 * final state behind the norm, speculators on the one before it.
 *
 * - `universal`: both sets of keys as views over one storage [T, 5, H]; for either reader.
 * - `speculators`: `output` is the directory `hidden_states` itself; the Arrow dataset lies beside it, as do our side files.
 * - `legacy`: the incident's tree. A tree that exists says by its files what is in them (keys, order, endings).
 */
export const LAYOUTS: Readonly<Record<LayoutName, Layout>> = {
	universal: {
		prefix: 'data_',
		ending: '.ckpt',
		flat: false,
		form: {
			container: 'torch',
			fields: [
				['input_ids', ids],
				['loss_mask', mask],
				['aux_hidden_state', shared(AUXILIARY, 'batch')],
				['hidden_state', shared(['final_post'], 'batch')],
				['hidden_states', list([...AUXILIARY, 'final_pre' as const].map(name => shared([name], 'rows')))],
			],
		},
	},
	specforge: {
		prefix: 'data_',
		ending: '.ckpt',
		flat: false,
		form: {
			container: 'torch',
			fields: [
				['input_ids', ids],
				['loss_mask', mask],
				['aux_hidden_state', states(AUXILIARY, 'batch')],
				['hidden_state', states(['final_post'], 'batch')],
			],
		},
	},
	speculators: {
		prefix: 'hs_',
		ending: '.safetensors',
		flat: true,
		form: {
			container: 'safetensors',
			fields: [
				['token_ids', ids],
				['hidden_states', states([...AUXILIARY, 'final_pre'], 'layers')],
			],
		},
	},
	legacy: {
		prefix: 'data_',
		ending: '.pt',
		flat: false,
		form: {
			container: 'torch',
			fields: [
				['input_ids', ids],
				['hidden_states', list([...AUXILIARY, 'final' as const].map(name => states([name], 'rows')))],
				['loss_mask', mask],
			],
		},
	},
};

export const layoutOf = ({layout, mirrored}: Extraction): Layout => mirrored ?? LAYOUTS[layout];

/** The tree of tensors of one sample in a layout's own form. */
export const sampleTree = (layout: LayoutName, tokens: number, hiddenSize: number): Tree =>
	treeOf(LAYOUTS[layout].form, tokens, hiddenSize);

/** `rows_{g}-{g+size}`, right end not included. */
export function groupName(index: number, groupSize: number): string {
	const from = Math.floor(index / groupSize) * groupSize;
	return `rows_${from}-${from + groupSize}`;
}

/** Name of a sample's file without directory and ending; also the root inside a torch file. */
export const sampleStem = ({prefix}: Layout, index: number): string => `${prefix}${index}`;
