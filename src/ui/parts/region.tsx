import {Box, Text} from 'ink';
import {useTheme} from '../hooks/use-console.ts';
import {fitRow, paint, type Row, truncateRow} from '../theme.ts';

export type Place = {readonly left: number; readonly top: number; readonly width: number; readonly height: number};

/**
 * Rows at a place on the screen, cut to it, as one text: a node for each would be laid out and compared in every frame.
 * `solid` covers what is below, cell by cell.
 */
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
		return solid ? text : text.trimEnd();
	});
	return (
		<Box position="absolute" left={place.left} top={place.top} width={place.width} height={place.height}>
			<Text wrap="truncate">{lines.join('\n')}</Text>
		</Box>
	);
}
