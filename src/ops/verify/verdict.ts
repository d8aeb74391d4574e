import type {Damage, UnsupportedKind} from '../tensor/damage.ts';

/**
 * How far a file is looked at. Each level does what the ones before it do.
 *
 * - `stat`: one stat; the size must be one that a token count gives in this tree's layout (the dataset's count, with a
 *   dataset). Sees: cut off, empty, foreign and appended-to files. Blind to: everything that keeps the size.
 * - `structure`: about 10 KB read; all metadata, the pickle, each storage's size, shapes that agree. Sees also: a tail of
 *   zeros, damaged headers, hostile pickles. Blind to: tensor data.
 * - `crc`: every byte read and summed. Sees also: any changed bit, zeroed or swapped pages. Blind to: values that were wrong
 *   when they were written. Without checksums (safetensors, torch told to write none) only zeroed pages are seen, unless the
 *   journal of the extractor that stored the file has its sum.
 * - `values`: sees also NaN and infinity, states of zeros, one layer stored twice, impossible ids or ids other than the
 *   dataset's, a mask that trains nothing, and with a norm weight a final state on the wrong side of the norm. Blind to:
 *   plausible numbers that are not this model's.
 */
export const LEVELS = ['stat', 'structure', 'crc', 'values'] as const;

export type Level = (typeof LEVELS)[number];

export type SuspectReason =
	| Damage
	/** Token counts or widths that do not fit one another. */
	| 'shape'
	| 'tokens'
	| 'not finite'
	| 'zero pages'
	| 'zeros'
	| 'layers alike'
	| 'ids'
	| 'mask'
	| 'norm';

export type Suspect = {
	readonly verdict: 'suspect';
	readonly reason: SuspectReason;
	readonly words: string;
	/** Which of the stored states, counted from 0 in stored order; null when it is not one state's trouble. */
	readonly layer: number | null;
};

export type Verdict =
	| {readonly verdict: 'done'}
	| Suspect
	| {
			readonly verdict: 'unverifiable';
			readonly reason: 'no checksums' | 'unreadable' | 'changing';
			readonly words: string;
	  }
	| {readonly verdict: 'unsupported'; readonly reason: UnsupportedKind};

export const suspect = (reason: SuspectReason, words: string, layer: number | null = null): Suspect => ({
	verdict: 'suspect',
	reason,
	words,
	layer,
});

/** What one look at a file found. */
export type Findings = {
	readonly verdict: Verdict;
	/** Null when the file does not say. */
	readonly tokens: number | null;
	/** CRC-32 of the token ids as 64-bit little-endian numbers; null below `values` and without ids. */
	readonly ids: number | null;
	/** Whether a final state was compared with a norm weight. */
	readonly normChecked: boolean;
	/** Out of the ordinary and no damage. */
	readonly notes: readonly string[];
};

/** What a file is known by: while these stay the same, so do its bytes. */
export type Identity = {readonly bytes: number; readonly mtimeMs: number; readonly inode: number};

export const atLeast = (level: Level, least: Level): boolean => LEVELS.indexOf(level) >= LEVELS.indexOf(least);
