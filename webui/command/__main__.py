import sys

from command.main import main

sys.exit(main())
