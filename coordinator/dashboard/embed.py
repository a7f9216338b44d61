#!/usr/bin/env python3
"""embed.py - the dashboard's files as rows of a table of pages: a header of C on stdout.

    embed.py FILE ...

index.html is the page "/", any other is by its name. They hold nothing of the cluster, so that they
are for everybody; what they ask for is not."""
import pathlib
import sys

TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
         ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}


def literal(data):
    lines = (data[i:i + 24] for i in range(0, len(data), 24))
    return ",\n    ".join(",".join(str(byte) for byte in line) for line in lines)


def main():
    rows = []
    print("/* What embed.py made of coordinator/dashboard. */")
    for path in map(pathlib.Path, sys.argv[1:]):
        name = "dashboard_" + path.name.replace(".", "_")
        place = "/" if path.name == "index.html" else "/" + path.name
        print(f"static const unsigned char {name}[] = {{\n    {literal(path.read_bytes())}}};")
        rows.append(f'{{"{place}", "{TYPES[path.suffix]}", .open = true, .bytes = {name}, .size = sizeof {name}}}')
    print("#define DASHBOARD \\\n    " + ", \\\n    ".join(rows))


main()
