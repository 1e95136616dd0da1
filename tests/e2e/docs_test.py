"""README and docs against the program: flags, options and their defaults, links, snippets, keys of a run's files."""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import textwrap
import unittest

SOURCE = pathlib.Path(os.environ["HKT_SOURCE_DIR"])
PROGRAM = os.environ["HKT_PROGRAM"]
PAGES = [SOURCE / "README.md", SOURCE / "CONTRIBUTING.md", *sorted((SOURCE / "docs").glob("*.md"))]
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
# Flags of other programs that the pages name.
FOREIGN = {"--build", "--install", "--prefix", "--output-on-failure", "--no-x", "--logdir"}


def hkt(*args):
    done = subprocess.run([PROGRAM, *args], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 0, f"hkt {' '.join(args)}: {done.stderr}"
    return done.stdout


def commands(path=()):
    """Every command with its help, found by asking for help."""
    text = hkt(*path, "--help")
    yield path, text
    _, found, listing = text.partition("Subcommands:\n")
    for name in re.findall(r"^  (\w[\w-]*)", listing, re.M) if found else []:
        yield from commands((*path, name))


def table_rows(text):
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]


def options():
    """Name -> default as written in config.h ('' for a string without one, None for an optional)."""
    header = (SOURCE / "hkt/base/config.h").read_text()
    result = {}
    for name in re.findall(r'\bv\("(\w+)"', header):
        field = re.search(rf"^  (\S+) {name}(?: = (.*))?;", header, re.M)
        result[name] = None if field[1].startswith("std::optional") else (field[2] or "").strip('"')
    return result


def anchors(page):
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


class DocsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.help = dict(commands())
        cls.text = {page: page.read_text() for page in PAGES}

    def page(self, name):
        return self.text[SOURCE / "docs" / name]

    def test_every_command_has_a_section(self):
        headings = re.findall(r"^#+ `hkt ([^`]*?)`$", self.page("cli.md"), re.M)
        expected = {" ".join(path) for path in self.help if path and path not in [("bench",), ("data",)]}
        self.assertEqual({re.sub(r" [A-Z].*| -.*", "", h) for h in headings}, expected)

    def test_every_flag_of_the_program_is_documented(self):
        self.assertGreater(len(self.help), 6)
        documented = set(FLAG.findall(self.page("cli.md") + self.page("training.md")))
        for path, text in self.help.items():
            missing = {f for f in FLAG.findall(text) if not f.startswith("--no-")} - documented
            self.assertFalse(missing, f"hkt {' '.join(path)}")

    def test_every_flag_in_the_pages_exists(self):
        known = set(FLAG.findall(" ".join(self.help.values())))
        named = {flag: page.name for page, text in self.text.items() for flag in FLAG.findall(text)}
        unknown = {flag: page for flag, page in named.items() if flag not in known | FOREIGN}
        self.assertFalse(unknown)
        self.assertFalse(FOREIGN - set(named), "no page names these any more")

    def test_every_option_stands_in_training_with_its_default(self):
        rows = {row[0]: row[1] for row in table_rows(self.page("training.md")) if row[0].startswith("`--")}
        expected = options()
        self.assertGreater(len(expected), 30)
        self.assertEqual(set(rows), {f"`--{name.replace('_', '-')}`" for name in expected})
        for name, default in expected.items():
            written = rows[f"`--{name.replace('_', '-')}`"].strip("`")
            if default is None:  # optional: says in words what decides
                self.assertRegex(written, r"^[a-z]", name)
            elif re.fullmatch(r"[\d.e+-]+", default):
                self.assertEqual(float(written), float(default), name)
            else:
                self.assertEqual(written, default, name)

    def test_defaults_in_help_are_those_of_the_options(self):
        text = self.help[("train",)]
        for name, default in options().items():
            flag = f"--{name.replace('_', '-')}"
            self.assertIn(flag, FLAG.findall(text))
            if default and default not in ("true", "false"):
                shown = re.search(rf"{flag} \w+=(\S+)", text)
                self.assertIsNotNone(shown, flag)
                number = re.match(r"[\d.]", default)
                self.assertEqual(float(shown[1]) if number else shown[1], float(default) if number else default, flag)

    def test_links_resolve(self):
        count = 0
        for page, text in self.text.items():
            for target in re.findall(r"\]\(([^)\s]+)\)", text):
                if re.match(r"[a-z]+:", target):
                    continue
                path, _, anchor = target.partition("#")
                file = (page.parent / path).resolve() if path else page
                self.assertTrue(file.exists(), f"{page.name}: {target}")
                if anchor:
                    self.assertIn(anchor, anchors(file), f"{page.name}: {target}")
                count += 1
        self.assertGreater(count, 20)

    def test_make_targets_exist(self):
        makefile = (SOURCE / "Makefile").read_text()
        for page, text in self.text.items():
            for target in re.findall(r"(?:`|^|&& )make ([a-z-]+)", text, re.M):
                self.assertRegex(makefile, rf"(?m)^{target}:", f"{page.name}: make {target}")

    def test_snippets_are_those_of_the_example(self):
        example = SOURCE / "examples" / "cpp"
        whole = {"cpp": (example / "main.cc").read_text(), "cmake": (example / "CMakeLists.txt").read_text()}
        found = 0
        for page, text in self.text.items():
            for kind, code in re.findall(r"^```(cpp|cmake)\n(.*?)^```", text, re.M | re.S):
                found += 1
                self.assertTrue(code in whole[kind] or textwrap.indent(code, "  ") in whole[kind], f"{page.name}:\n{code}")
        self.assertGreaterEqual(found, 2)

    def test_keys_of_a_run_are_documented(self):
        documented = set(re.findall(r"`(\w+)`", self.page("run-folder.md")))
        with tempfile.TemporaryDirectory(prefix="hkt-docs-") as folder:
            run = pathlib.Path(folder) / "run"
            hkt("train", "--preset", "tiny", "--steps", "2", "--log-every", "1", "--d-model", "8", "--d-ff", "8", "--quiet", "--out", str(run))
            hkt("eval", str(run), "--json")
            written = {p.name for p in run.iterdir() if not p.name.startswith(".")}
            self.assertFalse({name for name in written if f"`{name}`" not in self.page("run-folder.md")})
            lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
            self.assertEqual({line["kind"] for line in lines}, {"train", "eval", "end"})
            keys = set().union(*lines, json.loads((run / "eval.json").read_text()))
            self.assertFalse(keys - documented)
            config = json.loads((run / "config.json").read_text())
            self.assertEqual(set(config) - {"hkt_version"}, set(options()))

    def test_tests_named_in_the_theory_exist(self):
        tests, programs = set(), set()
        for path in SOURCE.glob("hkt/*/*_test.cc"):
            programs.add(f"{path.parent.name}_{path.stem}")
            tests |= set(re.findall(r"^TEST(?:_F|_P)?\((\w+), (\w+)\)", path.read_text(), re.M))
        suites, suite, count = {name for name, _ in tests}, None, 0
        for token in re.findall(r"`([A-Z]\w*\.[\w*]+|\.[A-Z]\w+|[a-z]+_\w+_test)`", self.page("theory.md")):
            if "." not in token:
                self.assertIn(token, programs)
                continue
            suite, name = token.split(".")[0] or suite, token.split(".")[1]
            found = suite in suites if name == "*" else any(a == suite and re.fullmatch(name.replace("*", r"\w*"), b) for a, b in tests)
            self.assertTrue(found, token)
            count += 1
        self.assertGreater(count, 50)

    def test_version_of_the_citation(self):
        version = (SOURCE / "VERSION").read_text().strip()
        self.assertRegex((SOURCE / "CITATION.cff").read_text(), rf"(?m)^version: {re.escape(version)}$")


if __name__ == "__main__":
    unittest.main()
