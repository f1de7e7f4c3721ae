#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run: timeout=200  The web pages of `oly`, in a real browser: plans, a timeline and a report are drawn, source lines lead to their source, and
# texts of programs cannot become part of the page's program. Skipped where there is no browser (chromium, or CHROMIUM=...).
set -u
cd "$(dirname "$0")/../.." || exit
build=${BUILD:-build} oly=${BUILD:-build}/launch/oly/oly
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
passed=0 failed=0
ok() { echo "ok      $1"; passed=$((passed + 1)); }
bad() { echo "FAILED  $1"; failed=$((failed + 1)); }
# has NAME FILE PATTERN...
has() {
    local name=$1 file=$2 pattern
    shift 2
    for pattern in "$@"; do
        grep -qE -- "$pattern" "$file" || { bad "$name: without: $pattern"; return; }
    done
    ok "$name"
}

browser=${CHROMIUM:-}
for name in chromium chromium-browser google-chrome; do
    [[ -z $browser ]] && browser=$(command -v $name)
done
if [[ -z $browser ]]; then
    echo 'skipped: no browser (apt-get install chromium, or CHROMIUM=...)'
    exit 77
fi
# dom PAGE VIEW TO: the document after its program has run, and what the program complains of.
dom() {
    timeout 60 "$browser" --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --user-data-dir="$folder/profile" \
        --enable-logging=stderr --v=0 --virtual-time-budget=5000 --dump-dom "file://$1#$2" >"$3" 2>"$3.errors"
    grep -E 'CONSOLE.*(Uncaught|Refused)' "$3.errors" && bad "$2: the page's program fails"
}

# -- a plan, a timeline and a report on one page ----------------------------------------------------------------------
"$oly" plan "$build/examples/explain" --mesh 4x2 --json >"$folder/plans.json" 2>/dev/null
cat >"$folder/timeline.json" <<'END'
{"traceEvents": [
{"ph":"M","pid":0,"tid":0,"cat":"__metadata","name":"process_name","args":{"name":"rank 0 on h1"}},
{"ph":"M","pid":0,"tid":3000,"cat":"__metadata","name":"thread_name","args":{"name":"device 0"}},
{"ph":"X","pid":0,"tid":3000,"ts":10.5,"dur":300,"cat":"compute","name":"matrix product","args":{"device":0,"line":"examples/explain.c:29"}},
{"ph":"X","pid":0,"tid":1,"ts":10,"dur":310,"cat":"step","name":"matrix product","args":{"predicted_us":335.5,"line":"examples/explain.c:29"}},
{"ph":"X","pid":0,"tid":2001,"ts":320,"dur":50,"cat":"exchange","name":"exchange","args":{"partner":1,"bytes_sent":65536,"line":"examples/explain.c:64"}},
{"ph":"X","pid":1,"tid":1,"ts":400,"dur":50,"cat":"range","name":"</script><img src=x onerror=alert(1)>","args":{}}
]}
END
printf 'olympus-recorder\t1\njob\tj1\nrank\t0\nranks\t2\nhost\th1\npid\t7\nprogram\tp\nbegan\t1700000000.000000000\nwritten\t1700000009.000000000\nclock\t9.000000000\nreason\tsignal\nbecause\tSIGSEGV <b>x</b></script>\ncall\t29\toly_matmul\texplain.c\nevent\t1.000000000\tcall\tat\t0\t1\t5\t0\t29\toly_matmul\texplain.c\t\n' >"$folder/olympus-recorder.j1.0"
"$oly" report "$folder/olympus-recorder.j1.0" "$folder/plans.json" "$folder/timeline.json" --html "$folder/page.html" >"$folder/text" 2>&1
has 'the page is made' "$folder/text" '^verdict: rank 0 .*crashed: SIGSEGV' 'wrote .*page.html'
[[ $(grep -c '</script>' "$folder/page.html") == 2 ]] && ok 'no text ends the script' || bad 'a text ends the script'
grep -qE '(src|href)="?https?:' "$folder/page.html" && bad 'the page needs the network' || ok 'the page needs no network'

dom "$folder/page.html" report "$folder/report.dom"
has 'the report is drawn' "$folder/report.dom" 'data-ready="yes"' 'class="verdict bad"' 'oly_matmul' 'class="line"[^>]*>explain.c:29' '&lt;b&gt;x&lt;/b&gt;' '<canvas'
dom "$folder/page.html" plans "$folder/plans.dom"
has 'plans are drawn: steps with bytes, measured beside predicted, blocks and arrows' "$folder/plans.dom" 'all-gather' '64.0 KiB' 'received per device' '310.00 µs' '<rect' 'marker-end' '<title>device 1 → 0: 64.0 KiB, elements \[64:128, 0:256\]' 'who holds what' \
    '\[0:64, 0:256\]' 'role="img"'
dom "$folder/page.html" timeline "$folder/timeline.dom"
has 'the timeline is drawn' "$folder/timeline.dom" '<canvas' 'where the time went' 'exchange' 'device 0' 'idle'
grep -q '<img' "$folder/timeline.dom" && bad 'a text has become an element' || ok 'texts stay texts'
has 'sources are in the page' "$folder/page.html" 'examples/explain.c": "'

# -- what cannot be shown ---------------------------------------------------------------------------------------------
echo '{"steps": 1' >"$folder/broken.json"
"$oly" report "$folder/broken.json" --html "$folder/none.html" >"$folder/text" 2>&1 && bad 'a broken file is accepted' || has 'a broken file is refused' "$folder/text" 'broken.json:[0-9]+: not JSON'
echo '[1]' >"$folder/other.json"
"$oly" report "$folder/other.json" --html "$folder/none.html" >"$folder/text" 2>&1 && bad 'another file is accepted' || has 'another file is refused' "$folder/text" 'neither a plan nor a timeline'
[[ ! -e $folder/none.html ]] && ok 'and nothing is written' || bad 'a page was written'

echo "CHECK: $passed passed, $failed failed, 0 skipped"
[[ $failed == 0 ]]
