package embedded

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"sallyport/agent"
)

// maxBatch bounds the writes of one transaction, so that other processes get a turn.
const maxBatch = 128

// How often the commits of other processes are looked for while somebody waits for
// them. It slows down while nothing happens.
const (
	pollLeast = 2 * time.Millisecond
	pollMost  = 20 * time.Millisecond
)

// writer is the one writer of a process: it puts the writes that wait into one
// transaction, so that they share its fsync. A write is all or nothing and fails
// alone where it is its own fault. Whoever brings a write while nobody writes does it
// for all that wait: no goroutine stands between a run and its journal.
type writer struct {
	path  string
	turn  *turnstile
	hooks writerHooks
	queue chan *write
	baton chan struct{} // who could fill it uses the connection until taking it out
	stop  chan struct{}
	done  chan struct{} // the follower has ended

	listeners atomic.Int32
	kick      chan struct{} // a listener has come

	// Of the holder of the baton alone.
	db      *sql.DB
	tx      *transaction // the connection, once open
	version int64        // of the data, as other processes change it
}

// writerHooks are called by the holder of the baton.
type writerHooks struct {
	crash func(point string)
	told  func(run string)                       // a write to the run is durable
	heard func(waiting func() ([]string, error)) // another process has committed
}

// write is one unit that is durable as a whole or not at all.
type write struct {
	run    string
	do     func(*transaction) error
	result chan error
}

// untouched are the errors of a write that has changed nothing: the rest of its
// transaction goes on.
var untouched = []error{agent.ErrConflict, errTaken, agent.ErrNoRun, agent.ErrNoBody}

// errTaken says that the run exists already.
var errTaken = errors.New("the run exists")

func newWriter(path string, turn *turnstile, hooks writerHooks) *writer {
	w := &writer{
		path: path, turn: turn, hooks: hooks, db: open(path, 1, durable()),
		queue: make(chan *write, maxBatch), baton: make(chan struct{}, 1), kick: make(chan struct{}, 1),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	go w.follow() // ended and waited for by close
	return w
}

// do makes one write durable. When it returns nil the write is on the disk; when it
// returns one of the untouched errors, nothing was written; after any other, nobody
// knows. It is not interrupted: a transaction takes milliseconds.
func (w *writer) do(run string, do func(*transaction) error) error {
	it := &write{run: run, do: do, result: make(chan error, 1)}
	w.queue <- it // never full for long: each who waits there tries to take the baton
	for {
		select {
		case err := <-it.result:
			return err
		case w.baton <- struct{}{}:
			w.commit(w.gather())
			<-w.baton
		}
	}
}

// listen makes the writer look for the commits of others until the returned function
// is called.
func (w *writer) listen() (stop func()) {
	if w.listeners.Add(1) == 1 {
		fill(w.kick)
	}
	return func() { w.listeners.Add(-1) }
}

// close ends the writer. The caller sees to it that nobody writes any more.
func (w *writer) close() error {
	close(w.stop)
	<-w.done
	w.disconnect()
	return errors.Join(w.db.Close(), w.turn.close())
}

// follow looks for the commits of other processes while somebody listens.
func (w *writer) follow() {
	defer close(w.done)
	timer := time.NewTimer(pollLeast)
	defer timer.Stop()
	for interval := pollLeast; ; {
		var tick <-chan time.Time
		if w.listeners.Load() > 0 {
			timer.Reset(interval)
			tick = timer.C
		}
		select {
		case <-tick:
			w.baton <- struct{}{}
			changed := w.poll()
			<-w.baton
			interval = min(interval+interval/8, pollMost)
			if changed {
				interval = pollLeast
			}
		case <-w.kick:
			interval = pollLeast
		case <-w.stop:
			return
		}
	}
}

// gather takes what waits, the oldest first. It may be nothing: the write of the
// holder of the baton was done by the one before.
func (w *writer) gather() []*write {
	var batch []*write
	for len(batch) < maxBatch {
		select {
		case it := <-w.queue:
			batch = append(batch, it)
		default:
			return batch
		}
	}
	return batch
}

// commit makes a batch durable and answers each of its writes.
func (w *writer) commit(batch []*write) {
	if len(batch) == 0 {
		return
	}
	errs, retry := w.transact(batch)
	for i, it := range batch {
		if retry { // one of them is at fault: each for itself
			alone, _ := w.transact([]*write{it})
			errs[i] = alone[0]
		}
		it.result <- errs[i]
		if errs[i] == nil {
			w.hooks.told(it.run)
		}
	}
}

// transact runs the batch in one transaction. It reports retry where a write failed
// in a way that the others need not share; then nothing was written.
func (w *writer) transact(batch []*write) (errs []error, retry bool) {
	errs = make([]error, len(batch))
	fail := func(err error) ([]error, bool) {
		w.disconnect() // rolls back, and a new connection starts from what is on the disk
		for i := range errs {
			errs[i] = explain(w.path, "write", err)
		}
		return errs, false
	}
	if err := w.turn.enter(); err != nil {
		return fail(err)
	}
	defer func() { _ = w.turn.leave() }() // fails only on a closed file
	if err := w.connect(); err != nil {
		return fail(err)
	}
	if _, err := w.tx.exec("BEGIN IMMEDIATE"); err != nil {
		return fail(err)
	}
	for i, it := range batch {
		errs[i] = it.do(w.tx)
		if errs[i] == nil || slices.ContainsFunc(untouched, func(e error) bool { return errors.Is(errs[i], e) }) {
			continue
		}
		fatal := remedies[code(errs[i])] != ""
		err := errs[i]
		fail(err)
		return errs, len(batch) > 1 && !fatal
	}
	w.hooks.crash(InCommit)
	if _, err := w.tx.exec("COMMIT"); err != nil {
		return fail(err)
	}
	return errs, false
}

// maintain uses the connection outside of a transaction, in this process's turn to
// write.
func (w *writer) maintain(doing string, do func(*transaction) error) (err error) {
	w.baton <- struct{}{}
	defer func() { <-w.baton }()
	if err := w.turn.enter(); err != nil {
		return err
	}
	defer func() { _ = w.turn.leave() }() // fails only on a closed file
	err = w.connect()
	if err == nil {
		err = do(w.tx)
	}
	if err != nil {
		w.disconnect()
	}
	return explain(w.path, doing, err)
}

// connect opens the one connection, if it is not open.
func (w *writer) connect() error {
	if w.tx != nil {
		return nil
	}
	conn, err := w.db.Conn(context.Background())
	if err != nil {
		return err
	}
	w.tx = &transaction{conn: conn, statements: map[string]*sql.Stmt{}}
	return nil
}

// disconnect drops the connection, and with it a transaction that is open.
func (w *writer) disconnect() {
	if w.tx == nil {
		return
	}
	_, _ = w.tx.exec("ROLLBACK") // there may be none
	for _, s := range w.tx.statements {
		_ = s.Close()
	}
	_ = w.tx.conn.Raw(func(any) error { return driver.ErrBadConn }) // out of the pool
	_ = w.tx.conn.Close()
	w.tx, w.version = nil, 0
}

// poll looks whether another process has committed since the last time.
func (w *writer) poll() bool {
	if err := w.connect(); err != nil {
		return false // who waits bounds it, and meets the error when it reads
	}
	var version int64
	if err := w.tx.scan("PRAGMA data_version", nil, &version); err != nil {
		w.disconnect()
		return false
	}
	if version == w.version {
		return false
	}
	w.version = version
	w.hooks.heard(w.waiting)
	return true
}

// waiting are the runs with deliveries that have no verdict.
func (w *writer) waiting() ([]string, error) {
	rows, err := w.tx.query("SELECT DISTINCT r.id FROM inbox i JOIN runs r ON r.num = i.run WHERE i.verdict IS NULL")
	if err != nil {
		return nil, err
	}
	return all(rows, func(scan func(...any) error) (id string, err error) { return id, scan(&id) })
}

// transaction is the writer's connection within one transaction.
type transaction struct {
	conn       *sql.Conn
	statements map[string]*sql.Stmt
}

// prepared returns the statement, prepared once for each connection.
func (t *transaction) prepared(query string) (*sql.Stmt, error) {
	if s, ok := t.statements[query]; ok {
		return s, nil
	}
	s, err := t.conn.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, err
	}
	t.statements[query] = s
	return s, nil
}

// exec runs a statement and returns how many rows it changed.
func (t *transaction) exec(query string, args ...any) (int64, error) {
	s, err := t.prepared(query)
	if err != nil {
		return 0, err
	}
	res, err := s.Exec(args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// scan reads one row; sql.ErrNoRows if there is none.
func (t *transaction) scan(query string, args []any, into ...any) error {
	s, err := t.prepared(query)
	if err != nil {
		return err
	}
	return s.QueryRow(args...).Scan(into...)
}

func (t *transaction) query(query string, args ...any) (*sql.Rows, error) {
	s, err := t.prepared(query)
	if err != nil {
		return nil, err
	}
	return s.Query(args...)
}

// all reads every row and closes them.
func all[T any](rows *sql.Rows, read func(scan func(...any) error) (T, error)) (out []T, err error) {
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		it, err := read(rows.Scan)
		if err != nil {
			return nil, fmt.Errorf("read a row: %w", err)
		}
		out = append(out, it)
	}
	return out, rows.Err()
}
