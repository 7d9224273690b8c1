"""python -m geniuzfs"""

from geniuzfs.cli import main

main()
