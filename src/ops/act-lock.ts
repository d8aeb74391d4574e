import {quote} from './command.ts';
import {describe} from './outcome.ts';
import type {Host} from './transports/host.ts';

/**
 * One operator acts on a host at a time. The lock is a directory, since only making one tells two who come at once apart;
 * it lies where a boot empties, or in the home of whoever acts. Its time is the last sign of life: an old one is named and
 * broken by a person, never by itself.
 */
export type Actor = {
	/** Of this run of the console: taking the lock again with the same token is no conflict. */
	readonly token: string;
	readonly operator: string;
	/** The machine that the operator sits at. */
	readonly from: string;
	readonly operation: string;
	readonly since: number;
};

export type Lock =
	| {readonly kind: 'free' | 'taken' | 'nowhere' | 'broken'}
	| {readonly kind: 'held'; readonly actor: Actor | null; readonly ageMs: number; readonly otherBoot: boolean};

export const BEAT_MS = 20_000;
const STALE_MS = 120_000;

const NAME = 'relight.act';
const EACH = `for r in "$ETC/../run/lock" "$ETC/../run" "$HOME"; do l=$r/${NAME}`;
const LOOK = [
	'read -r b <"$PROC/sys/kernel/random/boot_id"',
	`held() { m=$(stat -c %Y -- "$l" 2>/dev/null) || return 1; echo "held $b $(date +%s) $m"; head -c 2048 -- "$l/owner" 2>/dev/null; exit 0; }`,
].join('; ');

export const lookScript = (): string => `${LOOK}\n${EACH}; [ ! -e "$l" ] || held; done; echo free`;

export function takeScript(actor: Actor): string {
	const mine = `grep -qF ${quote(actor.token)} "$l/owner" 2>/dev/null`;
	return [
		LOOK,
		`${EACH}; [ -e "$l" ] || continue; ${mine} && { touch -c "$l"; echo taken; exit 0; }; held; done`,
		`${EACH}; [ -d "$r" ] && [ -w "$r" ] || continue`,
		`mkdir "$l" 2>/dev/null || held; printf '%s %s\\n' "$b" ${quote(JSON.stringify(actor))} >"$l/owner" && { echo taken; exit 0; }; done; echo nowhere`,
	].join('\n');
}

/** Is this one of ours, whatever it does with the lock. */
export const isLockScript = (script: string): boolean => script.includes(EACH);

const onOwn = (token: string, then: string): string =>
	`${EACH}; grep -qF ${quote(token)} "$l/owner" 2>/dev/null && ${then}; done; true`;
export const beatScript = (token: string): string => onOwn(token, 'touch -c "$l"');
export const freeScript = (token: string): string => onOwn(token, 'rm -f "$l/owner" && rmdir "$l"');

/** Moves it aside under a name of its own: whoever held it is still there to be read. */
export const breakScript = (): string =>
	`n=$(date +%s); ${EACH}; [ ! -e "$l" ] || mv -- "$l" "$l.broken.$n" || exit 1; done; echo broken`;

/** Source: what the scripts here print. null for anything else. */
export function readLock(text: string): Lock | null {
	const [first = '', owner = ''] = text.trim().split('\n');
	const [kind, boot, now, beat] = first.split(' ');
	if (kind === 'free' || kind === 'taken' || kind === 'nowhere' || kind === 'broken') return {kind};
	if (kind !== 'held' || !boot) return null;
	const [ownBoot = '', ...json] = owner.split(' ');
	return {
		kind: 'held',
		actor: readActor(json.join(' ')),
		ageMs: Math.max(0, Number(now) - Number(beat)) * 1_000,
		otherBoot: ownBoot !== '' && ownBoot !== boot,
	};
}

function readActor(text: string): Actor | null {
	try {
		const actor: Partial<Actor> = JSON.parse(text);
		const {token, operator, from, operation, since} = actor;
		if (typeof token !== 'string' || typeof operator !== 'string' || typeof from !== 'string') return null;
		return {token, operator, from, operation: String(operation), since: Number(since) || 0};
	} catch {
		return null;
	}
}

export const isStale = (lock: Extract<Lock, {kind: 'held'}>): boolean => lock.otherBoot || lock.ageMs > STALE_MS;

/** Who acts, since when, and what to do about it. */
export function lockWords(lock: Extract<Lock, {kind: 'held'}>): string {
	const {actor} = lock;
	const who = actor
		? `${actor.operator}@${actor.from} acts here (${actor.operation}`
		: 'somebody acts here (who is not told';
	const since = actor && actor.since > 0 ? `, since ${new Date(actor.since).toISOString().slice(11, 19)}Z)` : ')';
	if (lock.otherBoot) return `${who}${since}, but the host was booted since: the lock can be broken`;
	if (lock.ageMs <= STALE_MS) return `${who}${since}: wait until that ends`;
	return `${who}${since}, without a sign of life for ${Math.round(lock.ageMs / 60_000)} min: the lock can be broken`;
}

const LIMITS = {limitMs: 15_000, capBytes: 16_384};

/** Takes it, or says who has it. Words when the host did not answer. */
export async function takeLock(host: Host, actor: Actor): Promise<Lock | string> {
	return ask(host, takeScript(actor));
}

export const breakLock = (host: Host): Promise<Lock | string> => ask(host, breakScript());

async function ask(host: Host, script: string): Promise<Lock | string> {
	const outcome = await host.ask('act', script, LIMITS);
	if (!outcome.ok) return describe(outcome.failure);
	return (
		readLock(outcome.value.stdout) ?? `the host said: ${outcome.value.stderr.trim() || outcome.value.stdout.trim()}`
	);
}

/** Signs of life until the end, and then the lock is free again. Failures change nothing: it grows old and is named. */
export function holdLock(host: Host, {token}: Actor): () => Promise<void> {
	const beating = setInterval(() => void host.ask('files', beatScript(token), LIMITS), BEAT_MS);
	beating.unref();
	return async () => {
		clearInterval(beating);
		await host.ask('act', freeScript(token), LIMITS);
	};
}
