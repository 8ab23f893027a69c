"""Settings: what an operator can decide, one table with every key, read from ``config.yaml``."""

from iii_directory.config.file import (
    default_document,
    json_schema,
    load_settings,
    parse_settings,
    read_document,
    remote_schema,
    reread_settings,
    sample,
)
from iii_directory.config.model import (
    DEFAULT_REGISTRY_URL,
    DEFAULT_ROOTS,
    DEFAULT_URL,
    SURFACES,
    TOKEN_VARIABLE,
    Settings,
)
from iii_directory.config.table import BY_KEY, SETTINGS, Setting

__all__ = [
    "BY_KEY",
    "DEFAULT_REGISTRY_URL",
    "DEFAULT_ROOTS",
    "DEFAULT_URL",
    "SETTINGS",
    "SURFACES",
    "TOKEN_VARIABLE",
    "Setting",
    "Settings",
    "default_document",
    "json_schema",
    "load_settings",
    "parse_settings",
    "read_document",
    "remote_schema",
    "reread_settings",
    "sample",
]
