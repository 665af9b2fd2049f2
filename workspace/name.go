package workspace

// suffix ends every name.
const suffix = ".md"

// ValidName reports whether name may name a file of the workspace: one ASCII letter or digit, up to 63
// more of letters, digits, '_' and '-', then ".md" (SPEC D2). It is false for everything else, so a valid
// name is one path component, never "." or "..", and never a temporary name of this package.
func ValidName(name string) bool {
	stem := len(name) - len(suffix)
	if stem < 1 || stem > MaxStem || name[stem:] != suffix {
		return false
	}
	for i := range stem {
		if !nameByte(name[i], i == 0) {
			return false
		}
	}
	return true
}

func nameByte(c byte, first bool) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	case c == '_', c == '-':
		return !first
	}
	return false
}
