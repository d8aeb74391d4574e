import {afterEach, expect, test} from 'vitest';
import {closeTerminals, openScreen, type Screen} from '../support/terminal.ts';
import {until} from '../support/until.ts';

afterEach(closeTerminals);

const moment = (ms: number) => new Promise<void>(resolve => setTimeout(resolve, ms));

/** As a person does: one look at the screen between two keys, since what arrives together never acts. */
async function choose(screen: Screen, digit: string): Promise<void> {
	await screen.press('o');
	await screen.see('a digit plans it at once');
	// It is planned on whole facts: what has not been heard of yet refuses, and says so there.
	await screen.see(new RegExp(`${digit} [a-z-]+ +tier \\d +\\d+ commands?`));
	await screen.press(digit);
	await screen.see(/does \d+ commands? in \d+ steps/);
	await moment(400);
}

async function confirm(screen: Screen, word: string): Promise<void> {
	await screen.see(`type ${word} to confirm`);
	for (let typed = 1; typed <= word.length; typed++) {
		await screen.press(word.charAt(typed - 1));
		await screen.see(`confirm: ${word.slice(0, typed)}_`);
	}
	await screen.press('Enter');
}

test('the incident is recovered with the keyboard alone, and the terminal is given back', async () => {
	const screen = openScreen(['drill']);
	await screen.see('vllm-kimi-k25-int4.service is running and comes back at boot', 30_000);
	await screen.see(/pct exec 129/);
	await screen.see('missing: 02b_');
	expect(screen.alternate).toBe(true);

	await choose(screen, '5');
	await screen.see('systemctl disable -- vllm-kimi-k25-int4.service');
	await screen.press('Enter');
	await screen.see(/type ct129 first|too soon/);
	await moment(3_100);
	await confirm(screen, 'ct129');
	await screen.see('runbook 6/6', 90_000);
	await screen.see(/recover done/, 30_000);

	await screen.press('q');
	const {exitCode} = await screen.exited;
	expect(exitCode).toBe(0);
	await until(() => !screen.alternate && screen.cursorVisible, 5_000, 'the terminal given back');
}, 180_000);

test('step by step: shown before it is begun, laid aside, stopped, and taken up again where it was', async () => {
	const screen = openScreen(['drill', '--seed', '4']);
	await screen.see('comes back at boot', 30_000);
	await screen.see('missing: 02b_');
	await choose(screen, '5');
	await screen.see('all at once   Tab: step by step');
	await screen.press('Tab');
	await screen.see('step by step: waits before each further operation');
	await moment(3_100);
	await confirm(screen, 'ct129');

	await screen.see(/waits for you/, 60_000);
	await screen.see(/>\[ {2}\] files/);
	await screen.see('next: restore 02b_');
	await screen.see(/\$ .*02b_/);
	await moment(400);
	await screen.press('Enter');
	await screen.see('Enter does nothing here');
	await screen.press('y');
	await screen.see(/>\[ {2}\] dumps/, 30_000);
	await screen.press('Tab');
	await screen.unsee('waits for you');
	await screen.see(/WAITS/);
	await screen.press('H');
	await screen.see('waits for you');
	await moment(400);
	await screen.press('Esc');
	await screen.see(/recover cancelled/);
	await screen.see('stopped before: move');

	await choose(screen, '5');
	expect(screen.text()).not.toContain('systemctl disable');
	await screen.press('Tab');
	await moment(3_100);
	await confirm(screen, 'ct129');
	await screen.see(/>\[ {2}\] server/, 30_000);
	await moment(400);
	await screen.press('Y');
	await screen.see('runbook 6/6', 90_000);
	await screen.see(/recover done/, 30_000);
	await screen.press('6', '/', ...'goes on to', 'Enter');
	await screen.see('step by step: goes on to the end');
	await screen.press('q');
	expect((await screen.exited).exitCode).toBe(0);
}, 240_000);

test('the operations of the incident by their own keys, one after another', async () => {
	const screen = openScreen(['drill', '--seed', '3'], {columns: 120, rows: 40});
	await screen.see('comes back at boot', 30_000);
	await screen.see('script gone');

	await choose(screen, '1');
	await confirm(screen, 'int4');
	await screen.see(/stop-service done/, 30_000);

	await choose(screen, '6');
	await screen.press('y');
	await screen.see(/restore-files done/, 30_000);

	await choose(screen, '7');
	await confirm(screen, 'sglang_hs');
	await screen.see(/clear-dumps done/, 30_000);

	await choose(screen, '3');
	await confirm(screen, 'server');
	await screen.see(/launch-server done/, 60_000);

	await choose(screen, '4');
	await screen.press('y');
	await screen.see(/run-extractor done/, 60_000);
	await screen.press('q');
	expect((await screen.exited).exitCode).toBe(0);
}, 240_000);
