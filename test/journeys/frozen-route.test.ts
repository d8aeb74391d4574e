import {afterEach, expect, test} from 'vitest';
import {closeTerminals, openScreen} from '../support/terminal.ts';

afterEach(closeTerminals);

test('a route that freezes is left for the hypervisor, with the reason in the header, while keys go on answering', async () => {
	const screen = openScreen(['drill', 'frozen-ssh'], {env: {LANG: 'C.UTF-8'}});
	await screen.see('comes back at boot', 30_000);
	await screen.see(/via ssh root@127\.0\.0\.1:\d+ {2}/);
	expect(screen.rows()[0]).not.toContain('pct exec');
	const slowest = {ms: 0};
	const end = Date.now() + 30_000;
	let pane = 1;
	while (!screen.rows()[0]?.includes('pct exec') && Date.now() < end) {
		pane = pane === 1 ? 2 : 1;
		const at = Date.now();
		await screen.press(String(pane));
		await screen.see(pane === 1 ? /\[1 GPU\]/ : /\[2 PROC\]/, 5_000);
		slowest.ms = Math.max(slowest.ms, Date.now() - at);
		await new Promise(resolve => setTimeout(resolve, 200));
	}
	await screen.see(/via ssh root@127\.0\.0\.1:\d+ pct exec 129/);
	await screen.press('2');
	await screen.see('VLLM::Worker_TP0', 10_000);
	await screen.press('q');
	expect((await screen.exited).exitCode).toBe(0);
}, 90_000);
