"""types: sums over devices ({U:..}) and reduced values ({R:..}).  types_sums.py COUNT SEED FOLDER"""
from candidates import *
from types_programs import case_of
from types_single import classify
from trace_types import trace_types
import collections
seed = int(sys.argv[2]); n = int(sys.argv[1]); W = Writer(sys.argv[3], "family types"); other = collections.Counter(); ex = {}
r = random.Random(seed)
UN = "neg sin tanh relu abs square convert:dtype=bf16 transpose:perm=[1,0] reshape:shape=[64] reshape:shape=[8,1,8] reshape:shape=[2,4,8] reduce_sum:axes=[0] reduce_sum:axes=[1],keepdims=1 reduce_max:axes=[0] reduce_mean:axes=[1] slice:start=[0,0],limit=[4,8] expand_dims:axes=[0] broadcast_in_dim:shape=[4,8,8],dims=[1,2] reshard:spec=P(None,None) reshard:spec=P(x,None) reshard:spec=P(x,y) reshard:spec=P(None,y) reshard:spec=P(None,None;U=x) reshard:spec=P(None,None;R=x) reshard:spec=P(None,None;U=y) reshard:spec=P(y,None;U=x) reshard:spec=P(None,y;R=x) constraint:spec=P(None,None;U=x) cumsum:axis=0,reverse=0 sort:axis=0,descending=0 tril:k=0 rev:dims=[0] roll:shift=[1],axes=[0] stop_gradient log exp sigmoid softmax:axis=1 argmax:axis=0 concatenate:axis=0 stack:axis=0 tile:reps=[2,1] repeat:n=2,axis=0 squeeze:axes=[] isnan integer_pow:y=2 real diff:n=1,axis=0 one_hot:n=4,dtype=f32 log_softmax:axis=1 reduce_prod:axes=[0] reduce_any:axes=[0] sign floor round".split()
BI = "add sub mul div max min lt eq pow matmul atan2 select_like rem".split()
def bases(k):
    c = r.random()
    mesh = r.choice(["x=4 y=2", "x=4 y=2", "x=2 y=2 z=2"])
    L = [f"mesh {mesh}"]; lets = []; vals = []
    L += ["in a f32 [8,8] P(None,x) @-", "in b f32 [8,8] P(x,None) @-"]
    if r.random() < .7: lets.append("let u dot_general a b lc=[1] rc=[0] out=P(None,None;U=x)"); vals.append("u")
    if r.random() < .3: lets.append("let w matmul a b out=P(None,None;U=x)"); vals.append("w")
    if r.random() < .15: lets.append("let e einsum a b eq=ij,jk->ik out=P(None,None;U=x)"); vals.append("e")
    if r.random() < .5: L.append(f"in s f32 [8,8] {r.choice(['P(None,None;R=x)', 'P(y,None;R=x)', 'P(None,None;R=y)', 'P(x,None;R=y)', 'P(None,None;R=x+y)', 'P(None,y;R=x)'])} @-"); vals.append("s")
    if r.random() < .3: L.append(f"in q f32 [8,8] {r.choice(['P(None,None;R=x)', 'P(y,None;R=x)', 'P(None,None;R=y)', 'P(x,None;R=y)'])} @-"); vals.append("q")
    if r.random() < .3: L.append(f"in t f32 [8,8] {r.choice(['P(None,None;U=x)', 'P(y,None;U=x)', 'P(None,None;U=y)', 'P(x,None;U=y)', 'P(None,None;U=x+y)'])} @-"); vals.append("t")
    if r.random() < .3: L.append(f"in p f32 [8,8] {r.choice(['P(None,None)', 'P(y,None)', 'P(None,y)', 'P(x,y)'])} @-"); vals.append("p")
    if r.random() < .2: L.append("in c f32 [] P() @-"); vals.append("c")
    return L, lets, vals or ["a"]
for k in range(n):
    L, lets, vals = bases(k)
    t, e = trace_types(case_of(L + lets))
    err = None
    if not e:
        for j in range(r.randint(1, 3)):
            if r.random() < .5:
                o, _, at = r.choice(UN).partition(":")
                at = " ".join(re.sub(r",(?=[a-z]+=)", " ", at).split()) if at else ""
                l = f"let v{j} {o} {r.choice(vals)} {at}".rstrip()
                if o in ("concatenate", "stack"): x = r.choice(vals); l = f"let v{j} {o} {x} {r.choice(vals)} {at}"
            else:
                o = r.choice(BI)
                l = f"let v{j} {o} {r.choice(vals)} {r.choice(vals)}"
                if o == "matmul" and r.random() < .4: l += " out=" + r.choice(["P(None,None;U=x)", "P(None,None)", "P(x,None)", "P(None,None;U=y)", "P(y,None;U=x)", "P(x,None;U=x)"])
                if o == "select_like": l = f"let v{j} select {r.choice(vals)} {r.choice(vals)} {r.choice(vals)}"
            t2, e = trace_types(case_of(L + lets + [l]))
            if e:
                c = classify(e[1])
                if c is None or c == "?":
                    m = type(e[1]).__name__ + ": " + re.sub(r"\d+", "N", str(e[1]).split("\n")[0])[:150]; other[m] += 1; ex.setdefault(m, L + lets + [l]); c = "?"
                if c != "?" and r.random() < .35: lets.append(l); err = f"error {c} {type(e[1]).__name__} at={e[0]}"; break
                continue
            lets.append(l); t = t2; vals.append(f"v{j}")
    else: 
        c = classify(e[1]) or "?"; err = f"error {c} {type(e[1]).__name__} at={e[0]}"
        if c == "?": m = type(e[1]).__name__ + ": " + re.sub(r"\d+", "N", str(e[1]).split("\n")[0])[:150]; other[m] += 1; ex.setdefault(m, L + lets)
    if not lets and not err: continue
    W.case(f"types.u{k:05d}", L + lets + ([err] if err else [f"type {q} {v}" for q, v in t.items()]))
W.close()
for m, q in other.most_common(40): print(q, m, "|", ex[m][-1] if len(ex[m][-1]) else "")
