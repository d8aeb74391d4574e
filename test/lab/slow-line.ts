import {readFileSync, writeFileSync} from 'node:fs';
import {type AddressInfo, connect, createServer} from 'node:net';
import {setTimeout as sleep} from 'node:timers/promises';
import type {RouteConfig} from '../../src/ops/target.ts';
import type {Sshd} from './sshd.ts';

/** The server behind a line that carries so many bytes a second to it. */
export async function slowLine(
	{port, route, directory}: Sshd,
	bytesPerSecond: number,
): Promise<{route: RouteConfig; close(): void}> {
	const line = createServer(near => {
		const far = connect(port, '127.0.0.1');
		far.pipe(near);
		near.on('data', async chunk => {
			near.pause();
			far.write(chunk);
			await sleep((chunk.length / bytesPerSecond) * 1_000);
			near.resume();
		});
		near.on('close', () => far.destroy());
		for (const end of [near, far]) end.on('error', () => {});
	});
	await new Promise<void>(resolve => line.listen(0, '127.0.0.1', () => resolve()));
	const {port: own} = line.address() as AddressInfo;
	const known = readFileSync(`${directory}/known_hosts`, 'utf8');
	writeFileSync(`${directory}/known_hosts`, known + known.replace(`:${port}`, `:${own}`));
	return {route: {...route, ssh: `root@127.0.0.1:${own}`}, close: () => line.close()};
}
