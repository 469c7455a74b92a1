# SPDX-License-Identifier: Apache-2.0
"""State that was written by earlier releases, one folder for each state format."""

from pathlib import Path

FOLDERS = sorted(Path(__file__).parent.glob("format-*"))
