/** A command is an argument array until the last moment; text for a shell is made here and nowhere else. */
export type Command = readonly string[];

/** One word for a POSIX shell. Safe for every byte but NUL, which no argument can hold. */
export function quote(word: string): string {
	if (word === '') return "''";
	if (/^[A-Za-z0-9_@%+=:,./-]+$/.test(word)) return word;
	return `'${word.replaceAll("'", `'\\''`)}'`;
}

/** The shell line for a command: exactly what runs, and therefore what is shown. */
export const show = (command: Command): string => command.map(quote).join(' ');
