"""Extended attributes of the files that the kernel knows.

Hides: that those of a removed file are no longer in the database but with its
node. Promises: whoever has a file open reads and changes its attributes after
its last name is gone as before. Refuses: names without a namespace that is
known, among them `system.posix_acl_*`, for lists that are not enforced would be
a lie, and names that are nothing but the namespace.
"""

import errno

from pyfuse3 import FUSEError

from geniuzfs.errors import NoSuchAttribute, UsageError
from geniuzfs.fs.inodes import Node
from geniuzfs.store import xattrs as stored

_NAMESPACES = (b"user.", b"trusted.", b"security.")


def check_name(name: bytes) -> None:
    """Raises FUSEError for a namespace that is not supported, UsageError for a bare one."""
    if not name.startswith(_NAMESPACES):
        raise FUSEError(errno.EOPNOTSUPP)
    if name in _NAMESPACES:
        raise UsageError("a name must follow the namespace")


def get(node: Node, name: bytes) -> bytes:
    """The value of one attribute. Raises NoSuchAttribute."""
    if not node.gone:
        return stored.get(node.volume.view, node.number, name)
    try:
        return node.xattrs[name]
    except KeyError:
        raise NoSuchAttribute(f"no attribute {name!r}") from None


def names(node: Node) -> list[bytes]:
    """The names of all attributes, in order."""
    return sorted(node.xattrs) if node.gone else stored.names(node.volume.view, node.number)


def put(node: Node, name: bytes, value: bytes, now_ns: int) -> None:
    """Set one attribute; ctime moves."""
    if node.gone:
        node.xattrs[name] = value
        _touch(node, now_ns)
        return
    with node.volume.database.txn() as txn:
        stored.put(txn, node.number, name, value, now_ns)


def remove(node: Node, name: bytes, now_ns: int) -> None:
    """Take one attribute away; ctime moves. Raises NoSuchAttribute."""
    if node.gone:
        if node.xattrs.pop(name, None) is None:
            raise NoSuchAttribute(f"no attribute {name!r}")
        _touch(node, now_ns)
        return
    with node.volume.database.txn() as txn:
        stored.remove(txn, node.number, name, now_ns)


def keep(node: Node) -> None:
    """Bring them all into memory before the row goes."""
    view, number = node.volume.view, node.number
    node.xattrs = {name: stored.get(view, number, name) for name in stored.names(view, number)}


def _touch(node: Node, now_ns: int) -> None:
    if node.attributes is not None:
        node.attributes.st_ctime_ns = now_ns
