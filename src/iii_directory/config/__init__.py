"""Settings: what an operator can decide, one table with every key, read from ``config.yaml``."""

from iii_directory.config.file import (
    default_document,
    home_folder,
    json_schema,
    load_settings,
    parse_settings,
    read_document,
    read_values,
    real_path,
    remote_schema,
    reread_settings,
    sample,
    user_skills_folder,
)
from iii_directory.config.model import (
    DEFAULT_REGISTRY_URL,
    DEFAULT_ROOTS,
    DEFAULT_URL,
    SURFACES,
    TOKEN_VARIABLE,
    Settings,
)
from iii_directory.config.origins import (
    CONFIGURATION_ID,
    REMOTE,
    InForce,
    Origin,
    at_next_start,
    in_force,
    set_on_engine,
)
from iii_directory.config.project import CONFIG_FILE, DATA_FOLDER, nearest_project
from iii_directory.config.table import BY_KEY, SETTINGS, Setting

__all__ = [
    "BY_KEY",
    "CONFIGURATION_ID",
    "CONFIG_FILE",
    "DATA_FOLDER",
    "DEFAULT_REGISTRY_URL",
    "DEFAULT_ROOTS",
    "DEFAULT_URL",
    "REMOTE",
    "SETTINGS",
    "SURFACES",
    "TOKEN_VARIABLE",
    "InForce",
    "Origin",
    "Setting",
    "Settings",
    "at_next_start",
    "default_document",
    "home_folder",
    "in_force",
    "json_schema",
    "load_settings",
    "nearest_project",
    "parse_settings",
    "read_document",
    "read_values",
    "real_path",
    "remote_schema",
    "reread_settings",
    "sample",
    "set_on_engine",
    "user_skills_folder",
]
