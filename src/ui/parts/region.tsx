import {Box, Text} from 'ink';
import {memo} from 'react';
import {useTheme} from '../hooks/use-console.ts';
import {fitRow, paint, type Row, truncateRow} from '../theme.ts';

export type Place = {readonly left: number; readonly top: number; readonly width: number; readonly height: number};

/** One line of the terminal: one text node, drawn again only when its text is another. */
const Line = memo(function Line({text}: {readonly text: string}) {
	return <Text wrap="truncate">{text}</Text>;
});

/** Rows at a place on the screen, cut to it. `solid` covers what is below, cell by cell. */
export function Region({
	place,
	rows,
	solid = false,
}: {
	readonly place: Place;
	readonly rows: readonly Row[];
	readonly solid?: boolean;
}) {
	const theme = useTheme();
	const lines = Array.from({length: place.height}, (_, index) => {
		const row = rows[index] ?? [];
		const text = paint(solid ? fitRow(row, place.width) : truncateRow(row, place.width), theme);
		// An empty text has no height in Ink.
		return (solid ? text : text.trimEnd()) || ' ';
	});
	return (
		<Box
			position="absolute"
			left={place.left}
			top={place.top}
			width={place.width}
			height={place.height}
			flexDirection="column"
		>
			{lines.map((text, index) => (
				// biome-ignore lint/suspicious/noArrayIndexKey: a line is its position on the screen
				<Line key={index} text={text} />
			))}
		</Box>
	);
}
