/** What every program here is built with, whatever it becomes. */
export const COMMON = {
	bundle: true,
	platform: 'node',
	target: 'node20',
	minify: true,
	define: {'process.env.NODE_ENV': '"production"', 'process.env["DEV"]': '"false"'},
	loader: {'.py': 'text', '.sh': 'text'},
	external: ['ssh2'],
	logLevel: 'warning',
};
