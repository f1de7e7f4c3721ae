"""Copies cases, with their arrays, into a folder: those that a run of the runner failed, and some of the others.
keep_cases.py FROM TO PREFIX [--failed OUTPUT_OF_RUNNER] [--sample N] [--seed S] [--largest BYTES]"""
import argparse, io, os, random, re
import numpy as np
parser = argparse.ArgumentParser(); parser.add_argument("source"); parser.add_argument("target"); parser.add_argument("prefix")
parser.add_argument("--failed"); parser.add_argument("--sample", type=int, default=0); parser.add_argument("--seed", type=int, default=1); parser.add_argument("--largest", type=int, default=4000)
a = parser.parse_args()
blocks, block = [], None
for line in open(f"{a.source}/cases.txt", encoding="utf-8"):
    line = line.rstrip("\n")
    if line.startswith("case "): block = [line]
    elif line == "end" and block: blocks.append(block); block = None
    elif block is not None: block.append(line)
failed = set(re.findall(r"^FAILED (\S+?):", open(a.failed, errors="replace").read(), re.M)) if a.failed else set()
def size(b): return sum(len(l) for l in b) + 4 * sum(int(np.prod([int(q) for q in m.split(",") if q] or [1])) for l in b for m in re.findall(r"\[([\d,]*)\] \S+ @\d", l))
kept = [b for b in blocks if b[0].split()[1] in failed]
others = [b for b in blocks if b[0].split()[1] not in failed and size(b) <= a.largest]
kept += random.Random(a.seed).sample(others, min(a.sample, len(others)))
text, data, known = [f"# family {a.prefix}, made by make_cases, JAX 0.10.2", "# grammar: ../README.md", ""], bytearray(), {}
for b in kept:
    text.append("case " + a.prefix + "." + b[0].split()[1].split(".", 1)[1])
    for line in b[1:]:
        m = re.search(r" @(\d+)", line)
        if m and re.match(r"(in|out|ct|tan) ", line):
            with open(f"{a.source}/arrays.npys", "rb") as f: f.seek(int(m.group(1))); array = np.lib.format.read_array(f)
            record = io.BytesIO(); np.lib.format.write_array(record, array, version=(1, 0)); record = record.getvalue()
            if record not in known: known[record] = len(data); data += record
            line = line[:m.start()] + f" @{known[record]}" + line[m.end():]
        text.append(line)
    text += ["end", ""]
os.makedirs(a.target, exist_ok=True)
open(f"{a.target}/cases.txt", "w", encoding="utf-8").write("\n".join(text))
if data: open(f"{a.target}/arrays.npys", "wb").write(bytes(data))
print(len(kept), "cases", len(data), "bytes of arrays")
