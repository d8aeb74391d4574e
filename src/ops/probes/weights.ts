import {capture} from './capture.ts';

/** The shards that a server loads, held against their index and each against its own header. */
export type WeightsFacts = {
	/** Of the listing that this was read from: while it stays the same nothing is read again. */
	readonly seal: string;
	readonly shards: number;
	/** null: there is no index to tell. */
	readonly shardsExpected: number | null;
	/** In the index, and not in the directory. */
	readonly missing: readonly string[];
	/** There, and not whole. */
	readonly damaged: readonly DamagedShard[];
	/** Whose headers were not read in the time of a look. */
	readonly unread: readonly string[];
};

export type DamagedShard = {readonly shard: string; readonly why: string};

/** The format's own bound. */
const LONGEST_HEADER_BYTES = 100_000_000;

const LISTED = `-maxdepth 1 -type f '(' -name '*.safetensors' -o -name '*.safetensors.index.json' ')' -printf '%s %T@ %i %f\\n'`;
const OFFSETS = `'"data_offsets": *\\[ *[0-9]*, *[0-9]*'`;

/**
 * Shell function `w DIRECTORY SEAL`. A header costs some ten milliseconds: all are read once, and again only when a name,
 * size, time or inode of the listing has changed. Links are followed: a hub's cache is made of them. Source: safetensors,
 * 8 bytes of length (little end first), a JSON header, data.
 */
export const DEFINE_WEIGHTS = [
	`w() { ${capture('l', 3, `find -L "$1/" ${LISTED}`)}`,
	's=$(pr "$l" | sort | cksum); s=${s%% *}; pr "W $r $s"; [ $r = 0 ] && [ "$s" != "$2" ] || return',
	`timeout -k 1 5 grep -aoh '"[^"/]*\\.safetensors"' "$1/model.safetensors.index.json" | sort | uniq -c | while read -r c f; do pr "I $c $f"; done`,
	'pr "$l" | sort -k 4 | while read -r b t i f; do case $f in *.safetensors) pr "S $b $f" ;; esac; done',
	'pr "$l" | sort -k 4 | while read -r b t i f; do case $f in *.safetensors) h "$1/$f" "$f" ;; esac; done; }',
	`h() { set -- "$1" "$2" $(timeout -k 1 2 od -An -tu1 -N9 "$1"); n=0; [ "\${11}" = 123 ] && [ $(($7+$8+$9+\${10})) = 0 ] && n=$(($3+256*$4+65536*$5+16777216*$6))`,
	`[ $n -le ${LONGEST_HEADER_BYTES} ] || n=0; e=; [ $n = 0 ] || e=$(timeout -k 1 4 head -c $((n+8)) "$1" | tail -c +9 | grep -ao ${OFFSETS} | sort -t , -k 2n | sed -n '$p;$=' | tr '\\n' ' ')`,
	'set -- "$2" ${e##*,}; pr "H $n ${2:-0} ${3:-0} $1"; }',
].join('\n');

/** null: the directory gave no answer, or is not there. What was read before stands while the listing does. */
export function parseWeights(lines: readonly string[], last: WeightsFacts | null): WeightsFacts | null {
	const [, status, seal = ''] = lines.find(line => line.startsWith('W '))?.split(' ') ?? [];
	if (status !== '0') return null;
	if (last && last.seal === seal) return last;
	const indexed = byShard(lines, /^I (?<count>\d+) "(?<shard>.*)"$/, ({count}) => Number(count));
	const sizes = byShard(lines, /^S (?<bytes>\d+) (?<shard>.*)$/, ({bytes}) => Number(bytes));
	const headers = byShard(
		lines,
		/^H (?<length>\d+) (?<end>\d+) (?<tensors>\d+) (?<shard>.*)$/,
		({length, end, tensors}) => ({length: Number(length), end: Number(end), tensors: Number(tensors)}),
	);
	const shards = [...sizes.keys()];
	const unread = shards.filter(shard => !headers.has(shard));
	const damaged = [...headers].flatMap(([shard, header]) => {
		const why = damageOf(sizes.get(shard) ?? 0, header, indexed.get(shard) ?? 0);
		return why === null ? [] : [{shard, why}];
	});
	return {
		// What was not read now is read at the next look.
		seal: unread.length > 0 ? '' : seal,
		shards: sizes.size,
		shardsExpected: indexed.size === 0 ? null : indexed.size,
		missing: [...indexed.keys()].filter(shard => !sizes.has(shard)),
		damaged,
		unread,
	};
}

function byShard<T>(
	lines: readonly string[],
	form: RegExp,
	value: (said: Readonly<Record<string, string>>) => T,
): ReadonlyMap<string, T> {
	return new Map(
		lines.flatMap(line => {
			const said = form.exec(line)?.groups;
			return said ? [[said.shard ?? '', value(said)] as const] : [];
		}),
	);
}

type Header = {readonly length: number; readonly end: number; readonly tensors: number};

function damageOf(bytes: number, {length, end, tensors}: Header, indexed: number): string | null {
	if (length === 0) return 'it does not begin with a header';
	if (bytes < 8 + length) return `its header is ${length} bytes long, the whole file ${bytes}`;
	if (tensors < indexed) return `its header names ${tensors} tensors, the index ${indexed}`;
	const promised = 8 + length + end;
	return bytes === promised ? null : `it is ${bytes} bytes long, by its header ${promised}`;
}
