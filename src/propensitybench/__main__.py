"""``python -m propensitybench``: the command line."""

from propensitybench.cli import main

if __name__ == "__main__":
    main()
