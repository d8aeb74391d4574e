/**
 * Answer of `head -v` or `tail -v` over several files: `==> NAME <==`, body, blank line. Body by name. Only for files whose
 * text cannot hold such a line by itself (/proc, end records of fixed length).
 */
export function readHeaded(text: string): ReadonlyMap<string, string> {
	const bodies = new Map<string, string>();
	const heads = [...text.matchAll(/^==> (.+) <==\n/gm)];
	heads.forEach((head, index) => {
		const from = head.index + head[0].length;
		const next = heads[index + 1];
		bodies.set(head[1] ?? '', text.slice(from, next ? Math.max(from, next.index - 1) : text.length));
	});
	return bodies;
}
