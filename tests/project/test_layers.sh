#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Includes and calls point only downward: each folder may include what its row names, the rooms of the planner call only rooms below
# them (from the object files in $BUILD, if they exist), and mpi.h is included only where MPI is called.
# Prints the lines that break this. Runs as a test and as `make layers`.
set -u
cd "$(dirname "$0")/../.." || exit
shopt -s nullglob
offending=0

# complain RULE: reads "file:line:text" from standard input and prints it under the rule.
complain() {
    local rule=$1 lines
    lines=$(cat)
    [[ -z $lines ]] && return
    offending=$((offending + $(wc -l <<<"$lines")))
    printf '%s:\n%s\n' "$rule" "$lines"
}

# layer FOLDER ALLOWED...: the quoted includes of a folder's files name only these. A name with a slash stands for itself
# and everything below, one with a dot for one header.
layer() {
    local folder=$1 files pattern=
    shift
    files=("$folder"/*.c "$folder"/*.h "$folder"/*.def)
    [[ ${#files[@]} == 0 ]] && return
    for name in "$@"; do
        case $name in
        */) pattern+="|${name}[^\"]*" ;;
        *) pattern+="|${name//./\\.}" ;;
        esac
    done
    complain "$folder may include only: $*" < <(
        grep -nHE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' "${files[@]}" |
            grep -vE "include[[:space:]]*\"(${pattern#|})\"" |
            while IFS= read -r line; do # headers beside the file are its own layer's
                header=${line#*\"} header=${header%%\"*}
                [[ $header != */* && -f $folder/$header ]] || printf '%s\n' "$line"
            done
    )
}

# The contracts of the two layers below everything that plans and runs; neither knows of arrays, MPI or instruction sets.
kernel=(kernel.h planning.h elementwise.def elementwise_math.def)
of_kernels=(kernels/*.h kernels/*.def)
of_kernels=("${of_kernels[@]#kernels/}")
layer runtime/core      core/
layer runtime/layout    core/ layout/
for folder in runtime/device runtime/device/cuda; do
    layer "$folder" core/ device/ "${kernel[@]}"
done
layer runtime/file      core/ layout/ file/
for folder in runtime/graph runtime/graph/{typing,sharding_rule,compose}; do
    layer "$folder" core/ layout/ graph/ "${kernel[@]}"
done
layer runtime/transform core/ layout/ graph/ transform/ "${kernel[@]}"
# The rooms of the planner, from the lowest to the highest: each includes and calls only those before it.
rooms=(model cost move reduce read partition propagate choose stencil lower schedule rewrite driver explain)
below=()
for room in "${rooms[@]}"; do
    case $room in
    driver) layer runtime/plan core/ layout/ graph/ plan/plan.h "${below[@]}" communicator.h "${kernel[@]}" ; below+=(plan/plan.h) ;;
    *) layer "runtime/plan/$room" core/ layout/ graph/ "${below[@]}" "plan/$room/" communicator.h "${kernel[@]}"; below+=("plan/$room/") ;;
    esac
done
for folder in runtime/run runtime/run/cuda; do
    layer "$folder" core/ layout/ graph/ plan/ device/ run/ communicator.h cuda/launch.h cuda/field_text.h cuda/field_strips.h cuda/row_chain.h cuda/graph_task.h gemm_bfloat.h gemm_bytes.h code_parts.h machine_code.h reduce_computed.h "${kernel[@]}"
done
layer runtime/verify    core/ layout/ graph/ plan/ device/ run/ verify/
for folder in runtime/array runtime/array/*/; do
    layer "${folder%/}" core/ layout/ file/ graph/ plan/ device/ run/ verify/ transform/ array/ communicator.h "${kernel[@]}"
done
layer kernels           core/ cpu/
layer kernels/cpu       core/ cpu/ "${of_kernels[@]}"
layer kernels/x86       core/ x86/ machine_code.h table.h kernel.h
layer collectives       core/ environment.h job_name.h meeting.h own_program.h start_fence.h aware/outcome.h
layer launch            core/
layer launch/oly        core/ file/ environment.h oly.h
layer launch/meet       wire.h guard/job_files.h
layer launch/aware      aware/outcome.h
layer include           olympus/
layer include/olympus
layer examples
layer bench

everything=(include/*.h include/*/*.h runtime/*/*.[ch] runtime/*/*/*.[ch] kernels/*.[ch] kernels/*/*.[ch] examples/*.[ch] bench/*.[ch]
            bench/peers/*.[ch])
complain "mpi.h belongs to collectives/, launch/, examples/*_mpi* and bench/peers/" < <(
    grep -nHE '^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"]mpi\.h' "${everything[@]}" /dev/null |
        grep -vE '^(examples/[^/]*_mpi|bench/peers/)')
complain "examples include the public header only" < <(
    grep -nHE '^[[:space:]]*#[[:space:]]*include[[:space:]]*<(core|layout|device|graph|transform|plan|run|array)/' \
        examples/*.[ch] /dev/null)

complain "plans are made by what the table says of an operation, not by its name" < <(
    grep -nHE '(==|!=|case) *OLY_OP_' runtime/plan/*.c runtime/plan/*/*.c runtime/run/*.c /dev/null)

complain "plans neither divide the work of kernels into chunks nor run kernels; what they ask of kernels is in kernels/planning.h" < <(
    grep -nHE '\<chunks?\>|_chunks?\>|\<oly_((tile|reduce|gemm|copy|local|stencil|taps)_run|reduce_finish|combine|combine_identity|stencil_divide)\>' \
        runtime/plan/*.[ch] runtime/plan/*/*.[ch])

# upward_calls: "caller.c calls function, which is in callee.c", for each call from a room of the planner to a higher one. A file's room is
# its folder; runtime/plan itself is the driver's.
upward_calls() {
    local object
    while IFS= read -r object; do
        [[ -f ${object%.o}.c ]] && (cd "$build" && nm "$object" | awk -v file="${object%.o}.c" '{ print file, $(NF - 1), $NF }')
    done < <(cd "$build" && find runtime/plan -name '*.o' | sort) |
        awk -v order="${rooms[*]}" '
        function room(file,  part) { return split(file, part, "/") == 4 ? part[3] : "driver" }
        BEGIN { n = split(order, name, " "); for (k = 1; k <= n; k++) rank[name[k]] = k }
        $2 == "U" { caller[++calls] = $1; called[calls] = $3; next }
        $2 ~ /^[TDBRVWC]$/ { home[$3] = $1 }
        END {
            for (k = 1; k <= calls; k++)
                if (called[k] in home && rank[room(caller[k])] < rank[room(home[called[k]])])
                    print caller[k] " calls " called[k] ", which is in " home[called[k]]
        }'
}
build=${BUILD:-build}
if compgen -G "$build/runtime/plan/*.o" >/dev/null; then
    complain "calls go from a room of the planner only to rooms below it" < <(upward_calls)
fi

echo "layers: $offending offending includes and calls"
[[ $offending == 0 ]]
