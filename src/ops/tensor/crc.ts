import {crc32 as zlibCrc32} from 'node:zlib';

type Crc32 = (bytes: Buffer, before?: number) => number;

let compute: Crc32 = zlibCrc32;

/** CRC-32 as in zip; `before` is the sum of what comes first. */
export const crc32 = (bytes: Buffer, before = 0): number => compute(bytes, before);

/**
 * Takes the native package where it could be installed: about twice as fast on long runs. It is optional, and one that
 * counts differently is not used. Says which one computes from now on.
 */
export function preferNativeCrc(name = '@node-rs/crc32'): Promise<'zlib' | 'native'> {
	const found = tried.get(name) ?? tryNative(name);
	tried.set(name, found);
	return found;
}

/** To look for a package that is not there takes as long as to look at ten files. */
const tried = new Map<string, Promise<'zlib' | 'native'>>();

async function tryNative(name: string): Promise<'zlib' | 'native'> {
	try {
		const found: {readonly crc32?: unknown} = await import(name);
		const native = found.crc32 as Crc32;
		const word = Buffer.from('123456789');
		if (native(word) === 0xcbf43926 && native(word.subarray(4), native(word.subarray(0, 4))) === 0xcbf43926) {
			compute = native;
			return 'native';
		}
	} catch {
		// Not for this machine, or the one file that was sent to a host.
	}
	return 'zlib';
}

/** CRC-32 of parts that lie one behind the other, from theirs: what is summed once need not be read again. */
export const joinedCrc = (parts: readonly {readonly crc: number; readonly bytes: number}[]): number =>
	parts.reduce((sum, {crc, bytes}) => (product(shift(bytes), sum) ^ crc) >>> 0, 0);

/** The polynomial of CRC-32, lowest power in the highest bit, as all that follow. */
const POLYNOMIAL = 0xedb88320;
const ONE = 0x80000000;

/** Of two polynomials over GF(2), modulo POLYNOMIAL. */
function product(one: number, other: number): number {
	let sum = 0;
	let power = other;
	for (let bit = ONE; bit !== 0; bit >>>= 1) {
		if ((one & bit) !== 0) sum ^= power;
		power = (power & 1) !== 0 ? (power >>> 1) ^ POLYNOMIAL : power >>> 1;
	}
	return sum >>> 0;
}

/** x to the power of 2^n, for each n that a count of bits has. */
const POWERS: readonly number[] = Array.from({length: 56}).reduce<number[]>(
	all => {
		const last = all.at(-1) ?? 0;
		return [...all, product(last, last)];
	},
	[ONE >>> 1],
);

/** x to the power of so many bytes: what that many zeros behind it make of a sum. */
function shift(bytes: number): number {
	let made = ONE;
	for (let [left, bit] = [bytes, 3]; left > 0; left = Math.floor(left / 2), bit++)
		if (left % 2 === 1) made = product(POWERS[bit] ?? 0, made);
	return made;
}
