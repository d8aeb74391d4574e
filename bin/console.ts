export async function openConsole(_host: string | undefined, _options: object): Promise<number> {
	return 64;
}
export async function openDrill(_build: () => Promise<unknown>): Promise<number> {
	return 64;
}
