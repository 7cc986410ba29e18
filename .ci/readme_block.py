"""Print one of the command blocks under README's Quick start: 1 or 2."""

import re
import sys
from pathlib import Path

text = Path("README.md").read_text(encoding="utf-8")
section = text.split("## Quick start", 1)[1].split("\n## ", 1)[0]
blocks = re.findall(r"^```(?:bash|sh|console)\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
if len(blocks) != 2:
    sys.exit(f"Quick start has {len(blocks)} command blocks, not 2")
sys.stdout.write(blocks[int(sys.argv[1]) - 1])
