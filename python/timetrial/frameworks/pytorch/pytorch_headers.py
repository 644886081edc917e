"""Where torch.compile() leaves the C++ headers that it compiles once: in the folder for temporary files,
whatever TORCHINDUCTOR_CACHE_DIR says (torch/_inductor/codecache.py, `_HEADER_DIR`, in 2.13)."""

import contextlib
import getpass
import os
import re
import tempfile

CACHE = "TORCHINDUCTOR_CACHE_DIR"


def keep_headers():
    """Before anything is compiled. A launch has a temporary folder of its own, in which a warm launch would
    compile them once more, for some seconds of its first step; so that folder leads into the cache."""
    cache = os.environ.get(CACHE)
    if cache is None:
        return
    own = os.path.join(cache, "temporary")
    os.makedirs(own, exist_ok=True)
    with contextlib.suppress(FileExistsError):  # a step of somebody's own may run in a folder that lasts
        os.symlink(own, os.path.join(tempfile.gettempdir(), "torchinductor_" + _user()))


def _user():
    """As torch names them (torch/_inductor/runtime/cache_dir_utils.py); a container may have none."""
    try:
        name = getpass.getuser()
    except (KeyError, ImportError, OSError):
        name = "uid_{}".format(os.getuid())
    return re.sub(r'[\\/:*?"<>|]', "_", name)
