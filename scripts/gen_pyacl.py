#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gen_pyacl.py - the Python module acl, from the tables that give the C face.

Reads src/face/acl/spec (see gen_acl.py) and python.tsv, one row a function of implemented.txt:

    function   its name in C
    python     its name in Python, or - for none
    form       generated  arguments and results follow from the C signature
               quick      the same, and the interpreter's lock stays held: never waits
               own        blyi_py_<function> in python/acl
               none       `detail` says why
    returns    parameters that are results, in Python's order; NAME:text[LENGTH] is a buffer
    detail     own: args NAME ...      none: the reason
               generated: reads POINTER:LENGTH, host memory that the call reads;
               unsigned NAME, a uint32_t for which a negative number is refused

Writes, without arguments, docs/python-coverage.md.

    gen_pyacl.py --check          write nothing; fail if that page is stale or a row is missing
    gen_pyacl.py --methods FILE   C of the methods (goes to the build folder)
    gen_pyacl.py --constants FILE C of the constants
"""
import argparse
import collections
import pathlib
import re
import sys

import gen_acl

ROOT = gen_acl.ROOT
PAGE = "docs/python-coverage.md"
FORMS = ("generated", "quick", "own", "none")
MODULES = ("acl", "acl.mdl", "acl.rt", "acl.tdt")  # acl.util is all by hand

Row = collections.namedtuple("Row", "function python form returns detail")
Param = collections.namedtuple("Param", "type name")
Kind = collections.namedtuple("Kind", "letter field cast build")

# How a C type passes: letter of the argument's check, member of the parsed value, letter and
# type of Py_BuildValue.
SCALARS = {
    "int": Kind("i", "i", "int", "i"),
    "int32_t": Kind("i", "i", "int", "i"),
    "uint32_t": Kind("I", "u", "unsigned", "I"),
    "int64_t": Kind("l", "i", "long long", "L"),
    "uint64_t": Kind("u", "u", "unsigned long long", "K"),
    "size_t": Kind("u", "u", "unsigned long long", "K"),
    "uint16_t": Kind("H", "u", "unsigned", "I"),
    "float": Kind("f", "f", "double", "d"),
}
POINTER = Kind("p", "u", "unsigned long long", "K")
TEXT = Kind("s", "s", None, None)
RECORD = Kind("o", "o", None, None)

# Structs that pass as dictionaries. Those that are arguments too keep C's member names as keys,
# the others have snake case.
RECORDS_IN = ["aclrtMemLocation", "aclrtPhysicalMemProp", "aclrtMemUceInfo", "aclrtMemAccessDesc",
              "aclrtMemcpyBatchAttr", "aclrtCntNotifyRecordInfo", "aclrtCntNotifyWaitInfo",
              "aclrtPlaceHolderInfo", "aclrtMemPoolProps"]
RECORDS_OUT = ["aclrtPtrAttributes", "aclrtUtilizationInfo", "aclrtUuid", "aclrtMemUsageInfo",
               "aclCANNPackageVersion"]
BYTES_FIELDS = {("aclrtUuid", "bytes")}  # char[] that is no text


def snake(name):
    """devPtr -> dev_ptr, MallocPhysical -> malloc_physical, pciBusId -> pci_bus_id."""
    name = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)
    return re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name).lower()


# ---------------------------------------------------------------- reading

class Spec:
    """The C tables and python.tsv, with the types looked up."""

    def __init__(self):
        self.c = gen_acl.load()
        self.rows = gen_acl.read_table(gen_acl.SPEC / "python.tsv", Row)
        self.symbols = {s.name: s for s in self.c.symbols}
        self.typedefs = {t.name: t.value for t in self.c.types if t.kind == "typedef"}
        self.enums = {t.name for t in self.c.types if t.kind == "enum"}
        self.macros = {t.name: t.value for t in self.c.types if t.kind == "macro"}
        self.fields = collections.OrderedDict()
        for t in self.c.types:
            if t.kind in ("struct", "union"):
                self.fields.setdefault(t.name, []).append(t)

    def exported(self):
        """Rows of functions that libascendcl has, in the order of the table."""
        have = set(self.c.implemented)
        return [r for r in self.rows if r.function in have]

    def check(self):
        gen_acl.require_unique("python.tsv", [r.function for r in self.rows])
        gen_acl.require_unique("python.tsv", [r.python for r in self.rows if r.python != "-"])
        missing = sorted(set(self.c.implemented) - {r.function for r in self.rows})
        if missing:
            raise gen_acl.SpecError("python.tsv: no row for " + " ".join(missing))
        for row in self.rows:
            self.check_row(row)

    def check_row(self, row):
        if row.function not in self.c.implemented:
            raise gen_acl.SpecError("python.tsv: %s is not implemented" % row.function)
        if row.form not in FORMS:
            raise gen_acl.SpecError("python.tsv: form %r of %s" % (row.form, row.function))
        if (row.python == "-") != (row.form == "none") or (row.form == "none") > bool(row.detail):
            raise gen_acl.SpecError("python.tsv: %s has no name and no reason" % row.function)

    def resolve(self, type_text):
        """A type without const and typedefs."""
        text = re.sub(r"\bconst\b", "", type_text).strip()
        while text in self.typedefs and self.typedefs[text] not in ("struct " + text, text):
            text = self.typedefs[text].strip()
        return re.sub(r"\s+", " ", text)

    def kind(self, type_text):
        text = self.resolve(type_text)
        if text in SCALARS:
            return SCALARS[text]
        if text in self.enums:
            return SCALARS["int"]
        if text == "char *":
            return TEXT
        if text.endswith("*"):
            return RECORD if text[:-1].strip() in RECORDS_IN + RECORDS_OUT else POINTER
        raise gen_acl.SpecError("no Python form of the type %s" % type_text)


def parameters(symbol):
    inside = symbol.signature[symbol.signature.index("(") + 1:-1]
    params = []
    for text in inside.split(","):
        if text.strip() in ("void", "..."):
            continue
        type_text, name = re.match(r"(.*?)(\w+)$", text.strip()).groups()
        params.append(Param(type_text.strip(), name))
    return params


def return_type(symbol):
    return symbol.signature[:symbol.signature.index(symbol.name)].strip()


def results(row):
    """(name, length or None) of each parameter that is a result."""
    found = []
    for item in row.returns.split():
        name, _, text = item.partition(":text[")
        found.append((name, text[:-1] or None))
    return found


def pointed(type_text):
    """The type behind an out-parameter."""
    return re.sub(r"\*\s*(const)?\s*$", "", type_text).strip()


# ---------------------------------------------------------------- how a call looks in Python

def python_arguments(spec, row):
    if row.form == "own":
        names = row.detail.split()[1:]
        return [snake(n.partition("=")[0]) + "".join(n.partition("=")[1:]) for n in names]
    outs = {name for name, _ in results(row)}
    return [snake(p.name) for p in parameters(spec.symbols[row.function]) if p.name not in outs]


def python_results(spec, row):
    symbol = spec.symbols[row.function]
    names = [snake(name) for name, _ in results(row)]
    kind = return_type(symbol)
    if kind == "aclError":
        return names + ["ret"]
    return names if kind == "void" else names + ["value"]


def call_text(spec, row):
    left = ", ".join(python_results(spec, row))
    right = "%s(%s)" % (row.python, ", ".join(python_arguments(spec, row)))
    return "%s = %s" % (left, right) if left else right


def doc_text(spec, row):
    """Text signature for inspect, then one line."""
    name = row.python.rpartition(".")[2]
    arguments = python_arguments(spec, row)
    signature = "%s(%s)\\n--\\n\\n" % (name, ", ".join(["$module"] + arguments + ["/"]))
    given = ", ".join(python_results(spec, row))
    return signature + "%s%s" % (row.function, " -> " + given if given else "")


# ---------------------------------------------------------------- C of the methods

def input_expression(spec, param, index):
    kind = spec.kind(param.type)
    value = "call.v[%d].%s" % (index, kind.field)
    if kind is POINTER:
        return "(%s)(uintptr_t)%s" % (plain(param.type), value)
    if kind is TEXT:
        return "(%s)(uintptr_t)%s" % (plain(param.type), value)
    if kind is RECORD:
        return "&" + param.name
    return "(%s)%s" % (plain(param.type), value)


def plain(type_text):
    """The type of a cast: the parameter's own constness does not matter."""
    return re.sub(r"\*\s*const$", "*", type_text)


def declare_out(spec, param, length):
    if length is not None:
        size = length if length in spec.macros else "BLYI_PY_TEXT_MAX"
        return "    char %s[%s] = {0};" % (param.name, size)
    inner = pointed(param.type)
    start = "{0}" if spec.resolve(inner) in RECORDS_IN + RECORDS_OUT else "0"
    return "    %s = %s;" % (gen_acl.declarator(inner, param.name), start)


def build_out(spec, param, length):
    """Letter and argument of Py_BuildValue."""
    if length is not None:
        return "N", "blyi_py_text(%s)" % param.name
    inner = spec.resolve(pointed(param.type))
    if inner in RECORDS_IN + RECORDS_OUT:
        return "N", "blyi_py_record_out(&blyi_py_%s, &%s)" % (inner, param.name)
    kind = spec.kind(pointed(param.type))
    through = "(uintptr_t)" if kind is POINTER else ""
    return kind.build, "(%s)%s%s" % (kind.cast, through, param.name)


def build_return(spec, symbol):
    kind = spec.kind(return_type(symbol))
    if kind is TEXT:
        return "N", "blyi_py_text(ret)"
    through = "(uintptr_t)" if kind is POINTER or kind is RECORD else ""
    kind = POINTER if kind is RECORD else kind
    return kind.build, "(%s)%sret" % (kind.cast, through)


def checks(spec, row, inputs):
    """What has to be right before the call, each a condition that is false with an exception."""
    places = {p.name: i for i, p in enumerate(inputs)}
    lines = []
    for param in inputs:
        if spec.kind(param.type) is RECORD:
            lines.append("blyi_py_record_in(&call, %d, &blyi_py_%s, &%s)" % (
                places[param.name], spec.resolve(param.type)[:-1].strip(), param.name))
    for name, length in results(row):
        if length in places:
            lines.append("blyi_py_text_length(&call, %d)" % places[length])
    if row.detail.startswith("reads "):
        pointer, size = row.detail[len("reads "):].split(":")
        size = size if size.isdigit() else "call.v[%d].u" % places[size]
        lines.append("blyi_py_reach(&call, %d, %s)" % (places[pointer], size))
    return lines


def render_method(spec, row):
    symbol = spec.symbols[row.function]
    params = parameters(symbol)
    outs = dict(results(row))
    by_name = {p.name: p for p in params}
    inputs = [p for p in params if p.name not in outs]
    strict = row.detail.partition("unsigned ")[2]
    kinds = "".join("N" if p.name == strict else spec.kind(p.type).letter for p in inputs)
    names = "".join(', "%s"' % snake(p.name) for p in inputs)
    void = return_type(symbol) == "void"
    lines = ["static PyObject *py_%s(PyObject *self, PyObject *args)" % row.function, "{",
             '    static const struct blyi_py_spec spec = {"%s", "%s", {%s}, 0};' % (
                 row.python, kinds, names[2:] if names else "NULL"),
             "    struct blyi_py_call call;"]
    lines += [declare_out(spec, by_name[name], length) for name, length in outs.items()]
    lines += ["    %s %s = {0};" % (spec.resolve(p.type)[:-1].strip(), p.name)
              for p in inputs if spec.kind(p.type) is RECORD]
    if not void:
        lines.append("    " + gen_acl.declarator(return_type(symbol), "ret") + ";")
    lines += ["", "    (void)self;", "    if (!blyi_py_begin(&call, &spec, args))",
              "        return NULL;"]
    for condition in checks(spec, row, inputs):
        lines += ["    if (!%s)" % condition, "        return blyi_py_fail(&call);"]
    where = {p.name: i for i, p in enumerate(inputs)}
    arguments = [input_expression(spec, p, where[p.name]) if p.name in where else
                 (p.name if outs[p.name] is not None else "&" + p.name) for p in params]
    text = "%s%s(%s);" % ("" if void else "ret = ", row.function, ", ".join(arguments))
    lines += ["    " + text] if row.form == "quick" else [
        "    BLYI_PY_CALL_BEGIN", "    " + text, "    BLYI_PY_CALL_END"]
    lines.append("    blyi_py_end(&call);")
    built = [build_out(spec, by_name[name], length) for name, length in outs.items()]
    built += [] if void else [build_return(spec, symbol)]
    if built:
        form = "".join(letter for letter, _ in built)
        form = "(%s)" % form if len(built) > 1 else form
        lines.append('    return Py_BuildValue("%s", %s);' % (form, ", ".join(v for _, v in built)))
    else:
        lines.append("    Py_RETURN_NONE;")
    return lines + ["}", ""]


def render_table(spec, module):
    name = "blyi_py_methods_" + module.replace(".", "_")
    lines = ["PyMethodDef %s[] = {" % name]
    for row in spec.exported():
        if row.python.rpartition(".")[0] == module:
            function = ("blyi_py_" if row.form == "own" else "py_") + row.function
            lines.append('    {"%s", %s, METH_VARARGS,\n     "%s"},' % (
                row.python.rpartition(".")[2], function, doc_text(spec, row)))
    return lines + ["    {NULL, NULL, 0, NULL},", "};", ""]


def field_kind(spec, record, field):
    """Letter of a member, how many, and the record it is, if any."""
    array = re.match(r"(.*)\[(\w+)\]$", field.value)
    count = array.group(2) if array else "0"
    inner = spec.resolve(array.group(1) if array else field.value)
    if inner in RECORDS_IN + RECORDS_OUT:
        return "r", count, "&blyi_py_" + inner
    if inner == "char":
        return ("B" if (record, field.member) in BYTES_FIELDS else "t"), count, "NULL"
    small = {"uint8_t": "B", "unsigned char": "B", "uint16_t": "H"}
    if inner in small:
        return small[inner], count, "NULL"
    return spec.kind(inner).letter, count, "NULL"


def render_record(spec, name):
    plain_keys = name in RECORDS_IN
    lines = ["static const struct blyi_py_field fields_%s[] = {" % name]
    for field in spec.fields[name]:
        letter, count, record = field_kind(spec, name, field)
        key = field.member if plain_keys else snake(field.member)
        lines.append('    {"%s", %s, \'%s\', %s, %s},' % (key, field.offset, letter, count, record))
    return lines + ["    {NULL, 0, 0, 0, NULL},", "};",
                    'const struct blyi_py_record blyi_py_%s = {"%s", fields_%s, sizeof(%s)};' % (
                        name, name, name, name), ""]


def render_methods(spec):
    rows = spec.exported()
    lines = [gen_acl.BANNER.replace("gen_acl", "gen_pyacl") + "#include \"acl_module.h\"",
             "#include <base/acl_log.h>", ""]
    for name in RECORDS_IN + RECORDS_OUT:
        lines += render_record(spec, name)
    for row in rows:
        if row.form in ("generated", "quick"):
            lines += render_method(spec, row)
    for module in MODULES:
        lines += render_table(spec, module)
    return "\n".join(lines)


def render_constants(spec):
    """Every ACL_ name with a whole number, or a text, by the headers' own value."""
    names = [t.member for t in spec.c.types if t.kind == "enum"]
    names += [t.name for t in spec.c.types if t.kind == "macro" and not t.value.startswith('"')]
    names += [e.name for e in spec.c.errors]
    texts = [t.name for t in spec.c.types if t.kind == "macro" and t.value.startswith('"')]
    names = [n for n in collections.OrderedDict.fromkeys(names) if n.startswith("ACL_")]
    lines = [gen_acl.BANNER.replace("gen_acl", "gen_pyacl") + "#include \"acl_module.h\"", ""]
    lines += ["#include <%s>" % h.path for h in gen_acl.HEADERS if h.path.startswith("acl/")]
    lines += ["", "const struct blyi_py_constant blyi_py_constants[] = {"]
    lines += ['    {"%s", (long long)%s},' % (n, n) for n in names]
    lines += ["    {NULL, 0},", "};", "", "const struct blyi_py_text_constant blyi_py_texts[] = {"]
    lines += ['    {"%s", %s},' % (n, n) for n in texts if n.startswith("ACL_")]
    return "\n".join(lines + ["    {NULL, NULL},", "};", ""])


# ---------------------------------------------------------------- page

def render_page(spec):
    rows = spec.exported()
    named = [r for r in rows if r.python != "-"]
    lines = ["<!-- SPDX-License-Identifier: Apache-2.0 -->",
             "<!-- generated by scripts/gen_pyacl.py, do not edit -->",
             "# The Python module acl", "",
             "Every function of `libascendcl.so` with its Python call, or why there is none: %d of %d"
             % (len(named), len(rows)),
             "have one. [design/python.md](design/python.md) has the conventions.", "",
             "| function | Python |", "|---|---|"]
    for row in sorted(rows, key=lambda r: r.function.lower()):
        text = "none: " + row.detail if row.python == "-" else "`%s`" % call_text(spec, row)
        lines.append("| `%s` | %s |" % (row.function, text))
    lines += ["", "Of our own: `acl.profiler` ([design/python.md](design/python.md#aclprofiler)) with",
              "`start(what, path, stacks)`, `stop()`, `analyze()`, `report.top_mem_ops(n, by)`,",
              "`range_push(name)`, `range_pop()`, `mark(name)`, `tag(address, name)`, and",
              "`acl.PROFILER_MEMORY_EVENT`."]
    return "\n".join(lines) + "\n"


# ---------------------------------------------------------------- command

def run(args):
    spec = Spec()
    if args.methods:
        gen_acl.write_output(args.methods, render_methods(spec))
    elif args.constants:
        gen_acl.write_output(args.constants, render_constants(spec))
    else:
        spec.check()
        files = {PAGE: render_page(spec)}
        if not args.check:
            gen_acl.write(ROOT / PAGE, files[PAGE])
        elif gen_acl.stale_files(files):
            raise gen_acl.SpecError("stale, run scripts/gen_pyacl.py: " + PAGE)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="fail if a row or the page is stale")
    what.add_argument("--methods", type=pathlib.Path, metavar="FILE")
    what.add_argument("--constants", type=pathlib.Path, metavar="FILE")
    try:
        run(parser.parse_args())
    except gen_acl.SpecError as error:
        sys.exit("gen_pyacl.py: %s" % error)


if __name__ == "__main__":
    main()
