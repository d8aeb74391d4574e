/** Lines as a terminal would leave them: of text rewritten by carriage returns only the last state of each line stays. */
export function foldLines(text: string): string[] {
	const lines = text.split('\n').map(fold);
	if (lines.at(-1) === '') lines.pop();
	return lines;
}

function fold(line: string): string {
	if (!line.includes('\r')) return line;
	return line.split('\r').findLast(part => part !== '') ?? '';
}
