"""Define every limit on what a caller, a document or a peer can make grow or hold, with its reason. Pure.

The comment above a line, or above a few lines without a gap, is the reason for them, and the reference prints
it. A reason that begins with "Inner:" is for a limit that callers cannot meet, and is left out there.

Other modules define only their own intervals (how often they look, how long they pause between two tries) and
the numbers of a format. Every MAX_ constant is defined here, which ``tests/test_architecture.py`` checks.
"""

from __future__ import annotations

from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * KIB

# A configuration file is written by hand, a time in it is at most a day, and a person has few folders.
MAX_CONFIG_BYTES: Final = 64 * KIB
MAX_SETTING_MS: Final = 24 * 60 * 60 * 1000
MAX_ROOTS: Final = 16
# A shorter deadline would make every download and every write fail.
MIN_TIMEOUT_MS: Final = 1000
# Inner: how often a running worker checks its configuration file, with one system call each time.
CONFIG_LOOK_SECONDS: Final = 0.5

# Ids and bodies follow the rules of the first generation, so that both workers accept the same records.
MAX_ID_BYTES: Final = 1024
MAX_SEGMENT_CHARS: Final = 64
MAX_BODY_BYTES: Final = 256 * KIB

# A string in a call that is an id, a name, an address or a path is at most as long as a path may be.
MAX_NAME_FIELD_CHARS: Final = 4 * KIB
# A rendered prompt, with the values it is given, is at most as large as one fetch of documents.
MAX_RENDERED_CHARS: Final = 8 * MIB

# The Agent Skills standard limits the name, the description and the compatibility note of a skill.
MAX_SKILL_NAME_CHARS: Final = 64
MAX_SKILL_DESCRIPTION_CHARS: Final = 1024
MAX_COMPATIBILITY_CHARS: Final = 500
# The Agent Skills standard advises this size for a body; a token is estimated as so many characters.
ADVISED_BODY_LINES: Final = 500
ADVISED_BODY_TOKENS: Final = 5000
CHARS_PER_TOKEN: Final = 4
# The check of a skill looks for the names of its files in this much markdown, at four milliseconds a name.
MAX_CHECKED_CHARS: Final = 4 * MIB
# Usage counts keep this many rows, bytes and missed searches, and are written after so many seconds.
MAX_USAGE_ROWS: Final = 20_000
MAX_USAGE_BYTES: Final = 32 * MIB
MAX_USAGE_MISSES: Final = 1000
MAX_USAGE_NOTES: Final = 100_000
USAGE_SECONDS: Final = 0.8
# Every rule of the visibility setting is tried for each changed document.
MAX_VISIBILITY_RULES: Final = 1000
# Facts of a skill read this much of a file, and list so many rows of so many characters of each kind.
MAX_FACT_FILE_BYTES: Final = 1 * MIB
MAX_FACTS: Final = 200
MAX_FACT_CHARS: Final = 200
# What the operator accepted, of each kind; the newest are kept.
MAX_ACCEPTED_FACTS: Final = 1000
MAX_REASON_CHARS: Final = 1000

# Front matter that is larger or deeper is not metadata; parsing YAML stays under 5 ms.
MAX_FRONT_MATTER_BYTES: Final = 16 * KIB
MAX_FRONT_MATTER_DEPTH: Final = 8
MAX_FRONT_MATTER_VALUES: Final = 500
# Front matter that grows by more than this factor as JSON would make lists large; small ones are exempt.
MAX_FRONT_MATTER_GROWTH: Final = 4
SMALL_FRONT_MATTER_BYTES: Final = KIB

# A longer first paragraph is the document itself, and lists must stay lists.
MAX_DESCRIPTION_CHARS: Final = 4 * KIB
# An error repeats this much of the caller's words, and of another worker's failure.
QUOTED_CHARS: Final = 80
MAX_RELAYED_CHARS: Final = 300

# One fetch may name this many addresses, answer this many bytes, and read so many at once.
MAX_FETCH_URIS: Final = 100
MAX_FETCH_BYTES: Final = 8 * MIB
MAX_FETCHES_AT_ONCE: Final = 8

# A line of the tree index, and the whole worker index, which is made for system prompts.
INDEX_DESCRIPTION_CHARS: Final = 140
INDEX_BUDGET_BYTES: Final = 3000
# Every skill keeps this much of its description in the index; less would say nothing.
INDEX_LEAST_CHARS: Final = 40

# Ids do not reach deeper in practice, and a link cycle through mounts must end somewhere.
MAX_FOLDER_DEPTH: Final = 32
# Files and directories of one folder, skipped ones included: about 400 MB of metadata for documents.
MAX_FOLDER_ENTRIES: Final = 250_000
# Inner: a file changed this shortly before it was read may change again with the same times (git's racy
# rule); two seconds is the coarsest clock of a file system still in use, FAT's.
RACY_SECONDS: Final = 2
# Inner: how often a folder that cannot be watched is scanned in the background.
RESCAN_SECONDS: Final = 2.0
# Inner: the pause between two background rounds, so that a burst of changes causes a few rounds.
BURST_SECONDS: Final = 0.05

# Inner: edits on disk are announced together when none has come for the first time span, and at the latest
# after the second.
EDITS_QUIET_SECONDS: Final = 0.3
EDITS_LATEST_SECONDS: Final = 0.8
# Inner: how often a namespace under installation is checked again before its files count as edits; traces of
# an install may stay for long after a crash.
MAX_EDITS_POSTPONED: Final = 20

# Inner: names of workers that were connected, remembered to report who left; every caller may have a new
# name.
MAX_REMEMBERED_WORKERS: Final = 10_000

# Inner: findings that the log remembers, so that one that comes and goes is logged once.
MAX_LOGGED_FINDINGS: Final = 10_000

# Inner: bodies kept in memory for agents that read them again; other bodies are read from disk.
MAX_KEPT_BODY_CHARS: Final = 4 * MIB

# The overview made for a worker without documents is short; another call lists all functions.
MAX_OVERVIEW_FUNCTIONS: Final = 50

# One page of a file: a quarter of a megabyte is more than a model reads at once.
MAX_PAGE_BYTES: Final = 256 * KIB
# Inner: hashes kept of unchanged files, about 200 bytes each.
MAX_KEPT_DIGESTS: Final = 65_536

# "Did you mean" is a hint, not a listing.
MAX_SUGGESTIONS: Final = 3

# Search looks for the words of this much of a question; a longer one is a document of its own.
MAX_QUESTION_CHARS: Final = 2000
# A longer question is refused instead of being read in part; of the others this many words are used.
MAX_ASKED_CHARS: Final = 64 * KIB
MAX_QUESTION_WORDS: Final = 40
# Inner: a long question is also asked in its parts, which have so many words together: each costs up to a
# tenth of a millisecond for every kind of document.
MAX_WORDS_OF_PARTS: Final = 60
# One search answers this many requests, with so many rows of each kind and so many characters in all.
MAX_CAPABILITIES: Final = 8
MAX_SEARCH_HITS: Final = 25
MAX_ANSWER_CHARS: Final = 64 * KIB
# The beginning of a long body says what it is about; tokenising more takes over five milliseconds.
MAX_INDEXED_BODY_CHARS: Final = 64 * KIB
# The index that `iii-directory search` keeps on disk: three kilobytes for each document. Fewer than this
# are indexed again in a tenth of a second.
MAX_KEPT_INDEX_BYTES: Final = 256 * MIB
LEAST_KEPT_DOCUMENTS: Final = 100
# Inner: other words that may stand for one word of a question: two forms, a few continuations, a few
# synonyms.
MAX_ALTERNATIVES: Final = 12
# Inner: words for which an index remembers their alternatives, about a kilobyte each.
MAX_REMEMBERED_WORDS: Final = 1000
# Inner: postings are kept strongest first. Reading 200 of a word as written found as much as reading all, in
# two thirds of the time; of its alternatives 100 are read.
MAX_READ_POSTINGS: Final = 200
MAX_READ_SOFT_POSTINGS: Final = 100
# Inner: known words that start like an unknown one and are compared with it, a tenth of a microsecond each;
# and the continuations of a beginning.
MAX_SPELLING_CANDIDATES: Final = 10_000
MAX_CONTINUATIONS: Final = 100
# A question with more misspelt words than this is in another language.
MAX_CORRECTED_WORDS: Final = 8

# Bundles: what every MCP skills host must accept (SEP-2640).
MAX_BUNDLE_FILES: Final = 512
MAX_BUNDLE_BYTES: Final = 16 * MIB
# One page of the skills that an MCP host lists, with their front matter and the digests of their files.
MAX_MANIFEST_PAGE_SKILLS: Final = 100
MAX_MANIFEST_PAGE_BYTES: Final = MIB
# Every file system takes a name of this length, and such a path still fits below a long skills folder.
MAX_FILE_NAME_BYTES: Final = 255
MAX_BUNDLE_PATH_BYTES: Final = 1024
MAX_BUNDLE_DEPTH: Final = 16
# An install takes well under a second; a caller that waits this long for another one is refused.
INSTALL_LOCK_SECONDS: Final = 30.0
# Writes of skills that wait for their turn, each with its text; further ones are refused.
MAX_WRITES_AT_ONCE: Final = 64
# A larger file is shown by its size and hash, because its patch is too long for a terminal.
MAX_DIFF_BYTES: Final = 64 * KIB
# 1000 namespaces of 512 files take 60 KB each; a larger lock file is not ours.
MAX_LOCKFILE_BYTES: Final = 64 * MIB
# Inner: the journal of one install holds one entry of the lock file.
MAX_JOURNAL_BYTES: Final = MAX_LOCKFILE_BYTES

# Comparing this many equal lines takes some seconds of one thread.
MAX_MERGE_LINES: Final = 5000
# Unpacking an archive in a process of its own: 16 MiB of files take about 100 MiB and 0.2 s.
UNPACK_SECONDS: Final = 5
UNPACK_MEMORY_BYTES: Final = 192 * MIB
# An archive at an address or on this machine may hold a collection of skills.
MAX_PACKED_BYTES: Final = 10 * MIB
MAX_ARCHIVE_BYTES: Final = 25 * MIB
MAX_ARCHIVE_FILES: Final = 1000
# The plugins of a marketplace that are told apart; the largest public ones have about 100.
MAX_PLUGINS: Final = 500
# A path of a bundle fits four times; the standard library takes quadratic time over such a header.
MAX_ARCHIVE_HEADER_BYTES: Final = 4 * KIB
# Git fetches one commit without history; more than this on disk is not a collection of documents.
MAX_GIT_FETCH_BYTES: Final = 256 * MIB
# Inner: git's listing of a folder that a bundle can hold.
MAX_GIT_LISTING_BYTES: Final = 1 * MIB
# The names of all files of a commit, about a hundred thousand; and of git's last words those that say what
# failed.
MAX_GIT_TREE_BYTES: Final = 16 * MIB
MAX_GIT_ERROR_BYTES: Final = 16 * KIB
# Browsers and servers refuse longer addresses; a ref must fit a file name beside ".lock".
MAX_REPO_URL_CHARS: Final = 2048
MAX_REF_CHARS: Final = 244

# Registry: a page of rows, one worker's detail, and a whole bundle as escaped JSON.
MAX_REGISTRY_PAGE_BYTES: Final = 4 * MIB
MAX_REGISTRY_DETAIL_BYTES: Final = 8 * MIB
MAX_REGISTRY_BUNDLE_BYTES: Final = 2 * MAX_BUNDLE_BYTES + MIB
# A registry that has moved needs one or two redirects; more are a loop.
MAX_REDIRECTS: Final = 5
# A search, and a version or tag, that is longer is a mistake that would fill addresses.
MAX_REGISTRY_QUERY_CHARS: Final = 1024
MAX_VERSION_CHARS: Final = 128
# Inner: answers of the registry kept for registry_cache_ttl_ms, a few kilobytes each.
MAX_CACHED_ANSWERS: Final = 256
# Changed documents are indexed after so many seconds without a call, and at the latest after the second time
# span; a search that comes sooner indexes them at once.
INDEX_PAUSE_SECONDS: Final = 0.5
INDEX_LATEST_SECONDS: Final = 30.0
# Published workers that search remembers from earlier lists: more than the public registry has.
MAX_PUBLISHED_WORKERS: Final = 5000
# Inner: pages of the registry's list fetched in a row for search, at 20 workers a page; a registry that
# always names a next page ends here.
MAX_REGISTRY_PAGES: Final = 250
# Inner: most installed workers publish no skills, so the registry is not asked for them again before this.
ABSENT_WORKER_SECONDS: Final = 3600.0
# Inner: namespaces downloaded at the same time: enough to hide the network, few enough for a server.
PARALLEL_DOWNLOADS: Final = 4
# Downloads under way, waiting ones included; further callers are told to retry.
MAX_DOWNLOADS_AT_ONCE: Final = 16
# An own registry: a request must be complete by then, and so many connections, a thread each, are served.
REGISTRY_REQUEST_SECONDS: Final = 15.0
MAX_REGISTRY_CONNECTIONS: Final = 256
# An own registry: rows of a page, and the size of a worker.yaml that is still metadata.
REGISTRY_PAGE_ROWS: Final = 20
MAX_WORKER_YAML_BYTES: Final = 1 * MIB
# Schemas are nested a dozen levels deep; the YAML library's C half crashes at some depth.
MAX_WORKER_YAML_DEPTH: Final = 64
# Inner: a trigram similarity below this is noise; PostgreSQL's pg_trgm uses the same value.
MIN_SIMILARITY: Final = 0.3

# Inner: a late event, by milliseconds, must not bring back a registration that was deleted.
MAX_REMEMBERED_DELETIONS: Final = 10_000
# How often the directory checks its bindings and lists the state, besides following its events.
LOOK_SECONDS: Final = 60.0
# Directories that share the state publish the writes of this time span together; too many written keys are
# listed as a whole, once in the second time span.
HINT_BURST_SECONDS: Final = 0.02
HINTED_LOOK_SECONDS: Final = 1.0
# A write acknowledged this shortly before an engine died is repeated if the state has lost it, because real
# engines keep writes in memory for some seconds; older writes count as deleted.
REMEMBERED_WRITE_SECONDS: Final = 60.0
MAX_REMEMBERED_WRITES: Final = 10_000
# Inner: the pause between two rounds that register refused functions again, so that workers that come and go
# cause few questions.
OFFER_PAUSE_SECONDS: Final = 0.2
# Hints of written keys may be forged, so the state is asked: for this many keys one by one, in a tenth of a
# second; with more, everything is listed.
MAX_HINTS: Final = 256
# All records of one kind come in one answer of the state, which must fit a message with some room left.
MAX_REGISTERED_BYTES: Final = 60 * MIB

# WebSocket frames and messages have the limits of the real engine.
MAX_FRAME_BYTES: Final = 16 * MIB
MAX_MESSAGE_BYTES: Final = 64 * MIB
# serde_json refuses deeper documents; a deeper one could also exhaust our own encoder.
MAX_JSON_DEPTH: Final = 128
# Inner: a larger value of the state is kept and passed on as text, because parsing it would hold the event
# loop for a millisecond and more.
LARGE_VALUE_BYTES: Final = 64 * KIB
# Inner: calls of the state that wait behind a large value, each with its frame; a client that sends more is
# not read until some are done.
MAX_SLOW_STORE_WORK: Final = 32
# Inner: a larger frame is decoded a little at a time; up to this size decoding takes two milliseconds.
LONG_FRAME_BYTES: Final = 512 * KIB
# JSON that is parsed as a whole on the event loop: so many bytes, or commas and opening brackets, take about
# 25 ms. Larger values are passed on and kept unparsed. An answer to a worker inside the engine may be as
# large as a fetch of documents.
MAX_READ_BYTES: Final = 4 * MIB
MAX_READ_MARKS: Final = 200_000
MAX_READ_ANSWER_BYTES: Final = MAX_FETCH_BYTES + MIB
# Inner: long lists kept as text for the next caller, one of each kind there is.
KEPT_LISTS: Final = 4
# Inner: bytes written in one pass of the event loop to all clients with much to read, in less than half a
# millisecond.
WRITTEN_PER_TURN_BYTES: Final = 512 * KIB
# Unsent bytes after which a peer gets nothing more for the moment: what asyncio takes for a full socket.
FULL_BYTES: Final = 64 * KIB
# A client with more unsent bytes is disconnected: two of the largest messages, much less of events that it
# did not request. Past the total over all clients, those with the most unsent bytes are disconnected.
MAX_UNSENT_BYTES: Final = 2 * MAX_MESSAGE_BYTES
MAX_UNSENT_EVENT_BYTES: Final = 16 * MIB
MAX_TOTAL_UNSENT_BYTES: Final = 256 * MIB
# Registrations that a connection may queue before it announces itself; an SDK replays all its own at once.
MAX_QUEUED_REGISTRATIONS: Final = 10_000
# One connection may keep this much on the engine: a worker has some ten functions, a bridge some hundred
# bindings, and a registration is at most this long with its description and schemas.
MAX_CONNECTION_FUNCTIONS: Final = 10_000
MAX_CONNECTION_TRIGGER_TYPES: Final = 1_000
MAX_CONNECTION_BINDINGS: Final = 20_000
MAX_CONNECTION_NAMES: Final = 16
MAX_CONNECTION_BYTES: Final = 32 * MIB
MAX_REGISTRATION_ID_CHARS: Final = 1024
MAX_REGISTRATION_DESCRIPTION_CHARS: Final = 16 * KIB
MAX_REGISTRATION_BYTES: Final = 512 * KIB
# Calls that one connection may wait for at once; each takes about 1 KB, because its payload is not kept.
MAX_PENDING_CALLS: Final = 20_000
# Events that one worker may leave unanswered before the engine stops counting them.
MAX_UNANSWERED_EVENTS: Final = 10_000
# The W3C's own limit for baggage; longer traces are not passed on.
MAX_TRACE_CHARS: Final = 8 * KIB
# Bindings made by a call, and channels, outlive the connection that made them.
MAX_DURABLE_BINDINGS: Final = 10_000
MAX_CHANNELS: Final = 10_000
MAX_CONNECTION_CHANNELS: Final = 1_000
# A message that comes in pieces may take so long, and all unfinished ones together hold so many bytes.
MESSAGE_SECONDS: Final = 60.0
MAX_UNFINISHED_BYTES: Final = 512 * MIB
# Sockets of the engine's listener; fewer where the system allows the process fewer files.
MAX_ENGINE_CONNECTIONS: Final = 10_000
# Inner: files left for documents, git, the database and the log when all sockets are taken.
RESERVED_FILES: Final = 256
# Inner: log lines about the mistakes of one connection; a last line says that further ones are left out.
MAX_CONNECTION_LOG_LINES: Final = 20
# Inner: of those lines, the ones with a traceback, about thirty lines each; and the callers whose failures
# are counted at a time.
MAX_CONNECTION_TRACEBACKS: Final = 3
MAX_COUNTED_CALLERS: Final = 1000
# A shorter token can be guessed; a generated one is some forty characters in a file.
MIN_TOKEN_CHARS: Final = 16
MAX_TOKEN_FILE_BYTES: Final = 1 * KIB
# A connection without a handshake holds a place that other clients could have.
HANDSHAKE_SECONDS: Final = 10.0
# A close frame may stay unanswered for so long, and a client with unsent bytes may read nothing for so long.
CLOSE_SECONDS: Final = 5.0
STALL_SECONDS: Final = 60.0
# When this process leaves, it waits this long for the answer to its close frame: a running engine answers in
# milliseconds, and a person waits for the process to end.
LEAVE_SECONDS: Final = 1.0
# To an engine over a socket, a message larger than a frame goes in pieces of this size, as in the SDKs; an
# engine that is silent for so many seconds is pinged, and after as many again counts as gone.
FRAGMENT_BYTES: Final = 1 * MIB
KEEP_ALIVE_SECONDS: Final = 20.0
# An unreachable engine is tried again after the first time span, then after twice as long each time up to the
# second: soon enough for a restart, seldom enough for a machine that sleeps.
FIRST_RECONNECT_SECONDS: Final = 0.25
LONGEST_RECONNECT_SECONDS: Final = 5.0
# A worker may take so long after a connect to load what it needs before its functions are offered without:
# longer than a state that answers at all, shorter than callers wait.
CONNECTED_SECONDS: Final = 15.0
# A new connection may take so long to name its namespace, and the owner of a trigger type to answer a
# binding; as on the real engine.
NAMESPACE_GRACE_SECONDS: Final = 5.0
TRIGGER_ACK_SECONDS: Final = 10.0
# Events about functions are collected this long, so that a worker with 40 functions causes one event.
FUNCTIONS_EVENT_SECONDS: Final = 0.2
# A channel ends when one of its sides does not come in time, and holds so many messages: at most, and by
# default; as on the real engine.
CHANNEL_IDLE_SECONDS: Final = 300.0
MAX_CHANNEL_BUFFER: Final = 1024
DEFAULT_CHANNEL_BUFFER: Final = 64
# A list shows this much of a worker's own description: one line.
MAX_NAME_CHARS: Final = 280
# Inner: names of workers that were seen, so that one that comes back is not news; every bridge has a new one.
MAX_SEEN_WORKERS: Final = 4096
# Inner: a line of the engine's log; a client's text there can be as long as a message.
MAX_LOG_CHARS: Final = 2000
# Inner: failures of calls without a waiting caller, each logged once to keep the log readable.
MAX_TOLD_FAILURES: Final = 256
# Events that events cause within the engine, such as a deletion bound to a deletion: more than a sensible
# chain, few enough for the stack and for other callers.
MAX_EVENT_DEPTH: Final = 16
MAX_NESTED_EVENTS: Final = 100
# Operations of one update, and the characters that appending to strings may copy on the way.
MAX_STATE_OPS: Final = 10_000
MAX_STATE_COPIED_CHARS: Final = 64 * MIB
# All values of a scope come in one answer, which must fit a message with some room left.
MAX_STATE_LIST_BYTES: Final = 62 * MIB
# Paths and merged objects of an update have the limits of the real engine, which its callers know.
MAX_STATE_PATH_DEPTH: Final = 32
MAX_STATE_SEGMENT_BYTES: Final = 256
MAX_STATE_MERGE_KEYS: Final = 1024
MAX_STATE_MERGE_DEPTH: Final = 16
# Functions described in one call, and the characters of a binding's config in lists; as on the real engine.
MAX_FUNCTION_BATCH: Final = 32
CONFIG_SUMMARY_CHARS: Final = 80
# Checking a value against its schema may hold the event loop for about 50 ms, counted in steps of a pattern
# of about a microsecond; applying one schema within another counts as twenty-five.
MAX_SCHEMA_STEPS: Final = 50_000
STEPS_PER_SUBSCHEMA: Final = 25
# Settings are a page, and their schemas a few; larger ones are not checked.
MAX_CHECKED_SCHEMA_BYTES: Final = 128 * KIB
MAX_CHECKED_VALUE_BYTES: Final = 256 * KIB
# A longer pattern was not written by a person; .{1,4096} was, and takes two steps for every character.
MAX_PATTERN_CHARS: Final = 4 * KIB
MAX_PATTERN_STEPS: Final = 10_000

# A request may carry a skill to register, as escaped JSON, several times over; sessions of 2025 clients hold
# memory until they end or idle out, and hosts open one or two each.
MAX_MCP_BODY_BYTES: Final = 4 * MIB
MAX_MCP_SESSIONS: Final = 1000
MCP_SESSION_IDLE_SECONDS: Final = 30 * 60.0
# Sessions of one client, which is a user of this machine or a remote address, so that one client cannot take
# all.
MAX_CLIENT_MCP_SESSIONS: Final = 250
# A request must be complete by then; a silent connection holds a place that other clients could have.
MCP_REQUEST_SECONDS: Final = 15.0
# Connections at once, including streams that only wait for news.
MAX_MCP_CONNECTIONS: Final = 4 * MAX_MCP_SESSIONS
# Resources that clients subscribe to; each is read again after every change.
MAX_MCP_SUBSCRIPTIONS: Final = 1000
# One page of a list for a model: about 3,000 tokens of skills, or 6,000 of documents, and one line of each.
MAX_LISTED_CHARS: Final = 11_000
MAX_LISTED_DOCUMENT_CHARS: Final = 2 * MAX_LISTED_CHARS
MAX_LIST_DESCRIPTION_CHARS: Final = 160
# All bodies of /llms-full.txt together.
MAX_LLMS_BYTES: Final = 4 * MIB
# Every known MCP client takes a tool name of this length.
MAX_TOOL_NAME_CHARS: Final = 64
# A tool in a list: a text that a model reads before it calls, and a schema that a client still shows.
MAX_TOOL_DESCRIPTION_CHARS: Final = 4 * KIB
MAX_TOOL_SCHEMA_CHARS: Final = 64 * KIB
# The protocol's own limit of values in one completion.
MAX_COMPLETIONS: Final = 100
# An error is one sentence for a model; of another worker's failure no more than this is passed on.
MAX_MCP_ERROR_CHARS: Final = 2000
# How long a request waits for an unreachable engine before it is refused.
MCP_ENGINE_SECONDS: Final = 2.0
# How long a request waits for the directory of the bridge's own folder, which reads the whole folder.
MCP_START_SECONDS: Final = 60.0
# After a connect workers are still coming back; until then a missing function may only be late.
MCP_SETTLE_SECONDS: Final = 10.0
# One try of a read, in which a section or a prompt may take its own ten seconds; two more tries follow.
MCP_READ_SECONDS: Final = 15.0
# A download, or a function of another worker, may take this long.
MCP_WORK_SECONDS: Final = 600.0
# How often a client that asked for progress is told that the work goes on.
MCP_PROGRESS_SECONDS: Final = 1.0
# Inner: changes that come together are announced together: a download of 200 skills is one notification.
MCP_BURST_SECONDS: Final = 0.05

# The id and the name of a worker, as they are stored with the documents it registered.
MAX_WORKER_NAME_CHARS: Final = 256
# How long a registration waits for the engine to list the caller's name, once for each connection.
NAME_SECONDS: Final = 0.25
# A mark in an index shows this much of the worker or the address that a document comes from.
MAX_MARKED_NAME_CHARS: Final = 48

# A running directory's file for other processes: four paths and addresses, some settings.
MAX_RUN_FILE_BYTES: Final = 16 * KIB

# Documents that are listed as linking to one, and links kept of one document: a longer list is not read, and
# a document full of links must not fill the memory.
MAX_LINKING_DOCUMENTS: Final = 200
MAX_LINKS_OF_DOCUMENT: Final = 256
# The web page renders this much of one document; the rest is a click away as the raw file.
MAX_PAGE_MARKDOWN_CHARS: Final = 512 * KIB
# A form of the web page carries a token and the arguments of a prompt.
MAX_PAGE_FORM_BYTES: Final = 256 * KIB
# Browser tabs that follow changes at once.
MAX_PAGE_STREAMS: Final = 256
# How often an open stream of changes is written to, so that a closed browser is noticed.
PAGE_HEARTBEAT_SECONDS: Final = 15.0
