import type {BoxPaths} from '../paths.ts';

/**
 * `systemctl`: verbs that look are answered from files that the manager keeps, verbs that act are handed to it. Output as
 * systemd 252 prints it.
 */
export const systemctl = (paths: BoxPaths): string => `#!/bin/sh
manager='${paths.manager}' ask='${paths.libexec}/ask'
verb= names= properties= all= value= legend=1 type= state= quiet= wait=
for word; do
	if [ "$wait" ]; then
		case $wait in properties) properties=$properties,$word ;; type) type=$word ;; state) state=$word ;; esac
		wait=
		continue
	fi
	case $word in
	--version) echo 'systemd 252 (252.39-1~deb12u1)'; exit 0 ;;
	--user|--user=*) echo 'Failed to connect to bus: No medium found' >&2; exit 1 ;;
	-p|--property) wait=properties ;;
	-p*) properties=$properties,\${word#-p} ;;
	--property=*) properties=$properties,\${word#*=} ;;
	-t|--type) wait=type ;;
	--type=*) type=\${word#*=} ;;
	--state) wait=state ;;
	--state=*) state=\${word#*=} ;;
	-s|--signal|-n|--lines|-o|--output|--job-mode|--kill-whom) wait=ignored ;;
	-a|--all) all=1 ;;
	--value) value=1 ;;
	--no-legend|--legend=false) legend= ;;
	-q|--quiet) quiet=1 ;;
	-*) ;;
	*) if [ "$verb" ]; then names="$names $word"; else verb=$word; fi ;;
	esac
done
full() { case $1 in *.service|*.target|*.timer|*.socket|*.scope|*.slice|*.mount|*.path|*\\**|*\\?*) name=$1 ;; *) name=$1.service ;; esac; }
word_of() { awk -F= -v key="$2" '$1 == key {print substr($0, length(key) + 2); exit}' "$1"; }
set -f
case \${verb:-list-units} in
show)
	[ "$names" ] || names=-manager
	first=1
	for name in $names; do
		[ "$name" = -manager ] || full "$name"
		set +f
		case $name in
		*[*?]*) files=; for file in "$manager"/show/*; do case \${file##*/} in $name) files="$files \${file##*/}" ;; esac; done ;;
		*) files=$name ;;
		esac
		set -f
		for unit in $files; do
			[ "$first" ] || echo
			first=
			source=$manager/show/$unit
			[ -f "$source" ] || source=$manager/missing
			awk -v unit="$unit" -v properties="$properties" -v bare="$value" '
			BEGIN {asked = split(properties, list, ","); for (i = 1; i <= asked; i++) if (list[i] != "") {want[list[i]] = 1; some = 1}}
			{
				at = index($0, "=")
				key = substr($0, 1, at - 1)
				if (some && !(key in want)) next
				text = substr($0, at + 1)
				gsub(/@UNIT@/, unit, text)
				print bare ? text : key "=" text
			}' "$source"
		done
	done ;;
list-units)
	[ "$legend" ] && printf '  %-36s %-9s %-8s %-12s %s\\n' UNIT LOAD ACTIVE SUB DESCRIPTION
	awk -F '\\t' -v names="$names" -v type="$type" -v state="$state" -v all="$all" -v legend="$legend" '
	function pattern(glob) {gsub(/[.+(){}|^$]/, "\\\\\\\\&", glob); gsub(/\\*/, ".*", glob); gsub(/\\?/, ".", glob); return "^" glob "$"}
	BEGIN {
		count = split(names, glob, " ")
		known = split(type, types, ",")
		wanted = split(state, states, ",")
	}
	{
		hit = count == 0
		for (i = 1; i <= count; i++) if ($1 ~ pattern(glob[i])) hit = 1
		if (known) {match($1, /[^.]*$/); suffix = substr($1, RSTART); good = 0; for (i = 1; i <= known; i++) if (types[i] == suffix) good = 1; if (!good) next}
		if (wanted) {good = 0; for (i = 1; i <= wanted; i++) if (states[i] == $2 || states[i] == $3 || states[i] == $4) good = 1; if (!good) next}
		else if (!all && $3 == "inactive") next
		if (hit) {printf "%s%-36s %-9s %-8s %-12s %s\\n", legend ? ($3 == "failed" ? "* " : "  ") : "", $1, $2, $3, $4, $5; shown++}
	}
	END {if (legend) printf "\\n%d loaded units listed.\\n", shown}' "$manager/units.tsv" ;;
list-unit-files)
	[ "$legend" ] && printf '%-40s %-12s %s\\n' 'UNIT FILE' STATE PRESET
	awk -F '\\t' -v names="$names" -v type="$type" -v state="$state" -v legend="$legend" '
	function pattern(glob) {gsub(/[.+(){}|^$]/, "\\\\\\\\&", glob); gsub(/\\*/, ".*", glob); gsub(/\\?/, ".", glob); return "^" glob "$"}
	BEGIN {count = split(names, glob, " ")}
	{
		hit = count == 0
		for (i = 1; i <= count; i++) if ($1 ~ pattern(glob[i])) hit = 1
		if (type != "" && $1 !~ ("\\\\." type "$")) next
		if (state != "" && index("," state ",", "," $2 ",") == 0) next
		if (hit) {printf "%-40s %-12s %s\\n", $1, $2, $3; shown++}
	}
	END {if (legend) printf "\\n%d unit files listed.\\n", shown}' "$manager/files.tsv" ;;
is-active|is-failed)
	rc=3
	for name in $names; do
		full "$name"
		active=inactive
		[ -f "$manager/show/$name" ] && active=$(word_of "$manager/show/$name" ActiveState)
		[ "$quiet" ] || echo "$active"
		case $verb,$active in is-active,active|is-active,reloading|is-failed,failed) rc=0 ;; esac
	done
	[ "$verb" = is-failed ] && [ $rc = 3 ] && rc=1
	exit $rc ;;
is-enabled)
	rc=1
	for name in $names; do
		full "$name"
		enabled=
		[ -f "$manager/show/$name" ] && enabled=$(word_of "$manager/show/$name" UnitFileState)
		if [ -z "$enabled" ]; then echo "Failed to get unit file state for $name: No such file or directory" >&2; continue; fi
		[ "$quiet" ] || echo "$enabled"
		case $enabled in enabled*|static|alias|indirect|generated|transient) rc=0 ;; esac
	done
	exit $rc ;;
is-system-running) echo running ;;
cat)
	for name in $names; do
		full "$name"
		source=$(word_of "$manager/show/$name" FragmentPath 2>/dev/null)
		[ "$source" ] || { echo "No files found for $name." >&2; exit 1; }
		printf '# %s\\n' "$source"
		cat "$source"
		for extra in $(word_of "$manager/show/$name" DropInPaths); do printf '\\n# %s\\n' "$extra"; cat "$extra"; done
	done ;;
list-dependencies)
	for name in $names; do
		full "$name"
		echo "$name"
		for other in $(word_of "$manager/show/$name" WantedBy 2>/dev/null); do echo "  $other"; done
	done ;;
status)
	for name in $names; do
		full "$name"
		[ -f "$manager/show/$name" ] || { echo "Unit $name could not be found." >&2; exit 4; }
		active=$(word_of "$manager/show/$name" ActiveState)
		printf '* %s - %s\\n' "$name" "$(word_of "$manager/show/$name" Description)"
		printf '     Loaded: %s (%s; %s)\\n' "$(word_of "$manager/show/$name" LoadState)" "$(word_of "$manager/show/$name" FragmentPath)" "$(word_of "$manager/show/$name" UnitFileState)"
		printf '     Active: %s (%s)\\n   Main PID: %s\\n' "$active" "$(word_of "$manager/show/$name" SubState)" "$(word_of "$manager/show/$name" MainPID)"
		[ "$active" = active ] || exit 3
	done ;;
start|stop|restart|kill|enable|disable|mask|unmask|daemon-reload|reset-failed|revert) exec "$ask" systemctl "$@" ;;
*) echo "Unknown command verb $verb." >&2; exit 1 ;;
esac
`;
