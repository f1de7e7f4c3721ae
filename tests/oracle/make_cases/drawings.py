"""viz: tables of shardings. Needs rich.  drawings.py COUNT SEED FOLDER; drawings.py FOLDER checks one"""
import os; os.environ["COLUMNS"] = "80"; os.environ["TERM"] = "dumb"
from candidates import *
import io, contextlib
def text(mesh, shape, spec):
    b = io.StringIO()
    with contextlib.redirect_stdout(b): jax.debug.visualize_sharding(tuple(shape), NamedSharding(mesh, spec), use_color=False)
    return b.getvalue().rstrip("\n").split("\n")
def mk(c):
    return mesh_of(c, types=AxisType.Auto)
if len(sys.argv) == 2:
    bad = 0
    for p in [sys.argv[1]]:
        cs = read_cases(p + "/cases.txt")
        for c in cs:
            w = c.first("in"); 
            try: got = text(mk(c), value_of(w[3]), spec_of(w[4]))
            except Exception as e: print(c.id, e); bad += 1; continue
            ln = [x for x in c.lines if x[0] == "text"][0][1:]
            if [g.rstrip() for g in got] != [x.rstrip() for x in ln]: bad += 1; print(c.id, w); print("\n".join(got)); print("\n".join(ln))
    print("bad", bad); sys.exit()
W = Writer(sys.argv[3], "family viz"); r = random.Random(int(sys.argv[2]))
for k in range(int(sys.argv[1])):
    ms = r.choice([dict(x=2, y=4), dict(x=8), dict(x=4, y=2), dict(x=2, y=2, z=2), dict(x=1, y=8), dict(x=2, y=2), dict(x=4, y=4), dict(x=16), dict(x=3), dict(x=2, y=3), dict(x=1)])
    nd = int(np.prod(list(ms.values()))); order = list(range(nd)); 
    if r.random() < .25: r.shuffle(order)
    g = G(k + 7, ms, even=1.0); shape = [r.choice([1, 2, 4, 8, 16, 32, 64, 12, 24, 48, 6, 3, 100, 96, 1024]) for _ in range(r.choice([1, 2, 2, 2]))]
    sp = g.spec(shape, .75)
    c = Case("x"); c.lines = [["mesh"] + [f"{a}={b}" for a, b in ms.items()]] + ([["devices", str(order).replace(" ", "")]] if order != list(range(nd)) else [])
    try: t = text(mk(c), shape, PartitionSpec(*sp))
    except Exception as e: print(k, shape, sp, type(e).__name__, str(e)[:100]); continue
    W.case(f"viz.{k:04d}", [" ".join(l) for l in c.lines] + [f"in a f32 [{','.join(map(str, shape))}] {spec_text(sp)} @-", "text"] + ["| " + q for q in t])
W.close()
