"""The console of the box: shows on every terminal what an admin needs first, again whenever it changes.

    python3 -m console TERMINAL …

There is no shell behind it. A number and the return key choose from the menu.
"""

import sys

from console.loop import main

if __name__ == "__main__":
    main(sys.argv[1:])
