"""Every bound on what a caller, a document or a peer can make grow or hold, with its reason. Pure.

The comment above a line, or above a few lines without a gap, is their reason, and the reference prints it;
one that begins with "Inner:" is about something nobody outside can meet, and is left out there.

Elsewhere stand only a module's own pace (how often it looks, how long it pauses between two tries) and the
numbers of a format. Whatever is called MAX_ something is defined here; ``tests/test_architecture.py`` looks.
"""

from __future__ import annotations

from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * KIB

# A configuration is written by hand; a time in it is at most a day, and a person has a handful of folders.
MAX_CONFIG_BYTES: Final = 64 * KIB
MAX_SETTING_MS: Final = 24 * 60 * 60 * 1000
MAX_ROOTS: Final = 16
# With a shorter deadline every download and every write would fail.
MIN_TIMEOUT_MS: Final = 1000
# Inner: how often a worker that runs looks whether its configuration changed; one call of the system each.
CONFIG_LOOK_SECONDS: Final = 0.5

# Ids and bodies: the first generation's rules, kept so that both workers accept the same records.
MAX_ID_BYTES: Final = 1024
MAX_SEGMENT_CHARS: Final = 64
MAX_BODY_BYTES: Final = 256 * KIB

# A string that somebody calls with and that is an id, a name, an address or a path: as long as a path may be.
MAX_NAME_FIELD_CHARS: Final = 4 * KIB
# What comes of the template of a prompt and the values it is given; as much as a fetch of documents.
MAX_RENDERED_CHARS: Final = 8 * MIB

# What the Agent Skills standard lets a skill be called, say of itself, and ask for.
MAX_SKILL_NAME_CHARS: Final = 64
MAX_SKILL_DESCRIPTION_CHARS: Final = 1024
MAX_COMPATIBILITY_CHARS: Final = 500
# What it advises for a body that is read whole; and how many characters are counted as a token, an estimate.
ADVISED_BODY_LINES: Final = 500
ADVISED_BODY_TOKENS: Final = 5000
CHARS_PER_TOKEN: Final = 4
# Markdown of one skill in which the check looks for the names of its files: four milliseconds a name.
MAX_CHECKED_CHARS: Final = 4 * MIB
# Usage: rows of skills and days that are kept, the file with them, searches that found nothing, calls that
# may wait to be counted, and the seconds after which they are counted and written.
MAX_USAGE_ROWS: Final = 20_000
MAX_USAGE_BYTES: Final = 32 * MIB
MAX_USAGE_MISSES: Final = 1000
MAX_USAGE_NOTES: Final = 100_000
USAGE_SECONDS: Final = 0.8
# Rules of the table of visibility: a look at a changed document tries each.
MAX_VISIBILITY_RULES: Final = 1000
# Facts of a skill: bytes of a file that are read, rows of each kind in a reply, and characters of a row.
MAX_FACT_FILE_BYTES: Final = 1 * MIB
MAX_FACTS: Final = 200
MAX_FACT_CHARS: Final = 200

# Front matter larger or deeper than this is not metadata; YAML parse time stays under 5 ms.
MAX_FRONT_MATTER_BYTES: Final = 16 * KIB
MAX_FRONT_MATTER_DEPTH: Final = 8
MAX_FRONT_MATTER_VALUES: Final = 500
# What is written short and becomes long as JSON is a bomb for whoever lists it, or would be in larger ones.
MAX_FRONT_MATTER_GROWTH: Final = 4
SMALL_FRONT_MATTER_BYTES: Final = KIB

# A first paragraph longer than this is the document itself; lists must stay lists.
MAX_DESCRIPTION_CHARS: Final = 4 * KIB
# What an error repeats of a caller's own words, and of what another worker said when it failed.
QUOTED_CHARS: Final = 80
MAX_RELAYED_CHARS: Final = 300

# One fetch: the addresses it may name, the bytes of all their texts together, and how many it reads at once.
MAX_FETCH_URIS: Final = 100
MAX_FETCH_BYTES: Final = 8 * MIB
MAX_FETCHES_AT_ONCE: Final = 8

# A teaser line in the tree index; and the whole worker index, meant for system prompts.
INDEX_DESCRIPTION_CHARS: Final = 140
INDEX_BUDGET_BYTES: Final = 3000
# What every skill has of its description in the index, however many there are; less says nothing.
INDEX_LEAST_CHARS: Final = 40

# The folder: ids reach no deeper than this in practice, and a link cycle through mounts must end somewhere.
MAX_FOLDER_DEPTH: Final = 32
# Files and directories of one folder, skipped ones too; about 400 MB of metadata if all were documents.
MAX_FOLDER_ENTRIES: Final = 250_000
# Inner: a file changed this shortly before it was read may change again without its times telling (git's racy
# rule; two seconds is the coarsest clock of a file system still in use, FAT's).
RACY_SECONDS: Final = 2
# Inner: how often a folder that cannot be watched is looked at in the background.
RESCAN_SECONDS: Final = 2.0
# Inner: between two rounds in the background, so that a burst of changes is a few rounds and not one a file.
BURST_SECONDS: Final = 0.05

# Inner: edits on disk are told of together once nothing more has come for a moment, and at the latest within
# a second of the first.
EDITS_QUIET_SECONDS: Final = 0.3
EDITS_LATEST_SECONDS: Final = 0.8
# Inner: how often a namespace that somebody is installing into is looked at again before its files count as
# edits; after a crash the traces of an install may stay for long.
MAX_EDITS_POSTPONED: Final = 20

# Inner: names of workers that were connected, remembered to say who left; callers may have a new one each.
MAX_REMEMBERED_WORKERS: Final = 10_000

# Inner: findings the log remembers having said, so that one that comes and goes is said once.
MAX_LOGGED_FINDINGS: Final = 10_000

# Inner: what agents read again and again, an overview or two of every worker. Others are read from disk.
MAX_KEPT_BODY_CHARS: Final = 4 * MIB

# The overview made for a worker without documents is short; the listing of functions is another call.
MAX_OVERVIEW_FUNCTIONS: Final = 50

# A page of a file: a quarter of a megabyte is more than a model reads at once.
MAX_PAGE_BYTES: Final = 256 * KIB
# Inner: hashes of files kept while the files stay as they are, about 200 bytes each.
MAX_KEPT_DIGESTS: Final = 65_536

# "Did you mean" is a hint, not a listing.
MAX_SUGGESTIONS: Final = 3

# Search. A longer question is a document of its own: whoever asks it wants some words of it found.
MAX_QUESTION_CHARS: Final = 2000
# A question longer than this is refused, and not read in part.
MAX_ASKED_CHARS: Final = 64 * KIB
MAX_QUESTION_WORDS: Final = 40
# Requests in one search, each answered for itself; rows of each kind; and the longest answer.
MAX_CAPABILITIES: Final = 8
MAX_SEARCH_HITS: Final = 25
MAX_ANSWER_CHARS: Final = 64 * KIB
# Of a long body the beginning says what it is about; tokenising more than this takes over five milliseconds.
MAX_INDEXED_BODY_CHARS: Final = 64 * KIB
# Inner: other words that may stand for one of a question: two forms, a few continuations, a few synonyms.
MAX_ALTERNATIVES: Final = 12
# Inner: words asked for of which an index remembers what may stand for them, about a kilobyte each.
MAX_REMEMBERED_WORDS: Final = 1000
# Inner: postings are kept strongest first. To read 200 of a word as written found as much as 400 and as all
# of them, and takes two thirds of the time; of words that only stand for another, 100.
MAX_READ_POSTINGS: Final = 200
MAX_READ_SOFT_POSTINGS: Final = 100
# Inner: words of an index that start like an unknown one and are compared with it, a tenth of a microsecond
# each; and those a beginning may go on in.
MAX_SPELLING_CANDIDATES: Final = 10_000
MAX_CONTINUATIONS: Final = 100
# Words of one question that may be misspelt; whoever misspells more asks in another language.
MAX_CORRECTED_WORDS: Final = 8

# Bundles: what every MCP skills host must accept (SEP-2640).
MAX_BUNDLE_FILES: Final = 512
MAX_BUNDLE_BYTES: Final = 16 * MIB
# A page of the skills that an MCP host lists, with their front matter and the digests of their files.
MAX_MANIFEST_PAGE_SKILLS: Final = 100
MAX_MANIFEST_PAGE_BYTES: Final = MIB
# What every file system takes as one name, and a path that still fits below a long skills folder.
MAX_FILE_NAME_BYTES: Final = 255
MAX_BUNDLE_PATH_BYTES: Final = 1024
MAX_BUNDLE_DEPTH: Final = 16
# An install takes well under a second; whoever waits this long for another one is told so.
INSTALL_LOCK_SECONDS: Final = 30.0
# Writes of skills that wait for their turn, each with its text; whoever finds no room is told so.
MAX_WRITES_AT_ONCE: Final = 64
# A larger file is named with its size and hash; nobody reads such a patch in a terminal.
MAX_DIFF_BYTES: Final = 64 * KIB
# 1000 namespaces of 512 files, which take 60 KB each; anything larger is not ours.
MAX_LOCKFILE_BYTES: Final = 64 * MIB
# Inner: the journal of one install holds one entry of the lock file.
MAX_JOURNAL_BYTES: Final = MAX_LOCKFILE_BYTES

# Lines of a text that is merged: comparing this many equal ones takes some seconds, and only of one thread.
MAX_MERGE_LINES: Final = 5000
# Unpacking an archive of a site, in a process of its own: 16 MiB of files take about 100 MiB and 0.2 s.
UNPACK_SECONDS: Final = 5
UNPACK_MEMORY_BYTES: Final = 192 * MIB
# A path of a bundle fits four times; the standard library takes quadratic time over such a header.
MAX_ARCHIVE_HEADER_BYTES: Final = 4 * KIB
# Git: one commit without history. More than this on disk is no collection of documents.
MAX_GIT_FETCH_BYTES: Final = 256 * MIB
# Inner: what git lists of a folder that a bundle can hold, and of its last words those that say what failed.
MAX_GIT_LISTING_BYTES: Final = 1 * MIB
# The names of all files of a commit, about a hundred thousand, in which skills are looked for.
MAX_GIT_TREE_BYTES: Final = 16 * MIB
MAX_GIT_ERROR_BYTES: Final = 16 * KIB
# Addresses longer than this are refused by browsers and servers; a ref must fit a file name beside ".lock".
MAX_REPO_URL_CHARS: Final = 2048
MAX_REF_CHARS: Final = 244

# Registry: a page of rows, one worker's detail, and a whole bundle as escaped JSON.
MAX_REGISTRY_PAGE_BYTES: Final = 4 * MIB
MAX_REGISTRY_DETAIL_BYTES: Final = 8 * MIB
MAX_REGISTRY_BUNDLE_BYTES: Final = 2 * MAX_BUNDLE_BYTES + MIB
# A registry that moved needs one or two; more is a loop.
MAX_REDIRECTS: Final = 5
# What a person types, and what a version or a tag is called; longer ones are mistakes that fill addresses.
MAX_REGISTRY_QUERY_CHARS: Final = 1024
MAX_VERSION_CHARS: Final = 128
# Inner: answers of the registry kept for registry_cache_ttl_ms, a few kilobytes each.
MAX_CACHED_ANSWERS: Final = 256
# Changed documents are indexed for search when no call came for the first of these, or when they have waited
# for the second; a search that comes sooner has them indexed at once.
INDEX_PAUSE_SECONDS: Final = 0.5
INDEX_LATEST_SECONDS: Final = 30.0
# Published workers that search knows of from earlier lists: more than the public registry has.
MAX_PUBLISHED_WORKERS: Final = 5000
# Inner: pages of the registry's list fetched in a row for search: as many workers at 20 a page. A registry
# that always names a next page ends here.
MAX_REGISTRY_PAGES: Final = 250
# Inner: most installed workers publish no skills; asking for them again and again tells the registry, not us.
ABSENT_WORKER_SECONDS: Final = 3600.0
# Inner: namespaces looked after at the same time: enough to hide the network, too few to bother a server.
PARALLEL_DOWNLOADS: Final = 4
# Downloads under way, waiting ones included; whoever comes then is told to come again.
MAX_DOWNLOADS_AT_ONCE: Final = 16
# The registry of one's own: requests that must be whole by then, and connections at once, a thread each.
REGISTRY_REQUEST_SECONDS: Final = 15.0
MAX_REGISTRY_CONNECTIONS: Final = 256
# The registry of one's own: rows a page, and the size of a worker.yaml that is still metadata.
REGISTRY_PAGE_ROWS: Final = 20
MAX_WORKER_YAML_BYTES: Final = 1 * MIB
# Schemas are nested a dozen deep; the YAML library's C half crashes at some depth.
MAX_WORKER_YAML_DEPTH: Final = 64
# Inner: trigram similarity under this is noise; PostgreSQL's pg_trgm draws the line at the same place.
MIN_SIMILARITY: Final = 0.3

# Inner: an event that comes late must not bring back a registration that was deleted; it is late by
# milliseconds.
MAX_REMEMBERED_DELETIONS: Final = 10_000
# How often the directory looks whether its bindings are there and what the state holds, besides its events.
LOOK_SECONDS: Final = 60.0
# Directories on other engines that share the state are told together of what was written within the first of
# these. When they tell of more keys than are asked for one by one, everything is listed: once in the second.
HINT_BURST_SECONDS: Final = 0.02
HINTED_LOOK_SECONDS: Final = 1.0
# What was acknowledged so shortly before an engine died is written again if its state has lost it: real
# engines keep writes in memory for some seconds. What is older, or beyond this many, is taken for deleted.
REMEMBERED_WRITE_SECONDS: Final = 60.0
MAX_REMEMBERED_WRITES: Final = 10_000
# Inner: between two rounds that offer anew what another worker had, so that workers that come and go all the
# time cause a few questions a second and not one each.
OFFER_PAUSE_SECONDS: Final = 0.2
# Hints of writes that may be forged, because the engine is too old to sign its events or another engine's
# directory tells: so many keys are asked for one by one, which takes a tenth of a second; with more, all are
# listed.
MAX_HINTS: Final = 256
# Registrations: all records of one kind come in one answer of the state, which must fit a message with some
# room left.
MAX_REGISTERED_BYTES: Final = 60 * MIB

# WebSocket: the real engine's own limits, so that what passes there passes here.
MAX_FRAME_BYTES: Final = 16 * MIB
MAX_MESSAGE_BYTES: Final = 64 * MIB
# serde_json refuses deeper documents; a deeper one could also exhaust our own encoder.
MAX_JSON_DEPTH: Final = 128
# Inner: a value of the state above this is kept and given as the text it came in: to read it and to write it
# again would hold up everybody else for a millisecond and more.
LARGE_VALUE_BYTES: Final = 64 * KIB
# Inner: calls of the state that wait behind a large value, each with the frame it came in; whoever sends more
# is not read until some are done.
MAX_ERRANDS: Final = 32
# Inner: a frame above this is looked at a little at a time; up to it that takes two milliseconds.
LONG_FRAME_BYTES: Final = 512 * KIB
# JSON that is read as a whole while everybody waits: what a call carries to a function of the engine or of
# the directory, a message that is neither call nor answer, a value that is updated. So many bytes, or commas
# and opening brackets, take some 25 ms; what is larger is passed on and kept, but not read. An answer to a
# worker inside the engine may have as many bytes as a fetch of documents.
MAX_READ_BYTES: Final = 4 * MIB
MAX_READ_MARKS: Final = 200_000
MAX_READ_ANSWER_BYTES: Final = MAX_FETCH_BYTES + MIB
# Inner: long lists that an engine or a worker keeps as text for whoever asks next: one of each kind there is.
KEPT_LISTS: Final = 4
# Inner: what is written in one turn of the event loop to all those together who have much to read: less than
# half a millisecond's work.
WRITTEN_PER_TURN_BYTES: Final = 512 * KIB
# Unsent bytes to one peer after which it has enough for the moment: what asyncio takes for a full socket.
FULL_BYTES: Final = 64 * KIB
# Unsent bytes to one client after which it is disconnected: two of the largest messages, and much less of
# events, which it did not ask for one by one. Past the total over all clients, those with the most unsent
# bytes are disconnected.
MAX_UNSENT_BYTES: Final = 2 * MAX_MESSAGE_BYTES
MAX_UNSENT_EVENT_BYTES: Final = 16 * MIB
MAX_TOTAL_UNSENT_BYTES: Final = 256 * MIB
# Registrations a connection may queue before it says who it is; an SDK replays all of its own at once.
MAX_QUEUED_REGISTRATIONS: Final = 10_000
# What one connection may keep on the engine. A worker has some ten functions and a bridge some hundred
# bindings; a registration that an SDK replays is at most this long with its description and its schemas.
MAX_CONNECTION_FUNCTIONS: Final = 10_000
MAX_CONNECTION_TRIGGER_TYPES: Final = 1_000
MAX_CONNECTION_BINDINGS: Final = 20_000
MAX_CONNECTION_NAMES: Final = 16
MAX_CONNECTION_BYTES: Final = 32 * MIB
MAX_REGISTRATION_ID_CHARS: Final = 1024
MAX_REGISTRATION_DESCRIPTION_CHARS: Final = 16 * KIB
MAX_REGISTRATION_BYTES: Final = 512 * KIB
# Calls one connection may wait for at once; what they sent is not kept, what is takes about 1 KB each.
MAX_PENDING_CALLS: Final = 20_000
# Events that one worker may leave unanswered before the engine stops counting them.
MAX_UNANSWERED_EVENTS: Final = 10_000
# The W3C's own bound on baggage; longer traces are not passed on.
MAX_TRACE_CHARS: Final = 8 * KIB
# What outlives the connection that asked for it: bindings made by a function call, and channels.
MAX_DURABLE_BINDINGS: Final = 10_000
MAX_CHANNELS: Final = 10_000
MAX_CONNECTION_CHANNELS: Final = 1_000
# Messages that come in pieces: how long one may take, and what all unfinished ones may hold together.
MESSAGE_SECONDS: Final = 60.0
MAX_UNFINISHED_BYTES: Final = 512 * MIB
# Sockets of the engine's listener; fewer where the system allows the process fewer files.
MAX_ENGINE_CONNECTIONS: Final = 10_000
# Inner: files that are left for documents, git, the database and the log when all sockets are taken.
RESERVED_FILES: Final = 256
# Inner: lines that one connection's mistakes may write to the log; after these a last one says so.
MAX_CONNECTION_LOG_LINES: Final = 20
# Inner: of those lines, the ones with a traceback, about thirty lines each; and the callers whose failures
# are counted at a time.
MAX_CONNECTION_TRACEBACKS: Final = 3
MAX_COUNTED_CALLERS: Final = 1000
# A token that we ask for: shorter ones can be guessed. One that we made is some forty characters in a file.
MIN_TOKEN_CHARS: Final = 16
MAX_TOKEN_FILE_BYTES: Final = 1 * KIB
# A connection that says nothing holds a place that others could have.
HANDSHAKE_SECONDS: Final = 10.0
# How long a goodbye may stay unanswered; and a client with something left to read may read nothing of it.
CLOSE_SECONDS: Final = 5.0
STALL_SECONDS: Final = 60.0
# The same when it is us who leave: an engine that is there answers in milliseconds, and somebody waits for
# this process to end.
LEAVE_SECONDS: Final = 1.0
# Over a socket to an engine elsewhere: what is larger than a frame may be goes in pieces of this size, as in
# the SDKs. An engine that is not heard of for so many seconds is asked, and after as many again is gone.
FRAGMENT_BYTES: Final = 1 * MIB
KEEP_ALIVE_SECONDS: Final = 20.0
# An engine that is away is tried again after the first of these, then after twice as long each time up to the
# second: soon enough for a restart, seldom enough for a machine that sleeps.
FIRST_RECONNECT_SECONDS: Final = 0.25
LONGEST_RECONNECT_SECONDS: Final = 5.0
# How long a worker may take after a connect to learn what it has to know, before its functions are offered
# without: longer than a state that answers at all, shorter than callers wait.
CONNECTED_SECONDS: Final = 15.0
# How long a new connection may take to say which namespace it is of, before the default one is meant; and the
# owner of a trigger type to answer to a binding, before it counts as taken. As on the real engine.
NAMESPACE_GRACE_SECONDS: Final = 5.0
TRIGGER_ACK_SECONDS: Final = 10.0
# Events about functions are gathered this long, so that a worker with 40 functions makes one event.
FUNCTIONS_EVENT_SECONDS: Final = 0.2
# A channel ends when one of its sides does not come within this, and holds so many messages: at most, and
# unless its maker says otherwise. As on the real engine.
CHANNEL_IDLE_SECONDS: Final = 300.0
MAX_CHANNEL_BUFFER: Final = 1024
DEFAULT_CHANNEL_BUFFER: Final = 64
# Of what a worker says of itself, so much is shown: a line of a list.
MAX_NAME_CHARS: Final = 280
# Inner: names of workers that were seen, so that one that comes back is no news; every bridge has a new one.
MAX_SEEN_WORKERS: Final = 4096
# Inner: a line of the engine's log; what a client wrote there can be as long as a message.
MAX_LOG_CHARS: Final = 2000
# Inner: failures of calls nobody waits for that were warned of, each once: enough to keep a log readable.
MAX_TOLD_FAILURES: Final = 256
# Events that events cause within the engine itself, such as a deletion bound to the event of a deletion:
# longer and wider than a sensible chain, short enough for the stack and for everybody else.
MAX_EVENT_DEPTH: Final = 16
MAX_NESTED_EVENTS: Final = 100
# Operations of one update, and the characters that appending to strings may copy on the way.
MAX_STATE_OPS: Final = 10_000
MAX_STATE_COPIED_CHARS: Final = 64 * MIB
# All values of a scope come in one answer, which must fit a message with some room left.
MAX_STATE_LIST_BYTES: Final = 62 * MIB
# Paths and merged objects of an update: the real engine's own limits, which its callers know.
MAX_STATE_PATH_DEPTH: Final = 32
MAX_STATE_SEGMENT_BYTES: Final = 256
MAX_STATE_MERGE_KEYS: Final = 1024
MAX_STATE_MERGE_DEPTH: Final = 16
# Functions asked about at once, and the beginning of a binding's config in lists; as on the real engine.
MAX_FUNCTION_BATCH: Final = 32
CONFIG_SUMMARY_CHARS: Final = 80
# Checking a value against its schema, while everybody waits: about 50 ms, in steps of a pattern of about a
# microsecond; to apply one schema within another takes as long as twenty-five.
MAX_SCHEMA_STEPS: Final = 50_000
STEPS_PER_SUBSCHEMA: Final = 25
# What is checked at all: settings are a page, and their schemas a few.
MAX_CHECKED_SCHEMA_BYTES: Final = 128 * KIB
MAX_CHECKED_VALUE_BYTES: Final = 256 * KIB
# A longer pattern is no rule a person wrote; .{1,4096} is one, and takes two steps for every character.
MAX_PATTERN_CHARS: Final = 4 * KIB
MAX_PATTERN_STEPS: Final = 10_000

# MCP: what a request may bring (a skill to register, as escaped JSON, several times over), and sessions of
# 2025 clients, which hold memory until they end or idle out; hosts open one or two each.
MAX_MCP_BODY_BYTES: Final = 4 * MIB
MAX_MCP_SESSIONS: Final = 1000
MCP_SESSION_IDLE_SECONDS: Final = 30 * 60.0
# Of one client, which is a user of this machine or an address beyond it: so that nobody has all of them.
MAX_CLIENT_MCP_SESSIONS: Final = 250
# Requests must be whole by then; whoever sends nothing holds a place that others could have.
MCP_REQUEST_SECONDS: Final = 15.0
# Connections at once, streams that only wait for news included.
MAX_MCP_CONNECTIONS: Final = 4 * MAX_MCP_SESSIONS
# Resources that clients are told of one by one; each is read again after every change.
MAX_MCP_SUBSCRIPTIONS: Final = 1000
# One page of a list for a model: about 3,000 tokens of skills, or 6,000 of documents, and a line of each.
MAX_LISTED_CHARS: Final = 11_000
MAX_LISTED_DOCUMENT_CHARS: Final = 2 * MAX_LISTED_CHARS
MAX_LIST_DESCRIPTION_CHARS: Final = 160
# All bodies of /llms-full.txt together.
MAX_LLMS_BYTES: Final = 4 * MIB
# What every known MCP client takes as the name of a tool.
MAX_TOOL_NAME_CHARS: Final = 64
# A tool in a list: what a model reads before it calls, and a schema that a client still shows.
MAX_TOOL_DESCRIPTION_CHARS: Final = 4 * KIB
MAX_TOOL_SCHEMA_CHARS: Final = 64 * KIB
# The protocol's own limit of values in one completion.
MAX_COMPLETIONS: Final = 100
# One sentence to a model; of another worker's failure no more than this is passed on.
MAX_MCP_ERROR_CHARS: Final = 2000
# How long a request waits for an engine that is away before it is refused.
MCP_ENGINE_SECONDS: Final = 2.0
# How long it waits for the directory of the bridge's own folder to start, which reads the whole folder.
MCP_START_SECONDS: Final = 60.0
# After a connect, workers are still coming back; until then a missing function may only be late.
MCP_SETTLE_SECONDS: Final = 10.0
# One try of a read; a section or a prompt may take its own ten seconds on the way. Two more follow.
MCP_READ_SECONDS: Final = 15.0
# A download, or a function of another worker.
MCP_WORK_SECONDS: Final = 600.0
# How often a client that wants to know is told that the work goes on.
MCP_PROGRESS_SECONDS: Final = 1.0
# Inner: changes that come together are told together: a download of 200 skills is one notification.
MCP_BURST_SECONDS: Final = 0.05

# The id and the name of a worker, as they are stored with what it registered.
MAX_WORKER_NAME_CHARS: Final = 256
# How long a registration waits for the engine to list the caller with its name, once for each connection.
NAME_SECONDS: Final = 0.25
# A mark in an index names the worker or the address that a document comes from, as far as this.
MAX_MARKED_NAME_CHARS: Final = 48

# What a directory that runs says of itself to others on the machine: four paths and addresses, some settings.
MAX_RUN_FILE_BYTES: Final = 16 * KIB

# Markdown that the web page renders of one document; the rest is a click away as the raw file.
MAX_PAGE_MARKDOWN_CHARS: Final = 512 * KIB
# A form of the web page: a token and the arguments of a prompt.
MAX_PAGE_FORM_BYTES: Final = 256 * KIB
# Browser tabs that follow changes at once.
MAX_PAGE_STREAMS: Final = 256
# How often an open stream of changes is written to, so that a browser that left is noticed.
PAGE_HEARTBEAT_SECONDS: Final = 15.0
