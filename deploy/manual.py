#!/usr/bin/env python3
"""manual.py - the pages of the manual, from what the programs say of themselves: nothing in them is written twice.

    manual.py CHANGELOG.md FOLDER GIMBAL COORDINATOR WORKER

Writes gimbal.1, gimbal-job.5, gimbal-coordinator.8 and gimbal-worker.8 into FOLDER."""
import json
import pathlib
import re
import subprocess
import sys


def said(*line):
    return subprocess.run(line, stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout


def roff(text):
    """Plain text for a line of roff."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


def marked(text):
    """The same with flags as manuals have them, in lines as short as mandoc wants them."""
    lines = [""]
    for word in text.split():
        word = re.sub(r"(?<![\w-])(--?[a-zA-Z][\w-]*)", "\0B\\1\0R", word)
        word = roff(word).replace("\0", "\\f")
        if lines[-1] and len(lines[-1]) + 1 + len(word) > 80:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return "\n".join(lines)


class Page:
    """A page, section by section."""

    def __init__(self, name, section, release, about):
        number, date = release
        self.file = f"{name}.{section}"
        self.lines = [f'.TH {roff(name.upper())} {section} "{date}" "Gimbal {number}" "Gimbal\'s manual"']
        self.heading("NAME")
        self.lines.append(f"{roff(name)} \\- {roff(about)}")

    def heading(self, words):
        self.lines.append(f".SH {roff(words)}")

    def subheading(self, words):
        self.lines.append(f'.SS "{roff(words)}"')

    def text(self, words):
        if not self.lines[-1].startswith((".SH", ".SS", ".TP")):
            self.lines.append(".PP")
        self.lines.append(marked(words))

    def item(self, tag, words):
        self.lines += [".TP", tag, marked(words)]

    def see(self, *others):
        self.heading("SEE ALSO")
        self.lines += [f".BR {roff(name)} ({section}){',' if at + 1 < len(others) else ''}"
                       for at, (name, section) in enumerate(others)]

    def write(self, folder):
        (folder / self.file).write_text("\n".join(self.lines) + "\n")


def sections(help_text):
    """{"": [what is before the first heading], "Flags": [...]}"""
    found, current = {"": []}, ""
    for line in help_text.splitlines():
        if re.fullmatch(r"[A-Z][a-z ]+:", line):
            current = line[:-1]
            found[current] = []
        elif line.startswith(10 * " ") and found[current]: # what did not fit in the line before
            found[current][-1] += " " + line.strip()
        elif line.strip():
            found[current].append(line)
    return found


FLAG = re.compile(r"  (?:(-\w), |    )(--[\w-]+)( \S+|\[=\S+\])? +(\S.*)")


def flag_item(page, line):
    letter, name, value, words = FLAG.fullmatch(line).groups()
    tag = ", ".join(f"\\fB{roff(word)}\\fR" for word in (letter, name) if word)
    space = " " if value and value[0] == " " else ""
    page.item(tag + (f"{space}\\fI{roff(value.strip())}\\fR" if value else ""), words)


def name_and_summary(line):
    return re.fullmatch(r"  (\S+(?: [a-z-]+)?) {2,}(\S.*)", line).groups()


def command(page, program, name, common):
    """A command, and those below it. Flags that most commands have are only named."""
    parts = sections(said(program, "help", *name.split()))
    usage, summary, *more = parts[""]
    page.subheading(f"gimbal {name}")
    page.lines.append(f"\\fB{roff('gimbal ' + name)}\\fR\n{marked(usage.removeprefix(f'usage: gimbal {name}'))}")
    page.text(" ".join([summary, *more]))
    shared = [line for line in parts["Flags"] if FLAG.fullmatch(line)[2] in common]
    for line in parts["Flags"]:
        if line not in shared:
            flag_item(page, line)
    page.text("Also " + ", ".join(FLAG.fullmatch(line)[2] for line in shared) + ".")
    for line in parts.get("More", []):
        command(page, program, name_and_summary(line)[0], common)


def gimbal_page(release, program):
    page = Page("gimbal", 1, release, "train transformers on whatever machines there are")
    parts = sections(said(program, "--help"))
    common = {FLAG.fullmatch(line)[2] for line in parts["Flags of most commands"] if FLAG.fullmatch(line)}
    page.heading("SYNOPSIS")
    page.lines.append("\\fBgimbal\\fR \\fICOMMAND\\fR [\\fIFLAGS\\fR] [\\fIARGUMENTS\\fR]")
    page.heading("DESCRIPTION")
    page.text("Trains on this machine, plans for others, and commands a cluster: gimbal-coordinator(8) plans its jobs, "
              "and a gimbal-worker(8) on each node runs them. What is trained, and how, says a file: gimbal-job(5).")
    page.heading("FLAGS OF MOST COMMANDS")
    for line in parts["Flags of most commands"]:
        if FLAG.fullmatch(line):
            flag_item(page, line)
    page.heading("COMMANDS")
    for line in parts["Commands"]:
        command(page, program, name_and_summary(line)[0], common)
    page.heading("EXIT STATUS")
    for status in json.loads(said(program, "explain", "status", "-o", "json"))["statuses"]:
        page.item(f"\\fB{status['status']}\\fR", status["means"])
    page.see(("gimbal-job", 5), ("gimbal-coordinator", 8), ("gimbal-worker", 8))
    return page


def job_page(release, program):
    page = Page("gimbal-job", 5, release, "what is trained, and how")
    page.heading("DESCRIPTION")
    page.text("A job is a file in YAML, which gimbal(1) submits, plans or trains. These are its keys; a key with a "
              "dot is one of a section, as train.lr is lr below train.")
    page.heading("KEYS")
    for key in json.loads(said(program, "explain", "job", "-o", "json"))["keys"]:
        value = key["value"] + (f"; default {key['default']}" if "default" in key else "")
        page.item(f"\\fB{roff(key['key'])}\\fR ({roff(value)}{'; required' if key['required'] else ''})", key["about"])
    page.see(("gimbal", 1))
    return page


def daemon_page(release, name, program, about):
    """From a text whose flags are as the command line's, and may go on in further lines."""
    lines = sections(said(program, "--help"))[""]
    page = Page(name, 8, release, about)
    page.heading("SYNOPSIS")
    page.lines.append(f"\\fB{roff(name)}\\fR [\\fIFLAG\\fR ...]")
    first = next(at for at, line in enumerate(lines) if line.startswith("  "))
    last = max(at for at, line in enumerate(lines) if line.startswith("  ")) + 1
    page.heading("DESCRIPTION")
    page.text(" ".join(lines[1:first]).strip() or f"{about[0].upper()}{about[1:]}.")
    page.text(" ".join(lines[last:]).strip())
    page.heading("OPTIONS")
    for line in lines[first:last]:
        flag_item(page, line)
    page.heading("FILES")
    page.item(f"\\fI/etc/gimbal/{name.removeprefix('gimbal-')}.yaml\\fR", "the settings, where --config names no other")
    page.see(("gimbal", 1), ("gimbal-worker" if name.endswith("coordinator") else "gimbal-coordinator", 8))
    return page


def main():
    changelog, folder, gimbal, coordinator, worker = sys.argv[1:]
    release = re.search(r"(?m)^## (\d\S*) - (\S+)$", pathlib.Path(changelog).read_text()).groups()
    for page in (gimbal_page(release, gimbal), job_page(release, gimbal),
                 daemon_page(release, "gimbal-coordinator", coordinator,
                             "plans jobs, and tells workers what to run"),
                 daemon_page(release, "gimbal-worker", worker,
                             "offers a machine's devices, and runs jobs on them")):
        page.write(pathlib.Path(folder))


main()
