"""The Python example of README.md runs as it stands."""

import re
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def test_example_of_the_readme_passes():
    (example,) = re.findall(
        r"^```python\n(.*?)^```", README.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    names = {}
    exec(compile(example, README.name, "exec"), names)
    (run,) = (value for name, value in names.items() if name.startswith("test_"))
    run()
