package docserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sallyport/workspace"
)

// searchData is the data of search_documents.
type searchData struct {
	Hits      []searchHit `json:"hits"`
	Skipped   int         `json:"skipped"`
	Examined  int         `json:"examined"`
	Truncated bool        `json:"truncated"`
}

type searchHit struct {
	Filename string `json:"filename"`
	Excerpt  string `json:"excerpt"`
}

// search answers search_documents (SPEC D3).
func (s *Server) search(ctx context.Context, raw []byte) result {
	args, err := parseSearch(raw)
	if err != nil {
		return refusedArguments.because(err)
	}
	found, err := s.workspace.Search(ctx, args.Query, args.MaxResults)
	if err != nil {
		return failedSearch.because(err)
	}
	data := searchData{Hits: []searchHit{}, Skipped: found.Skipped, Examined: found.Examined, Truncated: found.Truncated}
	for _, hit := range found.Hits {
		data.Hits = append(data.Hits, searchHit(hit))
	}
	return result{Status: StatusOK, Message: searchMessage(found, args.MaxResults), Data: data}
}

// searchMessage says what was found and what was not looked at, and never that nothing exists.
func searchMessage(found workspace.SearchResult, max int) string {
	var said []string
	switch len(found.Hits) {
	case 0:
		said = append(said, "No literal match in the files examined.")
	case 1:
		said = append(said, "1 file has a literal match.")
	default:
		said = append(said, fmt.Sprintf("%d files have a literal match.", len(found.Hits)))
	}
	if len(found.Hits) == max {
		said = append(said, "The search ended at the wanted number of results.")
	}
	if found.MoreEntries {
		said = append(said, "More files exist than a search examines.")
	}
	return strings.Join(said, " ")
}

// readData is the data of read_document.
type readData struct {
	Filename string `json:"filename"`
	Content  string `json:"content"`
}

// read answers read_document (SPEC D4).
func (s *Server) read(ctx context.Context, raw []byte) result {
	args, err := parseName(raw)
	if err != nil {
		return refusedArguments.because(err)
	}
	content, err := s.workspace.Read(ctx, args.Filename)
	if err != nil {
		return failedRead.because(err)
	}
	return result{Status: StatusOK, Message: "The document was read.", Data: readData{args.Filename, string(content)}}
}

// reportData is the data of report_status and settle_report. Bytes and SHA256 are absent without a report,
// Spent in report_status.
type reportData struct {
	Exists bool   `json:"exists"`
	Bytes  *int64 `json:"bytes,omitzero"`
	SHA256 string `json:"sha256,omitzero"`
	Spent  *bool  `json:"spent,omitzero"`
}

// status answers report_status (SPEC D12).
func (s *Server) status(ctx context.Context, raw []byte) result {
	args, err := parseName(raw)
	if err != nil {
		return refusedArguments.because(err)
	}
	return s.examine(ctx, args.Filename, nil)
}

// examine looks at one report and answers with what is there, and spent if it is given.
func (s *Server) examine(ctx context.Context, name string, spent *bool) result {
	report, err := s.workspace.Report(ctx, name)
	if err != nil {
		return failedReport.because(err)
	}
	data := reportData{Exists: report.Exists, SHA256: report.SHA256, Spent: spent}
	message := "There is no report of this name."
	if report.Exists {
		data.Bytes = &report.Bytes
		message = "There is a report of this name."
	}
	return result{Status: StatusOK, Message: message, Data: data}
}

// reasons are the errors that a log may name: their texts are ours and hold no path, errno or input.
var reasons = []error{
	errArguments, errClaims, errVoided, errSpent, errHandler,
	workspace.ErrNotFound, workspace.ErrNotRegular, workspace.ErrNotDirectory, workspace.ErrSymlink,
	workspace.ErrManyLinks, workspace.ErrForeign, workspace.ErrTooLarge, workspace.ErrNotText,
	workspace.ErrChanged, workspace.ErrExists, workspace.ErrClosed, workspace.ErrName,
	context.DeadlineExceeded, context.Canceled,
}

// reasonWord returns what the log says about a result: nothing, words of ours, or that the system refused.
func (r result) reasonWord() string {
	if r.reason == nil {
		return ""
	}
	for _, known := range slices.Concat(reasons, grantErrors) {
		if errors.Is(r.reason, known) {
			return known.Error()
		}
	}
	return "system"
}
