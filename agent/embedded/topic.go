package embedded

import "sync"

// topics tells waiters that a run has changed: by this process, at once, and by
// another, at the next poll.
type topics struct {
	// listen makes the writer poll for the commits of other processes while the
	// function that it returns has not been called.
	listen func() (stop func())

	mu  sync.Mutex
	run map[string]chan struct{}
	any chan struct{}
}

func newTopics() *topics {
	return &topics{run: map[string]chan struct{}{}, any: make(chan struct{})}
}

// next returns a channel that is closed when the run next changes. Ask for it
// before you read, so that no change falls in between.
func (t *topics) next(run string) <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	c, ok := t.run[run]
	if !ok {
		c = make(chan struct{})
		t.run[run] = c
	}
	return c
}

// nextAny returns a channel that is closed when any run next changes.
func (t *topics) nextAny() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.any
}

// tell wakes those who wait for the run.
func (t *topics) tell(run string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c, ok := t.run[run]; ok {
		close(c)
		delete(t.run, run)
	}
	t.tellAny()
}

// tellAll wakes everybody: nobody knows which run it was.
func (t *topics) tellAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.run {
		close(c)
	}
	clear(t.run)
	t.tellAny()
}

func (t *topics) tellAny() {
	close(t.any)
	t.any = make(chan struct{})
}

// serving is which runs this engine serves.
type serving struct {
	mu   sync.Mutex
	runs map[string]*served
}

// served is one run that is being served.
type served struct {
	wake chan struct{} // has room for one
	look chan struct{} // filled while the inbox may hold something unseen
}

func newServing() *serving { return &serving{runs: map[string]*served{}} }

// enlist adds a run. The caller holds its lock, so it is there once.
func (s *serving) enlist(run string) *served {
	it := &served{wake: make(chan struct{}, 1), look: make(chan struct{}, 1)}
	it.look <- struct{}{}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs[run] = it
	return it
}

func (s *serving) dismiss(run string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.runs, run)
}

func (s *serving) any() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.runs) > 0
}

// hint says that the inbox of the run holds something new.
func (s *serving) hint(run string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if it, ok := s.runs[run]; ok {
		it.hint()
	}
}

func (s *serving) hintAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, it := range s.runs {
		it.hint()
	}
}

func (s *served) hint() {
	fill(s.look) // before the wake, so that who wakes finds it
	fill(s.wake)
}

// seen takes the hint, if there is one.
func (s *served) seen() bool {
	select {
	case <-s.look:
		return true
	default:
		return false
	}
}

func fill(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
