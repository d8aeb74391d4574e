import type {Place} from '../parts/region.tsx';
import type {Row} from '../theme.ts';

/** Where a pane is drawn and how: without a title where the tab line is its title. */
export type PaneProps = {readonly place: Place; readonly focused: boolean; readonly titled: boolean};

export type PaneFrame = {
	readonly width: number;
	readonly height: number;
	readonly focused: boolean;
	readonly titled: boolean;
};

export const frameOf = ({place, focused, titled}: PaneProps): PaneFrame => ({
	width: place.width,
	height: place.height,
	focused,
	titled,
});

/** Title, then the body cut to what is left. */
export function paneRows(
	{height, titled}: PaneFrame,
	title: Row,
	body: (height: number) => readonly Row[],
): readonly Row[] {
	const room = Math.max(0, height - (titled ? 1 : 0));
	const rows = body(room).slice(0, room);
	return titled ? [title, ...rows] : rows;
}
