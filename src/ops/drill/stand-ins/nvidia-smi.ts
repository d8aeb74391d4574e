import {CARDS, SLOWDOWN_CELSIUS} from '../gpus.ts';
import type {BoxPaths} from '../paths.ts';

/** `nvidia-smi`: queries over the tables that the drill draws. Output as driver 580 prints it. */
export const nvidiaSmi = (paths: BoxPaths): string => `#!/bin/sh
[ -e '${paths.wedged}' ] && exec '${paths.libexec}/hang' nvidia-smi os_acquire_rwlock_write
cards='${paths.cards}' apps='${paths.apps}'
table= query= header=1 units=1 display= list= which=
for word; do
	case $word in
	--query-gpu=*) table=$cards query=\${word#*=} ;;
	--query-compute-apps=*) table=$apps query=\${word#*=} ;;
	--format=*)
		case ,\${word#*=}, in *,csv,*) ;; *) echo 'Invalid combination of input arguments. Please run '"'nvidia-smi -h'"' for help.'; exit 2 ;; esac
		case $word in *noheader*) header=0 ;; esac
		case $word in *nounits*) units=0 ;; esac ;;
	--help-query-gpu) list=$cards ;;
	--help-query-compute-apps) list=$apps ;;
	-i|--id) which=next ;;
	-i=*|--id=*) which=\${word#*=} ;;
	-L|--list-gpus) display=list ;;
	-q|--query) display=\${display:-query} ;;
	-d|--display) ;;
	TEMPERATURE) display=temperature ;;
	topo) display=topo ;;
	*) [ "$which" = next ] && which=$word ;;
	esac
done
if [ "$list" ]; then
	printf 'List of valid properties to query for the switch "--query":\\n\\n'
	awk -F '\\t' 'NR == 1 {for (i = 1; i <= NF; i++) printf "\\"%s\\"\\n\\n", $i; exit}' "$list"
	exit 0
fi
if [ "$table" ]; then
	exec awk -F '\\t' -v query="$query" -v header=$header -v units=$units -v which="$which" '
	NR == 1 {
		for (i = 1; i <= NF; i++) column[$i] = i
		count = split(query, want, ",")
		for (i = 1; i <= count; i++) {
			gsub(/^ +| +$/, "", want[i])
			if (!(want[i] in column)) {
				printf "Field \\"%s\\" is not a valid field to query.\\n\\n", want[i]
				exit 2
			}
		}
		next
	}
	NR == 2 {
		for (i = 1; i <= NF; i++) unit[i] = $i
		line = ""
		for (i = 1; i <= count; i++) {
			title = want[i]
			if (unit[column[title]] != "") title = title " [" unit[column[title]] "]"
			line = line (i > 1 ? ", " : "") title
		}
		if (header) print line
		next
	}
	which != "" && ("index" in column) && $(column["index"]) != which && $(column["uuid"]) != which {next}
	{
		line = ""
		for (i = 1; i <= count; i++) {
			at = column[want[i]]
			value = $at
			if (units && unit[at] != "" && value !~ /[A-Z]/) value = value " " unit[at]
			line = line (i > 1 ? ", " : "") value
		}
		print line
	}' "$table"
fi
case $display in
list) exec awk -F '\\t' 'NR == 1 {for (i = 1; i <= NF; i++) c[$i] = i} NR > 2 {printf "GPU %s: %s (UUID: %s)\\n", $c["index"], $c["name"], $c["uuid"]}' "$cards" ;;
temperature) exec awk -F '\\t' '
	NR == 1 {for (i = 1; i <= NF; i++) c[$i] = i; next}
	NR == 2 {printf "\\n==============NVSMI LOG==============\\n\\nAttached GPUs                             : ${CARDS}\\n"; next}
	{
		printf "GPU %s\\n    Temperature\\n", $c["pci.bus_id"]
		printf "        GPU Current Temp                  : %s C\\n", $c["temperature.gpu"]
		printf "        GPU T.Limit Temp                  : %s C\\n", $c["temperature.gpu.tlimit"]
		printf "        GPU Shutdown Temp                 : ${SLOWDOWN_CELSIUS + 5} C\\n"
		printf "        GPU Slowdown Temp                 : ${SLOWDOWN_CELSIUS} C\\n"
		printf "        GPU Max Operating Temp            : 90 C\\n"
		printf "        GPU Target Temperature            : N/A\\n"
		printf "        Memory Current Temp               : N/A\\n\\n"
	}' "$cards" ;;
topo) exec awk 'BEGIN {
	printf "\\t\\033[4m"
	for (i = 0; i < ${CARDS}; i++) printf "GPU%d\\t", i
	print "CPU Affinity\\tNUMA Affinity\\tGPU NUMA ID\\033[0m"
	for (i = 0; i < ${CARDS}; i++) {
		printf "GPU%d", i
		for (j = 0; j < ${CARDS}; j++) printf "\\t%s", i == j ? " X " : int(i / 4) == int(j / 4) ? "NODE" : "SYS"
		printf "\\t%s\\t%d\\t\\tN/A\\n", i < 4 ? "0-63,128-191" : "64-127,192-255", int(i / 4)
	}
}' ;;
esac
awk -F '\\t' '
NR == 1 {for (i = 1; i <= NF; i++) c[$i] = i; next}
NR == 2 {
	print "+-----------------------------------------------------------------------------------------+"
	print "| NVIDIA-SMI 580.95.05              Driver Version: 580.95.05      CUDA Version: 13.0     |"
	print "|=========================================+========================+======================|"
	next
}
{printf "|%4s  %-33.33s | %7sMiB / %7sMiB |   %3s%%      Default   |\\n", $c["index"], $c["name"], $c["memory.used"], $c["memory.total"], $c["utilization.gpu"]}
END {print "+-----------------------------------------+------------------------+----------------------+"}' "$cards"
exec awk -F '\\t' '
NR == 1 {
	print "\\n+-----------------------------------------------------------------------------------------+"
	print "| Processes:                                                                              |"
	print "|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |"
	print "|=========================================================================================|"
	next
}
NR == 2 {next}
{printf "| %4d   N/A  N/A %16s      C   %-36.36s %6sMiB |\\n", NR - 3, $4, $7, $5; shown++}
END {
	if (!shown) print "|  No running processes found                                                             |"
	print "+-----------------------------------------------------------------------------------------+"
}' "$apps"
`;
