import {stripVTControlCharacters} from 'node:util';
import {cleanup, render} from 'ink-testing-library';
import {afterEach, describe, expect, it} from 'vitest';
import {operationEntry} from '../../../src/ops/operations/catalogue.ts';
import {isRefusal, type Plan} from '../../../src/ops/operations/operation.ts';
import {selectOffers} from '../../../src/state/selectors/offers.ts';
import type {ConfirmOverlay, ConsoleState} from '../../../src/state/state.ts';
import {App} from '../../../src/ui/app.tsx';
import {ConsoleContext} from '../../../src/ui/hooks/use-console.ts';
import {confirmLayer, planRows} from '../../../src/ui/overlays/confirm.ts';
import {heldLayer} from '../../../src/ui/overlays/held.ts';
import {layerRows, placeOf, reachOf} from '../../../src/ui/overlays/layer.ts';
import {operationsLayer} from '../../../src/ui/overlays/menus.ts';
import {linesOf} from '../support/lines.ts';
import {NOW, UNIT} from '../support/sample-facts.ts';
import {mendableState, sampleState} from '../support/sample-state.ts';
import {type StandIn, standIn} from '../support/stand-in.ts';

afterEach(cleanup);

function planOf(operation: 'stop-service' | 'recover'): Plan {
	const plan = operationEntry(operation)?.plan(mendableState(), null);
	if (!plan || isRefusal(plan)) throw new Error('no plan');
	return plan;
}

const dialog = (change: Partial<ConfirmOverlay> = {}): ConfirmOverlay => ({
	type: 'confirm',
	plan: planOf('stop-service'),
	typed: '',
	button: 'cancel',
	openedAt: NOW - 60_000,
	scroll: 0,
	complaint: null,
	...change,
});

const over = (...overlays: ConsoleState['view']['overlays']) => sampleState({view: {overlays}});

describe('the confirm dialog', () => {
	const SCREEN = {width: 79, height: 23};

	it('shows targets, every command and the way back, and asks for the word', () => {
		const layer = confirmLayer(dialog(), over(dialog()), {width: 120, height: 60});
		const lines = linesOf(layerRows(layer, placeOf(layer, {width: 120, height: 60})));
		const inside = lines.map(line => line.replace(/^│ /, '').replace(/ +│$/, ''));
		expect(inside).toContainEqual(expect.stringMatching(/^acts on \(\d+, fixed when this opened\)$/));
		expect(inside).toContain('   $ systemctl stop --no-block -- vllm-kimi-k25-int4.service');
		expect(inside).toContain('   $ systemctl disable -- vllm-kimi-k25-int4.service');
		expect(inside).toContain('  $ systemctl enable --now -- vllm-kimi-k25-int4.service');
		expect(inside.at(-2)).toBe('type int4 to confirm: _   Esc cancels');
	});

	it('shows every byte of every command, wrapped and never cut', () => {
		const plan = planOf('recover');
		const scripts = plan.steps.flatMap(step => (step.kind === 'wait' ? [] : step.script.split('\n')));
		for (const width of [30, 74, 112]) {
			const text = linesOf(planRows(plan, width))
				.map(line => line.trim().replace(/^\$ /, ''))
				.join('')
				.replaceAll(' ', '');
			expect(scripts.filter(line => !text.includes(line.replaceAll(' ', '')))).toEqual([]);
		}
	});

	it('fits the screen, scrolls, and keeps the prompt in sight', () => {
		const layer = confirmLayer(dialog({scroll: 1000}), over(dialog()), SCREEN);
		const place = placeOf(layer, SCREEN);
		const lines = linesOf(layerRows(layer, place));
		expect(place.top + place.height).toBeLessThanOrEqual(22);
		expect(lines).toHaveLength(place.height);
		expect(lines.at(-2)).toContain('type int4 to confirm:');
		expect(lines.at(-4)).toContain('$ systemctl enable --now');
		expect(reachOf(layer, SCREEN).at).toBe(reachOf(layer, SCREEN).last);
	});

	it('counts down what is wide, and says what is still missing', () => {
		const wide = (change: Partial<ConfirmOverlay>) => {
			const one = dialog({plan: planOf('recover'), ...change});
			return linesOf(confirmLayer(one, over(one), SCREEN).foot).at(-1);
		};
		expect(wide({openedAt: NOW - 1_000})).toBe('type kpro6/ct129 to confirm: _   Esc cancels');
		expect(wide({openedAt: NOW - 1_000, typed: 'kpro6/ct129'})).toBe(
			'type kpro6/ct129 to confirm: kpro6/ct129_   Enter works in 2 s',
		);
		expect(wide({typed: 'kpro6/ct129'})).toBe('type kpro6/ct129 to confirm: kpro6/ct129_   Enter does it, Esc cancels');
		expect(wide({complaint: 'the targets changed'})).toBe('the targets changed');
	});

	it('says at what pace a recovery will go, and how to change that', () => {
		const pace = (change: Partial<ConfirmOverlay>) => {
			const one = dialog(change);
			return linesOf(confirmLayer(one, over(one), SCREEN).foot).at(1);
		};
		expect(pace({plan: planOf('recover')})).toBe('all at once   Tab: step by step');
		expect(pace({plan: planOf('recover'), stepwise: true})).toBe(
			'step by step: waits before each further operation   Tab: all at once',
		);
		expect(pace({})).toContain('type int4');
	});

	it('marks the button that stands, and a dry run, in words', () => {
		const mild = dialog({plan: {...planOf('stop-service'), tier: 1}});
		const state = over(mild);
		expect(linesOf(confirmLayer(mild, {...state, session: {...state.session, dryRun: true}}, SCREEN).foot)).toEqual([
			'',
			' DRY-RUN: nothing will be sent   [> Cancel <]      Do it',
		]);
	});
});

describe('the operations menu', () => {
	it('says the reason of the selected line whole where it was cut', () => {
		const menu = (index: number) =>
			linesOf(operationsLayer({type: 'operations', index}, sampleState(), {width: 79, height: 23}).foot);
		const whole = menu(2)
			.slice(1, -2)
			.map(line => line.trim());
		expect(whole.join(' ')).toBe(`no: ${selectOffers(sampleState())[2]?.refused}`);
		expect(menu(2).at(-1)).toBe('a digit plans it at once; nothing runs before you confirm it');
	});

	it('names what is running', () => {
		const plan = planOf('recover');
		const state = {
			...sampleState(),
			operation: {phase: 'running' as const, plan, steps: [], startedAt: NOW, output: []},
		};
		expect(new Set(selectOffers(state).map(({refused}) => refused))).toEqual(new Set(['recover is still running']));
	});
});

describe('a recovery that waits', () => {
	const next = planOf('stop-service');
	const overlay = {type: 'held', openedAt: NOW, scroll: 0} as const;
	const state: ConsoleState = {
		...over(overlay),
		operation: {
			phase: 'running',
			plan: planOf('recover'),
			steps: [],
			startedAt: NOW,
			output: [],
			held: {next, check: 'services', since: NOW - 65_000},
		},
	};

	it('shows the checklist, then every command of the next step, and the keys', () => {
		const screen = {width: 139, height: 70};
		const layer = heldLayer(overlay, state, screen);
		const lines = linesOf(layerRows(layer, placeOf(layer, screen)));
		expect(lines[0]).toContain('waits for you 1m05s');
		expect(lines[1]).toMatch(/^│ >\[..\] services {3}/);
		expect(lines.filter(line => /^│ .\[..\] /.test(line))).toHaveLength(6);
		expect(lines.some(line => line.includes(`next: ${next.title}`))).toBe(true);
		const text = lines
			.map(line => line.slice(2, -2).trim())
			.join('')
			.replaceAll(' ', '');
		const scripts = next.steps.flatMap(step => (step.kind === 'wait' ? [] : step.script.split('\n')));
		expect(
			scripts.filter(line => !text.replaceAll('$', '').includes(line.replaceAll(' ', '').replaceAll('$', ''))),
		).toEqual([]);
		expect(lines.at(-3)).toContain('y does this step   Y this and all the rest   Esc stops here');
	});

	it('keeps the commands in sight on a low screen: the other checks share a line', () => {
		const layer = heldLayer(overlay, state, {width: 79, height: 23});
		const body = linesOf(layer.body);
		expect(body.slice(0, 5)).toEqual([
			' [ok] files',
			`>[  ] services   ${UNIT} runs or comes back at boot`,
			' [  ] cards, dumps',
			expect.any(String),
			expect.any(String),
		]);
		expect(body.findIndex(line => line.startsWith('next: '))).toBeLessThan(6);
	});

	it('says how to go on when the console has disarmed itself', () => {
		const locked = {...state, session: {...state.session, readOnly: true}};
		expect(linesOf(heldLayer(overlay, locked, {width: 79, height: 23}).foot)[1]).toBe(
			'read-only: Tab, then W leaves it   Esc stops here',
		);
	});
});

/** The console without a host behind it, in a terminal of 100 columns. */
function open(state: ConsoleState): StandIn & {frame(): string; type(text: string): Promise<void>} {
	const tools = standIn(state);
	const screen = render(
		<ConsoleContext value={tools}>
			<App />
		</ConsoleContext>,
	);
	return {
		...tools,
		frame: () => stripVTControlCharacters(screen.lastFrame() ?? ''),
		/** One write is what a terminal hands over at once. Waits until it has been taken. */
		async type(text) {
			await ready(screen.stdin);
			screen.stdin.write(text);
			await new Promise(resolve => setTimeout(resolve, text === '\x1b' ? 40 : 5));
		},
	};
}

/** Ink listens only after its first effects. */
async function ready(stdin: {listenerCount(event: string): number}): Promise<void> {
	for (let turn = 0; turn < 200 && stdin.listenerCount('readable') === 0; turn++)
		await new Promise(resolve => setTimeout(resolve, 2));
}

describe('keys', () => {
	it('draws the panes and moves the cursor, one row for each letter of a burst', async () => {
		const console = open(sampleState());
		expect(console.frame()).toContain('[1 GPU]');
		await console.type('jj');
		expect(console.actions.filter(({type}) => type === 'move')).toHaveLength(2);
		expect(console.store.getState().view.selected.gpu).toBe('GPU-2');
	});

	it('opens help from the table and closes it again', async () => {
		const console = open(sampleState());
		await console.type('?');
		expect(console.frame()).toContain('send a signal to the holder of the card');
		expect(console.frame()).toContain('1-6                to a pane by its number');
		await console.type('\x1b');
		expect(console.frame()).not.toContain('send a signal to the holder of the card');
	});

	it('plans an operation by its digit, but not when the keys came together', async () => {
		const console = open(sampleState());
		await console.type('o1');
		expect(console.store.getState().view.overlays.map(({type}) => type)).toEqual(['operations']);
		expect(console.actions.at(-1)).toEqual({
			type: 'hint',
			words: 'keys that arrive together, or pasted, do not act: press it alone',
		});
		await console.type('1');
		expect(console.actions.at(-1)).toEqual({type: 'request-operation', operation: 'stop-service'});
		expect(console.frame()).toContain('type int4 to confirm: _');
	});

	it('is confirmed by the typed word and an Enter of its own, never by a paste or by one burst', async () => {
		const console = open(over(dialog()));
		await console.type('\x1b[200~int4\r\x1b[201~');
		expect(console.store.getState().view.overlays).toMatchObject([{type: 'confirm', typed: ''}]);
		await console.type('int4\r');
		expect(console.store.getState().view.overlays).toMatchObject([{type: 'confirm', typed: 'int4'}]);
		expect(console.frame()).toContain('type int4 to confirm: int4_');
		expect(console.actions.map(({type}) => type)).not.toContain('accept');
		await console.type('\r');
		expect(console.actions.at(-1)).toEqual({type: 'accept'});
	});

	it('takes a paste as text where text is taken, without its line end, and nowhere else', async () => {
		const console = open(sampleState({view: {overlays: [{type: 'palette', text: '', index: 0}]}}));
		await console.type('\x1b[200~zoom\x1b[31m\nstop-service\x1b[201~');
		expect(console.actions).toEqual([{type: 'type', text: 'zoom^[[31m'}]);
		const panes = open(sampleState());
		await panes.type('\x1b[200~o1\r\x1b[201~');
		expect(panes.actions).toEqual([{type: 'hint', words: 'a paste does nothing here'}]);
	});

	it('knows function keys', async () => {
		const console = open(sampleState({view: {focus: 'processes'}}));
		await console.type('\x1b[15~');
		await console.type('\x1bOP');
		expect(console.actions).toEqual([{type: 'toggle-tree'}, {type: 'open', overlay: 'help'}]);
	});

	it('opens the signal picker on Cancel', async () => {
		const console = open(sampleState({view: {focus: 'processes'}}));
		await console.type('x');
		expect(console.store.getState().view.overlays).toEqual([{type: 'signals', processKey: '812@8120', index: 0}]);
		expect(console.frame()).toMatch(/>Cancel/);
		expect(console.frame()).toContain('keeps it: stop the unit first');
	});

	it('draws the alerts as a table, worst first', async () => {
		const console = open(sampleState());
		await console.type('A');
		const rows = console
			.frame()
			.split('\n')
			.filter(line => /critical|warning/.test(line) && line.includes('│'));
		expect(
			rows.map(line =>
				line
					.split('│')
					.slice(1, 4)
					.map(cell => cell.trim()),
			),
		).toEqual([
			['>', 'critical', '4m12s'],
			['', 'critical', '11m00s'],
			['', 'warning seen', '15m00s'],
		]);
		await console.type('j');
		await console.type('\r');
		expect(console.store.getState().view).toMatchObject({focus: 'gpu', overlays: []});
	});
});
