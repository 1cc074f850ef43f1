"""Output files: there complete or not at all."""

import os
import tempfile
from pathlib import Path

__all__ = ["write_whole"]


def write_whole(path: Path, content: bytes | str) -> None:
    """Write a file so that it is there complete or not at all; what was there before stays if this fails."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".part-")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)  # temporary files are private
        os.replace(temporary, path)
    except OSError as error:
        error.filename = str(path)  # not the temporary name, which says nothing to the user
        raise
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
