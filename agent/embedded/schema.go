package embedded

// applicationID marks a state file as ours, for file(1) and for [Open].
const applicationID = 0x53705274

// migrations lead an empty file to the newest schema, one after the other; the
// file's user_version says how many it has had. A line that was released is never
// changed: what comes later is a line more.
var migrations = []string{
	`CREATE TABLE runs (
		num      INTEGER PRIMARY KEY, -- the run in the other tables
		id       TEXT    NOT NULL UNIQUE,
		seq      INTEGER NOT NULL,    -- of the last entry
		head     BLOB    NOT NULL,    -- its hash
		fresh    INTEGER NOT NULL,    -- the open effect of this sequence was never started; 0 if it may have been
		-- What follows repeats the journal, for lists and for Serve.
		state    TEXT    NOT NULL,
		reason   TEXT    NOT NULL,
		ended    INTEGER NOT NULL,
		ready    INTEGER NOT NULL,    -- an effect waits to be performed
		held     INTEGER NOT NULL,
		unknown  INTEGER NOT NULL,
		tool     TEXT    NOT NULL,
		started  INTEGER NOT NULL,    -- times are microseconds since 1970
		updated  INTEGER NOT NULL,
		deadline INTEGER              -- when a tick is due though the run rests
	) STRICT;
	CREATE INDEX open_runs ON runs (ended) WHERE ended = 0;

	CREATE TABLE entries (
		run   INTEGER NOT NULL,
		seq   INTEGER NOT NULL,
		bytes BLOB    NOT NULL,
		hash  BLOB    NOT NULL
	) STRICT;
	CREATE UNIQUE INDEX entry_of_run ON entries (run, seq);

	CREATE TABLE bodies (
		run    INTEGER NOT NULL,
		sha256 BLOB    NOT NULL,
		data   BLOB    NOT NULL
	) STRICT;
	CREATE UNIQUE INDEX body_of_run ON bodies (run, sha256);

	CREATE TABLE inbox (
		num      INTEGER PRIMARY KEY AUTOINCREMENT, -- the order in which they came
		run      INTEGER NOT NULL,
		key      TEXT    NOT NULL,
		delivery BLOB    NOT NULL,
		verdict  BLOB,
		seq      INTEGER            -- of the entry that records the verdict
	) STRICT;
	CREATE UNIQUE INDEX delivery_of_run ON inbox (run, key);
	CREATE INDEX waiting ON inbox (run, num) WHERE verdict IS NULL;

	-- What a delivery brings along, until its verdict.
	CREATE TABLE parcels (
		delivery INTEGER NOT NULL,
		sha256   BLOB    NOT NULL,
		data     BLOB    NOT NULL,
		PRIMARY KEY (delivery, sha256)
	) STRICT;`,

	// So that many runs that wait cost nothing where one is looked for.
	`CREATE INDEX ready_runs ON runs (num) WHERE ready = 1;
	CREATE INDEX due_runs ON runs (deadline) WHERE deadline IS NOT NULL;
	CREATE INDEX newest_runs ON runs (started DESC, id);`,

	// Of which run it is a fork, for lists.
	`ALTER TABLE runs ADD COLUMN parent TEXT NOT NULL DEFAULT '';`,
}
