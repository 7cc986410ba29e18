"""`python -m seawall`: the command line, for where scripts are not on the path."""

from seawall.edges.cli import main

if __name__ == "__main__":
    main()
