# SPDX-License-Identifier: BSD-3-Clause
"""Olympus in gdb: prints arrays, shardings, meshes and plans as the library does, from memory alone (no call in the program, so
core files do as well).

    (gdb) print x
    $1 = float32[8,4] NamedSharding(mesh=Mesh('i': 4, 'j': 2), spec=P('i', 'j')), committed, 8 shards here; device 0 [0:2,0:2]: 0 1 4 5
    (gdb) print *x            # all shards of this process, each in a line
    (gdb) oly-plan f          # the steps of all plans of an oly_fn, or of one oly_plan *

The build and `make install` put it next to the shared library, as libolympus.so...-gdb.py, from where gdb loads it if the folder is
in its auto-load safe path; else, and for programs linked with libolympus.a, `source` it. It reads structures by the names of their
members: tests/project/test_gdb.sh fails where they have changed."""

import struct

import gdb

ELEMENTS_SHOWN = 8
SHARDS_SHOWN = 16

# Element types for Python's struct; the narrow floats as their bits, which number_of decodes.
CODES = {
    "bool": "?", "int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint8": "B", "uint16": "H", "uint32": "I",
    "uint64": "Q", "float16": "e", "float32": "f", "float64": "d", "complex64": "ff", "complex128": "dd", "bfloat16": "H",
    "float8_e4m3fn": "B", "float8_e5m2": "B",
}
DIGITS = {"float8_e4m3fn": "e", "float8_e5m2": "e", "float16": "e", "bfloat16": "f", "float32": "f", "complex64": "f"}


def static(file, name):
    """A static variable of a source file; None where the library has no debug information."""
    try:
        return gdb.parse_and_eval("'%s'::%s" % (file, name))
    except gdb.error:
        return None


def bits(mask):
    return [k for k in range(32) if mask >> k & 1]


# -- meshes and shardings ----------------------------------------------------------------------------------------------------


class Mesh:
    def __init__(self, value):
        self.value = value
        self.names = [value["name"][k].string() for k in range(int(value["n_axes"]))]
        self.sizes = [int(value["size"][k]) for k in range(len(self.names))]

    def text(self):
        kinds = {k: "Explicit" for k in bits(int(self.value["explicit_axes"]))}
        kinds.update({k: "Manual" for k in bits(int(self.value["manual_axes"]))})
        axes = ["'%s': %d" % pair for pair in zip(self.names, self.sizes)]
        if kinds:
            types = [kinds.get(k, "Auto") for k in range(len(self.names))]
            axes.append("axis_types=(%s%s)" % (", ".join(types), "," if len(types) == 1 else ""))
        return "Mesh(%s)" % ", ".join(axes)

    def here(self):
        """(position, device id) of this process's devices, in mesh order."""
        first, count = static("processes.c", "first_local"), static("processes.c", "n_local_devices")
        if first is None or count is None:
            return []
        first, count = int(first), int(count)
        if self.value["everywhere"]:
            return [(0, first)]
        listed, n = self.value["devices"], int(self.value["n_devices"])
        if not int(listed):
            return [(d, d) for d in range(first, min(first + count, n))]
        return [(p, int(listed[p])) for p in range(n) if first <= int(listed[p]) < first + count]

    def coordinates(self, position):
        found = []
        for size in reversed(self.sizes):
            found.insert(0, position % size)
            position //= size
        return found


class Spec:
    def __init__(self, mesh, value, written=0):
        self.mesh, self.value, self.written = mesh, value, written

    def axes(self, d):
        """The mesh axes that split dimension d, major first."""
        if d >= int(self.value["n_dims"]):
            return []
        listed = self.value["dim"][d]
        return [int(listed["axis"][k]) for k in range(int(listed["n"]))]

    def text(self):
        n, parts = max(self.written, int(self.value["n_dims"])), []
        for d in range(n):
            names = ["'%s'" % self.mesh.names[k] for k in self.axes(d)]
            if int(self.value["open"]) >> d & 1:
                parts.append("UNCONSTRAINED")
            else:
                parts.append("None" if not names else names[0] if len(names) == 1 else "(%s)" % ", ".join(names))
        marks = []
        for word in ("unreduced", "reduced"):
            names = ["'%s'" % self.mesh.names[k] for k in bits(int(self.value[word]))]
            if names:
                marks.append("%s={%s}" % (word, ", ".join(names)))
        return "P(%s%s)" % (", ".join(parts + marks), "," if n == 1 and not marks else "")

    def box(self, shape, position):
        """What the device at a position holds: balanced blocks, the larger ones first."""
        at, box = self.mesh.coordinates(position), []
        for d, n in enumerate(shape):
            part, parts = 0, 1
            for k in self.axes(d):
                part, parts = part * self.mesh.sizes[k] + at[k], parts * self.mesh.sizes[k]
            cut = [k * (n // parts) + min(k, n % parts) for k in (part, part + 1)]
            box.append(tuple(cut))
        return box


def spec_of(sharding):
    mesh = Mesh(sharding["mesh"].dereference())
    return Spec(mesh, sharding["spec"], int(sharding["written_dims"]))


def sharding_text(sharding):
    spec = spec_of(sharding)
    if spec.mesh.value["everywhere"]:
        return "on this process's default device"
    return "NamedSharding(mesh=%s, spec=%s)" % (spec.mesh.text(), spec.text())


# -- types and elements ------------------------------------------------------------------------------------------------------


def dtype_of(value):
    return str(value["dtype"]).replace("OLY_", "").lower()


def type_text(value):
    """float32[4,8@x], with the Explicit axes that are part of the type."""
    mesh = Mesh(value["mesh"].dereference()) if int(value["mesh"]) else None
    dims = []
    for d in range(int(value["rank"])):
        listed = value["axes"][d]
        names = [mesh.names[int(listed["axis"][k])] for k in range(int(listed["n"]))] if mesh else []
        at = "@" + (names[0] if len(names) == 1 else "(%s)" % ",".join(names)) if names else ""
        dims.append("%d%s" % (int(value["shape"][d]), at))
    marks = []
    for letter, word in (("V", "varying"), ("U", "unreduced"), ("R", "reduced")):
        names = [mesh.names[k] for k in bits(int(value[word]))] if mesh else []
        if names:
            marks.append("%s:%s" % (letter, names[0] if len(names) == 1 else "(%s)" % ",".join(names)))
    return "%s%s[%s]%s" % ("~" if value["weak"] else "", dtype_of(value), ",".join(dims),
                           "{%s}" % ", ".join(marks) if marks else "")


def shortest(x, code):
    """The fewest digits that give the same number again in its own type; whole numbers without an exponent."""
    if 0 < abs(x) < 1e16 and x == int(x):
        return "%d" % x
    for digits in range(1, 18):
        text = "%.*g" % (digits, x)
        if x != x or struct.pack(code, float(text)) == struct.pack(code, x):
            return text
    return text


def e4m3fn(bits_):
    exponent, fraction = bits_ >> 3 & 15, bits_ & 7
    if exponent == 15 and fraction == 7:
        return float("nan")
    size = fraction / 8 * 2.0**-6 if exponent == 0 else (1 + fraction / 8) * 2.0 ** (exponent - 7)
    return -size if bits_ >> 7 else size


def number_of(dtype, data):
    """One element's bytes as text."""
    if dtype not in CODES:
        return "0x" + data[::-1].hex()
    parts = struct.unpack("<" + CODES[dtype], data)
    if dtype == "bfloat16":
        parts = struct.unpack("<f", struct.pack("<I", parts[0] << 16))
    elif dtype == "float8_e5m2":  # the upper half of a float16
        parts = struct.unpack("<e", bytes([0, parts[0]]))
    elif dtype == "float8_e4m3fn":
        parts = (e4m3fn(parts[0]),)
    if isinstance(parts[0], float):
        shown = [shortest(x, "<" + DIGITS.get(dtype, "d")) for x in parts]
        return shown[0] if len(shown) == 1 else "%s%s%sj" % (shown[0], "" if shown[1][0] == "-" else "+", shown[1])
    return str(parts[0])


def elements_text(dtype, count, data):
    size = struct.calcsize("<" + CODES.get(dtype, "B"))
    shown = min(count, ELEMENTS_SHOWN)
    try:
        memory = bytes(gdb.selected_inferior().read_memory(int(data), shown * size)) if shown else b""
    except gdb.MemoryError:
        return "not in the host's memory"
    words = [number_of(dtype, memory[k * size:(k + 1) * size]) for k in range(shown)]
    return " ".join(words + (["..."] if count > shown else []))


def is_computed(array):
    device = int(array["device"])
    if device < 0:
        return True
    queue = static("queue.c", "queue")
    return queue is None or int(queue["lines"][device]["done"]) >= int(array["moment"])


def shard_lines(array):
    type_, spec = array["type"], spec_of(array["sharding"].dereference())
    shape = [int(type_["shape"][d]) for d in range(int(type_["rank"]))]
    here = spec.mesh.here()
    for s in range(min(int(array["n_shards"]), SHARDS_SHOWN)):
        buffer = array["shard"][s]
        if s >= len(here) or not int(buffer):
            continue
        position, device = here[s]
        box = spec.box(shape, position)
        count = 1
        for lo, hi in box:
            count *= hi - lo
        yield "  device %d [%s]: %s" % (device, ",".join("%d:%d" % b for b in box),
                                       elements_text(dtype_of(type_), count, buffer["data"]))
    if int(array["n_shards"]) > SHARDS_SHOWN:
        yield "  ..."


TAG, DEAD = 0x7375706D796C4F00, 0x80  # core/handle.h


def array_text(array, all_shards=True):
    tag = int(array["owned"]["tag"])
    if tag & ~0xFF != TAG:
        return "no oly_array: it has not been set, or its memory is used otherwise"
    if tag & DEAD:
        return "an oly_array whose scope has ended, or that was freed"
    if array["deleted"]:
        return "%s, deleted" % type_text(array["type"])
    if not int(array["sharding"]):
        return "%s, traced: a value of the function that is being recorded" % type_text(array["type"])
    n = int(array["n_shards"])
    head = "%s %s, %s, %d shard%s here" % (type_text(array["type"]), sharding_text(array["sharding"].dereference()),
                                          "committed" if array["committed"] else "uncommitted", n, "" if n == 1 else "s")
    if not is_computed(array):
        return head + ", not computed yet"
    if all_shards:
        return "\n".join([head] + list(shard_lines(array)))
    first = next(shard_lines(array), None)
    return head + "; " + first.strip() if first else head


def handle_text(array):
    """In one line, as arguments of functions in backtraces."""
    return array_text(array, all_shards=False)


# -- plans -------------------------------------------------------------------------------------------------------------------


def node_text(node):
    text = type_text(node["type"])
    file = node["site"]["file"]
    if int(file) and file.string():
        text += "   %s:%d" % (file.string().split("/")[-1], int(node["site"]["line"]))
    return text


def step_lines(step, indent):
    kind = str(step["kind"]).replace("OLY_STEP_", "").lower()
    words = step["what"].string() if int(step["what"]) else kind
    if int(step["detail"]):
        words += ": " + step["detail"].string()
    if int(step["bytes"]):
        words += "   [%d bytes per device in %d messages]" % (int(step["bytes"]), int(step["messages"]))
    if int(step["node"]):
        words += " -> " + node_text(step["node"].dereference())
    yield "%s%3d %s" % (indent, int(step["number"]), words)
    if kind == "loop":
        yield "%s    %d times:" % (indent, int(step["loop"]["count"]))
        yield from block_lines(step["loop"]["body"], indent + "    ")
    elif kind == "branch":
        for k in range(int(step["branch"]["n"])):
            yield "%s    branch %d:" % (indent, k)
            yield from block_lines(step["branch"]["blocks"][k], indent + "    ")


def block_lines(block, indent):
    for k in range(int(block["n_steps"])):
        yield from step_lines(block["steps"][k], indent)


def plan_text(plan):
    lines = ["plan %016x: %d steps, %d slots, %d bytes of workspace, %s" %
             (int(plan["fingerprint"]), int(plan["n_steps"]), int(plan["n_slots"]), int(plan["scratch_bytes"]),
              Mesh(plan["mesh"].dereference()).text() if int(plan["mesh"]) else "no mesh")]
    for word, values, n in (("input", plan["inputs"], plan["n_inputs"]), ("output", plan["outputs"], plan["n_outputs"])):
        for k in range(int(n)):
            lines.append("  %s %d: %s %s" % (word, k, type_text(values[k]["type"]),
                                            sharding_text(values[k]["sharding"].dereference())))
    return "\n".join(lines + list(block_lines(plan["main"], "")))


def plans_of(function):
    """Of the compiled calls of a function, one for each kind of inputs."""
    cache = function["cache"]
    for k in range(int(cache["buckets"])):
        compiled = cache["bucket"][k]
        while int(compiled):
            yield compiled["program"]["plan"].dereference()
            compiled = compiled["cached"]["next"]


class PlanCommand(gdb.Command):
    """oly-plan EXPRESSION: the steps of a plan, an oly_plan *, or of all plans that an oly_fn has been given so far."""

    def __init__(self):
        super().__init__("oly-plan", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, from_tty):
        value = gdb.parse_and_eval(argument)
        if value.type.strip_typedefs().code == gdb.TYPE_CODE_PTR:
            if not int(value):
                raise gdb.GdbError("%s is NULL" % argument)
            value = value.dereference()
        name = structure_of(value.type)
        plans = list(plans_of(whole(value))) if name == "oly_fn_impl" else [value]
        if not plans:
            raise gdb.GdbError("%s has no plan: it has not been called yet" % argument)
        if name not in ("oly_fn_impl", "oly_plan"):
            raise gdb.GdbError("%s is no oly_plan * and no oly_fn" % argument)
        for plan in plans:
            print(plan_text(plan))


# -- printers ----------------------------------------------------------------------------------------------------------------

TEXTS = {
    "oly_array_impl": array_text,
    "oly_sharding_impl": sharding_text,
    "oly_mesh_impl": lambda mesh: Mesh(mesh).text(),
    "oly_plan": plan_text,
}


def structure_of(type_):
    type_ = type_.strip_typedefs().unqualified()
    if type_.code != gdb.TYPE_CODE_STRUCT:
        return None
    return type_.tag


def whole(value):
    """The structure, also in a program's file, where it is only declared."""
    return value.cast(gdb.lookup_type("struct " + structure_of(value.type)))


class Printer:
    def __init__(self, text, value):
        self.text, self.value = text, value

    def to_string(self):
        try:
            return self.text(whole(self.value))
        except gdb.MemoryError as error:
            return "no valid handle (%s)" % error
        except gdb.error as error:
            return "no debug information of the library (%s)" % error


def printer_of(value):
    """For handles, which are pointers, and for what they point to."""
    type_ = value.type.strip_typedefs()
    target = type_.target() if type_.code == gdb.TYPE_CODE_PTR else type_
    text = TEXTS.get(structure_of(target))
    if text is None:
        return None
    if type_.code != gdb.TYPE_CODE_PTR:
        return Printer(text, value)
    if not int(value):
        return None
    return Printer(handle_text if text is array_text else text, value.dereference())


def register():
    """Once: the library may be loaded again, or with another one beside it."""
    printer_of.name = "olympus"
    if not any(getattr(p, "name", "") == "olympus" for p in gdb.pretty_printers):
        gdb.pretty_printers.append(printer_of)
        PlanCommand()


register()
