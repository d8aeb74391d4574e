/** What is wrong with a file, as a word to count by. The message has the details. */
export type Damage =
	| 'empty'
	| 'not a tensor file'
	| 'cut off'
	| 'trailing bytes'
	| 'container'
	| 'pickle'
	| 'storage'
	| 'header'
	| 'checksum';

/** Why a tensor file is not what it should be. Thrown by readers; the words are for people. */
export class DamagedFile extends Error {
	constructor(
		message: string,
		readonly damage: Damage = 'container',
		/** The entry that is damaged, where one is known. */
		readonly entry: string | null = null,
	) {
		super(message);
	}
}

export type UnsupportedKind = 'legacy pickle' | 'legacy tar' | 'gzip' | 'TorchScript' | 'deflated and large';

/** A format that exists and is not read here. It may be whole. */
export class UnsupportedFile extends DamagedFile {
	constructor(readonly kind: UnsupportedKind) {
		super(`${kind}: not read here`, 'not a tensor file');
	}
}
