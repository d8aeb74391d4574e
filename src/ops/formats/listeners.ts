/** Who listens on a port. `pid` null: the tool cannot tell (another namespace, no permission, no `ss`). */
export type Listener = {readonly pid: number | null; readonly name: string};

/**
 * First listener among lines of `ss -ltnpH`; null when there is none. Only LISTEN counts: TIME-WAIT of an ended server is no
 * listener. Source: iproute2 6.1; fixtures/ss.
 */
export function listenerOf(text: string, port: number): Listener | null {
	for (const line of text.split('\n')) {
		const [state, , , local = ''] = line.trim().split(/\s+/);
		if (state !== 'LISTEN' || !local.endsWith(`:${port}`)) continue;
		const user = /users:\(\("([^"]*)",pid=(\d+)/.exec(line);
		return user ? {pid: Number(user[2]), name: user[1] ?? ''} : {pid: null, name: ''};
	}
	return null;
}

const LISTEN = '0A';

/** Whether anybody listens on the port, from /proc/net/tcp and tcp6, which name nobody. */
export function listensIn(text: string, port: number): boolean {
	const hex = port.toString(16).toUpperCase().padStart(4, '0');
	return text.split('\n').some(line => {
		const [, local = '', , state] = line.trim().split(/\s+/);
		return state === LISTEN && local.endsWith(`:${hex}`);
	});
}
