package agent

import (
	"bytes"
	"encoding/json"
	"fmt"

	"sallyport/tools/grant"
)

// Check reports what makes a Spec unfit to begin a run with. That a write needs
// signatures is checked here, so that no configuration can pin one without.
func (s *Spec) Check() error {
	if err := CheckRunID(s.Run); err != nil {
		return err
	}
	if s.Rules < 0 || s.Rules > Rules {
		return fmt.Errorf("rules version %d, this program knows 0 to %d", s.Rules, Rules)
	}
	if s.Task.IsZero() {
		return fmt.Errorf("no task")
	}
	if !s.Budget.sane() || s.Budget.Turns < 1 {
		return fmt.Errorf("budget %+v: every limit must be between 0 and 2^40, turns at least 1", s.Budget)
	}
	if err := s.checkPrices(); err != nil {
		return err
	}
	if err := s.checkFork(); err != nil {
		return err
	}
	if err := s.checkServers(); err != nil {
		return err
	}
	if err := s.checkApprovers(); err != nil {
		return err
	}
	return s.checkTools()
}

// Equal reports whether two specs begin the same run: whether a journal would keep the
// same of both.
func (s Spec) Equal(o Spec) bool {
	one, err1 := json.Marshal(s.whole())
	two, err2 := json.Marshal(o.whole())
	return err1 == nil && err2 == nil && bytes.Equal(one, two)
}

// whole gives the spec the empty lists that it lacks: the wire form has no null.
func (s Spec) whole() Spec {
	s.Tools = append([]Tool{}, s.Tools...)
	s.Servers = append([]Server{}, s.Servers...)
	s.Approvers = append([]Approver{}, s.Approvers...)
	return s
}

func (b Budget) sane() bool {
	const most = 1 << 40
	for _, n := range []int64{int64(b.Calls), int64(b.Turns), b.Tokens, b.Wall, b.Cost} {
		if n < 0 || n > most {
			return false
		}
	}
	return b.Wall <= 1<<32 // 136 years: stays a time.Duration
}

func (s *Spec) checkServers() error {
	seen := map[string]bool{}
	for _, srv := range s.Servers {
		if srv.Prefix == "" || seen[srv.Prefix] {
			return fmt.Errorf("server prefix %q: empty or twice", srv.Prefix)
		}
		seen[srv.Prefix] = true
	}
	return nil
}

func (s *Spec) checkApprovers() error {
	seen := map[string]bool{}
	for _, a := range s.Approvers {
		k, err := grant.ParsePublicKey(a.Key)
		if err != nil {
			return fmt.Errorf("approver key: %w", err)
		}
		if seen[k.ID()] {
			return fmt.Errorf("approver key %s is listed twice", k.ID())
		}
		seen[k.ID()] = true
	}
	return nil
}

// signatures is the least number of signatures that a risk can be pinned with.
func (r Risk) signatures() (int, bool) {
	switch r {
	case RiskRead:
		return 0, true
	case RiskWrite:
		return 1, true
	case RiskDestructive:
		return 2, true
	case RiskSettle:
		return 0, true
	}
	return 0, false
}

func (s *Spec) checkTools() error {
	seen := map[string]bool{}
	for _, t := range s.Tools {
		least, known := t.Risk.signatures()
		_, served := s.Server(t.Server)
		switch {
		case t.Name == "" || seen[t.Name]:
			return fmt.Errorf("tool name %q: empty or twice", t.Name)
		case !known:
			return fmt.Errorf("tool %s: risk %q", t.Name, t.Risk)
		case !served:
			return fmt.Errorf("tool %s: no server %q", t.Name, t.Server)
		case t.Risk == RiskSettle && !t.HostOnly:
			return fmt.Errorf("tool %s: a settle tool is for the Host only", t.Name)
		case t.HostOnly && t.Risk.Writes() && t.Risk != RiskSettle:
			return fmt.Errorf("tool %s: the Host itself calls no writing tool", t.Name)
		case t.Approvers < least:
			return fmt.Errorf("tool %s: risk %s needs %d signatures, has %d", t.Name, t.Risk, least, t.Approvers)
		case t.Approvers > 0 && (t.Expires <= 0 || t.UseWithin <= 0):
			return fmt.Errorf("tool %s: an approval needs its two expiries", t.Name)
		}
		seen[t.Name] = true
	}
	return nil
}
