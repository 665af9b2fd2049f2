package embedded

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"sallyport/agent"
	"sallyport/agent/enginetest"
)

// The benchmarks print ratios within one run: what a durable transition costs beside
// the least that any journal on the same disk must do.

// mover makes transitions of one run without end: it is paused and resumed.
type mover struct {
	run agent.Run
	now time.Time
}

func newMover(run agent.Run) *mover { return &mover{run: run, now: run.Time} }

// next steps, encodes and hashes.
func (m *mover) next(tb testing.TB) agent.Commit {
	m.now = m.now.Add(time.Microsecond)
	var d agent.Decision = agent.Pause{}
	if m.run.Held {
		d = agent.Resume{}
	}
	next, entry, err := agent.Advance(m.run, agent.FromOutside(d, "bench", m.now))
	if err != nil {
		tb.Fatal(err)
	}
	m.run = next
	return agent.Commit{Run: next, Entry: entry}
}

// started opens an engine with n runs, and returns their journals and movers.
func started(tb testing.TB, dir string, n int) (*Engine, []*log, []*mover) {
	tb.Helper()
	e, err := Open(dir, Config{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := e.Close(); err != nil {
			tb.Error(err)
		}
	})
	var logs []*log
	var movers []*mover
	for i := range n {
		id := fmt.Sprintf("run-%d", i)
		run, err := e.Start(context.Background(), enginetest.Spec(id), "bench", []agent.Body{enginetest.Task})
		if err != nil {
			tb.Fatal(err)
		}
		r, err := e.find(context.Background(), id)
		if err != nil {
			tb.Fatal(err)
		}
		it := e.serving.enlist(id)
		logs, movers = append(logs, &log{engine: e, row: r, served: it}), append(movers, newMover(run))
	}
	return e, logs, movers
}

// journalFolder is on the disk that is measured: a benchmark on a RAM disk says
// nothing. SALLYPORT_BENCH_DIR names another.
func journalFolder(b *testing.B) string {
	b.Helper()
	dir, err := os.MkdirTemp(os.Getenv("SALLYPORT_BENCH_DIR"), "bench")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func BenchmarkDurableTransition_BesideRawAppend(b *testing.B) {
	dir := journalFolder(b)
	_, logs, movers := started(b, filepath.Join(dir, "state"), 1)
	raw := newRawFile(b, dir)
	var ours, theirs []time.Duration
	for b.Loop() {
		begin := time.Now()
		c := movers[0].next(b)
		if err := logs[0].Commit(b.Context(), c); err != nil {
			b.Fatal(err)
		}
		middle := time.Now()
		raw.append(b, c.Entry.Bytes())
		ours, theirs = append(ours, middle.Sub(begin)), append(theirs, time.Since(middle))
	}
	b.ReportMetric(float64(median(ours))/float64(median(theirs)), "x-raw")
	b.ReportMetric(float64(median(theirs).Microseconds()), "raw-us/op")
	b.ReportMetric(float64(median(ours).Microseconds()), "ours-us/op")
}

func median[T ~int64 | ~float64](of []T) T {
	slices.Sort(of)
	return of[len(of)/2]
}

// BenchmarkDurableTransition_ManyRuns beside a raw writer that steps, encodes, hashes
// and shares its fdatasyncs too.
func BenchmarkDurableTransition_ManyRuns(b *testing.B) {
	for _, runs := range []int{8, 64} {
		b.Run(fmt.Sprint(runs), func(b *testing.B) { benchmarkRuns(b, runs) })
	}
}

func benchmarkRuns(b *testing.B, runs int) {
	const steps = 50 // of each run, in one measurement
	dir := journalFolder(b)
	_, logs, movers := started(b, filepath.Join(dir, "state"), runs)
	raw := newRawFile(b, dir)
	group := newRawGroup(raw)
	defer group.close()
	var ratios, ours, theirs []float64
	for b.Loop() {
		for range 5 {
			our := together(runs, func(i int) {
				for range steps {
					if err := logs[i].Commit(b.Context(), movers[i].next(b)); err != nil {
						b.Error(err)
						return
					}
				}
			})
			moved := make([]*mover, runs) // of the raw writer: it must not move ours
			for i := range moved {
				moved[i] = newMover(movers[i].run)
			}
			their := together(runs, func(i int) {
				for range steps {
					c := moved[i].next(b)
					group.append(c.Entry.Bytes())
				}
			})
			ratios = append(ratios, float64(their)/float64(our))
			ours, theirs = append(ours, float64(runs*steps)/our.Seconds()), append(theirs, float64(runs*steps)/their.Seconds())
		}
	}
	if group.err != nil {
		b.Fatal(group.err)
	}
	b.ReportMetric(median(ratios), "of-raw-rate")
	b.ReportMetric(median(ours), "ours/s")
	b.ReportMetric(median(theirs), "raw/s")
}

// together runs n goroutines and says how long all took.
func together(n int, do func(i int)) time.Duration {
	begin := time.Now()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { do(i) })
	}
	wg.Wait()
	return time.Since(begin)
}

// rawFile appends and makes durable; nothing else.
type rawFile struct{ file *os.File }

func newRawFile(b *testing.B, dir string) *rawFile {
	b.Helper()
	f, err := os.OpenFile(filepath.Join(dir, "raw"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = f.Close() })
	return &rawFile{f}
}

func (r *rawFile) append(b *testing.B, data []byte) {
	if err := r.write(data); err != nil {
		b.Fatal(err)
	}
}

func (r *rawFile) write(data []byte) error {
	if _, err := r.file.Write(data); err != nil {
		return err
	}
	return datasync(r.file)
}

// rawGroup writes what waits in one append.
type rawGroup struct {
	raw   *rawFile
	queue chan rawWrite
	done  chan struct{}
	err   error
}

type rawWrite struct {
	data []byte
	ok   chan struct{}
}

func newRawGroup(raw *rawFile) *rawGroup {
	g := &rawGroup{raw: raw, queue: make(chan rawWrite, maxBatch), done: make(chan struct{})}
	go g.loop() // ended by close
	return g
}

func (g *rawGroup) append(data []byte) {
	it := rawWrite{data, make(chan struct{})}
	g.queue <- it
	<-it.ok
}

func (g *rawGroup) close() { close(g.queue); <-g.done }

func (g *rawGroup) loop() {
	defer close(g.done)
	for first := range g.queue {
		waiting := []rawWrite{first}
		for more := true; more && len(waiting) < maxBatch; {
			select {
			case it, ok := <-g.queue:
				if more = ok; ok {
					waiting = append(waiting, it)
				}
			default:
				more = false
			}
		}
		var all []byte
		for _, it := range waiting {
			all = append(all, it.data...)
		}
		if err := g.raw.write(all); err != nil {
			g.err = err
		}
		for _, it := range waiting {
			close(it.ok)
		}
	}
}

// BenchmarkOpenRun reads a run from its file: every entry is parsed, hashed, and
// stepped again.
func BenchmarkOpenRun(b *testing.B) {
	for _, entries := range []int{10, 10_000} {
		b.Run(fmt.Sprint(entries), func(b *testing.B) {
			dir := journalFolder(b)
			e, logs, movers := started(b, filepath.Join(dir, "state"), 1)
			for done := 1; done < entries; {
				n := min(maxBatch, entries-done)
				err := e.writer.do("run-0", func(tx *transaction) error {
					for range n {
						if err := tx.append(logs[0].row, movers[0].next(b)); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
				done += n
			}
			for b.Loop() {
				if was, err := e.load(b.Context(), "run-0"); err != nil || was.run.Seq != int64(entries) {
					b.Fatal(was.run.Seq, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(entries), "us/entry")
		})
	}
}
