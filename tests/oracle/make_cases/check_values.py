"""Does JAX still give what the cases of a family of values say?  check_values.py FAMILY [ORACLE]"""
from statements import *
fam = sys.argv[1]
root = sys.argv[2] if len(sys.argv) > 2 else ORACLE
jax.config.update("jax_enable_x64", fam.endswith("64"))
A = Arrays(f"{root}/{fam}")
bad = 0; n = 0
for c in read_cases(f"{root}/{fam}/cases.txt"):
    x = c.first("x64")
    if x: jax.config.update("jax_enable_x64", x[1] == "1")
    env = Env()
    n += 1
    try:
        v = run_lets(env, c.all("let"), {w[1]: jnp.asarray(A.get(w[2], int(w[5][1:]))) for w in c.all("in")})
        for w in c.all("out"):
            r = close(A.get(w[2], int(w[5][1:])), v[w[1]], w[6:])
            if r: bad += 1; print(c.id, w[1], " ".join(w[6:]), r)
    except Exception as e:
        bad += 1; print(c.id, type(e).__name__, str(e)[:200])
print(fam, n, "bad", bad)
