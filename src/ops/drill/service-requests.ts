import {existsSync, mkdirSync, rmSync, symlinkSync} from 'node:fs';
import type {BoxPaths} from './paths.ts';
import type {Population} from './population.ts';
import type {Reply} from './requests.ts';
import {parseRun} from './transient.ts';
import type {Unit} from './unit.ts';
import type {Units} from './units.ts';

/** Answers what `systemctl` and `systemd-run` hand over. */
export function serviceRequests(paths: BoxPaths, units: Units, population: Population) {
	return async (words: readonly string[]): Promise<Reply> => {
		const [tool, ...rest] = words;
		if (tool === 'systemd-run') return run(rest);
		return control(rest);
	};

	async function control(words: readonly string[]): Promise<Reply> {
		const options = new Set(words.filter(word => word.startsWith('-')));
		const [verb = '', ...names] = words.filter(
			(word, at) => !word.startsWith('-') && !/^(-s|--signal)$/.test(words[at - 1] ?? ''),
		);
		if (verb === 'daemon-reload') {
			units.reload();
			return {rc: 0};
		}
		let stderr = '';
		let rc = 0;
		for (const name of names.length || verb !== 'reset-failed' ? names : [...units.all.keys()]) {
			const reply = await one(verb, name.includes('.') ? name : `${name}.service`, options, words);
			stderr += reply.stderr ?? '';
			rc = reply.rc || rc;
		}
		return {rc, stderr};
	}

	async function one(
		verb: string,
		name: string,
		options: ReadonlySet<string>,
		words: readonly string[],
	): Promise<Reply> {
		const unit = units.all.get(name);
		const wait = !options.has('--no-block');
		if (!unit) return missing(verb, name);
		switch (verb) {
			case 'stop':
				return stop(unit, wait);
			case 'start':
				return start(unit);
			case 'restart': {
				await stop(unit, true);
				return start(unit);
			}
			case 'kill': {
				units.signal(
					unit,
					signalOf(words),
					'request',
					options.has('--kill-whom=main') || options.has('--kill-who=main'),
				);
				return {rc: 0};
			}
			case 'disable':
				return disable(unit, options.has('--now'), wait);
			case 'enable':
				return enable(unit, options.has('--now'));
			case 'mask':
				return unit.definition.fragment?.startsWith(paths.unitFiles)
					? {rc: 1, stderr: `Failed to mask unit: File ${unit.definition.fragment} already exists.\n`}
					: {rc: 0};
			case 'reset-failed':
				if (unit.active === 'failed') {
					Object.assign(unit, {active: 'inactive', sub: 'dead', result: 'success'});
					if (unit.definition.fragment === null) units.forget(unit);
					units.render();
				}
				return {rc: 0};
			default:
				return {rc: 0};
		}
	}

	async function stop(unit: Unit, wait: boolean): Promise<Reply> {
		const done = units.stop(unit, true);
		if (wait) await done;
		return {rc: 0};
	}

	function start(unit: Unit): Reply {
		const trouble = units.start(unit);
		return trouble === null
			? {rc: 0}
			: {rc: 1, stderr: `Job for ${unit.name} failed because the control process exited with error code.\n`};
	}

	async function disable(unit: Unit, now: boolean, wait: boolean): Promise<Reply> {
		const link = `${paths.unitFiles}/${unit.definition.wantedBy}.wants/${unit.name}`;
		const linked = existsSync(link);
		rmSync(link, {force: true});
		units.reload();
		if (now) await stop(unit, wait);
		return {rc: 0, stderr: linked ? `Removed "${link}".\n` : ''};
	}

	function enable(unit: Unit, now: boolean): Reply {
		if (unit.definition.wantedBy === null) return {rc: 0};
		const directory = `${paths.unitFiles}/${unit.definition.wantedBy}.wants`;
		const link = `${directory}/${unit.name}`;
		const fresh = !existsSync(link);
		if (fresh && unit.definition.fragment !== null) {
			mkdirSync(directory, {recursive: true});
			symlinkSync(unit.definition.fragment, link);
		}
		units.reload();
		if (now) start(unit);
		return {rc: 0, stderr: fresh ? `Created symlink ${link} → ${unit.definition.fragment}.\n` : ''};
	}

	function run(words: readonly string[]): Reply {
		const parsed = parseRun(words, paths, population);
		if ('refused' in parsed) return {rc: 1, stderr: `${parsed.refused}\n`};
		if (units.all.has(parsed.name)) {
			return {
				rc: 1,
				stderr: `Failed to start transient service unit: Unit ${parsed.name} was already loaded or has a fragment file.\n`,
			};
		}
		const unit = units.load(parsed);
		const trouble = units.start(unit);
		if (trouble !== null) return {rc: 1, stderr: `Job for ${unit.name} failed: ${trouble}\n`};
		return {rc: 0, stderr: `Running as unit: ${unit.name}\n`};
	}
}

function missing(verb: string, name: string): Reply {
	if (verb === 'enable' || verb === 'disable' || verb === 'mask') {
		return {rc: 1, stderr: `Failed to ${verb} unit: Unit file ${name} does not exist.\n`};
	}
	return {rc: verb === 'reset-failed' ? 1 : 5, stderr: `Failed to ${verb} ${name}: Unit ${name} not loaded.\n`};
}

function signalOf(words: readonly string[]): NodeJS.Signals {
	const at = words.findIndex(word => word === '-s' || word === '--signal');
	const said =
		words.find(word => word.startsWith('--signal='))?.slice('--signal='.length) ?? (at < 0 ? 'TERM' : words[at + 1]);
	const name = (said ?? 'TERM').toUpperCase().replace(/^SIG/, '');
	return `SIG${name === '9' ? 'KILL' : name === '15' ? 'TERM' : name}` as NodeJS.Signals;
}
