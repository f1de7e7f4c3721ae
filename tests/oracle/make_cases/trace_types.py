"""Types and refusals of a case over explicit axes, as JAX traces it. As a program: checks a folder of cases."""
from statements import *
def trace_types(c):
    """-> {name: type string} and None, or what was computed and (at, exception)."""
    env = Env(); 
    manual = c.first("mode") is not None and c.first("mode")[1] == "manual"
    mesh = mesh_of(c); env.mesh = mesh
    types = {}
    err = None
    ins = c.all("in")
    def shp(w): return tuple(value_of(w[3]))
    with jax.set_mesh(mesh):
        try:
            avals = [jax.ShapeDtypeStruct(shp(w), DTYPES[w[2]], sharding=NamedSharding(mesh, spec_of(w[4]) if w[4] != "-" else PartitionSpec())) for w in ins]
        except Exception as e:
            return types, ("in", e)
        def f(*xs):
            v = {w[1]: x for w, x in zip(ins, xs)}
            for n, x in v.items(): types[n] = ts(x)
            lets = c.all("let")
            for k, w in enumerate(lets):
                dst, op, args, attrs = parse_let(w)
                try:
                    if op == "grad": r = gradient(env, lets, {w[1]: x for w, x in zip(ins, xs)}, v, k, args[0], attrs["wrt"])
                    else: r = S[op](env, [v[a] for a in args], **attrs)
                    if len(dst) == 1 and not isinstance(r, (tuple, list)): r = (r,)
                    for n, x in zip(dst, r): v[n] = x; types[n] = ts(x)
                except Exception as e:
                    raise Refused(w[1], e)
            return 0
        try:
            if manual:
                g = jax.shard_map(f, mesh=mesh, in_specs=tuple(spec_of(w[4]) for w in ins), out_specs=PartitionSpec())
                jax.eval_shape(g, *avals)
            else: jax.eval_shape(f, *avals)
        except Refused as e: err = (e.at, e.error)
        except Exception as e: err = ("in", e)
    return types, err
def ts(x):
    return str(jax.typeof(x)).replace(" ", "").replace("'", "")
if __name__ == "__main__":
    import collections
    root = sys.argv[1] if len(sys.argv) > 1 else ORACLE + "/types"
    bad = 0; msgs = collections.defaultdict(collections.Counter)
    cs = read_cases(root + "/cases.txt")
    for c in cs:
        t, e = trace_types(c)
        we = c.first("error")
        if e and not we: bad += 1; print(c.id, "refused", e[0], type(e[1]).__name__, str(e[1])[:300].replace("\n", " "))
        elif we and not e: bad += 1; print(c.id, "accepted", we)
        elif we:
            if we[3] != "at=" + e[0].split(",")[0] or we[2] != type(e[1]).__name__: bad += 1; print(c.id, we, e[0], type(e[1]).__name__)
            m = re.sub(r"\(?'?\b[xyzXY]\b'?,?\)?|\[[^]]*\]|\d+|P\([^)]*\)|\([^)]*\)", "_", str(e[1]).split("\n")[0])[:150]
            msgs[we[1]][m] += 1
        for w in c.all("type"):
            if t.get(w[1]) != w[2]: bad += 1; print(c.id, w[1], "want", w[2], "got", t.get(w[1]))
    for k in msgs:
        for m, n in msgs[k].items(): print(k, n, m)
    print(len(cs), "bad", bad)
