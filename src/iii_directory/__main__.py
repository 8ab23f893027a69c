"""``python -m iii_directory`` is ``iii-directory``."""

from iii_directory.cli.main import main

main()
