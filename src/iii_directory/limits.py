"""Every number that bounds something, with its reason. Nothing else in the code invents a limit."""

from __future__ import annotations

from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * KIB

# Ids and bodies: the first generation's rules, kept so that both workers accept the same records.
MAX_ID_BYTES: Final = 1024
MAX_SEGMENT_CHARS: Final = 64
MAX_BODY_BYTES: Final = 256 * KIB

# Front matter larger or deeper than this is not metadata; YAML parse time stays under 5 ms.
MAX_FRONT_MATTER_BYTES: Final = 16 * KIB
MAX_FRONT_MATTER_DEPTH: Final = 8

# A teaser line in the tree index; and the whole worker index, meant for system prompts.
INDEX_DESCRIPTION_CHARS: Final = 140
INDEX_BUDGET_BYTES: Final = 3000

# "Did you mean" is a hint, not a listing.
MAX_SUGGESTIONS: Final = 3

# Bundles: what every MCP skills host must accept (SEP-2640).
MAX_BUNDLE_FILES: Final = 512
MAX_BUNDLE_BYTES: Final = 16 * MIB

# WebSocket: the real engine's own limits, so that what passes there passes here.
MAX_FRAME_BYTES: Final = 16 * MIB
MAX_MESSAGE_BYTES: Final = 64 * MIB
# serde_json refuses deeper documents; a deeper one could also exhaust our own encoder.
MAX_JSON_DEPTH: Final = 128
# Unsent bytes to one peer after which it counts as gone: two of the largest messages.
MAX_UNSENT_BYTES: Final = 2 * MAX_MESSAGE_BYTES
# Registrations a connection may queue before it says who it is; an SDK replays all of its own at once.
MAX_QUEUED_REGISTRATIONS: Final = 10_000
HANDSHAKE_SECONDS: Final = 10.0
NAMESPACE_GRACE_SECONDS: Final = 5.0
TRIGGER_ACK_SECONDS: Final = 10.0
# Events about functions are gathered this long, so that a worker with 40 functions makes one event.
FUNCTIONS_EVENT_SECONDS: Final = 0.2
CHANNEL_IDLE_SECONDS: Final = 300.0
MAX_CHANNEL_BUFFER: Final = 1024
DEFAULT_CHANNEL_BUFFER: Final = 64
MAX_NAME_CHARS: Final = 280
