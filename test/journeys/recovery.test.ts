import {afterEach, expect, test} from 'vitest';
import {closeTerminals, openScreen} from '../support/terminal.ts';
import {until} from '../support/until.ts';

afterEach(closeTerminals);

test('the incident is recovered with the keyboard alone, and the terminal is given back', async () => {
	const screen = openScreen(['drill']);
	await screen.see('vllm-kimi-k25-int4.service is running and comes back at boot', 30_000);
	await screen.see(/pct exec 129/);
	// A recovery is planned on whole facts: the files are among the last to be heard of.
	await screen.see('missing: 02b_');
	expect(screen.alternate).toBe(true);

	await screen.press('o');
	await screen.see('run-extractor');
	await screen.press('5');
	await screen.see('type ct129 to confirm', 5_000);
	await screen.see('systemctl disable -- vllm-kimi-k25-int4.service');
	await screen.press('Enter');
	await screen.see(/type "ct129" to confirm|too soon/);
	await new Promise(resolve => setTimeout(resolve, 3_100));
	await screen.press('c', 't', '1', '2', '9', 'Enter');
	await screen.see('runbook 6/6', 90_000);
	await screen.see(/recover done/, 30_000);

	await screen.press('q');
	const {exitCode} = await screen.exited;
	expect(exitCode).toBe(0);
	await until(() => !screen.alternate && screen.cursorVisible, 5_000, 'the terminal given back');
}, 180_000);

test('the three operations by their own keys, one after another', async () => {
	const screen = openScreen(['drill', '--seed', '3'], {columns: 120, rows: 40});
	await screen.see('comes back at boot', 30_000);
	await screen.see(/\[o 1\]/);

	await screen.press('o', '1');
	await screen.see('type int4 to confirm');
	await new Promise(resolve => setTimeout(resolve, 400));
	await screen.press('i', 'n', 't', '4', 'Enter');
	await screen.see(/stop-service done/, 30_000);

	await screen.press('o', '6');
	await screen.see(/does 1 command/);
	await new Promise(resolve => setTimeout(resolve, 400));
	await screen.press('y');
	await screen.see(/restore-files done/, 30_000);

	await screen.press('o', '7');
	await screen.see('to confirm');
	await new Promise(resolve => setTimeout(resolve, 400));
	await screen.press(...'sglang_hs', 'Enter');
	await screen.see(/clear-dumps done/, 30_000);

	await screen.press('o', '3');
	await screen.see('to confirm');
	await new Promise(resolve => setTimeout(resolve, 400));
	await screen.press(...'server', 'Enter');
	await screen.see(/launch-server done/, 60_000);

	await screen.press('o', '4');
	await screen.see(/does 2 commands/);
	await new Promise(resolve => setTimeout(resolve, 400));
	await screen.press('y');
	await screen.see(/run-extractor done/, 60_000);
	await screen.press('q');
	expect((await screen.exited).exitCode).toBe(0);
}, 240_000);
