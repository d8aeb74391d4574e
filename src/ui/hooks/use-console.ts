import {createContext, useContext, useSyncExternalStore} from 'react';
import {useStore} from 'zustand';
import type {StoreApi} from 'zustand/vanilla';
import type {Action} from '../../state/actions.ts';
import type {ConsoleState} from '../../state/state.ts';
import type {Theme} from '../theme.ts';

/** The size of the terminal and how often it has been laid out anew; a source outside React, so that a test has one too. */
export type Viewport = {readonly columns: number; readonly rows: number; readonly epoch: number};
export type ViewportSource = {get(): Viewport; subscribe(listener: () => void): () => void};

/** What the screen works with: read state, say what is wanted. */
export type ConsoleTools = {
	readonly store: StoreApi<ConsoleState>;
	readonly viewport: ViewportSource;
	readonly theme: Theme;
	dispatch(action: Action): void;
};

export const ConsoleContext = createContext<ConsoleTools | null>(null);

export function useTools(): ConsoleTools {
	const tools = useContext(ConsoleContext);
	if (!tools) throw new Error('a component of the console is drawn outside of it');
	return tools;
}

/** `selector` must hand back the same object for the same facts: see derive.ts. */
export const useConsole = <T>(selector: (state: ConsoleState) => T): T => useStore(useTools().store, selector);

export const useTheme = (): Theme => useTools().theme;

export function useViewport(): Viewport {
	const {viewport} = useTools();
	return useSyncExternalStore(viewport.subscribe, viewport.get);
}
