import {render, useApp} from 'ink';
import {useEffect} from 'react';
import type {StoreApi} from 'zustand/vanilla';
import type {Action} from '../state/actions.ts';
import type {ConsoleState} from '../state/state.ts';
import {App} from './app.tsx';
import {ConsoleContext} from './hooks/use-console.ts';
import {createTerminal, type Terminal} from './terminal/terminal.ts';
import {type Theme, themeFor} from './theme.ts';

export type StartOptions = {
	readonly store: StoreApi<ConsoleState>;
	dispatch(action: Action): void;
	/** Given where dispatch needs `redraw` and `suspend` of it, or the publisher its `busy`; else one is made here. */
	readonly terminal?: Terminal;
	/** Called once, first thing on the way out, where the terminal is made here; must not wait. */
	onLeave?(code: number): void;
	readonly theme?: Theme;
};

/** The terminal of this process, taken over: raw mode now, the screen with the first frame. */
export const openTerminal = (onLeave?: (code: number) => void): Terminal =>
	createTerminal({stdout: process.stdout, stdin: process.stdin, stderr: process.stderr, ...(onLeave && {onLeave})});

/** Draws the console until the state says `leaving`, a signal comes or the terminal goes; resolves with the exit code. */
export async function startConsole(options: StartOptions): Promise<number> {
	const {store, dispatch, terminal = openTerminal(options.onLeave), theme = themeFor(process.env)} = options;
	const {screen, viewport} = terminal;
	const tools = {store, viewport, theme, dispatch};
	const app = render(
		<ConsoleContext value={tools}>
			<Attach terminal={terminal} unmount={() => app.unmount()} />
			<App />
		</ConsoleContext>,
		{
			stdout: screen,
			stdin: process.stdin,
			stderr: process.stderr,
			alternateScreen: true,
			incrementalRendering: true,
			interactive: true,
			maxFps: 30,
			patchConsole: false,
			exitOnCtrlC: false,
		},
	);
	app.waitUntilExit().then(
		() => terminal.leave(0),
		(error: unknown) => terminal.leave(2, error),
	);
	const stop = store.subscribe(({leaving}) => {
		if (leaving !== undefined) terminal.leave(leaving);
	});
	const already = store.getState().leaving;
	if (already !== undefined) terminal.leave(already);
	const code = await terminal.left;
	stop();
	return code;
}

function Attach({terminal, unmount}: {readonly terminal: Terminal; readonly unmount: () => void}) {
	const {suspendTerminal} = useApp();
	useEffect(() => terminal.attach({suspendTerminal, unmount}), [terminal, suspendTerminal, unmount]);
	return null;
}
