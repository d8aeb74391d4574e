/** Python is carried as text: the bundler's loader makes a string of it. */
declare module '*.py' {
	const text: string;
	export default text;
}
