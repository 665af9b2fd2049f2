package workspace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of one search (SPEC D3).
const (
	// MaxEntries is the number of directory entries that a search walks.
	MaxEntries = 64
	// excerptBefore and excerptAfter are the code points kept before and from the start of a match.
	excerptBefore = 40
	excerptAfter  = 160
)

// ErrQuery reports an empty query or a wish for less than one hit.
var ErrQuery = errors.New("query or number of hits is not allowed")

// Hit is the first match in one file.
type Hit struct {
	Filename string
	// Excerpt is at most 200 code points around the match.
	Excerpt string
}

// SearchResult is what one search found.
type SearchResult struct {
	// Hits holds one hit a file, in the byte order of their names.
	Hits []Hit
	// Skipped counts the names ending in ".md" that could not be read.
	Skipped int
	// Examined counts directory entries of any kind, up to the one that stopped the search.
	Examined int
	// Truncated tells that the search ended early, or that more entries exist.
	Truncated bool
	// MoreEntries tells that sources/ holds more than [MaxEntries] entries.
	MoreEntries bool
}

// Search looks for query, a literal and case-sensitive text, in the files of sources/ and ends after max
// hits. The folder is read through a descriptor of its own, so that the same search gives the same answer
// again, also at the same time (SPEC D3).
func (w *Workspace) Search(ctx context.Context, query string, max int) (SearchResult, error) {
	if query == "" || max < 1 {
		return SearchResult{}, ErrQuery
	}
	done, err := w.use()
	if err != nil {
		return SearchResult{}, err
	}
	defer done()
	names, err := w.calls.entries(w.sources, MaxEntries+1)
	if err != nil {
		return SearchResult{}, fmt.Errorf("list sources: %w", err)
	}
	var result SearchResult
	if len(names) > MaxEntries {
		names = names[:MaxEntries]
		result.MoreEntries, result.Truncated = true, true
	}
	slices.Sort(names)
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return SearchResult{}, fmt.Errorf("search sources: %w", err)
		}
		result.Examined++
		if !strings.HasSuffix(name, suffix) {
			continue
		}
		content, err := w.readText(name)
		if err != nil {
			result.Skipped++
			continue
		}
		text := string(content)
		at := strings.Index(text, query)
		if at < 0 {
			continue
		}
		result.Hits = append(result.Hits, Hit{Filename: name, Excerpt: excerpt(text, at)})
		if len(result.Hits) == max {
			result.Truncated = true
			break
		}
	}
	return result, nil
}

// excerpt returns the code points around byte offset at of a valid UTF-8 text.
func excerpt(text string, at int) string {
	start, end := at, at
	for range excerptBefore {
		_, size := utf8.DecodeLastRuneInString(text[:start])
		start -= size
	}
	for range excerptAfter {
		_, size := utf8.DecodeRuneInString(text[end:])
		end += size
	}
	return text[start:end]
}
