import {bad, good, type Outcome} from '../outcome.ts';
import type {RouteConfig} from '../target.ts';
import type {KnownHostsFile} from './known-hosts.ts';
import {type Operator, readByChild, resolveSettings, type SshSettings} from './ssh-settings.ts';

/** One machine on the way, the last one being the host itself, with what this machine's files say about it. */
export type Hop = SshSettings & {
	readonly knownHosts: readonly KnownHostsFile[];
	readonly keys: readonly {readonly file: string; readonly text: string}[];
};

/**
 * The way to a destination, outermost hop first. As in ssh(1) the first hop of a `ProxyJump` may itself lie behind others, the
 * later ones are reached from the one before. `denied`: a loop, by its names, or a ProxyCommand, which is not spoken here.
 */
export async function resolveHops(route: RouteConfig, operator: Operator): Promise<Outcome<readonly Hop[]>> {
	const way = await wayTo(route, operator, []);
	if (!way.ok) return way;
	return good(await Promise.all(way.value.map(readFiles)));
}

async function wayTo(
	route: RouteConfig,
	operator: Operator,
	asking: readonly string[],
): Promise<Outcome<readonly SshSettings[]>> {
	const settings = await resolveSettings(route, operator);
	const path = [...asking, settings.destination];
	if (asking.some(each => sameHost(each, settings.destination))) return loop(path);
	const [first, ...rest] = settings.jumps.map(ssh => ({...route, ssh, identityFile: null}));
	if (!first) {
		if (settings.proxyCommand === null) return good([settings]);
		const detail = `${settings.destination} is reached by a ProxyCommand (${settings.proxyCommand}), which is not run here: use ProxyJump, or a route with \`through\``;
		return bad({kind: 'denied', detail});
	}
	const outer = await wayTo(first, operator, path);
	if (!outer.ok) return outer;
	const way = [...outer.value, ...(await Promise.all(rest.map(hop => resolveSettings(hop, operator)))), settings];
	const twice = way.find((hop, index) => way.findIndex(other => sameSettings(hop, other)) !== index);
	return twice ? loop(way.map(hop => hop.destination)) : good(way);
}

const loop = (path: readonly string[]) =>
	bad({kind: 'denied', detail: `ProxyJump goes round in a circle: ${path.join(' -> ')}`});

const sameSettings = (one: SshSettings, other: SshSettings): boolean =>
	one.host === other.host && one.port === other.port && one.user === other.user;

const sameHost = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase();

/** Through children, all at once: the operator's home may be a mount that hangs. */
async function readFiles(settings: SshSettings): Promise<Hop> {
	const [known, keys] = await Promise.all([readAll(settings.knownHostsFiles), readAll(settings.identityFiles)]);
	return {
		...settings,
		knownHosts: known.map(({file, text}) => ({path: file, text: text ?? ''})),
		keys: keys.flatMap(({file, text}) => (text === null ? [] : [{file, text}])),
	};
}

const readAll = (files: readonly string[]): Promise<{file: string; text: string | null}[]> =>
	Promise.all(files.map(async file => ({file, text: (await readByChild(['cat', file], 2_000))?.toString() ?? null})));
