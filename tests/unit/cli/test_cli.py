"""What the command does before it runs anything."""

import os
import subprocess
import sys

COUNT_THREADS = """
import os, sys
from tuner.cli import main
sys.argv = ["tuner", "--help"]
try:
    main()
except SystemExit:
    import numpy, scipy.linalg
    print(len(os.listdir("/proc/self/task")), file=sys.stderr)
"""


def test_the_libraries_of_a_command_start_no_threads():
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}

    ran = subprocess.run(
        [sys.executable, "-c", COUNT_THREADS], env=environment, capture_output=True, text=True, check=False
    )

    assert ran.stderr == "1\n"
