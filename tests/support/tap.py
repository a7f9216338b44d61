"""tap.py - what a test in Python does besides testing: run its cases, and count them as TAP.

Importing it clears what the user has set of ours (GIMBAL_...): a test sets those variables that it is about. What
was measured of the machine is shared by all tests of a build folder.

A test is a function that returns, or raises AssertionError with the words; one that stands for
several cases is given as (name, function)."""
import os
import sys
import traceback

for name in [name for name in os.environ if name.startswith("GIMBAL_") and not name.startswith("GIMBAL_TEST_")]:
    del os.environ[name]
if "GIMBAL_TEST_PROFILES" in os.environ:
    os.environ["GIMBAL_PROFILE_CACHE"] = os.environ["GIMBAL_TEST_PROFILES"]


def skip(what, reason):
    """Say why nothing is tested here, and leave as Meson's "skipped"."""
    print(f"skip {what}: {reason}")
    sys.exit(77)


def run(cases):
    failed = 0
    for number, case in enumerate(cases, 1):
        name, function = case if isinstance(case, tuple) else (case.__name__, case)
        try:
            function()
            print(f"ok {number} - {name}", flush=True)
        except Exception as error:  # any, so that the others are run
            failed += 1
            print(f"not ok {number} - {name}", flush=True)
            print(error if isinstance(error, AssertionError) else traceback.format_exc())
    print(f"1..{len(cases)}")
    return 1 if failed else 0
