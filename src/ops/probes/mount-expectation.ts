import type {MountLine} from '../formats/mountinfo.ts';
import type {ExpectedMount} from '../target.ts';
import type {MountSize} from './mounts.ts';

/** What tells which volume it is: a marker file on it, and where the by-uuid link of the wanted volume leads ('' nowhere). */
type VolumeSigns = {readonly markerVolume: string | null; readonly linkTarget: string};

/** What is wrong with a mount against the configuration, in words; null when it is as expected. */
export function unexpectedWords(
	expected: ExpectedMount,
	line: Pick<MountLine, 'type' | 'source'>,
	size: MountSize,
	signs: VolumeSigns,
): string | null {
	const words: string[] = [];
	if (expected.type !== null && expected.type !== line.type) words.push(`type ${line.type}, expected ${expected.type}`);
	if (expected.source !== null && expected.source !== line.source)
		words.push(`from ${line.source}, expected ${expected.source}`);
	const volume = expected.volume === null ? null : volumeWords(expected.volume, line.source, size, signs);
	if (volume !== null) words.push(volume);
	if (expected.freeBytes !== null && size.kind === 'answered' && size.availableBytes < expected.freeBytes)
		words.push('less free than expected');
	return words.length === 0 ? null : words.join('; ');
}

const basename = (path: string) => path.slice(path.lastIndexOf('/') + 1);

function volumeWords(
	volume: string,
	source: string,
	size: MountSize,
	{markerVolume, linkTarget}: VolumeSigns,
): string | null {
	if (markerVolume === volume) return null;
	if (markerVolume) return `volume ${markerVolume}, expected ${volume}`;
	if (linkTarget !== '')
		return basename(linkTarget) === basename(source)
			? null
			: `volume ${volume} is ${basename(linkTarget)}, not ${basename(source)}`;
	/** A mount that does not answer cannot show its marker: that is not a wrong disk. */
	return size.kind === 'answered' ? `no sign of volume ${volume} on it` : null;
}
