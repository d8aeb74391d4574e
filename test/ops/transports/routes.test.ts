import {expect, test} from 'vitest';
import {LOCAL_TARGET} from '../../../src/ops/config/config.ts';
import type {RouteConfig} from '../../../src/ops/target.ts';
import {hostOf} from '../../../src/ops/transports/routes.ts';
import {OPERATOR} from '../../support/ssh-server.ts';

const [local] = LOCAL_TARGET.routes as [RouteConfig];
const LIMITS = {limitMs: 5_000, capBytes: 1_000};

/** Whether a hypervisor was found to ask; the route before it leads nowhere. */
async function asked(...throughs: readonly (readonly string[])[]) {
	const nowhere: RouteConfig = {...local, ssh: 'nobody@127.0.0.1:9', through: ['sudo', '-n']};
	const routes = [nowhere, ...throughs.map(through => ({...local, through}))];
	const host = hostOf({...LOCAL_TARGET, routes}, OPERATOR, {onStatus() {}});
	const outcome = await host.askOuter('echo here', LIMITS);
	host.close();
	return outcome.ok ? outcome.value.stdout.trim() : outcome.failure.kind;
}

test('about the guest is asked where a route leads into one, whatever stands before that', async () => {
	expect(await asked(['docker', 'exec', '-i', 'x'], ['sudo', '-n', 'pct', 'exec', '129', '--'])).toBe('here');
	expect(await asked(['docker', 'exec', '-i', 'x'])).toBe('cancelled');
});
