/** Beside the output, not in it: readers of the data walk the tree. */
export const manifestPath = (output: string): string => `${output.replace(/\/+[^/]*\/*$/, '')}/run.json`;
