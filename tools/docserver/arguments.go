package docserver

import (
	"errors"
	"slices"
	"unicode/utf8"

	"sallyport/tools/grant"
	"sallyport/tools/strictjson"
	"sallyport/workspace"
)

// Limits of the arguments, in characters (SPEC D3, D5).
const (
	maxQuery   = 80
	maxResults = 3
	maxContent = 8_000
)

// errArguments is why arguments are refused, for the log.
var errArguments = errors.New("arguments")

// searchArguments are those of search_documents.
type searchArguments struct {
	Query      string `json:"query"`
	MaxResults int    `json:"max_results"`
}

func parseSearch(raw []byte) (searchArguments, error) {
	var args searchArguments
	given, err := decode(raw, &args, "query")
	if err != nil {
		return args, err
	}
	if !slices.Contains(given, "max_results") {
		args.MaxResults = maxResults
	}
	if !characters(args.Query, maxQuery) || args.MaxResults < 1 || args.MaxResults > maxResults {
		return args, errArguments
	}
	return args, nil
}

// nameArguments are those of read_document and report_status.
type nameArguments struct {
	Filename string `json:"filename"`
}

func parseName(raw []byte) (nameArguments, error) {
	var args nameArguments
	if _, err := decode(raw, &args, "filename"); err != nil {
		return args, err
	}
	if !workspace.ValidName(args.Filename) {
		return args, errArguments
	}
	return args, nil
}

// saveArguments are those of save_report.
type saveArguments struct {
	Filename string `json:"filename"`
	Content  string `json:"content"`
	Grant    string `json:"grant"`

	// granted is the canonical form of the arguments without the grant: what the grant is for.
	granted []byte
}

func (s *Server) parseSave(raw []byte) (saveArguments, error) {
	var args saveArguments
	if _, err := decode(raw, &args, "filename", "content", "grant"); err != nil {
		return args, err
	}
	if !workspace.ValidName(args.Filename) || !characters(args.Content, maxContent) || !s.grantSize(args.Grant) {
		return args, errArguments
	}
	var err error
	args.granted, err = withoutGrant(raw)
	return args, err
}

// settleArguments are those of settle_report.
type settleArguments struct {
	Filename string `json:"filename"`
	Grant    string `json:"grant"`
}

func (s *Server) parseSettle(raw []byte) (settleArguments, error) {
	var args settleArguments
	if _, err := decode(raw, &args, "filename", "grant"); err != nil {
		return args, err
	}
	if !workspace.ValidName(args.Filename) || !s.grantSize(args.Grant) {
		return args, errArguments
	}
	return args, nil
}

// grantSize: 1 to 2,048 characters for each grant that is needed, and the dots between them.
func (s *Server) grantSize(wire string) bool {
	return characters(wire, s.approvers*grant.MaxWire+s.approvers-1)
}

// decode reads arguments strictly into v and returns the names that were given (SPEC D9). Each of required
// must be among them.
func decode(raw []byte, v any, required ...string) (given []string, err error) {
	members, err := strictjson.Members(raw)
	if err != nil {
		return nil, errArguments
	}
	for _, member := range members {
		given = append(given, member.Name)
	}
	for _, name := range required {
		if !slices.Contains(given, name) {
			return nil, errArguments
		}
	}
	if err := strictjson.Decode(raw, v); err != nil {
		return nil, errArguments
	}
	return given, nil
}

// withoutGrant returns the canonical arguments that a grant is for.
func withoutGrant(raw []byte) ([]byte, error) {
	members, err := strictjson.Members(raw)
	if err != nil {
		return nil, errArguments
	}
	members = slices.DeleteFunc(members, func(m strictjson.Member) bool { return m.Name == "grant" })
	canonical, err := strictjson.Object(members)
	if err != nil {
		return nil, errArguments
	}
	return canonical, nil
}

// characters reports whether text has 1 to max characters.
func characters(text string, max int) bool {
	return text != "" && len(text) <= max*utf8.UTFMax && utf8.RuneCountInString(text) <= max
}
