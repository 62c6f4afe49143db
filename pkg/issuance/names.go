package issuance

// Names lists the names that are renewed here at the CA, wildcards with their "*."; those of lineages that cannot be read
// are left out.
func (i *Issuer) Names() []string {
	var names []string
	lineages, _ := i.Lineages()
	for _, name := range lineages {
		if l, err := i.lineage(name); err == nil && l.Server == i.Server {
			names = append(names, l.Names...)
		}
	}
	return names
}
