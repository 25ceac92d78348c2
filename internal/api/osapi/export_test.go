package osapi

// Projects returns the number of projects that the ProjectRate remembers.
func (l *ProjectRate) Projects() int { return len(l.buckets.byName) }
