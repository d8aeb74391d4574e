import {Box} from 'ink';
import {memo} from 'react';
import {cardLines} from '../state/selectors/gpus.ts';
import {PANES, type PaneId} from '../state/state.ts';
import {useConsole, useViewport} from './hooks/use-console.ts';
import {useKeymap} from './keymap/use-keymap.ts';
import {type BoxId, type Layout, layout, type Box as Placed, type Seam} from './layout.ts';
import {Layers} from './overlays/layers.tsx';
import {ExtractionPane} from './panes/extraction-pane.tsx';
import {Footer} from './panes/footer.tsx';
import {GpuPane} from './panes/gpu-pane.tsx';
import {AlertLine, Header} from './panes/header.tsx';
import {LogPane} from './panes/log-pane.tsx';
import {MountsPane} from './panes/mounts-pane.tsx';
import {OperationsPane} from './panes/operations-pane.tsx';
import type {PaneProps} from './panes/pane.ts';
import {ProcessesPane} from './panes/processes-pane.tsx';
import {Status} from './panes/status.tsx';
import {Summary} from './panes/summary.tsx';
import {TabLine} from './panes/tab-line.tsx';
import {WhyPane} from './panes/why-pane.tsx';
import {Region} from './parts/region.tsx';

/** The keyboard, and the screen in the size there is. A new epoch is a tree laid out from nothing: see terminal.ts. */
export function App() {
	useKeymap();
	const {columns, rows, epoch} = useViewport();
	return <Frame key={epoch} columns={columns} rows={rows} />;
}

export const Frame = memo(function Frame({columns, rows}: {readonly columns: number; readonly rows: number}) {
	const focus = useConsole(state => state.view.focus);
	const zoomed = useConsole(state => state.view.zoomed);
	const gpus = useConsole(cardLines);
	const placed = layout(columns, rows, {focus, zoomed, gpus});
	return (
		<Box width={placed.width} height={placed.height} flexShrink={0}>
			{placed.boxes.map(box => (
				<Place key={box.id} box={box} focus={focus} placed={placed} />
			))}
			{placed.seams.map(seam => (
				<SeamLine key={seam.left} seam={seam} />
			))}
			<Layers screen={placed} />
		</Box>
	);
});

const PANE_VIEWS: Record<PaneId, (props: PaneProps) => React.JSX.Element> = {
	gpu: GpuPane,
	processes: ProcessesPane,
	mounts: MountsPane,
	extraction: ExtractionPane,
	log: LogPane,
	operations: OperationsPane,
};

const isPane = (id: BoxId): id is PaneId => PANES.some(pane => pane === id);

function Place({box, focus, placed}: {readonly box: Placed; readonly focus: PaneId; readonly placed: Layout}) {
	if (isPane(box.id)) {
		const View = PANE_VIEWS[box.id];
		// Where there is a tab line it lies on the first line of the focused pane and is its title.
		const tabbed = placed.boxes.some(other => other.id === 'tabs' && other.top === box.top);
		const place = tabbed ? {...box, top: box.top + 1, height: box.height - 1} : box;
		return <View place={place} focused={box.id === focus} titled={!tabbed} />;
	}
	switch (box.id) {
		case 'header':
			return <Header place={box} />;
		case 'alert':
			return <AlertLine place={box} />;
		case 'tabs':
			return <TabLine place={box} />;
		case 'summary':
			return <Summary place={box} panes={PANES.filter(pane => !placed.boxes.some(other => other.id === pane))} />;
		case 'footer':
			return <Footer place={box} />;
		case 'why':
			return <WhyPane place={box} />;
		case 'status':
			return <Status place={box} />;
	}
}

function SeamLine({seam}: {readonly seam: Seam}) {
	const rows = seam.glyphs.map(text => [{text, tone: 'dim' as const}]);
	return <Region place={{left: seam.left, top: seam.top, width: 1, height: seam.glyphs.length}} rows={rows} />;
}
