/**
 * Secrets are taken out of everything that is shown or kept: screen, journal, report. Covers `NAME_TOKEN=…`, `NAME_KEY=…`,
 * `…SECRET…=`, `…PASSWORD…=`, `--api-key …` and `Authorization: …`. Quoted values too.
 */
export function redact(text: string): string {
	return text
		.replace(/\b([A-Za-z0-9_]*(?:TOKEN|KEY|SECRET|PASSWORD|PASSWD)[A-Za-z0-9_]*)=('[^']*'|"[^"]*"|[^\s'"]+)/g, '$1=***')
		.replace(/(--(?:admin-)?api-key|--hf-token|--token|--password)([= ])('[^']*'|"[^"]*"|\S+)/gi, '$1$2***')
		.replace(/(authorization:\s*)(\w+\s+)?[^\s'"]+/gi, '$1***');
}
