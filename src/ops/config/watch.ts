/** Calls back when the file was written, a moment after the writer is done with it. Returns the way to stop. */
export async function watchFile(file: string, changed: () => void): Promise<() => Promise<void>> {
	const {watch} = await import('chokidar');
	const watcher = watch(file, {ignoreInitial: true, awaitWriteFinish: {stabilityThreshold: 200, pollInterval: 50}});
	// What was written while the watch was being set up is read then.
	watcher
		.on('ready', changed)
		.on('add', changed)
		.on('change', changed)
		.on('error', () => {});
	return () => watcher.close();
}
