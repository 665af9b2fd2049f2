package tools

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"sallyport/tools/grant"
)

// Model-side names (SPEC B1): prefix, separator, alias.
const (
	// Separator stands between prefix and alias in a model-side name.
	Separator = "__"
	// MaxPrefix is the longest prefix, in characters.
	MaxPrefix = 16
	// MaxName is the longest model-side name, in characters.
	MaxName = 64
	// ReservedPrefix belongs to the Host.
	ReservedPrefix = "host"
	// aliasHash is how many hex digits mark an alias that is not the server's own name.
	aliasHash = 8
)

// CheckPrefix reports why a server cannot have the prefix: it must be
// [a-z][a-z0-9]{0,15} and not reserved.
func CheckPrefix(prefix string) error {
	switch {
	case prefix == ReservedPrefix:
		return fmt.Errorf("prefix %q belongs to the Host: choose another", prefix)
	case !isPrefix(prefix):
		return fmt.Errorf("prefix %q: a prefix is a lower-case letter and up to %d lower-case letters or digits", prefix, MaxPrefix-1)
	}
	return nil
}

func isPrefix(s string) bool {
	if s == "" || len(s) > MaxPrefix || s[0] < 'a' || s[0] > 'z' {
		return false
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// Alias returns the model-side name of a server's tool. A name of [A-Za-z0-9_-] that
// fits stays as it is. Any other has its foreign characters replaced, is cut, and
// ends in a hash of the whole, so that the same name always has the same alias and
// two names practically never share one; [Validate] refuses it if they do.
func Alias(prefix, remote string) string {
	head := prefix + Separator
	clean := strings.Map(aliasRune, remote)
	if clean == remote && len(head)+len(remote) <= MaxName {
		return head + remote
	}
	sum := sha256.Sum256([]byte(remote))
	tail := "_" + hex.EncodeToString(sum[:])[:aliasHash]
	room := MaxName - len(head) - len(tail)
	return head + clean[:min(len(clean), room)] + tail
}

// aliasRune maps a character that models do not accept in a name to an underscore.
func aliasRune(r rune) rune {
	if isAliasRune(r) {
		return r
	}
	return '_'
}

func isAliasRune(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-'
}

// isAlias reports whether name is prefix, separator and an alias, within MaxName.
func isAlias(name string) bool {
	prefix, alias, ok := strings.Cut(name, Separator)
	return ok && isPrefix(prefix) && alias != "" && len(name) <= MaxName &&
		!strings.ContainsFunc(alias, func(r rune) bool { return !isAliasRune(r) })
}

// isRemote reports whether a server's tool may have the name: visible text that fits
// into a candidate.
func isRemote(name string) bool {
	return name != "" && len(name) <= grant.MaxTool && utf8.ValidString(name) &&
		!strings.ContainsFunc(name, notPrintable)
}

func notPrintable(r rune) bool { return !unicode.IsPrint(r) }

// fold is what two names have in common that a model, or a person, would mix up.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
}

// Resolve gives every contract its model-side name: a key such as fs__read.file
// becomes the alias, with the server's own name in Tool; references of settle follow.
// Contracts that have an alias already stay as they are.
func Resolve(contracts []Contract) []Contract {
	out := slices.Clone(contracts)
	renamed := map[string]string{}
	for i, c := range out {
		if isAlias(c.Name) || c.Tool != "" {
			continue
		}
		out[i].Tool = c.Remote()
		out[i].Name = Alias(c.Prefix(), c.Remote())
		renamed[c.Name] = out[i].Name
	}
	for i, c := range out {
		if c.Settle == nil || renamed[c.Settle.Tool] == "" {
			continue
		}
		settle := *c.Settle
		settle.Tool = renamed[settle.Tool]
		out[i].Settle = &settle
	}
	return out
}
