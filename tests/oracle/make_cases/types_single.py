"""types: one random statement each.  types_single.py COUNT SEED FOLDER [STATEMENT,.. [mixed]]
mixed: the mesh has an Auto axis too."""
from candidates import *
from trace_types import trace_types
CLASSES = [("contract_ambiguous", "Contracting dimensions are sharded and it is ambiguous"), ("slice_indivisible", "^slicing on sharded dims"),
 ("broadcast_to_conflict", "Incompatible types for broadcasting"), ("out_duplicate", "produces an illegally sharded result"), ("update_mismatch", "dynamic_update_slice operand sharding must"),
 ("sort_sharded", "Arguments to sort must be unsharded"), ("uneven", "does not evenly divide|should evenly divide"), ("assert_mismatch", "acts as an assert"), ("duplicate_axis", "can map every mesh axis to at most one"),
 ("gather_ambiguous", "for the gather indexing"), ("scatter_ambiguous", "for the scatter update"), ("contract_conflict", "requires contracting dimensions to have consistent"),
 ("batch_conflict", "batch dimensions to have the consistent sharding"), ("tile_sharded", "when the tiling is non-trivial"), ("broadcast_conflict", "incompatible shardings for broadcasting"),
 ("concat_mismatch", "All operands should have the same sharding"), ("select_conflict", "select `which` must|select cases must"), ("reshape_ambiguous", "This reshape is not supported"),
 ("repeat_sharded", "Please pass sharding to `jnp.repeat`"), ("top_k_sharded", "along which to compute the top_k"), ("conv_ambiguous", "parameter of `conv_general_dilated`"),
 ("reduced_axis_sharded", "Input should be unsharded over the axis being reduced"), ("pad_indivisible", "^padding on sharded dims"), ("dynamic_slice_indivisible", "^dynamic_slice on sharded"),
 ("unreduced", "is unreduced while|unreduced axes should be equal"), ("reduced_conflict", "Inputs cannot be replicated on|Inputs cannot be sharded.varying on|All inputs should be reduced across"), ("unreduced", "cannot be unreduced|must be unreduced along|should be reduced along the same axes|should be sharded identically when out_sharding"),
 ("unsupported", "unreduced rule for|is not implemented. Please file")]
def classify(e):
    m = str(e)
    for c, p in CLASSES:
        if re.search(p, m): return c
    return None
if __name__ == "__main__":
    import collections
    n, seed = int(sys.argv[1]), int(sys.argv[2]); folder = sys.argv[3]
    W = Writer(folder, "family types"); other = collections.Counter(); ex = {}
    ops = [o for o in TYPES_OPS for _ in range(WEIGHTS.get(o, 1))]
    if len(sys.argv) > 4: ops = sys.argv[4].split(",")
    rr = random.Random(seed)
    for k in range(n):
        op = rr.choice(ops); mesh, other_axis = rr.choice([(dict(x=4), " y=2:auto"), (dict(x=2, y=2), " z=2:auto")]) if len(sys.argv) > 5 else (None, "")
        g = G(seed * 100000 + k, mesh)
        statement(g, op)
        head = g.head(); text = [head[0] + other_axis] + head[1:] + g.lets
        c = Case("x"); c.lines = [l.split() for l in text]
        t, e = trace_types(c)
        lines = text
        if e:
            cl = classify(e[1])
            if cl is None:
                m = type(e[1]).__name__ + ": " + re.sub(r"\d+", "N", str(e[1]).split("\n")[0])[:110]
                other[m] += 1; ex.setdefault(m, text); continue
            lines = text + [f"error {cl} {type(e[1]).__name__} at={e[0].split(',')[0]}"]
        else:
            dst = g.lets[-1].split()[1].split(",")
            lines = text + [f"type {d} {t[d]}" for d in dst]
        W.case(f"types.{op}.{k:05d}", lines)
    W.close()
    for m, q in other.most_common(40): print(q, m, "|", ex[m][1:] if q < 400 else "")
