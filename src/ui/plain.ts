import type {ConsoleState} from '../state/state.ts';
export const statusLines = (state: ConsoleState): readonly string[] => [state.target.name];
