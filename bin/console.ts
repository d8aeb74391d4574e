import {basename, join} from 'node:path';
import {readConfig, showTrouble} from '../src/ops/config/config.ts';
import {watchFile} from '../src/ops/config/watch.ts';
import type {Box} from '../src/ops/drill/box.ts';
import type {Target} from '../src/ops/target.ts';
import {readByChild} from '../src/ops/transports/ssh-settings.ts';
import {createDispatch} from '../src/state/dispatch.ts';
import {visiblePids} from '../src/state/selectors/row-keys.ts';
import {openTerminal, startConsole} from '../src/ui/start.tsx';
import {withBuilt} from './built-extractor.ts';
import {type Composition, compose} from './compose.ts';
import {loadConfiguration, pickTarget, UsageError} from './configuration.ts';
import {configPlaces, operatorOf, stateDirectory, stateTrouble} from './login.ts';
import type {Options} from './relight.ts';

/** What is stuck at the end is left behind, not waited for. */
const END_LIMIT_MS = 1_500;

export async function openConsole(name: string | undefined, options: Options): Promise<number> {
	if (!process.stdin.isTTY || !process.stdout.isTTY || process.env.TERM === 'dumb') {
		throw new UsageError('relight: the console needs a terminal; without one use `relight status`');
	}
	const operator = operatorOf(process.env);
	const places = configPlaces(process.env, operator, options.config, process.cwd());
	const configuration = await loadConfiguration(places, options.config !== undefined);
	const target = withBuilt(pickTarget(configuration, name));
	const directory = stateDirectory(process.env, operator);
	const trouble = stateTrouble(directory, configuration.targets);
	if (trouble) throw new UsageError(`relight: ${trouble}`);
	return live({
		target,
		mode: 'live',
		readOnly: options['read-only'] === true,
		journalDirectory: directory,
		configFile: configuration.file,
	});
}

/** The console on a box that goes away with it. */
export async function openDrill(build: () => Promise<Box>): Promise<number> {
	process.stdout.write('building the box …\n');
	const box = await build();
	try {
		return await live({
			target: box.target,
			mode: 'drill',
			readOnly: false,
			journalDirectory: join(box.directory, 'operator/state'),
			configFile: null,
		});
	} finally {
		await Promise.race([box.close(), new Promise(resolve => setTimeout(resolve, END_LIMIT_MS))]);
	}
}

type Live = {
	readonly target: Target;
	readonly mode: 'live' | 'drill';
	readonly readOnly: boolean;
	readonly journalDirectory: string;
	readonly configFile: string | null;
};

async function live({configFile, ...options}: Live): Promise<number> {
	const terminal = openTerminal();
	const composition = await compose({
		...options,
		operator: operatorOf(process.env),
		asker: 'dialogs',
		mayPublish: () => !terminal.busy(),
		visiblePids: () => visiblePids(composition.store.getState()),
	});
	const {store, engine, asking} = composition;
	const dispatch = createDispatch({store, engine, asking, clock: Date.now, screen: terminal});
	const ending = startConsole({store, dispatch, terminal});
	// After the first frame: what looks need is loaded only then.
	setImmediate(() => engine.start());
	const unwatch = configFile ? await watchFile(configFile, () => void reload(configFile, composition)) : null;
	const code = await ending;
	await Promise.race([
		Promise.all([unwatch?.(), engine.stop()]),
		new Promise(resolve => setTimeout(resolve, END_LIMIT_MS)),
	]);
	return code;
}

/** A file that is wrong changes nothing: the old configuration stays in force, and header and timeline say so. */
async function reload(file: string, {store, engine}: Composition): Promise<void> {
	const text = await readByChild(['cat', file], 2_000);
	const {target, session} = store.getState();
	const trouble = (words: string) => {
		const short = words.replace(file, basename(file));
		if (short !== session.configTrouble) {
			engine.note({kind: 'session', level: 'warning', words: `the old configuration stays: ${words}`, command: null});
		}
		store.setState({session: {...session, configTrouble: short}});
	};
	if (text === null) return trouble(`${file}: cannot be read`);
	const result = readConfig(text.toString(), file);
	if (!result.ok) return trouble(result.troubles.map(showTrouble)[0] ?? 'wrong');
	const next = result.targets.find(each => each.name === target.name);
	if (!next) return trouble(`${file}: no host ${target.name} any more`);
	if (JSON.stringify(next.routes) !== JSON.stringify(target.routes)) {
		return trouble(`${file}: the routes changed; restart to use them`);
	}
	store.setState({target: withBuilt(next), session: {...session, configTrouble: null}});
}
