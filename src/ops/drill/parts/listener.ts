import {writeFileSync} from 'node:fs';
import {createServer} from 'node:http';
import {type PartBox, whenLeashEnds} from './part-box.ts';

/** Somebody else's small server, that has the port which the model server wants. Never returns by itself. */
export function runListener({paths}: Pick<PartBox, 'paths'>, port: number): Promise<number> {
	return new Promise(resolve => {
		whenLeashEnds(() => resolve(1));
		const server = createServer((_, response) => response.end('a directory listing\n'));
		server.once('error', () => resolve(1));
		server.listen({port, host: '127.0.0.1'}, () => writeFileSync(`${paths.ports}/${port}`, `${process.pid} python3\n`));
	});
}
