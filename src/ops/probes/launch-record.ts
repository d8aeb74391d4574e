import type {LaunchRecord} from './server.ts';

/** The record that a launch leaves behind; null for an empty, torn or foreign file: then nothing is ours. */
export function readLaunchRecord(text: string): LaunchRecord | null {
	const value = parse(text);
	if (typeof value !== 'object' || value === null) return null;
	const field = (key: string): unknown => (value as Readonly<Record<string, unknown>>)[key];
	const [launchId, bootId, log] = [field('launchId'), field('bootId'), field('log')];
	const [pid, startTicks, port] = [field('pid'), field('startTicks'), field('port')];
	const argv = field('argv');
	if (typeof launchId !== 'string' || typeof bootId !== 'string') return null;
	if (typeof pid !== 'number' || typeof startTicks !== 'number' || typeof port !== 'number') return null;
	if (!(Number.isInteger(pid) && pid > 1)) return null;
	const unit = field('unit');
	const at = field('at');
	return {
		launchId,
		bootId,
		pid,
		startTicks,
		unit: typeof unit === 'string' ? unit : null,
		port,
		argv: Array.isArray(argv) ? argv.map(String) : [],
		log: typeof log === 'string' ? log : '',
		at: typeof at === 'number' ? at : 0,
	};
}

function parse(text: string): unknown {
	try {
		return JSON.parse(text);
	} catch {
		return null;
	}
}
