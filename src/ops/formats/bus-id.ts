/**
 * One spelling for a PCI address: `00000000:0B:00.0`, `0000:0b:00`, `PCI:0000:0B:00` → `0b:00`. Lower case, no zero domain,
 * no function; a domain that is not zero stays (`1:0b:00`). null when the text is no address.
 */
export function normaliseBusId(text: string): string | null {
	const match = /^(?:PCI:)?(?:([0-9a-f]{1,8}):)?([0-9a-f]{2}):([0-9a-f]{2})(?:\.[0-9a-f])?$/i.exec(text.trim());
	if (!match) return null;
	const [, domain = '', bus = '', device = ''] = match;
	const kept = domain.replace(/^0+/, '');
	return `${kept === '' ? '' : `${kept}:`}${bus}:${device}`.toLowerCase();
}
