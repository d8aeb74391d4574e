import {ParseError} from '../outcome.ts';

/**
 * One script, several answers: each is opened by a marker line. Markers are longer than the 15 bytes that a process name
 * can hold, so no process can forge one; text that could (a log) belongs into the last section, where none is sought.
 */
const line = (name: string) => `@@ relight section ${name}`;

/**
 * First line of a script that has sections. The newline in front ends an answer that has none of its own (`wchan`). `pr`
 * prints a value as it is, where `echo` of some shells would read backslashes.
 */
export const DEFINE_MARK = `mk() { printf '\\n${line('%s')}\\n' "$1"; }; pr() { printf '%s\\n' "$1"; }`;

/** Shell that opens a section. */
export const mark = (name: string): string => `mk ${name}`;

/**
 * Bodies by name, without the newline that belongs to the next marker. `names` in the order in which the script opens
 * them; a missing one is a ParseError: the script ended early.
 */
export function readSections<Name extends string>(
	tool: string,
	text: string,
	names: readonly Name[],
): Readonly<Record<Name, string>> {
	const bodies: Partial<Record<Name, string>> = {};
	let open: {name: Name; from: number} | null = null;
	for (const name of names) {
		const marker: string = `\n${line(name)}\n`;
		const at = text.indexOf(marker, Math.max(0, (open?.from ?? 0) - 1));
		if (at < 0) throw new ParseError(tool, `no section ${name} in: ${text.trim()}`);
		if (open) bodies[open.name] = text.slice(open.from, Math.max(open.from, at));
		open = {name, from: at + marker.length};
	}
	if (open) bodies[open.name] = text.slice(open.from);
	return bodies as Record<Name, string>;
}
