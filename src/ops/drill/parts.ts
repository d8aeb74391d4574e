/**
 * `relight drill-part NAME ARGS…`: programs of a box that need more than sh. Started many times and expected to be quick,
 * so everything is imported when it is needed. Returns the exit status.
 */
export async function runPart(argv: readonly string[]): Promise<number> {
	const [name, ...rest] = argv;
	if (name === 'python') {
		const {runPython} = await import('./parts/python.ts');
		return runPython(rest);
	}
	if (name === 'relight') {
		if (rest[0] !== 'extract') {
			process.stderr.write('relight in a drill box knows only `extract`\n');
			return 64;
		}
		const [{runExtraction}, {partBox}] = await Promise.all([
			import('./parts/extraction.ts'),
			import('./parts/part-box.ts'),
		]);
		return runExtraction(partBox(), rest.slice(1));
	}
	if (name === 'listener') {
		const [{runListener}, {partBox}] = await Promise.all([
			import('./parts/listener.ts'),
			import('./parts/part-box.ts'),
		]);
		return runListener(partBox(), Number(rest[0]));
	}
	process.stderr.write(`no such part of a drill: ${name ?? ''}\n`);
	return 64;
}
