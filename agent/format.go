package agent

// versionForks is the format that first holds usage from a cache, costs, and forks.
const versionForks = 2

// inFormat is what a run of a format keeps of what was said: a program that knows the
// format only must be able to read it. Nothing that a run depends on is left out.
func inFormat(version int, p payload) payload {
	if version >= versionForks {
		return p
	}
	switch p := p.(type) {
	case Turned:
		p.Usage.Cached = 0
		return p
	case TurnRefused:
		p.Usage.Cached = 0
		return p
	}
	return p
}
