"""Print the OpenAPI description, as a server has it at /api/openapi.json, without a server.

`make page-types` generates the web UI's types from it.
"""

from __future__ import annotations

import json
import sys

from dragoman.server.app import routes
from dragoman.server.routes import people


def main() -> None:
    app = routes()
    app.router.routes.extend(people.sign_in.routes)
    json.dump(app.openapi(), sys.stdout, indent=2, ensure_ascii=False)


if __name__ == "__main__":
    main()
