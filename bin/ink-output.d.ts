import type {Plugin} from 'esbuild';

export const inkOutput: Plugin;
