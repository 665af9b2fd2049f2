package debug

import (
	"context"

	"sallyport/agent"
)

// A journal is read in chunks, the next chunksAhead of them while one is replayed:
// decoding entries takes longer than stepping through them.
const (
	chunkEntries = 512
	chunksAhead  = 2
)

// chunk is a part of a journal, as far as it could be read.
type chunk struct {
	entries []agent.Entry
	err     error
}

// readAhead takes in all that follows the last entry.
func (s *Session) readAhead(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	next := s.last.Seq + 1
	at := s.chunk(ctx, next)
	var coming []chan chunk
	defer func() {
		cancel()
		for _, c := range coming {
			<-c // none of them outlives the reading
		}
	}()
	for {
		whole := at.err == nil && len(at.entries) == chunkEntries
		for whole && len(coming) < chunksAhead {
			next += chunkEntries
			coming = append(coming, s.fetch(ctx, next))
		}
		for i := range at.entries {
			if err := s.take(at.entries[i]); err != nil {
				return err
			}
		}
		if !whole {
			return at.err
		}
		at = <-coming[0]
		coming = coming[1:]
	}
}

// fetch reads a chunk beside.
func (s *Session) fetch(ctx context.Context, from int64) chan chunk {
	c := make(chan chunk, 1)
	go func() { c <- s.chunk(ctx, from) }() // whoever asked takes it
	return c
}

func (s *Session) chunk(ctx context.Context, from int64) (c chunk) {
	for e, err := range s.Entries(ctx, from, from+chunkEntries-1) {
		if err != nil {
			c.err = err
			return c
		}
		c.entries = append(c.entries, e)
	}
	return c
}
