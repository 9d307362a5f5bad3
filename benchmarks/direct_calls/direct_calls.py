"""Print the CPU seconds per call of an assignor of the Python driver, without JSON.

Usage: python -c SOURCE DIRECTORY PACKAGE REQUEST_FILE CALLS
"""

import importlib
import json
import logging
import sys
import time
from pathlib import Path


def _main() -> None:
    directory, package, request_file, calls_text = sys.argv[1:]
    sys.path.insert(0, directory)
    logging.disable(logging.CRITICAL)
    library = importlib.import_module("driver").PythonLibrary(package)
    request = json.loads(Path(request_file).read_text())
    calls = int(calls_text)
    start = time.process_time()
    for _ in range(calls):
        library.assign(request["assignor"], request["group"])
    print((time.process_time() - start) / calls)


if __name__ == "__main__":
    _main()
