"""Makes `tools` importable: it is not installed, and `python -P` does not search this repository."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

TOOLS = Path(__file__).parents[2] / "tools"

if "tools" not in sys.modules:
    spec = spec_from_file_location("tools", TOOLS / "__init__.py", submodule_search_locations=[str(TOOLS)])
    sys.modules["tools"] = module_from_spec(spec)
